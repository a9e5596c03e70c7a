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

from ..averages import ClosedForm, Method, method_for
from ..interface.checks import grid
from ..interface.errors import InputError, NumericalError, unknown
from ..problem.network import Committee
from ..problem.start import Start
from ..problem.statement import Problem
from ..trajectory.budget import Budget
from ..trajectory.dataset import Trajectory, assemble, largest_overlap
from ..trajectory.refinement import Goal, Stated, differences, largest_values, refined
from .integration import Stopped, integrate
from .moments import MomentHierarchy
from .motion import EquationOfMotion
from .strong_mixture import STRONG, WEAK, solve_strong_mixture

Array = NDArray[np.float64]
SYSTEMS: dict[str, type[EquationOfMotion]] = {"levels": EquationOfMotion, "moments": MomentHierarchy}
CLOSED_EVALUATIONS, QUADRATURE_EVALUATIONS = 10**8, 60_000  # of a solution, where no number is named


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
    """The infinite-size theory of a one-pass algorithm; see `overlaps.solve`."""
    system = _system(problem, start, system, levels)
    t = grid(times)
    how = method_for(problem, start.u, method)
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
    return refined(_Equation(problem, start, t, SYSTEMS[system], levels, budget).attempts(how, goal), goal, budget)


def _system(problem: Problem, start: Start, system: str, levels: bool) -> str:
    """The system of equations that was asked for, or the one that serves; refused where it does not."""
    problem.data.check_theory(start.size)
    if not isinstance(system, str) or system not in ("auto", STRONG, *SYSTEMS):
        raise unknown("system", str(system), ["auto", STRONG, *SYSTEMS])
    strength = problem.data.mixture_strength(start.size)
    if system == "auto":
        system = "levels" if strength <= WEAK else STRONG
    if system == "levels" and strength > WEAK:
        raise InputError(
            f"system: components of this latent differ too much for one covariance (strength {strength:.2g}, at most "
            f"{WEAK:g}); use system='{STRONG}', or a smaller bound"
        )
    if levels and system != "levels":
        instead = "leave levels out" if system == STRONG else "use system='levels'"
        raise InputError(f"levels: the {system} equations do not follow them; {instead}")
    return system


class Attempt(NamedTuple):
    """One solution, and how it was found."""

    result: Trajectory
    evaluations: int
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
        """Solutions with ever finer averages and steps, each compared with the one before."""
        closed = isinstance(how, ClosedForm)
        least = 1e-4 if how.jumps else 1e-13
        rtol = max(least, goal.aim / (300 if closed else 10))
        if not closed:
            _check_quadrature(self.motion(how), self.start, goal.accept)
        first, steps, parts = rtol, None, 1
        rough, before = self.attempt(how.coarser(), 30 * rtol), np.inf
        while True:
            parts *= 2
            fine = self.attempt(how, rtol, steps, parts)
            stated = self._stated(fine.result, rough.result, rtol)
            yield stated
            better = how.finer()
            exhausted = better is None and rtol <= least
            # refining does not help; but between random points, which have no gain to keep, one comparison says little
            helpless = stated.reached > before / how.gain and (how.gain > 1 or better is None)
            if exhausted or helpless:
                if stated.reached <= goal.accept or not fine.implicit:
                    return
                # implicit steps round differently for equal students, who part on a saddle; explicit ones keep them
                # equal
                steps, rtol, before = DOP853, first, np.inf
                rough = self.attempt(how.coarser(), 30 * rtol, steps)
                continue
            before, rough = stated.reached, fine
            how, rtol = better or how, max(least, rtol / 30)

    def _stated(self, fine: Trajectory, rough: Trajectory, rtol: float) -> Stated:
        """The finer of two solutions, with their difference as its error."""
        budget = self.budget
        cost = f"{budget.spent} evaluations of the averages, {budget.elapsed:.2g} s"
        fine.data.attrs["cost"] = cost
        sizes = largest_values(fine)
        # where both take the same few long steps their difference says nothing: never claim more than the tolerance
        errors = {name: np.maximum(apart, rtol * sizes[name]) for name, apart in differences(fine, rough).items()}
        return Stated(fine, errors, sizes)


def _check_quadrature(motion: EquationOfMotion, start: Start, accepted: float) -> None:
    """Refuse at once where rules do not converge at the start, as for a loss with a kink."""
    y, how = motion.pack(start.Q, start.A, start.v), motion.method

    def difference(how: Method) -> tuple[float, str]:
        a, b = motion.averages(y, how), motion.averages(y, how.coarser())
        names = ("D", "S", "dv", "error", "E")
        pairs = {name: (np.asarray(getattr(a, name)), np.asarray(getattr(b, name))) for name in names}
        gaps = {n: float(np.abs(x - y).max() / max(np.abs(x).max(), 1e-3)) for n, (x, y) in pairs.items() if x.size}
        name = max(gaps, key=lambda n: gaps[n] if np.isfinite(gaps[n]) else np.inf)
        return gaps[name], name

    with np.errstate(all="ignore"):
        gap, name = difference(how)
        if gap <= accepted or how.gain <= 1:
            return
        before = difference(how.coarser())[0]
    # on a smooth integrand a finer rule gains orders of magnitude; at a kink it gains what its spacing does
    if not gap <= before / how.gain:
        raise NumericalError(
            f"macro: the quadrature of {name} does not converge (rules differ by {before:.1e} at time 0, finer ones by "
            f"{gap:.1e}; {accepted:.1e} was asked; {how.name}); if the loss has a kink or grows fast, smooth it, or "
            f"pass accuracy={2 * gap:.0e}",
            quantity=name,
            time=0.0,
        )


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
        raise NumericalError(
            f"macro: {stop.reason}: {quantity} at time {stop.time:.6g}; reduce rate (now "
            f"{motion.update.rate(stop.time):g}) or stop earlier",
            quantity=quantity.split(" =")[0],
            time=stop.time,
            partial=trajectory(np.array(stop.states), times[:done], "stopped early") if done else None,
        ) from None
    cost = f"{solution.evaluations} evaluations of the averages"
    return Attempt(trajectory(solution.states, times, cost), solution.evaluations, solution.implicit)
