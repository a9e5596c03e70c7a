"""Macro: the limit N → ∞, an ordinary differential equation per eigenvalue of the input covariance.

The equation is in `overlaps.online.motion`, or in moments of the covariance in `overlaps.online.moments`, and
integrated by `overlaps.online.integration`. The whole solution is computed twice, with a looser tolerance and a coarser
average the second time; their difference is the accuracy stated, and both are refined until it is as small as asked
(`overlaps.trajectory.refinement`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import DOP853

from ..averages import ClosedForm, Method, SumForm, method_for
from ..interface.checks import grid, number
from ..interface.errors import InputError, NumericalError, unknown
from ..problem.network import Committee
from ..problem.start import Start
from ..problem.statement import Problem
from ..trajectory.budget import Budget
from ..trajectory.dataset import Trajectory, assemble, largest_overlap
from ..trajectory.refinement import Goal, Stated, differences, largest_values, refined
from .exact_mean import EXACT, solve_exact_mean
from .integration import Stopped, integrate
from .labelled_rows import MEASURED, by_equivalent, measured_excess
from .moments import MomentHierarchy
from .motion import EquationOfMotion
from .rule_choice import RuleChoice
from .strong_mixture import STRONG, solve_strong_mixture
from .weak_mixture import WEAK, levels_serve, with_left_out

Array = NDArray[np.float64]
SYSTEMS: dict[str, type[EquationOfMotion]] = {"levels": EquationOfMotion, "moments": MomentHierarchy}
CLOSED_EVALUATIONS, QUADRATURE_EVALUATIONS = 10**8, 60_000  # of a solution, where no number is named
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
    if problem.learns_rows:
        if system == "auto":
            system = EXACT if problem.algorithm.draws_samples else "levels"
        if system == MEASURED:
            if accuracy is not None or method != "auto":
                name = "method" if accuracy is None else "accuracy"
                raise InputError(f"{name}: {MEASURED} is a recursion without quadratures; leave {name} out")
            extra = measured_excess(problem.data)
            return by_equivalent(problem, lambda same: solve_exact_mean(same, start, grid(times), levels, extra))
        options = {"levels": levels, "accuracy": accuracy, "method": method, "system": system, "budget": budget}
        return by_equivalent(problem, lambda equivalent: solve(equivalent, start, times, **options))
    if system == MEASURED:
        raise InputError(f"system: {MEASURED} are those of labelled rows; use Samples(X, y), or system='auto'")
    accuracy = None if accuracy is None else number("accuracy", accuracy, above=0)
    system = _system(problem, start, system, levels, accuracy)
    result = _solved(
        problem, start, grid(times), method_for(problem, start.u, method), system, levels, accuracy, budget
    )
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
        return solve_exact_mean(problem, start, t, levels)
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
    return with_left_out(refined(equation.attempts(how, goal), goal, budget), problem, start, accuracy)


def _system(problem: Problem, start: Start, system: str, levels: bool, accuracy: float | None) -> str:
    """The system of equations that was asked for, or the one that serves; refused where it does not."""
    problem.data.check_theory(start.size)
    if not isinstance(system, str) or system not in ("auto", EXACT, STRONG, *SYSTEMS):
        raise unknown("system", str(system), ["auto", EXACT, MEASURED, STRONG, *SYSTEMS])
    strength = problem.data.mixture_strength(start.size)
    if system == "auto":
        system = "levels" if levels_serve(problem, start, accuracy) else STRONG
    if system == "levels" and strength > WEAK:
        raise InputError(
            f"system: components of this latent differ too much for one covariance (strength {strength:.2g}, at most "
            f"{WEAK:g}); use system='{STRONG}', or a smaller bound"
        )
    if levels and system not in ("levels", EXACT):
        instead = "leave levels out" if system == STRONG else "use system='levels'"
        raise InputError(f"levels: the {system} equations do not follow them; {instead}")
    return system


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
        return self.system(self.problem, self.start, how)

    def attempt(self, how: Method, rtol: float, steps: type | None = None, parts: int = 1) -> Attempt:
        return attempt(
            self.motion(how), self.problem, self.start, self.times, rtol, self.levels, steps, parts, self.budget
        )

    def attempts(self, how: Method, goal: Goal) -> Iterator[Stated]:
        """Solutions with ever finer averages and steps, each judged by one that shares neither.

        Averages in closed form have no error, so that a solution is judged by the one before.
        """
        closed = how.finer() is None and (isinstance(how, ClosedForm) or (isinstance(how, SumForm) and how.exact))
        least = 1e-4 if how.jumps else 1e-13
        rtol = min(max(least, goal.aim / (300 if isinstance(how, ClosedForm) else 10)), LOOSEST)
        choice = RuleChoice(self.problem, self.motion(how), goal)
        how = choice.at_start(how, self.start)
        first, steps, parts = rtol, None, 1
        others, before = self._judges(how, rtol), np.inf
        while True:
            parts *= 2
            fine = self.attempt(how, rtol, steps, parts)
            least_error = max(rtol, choice.fit_error(how, fine.states))
            stated = self._stated(fine.result, [other.result for other in others], least_error, 1 if closed else 2)
            yield stated
            better = choice.after(how, fine.states, stated.reached)
            exhausted = better is None or (better is how and rtol <= least)
            # refining does not help; but between random points, which have no gain to keep, one comparison says little
            helpless = stated.reached > before / how.gain and (how.gain > 1 or better is None)
            if better is None or exhausted or helpless:
                if stated.reached <= goal.accept or not fine.implicit:
                    return
                # implicit steps round differently for equal students, who part on a saddle; explicit ones keep them
                # equal
                steps, rtol, before = DOP853, first, np.inf
                others = self._judges(how, rtol, steps)
                continue
            before, how, rtol = stated.reached, better, max(least, rtol / 30)
            others = [fine] if closed else self._judges(how, rtol, steps)

    def _judges(self, how: Method, rtol: float, steps: type | None = None) -> list[Attempt]:
        """Solutions by looser steps and independent averages: one, or three where points are random.

        Random points err by chance, and may agree by chance: three sets of fewer points all do once in a hundred times.
        """
        rules = [how.check()]
        if how.gain <= 1:
            rules = [how.coarser().check(), how.coarser().coarser(), how.coarser().coarser().check()]
        return [self.attempt(rule, 30 * rtol, steps) for rule in rules]

    def _stated(self, fine: Trajectory, others: list[Trajectory], least: float, factor: int) -> Stated:
        """A solution, with a multiple of its largest difference from others as its error.

        least: what is stated at least, relative. factor: two where averages may be off on both sides by about the same.
        """
        budget = self.budget
        fine.data.attrs["cost"] = f"{budget.spent} evaluations of the averages, {budget.elapsed:.2g} s"
        sizes = largest_values(fine)
        apart = [differences(fine, other) for other in others]
        # where all take the same few long steps their difference says nothing: never claim more than the tolerance
        errors = {
            name: np.maximum(factor * np.max([one[name] for one in apart], axis=0), least * size)
            for name, size in sizes.items()
        }
        return Stated(fine, errors, sizes)


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
    """One solution by one way of averaging and one tolerance; trouble is an error with what came before."""

    def trajectory(states: Array, at: Array, cost: str) -> Trajectory:
        Q, R, m, v = (np.array(part)[None] for part in zip(*(motion.totals(y) for y in states), strict=True))
        blocks = None
        if levels:
            weights = [motion.weights(y) for y in states]
            blocks = (
                np.array([np.moveaxis(q, -1, 0) for q, _, _ in weights])[None],
                np.array([np.moveaxis(a, -1, 0) for _, a, _ in weights])[None],
            )
        return assemble("macro", problem, start, at, Q, R, m, v, motion.method, levels=blocks, cost=cost)

    try:
        with np.errstate(all="ignore"):  # trial steps may overflow; accepted ones are checked
            solution = integrate(motion, motion.pack(start.Q, start.A, start.v), times, rtol, steps, parts, budget)
    except Stopped as stop:
        done = len(stop.states)
        Q, A, v = motion.weights(stop.state)
        quantity = largest_overlap(np.moveaxis(Q, -1, 0), np.moveaxis(A, -1, 0), v, motion.first, motion.seen, motion.M)
        what = f"{stop.reason}: {quantity} at time {stop.time:.6g}; reduce rate (now {motion.update.rate(stop.time):g})"
        if budget is not None and budget.exhausted:
            what = f"{stop.reason} beyond time {stop.time:.6g}; allow more of them, ask for less accuracy"
        raise NumericalError(
            f"macro: {what} or stop earlier",
            quantity=quantity.split(" =")[0],
            time=stop.time,
            partial=trajectory(np.array(stop.states), times[:done], "stopped early") if done else None,
        ) from None
    cost = f"{solution.evaluations} evaluations of the averages"
    return Attempt(trajectory(solution.states, times, cost), solution.states, solution.implicit)
