"""What one-pass SGD of a linear student on rows x with labels y depends on, estimated from n rows.

In the principal axes of the rows, with residuals r = y − θ*·x of the best linear map,

    ω_k = ⟨x_k²⟩        θ*_k² = ⟨x_k y⟩²/ω_k²        σ² = ⟨r²⟩

are the population of `train`, which draws the rows themselves. Of *fresh* rows the map fitted to n rows promises too
much; `fresh` takes this off (`overlaps.data.fit_bias`). The error after any rates is linear in these numbers (see
`overlaps.plan.linear_mean`), so that single θ*_k² may come out negative.

Estimates from other weights w of the rows, as the bootstrap needs them, stay in these axes,

    ω_k = Σ w x_k²        θ*_k → θ*_k + Σ w x_k r/ω_k        σ² = Σ w r²,

which is exact to first order in the change of the weights, but for the turn of the axes; residuals are those of a fit
without the row, r/(1 − N/n) on average. On real sets this has the standard errors of a full bootstrap within a third.
`overlaps.trajectory.fresh_rows` turns the axes as well and takes off what is left of the bias, for `solve`; that costs
an eigendecomposition for each resample, which a forecast of thousands of columns within a minute cannot pay.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve

from ..data import Samples
from ..data.fit_bias import without_fit_bias
from ..interface.errors import InputError
from .linear_mean import LinearMean

Array = NDArray[np.float64]
BLOCK = 2**22  # numbers of a block of rows
MANY = 1000  # levels, beyond which resamples take merged ones


@dataclass(frozen=True, eq=False)
class RowsTask:
    """ω_k and θ*_k², (N,), and σ²."""

    omega: Array
    signal: Array
    noise: float

    @cached_property
    def mean(self) -> LinearMean:
        """The exact mean over runs from zero weights, without the floor σ²/2."""
        N = self.omega.size
        return LinearMean(self.omega, np.full(N, 1 / N), self.signal, -self.signal, self.signal, N, self.noise)

    def errors(self, rates: Array) -> Array:
        """Mean error before the first step and after each, noise included, (steps + 1,)."""
        return self.mean.curve(rates) + self.noise / 2

    def rough_errors(self, rates: Array) -> Array:
        """The same within 2e-3, by merged levels where there are very many: for the spread of resamples."""
        mean = self.mean.merged() if self.omega.size > MANY else self.mean
        return mean.curve(rates) + self.noise / 2

    def last_error(self, rates: Array) -> float:
        """The last of them by merged levels, noise included."""
        return self.mean.merged()(rates) + self.noise / 2


def spread(values: Array) -> Array:
    """Standard deviation over resamples, the first axis; infinite where any of them overflows."""
    with np.errstate(over="ignore", invalid="ignore"):
        found = np.std(values, axis=0, ddof=1)
    return np.where(np.isfinite(found), found, np.inf)


@dataclass(frozen=True, eq=False)
class Estimates:
    """Estimates from labelled rows: `rows`, (n, N) in their principal axes, and `targets`, (n,).

    centred: whether their means were subtracted, those of the targets too.
    """

    rows: Array
    targets: Array
    centred: bool = True

    @classmethod
    def of(cls, data: Samples) -> Estimates:
        """Those of a data set; refused without labels."""
        if data.targets is None:
            raise InputError("y: these rows have no labels; give them as y, or by target")
        return cls(data.rows, data.targets, data.centres_labels)

    @cached_property
    def omega(self) -> Array:
        """ω, (N,)."""
        return np.einsum("ij,ij->j", self.rows, self.rows) / len(self.rows)

    @cached_property
    def theta(self) -> Array:
        """θ*, (N,); zero in directions without variance."""
        products = self.rows.T @ self.targets / len(self.rows)
        kept = self.omega > 1e-12 * self.omega.max()
        return np.divide(products, self.omega, out=np.zeros_like(products), where=kept)

    @cached_property
    def residuals(self) -> Array:
        """r, (n,)."""
        return self.targets - self.rows @ self.theta

    def _blocks(self) -> list[Array]:
        height = max(1, BLOCK // self.rows.shape[1])
        return [self.rows[low : low + height] for low in range(0, len(self.rows), height)]

    @property
    def plain(self) -> RowsTask:
        """The rows as the population."""
        return RowsTask(self.omega, self.theta**2, float(np.mean(self.residuals**2)))

    @property
    def fresh(self) -> RowsTask:
        """The population behind the rows, without the bias of a fit."""
        return self._unbiased(self.plain, len(self.rows))

    def _unbiased(self, task: RowsTask, count: int) -> RowsTask:
        """A fit to `count` rows without its bias."""
        parts = without_fit_bias(task.omega, task.signal, task.noise, count=count, centred=self.centred)
        return RowsTask(task.omega, *parts)

    def weighted(self, weights: Array) -> list[RowsTask]:
        """Estimates of rows that count with other weights, (tasks, n), each summing to one."""
        squares, pulls = np.zeros((len(weights), self.omega.size)), np.zeros((len(weights), self.omega.size))
        # a row pulls the fit towards itself, by N/n on average: without it its residual would be larger
        residuals, low = self.residuals / (1 - self.omega.size / len(self.rows)), 0
        for part in self._blocks():
            at = slice(low, low + len(part))
            squares += weights[:, at] @ part**2
            pulls += (weights[:, at] * residuals[at]) @ part
            low = at.stop
        kept = self.omega > 1e-12 * self.omega.max()
        moved = self.theta + np.divide(pulls, self.omega, out=np.zeros_like(pulls), where=kept)
        noises = weights @ residuals**2
        return [RowsTask(*parts) for parts in zip(squares, moved**2, noises.tolist(), strict=True)]

    def resampled(self, count: int, seed: int) -> list[RowsTask]:
        """Estimates of `count` bootstrap samples of the rows."""
        rng, n = np.random.default_rng(seed), len(self.rows)
        drawn = [np.bincount(rng.integers(0, n, n), minlength=n) / n for _ in range(count)]
        return self.weighted(np.array(drawn))

    def without(self, held: NDArray[np.bool_]) -> RowsTask:
        """The population behind the rows that are not held out: a fit to them alone, in the axes of all rows."""
        fit = self.rows[~held]
        N, n = fit.shape[1], len(fit)
        centre, mean = np.zeros(N), 0.0
        if self.centred:
            centre, mean = fit.mean(0), float(self.targets[~held].mean())
        # of the rows held out the product is cheaper, and the rest follows from all
        out = self.rows[held]
        covariance = (np.diag(len(self.rows) * self.omega) - out.T @ out) / n - np.outer(centre, centre)
        products = fit.T @ self.targets[~held] / n - mean * centre
        # directions of hardly any variance, which may have none without these rows, are left where they are
        kept, theta = self.omega > 1e-9 * self.omega.max(), np.zeros(N)
        ridge = 1e-10 * float(self.omega.max()) * np.eye(int(kept.sum()))
        theta[kept] = solve(covariance[np.ix_(kept, kept)] + ridge, products[kept], assume_a="pos")
        residuals = self.targets[~held] - mean - (fit - centre) @ theta
        return self._unbiased(RowsTask(np.diag(covariance).copy(), theta**2, float(np.mean(residuals**2))), n)
