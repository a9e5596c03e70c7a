"""Closed forms of linear students: against linear algebra, the equation of motion, real runs and reference numbers.

Numbers in comments are from the reference data r002_*.npz. Statistical tests: |z| below 4.9 for each of n points, a
false-alarm rate below n × 1e-6.
"""

from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import eigh, expm
from scipy.special import zeta

import overlaps as ov
from overlaps import laws
from overlaps.laws.secular import roots

DATA = Path(__file__).parent / "data"
SGD = np.load(DATA / "r002_linear_sgd.npz")
CASES = ("A_fixedL", "B_LeqN", "D_LeqN_eta.4", "E_feat")
Z = 4.9


def case(name: str) -> tuple[ov.PowerLaw, int, float, float, int | None]:
    size, levels, beta, rate, sigma, trained = SGD[f"{name}_pars"]
    return ov.PowerLaw(int(levels), beta), int(size), rate, 1 + sigma**2, None if trained < 0 else int(trained)


# --- the secular equation --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
def test_roots_are_eigenvalues(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 60))
    poles = np.sort(rng.gamma(0.3, size=n)) + 1e-3 * np.arange(n)
    weights, level = rng.gamma(0.2, size=n) + 1e-9, float(rng.uniform(0.01, 10))
    near, shift, slope = roots(poles, weights, level)
    dense = np.linalg.eigvalsh(np.diag(poles) - np.outer(np.sqrt(weights), np.sqrt(weights)) / level)
    np.testing.assert_allclose(poles[near] + shift, dense, rtol=1e-12, atol=1e-13 * np.abs(dense).max())
    gaps = poles - poles[near][:, None] - shift[:, None]
    np.testing.assert_allclose((weights / gaps**2).sum(1), slope, rtol=1e-10)
    np.testing.assert_allclose((weights / gaps).sum(1), level, rtol=1e-8)


def test_roots_next_to_a_pole_keep_their_digits() -> None:
    """A weight of 1e-40 moves its eigenvalue by less than rounding; the distance is still right."""
    near, shift, _ = roots(np.array([1.0, 2.0]), np.array([1e-40, 1.0]), 10.0)
    assert near[0] == 0
    assert shift[0] == pytest.approx(-1e-40 / 9, rel=1e-12)
    # 1e-40/(1 − x) + 1/(2 − x) = 1: both roots meet at the pole, closer than the sums can tell
    near, shift, _ = roots(np.array([1.0, 2.0]), np.array([1e-40, 1.0]), 1.0)
    assert near.tolist() == [0, 0]
    assert np.abs(shift).max() < 1e-14


# --- reference numbers -----------------------------------------------------------------------------------------------


def test_ten_levels_to_the_digits_of_high_precision_arithmetic() -> None:
    theory = np.load(DATA / "r002_linear_theory.npz")
    mine = laws.linear_error(ov.PowerLaw(10, 1.0), 1.0, theory["L10_alpha"], distance=2.0)
    np.testing.assert_allclose(mine, theory["L10_eps"], rtol=1e-12)
    printed = [1, 0.32613856828587, 0.12294946766039, 0.01509600340524, 3.464622389347e-5]
    np.testing.assert_allclose(mine, printed, rtol=1e-12)


