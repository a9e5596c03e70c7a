"""The engine of full-batch training: what `overlaps.solve`, `sample` and `train` call for `FullBatch`.

Options and their defaults are those of `overlaps.trajectory.scales`, which has checked the start. What full batches do
not have is refused here by name.

>>> import overlaps as ov
>>> problem = ov.Problem(
...     data=ov.GaussianMixture(2), student=ov.Committee(1, "erf"), algorithm=ov.FullBatch(steps=2, rate=0.5)
... )
>>> ov.solve(problem, ov.Start.from_overlaps(problem, [[0.1]])).time
array([0., 1., 2.])
"""

from __future__ import annotations

from typing import Any

from ..interface.checks import whole
from ..interface.errors import InputError
from ..problem.start import Start
from ..problem.statement import Problem
from ..trajectory.dataset import Trajectory
from . import all_rows
from .mean_field_theory import check_numbers, solve_full_batch
from .repeated_runs import sample_full_batch, train_full_batch


def solve(problem: Problem, start: Start, times: Any, *, system: str, **options: Any) -> Trajectory:
    """Macro: dynamical mean-field theory, the limit of infinitely many dimensions and samples; of rows, their own."""
    if system != "auto":
        raise InputError("system: full-batch training has one system of kernels; leave system out")
    if problem.learns_rows:
        if options["method"] != "auto":
            raise InputError("method: training on all rows of a set has nothing to average; leave method out")
        if problem.classifies_rows:
            raise InputError(
                "data: theory of full batches takes classes whose covariances commute, as those of rows do not; use "
                "train, or GaussianClasses of one covariance in place of the rows"
            )
        return all_rows.solve(problem, start, times, options["levels"], options["accuracy"], options["budget"])
    return solve_full_batch(problem, start, times, **options)


def check_memory(problem: Problem, count: int) -> None:
    """Refuse a recursion of all steps that would hold too many numbers."""
    if not problem.learns_rows:
        check_numbers(problem)


def sample(problem: Problem, *asked: Any, method: str, **options: Any) -> Trajectory:
    """Meso: runs on data matrices that are never formed, equal in law to `train`."""
    if problem.learns_rows:
        raise InputError("data: given its rows full-batch training leaves nothing to chance; use solve or train")
    if method != "exact":
        raise InputError("method: full-batch training has no diffusion; use method='exact'")
    return sample_full_batch(problem, *asked, **options)


def train(
    problem: Problem, start: Start, times: Any, runs: int, seed: int, *, observe: object | None, **options: Any
) -> Trajectory:
    """Micro: runs on data matrices of their own, or on the rows of a data set."""
    if observe is not None:
        raise InputError("observe: spectra are observed along OnlineSGD; leave observe out")
    if problem.learns_rows:
        if options["kernels"]:
            raise InputError("kernels: those of two steps are for Gaussian inputs; leave kernels out")
        runs, seed = whole("runs", runs, least=1), whole("seed", seed, least=0)
        return all_rows.train(problem, start, times, runs, seed, options["levels"])
    return train_full_batch(problem, start, times, runs, seed, **options)
