"""A block of a population matrix: a few directions, and a bulk in all others.

For isotropic noise a block is U core Uᵀ + bulk (I − U Uᵀ), U an orthonormal basis of the span of students and means.
Where components have covariances of their own the span is all there is, U = I, and the bulk is a matrix `noise` whose
eigenvalues have a range: outliers are the eigenvalues outside of it.

>>> import numpy as np
>>> PopulationBlock(np.diag([3.0, 2.0]), 1.0, np.eye(4)[:, :2], 4)
PopulationBlock(N = 4, 2 outliers: 3, 2; bulk 1)
>>> PopulationBlock(np.diag([3.0, 2.0, 1.0]), 1.0, np.eye(3), 3, noise=np.diag([0.5, 2.0, 0.5]))
PopulationBlock(N = 3, 1 outlier: 3; bulk 0.5 to 2)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..interface.checks import array, whole
from ..interface.errors import InputError
from .alignment import subspace_alignment
from .operators import SymmetricOperator

Array = NDArray[np.float64]
EXACT = 1e-9  # by which an outlier must pass the edge of the bulk, in units of the edge


@dataclass(frozen=True, eq=False)
class PopulationBlock:
    """U core Uᵀ + bulk (I − U Uᵀ), symmetric, of `dimension` N (None in the limit of infinite size).

    Attributes
    ----------
    core: (r, r).
    bulk: the eigenvalue of all directions outside the span of U; the mean one of `noise` where there is none outside.
    basis: U (N, r), or None for a start without weights; values and alignments need none.
    noise: part of the core that is the bulk, (N, N), where it is no multiple of the identity.
    """

    core: Array
    bulk: float
    basis: Array | None
    dimension: int | None
    noise: Array | None = None

    @cached_property
    def edges(self) -> tuple[float, float]:
        """Least and largest eigenvalue of the bulk."""
        if self.noise is None:
            return self.bulk, self.bulk
        values = np.linalg.eigvalsh(self.noise)
        return float(values[0]), float(values[-1])

    @cached_property
    def _eigen(self) -> tuple[Array, Array, int]:
        """Eigenvalues, (r,), vectors in columns, (r, r), and how many of the first are outside the bulk."""
        values, vectors = np.linalg.eigh(self.core)
        low, high = self.edges
        outside = np.maximum(np.maximum(values - high, low - values), 0.0)
        order = np.lexsort((-np.abs(values - self.bulk), -outside))
        beyond = int((outside > EXACT * max(abs(low), abs(high))).sum())
        return values[order], vectors[:, order], beyond

    @property
    def values(self) -> Array:
        """Eigenvalues within the span, (r,), those farthest from the bulk first."""
        return self._eigen[0]

    @property
    def outliers(self) -> Array:
        """Eigenvalues beyond the edges of the bulk, those farthest from it first, (count,)."""
        return self._eigen[0][: self._eigen[2]]

    @property
    def coordinates(self) -> Array:
        """Eigenvectors of `values` in the basis, in columns, (r, r)."""
        return self._eigen[1]

    @property
    def vectors(self) -> Array:
        """Eigenvectors of `values`, in columns, (N, r)."""
        return self._need_basis() @ self.coordinates

    def alignment(self, direction: ArrayLike, count: int) -> float:
        """ρ of a direction in the basis (r,) with the span of the first `count` eigenvectors: |P a|/|a|."""
        a = array("direction", direction, (len(self.core),))
        count = whole("count", count, least=1, most=len(self.core))
        return float(subspace_alignment(a, self.coordinates[:, :count]))

    def dense(self) -> Array:
        """The matrix, (N, N)."""
        return self.operator().dense()

    def operator(self) -> SymmetricOperator:
        """The matrix by its products."""
        U = self._need_basis()
        shifted = self.core - self.bulk * np.eye(len(self.core))
        return SymmetricOperator(len(U), lambda V: self.bulk * V + U @ (shifted @ (U.T @ V)), "population matrix")

    def _need_basis(self) -> Array:
        if self.basis is None:
            raise InputError(
                "start: vectors in N dimensions need weights, this start has overlaps only; use Start.from_weights, or "
                "values, coordinates and alignment, which need none"
            )
        return self.basis

    def __repr__(self) -> str:
        found, (low, high) = self.outliers, self.edges
        listed = ", ".join(f"{value:.4g}" for value in found[:5]) + (", ..." if len(found) > 5 else "")
        size = "infinite size" if self.dimension is None else f"N = {self.dimension}"
        count = f"{len(found)} outlier{'s' * (len(found) != 1)}" + (f": {listed}" if listed else "")
        bulk = f"{low:.4g}" if self.noise is None else f"{low:.4g} to {high:.4g}"
        return f"PopulationBlock({size}, {count}; bulk {bulk})"
