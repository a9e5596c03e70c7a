"""The paper's problem: a student of two units learns from a teacher of two units on a hidden manifold.

N = 1000 inputs x = sign(u), D = 500, rate .2, 10⁵ steps, both layers trained. Initial weights are not given in print;
here W, B ~ N(0, 1), the student's readout v ~ N(0, 1) and the teacher's is one.

>>> import overlaps as ov
>>> problem("relu").data
HiddenManifold(sign of gaussian features, D/N = 0.5, standard normal latent)
>>> start(problem("erf"), size=100, seed=1)
Start(weights and overlaps: K = 2, M = 2, 51 levels, N = 100)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

import overlaps as ov

SIZE, STEPS, RATE = 1000, 100_000, 0.2
VARIABLES = ("Q", "R", "v")  # that the paper compares
NAMES = {"erf": "erf", "relu": "ReLU"}  # of activations
LABELS = {"sample": "one label per sample", "coordinate": "a label per coordinate"}  # readings of eq. (17)


def problem(activation: str, latent: ov.LatentMixture | None = None, *, features: int = 0) -> ov.Problem:
    """The problem with this activation and latent; `features` is the seed of the feature matrix."""
    return ov.Problem(
        data=ov.HiddenManifold(latent_ratio=0.5, latent=latent, seed=features),
        teacher=ov.Committee(2, activation),
        student=ov.Committee(2, activation, train_readout=True),
        algorithm=ov.OnlineSGD(RATE),
    )


def start(problem: ov.Problem, size: int, seed: int) -> ov.Start:
    """Random weights and readout, the same for all latents."""
    rng = np.random.default_rng([seed, 0])
    student = rng.standard_normal((problem.student.units, size))
    teacher = rng.standard_normal((problem.teacher_units, problem.data.teacher_size(size)))
    readout = rng.standard_normal(problem.student.units)
    return ov.Start.from_weights(problem, student, teacher, student_readout=readout)


def listed(values: ArrayLike, digits: int = 3) -> str:
    """Numbers with commas between."""
    return ", ".join(f"{round(float(x), digits) + 0.0:.{digits}f}" for x in np.ravel(values))
