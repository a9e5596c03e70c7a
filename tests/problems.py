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


def linear_solution(p: ov.Problem, variance: float, times: np.ndarray) -> np.ndarray:
    """Error of linear networks by diagonalising de/dt = η (−2 Λ + η w λ λᵀ) e, e_k = |student − teacher|² of level k.

    A sum of K linear units with readout v is one unit with rate K v² η. Fractions w are shared between both sides.
    """
    K, v, u = p.student.units, float(p.student.readouts[0]), float(p.teacher.readouts[0])
    rate = K * v**2 * p.algorithm.rate
    omega, share = p.data.eigenvalues, p.data.fractions
    begin = K * v**2 * variance + p.teacher.units * u**2
    side = np.sqrt(share) * omega
    values, vectors = np.linalg.eigh(rate * (-2 * np.diag(omega) + rate * np.outer(side, side)))
    amplitudes = (vectors.T @ side) * (vectors.T @ (np.sqrt(share) * begin))
    return 0.5 * np.exp(np.outer(times, values)) @ amplitudes
