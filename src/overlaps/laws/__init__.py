"""Closed forms that need no solver: learning curves of linear networks, scaling windows, plateaus, late decay.

Every law says in its docstring what it is exact for, and refuses the rest.
"""

from .features import feature_floor, partial_error, partial_floor
from .linear import (
    Modes,
    SingleVector,
    critical_rate,
    finite_size_error,
    linear_error,
    linear_modes,
    single_vector,
    small_rate_error,
)
from .powerlaw import Window, gamma_error, power_error, power_floor, time_exponent, window

__all__ = [
    "Modes",
    "SingleVector",
    "Window",
    "critical_rate",
    "feature_floor",
    "finite_size_error",
    "gamma_error",
    "linear_error",
    "linear_modes",
    "partial_error",
    "partial_floor",
    "power_error",
    "power_floor",
    "single_vector",
    "small_rate_error",
    "time_exponent",
    "window",
]
