"""Gaussians with the moments of the classes of real rows: what they are, what they predict, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import overlaps as ov
from overlaps.data.digits import digit_labels, digits

TIMES = np.array([0.5, 2.0, 10.0])


def trained(data: ov.Samples, odd: np.ndarray, rate: float, runs: int) -> tuple[np.ndarray, np.ndarray]:
    """Loss over all rows of logistic regression by SGD from zero weights, in plain NumPy: mean and standard error."""
    X, rng = data.rows, np.random.default_rng(0)
    N, w, losses = X.shape[1], np.zeros((runs, X.shape[1])), []
    stops = np.floor(TIMES * N + 1e-9).astype(int)
    for step in range(stops[-1] + 1):
        if step in stops:
            f = w @ X.T / np.sqrt(N)
            losses.append((np.logaddexp(0, f) - odd * f).mean(1))
        drawn = rng.integers(0, len(X), runs)
        x = X[drawn]
        f = np.einsum("ij,ij->i", w, x) / np.sqrt(N)
        w -= rate / np.sqrt(N) * (1 / (1 + np.exp(-f)) - odd[drawn])[:, None] * x
    return np.mean(losses, 1), np.std(losses, 1, ddof=1) / np.sqrt(runs)


def test_logistic_regression_on_digits_is_foretold() -> None:
    """Even or odd: one Gaussian per digit is within one per cent early and three later."""
    X, y = digits(), digit_labels().astype(int)
    rows, odd = ov.Samples(X), y % 2
    measured, error = trained(rows, odd, 0.2, 100)

    def theory(data: ov.GaussianClasses) -> np.ndarray:
        student = ov.Committee(1, "linear")
        p = ov.Problem(data=data, student=student, loss="logistic", algorithm=ov.OnlineSGD(0.2))
        return ov.solve(p, ov.draw(p, data.size, scale=0.0), TIMES).data["error"].values[0]

    ten = ov.GaussianClasses.from_rows(X, odd, groups=y)
    found = np.abs(theory(ten) / measured - 1)
    assert (found < np.array([0.01, 0.01, 0.03]) + 4 * error / measured).all(), (found, measured)


def test_moments_of_all_rows_are_kept() -> None:
    X, y = digits(), digit_labels().astype(int)
    rows, data = ov.Samples(X), ov.GaussianClasses.from_rows(X, y)
    means, weights = data.mean_vectors(data.size), data.components.weights
    second = np.tensordot(weights, data.matrices + means[:, :, None] * means[:, None, :], 1)
    np.testing.assert_allclose(second, np.diag(rows.eigenvalues), atol=1e-10)
    np.testing.assert_allclose(weights @ means, 0.0, atol=1e-12)
    three = y == 3
    np.testing.assert_allclose(means[3], rows.rows[three].mean(0), atol=1e-12)
    np.testing.assert_allclose(data.matrices[3], np.cov(rows.rows[three].T, bias=True), atol=1e-12)
    assert data.components.labels.tolist() == list(range(10))


def test_groups_are_parts_of_classes() -> None:
    rng = np.random.default_rng(0)
    X, names = rng.standard_normal((60, 3)), np.array(["cat", "dog"] * 30)
    data = ov.GaussianClasses.from_rows(X, names, groups=np.arange(60) // 20)
    assert data.components.labels.tolist() == [0, 0, 0, 1, 1, 1]
    rare = ov.GaussianClasses.from_rows(rng.standard_normal((6006, 3)), np.arange(6006) % 1001 == 0)
    assert rare.components.weights.min() < 1.2e-3


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.zeros(60, int), "all rows are of class 0"),
        (np.arange(60) < 2, "class True has 2 rows, expected at least 5"),
        (np.arange(59), "expected one for each of 60 rows"),
        (np.linspace(0, 1, 60), "quantities are learned by Samples"),
        (np.array(["a", None] * 30, object), "row 1 .counted from 0. has none"),
        (np.zeros(60, complex), "expected whole numbers, text or booleans"),
    ],
)
def test_labels_that_are_no_classes_are_refused(labels: Any, message: str) -> None:
    with pytest.raises(ov.InputError, match=message):
        ov.GaussianClasses.from_rows(np.random.default_rng(0).standard_normal((60, 3)), labels)


def test_few_rows_are_said_to_be() -> None:
    X = np.random.default_rng(0).standard_normal((60, 20))
    with pytest.warns(UserWarning, match="class True has 6 rows of 20 columns, so that its covariance is singular"):
        data = ov.GaussianClasses.from_rows(X, np.arange(60) < 6)
    assert np.linalg.matrix_rank(data.matrices[1]) == 5


@pytest.mark.parametrize("name", ["means", "covariances"])
def test_classes_whose_products_overflow_are_refused(name: str) -> None:
    given = {"means": np.array([[1.0, 0.0], [0.0, 1.0]]), "covariances": np.array([np.eye(2), 2 * np.eye(2)])}
    given[name] = 1e300 * given[name]
    with pytest.raises(ov.InputError, match=rf"^{name}: [12]e\+300 overflows in products"):
        ov.GaussianClasses(given["means"], given["covariances"])
