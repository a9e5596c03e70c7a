"""Activations as sums of error functions and smoothed moduli, whose Gaussian averages are closed forms.

    g(x) = a + b x + Σ_i c_i erf(x/(√2 s_i)) + Σ_i d_i E[|x + r_i ξ|],        ξ ~ N(0, 1)

erf, linear and ReLU units, max(0, x) = (x + |x|)/2, are such sums as they stand. tanh is one to 1.4e-5 with four error
functions, to 2e-6 with five, and with every further one to a sixth of that; its integral, softplus, is a sum of
smoothed moduli. An activation of one's own whose even part is a constant is fitted in the same way.

>>> from overlaps.network.activations import activation
>>> [f"{fitted(activation('tanh'), n).error:.0e}" for n in (3, 4, 5, 6)]       # of g and of its slope
['4e-04', '6e-05', '8e-06', '1e-06']
>>> fitted(activation("softplus"), 5).moduli.shape
(2, 5)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

import numpy as np
from numpy.typing import NDArray

from ..network.activations import BUILT_IN, Activation

Array = NDArray[np.float64]
FEWEST, MOST = 2, 9  # terms that are fitted
WORST = 1e-3  # error of g or g' beyond which an activation is not taken for such a sum
# terms that cancel: S is a sum over four of them, so that rounding of 1e-16 becomes one of 30⁴ times as much, 1e-10
CANCELLING = 30.0  # Σ|c_i| over the value at infinity beyond which a fit is refused
# where the fit begins, widths over that of the activation, and what its coefficients cost: the second attempt is for
# activations for which the first makes widths alike and coefficients large
ATTEMPTS = ((0.55, 2.7, 0.0), (0.4, 1.5, 1e-6))


def _none() -> Array:
    return np.zeros((2, 0))


@dataclass(frozen=True)
class Sum:
    """a, b, and rows of coefficients and squared widths: steps (2, n) of error functions, moduli (2, n) of moduli.

    error: the largest of g and g' on a fine grid, zero where the sum is the activation itself.
    """

    constant: float = 0.0
    linear: float = 0.0
    steps: Array = field(default_factory=_none)
    moduli: Array = field(default_factory=_none)
    error: float = 0.0


@cache
def fitted(g: Activation, terms: int) -> Sum | None:
    """`g` as a sum of so many terms where terms are fitted, or None where it is no such sum."""
    if g is BUILT_IN["erf"]:
        return Sum(steps=np.ones((2, 1)))
    if g is BUILT_IN["linear"]:
        return Sum(linear=1.0)
    if g is BUILT_IN["relu"]:
        return Sum(linear=0.5, moduli=np.array([[0.5], [0.0]]))
    if g is BUILT_IN["softplus"]:
        # log(1 + e^x) is x/2 plus half the integral of tanh(x/2)
        slope = fitted(BUILT_IN["tanh"], terms)
        assert slope is not None
        return Sum(linear=0.5, moduli=slope.steps * [[0.5], [4.0]], error=slope.error)
    return _steps(g, terms)


def _steps(g: Activation, terms: int) -> Sum | None:
    """The fit of an activation with an odd part that saturates, up to a linear function, and a constant even part."""
    if g.kinks or not g.is_smooth:
        return None
    x = np.concatenate([np.linspace(0.025, 6.0, 240), np.linspace(6.1, 12.0, 30), [20.0, 30.0]])
    value, slope = (np.vectorize(part, otypes=[float]) for part in (g.function, g.derivative))
    try:
        up, down, rises = value(x), value(-x), slope(x)
    except (ArithmeticError, ValueError):
        return None
    constant, linear = float(up[0] + down[0]) / 2, float(rises[-1])
    size = 1.0 + abs(constant) + float(np.abs(rises).max())
    odd = (up - down) / 2 - linear * x
    if not np.abs((up + down) / 2 - constant).max() <= 1e-12 * size * 30 or abs(odd[-1] - odd[-2]) > 1e-9 * size:
        return None
    top, steepest = float(odd[-1]), float(np.abs(rises - linear).max())
    width = 0.8 * abs(top) / max(steepest, 1e-300)
    if not 1e-3 < width < 1e3:
        return None
    fine = np.linspace(0.0, 20.0, 2001)
    fine = np.concatenate([fine, fine[1:] * width])
    for attempt in ATTEMPTS:
        c, s = _fit(x, odd, rises - linear, terms, attempt)
        if np.abs(c).sum() > CANCELLING * abs(top):
            continue
        values, slopes = _shapes(s, fine)
        missed = np.abs(values @ c + linear * fine + constant - value(fine)).max()
        missed_slopes = np.abs(slopes @ c + linear - slope(fine)).max()
        error = float(max(missed, missed_slopes))
        return Sum(constant, linear, np.array([c, s * s]), error=error) if error < WORST * max(1.0, abs(top)) else None
    return None


def _shapes(s: Array, x: Array) -> tuple[Array, Array]:
    """erf(x/(√2 s)) and its slope, (points, terms)."""
    from scipy.special import erf

    return erf(x[:, None] / (np.sqrt(2) * s)), np.sqrt(2 / np.pi) / s * np.exp(-0.5 * (x[:, None] / s) ** 2)


def _fit(x: Array, odd: Array, slopes: Array, terms: int, attempt: tuple[float, float, float]) -> tuple[Array, Array]:
    """Coefficients and widths by least squares, of values and slopes, that add up to the last value."""
    from scipy.optimize import least_squares

    top, (narrow, wide, price) = float(odd[-1]), attempt
    wanted = np.concatenate([odd, 0.3 * slopes])

    def coefficients(log_widths: Array) -> tuple[Array, Array]:
        """Those that are best for these widths, and what is left."""
        values, rises = _shapes(np.exp(log_widths), x)
        A = np.concatenate([values, 0.3 * rises])
        free, rest = A[:, 1:] - A[:, :1], wanted - top * A[:, 0]
        if price:
            free, rest = np.concatenate([free, price * np.eye(terms - 1)]), np.append(rest, np.zeros(terms - 1))
        others = np.linalg.lstsq(free, rest, rcond=1e-14)[0]
        return np.concatenate([[top - others.sum()], others]), 1e5 * (free @ others - rest)

    scale = 0.8 * abs(top) / float(np.abs(slopes).max())
    start = np.log(scale * np.geomspace(narrow, wide, terms))
    found = least_squares(lambda at: coefficients(at)[1], start, method="lm", xtol=1e-12, ftol=1e-12, max_nfev=400)
    return coefficients(found.x)[0], np.exp(found.x)
