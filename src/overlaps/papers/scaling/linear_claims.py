"""Claims about the linear student: power laws in time and in the number of features, and SGD at finite size.

Exponents are those of L → ∞. At L levels the pure power lacks the levels beyond L, a share that falls as L^-β: with
little of it left the slope is that of the power law, and fits at three L in equal ratios q are extrapolated twice,

    a′ = (q^β a(qL) − a(L))/(q^β − 1),        a″ = (q^2β a′(qL) − a′(L))/(q^2β − 1);

the change a″ − a′ counts as their error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import overlaps as ov

from ..ledger import UNDECIDED, Measurement
from .model import committee
from .paper import PAPER
from .partial import drawn_weights, gaussian_runs, random_basis, rotated

Array = NDArray[np.float64]


def to_infinity(slopes: Sequence[float], ratio: float, beta: float) -> tuple[float, float]:
    """Three slopes at L, `ratio` L and `ratio`² L extrapolated to infinite L, and the error of that."""
    r = ratio**beta
    first, second = (r * slopes[1] - slopes[0]) / (r - 1), (r * slopes[2] - slopes[1]) / (r - 1)
    value = (r**2 * second - first) / (r**2 - 1)
    return value, abs(value - second)


def _ladder(quick: bool) -> tuple[tuple[int, int, int], float]:
    """Numbers of levels and their ratio."""
    return ((10_000, 31_623, 100_000), 10**0.5) if quick else ((10_000, 100_000, 1_000_000), 10.0)


def _worst(ratios: dict[float, tuple[float, float]]) -> float:
    """The β whose ratio is farthest from one."""
    return max(ratios, key=lambda beta: abs(ratios[beta][0] - 1))


def power_law_decades(spectrum: ov.PowerLaw, rate: float) -> float:
    """Length in decades of the longest time over which the local slope is within 10 % of β/(1+β)."""
    beta = spectrum.exponent
    unit = 1 / (2 * rate * spectrum.eigenvalues[0])
    grid = np.linspace(-2, 1 + (1 + beta) * np.log10(spectrum.levels), 1000)
    error = ov.laws.linear_error(spectrum, rate, unit * 10**grid)
    slope = -np.gradient(np.log10(np.maximum(error, 1e-300)), grid)
    outside = np.flatnonzero(np.abs(slope / ov.laws.time_exponent(beta) - 1) > 0.1)
    return float(np.diff(grid[outside], prepend=grid[0], append=grid[-1]).max())


@PAPER.claim(
    "linear-transition",
    where="section 4.2, figure 2",
    statement="a linear student decays exponentially for few levels and as a power of time for many, over a window "
    "that widens as L^(1+beta)",
    expected="holds",
)
def linear_transition(quick: bool) -> Measurement:
    """Decades of time with a local slope within 10 % of β/(1+β), at rate .1 and β = 1, against the number of levels."""
    counts = (1, 10, 100, 1000) if quick else (1, 10, 100, 1000, 10_000)
    decades = [power_law_decades(ov.PowerLaw(L, 1.0), 0.1) for L in counts]
    gain = decades[-1] - decades[-2]
    # an exponential passes the band in log10(1.1/0.9) = 0.09 decades
    holds = decades[0] < 0.1 and abs(gain / 2 - 1) < 0.1
    note = ", ".join(f"L = {L}: {d:.2f}" for L, d in zip(counts, decades, strict=True))
    return Measurement(
        "holds" if holds else "fails", gain, 0.02, f"decades gained by ten times the levels, 1 + β = 2 expected; {note}"
    )


def time_slope(levels: int, beta: float) -> float:
    """Fitted power of 1/time of the sum over levels for 2 η ω₊ t = 30 to 300, where only levels are missing."""
    spectrum = ov.PowerLaw(levels, beta)
    t = np.geomspace(30, 300, 12) * ov.laws.window(spectrum, 0.1).low
    return -ov.fit_power(t, ov.laws.small_rate_error(spectrum, 0.1, t)).value


def local_slopes(spectrum: ov.PowerLaw, rate: float) -> Array:
    """Local powers of 1/time of the sum over levels, over β/(1+β), from end to end of the printed window, (40,)."""
    low, high, _ = ov.laws.window(spectrum, rate)
    x = np.linspace(np.log(low), np.log(high), 40)
    each = [np.log(ov.laws.small_rate_error(spectrum, rate, np.exp(x + h))) for h in (-0.01, 0.01)]
    return (each[0] - each[1]) / 0.02 / ov.laws.time_exponent(spectrum.exponent)


@PAPER.claim(
    "time-exponent-linear",
    where="section 4.2, eq. (9), figure 2 (right)",
    statement="between 1/(2 eta l_1) and Gamma(1+s)^(1/s) L^(1+beta)/(2 eta l_1) the error of a linear student falls "
    "as time^-s, s = beta/(1+beta); corrected: far from both ends, as L grows; at the L = 256, beta = .75 of figure 2 "
    "the local slope goes from half of s to more than twice s over that window",
    expected="holds corrected",
)
def time_exponent_linear(quick: bool) -> Measurement:
    """Slopes for 2 η ω₊ t = 30 to 300, extrapolated to infinite L; local slopes over the window of figure 2 (right)."""
    counts, ratio = _ladder(quick)
    ratios: dict[float, tuple[float, float]] = {}
    seen: dict[float, float] = {}
    for beta in (0.5, 1.0) if quick else (0.25, 0.5, 1.0, 1.5):
        slopes = [time_slope(L, beta) for L in counts]
        value, error = to_infinity(slopes, ratio, beta)
        s = ov.laws.time_exponent(beta)
        ratios[beta], seen[beta] = (value / s, error / s + 1e-3), slopes[0] / s
    corrected = all(abs(value - 1) <= 3 * error and error < 0.05 for value, error in ratios.values())
    printed = local_slopes(ov.PowerLaw(256, 0.75), 0.1)
    as_printed = bool(np.all(np.abs(printed - 1) < 0.1))
    note = ", ".join(f"β = {b:g}: {v:.4f} (at L = 10⁴ {seen[b]:.3f})" for b, (v, _) in ratios.items())
    note += f"; over the window of figure 2 (right) from {printed[0]:.2f} to {printed[-1]:.2f}"
    N, rate = 1024, 0.1
    spectrum = ov.PowerLaw(N, 1.0)
    low, high, _ = ov.laws.window(spectrum, rate)
    t = np.geomspace(30 * low, high / 100, 40)  # a tenth of the levels is missing at the end
    inside = ov.fit_power(t, ov.laws.finite_size_error(spectrum, N, rate, t))
    t = np.geomspace(high / 100, high, 40)
    beyond = ov.fit_power(t, ov.laws.finite_size_error(spectrum, N, rate, t))
    worst = _worst(ratios)
    return Measurement(
        "fails" if not corrected else "holds" if as_printed else "holds corrected",
        *ratios[worst],
        f"slope over β/(1+β) at β = {worst:g}; {note}; mean of SGD at N = L = 1024, β = 1: {inside}, up to the end of "
        f"the window: {beyond}",
    )


def _floor_slope(floor: Callable[[int], float]) -> float:
    """Fitted power of 1/N_l between 100 and 1000."""
    n = np.geomspace(100, 1000, 12).round().astype(int)
    return -ov.fit_power(n, [floor(int(i)) for i in n]).value


@PAPER.claim(
    "feature-exponent",
    where="section 4.3, figure 3; appendix B.3.1, figure 16",
    statement="with N_l of N directions trained the error after long training falls as N_l^-beta for N_l < N, in the "
    "eigenbasis and with the same exponent in a random basis; corrected: as N/N_l grows; at the N = L = 1024 of figure "
    "16, N_l = 10 to 100, the local slope in a random basis changes by more than a tenth",
    expected="holds corrected",
)
def feature_exponent(quick: bool) -> Measurement:
    """Slopes fitted for N_l = 100 to 1000, extrapolated to infinite N; in random bases by the trace of large matrices.

    That trace must agree with matrices of N = 1024 to two per cent.
    """
    counts, ratio = _ladder(quick)
    bases = [random_basis(1024, b) for b in range(2 if quick else 8)]
    few, n = np.unique(np.geomspace(10, 100, 20).round().astype(int)), np.array([100, 300, 600])
    slopes: list[str] = []
    ratios: dict[float, tuple[float, float]] = {}
    alike, as_printed = True, True
    for beta in (0.75, 1.0) if quick else (0.3, 0.75, 1.0, 1.5):
        inside, outside = [], []
        for L in counts:
            spectrum = ov.PowerLaw(L, beta)
            inside.append(_floor_slope(lambda i, s=spectrum: ov.laws.feature_floor(s, i)))
            outside.append(_floor_slope(lambda i, s=spectrum: ov.laws.random_basis_floor(s, i / s.levels)))
        own, random = (to_infinity(slopes, ratio, beta) for slopes in (inside, outside))
        # half a level at N_l = 100 is half a per cent
        ratios[beta] = max(
            ((value / beta, error / beta + 0.005) for value, error in (own, random)), key=lambda pair: abs(pair[0] - 1)
        )
        spectrum = ov.PowerLaw(1024, beta)
        floors = np.array([ov.laws.partial_floors(rotated(spectrum, basis)) for basis in bases])
        trace = np.array([ov.laws.random_basis_floor(spectrum, i / 1024) for i in n])
        alike &= bool(np.all(np.abs(floors[:, n].mean(0) / trace - 1) < 0.02))
        here = ov.fit_power(few, floors[:, few])
        as_printed &= here.is_power_law and abs(here.value + beta) < 0.1 * beta
        slopes.append(f"β = {beta:g}: {own[0]:.3f}, random {random[0]:.3f} (N = 1024, N_l = 10 to 100: {here})")
    corrected = alike and all(abs(value - 1) <= 3 * error and error < 0.05 for value, error in ratios.values())
    worst = _worst(ratios)
    note = f"slope over β at β = {worst:g}, asymptotic in N_l and N; {'; '.join(slopes)}"
    judged = "fails" if not corrected else "holds" if as_printed else "holds corrected"
    return Measurement(judged, *ratios[worst], note)


@PAPER.claim(
    "fig2-stability",
    where="not in the paper; the sizes of figure 2 (left)",
    statement="the mean of SGD at N = L = 128, beta = 1, eta = 1 is twenty times that of the limit of large N, (6) "
    "corrected, at time 1, and carried by rare runs: its rate is a hair below the critical one of that size",
    expected="found here",
)
def fig2_stability(quick: bool) -> Measurement:
    """Exact mean of SGD at N = L = 128 over the corrected (6) at time 1, with runs of SGD next to it."""
    N, rate, t = 128, 1.0, np.array([1.0, 10.0, 100.0])
    spectrum = ov.PowerLaw(N, 1.0)
    limit = ov.laws.linear_error(spectrum, rate, t, distance=2.0)
    ratio = ov.laws.finite_size_error(spectrum, N, rate, t, distance=2.0) / limit
    problem = committee(N, 1.0, rate, students=1, teachers=1, activation="linear")
    starts = 20 if quick else 200
    errors = np.empty((starts, 10))
    for i in range(starts):
        result = ov.train(problem, ov.draw(problem, N, seed=i), t[:1], runs=10, seed=i, progress=False)
        errors[i] = result.data["error"].values[:, 0] / limit[0]
    # most runs are near the limit, and the mean of so few of them does not show the exact one
    found = abs(ratio[0] / 20 - 1) < 0.1 and np.median(errors) < 3 and 1 < ov.laws.critical_rate(spectrum, N) < 1.01
    note = (
        f"mean over limit; {ratio[1]:.3g} at time 10, {ratio[2]:.3g} at time 100; the mean diverges from rate "
        f"{ov.laws.critical_rate(spectrum, N):.4f} on and is carried by rare runs: of {errors.size} the median has "
        f"{np.median(errors):.2g} times the limit, the largest {errors.max():.2g}"
    )
    return Measurement("found here" if found else "fails", float(ratio[0]), 1e-9 * float(ratio[0]), note)


@PAPER.claim(
    "finite-rate",
    where="figures 10 to 13",
    statement="at finite rates the modes of a linear student are no longer on a power law (figures 10 to 12), which "
    "raises its error without changing its scaling (figure 13); found here: late, by 2/(2 - eta)",
    expected="holds",
)
def finite_rate(quick: bool) -> Measurement:
    """Error at rate 1 over 2/(2 − η) times that of small rates at 2 η ω₊ t = 3·10⁵; how it comes to one by then."""
    levels = 100_000 if quick else 1_000_000
    x, rate, betas = np.array([3e1, 3e2, 3e3, 3e4, 3e5]), 1.0, (0.5, 1.0)
    raised = []
    for beta in betas:
        spectrum = ov.PowerLaw(levels, beta)
        t = x * ov.laws.window(spectrum, rate).low
        ratio = ov.laws.linear_error(spectrum, rate, t) / ov.laws.small_rate_error(spectrum, rate, t)
        raised.append((1 - rate / 2) * ratio)
    spectrum, far = ov.PowerLaw(40, 0.1), []
    for at in (0.1, 0.5, 1.0):
        weights = 2 * spectrum.levels * ov.laws.linear_modes(spectrum, at).amplitudes[::-1]
        far.append(float(np.abs(weights / np.array(spectrum.eigenvalues) - 1).max()))
    # another power of time would not let the ratio settle
    settles = all(np.all(np.diff(np.abs(ratio - 1)) < 0) and abs(ratio[-1] - 1) < 0.01 for ratio in raised)
    worst = max(range(2), key=lambda i: abs(raised[i][-1] - 1))
    decades = (f"beta = {b:g}: {', '.join(f'{v:.4f}' for v in r)}" for b, r in zip(betas, raised, strict=True))
    note = (
        f"at beta = {betas[worst]:g}; decade by decade, {'; '.join(decades)}; weights of 40 modes, beta = .1, are off "
        f"the power law by up to {', '.join(f'{v:.2g}' for v in far)} of it at rates .1, .5, 1"
    )
    value, last = (float(raised[worst][i]) for i in (-1, -2))
    holds = settles and bool(np.all(np.diff(far) > 0)) and far[-1] > 1
    return Measurement("holds" if holds else "fails", value, abs(value - last), note)


@PAPER.claim(
    "eq88",
    where="eq. (88)",
    statement="with N_l coordinates trained outside the eigenbasis the error after long training at small rates is "
    "(88), 1/2 [1 - Tr S_t/N + s^2 Tr S_h/N - (1+s^2)/N Tr(S_c^T S_t^-1 S_c)], blocks of trained t and frozen h",
    expected="holds",
)
def eq88(quick: bool) -> Measurement:
    """SGD over the least error of its own frozen weights, extrapolated to rate zero; and the mean of these over (88).

    N = 32, a quarter trained, β = 1, σ = 1/2. The least error is found by least squares.
    """
    size, trained, scale, runs = 32, 8, 0.5, 20 if quick else 100
    sigma = rotated(ov.PowerLaw(size, 1.0), random_basis(size, 0))
    factor = np.linalg.cholesky(sigma).T
    least = []
    for run in range(2000 if quick else 20_000):
        B, w = drawn_weights(size, scale, 0, run)
        rest = np.linalg.lstsq(factor[:, :trained], factor[:, trained:] @ (B - w)[trained:], rcond=None)[1]
        least.append(float(rest[0]) / (2 * size))
    ratios = {}
    for rate, last in ((0.2, 400), (0.1, 800)):
        times = np.linspace(last / 2, last, 20).round()
        ratios[rate] = gaussian_runs(sigma, trained, rate, times, scale=scale, runs=runs).mean(1) / least[:runs]
    ends = 2 * ratios[0.1] - ratios[0.2]
    value, error = float(ends.mean()), float(ends.std(ddof=1) / np.sqrt(runs))
    own, cross = sigma[:trained, :trained], sigma[:trained, trained:]
    explained = np.trace(cross.T @ np.linalg.solve(own, cross))
    printed = (1 - np.trace(own) / size + scale**2 * np.trace(sigma[trained:, trained:]) / size) / 2
    printed -= (1 + scale**2) / (2 * size) * explained
    mean, spread = np.mean(least) / printed, np.std(least) / np.sqrt(len(least)) / printed
    # 1e-3: what is quadratic in the rate is not extrapolated away
    holds = abs(value - 1) < 4 * error + 1e-3 and error < 0.01 and abs(mean - 1) < 4 * spread and spread < 0.02
    note = (
        f"mean of {len(least)} least errors over (88) {mean:.3f} ± {spread:.3f}; SGD over them at rate .2 "
        f"{ratios[0.2].mean():.4f}, at .1 {ratios[0.1].mean():.4f}"
    )
    return Measurement("holds" if holds else "fails", value, error, note)


@PAPER.claim(
    "data-spectrum",
    where="eq. (1), figure 14",
    statement="eigenvalues of the covariance of CIFAR-5m follow the power law (1) with beta = .3; CIFAR-5m is not to "
    "be had here; those of digits, 64 pixels, are on no power law, which says little about 1024",
    expected="cannot be told",
)
def data_spectrum(quick: bool) -> Measurement:
    """1 + β of the longest fit over ranks, on CIFAR-5m or, which decides nothing, on digits."""
    name, spectrum = images()
    fit = spectrum.power_law()
    judged = "holds" if fit.is_power_law and abs(-fit.value - 1.3) < 0.13 else "fails"
    drift = f"{name}: {fit}, drift of the local slope {abs(fit.drift / fit.value):.2f} of it"
    return Measurement(judged if name == "CIFAR-5m" else UNDECIDED, -fit.value, abs(fit.drift) / 2, drift)


def images() -> tuple[str, Any]:
    """Name and measured spectrum of the images that there are."""
    return "digits", ov.Samples(ov.digits()).spectrum
