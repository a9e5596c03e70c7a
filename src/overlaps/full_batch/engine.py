"""The three scales of full-batch training: what `overlaps.solve`, `sample` and `train` call for `FullBatch`.

>>> import overlaps as ov
>>> from overlaps.full_batch import engine
>>> problem = ov.Problem(
...     data=ov.GaussianMixture(2), student=ov.Committee(1, "erf"), algorithm=ov.FullBatch(steps=2, rate=0.5)
... )
>>> engine.solve(problem, ov.Start.from_overlaps(problem, [[0.1]])).time
array([0., 1., 2.])
"""

from __future__ import annotations

from numpy.typing import ArrayLike

from ..interface.errors import InputError
from ..problem.start import Start, check
from ..problem.statement import Problem
from ..trajectory.dataset import Trajectory
from .mean_field_theory import solve_full_batch
from .repeated_runs import sample_full_batch, train_full_batch


def solve(
    problem: Problem,
    start: Start,
    times: ArrayLike | None = None,
    *,
    levels: bool = False,
    accuracy: float | None = None,
    method: str = "auto",
    system: str = "auto",
) -> Trajectory:
    """Macro: dynamical mean-field theory, the limit of infinitely many dimensions and samples."""
    check(problem, start)
    if system != "auto":
        raise InputError("system: full-batch training has one system of kernels; leave system out")
    return solve_full_batch(problem, start, times, levels=levels, accuracy=accuracy, method=method)


def sample(
    problem: Problem,
    start: Start,
    times: ArrayLike | None = None,
    runs: int = 100,
    seed: int = 0,
    *,
    method: str = "exact",
    levels: bool = False,
    kernels: bool = False,
    progress: bool = True,
) -> Trajectory:
    """Meso: runs on data matrices that are never formed, equal in law to `train`."""
    check(problem, start)
    if method != "exact":
        raise InputError("method: full-batch training has no diffusion; use method='exact'")
    return sample_full_batch(problem, start, times, runs, seed, levels=levels, kernels=kernels, progress=progress)


def train(
    problem: Problem,
    start: Start,
    times: ArrayLike | None = None,
    runs: int = 4,
    seed: int = 0,
    *,
    levels: bool = False,
    kernels: bool = False,
    observe: object | None = None,
    progress: bool = True,
) -> Trajectory:
    """Micro: runs on data matrices of their own."""
    check(problem, start)
    if observe is not None:
        raise InputError("observe: spectra are observed along OnlineSGD; leave observe out")
    return train_full_batch(problem, start, times, runs, seed, levels=levels, kernels=kernels, progress=progress)
