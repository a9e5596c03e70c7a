"""Upper-triangular factors A with Aᵀ A = V, grown by columns, of one matrix V or of many at once.

    a = A⁻ᵀ V(·, j),    A(·, j) = a,    A(j, j)² = V(j, j) (1 + σ²) − |a|²

`TriangularFactor` has one matrix, which may be large; `TriangularFactors` many small ones, where a call for each would
take longer than its work.

>>> V = np.array([[[4.0, 2.0], [2.0, 5.0]], [[1.0, 0.0], [0.0, 9.0]]])
>>> factors = TriangularFactors(np.zeros((2, 2, 2)))
>>> factors.extend(V, slice(0, 2))
>>> bool(np.allclose(factors.A.swapaxes(1, 2) @ factors.A, V))
True
>>> bool(np.allclose(factors.solve(factors.A), np.eye(2)))
True
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import get_lapack_funcs

from ..compiled.functions import kept

Array = NDArray[np.float64]
(TRIANGULAR,) = get_lapack_funcs(("trtrs",), dtype=np.float64)  # SciPy's solve_triangular mostly checks
ADDED = 1e-8  # relative variance added to V: large beside rounding, small beside any error of sampling


class TriangularFactor:
    """Upper-triangular A with Aᵀ A = V, grown by columns.

    added: relative variance that V gets in every column, so that each has a direction of its own; columns without any
    variance have none and are not `kept`.
    """

    def __init__(self, A: Array, added: float = ADDED) -> None:
        self.A, self.added, self.kept = A, added, np.flatnonzero(np.diag(A))

    def extend(self, V: Array, columns: slice) -> None:
        """Factor the new `columns` of V; a `LinAlgError` where its rounding has become larger than what is added."""
        for j in range(columns.start, columns.stop):
            if not V[j, j] > 0:
                continue
            kept = self.kept
            a = TRIANGULAR(self.A[np.ix_(kept, kept)], V[kept, j], trans=1)[0] if kept.size else np.zeros(0)
            pivot = V[j, j] * (1 + self.added) - a @ a
            if not pivot > 0:
                raise np.linalg.LinAlgError
            self.A[kept, j] = a
            self.A[j, j] = np.sqrt(pivot)
            self.kept = np.append(kept, j)

    def solve(self, C: Array, trans: int = 0) -> Array:
        """B with A B = C or, with trans = 1, Aᵀ B = C, for as many rows; zero where a direction was lost."""
        kept, B = self.kept[self.kept < len(C)], np.zeros_like(C)
        if kept.size:
            B[kept] = TRIANGULAR(self.A[np.ix_(kept, kept)], C[kept], trans=trans)[0].reshape(C[kept].shape)
        return B

    def orthonormal(self, X: Array, Y: Array, columns: slice) -> None:
        """New columns of Y = X A⁻¹, (..., D), from those of X; zero where there is no direction."""
        for j in range(columns.start, columns.stop):
            if self.A[j, j] > 0:
                Y[..., j] = (X[..., j] - Y[..., :j] @ self.A[:j, j]) / self.A[j, j]


@kept(nogil=True)
def _extend(A, V, start, stop, added):  # pragma: no cover - compiled
    """Write columns start to stop of all A (b, D, D); False where a pivot is not positive."""
    for b in range(len(A)):
        for j in range(start, stop):
            if not V[b, j, j] > 0:
                continue
            pivot = V[b, j, j] * (1 + added)
            for i in range(j):
                if A[b, i, i] > 0:
                    a = V[b, i, j]
                    for l in range(i):
                        a -= A[b, l, i] * A[b, l, j]
                    a /= A[b, i, i]
                    A[b, i, j] = a
                    pivot -= a * a
            if not pivot > 0:
                return False
            A[b, j, j] = np.sqrt(pivot)
    return True


@kept(nogil=True)
def _solve(A, B, transposed):  # pragma: no cover - compiled
    """Turn B (b, n, k) into A⁻¹ B or A⁻ᵀ B, with the first n rows and columns of A."""
    n = B.shape[1]
    for b in range(len(B)):
        for step in range(n):
            i = step if transposed else n - 1 - step
            for k in range(B.shape[2]):
                if not A[b, i, i] > 0:
                    B[b, i, k] = 0.0
                    continue
                x = B[b, i, k]
                if transposed:
                    for l in range(i):
                        x -= A[b, l, i] * B[b, l, k]
                else:
                    for l in range(i + 1, n):
                        x -= A[b, i, l] * B[b, l, k]
                B[b, i, k] = x / A[b, i, i]


class TriangularFactors:
    """A (..., D, D), written in place; a column without any variance has no direction, and its pivot stays zero."""

    def __init__(self, A: Array) -> None:
        self.A = A

    def extend(self, V: Array, columns: slice) -> None:
        """Factor the new `columns` of V (..., D, D); a `LinAlgError` where rounding is larger than what is added."""
        D = V.shape[-1]
        A = self.A.reshape(-1, D, D)
        assert np.shares_memory(A, self.A)
        if not _extend(A, V.reshape(-1, D, D), columns.start, columns.stop, ADDED):
            raise np.linalg.LinAlgError

    def solve(self, C: Array, *, transposed: bool = False) -> Array:
        """B with A B = C (..., n, k) or, transposed, Aᵀ B = C; zero where there is no direction."""
        D = self.A.shape[-1]
        A, B = self.A.reshape(-1, D, D), np.array(C, order="C")
        _solve(A, B.reshape(len(A), *C.shape[-2:]), transposed)
        return B

    def orthonormal(self, X: Array, Y: Array, columns: slice) -> None:
        """New columns of Y = X A⁻¹, (..., n, D), from those of X; zero where there is no direction."""
        for j in range(columns.start, columns.stop):
            pivot = self.A[..., j, j, None]
            rest = X[..., j] - (Y[..., :j] @ self.A[..., :j, j, None])[..., 0]
            Y[..., j] = np.where(pivot > 0, rest / np.where(pivot > 0, pivot, 1.0), 0.0)
