"""Theory of many passes: the mean of the weights is exact, their variance is a sum over modes.

Rows drawn with replacement from a training set are fresh samples of it, so that with its covariance C = U Λ Uᵀ, its
best linear map θ̂ and what that leaves, σ̂², in place of those of a population, second moments along the eigenvectors
move as in `overlaps.online.exact_mean`. Their mean m moves as full-batch training does, whatever the rows are,

    m ← L m − p (λ m − ⟨x y⟩)/N,        V = ⟨θ²⟩ − m²

and the variance V of the weights is diagonal in this basis as long as the squared residuals of rows are not correlated
with single coordinates of theirs. To first order in 1/N it is homogenised SGD (C. Paquette, E. Paquette, B. Adlam and
J. Pennington, arXiv:2205.07069). All errors follow: with the covariance Σ and the products c of any rows

    2 error = ⟨y²⟩ − 2 c·m + mᵀ Σ m + Σ_k V_k (UᵀΣU)_kk

and Σ and c of the test rows are those of all rows, which are diagonal in the principal axes, less those of the
training rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...averages import method_for
from ...compiled.functions import kept
from ...interface.checks import steps
from ...problem.start import Start
from ...problem.statement import Problem
from ...trajectory.dataset import Trajectory, assemble
from ...trajectory.refinement import Budget, Goal, Stated, refined
from ..exact_mean import check_finished, rounding
from ..long_stretches import constant_pull, drift
from ..recording import Stops
from ..second_moments import CHUNK, WORK, Linear, SecondMoments, row_matrices, second_moments
from .training_set import SplitRows, training_set

Array = NDArray[np.float64]
SYSTEM = "many-passes"


@kept(nogil=True, fastmath={"contract"})
def _advance_mean(rates, best, v, mean, keep, pull):  # pragma: no cover - compiled
    """Steps of the mean of R rows along N eigenvectors, (R, N), in place; rates: λ/N, (N,); best: √N θ̂, (N,)."""
    R, N = mean.shape
    K = v.size
    moved = np.empty(R)
    for s in range(len(pull)):
        for i in range(N):
            residual = -best[i]
            for k in range(K):
                residual += v[k] * mean[k, i]
            for r in range(R):
                moved[r] = -pull[s, r] * rates[i] * residual
                for l in range(R):
                    moved[r] += keep[s, r, l] * mean[l, i]
            for r in range(R):
                mean[r, i] = moved[r]


def _means(problem: Problem, v: Array, rows: SplitRows, W: Array, stops: NDArray[np.int64], budget: Budget) -> Array:
    """Mean of the weights along the eigenvectors at steps, (stops, K, N), from W (K, N).

    Stops that the budget does not allow are left out; each step is one evaluation of it.
    """
    update, (K, N) = problem.update, W.shape
    mean = np.zeros((update.rule.rows * K, N))
    mean[:K] = W
    seen, done = np.empty((stops.size, K, N)), 0
    rates, best = rows.axes[0] / N, np.sqrt(N) * rows.best
    if (p := constant_pull(update, v, N)) is not None:  # v m − √N θ̂ shrinks by 1 − p v λ/N at each step
        shrunk = np.array([drift(p * v[0] * rates, stop) for stop in stops.tolist()]).reshape(stops.size, 1, N)
        return W + shrunk * (v[0] * W - best) / v[0]
    most = max(1, min(CHUNK // mean.shape[0] ** 2, WORK // mean.size))
    budget.course.begin(stops[-1] / N)
    for i, stop in enumerate(stops.tolist()):
        while done < stop:
            budget.course.at(done / N)
            if budget.exhausted:
                return seen[:i]
            count = min(stop - done, most, max(1, budget.left))
            keep, pull = row_matrices(update.steps(done, count, N), v)
            _advance_mean(rates, best, v, mean, keep, pull)
            done += count
            budget.spend(count)
        seen[i] = mean[:K]
    return seen


def solve(
    problem: Problem, start: Start, times: Array, levels: bool, accuracy: float | None, budget: Budget
) -> Trajectory:
    """Mean over runs of the overlaps with all rows, of the test error and of the training error."""
    _ = problem.linear_equivalent  # which refuses what is not linear
    passes = _Passes(problem, start, times, levels, budget)
    return refined(passes.attempts(), Goal.named(accuracy, aim=np.inf, accept=np.inf), budget)


@dataclass(frozen=True)
class _Passes:
    """Theory of many passes, from a start at times."""

    problem: Problem
    start: Start
    times: Array
    levels: bool
    budget: Budget

    @cached_property
    def set(self) -> SplitRows:
        return training_set(self.problem)

    @cached_property
    def weights(self) -> Array:
        """Those of the start along the eigenvectors of the training set, (K, N)."""
        assert self.start.student is not None
        return self.start.student @ self.set.axes[1]

    def attempts(self) -> Iterator[Stated]:
        """The solution by stretches of many steps, and if that costs accuracy, then the one step by step."""
        found, missed = self.attempt(stretches=True)
        yield found
        if missed:
            yield self.attempt(stretches=False)[0]

    def attempt(self, stretches: bool) -> tuple[Stated, float]:
        """One recursion with the errors of its rounding, and what stretches have missed."""
        problem, start, rows, W, N = self.problem, self.start, self.set, self.weights, self.weights.shape[1]
        given = Linear(
            rows.axes[0],
            np.ones(N),
            (rows.best**2)[:, None, None],
            start.v,
            np.ones(1),
            rows.unexplained,
            problem.update.noise,
            float(N),
            np.zeros(N),
        )
        stops = Stops.at(self.times, N)
        Q, A = np.einsum("ib,jb->bij", W, W) / N, (W * rows.best).T[:, :, None] / np.sqrt(N)
        seen = second_moments(given, problem.update, Q, A, stops.steps, stretches=stretches, budget=self.budget)
        means = _means(problem, start.v, rows, W, stops.steps[: seen.reached], self.budget)
        if len(means) < seen.reached:
            seen = seen._replace(reached=len(means), unfinished=int(stops.steps[len(means)]))
        count = int(np.count_nonzero(stops.last < seen.reached))
        found = self._stated(seen, means, stops, count) if count else None
        check_finished(seen, problem, N, self.budget, None if found is None else found.labelled())
        assert found is not None
        return found, seen.missed

    def _stated(self, seen: SecondMoments, means: Array, stops: Stops, count: int) -> Stated:
        problem, start, rows, v, B = self.problem, self.start, self.set, self.start.v, self.start.teacher
        data: Any = problem.data
        assert B is not None
        (lam, U), (K, N) = rows.axes, self.weights.shape
        omega, M = data.eigenvalues, means @ U.T  # in the principal axes of all rows
        variances = N * seen.Q[: seen.reached] - np.einsum("tib,tjb->tbij", means, means)
        Q_all = (np.einsum("b,tib,tjb->tij", omega, M, M) + np.einsum("b,tbij->tij", omega @ U**2, variances)) / N
        R_all = M @ (omega * B).T / N
        everywhere = 0.5 * (_form(Q_all, R_all[..., 0], v) + float(omega @ start.T[:, 0, 0]) + data.unexplained)
        Q_train = np.einsum("b,tbij->tij", lam, seen.Q[: seen.reached])
        R_train = np.einsum("b,tbi->ti", lam, seen.A[: seen.reached, :, :, 0])
        training = 0.5 * (_form(Q_train, R_train, v) + float(lam @ rows.best**2) + rows.unexplained)
        n, tested = len(rows.rows), len(rows.test_rows)
        test = ((n + tested) * everywhere - n * training) / tested
        test, training = (np.maximum(x, 0.0) for x in (test, training))  # differences that are zero but for rounding
        Q_t, R_t, training, test = (stops.interpolated(x[None], count) for x in (Q_all, R_all, training, test))
        blocks = None
        if self.levels:
            Q_levels = (np.einsum("tib,tjb->tbij", M, M) + np.einsum("lb,tbij->tlij", U**2, variances)) / N
            A_levels = np.einsum("tib,mb->tbim", M, B) / N
            blocks = stops.interpolated(Q_levels[None], count), stops.interpolated(A_levels[None], count)
        total = steps(float(self.times[-1]), N)
        result = assemble(
            "macro",
            problem,
            start,
            self.times[:count],
            Q_t,
            R_t,
            np.zeros((1, count, K, 0)),
            np.broadcast_to(v, (1, count, K)),
            method_for(problem.linear_equivalent, start.u),
            levels=blocks,
            errors=test,
            more={"training_error": (("run", "time"), training)},
            cost=f"{total:,} steps of the second moments, {self.budget.elapsed:.2g} s",
        )
        result.data.attrs["averages"] = f"exact mean of the weights and their variance in modes, at size {N}"
        result.data.attrs["system"] = SYSTEM
        return Stated(result, rounding(result, total, seen.missed))


def _form(Q: Array, R: Array, v: Array) -> Array:
    """vᵀ Q v − 2 v·R of each time, for Q (times, K, K) and R (times, K)."""
    return np.einsum("i,tij,j->t", v, Q, v) - 2 * R @ v
