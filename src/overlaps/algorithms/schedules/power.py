"""A power law, η(t) = rate (1 + t/time)^−exponent."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...interface.checks import number
from .definition import TimeDependent


@dataclass(frozen=True)
class Power(TimeDependent):
    """A rate that decays as a power of time.

    Parameters
    ----------
    rate: at time zero.
    exponent: of the decay, late; 1 is the rate of stochastic approximation.
    time: when the decay sets in.
    """

    rate: float
    exponent: float = 1.0
    time: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", number("rate", self.rate, least=0))
        object.__setattr__(self, "exponent", number("exponent", self.exponent, least=0))
        object.__setattr__(self, "time", number("time", self.time, above=0))

    @property
    def knots(self) -> tuple[float, ...]:
        return ()

    def at(self, t: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.rate * (1 + np.maximum(t, 0.0) / self.time) ** -self.exponent


def examples() -> tuple[Power, ...]:
    """1/t, and its root."""
    return Power(0.8), Power(0.8, exponent=0.5, time=2.0)


SCHEDULE = Power
REFUSED = ({"time": 0.0, "rate": 1.0}, {"exponent": -1.0, "rate": 1.0})
