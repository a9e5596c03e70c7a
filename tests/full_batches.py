"""Full-batch problems that several test files share."""

from __future__ import annotations

from typing import Any

import numpy as np

import overlaps as ov
from overlaps.full_batch.data_matrices import ExplicitDataMatrix
from overlaps.full_batch.descent import descend
from overlaps.full_batch.task import FullBatchTask
from overlaps.trajectory.points import relabelled

LEVEL = 1e-3  # of a comparison of simulations, or of theory with one
PAIR = [[1.0, -0.5], [-0.5, 1.0]]


def paper(
    activation: Any = "softplus",
    loss: Any = "logistic",
    *,
    steps: int = 25,
    rate: Any = 0.2,
    method: Any = "ema-momentum",
    ratio: float = 1.0,
    momentum: float = 0.0,
    decay: float = 0.0,
    batch: float | None = None,
    replacement: bool = False,
    **rest: Any,
) -> ov.Problem:
    """One unit on two classes whose means have the overlap −1/2, unless told otherwise."""
    rest.setdefault("data", ov.GaussianMixture(gram=PAIR, labels=[0, 1]))
    rest.setdefault("student", ov.Committee(1, activation))
    algorithm = ov.FullBatch(
        steps, rate, method, ratio=ratio, momentum=momentum, decay=decay, batch=batch, replacement=replacement
    )
    return ov.Problem(loss=loss, algorithm=algorithm, **rest)


def small_start(problem: ov.Problem, size: int) -> ov.Start:
    """One unit of length 0.1 along a coordinate that no mean has."""
    W = np.zeros((1, size))
    W[0, -1] = 0.1 * np.sqrt(size)
    return ov.Start.from_weights(problem, W)


def three_classes(**rest: Any) -> ov.Problem:
    """Softmax on three classes whose covariances differ from level to level."""
    data = ov.GaussianMixture(
        gram=[[1.0, 0.2, 0.0], [0.2, 1.0, -0.3], [0.0, -0.3, 0.8]],
        weights=[0.5, 0.3, 0.2],
        variance=[[1.0, 0.6], [0.5, 3.0], [2.0, 2.0]],
        spectrum=ov.Spectrum([1.0, 0.5], [0.6, 0.4]),
    )
    return paper(data=data, student=ov.Softmax(3), loss="cross-entropy", **rest)


def committee(activation: Any = "tanh", *, noise: float = 0.3, teachers: int = 2, **rest: Any) -> ov.Problem:
    """Two units learn from two, on two levels, with noise on the target."""
    return paper(
        data=ov.GaussianInputs(ov.Spectrum([1.6, 0.4], [0.5, 0.5])),
        teacher=ov.Committee(teachers, activation),
        student=ov.Committee(2, activation, [1.0, -0.7]),
        loss="square",
        label_noise=noise,
        **rest,
    )


def explicit_descent(problem: ov.Problem, size: int, runs: int) -> tuple[Any, FullBatchTask, ExplicitDataMatrix, Any]:
    """Start with weights, task, data matrices (seed 5) and what runs on them record (seed 6)."""
    start = ov.draw(problem, size, seed=4)
    assert start.student is not None and start.teacher is not None
    task = FullBatchTask(problem, start)
    matrix = ExplicitDataMatrix(task, runs, np.random.default_rng(5))
    return start, task, matrix, descend(task, matrix, runs, np.random.default_rng(6))


def textbook(method: str, steps: int, rate: Any, s: float, gradient, theta: np.ndarray) -> np.ndarray:
    """The points at which the algorithm of a textbook takes its gradients, (steps + 1, ...).

    rate: a number, or a function of the step.
    """
    out, before, u = [theta], theta, np.zeros_like(theta)
    y_before = theta
    for l in range(steps):
        q = gradient(theta)
        eta = rate(float(l)) if callable(rate) else rate
        if method == "gd":
            after = theta - eta * q
        elif method == "ema-momentum":
            u = s * u + (1 - s) * q
            after = theta - eta * u
        elif method == "heavy-ball":
            after = theta - eta * q + s * (theta - before)
        else:
            y = theta - eta * q
            after = y + s * (y - y_before)
            y_before = y
        before, theta = theta, after
        out.append(theta)
    return np.array(out)


def marchenko_pastur(ratio: float, nodes: int = 300) -> tuple[np.ndarray, np.ndarray]:
    """Gauss rule of the law of the eigenvalues of X Xᵀ/m, N/m = ratio, from the recurrence of its polynomials."""
    diagonal, side = np.full(nodes, 1.0 + ratio), np.full(nodes - 1, np.sqrt(ratio))
    diagonal[0] = 1.0
    values, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(side, 1) + np.diag(side, -1))
    return values, vectors[0] ** 2


def kernel_columns(result: ov.Trajectory) -> np.ndarray:
    """V_theta and V_omega as columns, (runs, points)."""
    data = result.data
    return np.concatenate([data[name].values.reshape(result.runs, -1) for name in ("V_theta", "V_omega")], axis=1)


def p_of_kernels(a: ov.Trajectory, b: ov.Trajectory) -> float:
    """Chance of kernels, and of their squares about the mean, as far apart as these."""
    x, y = kernel_columns(a), kernel_columns(b)
    both = np.concatenate([x, y])
    live = both.std(0) > 1e-12 * np.abs(both).max()
    x, y = x[:, live], y[:, live]
    centre = both[:, live].mean(0)
    columns = [np.concatenate([z, (z - centre) ** 2], axis=1) for z in (x, y)]
    return float(relabelled(*columns, LEVEL, 0, 5000)[0].min())


def log_cosh(lam, nu, c, v):
    return np.log(np.cosh(np.sum(v * lam) - c))


def log_cosh_gradient(lam, nu, c, v):
    t = np.tanh(np.sum(v * lam) - c)
    return v * t, lam * t


USER = ov.Loss(log_cosh, log_cosh_gradient, name="log-cosh")
