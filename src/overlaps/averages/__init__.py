"""The Gaussian averages that drive every scale, behind one function.

Given the covariance C of the fields h = (λ, ν), the equation of motion needs

    D = E[∂δ/∂h]      S = E[δ δᵀ]      E[∂loss/∂v]      error = E[loss]        with δ = ∂loss/∂λ.

For the square loss with erf, linear or ReLU units these are closed forms; for anything else they
are quadratures. `gaussian_averages` picks, and says what it picked and how accurate it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..checks import array
from ..errors import InputError
from ..losses import Loss
from ..problem import Problem
from .closed import FAMILIES, ClosedForm
from .quadrature import LossQuadrature, SquareQuadrature
from .result import Averages

Method = ClosedForm | SquareQuadrature | LossQuadrature


def method_for(problem: Problem, teacher_readout: NDArray[np.float64], force: str = "auto") -> Method:
    """The way to evaluate the averages of `problem`: ``"auto"``, or force ``"closed"`` or ``"quadrature"``."""
    student, teacher = problem.student.g.name, problem.teacher.g.name
    same = problem.student.g == problem.teacher.g
    closed = problem.loss == "square" and same and student in FAMILIES and problem.student.activation == student
    if force == "closed" and not closed:
        raise InputError(
            f"method: no closed form for the {problem.loss!r} loss with {student} student and {teacher} teacher "
            f"(there is one for the square loss with {', '.join(FAMILIES)} on both sides); use method='quadrature'"
        )
    if force not in ("auto", "closed", "quadrature"):
        raise InputError(f"method: expected 'auto', 'closed' or 'quadrature', got {force!r}")
    if isinstance(problem.loss, Loss):
        return LossQuadrature(problem)
    if closed and force != "quadrature":
        return ClosedForm(student, teacher_readout, problem.label_noise)
    return SquareQuadrature(problem, teacher_readout)


@dataclass(frozen=True)
class GaussianAverages(Averages):
    """Averages with their pedigree: how they were computed and their measured error."""

    method: str = ""
    accuracy: dict[str, float] = field(default_factory=dict)


def gaussian_averages(
    problem: Problem,
    covariance: ArrayLike,
    student_readout: Sequence[float] | NDArray[np.float64] | None = None,
    teacher_readout: Sequence[float] | NDArray[np.float64] | None = None,
    method: str = "auto",
) -> GaussianAverages:
    """Averages of `problem` for fields (λ, ν) ~ N(0, covariance).

    Parameters
    ----------
    covariance: (K+M, K+M), students first.
    student_readout, teacher_readout: (K,) and (M,); those of the problem by default.
    method: ``"auto"`` (closed form where there is one), ``"closed"`` or ``"quadrature"``.

    Returns
    -------
    D (K, K+M), S (K, K), dv (K,), error, with `method` and, per quantity, the measured `accuracy`:
    the largest change when the rule is made coarser.
    """
    k, m = problem.student.units, problem.teacher.units
    c = array("covariance", covariance, (k + m, k + m))
    if not np.allclose(c, c.T, atol=1e-12 * max(1.0, float(np.abs(c).max()))):
        raise InputError("covariance: expected a symmetric matrix")
    low = float(np.linalg.eigvalsh(c)[0])
    if low < -1e-10 * max(1.0, float(np.trace(c))):
        raise InputError(f"covariance: expected a positive matrix, its lowest eigenvalue is {low:.3g}")
    v = problem.student.readouts if student_readout is None else array("student_readout", student_readout, (k,))
    u = problem.teacher.readouts if teacher_readout is None else array("teacher_readout", teacher_readout, (m,))
    how = method_for(problem, u, method)
    fine, rough = how(c, v), how.coarser()(c, v)
    accuracy: dict[str, float] = {}
    for name in ("D", "S", "dv", "error"):
        x, y = np.asarray(getattr(fine, name)), np.asarray(getattr(rough, name))
        accuracy[name] = max(1e-15 * max(1.0, float(np.abs(x).max())), float(np.abs(x - y).max()))
    return GaussianAverages(fine.D, fine.S, fine.dv, fine.error, how.name, accuracy)


__all__ = ["Averages", "ClosedForm", "GaussianAverages", "Method", "gaussian_averages", "method_for"]
