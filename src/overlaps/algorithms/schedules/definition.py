"""What all schedules share: a rate η(t) that depends on time, smooth between its knots; and the constant one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...interface.checks import listed, number
from ...interface.errors import InputError, shown

Array = NDArray[np.float64]


class TimeDependent(ABC):
    """A rate that depends on time: steps per input dimension in one-pass training and many passes, steps otherwise.

    At a jump the rate is the one after it, and `before` gives the one before it.
    """

    @property
    @abstractmethod
    def knots(self) -> tuple[float, ...]:
        """Increasing times at which the rate is not smooth; solvers stop there."""

    @abstractmethod
    def at(self, t: Array) -> Array:
        """The rate at times of any shape."""

    def __call__(self, t: ArrayLike) -> Any:
        """The rate at a time or at times."""
        found = self.at(np.asarray(t, float))
        return float(found) if np.ndim(t) == 0 else found

    def before(self, t: float) -> float:
        """The rate just before a time; that of the time itself unless the rate jumps there."""
        return float(self(t))

    def checked(self, field: str, needed: bool = True) -> TimeDependent:
        """This schedule; refused where a rate is negative or not finite, or, if it is needed, where all are zero."""
        knots = np.array([0.0, *self.knots])
        times = np.concatenate([knots, (knots[1:] + knots[:-1]) / 2, knots[-1] + np.geomspace(1e-3, 1e3, 13)])
        try:
            rates = np.array([*np.ravel(self(times)), *(self.before(t) for t in self.knots)])
        except Exception as error:  # whatever a function of a user's own may raise
            raise InputError(
                f"{field}: {self!r:.80} has no rate at some of the times up to {times.max():g} "
                f"({type(error).__name__}: {error}); give it one at all times"
            ) from None
        if not np.isfinite(rates).all() or rates.min() < 0:
            wrong = rates[~(np.isfinite(rates) & (rates >= 0))][0]
            raise InputError(f"{field}: expected rates of at least 0 at all times, {self!r} has {wrong:g}")
        if rates.max() == 0 and needed:
            raise InputError(f"{field}: {self!r} is zero at all times; nothing would be learned")
        return self


@dataclass(frozen=True)
class Constant(TimeDependent):
    """η(t) = rate; what a plain number stands for."""

    rate: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", number("rate", self.rate, least=0))

    @property
    def knots(self) -> tuple[float, ...]:
        return ()

    def at(self, t: Array) -> Array:
        return np.full(np.shape(t), self.rate)


def as_schedule(value: float | TimeDependent) -> TimeDependent:
    """A number as a schedule that does not change."""
    return value if isinstance(value, TimeDependent) else Constant(value)


def increasing(name: str, values: Any, least: int) -> tuple[float, ...]:
    """Times as a tuple: at least `least` of them, not negative, increasing."""
    times = tuple(number(f"{name}[{i}]", v, least=0) for i, v in enumerate(listed(name, values, "increasing times")))
    if len(times) < least:
        raise InputError(f"{name}: expected at least {least} of them, got {len(times)}")
    if any(b <= a for a, b in pairwise(times)):
        raise InputError(f"{name}: expected increasing times, got {list(times)!r:.80}")
    return times


def nonnegative(name: str, values: Any, count: int) -> tuple[float, ...]:
    """Rates as a tuple of that many numbers, not negative."""
    rates = listed(name, values, f"{count} rates")
    if len(rates) != count:
        raise InputError(f"{name}: expected {count} rates, got {shown(values)}")
    return tuple(number(f"{name}[{i}]", value, least=0) for i, value in enumerate(rates))
