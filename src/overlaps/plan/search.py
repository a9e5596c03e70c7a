"""The search for rates: the best constant one by a scan, a schedule by quasi-Newton steps in log η at its knots.

Knots are 0, the last time T, and in between times that are dense at both ends, where the best rates change fastest,

    t_k = T x_k,        log(x_k/(1 − x_k)) equally spaced between −log 30 and log 30.

With fifteen of them a linear student on images ends within 10⁻⁴ of the excess error that sixty allow. The search is
L-BFGS within bounds. A trial beyond stability has no derivative: it is answered by a value above all others so far and
a slope that leads back to the best rates, and the line search steps back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize, minimize_scalar

Array = NDArray[np.float64]
SCANNED = 25  # values of a constant at first, on a logarithmic scale
REFINED = 20  # about how many more until the best is known
MOST = 200  # steps of the search for a schedule


class Minimum(NamedTuple):
    """Where a search ended: the values, their excess error, and how often it was computed."""

    values: Array
    excess: float
    evaluations: int


def knot_times(last: float, count: int) -> Array:
    """`count` times from 0 to `last`, dense at both ends."""
    if count < 4:
        return np.linspace(0.0, last, count)
    edge = np.log(30.0)
    inner = 1 / (1 + np.exp(-np.linspace(-edge, edge, count - 2)))
    return last * np.concatenate([[0.0], inner, [1.0]])


def best_constant(excess: Callable[[float], float], low: float, high: float, report: Callable[[], object]) -> Minimum:
    """The value between two bounds of smallest excess error; infinite values are refused trials.

    report: called at every evaluation, for the progress bar.
    """
    evaluations = 0

    def at(x: float) -> float:
        nonlocal evaluations
        evaluations += 1
        report()
        found = excess(float(np.exp(x)))
        # a finite stand-in: a scan of numbers that are all infinite has no smallest
        return float(np.log(found)) if 0 < found < np.inf else (-700.0 if found == 0 else 700.0)

    grid = np.linspace(np.log(low), np.log(high), SCANNED)
    values = [at(x) for x in grid]
    i = int(np.argmin(values))
    ends = grid[max(0, i - 1)], grid[min(grid.size - 1, i + 1)]
    found: Any = minimize_scalar(at, bounds=ends, method="bounded", options={"xatol": 1e-4})
    x, value = (float(found.x), float(found.fun)) if found.fun < values[i] else (float(grid[i]), values[i])
    return Minimum(np.array([np.exp(x)]), float(np.exp(value)) if value < 700 else np.inf, evaluations)


def best_values(
    slopes: Callable[[Array], tuple[float, Array]], first: Array, low: float, high: float, report: Callable[[], object]
) -> Minimum:
    """The values between bounds of smallest excess error, from `first` on.

    slopes: the excess error at values, infinite where they are refused, and its derivatives by their logarithms.
    report: called at every evaluation, for the progress bar.
    """
    evaluations, worst = 0, -np.inf
    best_x, best = np.log(first), np.inf

    def objective(x: Array) -> tuple[float, Array]:
        nonlocal evaluations, worst, best, best_x
        evaluations += 1
        report()
        error, slope = slopes(np.exp(x))
        if not (0 < error < np.inf and np.isfinite(slope).all()):
            away = x - best_x
            return worst + 1.0 + float(away @ away), 2 * away
        value = float(np.log(error))
        worst = max(worst, value)
        if value < best:
            best, best_x = value, x.copy()
        return value, slope / error

    bounds = [(np.log(low), np.log(high))] * first.size
    options = {"maxiter": MOST, "maxcor": min(20, first.size), "ftol": 1e-10, "gtol": 1e-7}
    minimize(objective, best_x, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return Minimum(np.exp(best_x), float(np.exp(best)), evaluations)
