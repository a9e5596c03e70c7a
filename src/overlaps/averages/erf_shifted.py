"""Averages of g = erf(x/√2) over Gaussian fields with means μ and covariance C.

g'_k = √(2/π) exp(−z_k²/2) only changes the Gaussian: E[g'_k f] = Z E~[f], with fields tilted by exp(−z_k²/2),

    Z = √(2/(π (1+C_kk))) exp(−μ_k²/(2 (1+C_kk)))
    μ~_a = μ_a − C_ka μ_k/(1+C_kk)                      C~_ab = C_ab − C_ka C_kb/(1+C_kk)

With m_a = μ_a/√(1+C_aa) and ρ = C_ab/√((1+C_aa)(1+C_bb)),

    E[g_a] = erf(m_a/√2)                E[g_a g_b] = E[g_a] E[g_b] + 4 (P(m_a + x > 0, m_b + y > 0; ρ) − Φ(m_a) Φ(m_b))
    E[g''_k g_a] = −Z (μ_k E~[g_a] + C_ka E~[g'_a])/(1+C_kk)

and E[g'_k g'_l g_a g_b] is E[g_a g_b] of fields tilted twice. `bivariate` has the probability.

>>> import numpy as np
>>> C, mean = np.array([[0.5, 0.3], [0.3, 1.0]]), np.array([0.2, -0.4])
>>> both, slopes, curvature, first = pair(C, mean, 0, 1)
>>> round(both, 6), round(slopes, 6)                                # E[g_0 g_1], E[g'_0 g'_1]
(0.075697, 0.350327)
"""

from __future__ import annotations

import math

import numpy as np

from ..compiled.functions import kept
from .bivariate import sign_covariance


@kept(error_model="numpy")
def _level(mean, variance):  # pragma: no cover - compiled
    """E[g]."""
    return math.erf(mean / math.sqrt(2.0 * (1.0 + variance)))


@kept(error_model="numpy")
def _slope(mean, variance):  # pragma: no cover - compiled
    """E[g']."""
    return math.sqrt(2 / math.pi / (1.0 + variance)) * math.exp(-0.5 * mean * mean / (1.0 + variance))


@kept(error_model="numpy")
def product(C, mean, a, b):  # pragma: no cover - compiled
    """E[g_a g_b]."""
    s_a, s_b = math.sqrt(1.0 + C[a, a]), math.sqrt(1.0 + C[b, b])
    r = min(1.0, max(-1.0, C[a, b] / s_a / s_b))
    levels = _level(mean[a], C[a, a]) * _level(mean[b], C[b, b])
    return levels + 4.0 * sign_covariance(mean[a] / s_a, mean[b] / s_b, r)


@kept(error_model="numpy")
def pair(C, mean, a, b):  # pragma: no cover - compiled
    """(E[g_a g_b], E[g'_a g'_b], E[g''_a g_b], E[g'_a g_b])."""
    along = C[a, b] / (1.0 + C[a, a])
    tilted, variance = mean[b] - along * mean[a], C[b, b] - along * C[a, b]
    weight = _slope(mean[a], C[a, a])
    first, slopes = weight * _level(tilted, variance), weight * _slope(tilted, variance)
    curvature = -mean[a] / (1.0 + C[a, a]) * first - along * slopes
    return product(C, mean, a, b), slopes, curvature, first


@kept(error_model="numpy")
def tilt(C, mean, k):  # pragma: no cover - compiled
    """(Z, C~, μ~) of fields tilted by g'_k."""
    F = mean.size
    covariance, shifted = np.empty((F, F)), np.empty(F)
    for a in range(F):
        along = C[a, k] / (1.0 + C[k, k])
        shifted[a] = mean[a] - along * mean[k]
        for b in range(F):
            covariance[a, b] = C[a, b] - along * C[b, k]
    return _slope(mean[k], C[k, k]), covariance, shifted


@kept(error_model="numpy")
def square(C, mean, w):  # pragma: no cover - compiled
    """E[Δ²] for Δ = Σ_a w_a g_a."""
    total = 0.0
    for a in range(w.size):
        total += w[a] * w[a] * product(C, mean, a, a)
        for b in range(a):
            total += 2.0 * w[a] * w[b] * product(C, mean, a, b)
    return total


@kept(error_model="numpy")
def four(C, mean, w, k, l):  # pragma: no cover - compiled
    """E[g'_k g'_l Δ²]."""
    first, C, mean = tilt(C, mean, k)
    second, C, mean = tilt(C, mean, l)
    return first * second * square(C, mean, w)
