"""The equation of motion of the overlaps, level by level.

Rows r_j, j = 1..J, of each of K units are its weights and whatever the algorithm remembers of it in the limit (see
`overlaps.algorithms.update`). The state is, per level, Q_b (J K, J K) and A_b = (R_b, m_b) (J K, M + P), the overlaps
of the rows with each other and with the fixed directions, teachers and means, and v; G_b holds the overlaps of the
fixed directions with each other. With the averages D = (D_λ, D_ν), S, E of the fields (see `overlaps.averages`) the
gradient of unit i has the overlaps

    h_i(r) = E[δ_i x·r]_b = ω_b D_λ Q_b + F_b A_bᵀ        g_i(d) = E[δ_i x·d]_b = ω_b D_λ A_b + F_b G_b

with rows r and fixed directions d, F_b = (ω_b D_ν, E), where D_λ acts on the weights; and level b moves as

    dA_b/dt = M A_b − P g
    dQ_b/dt = M Q_b − P h + transpose + P Pᵀ ω_b φ_b S/b
    dv/dt   = M_v v − P_v E[∂loss/∂v]

in time t = steps/N, where b in S/b is the number of samples in a batch; gradient flow has no such term. For SGD with
decay β these are M = −ηβ and P = η. Levels meet only in the averages, so a thousand of them are as well conditioned as
one. Where the teacher reads the latent of the inputs, t = Cov(x, ν) is its fixed direction, and F_b is (D_ν, E).
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..algorithms import Flow
from ..averages import Averages, ClosedForm, Method
from ..averages.closed import first_order, second_order
from ..compiled.functions import kept
from ..problem.start import Start
from ..problem.statement import Problem

Array = NDArray[np.float64]
Averaging = Callable[[Array, Array, Array], Averages]


class Constants(NamedTuple):
    """What does not move: G (F, F, B), eigenvalues ω (B,), noise φ/b (B,), and how many of the fixed directions act
    through the covariance of the inputs, which are the teachers where they read the inputs.
    """

    G: Array
    omega: Array
    noise: Array
    teachers: int


class Closed(NamedTuple):
    """Arguments of the averages in closed form, and what they need of the fields.

    K: units; T: (M, M) covariance of the teacher's fields; seen: (B,) factor of R_b in R; family, u, label_noise,
    nodes, weights: see `ClosedForm`.
    """

    K: int
    T: Array
    seen: Array
    family: int
    u: Array
    label_noise: float
    nodes: Array | None
    weights: Array | None


class EquationOfMotion:
    """Right-hand side; the state is (Q, A, v) with the level as last axis, so that levels are contiguous."""

    def __init__(self, problem: Problem, start: Start, method: Method) -> None:
        self.method, self.update = method, problem.update
        self.omega = start.eigenvalues
        self.first, self.seen = self.omega, start.seen  # totals are Q @ first and R @ seen
        self.phi = start.fractions
        self.G = np.ascontiguousarray(np.moveaxis(start.G, 0, -1))
        self.K, self.M, self.B = start.v.size, start.u.size, self.omega.size
        self.J = self.update.rule.limit_rows
        self.F = len(self.G)  # fixed directions: M teachers, then the means
        # teachers that read the inputs act through their covariance, those that read the latent as they are
        self.through = self.M if start.latent is None else 0
        self.levels = Constants(self.G, self.omega, self.update.noise * self.phi, self.through)
        self.total_T, self.teacher_means = start.teacher_fields
        self.until = np.inf  # the end of the stretch of time in which the rates are smooth
        self.constant = None if self.update.changes else self.update.flow(0.0)
        self.closed = self._closed()

    def _closed(self) -> Closed | None:
        """Arguments of `closed_motion`, where it is this equation: no mixture, no quadrature, nothing overridden."""
        how = self.method
        if type(self) is not EquationOfMotion or not isinstance(how, ClosedForm) or self.F > self.M:
            return None
        if how.components.weights.size > 1:
            return None
        averages = how.family, how.teacher_readout, how.label_noise, *how.rule
        return Closed(self.K, self.total_T, self.seen, *averages)

    def before(self, knot: float) -> EquationOfMotion:
        """The same equation in the stretch of time that ends at a knot, where the rates may jump."""
        new = copy(self)
        new.until = knot
        return new

    def flow(self, t: float) -> Flow:
        """M and P of both layers at a time."""
        return self.update.flow(t, self.until) if self.constant is None else self.constant

    @property
    def trains_readout(self) -> bool:
        """Whether v moves."""
        return self.update.readout_rate is not None

    def pack(self, Q: Array, A: Array, v: Array) -> Array:
        """State vector from Q (levels, K, K), A (levels, K, M+P), v (K,) of the weights; velocities are zero."""
        J, K, B = self.J, self.K, self.B
        rows_Q, rows_A, rows_v = np.zeros((J * K, J * K, B)), np.zeros((J * K, self.F, B)), np.zeros(J * K)
        rows_Q[:K, :K], rows_A[:K], rows_v[:K] = np.moveaxis(Q, 0, -1), np.moveaxis(A, 0, -1), v
        return np.concatenate([rows_Q.ravel(), rows_A.ravel(), rows_v])

    def unpack(self, y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Q (J K, J K, levels, …), A (J K, M+P, levels, …), v (J K, …): views of the state vector(s) (unknowns, …)."""
        R, F, B = self.J * self.K, self.F, self.B
        q, a = R * R * B, R * F * B
        more = y.shape[1:]
        return y[:q].reshape(R, R, B, *more), y[q : q + a].reshape(R, F, B, *more), y[q + a :]

    def weights(self, y: Array) -> tuple[Array, Array, Array]:
        """Q (K, K, levels), A (K, M+P, levels) and v (K,) of the weights."""
        K = self.K
        Q, A, v = self.unpack(y)
        return Q[:K, :K], A[:K], v[:K]

    def totals(self, y: Array) -> tuple[Array, Array, Array, Array]:
        """What a trajectory records: Q (K, K), R (K, M), m (K, P), v (K,)."""
        Q, A, v = self.weights(y)
        return Q @ self.first, A[:, : self.M] @ self.seen, A[:, self.M :].sum(-1), v

    def covariance(self, y: Array) -> Array:
        """Covariance of the fields (λ, ν), (K+M, K+M); filled in place to save time in every evaluation."""
        K = self.K
        Q, A, _ = self.weights(y)
        C = np.empty((K + self.M, K + self.M))
        C[:K, :K] = Q @ self.first
        C[:K, K:] = A[:, : self.M] @ self.seen
        C[K:, :K] = C[:K, K:].T
        C[K:, K:] = self.total_T
        return C

    def averages(self, y: Array, method: Averaging | None = None) -> Averages:
        """The averages at a state."""
        _, A, v = self.weights(y)
        means = np.concatenate([A[:, self.M :].sum(-1), self.teacher_means])
        return (method or self.method)(self.covariance(y), v, means)

    def __call__(self, t: float, y: Array) -> Array:
        if self.closed is not None:
            dy = np.empty_like(y)
            closed_motion(y, dy, self.levels, self.closed, self.flow(t))
            return dy
        if not np.isfinite(y).all():
            return np.full_like(y, np.nan)  # a trial step left the domain; on NaN the solver shortens it
        return self.derivative(y, self.averages(y), self.flow(t))

    def derivative(self, y: Array, a: Averages, flow: Flow) -> Array:
        """dy/dt for given averages, in which it is linear, and M and P."""
        Q, A, v = self.unpack(y)
        dy = np.empty_like(y)
        dQ, dA, dv = self.unpack(dy)
        self._move(Q, A, a, flow, dQ, dA)
        rows = v.reshape(self.J, self.K)
        dv[:] = (flow.M_readout @ rows).ravel()
        if self.trains_readout:  # otherwise E[∂loss/∂v] was not computed
            dv -= np.multiply.outer(flow.P_readout, a.dv).ravel()
        return dy

    def _move(self, Q: Array, A: Array, a: Averages, flow: Flow, dQ: Array, dA: Array) -> None:
        """Write dQ/dt (J K, J K, levels) and dA/dt (J K, M+P, levels)."""
        D = np.concatenate([a.D, a.E], axis=1)
        move_levels(Q, A, D, a.S, self.levels, flow, dQ, dA)


