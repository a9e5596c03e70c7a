"""Training algorithms.

One-pass stochastic gradient descent, a fresh sample at every step,

    w ← w − (η/N) (∂loss/∂λ xᵀ + β w)          v ← v − (η_v/N) (∂loss/∂v + β v)

with |w| = O(1), |x|² = O(N) and time t = steps/N.
"""

from __future__ import annotations

from dataclasses import dataclass

from .checks import number


@dataclass(frozen=True)
class OnlineSGD:
    """One-pass SGD.

    Parameters
    ----------
    rate: η, learning rate of the first layer.
    readout_rate: η_v, learning rate of the second layer where it is trained; ``None`` means `rate`.
    decay: β, weight decay of all trained weights.
    """

    rate: float
    readout_rate: float | None = None
    decay: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", number("rate", self.rate, above=0))
        if self.readout_rate is not None:
            object.__setattr__(self, "readout_rate", number("readout_rate", self.readout_rate, least=0))
        object.__setattr__(self, "decay", number("decay", self.decay, least=0))
