"""Gaussian mixtures: x = μ_c + √(s_c ω_b) z with probability p_c, z standard normal, ω_b the eigenvalue of the level.

Means are vectors of length O(1), so that a student of length O(1) sees them: its fields have mean m_c = w·μ_c and, for
isotropic inputs, variance s_c |w|². The papers' λ is 1/s.

>>> from overlaps import GaussianMixture
>>> GaussianMixture(means=3, variance=0.1)
GaussianMixture(3 components, variance 0.1)
>>> GaussianMixture(gram=[[1, -1], [-1, 1]], labels=[1, 0], weights=[0.3, 0.7])
GaussianMixture(2 components, variance 1, weights 0.3 to 0.7, labels [1, 0])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...interface.checks import array, number, numbers, whole
from ...interface.errors import InputError
from ..eigenbasis import common_eigenbasis
from ..inputs import Components, Levels
from ..spectrum import Isotropic, PowerLaw, Spectrum
from ..square_roots import cholesky
from ..tuples import component_labels, probabilities, tuples

Array = NDArray[np.float64]


@dataclass(frozen=True)
class GaussianMixture(Levels):
    """Inputs from several Gaussian components, each with a mean, a weight, a variance and a label.

    Parameters
    ----------
    means: a number of components, whose means are then orthonormal; or the mean vectors, (components, N), in the
        eigenbasis of the covariance, which fix the size of the problem.
    gram: instead of `means`, inner products μ_a·μ_b: (components, components), shared out over the levels by their
        fractions, or one matrix per level, (levels, components, components).
    weights: probabilities of the components; equal ones by default.
    variance: s, one number or one per component; zero is the limit of no noise. Or one per component and level,
        (components, levels): covariances that differ but share their eigenvectors (any others: `GaussianClasses`).
    labels: a number per component, which several may share; 0, 1, 2, … by default. Classes are whole numbers, or −1 and
        1 for losses of two classes; the square loss takes any.
    spectrum: eigenvalues of the covariance, common to all components; they are multiplied by `variance`.
    """

    means: int | Sequence[Sequence[float]] | Array | None = None
    weights: Sequence[float] | Array | None = None
    variance: float | Sequence[float] | Sequence[Sequence[float]] | Array = 1.0
    labels: Sequence[float] | None = None
    spectrum: Spectrum | PowerLaw | Isotropic = field(default_factory=Isotropic)
    gram: Sequence[Any] | Array | None = None
    has_means: ClassVar[bool] = True
    labelled: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.means is None) == (self.gram is None):
            raise InputError("means: expected either means= (a number, or vectors) or gram= (inner products)")
        if self.gram is not None:
            gram = array("gram", self.gram, None)
            if gram.ndim not in (2, 3) or gram.shape[-1] == 0:
                raise InputError(f"gram: expected a matrix of inner products, or one per level, got shape {gram.shape}")
            count = gram.shape[-1]
            array("gram", gram, (count, count) if gram.ndim == 2 else (self.eigenvalues.size, count, count))
            _check_gram(gram)
            object.__setattr__(self, "gram", tuples(gram))
        elif isinstance(self.means, (Sequence, np.ndarray)) and not isinstance(self.means, str):
            vectors = array("means", self.means, (None, None))
            if vectors.size == 0:
                raise InputError(f"means: expected at least one vector, got shape {vectors.shape}")
            count = len(vectors)
            object.__setattr__(self, "means", tuples(vectors))
        else:
            count = whole("means", self.means, least=1, most=10**4)
            object.__setattr__(self, "means", count)
        if self.weights is not None:
            object.__setattr__(self, "weights", probabilities(self.weights, count))
        object.__setattr__(self, "variance", _variance(self.variance, count, self.eigenvalues.size))
        if self.labels is not None:
            object.__setattr__(self, "labels", component_labels(self.labels, count))

    @cached_property
    def components(self) -> Components:
        """Weights, variances and labels as arrays, (components,)."""
        if self.gram is not None:
            count = np.shape(self.gram)[-1]
        else:
            count = self.means if isinstance(self.means, int) else len(self.means or ())
        weights = np.ones(count) if self.weights is None else np.array(self.weights)
        variances = np.full(count, self.variance) if np.isscalar(self.variance) else np.array(self.variance)
        if variances.ndim == 2:
            # of its covariance the trace is kept here; `component_eigenvalues` has all of it, for those who can use it
            variances = variances @ (self.eigenvalues * self.fractions) / (self.eigenvalues @ self.fractions)
        labels = np.arange(count) if self.labels is None else np.array(self.labels)
        return Components(weights / weights.sum(), variances.astype(float), labels)

    @property
    def one_covariance(self) -> bool:
        """Whether the covariances of the components are multiples of each other."""
        return np.ndim(self.variance) < 2

    @property
    def component_eigenvalues(self) -> Array:
        if self.one_covariance:
            return super().component_eigenvalues
        return np.array(self.variance, dtype=float) * self.eigenvalues

    @classmethod
    def from_covariances(
        cls,
        means: Any,
        covariances: Any,
        weights: Sequence[float] | Array | None = None,
        labels: Sequence[int] | None = None,
    ) -> GaussianMixture:
        """A mixture of mean vectors (components, N) and covariance matrices (components, N, N) that commute.

        Others are for `GaussianClasses`, which keeps the coordinates given. Here coordinates are turned to the
        eigenbasis that all share, where dimensions with the same eigenvalues in all components are one level. Means are
        turned as well; turn weights W of your own by
        ``W @ GaussianMixture.common_basis(covariances)``.
        """
        vectors = array("means", means, (None, None))
        count, size = vectors.shape
        basis, levels, sizes = common_eigenbasis(array("covariances", covariances, (count, size, size)))
        weight = np.full(count, 1 / count) if weights is None else np.array(probabilities(weights, count))
        common = levels @ weight
        unit = np.where(common > 0, common, 1.0)
        return cls(
            means=vectors @ basis,
            weights=weights,
            variance=(levels / unit[:, None]).T,
            labels=labels,
            spectrum=Spectrum(common, sizes / size),
        )

    @staticmethod
    def common_basis(covariances: Any) -> Array:
        """The basis (N, N), in columns, to which `from_covariances` turns coordinates."""
        return common_eigenbasis(array("covariances", covariances, (None, None, None)))[0]

    @cached_property
    def _vectors(self) -> Array | None:
        return None if self.means is None or isinstance(self.means, int) else np.array(self.means, dtype=float)

    @property
    def own_size(self) -> int | None:  # type: ignore[override]
        """The number of entries of means that are vectors."""
        return None if self._vectors is None else self._vectors.shape[1]

    def dimensions(self, size: int) -> NDArray[np.int64]:
        """Dimensions per level, see `GaussianInputs.dimensions`; mean vectors fix the size."""
        vectors = self._vectors
        if vectors is not None and size != vectors.shape[1]:
            raise InputError(
                f"size: the means are vectors of {vectors.shape[1]} entries, so the size is {vectors.shape[1]}, not "
                f"{size}; give gram= (inner products) for a problem of any size"
            )
        return super().dimensions(size)

    def mean_gram(self, fractions: Array, size: int | None = None) -> Array:
        """Inner products of the means per level, (levels, components, components), for levels of these fractions."""
        vectors = self._vectors
        if vectors is not None:
            edges = np.concatenate([[0], np.cumsum(self.dimensions(vectors.shape[1]))])
            return np.array([vectors[:, a:b] @ vectors[:, a:b].T for a, b in pairwise(edges)])
        gram = np.eye(len(self.components.weights)) if self.gram is None else np.array(self.gram, dtype=float)
        return gram if gram.ndim == 3 else fractions[:, None, None] * gram

    def mean_vectors(self, size: int) -> Array:
        """The means, (components, N): those given, or vectors with their inner products.

        The latter take the first coordinates of each level, which for Gaussian noise is as good a choice as any.
        """
        dimensions = self.dimensions(size)
        if self._vectors is not None:
            return self._vectors
        means = np.zeros((len(self.components.weights), size))
        first = 0
        for b, (gram, count) in enumerate(zip(self.mean_gram(dimensions / size), dimensions, strict=True)):
            rows = cholesky(gram)
            rows = rows[:, np.abs(rows).max(0) > 0]
            if rows.shape[1] > count:
                raise InputError(
                    f"size: level {b} would have {count} dimensions, but the means span {rows.shape[1]} there; use a "
                    "larger size"
                )
            means[:, first : first + rows.shape[1]] = rows
            first += int(count)
        return means

    def __repr__(self) -> str:
        count = len(self.components.weights)
        variance = self.components.variances
        text = f"GaussianMixture({count} component{'s' * (count > 1)}, variance "
        text += f"{variance[0]:g}" if np.ptp(variance) == 0 else f"{variance.min():g} to {variance.max():g}"
        if np.ptp(self.components.weights) > 1e-12:
            text += f", weights {self.components.weights.min():g} to {self.components.weights.max():g}"
        if tuple(self.components.labels) != tuple(range(count)):
            text += f", labels {self.components.labels.tolist()}"
        if not isinstance(self.spectrum, Isotropic):
            text += f", {self.spectrum!r}"
        return text + ")"


def _check_gram(gram: Array) -> None:
    blocks = gram if gram.ndim == 3 else gram[None]
    scale = max(1.0, float(np.abs(gram).max(initial=0.0)))
    if np.abs(blocks - blocks.transpose(0, 2, 1)).max(initial=0.0) > 1e-12 * scale:
        raise InputError("gram: expected a symmetric matrix of inner products")
    low = float(np.linalg.eigvalsh(blocks).min(initial=0.0))
    if low < -1e-10 * scale:
        raise InputError(f"gram: no vectors have these inner products: it has the negative eigenvalue {low:.3g}")


def _variance(given: Any, count: int, levels: int) -> Any:
    dimensions = numbers("variance", given).ndim
    if dimensions == 0:
        return number("variance", given, least=0)
    if dimensions == 3:
        raise InputError(
            "variance: expected numbers, got matrices; use GaussianClasses(means, covariances), or "
            "GaussianMixture.from_covariances for matrices that commute"
        )
    if dimensions == 2:
        table = array("variance", given, (count, levels))
        if table.min() < 0:
            raise InputError(f"variance: expected none below zero, got {table.min():g}")
        return tuples(table) if levels > 1 else tuple(table[:, 0].tolist())
    values = array("variance", given, (count,))
    for i, value in enumerate(values):
        number(f"variance[{i}]", value, least=0)
    return tuple(values.tolist())


def examples() -> tuple[GaussianMixture, ...]:
    """Two and four components, of equal and of different weights and variances, on one level and on two.

    Those of the last have covariances that differ from level to level.
    """
    return (
        GaussianMixture(means=2, variance=0.5),
        GaussianMixture(gram=[[1, -1], [-1, 1]], weights=[0.3, 0.7], variance=[0.5, 1.0]),
        GaussianMixture(
            gram=[[1, -1, 0, 0], [-1, 1, 0, 0], [0, 0, 1, -1], [0, 0, -1, 1]],
            labels=[1, 1, 0, 0],
            variance=0.2,
            spectrum=Spectrum([1.5, 0.5]),
        ),
        GaussianMixture(means=2, variance=[[0.5, 1.5], [1.2, 0.3]], spectrum=Spectrum([1.5, 0.5])),
    )


MODEL = GaussianMixture
REFUSED = (
    {"means": 0},
    {"weights": [0.5, 0.6], "means": 2},
    {"variance": -1.0, "means": 2},
    {"gram": [[1, 2], [2, 1]]},
)
