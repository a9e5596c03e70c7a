"""tanh x; its averages are quadratures."""

import math

from .definition import Activation


def function(x: float) -> float:
    return math.tanh(x)


def derivative(x: float) -> float:
    t = math.tanh(x)
    return 1.0 - t * t


ACTIVATION = Activation("tanh", function, derivative)
