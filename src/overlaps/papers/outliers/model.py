"""The paper's two problems, and where training starts.

>>> classes(3).data, xor(4).data
(GaussianMixture(3 components, variance 0.1), GaussianMixture(4 components, variance 0.1, labels [1, 1, 0, 0]))
>>> start(xor(4), size=100, seed=1)
Start(weights and overlaps: K = 4, 4 means, 1 level, N = 100)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

import overlaps as ov

XOR_GRAM = ((1, -1, 0, 0), (-1, 1, 0, 0), (0, 0, 1, -1), (0, 0, -1, 1))  # of μ, −μ, ν, −ν


def classes(
    k: int = 10,
    *,
    variance: float = 0.1,
    decay: float = 0.01,
    weights: Sequence[float] | None = None,
    size: int | None = None,
) -> ov.Problem:
    """Softmax regression on k classes with orthonormal means, of equal weight unless told otherwise.

    With a `size` the means are unit vectors, spread over the coordinates as in `coordinates`; without, any will do.
    """
    means = k if size is None else np.eye(size)[coordinates(k, size)]
    return ov.Problem(
        data=ov.GaussianMixture(means=means, weights=weights, variance=variance),
        student=ov.Softmax(k),
        algorithm=ov.OnlineSGD(1.0, decay=decay),
        loss="cross-entropy",
    )


def coordinates(k: int, size: int) -> NDArray[np.int64]:
    """Coordinates of the means, counted from 0: i size/(2k) − 1 for i = 1 to k, the paper's e_50i at size 1000."""
    return np.arange(1, k + 1) * (size // (2 * k)) - 1


def xor(units: int = 20, *, variance: float = 0.1, decay: float = 0.02) -> ov.Problem:
    """A two-layer ReLU network with logistic loss on the XOR mixture of ±μ, label 1, and ±ν, label 0."""
    return ov.Problem(
        data=ov.GaussianMixture(gram=XOR_GRAM, labels=[1, 1, 0, 0], variance=variance),
        student=ov.Committee(units, "relu", train_readout=True),
        algorithm=ov.OnlineSGD(1.0, decay=decay),
        loss="logistic",
    )


def start(problem: ov.Problem, size: int, seed: int) -> ov.Start:
    """The paper's start: rows w ~ N(0, I/d), and a readout v ~ N(0, 1) where there is one."""
    drawn = ov.draw(problem, size, seed)
    if not problem.student.train_readout:
        return drawn
    assert drawn.student is not None
    readout = np.random.default_rng([seed, 1]).standard_normal(problem.student.units)
    return ov.Start.from_weights(problem, drawn.student, student_readout=readout)
