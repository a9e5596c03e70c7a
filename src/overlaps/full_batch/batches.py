"""Batches: which of the m samples a step uses, as multipliers s of their duals, of mean one.

A step that uses n = b m samples has the gradient (1/n) Σ_{i in the batch} δ_i x_i = (1/m) Σ_i s_i δ_i x_i, where s_i is
m/n times how often sample i was drawn. Batches of different steps are independent. As m → ∞ the multipliers of
different samples become independent too:

    without replacement    s = 1/b with probability b, otherwise 0      E s² = 1/b
    with replacement       s = k/b, k Poisson of mean b                 E s² = 1 + 1/b

>>> batches = Batches(draws=3, samples=12, replacement=False)
>>> batches.draw(np.random.default_rng(0), runs=1).sum(1)  # three samples, each counted four times
array([12.])
>>> batches.limit(np.array([0.1, 0.2, 0.9]))
array([4., 4., 0.])
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Batches(NamedTuple):
    """The batches of a training of `samples` samples, `draws` of them at a step.

    Both may be any multiples of these numbers where only the limit is asked for.
    """

    draws: float
    samples: float
    replacement: bool

    @property
    def share(self) -> float:
        """b."""
        return self.draws / self.samples

    @property
    def second_moment(self) -> float:
        """E s² in the limit."""
        return 1 / self.share + self.replacement

    def draw(self, rng: np.random.Generator, runs: int) -> Array:
        """Multipliers of one step, (runs, samples)."""
        n, m = int(self.draws), int(self.samples)
        if self.replacement:
            return rng.multinomial(n, np.full(m, 1 / m), size=runs).astype(float) * (m / n)
        chosen = np.argpartition(rng.random((runs, m)), n - 1, axis=1)[:, :n]
        multipliers = np.zeros((runs, m))
        np.put_along_axis(multipliers, chosen, m / n, axis=1)
        return multipliers

    def limit(self, u: Array) -> Array:
        """Independent multipliers of the limit, of any shape, from as many numbers u between 0 and 1."""
        b = self.share
        if not self.replacement:
            return np.where(u < b, 1 / b, 0.0)
        counts = np.arange(1, 40)  # of mean at most one: the rest has less probability than rounding
        below = np.cumsum(np.exp(-b) * np.concatenate([[1.0], np.cumprod(b / counts)]))
        return np.searchsorted(below, u, side="right") / b
