"""Rates that jump: η(t) = rates[i] from times[i − 1] until times[i]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .definition import TimeDependent, increasing, nonnegative

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Steps(TimeDependent):
    """A rate that is constant between jumps.

    Parameters
    ----------
    times: of the jumps, increasing.
    rates: one more than there are jumps; from a jump on, the rate is the one after it.
    """

    times: Sequence[float] | Array
    rates: Sequence[float] | Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "times", increasing("times", self.times, 1))
        object.__setattr__(self, "rates", nonnegative("rates", self.rates, len(self.times) + 1))

    @property
    def knots(self) -> tuple[float, ...]:
        return tuple(self.times)

    def at(self, t: Array) -> Array:
        return np.array(self.rates)[np.searchsorted(self.times, t, side="right")]

    def before(self, t: float) -> float:
        return float(self.rates[int(np.searchsorted(self.times, t, side="left"))])


def examples() -> tuple[Steps, ...]:
    """Two jumps down."""
    return (Steps([1.0, 2.0], [0.8, 0.3, 0.1]),)


SCHEDULE = Steps
REFUSED = ({"rates": [0.1], "times": [1.0]}, {"times": [], "rates": [0.1]})
