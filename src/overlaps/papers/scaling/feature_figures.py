"""Feature scaling, figures 3, 14, 15 and 16: a linear student of which N_l directions learn.

Figures 3 (right) and 14 draw a data set. The paper's, CIFAR-5m with one channel of N = 1024 pixels, is for the user to
give; without it they draw the digits that come with the library, and say so.
"""

from __future__ import annotations

from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from numpy.typing import NDArray

import overlaps as ov

from ..estimates import mean_error
from ..panels import band, panels, step_times, titled
from .panels import PRINTED, log_log
from .paper import PAPER
from .partial import gaussian_runs, random_basis, rotated, sample_runs
from .printed import eq11

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[np.float64]
N, RATE, SIGMA = 256, 0.05, 0.01  # figures 3 (left) and 15
TRAINED = (50, 100, 150, 200)
DISTANCE = 1 + SIGMA**2


def synthetic(exponent: float, rate: float) -> dict[str, str]:
    """What figures 3 (left) and 15 are drawn with."""
    return {"parameters": f"N = L = 256, beta = {exponent:g}, rate = {rate:g}, sigma = 0.01"}


def _samples(data: Path | None) -> tuple[ov.Samples, str]:
    """The user's data, or the digits; and what to call them."""
    if data is None:
        return ov.Samples(ov.digits()), "digits, not CIFAR-5m"
    return ov.Samples(data), data.name


@PAPER.figure(
    "fig3",
    "error against time for some trained directions, synthetic and real inputs",
    claims=("eq11",),
    takes_data=True,
    limits={"exponent": (0.25, 1.5), "rate": (0.01, 0.2)},
)
def fig3(quick: bool, data: Path | None, *, exponent: float = 1.0, rate: float = RATE) -> tuple[Figure, xr.Dataset]:
    """Left: N = L = 256, β = 1, η = .05, σ = .01, 50 runs. Right: rows of a data set, the paper's shares N_l/N."""
    figure, (left, right) = panels(1, 2)
    found = xr.merge(
        [_synthetic(left, quick, exponent, rate), _real(right, quick, data, rate)], combine_attrs="no_conflicts"
    )
    less = "\nquick: 4 (left) and 10 runs instead of 50, to time 100 instead of 10000 and 1000"
    return titled(
        figure, f"a linear student of which $N_l$ directions learn, η = {rate:g}, σ = 0.01" + less * quick
    ), found


def _synthetic(ax: Axes, quick: bool, exponent: float, rate: float) -> xr.Dataset:
    spectrum = ov.PowerLaw(N, exponent)
    runs, times = (4, step_times(N, 100, 30)) if quick else (50, step_times(N, 10_000, 60))
    sgd = np.empty((len(TRAINED), runs, times.size))
    curves = np.empty((3, len(TRAINED), times.size))
    for i, n in enumerate(TRAINED):
        sgd[i] = gaussian_runs(np.diag(spectrum.eigenvalues), n, rate, times, scale=SIGMA, runs=runs)
        more = {"distance": DISTANCE, "trained": n}
        curves[:, i] = (
            ov.laws.gamma_error(spectrum, rate, times, **more),
            ov.laws.finite_size_error(spectrum, N, rate, times, **more),
            eq11(spectrum, rate, times, n, distance=DISTANCE),
        )
        band(ax, times, sgd[i], f"C{i}", f"$N_l$ = {n}")
        ax.plot(times, curves[0, i], "k--", lw=1, label="(11) corrected" if n == TRAINED[-1] else None)
        ax.plot(times, curves[2, i], **PRINTED, label="(11) as printed" if n == TRAINED[-1] else None)
    log_log(ax, f"SGD at N = L = 256, β = {exponent:g}, {runs} runs")
    values = {
        "sgd": (("trained", "run", "time"), sgd),
        "integral": (("trained", "time"), curves[0]),
        "exact_mean": (("trained", "time"), curves[1]),
        "as_printed": (("trained", "time"), curves[2]),
    }
    return xr.Dataset(values, {"trained": list(TRAINED), "time": times}, synthetic(exponent, rate))


