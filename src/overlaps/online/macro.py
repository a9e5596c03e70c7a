"""Macro: the limit N → ∞, an ordinary differential equation per eigenvalue of the input covariance.

The equation is in `overlaps.online.motion`, or in moments of the covariance in `overlaps.online.moments`. It is
integrated by an explicit Runge-Kutta method of order 8 (5 where averages jump), or the implicit one of
`overlaps.online.implicit` where levels are fast and times long; either lands on every requested time (no interpolation)
and on the knots of the rates. The whole solution is computed twice, with a looser tolerance and a coarser average the
second time; their difference is the accuracy stated.
"""

from __future__ import annotations

import time as clock
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import DOP853, RK45

from ..averages import ClosedForm, Method, method_for
from ..data import Samples
from ..interface.checks import grid, number
from ..interface.errors import InputError, NumericalError, unknown
from ..problem.network import Committee
from ..problem.start import LIMIT, Start
from ..problem.statement import Problem
from ..trajectory.dataset import Trajectory, assemble, largest_overlap
from .exact_mean import EXACT, solve_exact_mean
from .implicit import Radau, implicit_cost, is_stiff
from .labelled_rows import MEASURED, by_equivalent, measured_excess
from .moments import MomentHierarchy
from .motion import EquationOfMotion
from .strong_mixture import STRONG, WEAK, solve_strong_mixture

Array = NDArray[np.float64]
SYSTEMS: dict[str, type[EquationOfMotion]] = {"levels": EquationOfMotion, "moments": MomentHierarchy}


class _Stopped(Exception):
    """The integration could not go on: how far it came, and why."""

    def __init__(self, states: list[Array], time: float, state: Array, reason: str) -> None:
        super().__init__(reason)
        self.states, self.time, self.state, self.reason = states, time, state, reason


class Solution(NamedTuple):
    """States at the times asked for, (times, unknowns), the evaluations they took, and whether steps were implicit."""

    states: Array
    evaluations: int
    implicit: bool


def integrate(
    motion: EquationOfMotion, y: Array, times: Array, rtol: float, steps: type | None = None, parts: int = 1
) -> Solution:
    """The solution at `times` from y at time zero, by explicit steps or Radau: the cheaper, if not named.

    Knots of the rates are landed on and solved from anew, for the solution is not smooth there. Radau takes at least
    `parts` steps to each time: solutions whose steps are as long as times are apart, whatever the tolerance, could not
    tell their error from each other otherwise.
    """
    states: list[Array] = []
    knots = [t for t in motion.update.knots.tolist() if 0 < t < times[-1]]
    t, evaluations, implicit = 0.0, 0, False
    for end in [*knots, np.inf]:
        asked = times[(times <= end) & ((times > t) | (t == 0))]
        # a knot that nobody asked for is landed on as well
        targets = asked if (asked.size and asked[-1] == end) or end == np.inf else np.append(asked, end)
        stretch = _Stretch(motion.before(end), t, y, rtol, steps, parts, states, evaluations)
        for target in targets.tolist():
            stretch.reach(target, targets)
            if target in asked:
                states.append(stretch.y.copy())
        t, y, evaluations, implicit = stretch.t, stretch.y, stretch.total, implicit or stretch.kind is Radau
    return Solution(np.array(states), evaluations, implicit)


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
    ) -> None:
        self.motion, self.t, self.y, self.rtol, self.parts, self.states = motion, t, y, rtol, parts, states
        self.chosen, self.before = steps, before
        self.kind: Any = None
        self.solver: Any = None
        self.count, self.mark = 0, t
        if not np.isfinite(motion(t, y)).all():
            where = "at the start" if t == 0 else "at a knot of the rates"
            raise _Stopped(states, t, y, f"the equations are not finite {where}")

    @property
    def total(self) -> int:
        """Evaluations so far, with those before this stretch."""
        return self.before + (0 if self.solver is None else self.solver.nfev)

    def _begin(self, last: float, times: Array) -> None:
        """Choose how to take steps; a method of high order takes jumps of the averages for errors."""
        explicit = RK45 if self.motion.method.jumps else DOP853
        self.kind = self.chosen or (Radau if is_stiff(self.motion, self.t, self.y, times) else explicit)
        self.solver = self.kind(self.motion, self.t, self.y, last, rtol=self.rtol, atol=self.rtol * 1e-3)

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
            if self.total > self.motion.budget:
                raise self._stopped(f"{self.total} evaluations did not suffice")
            solver: Any = self.solver
            # shorten a step to land on the target, then go on with the step that accuracy allowed
            solver.t_bound, solver.status = target, "running"
            wanted = solver.h_abs
            if self.kind is Radau:
                solver.h_abs = min(wanted, (target - begin) / self.parts)
            message = solver.step()
            self.t, self.y = solver.t, solver.y
            if solver.status == "failed":
                raise self._stopped(message or "the step size became too small")
            self._check_state()
            if self.t == target or (self.kind is Radau and wanted * self.parts > target - begin):
                solver.h_abs = max(solver.h_abs, wanted)

    def _check_progress(self) -> None:
        if self.t - self.mark < 1e-6 * self.t:
            raise self._stopped("the solver makes no progress (overlaps at the edge of what is possible)")
        self.mark = self.t

    def _reconsider(self, last: float, targets: Array) -> None:
        """Turn to implicit steps where fast levels show late, as when a trained readout has grown."""
        if self.chosen is not None or self.kind is not DOP853:
            return
        ahead = 12 * (last - self.t) / self.solver.h_abs
        if ahead > 2 * implicit_cost(self.motion, int(np.count_nonzero(targets > self.t))):
            self.before, self.kind = self.total, Radau
            self.solver = Radau(self.motion, self.t, self.y, last, self.rtol, self.rtol * 1e-3)

    def _check_state(self) -> None:
        if not np.abs(self.y).max() < LIMIT:
            raise self._stopped("an overlap grew without bound")
        C = self.motion.covariance(self.y)
        low = float(np.linalg.eigvalsh(C)[0])
        # students on their teachers make it singular, so its sign may be lost within the tolerance, not beyond
        if low < -max(1e-7, 300 * self.rtol) * max(1.0, float(np.trace(C))):
            raise self._stopped(f"the covariance of the fields has the negative eigenvalue {low:.3g}")

    def _stopped(self, reason: str) -> _Stopped:
        return _Stopped(self.states, self.t, self.y, reason)


