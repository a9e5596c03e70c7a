"""Warm-up, stable, decay: linear up to the rate, constant, linear down."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...interface.checks import number
from .definition import TimeDependent


@dataclass(frozen=True)
class WarmupStableDecay(TimeDependent):
    """A rate that rises from zero, stays, and falls.

    Parameters
    ----------
    rate: in the stable phase.
    warmup, stable, decay: lengths of the three phases.
    final: from their end on.
    """

    rate: float
    warmup: float
    stable: float
    decay: float
    final: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", number("rate", self.rate, least=0))
        for name in ("warmup", "stable", "decay"):
            object.__setattr__(self, name, number(name, getattr(self, name), above=0))
        object.__setattr__(self, "final", number("final", self.final, least=0))

    @property
    def knots(self) -> tuple[float, ...]:
        return self.warmup, self.warmup + self.stable, self.warmup + self.stable + self.decay

    def at(self, t: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.interp(t, (0.0, *self.knots), (0.0, self.rate, self.rate, self.final))


def examples() -> tuple[WarmupStableDecay, ...]:
    """Down to a rate that stays, and to zero."""
    return WarmupStableDecay(0.8, 0.5, 1.0, 1.0, final=0.1), WarmupStableDecay(0.5, 0.5, 1.0, 1.0)


SCHEDULE = WarmupStableDecay
REFUSED = ({"warmup": 0.0, "rate": 1.0, "stable": 1.0, "decay": 1.0},)
