"""When to stop: as soon as the readout block has as many outliers as there are hidden classes, and keeps them.

After training, the block vv of the Hessian has one outlier for each hidden class that the network has discerned. With
λ_1 ≥ λ_2 ≥ … its eigenvalues and b the median of those at the start of training, the rank at time t is

    r(t) = number of λ_j(t) > max(3 b, λ_1(t)/5),

and the rule stops at the first time at which r has been the wanted rank for a time 8 without a break. The first bound
excludes what noise alone makes, the second classes that are far from learned while others are.

A stop is false if, at that time, the mean output of some hidden class is not on its side of zero by 0.1 at least. For
the XOR mixture at s = 0.01, decay 0.05, rate 1, N = 100, with 6 ReLU units, normal weights and readout, and the
population block seen every 2 until time 100: 1 of 142 stops was false (95 %: 0.02 to 3.9 %) in 300 runs, 144 of which
discerned all four classes in the end, as measured by `benchmarks.spectra.false_stops(300, seed=1000)`. Without the wait
it would be 32 of 144 (16 to 30 %). The numbers 3, 1/5 and 8 were chosen on other runs, some 40 settings having been
compared, at s = 0.01 and 0.1; these rates are for one problem and no more. The G-matrix says less late in training,
when the gradients of all that is learned have become small: at s = 0.1, decay 0.02 the rule never stops by it.

Reference: the proposal in Ben Arous, Gheissari, Huang and Jagannath, High-dimensional SGD aligns with emerging outlier
eigenspaces, arXiv:2310.03010, after Theorem 2.7.

>>> rule = StoppingRule(rank=2, patience=2.0)
>>> values = [[0.5, 0.1, 0.1], [1.0, 0.6, 0.1], [2.0, 1.0, 0.1], [2.0, 1.5, 0.0]]
>>> outlier_rank(values, bulk=0.1).tolist()
[1, 2, 2, 2]
>>> rule.first_stop([0.0, 1.0, 2.0, 3.0], outlier_rank(values, bulk=0.1))
3.0
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..interface.checks import array, checked, grid, number, whole
from ..interface.errors import InputError, unknown
from ..trajectory.dataset import Trajectory
from .population import KINDS, Kind

Array = NDArray[np.float64]


@checked
def outlier_rank(values: ArrayLike, bulk: ArrayLike, *, factor: float = 3.0, share: float = 0.2) -> NDArray[np.int64]:
    """Number of eigenvalues above factor × bulk and above share × the largest, (...).

    Parameters
    ----------
    values: eigenvalues of a block on the last axis, (..., K), in any order.
    bulk: level of what is no outlier, positive, (...) or one number.
    """
    levels, low = array("values", values, None), array("bulk", bulk, None)
    if levels.ndim == 0 or not levels.size:
        raise InputError(f"values: expected eigenvalues on the last axis, got shape {levels.shape}")
    if not np.all(low > 0):
        raise InputError(f"bulk: expected a positive level, got {low.min():g}")
    try:
        low = np.broadcast_to(low, levels.shape[:-1])
    except ValueError:
        raise InputError(f"bulk: expected shape {levels.shape[:-1]} or one number, got {low.shape}") from None
    factor, share = number("factor", factor, above=0), number("share", share, least=0)
    limit = np.maximum(factor * low, share * levels.max(axis=-1))
    return np.sum(levels > limit[..., None], axis=-1)


@dataclass(frozen=True)
class StoppingRule:
    """Stop when the rank of the outliers is `rank` and has been for a time `patience`.

    Parameters
    ----------
    rank: number of hidden classes to be discerned.
    patience: in the units of the times, steps per input dimension, at rate 1; it scales as 1/rate.
    """

    rank: int
    patience: float = 8.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "rank", whole("rank", self.rank, least=1))
        object.__setattr__(self, "patience", number("patience", self.patience, least=0))

    def first_stop(self, times: ArrayLike, ranks: ArrayLike) -> float:
        """The first time at which to stop, infinity if there is none, for ranks (times,) at increasing times."""
        t = grid(times)
        since = inf
        for now, rank in zip(t.tolist(), array("ranks", ranks, t.shape), strict=True):
            since = min(since, now) if rank == self.rank else inf
            if now - since >= self.patience:
                return now
        return inf


@checked
def stop_time(trajectory: Trajectory, rank: int, *, kind: Kind = "hessian", patience: float = 8.0) -> Array:
    """Time at which each run of a trajectory would have stopped, (runs,), infinity for never.

    Parameters
    ----------
    trajectory: from `train` with an `Observer` of this kind, of a student with a trained readout, from time 0 on.
    rank, patience: see `StoppingRule`.
    kind: of the matrix, ``"hessian"`` or ``"gradient"``.
    """
    if kind not in KINDS:
        raise unknown("kind", str(kind), KINDS)
    name = f"{kind}_readout_values"
    if not isinstance(trajectory, Trajectory) or name not in trajectory.data:
        raise InputError(
            f"trajectory: expected {name} in it; train with observe=Observer(kinds=[{kind!r}]) and a student "
            "with train_readout=True"
        )
    times, values = trajectory.data["observed"].values, trajectory.data[name].values
    if times[0] > 0:
        raise InputError(f"trajectory: expected to be observed from time 0, which tells the bulk, got {times[0]:g}")
    rank = whole("rank", rank, least=1)
    if rank > values.shape[-1]:
        raise InputError(f"rank: a readout of {values.shape[-1]} units has no {rank} outliers; use more units")
    rule, bulk = StoppingRule(rank, patience), np.median(values[:, :1], axis=-1)
    return np.array([rule.first_stop(times, ranks) for ranks in outlier_rank(values, bulk)])
