"""Independent simulations in threads: what the recorders of all stochastic scales share.

Simulation i has the i-th stream of random numbers that its seed spawns, so the same seed gives the same bits however
many threads there are. An exception in one simulation, or Ctrl-C, ends the others at their next report of progress.

>>> from overlaps.trajectory.independent_runs import simulate_in_threads
>>> simulate_in_threads(lambda i, rng, progress: i**2, 3, stream=1, seed=0, name="squares", steps=3, progress=False)
[0, 1, 4]
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
from threadpoolctl import threadpool_limits
from tqdm.auto import tqdm

Result = TypeVar("Result")


class Interrupted(Exception):
    """Raised inside a simulation whose result nobody waits for any more."""


class Progress:
    """The progress bar that all simulations of one call share, shown on a terminal only and after two seconds."""

    def __init__(self, name: str, steps: int, shown: bool) -> None:
        self.bar = tqdm(total=steps, desc=name, unit="step", unit_scale=True, delay=2, disable=None if shown else True)
        self.interrupted = threading.Event()

    def advance(self, steps: int) -> None:
        """Report that many finished steps; raises `Interrupted` where the call has ended meanwhile."""
        if self.interrupted.is_set():
            raise Interrupted
        self.bar.update(steps)


def generator(seed: int, stream: int, count: int, which: int) -> np.random.Generator:
    """The random numbers of simulation `which` among `count`."""
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence([seed, stream]).spawn(count)[which]))


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
    streams = np.random.SeedSequence([seed, stream]).spawn(count)
    report = Progress(name, steps, progress)

    def one(i: int) -> Result:
        with np.errstate(over="ignore", invalid="ignore"):  # divergence is found by its size, not by a warning
            return simulate(i, np.random.Generator(np.random.SFC64(streams[i])), report)

    workers = min(count, os.cpu_count() or 1)
    with threadpool_limits(limits=blas_threads), ThreadPoolExecutor(workers) as pool, report.bar:
        futures = [pool.submit(one, i) for i in range(count)]
        try:
            return [future.result() for future in futures]
        except BaseException:
            report.interrupted.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
