"""The rate that does not change; it is what a plain number stands for, and defined with what all schedules share."""

from __future__ import annotations

from .definition import Constant


def examples() -> tuple[Constant, ...]:
    """One example for the contract tests."""
    return (Constant(0.4),)


SCHEDULE = Constant
REFUSED = ({"rate": -1.0},)
