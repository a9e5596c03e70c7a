"""Claims of the paper on Gaussian mixtures: they notice broken formulas; and what they are made of.

Statistical claims have fixed seeds. What they compare is apart by factors where a claim fails, and within four standard
errors, or at a level of 1e-3 over all points, where it holds.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import multivariate_normal, norm

import overlaps as ov
from ledger import patched
from manifolds import DATA, apart, hidden, reference
from overlaps.papers import estimates, paper
from overlaps.papers.universality import equation_claims, lemma_claims, mixture_claims, printed
from overlaps.papers.universality.model import listed, problem, start

PAPER = paper("universality")


def test_corrections_in_place_of_the_printed_formulas_hold_as_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Verdicts hang on the formulas: with the corrected ones in their place the same claims hold."""
    patched(monkeypatch, printed, "eq_s37", lambda right, at: at.t)
    patched(monkeypatch, printed, "density", lambda right, rho, ratio: np.ones_like(rho))
    patched(monkeypatch, printed, "eq_18", lambda right, v, run: np.sqrt(np.mean((v - run) ** 2)))
    for name in ("eq-S37", "eq-S39", "eq-18"):
        assert PAPER.claims[name].measure(True).verdict == "holds", name


@pytest.mark.parametrize("activation", ["erf", "relu"])
def test_printed_equations_against_a_solution_from_elsewhere(activation: str) -> None:
    """N = 1000, D = 500, the same equations integrated by another program, which states no error: 1e-6 is met."""
    with np.load(DATA / "r000_ode_vs_sgd.npz") as file:
        stored = {name: file[f"{activation}_{name}"] for name in ("t", "ode_Q", "ode_R", "ode_v", "ode_e")}
    early = stored["t"] <= 10
    theory = ov.solve(*reference(activation), stored["t"][early])
    assert theory.problem is not None
    t = printed.rotated(theory.problem, theory.start).t
    found = printed.solve(theory, c=1.0, t=t).data
    for name, key in (("Q", "ode_Q"), ("R", "ode_R"), ("v", "ode_v"), ("error", "ode_e")):
        assert apart(found[name].values[0], stored[key][early]) < 1e-5, name


def test_rotated_overlaps_are_those_of_the_weights() -> None:
    task = problem("erf")
    begin = start(task, 60, seed=2)
    assert isinstance(task.data, ov.HiddenManifold)
    at, F = printed.rotated(task, begin), task.data.at(60).F
    assert begin.student is not None and begin.teacher is not None
    S = begin.student @ F.T / np.sqrt(60)
    np.testing.assert_allclose(at.sigma.sum(-1), S @ S.T, atol=1e-10)
    np.testing.assert_allclose((at.rho * at.t).sum(-1), begin.teacher @ F @ F.T @ begin.teacher.T / 60, atol=1e-9)
    assert at.rho.mean() == pytest.approx(1.0, abs=1e-12)


def test_a_rule_for_two_variables() -> None:
    """Orthant probability with means, by SciPy, and the arc-cosine kernel."""
    C, means = np.array([[1.3, -0.4], [-0.4, 0.7]]), (0.3, -0.5)
    x, y, weights = printed.pair(C, means)
    assert weights.sum() == pytest.approx(1.0, abs=1e-13)
    exact = float(multivariate_normal.cdf(means, cov=C))  # type: ignore[arg-type]
    assert float(weights @ ((x > 0) & (y > 0))) == pytest.approx(exact, abs=1e-7)
    x, y, weights = printed.pair(np.array([[1.0, 0.3], [0.3, 1.0]]))
    angle = np.arccos(0.3)
    kernel = (np.sin(angle) + (np.pi - angle) * 0.3) / (2 * np.pi)
    assert float(weights @ (np.maximum(x, 0) * np.maximum(y, 0))) == pytest.approx(kernel, abs=1e-13)


