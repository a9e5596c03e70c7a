"""Compile, or load what was compiled before, so that no visitor waits for it.

A process of `jobs` compiles part by part and keeps the code on disk; the server then loads what theory needs. Until it
has, theory is left to the process too.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from . import table_forecast
from .hessian_course import Mixed, along_training
from .student_teacher import Explored, chain, theory, training

SMALL = [Explored(activation=name, last=10.0, size=50) for name in Explored.WORDS["activation"]]
THEORY = 1 + len(SMALL)  # parts that theory needs: a process, and the first ones
done = threading.Event()  # this process has loaded theory


def parts() -> Iterator[tuple[Callable[..., Any], tuple[Any, ...]]]:
    """Functions and their arguments, which together compile what the rooms compute in processes."""
    for scale in (theory, chain, training):
        yield from ((scale, (small,)) for small in SMALL)
    yield along_training, (Mixed(size=50),)
    yield table_forecast.small, ()


def warm(compiled: Callable[[], bool]) -> None:
    """Load the code of theory into this process, once it is `compiled`."""
    while not compiled():
        time.sleep(0.1)
    for small in SMALL:
        theory(small)
    done.set()
