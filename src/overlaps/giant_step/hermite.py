"""Hermite expansions of activations, and averages of Hermite polynomials under any Gaussian.

With probabilists' polynomials, H_{k+1}(x) = x H_k(x) − k H_{k−1}(x), and z ~ N(0, 1)

    g(z) = Σ_k c_k H_k(z)        c_k = E[g(z) H_k(z)]/k!        E g(z + s) = Σ_k c_k s^k

For Z ~ N(a, s²) the means h_k = E H_k(Z) follow h_{k+1} = a h_k + k (s² − 1) h_{k−1}, and for two with covariance ρ

    E[H_j(Z₁) H_k(Z₂)] = Σ_c c! C(j, c) C(k, c) ρ^c h_{j−c}(Z₁) h_{k−c}(Z₂)

whatever their means and variances; only at unit variance and mean zero is it the one term c = j = k. Moments of several
Gaussians are sums over pairings (L. Isserlis, Biometrika 12, 134 (1918)).

>>> from overlaps.giant_step.hermite import hermite_coefficients, hermite_product
>>> hermite_coefficients("tanh", 3)
Hermite('tanh': 0, 0.605706, 0, -0.0605992, within 9e-13)
>>> round(hermite_product(4, 4, [[1.7, 0.5], [0.5, 0.8]]), 4)
-0.8436
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import comb, factorial, prod, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..data.gaussian_moments import by_panels
from ..data.nonlinearity import nonlinearity, slope
from ..interface.checks import array, checked, positive, whole
from ..interface.errors import InputError, NumericalError
from ..network.activations import Activation, activation

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Hermite:
    """Coefficients of a Hermite expansion.

    Attributes
    ----------
    name: of the activation.
    c: c_0 … c_order, (order + 1,); those smaller than their error are zero.
    error: of each coefficient, absolute, (order + 1,).
    slope_square: E g'(z)², of which c_1² = (E g')² is a part.
    """

    name: str
    c: Array
    error: Array
    slope_square: float

    @property
    def order(self) -> int:
        """The last degree."""
        return self.c.size - 1

    def shifted(self, s: ArrayLike) -> Array:
        """Σ_k c_k s^k, the mean of g(z + s) as far as the expansion goes; the shape of s."""
        return np.asarray(np.polynomial.polynomial.polyval(np.asarray(s, float), self.c), float)

    def __repr__(self) -> str:
        values = ", ".join(f"{value:.6g}" for value in self.c[:8]) + (", …" if self.order > 7 else "")
        return f"Hermite({self.name!r}: {values}, within {self.error.max():.0e})"


@checked
def hermite_coefficients(which: str | Activation, order: int) -> Hermite:
    """Coefficients c_0 … c_order of an activation, each with a measured error.

    Parameters
    ----------
    which: name of an activation, or an `Activation`.
    order: the last degree, at most 60.
    """
    return _coefficients(activation(which), whole("order", order, least=0, most=60))


@cache
def _coefficients(g: Activation, order: int) -> Hermite:
    function, zero, one = nonlinearity(g).function, np.zeros(1), np.ones(1)
    c, error = np.empty(order + 1), np.empty(order + 1)
    for k in range(order + 1):
        # normalised polynomials: all integrals are of the size of g, whatever the degree
        basis = np.polynomial.hermite_e.HermiteE.basis(k)
        found = by_panels(
            f"{g.name} H_{k}", lambda u, p=basis, k=k: function(u) * p(u) / sqrt(factorial(k)), g.kinks, zero, one
        )
        c[k], error[k] = found.a[0] / sqrt(factorial(k)), found.error[0] / sqrt(factorial(k))
    c[np.abs(c) <= error] = 0.0
    square = by_panels(f"slope of {g.name}", slope(g).function, g.kinks, zero, one).c[0]
    c.setflags(write=False)
    error.setflags(write=False)
    return Hermite(g.name, c, error, float(square))


@checked
def centred(which: str | Activation) -> Activation:
    """The activation minus its mean c_0 = E g(z), for theories that need c_0 = 0."""
    return _centred(activation(which))


@cache
def _centred(g: Activation) -> Activation:
    mean = float(hermite_coefficients(g, 0).c[0])
    if mean == 0:
        return g
    compiled = g.compiled[0]  # Numba compiles a function around this one, but not around a plain function
    return Activation(f"{g.name} - {mean:.6g}", lambda x: compiled(x) - mean, g.derivative, g.kinks)


def is_bounded(g: Activation) -> bool:
    """Whether the activation stays finite far out, judged at ±10³ and ±10⁸."""
    places = [sign * 10.0**k for k in (3, 8) for sign in (-1, 1)]
    with np.errstate(all="ignore"):
        values = np.abs(nonlinearity(g).function(np.array(places)))
    if np.isnan(values).any():
        at = places[int(np.argmax(np.isnan(values)))]
        raise InputError(f"activation: {g.name} has no value at {at:g}; write it so that it takes any number")
    return bool(values[2:].max() < 2 * max(1.0, values[:2].max()))


def double_factorial(n: int) -> int:
    """n!! of an odd n, with (−1)!! = 1: the number of pairings of n + 1 things."""
    return prod(range(n, 0, -2))


def power_moments(k: int, mean: ArrayLike, variance: ArrayLike) -> list[Array]:
    """E[Z^0] … E[Z^k] of Z ~ N(mean, variance), of the shape of both; of variance − 1 these are the E H_k(Z).

    By their recurrence: a sum over powers cancels to nothing at high degrees where the variance is negative.
    """
    a, v = np.asarray(mean, float), np.asarray(variance, float)
    out = [np.ones_like(a * v), a + 0 * v]
    for i in range(1, k):
        out.append(a * out[i] + i * v * out[i - 1])
    return out


@checked
def hermite_mean(k: int, mean: ArrayLike, variance: ArrayLike) -> Array:
    """E[H_k(Z)] of Z ~ N(mean, variance), of the shape of both: E[Z^k] with variance − 1 for the variance.

    Parameters
    ----------
    k: the degree, at most 100; mean, variance: arrays that broadcast against each other.
    """
    k, a, v = whole("k", k, least=0, most=100), array("mean", mean, None), array("variance", variance, None)
    if np.any(v < 0):
        raise InputError(f"variance: expected numbers of at least 0, got {v.min():g}")
    try:
        np.broadcast_shapes(a.shape, v.shape)
    except ValueError:
        raise InputError(
            f"variance: expected a shape that broadcasts against mean's {a.shape}, got {v.shape}"
        ) from None
    with np.errstate(over="ignore", invalid="ignore"):
        return finite(f"E H_{k}", power_moments(k, a, v - 1)[k])


@checked
def hermite_product(j: int, k: int, covariance: ArrayLike, mean: ArrayLike = (0.0, 0.0)) -> float:
    """E[H_j(Z₁) H_k(Z₂)], degrees at most 100, of two Gaussians with any mean (2,) and covariance (2, 2)."""
    j, k = whole("j", j, least=0, most=100), whole("k", k, least=0, most=100)
    C, (a, b) = positive("covariance", covariance, 2), array("mean", mean, (2,))
    with np.errstate(over="ignore", invalid="ignore"):
        first, second = power_moments(j, a, C[0, 0] - 1), power_moments(k, b, C[1, 1] - 1)
        # each term pairs `common` factors of one with as many of the other
        total = sum(
            comb(j, common)
            * comb(k, common)
            * factorial(common)
            * C[0, 1] ** common
            * first[j - common]
            * second[k - common]
            for common in range(min(j, k) + 1)
        )
    return float(finite(f"E H_{j} H_{k}", total))


@checked
def gaussian_moment(powers: Sequence[int], covariance: ArrayLike, mean: ArrayLike | None = None) -> float:
    """E[Π_i Z_i^{powers[i]}] of jointly Gaussian Z, by Isserlis' theorem.

    Parameters
    ----------
    powers: (variables,), whole numbers with a sum of at most 40; of many variables the work grows with Π (powers + 1),
        which is at most 2^18.
    covariance: (variables, variables); mean: (variables,), zero by default.
    """
    wanted = tuple(whole(f"powers[{i}]", p, least=0) for i, p in enumerate(array("powers", powers, (None,))))
    if not wanted:
        raise InputError("powers: expected one power for each variable, got none")
    if sum(wanted) > 40 or prod(p + 1 for p in wanted) > 2**18:
        raise InputError(
            f"powers: expected a sum of at most 40 and a product of powers + 1 of at most 2^18, got {sum(wanted)} and "
            f"{prod(p + 1 for p in wanted)}"
        )
    C = positive("covariance", covariance, len(wanted))
    a = np.zeros(len(wanted)) if mean is None else array("mean", mean, (len(wanted),))

    @cache
    def moment(left: tuple[int, ...]) -> float:
        # E[Z_i P] = a_i E[P] + Σ_j C_ij E[∂P/∂Z_j]: pair one factor with its mean or with another factor
        i = next((i for i, p in enumerate(left) if p), None)
        if i is None:
            return 1.0
        rest = (*left[:i], left[i] - 1, *left[i + 1 :])
        total = a[i] * moment(rest) if a[i] else 0.0
        for j, p in enumerate(rest):
            if p and C[i, j]:
                total += C[i, j] * p * moment((*rest[:j], p - 1, *rest[j + 1 :]))
        return float(total)

    with np.errstate(over="ignore", invalid="ignore"):
        return float(finite("E of the product", moment(wanted)))


def finite(name: str, value: ArrayLike) -> Array:
    """The value, refused where it overflowed."""
    found = np.asarray(value, float)
    if not np.all(np.isfinite(found)):
        raise NumericalError(f"{name}: larger than any floating-point number", quantity=name, time=0.0)
    return found
