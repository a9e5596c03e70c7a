"""Which rule averages the fields: the cheapest that is as accurate as a solution needs.

A rule is as accurate as its averages are close to those of the independent rule, x and x′,

    gap = max |x − x′| / max(max |x|, 10⁻³)        over D, S, E[∂loss/∂v], error and E, and over given states.

Before a solution it is measured at the start; after one that is not accurate enough, along the solution, where the gap
has led to the error that was reached and has to be as many times smaller as that is too large.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..averages import ClosedForm, Method, SumForm, is_random, judge_of_fit, method_for
from ..averages.fit_residual import Corrected
from ..averages.quadrature import LossQuadrature
from ..averages.square_quadrature import SquareQuadrature
from ..interface.errors import NumericalError
from ..problem.start import Start
from ..problem.statement import Problem
from ..trajectory.refinement import Budget, Goal
from .motion import EquationOfMotion

Array = NDArray[np.float64]
COARSEST = 3  # how many refinements below the usual rule to begin with, where little accuracy is asked for
SAFETY = 10.0  # a solution may multiply the errors of its averages
MOST_TIMES = 100.0  # by which a difference of two fits is scaled up at most
MARGIN = 10.0  # how much further the truth may be from a fit than a fit of other terms is


class RuleChoice:
    """Rules for one equation of motion and one goal."""

    def __init__(self, problem: Problem, motion: EquationOfMotion, goal: Goal, budget: Budget) -> None:
        self.problem, self.motion, self.goal, self.budget = problem, motion, goal, budget
        self.quadrature: SquareQuadrature | LossQuadrature | None = None  # by which fits are judged

    def gap(self, how: Method, states: list[Array]) -> tuple[float, str]:
        """Largest relative difference of the averages from those of the independent rule, and of which average."""
        if isinstance(how, SumForm) and not how.exact:
            return self._gap_of_fit(how, states)
        return self._largest(how, how.check(), states)

    def _gap_of_fit(self, how: SumForm, states: list[Array]) -> tuple[float, str]:
        """For fits the difference from a quadrature, beyond four fields of what the fit leaves (`Corrected`).

        Fits of one more term and of one less may be off to the same side, which their difference does not see. A
        quadrature that is itself off by as much, as of steep activations, is refined before it judges; where no finer
        one is affordable, fits of other numbers of terms judge, with a margin.
        """
        judge = self.quadrature or judge_of_fit(self.problem, how)
        if isinstance(judge, Corrected):
            return self._largest(how, judge, states)
        gap = self._largest(how, judge, states)
        while gap[0] > self.goal.aim / SAFETY and self._largest(judge, judge.check(), states)[0] > gap[0] / 4:
            better = judge.finer()
            if better is None:
                other, name = self._largest(how, how.check(), states)
                return min(gap, (MARGIN * other, name))
            judge = better
            gap = self._largest(how, judge, states)
        self.quadrature = judge
        return gap

    def _largest(self, how: Method, other: Method | Corrected, states: list[Array]) -> tuple[float, str]:
        return max(self._apart(y, how, other) for y in states)

    def _apart(self, y: Array, how: Method, other: Method | Corrected) -> tuple[float, str]:
        """Largest relative difference of the averages of two rules at a state, and of which average."""
        if self.budget.exhausted:
            raise NumericalError(
                f"macro: {self.budget.exhausted} to choose a rule for the averages ({how.name}); allow more, or "
                "ask for less accuracy",
                quantity="S",
                time=0.0,
            )
        self.budget.spend(2)
        gaps: dict[str, float] = {}
        with np.errstate(all="ignore"):
            one, two = self.motion.averages(y, how), self.motion.averages(y, other)
            for name in ("D", "S", "dv", "error", "E"):
                a, b = np.asarray(getattr(one, name)), np.asarray(getattr(two, name))
                gap = float(np.abs(a - b).max() / max(np.abs(a).max(), 1e-3)) if a.size else 0.0
                gaps[name] = gap if np.isfinite(gap) else np.inf
        name = max(gaps, key=lambda n: gaps[n])
        return gaps[name], name

    def _some(self, states: Array) -> list[Array]:
        """A few of the states of a solution."""
        return list(states[np.unique(np.linspace(0, len(states) - 1, 5).astype(int))])

    def at_start(self, how: Method, start: Start) -> Method:
        """The cheapest rule that serves at the start; refused where rules do not converge, as at an unknown kink."""
        if isinstance(how, ClosedForm):
            return how
        states = [self.motion.pack(start.Q, start.A, start.v)]
        if isinstance(how, SumForm):
            return self._fitted(how, states, self.goal.aim / SAFETY)
        for _ in range(COARSEST):
            how = how.coarser()
        before, gap, name, stalled = np.inf, np.inf, "", False
        for refinement in range(-COARSEST, 1000):
            before, (gap, name) = gap, self.gap(how, states)
            better = how.finer()
            # differences of coarse rules mean little; from the usual rule on, a smooth integrand converges fast
            stalled = refinement > 0 and not gap <= before / how.gain
            if gap <= self.goal.aim / SAFETY or better is None or (stalled and gap > self.goal.accept):
                break
            how = better
        if gap <= self.goal.accept or not stalled:
            return how
        raise NumericalError(
            f"macro: the quadrature of {name} does not converge (independent rules differ by {before:.1e} at time 0, "
            f"finer ones by {gap:.1e}; {self.goal.accept:.1e} was asked; {how.name}); if the loss has a kink or grows "
            f"fast, name it in kinks= or smooth it, or pass accuracy={2 * gap:.0e}",
            quantity=name,
            time=0.0,
        )

    def after(self, how: Method, states: Array, reached: float) -> Method | None:
        """The cheapest finer rule that serves along the states of a solution, which has reached an accuracy.

        The rule itself where the steps are what limits the solution, None where the averages do and cannot be refined.
        """
        better = how.finer()
        if isinstance(how, ClosedForm) or (isinstance(how, SumForm) and how.exact):
            return better or how
        some = self._some(states)
        gap = self.gap(how, some)[0]
        if gap < 1e-2 * reached:
            return how
        wanted = gap * self.goal.aim / reached / 3
        if isinstance(how, SumForm):
            rule = self._fitted(how, some, wanted)
            return None if rule is how else rule
        while better is not None and self.gap(better, some)[0] > wanted:
            finer = better.finer()
            if finer is None:
                break
            better = finer
        return better

    def fit_error(self, how: Method, states: Array) -> tuple[float, float]:
        """Relative error of fitted averages along a solution, and how many times what another fit changes it is.

        The latter is one at least, and more where both fits are off to the same side. Zero and one for what is no fit.
        """
        if not isinstance(how, SumForm) or how.exact:
            return 0.0, 1.0
        some = self._some(states)
        gap = self.gap(how, some)[0]
        apart = self._largest(how, how.check(), some)[0]
        return gap, min(max(gap / max(apart, 1e-300), 1.0), MOST_TIMES)

    def _fitted(self, how: SumForm, states: list[Array], wanted: float) -> Method:
        """The fit of fewest terms whose averages are accurate enough; a better quadrature where the best fit is not."""
        while (gap := self.gap(how, states)[0]) > wanted and not how.exact:
            better = how.finer()
            if better is None:
                break
            how = better
        # an accuracy that is accepted does not justify a rule that costs a hundred times as much
        if gap <= max(wanted, self.goal.accept / SAFETY) or how.exact:
            return how
        quadrature = method_for(self.problem, how.teacher_readout, "quadrature")
        # random points are refined by solutions by many sets of them, which also judge them
        while (other := self.gap(quadrature, states)[0]) > wanted and not is_random(quadrature):
            finer = quadrature.finer()
            if finer is None:
                break
            quadrature = finer
        return quadrature if other < gap else how
