"""Independent simulations in threads: what the recorders of all stochastic scales share.

Simulation i has the i-th stream of random numbers that its seed spawns, so the same seed gives the same bits however
many threads there are. An exception in one simulation, or Ctrl-C, ends the others at their next report of progress.

>>> from overlaps.trajectory.independent_runs import simulate_in_threads
>>> simulate_in_threads(lambda i, rng, progress: i**2, 3, stream=1, seed=0, name="squares", steps=3, progress=False)
[0, 1, 4]
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from ..interface.progress import bar

Result = TypeVar("Result")
THREADS: int | None = None  # over which runs are distributed; None for as many as there are cores


class Interrupted(Exception):
    """Raised inside a simulation to end it, when its result is no longer needed."""


class Progress:
    """The progress bar that all simulations of one call share."""

    def __init__(self, name: str, steps: int, shown: bool) -> None:
        self.bar = bar(steps, name, "step", shown=shown, scaled=True)
        self.interrupted = threading.Event()
        self.stop = np.zeros(
            1, np.bool_
        )  # the same for compiled loops, which look at it between the samples of a batch

    def end(self) -> None:
        """Make all simulations end at their next report, since their results are no longer needed."""
        self.interrupted.set()
        self.stop[0] = True

    def advance(self, steps: int) -> None:
        """Report that many finished steps; raises `Interrupted` where the call has ended meanwhile."""
        if self.interrupted.is_set():
            raise Interrupted
        self.bar.update(steps)


def generator(seed: int, stream: int, which: int) -> np.random.Generator:
    """The random numbers of simulation `which`, however many there are."""
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence([seed, stream], spawn_key=(which,))))


class RandomNumbersOfRuns:
    """Random numbers of several runs at once, each from its own generator, so that no run depends on the others.

    Arrays begin with the dimension of runs.
    """

    def __init__(self, generators: Sequence[np.random.Generator]) -> None:
        self.generators = generators

    def standard_normal(self, shape: tuple[int, ...]) -> NDArray[np.float64]:
        """Gaussian numbers (runs, …)."""
        out = np.empty(shape)
        for rng, values in zip(self.generators, out, strict=True):
            rng.standard_normal(out=values)
        return out

    def random(self, shape: tuple[int, ...]) -> NDArray[np.float64]:
        """Numbers between 0 and 1, (runs, …)."""
        return np.stack([rng.random(shape[1:]) for rng in self.generators])

    def multinomial(self, n: int, p: NDArray[np.float64], size: int) -> NDArray[np.int64]:
        """How often each of p was drawn, (runs, p)."""
        assert size == len(self.generators)
        return np.stack([rng.multinomial(n, p) for rng in self.generators])


def simulate_in_threads(
    simulate: Callable[[int, np.random.Generator, Progress], Result],
    count: int,
    *,
    stream: int,
    seed: int,
    name: str,
    steps: int,
    progress: bool,
    blas_threads: int | None = 1,
) -> list[Result]:
    """Results of `simulate(i, rng, progress)` for i = 0 … count − 1.

    stream: an integer of its own for every scale, so that the same seed gives the scales different samples.
    name, steps, progress: text and total of the progress bar, and whether there is one.
    blas_threads: threads of a matrix product; None leaves them to the library.
    """
    report = Progress(name, steps, progress)

    def one(i: int) -> Result:
        with np.errstate(over="ignore", invalid="ignore"):  # divergence is found by its size, not by a warning
            return simulate(i, generator(seed, stream, i), report)

    workers = max(1, min(count, THREADS or os.cpu_count() or 1))
    limited = _linear_algebra(len(sys.modules)).limit(limits=blas_threads)
    with limited, ThreadPoolExecutor(workers) as pool, report.bar:
        futures = [pool.submit(one, i) for i in range(count)]
        try:
            return [future.result() for future in futures]
        except BaseException:
            report.end()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


@lru_cache(1)
def _linear_algebra(loaded: int) -> ThreadpoolController:
    """The libraries of linear algebra that this process has loaded; to find them takes 2 ms, several short runs long.

    loaded: number of modules that are loaded; where it has changed, libraries may have come with them, and are searched
        for again.
    """
    return ThreadpoolController()
