"""Power laws, y ∝ x^a: the exponent, how well it is known, and whether it is a power law at all.

Points are gathered in bins of equal width in log x, nine of them, or six below a decade and a half. Three slopes are
fitted by least squares to the means of log x and log y in the bins: a through all of them, and the local slopes through
the first and the last third, which differ by the drift d. All three are linear in the means, whose noise is taken from
their residuals about a parabola; given several runs, errors come from the jackknife over runs if that is larger. Noise
may thus be correlated between points: over less than a bin for a single curve, over any distance for runs. With errors
by Student's t, a drift beyond its own error is systematic, and the interval of the exponent is

    a ± (error of a + max(0, |d| − error of d)/2).

It *is* a power law over the range if the range is a decade or more, and both |d| and the half width of the interval are
at most a fifth of |a|.

>>> import numpy as np
>>> from overlaps import fit_power
>>> x = np.geomspace(1, 1000, 40)
>>> fit_power(x, 3 * x**-0.5)
power law: slope -0.5 [-0.5, -0.5] (95 %) over x = 1 to 1000 (40 points)
>>> fit_power(x, np.exp(-x / 100), window=(1, 100))
not a power law: slope drifts from -0.0215 to -0.521 over x = 1 to 100 (27 points)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..interface.checks import array, checked, number
from ..interface.errors import InputError

Array = NDArray[np.float64]
BINS = (9, 6)  # numbers of bins: multiples of three, and enough to leave residuals about a parabola
WIDTH = 1 / 6  # decades: the least width of a bin
DECADE = 10 * (1 - 1e-9)  # so that 0.1 to 1.0 counts as one
SUREST = 1 - 1e-9  # beyond, quantiles of Student's t are lost in rounding
TOLERANCE = 0.2  # of the slope: largest drift, and largest half width of the interval, of a power law


@dataclass(frozen=True)
class Exponent:
    """A fitted exponent with its confidence interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


@dataclass(frozen=True, repr=False)
class PowerFit(Exponent):
    """A fit of y ∝ x^value, with the confidence interval `low` to `high`.

    Attributes
    ----------
    range: smallest and largest x that were used.
    slopes: local slope d log y/d log x in the first and in the last third of log x.
    points: number of points between them.
    confidence: of the interval.
    axis: what x is called.
    """

    range: tuple[float, float]
    slopes: tuple[float, float]
    points: int
    confidence: float
    axis: str = "x"

    @property
    def drift(self) -> float:
        """Change of the local slope from the first to the last third of the range."""
        return self.slopes[1] - self.slopes[0]

    @property
    def is_power_law(self) -> bool:
        """At least a decade, with a drift and a half width of the interval of at most a fifth of the slope."""
        return self.range[1] >= DECADE * self.range[0] and self._within(self.drift) and self._within(self._half_width)

    @property
    def beta(self) -> Exponent:
        """β of a spectrum that falls with rank l as l^-(1+β)."""
        return Exponent(-1 - self.value, -1 - self.high, -1 - self.low)

    @property
    def _half_width(self) -> float:
        return (self.high - self.low) / 2

    def _within(self, change: float) -> bool:
        return abs(change) <= TOLERANCE * abs(self.value) + 1e-9

    def __repr__(self) -> str:
        slope = f"slope {self.value:.3g} [{self.low:.3g}, {self.high:.3g}] ({100 * self.confidence:g} %)"
        over = f"over {self.axis} = {self.range[0]:.4g} to {self.range[1]:.4g} ({self.points} points)"
        if self.is_power_law:
            return f"power law: {slope} {over}"
        if not self._within(self.drift):
            return f"not a power law: slope drifts from {self.slopes[0]:.3g} to {self.slopes[1]:.3g} {over}"
        why = "less than a decade" if self._within(self._half_width) else "an interval wider than a fifth of the slope"
        return f"not shown to be a power law: {slope} {over}, {why}"

    __str__ = __repr__


