"""The problems that are timed."""

from __future__ import annotations

import numpy as np

import overlaps as ov

XOR = [[1, -1, 0, 0], [-1, 1, 0, 0], [0, 0, 1, -1], [0, 0, -1, 1]]


def committee(
    students: int = 2,
    teachers: int = 2,
    *,
    levels: int = 1,
    exponent: float = 1.0,
    activation: str = "erf",
    teacher_activation: str | None = None,
) -> ov.Problem:
    """A committee at rate 0.5 on a power-law spectrum; the student's readout keeps its output of order one."""
    return ov.Problem(
        data=ov.GaussianInputs(ov.PowerLaw(levels, exponent) if levels > 1 else ov.Isotropic()),
        teacher=ov.Committee(teachers, teacher_activation or activation),
        student=ov.Committee(students, activation, readout=float(np.sqrt(teachers / students))),
        algorithm=ov.OnlineSGD(rate=0.5),
    )


def classes(count: int) -> ov.Problem:
    """Orthonormal classes with the parameters of the outlier paper."""
    return ov.Problem(
        data=ov.GaussianMixture(means=count, variance=0.1),
        student=ov.Softmax(count),
        algorithm=ov.OnlineSGD(rate=1.0, decay=0.01),
        loss="cross-entropy",
    )


def xor(units: int) -> ov.Problem:
    """The XOR mixture with the parameters of the outlier paper: means ±μ of label 1 and ±ν of label 0."""
    return ov.Problem(
        data=ov.GaussianMixture(gram=XOR, labels=[1, 1, 0, 0], variance=0.1),
        student=ov.Committee(units, "relu", train_readout=True),
        algorithm=ov.OnlineSGD(rate=1.0, decay=0.02),
        loss="logistic",
    )


def generator() -> np.random.Generator:
    """The kind of generator that the library's runs use."""
    return np.random.Generator(np.random.SFC64(0))
