"""Outlier eigenspaces along training: what is recorded of the Hessian and the G-matrix while a network learns.

At each observed time, for every block A = w_i w_i asked for, from one batch of samples per run:

    values      the k eigenvalues of largest absolute value
    alignment   ρ(w_i, E_k(A)) = |P w_i|/|w_i|, P the projection on their eigenvectors E_k(A); 0 for w_i = 0
    top_mean    |e·μ_c|/|μ_c| of the first eigenvector e with every mean; 0 for μ_c = 0
    residual    the largest |A e − θ e| of the k pairs, in units of the largest |θ|

and for the block vv, where the readout is trained, `readout_values`, all of them, and `readout_alignment`. Names begin
with that of the matrix, as in `hessian_values`.

Cost: eigenpairs are followed from one observed time to the next, in single precision where `tolerance` is 1e-4 or more
(rounding is then near 1e-6 of the largest eigenvalue); the first are found in double precision and searched for
others. The default tolerance leaves alignments within 5e-4 of the converged ones and eigenvalues within 2e-4 of the
largest (measured for softmax at N = 1000, 10 classes, s = 0.1 and 2N samples, where the gap below the outliers is 1 %).
That problem takes some 7 ms for a block and a time, so that following one block at 100 times costs twice its training.
Pairs that do not converge are recorded with their residuals and a warning, and training goes on; where there is nothing
to record, as after divergence, values and alignments are 0 and the residual is infinite.

Reference: Ben Arous, Gheissari, Huang and Jagannath, High-dimensional SGD aligns with emerging outlier eigenspaces,
arXiv:2310.03010, Theorems 2.3, 2.5 and 2.7.

>>> import overlaps as ov
>>> problem = ov.Problem(
...     data=ov.GaussianMixture(means=3, variance=0.05), student=ov.Softmax(3), loss="cross-entropy",
...     algorithm=ov.OnlineSGD(1.0, decay=0.01),
... )
>>> watch = Observer(matrices=("hessian",), sample_count=2000)
>>> run = ov.train(problem, ov.draw(problem, size=100), [0, 20], runs=1, observe=watch)
>>> run.data["hessian_alignment"].mean("block").values.round(1).tolist()
[[0.1, 0.9]]
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..checks import grid, number, whole
from ..errors import InputError, NumericalError, unknown
from ..problem import Problem
from ..start import LIMIT, Start
from .batch import Batch
from .eigenpairs import Eigenpairs, eigenpairs
from .empirical import NetworkMatrix, check_batch, fields_of, network_matrix

Array = NDArray[np.float64]
MATRICES = ("hessian", "gradient")
SINGLE = 1e-4  # tolerance from which single precision is enough


class Plan(NamedTuple):
    """What an observer looks at in a problem: units, pairs of each, pairs of the readout (0: none), samples."""

    units: list[int]
    pairs: int
    readout_pairs: int
    samples: int


@dataclass(frozen=True)
class Observer:
    """What to record along `train(..., observe=Observer(...))`.

    Parameters
    ----------
    matrices: ``"hessian"``, ``"gradient"`` or both.
    blocks: ``"all"`` units, or the numbers of some.
    count: k, the eigenpairs of a block; by default the rank of the means (of the teacher, where there are none). For
        the readout: the number of means (teacher units), or the number of units if that is less.
    samples: ``"test"``, fresh samples drawn once per run, or ``"train"``, the first of those that the run trains on.
    sample_count: how many; 2N by default. The cost grows in proportion, and so does what can be told from the bulk.
    times: when to look; by default at all times of the trajectory.
    tolerance: of the residuals, see above.
    keep_weights: whether to record the weights as well, as `weights`.
    """

    matrices: Sequence[str] = MATRICES
    blocks: str | Sequence[int] = "all"
    count: int | None = None
    samples: str = "test"
    sample_count: int | None = None
    times: ArrayLike | None = None
    tolerance: float = 3e-3
    keep_weights: bool = False

    def __post_init__(self) -> None:
        matrices = (self.matrices,) if isinstance(self.matrices, str) else tuple(self.matrices)
        for name in matrices:
            if name not in MATRICES:
                raise unknown("matrix", name, MATRICES)
        if not matrices or len(set(matrices)) < len(matrices):
            raise InputError(f"matrices: expected 'hessian', 'gradient' or both, got {self.matrices!r}")
        object.__setattr__(self, "matrices", matrices)
        if isinstance(self.blocks, str):
            if self.blocks != "all":
                raise unknown("blocks", self.blocks, ["all"])
        else:
            units = tuple(whole(f"blocks[{i}]", unit, least=0) for i, unit in enumerate(self.blocks))
            if not units or len(set(units)) < len(units):
                raise InputError(f"blocks: expected 'all' or different numbers of units, got {self.blocks!r}")
            object.__setattr__(self, "blocks", units)
        for name in ("count", "sample_count"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, whole(name, getattr(self, name), least=1))
        if self.samples not in ("test", "train"):
            raise unknown("samples", str(self.samples), ["test", "train"])
        if self.times is not None:
            object.__setattr__(self, "times", tuple(grid(self.times).tolist()))
        object.__setattr__(self, "tolerance", number("tolerance", self.tolerance, least=1e-12))
        if not isinstance(self.keep_weights, bool):
            raise InputError(f"keep_weights: expected true or false, got {self.keep_weights!r}")

    def variables(self, problem: Problem, start: Start) -> dict[str, tuple[str, ...]]:
        """Names of what is recorded, and the dimensions of each after those of run and observed time."""
        plan = self._plan(problem, start)
        names: dict[str, tuple[str, ...]] = {}
        for kind in self.matrices:
            names |= {f"{kind}_values": ("block", "rank"), f"{kind}_alignment": ("block",)}
            names |= {f"{kind}_residual": ("block",)}
            if start.m.shape[2]:
                names[f"{kind}_top_mean"] = ("block", "mean")
            if plan.readout_pairs:
                names |= {f"{kind}_readout_values": ("readout_rank",), f"{kind}_readout_alignment": ()}
        if self.keep_weights:
            names["weights"] = ("student", "coordinate")
        return names

    def begin(
        self, problem: Problem, start: Start, redraw: Callable[[int], tuple[Array, NDArray[np.int64]]], seed: int
    ) -> Watcher:
        """A watcher of one run; `redraw(count)` gives the first inputs and labels that the run trains on."""
        plan = self._plan(problem, start)
        if self.samples == "train":
            batch = Batch(*redraw(plan.samples))
        else:
            batch = Batch.draw(problem, start, plan.samples, seed)
        assert start.student is not None
        check_batch(problem, batch, start.student.shape[1])
        return Watcher(self, problem, start, batch, plan)

    def _plan(self, problem: Problem, start: Start) -> Plan:
        K = problem.student.units
        if start.size is None:
            raise InputError("start: spectra are those of weights, this start has none; use draw or Start.from_weights")
        units = list(range(K)) if isinstance(self.blocks, str) else [int(unit) for unit in self.blocks]
        if max(units) >= K:
            raise InputError(f"blocks: expected units 0 to {K - 1}, got {max(units)}")
        fixed = start.G.sum(axis=0)
        count = max(int(np.linalg.matrix_rank(fixed, hermitian=True)), 1) if self.count is None else self.count
        if count > start.size:
            raise InputError(f"count: a block of {start.size} inputs has no {count} eigenpairs; use fewer")
        directions = start.m.shape[2] or start.u.size
        readout = min(directions if self.count is None else self.count, K) if problem.student.train_readout else 0
        samples = 2 * start.size if self.sample_count is None else self.sample_count
        if samples * start.size > 1e9:
            raise InputError(f"sample_count: {samples} samples are {samples * start.size * 8e-9:.0f} GB; use fewer")
        return Plan(units, count, readout, samples)


class Watcher:
    """Follows the eigenpairs of one run."""

    def __init__(self, observer: Observer, problem: Problem, start: Start, batch: Batch, plan: Plan) -> None:
        assert start.teacher is not None and start.means is not None
        self.observer, self.problem, self.plan, self.batch = observer, problem, plan, batch
        self.teacher, self.u, self.means = start.teacher, start.u, start.means
        self.last: dict[str, Eigenpairs] = {}
        self.warned = False

    def look(self, W: Array, v: Array) -> dict[str, Array]:
        """What is recorded at weights W (K, N) and readout v (K,)."""
        seen: dict[str, Array] = {"weights": W.copy()} if self.observer.keep_weights else {}
        bounded = max(np.abs(W).max(), np.abs(v).max()) < LIMIT
        fields = fields_of(self.batch, W, self.teacher) if bounded else None
        for kind in self.observer.matrices:
            if fields is None:
                spectrum = self._nothing()  # training has diverged; it will say so, with all that came before
            else:
                matrix = network_matrix(kind, self.problem, self._inputs(kind), self.batch.labels, fields, v, self.u)
                spectrum = self._spectrum(kind, matrix, W, v)
            seen |= {f"{kind}_{name}": value for name, value in spectrum.items()}
        return seen

    @cached_property
    def _single(self) -> NDArray[Any]:
        return self.batch.inputs.astype(np.float32)

    def _inputs(self, kind: str) -> NDArray[Any]:
        """Double for the first look, and where blocks are small enough to be diagonalised as a whole."""
        iterated = kind in self.last and "dense" not in self.last[kind].method
        return self._single if iterated and self.observer.tolerance >= SINGLE else self.batch.inputs

    def _spectrum(self, kind: str, matrix: NetworkMatrix, W: Array, v: Array) -> dict[str, Array]:
        pairs = self._follow(kind, matrix)
        if pairs is None:
            return self._nothing()
        first = pairs.vectors[:, :, :1]
        seen = {
            "values": pairs.values,
            "alignment": _alignments(W[self.plan.units], pairs.vectors),
            "residual": pairs.residuals.max(axis=1),
        }
        if len(self.means):
            each = [_alignments(np.broadcast_to(mean, first.shape[:2]), first) for mean in self.means]
            seen["top_mean"] = np.stack(each, axis=1)
        if self.plan.readout_pairs:
            readout = eigenpairs(matrix.block("v"), v.size)
            seen["readout_values"] = readout.values
            seen["readout_alignment"] = _alignments(v[None], readout.vectors[None, :, : self.plan.readout_pairs])[0]
        return seen

    def _nothing(self) -> dict[str, Array]:
        blocks, k, readout_k, means = len(self.plan.units), self.plan.pairs, self.plan.readout_pairs, len(self.means)
        seen = {"values": np.zeros((blocks, k)), "alignment": np.zeros(blocks), "residual": np.full(blocks, np.inf)}
        seen |= {"top_mean": np.zeros((blocks, means))} if means else {}
        return seen | (
            {"readout_values": np.zeros(self.problem.student.units), "readout_alignment": np.zeros(())}
            if readout_k
            else {}
        )

    def _follow(self, kind: str, matrix: NetworkMatrix) -> Eigenpairs | None:
        """The eigenpairs from those of the last look; None where there are none, as of a loss that is not finite."""
        family, tolerance = matrix.family(self.plan.units), self.observer.tolerance
        try:
            if matrix.readout is not None and not np.isfinite(matrix.readout).all():
                raise NumericalError(f"{kind} vv: has entries that are not finite", quantity=f"{kind} vv", time=0.0)
            self.last[kind] = eigenpairs(family, self.plan.pairs, tolerance=tolerance, start=self.last.get(kind))
        except NumericalError as error:
            if not self.warned:
                self.warned = True
                warnings.warn(f"{error}; training goes on, see {kind}_residual", stacklevel=2)
            if not isinstance(error.partial, Eigenpairs):
                return None
            self.last[kind] = error.partial
        return self.last[kind]


def _alignments(vectors: Array, bases: Array) -> Array:
    """ρ of vectors (j, n) with the spans of orthonormal columns (j, n, k), (j,); 0 for a vector of length zero."""
    length = np.linalg.norm(vectors, axis=1)
    along = np.linalg.norm(vectors[:, None, :] @ bases, axis=2)[:, 0]
    return np.minimum(along / np.where(length > 0, length, 1.0), 1.0)
