"""Training algorithms.

One-pass stochastic gradient descent, a fresh sample at every step,

    w ← w − (η/N) (∂loss/∂λ xᵀ + β w)          v ← v − (η_v/N) (∂loss/∂v + β v)

with |w| = O(1), |x|² = O(N) and time t = steps/N. Its limit of vanishing rate at fixed η t is gradient flow on the
generalisation error,

    dw/dt = −(η/N) (E[∂loss/∂λ xᵀ] + β w)

where the order η² of SGD, its noise, is gone: what papers call "terms up to O(η)".
"""

from __future__ import annotations

from dataclasses import dataclass

from .checks import number


@dataclass(frozen=True)
class _FirstOrder:
    """The rates of a first-order algorithm."""

    rate: float
    readout_rate: float | None = None
    decay: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", number("rate", self.rate, above=0))
        if self.readout_rate is not None:
            object.__setattr__(self, "readout_rate", number("readout_rate", self.readout_rate, least=0))
        object.__setattr__(self, "decay", number("decay", self.decay, least=0))


@dataclass(frozen=True)
class OnlineSGD(_FirstOrder):
    """One-pass SGD.

    Parameters
    ----------
    rate: η, learning rate of the first layer.
    readout_rate: η_v, learning rate of the second layer where it is trained; ``None`` means `rate`.
    decay: β, weight decay of all trained weights.
    """


@dataclass(frozen=True)
class GradientFlow(_FirstOrder):
    """SGD without its noise, the limit of small rates; for `solve` alone, since no sample is ever drawn.

    Parameters
    ----------
    rate: η, which only sets the unit of time.
    readout_rate, decay: as in `OnlineSGD`.
    """
