"""Gaussian orthants of up to four fields of unit variance: P(z > 0) and E[z_p z_q 1(z > 0)].

With correlations ρ,

    P_2 = 1/4 + asin ρ/(2π)                P_3 = 1/8 + (asin ρ_12 + asin ρ_13 + asin ρ_23)/(4π)
    P_4 = 1/16 + (1/2π) Σ_{i<j} ∫_0^{asin ρ_ij} P_2(kl | z_i = z_j = 0; t ρ) dφ,   t = sin φ / ρ_ij

where P_4 follows Plackett's identity (Biometrika 41, 351, 1954) along the path t ρ, in the angle φ in which the
integrand stays bounded; nodes are graded towards the end of the path, where it changes fast if two fields align.
Moments follow by Stein's lemma,

    E[z_p z_q 1] = ρ_pq P + Σ_j ρ_pj φ(0) E[z_q 1 | z_j = 0],    E[z_q 1] = Σ_l ρ_ql φ_l(0) P(rest > 0 | z_l = 0).

with the conditional fields of the moments as vectors, see `frame`.
"""

from __future__ import annotations

import math

import numpy as np

from ..compiled.functions import kept
from .frame import dot, nearer, outside


@kept(error_model="numpy")
def asin(x):  # pragma: no cover - compiled
    """Of a correlation, which rounding may put outside of [−1, 1]."""
    return math.asin(min(1.0, max(-1.0, x)))


@kept(error_model="numpy")
def _explained(a, b, d, e, c, det):  # pragma: no cover - compiled
    """(a, b) · inverse of (1, c; c, 1) · (d, e), with det = 1 − c² given: no cancellation as c → ±1."""
    if c >= 0.0:
        return (a - b) * (d - e) / det + (a * e + b * d) / (1.0 + c)
    return (a + b) * (d + e) / det - (a * e + b * d) / (1.0 - c)


@kept(error_model="numpy")
def _given_two(C, i, j, k, l, t, det):  # pragma: no cover - compiled
    """Correlation of z_k and z_l given z_i = z_j = 0, all correlations scaled by t; det = 1 − (t ρ_ij)²."""
    c = t * C[i, j]
    ki, kj, li, lj = t * C[k, i], t * C[k, j], t * C[l, i], t * C[l, j]
    kk = 1.0 - _explained(ki, kj, ki, kj, c, det)
    ll = 1.0 - _explained(li, lj, li, lj, c, det)
    if kk <= 0.0 or ll <= 0.0:
        return 0.0  # a sign decided by the conditions, shared evenly between their two sides
    return (t * C[k, l] - _explained(ki, kj, li, lj, c, det)) / math.sqrt(kk * ll)


@kept(error_model="numpy")
def probability(C, s, nodes, weights):  # pragma: no cover - compiled
    """P(z_i > 0 for i in s), s of length 0 to 4; nodes, weights: Gauss-Legendre on (0, 1)."""
    n = s.size
    total = 0.5**n
    for x in range(n):
        for y in range(x + 1, n):
            i, j = s[x], s[y]
            end = asin(C[i, j])
            if n < 4:
                total += 0.5 ** (n - 2) * end / (2 * math.pi)
                continue
            if C[i, j] == 0.0:
                continue
            k, l = _others(s, x, y)
            part = 0.0
            for q in range(nodes.size):
                left = (1.0 - nodes[q]) ** 3
                angle = end * (1.0 - left * (1.0 - nodes[q]))
                t = min(1.0, math.sin(angle) / C[i, j])
                rho = _given_two(C, i, j, k, l, t, math.cos(angle) ** 2)
                part += weights[q] * 4.0 * left * (0.25 + asin(rho) / (2 * math.pi))
            total += end * part / (2 * math.pi)
    return max(0.0, total)


@kept(error_model="numpy")
def _others(s, x, y):  # pragma: no cover - compiled
    """The two members of s (four) at places other than x and y."""
    first, second = -1, -1
    for z in range(s.size):
        if z != x and z != y:
            if first < 0:
                first = s[z]
            else:
                second = s[z]
    return first, second


@kept(error_model="numpy")
def second_moment(C, X, s, p, q, nodes, weights):  # pragma: no cover - compiled
    """E[z_p z_q 1(z_i > 0 for i in s)]; X = frame(C), up to four distinct positive fields s, any fields p and q.

    With unit vectors e_jl along the part of x_l orthogonal to x_j this is

        ρ_pq P + (1/2π) Σ_{j≠l} ρ_pj (x_q · e_jl) P(rest > 0 | z_j = z_l = 0).
    """
    n = s.size
    total = C[p, q] * probability(C, s, nodes, weights)
    d = X.shape[1]
    basis, first, second = np.empty((2, d)), np.empty(d), np.empty(d)
    for x in range(n):
        for y in range(n):
            j, l = s[x], s[y]
            if x == y:
                continue
            basis[0] = X[j]
            length = outside(X[l], X[j], basis, 1, d, basis[1])
            if length == 0.0:
                continue
            basis[1] /= length
            chance = 0.5 ** (n - 2)
            if n == 4:
                k, m = _others(s, x, y)
                lengths = outside(X[k], nearer(X[k], X[j], X[l], d), basis, 2, d, first)
                lengths *= outside(X[m], nearer(X[m], X[j], X[l], d), basis, 2, d, second)
                if lengths > 0.0:
                    chance += asin(dot(first, second, d) / lengths) / (2 * math.pi)
            total += C[p, j] * dot(X[q], basis[1], d) * chance / (2 * math.pi)
    return total
