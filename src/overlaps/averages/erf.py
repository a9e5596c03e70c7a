"""Averages of g = erf(x/√2) over zero-mean Gaussian fields with covariance C.

    E[g_a g_b]   = (2/π) asin( C_ab / √((1+C_aa)(1+C_bb)) )
    E[g'_a g'_b] = (2/π) / √((1+C_aa)(1+C_bb) − C_ab²)
    E[g''_a g_b] = −C_ab/(1+C_aa) E[g'_a g'_b]
    E[g'_k g'_l g_a g_b] = (4/π²) A4^-½ asin( A0/√(A1 A2) )

Saad and Solla, Phys. Rev. E 52, 4225 (1995). In the fourth line the signs are those of the original, not
those of Appendix (91) of "Analyzing neural scaling laws in two-layer networks with power-law data spectra".
"""

from __future__ import annotations

import math

from ..compiled.functions import kept


@kept(error_model="numpy")
def pair(C, a, b):  # pragma: no cover - compiled
    """(E[g_a g_b], E[g'_a g'_b], E[g''_a g_b])."""
    product = (1.0 + C[a, a]) * (1.0 + C[b, b])
    both = math.asin(min(1.0, max(-1.0, C[a, b] / math.sqrt(product))))
    # product − C_ab², without its cancellation at a = b
    slopes = 1.0 / math.sqrt(1.0 + C[a, a] + C[b, b] + (C[a, a] * C[b, b] - C[a, b] * C[a, b]))
    return 2 / math.pi * both, 2 / math.pi * slopes, -2 / math.pi * C[a, b] / (1.0 + C[a, a]) * slopes


@kept(error_model="numpy")
def _minors(C, det, k, l, a, b):  # pragma: no cover - compiled
    """Determinants of rows (a, k), (a, l), (a, k, l) and columns (b, k), (b, l), (b, k, l) of C; det: of (k, l)."""
    ka, kb, la, lb = C[k, a], C[k, b], C[l, a], C[l, b]
    whole = C[a, b] * det - la * lb * C[k, k] - ka * kb * C[l, l] + C[k, l] * (ka * lb + kb * la)
    return (C[a, b] * C[k, k] - ka * kb) + (C[a, b] * C[l, l] - la * lb) + whole


@kept(error_model="numpy")
def four(C, k, l, a, b):  # pragma: no cover - compiled
    """E[g'_k g'_l g_a g_b]."""
    # with C' = 1 + C for k and l expanded: the determinants vanish exactly for k = l, where fields of variance Q would
    # lose Q² times the rounding otherwise
    det = C[k, k] * C[l, l] - C[k, l] * C[k, l]
    a4 = 1.0 + C[k, k] + C[l, l] + det
    a0 = C[a, b] + _minors(C, det, k, l, a, b)
    a1 = a4 + C[a, a] + _minors(C, det, k, l, a, a)
    a2 = a4 + C[b, b] + _minors(C, det, k, l, b, b)
    angle = math.asin(min(1.0, max(-1.0, a0 / math.sqrt(a1 * a2))))
    return 4 / math.pi**2 / math.sqrt(a4) * angle
