"""Sweeps: a grid of rates, exponents and seeds, by a plain loop, on two processes and on a Dask cluster.

What two processes can reach at all is measured by the loop itself, cut into two that run side by side.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from itertools import product
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import overlaps as ov
from overlaps.trajectory import independent_runs

from .table import Row, at_least, at_most, duration

NET = ov.Committee(units=2, activation="erf")
PROBLEM = ov.Problem(
    data=ov.GaussianInputs(ov.PowerLaw(levels=5, exponent=0.5)),
    teacher=NET,
    student=NET,
    algorithm=ov.OnlineSGD(rate=0.5),
)
WORKERS = 2
TURNS = 3  # of loop, its parts side by side and sweep, and of processes and cluster
Times = NDArray[np.float64]
Points = Sequence[tuple[float, float, int]]


def grid(quick: bool = False) -> list[Row]:
    """30 rates × 5 exponents × 5 seeds at two scales: 1500 cells."""
    rates = np.geomspace(0.1, 2.0, 2 if quick else 30).tolist()
    exponents = np.linspace(0.25, 1.25, 2 if quick else 5).tolist()
    seeds, size, last = (1, 50, 20) if quick else (5, 1000, 50)  # 1000 is the size of a sweep by default
    times = ov.logtimes(0.1, last, 10)
    points: Points = list(product(rates, exponents, range(seeds)))
    over = {"algorithm.rate": rates, "data.spectrum.exponent": exponents}
    options: dict[str, Any] = {"seeds": seeds, "times": times, "size": size, "progress": False}
    cells = 2 * len(points)

    def swept(**how: Any) -> float:
        """Seconds of a sweep into a new store; to remove it afterwards is no part of them."""
        with tempfile.TemporaryDirectory() as folder:
            options["store"] = Path(folder) / "store"
            found: list[Any] = []
            passed, _ = _seconds(lambda: found.append(ov.sweep(PROBLEM, over, **options, **how)))
        assert found[0].counts == {"done": cells}
        return passed

    turns = []
    for _ in range(1 if quick else TURNS):
        with _one_core():
            _loop(points[:1], times, size)  # compiled code is loaded
            plain, _ = _seconds(lambda: _loop(points, times, size))
        turns.append((plain, _side_by_side(points, times, size), swept(workers=WORKERS)))
    with _one_core():
        overhead, spread, started = _own_work(20 if quick else 200, 2 if quick else 3)
    plain, parts, both = np.median(turns, axis=0)
    reached, attainable = np.median([(alone / sweep, alone / part) for alone, part, sweep in turns], axis=0)
    what = f"{len(rates)} rates x {len(exponents)} exponents x {seeds} seeds, macro and meso"
    rows = [
        at_least(
            f"{what}: a plain loop / a sweep on {WORKERS} processes",
            float(reached),
            1.8,
            f"{duration(plain)} and {duration(both)}, with starting the processes; the median of {len(turns)} turns. "
            f"The limit here is {attainable:.3g}, of which the sweep has {reached / attainable:.0%}: the same loop, "
            f"cut into {WORKERS} that run side by side and have loaded everything before, takes {duration(parts)}.",
        ),
        at_most(
            "a cell of a sweep, besides what is computed / 5 ms",
            overhead / 5e-3,
            1.0,
            f"{1e3 * overhead:.2g} ± {1e3 * spread:.1g} ms of CPU time of all processes, of cells that cost next to "
            f"nothing: built, addressed, sent, packed, sealed, flushed to disk; starting the processes takes "
            f"{duration(started)} more, once.",
        ),
    ]
    if find_spec("distributed") and not quick:
        rows.append(_on_cluster(swept))
    return rows


def _loop(points: Points, times: Times, size: int) -> None:
    """What a user would write: rates, exponents and seeds one after the other."""
    for rate, exponent, seed in points:
        data = ov.GaussianInputs(ov.PowerLaw(levels=5, exponent=exponent))
        problem = replace(PROBLEM, data=data, algorithm=ov.OnlineSGD(rate=rate))
        start = ov.draw(problem, size, seed)
        ov.solve(problem, start, times)
        ov.sample(problem, start, times, runs=1, seed=seed, progress=False)


def _side_by_side(points: Points, times: Times, size: int) -> float:
    """Seconds of the loop cut into as many as there are processes, each of which is ready when all begin."""
    context = get_context("spawn")
    ready = context.Barrier(WORKERS + 1, timeout=600)
    parts = [points[i::WORKERS] for i in range(WORKERS)]
    processes = [context.Process(target=_part, args=(part, times, size, ready)) for part in parts]
    for process in processes:
        process.start()
    ready.wait()
    began = time.perf_counter()
    ready.wait()
    passed = time.perf_counter() - began
    for process in processes:
        process.join()
    return passed


def _part(points: Points, times: Times, size: int, ready: Barrier) -> None:
    with _one_core():
        _loop(points[:1], times, size)  # compiled code is loaded
        ready.wait()
        _loop(points, times, size)
        ready.wait()


@contextmanager
def _one_core() -> Iterator[None]:
    """Runs and linear algebra of this process keep to one core."""
    independent_runs.THREADS = 1
    try:
        with threadpool_limits(1):
            yield
    finally:
        independent_runs.THREADS = None


def _own_work(cells: int, turns: int) -> tuple[float, float, float]:
    """CPU seconds of a cell besides what is computed, their standard error, and those of starting the processes.

    Cells that cost next to nothing are swept over, many and few of them in turns, and computed by a loop: between two
    sweeps the start of the processes cancels, and what the loop takes does not count. Differences keep their sign.
    """
    net = ov.Committee(units=1, activation="linear")
    free, times = replace(PROBLEM, teacher=net, student=net), [0.0, 0.1]

    def rates(count: int) -> list[float]:
        return np.linspace(0.1, 0.5, count).tolist()

    def loop(count: int) -> None:
        for rate in rates(count):
            problem = replace(free, algorithm=ov.OnlineSGD(rate=rate))
            ov.sample(problem, ov.draw(problem, 10), times, runs=1, progress=False)

    def swept(count: int) -> float:
        with tempfile.TemporaryDirectory() as folder:
            options: dict[str, Any] = {"times": times, "size": 10, "scales": "meso", "workers": WORKERS}
            over = {"algorithm.rate": rates(count)}
            return _seconds(lambda: ov.sweep(free, over, store=folder, progress=False, **options))[1]

    loop(1)  # compiled code is loaded
    each, starts = [], []
    for _ in range(turns):
        starts.append(swept(WORKERS))
        many = swept(WORKERS + cells)
        each.append((many - starts[-1] - _seconds(lambda: loop(cells))[1]) / cells)
    return float(np.mean(each)), float(np.std(each, ddof=1) / np.sqrt(turns)), float(np.mean(starts))


def _on_cluster(swept: Callable[..., float]) -> Row:
    from distributed import LocalCluster

    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    with LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=":0") as cluster:
        turns = [(swept(cluster=cluster.scheduler_address), swept(workers=WORKERS)) for _ in range(TURNS)]
    passed, both = np.median(turns, axis=0)
    return at_most(
        f"the sweep on a local Dask cluster of {WORKERS} workers / on {WORKERS} processes",
        float(np.median([there / here for there, here in turns])),
        1.15,
        f"{duration(passed)} and {duration(both)}; the median of {len(turns)} turns.",
    )


def _seconds(work: Any) -> tuple[float, float]:
    """Seconds that pass, and those of CPU time of this process and of those that it has started and that have ended."""
    before, began = os.times(), time.perf_counter()
    work()
    passed, after = time.perf_counter() - began, os.times()
    return passed, sum(after[:4]) - sum(before[:4])
