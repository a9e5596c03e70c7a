"""Closed forms that need no solver: learning curves of linear networks, scaling windows, plateaus, late decay.

Every law says in its docstring what it is exact for, and refuses the rest.
"""

from .asymptote import decay_rates, late_error, late_modes, near_error
from .features import feature_floor, partial_error, partial_floor, partial_floors, random_basis_floor
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
from .plateaus import Plateau, equal_rows, plateau, typical_teacher
from .powerlaw import Window, gamma_error, power_error, power_floor, time_exponent, window

__all__ = [
    "Modes",
    "Plateau",
    "SingleVector",
    "Window",
    "critical_rate",
    "decay_rates",
    "equal_rows",
    "feature_floor",
    "finite_size_error",
    "gamma_error",
    "late_error",
    "late_modes",
    "linear_error",
    "linear_modes",
    "near_error",
    "partial_error",
    "partial_floor",
    "partial_floors",
    "plateau",
    "power_error",
    "power_floor",
    "random_basis_floor",
    "single_vector",
    "small_rate_error",
    "time_exponent",
    "typical_teacher",
    "window",
]
