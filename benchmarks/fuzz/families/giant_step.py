"""One giant step, and the scores of its features."""

from __future__ import annotations

import numpy as np

import overlaps as ov

from ..problems import (
    QUIET,
    RNG,
    Case,
    T,
)

FEATURES, HEADS = RNG.normal(size=(12, 4)), np.ones((1, 2))
SETTING = ov.giant_step.GiantStepSetting(ov.giant_step.TwoClasses(), ov.GiantStep(), 10, 20, 6, "tanh")
UNSEEN = ov.giant_step.scaled(SETTING.direction, [0.1, 0.2])
CASES: dict[str, Case] = {
    "TwoClasses": (ov.giant_step.TwoClasses, {"kind": "sphere", "distance": None}),
    "GiantStepSetting": (
        ov.giant_step.GiantStepSetting,
        {
            "data": ov.giant_step.TwoClasses(),
            "algorithm": ov.GiantStep(),
            "size": 10,
            "samples": 20,
            "units": 6,
            "activation": "tanh",
        },
    ),
    "UnseenClass": (ov.giant_step.UnseenClass, {"mean": np.eye(4)[0], "covariance": "projected", "value": 1.0}),
    "alignment": (ov.giant_step.alignment, {"features": FEATURES}),
    "alignment_error": (ov.giant_step.alignment_error, {"features": FEATURES}),
    "centred": (ov.giant_step.centred, {"which": "relu"}),
    "combined": (ov.giant_step.combined, {"p_values": [0.1, 0.5]}),
    "correlation": (ov.giant_step.correlation, {"x": [1.0, 2.0, 3.0, 5.0], "y": [1.0, 2.0, 2.5, 4.0]}),
    "elasticity": (ov.giant_step.elasticity, {"features": FEATURES, "before": FEATURES + 0.1}),
    "elasticity_error": (ov.giant_step.elasticity_error, {"features": FEATURES, "before": FEATURES + 0.1}),
    "gaussian_moment": (ov.giant_step.gaussian_moment, {"powers": [2, 2], "covariance": T, "mean": [0.1, 0.2]}),
    "gradient": (
        ov.giant_step.gradient,
        {
            "X": FEATURES,
            "y": np.sign(FEATURES[:, 0]),
            "W": RNG.normal(size=(4, 2)),
            "heads": HEADS,
            "g": "tanh",
        },
    ),
    "hermite_coefficients": (ov.giant_step.hermite_coefficients, {"which": "tanh", "order": 3}),
    "hermite_mean": (ov.giant_step.hermite_mean, {"k": 2, "mean": 0.5, "variance": 1.0}),
    "hermite_product": (ov.giant_step.hermite_product, {"j": 1, "k": 2, "covariance": T, "mean": [0.1, 0.2]}),
    "hits": (
        ov.giant_step.hits,
        {"features": FEATURES, "labels": np.arange(12) % 2, "neighbours": 1, "similarity": "cosine"},
    ),
    "recall": (
        ov.giant_step.recall,
        {"features": FEATURES, "labels": np.arange(12) % 2, "neighbours": 1, "similarity": "cosine"},
    ),
    "recall_error": (
        ov.giant_step.recall_error,
        {"features": FEATURES, "labels": np.arange(12) % 2, "neighbours": 1, "similarity": "cosine"},
    ),
    "initial_series": (
        ov.giant_step.initial_series,
        {"c": [0.0, 1.0, 0.5], "mean": [0.1, 0.2], "covariance": T},
    ),
    "kendall_w": (ov.giant_step.kendall_w, {"values": FEATURES}),
    "operator_norm": (ov.giant_step.operator_norm, {"A": FEATURES}),
    "rank_one": (
        ov.giant_step.rank_one,
        {"X": FEATURES, "y": np.sign(FEATURES[:, 0]), "heads": HEADS, "g": "tanh"},
    ),
    "rotated": (ov.giant_step.rotated, {"direction": np.eye(4)[0], "sizes": [0.1, 0.2], "seed": 0}),
    "scaled": (ov.giant_step.scaled, {"direction": np.eye(4)[0], "scales": [0.1, 0.2]}),
    "sphere_moment": (ov.giant_step.sphere_moment, {"p": 2, "k": 1, "mean": [0.1, 0.2], "covariance": T}),
    "TrainingSet": (ov.giant_step.TrainingSet, {"X": FEATURES, "y": np.sign(FEATURES[:, 0])}),
    "expanded_features": (
        ov.giant_step.expanded_features,
        {
            "x": FEATURES,
            "before": FEATURES[:, :2],
            "b": FEATURES[0],
            "alpha": [0.5, -0.5],
            "eta": 0.7,
            "order": 3,
            "g": "tanh",
        },
    ),
    "gradient_error": (ov.giant_step.gradient_error, {"G": FEATURES, "first": FEATURES[:, 0], "second": FEATURES[0]}),
    "solve": (
        ov.giant_step.solve,
        {"setting": SETTING, "unseen": UNSEEN, "method": "per-neuron", "order": None, **QUIET},
    ),
    "train": (
        ov.giant_step.train,
        {"setting": SETTING, "unseen": UNSEEN, "runs": 2, "points": 8, "seed": 0, "with_recall": True, **QUIET},
    ),
}
