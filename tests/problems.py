"""Small problems and covariances that several test files share."""

from __future__ import annotations

from typing import Any

import numpy as np

import overlaps as ov


def problem(
    activation: Any = "erf",
    students: int = 2,
    teachers: int = 2,
    *,
    teacher_activation: Any = None,
    spectrum: Any = None,
    rate: float = 0.5,
    readout: Any = 1.0,
    teacher_readout: Any = 1.0,
    train_readout: bool = False,
    readout_rate: float | None = None,
    decay: float = 0.0,
    **rest: Any,
) -> ov.Problem:
    """A committee problem; isotropic erf with two units on either side unless told otherwise."""
    return ov.Problem(
        data=ov.GaussianInputs(spectrum=spectrum or ov.Isotropic()),
        teacher=ov.Committee(teachers, teacher_activation or activation, teacher_readout),
        student=ov.Committee(students, activation, readout, train_readout),
        algorithm=ov.OnlineSGD(rate, readout_rate, decay),
        **rest,
    )


def random_covariance(rng: np.random.Generator, fields: int, variance: float = 1.0) -> np.ndarray:
    """A well-conditioned random covariance of that typical variance."""
    rows = rng.standard_normal((fields, fields + 2))
    return variance * rows @ rows.T / (fields + 2)


def half_lines(cut: np.ndarray, nodes: int, end: float = 9.0) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre nodes beyond `cut`, to nine standard deviations, and weights with the normal density."""
    cut = np.clip(cut, -end, end)[..., None]
    x, w = np.polynomial.legendre.leggauss(nodes)
    z, weight = [], []
    for low, high in ((cut, (cut + end) / 2), ((cut + end) / 2, np.full_like(cut, end))):
        z.append((high + low) / 2 + (high - low) / 2 * x)
        weight.append((high - low) / 2 * w)
    points = np.concatenate(z, -1)
    return points, np.concatenate(weight, -1) * np.exp(-0.5 * points**2) / np.sqrt(2 * np.pi)
