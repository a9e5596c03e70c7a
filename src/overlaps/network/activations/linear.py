"""x, with closed forms in `averages.linear`."""

from .definition import Activation


def function(x: float) -> float:
    return x


def derivative(x: float) -> float:
    return 1.0


ACTIVATION = Activation("linear", function, derivative)
