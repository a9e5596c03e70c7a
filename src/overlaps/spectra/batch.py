"""Samples to average over: inputs x in rows, their labels and, where known, the components they came from.

Fresh samples of a problem are x = μ_c + √(s_c ω_b) z, as in training; for `Samples` they are rows of the data set,
drawn with replacement; of rows with classes `Batch(data.rows, problem.row_targets)` are all.

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
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..interface.checks import array, checked, whole
from ..interface.errors import InputError
from ..problem.start import Start, check
from ..problem.statement import Problem

Array = NDArray[np.float64]
Labels = NDArray[np.int64] | NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Batch:
    """Samples, each with the same weight.

    Parameters
    ----------
    inputs: x in rows, (samples, N), in the coordinates of the weights (the eigenbasis of the covariance).
    labels: numbers, whole ones for classes, (samples,); None where targets are those of a teacher.
    components: component of the mixture that each sample came from, (samples,), where it is known.
    """

    inputs: Array
    labels: Labels | None = None
    components: Labels | None = None

    def __init__(self, inputs: ArrayLike, labels: ArrayLike | None = None, components: ArrayLike | None = None) -> None:
        X = array("inputs", inputs, (None, None))
        if not X.size:
            raise InputError(f"inputs: expected at least one sample of at least one entry, got shape {X.shape}")
        object.__setattr__(self, "inputs", X)
        object.__setattr__(self, "labels", None if labels is None else _labels(labels, len(X)))
        drawn = None if components is None else _whole_numbers("components", components, len(X))
        object.__setattr__(self, "components", drawn)

    @classmethod
    @checked
    def draw(cls, problem: Problem, start: Start, samples: int, seed: int = 0) -> Batch:
        """Fresh samples of the inputs of `problem` at the size of `start`, as many as `samples`."""
        start.check_fits(problem)
        samples, rng = whole("samples", samples, least=1), np.random.default_rng(whole("seed", seed, least=0))
        data: Any = problem.data
        check_inputs(problem)
        if data.table is not None:
            drawn = rng.integers(0, len(data.table), samples)
            targets = problem.row_targets
            return cls(data.table[drawn], None if targets is None else targets[drawn])
        if start.size is None:
            raise InputError("start: samples have a size, this start has none; use draw, or size= in from_overlaps")
        if samples * start.size > 1e9:
            raise InputError(
                f"samples: {samples} of {start.size} inputs each are {samples * start.size * 8e-9:.0f} GB; use fewer"
            )
        weights, _, labels = data.drawn_components
        if data.matrices is not None:
            X, components = data.draw_inputs(rng, samples)
            return cls(X, labels[components], components)
        if data.tails:
            X = rng.standard_normal((samples, start.size))
            X *= np.repeat(data.standard_deviations(data.eigenvalues)[0], data.dimensions(start.size))
            X *= np.sqrt((data.tails - 2) / rng.chisquare(data.tails, samples))[:, None]
            return cls(X, np.zeros(samples, np.int64))
        components = rng.choice(weights.size, samples, p=weights)
        X = rng.standard_normal((samples, start.size))
        X *= np.repeat(np.sqrt(data.component_eigenvalues), data.dimensions(start.size), axis=1)[components]
        means = data.mean_vectors(start.size) if start.means is None else start.means
        if len(means):
            X += means[components]
        return cls(X, labels[components], components)

    @property
    def own_labels(self) -> Labels:
        """The labels, or zeros where there are none, which a loss with a teacher does not read."""
        return np.zeros(len(self), np.int64) if self.labels is None else self.labels

    def __len__(self) -> int:
        return len(self.inputs)

    def __repr__(self) -> str:
        count, size = self.inputs.shape
        seen = "no labels" if self.labels is None else f"labels {self.labels.min()} to {self.labels.max()}"
        return f"Batch({count} sample{'s' * (count != 1)} of {size} inputs, {seen})"


def check_inputs(problem: Problem) -> None:
    """Refuse a teacher that reads what is not in a batch, and regression on labels of rows."""
    if problem.regresses_rows:
        raise InputError(
            "data: spectra are for inputs with a teacher, for mixtures and for rows of classes, not for a regression "
            "on labels of rows; name groups=1 of two classes, or give Samples without labels and a teacher"
        )
    if problem.data.reads_latent:
        raise InputError(
            "data: the teacher of a hidden manifold reads the latent, which samples of the inputs do not hold; spectra "
            "are for inputs that both networks read"
        )


def by_law(problem: Problem, start: Start) -> tuple[Problem, Start]:
    """The problem whose inputs are averaged over: Gaussians in place of rows of classes, all else as it is."""
    check(problem, start)
    check_inputs(problem)
    if not problem.classifies_rows:
        return problem, start
    if start.student is None:
        raise InputError("start: spectra of rows of classes are those of weights; use draw or Start.from_weights")
    same = problem.class_equivalent
    return same, Start.from_weights(same, start.student, student_readout=start.v)


def _labels(values: ArrayLike, count: int) -> Labels:
    """Labels as whole numbers, as classes are, or as they are where one is not whole."""
    checked = array("labels", values, (count,))
    return _whole_numbers("labels", checked, count) if (checked == np.rint(checked)).all() else checked


def _whole_numbers(name: str, values: ArrayLike, count: int) -> Labels:
    checked = array(name, values, (count,))
    wrong = np.flatnonzero((checked != np.rint(checked)) | (np.abs(checked) > 1e9))
    if wrong.size:
        raise InputError(f"{name}[{wrong[0]}]: expected a whole number of at most 1e9, got {checked[wrong[0]]:g}")
    return checked.astype(np.int64)
