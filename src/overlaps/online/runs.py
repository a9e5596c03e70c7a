"""Many independent runs of a stochastic scale: seeds, threads, recording, divergence.

A value asked for between two steps is interpolated linearly between them, so that all scales share one time axis.
"""

from __future__ import annotations

import os
import threading
import time as clock
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import NamedTuple, Protocol

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray
from threadpoolctl import threadpool_limits
from tqdm.auto import tqdm

from ..averages import method_for
from ..interface.checks import grid, steps, whole
from ..interface.errors import InputError, NumericalError
from ..problem.start import LIMIT, Start
from ..problem.statement import Problem
from ..trajectory.dataset import Trajectory, assemble, largest_overlap

Array = NDArray[np.float64]
STREAMS = {"micro": 1, "meso": 2, "diffusion": 3}  # so that the same seed gives the scales different samples


class Visit(NamedTuple):
    """What a run tells of its stops: Q (stops, levels, K, K), A (stops, levels, K, M+P), v (stops, K).

    measured: further variables that runs measure themselves, (stops,) each; the error is one of them unless it follows
        from the overlaps.
    """

    Q: Array
    A: Array
    v: Array
    measured: dict[str, Array] = {}  # noqa: RUF012 - of a named tuple, never written to


class Observed(NamedTuple):
    """What runs look at besides overlaps: at which times, and the dimensions of each array they bring back."""

    times: Array
    dims: dict[str, tuple[str, ...]]


class Run(Protocol):
    """One run: it goes to given steps and records its overlaps there.

    measures: names of the variables that it measures; an error that is not among them follows from the overlaps.
    observations: what it has observed besides, one set of arrays for each observed time so far.
    """

    chunk: int
    measures: tuple[str, ...]
    observations: list[dict[str, Array]]

    def fresh(self, rng: np.random.Generator) -> Run: ...

    def visit(self, stops: NDArray[np.int64]) -> Visit: ...


class _Diverged(Exception):
    """A run left the bounds between two of its stops."""

    def __init__(self, run: int, before: int, after: int) -> None:
        super().__init__(run)
        self.run, self.before, self.after = run, before, after


class _Tape:
    """What is kept of the runs at the stops: overlaps of fields, of levels on request, errors where they are told."""

    def __init__(self, start: Start, runs: int, stops: int, levels: bool, measured: tuple[str, ...]) -> None:
        (B, K, F), M = start.A.shape, start.u.size
        self.omega, self.seen = start.eigenvalues, start.seen
        self.Q, self.R, self.m = (np.full((runs, stops, K, n), np.nan) for n in (K, M, F - M))
        self.v = np.full((runs, stops, K), np.nan)
        self.measured = {name: np.full((runs, stops), np.nan) for name in measured}
        self.Q_levels = np.full((runs, stops, B, K, K), np.nan) if levels else None
        self.A_levels = np.full((runs, stops, B, K, F), np.nan) if levels else None

    def write(self, run: int, first: int, seen: Visit, count: int) -> None:
        """Keep the first `count` stops of a visit, from place `first` on."""
        at, M = slice(first, first + count), self.R.shape[-1]
        self.Q[run, at] = np.einsum("b,tbij->tij", self.omega, seen.Q[:count])
        self.R[run, at] = np.einsum("b,tbij->tij", self.seen, seen.A[:count, :, :, :M])
        self.m[run, at] = seen.A[:count, :, :, M:].sum(1)
        self.v[run, at] = seen.v[:count]
        for name, values in self.measured.items():
            values[run, at] = seen.measured[name][:count]
        if self.Q_levels is not None and self.A_levels is not None:
            self.Q_levels[run, at], self.A_levels[run, at] = seen.Q[:count], seen.A[:count]


def schedule(times: Array, size: int) -> tuple[NDArray[np.int64], NDArray[np.int64], Array]:
    """Steps to stop at; for each time the place of the last stop not after it, and the share of the way to the next."""
    exact = times * size
    floor = np.floor(exact + 1e-9).astype(np.int64)
    share = np.where(exact - floor > 1e-9, exact - floor, 0.0)
    stops = np.unique(np.concatenate([floor, floor[share > 0] + 1]))
    return stops, np.searchsorted(stops, floor), share


