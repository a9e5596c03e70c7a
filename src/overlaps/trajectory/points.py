"""Statistics of verdicts and finite-size scaling: trajectories as columns of points, and fits of power laws in N.

A *point* is one entry of one variable at one time (Q counted once per unordered pair). Runs are independent rows, so
standard errors and bootstrap resampling go over rows, however strongly points depend on each other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..data.power_law import Exponent
from .dataset import Trajectory

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ComparedPoints:
    """Columns of a trajectory.

    Attributes
    ----------
    values: (runs, points).
    variable, time, entry: for each point its variable, its time and its index, such as ``"[0, 1]"``.
    """

    values: Array
    variable: NDArray[np.str_]
    time: Array
    entry: NDArray[np.str_]


def points(result: Trajectory) -> ComparedPoints:
    """All points of the variables that are compared between scales."""
    columns: list[Array] = []
    variable: list[str] = []
    time: list[float] = []
    entry: list[str] = []
    for name in result.variables:
        values = result.data[name].transpose("run", "time", ...).values
        for index in np.ndindex(values.shape[2:]):
            if name == "Q" and index[0] > index[1]:
                continue
            columns.append(values[(slice(None), slice(None), *index)])
            variable += [name] * result.time.size
            time += result.time.tolist()
            entry += [str(list(index)) if index else ""] * result.time.size
    return ComparedPoints(np.concatenate(columns, axis=1), np.array(variable), np.array(time), np.array(entry))


def holm(p: Array) -> Array:
    """Holm's step-down adjustment: reject where it is below the level, and the family-wise error is kept."""
    order = np.argsort(p)
    steps = np.maximum.accumulate(p[order] * (p.size - np.arange(p.size)))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(steps, 1.0)
    return adjusted


def relabelled(a: Array, b: Array, level: float, seed: int, repeats: int) -> tuple[Array, Array]:
    """Test of equal laws by random relabelling of the runs: adjusted p and the deviation visible at `level`, (points,).

    a, b: (runs, points) of two samples. The statistic is the largest standardised difference of means over all points;
    the level is exact if the samples are equal in law, however points depend on each other.
    """
    rng = np.random.default_rng(seed)
    pooled = np.concatenate([a, b])
    pooled = pooled - pooled.mean(0)
    scale = pooled.std(0)
    pooled = pooled / np.where(scale > 0, scale, 1.0)
    n, m = len(a), len(b)
    largest = np.empty(repeats)
    for low in range(0, repeats, 1000):
        numbers = np.tile(np.arange(n + m), (min(1000, repeats - low), 1))
        labels = (rng.permuted(numbers, axis=1) < n).astype(float)
        # pooled columns have mean zero, so the difference of means is proportional to the sum over one sample
        largest[low : low + 1000] = np.abs(labels @ pooled).max(1)
    largest.sort()
    p = (1 + repeats - np.searchsorted(largest, np.abs(pooled[:n].sum(0)) - 1e-12)) / (1 + repeats)
    critical = largest[min(repeats - 1, int(np.ceil((1 - level) * repeats)))]
    return p, critical * scale * (1 / n + 1 / m)


EXPONENTS = np.linspace(-1.0, 3.0, 401)
CONFIDENCE, REPEATS = 0.99, 400  # of intervals of exponents, and of the resamplings they come from


def decay_exponent(sizes: Array, deviations: list[Array], variances: list[Array]) -> float:
    """a of the least-squares fit deviation_i(N) = b_i N^-a, one exponent for all points.

    deviations, variances: for each size, (points,).
    """
    weights = 1.0 / np.array(variances)
    f = (sizes / sizes[0]) ** -EXPONENTS[:, None]  # (exponents, sizes)
    overlap = np.einsum("es,si->ei", f, weights * np.array(deviations))
    norm = np.einsum("es,si->ei", f**2, weights)
    return float(EXPONENTS[np.argmax(np.sum(overlap**2 / norm, axis=1))])


def fit_decay(sizes: Array, runs: list[Array], theory: list[Array], seed: int) -> Exponent:
    """Exponent of the decay of mean(runs) − theory with size; for each size (runs, points) and (points,)."""
    variances = [r.var(0, ddof=1) / len(r) for r in runs]
    return _bootstrap(
        lambda means: decay_exponent(sizes, [m - t for m, t in zip(means, theory, strict=True)], variances),
        lambda rows: rows.mean(0),
        runs,
        seed,
    )


def fit_spread(sizes: Array, runs: list[Array], seed: int) -> Exponent:
    """Exponent of the decay of the standard deviation with size, one for all points."""
    x = np.log(sizes) - np.log(sizes).mean()

    def slope(spreads: list[Array]) -> float:
        return float(-np.mean(x @ np.log(np.array(spreads)) / (x @ x)))

    return _bootstrap(slope, lambda rows: rows.std(0, ddof=1), runs, seed)


def _bootstrap(fit, reduce, runs: list[Array], seed: int) -> Exponent:
    """What is fitted to reduced runs, with its interval over resampled ones."""
    rng = np.random.default_rng(seed)
    best = fit([reduce(r) for r in runs])
    again = [fit([reduce(r[rng.integers(len(r), size=len(r))]) for r in runs]) for _ in range(REPEATS)]
    tail = 100 * (1 - CONFIDENCE) / 2
    low, high = np.percentile(again, [tail, 100 - tail])
    return Exponent(best, float(low), float(high))
