"""What a schedule is judged by: the error at the end, and its derivative with respect to the rate at every knot.

A schedule is linear in time between knots t_k with rates η_k. Two theories give the error:

- `ExactMean`, of a linear student of a linear teacher at a size, or of labelled rows: the exact mean over runs, a
  recursion that is differentiated by reverse accumulation (see `overlaps.plan.linear_mean`), or by differences where
  the algorithm remembers gradients (`ExactMeanWithVelocity`, see `overlaps.plan.velocity_mean`);
- `InfiniteSize`, of anything else that `solve` knows: the equation of motion, differentiated by central differences in
  log η_k. A knot acts between its neighbours alone, so the solution starts again from the state at the knot before it.
  With K knots that is about K solutions; an adjoint equation would need as many, since the derivative of the averages
  with respect to the overlaps is itself taken by differences.

A trial that grows without bound has an infinite error, and no derivative.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..algorithms import Schedule
from ..algorithms.schedules import TimeDependent
from ..averages import Method, method_for
from ..interface.errors import InputError
from ..network.architectures import Committee
from ..online.integration import Stopped, integrate
from ..online.macro import equation_of_levels
from ..online.motion import EquationOfMotion
from ..problem.start import Start
from ..problem.statement import Problem
from .linear_mean import LinearMean
from .velocity_mean import DIFFERENCE, LONG, MANY, VelocityMean, with_rate

Array = NDArray[np.float64]
MOST_STEPS = 1e9  # of an exact mean, whose rates are one array
TOLERANCE = 1e-9  # of the solver between which differences are taken


def objective(problem: Problem, start: Start, time: float) -> ExactMean | InfiniteSize:
    """What the schedules of a problem are judged by at a time."""
    if not is_linear(problem, start):
        return InfiniteSize(problem, start, time)
    if time * (start.size or 0) > MOST_STEPS:
        raise InputError(
            f"time: {time:g} at size {start.size} is {time * (start.size or 0):.1e} steps, each of which has a rate; "
            "use a smaller time or size"
        )
    return (ExactMean if problem.update.rule.rows == 1 else ExactMeanWithVelocity)(problem, start, time)


def is_one_pass(problem: Problem) -> bool:
    """Whether the algorithm is one-pass training on random samples."""
    return problem.algorithm.engine[0] == "online.macro" and problem.algorithm.draws_samples


def is_linear(problem: Problem, start: Start) -> bool:
    """Whether the mean over runs has an exact recursion: linear networks, square loss, one-pass SGD, a size."""
    if problem.classifies_rows:
        raise InputError(
            "data: optimise plans no classifiers of rows; `forecast(data, loss=...)` finds their best constant rate, "
            "and the square loss of a linear student, Committee(1, 'linear'), has a schedule"
        )
    if problem.learns_rows:
        problem = problem.linear_equivalent  # refuses students that are not linear
    student, teacher, data = problem.student, problem.teacher, problem.data
    return (
        start.size is not None
        and is_one_pass(problem)
        and isinstance(student, Committee)
        and not student.train_readout
        and teacher is not None
        and student.activation == teacher.activation == "linear"
        and problem.loss == "square"
        and not (data.has_means or data.reads_latent or data.components.weights.size > 1)
    )


@dataclass(frozen=True, eq=False)
class ExactMean:
    """The exact mean over runs of a linear student, at the size of the start."""

    problem: Problem
    start: Start
    last: float

    @property
    def theory(self) -> str:
        """Which theory this is, in words."""
        return f"exact mean at size {self.start.size}"

    @property
    def noise(self) -> float:
        """Variance of what no linear map can tell of the labels."""
        return _theory(self.problem).label_noise ** 2

    @property
    def floor(self) -> float:
        """What no rate can take off the error, which counts the noise of labelled rows, and no other."""
        return self.noise / 2 if self.problem.learns_rows else 0.0

    @property
    def steps(self) -> int:
        """Steps until the last time, as many as are whole."""
        assert self.start.size is not None
        return int(np.floor(self.last * self.start.size + 1e-9))

    def mean(self, problem: Problem) -> LinearMean:
        """The recursion: the committee's one vector W = Σ v_i W_i learns B = Σ u_n B_n at rate η Σ v²."""
        s, algorithm = self.start, problem.algorithm
        assert s.size is not None
        v, u = s.v, s.u
        vQv, vRu, uTu = ((x @ left) @ right for x, left, right in ((s.Q, v, v), (s.R, u, v), (s.T, u, u)))
        return LinearMean(
            s.eigenvalues,
            s.fractions,
            vQv - 2 * vRu + uTu,
            vRu - uTu,
            uTu,
            s.size,
            self.noise,
            algorithm.decay / float(v @ v),
            problem.update.batch,
        )

    @property
    def _factor(self) -> float:
        """What a rate of the committee is multiplied by to be that of its one vector."""
        return float(self.start.v @ self.start.v)

    def rates(self, rate: TimeDependent) -> Array:
        """The rate of the one vector at every step, (steps,)."""
        assert self.start.size is not None
        return self._factor * rate.at(np.arange(self.steps) / self.start.size)

    def excess(self, problem: Problem) -> float:
        """Last error without the floor, for this problem with other numbers in its algorithm."""
        return self.mean(problem)(self.rates(problem.update.rate))

    def searched(self, problem: Problem) -> float:
        """The same of merged levels, which is faster and good enough for a search."""
        return self.mean(problem).merged()(self.rates(problem.update.rate))

    def curve(self, problem: Problem, times: Array) -> Array:
        """Error without the floor at times up to the last, (times,)."""
        assert self.start.size is not None
        errors = self.mean(problem).curve(self.rates(problem.update.rate))
        return np.interp(times * self.start.size, np.arange(errors.size), errors)

    @cached_property
    def _searched(self) -> LinearMean:
        return self.mean(self.problem).merged()

    def slopes(self, times: Array, rates: Array) -> tuple[float, Array]:
        """Last error without the floor, of merged levels, and its derivatives by log η at the knots (knots,)."""
        at = np.arange(self.steps) / (self.start.size or 1)
        error, slopes = self._searched.slopes(self._factor * np.interp(at, times, rates))
        return error, self._factor * _gathered(at, times, slopes) * rates