def _check_decay(problem: Problem, times: Array, size: int) -> None:
    """Refuse a decay that carries the weights beyond zero in one step, and further each time."""
    update, at = problem.update, np.concatenate([[0.0], problem.update.knots, times])
    layers = [update.rate] if update.readout_rate is None else [update.rate, update.readout_rate]
    overshoot = max(float(np.max(rate.at(at))) for rate in layers) * problem.algorithm.decay
    if overshoot >= 2 * size:
        raise InputError(f"decay: rate x decay = {overshoot:g} overshoots at size {size}; use a smaller decay or rate")


def _segments(stops: NDArray[np.int64], chunk: int) -> list[tuple[NDArray[np.int64], slice]]:
    """Groups of stops about `chunk` steps long, with the places of the recorded ones; long gaps are broken up."""
    groups: list[tuple[NDArray[np.int64], slice]] = []
    done, first = 0, 0
    while first < stops.size:
        while stops[first] - done > chunk:
            done += chunk
            groups.append((np.array([done], np.int64), slice(0, 0)))
        last = int(np.searchsorted(stops, max(done + chunk, stops[first]), side="right"))
        groups.append((stops[first:last], slice(first, last)))
        done, first = int(stops[last - 1]), last
    return groups


def record(
    scale: str,
    one_run: Run,
    problem: Problem,
    start: Start,
    times: ArrayLike | None,
    runs: int,
    seed: int,
    *,
    levels: bool,
    progress: bool,
    observed: Observed | None = None,
) -> Trajectory:
    """Run `runs` copies of `one_run` in threads and record their overlaps at `times`."""
    began = clock.perf_counter()
    if not problem.algorithm.draws_samples:
        raise InputError(
            f"algorithm: {type(problem.algorithm).__name__} draws no samples, so there is no run to take; use solve, "
            "or OnlineSGD with a small rate"
        )
    t = grid(times)
    runs, seed = whole("runs", runs, least=1), whole("seed", seed, least=0)
    assert start.size is not None
    size = start.size
    numbers = runs * 2 * t.size * (start.Q[0].size + start.A[0].size) * (start.fractions.size if levels else 1)
    if numbers > 4e9:
        raise InputError(
            f"runs: {runs} runs at {t.size} times are {numbers * 8e-9:.0f} GB of overlaps; use fewer of either"
        )
    _check_decay(problem, t, size)
    total = steps(float(t[-1]), size)
    how = method_for(problem, start.u)
    stops, place, share = schedule(t, size)
    segments = _segments(stops, one_run.chunk)
    streams = np.random.SeedSequence([seed, STREAMS[scale]]).spawn(runs)
    tape = _Tape(start, runs, stops.size, levels, one_run.measures)
    hidden = None if progress else True  # None: shown on a terminal only
    bar = tqdm(total=runs * total, desc=scale, unit="step", unit_scale=True, delay=2, disable=hidden)
    interrupted = threading.Event()

    def fresh(run: int) -> Run:
        return one_run.fresh(np.random.Generator(np.random.SFC64(streams[run])))

    def one(run: int) -> None:
        with np.errstate(over="ignore", invalid="ignore"):  # a run that diverges is found below, not by a warning
            follow(run)

    def follow(run: int) -> None:
        nonlocal horizon
        mine = fresh(run)
        observations[run] = mine.observations
        done = 0
        for group, at in segments:
            if interrupted.is_set() or done >= horizon:
                return
            seen = mine.visit(group)
            good = _bounded(seen)
            upto = len(good) if good.all() else int(good.argmin())
            if at.stop > at.start:
                tape.write(run, at.start, seen, upto)
            if upto < len(good):
                # the others go on to here, so that what came before is kept for all
                horizon = min(horizon, int(group[upto]))
                raise _Diverged(run, done if upto == 0 else int(group[upto - 1]), int(group[upto]))
            bar.update(int(group[-1]) - done)
            done = int(group[-1])

    observations: dict[int, list[dict[str, Array]]] = {}
    horizon = total + 1
    diverged: list[_Diverged] = []
    workers = min(runs, os.cpu_count() or 1)
    with threadpool_limits(limits=1), ThreadPoolExecutor(workers) as pool, bar:
        futures = [pool.submit(one, run) for run in range(runs)]
        try:
            for future in futures:
                try:
                    future.result()
                except _Diverged as stop:
                    diverged.append(stop)
        except BaseException:
            interrupted.set()
            raise

    seconds = clock.perf_counter() - began
    cost = f"{runs} x {total:,} steps, {seconds:.2g} s"
    if scale == "diffusion":
        cost = f"{runs} run{'s' * (runs > 1)}, {seconds:.2g} s"

    def trajectory(count: int) -> Trajectory:
        before, part = place[:count], share[:count]
        after = before + (part > 0)

        def at_times(x: Array) -> Array:
            weight = part.reshape(-1, *[1] * (x.ndim - 2))
            return (1 - weight) * x[:, before] + weight * x[:, after]

        blocks = None
        if tape.Q_levels is not None and tape.A_levels is not None:
            blocks = (at_times(tape.Q_levels), at_times(tape.A_levels))
        Q, R, m, v = (at_times(x) for x in (tape.Q, tape.R, tape.m, tape.v))
        more = {name: (("run", "time"), at_times(values)) for name, values in tape.measured.items()}
        errors = more.pop("error")[1] if "error" in more else None
        result = assemble(
            scale,
            problem,
            start,
            t[:count],
            Q,
            R,
            m,
            v,
            how,
            levels=blocks,
            errors=errors,
            more=more,
            seed=seed,
            cost=cost,
        )
        if observed is None:
            return result
        return replace(result, data=_with_observations(result.data, observed, observations))

    if not diverged:
        return trajectory(t.size)
    first = min(diverged, key=lambda d: d.after)
    with np.errstate(over="ignore", invalid="ignore"):
        step, quantity = _locate(fresh(first.run), first, start)
    finished: NDArray[np.bool_] = np.isfinite(tape.v).min(axis=(0, 2))
    reached = stops[int(finished.argmin()) - 1] if finished[0] else -1
    count = int(np.count_nonzero(np.ceil(t * size - 1e-9) <= reached))
    raise NumericalError(
        f"{scale}: an overlap grew without bound: {quantity} in run {first.run} at time {step / size:.6g}; "
        f"reduce rate (now {problem.update.rate(step / size):g}), stop earlier, or see where the loss is not finite",
        quantity=quantity.split(" =")[0],
        time=step / size,
        partial=trajectory(count) if count else None,
    )


