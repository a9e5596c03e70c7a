"""Who computes: this process, processes on this machine (joblib's), or the workers of a Dask cluster.

All of them are executors of `concurrent.futures`, so there is one loop for all: cells are handed out in parcels, each
of as many as take some `PARCEL` seconds, since to send a parcel and its results costs a few milliseconds; cells that
a worker has not begun by then come back, so that slow cells are kept one by one. What comes of them goes to the store
from here; workers need no disk of their own. A worker that dies takes the cells with it that
were handed out, and these are handed out again: one by one, so that a cell which kills its process is distinguished
from those that only shared the process, and given up after `DEATHS`.

>>> doubled = in_turn([1, 2, 3], lambda x: 2 * x, Here())
>>> sorted(doubled)
[(1, 2), (2, 4), (3, 6)]
"""

from __future__ import annotations

import logging
import os
import pickle
import platform
import time as clock
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import Any, Protocol, TypeVar

from ..compiled.code_cache import writable
from ..interface.checks import whole
from ..interface.errors import InputError, MissingExtraError
from ..interface.processes import begin_worker, own_progress_bars, without_interrupts
from ..problem.address import version
from ..trajectory import independent_runs

Job = TypeVar("Job")
DEATHS = 3  # of processes that a cell may cost before it is given up
AHEAD = 2  # parcels handed out for each worker, so that none waits for the next
PARCEL = 0.2  # seconds that a worker computes what it is handed out at once
MOST = 64  # jobs in a parcel
LOST = 30.0  # seconds to wait for a cluster that has gone
REMEDY = "install the same on all of its workers, and start them anew"


class Died(Exception):
    """The process of a cell has died, several times."""


class Workers(Protocol):
    """Where cells are computed.

    at_once: how many of them. shared: whether other cells are computed by the same machine.
    deaths: exceptions that mean that a worker has died.
    """

    at_once: int
    shared: bool
    deaths: tuple[type[BaseException], ...]

    def submit(self, work: Callable[[Any], Any], job: Any) -> Future[Any]: ...
    def restart(self) -> None: ...
    def stop(self) -> None: ...


