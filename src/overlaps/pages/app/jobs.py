"""Background work bounded in time and memory: a few processes, and the questions of visitors that they answer.

A question is a function and its arguments; the same question of two visitors is answered once. A visitor who asks
something else no longer wants the answer before: a question that no visitor wants answered is dropped while it waits,
and stopped if it runs. A job that takes longer than its time, or more memory than a process may have, ends with a
sentence; the server goes on. What a job would show as a progress bar on a terminal is told to those who wait.
"""

from __future__ import annotations

import hashlib
import re
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from typing import Any, NamedTuple

from ...compiled.functions import WAITING
from ...interface.errors import InputError, NumericalError
from ...papers.workers import Worker

SECONDS = 120.0  # of one job
MEMORY = 6 * 2**30  # bytes of address space of a process, of which compiled code and libraries take two
LONGEST = 40  # jobs that may wait
KEPT = 64  # answers that are kept
GRACE = 2.0  # seconds in which a job that no visitor wants any more may end by itself: a new process takes as long
VISITORS = 1000  # whose last questions are remembered
BUSY = "too many are waiting; try again in a minute"
COMPILING = "compiling"


class Task(NamedTuple):
    """A function of a module, and its arguments, which say themselves what they are (`repr`)."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()

    @property
    def key(self) -> str:
        """The same for the same question."""
        return hashlib.sha256(repr((self.function.__qualname__, self.arguments)).encode()).hexdigest()[:32]


@dataclass
class Job:
    """A question and, once it is `done`, its answer; or `words`, which say why there is none."""

    task: Task
    done: bool = False
    answer: Any = None
    words: str = ""
    progress: str = ""
    began: float | None = None


class Bars:
    """In place of the standard error of a process: what bars of `interface.progress` show is sent on, nothing else."""

    BAR = re.compile(r"(?:(?P<name>[^:|%]*):)?\s*(?P<share>\d+)%.*\[[\d:]+, (?P<left>[\d:?]+) left")

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.told = 0.0

    def isatty(self) -> bool:
        return True

    def flush(self) -> None:
        pass

    def write(self, text: str) -> int:
        found = self.BAR.search(text)
        if found is not None and time.monotonic() - self.told > 0.2:
            self.told = time.monotonic()
            name, left = found["name"] or "", found["left"]
            self.connection.send(f"{name.strip()} {found['share']} %, {left} left".strip())
        return len(text)


def answer(connection: Any, task: Task) -> tuple[Any, str]:
    """What a process does with a task: the answer, or a sentence."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.RLIM_INFINITY))
    sys.stderr = Bars(connection)  # type: ignore[assignment]
    WAITING.listener = partial(connection.send, COMPILING)
    try:
        return task.function(*task.arguments), ""
    except (InputError, NumericalError) as error:
        return None, " ".join(str(error).split())
    except MemoryError:
        return None, f"this needs more than {MEMORY / 2**30:.0f} GB of memory; choose smaller numbers"
    except Exception as error:  # of libraries that read files of strangers; the process is as good as before
        return None, f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


def awake() -> None:
    """The first task of a process: one that answers it has loaded what it needs."""


