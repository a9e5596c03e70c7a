"""The logistic loss of labels 0 and 1, log(1 + e^f) − y f; a label −1 counts as 0."""

import math

from .output import OutputLoss


def value(f: float, y: float) -> float:
    return max(f, 0.0) + math.log1p(math.exp(-abs(f))) - max(y, 0.0) * f


def slope(f: float, y: float) -> float:
    return 0.5 * (1.0 + math.tanh(0.5 * f)) - max(y, 0.0)


def bend(f: float, y: float) -> float:
    t = math.tanh(0.5 * f)
    return 0.25 * (1.0 - t * t)


LOSS = OutputLoss("logistic", value, slope, bend, labels=(0, 1), signs=True)