def _real(ax: Axes, quick: bool, data: Path | None, rate: float) -> xr.Dataset:
    samples, name = _samples(data)
    spectrum, size = samples.spectrum, samples.eigenvalues.size
    trained = np.unique(np.maximum(1, np.round(size * np.array([50, 100, 200]) / 1024))).astype(int)
    runs, times = (10, step_times(size, 100, 30)) if quick else (50, step_times(size, 1000, 60))
    sgd, theory = np.empty((trained.size, runs, times.size)), np.empty((2, trained.size, times.size))
    for i, n in enumerate(trained.tolist()):
        sgd[i] = sample_runs(samples, n, rate, times, scale=SIGMA, runs=runs)
        more = {"distance": DISTANCE, "trained": n}
        theory[0, i] = ov.laws.small_rate_error(spectrum, rate, times, **more)
        theory[1, i] = ov.laws.linear_error(spectrum, rate, times, **more)
        band(ax, times, sgd[i], f"C{i}", f"$N_l$ = {n}")
        ax.plot(times, theory[0, i], "k--", lw=1, label="(10), measured spectrum" if i == trained.size - 1 else None)
    log_log(ax, f"{name}: SGD on its rows, N = {size}, {runs} runs")
    ax.set_ylim(top=2.5 * theory.max())  # room for the legend
    values = {
        "real_sgd": (("real_trained", "run_right", "real_time"), sgd),
        "real_small_rate": (("real_trained", "real_time"), theory[0]),
        "real_any_rate": (("real_trained", "real_time"), theory[1]),
    }
    return xr.Dataset(values, {"real_trained": trained, "real_time": times}, {"data": f"{name}; {spectrum.source}"})


@PAPER.figure(
    "fig14",
    "spectrum of a data set against a power law",
    claims=("data-spectrum",),
    takes_data=True,
    reduced="digits in place of CIFAR-5m, unless `--data` names another set",
)
def fig14(quick: bool, data: Path | None) -> tuple[Figure, xr.Dataset]:
    """Eigenvalues of the covariance, and a power law of as many levels with the fitted exponent."""
    samples, name = _samples(data)
    spectrum = samples.spectrum
    omega = samples.eigenvalues[samples.eigenvalues > 0]
    rank = np.arange(1, omega.size + 1)
    try:
        fit = spectrum.power_law()
        verdict = str(fit)
    except ov.InputError as reason:  # too few levels, which are drawn all the same
        fit, verdict = None, f"no fit; {reason}"
    figure, (ax,) = panels(1, 1)
    ax.plot(rank, omega, ".-", ms=4, lw=1, label=name)
    values = {"eigenvalues": ("rank", omega)}
    if fit is not None and fit.is_power_law and fit.beta.value > -1:
        law = np.array(ov.PowerLaw(omega.size, fit.beta.value).eigenvalues)
        # eq. (1) fixes its height by the trace; here by the range that was fitted
        inside = (rank >= fit.range[0]) & (rank <= fit.range[1])
        law *= np.exp(np.mean(np.log(omega[inside] / law[inside])))
        values["power_law"] = ("rank", law)
        ax.plot(rank, law, "C1--", label=f"$k^{{-(1+\\beta)}}$, β = {fit.beta}")
        ax.axvspan(*fit.range, color="C1", alpha=0.1, lw=0, label="fitted range")
    log_log(
        ax,
        f"{name}, N = {samples.eigenvalues.size}\n" + fill(verdict, 70),
        "rank k",
        "eigenvalue (mean one)",
    )
    attrs = {"data": f"{name}; {spectrum.source}", "fit": verdict}
    return figure, xr.Dataset(values, {"rank": rank}, attrs)