def test_a_thousand_levels() -> None:
    mine = laws.linear_error(ov.PowerLaw(1000, 1.0), 1.0, [1, 10, 100], distance=2.0)
    assert [round(x, n) for x, n in zip(mine, (8, 7, 8), strict=True)] == [0.02971336, 0.0085744, 0.00192544]


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_the_unit_of_the_inputs_is_that_of_the_error(unit: float) -> None:
    """Eigenvalues in other units, and the rate in their inverse, are the same task; the error is in these units."""
    t, some = np.array([0.0, 1e-20, 0.3, 2.0, 20.0]), np.array([3.0, 1.0, 0.2])
    mine = laws.linear_error(ov.Spectrum(some), 0.3, t)
    assert mine[0] == mine[1] == pytest.approx(0.5 * some.mean()) and mine[4] < 0.01 * mine[0]
    np.testing.assert_allclose(laws.linear_error(ov.Spectrum(unit * some), 0.3 / unit, t), unit * mine, rtol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_reference_curves(name: str) -> None:
    spectrum, size, rate, distance, trained = case(name)
    t = SGD[f"{name}_alpha"]
    more = {"distance": distance, "trained": trained}
    np.testing.assert_allclose(laws.linear_error(spectrum, rate, t, **more), SGD[f"{name}_th"], rtol=1e-12)
    np.testing.assert_allclose(laws.small_rate_error(spectrum, rate, t, **more), SGD[f"{name}_small"], rtol=1e-12)
    if not np.isnan(SGD[f"{name}_exactN"]).any():
        exact = laws.finite_size_error(spectrum, size, rate, t, **more)
        np.testing.assert_allclose(exact, SGD[f"{name}_exactN"], rtol=1e-9)


@pytest.mark.parametrize("name", CASES)
def test_real_runs_agree_with_the_exact_mean(name: str) -> None:
    spectrum, size, rate, distance, trained = case(name)
    runs = SGD[f"{name}_sgd"]
    exact = laws.finite_size_error(spectrum, size, rate, SGD[f"{name}_alpha"], distance=distance, trained=trained)
    z = (runs.mean(0) - exact) / (runs.std(0, ddof=1) / np.sqrt(len(runs)))
    assert np.abs(z).max() < Z


def test_small_size_with_one_level_per_dimension() -> None:
    """N = L = 32: the exact mean is met by 40000 runs, the limit N → ∞ is 5 % off."""
    table = np.load(DATA / "r002_linear_exactN.npz")["table"]
    t, mean, error, exact, limit = table.T
    spectrum = ov.PowerLaw(32, 1.0)
    mine = laws.finite_size_error(spectrum, 32, 0.3, t, distance=1.25)
    np.testing.assert_allclose(mine, exact, rtol=1e-9)
    assert np.abs((mean - mine) / error).max() < Z
    np.testing.assert_allclose(laws.linear_error(spectrum, 0.3, t, distance=1.25), limit, rtol=1e-6)
    assert np.abs((mean - limit) / error).max() > 10


@pytest.mark.parametrize(
    ("size", "beta", "limit"), [(128, 1, 1.0013), (1024, 1, 1.0046), (1024, 0.25, 1.629), (1024, 0.1, 1.792)]
)
def test_critical_rate_of_one_level_per_dimension(size: int, beta: float, limit: float) -> None:
    digits = 4 if limit < 1.1 else 3
    assert round(laws.critical_rate(ov.PowerLaw(size, beta), size), digits) == limit


def test_slowest_mode_at_the_edge() -> None:
    assert -laws.linear_modes(ov.PowerLaw(1000, 1.0), 1.9).rates.min() == pytest.approx(-2.3e-3, rel=0.02)


# --- independent routes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("trained", [None, 0, 3, 7])
@pytest.mark.parametrize("rate", [0.1, 1.0, 1.9])
def test_modes_against_the_matrix_exponential(rate: float, trained: int | None) -> None:
    omega = np.array([3.0, 0.2, 1.5, 1.5, 0.0, 0.7, 0.01])
    phi = np.array([0.1, 0.3, 0.05, 0.15, 0.1, 0.2, 0.1])
    spectrum = ov.Spectrum(omega, phi)
    rate /= phi @ omega
    learns = np.zeros(7)
    learns[np.argsort(-omega, kind="stable")[: 7 if trained is None else trained]] = 1
    generator = learns[:, None] * (np.diag(-2 * rate * omega) + rate**2 * np.outer(phi * omega, omega))
    t = np.array([0, 0.3, 2, 50])
    expected = [0.5 * omega @ expm(generator * s) @ (1.7 * phi) for s in t]
    mine = laws.linear_error(spectrum, rate, t, distance=1.7, trained=trained)
    np.testing.assert_allclose(mine, expected, rtol=1e-11)


def test_linear_error_is_the_equation_of_motion() -> None:
    """K = 3 students of M = 2 teachers: one vector of rate η M/K, from distance 1 + σ² M/K."""
    K, M, sigma = 3, 2, 0.5
    p = ov.Problem(
        data=ov.GaussianInputs(ov.PowerLaw(6, 0.5)),
        teacher=ov.Committee(M, "linear", readout=M**-0.5),
        student=ov.Committee(K, "linear", readout=M**0.5 / K),
        algorithm=ov.OnlineSGD(0.9),
    )
    phi = p.data.fractions[:, None, None]
    start = ov.Start.from_overlaps(p, Q=sigma**2 * phi * np.eye(K), R=0 * phi * np.ones((K, M)), T=phi * np.eye(M))
    t = [0, 1, 4, 30]
    rate, distance = laws.single_vector(p, scale=sigma)
    assert (rate, distance) == pytest.approx((0.9 * M / K, 1 + sigma**2 * M / K))
    mine = laws.linear_error(p.data.spectrum, rate, t, distance=distance)
    np.testing.assert_allclose(mine, ov.solve(p, start, t).data["error"].values[0], rtol=1e-8)
    wrong = laws.linear_error(p.data.spectrum, 0.9, t, distance=1 + sigma**2)  # as if K and M did not matter
    assert np.abs(wrong / mine - 1).max() > 0.1


def test_different_widths_against_sgd() -> None:
    """K = 3, M = 2, three levels, rate .6: SGD .577(6), .222(2), .0563(7) with the sizes, not .625, .198, .0413."""
    net = {"activation": "linear"}
    p = ov.Problem(
        data=ov.GaussianInputs(ov.PowerLaw(3, 1.0)),
        teacher=ov.Committee(2, **net, readout=2**-0.5),
        student=ov.Committee(3, **net, readout=2**0.5 / 3),
        algorithm=ov.OnlineSGD(0.6),
    )
    rate, distance = laws.single_vector(p, scale=0.5)
    mine = laws.linear_error(p.data.spectrum, rate, [0, 1, 4], distance=distance)
    assert mine.round(4).tolist() == [0.5833, 0.2262, 0.0559]
    assert np.abs((np.array([0.577, 0.222, 0.0563]) - mine) / [0.006, 0.002, 0.0007]).max() < Z
    ignored = laws.linear_error(p.data.spectrum, 0.6, [0, 1, 4], distance=1.25)
    assert ignored.round(4).tolist() == [0.625, 0.1979, 0.0413]


def test_sgd_at_finite_size_with_frozen_levels() -> None:
    """Runs of the recursion's own experiment: weights drawn anew in each run, N = 24, levels of 1 to 3 dimensions."""
    spectrum = ov.Spectrum([4.0, 1.0, 0.5, 0.1], np.array([1, 2, 3, 2]) / 8)
    size, rate, runs, steps = 24, 0.4, 20_000, 48
    n = ov.GaussianInputs(spectrum).dimensions(size)
    omega = np.repeat(spectrum.eigenvalues, n)
    learns = np.repeat([1.0, 1.0, 0.0, 0.0], n)
    rng = np.random.default_rng(5)
    d = rng.standard_normal((runs, size)) * 1.2
    for _ in range(steps):
        x = np.sqrt(omega) * rng.standard_normal((runs, size))
        d -= rate / size * np.sum(d * x, 1, keepdims=True) * x * learns
    error = 0.5 * (d**2 @ omega) / size
    exact = laws.finite_size_error(spectrum, size, rate, [steps / size], distance=1.44, trained=2)[0]
    assert abs(error.mean() - exact) / (error.std() / np.sqrt(runs)) < Z


def test_finite_size_tends_to_the_limit() -> None:
    spectrum, t = ov.PowerLaw(4, 1.0), [0.5, 2, 10]
    limit = laws.linear_error(spectrum, 1.0, t)
    gaps = [np.abs(laws.finite_size_error(spectrum, n, 1.0, t) / limit - 1).max() for n in (400, 4000)]
    assert gaps[1] == pytest.approx(gaps[0] / 10, rel=0.05)


def test_critical_rate_separates_decay_from_growth() -> None:
    spectrum, size = ov.PowerLaw(16, 1.0), 16
    limit = laws.critical_rate(spectrum, size)
    p = np.array(spectrum.eigenvalues) / size
    for rate, sign in ((0.999 * limit, -1), (1.001 * limit, 1)):
        step = np.diag(1 - 2 * rate * p + 2 * (rate * p) ** 2) + rate**2 * np.outer(p, p)
        assert np.sign(np.abs(np.linalg.eigvals(step)).max() - 1) == sign
    assert laws.critical_rate(spectrum) == pytest.approx(2, rel=1e-14)
    assert laws.critical_rate(ov.Isotropic(), 10**6) == pytest.approx(2, rel=1e-5)


def test_ten_thousand_levels_keep_every_digit() -> None:
    modes = laws.linear_modes(ov.PowerLaw(10_000, 0.1), 1.99, distance=1.7)
    assert modes.amplitudes.min() > 0
    assert modes.amplitudes.sum() == pytest.approx(0.85, rel=1e-12)
    assert modes([0.0])[0] == pytest.approx(0.85, rel=1e-12)
    # initial slope of the generator: dε/dt = −η Σ φω²c + η² Σφω² ε
    second = np.mean(np.array(ov.PowerLaw(10_000, 0.1).eigenvalues) ** 2)
    slope = -1.99 * second * 1.7 + 1.99**2 * second * 0.85
    assert -(modes.rates @ modes.amplitudes) == pytest.approx(slope, rel=1e-9)


@pytest.mark.parametrize(
    ("levels", "beta", "rate"), [(1, 1.0, 1.0), (10, 1.0, 0.01), (1000, 1.0, 1.9), (1000, 0.1, 0.5)]
)
@pytest.mark.parametrize("share", [1.0, 0.4])
def test_contour_is_the_sum_of_modes(levels: int, beta: float, rate: float, share: float) -> None:
    """To the last digits, also where only the slowest of them is left and the error is 1e-130."""
    spectrum, trained = ov.PowerLaw(levels, beta), max(1, round(share * levels))
    modes = laws.linear_modes(spectrum, rate, distance=1.3, trained=trained)
    t = np.append(0, np.geomspace(1e-5, 300 / modes.rates.min(), 60))
    mine = laws.linear_error(spectrum, rate, t, distance=1.3, trained=trained)
    np.testing.assert_allclose(mine, modes(t), rtol=3e-12)
    assert trained < levels or mine[-1] < 1e-120


def test_small_rates_are_the_limit() -> None:
    spectrum = ov.PowerLaw(30, 0.5)
    t = np.array([0.1, 1, 10])
    small = laws.small_rate_error(spectrum, 1.0, t, trained=20)
    mine = laws.linear_error(spectrum, 1e-5, t * 1e5, trained=20)
    np.testing.assert_allclose(mine, small, rtol=2e-5)


@pytest.mark.parametrize("t", [1e-320, 1e-200, 1e-18])
def test_times_too_short_to_change_anything(t: float) -> None:
    assert laws.linear_error(ov.PowerLaw(10, 1.0), 1.0, [t])[0] == pytest.approx(0.5, rel=1e-14)


@pytest.mark.parametrize("gap", [1e-3, 1e-8, 1e-15])
def test_modes_a_hair_below_the_critical_rate(gap: float) -> None:
    modes = laws.linear_modes(ov.PowerLaw(10, 1.0), 2 - gap)
    assert modes([0.0])[0] == pytest.approx(0.5, rel=1e-14)
    assert 0 < modes.rates.min() < 2 * gap  # vanishes with the gap


@pytest.mark.parametrize("spectrum", [ov.PowerLaw(10_000, 12.0), ov.PowerLaw(100, 40.0), ov.Spectrum([1e-300, 1.0])])
def test_steep_spectra(spectrum: ov.PowerLaw | ov.Spectrum) -> None:
    """Levels of almost no variance neither matter nor disturb; 1e-14 of the first error is what rounding leaves."""
    t = np.array([0.0, 1.0, 5.0])
    mine = laws.linear_error(spectrum, 0.5, t)
    np.testing.assert_allclose(mine, laws.linear_modes(spectrum, 0.5)(t), rtol=1e-11, atol=1e-14)
    omega, phi = np.array(spectrum.eigenvalues), np.array(spectrum.fractions)
    generator = -np.diag(omega[:50]) + 0.25 * np.outer((phi * omega)[:50], omega[:50])
    expected = [0.5 * omega[:50] @ expm(generator * s) @ phi[:50] for s in t]
    np.testing.assert_allclose(mine, expected, rtol=1e-9, atol=1e-12)


def test_integral_form_for_a_vanishing_exponent() -> None:
    """β = 1e-6: the difference of two large numbers is taken exactly."""
    spectrum = ov.PowerLaw(1000, 1e-6)
    near = ov.PowerLaw(1000, 1e-3)
    t = [0.5, 10.0, 100.0]
    np.testing.assert_allclose(laws.gamma_error(spectrum, 0.1, t), laws.gamma_error(near, 0.1, t), rtol=0.01)
    np.testing.assert_allclose(laws.gamma_error(spectrum, 0.1, t), laws.small_rate_error(spectrum, 0.1, t), rtol=0.01)


# --- power laws ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("levels", "beta"), [(256, 0.75), (1024, 1.0), (10_000, 0.25), (10_000, 2.0)])
def test_integral_form_against_the_sum(levels: int, beta: float) -> None:
    spectrum, rate = ov.PowerLaw(levels, beta), 0.05
    low, high, _ = laws.window(spectrum, rate)
    t = np.geomspace(300 * low, high / 3, 20)
    # Euler and Maclaurin: half of the last level is missing, and nothing else at these times
    last = spectrum.eigenvalues[-1]
    half = 0.25 / levels * last * np.exp(-2 * rate * last * t)
    exact, mine = laws.small_rate_error(spectrum, rate, t), laws.gamma_error(spectrum, rate, t)
    np.testing.assert_allclose(mine + half, exact, rtol=1e-5)
    assert np.abs(mine / exact - 1).max() > 3e-5


@pytest.mark.parametrize("beta", [0.3, 1.0])
def test_integral_form_is_a_finite_number_at_any_time(beta: float) -> None:
    spectrum = ov.PowerLaw(1000, beta)
    t = np.concatenate([[0.0], np.geomspace(1e-12, 1e9, 200)])
    mine = laws.gamma_error(spectrum, 0.1, t)
    assert np.isfinite(mine).all() and (mine >= 0).all() and (np.diff(mine) <= 1e-15).all()
    top, L = spectrum.eigenvalues[0], 1000
    bound = top / (2 * L) * (zeta(1 + beta) - 1 / beta + 1 / (2 * L ** (1 + beta)))
    # the largest deviation is at time zero, and bounded (the tail of ζ beyond L is dropped in the bound)
    assert 0 < 0.5 - mine[0] < bound * 1.01


def test_integral_by_quadrature() -> None:
    """The closed form is the integral it claims to be."""
    from scipy.integrate import quad

    spectrum, rate, t = ov.PowerLaw(50, 0.4), 0.2, 3.0
    top = spectrum.eigenvalues[0]

    def integrand(k: float) -> float:
        omega = top * k**-1.4
        return 0.5 / 50 * omega * np.exp(-2 * rate * omega * t)

    assert laws.gamma_error(spectrum, rate, [t])[0] == pytest.approx(quad(integrand, 1, 50)[0], rel=1e-8)
    trained = quad(integrand, 1, 10.5)[0] + quad(lambda k: 0.5 / 50 * top * k**-1.4, 10.5, 50.5)[0]
    assert laws.gamma_error(spectrum, rate, [t], trained=10)[0] == pytest.approx(trained, rel=1e-8)


def test_feature_scaling_numbers() -> None:
    spectrum, t = ov.PowerLaw(256, 1.0), [10, 100, 1000, 10_000]
    more = {"distance": 1.0001, "trained": 50}
    exact = laws.small_rate_error(spectrum, 0.05, t, **more)
    np.testing.assert_allclose(exact, [0.020554, 0.006683, 0.0048468, 0.0048458], rtol=3e-5)
    np.testing.assert_allclose(laws.gamma_error(spectrum, 0.05, t, **more), exact, rtol=1e-4)
    assert laws.feature_floor(spectrum, 10, distance=1.0001) == pytest.approx(0.0278107, rel=3e-6)
    assert laws.power_floor(spectrum, 10, distance=1.0001) == pytest.approx(0.0278326, rel=3e-6)
    assert exact[-1] == pytest.approx(laws.feature_floor(spectrum, 50, distance=1.0001), rel=1e-6)


def test_exponent_inside_the_window() -> None:
    """Local slopes of the sum: β/(1+β) well inside, faster at the upper edge."""
    spectrum, rate = ov.PowerLaw(100_000, 1.0), 0.05
    low, high, exponent = laws.window(spectrum, rate)
    assert exponent == laws.time_exponent(1.0) == 0.5

    def slope(t: float) -> float:
        a, b = laws.small_rate_error(spectrum, rate, [t, 1.001 * t])
        return -np.log(b / a) / np.log(1.001)

    inside = [slope(t) for t in np.geomspace(100 * low, high / 1e5, 5)]
    np.testing.assert_allclose(inside, 0.5, atol=2e-3)
    assert slope(high) > 0.8
    # at the upper edge the sum is below the pure power by Γ(s, z)/Γ(s) = erfc(√π/2)
    pure = laws.power_error(spectrum, rate, [high])[0]
    assert laws.small_rate_error(spectrum, rate, [high])[0] / pure == pytest.approx(0.21, abs=0.002)
    np.testing.assert_allclose(
        laws.power_error(spectrum, rate, [300 * low]), laws.small_rate_error(spectrum, rate, [300 * low]), rtol=1e-3
    )


# --- outside the eigenbasis ------------------------------------------------------------------------------------------


def rotated(spectrum: ov.PowerLaw, seed: int = 0) -> np.ndarray:
    n = spectrum.levels
    basis, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((n, n)))
    sigma = basis @ np.diag(spectrum.eigenvalues) @ basis.T
    return (sigma + sigma.T) / 2


