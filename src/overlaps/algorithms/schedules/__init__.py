"""Rates that depend on time; every file here is a schedule.

>>> from overlaps import OnlineSGD, schedules
>>> OnlineSGD(rate=schedules.Cosine(rate=0.5, time=10.0)).rate
Cosine(rate=0.5, time=10.0, final=0.0)
"""

from __future__ import annotations

from typing import Any

from ...interface.checks import number
from ...interface.folder import modules, part
from .cosine import Cosine
from .definition import Constant, TimeDependent
from .exponential import Exponential
from .function import Function
from .linear import Schedule
from .power import Power
from .steps import Steps
from .warmup import WarmupStableDecay

SCHEDULES: tuple[type[TimeDependent], ...] = tuple(
    part(module, "SCHEDULE") for module in modules(__name__, besides=("definition",)).values()
)


def rate_or_schedule(field: str, value: Any, *, above: float | None = None) -> float | TimeDependent:
    """A rate as it is given, checked: a number, or a schedule."""
    if isinstance(value, TimeDependent):
        return value.checked(field, needed=above is not None)
    return number(field, value, above=above, least=0)


__all__ = [
    "Constant",
    "Cosine",
    "Exponential",
    "Function",
    "Power",
    "Schedule",
    "Steps",
    "WarmupStableDecay",
]
