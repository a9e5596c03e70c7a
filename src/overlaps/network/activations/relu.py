"""max(0, x), with closed forms in `averages.relu`."""

from .definition import Activation


def function(x: float) -> float:
    return x if x > 0.0 else 0.0


def derivative(x: float) -> float:
    return 1.0 if x > 0.0 else 0.0


ACTIVATION = Activation("relu", function, derivative, kinks=(0.0,))