def test_partial_training_in_numbers() -> None:
    """N = 128, 40 trained, σ = .3: (88) and the Schur complement .01476516, eigenbasis .00562861."""
    spectrum = ov.PowerLaw(128, 1.0)
    sigma, misc = rotated(spectrum), np.load(DATA / "r002_misc.npz")
    assert laws.partial_floor(sigma, 40, distance=1.09) == pytest.approx(float(misc["e88"]), rel=1e-10)
    assert laws.feature_floor(spectrum, 40, distance=1.09) == pytest.approx(0.00562861, rel=1e-6)
    # the same at any time for small rates, by matrix functions
    t, c, n = np.array([10.0, 60.0, 1000.0]), 1.09, 128
    S, C, H = sigma[:40, :40], sigma[:40, 40:], sigma[40:, 40:]
    told = C.T @ np.linalg.solve(S, C)
    decays = [expm(-2 * 0.05 * S * s) for s in t]
    formula = [np.trace(S @ E) + np.trace(np.linalg.solve(S, E @ C) @ C.T) + np.trace(H - told) for E in decays]
    small = laws.partial_error(sigma, 40, 1e-7, t * 0.05e7, distance=c)
    np.testing.assert_allclose(small, c / (2 * n) * np.array(formula), rtol=1e-5)
    np.testing.assert_allclose(small[[0, 2]], [0.065987, 0.015248], rtol=2e-4)
    assert small[1] == pytest.approx(float(misc["formula"]), rel=1e-5)


