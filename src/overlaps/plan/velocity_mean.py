"""The exact mean error of a linear student that remembers gradients, and its derivative by the rate at every knot.

With momentum or a memory of length τ the rows of a unit are its weights and a velocity, whose second moments follow the
recursion of `overlaps.online.exact_mean` at any size N. The limit N → ∞ forgets momentum s at once and takes SGD at the
rate η/(1 − s) for it, which at small N is far off.

Derivatives are central differences in log η_k. A knot acts between its neighbours alone, so the moments start again
from those at the knot before it. Where a run of the recursion takes more than `LONG` steps of one level, the schedule
is sought by derivatives of the limit, and only the errors that are stated of it are exact.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..algorithms import Schedule, Update
from ..algorithms.schedules import TimeDependent
from ..online.second_moments import Linear, advance
from ..problem.statement import Problem
from .linear_mean import LinearMean

Array = NDArray[np.float64]
LONG = 4e6  # steps × levels of a recursion, about a quarter of a second
DIFFERENCE = 1e-3  # of log η, for central differences
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
        """½ Σ ω s after all steps at the rates of a schedule, and its derivatives by log η at its knots."""

        def update(rates: Array) -> Update:
            return with_rate(problem, Schedule(times, rates)).update

        given = update(rates)
        # the last step that the knot after it does not act on
        begins = np.clip(np.floor(np.r_[0.0, times[:-1]] * self.mean.size), 0, steps).astype(int)
        (Q, A), done, kept, slopes = self.first(), 0, [], np.zeros(rates.size)
        for begin in begins.tolist():
            if not self.advance(given, Q, A, done, begin):
                return np.inf, slopes
            kept.append((Q.copy(), A.copy()))
            done = begin
        if not self.advance(given, Q, A, done, steps):
            return np.inf, slopes
        error = self.error(Q, A)
        for k, begin in enumerate(begins.tolist()):
            ends = []
            for sign in (1, -1):
                tried = rates * np.exp(sign * DIFFERENCE * (np.arange(rates.size) == k))
                Q, A = (x.copy() for x in kept[k])
                ends.append(self.error(Q, A) if self.advance(update(tried), Q, A, begin, steps) else error)
            slopes[k] = (ends[0] - ends[1]) / (2 * DIFFERENCE)
        return error, slopes
