"""Averages of g(x) = max(x, 0) over zero-mean Gaussian fields with covariance C.

With θ the angle between fields a and b, cos θ = C_ab/√(C_aa C_bb):

    E[g_a g_b]   = √(C_aa C_bb)/(2π) [sin θ + (π − θ) cos θ]
    E[g'_a g'_b] = (π − θ)/(2π)
    E[g''_a g_b] = √(C_aa C_bb − C_ab²)/(2π C_aa)             (0 for a = b)

E[g'_k g'_l g_a g_b] is the second moment of (z_a, z_b) over the orthant where the distinct ones of
z_k, z_l, z_a, z_b are positive: `orthant.second_moment`. A field of zero variance is a dead unit, g' = 0.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from .orthant import second_moment


@njit(cache=True)
def pair(C, a, b):  # pragma: no cover - compiled
    """(E[g_a g_b], E[g'_a g'_b], E[g''_a g_b])."""
    if a == b:
        return 0.5 * C[a, a], 0.5 if C[a, a] > 0.0 else 0.0, 0.0
    scale = math.sqrt(C[a, a] * C[b, b])
    if scale == 0.0:
        return 0.0, 0.0, 0.0
    cosine = min(1.0, max(-1.0, C[a, b] / scale))
    # atan2 keeps the angle accurate where the fields align
    sine = math.sqrt(max(0.0, C[a, a] * C[b, b] - C[a, b] ** 2)) / scale
    theta = math.atan2(sine, cosine)
    both = scale / (2 * math.pi) * (sine + (math.pi - theta) * cosine)
    return both, (math.pi - theta) / (2 * math.pi), scale * sine / (2 * math.pi * C[a, a])


@njit(cache=True)
def four(C, k, l, a, b, nodes, weights):  # pragma: no cover - compiled
    """E[g'_k g'_l g_a g_b]; `nodes`, `weights`: Gauss-Legendre rule on (0, 1) for the four-field orthant."""
    chosen = np.empty(4, np.int64)
    n = 0
    for i in (k, l, a, b):
        if C[i, i] <= 0.0:
            return 0.0
        new = True
        for j in range(n):
            c = chosen[j]
            # aligned fields share one sign: keep one of them
            if c == i or (C[i, c] > 0 and C[i, i] * C[c, c] - C[i, c] ** 2 <= 1e-14 * C[i, i] * C[c, c]):
                new = False
                break
        if new:
            chosen[n] = i
            n += 1
    return second_moment(C, chosen[:n], a, b, nodes, weights)
