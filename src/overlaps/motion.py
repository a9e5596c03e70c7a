"""The equation of motion of the overlaps, level by level.

With the averages D = (D_λ, D_ν), S of the fields (see `overlaps.averages`), level b moves as

    dR_b/dt = −η ω_b (D_λ R_b + D_ν T_b) − η β R_b
    dQ_b/dt = −η ω_b (D_λ Q_b + D_ν R_bᵀ + transpose) − 2 η β Q_b + η² ω_b φ_b S
    dv/dt   = −η_v (E[∂loss/∂v] + β v)

in time t = steps/N; gradient flow has no η² term. Levels meet only in the averages, so a thousand of them are as well
conditioned as one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from .algorithms import OnlineSGD
from .averages import Averages, ClosedForm, Method
from .problem import Problem
from .start import Start

Array = NDArray[np.float64]


class EquationOfMotion:
    """Right-hand side; the state is (Q, R, v) with the level as last axis, so that levels are contiguous."""

    def __init__(self, problem: Problem, start: Start, method: Method) -> None:
        self.method = method
        self.rate, self.decay = problem.algorithm.rate, problem.algorithm.decay
        self.readout_rate = problem.readout_rate
        self.noise = self.rate if isinstance(problem.algorithm, OnlineSGD) else 0.0
        self.omega = problem.data.eigenvalues
        self.first = self.omega  # a total is state @ first
        self.phi = start.fractions
        self.T = np.moveaxis(start.T, 0, -1)
        self.total_T = self.T @ self.omega
        self.K, self.M, self.B = start.R.shape[1], start.R.shape[2], self.omega.size
        self.evaluations = 0
        self.implicit = False  # whether the last integration ended with implicit steps
        # a quadrature with a kink in it makes the right-hand side jump, and the solver's steps endless
        self.budget = 10**8 if isinstance(method, ClosedForm) else 30_000

    def pack(self, Q: Array, R: Array, v: Array) -> Array:
        """State vector from Q (levels, K, K), R (levels, K, M), v (K,)."""
        return np.concatenate([np.moveaxis(Q, 0, -1).ravel(), np.moveaxis(R, 0, -1).ravel(), v])

    def unpack(self, y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Q (K, K, levels, …), R (K, M, levels, …), v (K, …): views of the state vector(s) (unknowns, …)."""
        K, M, B = self.K, self.M, self.B
        q, r = K * K * B, K * M * B
        more = y.shape[1:]
        return y[:q].reshape(K, K, B, *more), y[q : q + r].reshape(K, M, B, *more), y[q + r :]

    def covariance(self, y: Array) -> Array:
        """Covariance of the fields (λ, ν), (K+M, K+M); filled in place, for it is a good part of an evaluation."""
        K = self.K
        Q, R, _ = self.unpack(y)
        C = np.empty((K + self.M, K + self.M))
        C[:K, :K] = Q @ self.first
        C[:K, K:] = R @ self.first
        C[K:, :K] = C[:K, K:].T
        C[K:, K:] = self.total_T
        return C

    def __call__(self, t: float, y: Array) -> Array:
        self.evaluations += 1
        C, v = self.covariance(y), self.unpack(y)[2]
        if not np.isfinite(C).all():
            return np.full_like(y, np.nan)  # a trial step too far: the solver shortens it
        return self.derivative(y, self.method(C, v))

    def derivative(self, y: Array, a: Averages) -> Array:
        """dy/dt for given averages; linear in them."""
        Q, R, v = self.unpack(y)
        dy = np.empty_like(y)
        dQ, dR, dv = self.unpack(dy)
        self._move(Q, R, a.D, a.S, dQ, dR)
        dv[:] = -self.readout_rate * (a.dv + self.decay * v)
        return dy

    def _move(self, Q: Array, R: Array, D: Array, S: Array, dQ: Array, dR: Array) -> None:
        """Write dQ/dt (K, K, levels) and dR/dt (K, M, levels)."""
        noise = self.noise * self.phi
        move_levels(Q, R, self.T, D, S, self.omega, noise, self.rate, self.decay, dQ, dR)


@njit(cache=True)
def move_levels(Q, R, T, D, S, omega, noise, rate, decay, dQ, dR):  # pragma: no cover - compiled
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
