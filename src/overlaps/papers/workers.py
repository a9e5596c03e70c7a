"""Lists of tasks in processes: what shares runs stays in one process. A task whose process dies is done again, once.

Processes end with the one that started them, also if that is killed; Ctrl-C ends them at once.

What keeps a task from being done is reported as a `Trouble`, which also names an extra that is not installed.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple

from ..compiled.code_cache import writable
from ..interface.errors import InputError, MissingExtraError
from ..interface.processes import end_with_parent, own_progress_bars, without_interrupts
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


DIED = Trouble("its process has died twice, for want of memory perhaps")


class Worker:
    """A process that does one task after the other, and ends with this one."""

    def __init__(self, work: Callable[..., Any]) -> None:
        # a fresh interpreter: forking one that has started threads may hang
        context = get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, work, os.getpid()), daemon=True)
        with without_interrupts():
            self.process.start()
        theirs.close()  # so that its end is noticed here

    def result(self) -> tuple[Any, bool]:
        """What the task has returned, and whether the process is still there to take another."""
        try:
            return self.connection.recv(), True
        except (EOFError, OSError):
            self.stop()
            return None, False

    def stop(self) -> None:
        self.process.kill()
        self.process.join()
        self.connection.close()


def one_by_one(
    lists: list[list[Task]], work: Callable[..., Any], processes: int, begin: Callable[[Task], None] = lambda task: None
) -> Iterator[tuple[Task, Any]]:
    """Each task when it is done, with what ``work(*task)`` returned, or None if its process died twice.

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
    running: dict[Any, tuple[Worker, list[Task]]] = {}
    died: list[Task] = []

    def go_on(worker: Worker | None, tasks: list[Task]) -> None:
        """The next task of a list, or of the next list."""
        tasks = tasks or (queue.pop() if queue else [])
        if tasks:
            worker = worker or Worker(work)
            running[worker.connection] = worker, tasks
            begin(tasks[0])
            with suppress(OSError):  # a process that has died is noticed when its result is looked for
                worker.connection.send(tasks[0])
        elif worker:
            worker.stop()

    try:
        for _ in range(processes):
            go_on(None, [])
        while running:
            for ready in wait(list(running)):
                worker, (task, *later) = running.pop(ready)
                result, alive = worker.result()
                if not alive:
                    worker = None
                    if task not in died:  # whatever ended its process may not come again
                        died.append(task)
                        go_on(None, [task, *later])
                        continue
                yield task, result
                go_on(worker, later)
    finally:
        for worker, _ in running.values():
            worker.stop()


def _serve(connection: Connection, work: Callable[..., Any], parent: int) -> None:
    """What a worker does: tasks as they come, until there are no more or its parent has ended."""
    end_with_parent(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # where it could not be blocked before
    _prepare()
    with suppress(EOFError):
        while True:
            connection.send(work(*connection.recv()))


def _prepare() -> None:
    """Processes share the cores, so the linear algebra of each keeps to one; they open no windows."""
    import matplotlib
    from threadpoolctl import threadpool_limits

    adapt()
    own_progress_bars()
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    threadpool_limits(1)
    matplotlib.use("agg")
