"""Grids of times. Time is t = steps/N at every scale: samples per input dimension, where a step takes one of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..interface.checks import checked, number, whole
from ..interface.errors import InputError


@checked
def logtimes(first: float, last: float, count: int) -> NDArray[np.float64]:
    """Time zero and `count` logarithmically spaced times from `first` to `last`, both included.

    >>> logtimes(1, 100, 3).tolist()
    [0.0, 1.0, 10.0, 100.0]
    """
    first = number("first", first, above=0)
    last = number("last", last, above=0)
    count = whole("count", count, least=2)
    if last <= first:
        raise InputError(f"last: expected a time after first = {first:g}, got {last:g}")
    inner = np.geomspace(first, last, count)
    inner[0], inner[-1] = first, last
    if np.any(np.diff(inner) <= 0):
        raise InputError(
            f"count: there are no {count} numbers from first = {first!r} to last = {last!r}; ask for fewer"
        )
    return np.concatenate([[0.0], inner])
