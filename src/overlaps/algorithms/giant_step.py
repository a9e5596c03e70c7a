"""One full-batch gradient step of size η = rate·n^exponent on the first layer of a wide network.

Units are those of `overlaps.giant_step`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..interface.checks import number, whole
from ..interface.errors import InputError


@dataclass(frozen=True)
class GiantStep:
    """Full-batch gradient steps on the first layer whose size grows with the number of samples n, η = rate·n^exponent.

    Parameters
    ----------
    rate, exponent: of the step size; see `window` for what the exponent decides.
    heads: 2 for two outputs with labels y and −y (classification), 1 for one output with labels y (regression).
    steps: how many; theory is for one, `overlaps.giant_step.train` takes any number.
    """

    rate: float = 1.0
    exponent: float = 0.25
    heads: int = 2
    steps: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", number("rate", self.rate, above=0))
        object.__setattr__(self, "exponent", number("exponent", self.exponent))
        object.__setattr__(self, "heads", whole("heads", self.heads, least=1, most=2))
        object.__setattr__(self, "steps", whole("steps", self.steps, least=1, most=10**6))

    def size(self, samples: int) -> float:
        """η of n = `samples`."""
        with np.errstate(over="ignore"):
            eta = float(self.rate * np.float64(samples) ** self.exponent)
        if not np.isfinite(eta):
            raise InputError(f"exponent: {self.exponent:g} makes an infinite step of {samples} samples; lower it")
        return eta

    @property
    def window(self) -> ExponentWindow:
        """The window of exponents, (l − 1)/(2l) < exponent < l/(2l + 2), that this one is in."""
        a = self.exponent
        if not 0 <= a < 0.5:
            return ExponentWindow(a, None, False)
        below = a - 1e-12
        order = max(1, math.ceil(2 * below / (1 - 2 * below)))  # the least l with a ≤ l/(2l + 2)
        edge = a < 1e-12 or abs(a - order / (2 * order + 2)) <= 1e-12
        return ExponentWindow(a, order + (edge and a > 1e-12), edge)


@dataclass(frozen=True)
class ExponentWindow:
    """Which Hermite components of the activation the features of a giant step hold as n grows.

    Attributes
    ----------
    exponent: of the step size.
    order: l, the degree up to which they count; on a boundary that of the upper window; None outside all windows.
    boundary: whether the exponent is on the boundary of two windows, which the strict inequalities leave out.
    """

    exponent: float
    order: int | None
    boundary: bool

    def __str__(self) -> str:
        if self.order is None:
            where = "at or above 1/2" if self.exponent > 0 else "below 0"
            return f"exponent {self.exponent:g} is {where}, outside all windows"
        if self.boundary and self.order == 1:
            return f"exponent {self.exponent:g} is on the lower boundary of the window of order 1"
        if self.boundary:
            orders = f"{self.order - 1} and {self.order}"
            return f"exponent {self.exponent:g} is on the boundary of the windows of order {orders}"
        low, high = (self.order - 1) / (2 * self.order), self.order / (2 * self.order + 2)
        return f"exponent {self.exponent:g} is in the window of order {self.order}, from {low:.4g} to {high:.4g}"
