"""Averages of g(x) = max(x, 0) over zero-mean Gaussian fields with covariance C.

With θ the angle between fields a and b, cos θ = C_ab/√(C_aa C_bb):

    E[g_a g_b]   = √(C_aa C_bb)/(2π) [sin θ + (π − θ) cos θ]
    E[g'_a g'_b] = (π − θ)/(2π)
    E[g''_a g_b] = √(C_aa C_bb − C_ab²)/(2π C_aa)             (0 for a = b)

E[g'_k g'_l g_a g_b] is the second moment of (z_a, z_b) over the orthant where the distinct ones of
z_k, z_l, z_a, z_b are positive: `orthant.second_moment`. A field of zero variance is a dead unit, g' = 0; so is one
whose variance, as small as the tolerance of a solver, has lost its sign.
"""

from __future__ import annotations

import math

import numpy as np

from ..compiled.functions import kept
from .frame import frame
from .orthant import second_moment

ALIGNED = 1e-15  # correlations this close to ±1 differ from it by rounding alone


@kept(error_model="numpy")
def pair(C, a, b):  # pragma: no cover - compiled
    """(E[g_a g_b], E[g'_a g'_b], E[g''_a g_b])."""
    if a == b:
        return 0.5 * max(C[a, a], 0.0), 0.5 if C[a, a] > 0.0 else 0.0, 0.0
    s_a, s_b = math.sqrt(max(C[a, a], 0.0)), math.sqrt(max(C[b, b], 0.0))
    if s_a == 0.0 or s_b == 0.0:
        return 0.0, 0.0, 0.0
    cosine = min(1.0, max(-1.0, C[a, b] / s_a / s_b))
    # atan2 keeps the angle accurate where the fields align
    sine = math.sqrt((1.0 - cosine) * (1.0 + cosine))
    theta = math.atan2(sine, cosine)
    both = s_a * s_b / (2 * math.pi) * (sine + (math.pi - theta) * cosine)
    return both, (math.pi - theta) / (2 * math.pi), s_b / s_a * sine / (2 * math.pi)


@kept(error_model="numpy")
def correlations(C):  # pragma: no cover - compiled
    """Correlation matrix of the fields (zero rows for fields of zero variance) and their standard deviations."""
    n = C.shape[0]
    scale = np.sqrt(np.maximum(np.diag(C), 0.0))
    out = np.zeros((n, n))
    for a in range(n):
        for b in range(n):
            if scale[a] > 0.0 and scale[b] > 0.0:
                out[a, b] = 1.0 if a == b else min(1.0, max(-1.0, C[a, b] / scale[a] / scale[b]))
    return out, scale


@kept(error_model="numpy")
def four(C, k, l, a, b, nodes, weights):  # pragma: no cover - compiled
    """E[g'_k g'_l g_a g_b] for unit variances; `nodes`, `weights`: Gauss-Legendre on (0, 1) for the four-field orthant.

    ReLU is homogeneous: with standard deviations s the average is s_a s_b times this at the correlations.
    """
    fields = (k, l, a, b)
    R = np.empty((4, 4))
    for x in range(4):
        if C[fields[x], fields[x]] == 0.0:
            return 0.0
        for y in range(4):
            R[x, y] = C[fields[x], fields[y]]
    chosen = np.empty(4, np.int64)
    n = 0
    for x in range(4):
        new = True
        for j in range(n):
            if R[x, chosen[j]] <= -1.0 + ALIGNED:
                return 0.0  # opposite fields are never both positive
            if R[x, chosen[j]] >= 1.0 - ALIGNED:
                new = False  # aligned fields share one sign: keep one of them
        if new:
            chosen[n] = x
            n += 1
    return second_moment(R, frame(R), chosen[:n], 2, 3, nodes, weights)