def test_partial_training_at_finite_rate_against_sgd() -> None:
    """SGD at rate .05, 200 runs at time 60: the rate raises the error, and the finite-rate law meets the runs."""
    misc = np.load(DATA / "r002_misc.npz")
    mine = laws.partial_error(rotated(ov.PowerLaw(128, 1.0)), 40, 0.05, [60.0], distance=1.09)[0]
    z = (misc["sgd"].mean() - mine) / (misc["sgd"].std(ddof=1) / np.sqrt(misc["sgd"].size))
    assert abs(z) < Z
    assert mine > float(misc["formula"]) * 1.004


def test_partial_training_against_its_own_sgd() -> None:
    """Strong rate, correlated coordinates: 4000 runs at N = 60."""
    rng = np.random.default_rng(7)
    n, count, rate, runs, steps = 60, 20, 0.8, 4000, 240
    factor = np.eye(n) + 0.3 * rng.standard_normal((n, n)) / np.sqrt(n)
    sigma = factor @ factor.T
    d = rng.standard_normal((runs, n))
    for _ in range(steps):
        x = rng.standard_normal((runs, n)) @ factor.T
        d[:, :count] -= rate / n * np.sum(d * x, 1, keepdims=True) * x[:, :count]
    error = 0.5 * np.einsum("ri,ij,rj->r", d, sigma, d) / n
    mine = laws.partial_error(sigma, count, rate, [steps / n])[0]
    # corrections are O(rate/N); they and the noise of the mean must cover the difference
    assert abs(error.mean() / mine - 1) < 2 * rate / n + Z * error.std() / error.mean() / np.sqrt(runs)
    small = laws.partial_error(sigma, count, 1e-6, [rate * 1e6 * steps / n])[0]
    assert abs(error.mean() / small - 1) > 0.05


