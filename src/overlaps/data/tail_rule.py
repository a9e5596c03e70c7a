"""A few values for the variance s = (ν − 2)/χ²_ν of a sample with heavy tails, with the moments of its law.

With z = √(χ²/2) the density of z is proportional to z^{ν−1} e^{−z²}, and s = (ν − 2)/(2z²). The averages of fields of
covariance s C are s^κ times a function that is smooth in z, also at z = 0 where s is infinite: an error function
saturates there, a power stays one. So the rule is that of Gauss for the law weighted with s^κ,

    ∫ f(s) p(s) ds ≈ Σ_c p_c f(s_c),    p_c = E[s^κ] g_c/s_c^κ,    g_c, z_c of Gauss for z^{ν−1−2κ} e^{−z²} on z > 0,

which is exact for f = s^κ, s^{κ−1/2}, …, s^{κ−n+1/2} with n values, the sum of the probabilities and E s = 1 among
them. κ = 2 where ν > 4, for the noise of SGD may grow as s², κ = 3/2 down to 3 and 1 below, the largest of these of
which there is a moment. The error falls exponentially with n. The orthogonal polynomials are found by Lanczos' method
on many points.

>>> probabilities, s = tail_rule(5.0, 8)
>>> [round(float(probabilities @ s**k), 9) for k in (0, 1, 2)]
[1.0, 1.0, 3.0]
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
POINTS = 400  # that stand for the law
REACH = 7.0  # how far from its mode z is followed; its standard deviation is at most about one half
SMOOTH = 30.0  # power of z from which on its law is smooth enough at zero for points that do not know the power


@lru_cache(maxsize=64)
def tail_rule(degrees: float, count: int) -> tuple[Array, Array]:
    """Probabilities and values of s, (count,) each, largest value first; count is at least three."""
    weighted = 2.0 if degrees > 4 else 1.5 if degrees > 3 else 1.0
    nodes, weights = _gauss(*_law_of_root(degrees - 1 - 2 * weighted), count)
    s = (degrees - 2) / (2 * nodes**2)
    probabilities = weights / s**weighted
    return probabilities / probabilities.sum(), s


def _law_of_root(power: float) -> tuple[Array, Array]:
    """Points z and probabilities of the density z^power e^{−z²}, (POINTS,) each."""
    from scipy.special import roots_jacobi  # here, so that a spec can be checked without SciPy

    mode = np.sqrt(max(power, 0.0) / 2)
    if power < SMOOTH:
        x, w = roots_jacobi(POINTS, 0.0, power)
        z = (x + 1) / 2 * (mode + REACH)
        logarithms = np.log(w) - z**2
    else:
        x, w = np.polynomial.legendre.leggauss(POINTS)
        low = max(mode - REACH, 0.0)
        z = low + (x + 1) / 2 * (mode + REACH - low)
        logarithms = np.log(w) + power * np.log(z / mode) - (z - mode) * (z + mode)
    p = np.exp(logarithms - logarithms.max())
    return z, p / p.sum()


def _gauss(points: Array, weights: Array, count: int) -> tuple[Array, Array]:
    """Nodes and weights of Gauss for a measure given at points, increasing, (count,) each; by Lanczos and Golub."""
    basis = np.zeros((count, points.size))
    basis[0] = np.sqrt(weights)
    diagonal, beside = np.zeros(count), np.zeros(count)
    for k in range(count):
        u = points * basis[k]
        diagonal[k] = u @ basis[k]
        for _ in range(2):  # what rounding leaves along the vectors before is taken away twice
            u -= (basis[: k + 1] @ u) @ basis[: k + 1]
        beside[k] = np.linalg.norm(u)
        if k + 1 < count:
            basis[k + 1] = u / beside[k]
    jacobi = np.diag(diagonal) + np.diag(beside[:-1], 1) + np.diag(beside[:-1], -1)
    nodes, vectors = np.linalg.eigh(jacobi)
    return nodes, vectors[0] ** 2
