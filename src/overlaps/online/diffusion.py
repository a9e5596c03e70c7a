"""The diffusion limit of the overlap chain: drift of the infinite-size theory plus noise of order 1/√N.

Per step of SGD the overlaps y = (Q_b, A_b, v) change by ξ/N, where for one sample, with δ = ∂loss/∂λ and the
projections of the input on students and fixed directions in level b,

    ξ_A = −η δ (x·d)_bᵀ        ξ_Q = −η (δ (x·w)_bᵀ + transpose) + (η²/b) s_c ω_b φ_b δ δᵀ        ξ_v = −η_v ∂loss/∂v

up to what is the same for all samples. Over many steps that is

    dy = h(y) dt + √(Σ(y)/(bN)) dB,       h = E[ξ] − decay,       Σ = Cov[ξ]

(the effective dynamics of Ben Arous, Gheissari and Jagannath, NeurIPS 2022, with the volatility that vanishes as N → ∞
kept). h is `overlaps.online.motion`; noise of covariance Σ is Σ_i √p_i g_i (ξ_i − E ξ) with standard normal g_i, over
frozen Sobol points i of the sample: no matrix is formed or factored. The drift is integrated by Runge-Kutta steps of
order four, short against its relaxation; the cost does not depend on N at all, but fluctuations are Gaussian only in
the limit. Noise may carry overlaps beyond what weights can have, where Q_b − A_b G_b⁻¹ A_bᵀ, the students without their
part along fixed directions, has a negative eigenvalue: it is set to zero if it is small as noise is, and an error
otherwise.
"""

from __future__ import annotations

from copy import copy

import numpy as np
from numpy.typing import NDArray

from ..algorithms import Flow
from ..averages import method_for
from ..averages.rules import sobol
from ..compiled.functions import loop
from ..data.square_roots import coordinates
from ..interface.errors import InputError, NumericalError
from ..problem.start import LIMIT, Start
from ..problem.statement import Problem
from .motion import EquationOfMotion
from .recording import NEVER, Measure, Recorded

Array = NDArray[np.float64]
POINTS = 8  # log2 of the sample points per component, before mirroring; more where they have many coordinates
LARGEST = 300  # coordinates of a sample point
STEP = 0.3  # length of a step, in units of the fastest relaxation


@loop(nogil=True)
def _increments(kernel, u, K, M, labels, component, scale, rates, v, teacher_readout, out):  # pragma: no cover
    """ξ of every point, (points, unknowns): u (points, levels, K+F) are projections of the inputs.

    scale (components, levels): η² s_c ω_b φ_b/b.
    """
    n, B, rows = u.shape
    F = rows - K
    rate, readout_rate = rates
    lam, nu = np.empty(K), np.empty(M)
    dlam, dv = np.empty(K), np.empty(K)
    for i in range(n):
        lam[:] = 0.0
        nu[:] = 0.0
        for b in range(B):
            for k in range(K):
                lam[k] += u[i, b, k]
            for m in range(M):
                nu[m] += u[i, b, K + m]
        c = component[i]
        kernel(lam, nu, labels[c], v, teacher_readout, 0.0, dlam, dv)
        at = 0
        for k in range(K):
            for l in range(K):
                for b in range(B):
                    out[i, at] = -rate * (dlam[k] * u[i, b, l] + dlam[l] * u[i, b, k]) + scale[c, b] * dlam[k] * dlam[l]
                    at += 1
        for k in range(K):
            for f in range(F):
                for b in range(B):
                    out[i, at] = -rate * dlam[k] * u[i, b, K + f]
                    at += 1
        for k in range(K):
            out[i, at] = -readout_rate * dv[k]
            at += 1


