"""Averages of g(x) = x: E[g_a g_b] = C_ab, E[g'_a g'_b] = 1, E[g''_a g_b] = 0, E[g'_k g'_l g_a g_b] = C_ab."""

from __future__ import annotations

from numba import njit


@njit(cache=True, error_model="numpy")
def pair(C, a, b):  # pragma: no cover - compiled
    """(E[g_a g_b], E[g'_a g'_b], E[g''_a g_b])."""
    return C[a, b], 1.0, 0.0


@njit(cache=True, error_model="numpy")
def four(C, k, l, a, b):  # pragma: no cover - compiled
    """E[g'_k g'_l g_a g_b]."""
    return C[a, b]
