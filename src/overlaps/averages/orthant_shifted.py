"""Gaussian orthants of up to four fields with means: P(z > 0) and E[A B 1(z > 0)] for linear functions A, B of fields.

Fields are rows (x, m) of d + 1 numbers: a unit vector (see `frame`) and the mean in standard deviations. Split them
into two blocks, scale the correlations ρ between these by t, from 0 (independent blocks) to 1, and follow this path
with Plackett's identity (Biometrika 41, 351, 1954):

    P(all) = P(one block) P(other block) + Σ_ik ∫_0^{asin ρ_ik} p(θ) P(rest > 0 | z_i = z_k = 0; t) dθ
    p(θ) = exp( −(m_i² + m_k² − 2 m_i m_k sin θ)/(2 cos² θ) )/2π                  t = sin θ/ρ_ik

summed over i in one block and k in the other. Blocks are chosen for weak correlations between them. Of two fields in a
block the second is written as a multiple of the first plus a part orthogonal to it, which keeps its accuracy when they
align: the path does not notice. Only where three or more fields align does it end in a narrow layer, and nodes are
graded towards that end.

Moments follow by Stein's lemma, with φ_j the density of z_j at zero,

    E[A B 1] = m_A E[B 1] + (A·B) P + Σ_j (A·x_j) φ_j E[B 1 | z_j = 0]
    E[B 1] = m_B P + Σ_l (B·x_l) φ_l P(rest > 0 | z_l = 0)

>>> import numpy as np
>>> half = np.full((4, 4), 0.5) + 0.5 * np.eye(4)                  # four fields with correlations 1/2: P = 1/5
>>> rows = np.column_stack([np.linalg.cholesky(half), np.zeros(4)])
>>> x, w = np.polynomial.legendre.leggauss(40)
>>> round(probability(rows, np.arange(4), (x + 1) / 2, w / 2), 14)
0.2
"""

from __future__ import annotations

import math

import numpy as np

from ..compiled.functions import kept
from .bivariate import CERTAIN, both_positive, density, positive
from .frame import dot, nearer, outside
from .relu import ALIGNED

DECIDED = 1e3  # a mean in standard deviations that stands for a sign without doubt


@kept(error_model="numpy")
def given(x, near, basis, count, d, out):  # pragma: no cover - compiled
    """The field x given that `count` fields, with orthonormal basis, are zero; returns its standard deviation."""
    length = outside(x, near, basis, count, d, out)
    if length > 0.0:
        for m in range(d + 1):
            out[m] /= length
    else:
        out[d] = DECIDED if out[d] > 0.0 else -DECIDED if out[d] < 0.0 else 0.0
    return length


@kept(error_model="numpy")
def undecided(Y, s, kept):  # pragma: no cover - compiled
    """Write those of the fields s whose signs are neither certain nor implied into kept; how many, or −1 if P = 0."""
    d = Y.shape[1] - 1
    count = 0
    for i in s:
        mean = Y[i, d]
        if mean < -CERTAIN:
            return -1
        new = mean <= CERTAIN
        for x in range(count):
            if not new:
                break
            j = kept[x]
            along = dot(Y[i], Y[j], d)
            if along >= 1.0 - ALIGNED:
                new = False  # of aligned fields the lower one decides
                if mean < Y[j, d]:
                    kept[x] = i
            elif along <= -1.0 + ALIGNED and mean + Y[j, d] <= 0.0:
                return -1
        if new:
            kept[count] = i
            count += 1
    return count


@kept(error_model="numpy")
def _pair(x, y, d):  # pragma: no cover - compiled
    """P(both positive)."""
    r = dot(x, y, d)
    side = 1.0 if r >= 0.0 else -1.0
    gap = 0.0
    for m in range(d):
        gap += (x[m] - side * y[m]) ** 2
    # |x ∓ y|² = 2 (1 ∓ r)
    return both_positive(x[d], y[d], r, max(0.0, gap * (1.0 - 0.25 * gap)))


