"""Figures of the paper on outlier eigenspaces: what they draw, and the facts they are drawn for.

Runs and samples have fixed seeds. Curves and predictions are compared within two or three times N^-1/2 = .07; bulks
within the margins of their edges, which samples pass once in 1000.
"""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import overlaps as ov
from figures import made
from overlaps import papers
from overlaps.papers.outliers import class_figures, xor_figures
from overlaps.papers.outliers.model import classes, coordinates, start, xor
from overlaps.papers.outliers.xor_claims import sets

PAPER = papers.paper("outliers")
NOISE = 200**-0.5  # N^-1/2, the order of the fluctuations of one run, and of predictions that are limits
FIGURES = (*(f"fig2.{i}" for i in range(1, 7)), *(f"fig9.{i}" for i in range(1, 7)))


def quick(name: str) -> xr.Dataset:
    return made("outliers", name)[1]


def test_problems() -> None:
    """The paper's means are e_50, ..., e_500 at d = 1000; starts have rows of length about one and a normal readout."""
    means = classes(size=1000).data.mean_vectors(1000)
    assert np.flatnonzero(means.sum(0)).tolist() == [50 * i - 1 for i in range(1, 11)] == coordinates(10, 1000).tolist()
    assert np.allclose(means @ means.T, np.eye(10))
    begin = start(xor(200), 1000, seed=3)
    assert np.diag(begin.Q[0]).mean() == pytest.approx(1, abs=0.02)  # standard error (2/d)^1/2 200^-1/2 = .003
    assert abs(begin.v.mean()) < 0.35 and begin.v.std() == pytest.approx(1, abs=0.25)  # five standard errors
    assert start(xor(4), 50, 0).v.tolist() != start(xor(4), 50, 1).v.tolist()


def test_all_are_there_and_quick_ones_say_what_they_leave_out() -> None:
    assert set(FIGURES) <= set(PAPER.figures)
    assert all("instead of" in module.Scale.of(True).note("test") for module in (class_figures, xor_figures))
    assert all("instead" not in module.Scale.of(False).note("test") for module in (class_figures, xor_figures))


@pytest.mark.parametrize("name", ["fig2.1", "fig9.3"])
def test_classes_align(name: str) -> None:
    """All classes align with both eigenspaces, as far as is predicted for as many independent samples."""
    data = quick(name)
    for kind in ("hessian", "gradient"):
        rho, predicted = data[f"{kind}_alignment"].values, data[f"{kind}_predicted"].values
        assert rho[-1].min() > 0.55 > 0.1 + rho[0].max()
        assert (rho[-1] < data["in_span"].values[-1] + NOISE).all()
        assert np.abs(rho[-1] - predicted[-1]).max() < 2 * NOISE
        assert data[f"{kind}_residual"].values.max() < 1e-4


@pytest.mark.parametrize("name", ["fig2.3", "fig9.4"])
def test_top_eigenvalue_separates(name: str) -> None:
    """k eigenvalues stand above the predicted bulk at all times, one of them far above at the end, as overlaps do."""
    data = quick(name)
    values, edge, k = data["eigenvalues"].values, data["predicted_edge"].values, data.sizes["outlier"]
    margins = np.array([p.high_margin for p in class_figures.predicted(True, "hessian")])
    assert (values[:, k - 1] > edge).all() and (values[:, k] < edge + margins).all()
    assert (values[:-1, k - 1] > (edge + margins)[:-1]).all()  # the lowest have come close to the bulk at the end
    gaps = values[:, 0] / values[:, 1]
    assert gaps[0] < 1.2 < 1.8 < gaps[-1]
    assert values[:, :k] == pytest.approx(data["predicted_outliers"].values, rel=3 * NOISE)
    overlaps = data["overlaps"].values
    assert overlaps[-1, 0] > 1 and overlaps[-1, 1:].max() < 0
    assert np.abs(overlaps - data["ode"].values).max() < 3 * NOISE


