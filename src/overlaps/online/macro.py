"""Macro: the limit N → ∞, an ordinary differential equation per eigenvalue of the input covariance.

The equation is in `overlaps.online.motion`, or in moments of the covariance in `overlaps.online.moments`, and
integrated by `overlaps.online.integration`. The whole solution is computed twice, with a looser tolerance and an
independent average the second time; their difference is the accuracy stated, and both are refined until it is as small
as asked (`overlaps.trajectory.refinement`). Where averages are those of random points it is the mean of several
solutions (`overlaps.averages.random_sets`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import DOP853

from ..averages import ClosedForm, Method, SumForm, independent, is_random, method_for
from ..averages.random_sets import FEW, MANY, RandomPoints, half_width, more_points, set_of
from ..interface.checks import grid, number
from ..interface.errors import InputError, NumericalError, unknown
from ..network.architectures import Committee
from ..problem.start import Start
from ..problem.statement import Problem
from ..trajectory.dataset import Trajectory, assemble, largest_overlap
from ..trajectory.refinement import Budget, Goal, Stated, differences, largest_values, refined
from .class_covariances import CLASSES, solve_class_covariances
from .classified_rows import by_classes
from .component_levels import ComponentLevels
from .exact_mean import EXACT, MEASURED, solve_exact_mean
from .integration import NOT_FINITE, Stopped, integrate
from .labelled_rows import by_equivalent, measured_excess
from .moments import MomentHierarchy
from .motion import EquationOfMotion
from .rule_choice import RuleChoice
from .seen_rates import check_rates
from .strong_mixture import STRONG, solve_strong_mixture
from .tail_values import with_values
from .weak_mixture import WEAK, levels_serve, with_left_out

Array = NDArray[np.float64]
SYSTEMS: dict[str, type[EquationOfMotion]] = {"levels": EquationOfMotion, "moments": MomentHierarchy}
CLOSED_EVALUATIONS, QUADRATURE_EVALUATIONS = 10**8, 60_000  # of a solution, where no number is named
MEMORY, STAGES = 2.5e8, 20  # numbers that a solution may hold, and states that a step of it holds
MORE_SETS = 2.5  # how much smaller the error of many sets of points is than that of a few
TOGETHER = 1 / 3  # of the largest relative error of a variable that those of others are at least
LOOSEST = 1e-4  # tolerance of steps; that of the steps that judge them is thirty times as loose


def solve(
    problem: Problem,
    start: Start,
    times: ArrayLike | None,
    *,
    levels: bool,
    accuracy: float | None,
    method: str,
    system: str,
    budget: Budget,
) -> Trajectory:
    """The theory of a one-pass algorithm; see `overlaps.solve`."""
    if problem.classifies_rows:
        options = {"levels": levels, "accuracy": accuracy, "method": method, "system": system, "budget": budget}
        return by_classes(problem, start, lambda same, begin: solve(same, begin, times, **options))
    if problem.learns_rows:
        if system == "auto":
            system = EXACT if problem.algorithm.draws_samples else "levels"
        if system == MEASURED:
            if method != "auto":
                raise InputError(f"method: {MEASURED} is a recursion without quadratures; leave method out")
            t, excess = grid(times), measured_excess(problem.data)
            return by_equivalent(
                problem, lambda same: solve_exact_mean(same, start, t, levels, accuracy, budget, excess)
            )
        options = {"levels": levels, "accuracy": accuracy, "method": method, "system": system, "budget": budget}
        return by_equivalent(problem, lambda equivalent: solve(equivalent, start, times, **options))
    if system == MEASURED:
        raise InputError(f"system: {MEASURED} are those of labelled rows; use Samples(X, y), or system='auto'")
    accuracy = None if accuracy is None else number("accuracy", accuracy, above=0)
    system = _system(problem, start, system, levels, accuracy)
    how = method_for(problem, start.u, method, accuracy or 0.0)
    result = _solved(problem, start, grid(times), how, system, levels, accuracy, budget)
    if problem.data.tails:
        same = replace(problem, data=problem.data.other_values)
        how = method_for(same, start.u, method, accuracy or 0.0)
        other = _solved(same, start, grid(times), how, system, False, accuracy, budget)
        result = with_values(result, other, problem, accuracy)
    result.data.attrs["system"] = system
    return result


def _solved(
    problem: Problem,
    start: Start,
    t: Array,
    how: Method,
    system: str,
    levels: bool,
    accuracy: float | None,
    budget: Budget,
) -> Trajectory:
    """The solution of one system of equations."""
    if system == EXACT:
        return solve_exact_mean(problem, start, t, levels, accuracy, budget)
    if system == CLASSES:
        return solve_class_covariances(problem, start, t, how, accuracy, budget)
    if system == STRONG:
        return solve_strong_mixture(problem, start, t, how, accuracy, budget)
    student = problem.student
    if not problem.data.components.variances.all() and isinstance(student, Committee) and student.g.kinks:
        raise InputError(
            f"variance: without noise a {student.g.name} network slides along its kinks, which these equations "
            "do not describe; use a small variance, or laws.xor_flow for the XOR mixture"
        )
    goal = Goal.named(accuracy, aim=how.default_accuracy, accept=max(1e-6, 10 * how.default_accuracy))
    # a quadrature with a kink in it makes the right-hand side jump, and the solver's steps endless
    budget.at_most(CLOSED_EVALUATIONS if isinstance(how, ClosedForm) else QUADRATURE_EVALUATIONS)
    equation = _Equation(problem, start, t, SYSTEMS[system], levels, budget)
    result = refined(equation.attempts(how, goal), goal, budget)
    return with_left_out(result, problem, start, accuracy) if problem.data.mixture_strength(start.size) else result


def check_memory(problem: Problem, count: int) -> None:
    """Refuse a solution by levels at `count` times that would hold too many numbers."""
    data, rows = problem.data, problem.update.rule.limit_rows * problem.student.units
    if not (data.is_gaussian and data.commuting):
        return
    fixed = problem.teacher_units + (data.components.weights.size if data.has_means else 0)
    numbers = float(data.fractions.size) * rows * (rows + fixed) * (2 * count + STAGES)
    if numbers > MEMORY:
        raise InputError(
            f"levels: {data.fractions.size:,} of them at {count} times are {numbers * 8e-9:.3g} GB of overlaps; use "
            "fewer of either"
        )


def _system(problem: Problem, start: Start, system: str, levels: bool, accuracy: float | None) -> str:
    """The system of equations that was asked for, or the one that serves; refused where it does not."""
    problem.data.check_theory(start.size)
    if not isinstance(system, str) or system not in ("auto", EXACT, STRONG, CLASSES, *SYSTEMS):
        raise unknown("system", str(system), ["auto", EXACT, MEASURED, STRONG, CLASSES, *SYSTEMS])
    if not problem.data.one_covariance:
        return _of_own_covariances(problem, system, levels)
    if system == CLASSES:
        raise InputError(f"system: {CLASSES} is for GaussianClasses; use system='levels'")
    strength = problem.data.mixture_strength(start.size)
    if system == "auto":
        system = "levels" if strength == 0 or levels_serve(problem, start, accuracy) else STRONG
    if system == "levels" and strength > WEAK:
        raise InputError(
            f"system: components of this latent differ too much for one covariance (strength {strength:.2g}, at most "
            f"{WEAK:g}); use system='{STRONG}', or a smaller bound"
        )
    if levels and system not in ("levels", EXACT):
        instead = "leave levels out" if system == STRONG else "use system='levels'"
        raise InputError(f"levels: the {system} equations do not follow them; {instead}")
    return system


def _of_own_covariances(problem: Problem, system: str, levels: bool) -> str:
    """The system for components that have covariances of their own: levels where these share an eigenbasis."""
    if system == "auto":
        system = "levels" if problem.data.commuting else CLASSES
    if system == "levels" and not problem.data.commuting:
        raise InputError(f"system: covariances that do not commute share no levels; use system='{CLASSES}'")
    if system not in ("levels", CLASSES):
        raise InputError(f"system: the {system} equations take one covariance for all components; use system='auto'")
    if levels and system == CLASSES:
        raise InputError(f"levels: the {CLASSES} equations do not follow them; leave levels out")
    return system


def equation_of_levels(problem: Problem, start: Start, method: Method) -> EquationOfMotion:
    """The equation of motion of the levels of a problem, with one covariance for all components or one for each."""
    kind = EquationOfMotion if problem.data.one_covariance else ComponentLevels
    return kind(problem, start, method)


class Attempt(NamedTuple):
    """One solution, its states (times, unknowns), and whether steps were implicit."""

    result: Trajectory
    states: Array
    implicit: bool


@dataclass(frozen=True)
class _Equation:
    """What is solved, whatever the averages and the steps."""

    problem: Problem
    start: Start
    times: Array
    system: type[EquationOfMotion]
    levels: bool
    budget: Budget

    def motion(self, how: Method) -> EquationOfMotion:
        if self.system is EquationOfMotion:
            return equation_of_levels(self.problem, self.start, how)
        return self.system(self.problem, self.start, how)

    def attempt(self, how: Method, rtol: float, steps: type | None = None, parts: int = 1) -> Attempt:
        return attempt(
            self.motion(how), self.problem, self.start, self.times, rtol, self.levels, steps, parts, self.budget
        )

    def attempts(self, how: Method, goal: Goal) -> Iterator[Stated]:
        """Solutions with ever finer averages and steps, each judged by one that shares neither.

        Averages in closed form have no error, so only the steps of these two differ.
        """
        if is_random(how):
            yield from self._over_sets(how, goal)
            how = method_for(self.problem, self.start.u, "quadrature")  # for few fields panels may be more accurate
            if is_random(how):
                return
        closed = how.finer() is None and (isinstance(how, ClosedForm) or (isinstance(how, SumForm) and how.exact))
        least = 1e-13
        rtol = min(max(least, goal.aim / (300 if isinstance(how, ClosedForm) else 10)), LOOSEST)
        choice = RuleChoice(self.problem, self.motion(how), goal, self.budget)
        how = choice.at_start(how, self.start)
        if is_random(how):  # no fit served, and there are too many fields for a lattice
            yield from self._over_sets(how, goal)
            return
        first, steps, parts = rtol, None, 1
        other, before = self._judge(how, rtol), np.inf
        while True:
            parts *= 2
            fine = self.attempt(how, rtol, steps, parts)
            fit_error, times = choice.fit_error(how, fine.states)
            stated = self._stated(fine.result, other.result, max(rtol, fit_error), 1 if closed else 2 * times)
            yield stated
            better = choice.after(how, fine.states, stated.reached)
            exhausted = better is None or (better is how and rtol <= least)
            if better is None or exhausted or stated.reached > before / how.gain:  # refining does not improve it
                if stated.reached <= goal.accept or not fine.implicit:
                    return
                # rounding in implicit steps breaks the symmetry of equal students, which then leave a saddle; explicit
                # steps keep them equal
                steps, rtol, before = DOP853, first, np.inf
                other = self._judge(how, rtol, steps)
                continue
            if is_random(better):
                yield from self._over_sets(better, goal)
                return
            before, how, rtol = stated.reached, better, max(least, rtol / 30)
            other = fine if closed else self._judge(how, rtol, steps)

    def _judge(self, how: Method, rtol: float, steps: type | None = None) -> Attempt:
        """A solution by looser steps and independent averages."""
        return self.attempt(independent(how), 30 * rtol, steps)

    def _over_sets(self, how: RandomPoints, goal: Goal) -> Iterator[Stated]:
        """Means of solutions by independent sets of random points, of more sets and then of more points.

        The error is that of the mean, and what looser steps change in one of the solutions.
        """
        rtol = min(max(1e-4 if how.jumps else 1e-13, goal.aim / 10), LOOSEST)
        better = more_points(how, how.default_accuracy / goal.aim) or how
        while better is not None:
            how = better
            loose = self.attempt(set_of(how, 0), 10 * rtol)
            solved: list[Trajectory] = []
            reached = np.inf
            for sets in (FEW, MANY):
                solved += [self.attempt(set_of(how, i), rtol).result for i in range(len(solved), sets)]
                stated = self._mean(solved, loose.result, rtol, set_of(how, 0).name)
                yield stated
                reached = stated.reached
                if reached > MORE_SETS * goal.aim:
                    break
            better = more_points(how, max(2.0, reached / goal.aim))

    def _mean(self, solved: list[Trajectory], loose: Trajectory, least: float, points: str) -> Stated:
        """The mean of solutions by independent sets of points, the first of which was also solved with loose steps."""
        first = solved[0]
        data = first.data.copy(deep=True)
        for name, part in data.data_vars.items():
            if "time" in part.dims:
                data[name].values[:] = np.mean([one.data[name].values for one in solved], axis=0)
        data.attrs["averages"] = f"{len(solved)} times {points}"
        result = self._counted(replace(first, data=data))
        steps, sizes = differences(first, loose), largest_values(result)
        errors = {
            name: half_width(np.array([one.data[name].values[0] for one in solved])).reshape(first.time.size, -1).max(1)
            for name in sizes
        }
        return Stated(result, {n: np.maximum(errors[n] + steps[n], least * sizes[n]) for n in sizes}, sizes)

    def _stated(self, fine: Trajectory, other: Trajectory, least: float, factor: float) -> Stated:
        """A solution, with a multiple of its largest difference from another as its error.

        least: what is stated at least, relative. factor: two where averages may be off on both sides by about the same.
        """
        sizes, moved = largest_values(self._counted(fine)), differences(fine, other)
        # two solutions by the same few long steps agree without being right: the tolerance is the least error stated
        errors = {name: np.maximum(factor * moved[name], least * size) for name, size in sizes.items()}
        # all move by the same averages: where one differs far less than another, that is chance
        common = TOGETHER * max(float(np.max(errors[name])) / size for name, size in sizes.items())
        for name, size in sizes.items():
            if moved[name].any():
                errors[name] = np.maximum(errors[name], common * size)
        return Stated(fine, errors, sizes)

    def _counted(self, result: Trajectory) -> Trajectory:
        """The solution, with the cost of all attempts so far in its attributes."""
        cost = f"{self.budget.spent} evaluations of the averages, {self.budget.elapsed:.2g} s"
        result.data.attrs["cost"] = cost
        return result


def _not_finite(motion: EquationOfMotion, stop: Stopped) -> str:
    """The first overlap whose derivative is not finite, by name; empty if all are."""
    with np.errstate(all="ignore"):
        Q, A, v = motion.weights(motion(stop.time, stop.state))
    parts = {"Q": Q.sum(-1), "R": A[:, : motion.M].sum(-1), "m": A[:, motion.M :].sum(-1), "v": v}
    for name, part in parts.items():
        wrong = np.argwhere(~np.isfinite(part))
        if wrong.size:
            return f"{name}[{', '.join(map(str, wrong[0].tolist()))}]"
    return ""


def attempt(
    motion: EquationOfMotion,
    problem: Problem,
    start: Start,
    times: Array,
    rtol: float,
    levels: bool = False,
    steps: type | None = None,
    parts: int = 1,
    budget: Budget | None = None,
) -> Attempt:
    """One solution by one rule and one tolerance; where it fails, the error carries the solution so far."""

    def trajectory(states: Array, at: Array, cost: str) -> Trajectory:
        Q, R, m, v = (np.array(part)[None] for part in zip(*(motion.totals(y) for y in states), strict=True))
        blocks = None
        if levels:
            weights = [motion.weights(y) for y in states]
            blocks = (
                np.array([np.moveaxis(q, -1, 0) for q, _, _ in weights])[None],
                np.array([np.moveaxis(a, -1, 0) for _, a, _ in weights])[None],
            )
        own = None
        if isinstance(motion, ComponentLevels):
            own = np.array([motion.covariances(y) for y in states])[None]
        return assemble(
            "macro", problem, start, at, Q, R, m, v, motion.method, levels=blocks, covariances=own, cost=cost
        )

    try:
        with np.errstate(all="ignore"):  # trial steps may overflow; accepted ones are checked
            solution = integrate(motion, motion.pack(start.Q, start.A, start.v), times, rtol, steps, parts, budget)
    except Stopped as stop:
        done = len(stop.states)
        Q, A, v = motion.weights(stop.state)
        quantity = largest_overlap(np.moveaxis(Q, -1, 0), np.moveaxis(A, -1, 0), v, motion.first, motion.seen, motion.M)
        grows = f"{stop.reason}: {quantity}"
        if stop.reason.startswith(NOT_FINITE):
            quantity = _not_finite(motion, stop) or quantity
            grows = f"training diverges: {stop.reason}, d{quantity.split(' =')[0]}/dt is no number"
        what = f"{grows} at time {stop.time:.6g}; reduce rate (now {motion.update.rate(stop.time):g})"
        if budget is not None and budget.exhausted:
            what = f"{stop.reason} beyond time {stop.time:.6g}; allow more of them, ask for less accuracy"
        raise NumericalError(
            f"macro: {what} or stop earlier",
            quantity=quantity.split(" =")[0],
            time=stop.time,
            partial=trajectory(np.array(stop.states), times[:done], "stopped early") if done else None,
        ) from None
    if solution.steps:
        check_rates(motion.update, solution.steps, float(np.abs(solution.states).max()), rtol)
    cost = f"{solution.evaluations} evaluations of the averages"
    return Attempt(trajectory(solution.states, times, cost), solution.states, solution.implicit)
