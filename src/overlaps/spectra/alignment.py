"""Alignment of vectors and matrices with a subspace.

P the orthogonal projection on the subspace B: a vector v has the alignment

    ρ(v, B) = |P v| / |v|,

and lives in B up to error ε if ρ ≥ 1 − ε. A matrix A lives in B up to error ε if A − M maps into B for some M with
|M| ≤ ε |A| (operator norms). The smallest such M is (I − P) A: A − (I − P) A = P A maps into B, and if A − M does, then
(I − P) A = (I − P) M is no larger than M. Hence A lives in B up to error ε if and only if

    |(I − P) A| / |A| ≤ ε.

Reference: Ben Arous, Gheissari, Huang and Jagannath, High-dimensional SGD aligns with emerging outlier eigenspaces,
arXiv:2310.03010, Definitions 2.1 and 2.2.

>>> import numpy as np
>>> plane = np.eye(3)[:, :2]
>>> subspace_alignment([3.0, 0.0, 4.0], plane)
0.6
>>> A = np.diag([2.0, 1.0, 0.1])
>>> round(distance_from(A, plane), 12), lives_in(A, plane, 0.1)
(0.05, True)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..interface.checks import array, checked, number
from ..interface.errors import InputError
from .eigenpairs import eigenpairs
from .operators import SymmetricOperator

Array = NDArray[np.float64]
TOLERANCE = 1e-7  # of the norms of operators, in units of |A|


@checked
def subspace_alignment(v: ArrayLike, subspace: ArrayLike) -> float | Array:
    """ρ(v, B) of one vector (n,), a float, or of every column of (n, j), an array (j,).

    Parameters
    ----------
    v: no vector of length zero, which has no direction.
    subspace: vectors in columns that span B, (n, k); they may depend on each other, B then has fewer dimensions than k.
    """
    basis = _basis(subspace)
    V = array("v", v, None)
    if V.ndim not in (1, 2) or V.shape[0] != len(basis):
        raise InputError(f"v: expected shape ({len(basis)},) or ({len(basis)}, any), as the subspace, got {V.shape}")
    largest = np.abs(V).max(axis=0)
    if not np.all(largest > 0):
        raise InputError("v: expected vectors that are not zero; zero has no direction and no alignment")
    V /= largest  # before squares, which may overflow
    rho = alignments(V.T, basis)
    return float(rho) if V.ndim == 1 else rho


def alignments(vectors: Array, bases: Array) -> Array:
    """ρ of vectors (..., n) with the spans of orthonormal columns (..., n, k), (...); 0 for a vector of length zero."""
    length = np.linalg.norm(vectors, axis=-1)
    along = np.linalg.norm(vectors[..., None, :] @ bases, axis=-1)[..., 0]
    return np.minimum(along / np.where(length > 0, length, 1.0), 1.0)


@checked
def distance_from(A: ArrayLike | SymmetricOperator, subspace: ArrayLike) -> float:
    """|(I − P) A| / |A|, the smallest error up to which a matrix lives in a subspace; 0 for A = 0.

    Parameters
    ----------
    A: array (n, any), or an operator, for which the result is accurate to 1e-7.
    subspace: vectors in columns that span B, (n, k).
    """
    basis = _basis(subspace)
    n = len(basis)
    if not isinstance(A, SymmetricOperator):
        matrix = array("A", A, (n, None))
        size = np.abs(matrix).max(initial=0.0)
        if size == 0:
            return 0.0
        matrix /= size
        return float(np.linalg.norm(matrix - basis @ (basis.T @ matrix), 2) / np.linalg.norm(matrix, 2))
    if A.dimension != n:
        raise InputError(f"subspace: {A.name} acts on {A.dimension} dimensions, got vectors of {n}")
    norm = abs(float(eigenpairs(A, 1, tolerance=TOLERANCE).values[0]))
    if norm == 0:
        return 0.0

    def mirrored(V: Array) -> Array:
        """[[1, A (I − P)], [(I − P) A, 1]] in units of |A|: eigenvalues 1 ± the singular values of (I − P) A."""
        upper, lower = V[:n], V[n:] - basis @ (basis.T @ V[n:])
        across = A @ np.hstack([upper, lower]) / norm
        down, up = across[:, : V.shape[1]], across[:, V.shape[1] :]
        return V + np.vstack([up, down - basis @ (basis.T @ down)])

    both = SymmetricOperator(2 * n, mirrored, f"{A.name} outside the subspace")
    return float(np.clip(eigenpairs(both, 1, tolerance=TOLERANCE / 2).values[0] - 1, 0.0, 1.0))


@checked
def lives_in(what: ArrayLike | SymmetricOperator, subspace: ArrayLike, error: float) -> bool:
    """Whether a vector (n,) or a matrix (array (n, any) or operator) lives in a subspace up to `error`.

    The two are not the same for a vector and a matrix with this one column: 1 − ρ ≤ error and √(1 − ρ²) ≤ error.
    """
    error = number("error", error, least=0.0)
    if isinstance(what, SymmetricOperator) or np.ndim(what) == 2:
        return distance_from(what, subspace) <= error
    return float(subspace_alignment(array("vector", what, (None,)), subspace)) >= 1 - error


def _basis(subspace: ArrayLike) -> Array:
    """Orthonormal columns with the same span; columns count by direction, not by length."""
    V = array("subspace", subspace, (None, None))
    V = V[:, np.abs(V).max(axis=0, initial=0.0) > 0]
    if not V.size:
        raise InputError("subspace: expected at least one vector that is not zero; vectors are columns, (n, k)")
    V /= np.abs(V).max(axis=0)
    U, s, _ = np.linalg.svd(V / np.linalg.norm(V, axis=0), full_matrices=False)
    return U[:, s > s[0] * max(V.shape) * np.finfo(float).eps]
