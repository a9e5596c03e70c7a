"""The equation of motion of the overlaps, level by level.

The state is Q_b, A_b = (R_b, m_b) per level and v; G_b holds the overlaps of the fixed directions, teachers and means,
with each other. With the averages D = (D_λ, D_ν), S, E of the fields (see `overlaps.averages`), level b moves as

    dA_b/dt = −η (ω_b D_λ A_b + F_b G_b) − η β A_b                       F_b = (ω_b D_ν, E)
    dQ_b/dt = −η (ω_b D_λ Q_b + F_b A_bᵀ + transpose) − 2 η β Q_b + η² ω_b φ_b S
    dv/dt   = −η_v (E[∂loss/∂v] + β v)

in time t = steps/N; gradient flow has no η² term. Levels meet only in the averages, so a thousand of them are as well
conditioned as one. Where the teacher reads the latent of the inputs, t = Cov(x, ν) is its fixed direction, and F_b is
(D_ν, E).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..algorithms import OnlineSGD
from ..averages import Averages, ClosedForm, Method
from ..averages.closed import first_order, second_order
from ..compiled.functions import kept
from ..problem.start import Start
from ..problem.statement import Problem

Array = NDArray[np.float64]


class EquationOfMotion:
    """Right-hand side; the state is (Q, A, v) with the level as last axis, so that levels are contiguous."""

    def __init__(self, problem: Problem, start: Start, method: Method) -> None:
        self.method = method
        self.rate, self.decay = problem.algorithm.rate, problem.algorithm.decay
        self.readout_rate = problem.readout_rate
        self.noise = self.rate if isinstance(problem.algorithm, OnlineSGD) else 0.0
        self.omega = start.eigenvalues
        self.first, self.seen = self.omega, start.seen  # totals are Q @ first and R @ seen
        self.phi = start.fractions
        self.G = np.ascontiguousarray(np.moveaxis(start.G, 0, -1))
        self.K, self.M, self.B = start.v.size, start.u.size, self.omega.size
        self.F = len(self.G)  # fixed directions: M teachers, then the means
        # teachers that read the inputs act through their covariance, those that read the latent as they are
        self.through = self.M if start.latent is None else 0
        self.total_T, self.teacher_means = start.teacher_fields
        self.evaluations = 0
        self.implicit = False  # whether the last integration ended with implicit steps
        # a quadrature with a kink in it makes the right-hand side jump, and the solver's steps endless
        self.budget = 10**8 if isinstance(method, ClosedForm) else 30_000
        self.closed = self._closed()

    def _closed(self) -> tuple[Any, ...] | None:
        """Arguments of `closed_motion`, where it is this equation: no means, no quadrature, nothing overridden."""
        how = self.method
        if type(self) is not EquationOfMotion or not isinstance(how, ClosedForm) or self.F > self.M:
            return None
        averages = how.family, how.teacher_readout, how.label_noise, *how.rule
        rates = self.rate, self.readout_rate, self.decay
        levels = self.omega, self.seen, self.noise * self.phi
        return self.K, self.through, self.G, self.total_T, *levels, *rates, *averages

    def pack(self, Q: Array, A: Array, v: Array) -> Array:
        """State vector from Q (levels, K, K), A (levels, K, M+P), v (K,)."""
        return np.concatenate([np.moveaxis(Q, 0, -1).ravel(), np.moveaxis(A, 0, -1).ravel(), v])

    def unpack(self, y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Q (K, K, levels, …), A (K, M+P, levels, …), v (K, …): views of the state vector(s) (unknowns, …)."""
        K, F, B = self.K, self.F, self.B
        q, a = K * K * B, K * F * B
        more = y.shape[1:]
        return y[:q].reshape(K, K, B, *more), y[q : q + a].reshape(K, F, B, *more), y[q + a :]

    def totals(self, y: Array) -> tuple[Array, Array, Array, Array]:
        """What a trajectory records: Q (K, K), R (K, M), m (K, P), v (K,)."""
        Q, A, v = self.unpack(y)
        return Q @ self.first, A[:, : self.M] @ self.seen, A[:, self.M :].sum(-1), v

    def covariance(self, y: Array) -> Array:
        """Covariance of the fields (λ, ν), (K+M, K+M); filled in place, for it is a good part of an evaluation."""
        K = self.K
        Q, A, _ = self.unpack(y)
        C = np.empty((K + self.M, K + self.M))
        C[:K, :K] = Q @ self.first
        C[:K, K:] = A[:, : self.M] @ self.seen
        C[K:, :K] = C[:K, K:].T
        C[K:, K:] = self.total_T
        return C

    def averages(self, y: Array, method: Method | None = None) -> Averages:
        """The averages at a state."""
        _, A, v = self.unpack(y)
        means = np.concatenate([A[:, self.M :].sum(-1), self.teacher_means])
        return (method or self.method)(self.covariance(y), v, means)

    def __call__(self, t: float, y: Array) -> Array:
        self.evaluations += 1
        if self.closed is not None:
            dy = np.empty_like(y)
            closed_motion(y, dy, *self.closed)
            return dy
        if not np.isfinite(y).all():
            return np.full_like(y, np.nan)  # a trial step too far: the solver shortens it
        return self.derivative(y, self.averages(y))

    def derivative(self, y: Array, a: Averages) -> Array:
        """dy/dt for given averages; linear in them."""
        Q, A, v = self.unpack(y)
        dy = np.empty_like(y)
        dQ, dA, dv = self.unpack(dy)
        self._move(Q, A, a, dQ, dA)
        dv[:] = -self.readout_rate * (a.dv + self.decay * v)
        return dy

    def _move(self, Q: Array, A: Array, a: Averages, dQ: Array, dA: Array) -> None:
        """Write dQ/dt (K, K, levels) and dA/dt (K, M+P, levels)."""
        noise = self.noise * self.phi
        D = np.concatenate([a.D, a.E], axis=1)
        move_levels(Q, A, self.G, D, a.S, self.omega, self.through, noise, self.rate, self.decay, dQ, dA)


