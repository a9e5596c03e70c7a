"""Many independent runs of full-batch training, in bundles on threads, as one trajectory.

Every run has random numbers of its own, so that it is the same in whatever bundle it is, and however many there are.
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..averages import Method, method_for
from ..interface.checks import array, whole
from ..interface.errors import InputError, NumericalError
from ..problem.start import Start, joined
from ..problem.statement import Problem
from ..trajectory.dataset import STEPS, Trajectory, assemble
from ..trajectory.finished_runs import FinishedRuns
from ..trajectory.independent_runs import Progress, RandomNumbersOfRuns, generator, simulate_in_threads
from .data_matrices import ConditionedDataMatrix, DataMatrix, ExplicitDataMatrix
from .descent import Descent, descend
from .initial_weights import with_weights
from .task import FullBatchTask

Array = NDArray[np.float64]
BUNDLE = 2_000_000  # numbers in the arrays of one bundle of runs: about what a cache holds
LARGEST = 2_500_000_000  # numbers in a data matrix
STREAMS = {"micro": 11, "meso": 12, "alternative": 13, "perturbed": 14}  # added to seeds: scales have different samples


class Process(NamedTuple):
    """A way to train: its name, what makes the data matrices of a bundle of runs, and the numbers that a run holds."""

    scale: str
    matrices: Callable[[FullBatchTask, int, np.random.Generator], DataMatrix]
    numbers: int


class Observables(NamedTuple):
    """What is recorded of runs at some steps.

    Q (run, time, levels, K, K), A (run, time, levels, K, M+P): overlaps per level.
    loss: mean loss of all samples, (run, time).
    kernels: variables of two steps, with their dimensions.
    """

    Q: Array
    A: Array
    loss: Array
    kernels: dict[str, tuple[tuple[str, ...], Array]]


def whole_steps(problem_steps: int, times: ArrayLike | None) -> NDArray[np.int64]:
    """Times of full-batch training: whole steps, all of them by default."""
    if times is None:
        return np.arange(problem_steps + 1)
    given = np.atleast_1d(array("times", times, None))
    if given.ndim != 1 or given.size == 0:
        raise InputError(f"times: expected a list of steps, got shape {given.shape}")
    wrong = np.flatnonzero((given != np.rint(given)) | (given < 0) | (given > problem_steps))
    if wrong.size:
        raise InputError(
            f"times: expected whole steps from 0 to {problem_steps}, got {given[wrong[0]]:g}; times of full-batch "
            "training are its steps, leave times out for all of them"
        )
    if np.any(np.diff(given) <= 0):
        raise InputError("times: expected increasing steps; use numpy.unique to sort and merge them")
    return given.astype(np.int64)


def train_full_batch(
    problem: Problem, start: Start, times: ArrayLike | None, runs: int, seed: int, *, levels: bool, kernels: bool,
    kept: FinishedRuns | None, progress: bool,
) -> Trajectory:  # fmt: skip
    """Micro: runs on data matrices of their own."""
    task = task_at_size(problem, start, "micro", times)
    assert start.size is not None
    numbers = start.size * task.samples
    if numbers > LARGEST:
        raise InputError(
            f"size: a data matrix of {start.size} x {task.samples} is {numbers * 8e-9:.0f} GB; use sample, which "
            "has the same law and forms no matrix"
        )
    process = Process("micro", ExplicitDataMatrix, numbers + 2 * (start.size + task.samples) * task.D)
    return simulate(process, task, times, runs, seed, levels=levels, kernels=kernels, kept=kept, progress=progress)


def sample_full_batch(
    problem: Problem, start: Start, times: ArrayLike | None, runs: int, seed: int, *, levels: bool, kernels: bool,
    kept: FinishedRuns | None, progress: bool,
) -> Trajectory:  # fmt: skip
    """Meso: runs on data matrices that are never formed."""
    task = task_at_size(problem, start, "meso", times)
    assert start.size is not None
    per_run = 3 * (start.size + task.samples) * task.D * task.covariances.size
    if per_run > LARGEST:
        raise InputError(
            f"steps: what a run of {task.D} columns asks of its {start.size} x {task.samples} matrix is "
            f"{per_run * 8e-9:.0f} GB; use fewer steps or a smaller size"
        )
    process = Process("meso", ConditionedDataMatrix, per_run)
    return simulate(process, task, times, runs, seed, levels=levels, kernels=kernels, kept=kept, progress=progress)


def task_at_size(problem: Problem, start: Start, scale: str, times: ArrayLike | None = None) -> FullBatchTask:
    """The task at the size of a start; only micro needs weights, others take any with its overlaps."""
    if start.size is None:
        raise InputError(
            f"start: {scale} needs a size; pass size= to Start.from_overlaps, or use draw or Start.from_weights"
        )
    if start.student is None and scale == "micro":
        raise InputError(
            "start: micro needs weights; use draw or Start.from_weights (sample gives the same law from overlaps)"
        )
    task = FullBatchTask(problem, with_weights(problem, start))
    return replace(task, last=int(whole_steps(task.algorithm.steps, times)[-1]))


def bundle_sizes(runs: int, per_run: int) -> list[int]:
    """Numbers of runs that are taken together."""
    together = max(1, min(runs, BUNDLE // per_run))
    return [min(together, runs - first) for first in range(0, runs, together)]


def simulate(
    process: Process, task: FullBatchTask, times: ArrayLike | None, runs: int, seed: int, *, levels: bool,
    kernels: bool, progress: bool, kept: FinishedRuns | None = None,
) -> Trajectory:  # fmt: skip
    """Run `runs` copies and record their overlaps and training errors at `times`."""
    began, scale = clock.perf_counter(), process.scale
    runs, seed = whole("runs", runs, least=1), whole("seed", seed, least=0)
    stops = whole_steps(task.algorithm.steps, times)
    T, K, C = task.T, task.K, len(task.weights)
    numbers = runs * (T * task.start.gram.size + (2 * C * (T * K) ** 2 if kernels else 0))
    if numbers > 1e9:
        raise InputError(f"runs: {runs} runs would keep {numbers * 8e-9:.0f} GB; use fewer, or kernels=False")
    known = {} if kept is None else kept.rows
    missing = [run for run in range(runs) if run not in known]
    sizes = bundle_sizes(len(missing), process.numbers) if missing else []
    bundles = [missing[sum(sizes[:i]) : sum(sizes[: i + 1])] for i in range(len(sizes))]

    def one(i: int, _: np.random.Generator, progress: Progress) -> Descent:
        count = len(bundles[i])
        rng: Any = RandomNumbersOfRuns([generator(seed, STREAMS[scale], run) for run in bundles[i]])
        observe = lambda *_: progress.advance(count)  # noqa: E731
        part = descend(task, process.matrices(task, count, rng), count, rng, kernels=kernels, observe=observe)
        if kept is not None and part.loss.shape[1] == T:
            for place, run in enumerate(bundles[i]):
                kept.add(run, {name: getattr(part, name)[place] for name in _kept_names(kernels)})
        return part

    parts = simulate_in_threads(
        one, len(bundles), stream=STREAMS[scale], seed=seed, name=scale, steps=len(missing) * T, progress=progress,
        blas_threads=1 if len(bundles) > 1 else None,
    )  # fmt: skip
    parts = _in_order(parts, bundles, known, runs, kernels) if known else parts
    reached = min(part.loss.shape[1] for part in parts)
    seconds = clock.perf_counter() - began
    part_of = "" if task.batches is None else f"{task.algorithm.batch_samples(task.samples):,} of "
    cost = f"{runs} x {reached} steps on {part_of}{task.samples:,} samples, {seconds:.2g} s"
    reached_stops, result = stops[stops < reached], None
    if reached_stops.size:
        observables = _joined(parts, reached_stops, reached, kernels)
        result = as_trajectory(scale, task, reached_stops, observables, levels=levels, seed=seed, cost=cost)
    if reached == T:
        assert result is not None
        return result
    raise _trouble(scale, task, parts, reached, result)


def _kept_names(kernels: bool) -> tuple[str, ...]:
    """What is recorded of each run."""
    return ("Q", "A", "loss", "V_theta", "V_omega") if kernels else ("Q", "A", "loss")


def _in_order(
    parts: list[Descent], bundles: list[list[int]], known: dict[int, dict[str, Array]], runs: int, kernels: bool
) -> list[Descent]:
    """Each run by itself in the order of runs, from those restored from files and those simulated now."""
    names = _kept_names(kernels)
    none = {"V_theta": np.empty(0), "V_omega": np.empty(0), "largest": 0.0, "stopped": None}
    each = {run: Descent(**{**none, **{name: known[run][name][None] for name in names}}) for run in known}
    for part, bundle in zip(parts, bundles, strict=True):
        for place, run in enumerate(bundle):
            own = {name: getattr(part, name)[place : place + 1] for name in names}
            each[run] = part._replace(**own)
    return [each[run] for run in range(runs)]


def _joined(parts: list[Descent], kept: NDArray[np.int64], reached: int, kernels: bool) -> Observables:
    """What all bundles recorded at the steps `kept`, of the steps before `reached`."""
    Q, A, loss = (np.concatenate([getattr(p, name)[:, kept] for p in parts]) for name in ("Q", "A", "loss"))
    dims: tuple[str, ...] = ("run", "component", "step", "step_", "student", "student_")
    of_two_steps: dict[str, tuple[tuple[str, ...], Array]] = {
        name: (dims, np.concatenate([getattr(p, name)[:, :, :reached, :reached] for p in parts]))
        for name in (("V_theta", "V_omega") if kernels else ())
    }
    return Observables(Q, A, loss, of_two_steps)


def _trouble(
    scale: str, task: FullBatchTask, parts: list[Descent], reached: int, result: Trajectory | None
) -> NumericalError:
    """The error that says why runs ended before step `reached`; its partial result are the steps before."""
    for part in parts:
        if part.stopped is not None and part.loss.shape[1] == reached:
            part.stopped.partial = result
            return part.stopped
    worst = max(part.largest for part in parts)
    return NumericalError(
        f"{scale}: training diverged at step {reached}: an overlap Q reached {worst:.3g}; reduce rate (now "
        f"{task.algorithm.rate_text}), or stop earlier",
        quantity="Q",
        time=float(reached),
        partial=result,
    )


def as_trajectory(
    scale: str, task: FullBatchTask, steps: NDArray[np.int64], observables: Observables, *, levels: bool, seed: int,
    cost: str, method: Method | None = None,
) -> Trajectory:  # fmt: skip
    """A trajectory from what was recorded at some steps.

    method: of averaging, for the generalisation error; the usual one by default.
    """
    start, M = task.start, task.M
    Q, A = observables.Q, observables.A
    v = np.broadcast_to(start.v, (*Q.shape[:2], task.K))
    result = assemble(
        scale,
        task.problem,
        start,
        steps.astype(float),
        np.einsum("b,rtbij->rtij", start.eigenvalues, Q),
        np.einsum("b,rtbij->rtij", start.eigenvalues, A[..., :M]),
        A[..., M:].sum(2),
        v,
        method or method_for(task.problem, start.u),
        levels=(Q, A) if levels else None,
        covariances=None if task.data.one_covariance else field_covariances(task, Q, A),
        more={"training_error": (("run", "time"), observables.loss), **observables.kernels},
        units=STEPS,
        seed=seed,
        cost=cost,
    )
    if task.counts is None:
        return result
    visited = task.algorithm.batch_samples(task.samples) * steps
    return replace(result, data=result.data.assign_coords(samples=("time", visited, {"long_name": "samples seen"})))


def field_covariances(task: FullBatchTask, Q: Array, A: Array) -> Array:
    """Covariance of the fields in each component, (run, time, components, K+M, K+M)."""
    gram = joined(Q, A[..., : task.M], task.start.T)
    return np.einsum("cb,rtbij->rtcij", task.covariances, gram)
