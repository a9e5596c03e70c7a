"""Integration of the equation of motion, to land on given times.

dy/dt = f(t, y) is integrated by an explicit Runge-Kutta method of order 8 (5 where averages jump), or the implicit one
of `overlaps.online.implicit` where levels are fast and times long. Either lands on every requested time (no
interpolation) and on the knots of the rates.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import DOP853, RK45

from ..averages import ClosedForm
from ..problem.start import LIMIT
from ..trajectory.refinement import Budget
from .implicit import STAGES, Radau
from .motion import EquationOfMotion

Array = NDArray[np.float64]
LARGEST = 40  # most totals for which a Jacobian pays: those of K = M = 5
SMALL_STEP = 1e-9  # first step as a share of the time that is left, where none can be guessed; the solver lengthens it
NOT_FINITE = "the equations are not finite"


class Stopped(Exception):
    """The integration could not go on; carries the states so far, the time reached and the reason."""

    def __init__(self, states: list[Array], time: float, state: Array, reason: str) -> None:
        super().__init__(reason)
        self.states, self.time, self.state, self.reason = states, time, state, reason


class Step(NamedTuple):
    """A step from a time, its length, the largest |dy/dt| at its end, and its method."""

    time: float
    length: float
    slope: float
    kind: type


class Solution(NamedTuple):
    """States at the times asked for, (times, unknowns), the evaluations they took, and whether steps were implicit.

    steps: those taken, where rates change.
    """

    states: Array
    evaluations: int
    implicit: bool
    steps: list[Step]


def integrate(
    motion: EquationOfMotion,
    y: Array,
    times: Array,
    rtol: float,
    steps: type | None = None,
    parts: int = 1,
    budget: Budget | None = None,
    begin: float = 0.0,
) -> Solution:
    """The solution at `times` from y at the time `begin`, by explicit steps or Radau: the cheaper, if not named.

    Knots of the rates are landed on and solved from anew, for the solution is not smooth there. Radau takes at least
    `parts` steps to each time: solutions whose steps are as long as times are apart, whatever the tolerance, could not
    tell their error from each other otherwise.
    """
    budget = budget or Budget()
    budget.course.begin(float(times[-1]))
    states: list[Array] = []
    steps_taken: list[Step] = []
    knots = [t for t in motion.update.knots.tolist() if begin < t < times[-1]]
    t, evaluations, implicit = begin, 0, False
    for end in [*knots, np.inf]:
        asked = times[(times <= end) & ((times > t) | (t == begin))]
        # a knot that nobody asked for is landed on as well
        targets = asked if (asked.size and asked[-1] == end) or end == np.inf else np.append(asked, end)
        stretch = _Stretch(motion.before(end), t, y, rtol, steps, parts, states, evaluations, budget)
        stretch.taken = steps_taken
        for target in targets.tolist():
            stretch.reach(target, targets)
            if target in asked:
                states.append(stretch.y.copy())
        t, y, evaluations, implicit = stretch.t, stretch.y, stretch.total, implicit or stretch.kind is Radau
    return Solution(np.array(states), evaluations, implicit, steps_taken)


class _Stretch:
    """The solution between two knots."""

    def __init__(
        self,
        motion: EquationOfMotion,
        t: float,
        y: Array,
        rtol: float,
        steps: type | None,
        parts: int,
        states: list[Array],
        before: int,
        budget: Budget,
    ) -> None:
        self.motion, self.t, self.y, self.rtol, self.parts, self.states = motion, t, y, rtol, parts, states
        self.chosen, self.before, self.budget = steps, before, budget
        self.kind: Any = None
        self.solver: Any = None
        self.explicit: Any = DOP853
        self.count, self.mark = 0, t
        self.taken: list[Step] = []
        if not np.isfinite(self._within_budget(t, y)).all():
            where = "at the start" if t == 0 else "at a knot of the rates"
            raise Stopped(states, t, y, f"{NOT_FINITE} {where}")

    @property
    def total(self) -> int:
        """Evaluations so far, with those before this stretch."""
        return self.before + (0 if self.solver is None else self.solver.nfev)

    def _begin(self, last: float, times: Array) -> None:
        """Choose the method: of order 5 where averages jump, since error estimates of high order are large there."""
        self.explicit = RK45 if self.motion.method.jumps else DOP853
        self._use(self.chosen or (Radau if is_stiff(self.motion, self.t, self.y, times) else self.explicit), last)

    def _use(self, kind: Any, last: float) -> None:
        """Take steps of that kind from here on."""
        self.before, self.kind = self.total, kind
        # where one evaluation takes long, the budget is checked within a step as well
        dear = kind is not Radau and not isinstance(self.motion.method, ClosedForm)
        f: Any = self._within_budget if dear else self.motion
        self.solver = kind(f, self.t, self.y, last, rtol=self.rtol, atol=self.rtol * 1e-3)
        self.budget.spend(self.solver.nfev)
        if not np.isfinite(self.solver.f).all():
            raise self._stopped(NOT_FINITE)
        if not np.isfinite(self.solver.h_abs):
            # SciPy's guess of a first step left the domain and is NaN, with which its loop would never end
            self.solver.h_abs = SMALL_STEP * max(last - self.t, 1e-12)

    def _within_budget(self, t: float, y: Array) -> Array:
        """dy/dt, unless the budget is spent."""
        if self.budget.exhausted:
            raise self._stopped(self.budget.exhausted)
        return self.motion(t, y)

    def reach(self, target: float, targets: Array) -> None:
        """Go on to a time; `targets` are all of this stretch."""
        last = max(float(targets[-1]), 1e-12)
        if self.solver is None:
            self._begin(last, targets)
        begin = self.t
        while target > self.t:
            self.count += 1
            if self.count % 1000 == 0:
                self._check_progress()
            if self.count % 500 == 0:
                self._reconsider(last, targets)
            if self.budget.exhausted:
                raise self._stopped(self.budget.exhausted)
            solver: Any = self.solver
            # shorten a step to land on the target, then go on with the step that accuracy allowed
            solver.t_bound, solver.status = target, "running"
            wanted = solver.h_abs
            if self.kind is Radau:
                solver.h_abs = min(wanted, (target - begin) / self.parts)
            before, since = solver.nfev, self.t
            message = solver.step()
            self.budget.spend(solver.nfev - before)
            self.t, self.y = solver.t, solver.y
            self.budget.course.at(self.t)
            if solver.status == "failed":
                if self.kind is not Radau or self.chosen is not None:
                    raise self._stopped(message or "the step size became too small")
                self._use(self.explicit, last)  # fast growth is not stiffness; Newton's method may fail there
                continue
            self._check_state()
            if self.motion.update.changes:
                self.taken.append(Step(since, self.t - since, float(np.abs(solver.f).max()), self.kind))
            if self.t == target or (self.kind is Radau and wanted * self.parts > target - begin):
                solver.h_abs = max(solver.h_abs, wanted)

    def _check_progress(self) -> None:
        if self.t - self.mark < 1e-6 * self.t:
            raise self._stopped("the solver makes no progress (overlaps at the edge of what is possible)")
        self.mark = self.t

    def _reconsider(self, last: float, targets: Array) -> None:
        """Change to implicit steps where the equation becomes stiff on the way, as when a readout has grown."""
        if self.chosen is not None or self.kind is not DOP853:
            return
        ahead = 12 * (last - self.t) / self.solver.h_abs
        if ahead > 2 * implicit_cost(self.motion, int(np.count_nonzero(targets > self.t))):
            self._use(Radau, last)

    def _check_state(self) -> None:
        if not np.abs(self.y).max() < LIMIT:
            raise self._stopped("training diverges: an overlap grew without bound")
        C = self.motion.covariance(self.y)
        low = float(np.linalg.eigvalsh(C)[0])
        # it is singular once students equal teachers, so an eigenvalue may be negative by as much as the tolerance
        if low < -max(1e-7, 300 * self.rtol) * max(1.0, float(np.trace(C))):
            raise self._stopped(f"the covariance of the fields has the negative eigenvalue {low:.3g}")

    def _stopped(self, reason: str) -> Stopped:
        return Stopped(self.states, self.t, self.y, reason)


def implicit_cost(motion: EquationOfMotion, landings: int) -> float:
    """Evaluations that implicit steps to that many times are worth; infinite where they cannot be taken.

    They are for inputs of mean zero and rows that are weights alone.
    """
    columns = motion.K * (motion.K + 1) // 2 + motion.K * motion.M + motion.K * motion.trains_readout
    if type(motion)._move is not EquationOfMotion._move or columns > LARGEST or motion.F > motion.M or motion.J > 1:
        return np.inf
    # about 80 steps and one for every time to land on, each with a linearisation and two Newton iterations; linear
    # algebra makes an evaluation about five times as long as an explicit one
    return 5.0 * (80 + landings) * (columns + 2 * STAGES + 1)


def is_stiff(motion: EquationOfMotion, t: float, y: Array, times: Array) -> bool:
    """Whether implicit steps from t to all of `times` are cheaper than explicit ones, judged from the state at t."""
    cost = implicit_cost(motion, times.size)
    if not np.isfinite(cost):
        return False
    D = motion.method(motion.covariance(y), motion.unpack(y)[2]).D[:, : motion.K]
    rate = max(float(motion.flow(x).P[0]) for x in (t, times[0], times[-1]))
    fastest = 2 * rate * float(motion.omega.max()) * float(np.abs(np.linalg.eigvalsh((D + D.T) / 2)).max())
    # an explicit step of order eight takes 12 evaluations and is stable up to about 6/fastest
    return bool(12 * max(fastest * float(times[-1] - t) / 6, times.size) > cost)