@kept(error_model="numpy")
def _along_path(Y, i, j, k, l, nodes, weights):  # pragma: no cover - compiled
    """Plackett's integral for z_i and z_k, whose blocks also hold z_j and, unless l < 0, z_l."""
    d = Y.shape[1] - 1
    rho = dot(Y[i], Y[k], d)
    if rho == 0.0:
        return 0.0
    first, second = np.empty(d + 1), np.empty(d + 1)
    end = math.atan2(abs(rho), outside(Y[k], Y[i], Y[i : i + 1], 1, d, first))
    given(Y[j], Y[i], Y[i : i + 1], 1, d, first)
    jk, il, jl = dot(first, Y[k], d), 0.0, 0.0
    if l >= 0:
        given(Y[l], Y[k], Y[k : k + 1], 1, d, second)
        il, jl = dot(Y[i], second, d), dot(first, second, d)
    side = 1.0 if rho > 0.0 else -1.0
    mean, other = Y[i, d], side * Y[k, d]
    total = 0.0
    for q in range(nodes.size):
        left = (1.0 - nodes[q]) ** 3
        angle = end * (1.0 - left * (1.0 - nodes[q]))
        c, square = math.sin(angle), math.cos(angle) ** 2
        t = min(1.0, c / abs(rho))
        # written with the difference of the means, which is small when fields align
        difference = (mean - other) / square
        power = 0.5 * difference * (mean - other) + mean * other / (1.0 + c)
        if power > 60.0:
            continue
        a, b = t * side * jk, t * il
        spread = math.sqrt(max(1e-30, 1.0 - a * a / square))
        h = (first[d] + a * (difference - mean / (1.0 + c))) / spread
        if l < 0:
            chance = positive(h)
        else:
            width = math.sqrt(max(1e-30, 1.0 - b * b / square))
            g = (second[d] - b * (difference + other / (1.0 + c))) / width
            r = min(1.0, max(-1.0, (t * jl + a * b * c / square) / (spread * width)))
            chance = both_positive(h, g, r, (1.0 - r) * (1.0 + r))
        total += weights[q] * 4.0 * left * math.exp(-power) * chance
    return side * end * total / (2 * math.pi)


@kept(error_model="numpy")
def _strongest(Y, i, j, k, l):  # pragma: no cover - compiled
    """Largest correlation, in absolute value, between the blocks (i, j) and (k, l); l < 0 if there is none."""
    d = Y.shape[1] - 1
    most = max(abs(dot(Y[i], Y[k], d)), abs(dot(Y[j], Y[k], d)))
    if l >= 0:
        most = max(most, abs(dot(Y[i], Y[l], d)), abs(dot(Y[j], Y[l], d)))
    return most


@kept(error_model="numpy")
def probability(Y, s, nodes, weights):  # pragma: no cover - compiled
    """P(z_i > 0 for i in s), up to four fields of Y (…, d+1); nodes, weights: Gauss-Legendre on (0, 1)."""
    d = Y.shape[1] - 1
    kept = np.empty(4, np.int64)
    n = undecided(Y, s, kept)
    if n <= 0:
        return 1.0 if n == 0 else 0.0
    if n == 1:
        return positive(Y[kept[0], d])
    if n == 2:
        return _pair(Y[kept[0]], Y[kept[1]], d)
    best, i, j, k = 2.0, -1, -1, -1
    l = kept[3] if n == 4 else -1
    for x in range(3):
        a, b, c = kept[(x + 1) % 3], kept[(x + 2) % 3], kept[x]
        most = _strongest(Y, a, b, c, l)
        if most < best:
            best, i, j, k = most, a, b, c
    total = _pair(Y[i], Y[j], d) * (positive(Y[k, d]) if l < 0 else _pair(Y[k], Y[l], d))
    for _ in range(1 if l < 0 else 2):
        for _ in range(2):
            total += _along_path(Y, i, j, k, l, nodes, weights)
            i, j = j, i
        k, l = l, k
    return min(1.0, max(0.0, total))


@kept(error_model="numpy")
def product(A, B, Y, s, nodes, weights):  # pragma: no cover - compiled
    """E[A B 1(z_i > 0 for i in s)], up to four fields of Y (…, d+1); A, B: (d+1,), coefficients and mean."""
    d = A.size - 1
    kept = np.empty(4, np.int64)
    n = undecided(Y, s, kept)
    if n < 0:
        return 0.0
    total = (A[d] * B[d] + dot(A, B, d)) * probability(Y, kept[:n], nodes, weights)
    # places of the fields that are left: given one zero, given a second zero as well
    rest, last, places = np.empty((3, d + 1)), np.empty((2, d + 1)), np.arange(3)
    basis = np.empty((2, d + 1))
    for x in range(n):
        pinned = Y[kept[x]]
        here, along_a, along_b = density(pinned[d]), dot(A, pinned, d), dot(B, pinned, d)
        for m in range(d + 1):
            basis[0, m] = pinned[m]
        for y in range(n - 1):
            given(Y[kept[(x + 1 + y) % n]], pinned, basis, 1, d, rest[y])
        first = A[d] * along_b + along_a * (B[d] - along_b * pinned[d])
        total += here * first * probability(rest, places[: n - 1], nodes, weights)
        for y in range(n - 1):
            also = Y[kept[(x + 1 + y) % n]]
            for m in range(d + 1):
                basis[1, m] = rest[y, m]
            for z in range(n - 2):
                other = Y[kept[(x + 1 + (y + 1 + z) % (n - 1)) % n]]
                given(other, nearer(other, pinned, also, d), basis, 2, d, last[z])
            second = density(rest[y, d]) * along_a * dot(B, rest[y], d)
            total += here * second * probability(last, places[: n - 2], nodes, weights)
    return total
