"""Samples to average over: inputs x in rows, their labels and, where known, the components they came from.

Fresh samples of a problem are x = μ_c + √(s_c ω_b) z, as in training; for `Samples` they are rows of the data set,
drawn with replacement.

>>> import overlaps as ov
>>> problem = ov.Problem(
...     data=ov.GaussianMixture(means=3, variance=0.1), student=ov.Softmax(3), loss="cross-entropy",
...     algorithm=ov.OnlineSGD(1.0, decay=0.01),
... )
>>> Batch.draw(problem, ov.draw(problem, size=50), 400, seed=1)
Batch(400 samples of 50 inputs, labels 0 to 2)
>>> Batch([[0.1, 0.2], [0.3, 0.4]], labels=[0, 1])
Batch(2 samples of 2 inputs, labels 0 to 1)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..checks import array, whole
from ..data import Samples
from ..errors import InputError
from ..problem import Problem
from ..start import Start

Array = NDArray[np.float64]
Labels = NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class Batch:
    """Samples, each with the same weight.

    Parameters
    ----------
    inputs: x in rows, (samples, N), in the coordinates of the weights (the eigenbasis of the covariance).
    labels: whole numbers, (samples,); zeros where the data have none.
    components: component of the mixture that each sample came from, (samples,), where it is known.
    """

    inputs: Array
    labels: Labels
    components: Labels | None = None

    def __init__(self, inputs: ArrayLike, labels: ArrayLike | None = None, components: ArrayLike | None = None) -> None:
        X = array("inputs", inputs, (None, None))
        if not X.size:
            raise InputError(f"inputs: expected at least one sample of at least one entry, got shape {X.shape}")
        given = np.zeros(len(X)) if labels is None else labels
        object.__setattr__(self, "inputs", X)
        object.__setattr__(self, "labels", _whole_numbers("labels", given, len(X)))
        object.__setattr__(
            self, "components", None if components is None else _whole_numbers("components", components, len(X))
        )

    @classmethod
    def draw(cls, problem: Problem, start: Start, count: int, seed: int = 0) -> Batch:
        """`count` fresh samples of the inputs of `problem` at the size of `start`."""
        start.check_fits(problem)
        count, rng = whole("count", count, least=1), np.random.default_rng(whole("seed", seed, least=0))
        data = problem.data
        if isinstance(data, Samples):
            return cls(data.rows[rng.integers(0, len(data.rows), count)])
        if start.size is None:
            raise InputError("start: samples have a size, this start has none; use draw, or size= in from_overlaps")
        if count * start.size > 1e9:
            raise InputError(
                f"count: {count} samples of {start.size} inputs are {count * start.size * 8e-9:.0f} GB; use fewer"
            )
        weights, variances, labels = data.components
        components = rng.choice(weights.size, count, p=weights)
        X = rng.standard_normal((count, start.size))
        X *= np.repeat(np.sqrt(data.eigenvalues), data.dimensions(start.size))
        X *= np.sqrt(variances)[components, None]
        means = data.mean_vectors(start.size)
        if len(means):
            X += means[components]
        return cls(X, labels[components], components)

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        count, size = self.inputs.shape
        return f"Batch({count} samples of {size} inputs, labels {self.labels.min()} to {self.labels.max()})"


def _whole_numbers(name: str, values: ArrayLike, count: int) -> Labels:
    checked = array(name, values, (count,))
    wrong = np.flatnonzero((checked != np.rint(checked)) | (np.abs(checked) > 1e9))
    if wrong.size:
        raise InputError(f"{name}[{wrong[0]}]: expected a whole number of at most 1e9, got {checked[wrong[0]]:g}")
    return checked.astype(np.int64)
