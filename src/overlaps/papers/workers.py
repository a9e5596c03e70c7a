"""Lists of tasks in processes: what shares runs stays in one process, and one that dies costs a single task.

What keeps a task from being done is reported as a `Trouble`, which also names an extra that is not installed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Any, NamedTuple

from ..compiled.code_cache import writable
from ..interface.errors import InputError, MissingExtraError
from ..interface.terminal import adapt

Task = tuple[Any, ...]


class Trouble(NamedTuple):
    """What was wrong, in words, if anything; and what to install, if that is all there is to do about it."""

    words: str = ""
    install: str = ""

    @classmethod
    def of(cls, error: Exception) -> Trouble:
        """An error on one line, with its kind where it is not one of this library's refusals."""
        kind = "" if isinstance(error, InputError) else f"{type(error).__name__}: "
        install = error.install if isinstance(error, MissingExtraError) else ""
        return cls(kind + " ".join(str(error).split()), install)


DIED = Trouble("its process has died, for want of memory perhaps")


def one_by_one(
    lists: list[list[Task]], work: Callable[..., Any], processes: int, begin: Callable[[Task], None] = lambda task: None
) -> Iterator[tuple[Task, Any]]:
    """Each task when it is done, with what ``work(*task)`` returned, or None if its process died.

    A process has one list at a time, the longest first, and works through it task by task; `begin` is told of each that
    is begun. With one process everything happens in this one.
    """
    queue = sorted(lists, key=len)
    if processes == 1:
        for task in (task for tasks in reversed(queue) for task in tasks):
            begin(task)
            yield task, work(*task)
        return
    writable()  # if not, this process says so, and not each of the others
    running: dict[Future[Any], tuple[ProcessPoolExecutor, list[Task]]] = {}

    def go_on(worker: ProcessPoolExecutor | None, tasks: list[Task]) -> None:
        """The next task of a list, or of the next list."""
        tasks = tasks or (queue.pop() if queue else [])
        if tasks:
            # a fresh interpreter: forking one that has started threads may hang
            worker = worker or ProcessPoolExecutor(1, get_context("spawn"), initializer=_prepare)
            begin(tasks[0])
            running[worker.submit(work, *tasks[0])] = worker, tasks
        elif worker:
            worker.shutdown()

    try:
        for _ in range(processes):
            go_on(None, [])
        while running:
            for done in wait(running, return_when=FIRST_COMPLETED).done:
                worker, (task, *later) = running.pop(done)
                result = None
                try:
                    result = done.result()
                except BrokenProcessPool:
                    worker = None
                yield task, result
                go_on(worker, later)
    finally:
        for worker, _ in running.values():
            worker.shutdown(wait=False, cancel_futures=True)


def _prepare() -> None:
    """Processes share the cores, so the linear algebra of each keeps to one; they open no windows."""
    import matplotlib
    from threadpoolctl import threadpool_limits

    adapt()
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    threadpool_limits(1)
    matplotlib.use("agg")
