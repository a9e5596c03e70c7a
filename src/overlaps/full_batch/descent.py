"""Full-batch training: the one loop that all kinds of data matrix share.

    p(l) = Xᵀθ(l)      δ(l) = ∂loss/∂p      q(l) = X (s(l) δ(l))/m      θ(l+1) = λ(l+1) θ(0) − Σ_{μ≤l} q(μ) Λ(μ, l+1)

The data matrix X is one of `overlaps.full_batch.data_matrices`. The multipliers s of the samples are
one unless steps use a part of them (`overlaps.full_batch.batches`). The overlaps of θ at every step are kept, and the
mean loss of all samples, the training error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..interface.errors import NumericalError
from ..problem.start import LIMIT
from .data_matrices import DataMatrix
from .task import FullBatchTask

Array = NDArray[np.float64]


class Descent(NamedTuple):
    """A bundle of runs, until the last step that all of them reached within bounds.

    Q (runs, steps, levels, K, K), A (runs, steps, levels, K, M+P): overlaps.
    loss: mean loss of the samples, (runs, steps).
    V_theta, V_omega: on request, overlaps of students and of duals s δ at two times, for each component,
        (runs, components, steps, steps, K, K); otherwise without entries.
    largest: largest overlap at the step after the last one kept, where that was out of bounds; otherwise 0.
    stopped: why the matrix could not give fields or gradients at the step after the last one kept, or None.
    """

    Q: Array
    A: Array
    loss: Array
    V_theta: Array
    V_omega: Array
    largest: float
    stopped: NumericalError | None


def descend(
    task: FullBatchTask,
    matrix: DataMatrix,
    runs: int,
    rng: np.random.Generator,
    *,
    kernels: bool = False,
    observe: Callable[[int, Array, Array], None] | None = None,
) -> Descent:
    """Train `runs` times on `matrix`, from the weights of the start.

    observe: called at every step with (step, p (runs, m, K), q (runs, N, K)).
    """
    start, K, M = task.start, task.K, task.M
    assert start.student is not None and start.teacher is not None and start.dimensions is not None
    assert task.counts is not None and start.means is not None
    N, m, T = start.student.shape[1], task.samples, task.T
    first, history = task.kernels
    fixed = np.concatenate([start.teacher / np.sqrt(N), start.means])  # (M+P, N)
    edges = np.concatenate([[0], np.cumsum(start.dimensions)])[:-1]
    labels = np.tile(np.repeat(task.labels, task.counts), runs)
    scale = task.problem.label_noise
    noise = scale * rng.standard_normal((runs, m)).ravel() if scale else np.zeros(runs * m)
    begin = np.broadcast_to(start.student.T / np.sqrt(N), (runs, N, K))
    nu = matrix.fields(np.broadcast_to(start.teacher.T / np.sqrt(N), (runs, N, M)))
    matrix.gradient(np.zeros((runs, m, M)))  # teachers have no duals, but every column has its answer
    nu = np.ascontiguousarray(nu.reshape(runs * m, M))
    q = np.empty((T, runs, N, K))
    B, F = start.dimensions.size, len(fixed)
    Q, A, loss = np.empty((runs, T, B, K, K)), np.empty((runs, T, B, K, F)), np.empty((runs, T))
    thetas, duals = np.empty((T, runs, N, K)) if kernels else None, np.empty((T, runs, m, K)) if kernels else None
    done, largest, stopped = T, 0.0, None
    for l in range(T):
        theta = first[l] * begin - np.tensordot(history[:l, l], q[:l], 1)
        Q[:, l], A[:, l] = _overlaps(theta, fixed, edges)
        size = float(np.abs(Q[:, l]).max())
        if not size < LIMIT:
            done, largest = l, size
            break
        try:
            p = matrix.fields(theta)
            delta, losses = task.duals(p.reshape(runs * m, K), nu, labels, noise)
            if not np.isfinite(losses.sum() + delta.sum()):
                raise NumericalError(
                    f"training: the loss or its gradient is not a finite number at step {l}; reduce rate (now "
                    f"{task.algorithm.rate_text}), or check the loss",
                    quantity="training_error",
                    time=float(l),
                )
            omega = delta.reshape(runs, m, K)
            if task.batches is not None:
                omega = task.batches.draw(rng, runs)[:, :, None] * omega
            q[l] = matrix.gradient(omega)
        except NumericalError as error:
            done, stopped = l, error
            break
        loss[:, l] = losses.reshape(runs, m).mean(1)
        if thetas is not None and duals is not None:
            thetas[l], duals[l] = theta, omega
        if observe is not None:
            observe(l, p, q[l])
    V_theta = V_omega = np.empty(0)
    if thetas is not None and duals is not None:
        V_theta, V_omega = _two_times(task, thetas[:done], duals[:done], edges)
    return Descent(Q[:, :done], A[:, :done], loss[:, :done], V_theta, V_omega, largest, stopped)


def _overlaps(theta: Array, fixed: Array, edges: NDArray[np.int64]) -> tuple[Array, Array]:
    """Per level, θᵀθ (runs, levels, K, K) and θᵀ times the fixed directions, (runs, levels, K, M+P)."""
    runs, _, K = theta.shape
    Q, A = np.empty((runs, edges.size, K, K)), np.empty((runs, edges.size, K, len(fixed)))
    for k in range(K):
        for j in range(k + 1):
            Q[:, :, k, j] = Q[:, :, j, k] = np.add.reduceat(theta[:, :, k] * theta[:, :, j], edges, axis=1)
        for f, row in enumerate(fixed):
            A[:, :, k, f] = np.add.reduceat(theta[:, :, k] * row, edges, axis=1)
    return Q, A


def _two_times(task: FullBatchTask, thetas: Array, duals: Array, edges: NDArray[np.int64]) -> tuple[Array, Array]:
    """V_θ(c) = Θᵀ R_c Θ and V_ω(c) = Ω_cᵀ Ω_c/m, (runs, components, steps, steps, K, K)."""
    levels = [np.einsum("lrnk,Lrnj->rlLkj", part, part, optimize=True) for part in np.split(thetas, edges[1:], axis=2)]
    V_theta = np.einsum("cg,grlLkj->rclLkj", task.covariances, np.array(levels))
    assert task.counts is not None
    parts = np.split(duals, np.cumsum(task.counts)[:-1], axis=2)
    V_omega = np.stack([np.einsum("lrnk,Lrnj->rlLkj", part, part, optimize=True) for part in parts], axis=1)
    return V_theta, V_omega / task.samples