class Jobs:
    """A pool of processes and what it has been asked.

    prepare: what the first process does before its first task: compiled code is loaded, or compiled if it is not on
        disk yet, where the others find it; `prepared` counts what has been done of it, and it `compiles` where code
        was not on disk.
    """

    def __init__(self, processes: int = 2, seconds: float = SECONDS, prepare: Sequence[Task] = ()) -> None:
        self.seconds, self.prepare, self.prepared = seconds, (Task(awake), *prepare), 0
        self.compiles = False
        self._lock = threading.Condition()
        self._preparing = threading.Lock()
        self._waiting: list[str] = []
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._wishes: OrderedDict[str, set[str]] = OrderedDict()
        self._closed = False
        self._threads = [threading.Thread(target=self._run, daemon=True) for _ in range(processes)]
        for thread in self._threads:
            thread.start()

    def ask(self, visitor: str, tasks: Mapping[str, Task]) -> dict[str, Job]:
        """The jobs of these tasks, begun if they are not there yet; they replace what this visitor asked before."""
        with self._lock:
            self._wishes[visitor] = {task.key for task in tasks.values()}
            self._wishes.move_to_end(visitor)
            while len(self._wishes) > VISITORS:
                self._wishes.popitem(last=False)
            self._drop()
            found = {name: self._job(task) for name, task in tasks.items()}
            self._lock.notify_all()
            return found

    @property
    def ready(self) -> bool:
        """Whether a process has been prepared."""
        return self.prepared == len(self.prepare)

    def find(self, tasks: Mapping[str, Task]) -> dict[str, Job]:
        """Those of the tasks that have been asked for, without asking."""
        with self._lock:
            return {name: self._jobs[task.key] for name, task in tasks.items() if task.key in self._jobs}

    def close(self) -> None:
        """Stop all processes."""
        with self._lock:
            self._closed = True
            self._lock.notify_all()
        for thread in self._threads:
            thread.join(10)

    def _job(self, task: Task) -> Job:
        if task.key in self._jobs:
            self._jobs.move_to_end(task.key)
            return self._jobs[task.key]
        if len(self._waiting) >= LONGEST:
            return Job(task, done=True, words=BUSY)  # not kept: the next question may find room
        self._jobs[task.key] = job = Job(task)
        self._waiting.append(task.key)
        return job

    def _drop(self) -> None:
        """Forget questions that wait and that no visitor wants any more, and the oldest answers."""
        wished = set().union(*self._wishes.values())
        for key in [key for key in self._waiting if key not in wished]:
            self._waiting.remove(key)
            del self._jobs[key]
        finished = [key for key, job in self._jobs.items() if job.done and key not in wished]
        for key in finished[: max(len(self._jobs) - KEPT, 0)]:
            del self._jobs[key]

    def _next(self) -> Job | None:
        with self._lock:
            while not self._waiting and not self._closed:
                self._lock.wait()
            if self._closed:
                return None
            job = self._jobs[self._waiting.pop(0)]
            job.began = time.monotonic()
            return job

    def _start(self) -> tuple[Worker, Any]:
        """A process that is ready for tasks, and where it tells its progress."""
        mine, theirs = get_context("spawn").Pipe(duplex=False)
        worker = Worker(partial(answer, theirs))
        theirs.close()
        with self._preparing:  # the first compiles; the others load what they need when they need it
            for number, task in enumerate(self.prepare[: 1 if self.ready else None]):
                with suppress(OSError):  # a process that has died is noticed when it has work to do
                    worker.connection.send((task,))
                while worker.process.is_alive() and not worker.connection.poll(0.1) and not self._closed:
                    while mine.poll():
                        self.compiles |= mine.recv() == COMPILING
                if not worker.connection.poll():
                    break
                worker.result()
                self.prepared = max(self.prepared, number + 1)
        return worker, mine

    def _run(self) -> None:
        worker, told = self._start()
        while (job := self._next()) is not None:
            if not worker.process.is_alive():
                worker, told = self._start()
            job.began = time.monotonic()
            with suppress(OSError):
                worker.connection.send((job.task,))
            while not worker.connection.poll(0.02) and not self._over(job):
                while told.poll():
                    job.progress = told.recv()
            found = worker.result()[0] if worker.connection.poll() else None
            alive = worker.process.is_alive()
            if found is None:
                worker.process.kill()
                worker.process.join()
            with self._lock:
                if found is None:
                    self._stopped(job, alive)
                else:
                    job.answer, job.words = found
                job.done = True
        worker.stop()

    def _stopped(self, job: Job, alive: bool) -> None:
        """A job without an answer: one that no visitor wants is forgotten, so that it can be asked again."""
        if not self._wished(job):
            self._jobs.pop(job.task.key, None)
        late = f"stopped after {self.seconds:g} seconds; choose smaller numbers"
        job.words = late if alive else "its process has died, for want of memory perhaps; choose smaller numbers"

    def _wished(self, job: Job) -> bool:
        return any(job.task.key in wishes for wishes in self._wishes.values())

    def _over(self, job: Job) -> bool:
        """Whether to stop a job: its time is over, or no visitor wants it after its first two seconds."""
        spent = time.monotonic() - (job.began or 0.0)
        with self._lock:
            return self._closed or spent > self.seconds or (spent > GRACE and not self._wished(job))
