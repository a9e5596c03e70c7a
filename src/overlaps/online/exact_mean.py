"""The exact mean over runs of a linear student at finite size, for any algorithm that is linear in its gradients.

Student and teacher are linear, e = Σ_k v_k w_k − Σ_m u_m B_m, and labels have noise of variance σ². For Gaussian inputs
the second moments of the rows r of `overlaps.algorithms.update` close at any size N. With e·r etc. the parts of inner
products in level b, over N, and E_b = (e·e)_b, s = Σ_b ω_b E_b, one step with a batch of β samples takes

    ⟨r·B⟩ ← L ⟨r·B⟩ − p (ω_b/N) ⟨e·B⟩
    ⟨r·r⟩ ← L ⟨r·r⟩ Lᵀ − (ω_b/N) (L ⟨e·r⟩ pᵀ + transpose) + p pᵀ Γ_b
    Γ_b = (1/N²) [ (1 + 1/β) ω_b² E_b + (1/β) n_b ω_b (s + σ²) ]

where p of unit k has the factor v_k. The last term is the noise of SGD; the first is the square of the drift and, with
1/β, what Isserlis' theorem adds, both smaller by 1/N. The error is s/2. In the limit N → ∞ this is the equation of
motion.

>>> import overlaps as ov
>>> net = ov.Committee(1, "linear")
>>> problem = ov.Problem(data=ov.GaussianInputs(), teacher=net, student=net, algorithm=ov.OnlineSGD(rate=1.0, batch=4))
>>> start = ov.Start.from_overlaps(problem, Q=[[0.0]], R=[[0.0]], T=[[1.0]], size=20)
>>> ov.solve(problem, start, [0.0, 1.0], system="exact-mean").data["error"].values[0].round(5).tolist()
[0.5, 0.08577]
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..algorithms import Matrices, Update
from ..averages import ClosedForm, method_for
from ..compiled.functions import kept
from ..interface.checks import steps
from ..interface.errors import InputError, NumericalError
from ..problem.network import Committee
from ..problem.start import LIMIT, Start
from ..problem.statement import Problem
from ..trajectory.dataset import Trajectory, assemble
from .long_stretches import SHORTEST, WORTH, Stretches, constant_pull
from .recording import Stops

Array = NDArray[np.float64]
EXACT = "exact-mean"
CHUNK = 2**21  # numbers in the matrices of steps that are made at once


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


@kept(nogil=True, fastmath={"reassoc", "contract"})
def advance_one(given, Q, A, keep, pull):  # pragma: no cover - compiled
    """Steps of one row and one teacher, Q (B, 1, 1) and A (B, 1, 1), in place; stops where the error has diverged.

    Returns the number of steps taken.
    """
    omega, n, T, N = given.omega, given.dimensions, given.T, given.size
    v, u, share, extra = given.v[0], given.u[0], given.share, given.extra
    total = 0.0
    for b in range(omega.size):
        total += omega[b] * (v * v * Q[b, 0, 0] - 2 * v * u * A[b, 0, 0] + u * u * T[b, 0, 0])
    for s in range(len(pull)):
        L, p, power, total_next = keep[s, 0, 0], pull[s, 0], share * (total + given.noise), 0.0
        for b in range(omega.size):
            w, q, a, t = omega[b] / N, Q[b, 0, 0], A[b, 0, 0], T[b, 0, 0]
            er, eB = v * q - u * a, v * a - u * t
            E = v * er - u * eB
            noise = (1.0 + share) * w * w * E + w * n[b] / N * power + share * extra[b] / (N * N)
            q = L * L * q - 2.0 * L * p * w * er + p * p * noise
            a = L * a - p * w * eB
            Q[b, 0, 0], A[b, 0, 0] = q, a
            total_next += omega[b] * (v * v * q - 2.0 * v * u * a + u * u * t)
        total = total_next
        if not total < LIMIT:
            return s + 1
    return len(pull)


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


class Moments(NamedTuple):
    """Second moments of the weights at steps: Q (stops, B, K, K), A (stops, B, K, M).

    reached: number of stops that were reached; diverged: the step by which the error had grown without bound, or None.
    missed: relative error of the distances E that long stretches have made, 0 without them.
    """

    Q: Array
    A: Array
    reached: int
    diverged: int | None
    missed: float = 0.0


def second_moments(
    given: Linear,
    update: Update,
    Q: Array,
    A: Array,
    stops: NDArray[np.int64],
    extra: Callable[[Array], Array] | None = None,
) -> Moments:
    """The moments at the steps `stops` from Q (B, K, K) and A (B, K, M); velocities start at zero.

    One unit at a constant rate without decay goes in `long_stretches` where the power of the noise is smooth.
    extra: what inputs that are not Gaussian add, (B,), given E (B,); asked for again after every hundredth of the time.
    """
    (B, K, M), R, size = A.shape, update.rule.rows * A.shape[1], int(given.size)
    rows_Q, rows_A = np.zeros((B, R, R)), np.zeros((B, R, M))
    rows_Q[:, :K, :K], rows_A[:, :K] = Q, A
    seen = Moments(np.empty((stops.size, B, K, K)), np.empty((stops.size, B, K, M)), stops.size, None)
    one, done = R == M == 1, 0
    same = constant_pull(update, given.v, size) if M == 1 and extra is None and stops[-1] >= WORTH else None
    long = None if same is None else Stretches(given, same)
    for i, stop in enumerate(stops.tolist()):
        while done < stop:
            count = min(stop - done, max(1, CHUNK // (R * R + R)))
            if long is not None:
                done += (ahead := long.advance(rows_Q, rows_A, done, stop))
                if ahead:
                    continue
                count = min(count, max(SHORTEST, long.again - done))
            if extra is not None:
                count = min(count, max(1, done // 100))
                given = given._replace(extra=extra(distances(given, rows_Q[:, :K, :K], rows_A[:, :K])))
            keep, pull = row_matrices(update.steps(done, count, size), given.v)
            taken = (advance_one if one else advance)(given, rows_Q, rows_A, keep, pull)
            done += taken
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


def solve_exact_mean(
    problem: Problem, start: Start, times: Array, levels: bool, extra: Callable[[Array], Array] | None = None
) -> Trajectory:
    """The mean of the overlaps over runs at the size of `start`, and the error that goes with it.

    extra: see `second_moments`; without it inputs are Gaussian, and the mean is exact.
    """
    began = clock.perf_counter()
    _check(problem, start)
    assert start.size is not None and start.dimensions is not None
    update, size, K = problem.update, start.size, start.v.size
    given = Linear(
        start.eigenvalues,
        start.dimensions.astype(float),
        np.ascontiguousarray(start.T),
        start.v,
        start.u,
        problem.label_noise**2,
        update.noise,
        float(size),
        np.zeros(start.eigenvalues.size),
    )
    total = steps(float(times[-1]), size)
    stops = Stops.at(times, size)
    seen = second_moments(given, update, start.Q, start.A, stops.steps, extra)

    def trajectory(count: int) -> Trajectory:
        at_Q, at_A = (stops.interpolated(x[None], count)[0] for x in (seen.Q, seen.A))
        mean_Q, mean_R = (np.einsum("b,tbij->tij", start.eigenvalues, x)[None] for x in (at_Q, at_A))
        v = np.broadcast_to(start.v, (1, count, K))
        cost = f"{total:,} steps of the exact mean, {clock.perf_counter() - began:.2g} s"
        how = method_for(problem, start.u)
        blocks = (at_Q[None], at_A[None]) if levels else None
        m = np.zeros((1, count, K, 0))
        result = assemble("macro", problem, start, times[:count], mean_Q, mean_R, m, v, how, levels=blocks, cost=cost)
        kind = "exact mean" if extra is None else "mean by measured fourth moments"
        result.data.attrs["averages"] = f"{kind} over runs at size {size}"
        state_rounding(result, total, seen.missed)
        return result

    if seen.diverged is None:
        return trajectory(times.size)
    count = int(np.count_nonzero(stops.last < seen.reached))
    raise diverges(problem, seen.diverged / size, size, trajectory(count) if count else None)


def state_rounding(result: Trajectory, steps: int, missed: float) -> None:
    """State the accuracy of a recursion of that many steps: each rounds, and at a stable rate later ones add to it.

    missed: see `Moments`.
    """
    for name in result.variables:
        largest = max(1.0, float(np.abs(result.data[name]).max()))
        result.data[name].attrs["accuracy"] = (np.finfo(float).eps * (10 + steps) + missed) * largest


def diverges(problem: Problem, time: float, size: int, partial: Trajectory | None) -> NumericalError:
    """The error of a rate at which the mean grows without bound."""
    return NumericalError(
        f"macro: the mean error at size {size} grew without bound by time {time:.6g}; reduce rate (now "
        f"{problem.update.rate(time):g}) or stop earlier",
        quantity="error",
        time=time,
        partial=partial,
    )


def _check(problem: Problem, start: Start) -> None:
    """Refuse what is not linear, or has no size."""
    student, teacher, data = problem.student, problem.teacher, problem.data
    linear = all(isinstance(net, Committee) and net.activation == "linear" for net in (student, teacher))
    if not linear or student.train_readout or problem.loss != "square":
        raise InputError(
            "system: the exact mean is that of a linear student with a fixed readout, a linear teacher and the square "
            f"loss, got {problem.describe_networks()}; use system='levels'"
        )
    if data.has_means or data.reads_latent or data.components.weights.size > 1:
        raise InputError("system: the exact mean is for Gaussian inputs of mean zero; use system='levels'")
    if not problem.algorithm.draws_samples:
        raise InputError("system: gradient flow has no steps to average over; use system='levels'")
    if start.size is None:
        raise InputError("start: the exact mean is that of a size; pass size= to Start.from_overlaps, or use draw")
    assert isinstance(method_for(problem, start.u), ClosedForm)
