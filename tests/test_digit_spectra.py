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
