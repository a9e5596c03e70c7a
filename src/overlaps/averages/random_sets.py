"""Averages by several independent sets of random points: their mean, and how far it may be off.

With x_r the result of set r of R, x̄ their mean and s their standard deviation, x̄ is off by at most

    t s/√R,        t the quantile of Student's law of R − 1 degrees of freedom,

but for one time in two hundred. No set is spent on judging another: all of them are in the mean.

>>> import numpy as np
>>> round(float(half_width(np.array([1.0, 2.0, 3.0, 4.0]))), 3)
4.811
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from .quadrature import LossQuadrature
from .square_quadrature import SquareQuadrature

Array = NDArray[np.float64]
RandomPoints = LossQuadrature | SquareQuadrature
FEW, MANY = 4, 8  # sets to begin with, and where these differ too much
LEVEL = 0.995  # how often the mean is within what is stated


@cache
def _quantile(sets: int) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(sets - 1, 0.5 + 0.5 * LEVEL))


def half_width(x: Array) -> Array:
    """How far the mean over the first axis, that of the sets, may be off."""
    sets = len(x)
    return _quantile(sets) * np.std(x, axis=0, ddof=1) / np.sqrt(sets)


def set_of(how: RandomPoints, number: int) -> RandomPoints:
    """One of independent sets of a quarter of the points: a few of them are what `how` is."""
    return how.coarser().coarser().drawn(number)


def more_points(how: RandomPoints, ratio: float) -> RandomPoints | None:
    """As many more points as an error smaller by a ratio takes where averages are smooth, or the most there are.

    Errors of smooth averages fall faster than one over the number of points, those of kinks as one over its root. None
    where more points are asked for than there are already, and there are no more.
    """
    better: RandomPoints | None = how
    for doubling in range(round(0.6 * np.log2(max(ratio, 1.0)))):
        better = how.finer()
        if better is None:
            return how if doubling else None
        how = better
    return how
