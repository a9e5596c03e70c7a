"""Data models, spectra and schedules."""

from __future__ import annotations

import numpy as np

import overlaps as ov
from overlaps.algorithms import schedules

from ..problems import (
    LABELS,
    LAW,
    ROWS,
    Case,
)

CASES: dict[str, Case] = {
    "PowerLaw": (ov.PowerLaw, {"levels": 3, "exponent": 0.5}),
    "Spectrum": (ov.Spectrum, {"eigenvalues": [2.0, 1.0], "fractions": [0.5, 0.5], "source": ""}),
    "Spectrum.from_data": (ov.Spectrum.from_data, {"source": ROWS, "centre": True}),
    "GaussianInputs": (ov.GaussianInputs, {"spectrum": LAW}),
    "GaussianMixture": (
        ov.GaussianMixture,
        {"means": 2, "weights": [0.5, 0.5], "variance": 0.5, "labels": [0, 1], "spectrum": ov.Isotropic()},
    ),
    "GaussianMixture.from_covariances": (
        ov.GaussianMixture.from_covariances,
        {
            "means": np.eye(2, 3),
            "covariances": np.array([np.eye(3)] * 2),
            "weights": [0.5, 0.5],
            "labels": [0, 1],
        },
    ),
    "HiddenManifold": (
        ov.HiddenManifold,
        {"latent_dim": 3, "features": "gaussian", "nonlinearity": "sign", "centre": True, "seed": 0},
    ),
    "LatentMixture": (
        ov.LatentMixture,
        {
            "components": 2,
            "bound": 0.5,
            "label": "sample",
            "means": "vector",
            "weights": [0.5, 0.5],
            "standardise": None,
            "seed": 0,
        },
    ),
    "Samples": (ov.Samples, {"source": ROWS, "y": LABELS, "standardise": False, "centre": True}),
    "classes.Samples": (ov.Samples, {"source": ROWS, "y": np.arange(len(ROWS)) % 2, "groups": 2}),
    "StudentInputs": (ov.StudentInputs, {"degrees": 8.0, "spectrum": LAW, "values": 3}),
    "Schedule": (ov.Schedule, {"times": [0.0, 1.0], "rates": [0.5, 0.1]}),
    "schedules.Constant": (schedules.Constant, {"rate": 0.1}),
    "schedules.Cosine": (schedules.Cosine, {"rate": 0.5, "time": 2.0, "final": 0.1}),
    "schedules.Exponential": (schedules.Exponential, {"rate": 0.5, "time": 2.0}),
    "schedules.Power": (schedules.Power, {"rate": 0.5, "exponent": 1.0, "time": 1.0}),
    "schedules.Steps": (schedules.Steps, {"times": [1.0], "rates": [0.5, 0.1]}),
    "schedules.WarmupStableDecay": (
        schedules.WarmupStableDecay,
        {"rate": 0.5, "warmup": 1.0, "stable": 1.0, "decay": 1.0, "final": 0.0},
    ),
    "GaussianClasses": (
        ov.GaussianClasses,
        {"means": np.eye(2, 3), "covariances": np.array([np.eye(3)] * 2), "weights": [0.5, 0.5], "labels": [0, 1]},
    ),
    "schedules.Function": (schedules.Function, {"function": lambda t: 0.5, "knots": [1.0]}),
}
