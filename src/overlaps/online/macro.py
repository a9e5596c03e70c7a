"""Macro: the limit N → ∞, an ordinary differential equation per eigenvalue of the input covariance.

The equation is in `overlaps.online.motion`, or in moments of the covariance in `overlaps.online.moments`. It is integrated by an
explicit Runge-Kutta method of order 8 (5 where averages jump), or the implicit one of `overlaps.online.implicit` where levels
are fast and times long; either lands on every requested time (no interpolation). The whole solution is computed twice,
with a looser tolerance and a coarser average the second time; their difference is the accuracy stated.
"""

from __future__ import annotations

import time as clock
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import DOP853, RK45

from ..algorithms import FullBatch
from ..averages import ClosedForm, Method, method_for
from ..data import HiddenManifold
from ..interface.checks import grid, number
from ..interface.errors import InputError, NumericalError, unknown
from ..problem.network import Committee
from ..problem.start import LIMIT, Start, check
from ..problem.statement import Problem
from ..trajectory.dataset import Trajectory, assemble, largest_overlap
from .implicit import Radau, implicit_cost, is_stiff
from .moments import MomentHierarchy
from .motion import EquationOfMotion
from .strong_mixture import WEAK, solve_conditional, strong

Array = NDArray[np.float64]
SYSTEMS: dict[str, type[EquationOfMotion]] = {"levels": EquationOfMotion, "moments": MomentHierarchy}


class _Stopped(Exception):
    """The integration could not go on: how far it came, and why."""

    def __init__(self, states: list[Array], time: float, state: Array, reason: str) -> None:
        super().__init__(reason)
        self.states, self.time, self.state, self.reason = states, time, state, reason


def integrate(
    motion: EquationOfMotion, y: Array, times: Array, rtol: float, steps: type | None = None, parts: int = 1
) -> Array:
    """States at `times`, (times, unknowns), from y at time zero, by explicit steps or Radau: the cheaper, if not named.

    Radau takes at least `parts` steps to each time: solutions whose steps are as long as times are apart, whatever the
    tolerance, could not tell their error from each other otherwise.
    """
    states: list[Array] = []
    t = 0.0
    if not np.isfinite(motion(0.0, y)).all():
        raise _Stopped(states, t, y, "the equations are not finite at the start")
    last, atol = max(float(times[-1]), 1e-12), rtol * 1e-3
    # a method of high order takes jumps of the averages for errors, and shortens its steps
    explicit = RK45 if motion.method.jumps else DOP853
    kind = steps or (Radau if is_stiff(motion, y, times) else explicit)
    solver = kind(motion, 0.0, y, last, rtol=rtol, atol=atol)
    count, mark = 0, 0.0
    for target in times:
        begin = t
        while target > t:
            count += 1
            if count % 1000 == 0:
                if t - mark < 1e-6 * t:
                    raise _Stopped(
                        states, t, y, "the solver makes no progress (overlaps at the edge of what is possible)"
                    )
                mark = t
            if count % 500 == 0 and steps is None and kind is DOP853:
                # fast levels may show late, as when a trained readout has grown
                ahead = 12 * (last - t) / solver.h_abs
                if ahead > 2 * implicit_cost(motion, int(np.count_nonzero(times > t))):
                    kind = Radau
                    solver = Radau(motion, t, y, last, rtol, atol)
            if motion.evaluations > motion.budget:
                raise _Stopped(states, t, y, f"{motion.evaluations} evaluations did not suffice")
            # shorten a step to land on the target, then go on with the step that accuracy allowed
            solver.t_bound, solver.status = float(target), "running"
            wanted = solver.h_abs
            if kind is Radau:
                solver.h_abs = min(wanted, (float(target) - begin) / parts)
            message = solver.step()
            t, y = solver.t, solver.y
            if solver.status == "failed":
                raise _Stopped(states, t, y, message or "the step size became too small")
            if not np.abs(y).max() < LIMIT:
                raise _Stopped(states, t, y, "an overlap grew without bound")
            C = motion.covariance(y)
            low = float(np.linalg.eigvalsh(C)[0])
            # students on their teachers make it singular, so its sign may be lost within the tolerance, not beyond
            if low < -max(1e-7, 300 * rtol) * max(1.0, float(np.trace(C))):
                raise _Stopped(states, t, y, f"the covariance of the fields has the negative eigenvalue {low:.3g}")
            if t == target or (kind is Radau and wanted * parts > target - begin):
                solver.h_abs = max(solver.h_abs, wanted)
        states.append(y.copy())
    motion.implicit = kind is Radau
    return np.array(states)


