"""Errors of runs of which some diverge: those that do have infinite errors, and the others keep theirs.

`train` and `sample` end all runs where the first of them grows without bound. Here the others are then taken again, one
by one, each with a seed of its own; the one that diverged stays among them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..interface.errors import NumericalError
from ..problem.start import Start
from ..problem.statement import Problem
from ..trajectory.dataset import Trajectory

Array = NDArray[np.float64]
STREAM = 3  # of the seeds of single runs


def errors_of_runs(
    runner: Callable[..., Trajectory],
    problem: Problem,
    start: Start,
    times: ArrayLike,
    runs: int,
    seed: int,
    *,
    progress: bool,
) -> Array:
    """Errors of runs made by `train` or `sample`, (runs, times); infinite from where a run diverges on."""
    try:
        return runner(problem, start, times, runs, seed, progress=progress).data["error"].values
    except NumericalError as first:
        rows = [_until(first, np.size(times))]
    for single in np.random.SeedSequence([seed, STREAM]).generate_state(runs - 1).tolist():
        try:
            rows.append(runner(problem, start, times, 1, single, progress=False).data["error"].values[0])
        except NumericalError as error:
            rows.append(_until(error, np.size(times)))
    return np.array(rows)


def _until(error: NumericalError, count: int) -> Array:
    """Errors of the run that diverged until it did, and infinite ones."""
    errors = np.full(count, np.inf)
    partial: Any = error.partial
    if partial is not None:
        known = partial.data["error"].values.mean(0)
        errors[: known.size] = known
    return errors


def diverged(errors: Array) -> int:
    """How many of the runs diverged; errors (runs, ...)."""
    return int((~np.isfinite(errors.reshape(len(errors), -1)).all(1)).sum())


def in_words(errors: Array) -> str:
    """Mean of the errors of runs (runs,) and its standard error, or how many diverged."""
    lost = diverged(errors)
    if lost:
        return f"{lost} of {errors.size} diverged"
    return f"{errors.mean():.4g} ± {errors.std(ddof=1) / np.sqrt(errors.size):.1g}"
