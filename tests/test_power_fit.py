"""Power-law fits: exact laws are recovered, intervals hold what they promise, curves are told from power laws.

Coverage is a count of independent successes; bounds are four standard deviations of such a count beyond the claim, so
each of the six coverage tests raises a false alarm in fewer than 1e-4 of all seeds. Seeds are fixed.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import overlaps as ov
from overlaps.data.power_law import PowerFit, jackknife

# --- exact laws ------------------------------------------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(st.floats(-4, 4), st.floats(-30, 30), st.floats(-6, 6), st.floats(1, 6), st.integers(40, 90))
def test_exact_power_laws(a: float, scale: float, first: float, decades: float, points: int) -> None:
    x = np.geomspace(10.0**first, 10.0 ** (first + decades), points)
    fit = ov.fit_power(x, 10.0**scale * x**a)
    assert fit.is_power_law
    for value in (fit.value, fit.low, fit.high, *fit.slopes):
        assert value == pytest.approx(a, abs=1e-9)
    assert fit.range == (x[0], x[-1]) and fit.points == points


def test_order_units_and_repeated_points_change_nothing() -> None:
    rng = np.random.default_rng(0)
    x = np.geomspace(1, 100, 50)
    y = x**-0.7 * np.exp(0.1 * rng.standard_normal(50))
    fit, order = ov.fit_power(x, y), rng.permutation(50)
    for other in (
        ov.fit_power(x[order], y[order]),
        ov.fit_power(3 * x, y / 7),
        ov.fit_power(np.repeat(x, 2), np.repeat(y, 2)),
        ov.fit_power(x, [y]),
        ov.fit_power(np.append(x, 0.0), np.append(y, -1.0), window=(1, 100)),
    ):
        assert (other.value, other.low, other.high) == pytest.approx((fit.value, fit.low, fit.high), rel=1e-9)


@pytest.mark.parametrize("bend", [0.0, 0.02])
def test_interval_by_another_route(bend: float) -> None:
    """Ten points in each of nine bins: polynomial fits and textbook errors; with a bend the drift counts."""
    rng = np.random.default_rng(1)
    x = np.geomspace(1, 1000, 90)
    y = x ** (-1.3 + bend * np.log(x)) * np.exp(0.05 * rng.standard_normal(90))
    u, z = np.log(x).reshape(9, 10).mean(1), np.log(y).reshape(9, 10).mean(1)
    fit = ov.fit_power(x, y)
    thirds = [np.polyfit(u[part], z[part], 1)[0] for part in (slice(3), slice(6, 9))]
    assert fit.value == pytest.approx(np.polyfit(u, z, 1)[0], rel=1e-12)
    assert fit.slopes == pytest.approx(thirds, rel=1e-12)
    noise = np.sqrt(np.polyfit(u, z, 2, full=True)[1][0] / 6)
    t = stats.t.ppf(0.975, 6)
    error = t * noise / np.sqrt(u.var() * 9)
    drift_error = t * noise * np.sqrt(1 / (u[:3].var() * 3) + 1 / (u[6:].var() * 3))
    excess = abs(thirds[1] - thirds[0]) - drift_error
    assert (excess > 0) == (bend > 0)
    assert (fit.high - fit.low) / 2 == pytest.approx(error + max(0, excess) / 2, rel=1e-10)


# --- coverage --------------------------------------------------------------------------------------------------------

RUNS = 1500


def correlated(rng: np.random.Generator, shape: tuple[int, ...], keep: float) -> np.ndarray:
    """Unit noise whose correlation falls by the factor `keep` from one point to the next."""
    z = rng.standard_normal(shape)
    for i in range(1, shape[-1]):
        z[..., i] = keep * z[..., i - 1] + np.sqrt(1 - keep**2) * z[..., i]
    return z


def coverage(x: np.ndarray, noise: Any, confidence: float = 0.95) -> float:
    fits = [ov.fit_power(x, x**-0.5 * np.exp(noise()), confidence=confidence) for _ in range(RUNS)]
    return float(np.mean([fit.low <= -0.5 <= fit.high for fit in fits]))


def slack(p: float) -> float:
    return 4 * np.sqrt(p * (1 - p) / RUNS)


@pytest.mark.parametrize(("decades", "points"), [(1, 30), (3, 60)])
@pytest.mark.parametrize("confidence", [0.95, 0.8])
def test_coverage_for_independent_noise(decades: int, points: int, confidence: float) -> None:
    """At least as stated; a little more, since the drift of noise now and then passes for systematic."""
    rng = np.random.default_rng(2)
    x = np.geomspace(1, 10**decades, points)
    covered = coverage(x, lambda: 0.03 * rng.standard_normal(points), confidence)
    assert confidence - slack(confidence) < covered < confidence + 0.3 * (1 - confidence) + slack(confidence)


def test_coverage_for_noise_correlated_over_less_than_a_bin() -> None:
    """Two decades, bins of 0.22, correlations of 0.05: neighbouring points are not independent, bins nearly are."""
    rng = np.random.default_rng(3)
    covered = coverage(np.geomspace(1, 100, 80), lambda: 0.03 * correlated(rng, (80,), np.exp(-2 / 79 / 0.05)))
    assert covered > 0.93 - slack(0.93)


def test_coverage_over_runs_whatever_the_correlation() -> None:
    """Correlations of a whole decade: the runs know, their mean alone does not."""
    rng = np.random.default_rng(4)
    x, keep = np.geomspace(1, 100, 60), np.exp(-2 / 59)
    covered = coverage(x, lambda: 0.05 * correlated(rng, (12, 60), keep))
    assert 0.95 - slack(0.95) < covered
    alone = coverage(x, lambda: 0.05 * correlated(rng, (12, 60), keep).mean(0))
    assert alone < 0.8


def test_noise_alone_is_rarely_called_curved() -> None:
    rng = np.random.default_rng(5)
    x = np.geomspace(1, 100, 60)
    fits = [ov.fit_power(x, x**-0.5 * np.exp(0.02 * rng.standard_normal(60))) for _ in range(300)]
    assert all(fit.is_power_law for fit in fits)


def test_jackknife_of_a_mean_is_its_standard_error() -> None:
    runs = 3 + 0.2 * np.random.default_rng(6).standard_normal((9, 4))
    without = np.array([np.delete(runs, i, axis=0).mean(0) for i in range(9)])
    np.testing.assert_allclose(jackknife(without), stats.sem(runs), rtol=1e-12)


# --- curves ----------------------------------------------------------------------------------------------------------

X = np.geomspace(1, 1000, 60)
CURVES = {
    "exponential": np.exp(-X / 100),
    "floor": X**-1.0 + 0.01,
    "two slopes": np.where(X < 30, X**-0.5, 30**0.5 * X**-1.0),
    "logarithm": 1 / np.log(X + 2),
    "stretched": np.exp(-(X**0.2)),
    "plateau": 1 / (1 + (X / 30) ** 2),
}


@pytest.mark.parametrize("name", CURVES)
def test_curves_are_flagged(name: str) -> None:
    fit = ov.fit_power(X, CURVES[name])
    assert not fit.is_power_law
    assert repr(fit).startswith("not a power law: slope drifts from")
    local = np.gradient(np.log(CURVES[name]), np.log(X))
    for slope in fit.slopes:
        assert local.min() - 1e-9 <= slope <= local.max() + 1e-9
    assert fit.low < min(fit.slopes) + 0.6 * abs(fit.drift) and fit.high - fit.low >= 0.5 * abs(fit.drift)


def test_steps_that_do_not_drift_are_not_called_power_laws() -> None:
    """Flat, a cliff, flat: both ends have one slope, but no slope is known."""
    fit = ov.fit_power(X, np.where(X < 31, 10.0, 1.0))
    assert abs(fit.drift) < 1e-9 and not fit.is_power_law
    assert "an interval wider than a fifth of the slope" in repr(fit)


def gradient_flow(levels: int, beta: float, times: np.ndarray, rate: float = 0.05) -> np.ndarray:
    """Error of a linear student under gradient flow, the sum over levels itself."""
    omega = np.array(ov.PowerLaw(levels, beta).eigenvalues)
    return 0.5 * np.array([np.mean(omega * np.exp(-2 * rate * omega * t)) for t in times])


def test_learning_curve_inside_its_window() -> None:
    """error ~ t^-β/(1+β) from 1/(2 η ω₊) on, until the smallest eigenvalue is learned."""
    levels, beta, rate = 10_000, 1.0, 0.05
    low = 1 / (2 * rate * ov.PowerLaw(levels, beta).eigenvalues[0])
    high = low * levels ** (1 + beta)
    times = np.geomspace(low / 10, high, 80)
    error = gradient_flow(levels, beta, times, rate)
    inside = ov.fit_power(times, error, window=(10 * low, high / 1000))
    assert inside.is_power_law
    assert inside.value == pytest.approx(-0.5, abs=0.005)
    assert inside.range[0] >= 10 * low and inside.range[1] <= high / 1000
    assert not ov.fit_power(times, error).is_power_law


# --- spectra ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("levels", [10, 61, 1000, 30_000])
@pytest.mark.parametrize("beta", [-0.5, 0.25, 1.0, 3.0])
def test_power_law_spectra(levels: int, beta: float) -> None:
    fit = ov.PowerLaw(levels, beta).power_law()
    assert fit.is_power_law and fit.range == (1, levels)
    assert (fit.beta.value, fit.beta.low, fit.beta.high) == pytest.approx((beta,) * 3, abs=1e-9)
    assert fit.value == pytest.approx(-1 - beta, abs=1e-9)


def test_power_law_with_a_cut_off() -> None:
    """The range ends where the spectrum leaves the law, at rank 200 of 1000, within what a fifth of drift allows."""
    l = np.arange(1.0, 1001)
    omega = l**-1.5 * np.exp(-np.maximum(l - 200, 0) / 30)
    fit = ov.Spectrum(omega).power_law()
    assert fit.is_power_law and fit.range[0] == 1
    assert 190 < fit.range[1] < 290
    assert fit.beta.low < 0.5 < fit.beta.high


def test_range_may_begin_late() -> None:
    """Ten leading eigenvalues of one size, then a power law."""
    l = np.arange(1.0, 2001)
    fit = ov.Spectrum(np.where(l < 10, 10.0**-2, l**-2.0)).power_law()
    assert fit.is_power_law and 2 <= fit.range[0] <= 10 and fit.range[1] == 2000
    assert fit.beta.low < 1 < fit.beta.high


def test_levels_of_unequal_width_and_zero_levels() -> None:
    """Rank is the share of dimensions with an eigenvalue at least as large; zeros have none, order is free."""
    edges = np.geomspace(1e-3, 1, 50)
    shares = np.diff([0.0, *edges])
    omega = edges**-1.7
    for spectrum in (
        ov.Spectrum(omega, shares),
        ov.Spectrum(omega[::-1], shares[::-1]),
        ov.Spectrum([*omega, 0.0], [*(shares / 2), 0.5]),
    ):
        fit = spectrum.power_law()
        assert fit.is_power_law and fit.beta.value == pytest.approx(0.7, abs=1e-6)
        assert fit.range[1] / fit.range[0] == pytest.approx(1000, rel=1e-6)


def test_measured_spectrum() -> None:
    rng = np.random.default_rng(6)
    rows = rng.standard_normal((20_000, 100)) * np.sqrt(ov.PowerLaw(100, 0.5).eigenvalues)
    fit = ov.Spectrum.from_data(rows).power_law()
    assert fit.is_power_law and fit.range == (1, 100)
    assert fit.beta.value == pytest.approx(0.5, abs=0.03)


@pytest.mark.parametrize("spectrum", [ov.Isotropic(), ov.PowerLaw(9, 1.0), ov.Spectrum([*range(9, 0, -1), 0.0, 0.0])])
def test_too_few_levels(spectrum: Any) -> None:
    with pytest.raises(ov.InputError, match=r"power_law: \d levels? above zero are less than a decade of ranks"):
        spectrum.power_law()


def test_gaps_between_levels() -> None:
    with pytest.raises(ov.InputError, match=r"^rank: 3 points leave gaps between .* of log rank"):
        ov.Spectrum([9.0, 3.0, 1.0], [0.01, 0.19, 0.8]).power_law()


def test_an_outlier_does_not_hide_a_power_law() -> None:
    """A level of few dimensions far before the others: a gap in all ranks, none in those of the law."""
    edges = np.geomspace(1e-2, 1, 50)
    shares, omega = np.diff([1e-6, *edges]), edges**-1.7
    fit = ov.Spectrum([1e9, *omega], [1e-6, *(shares * (1 - 1e-6) / shares.sum())]).power_law()
    assert fit.is_power_law and fit.beta.value == pytest.approx(0.7, abs=1e-3)
    bent = ov.Spectrum([1e9, *np.exp(-5 * edges)], [1e-6, *(shares * (1 - 1e-6) / shares.sum())]).power_law()
    assert not bent.is_power_law and bent.range[0] == pytest.approx(0.51, rel=1e-3)


# --- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("x", "y", "window", "words"),
    [
        (X, X**-1.0, (10, 90), r"window: x from 10\.\d+ to 8\d\.\d+ is less than a decade"),
        (X[:5], X[:5], None, "window: x from 1 to 1.* less than a decade, too little to tell .*; widen the window"),
        (X, X, (2000, 9000), "window: no point lies between 2000 and 9000"),
        (X, X, (1, 2, 3), r"window: expected shape \(2\), got \(3,\)"),
        (X, X - 5, None, r"y: expected numbers above zero, got -4 at x = 1; end the window there"),
        (X - 1, X, None, "x: expected numbers above zero; leave out the others by window="),
        ([], [], None, "y: expected values at every x, got shape"),
        (X, X[1:], None, r"y: expected shape \(60\), got \(59,\)"),
        (X, np.ones((3, 4)), None, r"y: expected shape \(any, 60\), got \(3, 4\)"),
        (X, np.ones((0, 60)), None, "y: expected values at every x, got shape"),
        (X, np.full(60, np.nan), None, "y: has entries that are not finite"),
        (X, np.full((5, 60), 1.7e308), None, "y: the sum over 5 runs overflows; divide all of y by a constant"),
        ([1e308, 1.5e308], [1, 1], None, "window: x from 1e.308 to 1.5e.308 is less than a decade"),
        ([1, 2, 100], [1, 2, 3], None, "x: 3 points leave gaps between 1 and 100; at least one point in each of 6"),
    ],
)
def test_refusals(x: Any, y: Any, window: Any, words: str) -> None:
    with pytest.raises(ov.InputError, match=f"^{words}"):
        ov.fit_power(x, y, window)


@pytest.mark.parametrize("confidence", [0.0, 1 - 1e-16, 1 - 1e-10, 1.0, 2.0, float("nan")])
def test_confidence_is_a_probability(confidence: float) -> None:
    for fit in (lambda: ov.fit_power(X, X, confidence=confidence), lambda: ov.PowerLaw(20, 1.0).power_law(confidence)):
        with pytest.raises(ov.InputError, match="confidence: expected"):
            fit()


def test_words() -> None:
    short = PowerFit(-1.0, -1.1, -0.9, (1.0, 5.0), (-1.0, -1.0), 7, 0.95)
    assert not short.is_power_law and repr(short).endswith("over x = 1 to 5 (7 points), less than a decade")
    assert str(short) == repr(short)
    good = PowerFit(-1.5, -1.52, -1.48, (1.0, 50.0), (-1.5, -1.5), 50, 0.95, "rank")
    said = re.fullmatch(
        r"power law: slope (\S+) \[(\S+), (\S+)\] \((\d+) %\) over rank = (\d+) to (\d+) \((\d+) points\)", repr(good)
    )
    assert said is not None and [float(x) for x in said.groups()] == [-1.5, -1.52, -1.48, 95, 1, 50, 50]
    said = re.fullmatch(r"(\S+) \[(\S+), (\S+)\]", str(good.beta))
    assert said is not None and [float(x) for x in said.groups()] == [0.5, 0.48, 0.52]
