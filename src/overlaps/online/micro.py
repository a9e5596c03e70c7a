"""Micro: the training run itself, with weights, at size N.

    x = μ_c + √(s ω_c) z,  λ = W x/√N,  ν = B x/√N,    r ← L r − p ⟨δ xᵀ⟩/√N

with the rows r = W, or W and velocities, and the matrices L, p of `overlaps.algorithms.update`; z is standard normal
and, in a mixture, c drawn by the weights of the components (otherwise μ = 0); s = 1, but every sample of heavy tails
draws its own. For `Samples` x is one of the rows, each equally likely, and the error is the mean over all. On a
`HiddenManifold` x = f(u) is made of a block of latents C by one matrix product, U = C F/√D, and ν = B C/√D; the error
is the Gaussian average for the fields that the weights have given each component. The inputs of `GaussianClasses` are
drawn in blocks as well, x = μ_c + Σ_c^½ z, at a cost of N² each. How steps are taken: `overlaps.online.steps`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from copy import copy, deepcopy
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..averages import ClosedForm, LossQuadrature, method_for
from ..averages.decisions import by_label, shares_of_rows
from ..interface.checks import grid
from ..interface.errors import InputError, shown
from ..problem.start import Start, block_overlaps, fixed_rows
from ..problem.statement import Problem
from ..trajectory.dataset import Trajectory
from ..trajectory.finished_runs import FinishedRuns
from .latent_inputs import latent_inputs
from .recording import NEVER, Measure, Observed, Recorded
from .runs import record, refuse_kernels
from .steps import BLOCK, Sampler, Target, blocked, direct, given, mean_loss, redraw

Array = NDArray[np.float64]
BLOCKED_FROM = 160  # student units from which blocks are faster by 1.3 at all sizes (make bench measures it)
AHEAD = 128  # inputs of a hidden manifold made by one matrix product
LARGEST = 2.5e8  # numbers of the inputs that are drawn at once


class RunWeightObserver(Protocol):
    """What observes one run: from weights W (K, N) and readout v (K,) to arrays of fixed names and shapes."""

    def observe(self, W: Array, v: Array) -> dict[str, Array]: ...


class WeightObserver(Protocol):
    """What to observe along training.

    times: when, or None for all times of the run.
    """

    @property
    def times(self) -> ArrayLike | None: ...

    def variables(self, problem: Problem, start: Start) -> dict[str, tuple[str, ...]]:
        """Dimensions of each array that an observer of a run returns."""
        ...

    def begin(
        self, problem: Problem, start: Start, redraw: Callable[[int], tuple[Array, NDArray[Any]]], seed: int
    ) -> RunWeightObserver:
        """An observer of one run; `redraw(count)` gives the first inputs and labels that the run trains on."""
        ...


class Weights:
    """One training run."""

    rng: np.random.Generator
    observations: list[dict[str, Array]]
    run_observer: RunWeightObserver | None = None
    stop = NEVER

    def __init__(
        self,
        problem: Problem,
        start: Start,
        observer: WeightObserver | None = None,
        observed_steps: frozenset[int] = frozenset(),
    ) -> None:
        assert start.student is not None and start.teacher is not None
        assert start.means is not None and start.dimensions is not None
        data, (K, N) = problem.data, start.student.shape
        self.kernel, self.update = problem.gradient, problem.update
        J = self.update.rule.rows
        self.W, self.v = np.zeros((J, K, N)), np.zeros((J, K))  # velocities start at zero
        self.W[0], self.v[0] = start.student, start.v
        self.turned = data.turned
        self.fixed = self.turned(fixed_rows(data.teacher_rows(start.teacher, N), start.means))
        self.dimensions = start.dimensions
        rows = data.table
        root = np.zeros((1, N))
        if rows is None and data.matrices is None:
            root = np.repeat(data.standard_deviations(start.eigenvalues), start.dimensions, axis=1)
        cumulative, labels = data.drawn_components.drawn
        targets = problem.row_targets
        labels = labels if targets is None else targets  # of components, or of rows
        table = np.empty((0, N)) if rows is None else rows
        self.sampler = Sampler(cumulative, labels, start.means, root, data.tails, table)
        read = slice(0 if problem.learns_rows else None)  # labels take the place of what a teacher says
        self.task = Target(start.teacher[read], start.u[read], problem.label_noise)
        self.value = None if rows is None else problem.value
        self.measures: dict[str, Measure] = {} if self.value is None else {"error": Measure()}
        if problem.classifies_rows:
            classes = problem.class_targets.size
            self.measures["misclassified"] = Measure()
            self.measures["confusion"] = Measure(("class", "decision"), (classes, classes))
        self.problem, self.start, self.observer = problem, start, observer
        self.observed_steps = observed_steps
        self.done = 0
        self.prepare()

    def prepare(self) -> None:
        """How steps are taken: the last part of the construction, in which kinds of inputs differ."""
        J, K, N = self.W.shape
        simple = J == 1 and self.update.batch == 1
        self.take_steps = blocked if simple and K >= BLOCKED_FROM else direct
        fewest = BLOCK if simple else 1
        # a few tenths of a second between two reports of progress, and not too many matrices of steps
        self.chunk = min(100_000, max(fewest, 100_000_000 // (self.update.batch * N * (2 * K + self.start.u.size))))

    def copy_with(self, rng: np.random.Generator) -> Weights:
        """A copy of this run with samples of its own."""
        new = copy(self)
        new.rng, new.observations = rng, []
        new.W, new.v = self.W.copy(), self.v.copy()
        if self.observer is not None:
            first = deepcopy(rng)
            seed = int(np.random.SeedSequence(first.bit_generator.seed_seq.generate_state(4)).generate_state(1)[0])
            new.run_observer = self.observer.begin(
                self.problem, self.start, lambda count: self._inputs(first, count), seed
            )
        return new

    def _inputs(self, rng: np.random.Generator, count: int) -> tuple[Array, NDArray[Any]]:
        """The first `count` inputs (count, N) and labels (count,) that a run with this generator draws."""
        rng, sampler = deepcopy(rng), self.sampler
        if len(sampler.rows):
            drawn = rng.integers(0, len(sampler.rows), size=count)
            return sampler.rows[drawn], sampler.labels[drawn if len(sampler.labels) > 1 else np.zeros_like(drawn)]
        X, labels = np.empty((count, sampler.root.shape[1])), np.empty(count, sampler.labels.dtype)
        redraw(sampler, self.task.noise, rng, X, labels)
        return X, labels

    def advance(self, steps: int) -> None:
        """Take that many steps."""
        matrices = self.update.steps(self.done, steps, self.W.shape[2])
        drawn = self.update.batch, self.rng, self.stop
        self.take_steps(self.kernel, self.sampler, self.task, self.W, self.v, matrices, *drawn)
        self.done += steps

    def record(self, steps: NDArray[np.int64]) -> Recorded:
        """Go to each of these steps and record the overlaps there, and the error where it is that of real samples."""
        K, F, B, n = self.W.shape[1], len(self.fixed), self.dimensions.size, steps.size
        Q, A, V = np.empty((n, B, K, K)), np.empty((n, B, K, F)), np.empty((n, K))
        measured = {name: np.empty((n, *of.shape)) for name, of in self.measures.items()}
        covariances: list[Array] = []
        for i, stop in enumerate(steps):
            self.advance(int(stop) - self.done)
            Q[i], A[i], _ = block_overlaps(self.turned(self.W[0]), self.fixed, self.dimensions)
            V[i] = self.v[0]
            if self.run_observer is not None and int(stop) in self.observed_steps:
                self.observations.append(self.run_observer.observe(self.W[0], self.v[0]))
            if self.measures:
                for name, value in self.measure().items():
                    measured[name][i] = value
            own = self.field_covariances()
            if own is not None:
                covariances.append(own)
        return Recorded(Q, A, V, measured, np.array(covariances) if covariances else None)

    def field_covariances(self) -> Array | None:
        """Covariances of the fields in each component, (P, K+M, K+M), where overlaps of levels do not give them."""
        return None

    @property
    def tested(self) -> tuple[Array, NDArray[Any]]:
        """Rows that the run is measured on, (rows, N), and their targets (rows,), or one for all."""
        return self.sampler.rows, self.sampler.labels

    def measure(self) -> dict[str, float | Array]:
        """The error, which is the mean of the loss over all rows, and of classes how they are taken for each other."""
        rows, labels = self.tested
        found: dict[str, float | Array] = {"error": self.mean_loss(rows, labels)}
        if self.problem.classifies_rows:
            at = rows, labels, self.problem.class_targets, self.v[0], self.task.u
            shares = shares_of_rows(self.problem.decision, self.W[0], self.task.B, *at)
            found["misclassified"] = max(0.0, float(1 - np.trace(shares)))
            found["confusion"] = by_label(shares)
        return found

    def mean_loss(self, rows: Array, labels: NDArray[Any]) -> float:
        """Mean of the loss over rows (rows, N) with labels (rows,), or one label for all."""
        return mean_loss(self.value, self.W[0], self.task.B, rows, labels, self.v[0], self.task.u)


class DrawnAhead(Weights):
    """One training run whose inputs are drawn ahead, a block of them by matrix products."""

    def prepare(self) -> None:
        super().prepare()
        _, K, N = self.W.shape
        batch = self.update.batch
        self.block_size = -(-AHEAD // batch) * batch  # whole batches
        if self.block_size * N > LARGEST:
            raise InputError(
                f"batch: {batch:,} inputs of {N} dimensions are {8e-9 * batch * N:.3g} GB, and a batch of such inputs "
                "is drawn at once; use a smaller one"
            )
        self.chunk = min(100_000, max(AHEAD, 100_000_000 // (batch * N * (self.products + 2 * K))))

    @property
    def products(self) -> int:
        """Products of numbers that a coordinate of an input takes."""
        raise NotImplementedError

    def draw_block(self, rng: np.random.Generator, count: int) -> tuple[Array, Array, NDArray[Any]]:
        """Inputs (count, N), fields of the teacher (count, M) and labels (count,)."""
        raise NotImplementedError

    def copy_with(self, rng: np.random.Generator) -> Weights:
        new = super().copy_with(rng)
        assert isinstance(new, DrawnAhead)
        new.block, new.used = new._block(rng), 0
        return new

    def _block(self, rng: np.random.Generator) -> tuple[Array, Array, NDArray[Any], Array]:
        """Inputs, teacher fields, labels and noise on the targets of the next steps."""
        X, Y, labels = self.draw_block(rng, self.block_size)
        shifts = (
            self.task.noise * rng.standard_normal(self.block_size) if self.task.noise else np.zeros(self.block_size)
        )
        return X, Y, labels, shifts

    def advance(self, steps: int) -> None:
        batch = self.update.batch
        while steps:
            # whole blocks are drawn, so that a run does not depend on where it is recorded
            if self.used == self.block_size:
                self.block, self.used = self._block(self.rng), 0
            count = min(steps, (self.block_size - self.used) // batch)
            X, Y, labels, shifts = (part[self.used : self.used + count * batch] for part in self.block)
            matrices = self.update.steps(self.done, count, self.W.shape[2])
            given(self.kernel, X, Y, labels, shifts, self.task.u, self.W, self.v, matrices, batch)
            self.used += count * batch
            self.done += count
            steps -= count

    def _inputs(self, rng: np.random.Generator, count: int) -> tuple[Array, NDArray[Any]]:
        rng = deepcopy(rng)
        blocks = [self._block(rng) for _ in range(-(-count // self.block_size))]
        return np.concatenate([b[0] for b in blocks])[:count], np.concatenate([b[2] for b in blocks])[:count]


class HiddenWeights(DrawnAhead):
    """One training run on a hidden manifold."""

    def prepare(self) -> None:
        self.realised = latent_inputs(self.problem).at(self.W.shape[2])
        super().prepare()
        self.how = method_for(self.problem, self.start.u)
        self.measures = {"error": Measure()} if self.problem.data.has_means else {}

    @property
    def products(self) -> int:
        return self.realised.D

    def draw_block(self, rng: np.random.Generator, count: int) -> tuple[Array, Array, NDArray[Any]]:
        return self.realised.draw(rng, count, self.task.B)

    def measure(self) -> dict[str, float | Array]:
        """The error, as Gaussian average of the loss for the fields that the weights have given each component."""
        assert isinstance(self.how, (ClosedForm, LossQuadrature))
        parts = self.realised.parts
        C, means = parts.fields(self.W[0], self.task.B)
        each = [averages.error for averages in self.how.each(C, self.v[0], means)]
        return {"error": float(parts.weights @ each)}


class ClassWeights(DrawnAhead):
    """One training run on Gaussian classes, whose inputs are Σ_c^½ z + μ_c."""

    def prepare(self) -> None:
        self.classes: Any = self.problem.data
        super().prepare()

    @property
    def products(self) -> int:
        return self.classes.size

    def draw_block(self, rng: np.random.Generator, count: int) -> tuple[Array, Array, NDArray[Any]]:
        X, drawn = self.classes.draw_inputs(rng, count)
        return X, X @ self.task.B.T / np.sqrt(self.classes.size), self.classes.components.labels[drawn]

    def field_covariances(self) -> Array:
        return self.classes.field_covariances(np.concatenate([self.W[0], self.task.B]))


def train(
    problem: Problem,
    start: Start,
    times: ArrayLike | None,
    runs: int,
    seed: int,
    *,
    levels: bool,
    kernels: bool,
    observe: WeightObserver | None,
    kept: FinishedRuns | None,
    progress: bool,
) -> Trajectory:
    """Training runs of a one-pass algorithm; see `overlaps.train`."""
    refuse_kernels(kernels)
    if start.student is None or start.teacher is None:
        raise InputError(
            "start: micro needs weights; use draw or Start.from_weights (sample gives the same law from overlaps)"
        )
    observed, observed_steps = None, frozenset[int]()
    if observe is not None:
        observed, observed_steps = _observed(observe, problem, start, grid(times))
    try:
        problem.data.check_theory(start.size)
    except InputError as error:
        warnings.warn(
            f"error is the Gaussian average of these weights, which is not that of the inputs: {error}", stacklevel=4
        )
    kind = HiddenWeights if problem.data.reads_latent else Weights
    if problem.data.matrices is not None:
        kind = ClassWeights
    run = kind(problem, start, observe, observed_steps)
    return record(
        "micro", run, problem, start, times, runs, seed, levels=levels, kept=kept, progress=progress, observed=observed
    )


def _observed(observe: WeightObserver, problem: Problem, start: Start, times: Array) -> tuple[Observed, frozenset[int]]:
    """Times and dimensions of what is observed, and the steps at which it is."""
    if not (hasattr(observe, "begin") and hasattr(observe, "variables") and hasattr(observe, "times")):
        raise InputError(f"observe: expected an observer such as overlaps.spectra.Observer(), got {shown(observe)}")
    at = times if observe.times is None else grid(observe.times)
    absent = at[~np.isin(at, times)]
    if absent.size:
        raise InputError(f"observe: its time {absent[0]:g} is not among times; add it there")
    assert start.student is not None
    size = start.student.shape[1]
    exact = at * size
    steps, first = np.unique(np.floor(exact + 1e-9).astype(np.int64), return_index=True)
    # a time between two steps is observed at the first of them, and that step's time is the one recorded
    seen = np.where(np.abs(exact[first] - steps) < 1e-6, at[first], steps / size)
    return Observed(seen, observe.variables(problem, start)), frozenset(steps.tolist())