def solve(
    problem: Problem,
    start: Start,
    times: ArrayLike | None = None,
    *,
    levels: bool = False,
    accuracy: float | None = None,
    method: str = "auto",
    system: str = "auto",
) -> Trajectory:
    """The infinite-size theory of `problem` from `start`; `Samples` are taken as Gaussian.

    On a `HiddenManifold` it is that of Gaussian-equivalent inputs, with the features of `start` where it has a size. Of
    `FullBatch` it is dynamical mean-field theory, and its kernels are in the data (see `overlaps.full_batch`).

    Parameters
    ----------
    times: increasing times, in samples per input dimension; of `FullBatch` whole steps, all by default.
    levels: also record the overlaps of every level (`Q_levels`, `R_levels`).
    accuracy: largest error to accept, relative to the largest value of each variable; not reaching it is a
        `NumericalError`. By default 1e-9 is aimed at for closed forms, 1e-6 for tensor quadrature and 1e-3 for Sobol
        points, and the tightest solution is accepted up to 1e-6, 1e-5 and 1e-2: escaping a plateau amplifies rounding.
        Of `FullBatch` the error is that of sampling: 1e-3 is aimed at, and accepted up to 1e-2.
    method: how the Gaussian averages are evaluated: ``"auto"``, ``"closed"`` or ``"quadrature"``; how the responses of
        `FullBatch` are: ``"auto"``, ``"stein"`` or (for smooth losses) ``"response"``.
    system: ``"levels"``; ``"moments"`` for the moment hierarchy of the papers, which is good for few levels only;
        ``"conditional"`` for the equations of strong mixtures of latents (see `overlaps.online.strong_mixture`), accurate to 1e-2
        if no `accuracy` is named; or ``"auto"``: conditional for these, levels otherwise.
    """
    began = clock.perf_counter()
    check(problem, start)
    if isinstance(problem.algorithm, FullBatch):
        from ..full_batch import engine

        return engine.solve(problem, start, times, levels=levels, accuracy=accuracy, method=method, system=system)
    if isinstance(problem.data, HiddenManifold) and start.size is not None:
        problem.data.at(start.size).check_equivalence()
    strength = strong(problem, start)
    if not isinstance(system, str) or system not in ("auto", "conditional", *SYSTEMS):
        raise unknown("system", str(system), ["auto", "conditional", *SYSTEMS])
    if system == "auto":
        system = "levels" if strength is None else "conditional"
    if system == "levels" and strength is not None:
        raise InputError(
            f"system: components of this latent differ too much for one covariance (strength {strength:.2g}, at most "
            f"{WEAK:g}); use system='conditional', or a smaller bound"
        )
    if levels and system != "levels":
        instead = "leave levels out" if system == "conditional" else "use system='levels'"
        raise InputError(f"levels: the {system} equations do not follow them; {instead}")
    t = grid(times)
    how = method_for(problem, start.u, method)
    if system == "conditional":
        return solve_conditional(
            problem, start, t, how, None if accuracy is None else number("accuracy", accuracy, above=0)
        )
    equation = SYSTEMS[system]
    wanted = how.default_accuracy if accuracy is None else number("accuracy", accuracy, above=0)
    accepted = max(1e-6, 10 * wanted) if accuracy is None else wanted
    closed = isinstance(how, ClosedForm)
    least = 1e-4 if how.jumps else 1e-13
    rtol = max(least, wanted / (300 if closed else 10))
    student = problem.student
    if not problem.data.components.variances.all() and isinstance(student, Committee) and student.g.kinks:
        raise InputError(
            f"variance: without noise a {student.g.name} network slides along its kinks, which these equations "
            "do not describe; use a small variance, or laws.xor_flow for the XOR mixture"
        )
    if not closed:
        _check_quadrature(equation(problem, start, how), start, accepted)
    first, steps, parts = rtol, None, 1

    def attempt(how: Method, rtol: float) -> tuple[Trajectory, EquationOfMotion]:
        motion = equation(problem, start, how)
        return _attempt(motion, problem, start, t, rtol, levels, steps, parts), motion

    rough, motion = attempt(how.coarser(), 30 * rtol)
    evaluations = motion.evaluations
    before = np.inf
    while True:
        parts *= 2
        fine, motion = attempt(how, rtol)
        evaluations += motion.evaluations
        names = fine.variables
        scale = {name: max(float(np.abs(fine.data[name]).max()), 1e-3) for name in names}
        # where both take the same few long steps their difference says nothing: never claim more than the tolerance
        measured = {name: max(_difference(fine, rough, name), rtol * scale[name]) for name in names}
        worst = max(names, key=lambda name: measured[name] / scale[name])
        reached = measured[worst] / scale[worst]
        result = _labelled(fine, measured, evaluations, began)
        if reached <= wanted:
            return result
        better = how.finer()
        exhausted = better is None and rtol <= least
        # refining does not help; but between random points, which have no gain to keep, one comparison says little
        helpless = reached > before / how.gain and (how.gain > 1 or better is None)
        if exhausted or helpless:
            if reached <= accepted or not motion.implicit:
                break
            # implicit steps round differently for equal students, who part on a saddle; explicit ones keep them equal
            steps, rtol, before = DOP853, first, np.inf
            rough, motion = attempt(how.coarser(), 30 * rtol)
            evaluations += motion.evaluations
            continue
        before, rough = reached, fine
        how, rtol = better or how, max(least, rtol / 30)
    if reached <= accepted:
        return result
    apart = np.abs((fine.data[worst] - rough.data[worst]).values[0]).reshape(t.size, -1)
    when = float(t[int(np.argmax(apart.max(1)))])
    raise NumericalError(
        f"macro: {worst} reached a relative accuracy of {reached:.1e} where {accepted:.1e} was asked (worst at "
        f"time {when:g}; averages: {how.name}); pass accuracy={reached * 1.5:.0e} to accept it",
        quantity=worst,
        time=when,
        partial=result,
    )


