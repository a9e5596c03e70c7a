"""Macro: the limit N → ∞, an ordinary differential equation per eigenvalue of the input covariance.

With the averages D = (D_λ, D_ν), S of the fields (see `overlaps.averages`), level b moves as

    dR_b/dt = −η ω_b (D_λ R_b + D_ν T_b) − η β R_b
    dQ_b/dt = −η ω_b (D_λ Q_b + D_ν R_bᵀ + transpose) − 2 η β Q_b + η² ω_b φ_b S
    dv/dt   = −η_v (E[∂loss/∂v] + β v)

in time t = steps/N; gradient flow has no η² term. Levels meet only in the averages, so a thousand of them are as well conditioned as one.
Integrated by an explicit Runge-Kutta method of order 8 that lands on every requested time (no interpolation).
The whole solution is computed twice, with a looser tolerance and a coarser average the second time; their difference is
the reported accuracy.
"""

from __future__ import annotations

import time as clock
from dataclasses import replace

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import DOP853

from .algorithms import OnlineSGD
from .averages import ClosedForm, Method, method_for
from .checks import grid, number
from .errors import NumericalError
from .problem import Problem
from .start import LIMIT, Start, check
from .trajectory import VARIABLES, Trajectory, assemble, largest_overlap

Array = NDArray[np.float64]


class EquationOfMotion:
    """Right-hand side; the state is (Q, R, v) with the level as last axis, so that levels are contiguous."""

    def __init__(self, problem: Problem, start: Start, method: Method) -> None:
        self.method = method
        self.rate, self.decay = problem.algorithm.rate, problem.algorithm.decay
        self.readout_rate = problem.readout_rate
        self.noise = self.rate if isinstance(problem.algorithm, OnlineSGD) else 0.0
        self.omega = problem.data.eigenvalues
        self.phi = start.fractions
        self.T = np.moveaxis(start.T, 0, -1)
        self.total_T = self.T @ self.omega
        self.K, self.M, self.B = start.R.shape[1], start.R.shape[2], self.omega.size
        self.evaluations = 0
        # a quadrature with a kink in it makes the right-hand side jump, and the solver's steps endless
        self.budget = 10**8 if isinstance(method, ClosedForm) else 30_000

    def pack(self, Q: Array, R: Array, v: Array) -> Array:
        """State vector from Q (levels, K, K), R (levels, K, M), v (K,)."""
        return np.concatenate([np.moveaxis(Q, 0, -1).ravel(), np.moveaxis(R, 0, -1).ravel(), v])

    def unpack(self, y: Array) -> tuple[Array, Array, Array]:
        """Q (K, K, levels), R (K, M, levels), v (K,): views of the state vector."""
        K, M, B = self.K, self.M, self.B
        q, r = K * K * B, K * M * B
        return y[:q].reshape(K, K, B), y[q : q + r].reshape(K, M, B), y[q + r :]

    def covariance(self, y: Array) -> Array:
        """Covariance of the fields (λ, ν), (K+M, K+M); filled in place, for it is a good part of an evaluation."""
        K = self.K
        Q, R, _ = self.unpack(y)
        C = np.empty((K + self.M, K + self.M))
        C[:K, :K] = Q @ self.omega
        C[:K, K:] = R @ self.omega
        C[K:, :K] = C[:K, K:].T
        C[K:, K:] = self.total_T
        return C

    def __call__(self, t: float, y: Array) -> Array:
        self.evaluations += 1
        Q, R, v = self.unpack(y)
        C = self.covariance(y)
        if not np.isfinite(C).all():
            return np.full_like(y, np.nan)  # a trial step too far: the solver shortens it
        a = self.method(C, v)
        dy = np.empty_like(y)
        dQ, dR, dv = self.unpack(dy)
        _move_levels(Q, R, self.T, a.D, a.S, self.omega, self.noise * self.phi, self.rate, self.decay, dQ, dR)
        dv[:] = -self.readout_rate * (a.dv + self.decay * v)
        return dy


