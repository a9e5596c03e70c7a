"""The linear half of the paper on power-law spectra: its figures, its claims, and what they are computed with.

Statistical tests: |z| below 4.9 for each of n points, a false-alarm rate below n × 1e-6; seeds are fixed.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy.integrate import quad

import overlaps as ov
from figures import made, words
from overlaps import papers
from overlaps.papers.scaling import formula_claims, linear_claims, partial, printed, sum_figures
from overlaps.papers.scaling.linear_figures import mode_spectrum

PAPER = papers.paper("scaling")
DATA = Path(__file__).parent / "data"
REDUCED = ("fig2", "fig3", "fig15", "fig16")
Z = 4.9


def z_scores(runs: np.ndarray, exact: np.ndarray) -> np.ndarray:
    return (runs.mean(0) - exact) / (runs.std(0, ddof=1) / np.sqrt(len(runs)))


# --- figures ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", REDUCED)
def test_a_quick_figure_says_what_it_leaves_out(name: str) -> None:
    assert "instead of" in words(made("scaling", name)[0])


def test_shipped_data_are_called_what_they_are() -> None:
    for name in ("fig3", "fig14"):
        figure, data = made("scaling", name)
        assert "digits, not CIFAR-5m" in words(figure) and "digits" in data.attrs["data"]


def test_real_rows_meet_the_measured_spectrum() -> None:
    """Only second moments matter at small rates: 10 runs on digits, three N_l, within the spread over weights."""
    data = made("scaling", "fig3")[1]
    runs = data["real_sgd"].transpose("run_right", ...).values
    assert np.abs(z_scores(runs, data["real_small_rate"].values)).max() < Z


def test_a_file_of_power_law_inputs(tmp_path: Path) -> None:
    spectrum = ov.PowerLaw(40, 0.5)
    rows = np.random.default_rng(1).standard_normal((4000, 40)) * np.sqrt(spectrum.eigenvalues)
    np.save(tmp_path / "mine.npy", rows)
    figure, data = PAPER.figures["fig14"].make(True, tmp_path / "mine.npy")
    plt.close(figure)
    assert "mine.npy" in words(figure) and data.attrs["fit"].startswith("power law")
    np.testing.assert_allclose(data["power_law"], data["eigenvalues"], rtol=0.3)
    figure, data = PAPER.figures["fig3"].make(True, tmp_path / "mine.npy")
    plt.close(figure)
    assert "mine.npy" in words(figure) and data["real_trained"].values.tolist() == [2, 4, 8]


def test_a_file_of_few_columns_is_drawn_without_a_fit(tmp_path: Path) -> None:
    np.save(tmp_path / "few.npy", np.random.default_rng(1).standard_normal((400, 5)))
    figure, data = PAPER.figures["fig14"].make(True, tmp_path / "few.npy")
    plt.close(figure)
    assert data["eigenvalues"].size == 5 and "power_law" not in data
    assert data.attrs["fit"].startswith("no fit; ") and "too few to tell a power law" in words(figure)


def test_rows_that_make_training_diverge_are_refused() -> None:
    rows = np.random.default_rng(0).standard_normal((60, 5))
    rows[7] *= 200
    with pytest.raises(ov.NumericalError, match="far longer than the others"), np.errstate(over="ignore"):
        partial.sample_runs(ov.Samples(rows), 5, 1.9, np.array([1e4]), scale=1.0, runs=2)


def test_modes_are_those_of_the_moment_matrices() -> None:
    """|λ_B,k| and b_k from the companion matrix A₁ and U = u e₂ᵀ, in double precision for five levels."""
    L, rate, beta = 5, 0.7, 0.4
    omega = np.array(ov.PowerLaw(L, beta).eigenvalues)
    c = np.poly(omega)[::-1]  # Π (z − ω) = Σ c_l z^l
    A1 = -np.eye(L, k=1)
    A1[-1] = c[:-1]  # −R⁽ᴸ⁾ = Σ c_l R⁽ˡ⁾
    moments = np.array([np.mean(omega**l) for l in range(L + 1)])
    U = np.zeros((L, L))
    U[:, 1] = moments[1:]
    for a in (1, 2):
        values, vectors = np.linalg.eig(a * A1 + rate * U)
        order = np.argsort(values)  # all are real and below zero; the largest in size first
        values, vectors = np.real(values[order]), np.real(vectors[:, order])
        b = np.linalg.solve(vectors / vectors[0], moments[:-1])
        mine = printed.moment_modes(ov.PowerLaw(L, beta), a, rate)
        np.testing.assert_allclose(mine[0][::-1], -values, rtol=1e-9)
        np.testing.assert_allclose(mine[1][::-1], b, rtol=1e-7)
    size, weights = mode_spectrum(L, beta, rate)
    np.testing.assert_allclose(size, -values, rtol=1e-9)
    np.testing.assert_allclose(weights, L * b * -values / (2 - rate), rtol=1e-7)


def test_integral_with_the_first_gamma_only() -> None:
    spectrum, rate, t = ov.PowerLaw(50, 0.4), 0.2, 3.0

    def summand(k: float) -> float:
        omega = spectrum.eigenvalues[0] * k**-1.4
        return 0.5 * 1.3 / 50 * omega * np.exp(-2 * rate * omega * t)

    mine = sum_figures.first_gamma(spectrum, rate, np.array([t]), distance=1.3)[0]
    assert mine == pytest.approx(quad(summand, 1e-6, 50)[0], rel=1e-8)
    ends = sum_figures.ends(spectrum, rate, np.array([t]), distance=1.3)[0]
    assert ends == pytest.approx((summand(1) + summand(50)) / 2, rel=1e-12)


# --- partial training ------------------------------------------------------------------------------------------------


def test_partial_runs_in_the_eigenbasis() -> None:
    """300 runs at N = 48 against the exact mean; another rate and another N_l are rejected."""
    spectrum, N, n, rate = ov.PowerLaw(48, 0.25), 48, 15, 0.5
    times = np.array([12, 96, 480]) / N
    runs = partial.gaussian_runs(np.diag(spectrum.eigenvalues), n, rate, times, scale=0.5, runs=300)

    def z(rate: float, trained: int) -> float:
        exact = ov.laws.finite_size_error(spectrum, N, rate, times, distance=1.25, trained=trained)
        return float(np.abs(z_scores(runs, exact)).max())

    assert z(rate, n) < Z < min(z(2 * rate, n), z(rate, 2 * n))


def test_partial_runs_outside_the_eigenbasis() -> None:
    """300 runs against 8000 of the experiment itself: all N inputs drawn, n weights moved; N = 24, n = 8."""
    N, n, rate, scale, many = 24, 8, 0.5, 0.5, 8000
    stops = [3, 24, 120]
    sigma = partial.rotated(ov.PowerLaw(N, 0.5), partial.random_basis(N, 3))
    factor, rng = np.linalg.cholesky(sigma), np.random.default_rng(11)
    d = scale * rng.standard_normal((many, N)) - rng.standard_normal((many, N))
    direct = []
    for step in range(1, stops[-1] + 1):
        x = rng.standard_normal((many, N)) @ factor.T
        d[:, :n] -= rate / N * np.sum(d * x, 1, keepdims=True) * x[:, :n]
        if step in stops:
            direct.append(0.5 * np.einsum("ri,ij,rj->r", d, sigma, d) / N)
    exact = np.array(direct).T
    reduced = partial.gaussian_runs(sigma, n, rate, np.array(stops) / N, scale=scale, runs=300)
    error = np.hypot(exact.std(0) / np.sqrt(many), reduced.std(0, ddof=1) / np.sqrt(300))
    assert np.all(np.abs(exact.mean(0) - reduced.mean(0)) < Z * error)
    assert np.all(error < 0.06 * exact.mean(0))


def test_runs_on_rows() -> None:
    """Against the exact second moments of d, averaged over all rows at every step; other moments are rejected."""
    data, n, rate, stops = ov.Samples(np.random.default_rng(2).uniform(size=(30, 4))), 2, 0.3, [8, 40]
    N = 4
    runs = partial.sample_runs(data, n, rate, np.array(stops) / N, scale=0.5, runs=5000)

    def z(rate: float, trained: int) -> float:
        learns = np.arange(N) < trained
        factors = np.eye(N) - rate / N * learns[:, None] * data.rows[:, :, None] * data.rows[:, None, :]
        moments, exact = 1.25 * np.eye(N), []
        for step in range(1, stops[-1] + 1):
            moments = np.mean(factors @ moments @ np.swapaxes(factors, 1, 2), axis=0)
            if step in stops:
                exact.append(0.5 * np.sum(data.eigenvalues * np.diag(moments)) / N)
        return float(np.abs(z_scores(runs, np.array(exact))).max())

    assert z(rate, n) < Z < min(z(1.5 * rate, n), z(rate, N))


def test_floors_for_every_number_of_trained_coordinates() -> None:
    sigma = partial.rotated(ov.PowerLaw(20, 1.0), partial.random_basis(20, 0))
    floors = ov.laws.partial_floors(sigma, rate=0.3, distance=1.4)
    assert floors.shape == (21,) and floors[-1] == 0
    for n in range(20):
        S = sigma[n:, n:] - sigma[n:, :n] @ np.linalg.solve(sigma[:n, :n], sigma[:n, n:])
        expected = 0.7 * np.trace(S) / 20 / (1 - 0.15 * np.trace(sigma[:n, :n]) / 20)
        assert floors[n] == pytest.approx(expected, rel=1e-9)
        assert ov.laws.partial_floor(sigma, n, rate=0.3, distance=1.4) == pytest.approx(floors[n], rel=1e-12)
    with pytest.raises(ov.InputError, match="critical_rate"):
        ov.laws.partial_floors(sigma, rate=2.1)


def test_floor_in_a_random_basis() -> None:
    """Against matrices of N = 400; and β [(π/a)/sin(π/a)]^a times the eigenbasis, a = 1 + β."""
    spectrum, n = ov.PowerLaw(400, 1.0), np.array([100, 200, 300])
    bases = [partial.random_basis(400, b) for b in range(6)]
    floors = np.array([ov.laws.partial_floors(partial.rotated(spectrum, basis))[n] for basis in bases])
    mine = np.array([ov.laws.random_basis_floor(spectrum, i / 400) for i in n])
    # corrections are of the order of one over the number of trained or frozen coordinates
    error = floors.std(0, ddof=1) / np.sqrt(6)
    assert np.all(np.abs(floors.mean(0) - mine) < Z * error + mine / np.minimum(n, 400 - n))
    assert np.all(error < 0.005 * mine)
    for beta in (0.75, 1.0, 1.5):
        many, a = ov.PowerLaw(100_000, beta), 1 + beta
        ratio = ov.laws.random_basis_floor(many, 300 / 100_000) / ov.laws.feature_floor(many, 300)
        assert ratio == pytest.approx(beta * (np.pi / a / np.sin(np.pi / a)) ** a, rel=0.02)


# --- printed formulas ------------------------------------------------------------------------------------------------


def test_printed_feature_scaling_in_numbers() -> None:
    mine = printed.eq11(ov.PowerLaw(256, 1.0), 0.05, [10, 100, 1000, 10_000], 50, distance=1.0001)
    np.testing.assert_allclose(mine, [0.025336, 0.01056, 0.0059639, 0.0049239], rtol=5e-5)


def test_printed_rates_at_time_zero() -> None:
    """Without its 1/L the printed (6) would start from (c/2)(1 − η) instead of c/2."""
    spectrum = ov.PowerLaw(10, 1.0)
    for rate in (0.1, 0.5, 1.0):
        assert 10 * printed.eq6(spectrum, rate, [0.0], distance=2.0)[0] == pytest.approx(1 - rate, abs=1e-12)


def test_fourth_average() -> None:
    """The reference value by 48-node quadrature; as printed .02615 instead of .03064."""
    reference = np.load(DATA / "r002_integrals.npz")
    assert formula_claims.fourth(reference["C"], "closed") == pytest.approx(float(reference["I4"]), rel=1e-12)
    assert printed.eq91(reference["C"]) == pytest.approx(0.0261528, rel=1e-5)
    with pytest.raises(ov.InputError, match="no value"):
        printed.eq91(np.ones((4, 4)))  # an arcsine above one


# --- claims ----------------------------------------------------------------------------------------------------------


def test_a_wrong_law_changes_the_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    """The η² term halved: the corrected (6) no longer meets the equations of motion."""
    right = ov.laws.linear_error
    monkeypatch.setattr(ov.laws, "linear_error", lambda s, rate, t, **more: right(s, rate / 2, 2 * np.array(t), **more))
    assert PAPER.claims["eq6"].measure(True).verdict == "fails"


def test_a_right_print_changes_the_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        printed, "eq11", lambda s, rate, t, n, distance: ov.laws.gamma_error(s, rate, t, distance=distance, trained=n)
    )
    assert PAPER.claims["eq11"].measure(True).verdict == "holds"
    monkeypatch.setattr(printed, "eq91", lambda C: formula_claims.fourth(C, "closed"))
    assert PAPER.claims["eq91"].measure(True).verdict == "holds"


def test_other_exponents_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two per cent on an exponent, and a bound ten per cent lower."""
    monkeypatch.setattr(ov.laws, "time_exponent", lambda beta: 1.02 * beta / (1 + beta))
    assert PAPER.claims["time-exponent-linear"].measure(True).verdict == "fails"
    floor = ov.laws.feature_floor
    monkeypatch.setattr(ov.laws, "feature_floor", lambda s, n, **more: floor(s, n, **more) * n**-0.03)
    assert PAPER.claims["feature-exponent"].measure(True).verdict == "fails"
    bound = printed.worst_case
    monkeypatch.setattr(printed, "worst_case", lambda s, distance: 0.9 * bound(s, distance=distance))
    assert PAPER.claims["bound"].measure(True).verdict == "holds corrected"


def test_slopes_are_extrapolated_in_powers_of_the_levels() -> None:
    slopes = [0.5 + 3 * L**-0.5 - 7 * L**-1.0 for L in (1e3, 1e4, 1e5)]
    value, error = linear_claims.to_infinity(slopes, 10.0, 0.5)
    assert value == pytest.approx(0.5, abs=1e-12) and 0 < error < 0.01
