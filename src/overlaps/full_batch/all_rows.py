"""Full-batch training on labelled rows, which is deterministic once the rows are given.

The m = N/ratio rows of the training set are those of `overlaps.online.multi_pass.training_set`. With θ = W/√N, the
gradient δ_k of the loss of a row in the field θ_k·x, and the kernels of `FullBatch`,

    q_k(l) = ⟨δ_k x⟩        θ(l) = λ(l) θ(0) − Σ_{μ<l} H(μ, l) q(μ).

Of rows that are learned as classes, any loss and network of one trained layer is trained on them. What is measured is
the mean loss over the training rows, and over the others, with the classes that these are taken for. Theory of classes
is for Gaussian ones whose covariances commute (`overlaps.full_batch.mean_field_theory`).

Of a linear student with the square loss, f = Σ_k v_k θ_k·x, C = ⟨x xᵀ⟩ and c = ⟨x y⟩, the gradient is v_k (C Σ_j v_j
θ_j − c). Training takes it over the rows; theory from the eigenvalues of C, and the test error as the mean over all
rows less the part of the training rows. The two agree to rounding.
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..averages import method_for
from ..averages.decisions import by_label, shares_of_rows
from ..interface.errors import InputError, NumericalError
from ..online.exact_mean import out_of_budget, rounding
from ..online.multi_pass.training_set import SplitRows, first_rows
from ..problem.start import LIMIT, Start, block_overlaps
from ..problem.statement import Problem
from ..trajectory.dataset import STEPS, Trajectory, assemble
from ..trajectory.refinement import Budget, Goal, Stated, refined
from .repeated_runs import whole_steps
from .task import samplewise

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
    _ = problem.linear_equivalent  # which refuses students that are not linear
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
    if problem.classifies_rows:
        return _train_classes(problem, start, times, runs, seed, levels)
    rows, N, v, began = _rows(problem, start), problem.data.eigenvalues.size, start.v, clock.perf_counter()
    assert start.student is not None
    _ = problem.linear_equivalent  # which refuses students that are not linear
    stops, X = whole_steps(problem.algorithm.steps, times), rows.rows  # type: ignore[union-attr]
    path = _descend(problem, v, start.student / np.sqrt(N), lambda f: X.T @ (X @ f - rows.targets) / len(X))[stops]
    outputs = np.einsum("k,tkn->tn", v, path)
    test, training = (
        0.5 * np.mean((outputs @ x.T - y) ** 2, axis=1)
        for x, y in ((rows.test_rows, rows.test_targets), (X, rows.targets))
    )
    copies = [np.broadcast_to(values, (runs, values.size)) for values in (test, training)]
    return _assembled("micro", problem, start, stops, path, copies[0], copies[1], levels, seed, began)


def _train_classes(
    problem: Problem, start: Start, times: ArrayLike | None, runs: int, seed: int, levels: bool
) -> Trajectory:
    """Training on rows that are learned as classes, by any loss; all runs are the same."""
    rows, began, data = _rows(problem, start), clock.perf_counter(), problem.data
    assert start.student is not None and start.teacher is not None
    stops = whole_steps(problem.algorithm.steps, times)  # type: ignore[union-attr]
    keep, history = problem.algorithm.kernels  # type: ignore[union-attr]
    first, N, last = start.student / np.sqrt(data.eigenvalues.size), data.eigenvalues.size, int(stops[-1])
    path, gradients = np.empty((last + 1, *first.shape)), np.empty((last + 1, *first.shape))
    kept: list[tuple[float, float, Array]] = []
    stopped: NumericalError | None = None
    for l in range(last + 1):
        path[l] = keep[l] * first - np.tensordot(history[:l, l], gradients[:l], 1)
        delta, training = _gradients(problem, start, path[l], rows.rows, rows.targets)
        gradients[l] = delta.T @ rows.rows / len(rows.rows)
        if not (np.isfinite(training) and np.isfinite(gradients[l]).all() and (N * path[l] ** 2).sum() < LIMIT * N):
            stopped = NumericalError(
                f"micro: training diverged at step {l}; reduce rate (now {problem.algorithm.rate_text}), "  # type: ignore[union-attr]
                "or stop earlier",
                quantity="training_error",
                time=float(l),
            )
            break
        if l in stops:
            test = _gradients(problem, start, path[l], rows.test_rows, rows.test_targets)[1]
            at = rows.test_rows, rows.test_targets, problem.class_targets, start.v, start.u
            shares = shares_of_rows(problem.decision, np.sqrt(N) * path[l], start.teacher, *at)
            kept.append((test, training, shares))
    result = None
    if kept:
        test, training, shares = (np.array([values] * runs) for values in zip(*kept, strict=True))
        stops = stops[: len(kept)]
        decided = {
            "misclassified": (("run", "time"), np.maximum(1 - np.trace(shares, axis1=2, axis2=3), 0.0)),
            "confusion": (("run", "time", "class", "decision"), by_label(shares)),
        }
        result = _assembled("micro", problem, start, stops, path[stops], test, training, levels, seed, began, decided)
    if stopped is not None:
        stopped.partial = result
        raise stopped
    assert result is not None
    return result


def _gradients(problem: Problem, start: Start, theta: Array, rows: Array, targets: NDArray[Any]) -> tuple[Array, float]:
    """Gradients δ (n, K) of the losses of these rows in the fields, and the mean loss."""
    delta, loss = np.empty((len(rows), len(theta))), np.empty(len(rows))
    p, nu = np.ascontiguousarray(rows @ theta.T), np.empty((len(rows), 0))
    samplewise(problem.gradient, problem.value, p, nu, targets, start.v, start.u, np.zeros(len(rows)), delta, loss)
    return delta, float(loss.mean())


def _rows(problem: Problem, start: Start) -> SplitRows:
    """The training set; what depends on chance is refused."""
    algorithm: Any = problem.algorithm
    data: Any = problem.data
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
    return first_rows(problem, m, 0, False)


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
    more: dict[str, Any] | None = None,
) -> Trajectory:
    assert start.teacher is not None and start.dimensions is not None
    data, (T, K, N), runs = problem.data, path.shape, len(test)
    parts = [block_overlaps(np.sqrt(N) * weights, start.teacher, start.dimensions) for weights in path]
    M = len(start.teacher)
    Q, A = (np.broadcast_to(np.array([part[i] for part in parts]), (runs, T, N, K, K if i == 0 else M)) for i in (0, 1))
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
        more={"training_error": (("run", "time"), training), **(more or {})},
        units=STEPS,
        seed=seed,
        cost=f"{stops[-1]} steps on all rows of the training set, {clock.perf_counter() - began:.2g} s",
    )
    result.data.attrs["averages"] = "exact, from the rows"
    return result