@dataclass(frozen=True, eq=False)
class ExactMeanWithVelocity(ExactMean):
    """The same of an algorithm that remembers gradients: momentum, or a memory of some length."""

    def _velocity(self, problem: Problem) -> VelocityMean:
        return VelocityMean(self.mean(problem), self._factor)

    def excess(self, problem: Problem) -> float:
        """Last error without the floor, for this problem with other numbers in its algorithm."""
        return float(self._velocity(problem).errors(problem.update, np.array([self.steps]))[0])

    def searched(self, problem: Problem) -> float:
        """The same of merged levels."""
        mean = VelocityMean(self.mean(problem).merged(), self._factor)
        return float(mean.errors(problem.update, np.array([self.steps]))[0])

    def curve(self, problem: Problem, times: Array) -> Array:
        """Error without the floor at times up to the last, (times,), each at the last whole step before it."""
        assert self.start.size is not None
        stops = np.floor(times * self.start.size + 1e-9).astype(int)
        return self._velocity(problem).errors(problem.update, stops)

    def slopes(self, times: Array, rates: Array) -> tuple[float, Array]:
        """Last error without the floor, of merged levels or of the limit, and its derivatives by log η (knots,)."""
        if self.steps > MANY or self.steps * self._searched.omega.size > LONG:
            return InfiniteSize(self.problem, self.start, self.last).slopes(times, rates)
        error, slopes = VelocityMean(self._searched, self._factor).slopes(self.problem, times, rates, self.steps)
        return error, _gathered(np.arange(self.steps) / (self.start.size or 1), times, slopes) * rates


def _gathered(at: Array, times: Array, slopes: Array) -> Array:
    """Derivatives with respect to rates at the knots `times` from those at the times `at` between them."""
    after = np.clip(np.searchsorted(times, at, side="right"), 1, times.size - 1)
    share = np.clip((at - times[after - 1]) / (times[after] - times[after - 1]), 0.0, 1.0)
    gathered = np.zeros(times.size)
    np.add.at(gathered, after - 1, (1 - share) * slopes)
    np.add.at(gathered, after, share * slopes)
    return gathered


def _theory(problem: Problem) -> Problem:
    """What theory takes a problem for."""
    return problem.linear_equivalent if problem.learns_rows else problem


@dataclass(frozen=True, eq=False)
class InfiniteSize:
    """The equation of motion, N → ∞; of labelled rows, that of their linear equivalent."""

    problem: Problem
    start: Start
    last: float

    theory = "infinite size"

    @property
    def floor(self) -> float:
        """What no rate can take off the error: the noise of labelled rows."""
        return _theory(self.problem).label_noise ** 2 / 2 if self.problem.learns_rows else 0.0

    @cached_property
    def method(self) -> Method:
        return method_for(_theory(self.problem), self.start.u)

    def _motion(self, problem: Problem) -> EquationOfMotion:
        return equation_of_levels(_theory(problem), self.start, self.method)

    @cached_property
    def _first(self) -> Array:
        return self._motion(self.problem).pack(self.start.Q, self.start.A, self.start.v)

    def _states(self, problem: Problem, y: Array, times: Array, begin: float) -> Array | None:
        """States at the times, (times, unknowns), or None where the solution grows without bound."""
        tolerance = 1e-7 if self.method.jumps else TOLERANCE
        try:
            with np.errstate(all="ignore"):  # trial steps may overflow; accepted ones are checked
                return integrate(self._motion(problem), y, times, tolerance, begin=begin).states
        except Stopped:
            return None

    def _error(self, y: Array) -> float:
        motion = self._motion(self.problem)
        return float(motion.averages(y).error)

    def excess(self, problem: Problem) -> float:
        """Last error, for this problem with other numbers in its algorithm."""
        states = self._states(problem, self._first, np.array([self.last]), 0.0)
        return np.inf if states is None else self._error(states[-1])

    searched = excess

    def curve(self, problem: Problem, times: Array) -> Array:
        """Error at times up to the last, (times,)."""
        states = self._states(problem, self._first, times, 0.0)
        return np.full(times.size, np.inf) if states is None else np.array([self._error(y) for y in states])

    def slopes(self, times: Array, rates: Array) -> tuple[float, Array]:
        """Last error, and its derivatives with respect to log η at the knots (knots,)."""
        at = np.union1d(times[(times >= 0) & (times <= self.last)], [0.0, self.last])
        states = self._states(with_rate(self.problem, Schedule(times, rates)), self._first, at, 0.0)
        if states is None:
            return np.inf, np.zeros(rates.size)
        error, slopes = self._error(states[-1]), np.zeros(rates.size)
        for k in range(rates.size):
            before = times[k - 1] if k else 0.0
            if before >= self.last:
                continue
            ends = []
            for sign in (1, -1):
                tried = rates * np.exp(sign * DIFFERENCE * (np.arange(rates.size) == k))
                problem, y = with_rate(self.problem, Schedule(times, tried)), states[np.searchsorted(at, before)]
                found = self._states(problem, y, np.array([self.last]), before)
                ends.append(error if found is None else self._error(found[-1]))
            slopes[k] = (ends[0] - ends[1]) / (2 * DIFFERENCE)
        return error, slopes


Objective = ExactMean | InfiniteSize
