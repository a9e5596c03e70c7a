"""Small problems, starts and results that the calls of all families share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import overlaps as ov

Case = tuple[Callable[..., Any], dict[str, Any]]
NET = ov.Committee(2)
P = ov.Problem(data=ov.GaussianInputs(ov.PowerLaw(2, 0.5)), teacher=NET, student=NET, algorithm=ov.OnlineSGD(0.3))
ROUND = ov.Problem(data=ov.GaussianInputs(), teacher=NET, student=NET, algorithm=P.algorithm)
FLOW = ov.Problem(data=P.data, teacher=NET, student=NET, algorithm=ov.GradientFlow(0.3))
LINEAR = ov.Committee(1, "linear")
VECTOR = ov.Problem(data=P.data, teacher=LINEAR, student=LINEAR, algorithm=ov.OnlineSGD(0.3))
FULL_BATCH = ov.Problem(data=ov.GaussianInputs(), teacher=LINEAR, student=LINEAR, algorithm=ov.FullBatch(2, 0.3))
LAW = ov.PowerLaw(5, 0.8)
TIMES = [0.0, 0.5, 1.0, 1.5]
START, FLAT_START = ov.draw(P, 20, seed=1, scale=0.5), ov.draw(FULL_BATCH, 10, seed=1)
VECTOR_START, ROUND_START = ov.draw(VECTOR, 20, seed=1), ov.draw(ROUND, 20, seed=1)
T, WEIGHTS = np.eye(2), [0.5, 0.5]
RNG = np.random.default_rng(0)
ROWS, LABELS = RNG.normal(size=(40, 3)), RNG.integers(2, size=40) * 2 - 1
QUIET = {"progress": False}
