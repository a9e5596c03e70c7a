"""log(1 + e^x), whose slope is the logistic function; its averages are quadratures."""

import math

from .definition import Activation


def function(x: float) -> float:
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))  # never overflows


def derivative(x: float) -> float:
    if x >= 0.0:
        return 1.0 / (1.0 + math.exp(-x))
    e = math.exp(x)
    return e / (1.0 + e)


ACTIVATION = Activation("softplus", function, derivative)
