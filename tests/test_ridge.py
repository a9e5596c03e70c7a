"""Deterministic equivalents of ridge regression against ridge regression.

Means over random sets of rows are compared at LEVEL = 1e-4, with fixed seeds.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t as student

import overlaps as ov
from overlaps.data.digits import digit_labels
from overlaps.laws.ridge import equivalent_error

LEVEL = 1e-4
DATA = ov.Samples(ov.digits(), digit_labels() % 2)


def direct(X: np.ndarray, y: np.ndarray, decay: float) -> np.ndarray:
    """The ridge estimate itself; without decay the shortest of the best."""
    if decay == 0:
        return np.linalg.lstsq(X, y, rcond=1e-10)[0]
    return np.linalg.solve(X.T @ X / len(X) + decay * np.eye(X.shape[1]), X.T @ y / len(X))


@pytest.mark.parametrize(("samples", "decay"), [(30, 0.0), (150, 0.0), (400, 0.0), (30, 0.2), (150, 0.05), (150, 3.0)])
def test_gaussian_rows_of_the_same_population(samples: int, decay: float) -> None:
    """Error over the population, exactly known, for Gaussian rows with the spectrum and labels of the digits."""
    rng = np.random.default_rng(samples)
    omega, theta = DATA.eigenvalues, DATA.own_teacher[0] / np.sqrt(61)  # pyright: ignore
    errors = []
    for _ in range(150):
        X = rng.standard_normal((samples, 61)) * np.sqrt(omega)
        y = X @ theta + np.sqrt(DATA.unexplained) * rng.standard_normal(samples)
        errors.append(0.5 * (omega @ (direct(X, y, decay) - theta) ** 2 + DATA.unexplained))
    bar = student.isf(LEVEL / 12, 149) * np.std(errors, ddof=1) / np.sqrt(150)
    predicted = equivalent_error(omega, omega * theta**2, DATA.unexplained, samples, decay)
    # what is left at finite size is of relative order 1/n
    assert abs(np.mean(errors) - predicted) < bar + 1.5 * predicted / samples
    if decay == 0:  # the noise of single estimates is not small, and its law must show
        floor = 0.5 * (DATA.unexplained if samples > 61 else 0.5)
        assert abs(np.mean(errors) - floor) > bar


def test_rows_of_the_digits() -> None:
    """Random sets of rows, tested on those left out: within three per cent, for the digits are not Gaussian.

    Without correcting for what a fit to all rows hides of the noise it would be five.
    """
    rng = np.random.default_rng(0)
    for samples, decay in ((100, 0.1), (300, 0.02)):
        errors = []
        for _ in range(60):
            order = rng.permutation(1797)
            inside, outside = order[:samples], order[samples:]
            theta = direct(DATA.rows[inside], DATA.targets[inside], decay)  # pyright: ignore
            errors.append(0.5 * np.mean((DATA.targets[outside] - DATA.rows[outside] @ theta) ** 2))  # pyright: ignore
        assert np.mean(errors) == pytest.approx(ov.laws.ridge_error(DATA, samples, decay)[0], rel=0.03)


def test_limits_and_refusals() -> None:
    noise = DATA.unexplained / (1 - 62 / 1797)
    assert ov.laws.ridge_error(DATA, 1e9)[0] == pytest.approx(noise / 2)
    assert ov.laws.ridge_error(DATA, 122)[0] == pytest.approx(noise)  # n = 2 N
    assert ov.laws.ridge_error(DATA, 100, 1e9)[0] == pytest.approx(0.5 * np.mean(DATA.targets**2), rel=1e-3)  # pyright: ignore
    curve = ov.laws.ridge_error(DATA, [100, 200, 400, 800], 0.05)
    assert curve.shape == (4,) and np.all(np.diff(curve) < 0)
    for ask, words in (
        (lambda: ov.laws.ridge_error(DATA, 61), r"^samples: 61 rows of as many dimensions"),
        (lambda: ov.laws.ridge_error(DATA, 0), r"^samples: expected numbers of rows"),
        (lambda: ov.laws.ridge_error(DATA, 100, -1.0), r"^decay: "),
        (lambda: ov.laws.ridge_error(ov.Samples(ov.digits()), 100), r"^data: expected labelled rows"),
    ):
        with pytest.raises(ov.InputError, match=words):
            ask()
