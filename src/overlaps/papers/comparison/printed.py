"""Equations of the paper as printed, for the claims that test them, and what they become when corrected.

Definition 2 and (33) write each recalculated matrix as its mean-field value plus an increment times 1/√m, made of few
random vectors: with g̃_o(y')ᵀ = Σ_y g_o(y, y')ᵀ A_ω(y) Λ̃ and g̃_eᵀ = Σ_y g_e(y)ᵀ A_ω(y) Λ̃,

    β″(y)    −g̃_o(y)
    α″(y)    √ρ (ω_e(y) − α(y)/ρ)
    V_θ″     Σ_{y ∈ Y*} [α̃(y) g̃_o(y)ᵀ + transpose] + √γ (g̃_e g̃_eᵀ − Λ̃ᵀ V_ω Λ̃)     in print − V_θ, x̂(y) for α̃(y)
    V_ω″(y)  √ρ (ω_e ω_eᵀ − V_ω(y)/ρ)
    C_ω″(y)  √ρ (h_e ω_eᵀ − C_ω(y)/ρ)
    C_θ″(y)  −Σ_{y' ∈ Y*} g_o(y, y') α̃(y')ᵀ − √γ (g_e(y) g̃_eᵀ − A_ω(y) Λ̃)       in print no √γ, − C_ω(y), and ω_eᵀ

where h_e ~ N(0, 1); in print it is made of G, with variance γ/ρ. Factors whose shapes do not fit (x̂(y), ω_eᵀ) are left
out of both.

>>> momentum(0.2, 0.5, 4)[0]
array([0.   , 0.1  , 0.15 , 0.175])
>>> gordon(0.0, 1.0) > 0.35  # E f(ψ) − E f(φ), which print has at most zero
True
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .mean_field import RHO, Limit

Array = NDArray[np.float64]


def momentum(t: float, s: float, T: int) -> Array:
    """λ(μ, l) = t (1 − s^{l−μ}) for μ < l of momentum gradient descent, below (23), (T, T)."""
    ago = np.arange(T) - np.arange(T)[:, None]
    return np.where(ago > 0, t * (1 - s ** np.maximum(ago, 0)), 0.0)


def eq_26(limit: Limit, size: int, *, corrected: bool = False) -> Array:
    """Mean |θ(l)|², (T,), of q = e + g̃ + Σ θ b_θ at n = `size`; corrected: with g̃/√m."""
    scattered = np.diagonal(limit.noise.T @ limit.V_omega.sum(0) @ limit.noise)
    ordered = np.diagonal(limit.V_theta) - limit.gamma * scattered
    return ordered + (limit.gamma if corrected else size) * scattered


class Vectors(NamedTuple):
    """Random vectors of Definition 2: g_e, h_e (n, 2, T) for y, and g_o (n, 2, 3, T) for y and y' in Y*."""

    g_e: Array
    g_o: Array
    h_e: Array

    @classmethod
    def draw(cls, limit: Limit, n: int, rng: np.random.Generator, *, corrected: bool = False) -> Vectors:
        """n copies; h_e from G as printed, or from H."""
        g_e, h_e = rng.standard_normal((2, n, 2, limit.T))
        g_o = np.einsum("ab,nybl->nyal", np.linalg.cholesky(limit.gram), rng.standard_normal((n, 2, 3, limit.T)))
        return cls(g_e, g_o, h_e if corrected else np.sqrt(limit.gamma / RHO) * g_e)


class Increments(NamedTuple):
    """Increments of β, α (n, 2, T), V_θ (n, T, T), V_ω, C_ω and C_θ (n, 2, T, T)."""

    beta: Array
    alpha: Array
    V_theta: Array
    V_omega: Array
    C_omega: Array
    C_theta: Array

    def entries(self) -> Array:
        """All entries that count: V once, C where it is used, on and above the diagonal and above it, (n, entries)."""
        T, n = self.V_theta.shape[-1], len(self.V_theta)
        upper, strictly = np.triu_indices(T), np.triu_indices(T, 1)
        parts = [self.beta, self.alpha, self.V_theta[:, *upper]]
        parts += [self.V_omega[:, :, *upper], self.C_omega[:, :, *upper], self.C_theta[:, :, *strictly]]
        return np.concatenate([part.reshape(n, -1) for part in parts], axis=1)


def eq_33(limit: Limit, alpha: Array, C_omega: Array, at: Vectors, *, corrected: bool = False) -> Increments:
    """Increments of (33), from α (2, T) and C_ω = ρ E[h ωᵀ] (2, T, T) of mean-field theory."""
    noise, tilde = limit.noise, limit.sources(alpha)
    through = limit.A_omega @ noise  # A_ω(y) Λ̃
    g_o, g_e = np.einsum("nyal,ylk->nak", at.g_o, through), np.einsum("nyl,ylk->nk", at.g_e, through)
    omega = np.stack([limit.omega(at.h_e[:, y], y) for y in (0, 1)], axis=1)
    crossed = np.einsum("al,nak->nlk", tilde, g_o)
    mean, root = noise.T @ limit.V_omega.sum(0) @ noise if corrected else limit.V_theta, np.sqrt(limit.gamma)
    square = root * (g_e[:, :, None] * g_e[:, None] - mean)
    own = at.g_e[..., None] * g_e[:, None, None]
    own = root * (own - through) if corrected else own - C_omega
    pairs = (omega, omega, limit.V_omega), (at.h_e, omega, C_omega)
    V_omega, C = (np.sqrt(RHO) * (a[..., None] * b[..., None, :] - m / RHO) for a, b, m in pairs)
    return Increments(
        -g_o[:, :2],
        np.sqrt(RHO) * (omega - alpha / RHO),
        crossed + crossed.transpose(0, 2, 1) + square,
        V_omega,
        C,
        -np.einsum("nyal,ak->nylk", at.g_o, tilde) - own,
    )


NORMAL = np.linspace(-12.0, 12.0, 4801)  # grid of the trapezoidal rule, whose error is below rounding here
DENSITY = np.exp(-(NORMAL**2) / 2) / np.exp(-(NORMAL**2) / 2).sum()


def gordon(first: float, second: float) -> float:
    """E f(ψ) − E f(φ) for φ, ψ ~ N(0, `first`), N(0, `second`) and f(x) = √(1 + x²), which has 0 < f″ ≤ 1."""
    before, after = (float(DENSITY @ np.sqrt(1 + variance * NORMAL**2)) for variance in (first, second))
    return after - before


def eq_38(first: float, second: float) -> float:
    """½ ∫ E[f″(ρ_t)] (E φ² − E ψ²) dt along ρ_t = √t φ + √(1 − t) ψ, for the same."""
    nodes, shares = np.polynomial.legendre.leggauss(40)
    t = (1 + nodes) / 2
    curvature = (1 + np.multiply.outer(t * first + (1 - t) * second, NORMAL**2)) ** -1.5 @ DENSITY
    return float(shares @ curvature) / 4 * (first - second)


def eq_21(rho: tuple[Array, Array], one: tuple[Array, Array], two: tuple[Array, Array]) -> tuple[Array, Array]:
    """Dξ̂[ψ₁] and D²ξ̂[ψ₁, ψ₂] of zeros on a line, from ρ′ and ρ″, ψ₁ and ψ₁′, ψ₂ and ψ₂′ there."""
    J = -rho[0]
    first, second = one[0] / J, two[0] / J
    return first, (rho[1] * first * second + one[1] * second + two[1] * first) / J
