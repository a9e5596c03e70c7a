"""The training set of `MultiPass`: which rows it has, and its covariance C = ⟨x xᵀ⟩ = U Λ Uᵀ.

Averages ⟨…⟩ are those over the n rows that are trained on. The best linear map of the training set, of least length
where there are several, is θ̂ = C⁺ ⟨x y⟩; it leaves the training error σ̂²/2 with σ̂² = ⟨(y − θ̂·x)²⟩.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...data.splits import shuffled
from ...interface.errors import InputError
from ...problem.statement import Problem

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SplitRows:
    """Rows that are trained on, and rows that test what was learned.

    rows, targets: (n, N) and (n,), in the principal axes of all rows of the data set.
    test_rows, test_targets: those that are left.
    """

    rows: Array
    targets: NDArray[Any]
    test_rows: Array
    test_targets: NDArray[Any]

    @cached_property
    def axes(self) -> tuple[Array, Array]:
        """Eigenvalues λ (N,) of C, zero where there are none, and eigenvectors U (N, N), one per column."""
        values, vectors = np.linalg.eigh(self._second_moments)
        values[values <= len(values) * np.finfo(float).eps * values[-1]] = 0.0
        return values[::-1].copy(), vectors[:, ::-1].copy()

    @property
    def _second_moments(self) -> Array:
        """C, (N, N)."""
        n, N = self.rows.shape
        if n < 2 * max(N, len(self.test_rows)):
            return self.rows.T @ self.rows / n
        # in the principal axes of all rows, Σ x xᵀ over all of them is diagonal, and over the fewer test rows cheaper
        both = (self.rows, self.test_rows)
        squares = sum(np.einsum("ij,ij->j", part, part) for part in both)
        return (np.diag(squares) - self.test_rows.T @ self.test_rows) / n

    @cached_property
    def products(self) -> Array:
        """⟨x y⟩ along the eigenvectors, (N,)."""
        return self.axes[1].T @ (self.rows.T @ self.targets / len(self.rows))

    @cached_property
    def best(self) -> Array:
        """θ̂ along the eigenvectors, (N,)."""
        values = self.axes[0]
        return np.divide(self.products, values, out=np.zeros_like(values), where=values > 0)

    @cached_property
    def unexplained(self) -> float:
        """σ̂², the mean square that θ̂ leaves of the training labels."""
        return float(np.mean((self.targets - self.rows @ (self.axes[1] @ self.best)) ** 2))


def training_set(problem: Problem) -> SplitRows:
    """The training set of a problem with labelled rows and `MultiPass`."""
    algorithm: Any = problem.algorithm
    return first_rows(problem, algorithm.samples, algorithm.shuffle, True)


@lru_cache(maxsize=4)
def first_rows(problem: Problem, samples: int, shuffle: int, shares: bool) -> SplitRows:
    """The first rows of labelled data after a shuffle of a seed, as a training set; the others are tested on.

    shares: whether labels that are classes have the same share in both; a set of Gaussian samples to compare with has
    their numbers at random.
    """
    data: Any = problem.data
    rows, targets = data.rows, problem.row_targets
    assert targets is not None
    if samples >= len(rows):
        raise InputError(
            f"samples: {samples} of {len(rows)} rows leave none to test on; train on fewer, for instance "
            f"samples={max(2, int(0.8 * len(rows)))}"
        )
    classes = data.labels.numbers if data.classes and shares else None
    order = shuffled(np.random.default_rng(shuffle), len(rows), classes)
    inside, outside = np.sort(order[:samples]), np.sort(order[samples:])
    if np.ptp(targets[inside]) == 0:
        raise InputError(f"samples: all {samples} rows of the training set have one label; use more of them")
    if classes is not None:
        _warn_of_missing(classes, outside, data.classes)
    return SplitRows(rows[inside], targets[inside], rows[outside], targets[outside])


def _warn_of_missing(classes: NDArray[np.int64], outside: NDArray[np.int64], names: tuple[Any, ...]) -> None:
    """Warn where the rows that are tested on lack a class."""
    missing = np.setdiff1d(classes, classes[outside])
    if missing.size:
        some = ", ".join(str(names[c]) for c in missing[:4]) + ", ..." * (missing.size > 4)
        warnings.warn(
            f"samples: the {outside.size} rows tested on have none of class {some}, whose errors are not seen; train "
            "on fewer rows",
            stacklevel=3,
        )