@njit(cache=True)
def _move_levels(Q, R, T, D, S, omega, noise, rate, decay, dQ, dR):  # pragma: no cover - compiled
    """dQ/dt and dR/dt of all levels, written into dQ (K, K, levels) and dR (K, M, levels)."""
    K, M, B = R.shape
    pull = np.empty(B)
    for i in range(K):
        for m in range(M):
            pull[:] = 0.0
            for k in range(K):
                for b in range(B):
                    pull[b] += D[i, k] * R[k, m, b]
            for n in range(M):
                for b in range(B):
                    pull[b] += D[i, K + n] * T[n, m, b]
            for b in range(B):
                dR[i, m, b] = -rate * (omega[b] * pull[b] + decay * R[i, m, b])
        for j in range(i + 1):
            pull[:] = 0.0
            for k in range(K):
                for b in range(B):
                    pull[b] += D[i, k] * Q[k, j, b] + D[j, k] * Q[k, i, b]
            for n in range(M):
                for b in range(B):
                    pull[b] += D[i, K + n] * R[j, n, b] + D[j, K + n] * R[i, n, b]
            for b in range(B):
                dQ[i, j, b] = -rate * (omega[b] * (pull[b] - noise[b] * S[i, j]) + 2.0 * decay * Q[i, j, b])
                dQ[j, i, b] = dQ[i, j, b]


class _Stopped(Exception):
    """The integration could not go on: how far it came, and why."""

    def __init__(self, states: list[Array], time: float, state: Array, reason: str) -> None:
        super().__init__(reason)
        self.states, self.time, self.state, self.reason = states, time, state, reason


def integrate(motion: EquationOfMotion, y: Array, times: Array, rtol: float) -> Array:
    """States at `times`, (times, unknowns), from state y at time zero."""
    states: list[Array] = []
    t = 0.0
    if not np.isfinite(motion(0.0, y)).all():
        raise _Stopped(states, t, y, "the equations are not finite at the start")
    solver = DOP853(motion, 0.0, y, max(float(times[-1]), 1e-12), rtol=rtol, atol=rtol * 1e-3)
    steps, mark = 0, 0.0
    for target in times:
        while target > t:
            steps += 1
            if steps % 1000 == 0:
                if t - mark < 1e-6 * t:
                    raise _Stopped(
                        states, t, y, "the solver makes no progress (overlaps at the edge of what is possible)"
                    )
                mark = t
            if motion.evaluations > motion.budget:
                raise _Stopped(states, t, y, f"{motion.evaluations} evaluations did not suffice")
            # shorten a step to land on the target, then go on with the step that accuracy allowed
            solver.t_bound, solver.status = float(target), "running"
            wanted = solver.h_abs
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
            if t == target:
                solver.h_abs = max(solver.h_abs, wanted)
        states.append(y.copy())
    return np.array(states)


