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

from ..interface.errors import InputError
from ..trajectory.dataset import Trajectory
from .mean_field_theory import solve_full_batch
from .repeated_runs import sample_full_batch, train_full_batch


def solve(*asked: Any, system: str, **options: Any) -> Trajectory:
    """Macro: dynamical mean-field theory, the limit of infinitely many dimensions and samples."""
    if system != "auto":
        raise InputError("system: full-batch training has one system of kernels; leave system out")
    return solve_full_batch(*asked, **options)


def sample(*asked: Any, method: str, **options: Any) -> Trajectory:
    """Meso: runs on data matrices that are never formed, equal in law to `train`."""
    if method != "exact":
        raise InputError("method: full-batch training has no diffusion; use method='exact'")
    return sample_full_batch(*asked, **options)


def train(*asked: Any, observe: object | None, **options: Any) -> Trajectory:
    """Micro: runs on data matrices of their own."""
    if observe is not None:
        raise InputError("observe: spectra are observed along OnlineSGD; leave observe out")
    return train_full_batch(*asked, **options)
