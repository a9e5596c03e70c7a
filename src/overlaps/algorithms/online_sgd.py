"""One-pass stochastic gradient descent, a batch of fresh samples at every step.

    w ← w − (η/N) (⟨∂loss/∂λ xᵀ⟩ + β w)          v ← v − (η_v/N) (⟨∂loss/∂v⟩ + β v)

with |w| = O(1), |x|² = O(N), time t = steps/N, and ⟨…⟩ the mean over the batch. In the notation of
`overlaps.algorithms.update`, with g the gradient without decay:

    plain        w ← w − η (g + βw/N)                                  M = −ηβ                       P = η
    momentum s   u ← s u − η (g + βw/N),  w ← w + u                    M = −ηβ/(1 − s)               P = η/(1 − s)
    memory τ     u ← (1 − 1/(Nτ)) u + (g + βw/N)/τ,  w ← w − (η/N) u   M = (0, −η; β/τ, −1/τ)        P = (0, −1/τ)

Momentum at fixed s is forgotten within some 1/(1 − s) steps, a time that vanishes as N → ∞: the limit is that of SGD
with rate η/(1 − s). A memory that lasts for a time τ stays in the limit. There u is N times the moving average of the
gradient, and the whole effect of a gradient is η, as without memory.

>>> from overlaps import OnlineSGD
>>> OnlineSGD(rate=0.5, momentum=0.9).limit(0.5)[1]
array([5.])
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..interface.checks import number, whole
from ..interface.errors import InputError
from .schedules import TimeDependent, rate_or_schedule
from .schedules.definition import as_schedule
from .update import OnePass, Update

Array = NDArray[np.float64]


@dataclass(frozen=True)
class OnlineSGD(OnePass):
    """One-pass SGD.

    Parameters
    ----------
    rate: η, learning rate of the first layer: a number, or a schedule such as `Schedule`.
    readout_rate: η_v, learning rate of the second layer where it is trained; ``None`` means `rate`.
    decay: β, weight decay of all trained weights.
    batch: b, fresh samples a step; time is steps per input dimension whatever b is.
    momentum: s of heavy-ball momentum, from 0 to below 1.
    memory: τ, the time in which a moving average of the gradient forgets; in place of momentum.
    """

    rate: float | TimeDependent
    readout_rate: float | TimeDependent | None = None
    decay: float = 0.0
    batch: int = 1
    momentum: float = 0.0
    memory: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", rate_or_schedule("rate", self.rate, above=0))
        if self.readout_rate is not None:
            object.__setattr__(self, "readout_rate", rate_or_schedule("readout_rate", self.readout_rate))
        object.__setattr__(self, "decay", number("decay", self.decay, least=0))
        object.__setattr__(self, "batch", whole("batch", self.batch, least=1))
        object.__setattr__(self, "momentum", number("momentum", self.momentum, least=0))
        if self.momentum >= 1:
            raise InputError(f"momentum: expected a number below 1, got {self.momentum:g}; nothing would be forgotten")
        if self.memory is not None:
            object.__setattr__(self, "memory", number("memory", self.memory, above=0))
            if self.momentum:
                raise InputError("memory: a moving average takes the place of momentum; give one of the two, not both")

    @property
    def rows(self) -> int:
        """Rows of a unit: its weights, and its velocity where there is one."""
        return 1 if self.momentum == 0 and self.memory is None else 2

    @property
    def limit_rows(self) -> int:
        """Rows of a unit in the limit, where momentum is forgotten at once."""
        return 1 if self.memory is None else 2

    def step(self, rate: Array, size: int) -> tuple[Array, Array]:
        """L (steps, J, J) and p (steps, J) for the rates (steps,) at a size."""
        J, s = self.rows, self.momentum
        keep, pull = np.empty((rate.size, J, J)), np.empty((rate.size, J))
        lost = rate * self.decay / size
        if self.memory is not None:
            if size * self.memory < 1:
                raise InputError(
                    f"memory: {self.memory:g} is less than one step at size {size}; use at least 1/size, or no memory"
                )
            moved = rate / (size * self.memory)  # what one gradient moves the weights by at once
            left = 1 - 1 / (size * self.memory)
            keep[:, 0, 0], keep[:, 0, 1] = 1 - moved * self.decay / size, -rate * left / size
            keep[:, 1, 0], keep[:, 1, 1] = self.decay / (size * self.memory), left
            pull[:, 0], pull[:, 1] = moved, -1 / self.memory
        elif s:
            keep[:, 0, 0], keep[:, 0, 1] = 1 - lost, s
            keep[:, 1, 0], keep[:, 1, 1] = -lost, s
            pull[:, 0] = pull[:, 1] = rate
        else:
            keep[:, 0, 0], pull[:, 0] = 1 - lost, rate
        return keep, pull

    def limit(self, rate: float) -> tuple[Array, Array]:
        """M (J, J) and P (J,) for a rate."""
        if self.memory is not None:
            forgets = 1 / self.memory
            return np.array([[0.0, -rate], [self.decay * forgets, -forgets]]), np.array([0.0, -forgets])
        whole_effect = rate / (1 - self.momentum)
        return np.array([[-whole_effect * self.decay]]), np.array([whole_effect])

    def update(self, trains_readout: bool) -> Update:
        """The step of both layers."""
        readout = self.rate if self.readout_rate is None else self.readout_rate
        return Update(
            self, as_schedule(self.rate), as_schedule(readout) if trains_readout else None, self.batch, 1 / self.batch
        )

    @property
    def plain(self) -> bool:
        """Whether this is SGD at constant rates with one sample a step and no momentum, which laws are written for."""
        return not (self.update(True).changes or self.batch > 1 or self.momentum or self.memory is not None)


def examples() -> tuple[OnlineSGD, ...]:
    """Every part of a step, one after another and together."""
    from .schedules import Schedule, Steps

    return (
        OnlineSGD(rate=0.3, readout_rate=0.1, decay=0.01),
        OnlineSGD(rate=0.6, batch=8),
        OnlineSGD(rate=Schedule([0.0, 1.0, 2.0], [0.2, 0.8, 0.1])),
        OnlineSGD(rate=0.05, momentum=0.9),
        OnlineSGD(rate=0.5, memory=2.0),
        OnlineSGD(rate=Steps([1.0], [0.2, 0.1]), decay=0.1, batch=4, momentum=0.5),
    )


ALGORITHM = OnlineSGD
REFUSED = (
    {"rate": 0.0},
    {"readout_rate": -0.1, "rate": 0.3},
    {"decay": -1.0, "rate": 0.3},
    {"batch": 0, "rate": 0.3},
    {"momentum": 1.0, "rate": 0.3},
    {"memory": 0.0, "rate": 0.3},
    {"memory": 1.0, "momentum": 0.5, "rate": 0.3},
)
