"""Numbers behind a verdict, with their standard errors: means and variances over runs, powers of a size.

mean ± s/√n,        s² ± √Var[(x − mean)²]/√n,        a of y ∝ x^a, the slope of log y against log x
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


class Estimate(NamedTuple):
    """A number and its standard error."""

    value: float
    error: float


def mean_error(values: ArrayLike, axis: int = 0) -> tuple[Array, Array]:
    """Mean over independent runs, which are one axis of the values, and its standard error."""
    values = np.asarray(values, float)
    return values.mean(axis), values.std(axis, ddof=1) / np.sqrt(values.shape[axis])


def mean(values: ArrayLike) -> Estimate:
    """The same for one number of each run, (runs,)."""
    found, error = mean_error(np.ravel(values))
    return Estimate(float(found), float(error))


def variance_error(values: Array) -> tuple[Array, Array]:
    """Variance over runs of values (runs, ...), and its standard error by fourth moments."""
    squares = (values - values.mean(0)) ** 2
    n = len(values)
    return squares.sum(0) / (n - 1), squares.std(0, ddof=1) / np.sqrt(n)


def variance(values: Array) -> Estimate:
    """The same for one number of each run, (runs,)."""
    found, error = variance_error(values)
    return Estimate(float(found), float(error))


def power(x: ArrayLike, y: ArrayLike, errors: ArrayLike | None = None) -> Estimate:
    """Power of x in |y| and its standard error: from the errors of y, or from the scatter about the line."""
    weights = None if errors is None else np.abs(y) / np.asarray(errors)
    how = True if errors is None else "unscaled"
    (slope, _), covariance = np.polyfit(np.log(x), np.log(np.abs(y)), 1, w=weights, cov=how)
    return Estimate(float(slope), float(np.sqrt(covariance[0, 0])))
