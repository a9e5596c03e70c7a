"""Many independent one-pass runs of a stochastic scale, recorded as one trajectory; the first divergence is located."""

from __future__ import annotations

import time as clock
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from ..averages import method_for
from ..interface.checks import grid, steps, whole
from ..interface.errors import InputError, NumericalError
from ..problem.start import Start
from ..problem.statement import Problem
from ..trajectory.dataset import Trajectory, assemble, largest_overlap
from ..trajectory.finished_runs import FinishedRuns
from ..trajectory.independent_runs import Progress, generator, simulate_in_threads
from .recording import Observed, Records, Run, Stops

Array = NDArray[np.float64]
CLOSER = 32  # stops between which a divergence is located, and again between two of them
STREAMS = {"micro": 1, "meso": 2, "diffusion": 3}  # so that the same seed gives the scales different samples


class DivergedRun(NamedTuple):
    """A run left the bounds between two steps."""

    run: int
    before: int
    after: int


@dataclass
class Recorder:
    """Runs a copy of `run` for every number of a run and keeps what they record.

    segments: steps that are recorded together, with their places in the records; see `Stops.segments`.
    horizon: the step up to which runs go. A run that diverges lowers it, so that the others stop there too, and what
        came before is complete.
    """

    run: Run
    segments: list[tuple[NDArray[np.int64], slice]]
    records: Records
    horizon: int
    kept: FinishedRuns | None = None
    observations: dict[int, list[dict[str, Array]]] = field(default_factory=dict)

    def simulate(self, number: int, rng: np.random.Generator, progress: Progress) -> DivergedRun | None:
        """Simulate one run to its end or until it diverges, or restore it if it is in the files of an earlier call."""
        if self.kept is not None and number in self.kept.rows:
            self._restore(number, self.kept.rows[number])
            progress.advance(int(self.segments[-1][0][-1]))
            return None
        run = self.run.copy_with(rng)
        run.stop = progress.stop
        self.observations[number] = run.observations
        done = 0
        for group, places in self.segments:
            if done >= self.horizon:
                return None
            recorded = run.record(group)
            bounded = recorded.bounded
            count = len(bounded) if bounded.all() else int(bounded.argmin())
            if places.stop > places.start:
                self.records.write(number, places.start, recorded, count)
            if count < len(bounded):
                self.horizon = min(self.horizon, int(group[count]))
                return DivergedRun(number, done if count == 0 else int(group[count - 1]), int(group[count]))
            progress.advance(int(group[-1]) - done)
            done = int(group[-1])
        if self.kept is not None:
            observed = enumerate(run.observations)
            seen = {f"{name} {i}": values for i, at_one in observed for name, values in at_one.items()}
            self.kept.add(number, {**self.records.row(number), **seen})
        return None

    def _restore(self, number: int, row: dict[str, Array]) -> None:
        """Records and observations of a run as they were kept."""
        self.records.restore(number, row)
        self.observations[number] = observed = []
        for name in (name for name in row if " " in name):
            which, _, at = name.rpartition(" ")
            while len(observed) <= int(at):
                observed.append({})
            observed[int(at)][which] = row[name]

    def locate(self, where: DivergedRun, rng: np.random.Generator, start: Start) -> tuple[int, str]:
        """Step and quantity of a divergence, by repeating the run (same seed, same samples) with ever closer stops."""
        before, after = where.before, where.after
        recorded, i = None, 0
        for _ in range(2):
            again = self.run.copy_with(deepcopy(rng))
            stops = np.unique(np.linspace(before, after, CLOSER + 1).astype(np.int64))[1:]
            with np.errstate(over="ignore", invalid="ignore"):
                if before:
                    again.record(np.array([before], np.int64))
                recorded = again.record(stops)
            i = int(recorded.bounded.argmin())
            before, after = int(stops[i - 1]) if i else before, int(stops[i])
        assert recorded is not None
        Q, A, v = recorded.Q[i], recorded.A[i], recorded.v[i]
        return after, largest_overlap(Q, A, v, start.eigenvalues, start.seen, start.u.size)


