"""Any function of time, with the times at which it is not smooth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...interface.errors import InputError, shown
from .definition import TimeDependent, increasing

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Function(TimeDependent):
    """A rate of one's own.

    >>> Function(lambda t: 1 / (1 + t))(3.0)
    0.25

    Parameters
    ----------
    function: from a time to the rate, both numbers.
    knots: times where it has a kink or jumps; the solvers of macro stop there, and lose accuracy at those not named. A
        peak that their steps pass by is refused where 16 000 points over the whole time show it; a finer one can hide.
    """

    function: Callable[[float], float]
    knots: Sequence[float] = ()  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise InputError(f"function: expected a function of time, got {shown(self.function)}")
        object.__setattr__(self, "knots", increasing("knots", self.knots, 0))

    def at(self, t: Array) -> Array:
        return np.array([float(self.function(float(x))) for x in np.ravel(t)]).reshape(np.shape(t))

    def before(self, t: float) -> float:
        return float(self.function(float(np.nextafter(t, -np.inf)))) if t > 0 and t in self.knots else float(self(t))


def examples() -> tuple[Function, ...]:
    """A kink, and a jump."""
    return Function(lambda t: 0.2 + abs(t - 1) / 4, knots=[1.0]), Function(lambda t: 0.6 if t < 1 else 0.2, knots=[1.0])


SCHEDULE = Function
REFUSED = ({"function": 3.0}, {"knots": [2.0, 1.0], "function": abs})