def _check_quadrature(motion: EquationOfMotion, start: Start, accepted: float) -> None:
    """Refuse at once where rules do not converge at the start, as for a loss with a kink."""
    y, how = motion.pack(start.Q, start.A, start.v), motion.method

    def apart(how: Method) -> tuple[float, str]:
        a, b = motion.averages(y, how), motion.averages(y, how.coarser())
        names = ("D", "S", "dv", "error", "E")
        pairs = {name: (np.asarray(getattr(a, name)), np.asarray(getattr(b, name))) for name in names}
        gaps = {n: float(np.abs(x - y).max() / max(np.abs(x).max(), 1e-3)) for n, (x, y) in pairs.items() if x.size}
        name = max(gaps, key=lambda n: gaps[n] if np.isfinite(gaps[n]) else np.inf)
        return gaps[name], name

    with np.errstate(all="ignore"):
        gap, name = apart(how)
        if gap <= accepted or how.gain <= 1:
            return
        before = apart(how.coarser())[0]
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
) -> Trajectory:
    def trajectory(states: Array, at: Array) -> Trajectory:
        Q, R, m, v = (np.array(part)[None] for part in zip(*(motion.totals(y) for y in states), strict=True))
        blocks = None
        if levels:
            parts = [motion.unpack(y) for y in states]
            blocks = (
                np.array([np.moveaxis(q, -1, 0) for q, _, _ in parts])[None],
                np.array([np.moveaxis(a, -1, 0) for _, a, _ in parts])[None],
            )
        cost = f"{motion.evaluations} evaluations of the averages"
        return assemble("macro", problem, start, at, Q, R, m, v, motion.method, levels=blocks, cost=cost)

    try:
        with np.errstate(all="ignore"):  # trial steps may overflow; accepted ones are checked
            states = integrate(motion, motion.pack(start.Q, start.A, start.v), times, rtol, steps, parts)
    except _Stopped as stop:
        done = len(stop.states)
        Q, A, v = motion.unpack(stop.state)
        quantity = largest_overlap(np.moveaxis(Q, -1, 0), np.moveaxis(A, -1, 0), v, motion.first, motion.seen, motion.M)
        raise NumericalError(
            f"macro: {stop.reason}: {quantity} at time {stop.time:.6g}; reduce rate (now {motion.rate:g}) "
            "or stop earlier",
            quantity=quantity.split(" =")[0],
            time=stop.time,
            partial=trajectory(np.array(stop.states), times[:done]) if done else None,
        ) from None
    return trajectory(states, times)


def _difference(a: Trajectory, b: Trajectory, name: str) -> float:
    return float(np.abs(a.data[name] - b.data[name]).max())


def _labelled(fine: Trajectory, measured: dict[str, float], evaluations: int, began: float) -> Trajectory:
    seconds = clock.perf_counter() - began
    data = fine.data.assign_attrs(cost=f"{evaluations} evaluations of the averages, {seconds:.2g} s")
    for name, value in measured.items():
        data[name].attrs["accuracy"] = value
    return replace(fine, data=data)
