"""Labelled rows that count with weights, as rows that count once: √w x and √w y have the second moments Σ w x xᵀ/n.

Theory of linear students knows rows by their second moments alone, so that it is the same for both. Means and standard
deviations of columns are subtracted and divided by where those of the rows themselves were, with the weights, and units
are those in which the mean eigenvalue is one.

>>> import numpy as np
>>> import overlaps as ov
>>> rng = np.random.default_rng(0)
>>> data = ov.Samples(rng.standard_normal((50, 3)), rng.standard_normal(50))
>>> twice = weighted(data, np.where(np.arange(50) < 25, 2.0, 0.0), data.targets)
>>> half = ov.Samples(data.rows[:25], data.targets[:25])
>>> bool(np.allclose(twice.eigenvalues, half.eigenvalues)), bool(np.isclose(twice.unexplained, half.unexplained))
(True, True)
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .models.samples import Samples

Array = NDArray[np.float64]


def weighted(data: Samples, weights: Array, targets: Any) -> Samples:
    """The rows of `data` with labels `targets` (n,), each counting as often as its weight (n,) says."""
    w = weights / weights.mean()
    rows, labels = data.columns, np.asarray(targets, float)
    if data.centre:
        means = w @ rows / w.size
        if data.bias:  # which stays one, and learns the mean of the labels
            means[-1] = 0.0
        rows = rows - means
    if data.centres_labels:
        labels = labels - w @ labels / w.size
    root = np.sqrt(w)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the rows, which was said when these were built
        return Samples(root[:, None] * rows, root * labels, centre=False, standardise=data.standardise)


def without_own_pull(data: Samples) -> Array:
    """Labels whose residuals are those of fits without the row itself, (n,): θ*·x + r/(1 − h).

    h = xᵀ C⁺ x/n, and 1/n for the mean, is by how much a row pulls the fit towards its own label.
    """
    assert data.targets is not None and data.own_teacher is not None
    omega, n = data.eigenvalues, len(data.rows)
    inverse = np.divide(1.0, omega, out=np.zeros_like(omega), where=omega > 0)
    pull = data.rows**2 @ inverse / n + data.centres_labels / n
    fitted = data.rows @ data.own_teacher[0] / np.sqrt(data.size)
    # a row that is fitted whatever its label has no residual to speak of
    return fitted + (data.targets - fitted) / np.maximum(1 - pull, 0.05)
