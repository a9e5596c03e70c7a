"""The hinge of labels 0 and 1, max(0, 1 − (2y − 1) f); a label −1 counts as 0."""

from .output import OutputLoss


def value(f: float, y: float) -> float:
    return max(0.0, 1.0 - (2.0 * max(y, 0.0) - 1.0) * f)


def slope(f: float, y: float) -> float:
    sign = 2.0 * max(y, 0.0) - 1.0
    return -sign if sign * f < 1.0 else 0.0


def kinks(f: float, y: float) -> float:
    return (2.0 * max(y, 0.0) - 1.0) * f - 1.0


LOSS = OutputLoss("hinge", value, slope, bend=None, labels=(0, 1), signs=True, kinks=kinks)
