"""The Gaussian-comparison paper: claims that notice broken formulas, figures, and what they are made of.

Runs have fixed seeds. Tests of means and variances here are at z = 5, 6e-7 each.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import overlaps as ov
from figures import made
from ledger import patched
from overlaps.papers import paper
from overlaps.papers.comparison import (
    fluctuation_figures,
    formula_claims,
    limit_claims,
    loops,
    printed,
    refinement_claims,
    training_figures,
)
from overlaps.papers.comparison.algorithm import Passes
from overlaps.papers.comparison.mean_field import Limit
from overlaps.papers.comparison.model import ACTIVATIONS, LOSSES, problem, start

PAPER = paper("comparison")
DATA = Path(__file__).parent / "data"


def test_corrections_in_place_of_the_printed_formulas_hold_as_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Verdicts hang on the formulas: with the corrected ones in their place the same claims hold."""
    for owner, name in ((printed, "eq_26"), (printed, "eq_33"), (printed.Vectors, "draw")):
        patched(monkeypatch, owner, name, lambda right, *args, corrected=False: right(*args, corrected=True))
    patched(monkeypatch, printed, "gordon", lambda right, a, b: right(b, a))
    for name in ("eq-26", "eq-33", "definition-2", "theorem-3"):
        assert PAPER.claims[name].measure(True).verdict == "holds", name


def test_the_iteration_is_noticed_if_it_was_as_good_as_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    """With all passes in place of one the claim on iterations holds as printed."""
    patched(monkeypatch, refinement_claims, "one_pass", lambda right, pair, m, runs, passes=1: right(pair, m, 200, 6))
    assert PAPER.claims["iterations"].measure(True).verdict == "holds"


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("loss", LOSSES)
def test_duals_are_derivatives(activation: str, loss: str) -> None:
    p, step = np.array([-1.3, -0.2, 0.4, 2.0]), 1e-5
    for y in (0.0, 1.0):
        up, down = (loops.dual(p + sign * step, y, activation, loss)[1] for sign in (1, -1))
        np.testing.assert_allclose(loops.dual(p, y, activation, loss)[0], (up - down) / (2 * step), atol=1e-9)


def apart(one: np.ndarray, other: np.ndarray) -> float:
    """Largest z between means, and variances, of two samples of runs, (runs, steps)."""
    squares = [(x - x.mean(0)) ** 2 for x in (one, other)]
    pairs = [(one, other), (squares[0], squares[1])]
    widths = [np.sqrt(a.var(0) / len(a) + b.var(0) / len(b)) for a, b in pairs]
    return max(float(np.max(np.abs(a.mean(0) - b.mean(0)) / w)) for (a, b), w in zip(pairs, widths, strict=True))


def test_loops_are_the_library_s_training_in_law() -> None:
    task = problem("softplus", "logistic", ratio=0.5, momentum=0.6, steps=5)
    begin = start(task, 24)
    mine = loops.train(task, begin, 4000, seed=1)
    theirs = ov.train(task, begin, runs=4000, seed=2, progress=False).data
    assert apart(mine.error, theirs["training_error"].values) < 5
    assert apart(np.sum(mine.theta**2, axis=2)[:, 1:], theirs["Q"].values[:, 1:, 0, 0]) < 5


def test_loops_in_chunks_are_loops() -> None:
    """Runs whose data do not fit together: each chunk goes on with the numbers where the one before has ended."""
    task, begin = problem(steps=2), start(problem(steps=2), 100)
    assert begin.student is not None and begin.means is not None
    m = task.algorithm.samples(100)
    most = loops.TOGETHER // (100 * m)
    found = loops.train(task, begin, most + 5, seed=3)
    assert found.theta.shape == found.gradient.shape == (most + 5, 3, 100)
    X = np.random.default_rng(3).standard_normal((most + 5, 100, m)) + begin.means[np.arange(m) % 2].T
    fields = np.swapaxes(X, 1, 2) @ begin.student[0] / 10
    _, losses = loops.dual(fields, np.arange(m) % 2.0, task.student.g.name, task.loss)
    np.testing.assert_allclose(found.error[:, 0], losses.mean(1), rtol=1e-12)


def test_algorithm_1_converges_to_the_alternative_process() -> None:
    """The same law as the library's ψ, which shares nothing with it; one pass is told apart."""
    task = problem("softplus", "square", steps=2)
    limit, runs = Limit.of(task), 3000
    for z in (0.0, 1.0):
        go = Passes(limit, 24, runs, seed=4, z=z)
        once = state = go(go.begin())
        for _ in range(4):
            state = go(state)
        psi = ov.full_batch.alternative(task, start(task, 24), runs=runs, seed=5, sigma=1e-3, z=z, progress=False).data
        assert apart(state.error, psi["training_error"].values) < 5
        assert apart(np.sum(state.theta**2, axis=1)[:, 1:], psi["Q"].values[:, 1:, 0, 0]) < 5
        np.testing.assert_allclose(go(state).error, state.error, rtol=1e-6)
    assert apart(once.error, psi["training_error"].values) > 5


