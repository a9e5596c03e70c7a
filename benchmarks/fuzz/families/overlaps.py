"""The scales, what they start from, and what is done with their results."""

from __future__ import annotations

from typing import Any

import numpy as np

import overlaps as ov

from ..problems import (
    LAW,
    NET,
    QUIET,
    RNG,
    START,
    TIMES,
    VECTOR,
    VECTOR_START,
    Case,
    P,
)

MACRO, MESO = ov.solve(P, START, TIMES), ov.sample(P, START, TIMES, runs=3, progress=False)
EVEN_TIMES = ov.logtimes(0.1, 1.6, 5)
EVEN = ov.solve(P, START, EVEN_TIMES), ov.sample(P, START, EVEN_TIMES, runs=3, progress=False)
C = np.eye(4) + 0.3
CLASSES = ov.Problem(
    data=ov.Samples(RNG.normal(size=(60, 3)), np.arange(60) % 2),
    student=ov.Committee(1, "linear"),
    algorithm=ov.OnlineSGD(0.3),
    loss="logistic",
)


def _value(fields: Any, targets: Any, label: Any, readout: Any) -> Any:
    return 0.5 * (fields.sum() - targets.sum()) ** 2


def _slope(fields: Any, targets: Any, label: Any, readout: Any) -> Any:
    return np.full(len(fields), fields.sum() - targets.sum())


CASES: dict[str, Case] = {
    "Committee": (ov.Committee, {"units": 2, "activation": "erf", "readout": 1.0, "train_readout": False}),
    "Softmax": (ov.Softmax, {"classes": 3}),
    "OnlineSGD": (ov.OnlineSGD, {"rate": 0.3, "readout_rate": 0.1, "decay": 0.0, "batch": 1, "momentum": 0.5}),
    "MultiPass": (ov.MultiPass, {"rate": 0.3, "samples": 20, "batch": 1, "decay": 0.0, "shuffle": 0}),
    "GradientFlow": (ov.GradientFlow, {"rate": 0.3, "readout_rate": 0.1, "decay": 0.0}),
    "FullBatch": (
        ov.FullBatch,
        {"steps": 2, "rate": 0.3, "method": "gd", "ratio": 1.0, "momentum": 0.0, "batch": 0.5},
    ),
    "GiantStep": (ov.GiantStep, {"rate": 1.0, "exponent": 0.25, "heads": 2, "steps": 1}),
    "Problem": (
        ov.Problem,
        {
            "data": P.data,
            "teacher": NET,
            "student": NET,
            "algorithm": P.algorithm,
            "loss": "square",
            "label_noise": 0.1,
        },
    ),
    "Problem.from_toml": (ov.Problem.from_toml, {"text": P.to_toml()}),
    "Activation": (
        ov.Activation,
        {"name": "mine", "function": np.tanh, "derivative": lambda x: 1 - np.tanh(x) ** 2, "kinks": ()},
    ),
    "Start.from_overlaps": (
        ov.Start.from_overlaps,
        {"problem": P, "Q": START.Q, "R": START.R, "T": START.T, "size": 20, "student_readout": [1.0, 1.0]},
    ),
    "Start.from_weights": (
        ov.Start.from_weights,
        {"problem": P, "student": RNG.normal(size=(2, 20)), "teacher": RNG.normal(size=(2, 20))},
    ),
    "Start.at_size": (START.at_size, {"problem": P, "size": 30}),
    "draw": (ov.draw, {"problem": P, "size": 20, "seed": 0, "scale": 1.0}),
    "solve": (
        ov.solve,
        {
            "problem": P,
            "start": START,
            "times": TIMES,
            "levels": False,
            "accuracy": 1e-3,
            "method": "auto",
            "system": "auto",
            "max_seconds": 1.0,
        },
    ),
    "sample": (
        ov.sample,
        {
            "problem": P,
            "start": START,
            "times": TIMES,
            "runs": 2,
            "seed": 0,
            "method": "exact",
            "levels": False,
            "kernels": False,
            **QUIET,
        },
    ),
    "train": (
        ov.train,
        {
            "problem": P,
            "start": START,
            "times": TIMES,
            "runs": 2,
            "seed": 0,
            "levels": False,
            "kernels": False,
            "observe": None,
            **QUIET,
        },
    ),
    "compare": (
        ov.compare,
        {
            "theory": MACRO,
            "simulation": MESO,
            "level": 0.01,
            "resolve": 0.1,
            "finite_size": False,
            "seed": 0,
            **QUIET,
        },
    ),
    "tlog_rmse": (ov.tlog_rmse, {"theory": EVEN[0], "simulation": EVEN[1], "variables": ["Q"]}),
    "check_scaling": (
        ov.check_scaling,
        {"problem": VECTOR, "sizes": [10, 20], "start": VECTOR_START, "times": [0.5], "runs": 10, "seed": 0, **QUIET},
    ),
    "beyond_gaussian": (
        ov.beyond_gaussian,
        {
            "problem": CLASSES,
            "start": ov.draw(CLASSES, 3, scale=0.0),
            "times": [0.5, 1.0],
            "runs": 4,
            "seed": 0,
            "groups": [None, 2],
            "share": 0.1,
            **QUIET,
        },
    ),
    "optimise": (
        ov.optimise,
        {"problem": VECTOR, "start": VECTOR_START, "time": 1.0, "vary": "rate", "knots": 2, "bounds": (0.01, 1.0)},
    ),
    "forecast": (ov.forecast, {"data": LAW, "rate": 0.1, "units": 2, "size": 50}),
    "fit_power": (
        ov.fit_power,
        {"x": np.geomspace(1, 20, 9), "y": np.geomspace(1, 0.1, 9), "window": (1.0, 20.0), "confidence": 0.9},
    ),
    "gaussian_averages": (
        ov.gaussian_averages,
        {
            "problem": P,
            "covariance": C,
            "student_readout": [1.0, 1.0],
            "teacher_readout": [1.0, 1.0],
            "method": "auto",
        },
    ),
    "gaussian_equivalent": (ov.gaussian_equivalent, {"f": "relu"}),
    "logtimes": (ov.logtimes, {"first": 0.1, "last": 10.0, "count": 5}),
    "load": (ov.load, {"path": "nothing.nc"}),
    "Trajectory.accuracy": (MACRO.accuracy, {"name": "Q"}),
    "Trajectory.plot": (MACRO.plot, {"name": "Q"}),
    "Loss": (ov.Loss, {"value": _value, "gradient": _slope, "name": "mine", "kinks": None}),
}