def test_partial_training_of_a_diagonal_covariance_is_the_eigenbasis() -> None:
    spectrum, t = ov.PowerLaw(12, 0.7), [0, 1, 30]
    sigma = np.diag(spectrum.eigenvalues)
    for trained in (0, 5, 12):
        mine = laws.partial_error(sigma, trained, 0.7, t, distance=1.3)
        expected = laws.linear_error(spectrum, 0.7, t, distance=1.3, trained=trained)
        np.testing.assert_allclose(mine, expected, rtol=1e-10, atol=1e-15)
    assert eigh(sigma, eigvals_only=True)[0] > 0


def test_random_bases_at_the_ends() -> None:
    spectrum = ov.Spectrum([4.0, 1.0, 0.0], [0.2, 0.6, 0.2])
    variance = 1.4
    assert laws.random_basis_floor(spectrum, 0.0, distance=1.3) == pytest.approx(0.65 * variance)
    assert laws.random_basis_floor(spectrum, 0.8) == laws.random_basis_floor(spectrum, 1.0) == 0
    # κ solves .8/(4 + κ) + .6/(1 + κ) = .5
    kappa = np.roots([0.5, 2.5 - 1.4, 2 - 0.8 - 2.4]).max()
    floor = laws.random_basis_floor(spectrum, 0.5, rate=1.0)
    assert floor == pytest.approx(0.25 * kappa / (1 - 0.25 * variance), rel=1e-12)
    assert laws.random_basis_floor(ov.Isotropic(), 0.3) == pytest.approx(0.35, rel=1e-12)


