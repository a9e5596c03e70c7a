"""The rate that does not change."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...interface.checks import number
from .definition import TimeDependent


@dataclass(frozen=True)
class Constant(TimeDependent):
    """η(t) = rate; what a plain number stands for."""

    rate: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", number("rate", self.rate, least=0))

    @property
    def knots(self) -> tuple[float, ...]:
        return ()

    def at(self, t: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.full(np.shape(t), self.rate)


def examples() -> tuple[Constant, ...]:
    """One."""
    return (Constant(0.4),)


SCHEDULE = Constant
REFUSED = ({"rate": -1.0},)
