"""Micro: the training run itself, with weights, at size N.

    x = μ_c + √(s_c ω) z,  λ = W x/√N,  ν = B x/√N,    W ← (1 − ηβ/N) W − (η/√N) δ xᵀ

with z standard normal and, in a mixture, c drawn by the weights of the components (otherwise μ = 0, s = 1). For
`Samples` x is one of the rows, each equally likely, and the error is the mean over all. On a `HiddenManifold` x = f(u)
is made of a block of latents C by one matrix product, U = C F/√D, and ν = B C/√D; the error is the Gaussian average for
the fields that the weights have given each component. How steps are taken: `overlaps.online.steps`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from copy import copy, deepcopy
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..algorithms import FullBatch
from ..averages import ClosedForm, LossQuadrature, method_for
from ..data import HiddenManifold, Samples
from ..interface.checks import grid
from ..interface.errors import InputError
from ..problem.start import Start, block_overlaps, check, fixed_rows
from ..problem.statement import Problem
from ..trajectory.dataset import Trajectory
from .runs import Observed, Visit, record, refuse_kernels
from .steps import BLOCK, blocked, direct, given, mean_loss, redraw

Array = NDArray[np.float64]
BLOCKED_FROM = 12  # student units from which blocks are faster (make bench measures it)
AHEAD = 128  # inputs of a hidden manifold made by one matrix product


class Watcher(Protocol):
    """What looks at one run: from weights W (K, N) and readout v (K,) to arrays of fixed names and shapes."""

    def look(self, W: Array, v: Array) -> dict[str, Array]: ...


class Observer(Protocol):
    """What to look at along training.

    times: when, or None for all times of the run.
    """

    @property
    def times(self) -> ArrayLike | None: ...

    def variables(self, problem: Problem, start: Start) -> dict[str, tuple[str, ...]]:
        """Dimensions of each array that a watcher brings back."""
        ...

    def begin(
        self, problem: Problem, start: Start, redraw: Callable[[int], tuple[Array, NDArray[np.int64]]], seed: int
    ) -> Watcher:
        """A watcher of one run; `redraw(count)` gives the first inputs and labels that the run trains on."""
        ...


class Weights:
    """One training run."""

    rng: np.random.Generator
    looked: list[dict[str, Array]]
    watcher: Watcher | None = None

    def __init__(
        self, problem: Problem, start: Start, observer: Observer | None = None, looks: frozenset[int] = frozenset()
    ) -> None:
        assert start.student is not None and start.teacher is not None
        assert start.means is not None and start.dimensions is not None
        self.kernel, self.parts = problem.gradient, problem.data.components.drawn
        self.W, self.B, self.means = start.student, start.teacher, start.means
        self.turned = problem.data.turned
        self.fixed = self.turned(fixed_rows(problem.data.teacher_rows(start.teacher, self.W.shape[1]), start.means))
        self.v, self.u = start.v, start.u
        self.dimensions = start.dimensions
        self.root = np.repeat(np.sqrt(start.eigenvalues), start.dimensions)
        self.rows, self.value = np.empty((0, self.root.size)), None
        if isinstance(problem.data, Samples):
            self.rows, self.value = problem.data.rows, problem.value
        self.measures_error = self.value is not None
        self.rates = (problem.algorithm.rate, problem.readout_rate, problem.algorithm.decay)
        self.noise = problem.label_noise
        self.problem, self.start, self.observer = problem, start, observer
        self.looks = looks
        self.done = 0
        K, N = self.W.shape
        self.engine = blocked if K >= BLOCKED_FROM else direct
        # a few tenths of a second between looks at progress and divergence
        self.chunk = max(BLOCK, 100_000_000 // (N * (2 * K + start.u.size)))

    def fresh(self, rng: np.random.Generator) -> Weights:
        """A run from here with its own samples."""
        new = copy(self)
        new.rng, new.looked = rng, []
        new.W, new.v = self.W.copy(), self.v.copy()
        if self.observer is not None:
            first = deepcopy(rng)
            seed = int(np.random.SeedSequence(first.bit_generator.seed_seq.generate_state(4)).generate_state(1)[0])
            new.watcher = self.observer.begin(self.problem, self.start, lambda count: self._inputs(first, count), seed)
        return new

    def _inputs(self, rng: np.random.Generator, count: int) -> tuple[Array, NDArray[np.int64]]:
        """The first `count` inputs (count, N) and labels (count,) that a run with this generator draws."""
        rng = deepcopy(rng)
        if len(self.rows):
            return self.rows[rng.integers(0, len(self.rows), size=count)], np.zeros(count, np.int64)
        X, labels = np.empty((count, self.root.size)), np.empty(count, np.int64)
        redraw(self.parts, self.means, self.root, self.noise, rng, X, labels)
        return X, labels

    def advance(self, steps: int) -> None:
        self.engine(
            self.kernel, self.parts, self.means, self.W, self.B, self.root, self.rows, self.v, self.u, self.rates,
            self.noise, steps, self.rng,
        )  # fmt: skip
        self.done += steps

    def visit(self, stops: NDArray[np.int64]) -> Visit:
        """Go to each step of `stops` and tell the overlaps there, and the error where it is that of real samples."""
        K, F, B, n = len(self.W), len(self.fixed), self.dimensions.size, stops.size
        Q, A, V = np.empty((n, B, K, K)), np.empty((n, B, K, F)), np.empty((n, K))
        error = np.empty(n) if self.measures_error else None
        for i, stop in enumerate(stops):
            self.advance(int(stop) - self.done)
            Q[i], A[i], _ = block_overlaps(self.turned(self.W), self.fixed, self.dimensions)
            V[i] = self.v
            if self.watcher is not None and int(stop) in self.looks:
                self.looked.append(self.watcher.look(self.W, self.v))
            if error is not None:
                error[i] = self.error()
        return Visit(Q, A, V, error)

    def error(self) -> float:
        """Mean of the loss over all rows."""
        return mean_loss(self.value, self.W, self.B, self.rows, self.v, self.u)


class HiddenWeights(Weights):
    """One training run on a hidden manifold."""

    def __init__(
        self, problem: Problem, start: Start, observer: Observer | None = None, looks: frozenset[int] = frozenset()
    ) -> None:
        super().__init__(problem, start, observer, looks)
        assert isinstance(problem.data, HiddenManifold)
        K, N = self.W.shape
        self.realised = problem.data.at(N)
        self.how = method_for(problem, start.u)
        self.measures_error = problem.data.has_means
        self.chunk = max(AHEAD, 100_000_000 // (N * (self.realised.D + 2 * K)))

    def fresh(self, rng: np.random.Generator) -> Weights:
        new = super().fresh(rng)
        assert isinstance(new, HiddenWeights)
        new.ahead, new.used = new._block(rng), 0
        return new

    def _block(self, rng: np.random.Generator) -> tuple[Array, Array, NDArray[np.int64], Array]:
        """Inputs, teacher fields, labels and noise on the targets of the next steps."""
        X, Y, labels = self.realised.draw(rng, AHEAD, self.B)
        shifts = self.noise * rng.standard_normal(AHEAD) if self.noise else np.zeros(AHEAD)
        return X, Y, labels, shifts

    def advance(self, steps: int) -> None:
        self.done += steps
        while steps:
            # whole blocks are drawn, so that a run does not depend on where it is looked at
            if self.used == AHEAD:
                self.ahead, self.used = self._block(self.rng), 0
            count = min(steps, AHEAD - self.used)
            X, Y, labels, shifts = (part[self.used : self.used + count] for part in self.ahead)
            given(self.kernel, X, Y, labels, shifts, self.W, self.v, self.u, self.rates)
            self.used += count
            steps -= count

    def _inputs(self, rng: np.random.Generator, count: int) -> tuple[Array, NDArray[np.int64]]:
        rng = deepcopy(rng)
        blocks = [self._block(rng) for _ in range(-(-count // AHEAD))]
        return np.concatenate([b[0] for b in blocks])[:count], np.concatenate([b[2] for b in blocks])[:count]

    def error(self) -> float:
        """Gaussian average of the loss for the fields that the weights have given each component."""
        assert isinstance(self.how, (ClosedForm, LossQuadrature))
        parts = self.realised.parts
        C, means = parts.fields(self.W, self.B)
        return float(parts.weights @ [averages.error for averages in self.how.each(C, self.v, means)])


def train(
    problem: Problem,
    start: Start,
    times: ArrayLike | None = None,
    runs: int = 4,
    seed: int = 0,
    *,
    levels: bool = False,
    kernels: bool = False,
    observe: Observer | None = None,
    progress: bool = True,
) -> Trajectory:
    """Real training runs from the weights of `start`, with fresh samples in each.

    On `Samples` the inputs are rows of the data set, drawn with replacement, and `error` is the mean over all its rows.

    Parameters
    ----------
    times: increasing times, in samples per input dimension; of `FullBatch` whole steps, all by default.
    runs, seed: number of independent runs; the same seed gives the same bits.
    levels: also record the overlaps of every level.
    kernels: of `FullBatch`, also record the overlaps of every two steps, V_theta and V_omega.
    observe: what else to look at on the way, such as `overlaps.spectra.Observer`, at its own times (which must be among
        `times`) or at all of them, at whole steps; what it sees is in the data of the trajectory, along the dimension
        `observed`.
    """
    check(problem, start)
    if isinstance(problem.algorithm, FullBatch):
        from ..full_batch import engine

        return engine.train(
            problem, start, times, runs, seed, levels=levels, kernels=kernels, observe=observe, progress=progress
        )
    refuse_kernels(kernels)
    if start.student is None or start.teacher is None:
        raise InputError(
            "start: micro needs weights; use draw or Start.from_weights (sample gives the same law from overlaps)"
        )
    observed, looks = None, frozenset[int]()
    if observe is not None:
        if not (hasattr(observe, "begin") and hasattr(observe, "variables") and hasattr(observe, "times")):
            raise InputError(f"observe: expected an observer such as overlaps.spectra.Observer(), got {observe!r:.80}")
        t = grid(times)
        at = t if observe.times is None else grid(observe.times)
        absent = at[~np.isin(at, t)]
        if absent.size:
            raise InputError(f"observe: its time {absent[0]:g} is not among times; add it there")
        exact = at * start.student.shape[1]
        steps, first = np.unique(np.floor(exact + 1e-9).astype(np.int64), return_index=True)
        looks = frozenset(steps.tolist())
        # a time between two steps is seen at the first of them, and said to be
        seen = np.where(np.abs(exact[first] - steps) < 1e-6, at[first], steps / start.student.shape[1])
        observed = Observed(seen, observe.variables(problem, start))
    kind = HiddenWeights if isinstance(problem.data, HiddenManifold) else Weights
    if isinstance(problem.data, HiddenManifold) and start.size is not None:
        try:
            problem.data.at(start.size).check_equivalence()
        except InputError as error:
            warnings.warn(
                f"error is the Gaussian average of these weights, which is not that of the inputs: {error}",
                stacklevel=2,
            )
    walker = kind(problem, start, observe, looks)
    return record(
        "micro", walker, problem, start, times, runs, seed, levels=levels, progress=progress, observed=observed
    )
