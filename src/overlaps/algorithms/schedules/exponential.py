"""Exponential decay, η(t) = rate e^(−t/time)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...interface.checks import number
from .definition import TimeDependent


@dataclass(frozen=True)
class Exponential(TimeDependent):
    """A rate that loses the same share of itself in every stretch of time.

    Parameters
    ----------
    rate: at time zero.
    time: in which it falls to 1/e of itself.
    """

    rate: float
    time: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", number("rate", self.rate, least=0))
        object.__setattr__(self, "time", number("time", self.time, above=0))

    @property
    def knots(self) -> tuple[float, ...]:
        return ()

    def at(self, t: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.rate * np.exp(-np.maximum(t, 0.0) / self.time)


def examples() -> tuple[Exponential, ...]:
    """One example for the contract tests."""
    return (Exponential(0.8, 2.0),)


SCHEDULE = Exponential
REFUSED = ({"time": -1.0, "rate": 1.0},)
