"""Cosine annealing, η(t) = final + (rate − final) (1 + cos(π t/time))/2 up to `time`, and `final` from then on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...interface.checks import number
from .definition import TimeDependent


@dataclass(frozen=True)
class Cosine(TimeDependent):
    """From `rate` to `final` along half a cosine.

    Parameters
    ----------
    rate: at time zero.
    time: when `final` is reached.
    final: from then on.
    """

    rate: float
    time: float
    final: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", number("rate", self.rate, least=0))
        object.__setattr__(self, "time", number("time", self.time, above=0))
        object.__setattr__(self, "final", number("final", self.final, least=0))

    @property
    def knots(self) -> tuple[float, ...]:
        return (self.time,)

    def at(self, t: NDArray[np.float64]) -> NDArray[np.float64]:
        share = np.clip(t / self.time, 0.0, 1.0)
        return self.final + (self.rate - self.final) * (1 + np.cos(np.pi * share)) / 2


def examples() -> tuple[Cosine, ...]:
    """Down to zero, and to a rate that stays."""
    return Cosine(0.8, 2.0), Cosine(0.8, 1.5, final=0.2)


SCHEDULE = Cosine
REFUSED = ({"time": 0.0, "rate": 1.0}, {"rate": -1.0, "time": 1.0})
