"""The square loss of one Gaussian component whose fields have means.

With weights ω = (v, −u) over all K+M fields and Δ = Σ_a ω_a g_a,

    D_ka = v_k ( ω_a E[g'_k g'_a] + δ_ka Σ_b ω_b E[g''_k g_b] )            E[δ_k] = v_k Σ_a ω_a E[g'_k g_a]
    S_kl = v_k v_l ( E[g'_k g'_l Δ²] + noise² E[g'_k g'_l] )
    E[∂loss/∂v_k] = Σ_a ω_a E[g_k g_a]                                     error = ½ Σ_ab ω_a ω_b E[g_a g_b]

from the averages of one activation: `erf_shifted`, `linear`, `relu_shifted`. D is the derivative of E[δ] in the means.

>>> import numpy as np
>>> error(1, np.eye(2), np.array([1.0, 0.5]), np.array([1.0, -1.0]))         # linear units: (1 + 1 + 0.5²)/2
1.125
"""

from __future__ import annotations

from ..compiled.functions import kept
from . import erf_shifted, linear, relu_shifted


@kept(error_model="numpy")
def _pair(family, C, mean, a, b):  # pragma: no cover - compiled
    if family == 0:
        return erf_shifted.pair(C, mean, a, b)
    if family == 1:
        return linear.shifted_pair(C, mean, a, b)
    return relu_shifted.pair(C, mean, a, b)


@kept(error_model="numpy")
def error(family, C, mean, w):  # pragma: no cover - compiled
    """½ E[Δ²] for fields of covariance C (F, F) and means (F,)."""
    if family == 0:
        return 0.5 * erf_shifted.square(C, mean, w)
    total = 0.0
    for a in range(w.size):
        total += 0.5 * w[a] * w[a] * _pair(family, C, mean, a, a)[0]
        for b in range(a):
            total += w[a] * w[b] * _pair(family, C, mean, a, b)[0]
    return total


@kept(error_model="numpy")
def averages(family, C, mean, w, K, noise, nodes, weights, D, S, dv, E):  # pragma: no cover - compiled
    """Write D (K, F), S (K, K), dv (K,), E (K,); returns the error. Fields have covariance C (F, F) and means (F,).

    nodes, weights: Gauss-Legendre on (0, 1), for orthants of ReLU fields; None for other families.
    """
    F = w.size
    half = error(family, C, mean, w)
    Y, scale = C, mean
    if nodes is not None:
        Y, scale = relu_shifted.fields(C, mean)
    for k in range(K):
        self_term = 0.0
        dv[k] = E[k] = 0.0
        for a in range(F):
            both, slopes, curvature, first = _pair(family, C, mean, k, a)
            dv[k] += w[a] * both
            D[k, a] = w[k] * w[a] * slopes
            E[k] += w[k] * w[a] * first
            self_term += w[a] * curvature
        D[k, k] += w[k] * self_term
    for k in range(K):
        for l in range(k + 1):
            if nodes is not None:
                total = relu_shifted.four(Y, scale, mean, w, k, l, nodes, weights)
            elif family == 0:
                total = erf_shifted.four(C, mean, w, k, l)
            else:
                total = 2.0 * half
            if noise > 0.0:
                total += noise**2 * _pair(family, C, mean, k, l)[1]
            S[k, l] = S[l, k] = w[k] * w[l] * total
    return half
