"""Quadrature rules for z ~ N(0, I_d): lattices, panels that meet at kinks, Sobol points.

Smooth integrands use the trapezoidal rule: a lattice of spacings h_j inside the ball |z| ≤ R. For functions with poles
off the real axis, as tanh or the products of derivatives that occur here, it beats Gauss-Hermite with the same number
of nodes by orders of magnitude (E[tanh'² tanh²] at unit variance, 31 nodes 0.3 apart: 2e-7; Gauss-Hermite 2e-4; `make
bench` repeats it): Gauss-Hermite spends half its nodes where the weight has vanished (Trefethen, SIAM Rev. 64, 2022).
Its error is what the integrand has at the frequencies 2π m_j/h_j, m integer. Along one coordinate a lattice shifted by
half a spacing has the opposite error; one that also has other spacings shares none of its frequencies. That is how a
lattice is judged.

Coordinates along which the integrand has kinks are integrated panel by panel, with Gauss-Legendre nodes between kinks;
see `panel_rule`.

>>> nodes, weights, _ = lattice(np.array([0.5]), 8.0, 0.0)
>>> round(float(weights @ nodes[:, 0] ** 4), 12)
3.0
"""

from __future__ import annotations

from collections import Counter
from functools import cache, lru_cache
from itertools import combinations_with_replacement
from math import comb

import numpy as np
from numpy.typing import NDArray

from ..compiled.functions import kept

Array = NDArray[np.float64]
MOMENTS = 0.6  # how many moments may be made exact, per point


@cache
def unit_rule(n: int) -> tuple[Array, Array]:
    """Gauss-Legendre nodes and weights on (0, 1)."""
    x, w = legendre(n)
    return (x + 1) / 2, w / 2


@lru_cache(maxsize=64)
def legendre(n: int) -> tuple[Array, Array]:
    """Nodes and weights of Gauss and Legendre on [−1, 1]; finding them takes longer than most averages."""
    x, w = np.polynomial.legendre.leggauss(n)
    return x, w


@lru_cache(maxsize=8)
def smooth_grid(spacings: tuple[float, ...], radius: float) -> tuple[Array, Array]:
    """Nodes (points, d) and weights of the trapezoidal rule inside the ball, with a spacing for each coordinate."""
    nodes, weights, _ = lattice(np.array(spacings), radius, 0.0)
    return nodes, weights


@kept(error_model="numpy")
def lattice(spacings, radius, offset):  # pragma: no cover - compiled
    """Nodes (points, d) = (integers + offset) × spacings inside the ball, weights (points,) of sum one, and `moved`.

    moved: for each node, the first coordinate in which it differs from the node before, (points,); 0 for the first.
    Nodes come in lexicographic order, so functions of the leading coordinates need not be evaluated again.
    """
    d = spacings.size
    index, last, left = np.empty(d, np.int64), np.empty(d, np.int64), np.empty(d + 1)
    nodes, moved = np.empty((1, d)), np.empty(1, np.int64)
    for fill in range(2):
        count, level, first = 0, 0, 0
        left[0] = radius * radius
        fresh = True
        while level >= 0:
            if fresh:
                reach = np.sqrt(max(left[level], 0.0)) / spacings[level]
                index[level] = int(np.ceil(-reach - offset)) - 1
                last[level] = int(np.floor(reach - offset))
                fresh = False
            index[level] += 1
            if index[level] > last[level]:
                level -= 1
                first = min(first, level)
                continue
            first = min(first, level)
            z = (index[level] + offset) * spacings[level]
            left[level + 1] = left[level] - z * z
            if level + 1 < d:
                level += 1
                fresh = True
                continue
            if fill:
                for j in range(d):
                    nodes[count, j] = (index[j] + offset) * spacings[j]
                moved[count] = max(first, 0)
            first = level
            count += 1
        if not fill:
            nodes, moved = np.empty((count, d)), np.empty(count, np.int64)
    weights = np.empty(len(nodes))
    total = 0.0
    for i in range(weights.size):
        square = 0.0
        for j in range(d):
            square += nodes[i, j] ** 2
        weights[i] = np.exp(-0.5 * square)
        total += weights[i]
    for i in range(weights.size):
        weights[i] /= total
    return nodes, weights, moved


def density(z: Array) -> Array:
    """Of a standard normal variable."""
    return np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)


def product(nodes: Array, here: Array) -> Array:
    """Append to each of the (points, j) nodes its own row of `here` (points, count) as a next coordinate."""
    return np.concatenate([np.repeat(nodes, here.shape[1], 0), here.reshape(-1, 1)], axis=1)


@lru_cache(maxsize=32)
def sobol(d: int, log2: int, seed: int = 1959, degree: int = 3) -> tuple[Array, Array]:
    """Frozen `scrambled` points, (2^(log2+1), d), and weights (2^(log2+1),) of sum one.

    degree: up to which averages of polynomials are exact: 3, by equal weights; or 5, where there are enough points for
    it, which smooth integrands gain from and kinks do not.
    """
    nodes = scrambled(d, log2, seed + log2)
    half = len(nodes) // 2
    weights = np.full(half, 1 / half)
    if degree == 5 and comb(d + 1, 2) + comb(d + 3, 4) < MOMENTS * half:
        powers, exact = _even_moments(nodes[:half])
        weights += weights * (
            powers @ np.linalg.solve(powers.T @ (powers * weights[:, None]), exact - weights @ powers)
        )
    return nodes, np.concatenate([weights, weights]) / 2


def _even_moments(z: Array) -> tuple[Array, Array]:
    """Products of none, two and four coordinates of points (n, d), and their expectations for z ~ N(0, I)."""
    d = z.shape[1]
    columns, exact = [np.ones(len(z))], [1.0]
    for count in (2, 4):
        for chosen in combinations_with_replacement(range(d), count):
            columns.append(np.prod(z[:, chosen], axis=1))
            powers = Counter(chosen).values()
            exact.append(float(np.prod([(power - 1) * (power % 2 == 0) for power in powers])))
    return np.array(columns).T, np.array(exact)


def scrambled(d: int, log2: int, seed: int) -> Array:
    """Scrambled Sobol points and their mirror images, (2^(log2+1), d); d below 2^log2.

    They are stretched a little so that their second moments are exactly those of z: averages of quadratic functions,
    and with them D of a loss that is nearly quadratic over the width of the fields, are then exact.
    """
    from scipy.special import ndtri
    from scipy.stats import qmc

    points = qmc.Sobol(d, scramble=True, rng=np.random.default_rng(seed)).random_base2(log2)
    half = ndtri(np.clip(points, 1e-15, 1 - 1e-15))
    half = np.linalg.solve(np.linalg.cholesky(half.T @ half / len(half)), half.T).T
    return np.concatenate([half, -half])