def solve(
    problem: Problem,
    start: Start,
    times: ArrayLike | None,
    *,
    levels: bool,
    accuracy: float | None,
    method: str,
    system: str,
) -> Trajectory:
    """The theory of a one-pass algorithm; see `overlaps.solve`."""
    if problem.learns_rows:
        if system == "auto":
            system = EXACT if problem.algorithm.draws_samples else "levels"
        if system == MEASURED:
            assert isinstance(problem.data, Samples)
            extra = measured_excess(problem.data)
            return by_equivalent(problem, lambda same: solve_exact_mean(same, start, grid(times), levels, extra))
        options = {"levels": levels, "accuracy": accuracy, "method": method, "system": system}
        return by_equivalent(problem, lambda equivalent: solve(equivalent, start, times, **options))
    if system == MEASURED:
        raise InputError(f"system: {MEASURED} are those of labelled rows; use Samples(X, y), or system='auto'")
    system = _system(problem, start, system, levels)
    t = grid(times)
    how = method_for(problem, start.u, method)
    asked = None if accuracy is None else number("accuracy", accuracy, above=0)
    if system == EXACT:
        return solve_exact_mean(problem, start, t, levels)
    if system == STRONG:
        return solve_strong_mixture(problem, start, t, how, asked)
    student = problem.student
    if not problem.data.components.variances.all() and isinstance(student, Committee) and student.g.kinks:
        raise InputError(
            f"variance: without noise a {student.g.name} network slides along its kinks, which these equations "
            "do not describe; use a small variance, or laws.xor_flow for the XOR mixture"
        )
    return _refined(problem, start, t, how, asked, SYSTEMS[system], levels)


def _system(problem: Problem, start: Start, system: str, levels: bool) -> str:
    """The system of equations that was asked for, or the one that serves; refused where it does not."""
    problem.data.check_theory(start.size)
    if not isinstance(system, str) or system not in ("auto", EXACT, STRONG, *SYSTEMS):
        raise unknown("system", str(system), ["auto", EXACT, MEASURED, STRONG, *SYSTEMS])
    strength = problem.data.mixture_strength(start.size)
    if system == "auto":
        system = "levels" if strength <= WEAK else STRONG
    if system == "levels" and strength > WEAK:
        raise InputError(
            f"system: components of this latent differ too much for one covariance (strength {strength:.2g}, at most "
            f"{WEAK:g}); use system='{STRONG}', or a smaller bound"
        )
    if levels and system not in ("levels", EXACT):
        instead = "leave levels out" if system == STRONG else "use system='levels'"
        raise InputError(f"levels: the {system} equations do not follow them; {instead}")
    return system