class Here:
    """In this process, one after the other."""

    at_once, shared = 1, False
    deaths: tuple[type[BaseException], ...] = ()

    def submit(self, work: Callable[[Any], Any], job: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(work(job))
        return done

    def restart(self) -> None: ...
    def stop(self) -> None: ...
    def __repr__(self) -> str:
        return "this process"


class Processes:
    """Processes on this machine; they end with this one, however it ends."""

    shared = True

    def __init__(self, count: int) -> None:
        self.at_once = count
        self.deaths: tuple[type[BaseException], ...] = (BrokenProcessPool,)
        self._pool: Any = None
        writable()  # if not, this process says so, and not each of the others

    def submit(self, work: Callable[[Any], Any], job: Any) -> Future[Any]:
        if self._pool is None:
            from joblib.externals.loky import ProcessPoolExecutor

            first, limit = (os.getpid(), __name__), {"OPENBLAS_NUM_THREADS": "1"}
            self._pool = ProcessPoolExecutor(self.at_once, initializer=begin_worker, initargs=first, env=limit)
        try:
            with without_interrupts():  # a process may be started here
                return self._pool.submit(work, job)
        except BrokenProcessPool as death:  # of an idle worker; reported like that of a busy one
            failed: Future[Any] = Future()
            failed.set_exception(death)
            return failed

    def restart(self) -> None:
        """New processes in the place of all."""
        self.stop()

    def stop(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, kill_workers=True)
            self._pool = None

    def __repr__(self) -> str:
        return f"{self.at_once} processes"


class Cluster:
    """The workers of a Dask cluster, by the address of its scheduler."""

    shared = True

    def __init__(self, address: Any) -> None:
        try:
            from distributed import Client, KilledWorker, TimeoutError
            from distributed.comm.core import CommClosedError
        except ImportError as error:
            raise MissingExtraError(
                f"cluster: a Dask cluster needs the extra 'cluster' ({error.name} is missing)",
                "pip install 'overlaps[cluster]'",
            ) from None
        self.address = address
        self.deaths: tuple[type[BaseException], ...] = (KilledWorker,)
        self._own = not isinstance(address, Client)
        try:
            self._client: Any = Client(address, timeout=LOST, set_as_default=False) if self._own else address
        except (OSError, TimeoutError, CommClosedError, ValueError, TypeError) as error:
            raise InputError(
                f"cluster: no scheduler answers at {address!s:.80} ({' '.join(str(error).split()):.200}); start one by "
                "`dask scheduler`, and workers by `dask worker ADDRESS`"
            ) from None
        self._executor: Executor = self._client.get_executor(pure=False)
        self.at_once, self._counted_at = max(1, sum(self._client.nthreads().values())), clock.monotonic()

    def submit(self, work: Callable[[Any], Any], job: Any) -> Future[Any]:
        if clock.monotonic() > self._counted_at + 1:  # workers come and go
            self._counted_at = clock.monotonic()
            self.at_once = sum(self._client.nthreads().values()) or self.at_once
        from cloudpickle import dumps

        return self._executor.submit(_opened, version(), dumps((work, job)))

    def restart(self) -> None:
        """The scheduler replaces workers itself."""

    def stop(self) -> None:
        if not self._own:
            self._executor.shutdown(wait=False)
            return
        with _unlogged("tornado.application"):  # results that are on their way, and that nobody waits for
            self._executor.shutdown(wait=False)
            self._client.close(timeout=5)

    def __repr__(self) -> str:
        return f"the cluster at {self.address}, {self.at_once} threads"


@contextmanager
def _unlogged(name: str) -> Iterator[None]:
    """Let a logger say nothing."""
    logger = logging.getLogger(name)
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


def chosen(count: int | None, cluster: Any, jobs: int) -> Workers:
    """Who computes that many jobs: the cluster, or `count` processes, all cores by default; one is this process."""
    if cluster is not None:
        if count is not None:
            raise InputError("workers: those of a cluster are the cluster's; leave workers out, or cluster")
        return Cluster(cluster)
    if count is not None:
        count = whole("workers", count, least=1, most=4096)
    else:
        from joblib import cpu_count

        count = cpu_count()
    count = min(count, jobs)
    return Here() if count <= 1 else Processes(count)


def in_turn(
    jobs: Iterable[Job], work: Callable[[Job], Any], by: Workers, stopped: Callable[[], bool] = lambda: False
) -> Generator[tuple[Job, Any]]:
    """Each job with what came of it, `Died` if it was given up, as they are done; all workers end when this does.

    jobs: are asked for when there is a worker for them. stopped: whether to hand out no more.
    """
    queue, returned, again = iter(jobs), deque[Job](), deque[Job]()
    running: dict[Future[Any], list[Job]] = {}
    lost: dict[int, int] = {}  # deaths of jobs that are still to be done, whose ids are theirs alone
    left, count = True, 1
    several = partial(_computed, work, by.shared)
    try:
        while running or again or returned or left:
            while (left or returned) and not again and len(running) < AHEAD * by.at_once and not stopped():
                parcel = [returned.popleft() for _ in range(min(count, len(returned)))]
                parcel += islice(queue, count - len(parcel))
                if not parcel:
                    left = False
                    break
                running[by.submit(several, parcel)] = parcel
            if again and not running:  # suspects are tried alone
                job = again.popleft()
                running[by.submit(several, [job])] = [job]
            if not running:
                if stopped():
                    return
                continue
            alone = len(running) == 1
            died = False
            for done in wait(running, return_when=FIRST_COMPLETED).done:
                parcel = running.pop(done)
                try:
                    seconds, results = done.result()
                except by.deaths:
                    died = True
                    for job in parcel:
                        lost[id(job)] = lost.get(id(job), 0) + (alone and len(parcel) == 1)
                        if lost[id(job)] >= DEATHS:
                            del lost[id(job)]
                            yield job, Died("its process has died three times, for want of memory perhaps")
                        else:
                            again.append(job)
                except CancelledError:
                    raise InputError(f"cluster: {by!r}, has gone; start one, and sweep again to go on") from None
                except (ImportError, AttributeError) as error:  # of a worker that could not read what it was sent
                    raise InputError(f"cluster: a worker has no overlaps like this one ({error}); {REMEDY}") from None
                else:
                    if by.shared:  # at most twice as many as these, for the next may take longer
                        fitting = PARCEL * len(results) / max(seconds, 1e-6)
                        count = int(max(1, min(fitting, 2 * len(results), MOST)))
                    returned.extendleft(reversed(parcel[len(results) :]))
                    for job, result in zip(parcel, results, strict=False):
                        lost.pop(id(job), None)
                        yield job, result
            if died:
                count = 1
                by.restart()
    finally:
        by.stop()


def _opened(theirs: str, content: bytes) -> Any:
    """What comes of work that another machine has sent; another version, which may compute other bits, reads none."""
    if theirs != version():
        raise InputError(
            f"cluster: the worker at {platform.node()} has overlaps {version()}, and the sweep has {theirs}; {REMEDY}"
        )
    work, job = pickle.loads(content)
    return work(job)


def _computed(work: Callable[[Job], Any], shared: bool, parcel: list[Job]) -> tuple[float, list[Any]]:
    """What comes of each job, and the seconds that they took; jobs after `PARCEL` seconds are not begun.

    shared: whether the other cores are for others.
    """
    if shared:
        one_core()
    began = clock.perf_counter()
    results = [work(parcel[0])]
    for job in parcel[1:]:
        if clock.perf_counter() - began > PARCEL:
            break
        results.append(work(job))
    return clock.perf_counter() - began, results


def one_core() -> None:
    """Cells share the cores, so each keeps to one of them: its linear algebra, and its runs."""
    if independent_runs.THREADS != 1:
        from threadpoolctl import threadpool_limits

        threadpool_limits(1)
        own_progress_bars()
        independent_runs.THREADS = 1