def record(
    scale: str,
    run: Run,
    problem: Problem,
    start: Start,
    times: ArrayLike | None,
    runs: int,
    seed: int,
    *,
    levels: bool,
    progress: bool,
    kept: FinishedRuns | None = None,
    observed: Observed | None = None,
) -> Trajectory:
    """Run `runs` copies of `run` in threads and record their overlaps at `times`."""
    began = clock.perf_counter()
    t, runs, seed = grid(times), whole("runs", runs, least=1), whole("seed", seed, least=0)
    assert start.size is not None
    size = start.size
    _check(problem, start, t, runs, levels)
    total = steps(float(t[-1]), size)
    method = method_for(problem, start.u)  # a loss without averages is refused before anything is simulated
    stops = Stops.at(t, size)
    records = Records(start, runs, stops.steps.size, levels, run.measures, problem.data)
    recorder = Recorder(run, stops.segments(run.chunk), records, horizon=total + 1, kept=kept)
    ends = simulate_in_threads(
        recorder.simulate, runs, stream=STREAMS[scale], seed=seed, name=scale, steps=runs * total, progress=progress
    )
    seconds = clock.perf_counter() - began
    each = f"{runs} run{'s' * (runs > 1)}" if scale == "diffusion" else f"{runs} x {total:,} steps"

    def trajectory(count: int) -> Trajectory:
        """What was recorded at the first `count` times."""

        def at_times(values: Array) -> Array:
            return stops.interpolated(values, count)

        blocks = None
        if records.Q_levels is not None and records.A_levels is not None:
            blocks = (at_times(records.Q_levels), at_times(records.A_levels))
        Q, R, m, v = (at_times(x) for x in (records.Q, records.R, records.m, records.v))
        more = {
            name: (("run", "time", *run.measures[name].dims), at_times(values))
            for name, values in records.measured.items()
        }
        errors = more.pop("error")[1] if "error" in more else None
        own = None if records.covariances is None else at_times(records.covariances)
        result = assemble(
            scale, problem, start, t[:count], Q, R, m, v, method, levels=blocks, errors=errors, more=more,
            covariances=own, seed=seed, cost=f"{each}, {seconds:.2g} s",
        )  # fmt: skip
        if observed is None:
            return result
        return replace(result, data=_with_observations(result.data, observed, recorder.observations))

    diverged = [end for end in ends if end is not None]
    if not diverged:
        return trajectory(t.size)
    first = min(diverged, key=lambda d: d.after)
    step, quantity = recorder.locate(first, generator(seed, STREAMS[scale], first.run), start)
    reached = stops.steps[records.finished - 1] if records.finished else -1
    count = int(np.count_nonzero(np.ceil(t * size - 1e-9) <= reached))
    raise NumericalError(
        f"{scale}: an overlap grew without bound: {quantity} in run {first.run} at time {step / size:.6g}; "
        f"reduce rate (now {problem.update.rate(step / size):g}), stop earlier, or see where the loss is not finite",
        quantity=quantity.split(" =")[0],
        time=step / size,
        partial=trajectory(count) if count else None,
    )


def _check(problem: Problem, start: Start, times: Array, runs: int, levels: bool) -> None:
    """Refuse an algorithm without samples, more overlaps than fit into memory, and a decay that overshoots."""
    if not problem.algorithm.draws_samples:
        raise InputError(
            f"algorithm: {type(problem.algorithm).__name__} draws no samples, so there is no run to take; use solve, "
            "or OnlineSGD with a small rate"
        )
    numbers = runs * 2 * times.size * (start.Q[0].size + start.A[0].size) * (start.fractions.size if levels else 1)
    if numbers > 4e9:
        raise InputError(
            f"runs: {runs} runs at {times.size} times are {numbers * 8e-9:.0f} GB of overlaps; use fewer of either"
        )
    # a decay that carries the weights beyond zero in one step carries them further each time
    assert start.size is not None
    update, at = problem.update, np.concatenate([[0.0], problem.update.knots, times])
    layers = [update.rate] if update.readout_rate is None else [update.rate, update.readout_rate]
    overshoot = max(float(np.max(rate.at(at))) for rate in layers) * problem.algorithm.decay
    if overshoot >= 2 * start.size:
        raise InputError(
            f"decay: rate x decay = {overshoot:g} overshoots at size {start.size}; use a smaller decay or rate"
        )


def _with_observations(
    data: xr.Dataset, observed: Observed, observations: dict[int, list[dict[str, Array]]]
) -> xr.Dataset:
    """The data with what the runs observed, (run, observed, …), up to the last time that all of them reached."""
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