class _Attempt(NamedTuple):
    """One solution, and how it was found."""

    result: Trajectory
    evaluations: int
    implicit: bool


def _refined(
    problem: Problem,
    start: Start,
    times: Array,
    how: Method,
    accuracy: float | None,
    equation: type[EquationOfMotion],
    levels: bool,
) -> Trajectory:
    """Solutions with ever finer averages and steps, until two of them agree to the accuracy that was asked for."""
    began = clock.perf_counter()
    wanted = how.default_accuracy if accuracy is None else accuracy
    accepted = max(1e-6, 10 * wanted) if accuracy is None else wanted
    closed = isinstance(how, ClosedForm)
    least = 1e-4 if how.jumps else 1e-13
    rtol = max(least, wanted / (300 if closed else 10))
    if not closed:
        _check_quadrature(equation(problem, start, how), start, accepted)
    first, steps, parts = rtol, None, 1
    rough = _attempt(equation(problem, start, how.coarser()), problem, start, times, 30 * rtol, levels)
    evaluations, before = rough.evaluations, np.inf
    while True:
        parts *= 2
        fine = _attempt(equation(problem, start, how), problem, start, times, rtol, levels, steps, parts)
        evaluations += fine.evaluations
        measured, worst, reached = _measured(fine.result, rough.result, rtol)
        result = _labelled(fine.result, measured, evaluations, began)
        if reached <= wanted:
            return result
        better = how.finer()
        exhausted = better is None and rtol <= least
        # refining does not help; but between random points, which have no gain to keep, one comparison says little
        helpless = reached > before / how.gain and (how.gain > 1 or better is None)
        if exhausted or helpless:
            if reached <= accepted or not fine.implicit:
                break
            # implicit steps round differently for equal students, who part on a saddle; explicit ones keep them equal
            steps, rtol, before = DOP853, first, np.inf
            rough = _attempt(equation(problem, start, how.coarser()), problem, start, times, 30 * rtol, levels, steps)
            evaluations += rough.evaluations
            continue
        before, rough = reached, fine
        how, rtol = better or how, max(least, rtol / 30)
    if reached <= accepted:
        return result
    differences = np.abs((fine.result.data[worst] - rough.result.data[worst]).values[0]).reshape(times.size, -1)
    when = float(times[int(np.argmax(differences.max(1)))])
    raise NumericalError(
        f"macro: {worst} reached a relative accuracy of {reached:.1e} where {accepted:.1e} was asked (worst at "
        f"time {when:g}; averages: {how.name}); pass accuracy={reached * 1.5:.0e} to accept it",
        quantity=worst,
        time=when,
        partial=result,
    )


def _measured(fine: Trajectory, rough: Trajectory, rtol: float) -> tuple[dict[str, float], str, float]:
    """Accuracy of each variable, the variable that is worst relative to its largest value, and by how much."""
    scale = {name: max(float(np.abs(fine.data[name]).max()), 1e-3) for name in fine.variables}
    # where both take the same few long steps their difference says nothing: never claim more than the tolerance
    measured = {name: max(_difference(fine, rough, name), rtol * scale[name]) for name in scale}
    worst = max(measured, key=lambda name: measured[name] / scale[name])
    return measured, worst, measured[worst] / scale[worst]


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


def _attempt(
    motion: EquationOfMotion,
    problem: Problem,
    start: Start,
    times: Array,
    rtol: float,
    levels: bool,
    steps: type | None = None,
    parts: int = 1,
) -> _Attempt:
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
            solution = integrate(motion, motion.pack(start.Q, start.A, start.v), times, rtol, steps, parts)
    except _Stopped as stop:
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
    return _Attempt(trajectory(solution.states, times, cost), solution.evaluations, solution.implicit)


def _difference(a: Trajectory, b: Trajectory, name: str) -> float:
    return float(np.abs(a.data[name] - b.data[name]).max())


def _labelled(fine: Trajectory, measured: dict[str, float], evaluations: int, began: float) -> Trajectory:
    seconds = clock.perf_counter() - began
    data = fine.data.assign_attrs(cost=f"{evaluations} evaluations of the averages, {seconds:.2g} s")
    for name, value in measured.items():
        data[name].attrs["accuracy"] = value
    return replace(fine, data=data)