def solve(
    problem: Problem,
    start: Start,
    times: ArrayLike,
    *,
    levels: bool = False,
    accuracy: float | None = None,
    method: str = "auto",
) -> Trajectory:
    """The infinite-size theory of `problem` from `start`.

    Parameters
    ----------
    times: increasing times, in samples per input dimension.
    levels: also record the overlaps of every level (`Q_levels`, `R_levels`).
    accuracy: largest error to accept, relative to the largest value of each variable; not reaching it is a
        `NumericalError`. By default 1e-9 is aimed at for closed forms, 1e-6 for tensor quadrature and 1e-3 for Sobol
        points, and the tightest solution is accepted up to 1e-6, 1e-5 and 1e-2: escaping a plateau amplifies rounding.
    method: how the Gaussian averages are evaluated: ``"auto"``, ``"closed"`` or ``"quadrature"``.
    """
    began = clock.perf_counter()
    check(problem, start)
    t = grid(times)
    how = method_for(problem, start.u, method)
    wanted = how.default_accuracy if accuracy is None else number("accuracy", accuracy, above=0)
    accepted = max(1e-6, 10 * wanted) if accuracy is None else wanted
    closed = isinstance(how, ClosedForm)
    rtol = max(1e-13, wanted / (300 if closed else 10))
    if not closed:
        _check_quadrature(EquationOfMotion(problem, start, how), start, accepted)
    rough, evaluations = _attempt(problem, start, t, how.coarser(), 30 * rtol, levels)
    before = np.inf
    while True:
        fine, more = _attempt(problem, start, t, how, rtol, levels)
        evaluations += more
        scale = {name: max(float(np.abs(fine.data[name]).max()), 1e-3) for name in VARIABLES}
        # where both take the same few long steps their difference says nothing: never claim more than the tolerance
        measured = {name: max(_difference(fine, rough, name), rtol * scale[name]) for name in VARIABLES}
        worst = max(VARIABLES, key=lambda name: measured[name] / scale[name])
        reached = measured[worst] / scale[worst]
        result = _labelled(fine, measured, evaluations, began)
        if reached <= wanted:
            return result
        better = how.finer()
        exhausted = better is None and rtol <= 1e-13
        if exhausted or reached > before / how.gain:  # or refining does not help
            break
        before, rough = reached, fine
        how, rtol = better or how, max(1e-13, rtol / 30)
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
    C, how = motion.covariance(motion.pack(start.Q, start.R, start.v)), motion.method

    def apart(how: Method) -> tuple[float, str]:
        a, b = how(C, start.v), how.coarser()(C, start.v)
        pairs = {
            name: (np.asarray(getattr(a, name)), np.asarray(getattr(b, name))) for name in ("D", "S", "dv", "error")
        }
        gaps = {n: float(np.abs(x - y).max() / max(np.abs(x).max(), 1e-3)) for n, (x, y) in pairs.items()}
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
    problem: Problem, start: Start, times: Array, how: Method, rtol: float, levels: bool
) -> tuple[Trajectory, int]:
    motion = EquationOfMotion(problem, start, how)

    def trajectory(states: Array, at: Array) -> Trajectory:
        parts = [motion.unpack(y) for y in states]
        Q = np.array([q @ motion.omega for q, _, _ in parts])[None]
        R = np.array([r @ motion.omega for _, r, _ in parts])[None]
        v = np.array([v for _, _, v in parts])[None]
        blocks = None
        if levels:
            blocks = (
                np.array([np.moveaxis(q, -1, 0) for q, _, _ in parts])[None],
                np.array([np.moveaxis(r, -1, 0) for _, r, _ in parts])[None],
            )
        cost = f"{motion.evaluations} evaluations of the averages"
        return assemble("macro", problem, start, at, Q, R, v, how, levels=blocks, cost=cost)

    try:
        with np.errstate(all="ignore"):  # trial steps may overflow; accepted ones are checked
            states = integrate(motion, motion.pack(start.Q, start.R, start.v), times, rtol)
    except _Stopped as stop:
        done = len(stop.states)
        Q, R, v = motion.unpack(stop.state)
        quantity = largest_overlap(np.moveaxis(Q, -1, 0), np.moveaxis(R, -1, 0), v, motion.omega)
        raise NumericalError(
            f"macro: {stop.reason}: {quantity} at time {stop.time:.6g}; reduce rate (now {motion.rate:g}) "
            "or stop earlier",
            quantity=quantity.split(" =")[0],
            time=stop.time,
            partial=trajectory(np.array(stop.states), times[:done]) if done else None,
        ) from None
    return trajectory(states, times), motion.evaluations


def _difference(a: Trajectory, b: Trajectory, name: str) -> float:
    return float(np.abs(a.data[name] - b.data[name]).max())


def _labelled(fine: Trajectory, measured: dict[str, float], evaluations: int, began: float) -> Trajectory:
    seconds = clock.perf_counter() - began
    data = fine.data.assign_attrs(cost=f"{evaluations} evaluations of the averages, {seconds:.2g} s")
    for name, value in measured.items():
        data[name].attrs["accuracy"] = value
    return replace(fine, data=data)