def _with_observations(
    data: xr.Dataset, observed: Observed, observations: dict[int, list[dict[str, Array]]]
) -> xr.Dataset:
    """The data with what the runs observed, (run, observed, …), as far as all of them came."""
    kept = int(np.count_nonzero(observed.times <= data["time"].values[-1]))
    count = min(kept, *(len(each) for each in observations.values()))
    if count == 0:
        return data
    more = {
        name: (
            ("run", "observed", *dims),
            np.array([[at_one[name] for at_one in observations[run][:count]] for run in sorted(observations)]),
        )
        for name, dims in observed.dims.items()
    }
    return data.assign(more).assign_coords(
        observed=("observed", observed.times[:count], {"units": data["time"].attrs["units"]})
    )


def refuse_kernels(kernels: bool) -> None:
    """Refuse `kernels` where there are none."""
    if kernels:
        raise InputError("kernels: those of two times belong to FullBatch; leave kernels out")


def _bounded(seen: Visit) -> NDArray[np.bool_]:
    """For each stop, whether all overlaps are below the limit (and not NaN)."""
    return (np.abs(seen.Q).reshape(len(seen.Q), -1).max(1) < LIMIT) & (np.abs(seen.v).max(1) < LIMIT)


def _locate(again: Run, where: _Diverged, start: Start) -> tuple[int, str]:
    """Step and quantity of a divergence, by repeating the run (same seed, same samples) with closer stops."""
    if where.before:
        again.visit(np.array([where.before], np.int64))
    stops = np.unique(np.linspace(where.before, where.after, 1001).astype(np.int64))[1:]
    seen = again.visit(stops)
    i = int(_bounded(seen).argmin())
    return int(stops[i]), largest_overlap(seen.Q[i], seen.A[i], seen.v[i], start.eigenvalues, start.seen, start.u.size)
