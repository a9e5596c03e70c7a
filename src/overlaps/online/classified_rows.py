"""Theory of classifiers on labelled rows: a Gaussian for each class, or for each group of it, in place of the rows.

Group c has the share p_c, the mean μ_c and the covariance Σ_c of its rows (`overlaps.data.row_classes`), and online
training on the mixture of these Gaussians is followed by `overlaps.online.class_covariances`, from the same weights.
`error`, `misclassified` and `confusion` are averages over the mixture where training measures them over all rows; Q is
the second moment of the fields in both,

    Q = Σ_c p_c (C^c + m_c m_cᵀ)        for fields of covariance C^c and mean m_c in group c.

What training has beyond this is the use of more than means and covariances, and the size N.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..interface.errors import InputError, NumericalError
from ..problem.start import Start
from ..problem.statement import Problem
from ..trajectory.dataset import Trajectory, provenance


def by_classes(problem: Problem, start: Start, theory: Callable[[Problem, Start], Trajectory]) -> Trajectory:
    """Solve the Gaussian equivalent of a classifier by `theory`, and state the result as one of the rows."""
    if start.student is None:
        raise InputError("start: theory of classified rows follows weights; use draw or Start.from_weights")
    same = problem.class_equivalent
    begin = Start.from_weights(same, start.student, student_readout=start.v)
    try:
        return _of_rows(theory(same, begin), problem, start)
    except NumericalError as error:
        if error.partial is not None:
            error.partial = _of_rows(error.partial, problem, start)
        raise


def _of_rows(result: Trajectory, problem: Problem, start: Start) -> Trajectory:
    rows: Any = problem.data
    count, parts = len(rows.moments.weights), len(rows.classes)
    each = "class" if count == parts else "group of a class"
    about = provenance(problem, result.data.attrs["averages"], averaged=True)
    about["inputs"] = f"taken as {count} Gaussians, one for each {each}, of {rows.spectrum.source}"
    data = result.data.drop_vars(["m", "gram"], errors="ignore").assign_attrs(about)
    return replace(result, data=data, problem=problem, start=start)
