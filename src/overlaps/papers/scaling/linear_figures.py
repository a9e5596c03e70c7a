"""Learning curves of a linear student, figures 2 and 13, and their modes at finite rate, figures 10 to 12.

The paper diagonalises B = 2 A₁ + η U in moments; its eigenvalues λ_B and components b are those of `linear_modes`,

    |λ_B,k| = rate_k/η,        b_k |λ_B,k| = 2 (2 − η) amplitude_k/c,

and for η → 0 they are 2 ω_k and 2 ω_k/L. Drawn are L b_k |λ_B,k|/(2 − η), which is then ω_k.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from numpy.typing import NDArray

import overlaps as ov

from ..panels import band, panels, step_times, titled
from .model import committee
from .panels import PRINTED, log_log
from .paper import PAPER
from .printed import eq6

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]
COUNTS = (10, 20, 30, 40, 50, 75, 100, 125)


@PAPER.figure(
    "fig2",
    "a linear student: any rate against small rates, and the integral form against training runs",
    claims=("eq6", "fig2-stability", "time-exponent-linear"),
    limits={"rate": (0.01, 0.5), "exponent": (0.25, 1.5)},
)
def fig2(quick: bool, *, rate: float = 0.1, exponent: float = 0.75) -> tuple[Figure, xr.Dataset]:
    """Left: N = 128, β = 1, η = 1. Right: N = L = 256, β = .75, η = .1, σ = .01, five runs."""
    figure, (left, right) = panels(1, 2)
    N, t = 128, np.geomspace(1, 300, 120)
    spectrum = ov.PowerLaw(N, 1.0)
    small = ov.laws.small_rate_error(spectrum, 1.0, t, distance=2.0)
    limit = ov.laws.linear_error(spectrum, 1.0, t, distance=2.0)
    exact = ov.laws.finite_size_error(spectrum, N, 1.0, t, distance=2.0)
    left.plot(t, small, label="small rates, (8)")
    left.plot(t, limit, label="any rate, (6) corrected, N → ∞ at L = 128")
    left.plot(t, exact, color="C3", ls="-.", label="exact mean of SGD at N = L = 128 (rare runs)")
    critical = ov.laws.critical_rate(spectrum, N)
    log_log(left, f"β = 1, η = 1, σ² = 1; the mean of SGD\nat N = L = 128 diverges from η = {critical:.4f} on")
    left.set_ylim(top=3 * exact[0])

    N, runs = 256, 2 if quick else 5
    problem = committee(N, exponent, rate, students=1, teachers=1, activation="linear")
    times = step_times(N, 1000, 60)
    errors = np.empty((runs, times.size))
    for run in range(runs):
        start = ov.draw(problem, N, seed=run, scale=0.01)
        errors[run] = ov.train(problem, start, times, runs=1, seed=run, progress=False).data["error"].values[0]
    integral = ov.laws.gamma_error(ov.PowerLaw(N, exponent), rate, times, distance=1.0001)
    mean = ov.laws.finite_size_error(ov.PowerLaw(N, exponent), N, rate, times, distance=1.0001)
    band(right, times, errors, "C0", f"SGD, mean of {runs} initialisations")
    right.plot(times, mean, "k:", lw=1, label="exact mean of SGD")
    right.plot(times, integral, "C1--", label="integral, (9)")
    log_log(right, f"N = L = 256, β = {exponent:g}, η = {rate:g}, σ = 0.01")
    titled(figure, "a linear student" + "\nquick: 2 runs instead of 5" * quick)
    data = xr.Dataset(
        {
            "small_rate": ("time_left", small),
            "any_rate": ("time_left", limit),
            "exact_mean": ("time_left", exact),
            "sgd": (("run", "time_right"), errors),
            "sgd_exact_mean": ("time_right", mean),
            "integral": ("time_right", integral),
        },
        {"time_left": t, "time_right": times},
        {
            "left": "N = L = 128, beta = 1, rate = 1, sigma^2 = 1",
            "right": f"N = L = 256, beta = {exponent:g}, rate = {rate:g}, sigma = 0.01",
            "critical_rate_left": critical,
        },
    )
    return figure, data


@PAPER.figure(
    "fig13",
    "a linear student at rates 0.1, 0.5 and 1: any rate against small rates",
    claims=("eq6", "finite-rate"),
    limits={"exponent": (0.1, 1.0)},
)
def fig13(quick: bool, *, exponent: float = 1.0) -> tuple[Figure, xr.Dataset]:
    """N = 128, β = 1, σ = 0, in the limit N → ∞ at L = 128 and exactly at N = L = 128."""
    rates, N, t = (0.1, 0.5, 1.0), 128, np.geomspace(1, 300, 120)
    spectrum = ov.PowerLaw(N, exponent)
    curves = np.empty((4, 3, t.size))
    figure, axes = panels(1, 3)
    for i, (rate, ax) in enumerate(zip(rates, axes, strict=True)):
        curves[:, i] = (
            ov.laws.small_rate_error(spectrum, rate, t),
            ov.laws.linear_error(spectrum, rate, t),
            ov.laws.finite_size_error(spectrum, N, rate, t),
            eq6(spectrum, rate, t, distance=1.0),
        )
        ax.plot(t, curves[0, i], label="small rates, (8)")
        ax.plot(t, curves[1, i], label="any rate, (6) corrected, N → ∞")
        ax.plot(t, curves[2, i], color="C3", ls="-.", label="exact mean at N = L = 128")
        if rate < 1:  # at η = 1 all of it is in a mode of eigenvalue zero
            ax.plot(t, curves[3, i], **PRINTED, label="(6) as printed")
        else:
            ax.plot([], [], **PRINTED, label="(6) as printed: zero")
        log_log(ax, f"η = {rate:g}")
    critical = ov.laws.critical_rate(spectrum, N)
    titled(
        figure, f"N = 128, β = {exponent:g}, σ² = 0; the exact mean at N = L = 128 diverges from η = {critical:.4f} on"
    )
    names = ("small_rate", "any_rate", "exact_mean", "as_printed")
    data = {name: (("rate", "time"), curve) for name, curve in zip(names, curves, strict=True)}
    return figure, xr.Dataset(
        data, {"rate": list(rates), "time": t}, {"parameters": f"N = L = 128, beta = {exponent:g}, sigma = 0"}
    )


def mode_spectrum(levels: int, beta: float, rate: float) -> tuple[Array, Array]:
    """|λ_B,k| and L b_k |λ_B,k|/(2 − η), falling with k, both (levels,)."""
    modes = ov.laws.linear_modes(ov.PowerLaw(levels, beta), rate)
    return modes.rates[::-1] / rate, 2 * levels * modes.amplitudes[::-1]


@PAPER.figure(
    "fig10",
    "weights of the modes at rate 1 for 10 to 125 levels",
    claims=("finite-rate",),
    limits={"rate": (0.05, 1.5)},
)
def fig10(quick: bool, *, rate: float = 1.0) -> tuple[Figure, xr.Dataset]:
    """Left: β = .1. Right: β = 1."""
    import matplotlib.pyplot as plt

    figure, axes = panels(1, 2)
    data = xr.Dataset(attrs={"parameters": f"rate = {rate:g}; L b_k |lambda_k|/(2 - rate) against rank k"})
    for beta, ax in zip((0.1, 1.0), axes, strict=True):
        for i, L in enumerate(COUNTS):
            k, weights = np.arange(1, L + 1), mode_spectrum(L, beta, rate)[1]
            ax.plot(k, weights, ".-", ms=3, lw=1, color=plt.colormaps["viridis"](i / len(COUNTS)), label=f"L = {L}")
            data[f"weights_beta{beta:g}_L{L}"] = (f"k_L{L}", weights, {"beta": beta, "levels": L})
        log_log(ax, f"β = {beta:g}", "rank k", r"$L\, b_k\, |\lambda_{B,k}|\,/\,(2-\eta)$", ncols=2)
    titled(figure, f"weights of the modes at η = {rate:g}; for η → 0 they are the eigenvalues of the covariance")
    return figure, data


@PAPER.figure(
    "fig11",
    "weights of the modes for 40 levels against the eigenvalues of the covariance",
    claims=("finite-rate",),
    limits={"levels": (5, 150)},
)
def fig11(quick: bool, *, levels: int = 40) -> tuple[Figure, xr.Dataset]:
    """η = .1, .5 and 1; β = 1, .5, .1, .01."""
    L, rates, betas = levels, (0.1, 0.5, 1.0), (1.0, 0.5, 0.1, 0.01)
    k = np.arange(1, L + 1)
    weights = np.array([[mode_spectrum(L, beta, rate)[1] for beta in betas] for rate in rates])
    omega = np.array([ov.PowerLaw(L, beta).eigenvalues for beta in betas])
    figure, axes = panels(1, 3)
    for i, (rate, ax) in enumerate(zip(rates, axes, strict=True)):
        for j, beta in enumerate(betas):
            ax.plot(k, weights[i, j], color=f"C{j}", label=f"β = {beta:g}")
            ax.plot(k, omega[j], color=f"C{j}", ls="--", lw=1)
        log_log(ax, f"η = {rate:g}", "rank k", r"$L\, b_k\, |\lambda_{B,k}|\,/\,(2-\eta)$")
    titled(figure, f"L = {L}; dashed: eigenvalues of the covariance")
    return figure, xr.Dataset(
        {"weights": (("rate", "beta", "k"), weights), "eigenvalues": (("beta", "k"), omega)},
        {"rate": list(rates), "beta": list(betas), "k": k},
        {"parameters": f"L = {L}; weights are L b_k |lambda_k|/(2 - rate)"},
    )


@PAPER.figure(
    "fig12",
    "decay rates of the modes and their distance from twice the eigenvalues of the covariance",
    claims=("finite-rate",),
    limits={"rate": (0.05, 1.5), "exponent": (0.05, 1.5)},
)
def fig12(quick: bool, *, rate: float = 0.5, exponent: float = 1.0) -> tuple[Figure, xr.Dataset]:
    """Left: η = 1, β = .1. Right: η = .5, β = 1."""
    import matplotlib.pyplot as plt

    counts = (10, 15, 20, 25, 50, 75, 100, 125, 150)
    figure, axes = panels(2, 2)
    data = xr.Dataset(attrs={"parameters": "eigenvalues of 2 A1 + rate U against rank k, and 2 omega_k minus them"})
    for column, (eta, beta) in enumerate(((1.0, 0.1), (rate, exponent))):
        for i, L in enumerate(counts):
            k, values = np.arange(1, L + 1), mode_spectrum(L, beta, eta)[0]
            gap = 2 * np.array(ov.PowerLaw(L, beta).eigenvalues) - values
            style = {"marker": ".", "ms": 3, "lw": 1, "color": plt.colormaps["viridis"](i / len(counts))}
            axes[column].plot(k, values, label=f"L = {L}", **style)
            axes[column + 2].plot(k, gap, label=f"L = {L}", **style)
            name = f"rate{eta:g}_beta{beta:g}_L{L}"
            data[f"eigenvalues_{name}"] = (f"k_L{L}", values)
            data[f"gap_{name}"] = (f"k_L{L}", gap)
        log_log(axes[column], f"η = {eta:g}, β = {beta:g}", "rank k", r"$|\lambda_{B,k}|$", ncols=2)
        gap_label = r"$2\,\omega_k - |\lambda_{B,k}|$"
        log_log(axes[column + 2], f"η = {eta:g}, β = {beta:g}", "rank k", gap_label, ncols=2)
    return figure, data
