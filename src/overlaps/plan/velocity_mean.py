"""The exact mean error of a linear student that remembers gradients, and its derivative by the rate at every knot.

With momentum or a memory of length τ the rows of a unit are its weights and a velocity, whose second moments follow the
recursion of `overlaps.online.exact_mean` at any size N. The limit N → ∞ forgets momentum s at once and takes SGD at the
rate η/(1 − s) for it, which at small N is far off.

Derivatives are by reverse accumulation, as in `overlaps.plan.linear_mean`. With G and H those of the last error by the
moments Q and A of a level after a step, and ω = ω_b, w = ω/N, e = Q_0 − A, f = A_0 − |B|²/N, c = pᵀ G p,

    by L    2 G L Q − 2 w G p eᵀ + H Aᵀ          by p    2 ν G p − 2 w G L e − w f H

with the noise ν of the step, and before the step G is Lᵀ G L and H is Lᵀ H, with what they get through e, f and the
error. Derivatives of L and p by the rate are central differences of `Rule.step`, which is no recursion. Where a run
takes more than `LONG` steps of one level, the schedule is sought by derivatives of the limit, and only the errors that
are stated of it are exact.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..algorithms import Schedule, Update
from ..algorithms.schedules import TimeDependent
from ..compiled.functions import kept
from ..online.second_moments import Linear, advance
from ..problem.statement import Problem
from .linear_mean import LinearMean

Array = NDArray[np.float64]
LONG = 4e6  # steps × levels of a recursion, about a quarter of a second
MANY = 5e5  # steps, whose matrices are held at once
DIFFERENCE = 1e-3  # of log η, for central differences of what a step is made of, and of the limit
PART = 2**16  # steps whose matrices are made at once


def with_rate(problem: Problem, rate: float | TimeDependent) -> Problem:
    """The problem at another rate."""
    return replace(problem, algorithm=replace(problem.algorithm, rate=rate))


@dataclass(frozen=True, eq=False)
class VelocityMean:
    """Second moments of weights and velocity of the one vector that a committee of readouts v is.

    mean: the task of that vector, of which batch and decay are not used: the update of a problem has them.
    factor: Σ v², by which the gradient of the one vector is larger than that of a unit.
    """

    mean: LinearMean
    factor: float

    def _given(self, update: Update) -> Linear:
        mean = self.mean
        return Linear(
            mean.omega,
            mean.fractions * mean.size,
            np.ascontiguousarray(mean.teacher[:, None, None]),
            np.ones(1),
            np.ones(1),
            mean.noise,
            update.noise,
            float(mean.size),
            np.zeros(mean.omega.size),
        )

    def first(self) -> tuple[Array, Array]:
        """Moments before the first step, Q (levels, 2, 2) and A (levels, 2, 1): velocities are zero."""
        mean = self.mean
        Q, A = np.zeros((mean.omega.size, 2, 2)), np.zeros((mean.omega.size, 2, 1))
        A[:, 0, 0] = mean.overlap + mean.teacher
        Q[:, 0, 0] = mean.distance + 2 * mean.overlap + mean.teacher
        return Q, A

    def advance(self, update: Update, Q: Array, A: Array, begin: int, end: int) -> bool:
        """Steps from `begin` to `end` in place; whether the moments stayed bounded."""
        given = self._given(update)
        for at in range(begin, end, PART):
            count = min(PART, end - at)
            step = update.steps(at, count, self.mean.size)
            with np.errstate(over="ignore", invalid="ignore"):
                taken = advance(given, Q, A, step.keep, self.factor * step.pull)
            if taken < count or not np.isfinite(Q).all():
                return False
        return True

    def error(self, Q: Array, A: Array) -> float:
        """½ Σ ω s."""
        mean = self.mean
        return 0.5 * float(mean.omega @ (Q[:, 0, 0] - 2 * A[:, 0, 0] + mean.teacher))

    def errors(self, update: Update, stops: NDArray[np.int64]) -> Array:
        """½ Σ ω s after these numbers of steps, in order; infinite from where it grows without bound."""
        (Q, A), done = self.first(), 0
        found = np.full(stops.size, np.inf)
        for i, stop in enumerate(stops.tolist()):
            if not self.advance(update, Q, A, done, stop):
                break
            found[i], done = self.error(Q, A), stop
        return found

    def slopes(self, problem: Problem, times: Array, rates: Array, steps: int) -> tuple[float, Array]:
        """½ Σ ω s after all steps at the rates of a schedule, and its derivatives by the rate of each, (steps,)."""
        update = with_rate(problem, Schedule(times, rates)).update
        size, given = self.mean.size, self._given(update)
        at_steps = update.rate.at(np.arange(steps) / size)
        step = update.steps(0, steps, size)
        ahead, behind = (update.rule.step(x * at_steps, size) for x in (1 + DIFFERENCE, 1 - DIFFERENCE))
        by_rate = [
            (x - y) / (2 * DIFFERENCE * at_steps).reshape(-1, *[1] * (x.ndim - 1))
            for x, y in zip(ahead, behind, strict=True)
        ]
        with np.errstate(over="ignore", invalid="ignore"):
            error, slopes = _reverse(
                given, *self.first(), step.keep, self.factor * step.pull, by_rate[0], self.factor * by_rate[1]
            )
        return (float(error), slopes) if np.isfinite(error) else (np.inf, np.zeros(steps))


@kept(fastmath={"contract"})
def _back(given, Q, A, G, H, L, p, total):  # pragma: no cover - compiled
    """Derivatives G (B, 2, 2) and H (B, 2) by moments after a step made those before it, Q and A, in place.

    total: Σ ω E + σ² before the step. Returned are the derivatives by L (2, 2) and p (2,).
    """
    omega, N, share = given.omega, given.size, given.share
    by_L, by_p, fed = np.zeros((2, 2)), np.zeros(2), 0.0
    for b in range(omega.size):
        fed += omega[b] * given.dimensions[b] / (N * N) * (p @ G[b] @ p)
    for b in range(omega.size):
        w, q, a = omega[b] / N, Q[b], A[b, :, 0]
        T = given.T[b, 0, 0]
        e, f = q[0] - a, a[0] - T
        noise = (1.0 + share) * w * w * (q[0, 0] - 2.0 * a[0] + T)
        noise += share * w * given.dimensions[b] / N * total
        Gp, He = G[b] @ p, H[b].copy()
        by_L += 2.0 * (G[b] @ L @ q) - 2.0 * w * np.outer(Gp, e) + np.outer(He, a)
        by_p += 2.0 * noise * Gp - 2.0 * w * (G[b] @ (L @ e)) - w * f * He
        through_e = -2.0 * w * (L.T @ Gp)
        through_E = (1.0 + share) * w * w * (p @ Gp) + omega[b] * share * fed
        G[b] = L.T @ G[b] @ L
        H[b] = L.T @ He - through_e
        H[b, 0] += -w * (He @ p) - 2.0 * through_E
        G[b, 0, 0] += through_E
        for r in range(2):
            G[b, 0, r] += 0.5 * through_e[r]
            G[b, r, 0] += 0.5 * through_e[r]
    return by_L, by_p


@kept()
def _reverse(given, Q, A, keep, pull, keep_by_rate, pull_by_rate):  # pragma: no cover - compiled
    """½ Σ ω s after all steps, and its derivatives by the rates (steps,); moments are kept every √steps steps."""
    steps, B = len(pull), given.omega.size
    part = max(1, int(np.ceil(np.sqrt(steps))))
    parts, slopes = (steps + part - 1) // part, np.zeros(steps)
    kept_Q, kept_A = np.empty((parts, B, 2, 2)), np.empty((parts, B, 2, 1))
    for i in range(parts):
        kept_Q[i], kept_A[i] = Q, A
        if advance(given, Q, A, keep[i * part : (i + 1) * part], pull[i * part : (i + 1) * part]) < min(
            part, steps - i * part
        ):
            return np.inf, slopes
    error, G, H = 0.0, np.zeros((B, 2, 2)), np.zeros((B, 2))
    for b in range(B):
        error += 0.5 * given.omega[b] * (Q[b, 0, 0] - 2.0 * A[b, 0, 0] + given.T[b, 0, 0])
        G[b, 0, 0], H[b, 0] = 0.5 * given.omega[b], -given.omega[b]
    inner_Q, inner_A = np.empty((part, B, 2, 2)), np.empty((part, B, 2, 1))
    for i in range(parts - 1, -1, -1):
        first, last = i * part, min(steps, (i + 1) * part)
        Q[:], A[:] = kept_Q[i], kept_A[i]
        for s in range(first, last):
            inner_Q[s - first], inner_A[s - first] = Q, A
            advance(given, Q, A, keep[s : s + 1], pull[s : s + 1])
        for s in range(last - 1, first - 1, -1):
            before, other = inner_Q[s - first], inner_A[s - first]
            total = given.noise
            for b in range(B):
                total += given.omega[b] * (before[b, 0, 0] - 2.0 * other[b, 0, 0] + given.T[b, 0, 0])
            by_L, by_p = _back(given, before, other, G, H, keep[s], pull[s], total)
            slopes[s] = np.sum(by_L * keep_by_rate[s]) + np.sum(by_p * pull_by_rate[s])
    return error, slopes