def test_vectors_point_at_the_means() -> None:
    """x^1 and the top eigenvectors are largest at the first mean, x^1 is negative at the others."""
    data, scale = quick("fig2.2"), class_figures.Scale.of(True)
    at = coordinates(scale.classes, scale.size)
    x = data["classifier"].values
    assert np.argmax(x) == at[0] and x[at[1:]].max() < 0
    span = np.abs(x[at]) @ np.abs(x[at]) / (x @ x)
    assert span > 0.9
    for kind in ("hessian", "gradient"):
        vectors = data[f"{kind}_vectors"].values
        assert np.allclose(vectors.T @ vectors, np.eye(scale.classes))
        assert np.argmax(np.abs(vectors[:, 0])) == at[0]
        # those that stand out have more than twice the weight on the means that random vectors have, k/N
        standing = data[f"{kind}_vectors"].attrs["predicted_outliers"]
        assert ((vectors[at, :standing] ** 2).sum(0) > 2 * scale.classes / scale.size).all()
        # E_k of the figure is that of figure 2.1, up to the test samples
        rho = ov.spectra.subspace_alignment(x, vectors)
        assert rho == pytest.approx(quick("fig2.1")[f"{kind}_alignment"].values[-1, 0], abs=0.05)
    before, after = quick("fig9.1")["classifiers"].values
    assert (np.argmax(after, axis=1) == at[:2]).all() and np.abs(before).max() < 6 / np.sqrt(scale.size)


def test_spectra_have_the_predicted_bulk() -> None:
    data = quick("fig9.2")
    values, k = data["eigenvalues"].values, class_figures.Scale.of(True).classes
    at = [class_figures.Scale.of(True).times.index(time) for time in data["time"].values]
    for levels, p in zip(values, [class_figures.predicted_at(True, "hessian", i) for i in at], strict=True):
        assert levels[k - 1] > p.high and levels[k] < p.high + p.high_margin
        assert levels[-1] > p.low - p.low_margin
    assert (data["predicted_count"].values == k).all()
    # the mean of all eigenvalues is a trace, E[f |x|²]/N for weights f ≤ 1/4
    assert (values.mean(1) < 0.25 * (0.1 + 1 / 200)).all()


@pytest.mark.parametrize("name", ["fig2.4", "fig9.5"])
def test_layers_align(name: str) -> None:
    data = quick(name)
    strong = np.abs(data["final_readout"].values) > 0.8
    assert strong.sum() >= 3
    for kind in ("hessian", "gradient"):
        rho = data[f"{kind}_alignment"].values
        assert rho[-1, strong].min() > (0.85 if kind == "hessian" else 0.5) > 0.3 > rho[0].max()
        unit = data[f"{kind}_predicted"].attrs["unit"] - 1
        assert rho[-1, unit] == pytest.approx(data[f"{kind}_predicted"].values[-1], abs=2 * NOISE)
        readout = data[f"{kind}_readout_alignment"].values
        assert readout[-1] > 0.99 > readout[0]
        assert readout == pytest.approx(data[f"{kind}_readout_population"].values, abs=2 * NOISE)


@pytest.mark.parametrize("name", ["fig2.5", "fig9.6"])
def test_one_outlier_becomes_four(name: str) -> None:
    data = quick(name)
    for kind in ("hessian", "gradient"):
        values = data[f"{kind}_values"].values
        ratios = values[:, :-1] / values[:, 1:]
        assert np.argmax(ratios[0]) == 0 and np.argmax(ratios[-1]) == 3
        assert values[:, :4] == pytest.approx(data[f"{kind}_population"].values[:, :4], rel=3 * NOISE)


def test_rank_is_the_number_of_classes() -> None:
    """The largest gap of the eigenvalues at the end is below as many as there are hidden classes discerned."""
    data = quick("fig2.6")
    values = data["values"].values[:, -1]
    ratios = values[:, :-1] / values[:, 1:]
    assert np.argmax(ratios, axis=1).tolist() == [0, 1, 2, 3]
    assert ratios.max(axis=1).min() > 20
    ranks = ov.spectra.outlier_rank(values, np.median(data["values"].values[:, 0], axis=-1))
    assert ranks.tolist() == [1, 2, 3, 4]


def test_starts_in_sets() -> None:
    """Signs are all that is changed, and sets are as many as asked for."""
    problem = xor(5)
    drawn = start(problem, 60, 4)
    for count in range(1, 5):
        begin = xor_figures.start_in(problem, 60, 4, count)
        assert begin.student is not None and drawn.student is not None
        assert np.array_equal(np.abs(begin.student), np.abs(drawn.student))
        assert np.array_equal(np.abs(begin.v), np.abs(drawn.v))
        assert sets(np.sign(begin.v), begin.m[0]) == count
