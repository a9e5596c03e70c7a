"""Rates that are linear in time between knots, and constant before the first and after the last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .definition import TimeDependent, increasing, nonnegative

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Schedule(TimeDependent):
    """A rate given at knots.

    >>> Schedule(times=[0, 10, 20], rates=[1.0, 1.0, 0.0])([5, 15, 30]).tolist()
    [1.0, 0.5, 0.0]

    Parameters
    ----------
    times: of the knots, increasing.
    rates: at the knots; linear in between, constant outside.
    """

    times: Sequence[float] | Array
    rates: Sequence[float] | Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "times", increasing("times", self.times, 1))
        object.__setattr__(self, "rates", nonnegative("rates", self.rates, len(self.times)))

    @property
    def knots(self) -> tuple[float, ...]:
        return tuple(self.times)

    def at(self, t: Array) -> Array:
        return np.interp(t, self.times, self.rates)


def examples() -> tuple[Schedule, ...]:
    """Three knots, a single one, which is a constant, and down to zero at once or later."""
    return (
        Schedule([0.5, 1.0, 3.0], [0.2, 0.8, 0.1]),
        Schedule([1.0], [0.4]),
        Schedule([0.0, 2.5], [0.5, 0.0]),
        Schedule([0.5, 1.5, 2.5], [0.5, 0.5, 0.0]),
    )


SCHEDULE = Schedule
REFUSED = ({"times": [1.0, 0.5], "rates": [0.1, 0.2]}, {"rates": [0.1], "times": [0.0, 1.0]})
