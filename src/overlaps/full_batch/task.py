"""A full-batch problem in numbers: what its theory and its runs read of a problem and a start.

Fields of a sample are p = xᵀθ for every *column* θ that the algorithm asks for: M teachers first, which never move,
then the K students at step 0, 1, …, T − 1, so that column M + l K + k is student k at step l, D = M + T K in all. With
the gradients Q = X Ω/m, of the duals Ω = ∂loss/∂p (zero for teachers), and the *sources* S = (students at the start,
teachers, means), (N, K + M + P), all columns are

    Θ = S C − Q Λ,

C (K+M+P, D) and Λ (D, D) being the kernels of the algorithm, block by block; Λ is zero unless row is before column.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..algorithms import FullBatch
from ..compiled.functions import loop
from ..data.inputs import apportion
from ..interface.errors import InputError
from ..problem.start import Start
from ..problem.statement import Problem
from .batches import Batches

Array = NDArray[np.float64]


@loop(nogil=True)
def samplewise(gradient, value, p, nu, labels, v, u, noise, delta, loss):  # pragma: no cover - compiled
    """Write the gradients δ (n, K) and losses (n,) of samples with noisy targets; no losses if `loss` is empty."""
    unused = np.empty(v.size)
    for i in range(p.shape[0]):
        gradient(p[i], nu[i], labels[i], v, u, noise[i], delta[i], unused)
        if loss.size:
            loss[i] = value(p[i], nu[i], labels[i], v, u, noise[i])


def full_batch_of(problem: Problem) -> FullBatch:
    """The algorithm of a problem that is trained by full batches."""
    assert isinstance(problem.algorithm, FullBatch)
    return problem.algorithm


@dataclass(frozen=True, eq=False)
class FullBatchTask:
    """Numbers of a problem with `FullBatch` and a start; at a size, those of the samples that there are.

    last: step to which they go, the last of the algorithm by default.
    """

    problem: Problem
    start: Start
    last: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.problem.algorithm, FullBatch):
            raise InputError(
                f"algorithm: expected FullBatch, got {type(self.problem.algorithm).__name__}; use "
                "algorithm=FullBatch(steps, rate)"
            )
        if self.problem.learns_rows:
            raise InputError("data: this is for Gaussian inputs, got labelled rows; use solve or train")
        _ = self.weights  # class counts are refused here, before anything runs

    @property
    def algorithm(self) -> FullBatch:
        return full_batch_of(self.problem)

    @property
    def K(self) -> int:
        return self.problem.student.units

    @property
    def M(self) -> int:
        return self.problem.teacher_units

    @property
    def T(self) -> int:
        """Steps, the start included."""
        return (self.algorithm.steps if self.last is None else self.last) + 1

    @property
    def D(self) -> int:
        """Columns."""
        return self.M + self.T * self.K

    def block(self, step: int) -> slice:
        """Columns of the students at a step; those of the teachers at step −1."""
        if step < 0:
            return slice(0, self.M)
        return slice(self.M + step * self.K, self.M + (step + 1) * self.K)

    @cached_property
    def counts(self) -> NDArray[np.int64] | None:
        """Samples of each component, (components,), or None without a size."""
        if self.start.size is None:
            return None
        m, weights = self.algorithm.samples(self.start.size), self.problem.data.components.weights
        counts = apportion(weights, m)
        if counts.min() == 0:
            c = int(counts.argmin())
            raise InputError(
                f"ratio: {m} samples leave none of component {c}, of weight {weights[c]:.3g}; use a larger size, a "
                "smaller ratio or other weights"
            )
        return counts

    @property
    def samples(self) -> int:
        """m, of a start with a size."""
        assert self.counts is not None
        return int(self.counts.sum())

    @cached_property
    def batches(self) -> Batches | None:
        """What steps use of the samples, or None where they use all of them."""
        algorithm = self.algorithm
        if algorithm.batch is None:
            return None
        draws, samples = algorithm.batch, 1.0
        if self.counts is not None:
            draws, samples = algorithm.batch_samples(self.samples), self.samples
        return Batches(draws, samples, algorithm.replacement) if algorithm.replacement or draws < samples else None

    @cached_property
    def weights(self) -> Array:
        """ρ: share of the samples in each component, (components,)."""
        return self.problem.data.components.weights if self.counts is None else self.counts / self.samples

    @property
    def labels(self) -> NDArray[np.int64] | NDArray[np.float64]:
        """A label for each component, (components,)."""
        return self.problem.data.components.labels

    @property
    def data(self) -> Any:
        """The inputs, which the problem has checked."""
        return self.problem.data

    @cached_property
    def covariances(self) -> Array:
        """r_g(c): eigenvalue of component c on level g, (components, levels)."""
        return self.data.component_eigenvalues

    @cached_property
    def shares(self) -> Array:
        """Dimensions of each level per sample, n_g/m, (levels,)."""
        start = self.start
        ratio = self.algorithm.ratio if start.size is None else start.size / self.samples
        return start.fractions * ratio

    @cached_property
    def gram(self) -> Array:
        """Inner products of the sources per level, (levels, K+M+P, K+M+P)."""
        return self.start.gram

    @cached_property
    def kernels(self) -> tuple[Array, Array]:
        """λ (T,) and Λ (T, T) of the algorithm."""
        return self.algorithm.first_kernels(self.T)

    @cached_property
    def first(self) -> Array:
        """C: what the columns have of the sources before any gradient, (K+M+P, D)."""
        C = np.zeros((self.gram.shape[-1], self.D))
        C[self.K : self.K + self.M, : self.M] = np.eye(self.M)
        kernel = self.kernels[0]
        for l in range(self.T):
            C[: self.K, self.block(l)] = kernel[l] * np.eye(self.K)
        return C

    @cached_property
    def history(self) -> Array:
        """Λ, (D, D)."""
        out = np.zeros((self.D, self.D))
        out[self.M :, self.M :] = np.kron(self.kernels[1], np.eye(self.K))
        return out

    @cached_property
    def functions(self) -> tuple[Any, Any]:
        """Compiled gradient and loss of one sample."""
        return self.problem.gradient, self.problem.value

    def duals(self, p: Array, nu: Array, labels: NDArray[Any], noise: Array) -> tuple[Array, Array]:
        """Gradients δ (n, K) and losses (n,) of samples with student fields p (n, K) and teacher fields nu (n, M).

        labels, noise: (n,), the noise that is added to each target.
        """
        delta, loss = np.empty(p.shape), np.empty(len(p))
        p, nu = np.ascontiguousarray(p), np.ascontiguousarray(nu)
        samplewise(*self.functions, p, nu, labels, self.start.v, self.start.u, noise, delta, loss)
        return delta, loss

    def slopes(self, p: Array, nu: Array, labels: NDArray[Any], noise: Array) -> tuple[Array, Array]:
        """∂δ/∂λ (n, K, K) and ∂δ/∂ν (n, K, M) by central differences of the gradients, for smooth losses."""
        step, K, D = 1e-5, self.K, self.K + self.M
        moved = np.tile(np.concatenate([p, nu], axis=1), (2, D, 1, 1))  # (sign, field that moves, n, field)
        for j in range(D):
            moved[0, j, :, j] += step
            moved[1, j, :, j] -= step
        p, nu = (np.ascontiguousarray(x.reshape(2 * D * len(p), x.shape[-1])) for x in np.split(moved, [K], axis=-1))
        labels, noise = np.tile(labels, 2 * D), np.tile(noise, 2 * D)
        delta = np.empty((2, D, *moved.shape[2:3], K))
        samplewise(
            *self.functions, p, nu, labels, self.start.v, self.start.u, noise, delta.reshape(p.shape), np.empty(0)
        )
        slopes = ((delta[0] - delta[1]) / (2 * step)).transpose(1, 2, 0)
        return slopes[:, :, :K], slopes[:, :, K:]
