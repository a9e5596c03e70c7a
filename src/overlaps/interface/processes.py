"""Processes that end with the one that started them, however that ends; and what Ctrl-C says.

A process that is killed cannot end its workers. On Linux the kernel does it for them, ``prctl(PR_SET_PDEATHSIG)``; on
other systems each of them looks once a second whether its parent is still there.

>>> try:
...     with keeping(lambda: "3 of 5 are in the folder; the same command goes on"):
...         raise KeyboardInterrupt
... except KeyboardInterrupt as stop:
...     print(stop)
3 of 5 are in the folder; the same command goes on
"""

from __future__ import annotations

import _thread
import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG
RAISED_AGAIN = 0.02  # seconds after which an interrupt that was lost is sent again


def end_with_parent(parent: int) -> None:
    """Let this process be killed when that one, which started it, has ended; called by a worker when it begins."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    else:
        watch_parent(parent)
    if os.getppid() != parent:  # it has ended in the meantime
        os._exit(1)


def watch_parent(parent: int, seconds: float = 1.0) -> None:
    """What `end_with_parent` does where the kernel does not: a thread that looks for the parent again and again."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(seconds)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def begin_worker(parent: int, module: str) -> None:
    """What a new process does first: it ends with its parent, finds no Dask, and loads that module.

    What it loads stays to its end, so Python's collector of garbage neither runs meanwhile nor looks at it afterwards;
    it would take a fifth of the time.
    """
    end_with_parent(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends this
    gc.disable()
    without_dask()
    import_module(module)
    gc.freeze()
    gc.enable()


def without_dask() -> None:
    """Let xarray find no Dask in this process; with its first array it would load all of it, which takes 0.3 s.

    xarray asks once. Whoever imports Dask later has it.
    """
    if "dask" in sys.modules or "xarray" in sys.modules:
        return
    sys.modules["dask"] = None  # type: ignore[assignment]
    try:
        import xarray as xr

        xr.Variable((), 0.0)
    finally:
        del sys.modules["dask"]


def own_progress_bars() -> None:
    """Let the progress bars of this process, a worker, share no lock with other processes.

    tqdm makes one by default, a semaphore, which a worker that is killed leaves behind; Python warns of it at its end.
    """
    from tqdm.auto import tqdm

    tqdm.set_lock(threading.RLock())


@contextmanager
def without_interrupts() -> Iterator[None]:
    """Processes that are started meanwhile do not hear Ctrl-C; the one that starts them answers it when they are."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing import resource_tracker  # for which help need not wait

    resource_tracker.ensure_running()  # or it begins with the first process, and lets Ctrl-C through again
    pressed: list[int] = []
    handler = signal.getsignal(signal.SIGINT)
    # threads that do not block it hear it for the main thread, which would leave a process half started
    held = handler is not None and threading.current_thread() is threading.main_thread()
    if held:
        signal.signal(signal.SIGINT, lambda number, _: pressed.append(number))
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if held:
            signal.signal(signal.SIGINT, handler)
        if pressed:
            signal.raise_signal(signal.SIGINT)


@contextmanager
def keeping(words: Callable[[], str]) -> Iterator[None]:
    """Give a `KeyboardInterrupt` the words for what is kept and how to go on, unless it has some already."""
    try:
        yield
    except (KeyboardInterrupt, Exception) as stop:
        if not is_interrupt(stop):
            raise
        said = stop.args if isinstance(stop, KeyboardInterrupt) else ()
        raise KeyboardInterrupt(*(said or (words(),))) from None


def is_interrupt(error: BaseException | None) -> bool:
    """Whether an exception is Ctrl-C, or what became of it: a RuntimeError where Python was making a class."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ if error.__suppress_context__ else error.__context__
    return error is not None


@contextmanager
def no_interrupt_lost() -> Iterator[None]:
    """Send Ctrl-C again that comes to nothing: what is raised for it is forgotten before the end.

    Python only tells of it in a destructor, and code that passes over all errors passes over it too, as modules made
    by Cython do while they are loaded.
    """
    ended = False

    def again() -> None:
        time.sleep(RAISED_AGAIN)
        if ended:  # by itself
            return
        if hasattr(signal, "pthread_kill"):
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)  # wakes it where it waits
        else:
            _thread.interrupt_main()

    def lost() -> None:
        if not ended:
            _thread.start_new_thread(again, ())  # here it would be lost again

    class Pressed(KeyboardInterrupt):
        def __del__(self) -> None:
            lost()

    def press(number: int, frame: Any) -> None:
        raise Pressed

    def hear(trouble: Any) -> None:
        if not issubclass(trouble.exc_type, KeyboardInterrupt):
            before(trouble)
        elif not issubclass(trouble.exc_type, Pressed):
            lost()

    handled = threading.current_thread() is threading.main_thread()
    handled = handled and signal.getsignal(signal.SIGINT) is signal.default_int_handler  # and is not ignored
    before, sys.unraisablehook = sys.unraisablehook, hear
    if handled:
        signal.signal(signal.SIGINT, press)
    try:
        yield
    finally:
        ended = True
        if handled:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.unraisablehook = before
