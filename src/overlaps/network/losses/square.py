"""The square loss, (f − y)²/2; with closed forms of its averages in `averages.closed`."""

from .output import OutputLoss


def value(f: float, y: float) -> float:
    return 0.5 * (f - y) * (f - y)


def slope(f: float, y: float) -> float:
    return f - y


def bend(f: float, y: float) -> float:
    return 1.0


LOSS = OutputLoss("square", value, slope, bend)
