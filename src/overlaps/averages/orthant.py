"""Gaussian orthants of up to four fields: P(z > 0) and E[z_p z_q 1(z > 0)].

With correlations ρ,

    P_2 = 1/4 + asin ρ/(2π)                P_3 = 1/8 + (asin ρ_12 + asin ρ_13 + asin ρ_23)/(4π)
    P_4 = 1/16 + (1/2π) Σ_{i<j} ∫_0^{asin ρ_ij} P_2(kl | z_i = z_j = 0; t ρ) dφ,   t = sin φ / ρ_ij

where P_4 follows Plackett's identity (Biometrika 41, 351, 1954) along the path t ρ, in the angle φ in which the
integrand stays bounded. Moments follow by Stein's lemma,

    E[z_p z_q 1] = C_pq P + Σ_j C_pj φ_j(0) E[z_q 1 | z_j = 0],    E[z_q 1] = Σ_l C_ql φ_l(0) P(rest > 0 | z_l = 0).

Each pair (j, l) enters only through its own determinant, so that errors of rounding cancel between the two
orders of conditioning when two fields align.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit


@njit(cache=True)
def _asin(x):  # pragma: no cover - compiled
    return math.asin(min(1.0, max(-1.0, x)))


@njit(cache=True)
def _correlation(cov, vi, vj):  # pragma: no cover - compiled
    # a variance lost to rounding means a deterministic sign shared evenly between both orders of conditioning
    product = vi * vj
    return 0.0 if vi <= 0.0 or vj <= 0.0 else cov / math.sqrt(product)


@njit(cache=True)
def _given_two(C, i, j, k, l, t):  # pragma: no cover - compiled
    """Correlation of z_k and z_l given z_i = z_j = 0, all correlations scaled by t."""
    cij, t2 = t * C[i, j], t * t
    det = C[i, i] * C[j, j] - cij * cij
    if det <= 0.0:
        return 0.0
    ki, kj, li, lj = C[k, i], C[k, j], C[l, i], C[l, j]
    kl = t * C[k, l] - t2 * (ki * li * C[j, j] + kj * lj * C[i, i] - cij * (ki * lj + kj * li)) / det
    kk = C[k, k] - t2 * (ki * ki * C[j, j] + kj * kj * C[i, i] - 2.0 * cij * ki * kj) / det
    ll = C[l, l] - t2 * (li * li * C[j, j] + lj * lj * C[i, i] - 2.0 * cij * li * lj) / det
    return _correlation(kl, kk, ll)


@njit(cache=True)
def probability(C, s, nodes, weights):  # pragma: no cover - compiled
    """P(z_i > 0 for i in s), s of length 0 to 4 and no two fields equal."""
    n = s.size
    total = 0.5**n
    for x in range(n):
        for y in range(x + 1, n):
            i, j = s[x], s[y]
            rho = _correlation(C[i, j], C[i, i], C[j, j])
            if n < 4:
                total += 0.5 ** (n - 2) * _asin(rho) / (2 * math.pi)
                continue
            if rho == 0.0:
                continue
            rest = [s[z] for z in range(4) if z != x and z != y]
            end = _asin(rho)
            part = 0.0
            for q in range(nodes.size):
                t = min(1.0, math.sin(end * nodes[q]) / rho)
                part += weights[q] * (0.25 + _asin(_given_two(C, i, j, rest[0], rest[1], t)) / (2 * math.pi))
            total += end * part / (2 * math.pi)
    return max(0.0, total)


@njit(cache=True)
def second_moment(C, s, p, q, nodes, weights):  # pragma: no cover - compiled
    """E[z_p z_q 1(z_i > 0 for i in s)] for any fields p, q and up to four distinct positive ones s."""
    n = s.size
    total = C[p, q] * probability(C, s, nodes, weights)
    for x in range(n):
        j = s[x]
        for y in range(n):
            l = s[y]
            if x == y or q == j:
                continue
            det = C[j, j] * C[l, l] - C[j, l] ** 2
            if det <= 0.0:
                continue
            rest = np.array([s[z] for z in range(n) if z != x and z != y], np.int64)
            if rest.size == 0:
                chance = 1.0
            elif rest.size == 1:
                chance = 0.5
            else:
                rho = _given_two(C, min(j, l), max(j, l), rest[0], rest[1], 1.0)
                chance = 0.25 + _asin(rho) / (2 * math.pi)
            drift = C[q, l] - C[q, j] * C[j, l] / C[j, j]
            total += C[p, j] * drift * chance / (2 * math.pi * math.sqrt(det))
    return total
