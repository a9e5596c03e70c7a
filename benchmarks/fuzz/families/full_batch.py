"""Full batches: their scales, comparison processes and theorem."""

from __future__ import annotations

import overlaps as ov

from ..problems import (
    FLAT_START,
    FULL_BATCH,
    QUIET,
    Case,
)

PROCESS = {
    "problem": FULL_BATCH,
    "start": FLAT_START,
    "times": [1.0],
    "runs": 2,
    "seed": 0,
    "sigma": 0.1,
    "z": 0.0,
    **QUIET,
}
CASES: dict[str, Case] = {
    "alternative": (
        ov.full_batch.alternative,
        PROCESS,
    ),
    "perturbed": (
        ov.full_batch.perturbed,
        PROCESS,
    ),
    "continued": (
        ov.full_batch.continued,
        {"problem": FULL_BATCH, "start": FLAT_START, "times": [1.0], "runs": 3, "seed": 0, "sigma": 0.1, **QUIET},
    ),
    "check_theorem": (
        ov.full_batch.check_theorem,
        {"problem": FULL_BATCH, "start": FLAT_START, "sigma": 0.1, "z": 0.5, "runs": 20, "seed": 0, "level": 0.01},
    ),
    "solve": (ov.solve, {"problem": FULL_BATCH, "start": FLAT_START, "times": None, "accuracy": 0.1}),
    "sample": (
        ov.sample,
        {"problem": FULL_BATCH, "start": FLAT_START, "times": None, "runs": 2, "seed": 0, "kernels": True, **QUIET},
    ),
    "train": (
        ov.train,
        {"problem": FULL_BATCH, "start": FLAT_START, "times": None, "runs": 2, "seed": 0, "kernels": True, **QUIET},
    ),
    "fluctuations": (
        ov.full_batch.fluctuations,
        {"problem": FULL_BATCH, "start": FLAT_START, "accuracy": 0.3, "one_pass": False, **QUIET},
    ),
}