@PAPER.figure(
    "fig15",
    "error against time for some trained coordinates outside the eigenbasis",
    claims=("eq88",),
    limits={"exponent": (0.25, 1.5), "rate": (0.01, 0.2)},
)
def fig15(quick: bool, *, exponent: float = 1.0, rate: float = RATE) -> tuple[Figure, xr.Dataset]:
    """N = L = 256, β = 1, η = .05, σ = .01; 300 runs to time 1000, 30 of which go on to 10000.

    Beyond 1000 the mean is that of all runs at 1000 times the ratio by which the 30 have changed since: most of the
    spread is that of the frozen weights, which both times share.
    """
    sigma = rotated(ov.PowerLaw(N, exponent), random_basis(N, 0))
    many, long = (2, 2) if quick else (270, 30)
    first, last = (100, 100) if quick else (1000, 10_000)
    times = np.union1d(step_times(N, first, 40), step_times(N, last, 20, first=first))
    early = times <= first
    mean, error = np.empty((2, len(TRAINED), times.size))
    theory, floor = np.empty_like(mean), np.empty(len(TRAINED))
    figure, (ax,) = panels(1, 1)
    for i, n in enumerate(TRAINED):
        some = gaussian_runs(sigma, n, rate, times, scale=SIGMA, runs=long)
        others = gaussian_runs(sigma, n, rate, times[early], scale=SIGMA, runs=many, seed=long)
        every = np.concatenate([some[:, early], others])
        mean[i, early], error[i, early] = mean_error(every)
        since, late = some[:, early][:, -1:], some[:, ~early]
        ratio = late.mean(0) / since.mean()
        mean[i, ~early] = ratio * mean[i, early][-1]
        rest = mean_error(late - ratio * since)[1]
        error[i, ~early] = np.hypot(rest, ratio * error[i, early][-1])
        theory[i] = ov.laws.partial_error(sigma, n, rate, times, distance=DISTANCE)
        floor[i] = ov.laws.partial_floor(sigma, n, distance=DISTANCE)
        ax.plot(times, mean[i], color=f"C{i}", label=f"SGD, $N_l$ = {n}, ± standard error")
        ax.fill_between(times, mean[i] - error[i], mean[i] + error[i], color=f"C{i}", alpha=0.25, lw=0)
        ax.plot(times, theory[i], color=f"C{i}", ls=":", lw=1.6)
        ax.axhline(floor[i], color=f"C{i}", ls="--", lw=1)
    # styles are the same for all numbers of coordinates, and are explained once
    ax.plot([], [], color="0.4", ls=":", lw=1.6, label="law for N → ∞")
    ax.plot([], [], color="0.4", ls="--", lw=1, label="after long training, (88)")
    beside = {"loc": "center left", "bbox_to_anchor": (1.02, 0.5)}  # curves and floors take all of the axes
    figure.set_figwidth(9)
    log_log(ax, "4 runs" if quick else "300 runs, after time 1000 the ratio of 30", **beside)
    words = f"a random basis, N = L = 256, β = {exponent:g}, η = {rate:g}, σ = 0.01"
    titled(figure, words + "\nquick: 4 runs instead of 300, to time 100 instead of 10000" * quick)
    values = {
        "sgd_mean": (("trained", "time"), mean),
        "sgd_error": (("trained", "time"), error),
        "law": (("trained", "time"), theory),
        "floor": ("trained", floor),
        "runs": ("time", np.where(early, many + long, long)),
    }
    return figure, xr.Dataset(values, {"trained": list(TRAINED), "time": times}, synthetic(exponent, rate))


@PAPER.figure(
    "fig16",
    "error after long training against the number of trained directions, in and outside the eigenbasis",
    claims=("feature-exponent", "eq88"),
)
def fig16(quick: bool) -> tuple[Figure, xr.Dataset]:
    """N = L = 1024, β = .3, .75, 1, 1.5, averaged over 100 random bases."""
    size, betas, bases = 1024, (0.3, 0.75, 1.0, 1.5), 2 if quick else 100
    trained = np.unique(np.geomspace(10, 1000, 80).round().astype(int))
    spectra = [ov.PowerLaw(size, beta) for beta in betas]
    own = np.array([[ov.laws.feature_floor(s, n, distance=DISTANCE) for n in trained.tolist()] for s in spectra])
    outside = np.empty((bases, len(betas), trained.size))
    for b in range(bases):
        basis = random_basis(size, b)
        for i, spectrum in enumerate(spectra):
            outside[b, i] = ov.laws.partial_floors(rotated(spectrum, basis), distance=DISTANCE)[trained]
    figure, axes = panels(1, 2)
    for i, beta in enumerate(betas):
        ax = axes[i // 2]
        ax.plot(trained, own[i], color=f"C{i}", label=f"β = {beta:g}, eigenbasis")
        ax.plot(trained, outside[:, i].mean(0), color=f"C{i}", ls="--", label=f"β = {beta:g}, random bases, (88)")
    titled(figure, "N = L = 1024, σ = 0.01" + "\nquick: 2 random bases instead of 100" * quick)
    for ax, pair in zip(axes, (betas[:2], betas[2:]), strict=True):
        log_log(ax, f"β = {pair[0]:g} and {pair[1]:g}", "trained directions $N_l$", "error after long training")
    return figure, xr.Dataset(
        {"eigenbasis": (("beta", "trained"), own), "random_bases": (("basis", "beta", "trained"), outside)},
        {"beta": list(betas), "trained": trained},
        {"parameters": "N = L = 1024, sigma = 0.01, small rates"},
    )