class Diffusion:
    """One run of the diffusion."""

    rng: np.random.Generator
    observations: list[dict[str, Array]]
    measures: dict[str, Measure] = {}  # noqa: RUF012 - never written to
    chunk = 10**9
    stop = NEVER

    def __init__(self, problem: Problem, start: Start) -> None:
        assert start.size is not None
        if problem.label_noise:
            raise InputError("method: the diffusion does not know noise on the labels; use method='exact'")
        if problem.update.rule.limit_rows > 1:
            raise InputError("method: the diffusion does not follow a memory; use method='exact'")
        self.problem, self.size, self.u = problem, start.size, start.u
        self.motion = EquationOfMotion(problem, start, method_for(problem, start.u))
        self.y = self.motion.pack(start.Q, start.A, start.v)
        self.done = 0
        B, K, F = start.A.shape
        if B * (K + F) > LARGEST:
            raise InputError(
                f"method: the diffusion of {B} levels needs points of {B * (K + F)} coordinates, more than {LARGEST}; "
                "use method='exact'"
            )
        parts = problem.data.components
        half, _ = sobol(B * (K + F), max(POINTS, int(np.ceil(np.log2(4 * B * (K + F))))))
        self.z = half.reshape(len(half), B, K + F)
        self.component = np.repeat(np.arange(parts.weights.size), len(half))
        self.weights = parts.weights[self.component] / len(half)
        self.inverse = np.linalg.pinv(start.G, hermitian=True) if F else start.G
        self.knots = problem.update.knots
        self.scale = problem.update.noise * np.outer(parts.variances, start.eigenvalues * start.fractions)

    def copy_with(self, rng: np.random.Generator) -> Diffusion:
        """A copy of this run with noise of its own."""
        new = copy(self)
        new.rng, new.observations, new.y = rng, [], self.y.copy()
        return new

    def _noise(self, flow: Flow) -> Array:
        """One draw of covariance Σ/b at the present state."""
        motion, parts = self.motion, self.problem.data.components
        Q, A, v = motion.unpack(self.y)
        K, F, B = motion.K, motion.F, motion.B
        points = np.empty((parts.weights.size, len(self.z), B, K + F))
        for b in range(B):
            gram = np.block([[Q[:, :, b], A[:, :, b]], [A[:, :, b].T, motion.G[:, :, b]]])
            noise = np.sqrt(motion.omega[b]) * (self.z[:, b] @ coordinates(gram, K + F, triangular=False).T)
            for c, s in enumerate(parts.variances):
                points[c, :, b] = np.sqrt(s) * noise
                if F > motion.M:
                    points[c, :, b] += gram[:, K + motion.M + c]
        xi = np.empty((self.component.size, self.y.size))
        rate = float(flow.P[0])
        rates = (rate, float(flow.P_readout[0]))
        points = points.reshape(-1, B, K + F)
        _increments(
            self.problem.gradient, points, K, motion.M, parts.labels, self.component, rate**2 * self.scale, rates,
            np.ascontiguousarray(v), self.u, xi,
        )  # fmt: skip
        g = np.sqrt(self.weights * motion.update.noise) * self.rng.standard_normal(self.weights.size)
        return g @ xi - g.sum() * (self.weights @ xi)

    def _step(self, t: float, most: float) -> float:
        """Take one step of at most that length, not beyond a knot of the rates, and return its length."""
        y = self.y
        here = self.knots[np.abs(self.knots - t) <= 1e-12]
        t = float(here[0]) if here.size else t  # exactly at the knot, so that rounding cannot put it before the jump
        knots = self.knots[self.knots > t + 1e-12]
        motion = self.motion.before(float(knots[0])) if knots.size else self.motion
        a, flow = motion.averages(y), motion.flow(t)
        gram = float(np.abs(motion.G).sum(-1).max(initial=0.0))
        inner = float(np.trace(motion.covariance(y)[: motion.K, : motion.K]))
        fastest = float(motion.omega.max()) * float(np.linalg.norm(a.D[:, : motion.K], 2))
        most = min(most, motion.until - t)
        # a rate that rises on the way makes for a shorter step
        ways = (flow, motion.flow(t + most)) if motion.constant is None else (flow,)
        paces = [f.P[0] * (fastest + gram) - f.M[0, 0] + f.P_readout[0] * inner for f in ways]
        h = min(most, STEP / max(*map(float, paces), 1e-300))
        k1 = motion.derivative(y, a, flow)
        k2 = motion(t + h / 2, y + h / 2 * k1)
        k3 = motion(t + h / 2, y + h / 2 * k2)
        k4 = motion(t + h, y + h * k3)
        self.y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4) + np.sqrt(h / self.size) * self._noise(motion.flow(t + h / 2))
        return h

    def _return(self, time: float) -> None:
        """Project the overlaps onto those that weights can have; an error where they are far from these."""
        if not np.isfinite(self.y).all():
            return  # the run has diverged, which `Recorder` notices in what it recorded
        Q, A, _ = self.motion.unpack(self.y)
        for b in range(self.motion.B):
            along = A[:, :, b] @ self.inverse[b] @ A[:, :, b].T
            values, vectors = np.linalg.eigh(Q[:, :, b] - along)
            if values[0] >= 0:
                continue
            if values[0] < -3 / np.sqrt(self.size) * max(float(np.trace(Q[:, :, b])), 1.0):
                raise NumericalError(
                    f"diffusion: no weights have the overlaps at time {time:g} (the matrix of level {b} has the "
                    f"eigenvalue {values[0]:.3g}): noise is too large for a diffusion; use method='exact', or a larger "
                    "size",
                    quantity="Q",
                    time=time,
                )
            Q[:, :, b] = along + (vectors * np.maximum(values, 0)) @ vectors.T

    def record(self, steps: NDArray[np.int64]) -> Recorded:
        """Go to each of these steps and record the overlaps there."""
        Q, A, v = [], [], []
        for stop in steps:
            left = (int(stop) - self.done) / self.size
            while left > 1e-12 and np.abs(self.y).max() < LIMIT:
                left -= self._step(int(stop) / self.size - left, left)
                self._return(int(stop) / self.size - left)
            self.done = int(stop)
            q, a, readout = self.motion.unpack(self.y)
            Q.append(np.moveaxis(q, -1, 0).copy())
            A.append(np.moveaxis(a, -1, 0).copy())
            v.append(readout.copy())
        return Recorded(np.array(Q), np.array(A), np.array(v))
