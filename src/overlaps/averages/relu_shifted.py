"""Averages of g(x) = max(x, 0) over Gaussian fields with means μ and covariance C.

With standard deviations s, means m = μ/s, correlation ρ, σ = √(1 − ρ²), κ_b = (m_b − ρ m_a)/σ, κ_a likewise, the
normal density φ and distribution function Φ, and P = P(z_a > 0, z_b > 0) of `bivariate`,

    E[g_a g_b]   = (μ_a μ_b + C_ab) P + μ_a s_b φ(m_b) Φ(κ_a) + μ_b s_a φ(m_a) Φ(κ_b) + s_a s_b σ φ(m_a) φ(κ_b)
    E[g'_a g_b]  = μ_b P + s_b ( ρ φ(m_a) Φ(κ_b) + φ(m_b) Φ(κ_a) )
    E[g'_a g'_b] = P
    E[g''_a g_b] = (s_b/s_a) φ(m_a) σ ( κ_b Φ(κ_b) + φ(κ_b) )                                         (0 for a = b)

(Rosenbaum, J. R. Stat. Soc. B 23, 405, 1961). E[g'_k g'_l Δ²], Δ = Σ_a w_a g_a, is a sum of second moments over the
orthants in which up to four fields are positive: `orthant_shifted.product`. A field without variance has g' = 1(μ > 0).

>>> import numpy as np
>>> C, mean = np.array([[0.5, 0.3], [0.3, 1.0]]), np.array([0.2, -0.4])
>>> both, slopes, curvature, first = pair(C, mean, 0, 1)
>>> round(both, 6), round(slopes, 6)                                # E[g_0 g_1], E[g'_0 g'_1]
(0.162766, 0.270381)
"""

from __future__ import annotations

import math

import numpy as np

from ..compiled.functions import kept
from .bivariate import both_positive, density, positive
from .frame import frame
from .orthant_shifted import DECIDED
from .orthant_shifted import product as orthant_product
from .relu import correlations


@kept(error_model="numpy")
def _standard(mean, s):  # pragma: no cover - compiled
    """The mean in standard deviations; a field without variance has its sign for certain, and is not positive at 0."""
    if s > 0.0:
        return mean / s
    return DECIDED if mean > 0.0 else -DECIDED


@kept(error_model="numpy")
def _ratio(gap, sigma):  # pragma: no cover - compiled
    if sigma > 0.0:
        return gap / sigma
    return DECIDED if gap > 0.0 else -DECIDED if gap < 0.0 else 0.0


@kept(error_model="numpy")
def _gap(m, other, rho):  # pragma: no cover - compiled
    """m − ρ other, without cancellation as ρ → ±1."""
    return (m - other) + (1.0 - rho) * other if rho >= 0.0 else (m + other) - (1.0 + rho) * other


@kept(error_model="numpy")
def pair(C, mean, a, b):  # pragma: no cover - compiled
    """(E[g_a g_b], E[g'_a g'_b], E[g''_a g_b], E[g'_a g_b])."""
    s_a, s_b = math.sqrt(max(C[a, a], 0.0)), math.sqrt(max(C[b, b], 0.0))
    m_a, m_b = _standard(mean[a], s_a), _standard(mean[b], s_b)
    if a == b:
        chance, first = positive(m_a), mean[a] * positive(m_a) + s_a * density(m_a)
        return mean[a] * first + C[a, a] * chance, chance, 0.0, first
    alive = s_a > 0.0 and s_b > 0.0
    rho = min(1.0, max(-1.0, C[a, b] / s_a / s_b)) if alive else 0.0
    rest = (1.0 - rho) * (1.0 + rho)
    sigma = math.sqrt(rest)
    gap = _gap(m_b, m_a, rho)
    k_a, k_b = _ratio(_gap(m_a, m_b, rho), sigma), _ratio(gap, sigma)
    chance = both_positive(m_a, m_b, rho, rest)
    at_a, at_b = density(m_a), density(m_b)
    above_a, above_b = at_b * positive(k_a), at_a * positive(k_b)
    both = (mean[a] * mean[b] + C[a, b]) * chance + mean[a] * s_b * above_a + mean[b] * s_a * above_b
    both += s_a * s_b * sigma * at_a * density(k_b)
    first = mean[b] * chance + s_b * (rho * above_b + above_a)
    curvature = 0.0
    if s_a > 0.0:
        level = s_b * gap if s_b > 0.0 else mean[b]
        curvature = (level * above_b + s_b * sigma * at_a * density(k_b)) / s_a
    return both, chance, curvature, first


@kept(error_model="numpy")
def fields(C, mean):  # pragma: no cover - compiled
    """Rows (unit vector, mean in standard deviations) of the fields, (F, F+1), and their standard deviations."""
    R, scale = correlations(C)
    F = scale.size
    X = frame(R)
    Y = np.empty((F, F + 1))
    for a in range(F):
        for m in range(F):
            Y[a, m] = X[a, m]
        Y[a, F] = _standard(mean[a], scale[a])
    return Y, scale


@kept(error_model="numpy")
def _term(w, Y, scale, mean, a, out):  # pragma: no cover - compiled
    """Write w z_a as a linear function (F+1,) of the fields."""
    F = scale.size
    for m in range(F):
        out[m] = w * scale[a] * Y[a, m]
    out[F] = w * mean[a]


@kept(error_model="numpy")
def four(Y, scale, mean, w, k, l, nodes, weights):  # pragma: no cover - compiled
    """E[g'_k g'_l Δ²]; Y, scale: `fields`; nodes, weights: Gauss-Legendre on (0, 1) for orthants of three and four.

    Δ² is sorted by the set of fields that have to be positive: those of k and l, with one other, with two others.
    """
    F = scale.size
    base = 1 if k == l else 2
    chosen = np.empty(4, np.int64)
    chosen[0], chosen[1] = k, l
    own, first, second = np.empty(F + 1), np.empty(F + 1), np.empty(F + 1)
    _term(w[k], Y, scale, mean, k, own)
    if base == 2:
        _term(w[l], Y, scale, mean, l, first)
        for m in range(F + 1):
            own[m] += first[m]
    total = orthant_product(own, own, Y, chosen[:base], nodes, weights)
    for a in range(F):
        if a in (k, l):
            continue
        chosen[base] = a
        _term(w[a], Y, scale, mean, a, first)
        for m in range(F + 1):
            second[m] = 2.0 * own[m] + first[m]
        total += orthant_product(first, second, Y, chosen[: base + 1], nodes, weights)
        for b in range(a):
            if b in (k, l):
                continue
            chosen[base + 1] = b
            _term(2.0 * w[b], Y, scale, mean, b, second)
            total += orthant_product(first, second, Y, chosen[: base + 2], nodes, weights)
    return total
