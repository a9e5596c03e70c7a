"""Outlier eigenspaces along training: what is recorded of the Hessian and the G-matrix while a network learns.

At each observed time, for every block A = w_i w_i asked for, from one batch of samples per run:

    values      the k eigenvalues of largest absolute value
    alignment   ρ(w_i, E_k(A)) = |P w_i|/|w_i|, P the projection on their eigenvectors E_k(A); 0 for w_i = 0
    top_mean    |e·μ_c|/|μ_c| of the first eigenvector e with every mean; 0 for μ_c = 0
    residual    the largest |A e − θ e| of the k pairs, in units of the largest |θ|

and for the block vv, where the readout is trained, `readout_values`, all of them, and `readout_alignment`. Names begin
with that of the matrix, as in `hessian_values`.

Cost: eigenpairs are followed from one observed time to the next, those of all blocks together, in single precision
where `tolerance` is 1e-4 or more and N above 500 (rounding is then near 1e-6 of the largest eigenvalue). The first are
found from a random start and searched for others. At the default tolerance alignments are within 0.005 of the converged
ones and eigenvalues within 0.001 of the largest (measured for softmax at N = 1000, 10 classes, s = 0.1 and 2N samples,
where the gap below the outliers is 1 %: 0.0046 and 0.0006 at most in three runs). What one block and all 20 of that
problem cost beside its training is measured in benchmarks/RESULTS.md.
Pairs that do not converge are recorded with their residuals and a warning, and training goes on; where there is nothing
to record, as after divergence, values and alignments are 0 and the residual is infinite.

Reference: Ben Arous, Gheissari, Huang and Jagannath, High-dimensional SGD aligns with emerging outlier eigenspaces,
arXiv:2310.03010, Theorems 2.3, 2.5 and 2.7.

>>> import overlaps as ov
>>> problem = ov.Problem(
...     data=ov.GaussianMixture(means=3, variance=0.05), student=ov.Softmax(3), loss="cross-entropy",
...     algorithm=ov.OnlineSGD(1.0, decay=0.01),
... )
>>> watch = Observer(kinds="hessian", samples=2000)
>>> run = ov.train(problem, ov.draw(problem, size=100), [0, 20], runs=1, observe=watch)
>>> run.data["hessian_alignment"].mean("block").values.round(1).tolist()
[[0.1, 0.9]]
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..interface.checks import grid, number, whole
from ..interface.errors import InputError, NumericalError, shown, unknown
from ..problem.start import LIMIT, Start
from ..problem.statement import Problem
from .alignment import alignments
from .batch import Batch, check_inputs
from .eigenpairs import DENSE, SINGLE, Eigenpairs, eigenpairs
from .empirical import check_batch, fields_of, own_weights, weighted_moments
from .operators import OperatorFamily
from .population import KINDS

Array = NDArray[np.float64]


class Counts(NamedTuple):
    """What an observer observes of a problem: units, pairs of each, pairs of the readout (0: none), samples."""

    units: list[int]
    pairs: int
    readout_pairs: int
    samples: int


@dataclass(frozen=True)
class Observer:
    """What to record along `train(..., observe=Observer(...))`.

    Parameters
    ----------
    kinds: ``"hessian"``, ``"gradient"`` or both.
    blocks: ``"all"`` units, or the numbers of some.
    count: k, the eigenpairs of a block; by default the rank of the means (of the teacher, where there are none). For
        the readout: the number of means (teacher units), or the number of units if that is less.
    samples: number of samples; 2N by default. The cost grows in proportion, and so does what can be told from the bulk.
    source: ``"test"``, fresh samples drawn once per run, or ``"train"``, the first of those that the run trains on.
    times: when to observe; by default at all times of the trajectory.
    tolerance: of the residuals, see above.
    keep_weights: whether to record the weights as well, as `weights`.
    """

    kinds: str | Sequence[str] = KINDS
    blocks: str | Sequence[int] = "all"
    count: int | None = None
    samples: int | None = None
    source: str = "test"
    times: ArrayLike | None = None
    tolerance: float = 5e-3
    keep_weights: bool = False

    def __post_init__(self) -> None:
        kinds = (self.kinds,) if isinstance(self.kinds, str) else _listed(self.kinds)
        for name in kinds:
            if isinstance(name, str) and name not in KINDS:
                raise unknown("kind", name, KINDS)
        if not kinds or not all(isinstance(name, str) for name in kinds) or len(set(kinds)) < len(kinds):
            raise InputError(f"kinds: expected 'hessian', 'gradient' or both, got {shown(self.kinds)}")
        object.__setattr__(self, "kinds", kinds)
        if isinstance(self.blocks, str):
            if self.blocks != "all":
                raise unknown("blocks", self.blocks, ["all"])
        else:
            units = tuple(whole(f"blocks[{i}]", unit, least=0) for i, unit in enumerate(_listed(self.blocks)))
            if not units or len(set(units)) < len(units):
                raise InputError(f"blocks: expected 'all' or different numbers of units, got {shown(self.blocks)}")
            object.__setattr__(self, "blocks", units)
        for name in ("count", "samples"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, whole(name, getattr(self, name), least=1))
        if not isinstance(self.source, str) or self.source not in ("test", "train"):
            raise unknown("source", self.source, ["test", "train"])
        if self.times is not None:
            object.__setattr__(self, "times", tuple(grid(self.times).tolist()))
        object.__setattr__(self, "tolerance", number("tolerance", self.tolerance, least=1e-12))
        if not isinstance(self.keep_weights, bool):
            raise InputError(f"keep_weights: expected true or false, got {shown(self.keep_weights)}")

    def variables(self, problem: Problem, start: Start) -> dict[str, tuple[str, ...]]:
        """Names of what is recorded, and the dimensions of each after those of run and observed time."""
        counts = self._counts(problem, start)
        names: dict[str, tuple[str, ...]] = {}
        for kind in self.kinds:
            names |= {f"{kind}_values": ("block", "rank"), f"{kind}_alignment": ("block",)}
            names |= {f"{kind}_residual": ("block",)}
            if start.m.shape[2]:
                names[f"{kind}_top_mean"] = ("block", "mean")
            if counts.readout_pairs:
                names |= {f"{kind}_readout_values": ("readout_rank",), f"{kind}_readout_alignment": ()}
        if self.keep_weights:
            names["weights"] = ("student", "coordinate")
        return names

    def begin(
        self, problem: Problem, start: Start, redraw: Callable[[int], tuple[Array, NDArray[np.int64]]], seed: int
    ) -> RunObserver:
        """An observer of one run; `redraw(count)` gives the first inputs and labels that the run trains on."""
        counts = self._counts(problem, start)
        if self.source == "train":
            batch = Batch(*redraw(counts.samples))
        else:
            batch = Batch.draw(problem, start, counts.samples, seed)
        assert start.student is not None
        check_batch(problem, batch, start.student.shape[1])
        return RunObserver(self, problem, start, batch, counts)

    def _counts(self, problem: Problem, start: Start) -> Counts:
        check_inputs(problem)
        K = problem.student.units
        if start.size is None:
            raise InputError("start: spectra are those of weights, this start has none; use draw or Start.from_weights")
        units = list(range(K)) if isinstance(self.blocks, str) else [int(unit) for unit in self.blocks]
        if max(units) >= K:
            raise InputError(f"blocks: expected units 0 to {K - 1}, got {max(units)}")
        data: Any = problem.data
        # of rows the means of the classes, which the start does not know
        means = data.moments.means if problem.classifies_rows else None
        fixed = start.G.sum(axis=0) if means is None else means @ means.T
        count = max(int(np.linalg.matrix_rank(fixed, hermitian=True)), 1) if self.count is None else self.count
        if count > start.size:
            raise InputError(f"count: a block of {start.size} inputs has no {count} eigenpairs; use fewer")
        directions = len(means) if means is not None else start.m.shape[2] or start.u.size
        readout = min(directions if self.count is None else self.count, K) if problem.student.train_readout else 0
        samples = 2 * start.size if self.samples is None else self.samples
        if samples * start.size > 1e9:
            raise InputError(f"samples: {samples} of them are {samples * start.size * 8e-9:.0f} GB; use fewer")
        return Counts(units, count, readout, samples)


class RunObserver:
    """Follows the eigenpairs of one run."""

    def __init__(self, observer: Observer, problem: Problem, start: Start, batch: Batch, counts: Counts) -> None:
        assert start.teacher is not None and start.means is not None
        self.observer, self.problem, self.counts, self.batch = observer, problem, counts, batch
        single = observer.tolerance >= SINGLE and batch.inputs.shape[1] > DENSE
        self.inputs: NDArray[Any] = batch.inputs.astype(np.float32) if single else batch.inputs
        self.u, self.teacher_fields = start.u, fields_of(batch.inputs, start.teacher)
        length = np.linalg.norm(start.means, axis=1, keepdims=True)
        self.means = start.means / np.where(length > 0, length, 1.0)
        self.last: Eigenpairs | None = None
        self.warned = False

    def observe(self, W: Array, v: Array) -> dict[str, Array]:
        """What is recorded at weights W (K, N) and readout v (K,)."""
        seen: dict[str, Array] = {"weights": W.copy()} if self.observer.keep_weights else {}
        for kind, spectrum in zip(self.observer.kinds, self._spectra(W, v), strict=True):
            seen |= {f"{kind}_{name}": value for name, value in spectrum.items()}
        return seen

    def _spectra(self, W: Array, v: Array) -> list[dict[str, Array]]:
        """What is recorded of each matrix."""
        kinds, X = self.observer.kinds, self.inputs
        if not np.maximum(np.abs(W).max(), np.abs(v).max()) < LIMIT:
            return [self._nothing()] * len(kinds)  # training has diverged, which is reported with the trajectory so far
        at = self.problem, self.batch, (fields_of(X, W), self.teacher_fields), v, self.u, self.counts.units
        weights, readouts = zip(*(own_weights(kind, *at) for kind in kinds), strict=True)
        pairs = self._follow(weighted_moments(X, np.concatenate(weights, axis=1), f"{' and '.join(kinds)} blocks"))
        if pairs is None or not all(readout is None or np.isfinite(readout).all() for readout in readouts):
            return [self._nothing()] * len(kinds)
        spectra = []
        for i, readout in enumerate(readouts):
            own = slice(i * len(self.counts.units), (i + 1) * len(self.counts.units))
            vectors = pairs.vectors[own]
            seen = {
                "values": pairs.values[own],
                "alignment": alignments(W[self.counts.units], vectors),
                "residual": pairs.residuals[own].max(axis=1),
            }
            if len(self.means):
                seen["top_mean"] = np.minimum(np.abs(vectors[:, :, 0] @ self.means.T), 1.0)
            if self.counts.readout_pairs:
                last = eigenpairs(readout, v.size)
                seen["readout_values"] = last.values
                seen["readout_alignment"] = alignments(v[None], last.vectors[None, :, : self.counts.readout_pairs])[0]
            spectra.append(seen)
        return spectra

    def _nothing(self) -> dict[str, Array]:
        blocks, means = len(self.counts.units), len(self.means)
        k, readout_k = self.counts.pairs, self.counts.readout_pairs
        seen = {"values": np.zeros((blocks, k)), "alignment": np.zeros(blocks), "residual": np.full(blocks, np.inf)}
        seen |= {"top_mean": np.zeros((blocks, means))} if means else {}
        return seen | (
            {"readout_values": np.zeros(self.problem.student.units), "readout_alignment": np.zeros(())}
            if readout_k
            else {}
        )

    def _follow(self, family: OperatorFamily) -> Eigenpairs | None:
        """The eigenpairs, followed from the last observation; None where the loss, and so the matrix, is not finite."""
        try:
            self.last = eigenpairs(family, self.counts.pairs, tolerance=self.observer.tolerance, start=self.last)
        except NumericalError as error:
            if not self.warned:
                self.warned = True
                warnings.warn(f"{error}; training goes on, see the residuals", stacklevel=2)
            if not isinstance(error.partial, Eigenpairs):
                return None
            self.last = error.partial
        return self.last


def _listed(values: object) -> tuple[Any, ...]:
    """Entries of a sequence; none of what is no sequence."""
    return tuple(values) if isinstance(values, Iterable) and getattr(values, "ndim", 1) else ()
