"""The sum over levels and its integral, figures 7 to 9.

Euler and Maclaurin: with f(k) = (c ω₊/2L) k^-(1+β) exp(−2 η ω₊ t/k^(1+β)) the error Σ f(k) is

    ∫_1^L f dk + [f(1) + f(L)]/2 + …,        at most ∫ f dk + (c ω₊/2L) [ζ(1+β) − 1/β + 1/(2 L^(1+β))].

The paper's f has no factor ½, and its bound 1/L^(1+β).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.special import gamma, gammaincc, zeta

import overlaps as ov

from ..panels import panels, titled
from .panels import log_log
from .paper import PAPER

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]
N, DISTANCE = 128, 2.0  # all three figures: N = L = 128, σ² = 1


def ends(spectrum: ov.PowerLaw, rate: float, times: Array, *, distance: float) -> Array:
    """[f(1) + f(L)]/2, (times,)."""
    omega = np.array(spectrum.eigenvalues)[[0, -1]]
    return distance / (4 * spectrum.levels) * np.exp(-2 * rate * np.multiply.outer(times, omega)) @ omega


def bound(spectrum: ov.PowerLaw, *, distance: float) -> float:
    """(c ω₊/2L) [ζ(1+β) − 1/β + 1/(2 L^(1+β))], above sum minus integral at time zero."""
    L, beta = spectrum.levels, spectrum.exponent
    return 0.5 * distance * spectrum.eigenvalues[0] / L * (float(zeta(1 + beta)) - 1 / beta + 0.5 / L ** (1 + beta))


def first_gamma(spectrum: ov.PowerLaw, rate: float, times: Array, *, distance: float) -> Array:
    """(52), the integral from 0 instead of 1, without its second Γ, (times,) above zero."""
    beta, s, top = spectrum.exponent, ov.laws.time_exponent(spectrum.exponent), spectrum.eigenvalues[0]
    x = 2 * rate * top * times
    upper = gamma(s) * gammaincc(s, x / spectrum.levels ** (1 + beta))
    return 0.5 * distance * top / spectrum.levels / (1 + beta) * x**-s * upper


def draw(settings: list[tuple[float, float, float]], kinds: tuple[str, ...]) -> tuple[Figure, xr.Dataset]:
    """One panel for each (β, η, last time) with the curves `kinds` next to the sum."""
    figure, axes = panels(1, len(settings))
    data = xr.Dataset(attrs={"parameters": f"N = L = {N}, sigma^2 = {DISTANCE - 1:g}"})
    labels = {
        "integral": ("C1", "integral, (50)"),
        "ends": ("C2", "integral + 0th order, both ends"),
        "bound": ("C3", "integral + upper bound"),
        "first_gamma": ("C2", "integral with its first Γ only, (52)"),
    }
    for i, ((beta, rate, last), ax) in enumerate(zip(settings, axes, strict=True)):
        spectrum, t = ov.PowerLaw(N, beta), np.geomspace(1, last, 120)
        integral = ov.laws.gamma_error(spectrum, rate, t, distance=DISTANCE)
        curves = {
            "sum": ov.laws.small_rate_error(spectrum, rate, t, distance=DISTANCE),
            "integral": integral,
            "ends": integral + ends(spectrum, rate, t, distance=DISTANCE),
            "bound": integral + bound(spectrum, distance=DISTANCE),
            "first_gamma": first_gamma(spectrum, rate, t, distance=DISTANCE),
        }
        ax.plot(t, curves["sum"], color="C0", lw=2, label="sum, (47)")
        for kind in kinds:
            color, label = labels[kind]
            ax.plot(t, curves[kind], color=color, ls="--", label=label)
        begin = ov.laws.window(spectrum, rate).low
        if t[0] * 1.05 < begin < last:
            ax.axvline(begin, color="0.6", lw=0.8, ls=":", label="α = 1/(2 η ω₊)")
        log_log(ax, f"β = {beta:g}, η = {rate:.3g}")
        for kind in ("sum", *kinds):
            data[f"{kind}_{i}"] = (f"time_{i}", curves[kind], {"beta": beta, "rate": rate})
        data = data.assign_coords({f"time_{i}": t})
    titled(figure, "N = L = 128, σ² = 1")
    return figure, data


@PAPER.figure(
    "fig7",
    "sum against integral for rates 1/(2 omega_1) and 1e-5, with its corrections",
    claims=("bound", "bound-late"),
    limits={"exponent": (0.05, 2.0)},
)
def fig7(quick: bool, *, exponent: float = 0.5) -> tuple[Figure, xr.Dataset]:
    """β = .5; 1/(2 ω₊) is .0095."""
    rate = 1 / (2 * ov.PowerLaw(N, exponent).eigenvalues[0])
    return draw([(exponent, rate, 50.0), (exponent, 1e-5, 5000.0)], ("integral", "ends", "bound"))


@PAPER.figure(
    "fig8",
    "sum against integral at rate 0.01 for exponents 0.5 and 0.01, with its corrections",
    claims=("bound-late",),
    limits={"rate": (0.001, 0.1)},
)
def fig8(quick: bool, *, rate: float = 0.01) -> tuple[Figure, xr.Dataset]:
    """η = .01."""
    return draw([(0.5, rate, 300.0), (0.01, rate, 300.0)], ("integral", "ends"))


@PAPER.figure(
    "fig9",
    "sum against integral, and the integral with its first Gamma function only",
    claims=("time-exponent-linear",),
    limits={"rate": (0.001, 0.1)},
)
def fig9(quick: bool, *, rate: float = 0.01) -> tuple[Figure, xr.Dataset]:
    """η = .01, β = 1 and .01."""
    return draw([(1.0, rate, 50.0), (0.01, rate, 50.0)], ("integral", "first_gamma"))
