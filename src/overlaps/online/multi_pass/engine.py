"""The engine of many passes: what `overlaps.solve`, `sample` and `train` call for `MultiPass`.

Options and their defaults are those of `overlaps.trajectory.scales`, which has checked the start. What many passes do
not have is refused here by name.

>>> import numpy as np
>>> import overlaps as ov
>>> rows = np.random.default_rng(0).standard_normal((300, 40))
>>> data = ov.Samples(rows, rows[:, 0] + np.random.default_rng(1).standard_normal(300))
>>> problem = ov.Problem(
...     data=data, student=ov.Committee(1, "linear"), algorithm=ov.MultiPass(rate=0.2, samples=100)
... )
>>> theory = ov.solve(problem, ov.draw(problem, 40, scale=0.0), np.linspace(0, 40, 41))
>>> print(f"{theory.best_epoch:.1f}")
6.3
"""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from ...interface.checks import grid
from ...interface.errors import InputError
from ...problem.start import Start
from ...problem.statement import Problem
from ...trajectory.dataset import Trajectory
from ...trajectory.finished_runs import FinishedRuns
from ...trajectory.refinement import Budget
from ..runs import record, refuse_kernels
from . import theory
from .runs import FixedRows


def solve(
    problem: Problem,
    start: Start,
    times: ArrayLike | None,
    *,
    levels: bool,
    accuracy: float | None,
    method: str,
    system: str,
    budget: Budget,
) -> Trajectory:
    """Macro: the mean over runs on this training set, at its size."""
    if system != "auto" or method != "auto":
        name = "system" if system != "auto" else "method"
        raise InputError(f"{name}: theory of many passes has one way, without quadratures; leave {name} out")
    if start.student is None:
        raise InputError("start: many passes need weights; use draw or Start.from_weights")
    return theory.solve(problem, start, grid(times), levels, accuracy, budget)


def check_memory(problem: Problem, count: int) -> None:
    """Nothing is refused: a solution holds less than the rows, which are there."""


def sample(problem: Problem, *asked: Any, **options: Any) -> Trajectory:
    """Meso: refused, for the rows of a training set are no Gaussian inputs."""
    raise InputError(
        "algorithm: MultiPass has no overlap chain, for its rows come back and are not Gaussian; use solve for the "
        "mean over runs, or train for the runs"
    )


def train(
    problem: Problem,
    start: Start,
    times: ArrayLike | None,
    runs: int,
    seed: int,
    *,
    levels: bool,
    kernels: bool,
    observe: object | None,
    kept: FinishedRuns | None,
    progress: bool,
) -> Trajectory:
    """Micro: runs on the rows of the training set, with test error and training error."""
    refuse_kernels(kernels)
    if observe is not None:
        raise InputError("observe: spectra are observed along OnlineSGD; leave observe out")
    if start.student is None:
        raise InputError("start: micro needs weights; use draw or Start.from_weights")
    run = FixedRows(problem, start)
    return record("micro", run, problem, start, times, runs, seed, levels=levels, kept=kept, progress=progress)
