"""Training written out in NumPy, step by step, for the claims to compare with.

Nothing of it is shared with the library's own loop: the data matrices are drawn here, ω = ∂ℓ(σ(p), y)/∂p is written by
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
TOGETHER = 2_000_000  # entries of the data matrices that are trained on at a time


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


class Runs(NamedTuple):
    """Training errors (runs, T), weights θ and gradients q (runs, T, n) at all T steps."""

    error: Array
    theta: Array
    gradient: Array


def train(problem: ov.Problem, start: ov.Start, runs: int, seed: int, method: str | None = None) -> Runs:
    """Independent runs with the problem's own method, or another one; classes take turns among the samples."""
    algorithm = problem.algorithm
    assert isinstance(algorithm, ov.FullBatch) and start.size is not None
    rng = np.random.default_rng(seed)
    most = max(1, TOGETHER // (start.size * algorithm.samples(start.size)))
    counts = [min(most, runs - done) for done in range(0, runs, most)]
    parts = [_train(problem, algorithm, start, count, rng, method) for count in counts]
    return Runs(*(np.concatenate(each) for each in zip(*parts, strict=True)))


def _train(
    problem: ov.Problem, algorithm: ov.FullBatch, start: ov.Start, runs: int, rng: np.random.Generator,
    method: str | None,
) -> Runs:  # fmt: skip
    assert isinstance(problem.student, ov.Committee) and isinstance(problem.loss, str)
    assert start.student is not None and start.means is not None
    n = start.student.shape[1]
    m, t, s = algorithm.samples(n), algorithm.rate, algorithm.momentum
    assert isinstance(t, float)
    classes = np.arange(m) % 2
    y = classes.astype(float)[:, None]
    X = rng.standard_normal((runs, n, m))
    X += start.means[classes].T
    theta = np.broadcast_to(start.student.T / np.sqrt(n), (runs, n, 1))
    before, u = theta, np.zeros((runs, n, 1))
    T = algorithm.steps + 1
    out = Runs(np.empty((runs, T)), np.empty((runs, T, n)), np.empty((runs, T, n)))
    for l in range(T):
        omega, losses = dual(X.transpose(0, 2, 1) @ theta, y, problem.student.g.name, problem.loss)
        q = X @ omega / m
        out.error[:, l], out.theta[:, l], out.gradient[:, l] = losses.mean((1, 2)), theta[..., 0], q[..., 0]
        if (method or algorithm.method) == "heavy-ball":
            theta, before = theta - t * q + s * (theta - before), theta
        else:
            u = s * u + (1 - s) * q  # gradient descent at s = 0
            theta = theta - t * u
    return out