def test_mean_field_theory_is_where_algorithm_1_begins() -> None:
    limit = Limit.of(problem("relu", "logistic", ratio=0.5, steps=3))
    state = Passes(limit, 2000, 40, seed=6).begin()
    V = np.einsum("rnl,rnk->rlk", state.theta, state.theta).mean(0)
    np.testing.assert_allclose(V, limit.V_theta, atol=0.02 * limit.V_theta.max())
    W = np.einsum("rysl,rysk->ylk", state.omega, state.omega) / 40 / 2000
    np.testing.assert_allclose(W, limit.V_omega, atol=0.02 * limit.V_omega.max())


def test_samples_of_one_law_are_alike_and_others_are_not() -> None:
    rng = np.random.default_rng(7)
    one, other = rng.standard_normal((2, 4000, 3))
    mean, first, second = formula_claims.unlike(one, other)
    assert mean < 0.1 and max(first, second) < 5
    mean, first, second = formula_claims.unlike(one + np.array([0.0, 0.5, 0.0]), other)
    assert mean == pytest.approx(0.5, abs=0.1) and first > 10
    other[:, 2] = other[:, 0] * 0.6 + 0.8 * other[:, 2]  # a covariance
    assert formula_claims.unlike(one, other)[2] > 10


def test_scaled_variance() -> None:
    values = np.random.default_rng(8).normal(2.0, 0.5, (20_000, 2))
    variance, error = refinement_claims.scaled_variance(values, 100)
    np.testing.assert_allclose(variance, 100 * values.var(0, ddof=1))
    np.testing.assert_allclose(error, 25 * np.sqrt(2 / 20_000), rtol=0.1)  # of normal variables


def test_entries_that_count() -> None:
    """T = 2: β and α 4 each, V_θ 3, V_ω and C_ω 6 each, C_θ 2."""
    square = np.arange(4.0).reshape(1, 2, 2)
    both = np.stack([square, square], axis=1)
    entries = printed.Increments(square, square, square, both, both, both).entries()
    assert entries.tolist() == [[*range(4), *range(4), 0, 1, 3, *[0, 1, 3] * 4, 1, 1]]


def test_full_scales_are_those_of_the_paper() -> None:
    full = training_figures.Scale.of(False)
    assert full.runs == 10 and len(full.cases) == 4 and training_figures.SAMPLES == (10_000, 1000)
    assert fluctuation_figures.Scale.of(False).samples == 2000
    assert "instead" not in full.note() + fluctuation_figures.Scale.of(False).note()
    assert all("instead of" in module.Scale.of(True).note() for module in (training_figures, fluctuation_figures))
    assert all("not given in print" in figure.caption for figure in PAPER.figures.values())


def test_figures_1_and_2_show_runs_near_theory() -> None:
    """m Var is below .06 here (γ = .1 has the most): five standard deviations."""
    for name in ("fig1", "fig2"):
        data = made("comparison", name)[1]
        assert (np.abs(data["runs"] - data["theory"]) < 5 * np.sqrt(0.06 / data["samples"])).all()


def test_figure_2_is_the_stored_theory() -> None:
    """The same curves by another program, which states an error of 1e-4; here they are within 1 % of their largest."""
    with np.load(DATA / "dmft_gamma1.0_m10000.npz") as file:
        for case, key in (("ReLU, square loss", "relu_square"), ("soft ReLU, logistic loss", "softplus_logistic")):
            for s in (0.0, 0.5, 0.9):
                stored, mine = file[f"{key}_{s}"][0], made("comparison", "fig2")[1]["theory"].sel(case=case, momentum=s)
                assert np.abs(mine - stored).max() < 0.01 * stored.max() + 1e-4


def test_figure_3_shows_that_one_pass_is_not_enough() -> None:
    data = made("comparison", "fig3")[1].isel(step=slice(1, None))
    assert (data["theory"] == made("comparison", "fig3")[1]["theory"].isel(step=slice(1, None))).all()
    assert (np.abs(data["theory"] - data["training"]) < 4 * data["training_error"] + 0.02 * data["theory"]).all()
    assert (data["one_pass"] > 1.1 * data["theory"]).all() and (data["zero"] > 1.4 * data["theory"]).all()
    assert (np.abs(data["continued"] - data["training"]) < 4 * data["continued_error"]).all()


def test_full_batch_results_cite_their_own_papers() -> None:
    task = problem(steps=2)
    cited = [ov.solve(task, start(task, 20)).citations(), ov.sample(task, start(task, 20), runs=2).citations()]
    for papers in map(" ".join, cited):
        assert "Mignacco" in papers and "arXiv:2603.09310" in papers
        assert "soft committee" not in papers and "Ordinary Differential" not in papers
    assert "Bolthausen" in " ".join(cited[1]) and "Sobol" in " ".join(cited[0])


def test_deviations_are_in_standard_deviations() -> None:
    """Of the mean of 8 runs at m = 1000, and of one at m = 10000; theory is within 5e-3."""
    z, off = limit_claims.deviations(problem("softplus", "square"), True, seed=9)
    assert z.shape == (2, 3) and z.max() < 5 and off < 5 * np.sqrt(0.003 / 10_000) + 1e-3
