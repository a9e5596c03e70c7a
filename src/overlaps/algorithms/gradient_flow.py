"""Gradient flow on the generalisation error, the limit of SGD of vanishing rate at fixed η t,

    dw/dt = −(η/N) (E[∂loss/∂λ xᵀ] + β w)

where the order η² of SGD, its noise, is gone: what papers call "terms up to O(η)".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..interface.checks import number
from .schedules import TimeDependent, rate_or_schedule
from .schedules.definition import as_schedule
from .update import OnePass, Update

Array = NDArray[np.float64]


@dataclass(frozen=True)
class GradientFlow(OnePass):
    """SGD without its noise, the limit of small rates; for `solve` alone, since no sample is ever drawn.

    Parameters
    ----------
    rate: η, which only sets the unit of time; a number or a schedule.
    readout_rate, decay: as in `OnlineSGD`.
    """

    rate: float | TimeDependent
    readout_rate: float | TimeDependent | None = None
    decay: float = 0.0

    draws_samples = False
    batch = 1
    rows = limit_rows = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", rate_or_schedule("rate", self.rate, above=0))
        if self.readout_rate is not None:
            object.__setattr__(self, "readout_rate", rate_or_schedule("readout_rate", self.readout_rate))
        object.__setattr__(self, "decay", number("decay", self.decay, least=0))

    def step(self, rate: Array, size: int) -> tuple[Array, Array]:
        """L and p of a step without noise, for the interface of algorithms: gradient flow itself takes no steps."""
        return 1 - (rate * self.decay / size)[:, None, None], rate[:, None].copy()

    def limit(self, rate: float) -> tuple[Array, Array]:
        """M (1, 1) and P (1,) for a rate."""
        return np.array([[-rate * self.decay]]), np.array([rate])

    def update(self, trains_readout: bool) -> Update:
        """The motion of both layers."""
        readout = self.rate if self.readout_rate is None else self.readout_rate
        return Update(self, as_schedule(self.rate), as_schedule(readout) if trains_readout else None, noise=0.0)

    @property
    def plain(self) -> bool:
        """Whether the rates are constant."""
        return not self.update(True).changes


def examples() -> tuple[GradientFlow, ...]:
    """One example for the contract tests."""
    return (GradientFlow(rate=0.3, readout_rate=0.1, decay=0.01),)


ALGORITHM = GradientFlow
REFUSED = ({"rate": 0.0}, {"readout_rate": -0.1, "rate": 0.3}, {"decay": -1.0, "rate": 0.3})
