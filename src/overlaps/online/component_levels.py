"""The equation of motion of a mixture whose components have covariances of their own that share an eigenbasis.

Level b has the eigenvalue ω_cb in component c (weight p_c). With the averages D^c, S^c, E^c of each component, for
fields of covariance Σ_b ω_cb (Q_b, R_b; R_bᵀ, T_b), the gradient of unit i has the overlaps of `overlaps.online.motion`
with

    ω_b D → D_b = Σ_c p_c ω_cb D^c        ω_b S → S_b = Σ_c p_c ω_cb S^c

and the rest is as there. Where ω_cb = s_c ω_b this is the same equation.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..algorithms import Flow
from ..averages import Averages, ClosedForm, LossQuadrature, Method
from ..problem.start import Start
from ..problem.statement import Problem
from .motion import Averaging, EquationOfMotion

Array = NDArray[np.float64]


class ComponentLevels(EquationOfMotion):
    """Right-hand side; the state is that of `EquationOfMotion`, D (P, K, K+M) and S (P, K, K) are of each component."""

    def __init__(self, problem: Problem, start: Start, method: Method) -> None:
        super().__init__(problem, start, method)
        self.weights_of = problem.data.components.weights
        self.by_level: Array = problem.data.component_eigenvalues  # type: ignore[union-attr]

    def covariances(self, y: Array) -> Array:
        """Covariances of the fields (λ, ν) in each component, (P, K+M, K+M)."""
        K, M = self.K, self.M
        Q, A, _ = self.weights(y)
        C = np.empty((len(self.by_level), K + M, K + M))
        C[:, :K, :K] = np.moveaxis(Q @ self.by_level.T, -1, 0)
        C[:, :K, K:] = np.moveaxis(A[:, :M] @ self.by_level.T, -1, 0)
        C[:, K:, :K] = C[:, :K, K:].transpose(0, 2, 1)
        C[:, K:, K:] = np.moveaxis(self.G[:M, :M] @ self.by_level.T, -1, 0)
        return C

    def averages(self, y: Array, method: Averaging | None = None) -> Averages:
        """D and S of each component, weighted by its probability; E[∂loss/∂v], error and E over all."""
        _, A, v = self.weights(y)
        means = np.concatenate([A[:, self.M :].sum(-1), self.teacher_means])
        return weighted(method or self.method, self.covariances(y), v, means, self.weights_of)

    def _move(self, Q: Array, A: Array, a: Averages, flow: Flow, dQ: Array, dA: Array) -> None:
        K, M, J = self.K, self.M, self.J
        D = np.tensordot(a.D, self.by_level, (0, 0))  # (K, K+M, B)
        S = np.tensordot(a.S, self.by_level, (0, 0)) * self.levels.noise
        pull_A = np.einsum("ikb,kmb->imb", D[:, :K], A[:K])
        pull_A += np.einsum("inb,nmb->imb", D[:, K:], self.G[:M]) + np.tensordot(a.E, self.G[M:], 1)
        pull_Q = np.einsum("ikb,krb->irb", D[:, :K], Q[:K])
        pull_Q += np.einsum("inb,rnb->irb", D[:, K:], A[:, :M]) + np.einsum("ip,rpb->irb", a.E, A[:, M:])
        for j in range(J):
            rows = slice(j * K, (j + 1) * K)
            dA[rows], dQ[rows] = -flow.P[j] * pull_A, -flow.P[j] * pull_Q
            for l in range(J):
                other = slice(l * K, (l + 1) * K)
                dA[rows] += flow.M[j, l] * A[other]
                dQ[rows] += flow.M[j, l] * Q[other]
                dQ[rows, other] += 0.5 * flow.P[j] * flow.P[l] * S
        dQ += dQ.transpose(1, 0, 2).copy()


def weighted(method: Averaging, C: Array, v: Array, means: Array, weights: Array) -> Averages:
    """Averages of each component by its weight: D (P, K, K+M), S (P, K, K), E (K, P); dv and error over all."""
    assert isinstance(method, (ClosedForm, LossQuadrature)), "the averages of a mixture with means are one of these"
    each = method.each(C, v, means)
    return Averages(
        np.array([p * a.D for p, a in zip(weights, each, strict=True)]),
        np.array([p * a.S for p, a in zip(weights, each, strict=True)]),
        weights @ np.array([a.dv for a in each]),
        float(weights @ np.array([a.error for a in each])),
        weights * np.concatenate([a.E for a in each], axis=1),
    )
