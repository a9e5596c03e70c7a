"""Closed forms that need no solver: linear networks, ridge regression, scaling windows, plateaus, late decay, mixtures.

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
from .ridge import ridge_error
from .softmax import softmax_energy, softmax_fixed_point, softmax_outliers
from .xor import (
    hidden_classes,
    xor_flow,
    xor_initial_outlier,
    xor_norm,
    xor_outliers,
    xor_readout_block,
    xor_transition,
)

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
    "hidden_classes",
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
    "ridge_error",
    "single_vector",
    "small_rate_error",
    "softmax_energy",
    "softmax_fixed_point",
    "softmax_outliers",
    "time_exponent",
    "typical_teacher",
    "window",
    "xor_flow",
    "xor_initial_outlier",
    "xor_norm",
    "xor_outliers",
    "xor_readout_block",
    "xor_transition",
]
