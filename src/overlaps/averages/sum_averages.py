"""The square loss of committees whose activations are sums of error functions and smoothed moduli (`sums`).

Fields have mean zero, so odd and even parts of the activations do not meet. With variances A_i = C_aa + s_i² of a field
seen by a term of width s_i, and ρ = C_ab/√(A_i B_j) = cos θ,

    E[erf_a erf_b] = (2/π) asin ρ            E[h_a erf_b] = √(2/π) C_ab/√B_j
    E[|a| |b|]     = (2/π) √(A_i B_j) (sin θ + (π/2 − θ) cos θ)            E[|a|] = √(2 A_i/π)

The slope of an error function only changes the Gaussian,

    √(2/π)/s_i exp(−h_k²/(2 s_i²)) :      E[… f] = Z E~[f],  Z = √(2/(π A_i)),  C~_ab = C_ab − C_ka C_kb/A_i,

so that E[g'_k g'_l Δ²] is a sum of E~[Δ²] over the terms of g'_k and g'_l: no average has more than two fields,
whatever K + M. Students are sums of error functions and a linear function, teachers of anything.

>>> C = np.array([[0.5, 0.3], [0.3, 1.0]])
>>> network = Terms(0.0, 0.0, np.ones(1), np.ones(1), np.zeros(0), np.zeros(0))
>>> round(square(C, np.array([1.0, -1.0]), 1, network, network), 6)              # E[(erf_0 − erf_1)²]
0.328031
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..compiled.functions import kept
from .orthant import asin
from .sums import Sum

Array = NDArray[np.float64]


class Terms(NamedTuple):
    """A `Sum` as compiled code reads it: a, b, c (n,), s² (n,), d (m,), r² (m,)."""

    constant: float
    linear: float
    steps: Array
    widths: Array
    moduli: Array
    moduli_widths: Array


def terms(total: Sum) -> Terms:
    """The arrays of a sum."""
    steps, moduli = np.ascontiguousarray(total.steps), np.ascontiguousarray(total.moduli)
    return Terms(float(total.constant), float(total.linear), steps[0], steps[1], moduli[0], moduli[1])


@kept(error_model="numpy")
def product(C, a, b, g, h):  # pragma: no cover - compiled
    """E[g(h_a) h(h_b)]."""
    c, both = C[a, b], 0.0
    odd = g.linear * h.linear * c
    root = math.sqrt(2 / math.pi)
    for i in range(g.steps.size):
        A = C[a, a] + g.widths[i]
        odd += h.linear * g.steps[i] * root * c / math.sqrt(A)
        for j in range(h.steps.size):
            both += g.steps[i] * h.steps[j] * asin(c / math.sqrt(A * (C[b, b] + h.widths[j])))
    for j in range(h.steps.size):
        odd += g.linear * h.steps[j] * root * c / math.sqrt(C[b, b] + h.widths[j])
    return odd + 2 / math.pi * both + _even(C, a, b, g, h)


@kept(error_model="numpy")
def _level(variance, g):  # pragma: no cover - compiled
    """E[g]."""
    total = g.constant
    for i in range(g.moduli.size):
        total += g.moduli[i] * math.sqrt(2 / math.pi * (variance + g.moduli_widths[i]))
    return total


@kept(error_model="numpy")
def _even(C, a, b, g, h):  # pragma: no cover - compiled
    """E[g h] of the even parts."""
    first, second = _level(C[a, a], g), _level(C[b, b], h)
    if g.moduli.size == 0 or h.moduli.size == 0:
        return first * second
    total = first * h.constant + g.constant * (second - h.constant)
    for i in range(g.moduli.size):
        for j in range(h.moduli.size):
            A, B = C[a, a] + g.moduli_widths[i], C[b, b] + h.moduli_widths[j]
            size = math.sqrt(A * B)
            if size > 0.0:
                cosine = min(1.0, max(-1.0, C[a, b] / size))
                sine = math.sqrt((1.0 - cosine) * (1.0 + cosine))
                # atan2 keeps the angle accurate where the fields align
                angle = math.atan2(cosine, sine)
                total += g.moduli[i] * h.moduli[j] * 2 / math.pi * size * (sine + angle * cosine)
    return total


@kept(error_model="numpy")
def slopes(C, a, b, g, h):  # pragma: no cover - compiled
    """E[g'(h_a) h'(h_b)], and E[g''(h_a) h(h_b)]; g without moduli."""
    c = C[a, b]
    root = math.sqrt(2 / math.pi)
    second = h.linear
    for j in range(h.steps.size):
        second += h.steps[j] * root / math.sqrt(C[b, b] + h.widths[j])
    both, curvature = g.linear * second, 0.0
    for i in range(g.steps.size):
        A = C[a, a] + g.widths[i]
        weight = g.steps[i] * root / math.sqrt(A)
        rest = h.linear
        for j in range(h.steps.size):
            rest += h.steps[j] * root / math.sqrt(C[b, b] + h.widths[j] - c * c / A)
        both += weight * rest
        curvature -= weight * rest * c / A
    return both, curvature


@kept(fastmath={"reassoc", "contract"}, error_model="numpy")
def sum_of_angles(weight, cosine):  # pragma: no cover - compiled
    """Σ_q weight_q asin(cosine_q), to rounding and without branches, so that several are computed at once.

    asin x = x + x P(x²)/Q(x²) up to 1/2, and π/2 − 2 asin √((1 − x)/2) beyond; P and Q of fdlibm (Sun, 1993).
    """
    total = 0.0
    for q in range(cosine.size):
        x = min(abs(cosine[q]), 1.0)
        far = x > 0.5
        z = 0.5 * (1.0 - x) if far else x * x
        y = math.sqrt(z) if far else x
        P = 7.91534994289814532176e-04 + z * 3.47933107596021167570e-05
        P = 2.01212532134862925881e-01 + z * (-4.00555345006794114027e-02 + z * P)
        P = z * (1.66666666666666657415e-01 + z * (-3.25565818622400915405e-01 + z * P))
        Q = -6.88283971605453293030e-01 + z * 7.70381505559019352791e-02
        Q = 1.0 + z * (-2.40339491173441421878e00 + z * (2.02094576023350569471e00 + z * Q))
        near = y + y * (P / Q)
        angle = 0.5 * math.pi - 2.0 * near if far else near
        total += weight[q] * (angle if cosine[q] >= 0.0 else -angle)
    return total


@kept(error_model="numpy")
def square(C, w, K, g, h):  # pragma: no cover - compiled
    """E[Δ²] for Δ = Σ_a w_a g_a, the first K fields of activation g and the others of h."""
    F, n, m = w.size, g.steps.size, h.steps.size
    N = K * n + (F - K) * m
    # every error function of every field is one of N atoms; one sum over pairs of them is nearly all of the cost
    weight, inverse, of = np.empty(N), np.empty(N), np.empty(N, np.int64)
    q, mean = 0, 0.0
    for a in range(F):
        own = g if a < K else h
        mean += w[a] * own.constant
        for i in range(own.steps.size):
            weight[q], of[q] = w[a] * own.steps[i], a
            inverse[q] = 1.0 / math.sqrt(C[a, a] + own.widths[i])
            q += 1
    total, root = 0.0, math.sqrt(2 / math.pi)
    weights, cosines, last = np.empty(N * (N + 1) // 2), np.empty(N * (N + 1) // 2), 0
    for p in range(N):
        a = of[p]
        for q in range(p + 1):
            weights[last + q] = weight[p] * weight[q]
            cosines[last + q] = C[a, of[q]] * inverse[p] * inverse[q]
        last += p + 1
        weights[last - 1] *= 0.5
    total += 4 / math.pi * sum_of_angles(weights, cosines)
    if g.linear != 0.0 or h.linear != 0.0:
        for a in range(F):
            slope = w[a] * (g.linear if a < K else h.linear)
            for b in range(F):
                total += slope * w[b] * (g.linear if b < K else h.linear) * C[a, b]
            for q in range(N):
                total += 2.0 * slope * weight[q] * root * C[a, of[q]] * inverse[q]
    if h.moduli.size == 0:
        return total + mean * mean
    for a in range(K, F):
        total += 2.0 * mean * w[a] * (_level(C[a, a], h) - h.constant)
        for b in range(K, F):
            levels = h.constant * (_level(C[a, a], h) + _level(C[b, b], h) - h.constant)
            total += w[a] * w[b] * (_even(C, a, b, h, h) - levels)
    return total + mean * mean


@kept(error_model="numpy")
def tilted(C, k, width, out):  # pragma: no cover - compiled
    """Covariance of fields under a Gaussian in field k of that squared width, written into out; returns √(2/(π A))."""
    F = len(C)
    A = C[k, k] + width
    for a in range(F):
        along = C[a, k] / A
        for b in range(F):
            out[a, b] = C[a, b] - along * C[b, k]
    return math.sqrt(2 / math.pi / A)


@kept(error_model="numpy")
def averages(C, w, K, noise, g, h, D, S, dv):  # pragma: no cover - compiled
    """Write D (K, F), S (K, K), dv (K,) at field covariance C (F, F) and weights w = (v, −u); returns the error."""
    F, n = w.size, g.steps.size
    for k in range(K):
        self_term = 0.0
        dv[k] = 0.0
        for a in range(F):
            own = g if a < K else h
            both, curvature = slopes(C, k, a, g, own)
            dv[k] += w[a] * product(C, k, a, g, own)
            D[k, a] = w[k] * w[a] * both
            self_term += w[a] * curvature
        D[k, k] += w[k] * self_term
    whole = square(C, w, K, g, h)
    once, twice = np.empty((F, F)), np.empty((F, F))
    for k in range(K):
        for l in range(k + 1):
            S[k, l] = g.linear * g.linear * (whole + noise**2)
    for k in range(K):
        for i in range(n):
            first = g.steps[i] * tilted(C, k, g.widths[i], once)
            if g.linear != 0.0:
                part = first * g.linear * (square(once, w, K, g, h) + noise**2)
                for l in range(K):
                    S[max(k, l), min(k, l)] += part * (2.0 if k == l else 1.0)
            for l in range(k + 1):
                for j in range(i + 1 if k == l else n):
                    second = g.steps[j] * tilted(once, l, g.widths[j], twice)
                    twofold = 2.0 if k == l and j < i else 1.0
                    S[k, l] += twofold * first * second * (square(twice, w, K, g, h) + noise**2)
    for k in range(K):
        for l in range(k + 1):
            S[k, l] *= w[k] * w[l]
            S[l, k] = S[k, l]
    return 0.5 * whole