@kept()
def move_levels(Q, A, D, S, levels, flow, dQ, dA):  # pragma: no cover - compiled
    """dQ/dt and dA/dt of all levels, written into dQ (J K, J K, levels) and dA (J K, F, levels).

    D (K, K+F): coefficients of the weights, of the teachers, which both act through the covariance of the inputs, and
    of the means, which do not; of teachers of a latent neither.
    """
    (R, F, B), K, J = A.shape, len(D), len(flow.P)
    omega, teachers = levels.omega, levels.teachers
    pull = np.empty(B)
    for i in range(K):
        for m in range(F):
            pull[:] = 0.0
            for k in range(K):
                for b in range(B):
                    pull[b] += D[i, k] * A[k, m, b]
            for n in range(teachers):
                for b in range(B):
                    pull[b] += D[i, K + n] * levels.G[n, m, b]
            for b in range(B):
                pull[b] *= omega[b]
            for n in range(teachers, F):
                for b in range(B):
                    pull[b] += D[i, K + n] * levels.G[n, m, b]
            for j in range(J):
                for b in range(B):
                    dA[j * K + i, m, b] = -flow.P[j] * pull[b]
                for l in range(J):
                    for b in range(B):
                        dA[j * K + i, m, b] += flow.M[j, l] * A[l * K + i, m, b]
    # half of dQ/dt, without its transpose
    for i in range(K):
        for r in range(R):
            pull[:] = 0.0
            for k in range(K):
                for b in range(B):
                    pull[b] += D[i, k] * Q[k, r, b]
            for n in range(teachers):
                for b in range(B):
                    pull[b] += D[i, K + n] * A[r, n, b]
            for b in range(B):
                pull[b] *= omega[b]
            for n in range(teachers, F):
                for b in range(B):
                    pull[b] += D[i, K + n] * A[r, n, b]
            for j in range(J):
                noise = 0.5 * flow.P[j] * flow.P[r // K] * S[i, r % K]
                for b in range(B):
                    dQ[j * K + i, r, b] = noise * omega[b] * levels.noise[b] - flow.P[j] * pull[b]
                for l in range(J):
                    for b in range(B):
                        dQ[j * K + i, r, b] += flow.M[j, l] * Q[l * K + i, r, b]
    for q in range(R):
        for r in range(q + 1):
            for b in range(B):
                dQ[q, r, b] += dQ[r, q, b]
                dQ[r, q, b] = dQ[q, r, b]


@kept(fastmath={"reassoc", "contract"})
def _total(x, weights):  # pragma: no cover - compiled
    total = 0.0
    for b in range(x.size):
        total += x[b] * weights[b]
    return total


@kept(error_model="numpy")
def closed_motion(y, dy, levels, closed, flow):  # pragma: no cover - compiled
    """dy/dt of `EquationOfMotion` for averages in closed form, written into dy; not a number where y is not finite.

    The same computation as in Python, compiled as a whole: for few units and levels most time goes into calls.
    """
    for x in y:
        if not np.isfinite(x):  # a trial step left the domain; on NaN the solver shortens it
            dy[:] = np.nan
            return
    K, M, B, J = closed.K, closed.u.size, levels.omega.size, len(flow.P)
    R = J * K
    q, a = R * R * B, R * M * B
    Q, A, v = y[:q].reshape(R, R, B), y[q : q + a].reshape(R, M, B), y[q + a :]
    C, w = np.empty((K + M, K + M)), np.empty(K + M)
    for i in range(K):
        w[i] = v[i]
        for j in range(K):
            C[i, j] = _total(Q[i, j], levels.omega)
        for n in range(M):
            C[i, K + n] = C[K + n, i] = _total(A[i, n], closed.seen)
    for n in range(M):
        w[K + n] = -closed.u[n]
        for m in range(M):
            C[K + n, K + m] = closed.T[n, m]
    D, S, slopes, dv = np.empty((K, K + M)), np.zeros((K, K)), np.empty(K), dy[q + a :]
    first_order(closed.family, C, w, K, D, slopes)
    if levels.noise.any():  # gradient flow does without S, the longest average
        second_order(closed.family, C, w, K, closed.label_noise, closed.nodes, closed.weights, S)
    move_levels(Q, A, D, S, levels, flow, dy[:q].reshape(R, R, B), dy[q : q + a].reshape(R, M, B))
    for j in range(J):
        for i in range(K):
            dv[j * K + i] = -flow.P_readout[j] * slopes[i]
            for l in range(J):
                dv[j * K + i] += flow.M_readout[j, l] * v[l * K + i]
