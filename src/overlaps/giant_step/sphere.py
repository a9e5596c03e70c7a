"""Averages over weights w uniform on the unit sphere of R^d.

A homogeneous polynomial of degree 2q has the average of the same polynomial of a standard normal vector g, divided by
E|g|^{2q} = d (d + 2) … (d + 2q − 2). For p even and g normal

    E[(w·μ)^p (wᵀΣw)^k] = E[(g·μ)^p (gᵀΣg)^k] / (d (d + 2) … (d + p + 2k − 2))

and the normal average is the coefficient of s^p t^k/(p! k!) in

    E exp(s g·μ + t gᵀΣg) = det(1 − 2tΣ)^{−1/2} exp(½ s² μᵀ(1 − 2tΣ)⁻¹μ)
                          = exp( Σ_j (2t)^j (tr Σ^j/(2j) + ½ s² μᵀΣ^jμ) )        (tr term from j = 1, μ term from j = 0)

The moment does not factorise over coordinates: those of one w are dependent. Functions of few directions are averaged
by quadrature: the coordinates of w along r of them are nearly ξ/√(|ξ|² + d − r − 2) with ξ ~ N(0, 1).

>>> import numpy as np
>>> from overlaps.giant_step.sphere import sphere_moment
>>> mu, Sigma = np.array([1.0, 0.0, 0.0]), np.diag([1.0, 2.0, 3.0])
>>> sphere_moment(2, 1, mu, Sigma)  # (|μ|² tr Σ + 2 μᵀΣμ)/(d (d + 2)) = (6 + 2)/15
0.533333333333...
"""

from __future__ import annotations

from math import comb, factorial, prod

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..interface.checks import array, checked, whole
from ..interface.errors import InputError
from .hermite import double_factorial, finite

Array = NDArray[np.float64]


@checked
def sphere_moment(p: int, k: int, mean: ArrayLike, covariance: ArrayLike) -> float:
    """E[(w·μ)^p (wᵀΣw)^k], exact for any μ and Σ; zero for odd p.

    Parameters
    ----------
    p, k: whole numbers, p + 2k at most 40.
    mean: μ, (d,); covariance: Σ, symmetric, (d, d), of any sign.
    """
    p, k = whole("p", p, least=0), whole("k", k, least=0)
    if p + 2 * k > 40:
        raise InputError(f"p, k: expected p + 2k of at most 40, got {p + 2 * k}")
    mu, Sigma = _forms(mean, covariance)
    with np.errstate(over="ignore", invalid="ignore"):
        return float(finite("sphere moment", _moment(p, k, mu.size, *_invariants(mu, Sigma, k))))


def _forms(mean: ArrayLike, covariance: ArrayLike) -> tuple[Array, Array]:
    mu = array("mean", mean, (None,))
    Sigma = array("covariance", covariance, (mu.size, mu.size))
    if mu.size == 0:
        raise InputError("mean: expected at least 1 input, got none")
    if not np.allclose(Sigma, Sigma.T):
        raise InputError("covariance: expected a symmetric matrix, got one that is not; use (Σ + Σᵀ)/2")
    return mu, Sigma


def _invariants(mu: Array, Sigma: Array, k: int) -> tuple[Array, Array]:
    """tr Σ^j and μᵀΣ^jμ for j = 0 … k, all that the moments depend on."""
    eigenvalues, U = np.linalg.eigh(Sigma)
    powers = eigenvalues ** np.arange(k + 1)[:, None]
    return powers.sum(1), powers @ (mu @ U) ** 2


def _moment(p: int, k: int, d: int, traces: Array, forms: Array) -> float:
    if p % 2:
        return 0.0
    # by powers of t: exp of the traces, and of each power of s² the power of the form
    series = _exponential([0.0, *(2**j * traces[j] / (2 * j) for j in range(1, k + 1))])
    form = 2.0 ** np.arange(k + 1) * forms[: k + 1] / 2
    for _ in range(p // 2):
        series = np.convolve(series, form)[: k + 1]
    gaussian = series[k] / factorial(p // 2) * factorial(p) * factorial(k)
    return float(gaussian / prod(range(d, d + p + 2 * k, 2)))


def _exponential(series: list[float]) -> Array:
    """The power series of exp of a power series without constant term."""
    out = np.zeros(len(series))
    out[0] = 1.0
    for n in range(1, len(series)):
        out[n] = sum(j * series[j] * out[n - j] for j in range(1, n + 1)) / n
    return out


def on_sphere(xi: Array, d: int) -> Array:
    """Coordinates of w along r directions, (points, r), from those of standard normal points of the same shape.

    E|u|² = r/d of the sphere is met to relative order 1/d², and E u⁴ to 1/d.
    """
    if d < xi.shape[1] + 3:
        raise InputError(
            f"inputs: averages over weights along {xi.shape[1]} directions need at least {xi.shape[1] + 3}, got {d}"
        )
    return xi / np.sqrt((xi**2).sum(1, keepdims=True) + d - xi.shape[1] - 2)


@checked
def initial_series(c: ArrayLike, mean: ArrayLike, covariance: ArrayLike) -> float:
    """E_w[f(w·μ, wᵀΣw)²] with f(a, s²) = E g(a + s ξ) = Σ_n c_n E H_n, term by term with exact moments.

    The alignment of a network of one unit before training. Converges where |μ|²/d and |wᵀΣw − 1| are below one; the
    quadrature of `overlaps.giant_step.solve` has no such limit.

    Parameters
    ----------
    c: Hermite coefficients c_0 … of the activation, at most up to c_20; mean: (d,); covariance: (d, d).
    """
    c = array("c", c, (None,))
    if c.size > 21:
        raise InputError(
            f"c: expected at most 21 coefficients, got {c.size}; use hermite_coefficients(activation, 20).c"
        )
    mu, Sigma = _forms(mean, covariance)
    # wᵀΣw − 1 is the form of Σ − 1, since |w| = 1
    invariants = _invariants(mu, Sigma - np.eye(mu.size), c.size)
    # E H_n(a + sξ) = Σ_j C(n, 2j) (2j − 1)!! a^{n−2j} (s² − 1)^j
    terms = [
        (n - 2 * j, j, c[n] * comb(n, 2 * j) * double_factorial(2 * j - 1))
        for n in range(c.size)
        for j in range(n // 2 + 1)
        if c[n]
    ]
    with np.errstate(over="ignore", invalid="ignore"):
        known = {
            (p, k): _moment(p, k, mu.size, *invariants)
            for p, k in {(a + b, i + j) for a, i, _ in terms for b, j, _ in terms}
        }
        total = sum((first * second * known[a + b, i + j] for a, i, first in terms for b, j, second in terms), 0.0)
    return float(finite("series", total))
