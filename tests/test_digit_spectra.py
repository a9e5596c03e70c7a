"""Outliers of Hessian and G-matrix on handwritten digits along training: predicted from means and covariances alone."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import overlaps as ov
from overlaps.data.digits import digit_labels, digits

Array = NDArray[np.float64]
TIMES = [0.0, 1.0, 5.0]
# Rows are not Gaussian, so that there is no level of false alarms: these are distances that Gaussian classes promise in
# docs/spectra.md, of the median outlier and of the worst.
MEDIAN, WORST = 0.03, 0.15


@cache
def rows() -> tuple[Array, NDArray[np.int64]]:
    """Pixels that vary by half a grey level at least, centred, of mean variance one; and the digits."""
    X, y = digits().astype(float), digit_labels().astype(np.int64)
    X = X[:, X.std(0) > 0.5] - X[:, X.std(0) > 0.5].mean(0)
    return X / np.sqrt(X.var(0).mean()), y


def gaussian(labels: list[int] | None, noise: str) -> ov.GaussianClasses:
    """One Gaussian for each digit: with its "own" covariance, the "shared" one, or an "isotropic" one of its trace."""
    X, y = rows()
    parts = [X[y == c] for c in range(10)]
    shares = np.array([len(part) for part in parts]) / len(X)
    covariances = np.array([np.cov(part.T) for part in parts])
    if noise == "shared":
        covariances[:] = np.tensordot(shares, covariances, 1)
    if noise == "isotropic":
        covariances = np.array([np.trace(matrix) / len(matrix) * np.eye(len(matrix)) for matrix in covariances])
    return ov.GaussianClasses(np.array([part.mean(0) for part in parts]), covariances, shares, labels)


def softmax(noise: str = "own") -> ov.Problem:
    data = gaussian(None, noise)
    return ov.Problem(data=data, student=ov.Softmax(10), loss="cross-entropy", algorithm=ov.OnlineSGD(0.5))


def logistic(noise: str = "own") -> ov.Problem:
    """Even against odd."""
    data = gaussian([-1, 1] * 5, noise)
    return ov.Problem(data=data, student=ov.Committee(1, "linear"), loss="logistic", algorithm=ov.OnlineSGD(0.5))


@cache
def weights(make: Any) -> Array:
    """Along one run of training, (times, K, N)."""
    problem = make()
    start = ov.draw(problem, problem.data.size, seed=0, scale=0.1)
    watch = ov.spectra.Observer(kinds="hessian", blocks=[0], samples=200, keep_weights=True)
    return ov.train(problem, start, TIMES, runs=1, seed=0, observe=watch).data["weights"].values[0]


def distances(make: Any, kind: Any, noise: str = "own") -> tuple[list[float], list[int]]:
    """Relative distances of predicted outliers from those of the rows; and by how many their numbers differ, by time.

    Counted are eigenvalues beyond edge and margin, of the prediction and of all rows.
    """
    problem, predicted = make(), make(noise)
    X, y = rows()
    batch = ov.spectra.Batch(X, problem.data.components.labels[y])
    matrix = ov.spectra.hessian if kind == "hessian" else ov.spectra.gradient_matrix
    found: list[float] = []
    missed: list[int] = []
    for W in weights(make):
        expected = ov.spectra.predicted_outliers(predicted, ov.Start.from_weights(predicted, W), len(X), kind=kind)
        measured = matrix(problem, ov.Start.from_weights(problem, W), batch).block(0).spectrum()
        bulk = expected.high, expected.high_margin
        count = ov.spectra.count_outliers(expected.values, *bulk)
        missed.append(abs(count - ov.spectra.count_outliers(measured, *bulk)))
        found += np.abs(measured[:count] / expected.values[:count] - 1).tolist()
    return found, missed


@pytest.mark.parametrize(("make", "wrong"), [(logistic, "isotropic"), (softmax, "shared")])
def test_outliers_of_the_hessian_along_training(make: Any, wrong: str) -> None:
    """Number and positions; other covariances miss them. One outlier at the margin may be counted on one side only.

    One covariance for all digits serves the logistic unit as well, whose weights hardly tell digits apart.
    """
    found, missed = distances(make, "hessian")
    assert max(missed) <= 1 and len(found) >= 3 * len(TIMES)
    assert np.median(found) < MEDIAN and max(found) < WORST
    found, missed = distances(make, "hessian", wrong)
    assert max(missed) > 1 or np.median(found) > MEDIAN or max(found) > WORST


def test_outliers_of_the_gradients_of_a_logistic_unit() -> None:
    """They weigh rows by squares of their errors, where rows are less Gaussian than where all weights are alike."""
    found, missed = distances(logistic, "gradient")
    assert max(missed) <= 1
    assert np.median(found) < 2 * MEDIAN and max(found) < WORST


@cache
def on_rows() -> tuple[ov.Problem, ov.Trajectory]:
    """Training on the rows themselves, even against odd digits, one Gaussian for each digit."""
    data = ov.Samples(digits(), digit_labels() % 2, groups=digit_labels())
    problem = ov.Problem(
        data=data, student=ov.Committee(1, "linear"), loss="logistic", algorithm=ov.OnlineSGD(0.5)
    )  # fmt: skip
    start = ov.draw(problem, data.size, seed=0, scale=0.1)
    watch = ov.spectra.Observer(kinds="hessian", samples=4000, keep_weights=True)
    return problem, ov.train(problem, start, [*TIMES, 20.0], 1, seed=0, observe=watch, progress=False)


def test_outliers_along_training_on_the_rows() -> None:
    """Predicted from the Gaussians of theory; measured on all rows, and observed on some that are drawn."""
    problem, run = on_rows()
    data: Any = problem.data
    every, found = ov.spectra.Batch(data.rows, problem.row_targets), []
    for i, W in enumerate(run.data["weights"].values[0]):
        point = ov.Start.from_weights(problem, W)
        expected = ov.spectra.predicted_outliers(problem, point, len(data.rows))
        measured = ov.spectra.hessian(problem, point, every).block(0).spectrum()
        bulk = expected.high, expected.high_margin
        count = ov.spectra.count_outliers(expected.values, *bulk)
        assert abs(count - ov.spectra.count_outliers(measured, *bulk)) <= 1
        found += np.abs(measured[:count] / expected.values[:count] - 1).tolist()
        observed = run.data["hessian_values"].values[0, i, 0]
        assert observed.size == 9  # the rank of ten means that sum to zero
        np.testing.assert_allclose(observed[:2], measured[:2], rtol=0.15)
    assert len(found) >= 10 and np.median(found) < MEDIAN and max(found) < WORST


def test_population_of_rows_is_that_of_their_gaussians() -> None:
    """The same as of the classes written out, in the axes of the rows; and the mean of fresh Gaussian samples."""
    problem, run = on_rows()
    data: Any = problem.data
    point = ov.Start.from_weights(problem, run.data["weights"].values[0, -1])
    own = ov.spectra.population(problem, point).block(0)
    found, labels = data.moments, [-1, 1]
    classes = ov.GaussianClasses(
        found.means, found.covariances, found.weights, labels=[labels[c] for c in found.labels]
    )  # fmt: skip
    same = ov.Problem(data=classes, student=problem.student, loss="logistic", algorithm=problem.algorithm)
    there = ov.Start.from_weights(same, point.student)
    np.testing.assert_allclose(
        own.values[:5], ov.spectra.population(same, there).block(0).values[:5], rtol=1e-6
    )  # fmt: skip
    fresh = ov.spectra.hessian(same, there, ov.spectra.Batch.draw(same, there, 40_000, seed=1)).block(0)
    np.testing.assert_allclose(own.values[:3], fresh.spectrum()[:3], rtol=0.05)


def test_a_trained_readout_is_observed_on_rows() -> None:
    """As many pairs of it as units, where the groups are more; a regression on labels is refused."""
    data = ov.Samples(digits(), digit_labels() % 2)
    student = ov.Committee(2, "erf", readout=[1.0, -0.8], train_readout=True)
    problem = ov.Problem(data=data, student=student, algorithm=ov.OnlineSGD(0.5))
    run = ov.train(
        problem, ov.draw(problem, data.size), [0.0, 1.0], 1, observe=ov.spectra.Observer(samples=100), progress=False
    )
    assert run.data["hessian_readout_values"].shape[-1] == 2
    linear = ov.Problem(data=data, student=ov.Committee(1, "linear"), algorithm=ov.OnlineSGD(0.5))
    with pytest.raises(ov.InputError, match="data: spectra are for inputs with a teacher, for mixtures and for rows"):
        ov.spectra.population(linear, ov.draw(linear, data.size))
