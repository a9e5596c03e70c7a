"""Formulas of the paper as printed, for the claims that test them.

The corrected ones are the library's: `overlaps.giant_step.hermite_product`, `sphere_moment`, `expanded_features`,
`scaled`, `rotated` and `solve`.

>>> round(eq_48(4, 4, 1.7, 0.8, 0.5), 4)  # the average itself is −.8436
0.4164
>>> round(average(lambda x, y: hermite(4, x) * hermite(4, y), [[1.7, 0.5], [0.5, 0.8]]), 4)
-0.8436
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from math import comb, exp, factorial, prod, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def hermite(k: int, x: Array) -> Array:
    """H_k, the probabilists' polynomial."""
    return np.polynomial.hermite_e.HermiteE.basis(k)(x)


def average(f: Callable[[Array, Array], Array], covariance: ArrayLike, mean: Sequence[float] = (0.0, 0.0)) -> float:
    """E f(Z₁, Z₂) of two Gaussians by a product rule, exact for polynomials up to degree 39 in each of two normals."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(20)
    weights = weights / weights.sum()
    (a, b), (_, d) = np.asarray(covariance, float)
    x, y = np.meshgrid(nodes, nodes, indexing="ij")
    first, second = sqrt(a) * x, b / sqrt(a) * x + sqrt(max(d - b**2 / a, 0.0)) * y
    return float(weights @ f(mean[0] + first, mean[1] + second) @ weights)


def eq_48(j: int, k: int, uu: float, vv: float, uv: float) -> float:
    """E[H_j(u·g) H_k(v·g)] of Theorem H.5, from |u|², |v|² and u·v."""
    C = [[uu, uv], [uv, vv]]
    return (
        (factorial(j) * uv**j * (j == k)) / (uu * vv)
        - (uu - 1) * (vv - 1) / (uu * vv) * average(lambda x, y: x**j * y**k, C)
        + (vv - 1) / vv * average(lambda x, y: hermite(j, x) * y**k, C)
        + (uu - 1) / uu * average(lambda x, y: hermite(k, y) * x**j, C)
    )


def eq_49(t: float, variance: float) -> float:
    """E exp(t g) of g ~ N(0, variance)."""
    return exp(t**2 / 2)


def eq_61(j: int, k: int, covariance: ArrayLike, mean: Sequence[float]) -> float:
    """E[H_j(Z₁) H_k(Z₂)] with one ξ in both Gaussians, whatever their covariance."""
    C = np.asarray(covariance, float)
    together = sqrt(C[0, 0] * C[1, 1])
    return average(lambda x, y: hermite(j, x) * hermite(k, y), [[C[0, 0], together], [together, C[1, 1]]], mean)


def eq_69(t: int, k: int, mu: Sequence[float], eigenvalues: Sequence[float]) -> float:
    """E[(w·μ)^t (wᵀΣw)^k] over the sphere, in the eigenbasis of Σ: a moment for each pair of coordinates."""
    d = len(mu)
    total = 0.0
    for alpha, beta in product(_indices(t, d), _indices(k, d)):
        ways = factorial(t) // prod(map(factorial, alpha)) * factorial(k) // prod(map(factorial, beta))
        total += ways * prod(
            mu[i] ** alpha[i] * eigenvalues[j] ** beta[j] * _coordinates(alpha[i], 2 * beta[j], d, same=i == j)
            for i in range(d)
            for j in range(d)
        )
    return total


def _indices(total: int, d: int) -> Iterator[tuple[int, ...]]:
    return (index for index in product(range(total + 1), repeat=d) if sum(index) == total)


def _coordinates(r: int, s: int, d: int, *, same: bool) -> float:
    """E[z_i^r z_j^s] of a point z of the sphere, which is S(r, s, i, j) in print."""
    powers = (r + s,) if same else (r, s)
    if any(p % 2 for p in powers):
        return 0.0
    return prod(prod(range(p - 1, 0, -2)) for p in powers) / prod(range(d, d + r + s, 2))


def eq_72(k: int, width: int, w: float) -> float:
    """E α^k of an entry of α = a_1 − a_2, for even k; w is not defined in print."""
    return factorial(k) / (w ** (k / 2) * factorial(k // 2)) * (2 / width) ** (k / 2)


def eq_65(n: int, mean: float, variance: float, *, factor: bool = True) -> float:
    """E H_n(w·x) of Corollary H.12 from w·μ and wᵀΣw; as it is used in (71) it is without the factor n!."""
    total = 0.0
    for m in range(n // 2 + 1):
        for i in range(0, n - 2 * m + 1, 2):
            term = comb(n - 2 * m, i) * mean ** (n - 2 * m - i) * variance ** (i / 2) * prod(range(i - 1, 0, -2))
            total += (-1) ** m * term / (2**m * factorial(m) * factorial(n - 2 * m))
    return total * (factorial(n) if factor else 1)


def unseen_points(z: Array, nu: Array) -> Array:
    """Points of an unseen class from standard normal z (points, d): z − (zᵀν ν)/|ν|⁴ + ν."""
    return z - np.outer(z @ nu, nu) / (nu @ nu) ** 2 + nu


def rotation(M: Array, epsilon: float) -> Array:
    """The orthogonal matrix of appendix K.4: QR of 1 + ε M, the first column turned if the determinant is −1."""
    Q = np.linalg.qr(np.eye(len(M)) + epsilon * M)[0]
    if np.linalg.slogdet(Q)[0] < 0:
        Q[:, 0] *= -1
    return Q