@kept()
def move_levels(Q, A, G, D, S, omega, teachers, noise, rate, decay, dQ, dA):  # pragma: no cover - compiled
    """dQ/dt and dA/dt of all levels, written into dQ (K, K, levels) and dA (K, F, levels).

    D (K, K+F): coefficients of students, of `teachers` fixed directions, which both act through the covariance of the
    inputs, and of the means, which do not.
    """
    K, F, B = A.shape
    pull = np.empty(B)
    for i in range(K):
        for m in range(F):
            pull[:] = 0.0
            for k in range(K):
                for b in range(B):
                    pull[b] += D[i, k] * A[k, m, b]
            for n in range(teachers):
                for b in range(B):
                    pull[b] += D[i, K + n] * G[n, m, b]
            for b in range(B):
                pull[b] *= omega[b]
            for n in range(teachers, F):
                for b in range(B):
                    pull[b] += D[i, K + n] * G[n, m, b]
            for b in range(B):
                dA[i, m, b] = -rate * (pull[b] + decay * A[i, m, b])
        for j in range(i + 1):
            pull[:] = 0.0
            for k in range(K):
                for b in range(B):
                    pull[b] += D[i, k] * Q[k, j, b] + D[j, k] * Q[k, i, b]
            for n in range(teachers):
                for b in range(B):
                    pull[b] += D[i, K + n] * A[j, n, b] + D[j, K + n] * A[i, n, b]
            for b in range(B):
                pull[b] = omega[b] * (pull[b] - noise[b] * S[i, j])
            for n in range(teachers, F):
                for b in range(B):
                    pull[b] += D[i, K + n] * A[j, n, b] + D[j, K + n] * A[i, n, b]
            for b in range(B):
                dQ[i, j, b] = -rate * (pull[b] + 2.0 * decay * Q[i, j, b])
                dQ[j, i, b] = dQ[i, j, b]


@kept(fastmath={"reassoc", "contract"})
def _total(x, weights):  # pragma: no cover - compiled
    total = 0.0
    for b in range(x.size):
        total += x[b] * weights[b]
    return total


@kept(error_model="numpy")
def closed_motion(
    y, dy, K, teachers, G, T, omega, seen, noise, rate, readout_rate, decay, family, u, label_noise, nodes, weights
):  # pragma: no cover - compiled
    """dy/dt of `EquationOfMotion` for averages in closed form, written into dy; not a number where y is not finite.

    The same steps as in Python, in one call: for few units and levels calls are most of an evaluation.
    """
    for x in y:
        if not np.isfinite(x):  # a trial step too far: the solver shortens it
            dy[:] = np.nan
            return
    M, B = u.size, omega.size
    q, a = K * K * B, K * M * B
    Q, A, v = y[:q].reshape(K, K, B), y[q : q + a].reshape(K, M, B), y[q + a :]
    C, w = np.empty((K + M, K + M)), np.empty(K + M)
    for i in range(K):
        w[i] = v[i]
        for j in range(K):
            C[i, j] = _total(Q[i, j], omega)
        for n in range(M):
            C[i, K + n] = C[K + n, i] = _total(A[i, n], seen)
    for n in range(M):
        w[K + n] = -u[n]
        for m in range(M):
            C[K + n, K + m] = T[n, m]
    D, S, dv = np.empty((K, K + M)), np.zeros((K, K)), dy[q + a :]
    first_order(family, C, w, K, D, dv)
    if noise.any():  # gradient flow does without S, the longest average
        second_order(family, C, w, K, label_noise, nodes, weights, S)
    move_levels(
        Q, A, G, D, S, omega, teachers, noise, rate, decay, dy[:q].reshape(K, K, B), dy[q : q + a].reshape(K, M, B)
    )
    for i in range(K):
        dv[i] = -readout_rate * (dv[i] + decay * v[i])
