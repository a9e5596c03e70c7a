"""Implicit steps for the equation of motion, where its fastest level is far faster than what happens.

Explicit steps are as short as the decay of the level of largest eigenvalue, long after that level has come to rest.
Radau IIA collocation with five stages (order 9) has no such limit. With stages Z_i = y(t + c_i h) − y(t) it solves

    (A⁻¹ ⊗ 1) Z/h = f(y + Z)

by Newton steps. In the eigenbasis of A⁻¹ these need (s − J)⁻¹ for one real and two complex numbers s, and J has
structure: given the averages, level b moves by itself, through D_λ alone; and averages depend on the state only through
the totals. So J = J₀ + U P with J₀ diagonal in the eigenbasis of D_λ, level by level, P the totals and U their effect,
a matrix of K(K+1)/2 + KM columns (and K for a trained readout). A solution costs O(levels), like an evaluation.

Reference: Hairer and Wanner, Solving Ordinary Differential Equations II, IV.8.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .motion import EquationOfMotion

Array = NDArray[np.float64]
Vector = NDArray[Any]  # real or complex
STAGES = 5


class Collocation:
    """Nodes c, A⁻¹ = T diag(λ) T⁻¹ with the real λ first, and the embedded error estimate, of Radau IIA."""

    def __init__(self, stages: int) -> None:
        legendre = np.polynomial.legendre.Legendre
        # right Radau nodes: roots of P_s − P_{s−1} on [−1, 1], moved to [0, 1]
        nodes = (legendre.basis(stages) - legendre.basis(stages - 1)).roots()
        self.c = (np.sort(nodes.real) + 1) / 2
        powers = np.arange(stages)
        vandermonde = self.c[:, None] ** powers
        A = (self.c[:, None] ** (powers + 1) / (powers + 1)) @ np.linalg.inv(vandermonde)
        inverse = np.linalg.inv(A)
        values, T = np.linalg.eig(inverse)
        order = np.argsort(np.abs(np.imag(values)), kind="stable")
        values, T = values[order], T[:, order]
        left = np.linalg.inv(T)
        # one real, and one of each complex pair
        keep = [i for i in range(stages) if i == 0 or values[i].imag > 0]
        self.inverse, self.values = inverse, values[keep]
        self.T, self.left = T[:, keep], left[keep]
        self.gamma = 1 / float(values[0].real)
        moments = 1 / (powers + 1)
        moments[0] -= self.gamma
        embedded = np.linalg.solve(vandermonde.T, moments)
        self.e = (embedded - A[-1]) @ inverse

    def extended(self, Z: Array, ratio: float) -> Array:
        """Stages of the next step, `ratio` times as long, from the polynomial of this one."""
        points = np.append(0.0, self.c)
        values = np.concatenate([np.zeros((1, Z.shape[1])), Z])
        at = 1 + ratio * self.c
        basis = np.array([[np.prod([(x - q) / (p - q) for q in points if q != p]) for p in points] for x in at])
        return basis @ values - Z[-1]


@cache
def collocation() -> Collocation:
    """The coefficients, computed once."""
    return Collocation(STAGES)


class Linearised:
    """J at a state, as something that solves (s − J) x = r for any s."""

    def __init__(self, motion: EquationOfMotion, t: float, y: Array) -> None:
        self.motion, self.flow = motion, motion.flow(t)
        C, v = motion.covariance(y), motion.unpack(y)[2]
        at = motion.method(C, v)
        here = motion.derivative(y, at, self.flow)
        K = motion.K
        self.D_nu = at.D[:, K:]
        self.mu, self.V = np.linalg.eigh((at.D[:, :K] + at.D[:, :K].T) / 2)
        self.upper = np.triu_indices(K)
        entries = [*zip(*self.upper, strict=True), *((i, K + n) for i in range(K) for n in range(motion.M))]
        columns = [self._effect(y, C, v, here, i, j) for i, j in entries]
        if motion.trains_readout:
            small = 1e-7 * max(1.0, float(np.abs(v).max()))
            moved = [motion.method(C, w) for w in v + small * np.eye(K)]
            columns += [(motion.derivative(y, a, self.flow) - here) / small for a in moved]
        self.U = np.array(columns).T
        self.evaluations = len(columns) + 1
        self.shifts: dict[complex, tuple[Vector, Vector]] = {}

    def _effect(self, y: Array, C: Array, v: Array, here: Array, i: int, j: int) -> Array:
        """∂f/∂C_ij by a difference that keeps C symmetric."""
        small = 1e-7 * float(np.sqrt(1 + C[i, i]) * np.sqrt(1 + C[j, j]))
        moved = C.copy()
        moved[i, j] += small
        if i != j:
            moved[j, i] += small
        return (self.motion.derivative(y, self.motion.method(moved, v), self.flow) - here) / small

    def totals(self, x: Vector) -> Vector:
        """P x, (p,) or (p, columns)."""
        motion = self.motion
        Q, R, v = motion.unpack(x)
        parts = [
            np.tensordot(motion.first, Q, (0, 2))[self.upper],
            np.tensordot(motion.seen, R, (0, 2)).reshape(motion.K * motion.M, *x.shape[1:]),
        ]
        if motion.trains_readout:
            parts.append(v)
        return np.concatenate(parts)

    def alone(self, s: complex, r: Vector) -> Vector:
        """(s − J₀)⁻¹ r for r (unknowns,) or (unknowns, columns)."""
        m = self.motion
        more = (1,) * (r.ndim - 1)
        Q, R, v = m.unpack(r)
        omega = m.omega.reshape(-1, *more)
        rate, base = self.flow.P[0], s - self.flow.M[0, 0]
        speed = rate * omega * self.mu.reshape(-1, 1, 1, *more)  # (K, 1, levels, ...)
        R = np.tensordot(self.V.T, R, 1) / (base + speed)
        R = np.tensordot(self.V, R, 1)
        cross = rate * m.seen.reshape(-1, *more) * np.tensordot(self.D_nu, R, (1, 1))
        Q = self._turned(self.V.T, Q - cross - np.swapaxes(cross, 0, 1))
        Q = self._turned(self.V, Q / (base - self.flow.M[0, 0] + speed + np.swapaxes(speed, 0, 1)))
        v = v / (s - self.flow.M_readout[0, 0])
        return np.concatenate([Q.reshape(-1, *r.shape[1:]), R.reshape(-1, *r.shape[1:]), v])

    @staticmethod
    def _turned(V: Array, Q: Vector) -> Vector:
        """V Q Vᵀ in the first two axes."""
        return np.swapaxes(np.tensordot(V, np.swapaxes(np.tensordot(V, Q, 1), 0, 1), 1), 0, 1)

    def solve(self, s: complex, r: Vector) -> Vector:
        """(s − J)⁻¹ r, r (unknowns,), by the formula of Woodbury."""
        if s not in self.shifts:
            spread = self.alone(s, self.U)
            self.shifts[s] = spread, np.linalg.inv(np.eye(spread.shape[1]) - self.totals(spread))
        spread, small = self.shifts[s]
        z = self.alone(s, r)
        return z + spread @ (small @ self.totals(z))


class Radau:
    """Adaptive implicit steps, driven like a solver of SciPy: `step` goes on to `t_bound`, at most `h_abs` at once.

    The embedded estimate is of order 5 where the solution is of order 9, so a given `rtol` of the solution is reached
    when that of the estimate is rtol^0.6.
    """

    def __init__(self, motion: EquationOfMotion, t: float, y: Array, t_bound: float, rtol: float, atol: float) -> None:
        self.motion, self.t, self.y, self.t_bound = motion, t, y, t_bound
        self.rtol, self.status = rtol**0.6, "running"
        self.atol = atol / rtol * self.rtol
        self.nfev = 1
        self.f = motion(t, y)
        self.h_abs = 0.01 * self._size(y, y) / max(self._size(self.f, y), 1e-300)
        self.last: tuple[Array, float] | None = None  # stages of the last step, and its length

    def _size(self, x: Array, y: Array) -> float:
        """Largest entry of x in units of the tolerance at y; a mean would hide few fast levels among many."""
        return float(np.max(np.abs(x) / (self.atol + self.rtol * np.abs(y))))

    def step(self) -> str | None:
        """Take one step, shortened until it is accurate enough; returns a message where that fails."""
        rule = collocation()
        J = Linearised(self.motion, self.t, self.y)
        self.nfev += J.evaluations
        while True:
            left = self.t_bound - self.t
            h = left if left <= (1 + 1e-9) * self.h_abs else self.h_abs  # so that no tiny step is left at the end
            if h <= 1e-14 * max(self.t, 1e-10):
                self.status = "failed"
                return "the step size became too small"
            Z = self._stages(rule, J, h)
            if Z is None:
                self.h_abs = h / 2
                continue
            y = self.y + Z[-1]
            s = 1 / (rule.gamma * h)
            error = np.real(J.solve(s, self.f + rule.e @ Z * s))
            size = self._size(error, np.maximum(np.abs(y), np.abs(self.y)))
            if not size <= 1 and np.isfinite(size):
                # the estimate is too large where fast levels come to rest: filter it once more (Hairer and Wanner IV.8)
                self.nfev += 1
                error = np.real(J.solve(s, self.motion(self.t, self.y + error) + rule.e @ Z * s))
                size = self._size(error, np.maximum(np.abs(y), np.abs(self.y)))
            factor = 0.9 * max(size, 1e-9) ** (-1 / (STAGES + 1)) if np.isfinite(size) else 0.1
            if not size <= 1:
                self.h_abs = h * max(0.1, factor)
                continue
            self.last = Z, h
            self.t = self.t_bound if h == left else self.t + h
            self.y, self.f = y, self.motion(self.t, y)
            self.nfev += 1
            self.h_abs = h * min(4.0, max(0.2, factor))
            return None

    def _stages(self, rule: Collocation, J: Linearised, h: float) -> Array | None:
        """Stages Z (5, unknowns) by simplified Newton steps, or None where these do not converge."""
        Z = np.zeros((STAGES, self.y.size))
        if self.last is not None and h <= 3 * self.last[1]:  # extrapolation further than that is worse than zero
            Z = rule.extended(self.last[0], h / self.last[1])
        W = rule.left @ Z
        before, bound = np.inf, max(1e-3, 20 * np.finfo(float).eps / self.rtol)
        for _ in range(12):
            self.nfev += STAGES
            F = np.array([self.motion(self.t + c * h, self.y + z) for c, z in zip(rule.c, Z, strict=True)])
            if not np.isfinite(F).all():
                return None
            G = rule.left @ F
            change = np.zeros_like(Z)
            for i, value in enumerate(rule.values):
                shift = value / h if i else value.real / h
                right = G[i] - value / h * W[i]
                step = J.solve(shift, right if i else right.real)
                W[i] += step
                change += np.real(np.outer(rule.T[:, i], step)) * (2 if i else 1)
            Z = Z + change
            size = self._size(change, self.y)
            if not np.isfinite(size) or size > 2 * before:
                return None
            share = size / before if np.isfinite(before) else 0.5
            if size * min(1.0, share / max(1e-3, 1 - share)) < bound:
                for z in Z:
                    # J and f differ on what is not symmetric in Q, so rounding must not grow there
                    Q = self.motion.unpack(z)[0]
                    Q[:] = (Q + np.swapaxes(Q, 0, 1)) / 2
                return Z
            before = size
        return None
