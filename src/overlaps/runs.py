"""Many independent runs of a stochastic scale: seeds, threads, recording, divergence.

A value asked for between two steps is interpolated linearly between them, so that all scales share one time axis.
"""

from __future__ import annotations

import os
import threading
import time as clock
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from threadpoolctl import threadpool_limits
from tqdm.auto import tqdm

from .averages import method_for
from .checks import grid, whole
from .errors import InputError, NumericalError
from .problem import Problem
from .start import Start
from .trajectory import LIMIT, Trajectory, assemble, largest_overlap

Array = NDArray[np.float64]
STREAMS = {"micro": 1, "meso": 2}  # so that the same seed gives the scales different samples


class Walker(Protocol):
    """One run: it steps, and tells its overlaps."""

    chunk: int

    def advance(self, steps: int) -> None: ...

    def overlaps(self) -> tuple[Array, Array, Array]: ...


class _Diverged(Exception):
    def __init__(self, run: int, time: float, quantity: str) -> None:
        super().__init__(quantity)
        self.run, self.time, self.quantity = run, time, quantity


class _Tape:
    """What is kept of the runs: overlaps of the fields, and of every level on request."""

    def __init__(self, problem: Problem, start: Start, runs: int, times: int, levels: bool) -> None:
        B, K, M = start.R.shape
        self.omega = problem.data.eigenvalues
        self.Q, self.R = np.full((runs, times, K, K), np.nan), np.full((runs, times, K, M), np.nan)
        self.v = np.full((runs, times, K), np.nan)
        self.levels = (
            (np.full((runs, times, B, K, K), np.nan), np.full((runs, times, B, K, M), np.nan)) if levels else None
        )

    def write(self, run: int, i: int, Q: Array, R: Array, v: Array) -> None:
        self.Q[run, i] = np.tensordot(self.omega, Q, 1)
        self.R[run, i] = np.tensordot(self.omega, R, 1)
        self.v[run, i] = v
        if self.levels is not None:
            self.levels[0][run, i], self.levels[1][run, i] = Q, R


def record(
    scale: str,
    make: Callable[[Problem, Start, np.random.Generator], Walker],
    problem: Problem,
    start: Start,
    times: ArrayLike,
    runs: int,
    seed: int,
    *,
    levels: bool,
    progress: bool,
) -> Trajectory:
    """Run `runs` walkers in threads and record their overlaps at `times`."""
    began = clock.perf_counter()
    start.check_fits(problem)
    t = grid(times)
    runs, seed = whole("runs", runs, least=1), whole("seed", seed, least=0)
    assert start.size is not None
    size = start.size
    total = int(np.ceil(t[-1] * size - 1e-9))
    if total > 10**13:
        raise InputError(f"times: {t[-1]:g} at size {size} is {total:.1e} steps; use a smaller time or size, or macro")
    how = method_for(problem, start.u)
    generators = [
        np.random.Generator(np.random.SFC64(s)) for s in np.random.SeedSequence([seed, STREAMS[scale]]).spawn(runs)
    ]
    tape = _Tape(problem, start, runs, t.size, levels)
    bar = tqdm(
        total=runs * total, desc=scale, unit="step", unit_scale=True, delay=2, disable=None if progress else True
    )
    lock, stop = threading.Lock(), threading.Event()

    def one(run: int) -> None:
        walker = make(problem, start, generators[run])
        done = 0
        before: tuple[Array, ...] = ()

        def go(to: int) -> None:
            nonlocal done
            while done < to and not stop.is_set():
                steps = min(walker.chunk, to - done)
                walker.advance(steps)
                done += steps
                with lock:
                    bar.update(steps)
                Q, R, v = walker.overlaps()
                if not max(np.abs(Q).max(), np.abs(v).max()) < LIMIT:
                    stop.set()
                    raise _Diverged(run, done / size, largest_overlap(Q, R, v, tape.omega))

        for i, at in enumerate(t):
            exact = at * size
            whole_steps = int(np.floor(exact + 1e-9))
            share = max(0.0, exact - whole_steps)
            if done <= whole_steps:  # else: a second time between the same two steps
                go(whole_steps)
                before = tuple(x.copy() for x in walker.overlaps())
            if share > 1e-9:
                go(whole_steps + 1)
                after = walker.overlaps()
                values = [(1 - share) * a + share * b for a, b in zip(before, after, strict=True)]
            else:
                values = list(before)
            if stop.is_set():
                return
            tape.write(run, i, *values)

    workers = min(runs, os.cpu_count() or 1)
    failure: _Diverged | None = None
    with threadpool_limits(limits=1), ThreadPoolExecutor(workers) as pool, bar:
        futures = [pool.submit(one, run) for run in range(runs)]
        try:
            for future in futures:
                try:
                    future.result()
                except _Diverged as diverged:
                    failure = failure or diverged
        except BaseException:
            stop.set()
            raise

    def trajectory(count: int) -> Trajectory:
        seconds = clock.perf_counter() - began
        cost = f"{runs} x {total:,} steps, {seconds:.2g} s"
        blocks = None if tape.levels is None else (tape.levels[0][:, :count], tape.levels[1][:, :count])
        return assemble(
            scale, problem, start, t[:count], tape.Q[:, :count], tape.R[:, :count], tape.v[:, :count], how,
            levels=blocks, seed=seed, cost=cost,
        )  # fmt: skip

    if failure is not None:
        finished = np.all(np.isfinite(tape.v), axis=(0, 2))
        count = int(finished.argmin()) if not finished.all() else t.size
        raise NumericalError(
            f"{scale}: an overlap grew without bound: {failure.quantity} in run {failure.run} by time "
            f"{failure.time:.6g}; reduce rate (now {problem.algorithm.rate:g}) or stop earlier",
            quantity=failure.quantity.split(" =")[0],
            time=failure.time,
            partial=trajectory(count) if count else None,
        )
    return trajectory(t.size)