def test_marchenko_pastur() -> None:
    """Norm 1, mean 1 and second moment 1 + δ."""
    low, high = printed.support(0.3)
    for power, exact in enumerate((1.0, 1.0, 1.3)):
        found = quad(lambda rho, power=power: rho**power * printed.density(rho, 0.3), low, high)[0]
        assert found == pytest.approx(exact, abs=1e-7)


def test_eq_18_in_numbers() -> None:
    assert printed.eq_18([0.5, 0.5], [0.3, 0.3]) == pytest.approx(0.4)
    assert printed.eq_18([0.3, 0.5], [0.5, 0.3]) == pytest.approx(0.2 + 0.2j)


def test_tables_have_their_entries_in_place() -> None:
    erf, relu = printed.table("erf"), printed.table("relu")
    assert erf["Q"].shape == relu["R"].shape == (10, 2, 2) and erf["v"].shape == (10, 2)
    assert erf["Q"][0, 0, 1] == 0.040 and erf["Q"][0, 1, 0] == 0.035 and erf["R"][9, 1, 1] == 0.030
    assert relu["v"][3, 0] == 0.008


def test_covariances_of_groups_are_those_of_a_start() -> None:
    task = hidden(nonlinearity="relu")
    data = task.data
    assert isinstance(data, ov.HiddenManifold)
    W, B = equation_claims.groups(data, 50, 3, np.random.default_rng(5))
    found = equation_claims.covariances(data, W, B)
    for C, student, teacher in zip(found, W, B, strict=True):
        begin = ov.Start.from_weights(task, student, teacher)
        np.testing.assert_allclose(C[:2, :2], np.tensordot(begin.eigenvalues, begin.Q, 1), atol=1e-12)
        np.testing.assert_allclose(C[:2, 2:], begin.R.sum(0), atol=1e-12)
        np.testing.assert_allclose(C[2:, 2:], begin.teacher_fields.T, atol=1e-12)


def test_the_power_and_its_error() -> None:
    x = np.array([1.0, 2.0, 4.0, 8.0])
    slope, error = estimates.power(x, -3 / x)
    assert slope == pytest.approx(-1) and error < 1e-10
    slope, error = estimates.power(x, 1 / x, 0.1 / x)  # relative errors of .1
    assert slope == pytest.approx(-1) and error == pytest.approx(
        0.1 / np.sqrt(np.sum((np.log(x) - np.log(x).mean()) ** 2))
    )


def test_standardised_mixtures_of_a_line() -> None:
    """Mean 0 and variance 1; E relu given a component is c Φ(c/s) + s φ(c/s)."""
    p, centres, sd = lemma_claims.standardised([0.2, 0.8], [-3.0, 4.0])
    assert p @ centres == pytest.approx(0.0, abs=1e-14)
    assert p @ centres**2 + sd**2 == pytest.approx(1.0)
    exact = centres * norm.cdf(centres / sd) + sd * norm.pdf(centres / sd)
    np.testing.assert_allclose(lemma_claims.means(lemma_claims.FUNCTIONS["relu"], centres, sd), exact, atol=1e-9)


def test_runs_share_weights_and_features() -> None:
    ground = mixture_claims.Ground("erf", 40, 1.0, seed=3)
    plain, mixed = (ground.begin(latent)[1] for latent in (None, ov.LatentMixture(2, 9.0)))
    assert plain.student is not None and mixed.student is not None
    np.testing.assert_array_equal(plain.student, mixed.student)
    np.testing.assert_array_equal(plain.Q, mixed.Q)
    np.testing.assert_array_equal(plain.v, mixed.v)


def test_rows_and_lists() -> None:
    assert mixture_claims.row({"v": 3.0, "Q": 1.0, "R": 2.0}).tolist() == [1.0, 2.0, 3.0]
    assert listed([1.0, 0.25], 2) == "1.00, 0.25"
    assert lemma_claims.listed([-1e-9, 0.5]) == "0.000, 0.500"