@checked
def fit_power(
    x: ArrayLike, y: ArrayLike, window: tuple[float, float] | None = None, *, confidence: float = 0.95
) -> PowerFit:
    """Fit y ∝ x^a inside a window, for instance an error against time.

    Parameters
    ----------
    x: (points,), above zero inside the window, at least a decade of it.
    y: (points,), or (runs, points) for independent runs; then it is their mean that is fitted.
    window: smallest and largest x to use; all of them by default.
    confidence: of the interval, at most 1 - 1e-9.
    """
    x = array("x", x, (None,))
    y = array("y", y, None)
    y = np.atleast_2d(array("y", y, (None, x.size) if y.ndim == 2 else (x.size,)))
    if window is not None:
        low, high = array("window", window, (2,))
        inside = (x >= low * (1 - 1e-12)) & (x * (1 - 1e-12) <= high)
        x, y = x[inside], y[:, inside]
        if x.size == 0:
            raise InputError(f"window: no point lies between {low:g} and {high:g}")
    if y.size == 0:
        raise InputError(f"y: expected values at every x, got shape {y.shape}")
    if x.min() <= 0:
        raise InputError("x: expected numbers above zero; leave out the others by window=(smallest, largest)")
    if x.max() / DECADE < x.min():
        raise InputError(
            f"window: x from {x.min():g} to {x.max():g} is less than a decade, too little to tell a power law from "
            "other curves; widen the window or compute more points"
        )
    with np.errstate(over="ignore"):
        mean = y.mean(0)
    if not np.all(np.isfinite(mean)):
        raise InputError(f"y: the sum over {len(y)} runs overflows; divide all of y by a constant")
    if mean.min() <= 0:
        raise InputError(
            f"y: expected numbers above zero, got {mean.min():.3g} at x = {x[mean.argmin()]:g}; end the window there"
        )
    order = np.argsort(x, kind="stable")
    return fit_sorted(x[order], y[:, order], confidence)


def fit_sorted(x: Array, y: Array, confidence: float, axis: str = "x") -> PowerFit:
    """The fit itself: x (points,) increasing and above zero, y (runs, points) of positive mean."""
    from scipy.special import stdtrit  # imported here, since spectra are built without SciPy

    confidence = number("confidence", confidence, above=0)
    if confidence > SUREST:
        raise InputError(f"confidence: expected a probability of at most 1 - 1e-9, got {confidence:.17g}")
    t = np.log(x)
    first = _bins(t, axis)
    count = np.diff([*first, x.size])
    u = np.add.reduceat(t, first) / count
    u -= u.mean()
    third = u.size // 3
    slopes = np.array([_slope(u, 0, u.size), _slope(u, 0, third), _slope(u, u.size - third, u.size)])
    wanted = np.array([slopes[0], slopes[2] - slopes[1]])  # exponent and drift
    parabola = np.stack([np.ones_like(u), u, u * u], axis=1)
    runs = len(y)

    def binned(means: Array) -> Array:
        return np.add.reduceat(np.log(means), first, axis=-1) / count

    z = binned(y.mean(0))
    freedom = u.size - 3
    rest = z - parabola @ np.linalg.lstsq(parabola, z)[0]
    errors = stdtrit(freedom, (1 + confidence) / 2) * np.sqrt(rest @ rest / freedom * np.sum(wanted**2, axis=1))
    if runs > 1:
        without = np.maximum((y.sum(0) - y) / (runs - 1), np.finfo(float).tiny)  # all of a mean may be one run's
        spread = jackknife(binned(without) @ wanted.T)
        errors = np.maximum(errors, stdtrit(runs - 1, (1 + confidence) / 2) * spread)
    value, begin, end = (slopes @ z).tolist()
    half = float(errors[0] + max(0.0, abs(end - begin) - errors[1]) / 2)
    used = (float(x[0]), float(x[-1]))
    return PowerFit(value, value - half, value + half, used, (begin, end), x.size, confidence, axis)


def jackknife(without: Array) -> Array:
    """Standard error, (...,), of a number found from runs, from its values without each of them, (runs, ...)."""
    return np.sqrt((len(without) - 1) * without.var(0))


def _slope(u: Array, low: int, high: int) -> Array:
    """Weights (bins,) of the least-squares slope through the bins from `low` to `high`."""
    weights = np.zeros_like(u)
    weights[low:high] = u[low:high] - u[low:high].mean()
    return weights / np.sum(weights**2)


def _bins(t: Array, axis: str) -> NDArray[np.int64]:
    """First point of each bin; t increasing, the logarithm of what is called `axis`."""
    length = float(t[-1] - t[0])
    for bins in BINS:
        first = np.searchsorted(t, t[0] + length * np.arange(bins) / bins - 1e-9)
        if length / bins >= WIDTH * np.log(DECADE) and np.all(np.diff([*first, t.size]) > 0):
            return first
    raise InputError(
        f"{axis}: {t.size} points leave gaps between {np.exp(t[0]):.3g} and {np.exp(t[-1]):.3g}; at least one point in "
        f"each of {BINS[-1]} equal parts of log {axis} is needed"
    )
