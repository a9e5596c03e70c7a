"""The exact mean error of a linear student under any rates, and its derivative with respect to each of them.

One vector W learns one vector B from n_b = φ_b N Gaussian inputs of variance ω_b in level b. With e = W − B, a = η/N,
κ = 1 − a β, label noise σ² and batches of b samples, the moments

    s_b = E|e|²/N        c_b = E[e]·B/N        (sums over level b)

follow one step exactly, at any size:

    s ← (κ² − 2 a κ ω + (1 + 1/b) a² ω²) s + 2 a β (a ω − κ) c + a² β² |B|²/N + (a² N/b) φ ω (Σ ω s + σ²)
    c ← (κ − a ω) c − a β |B|²/N                                   error = ½ Σ ω s, or with the noise ½ (Σ ω s + σ²)

The step is that of `overlaps.online.linear_step`. Reverse accumulation runs these steps backwards with the derivatives
of the last error with respect to s and c, and so has its derivative with respect to the rate of every step at the cost
of about three runs forward. States are kept every √steps steps and computed again in between.

>>> import numpy as np
>>> task = LinearMean(np.ones(1), np.ones(1), np.ones(1), np.zeros(1), np.zeros(1), size=10, noise=0.5)
>>> excess, slopes = task.slopes(np.full(20, 0.5))
>>> bool(np.isclose(slopes[3], (task(np.full(20, 0.5) + 1e-6 * (np.arange(20) == 3)) - excess) / 1e-6, rtol=1e-4))
True
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..compiled.functions import kept
from ..online.linear_step import LinearLevels, step

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LinearMean:
    """The mean of ½ Σ ω s after given rates.

    Parameters
    ----------
    omega, fractions: ω_b and φ_b, (B,).
    distance, overlap, teacher: s_b and c_b at the start, and |B|²/N, (B,).
    size: N. noise: σ², variance of the labels' noise. decay: β. batch: b.
    """

    omega: Array
    fractions: Array
    distance: Array
    overlap: Array
    teacher: Array
    size: int
    noise: float = 0.0
    decay: float = 0.0
    batch: int = 1

    def merged(self, ratio: float = 1.1) -> LinearMean:
        """The same with eigenvalues that are within `ratio` of each other as one: fewer levels, nearly the same mean.

        Dimensions, variance and error at the start stay what they are. Rates that are best for one are best for the
        other: with 154 levels in place of the 668 of images the schedule found has the same error to eight digits.
        """
        kept = self.omega > 0
        omega = self.omega[kept]
        place = np.unique(np.floor(np.log(omega / omega.max()) / np.log(ratio)), return_inverse=True)[1]

        def total(x: Array) -> Array:
            return np.bincount(place, x[kept]).astype(float)

        fractions = total(self.fractions)
        middle = total(self.fractions * self.omega) / fractions
        distance, overlap, teacher = (
            total(self.omega * x) / middle for x in (self.distance, self.overlap, self.teacher)
        )
        return replace(self, omega=middle, fractions=fractions, distance=distance, overlap=overlap, teacher=teacher)

    @property
    def _levels(self) -> LinearLevels:
        feed = self.fractions * self.omega * (self.size / self.batch)
        return LinearLevels(self.omega, feed, self.teacher, 1 / self.batch, self.noise)

    @property
    def _numbers(self) -> tuple[float, float]:
        return float(self.size), float(self.decay)

    def curve(self, rates: Array) -> Array:
        """½ Σ ω s before the first step and after each, (steps + 1,); infinite where it overflows."""
        errors = np.empty(rates.size + 1)
        with np.errstate(over="ignore", invalid="ignore"):
            _follow(self.distance.copy(), self.overlap.copy(), rates, *self._numbers, self._levels, errors)
        return np.where(np.isfinite(errors), errors, np.inf)

    def __call__(self, rates: Array) -> float:
        """½ Σ ω s after one step at each of the rates (steps,); infinite where it overflows."""
        return float(self.curve(rates)[-1])

    def slopes(self, rates: Array) -> tuple[float, Array]:
        """½ Σ ω s after the last step, and its derivatives with respect to the rates, (steps,)."""
        with np.errstate(over="ignore", invalid="ignore"):
            error, slopes = _reverse(self.distance, self.overlap, rates, *self._numbers, self._levels)
        return (float(error), slopes) if np.isfinite(error) else (np.inf, slopes)


@kept()
def _follow(s, c, rates, N, decay, levels, errors):  # pragma: no cover - compiled
    """All steps in place; errors (steps + 1,)."""
    total = np.sum(levels.omega * s)
    errors[0] = 0.5 * total
    for i in range(rates.size):
        total = step(s, c, 1.0 - rates[i] / N * decay, rates[i] / N, levels, total)
        errors[i + 1] = 0.5 * total


@kept(fastmath={"reassoc", "contract"})
def _back(s, c, ds, dc, rate, N, beta, levels):  # pragma: no cover - compiled
    """Derivatives ds, dc with respect to the moments after a step made those before it, s, c, in place.

    Returned is the derivative with respect to the rate of the step.
    """
    a = rate / N
    k, square = 1.0 - a * beta, 1.0 + levels.share
    total, fed = levels.noise, 0.0
    for b in range(s.size):
        total += levels.omega[b] * s[b]
        fed += levels.feed[b] * ds[b]
    slope = 2.0 * a * total * fed
    for b in range(s.size):
        w, t = levels.omega[b], levels.teacher[b]
        slope += ds[b] * (
            (2.0 * a * beta * w - 2.0 * k * (beta + w) + 2.0 * a * square * w * w) * s[b]
            + (4.0 * a * beta * w - 2.0 * beta * k + 2.0 * a * beta * beta) * c[b]
            + 2.0 * a * beta * beta * t
        ) - dc[b] * ((beta + w) * c[b] + beta * t)
        dc[b] = (k - a * w) * dc[b] + 2.0 * a * beta * (a * w - k) * ds[b]
        ds[b] = (k * k - 2.0 * a * k * w + square * a * a * w * w) * ds[b] + a * a * fed * w
    return slope / N


@kept()
def _reverse(distance, overlap, rates, N, decay, levels):  # pragma: no cover - compiled
    """½ Σ ω s after all steps, and its derivatives with respect to the rates (steps,)."""
    steps, B = rates.size, distance.size
    part = max(1, int(np.ceil(np.sqrt(steps))))
    parts = (steps + part - 1) // part
    kept_s, kept_c = np.empty((parts + 1, B)), np.empty((parts + 1, B))
    s, c = distance.copy(), overlap.copy()
    total = np.sum(levels.omega * s)
    for i in range(steps):
        if i % part == 0:
            kept_s[i // part], kept_c[i // part] = s, c
        total = step(s, c, 1.0 - rates[i] / N * decay, rates[i] / N, levels, total)
    error, slopes = 0.5 * total, np.zeros(steps)
    if not np.isfinite(error):
        return error, slopes
    ds, dc = 0.5 * levels.omega, np.zeros(B)
    inner_s, inner_c = np.empty((part, B)), np.empty((part, B))
    for p in range(parts - 1, -1, -1):
        first, last = p * part, min(steps, (p + 1) * part)
        s[:], c[:] = kept_s[p], kept_c[p]
        total = np.sum(levels.omega * s)
        for i in range(first, last):
            inner_s[i - first], inner_c[i - first] = s, c
            total = step(s, c, 1.0 - rates[i] / N * decay, rates[i] / N, levels, total)
        for i in range(last - 1, first - 1, -1):
            slopes[i] = _back(inner_s[i - first], inner_c[i - first], ds, dc, rates[i], N, decay, levels)
    return error, slopes
