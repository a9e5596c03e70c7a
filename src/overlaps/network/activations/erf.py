"""erf(x/√2), the activation whose Gaussian averages are arcsines (see `averages.erf`)."""

import math

from .definition import Activation

_SQRT_HALF = math.sqrt(0.5)
_SQRT_2_OVER_PI = math.sqrt(2 / math.pi)


def function(x: float) -> float:
    return math.erf(x * _SQRT_HALF)


def derivative(x: float) -> float:
    return _SQRT_2_OVER_PI * math.exp(-0.5 * x * x)


ACTIVATION = Activation("erf", function, derivative)
