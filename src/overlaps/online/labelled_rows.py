"""Theory of a linear student on labelled rows: Gaussian inputs, a linear teacher and noise in their place.

With the covariance Σ of the rows the best linear map θ* = Σ⁺ ⟨x y⟩ is the teacher, and what it leaves of the labels,
σ² = ⟨(y − θ*·x)²⟩, is noise. `error` is the loss that training measures over all rows, which counts that noise:

    error = ½ ⟨(y − f)²⟩ = ½ (θ − θ*)ᵀ Σ (θ − θ*) + σ²/2

for the prediction f = θ·x. Second moments of the rows are exact here. That the rows are not Gaussian enters to second
order in the rate alone, through their fourth moments and through noise that depends on x.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..data import Samples
from ..interface.errors import NumericalError
from ..problem.statement import Problem
from ..trajectory.dataset import Trajectory, provenance


def by_equivalent(problem: Problem, theory: Callable[[Problem], Trajectory]) -> Trajectory:
    """What `theory` says of the linear equivalent of a problem with labelled rows, in terms of the rows."""
    try:
        return _of_rows(theory(problem.linear_equivalent), problem)
    except NumericalError as error:
        if error.partial is not None:
            error.partial = _of_rows(error.partial, problem)
        raise


def _of_rows(result: Trajectory, problem: Problem) -> Trajectory:
    assert isinstance(problem.data, Samples)
    data = result.data.copy()
    accuracy = data["error"].attrs
    data["error"] = data["error"] + problem.data.unexplained / 2
    data["error"].attrs.update(accuracy)
    about = provenance(problem, data.attrs["averages"], averaged=True)
    return replace(result, data=data.assign_attrs(about), problem=problem)
