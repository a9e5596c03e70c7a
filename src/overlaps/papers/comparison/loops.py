"""Training written out in NumPy, sample by sample and step by step, for the claims to compare with.

Nothing of it is shared with the library's own loop: the data matrix is drawn here, ω = ∂ℓ(σ(p), y)/∂p is written by
hand, and methods are their textbook recursions,

    gd            θ ← θ − t q
    ema-momentum  u ← s u + (1 − s) q,  θ ← θ − t u
    heavy-ball    θ ← θ − t q + s (θ − θ_before).

>>> import numpy as np
>>> omega, loss = dual(np.array([0.0]), 1.0, "softplus", "logistic")
>>> float(loss[0]), float(omega[0])  # log(1 + 1/2) and −(1/3) σ'(0)
(0.4054651081081644, -0.16666666666666666)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

import overlaps as ov

Array = NDArray[np.float64]


def dual(p: Array, y: Array | float, activation: str, loss: str) -> tuple[Array, Array]:
    """ω(p, y) of (25), and the loss, of fields p with labels y, 0 or 1."""
    if activation == "relu":
        f, slope = np.maximum(p, 0.0), np.heaviside(p, 0.0)
    else:
        f, slope = np.logaddexp(0.0, p), expit(p)
    if loss == "square":
        return (f - y) * slope, (f - y) ** 2 / 2
    sign = 2 * y - 1
    return -sign * expit(-sign * f) * slope, np.logaddexp(0.0, -sign * f)


class Run(NamedTuple):
    """A run: training error (T,), weights (T, n) and gradients (T, n) at each step."""

    error: Array
    theta: Array
    gradient: Array


def train(problem: ov.Problem, start: ov.Start, seed: int, method: str | None = None) -> Run:
    """One run with the problem's own method, or another one."""
    algorithm, loss = problem.algorithm, problem.loss
    assert isinstance(algorithm, ov.FullBatch) and isinstance(loss, str) and isinstance(problem.student, ov.Committee)
    assert start.student is not None and start.means is not None and start.size is not None
    activation, rng = problem.student.g.name, np.random.default_rng(seed)
    n, m = start.size, algorithm.samples(start.size)
    labels = np.arange(m) % 2
    X, y = rng.standard_normal((n, m)) + start.means[labels].T, labels.astype(float)
    theta = start.student[0] / np.sqrt(n)
    before, u, t, s = theta, np.zeros(n), algorithm.rate, algorithm.momentum
    steps: list[tuple[float, Array, Array]] = []
    for _ in range(algorithm.steps + 1):
        omega, losses = dual(X.T @ theta, y, activation, loss)
        q = X @ omega / m
        steps.append((float(losses.mean()), theta, q))
        if (method or algorithm.method) == "heavy-ball":
            theta, before = theta - t * q + s * (theta - before), theta
        else:
            u = s * u + (1 - s) * q  # gradient descent at s = 0
            theta = theta - t * u
    error, weights, gradients = zip(*steps, strict=True)
    return Run(np.array(error), np.array(weights), np.array(gradients))
