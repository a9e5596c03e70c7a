"""Theory of many passes: the mean of the weights is exact, their variance falls apart into modes.

Rows drawn with replacement from a training set are fresh samples of it, so that with its covariance C = U Λ Uᵀ, its
best linear map θ̂ and what that leaves, σ̂², in place of those of a population, second moments along the eigenvectors
move as in `overlaps.online.exact_mean`. Their mean m moves as full-batch training does, whatever the rows are,

    m ← L m − p (λ m − ⟨x y⟩)/N,        V = ⟨θ²⟩ − m²

and the variance V of the weights is diagonal in this basis as long as the squared residuals of rows are not correlated
with single coordinates of theirs. To first order in 1/N it is homogenised SGD (C. Paquette, E. Paquette, B. Adlam and
J. Pennington, arXiv:2205.07069). All errors follow: with the covariance Σ and the products c of any rows

    2 error = ⟨y²⟩ − 2 c·m + mᵀ Σ m + Σ_k V_k (UᵀΣU)_kk

and those of the test rows are what the training rows leave of all rows, which are diagonal in their principal axes.
"""

from __future__ import annotations

import time as clock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..averages import method_for
from ..compiled.functions import kept
from ..interface.checks import steps
from ..online.exact_mean import CHUNK, Linear, diverges, row_matrices, second_moments, state_rounding
from ..online.recording import Stops
from ..problem.start import Start
from ..problem.statement import Problem
from ..trajectory.dataset import Trajectory, assemble
from .training_set import TrainingSet, training_set

Array = NDArray[np.float64]


@kept(nogil=True, fastmath={"contract"})
def _advance_mean(rates, best, v, mean, keep, pull):  # pragma: no cover - compiled
    """Steps of the mean of R rows along N eigenvectors, (R, N), in place; rates: λ/N, (N,); best: √N θ̂, (N,)."""
    R, N = mean.shape
    K = v.size
    fresh = np.empty(R)
    for s in range(len(pull)):
        for i in range(N):
            apart = -best[i]
            for k in range(K):
                apart += v[k] * mean[k, i]
            for r in range(R):
                fresh[r] = -pull[s, r] * rates[i] * apart
                for l in range(R):
                    fresh[r] += keep[s, r, l] * mean[l, i]
            for r in range(R):
                mean[r, i] = fresh[r]


def _means(problem: Problem, start: Start, rows: TrainingSet, W: Array, stops: NDArray[np.int64]) -> Array:
    """Mean of the weights along the eigenvectors at steps, (stops, K, N), from W (K, N)."""
    update, (K, N) = problem.update, W.shape
    mean = np.zeros((update.rule.rows * K, N))
    mean[:K] = W
    seen, done = np.empty((stops.size, K, N)), 0
    rates, best = rows.axes[0] / N, np.sqrt(N) * rows.best
    for i, stop in enumerate(stops.tolist()):
        while done < stop:
            count = min(stop - done, max(1, CHUNK // mean.shape[0] ** 2))
            keep, pull = row_matrices(update.steps(done, count, N), start.v)
            _advance_mean(rates, best, start.v, mean, keep, pull)
            done += count
        seen[i] = mean[:K]
    return seen


def solve(problem: Problem, start: Start, times: Array, levels: bool) -> Trajectory:
    """Mean over runs of the overlaps with all rows, of the test error and of the training error."""
    began = clock.perf_counter()
    data: Any = problem.data
    rows = training_set(problem)
    assert start.student is not None and start.teacher is not None
    equivalent = problem.linear_equivalent  # which refuses what is not linear
    (lam, U), (K, N), v, B = rows.axes, start.student.shape, start.v, start.teacher
    W = start.student @ U
    given = Linear(
        lam,
        np.ones(N),
        (rows.best**2)[:, None, None],
        v,
        np.ones(1),
        rows.unexplained,
        problem.update.noise,
        float(N),
        np.zeros(N),
    )
    total = steps(float(times[-1]), N)
    stops = Stops.at(times, N)
    Q, A = np.einsum("ib,jb->bij", W, W) / N, (W * rows.best).T[:, :, None] / np.sqrt(N)
    moments = second_moments(given, problem.update, Q, A, stops.steps)
    means = _means(problem, start, rows, W, stops.steps[: moments.reached])
    variances = N * moments.Q[: moments.reached] - np.einsum("tib,tjb->tbij", means, means)

    def trajectory(count: int) -> Trajectory:
        omega, M = data.eigenvalues, means @ U.T  # in the principal axes of all rows
        Q_all = (np.einsum("b,tib,tjb->tij", omega, M, M) + np.einsum("b,tbij->tij", omega @ U**2, variances)) / N
        R_all = M @ (omega * B).T / N
        T_all = float(omega @ start.T[:, 0, 0])
        everywhere = 0.5 * (_form(Q_all, R_all[..., 0], v) + T_all + data.unexplained)
        Q_train = np.einsum("b,tbij->tij", lam, moments.Q[: moments.reached])
        R_train = np.einsum("b,tbi->ti", lam, moments.A[: moments.reached, :, :, 0])
        training = 0.5 * (_form(Q_train, R_train, v) + float(lam @ rows.best**2) + rows.unexplained)
        n, tested = len(rows.rows), len(rows.test_rows)
        test = ((n + tested) * everywhere - n * training) / tested
        Q_t, R_t, training, test = (stops.interpolated(x[None], count) for x in (Q_all, R_all, training, test))
        blocks = None
        if levels:
            Q_levels = (np.einsum("tib,tjb->tbij", M, M) + np.einsum("lb,tbij->tlij", U**2, variances)) / N
            A_levels = np.einsum("tib,mb->tbim", M, B) / N
            blocks = stops.interpolated(Q_levels[None], count), stops.interpolated(A_levels[None], count)
        result = assemble(
            "macro",
            problem,
            start,
            times[:count],
            Q_t,
            R_t,
            np.zeros((1, count, K, 0)),
            np.broadcast_to(v, (1, count, K)),
            method_for(equivalent, start.u),
            levels=blocks,
            errors=test,
            more={"training_error": (("run", "time"), training)},
            cost=f"{total:,} steps of the second moments, {clock.perf_counter() - began:.2g} s",
        )
        result.data.attrs["averages"] = f"exact mean of the weights and their variance in modes, at size {N}"
        state_rounding(result, total)
        return result

    if moments.diverged is None:
        return trajectory(times.size)
    count = int(np.count_nonzero(stops.last < moments.reached))
    raise diverges(problem, moments.diverged / N, N, trajectory(count) if count else None)


def _form(Q: Array, R: Array, v: Array) -> Array:
    """vᵀ Q v − 2 v·R of each time, for Q (times, K, K) and R (times, K)."""
    return np.einsum("i,tij,j->t", v, Q, v) - 2 * R @ v
