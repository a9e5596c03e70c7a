"""Micro: the training run itself, with weights, at size N.

    x = μ_c + √(s_c ω) z,  λ = W x/√N,  ν = B x/√N,    W ← (1 − ηβ/N) W − (η/√N) δ xᵀ

with z standard normal and, in a mixture, c drawn by the weights of the components (otherwise μ = 0, s = 1). For
`Samples` x is one of the rows, each equally likely, and the error is the mean over all.

Two ways to take the same steps. *Direct*: one sample at a time, drawn a cache line of coordinates after another and
multiplied while it is there. *Blocked*: S samples at once; with G = X Xᵀ and Z = X Wᵀ the fields of sample s are

    λ_s = a^s Z_s − (η/N) Σ_{r<s} a^{s−1−r} G_sr δ_r,        a = 1 − ηβ/N,

so that only S × K numbers are sequential and the rest is three matrix products. It pays off for wide students.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy, deepcopy
from typing import Protocol

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from .checks import grid
from .data import Samples
from .draws import component, fill
from .errors import InputError
from .problem import Problem
from .runs import Observed, Visit, record
from .start import Start, block_overlaps, check, fixed_rows
from .trajectory import Trajectory

Array = NDArray[np.float64]
BLOCK = 32  # samples in a block
BLOCKED_FROM = 12  # student units from which blocks are faster (make bench measures it)


@njit(fastmath={"reassoc", "contract"})
def _dot(a, b):  # pragma: no cover - compiled
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@njit(nogil=True, fastmath={"contract"})
def _direct(kernel, parts, means, W, B, root, rows, v, u, rates, noise, steps, rng):  # pragma: no cover - compiled
    (K, N), M = W.shape, B.shape[0]
    cumulative, spread, labels = parts
    P = len(means)
    rate, readout_rate, decay = rates
    keep, keep_v = 1.0 - rate * decay / N, 1.0 - readout_rate * decay / N
    lam, nu, x = np.empty(K), np.empty(M), np.empty(N)
    dlam, dv = np.empty(K), np.empty(K)
    unit = 1.0 / np.sqrt(N)
    for _ in range(steps):
        lam[:] = 0.0
        nu[:] = 0.0
        c = component(cumulative, P, rng)
        if len(rows) > 0:
            x = rows[rng.integers(0, len(rows))]
        for low in range(0, N, 1024):
            high = min(low + 1024, N)
            if len(rows) == 0:
                for i in range(low, high):
                    x[i] = spread[c] * root[i] * rng.standard_normal()
                if P > 0:
                    for i in range(low, high):
                        x[i] += means[c, i]
            for k in range(K):
                lam[k] += _dot(W[k, low:high], x[low:high])
            for m in range(M):
                nu[m] += _dot(B[m, low:high], x[low:high])
        for k in range(K):
            lam[k] *= unit
        for m in range(M):
            nu[m] *= unit
        shift = noise * rng.standard_normal() if noise > 0.0 else 0.0
        kernel(lam, nu, labels[c], v, u, shift, dlam, dv)
        for k in range(K):
            pull = rate * unit * dlam[k]
            for i in range(N):
                W[k, i] = keep * W[k, i] - pull * x[i]
        if readout_rate > 0.0:
            for k in range(K):
                v[k] = keep_v * v[k] - readout_rate / N * dv[k]


@njit(nogil=True)
def _blocked(kernel, parts, means, W, B, root, rows, v, u, rates, noise, steps, rng):  # pragma: no cover - compiled
    (K, N), M = W.shape, B.shape[0]
    cumulative, spread, labels = parts
    P = len(means)
    rate, readout_rate, decay = rates
    keep, keep_v = 1.0 - rate * decay / N, 1.0 - readout_rate * decay / N
    lam, nu = np.empty(K), np.empty(M)
    dlam, dv = np.empty(K), np.empty(K)
    unit = 1.0 / np.sqrt(N)
    block = np.empty((BLOCK, N))
    pulls, shifts, drawn = np.empty((BLOCK, K)), np.zeros(BLOCK), np.zeros(BLOCK, np.int64)
    done = 0
    while done < steps:
        S = min(BLOCK, steps - done)
        X = block[:S]
        for s in range(S):
            c = component(cumulative, P, rng)
            drawn[s] = labels[c]
            if len(rows) > 0:
                X[s] = rows[rng.integers(0, len(rows))]
            else:
                fill(X[s], c, spread, root, means, rng)
            if noise > 0.0:  # with its sample, so that both engines read the stream in one order
                shifts[s] = noise * rng.standard_normal()
        G = np.dot(X, X.T)
        Z = np.dot(X, W.T)
        Y = np.dot(X, B.T)
        shrink = 1.0
        for s in range(S):
            for k in range(K):
                lam[k] = shrink * Z[s, k]
            for r in range(s):
                g = G[s, r]
                for k in range(K):
                    lam[k] -= g * pulls[r, k]
            for k in range(K):
                lam[k] *= unit
            for m in range(M):
                nu[m] = unit * Y[s, m]
            kernel(lam, nu, drawn[s], v, u, shifts[s], dlam, dv)
            if keep != 1.0:
                shrink *= keep
                for r in range(s):
                    for k in range(K):
                        pulls[r, k] *= keep
            for k in range(K):
                pulls[s, k] = rate * unit * dlam[k]
            if readout_rate > 0.0:
                for k in range(K):
                    v[k] = keep_v * v[k] - readout_rate / N * dv[k]
        change = np.dot(np.ascontiguousarray(pulls[:S].T), X)
        for k in range(K):
            for i in range(N):
                W[k, i] = shrink * W[k, i] - change[k, i]
        done += S


@njit(nogil=True)
def _redraw(parts, means, root, noise, rng, X, drawn):  # pragma: no cover - compiled
    """The first inputs (count, N) and labels of a run, in the order in which both engines draw them."""
    cumulative, spread, labels = parts
    for s in range(len(X)):
        c = component(cumulative, len(means), rng)
        drawn[s] = labels[c]
        fill(X[s], c, spread, root, means, rng)
        if noise > 0.0:
            rng.standard_normal()


@njit(nogil=True)
def _mean_loss(value, W, B, rows, v, u):  # pragma: no cover - compiled
    """Mean of the loss over all rows."""
    lam, nu = np.empty(len(W)), np.empty(len(B))
    unit = 1.0 / np.sqrt(W.shape[1])
    total = 0.0
    for x in rows:
        for k in range(lam.size):
            lam[k] = unit * _dot(W[k], x)
        for m in range(nu.size):
            nu[m] = unit * _dot(B[m], x)
        total += value(lam, nu, 0, v, u)
    return total / len(rows)


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
        self.kernel, self.parts = problem.kernel, problem.data.components.drawn
        self.W, self.B, self.means = start.student, start.teacher, start.means
        self.fixed = fixed_rows(start.teacher, start.means)
        self.v, self.u = start.v, start.u
        self.dimensions = start.dimensions
        self.root = np.repeat(np.sqrt(problem.data.eigenvalues), start.dimensions)
        self.rows, self.value = np.empty((0, self.root.size)), None
        if isinstance(problem.data, Samples):
            self.rows, self.value = problem.data.rows, problem.value
        self.rates = (problem.algorithm.rate, problem.readout_rate, problem.algorithm.decay)
        self.noise = problem.label_noise
        self.problem, self.start, self.observer = problem, start, observer
        self.looks = looks
        self.done = 0
        K, N = self.W.shape
        self.engine = _blocked if K >= BLOCKED_FROM else _direct
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
        _redraw(self.parts, self.means, self.root, self.noise, rng, X, labels)
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
        error = None if self.value is None else np.empty(n)
        for i, stop in enumerate(stops):
            self.advance(int(stop) - self.done)
            Q[i], A[i], _ = block_overlaps(self.W, self.fixed, self.dimensions)
            V[i] = self.v
            if self.watcher is not None and int(stop) in self.looks:
                self.looked.append(self.watcher.look(self.W, self.v))
            if error is not None:
                error[i] = _mean_loss(self.value, self.W, self.B, self.rows, self.v, self.u)
        return Visit(Q, A, V, error)


def train(
    problem: Problem,
    start: Start,
    times: ArrayLike,
    runs: int = 4,
    seed: int = 0,
    *,
    levels: bool = False,
    observe: Observer | None = None,
    progress: bool = True,
) -> Trajectory:
    """Real training runs from the weights of `start`, with fresh samples in each.

    On `Samples` the inputs are rows of the data set, drawn with replacement, and `error` is the mean over all its rows.

    Parameters
    ----------
    times: increasing times, in samples per input dimension.
    runs, seed: number of independent runs; the same seed gives the same bits.
    levels: also record the overlaps of every level.
    observe: what else to look at on the way, such as `overlaps.spectra.Observer`, at its own times (which must be among
        `times`) or at all of them, at whole steps; what it sees is in the data of the trajectory, along the dimension
        `observed`.
    """
    check(problem, start)
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
    walker = Weights(problem, start, observe, looks)
    return record(
        "micro", walker, problem, start, times, runs, seed, levels=levels, progress=progress, observed=observed
    )
