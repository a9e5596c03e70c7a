"""Scaling laws of a linear student on a power-law spectrum, for small rates.

With ω_l = ω₊ l^-(1+β), s = β/(1+β) and x = 2 η ω₊ t the sum over levels becomes an integral,

    error ≈ (c ω₊/2L) x^-s/(1+β) [Γ(s, x/L^(1+β)) − Γ(s, x)]                    (gamma_error)

Γ(s, x) the upper incomplete gamma function. Between

    1/(2 η ω₊)  <  t  <  Γ((1+2β)/(1+β))^((1+β)/β) L^(1+β)/(2 η ω₊)             (window)

the bracket is nearly Γ(s), and error ∝ t^-β/(1+β). The upper end is where the two leading terms of Γ(s, z) are equal;
the error is there already well below the pure power, so exponents are to be fitted well inside.

Where only the N_l levels of largest eigenvalue are trained, the sums end and begin half way between levels,

    error ≈ (c ω₊/2βL) [(N_l+½)^-β − (L+½)^-β] + the integral above up to N_l+½,

and the floor falls as N_l^-β.

Reference: Worschech and Rosenow, arXiv:2410.09005, eqs. (9), (11), (50), (53), (74); the printed (11) counts the levels
beyond N_l twice.

>>> import overlaps as ov
>>> spectrum = ov.PowerLaw(levels=1024, exponent=1.0)
>>> ov.laws.window(spectrum, rate=0.05)
Window(low=0.0160543, high=13221.5, exponent=0.5)
>>> float(ov.laws.gamma_error(spectrum, 0.05, [100.0]).round(6)[0])
0.003119
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gamma, gammainc, gammaincc

from ..data import PowerLaw
from ..interface.checks import checked, grid, number, whole
from ..interface.errors import InputError
from .levels import power_law

Array = NDArray[np.float64]


class Window(NamedTuple):
    """Times between which the error falls as time^-exponent."""

    low: float
    high: float
    exponent: float

    def __repr__(self) -> str:
        return f"Window(low={self.low:.6g}, high={self.high:.6g}, exponent={self.exponent:.6g})"


@checked
def time_exponent(exponent: float) -> float:
    """β/(1+β), the power of time with which the error falls on a spectrum l^-(1+β), `exponent` = β > 0."""
    beta = number("exponent", exponent, above=0)
    return beta / (1 + beta)


def window(spectrum: PowerLaw, rate: float) -> Window:
    """The times of power-law decay; refused where they are none, as for few levels."""
    spectrum, rate = power_law(spectrum), number("rate", rate, above=0)
    beta, s = spectrum.exponent, time_exponent(spectrum.exponent)
    unit = 1 / (2 * rate * spectrum.eigenvalues[0])
    reach = gamma(1 + s) ** (1 / s) * float(spectrum.levels) ** (1 + beta)
    if not reach > 1:
        raise InputError(f"levels: {spectrum.levels} levels leave no time of power-law decay; use more")
    return Window(float(unit), float(unit * reach), s)


def gamma_error(
    spectrum: PowerLaw, rate: float, times: ArrayLike, *, distance: float = 1.0, trained: int | None = None
) -> Array:
    """The integral form of `small_rate_error`, (times,); arguments as there.

    For t above 1/(2 η ω₊) it is close for many levels; before that the sum is not an integral, and this form is low by
    up to (c ω₊/2L) [ζ(1+β) − 1/β + 1/(2 L^(1+β))].
    """
    spectrum, rate, t = power_law(spectrum), number("rate", rate, above=0), grid(times)
    distance = number("distance", distance, least=0)
    L, beta, top = spectrum.levels, spectrum.exponent, spectrum.eigenvalues[0]
    floor, last = 0.0, float(L)
    if trained is not None:
        count = whole("trained", trained, least=1, most=L)
        floor, last = power_floor(spectrum, count, distance=distance), count + 0.5
    x = 2 * rate * top * t
    return floor + 0.5 * distance * top / L / (1 + beta) * _bracket(beta / (1 + beta), beta, x, last)


def _bracket(s: float, beta: float, x: Array, last: float) -> Array:
    """x^-s [Γ(s, x/last^(1+β)) − Γ(s, x)], finite at x = 0."""
    y = x / last ** (1 + beta)
    late = y > 1  # both upper functions are small there, both lower ones before: take the difference of small ones
    value = np.empty_like(x)
    value[late] = gamma(s) * x[late] ** -s * (gammaincc(s, y[late]) - gammaincc(s, x[late]))
    # both begin with 1/s, whose difference is taken exactly
    value[~late] = _lower(s, x[~late]) - last**-beta * _lower(s, y[~late]) - np.expm1(-beta * np.log(last)) / s
    return value


def _lower(s: float, x: Array) -> Array:
    """x^-s γ(s, x) − 1/s = −x/(s+1) + x²/(2(s+2)) − …, by its series where x is small."""
    small = x < 1e-3
    safe = np.where(small, 1.0, x)
    series = -x / (s + 1) + x**2 / (2 * (s + 2)) - x**3 / (6 * (s + 3)) + x**4 / (24 * (s + 4))
    return np.where(small, series, gamma(s) * safe**-s * gammainc(s, safe) - 1 / s).astype(float)


def power_error(spectrum: PowerLaw, rate: float, times: ArrayLike, *, distance: float = 1.0) -> Array:
    """The pure power (c ω₊/2L) Γ(s)/(1+β) (2 η ω₊ t)^-s inside the window, (times,); times outside it are refused."""
    spectrum, rate, t = power_law(spectrum), number("rate", rate, above=0), grid(times)
    distance = number("distance", distance, least=0)
    low, high, s = window(spectrum, rate)
    if t[0] < low or t[-1] > high:
        raise InputError(
            f"times: the power law holds from {low:.4g} to {high:.4g}, got {t[0]:g} to {t[-1]:g}; small_rate_error "
            "holds at all times"
        )
    top = spectrum.eigenvalues[0]
    scale = 0.5 * distance * top / spectrum.levels * gamma(s) / (1 + spectrum.exponent)
    return scale * (2 * rate * top * t) ** -s


def power_floor(spectrum: PowerLaw, trained: int, *, distance: float = 1.0) -> float:
    """Integral form of the floor left by `trained` levels, (c ω₊/2βL) [(N_l+½)^-β − (L+½)^-β], for small rates."""
    spectrum = power_law(spectrum)
    L, beta, top = spectrum.levels, spectrum.exponent, spectrum.eigenvalues[0]
    count = whole("trained", trained, least=1, most=L)
    distance = number("distance", distance, least=0)
    return 0.5 * distance * top / (beta * L) * ((count + 0.5) ** -beta - (L + 0.5) ** -beta)
