"""Second moments of linear students, step by step or in long stretches, for any update and any fixed noise.

The recursion of `overlaps.online.exact_mean`, which states the formula. One row of one unit goes by the shorter form of
`overlaps.online.linear_step`; rows with velocities and several units go by products of small matrices.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..algorithms import Matrices, Update
from ..compiled.functions import kept
from ..problem.start import LIMIT
from ..trajectory.refinement import Budget
from .linear_step import LinearLevels, follow
from .long_stretches import SHORTEST, WORTH, Stretches, constant_pull

Array = NDArray[np.float64]
CHUNK = 2**21  # numbers in the matrices of steps that are made at once
WORK = 2**26  # steps × levels × rows² between two checks of the budget, some tenths of a second


class Linear(NamedTuple):
    """What does not move: ω (B,), dimensions n (B,), T (B, M, M), readouts v (K,) and u (M,), σ², 1/β and N.

    extra: (B,), what is added to 2 ω² E + n ω (s + σ²) where inputs are not Gaussian; it may change between steps.
    """

    omega: Array
    dimensions: Array
    T: Array
    v: Array
    u: Array
    noise: float
    share: float
    size: float
    extra: Array


def advance_one(given: Linear, Q: Array, A: Array, keep: Array, pull: Array) -> int:
    """Steps of one row and one teacher by `overlaps.online.linear_step`: Q and A (B, 1, 1), in place.

    Stops where the error has diverged, and returns the number of steps taken. Neither readout may be zero, and inputs
    are Gaussian.
    """
    v, u = float(given.v[0]), float(given.u[0])
    teacher = u * u * given.T[:, 0, 0]
    levels = LinearLevels(
        given.omega, given.share * given.dimensions * given.omega, teacher, float(given.share), float(given.noise)
    )
    overlap = v * u * A[:, 0, 0] - teacher
    distance = v * v * Q[:, 0, 0] - 2 * overlap - teacher
    taken = int(follow(distance, overlap, keep[:, 0, 0].copy(), v / given.size * pull[:, 0], levels))
    A[:, 0, 0] = (overlap + teacher) / (v * u)
    Q[:, 0, 0] = (distance + 2 * overlap + teacher) / (v * v)
    return taken


@kept(nogil=True, fastmath={"reassoc", "contract"})
def advance(given, Q, A, keep, pull):  # pragma: no cover - compiled
    """Steps of R rows, the first K of them weights, and M teachers: Q (B, R, R) and A (B, R, M), in place.

    Stops where the error has diverged, and returns the number of steps taken.
    """
    omega, n, T, N = given.omega, given.dimensions, given.T, given.size
    v, u, share, extra = given.v, given.u, given.share, given.extra
    R, M, K = Q.shape[1], A.shape[2], v.size
    er, eB, Ler, LQ = np.empty(R), np.empty(M), np.empty(R), np.empty((R, R))
    LA, E = np.empty((R, M)), np.empty(omega.size)
    for s in range(len(pull) + 1):
        total = 0.0
        for b in range(omega.size):
            E[b] = 0.0
            for k in range(K):
                for l in range(K):
                    E[b] += v[k] * v[l] * Q[b, k, l]
                for m in range(M):
                    E[b] -= 2.0 * v[k] * u[m] * A[b, k, m]
            for m in range(M):
                for l in range(M):
                    E[b] += u[m] * u[l] * T[b, m, l]
            total += omega[b] * E[b]
        if s == len(pull) or not total < LIMIT:
            return s
        L, p, power = keep[s], pull[s], share * (total + given.noise)
        for b in range(omega.size):
            w = omega[b] / N
            for r in range(R):
                er[r] = 0.0
                for k in range(K):
                    er[r] += v[k] * Q[b, k, r]
                for m in range(M):
                    er[r] -= u[m] * A[b, r, m]
            for m in range(M):
                eB[m] = 0.0
                for k in range(K):
                    eB[m] += v[k] * A[b, k, m]
                for l in range(M):
                    eB[m] -= u[l] * T[b, l, m]
            for r in range(R):
                Ler[r] = 0.0
                for i in range(R):
                    Ler[r] += L[r, i] * er[i]
                    LQ[r, i] = 0.0
                    for l in range(R):
                        LQ[r, i] += L[r, l] * Q[b, l, i]
                for m in range(M):
                    LA[r, m] = 0.0
                    for i in range(R):
                        LA[r, m] += L[r, i] * A[b, i, m]
            noise = (1.0 + share) * w * w * E[b] + w * n[b] / N * power + share * extra[b] / (N * N)
            for r in range(R):
                for i in range(R):
                    Q[b, r, i] = p[r] * p[i] * noise - w * (Ler[r] * p[i] + p[r] * Ler[i])
                    for l in range(R):
                        Q[b, r, i] += LQ[r, l] * L[i, l]
                for m in range(M):
                    A[b, r, m] = LA[r, m] - p[r] * w * eB[m]
    return len(pull)


class SecondMoments(NamedTuple):
    """Second moments of the weights at steps: Q (stops, B, K, K), A (stops, B, K, M).

    reached: number of stops that were reached; diverged: the step by which the error had grown without bound, or None;
    unfinished: the step at which the budget was spent, or None.
    missed: relative error of the distances E that long stretches have made, 0 without them.
    """

    Q: Array
    A: Array
    reached: int
    diverged: int | None
    unfinished: int | None = None
    missed: float = 0.0


class Excess(NamedTuple):
    """What inputs that are not Gaussian add to 2 ω² E + n ω (s + σ²), (B,) given E (B,).

    It is asked for again after every part of the time, of `parts` in all of it.
    """

    of: Callable[[Array], Array]
    parts: int


def second_moments(
    given: Linear,
    update: Update,
    Q: Array,
    A: Array,
    stops: NDArray[np.int64],
    excess: Excess | None = None,
    *,
    stretches: bool = True,
    budget: Budget | None = None,
) -> SecondMoments:
    """The moments at the steps `stops` from Q (B, K, K) and A (B, K, M); velocities start at zero.

    One unit at a constant rate without decay goes in `long_stretches` where the power of the noise is smooth, unless
    that is not wanted. budget: each step is one evaluation of it, and a long stretch as many as the shortest has steps.
    """
    (B, K, M), R, size = A.shape, update.rule.rows * A.shape[1], int(given.size)
    rows_Q, rows_A = np.zeros((B, R, R)), np.zeros((B, R, M))
    rows_Q[:, :K, :K], rows_A[:, :K] = Q, A
    seen = SecondMoments(np.empty((stops.size, B, K, K)), np.empty((stops.size, B, K, M)), stops.size, None)
    one, done = R == M == 1 and excess is None and bool(given.v[0] * given.u[0]), 0
    budget = budget or Budget()
    worth = stretches and M == 1 and excess is None and stops[-1] >= WORTH
    same = constant_pull(update, given.v, size) if worth else None
    long = None if same is None else Stretches(given, same)
    most = max(1, min(CHUNK // (R * R + R), WORK // (B * R * R)))
    budget.course.begin(stops[-1] / size)
    for i, stop in enumerate(stops.tolist()):
        while done < stop:
            budget.course.at(done / size)
            if budget.exhausted:
                return seen._replace(reached=i, unfinished=done, missed=0.0 if long is None else long.missed)
            count = min(stop - done, most, max(1, budget.left))
            if long is not None:
                done += (ahead := long.advance(rows_Q, rows_A, done, stop))
                if ahead:
                    budget.spend(SHORTEST)
                    continue
                count = min(count, max(SHORTEST, long.again - done))
            if excess is not None:
                count = min(count, max(1, done // excess.parts))
                given = given._replace(extra=excess.of(distances(given, rows_Q[:, :K, :K], rows_A[:, :K])))
            keep, pull = row_matrices(update.steps(done, count, size), given.v)
            taken = (advance_one if one else advance)(given, rows_Q, rows_A, keep, pull)
            done += taken
            budget.spend(taken)
            if taken < count or not np.isfinite(rows_Q).all():
                return seen._replace(reached=i, diverged=done, missed=0.0 if long is None else long.missed)
        seen.Q[i], seen.A[i] = rows_Q[:, :K, :K], rows_A[:, :K]
    return seen._replace(missed=0.0 if long is None else long.missed)


def distances(given: Linear, Q: Array, A: Array) -> Array:
    """E_b = (e·e)_b, (B,), from Q (B, K, K) and A (B, K, M)."""
    v, u = given.v, given.u
    squares = np.einsum("i,bij,j->b", v, Q, v) + np.einsum("i,bij,j->b", u, given.T, u)
    return squares - 2 * np.einsum("i,bij,j->b", v, A, u)


def row_matrices(step: Matrices, v: Array) -> tuple[Array, Array]:
    """L (steps, R, R) and p (steps, R) of the R = J K rows of all units of readouts v (K,), for the gradient of v·w."""
    (count, J, _), K = step.keep.shape, v.size
    if K == 1:
        return step.keep, step.pull * v
    keep = np.einsum("sij,kl->sikjl", step.keep, np.eye(K)).reshape(count, J * K, J * K)
    return keep, (step.pull[:, :, None] * v).reshape(count, J * K)
