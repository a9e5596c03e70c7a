"""The paper's problem: a perceptron learns two classes of equal weight and covariance I by full-batch training.

|x̂(y)| = 1, a start of length .1 orthogonal to the means, step size t = .2, m samples in n = γ m dimensions. Labels and
loss are not given in print; here labels are 0 and 1, the loss is (f − y)²/2 or log(1 + exp(−(2y − 1) f)), f = σ(p).

>>> task = problem("softplus", "logistic", momentum=0.9)
>>> task.algorithm
FullBatch(25 steps, rate 0.2, ema-momentum, ratio 1, momentum=0.9)
>>> start(task, samples=200)
Start(weights and overlaps: K = 1, 2 means, 1 level, N = 200)
"""

from __future__ import annotations

import numpy as np

import overlaps as ov

RATE, LENGTH, COUPLING = 0.2, 0.1, -0.5
ACTIVATIONS, LOSSES = ("relu", "softplus"), ("square", "logistic")
NAMES = {"relu": "ReLU", "softplus": "soft ReLU"}


def problem(
    activation: str = "softplus",
    loss: str = "square",
    *,
    coupling: float = COUPLING,
    ratio: float = 1.0,
    momentum: float = 0.0,
    steps: int = 25,
) -> ov.Problem:
    """The problem with ν(0, 1) = `coupling`, γ = `ratio` and s = `momentum`."""
    method = "ema-momentum" if momentum else "gd"
    return ov.Problem(
        data=ov.GaussianMixture(gram=[[1.0, coupling], [coupling, 1.0]], labels=[0, 1]),
        student=ov.Committee(1, activation),
        loss=loss,
        algorithm=ov.FullBatch(steps, RATE, method, ratio=ratio, momentum=momentum),
    )


def start(problem: ov.Problem, samples: int) -> ov.Start:
    """θ(0) of length .1 along the last dimension, which no mean has, for `samples` samples."""
    algorithm = problem.algorithm
    assert isinstance(algorithm, ov.FullBatch)
    size = round(algorithm.ratio * samples)
    W = np.zeros((1, size))
    W[0, -1] = LENGTH * np.sqrt(size)
    return ov.Start.from_weights(problem, W)