# --- refusals --------------------------------------------------------------------------------------------------------

P = ov.PowerLaw(8, 1.0)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: laws.linear_error(P, 2.0, [1]), "critical_rate = 2"),
        (lambda: laws.linear_error(P, 0.0, [1]), "rate: expected a number above 0"),
        (lambda: laws.linear_error(P, 0.5, [1], trained=9), "trained: expected at most 8"),
        (lambda: laws.linear_error(P, 0.5, [1], distance=-1), "distance"),
        (lambda: laws.linear_error(P, 0.5, [2, 1]), "increasing"),
        (lambda: laws.linear_error([1, 2], 0.5, [1]), "spectrum: expected"),  # pyright: ignore[reportArgumentType]
        (lambda: laws.finite_size_error(P, 8, 1.4, [1]), "mean error at size 8 diverges"),
        (lambda: laws.finite_size_error(P, 4, 0.1, [1]), "cannot hold 8 levels"),
        (lambda: laws.gamma_error(ov.PowerLaw(8, 0.0), 0.5, [1]), "β > 0"),
        (lambda: laws.gamma_error(ov.PowerLaw(8, -0.5), 0.5, [1]), "small_rate_error"),
        (lambda: laws.window(ov.Isotropic(), 0.5), "about a PowerLaw"),  # pyright: ignore[reportArgumentType]
        (lambda: laws.window(ov.PowerLaw(1, 1.0), 0.5), "leave no time"),
        (lambda: laws.time_exponent(0), "exponent: expected a number above 0"),
        (lambda: laws.power_error(P, 0.5, [1e-9]), "power law holds from"),
        (lambda: laws.power_floor(P, 0), "trained: expected at least 1"),
        (lambda: laws.partial_floor(np.ones((3, 3)), 1), "positive definite"),
        (lambda: laws.partial_floor([[1, 0.5], [0.2, 1]], 1), "symmetric"),
        (lambda: laws.partial_error(np.eye(4), 4, 2.0, [1]), "critical_rate"),
        (lambda: laws.random_basis_floor(P, 1.5), "share: expected at most 1"),
        (lambda: laws.linear_modes(ov.Spectrum([1e-300]), 0.1), "give inputs other units"),
        (lambda: laws.linear_error(P, 1e-310, [1]), "use small_rate_error"),
        (lambda: laws.window(ov.PowerLaw(1000, 200.0), 0.1), "use fewer levels or a smaller exponent"),
        (lambda: laws.partial_floors(np.zeros((0, 0))), "covariance: expected a matrix"),
        (lambda: laws.partial_floors(1e308 * np.eye(3)), "covariance: expected a matrix"),
        (lambda: laws.equal_rows(np.ones((2, 3, 4))), "T: expected shape"),
        (lambda: laws.single_vector(None, 1.0), "expected an overlaps.Problem"),  # pyright: ignore[reportArgumentType]
        (lambda: laws.typical_teacher(None), "expected an overlaps.Problem"),  # pyright: ignore[reportArgumentType]
        (lambda: laws.linear_error(P, 0.5, [1 + 1j]), "times: expected an array of finite numbers"),
        (lambda: ov.Spectrum(np.array([1 + 1j, 2])), "eigenvalues: expected an array"),
    ],
)
def test_refusals(call, words: str) -> None:
    with pytest.raises(ov.InputError, match=words):
        call()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"student": ov.Committee(2)}, "student: expected a linear activation"),
        ({"student": ov.Committee(2, "linear", train_readout=True)}, "trained readout"),
        ({"label_noise": 0.1}, "without label noise"),
    ],
)
def test_single_vector_refuses(change: dict, words: str) -> None:
    net = ov.Committee(2, "linear")
    parts = {"data": ov.GaussianInputs(), "teacher": net, "student": net, "algorithm": ov.OnlineSGD(0.1)}
    with pytest.raises(ov.InputError, match=words):
        laws.single_vector(ov.Problem(**{**parts, **change}), 0.1)
