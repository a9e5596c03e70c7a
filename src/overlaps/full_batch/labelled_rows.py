"""Full-batch training of a linear student on labelled rows: given the rows, nothing is left to chance.

The m = N/ratio rows of the training set are those of `overlaps.online.multi_pass.training_set`, with C = ⟨x xᵀ⟩ and
c = ⟨x y⟩. With θ = W/√N and the prediction f = Σ_k v_k θ_k·x the gradient of unit k is v_k (C Σ_j v_j θ_j − c), and

    θ(l) = λ(l) θ(0) − Σ_{μ<l} H(μ, l) q(μ)

for the kernels of `FullBatch`. Training takes gradients and errors over the rows; theory takes the gradient from the
eigenvalues of C, and the test error as what the training rows leave of all rows. The two agree to rounding.
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..averages import method_for
from ..interface.errors import InputError
from ..online.exact_mean import out_of_budget, rounding
from ..online.multi_pass.training_set import TrainingSet, first_rows
from ..problem.start import Start, block_overlaps
from ..problem.statement import Problem
from ..trajectory.budget import Budget
from ..trajectory.dataset import STEPS, Trajectory, assemble
from ..trajectory.refinement import Goal, Stated, refined
from .repeated_runs import whole_steps

Array = NDArray[np.float64]
SYSTEM = "all-rows"
ROUNDINGS = 45  # of a step, which sums over many rows


def solve(
    problem: Problem, start: Start, times: ArrayLike | None, levels: bool, accuracy: float | None, budget: Budget
) -> Trajectory:
    """Theory: gradients along the eigenvectors of the training set; each step is one evaluation of the budget."""
    rows, began = _rows(problem, start), clock.perf_counter()
    data: Any = problem.data
    assert start.student is not None
    (lam, U), N, v = rows.axes, data.size, start.v
    stops = whole_steps(problem.algorithm.steps, times)  # type: ignore[union-attr]
    path = _descend(problem, v, start.student @ U / np.sqrt(N), lambda f: lam * f - rows.products, budget)
    reached, asked = len(path), stops
    stops = stops[stops < reached]
    path = path[stops]
    outputs = np.einsum("k,tkn->tn", v, path)
    training = 0.5 * (rows.unexplained + (lam * (outputs - rows.best) ** 2).sum(1))
    differences = outputs @ U.T - data.own_teacher[0] / np.sqrt(N)
    everywhere = 0.5 * (data.unexplained + (data.eigenvalues * differences**2).sum(1))
    n, tested = len(rows.rows), len(rows.test_rows)
    test = ((n + tested) * everywhere - n * training) / tested
    found = None
    if stops.size:
        result = _assembled("macro", problem, start, stops, path @ U.T, test[None], training[None], levels, 0, began)
        result.data.attrs["system"] = SYSTEM
        found = Stated(result, rounding(result, ROUNDINGS * (10 + int(stops[-1])), 0.0))
    if stops.size < asked.size or found is None:
        raise out_of_budget(budget, reached - 1, None if found is None else found.labelled())
    return refined(iter([found]), Goal.named(accuracy, aim=np.inf, accept=np.inf), budget)


def train(problem: Problem, start: Start, times: ArrayLike | None, runs: int, seed: int, levels: bool) -> Trajectory:
    """Training on the rows themselves; all runs are the same."""
    rows, N, v, began = _rows(problem, start), problem.data.eigenvalues.size, start.v, clock.perf_counter()
    assert start.student is not None
    stops, X = whole_steps(problem.algorithm.steps, times), rows.rows  # type: ignore[union-attr]
    path = _descend(problem, v, start.student / np.sqrt(N), lambda f: X.T @ (X @ f - rows.targets) / len(X))[stops]
    outputs = np.einsum("k,tkn->tn", v, path)
    test, training = (
        0.5 * np.mean((outputs @ x.T - y) ** 2, axis=1)
        for x, y in ((rows.test_rows, rows.test_targets), (X, rows.targets))
    )
    copies = [np.broadcast_to(values, (runs, values.size)) for values in (test, training)]
    return _assembled("micro", problem, start, stops, path, copies[0], copies[1], levels, seed, began)


def _rows(problem: Problem, start: Start) -> TrainingSet:
    """The training set; what depends on chance, or is not linear, is refused."""
    algorithm: Any = problem.algorithm
    data: Any = problem.data
    _ = problem.linear_equivalent
    if algorithm.batch is not None:
        raise InputError("batch: of labelled rows FullBatch takes all at every step; leave batch out, or use MultiPass")
    if start.student is None:
        raise InputError("start: labelled rows need weights; use draw or Start.from_weights")
    m = algorithm.samples(data.size)
    if m >= len(data.rows):
        raise InputError(
            f"ratio: {algorithm.ratio:g} asks for {m} of {len(data.rows)} rows, which leaves none to test on; use a "
            f"ratio above {data.size / len(data.rows):.3g}"
        )
    return first_rows(problem, m, 0)


def _descend(
    problem: Problem, v: Array, first: Array, gradient: Callable[[Array], Array], budget: Budget | None = None
) -> Array:
    """θ after every step, (steps + 1, K, N), from `first` (K, N), or after as many as the budget allows.

    gradient: that of the output Σ v_k θ_k, (N,).
    """
    keep, history = problem.algorithm.kernels  # type: ignore[union-attr]
    path, gradients = np.empty((keep.size, *first.shape)), np.zeros((keep.size, first.shape[1]))
    if budget is not None:
        budget.course.begin(keep.size)
    for l in range(keep.size):
        if budget is not None and budget.exhausted:
            return path[:l]
        moved = history[:l, l] @ gradients[:l]
        path[l] = keep[l] * first - v[:, None] * moved
        gradients[l] = gradient(v @ path[l])
        if budget is not None:
            budget.spend(1)
            budget.course.at(l + 1)
    return path


def _assembled(
    scale: str,
    problem: Problem,
    start: Start,
    stops: NDArray[np.int64],
    path: Array,
    test: Array,
    training: Array,
    levels: bool,
    seed: int,
    began: float,
) -> Trajectory:
    assert start.teacher is not None and start.dimensions is not None
    data, (T, K, N), runs = problem.data, path.shape, len(test)
    parts = [block_overlaps(np.sqrt(N) * weights, start.teacher, start.dimensions) for weights in path]
    Q, A = (np.broadcast_to(np.array([part[i] for part in parts]), (runs, T, N, K, K if i == 0 else 1)) for i in (0, 1))
    totals = [np.einsum("b,rtbij->rtij", data.eigenvalues, x) for x in (Q, A)]
    result = assemble(
        scale,
        problem,
        start,
        stops.astype(float),
        totals[0],
        totals[1],
        np.zeros((runs, T, K, 0)),
        np.broadcast_to(start.v, (runs, T, K)),
        method_for(problem, start.u),
        levels=(Q, A) if levels else None,
        errors=test,
        more={"training_error": (("run", "time"), training)},
        units=STEPS,
        seed=seed,
        cost=f"{stops[-1]} steps on all rows of the training set, {clock.perf_counter() - began:.2g} s",
    )
    result.data.attrs["averages"] = "exact, from the rows"
    return result
