"""Averages of g(x) = x: E[g_a g_b] = C_ab, E[g'_a g'_b] = 1, E[g''_a g_b] = 0, E[g'_k g'_l g_a g_b] = C_ab.

Fields with means μ have E[g_a g_b] = C_ab + μ_a μ_b and E[g'_a g_b] = μ_b.
"""

from __future__ import annotations

from ..compiled.functions import kept


@kept(error_model="numpy")
def pair(C, a, b):  # pragma: no cover - compiled
    """(E[g_a g_b], E[g'_a g'_b], E[g''_a g_b])."""
    return C[a, b], 1.0, 0.0


@kept(error_model="numpy")
def four(C, k, l, a, b):  # pragma: no cover - compiled
    """E[g'_k g'_l g_a g_b]."""
    return C[a, b]


@kept(error_model="numpy")
def shifted_pair(C, mean, a, b):  # pragma: no cover - compiled
    """(E[g_a g_b], E[g'_a g'_b], E[g''_a g_b], E[g'_a g_b]) with means."""
    return C[a, b] + mean[a] * mean[b], 1.0, 0.0, mean[b]
