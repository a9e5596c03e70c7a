"""Training algorithms; those of a `Problem` are one file each, found by itself."""

from __future__ import annotations

from typing import Any

from ..interface.folder import modules
from . import schedules
from .full_batch import METHODS, FullBatch
from .giant_step import ExponentWindow, GiantStep
from .gradient_flow import GradientFlow
from .multi_pass import MultiPass
from .online_sgd import OnlineSGD
from .schedules import Schedule, TimeDependent
from .update import Flow, Matrices, Update

ALGORITHMS: tuple[type[Any], ...] = tuple(
    module.ALGORITHM for module in modules(__name__).values() if hasattr(module, "ALGORITHM")
)

__all__ = [
    "ALGORITHMS",
    "METHODS",
    "ExponentWindow",
    "Flow",
    "FullBatch",
    "GiantStep",
    "GradientFlow",
    "Matrices",
    "MultiPass",
    "OnlineSGD",
    "Schedule",
    "TimeDependent",
    "Update",
    "schedules",
]
