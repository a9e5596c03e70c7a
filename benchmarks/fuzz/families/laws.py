"""Closed forms."""

from __future__ import annotations

import numpy as np

import overlaps as ov

from ..problems import (
    FLOW,
    LAW,
    RNG,
    ROWS,
    TIMES,
    VECTOR,
    WEIGHTS,
    Case,
    T,
)

TYPICAL, MEANS = ov.laws.typical_teacher(FLOW), 0.1 * np.eye(2)
CASES: dict[str, Case] = {
    "critical_rate": (ov.laws.critical_rate, {"spectrum": LAW, "size": 50}),
    "decay_rates": (ov.laws.decay_rates, {"problem": FLOW, "T": T}),
    "equal_rows": (ov.laws.equal_rows, {"T": TYPICAL}),
    "feature_floor": (ov.laws.feature_floor, {"spectrum": LAW, "trained": 2, "rate": 0.1, "distance": 1.0}),
    "finite_size_error": (
        ov.laws.finite_size_error,
        {"spectrum": LAW, "size": 50, "rate": 0.1, "times": TIMES, "distance": 1.0, "trained": 2},
    ),
    "gamma_error": (
        ov.laws.gamma_error,
        {"spectrum": LAW, "rate": 0.1, "times": TIMES, "distance": 1.0, "trained": 2},
    ),
    "hidden_classes": (ov.laws.hidden_classes, {"units": 3, "classes": 4}),
    "late_error": (
        ov.laws.late_error,
        {"problem": FLOW, "Q": TYPICAL, "R": TYPICAL, "times": TIMES, "T": TYPICAL, "order": 2},
    ),
    "late_modes": (ov.laws.late_modes, {"problem": FLOW, "Q": TYPICAL, "R": TYPICAL, "T": TYPICAL, "order": 2}),
    "linear_error": (
        ov.laws.linear_error,
        {"spectrum": LAW, "rate": 0.1, "times": TIMES, "distance": 1.0, "trained": 2},
    ),
    "linear_modes": (ov.laws.linear_modes, {"spectrum": LAW, "rate": 0.1, "distance": 1.0, "trained": 2}),
    "near_error": (ov.laws.near_error, {"problem": FLOW, "Q": T, "R": T, "T": T, "order": 2}),
    "partial_error": (
        ov.laws.partial_error,
        {"covariance": np.eye(3) + 0.1, "trained": 2, "rate": 0.1, "times": TIMES, "distance": 1.0},
    ),
    "partial_floor": (
        ov.laws.partial_floor,
        {"covariance": np.eye(3) + 0.1, "trained": 2, "rate": 0.1, "distance": 1.0},
    ),
    "partial_floors": (ov.laws.partial_floors, {"covariance": np.eye(3) + 0.1, "rate": 0.1, "distance": 1.0}),
    "plateau": (ov.laws.plateau, {"problem": FLOW, "T": TYPICAL}),
    "power_error": (ov.laws.power_error, {"spectrum": LAW, "rate": 0.1, "times": [2.0, 10.0], "distance": 1.0}),
    "power_floor": (ov.laws.power_floor, {"spectrum": LAW, "trained": 2, "distance": 1.0}),
    "random_basis_floor": (
        ov.laws.random_basis_floor,
        {"spectrum": LAW, "share": 0.5, "rate": 0.1, "distance": 1.0},
    ),
    "ridge_error": (
        ov.laws.ridge_error,
        {"data": ov.Samples(ROWS, RNG.normal(size=40)), "samples": [10, 20], "decay": 0.1},
    ),
    "single_vector": (ov.laws.single_vector, {"problem": VECTOR, "scale": 0.5}),
    "small_rate_error": (
        ov.laws.small_rate_error,
        {"spectrum": LAW, "rate": 0.1, "times": TIMES, "distance": 1.0, "trained": 2},
    ),
    "softmax_energy": (ov.laws.softmax_energy, {"m": MEANS, "Q": T, "weights": WEIGHTS, "decay": 0.1}),
    "softmax_fixed_point": (ov.laws.softmax_fixed_point, {"gram": T, "weights": WEIGHTS, "decay": 0.1}),
    "softmax_outliers": (
        ov.laws.softmax_outliers,
        {"gram": T, "weights": WEIGHTS, "m": MEANS, "kind": "hessian"},
    ),
    "time_exponent": (ov.laws.time_exponent, {"exponent": 0.5}),
    "typical_teacher": (ov.laws.typical_teacher, {"problem": FLOW}),
    "window": (ov.laws.window, {"spectrum": LAW, "rate": 0.1}),
    "xor_flow": (
        ov.laws.xor_flow,
        {"v": [1.0, -1.0], "m_mu": [0.5, 0.0], "m_nu": [0.0, 0.5], "decay": 0.1, "times": TIMES},
    ),
    "xor_initial_outlier": (ov.laws.xor_initial_outlier, {"units": 2, "variance": 0.1}),
    "xor_norm": (ov.laws.xor_norm, {"decay": 0.1}),
    "xor_outliers": (
        ov.laws.xor_outliers,
        {"v": [1.0, -1.0], "m_mu": [0.5, 0.0], "m_nu": [0.0, 0.5], "Q": T, "variance": 0.1, "kind": "hessian"},
    ),
    "xor_readout_block": (
        ov.laws.xor_readout_block,
        {"v": [1.0, -1.0], "m_mu": [0.5, 0.0], "m_nu": [0.0, 0.5], "kind": "hessian"},
    ),
    "xor_transition": (ov.laws.xor_transition, {"variance": 0.1}),
}
