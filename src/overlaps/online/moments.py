"""The moment hierarchy: macro in the moments of the covariance instead of its levels, for few levels.

With X^(l) = Σ_b ω_b^l X_b for X = Q, R, T and the averages D = (D_λ, D_ν), S of the fields, whose covariance is made of
the first moments, the equation of motion of `overlaps.online.macro` reads

    dR^(l)/dt = −η (D_λ R^(l+1) + D_ν T^(l+1)) − η β R^(l)
    dQ^(l)/dt = −η (D_λ Q^(l+1) + D_ν R^(l+1)ᵀ + transpose) − 2 η β Q^(l) + η² ν_{l+1} S,     ν_l = Σ_b φ_b ω_b^l

for l = 0 … L−1, and is closed by Cayley and Hamilton: X^(L) = −Σ_l c_l X^(l) with Π_b (z − ω_b) = Σ_l c_l z^l.

It is the system of Yoshida and Okada (NeurIPS 2019) and of Worschech and Rosenow (arXiv:2410.09005), kept because their
results are written in it. Moments and levels are related by a Vandermonde matrix, and what rounding takes from the
moments is multiplied by its condition number; levels have no such limit. Eigenvalues are in units of the largest.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..algorithms import Flow
from ..averages import Averages, Method
from ..interface.errors import InputError
from ..problem.start import Start
from ..problem.statement import Problem
from .motion import Constants, EquationOfMotion, move_levels

Array = NDArray[np.float64]
MOST = 30  # levels, of any spectrum: spares the condition number of a large matrix
WORST = 1e14  # condition number up to which totals keep six digits (tests measure it)


class MomentHierarchy(EquationOfMotion):
    """Right-hand side in moments; the state is (Q, A, v) with the moment l = 0 … L−1 as last axis."""

    def __init__(self, problem: Problem, start: Start, method: Method) -> None:
        super().__init__(problem, start, method)
        if self.F > self.M or start.latent is not None or problem.data.components.weights.size > 1:
            raise InputError(
                "system: the moment hierarchy is for Gaussian inputs of mean zero that the teacher reads; use "
                "system='levels'"
            )
        if self.J > 1:
            raise InputError("system: the moment hierarchy does not follow a memory; use system='levels'")
        L, self.top = self.B, float(self.omega.max())
        if L > MOST:
            raise InputError(f"system: the moments of {L} levels are beyond double precision; use system='levels'")
        z = self.omega / self.top
        powers = z ** np.arange(L + 1)[:, None]  # (moment, level)
        self.to_moments = powers[:L].T
        condition = float(np.linalg.cond(self.to_moments))
        if not condition <= WORST:
            raise InputError(
                f"system: the moments of these {L} levels have condition number {condition:.1e}, so that rounding "
                "would spoil the result; use system='levels', which has no such limit"
            )
        self.closure = -np.poly(z)[:0:-1]
        # raised moments stand for ω times those of the levels
        tops = np.full(L, self.top)
        noise = self.update.noise * (powers[1:] @ self.phi)
        self.raised = Constants(np.ascontiguousarray(self.G @ powers[1:].T), tops, noise, self.M)
        self.first = self.seen = np.eye(L)[1] * self.top if L > 1 else self.omega

    def pack(self, Q: Array, A: Array, v: Array) -> Array:
        """State vector from Q (levels, K, K), A (levels, K, M), v (K,)."""
        to = self.to_moments
        return super().pack(np.moveaxis(Q.T @ to, -1, 0), np.moveaxis(np.moveaxis(A, 0, -1) @ to, -1, 0), v)

    def _raised(self, X: Array) -> Array:
        """X^(l+1) from X^(l), last axis the moment."""
        return np.concatenate([X[..., 1:], (X @ self.closure)[..., None]], axis=-1)

    def _move(self, Q: Array, A: Array, a: Averages, flow: Flow, dQ: Array, dA: Array) -> None:
        still = flow._replace(M=np.zeros((1, 1)))  # decay acts on the moments as they are
        move_levels(self._raised(Q), self._raised(A), a.D, a.S, self.raised, still, dQ, dA)
        dQ += 2 * flow.M[0, 0] * Q
        dA += flow.M[0, 0] * A
