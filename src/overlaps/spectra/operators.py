"""Symmetric matrices known by their products.

A Hessian or a matrix of gradients of p parameters has p² entries, but its product with a block V of b vectors costs
little more than b gradients. An operator is that product, V (n, b) -> A V (n, b); all else is built on it. A family
holds several operators of one dimension whose products share work: the blocks Xᵀ diag(a_c) X / n of a Hessian, one for
every class c, need one product with X and one with Xᵀ for all classes together.

`check_symmetric` draws n × 8 normal numbers Z and forms M = Zᵀ A Z. The mean of (M − Mᵀ)_ij², i ≠ j, is an unbiased
estimate of |A − Aᵀ|² and |A Z|²/8 one of |A|² (Frobenius norms). An operator is refused if the first root is above
1e-9 of the second (1e-5 where products are made in single precision).

>>> import numpy as np
>>> X, a = np.arange(6.0).reshape(3, 2), np.array([1.0, 2.0, 1.0])
>>> A = SymmetricOperator(2, lambda V: X.T @ (a[:, None] * (X @ V)), name="curvature")
>>> A
SymmetricOperator(curvature, 2 x 2)
>>> (A @ [1.0, 0.0]).tolist(), A.dense().tolist()
([24.0, 32.0], [[24.0, 32.0], [32.0, 44.0]])
>>> A.spectrum().round(4).tolist()
[67.5261, 0.4739]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ..interface.checks import array, checked, whole
from ..interface.errors import InputError, NumericalError, shown

Array = NDArray[np.float64]
Members = NDArray[np.intp]
SYMMETRY = 1e-9  # largest |A − Aᵀ| / |A| of what is called symmetric
SINGLE_SYMMETRY = 1e-5  # the same for products in single precision
SYMMETRY_PROBES = 8  # products of a check of symmetry
COLUMNS = 256  # columns of the identity in one product


class SymmetricOperator:
    """A symmetric linear map on R^n.

    Parameters
    ----------
    dimension: n.
    product: function V (n, b) -> A V (n, b), for any b; it may keep nothing of V.
    name: what messages call the operator.
    dense: function () -> (n, n), where the matrix costs less than n products.
    dtype: float32 where the products are made in single precision; they need to be symmetric to 1e-5 only, and
        eigenpairs to 1e-4.
    """

    count = 1  # a family of one

    def __init__(
        self,
        dimension: int,
        product: Callable[[Array], ArrayLike],
        name: str = "",
        *,
        dense: Callable[[], Array] | None = None,
        dtype: DTypeLike = np.float64,
    ) -> None:
        self.dimension = whole("dimension", dimension, least=1)
        self.name = name or "operator"
        self.dtype = _precision(dtype)
        self.factor: Array | None = None
        self.formed = dense is not None
        self._product = product
        self._dense = dense

    @classmethod
    @checked
    def from_matrix(cls, matrix: ArrayLike, name: str = "matrix") -> SymmetricOperator:
        """The operator of a symmetric (n, n) array; one that is not symmetric is refused."""
        where = name if name == "matrix" else f"matrix {name}"
        A = array(where, matrix, (None, None))
        if A.shape[0] != A.shape[1] or not A.size:
            raise InputError(f"{where}: expected a square matrix, got shape {A.shape}")
        A = _symmetrised(A, where)
        return cls(len(A), lambda V: A @ V, name, dense=A.copy)

    @classmethod
    @checked
    def from_factor(cls, factor: ArrayLike, name: str = "factor") -> SymmetricOperator:
        """FᵀF for F (samples, n), kept as `factor`; with rows g_s / √samples the mean of g_s g_sᵀ."""
        where = name if name == "factor" else f"factor {name}"
        F = array(where, factor, (None, None))
        if not F.size:
            raise InputError(f"{where}: expected at least one row and one column, got shape {F.shape}")
        result = cls(F.shape[1], lambda V: F.T @ (F @ V), name, dense=lambda: F.T @ F)
        result.factor = F
        return result

    def __matmul__(self, vectors: ArrayLike) -> Array:
        """A V for V (n,) or (n, b)."""
        V = array(f"{self.name} @ vectors", vectors, None)
        if V.ndim not in (1, 2) or V.shape[0] != self.dimension:
            raise InputError(f"{self.name}: acts on ({self.dimension},) or ({self.dimension}, any), got {V.shape}")
        block = V.reshape(self.dimension, -1)
        return returned(self._product(block), block.shape, self.name).reshape(V.shape)

    def products(self, vectors: NDArray[Any], members: Members) -> NDArray[Any]:
        """The product as that of a family of one, (1, n, b)."""
        return returned(self._product(vectors[0]), vectors.shape[1:], self.name, self.dtype)[None]

    @property
    def singles(self) -> list[SymmetricOperator]:
        """The operators of this family of one."""
        return [self]

    def dense(self) -> Array:
        """The matrix (n, n), exactly symmetric; refused if the products are not to 1e-9 (in single precision 1e-5)."""
        n = self.dimension
        if self._dense is not None:
            return _symmetrised(returned(self._dense(), (n, n), self.name), self.name, self.dtype)
        A = np.empty((n, n))
        for first in range(0, n, COLUMNS):
            last = min(first + COLUMNS, n)
            A[:, first:last] = self @ np.eye(n, last - first, -first)
        return _symmetrised(A, self.name, self.dtype)

    def spectrum(self) -> Array:
        """All eigenvalues, the largest first, (n,)."""
        return np.linalg.eigvalsh(self.dense())[::-1].astype(float)

    def __repr__(self) -> str:
        return f"SymmetricOperator({self.name}, {self.dimension} x {self.dimension})"


class OperatorFamily:
    """Several symmetric operators of one dimension with a common product.

    Parameters
    ----------
    dimension: n.
    count: how many operators.
    product: function (V (j, n, b), members (j,)) -> (j, n, b): operator members[i] times V[i], so that operators which
        need no more products cost nothing.
    name: what messages call the family.
    dtype: float32 where the products are made in single precision; eigenpairs are then searched for in it.
    """

    def __init__(
        self,
        dimension: int,
        count: int,
        product: Callable[[NDArray[Any], Members], ArrayLike],
        name: str = "",
        *,
        dtype: DTypeLike = np.float64,
    ) -> None:
        self.dimension = whole("dimension", dimension, least=1)
        self.count = whole("count", count, least=1)
        self.name = name or "operators"
        self.dtype = _precision(dtype)
        self._product = product

    def products(self, vectors: NDArray[Any], members: Members) -> NDArray[Any]:
        """Operator members[i] times vectors[i], (j, n, b)."""
        return returned(self._product(vectors, members), vectors.shape, self.name, self.dtype)

    @property
    def singles(self) -> list[SymmetricOperator]:
        """Every operator of the family by itself."""
        return [self[i] for i in range(self.count)]

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> SymmetricOperator:
        """One operator of the family."""
        if not -self.count <= index < self.count:
            raise IndexError(f"{self.name}: no operator {index} among {self.count}")
        one = np.array([index % self.count])
        name = f"{self.name}[{one[0]}]"
        return SymmetricOperator(self.dimension, lambda V: self.products(V[None], one)[0], name, dtype=self.dtype)

    def __repr__(self) -> str:
        return f"OperatorFamily({self.name}, {self.count} of {self.dimension} x {self.dimension})"


def check_symmetric(A: SymmetricOperator | OperatorFamily, *, seed: int = 0) -> None:
    """Refuse an operator, or a family with a member, for which |A − Aᵀ| is above 1e-9 |A| (estimates as above).

    In single precision the limit is 1e-5. Costs 8 products. A skew part of rank two, the hardest to see, passes at ten
    times the limit with a chance below 3e-5, at thirty times below 2e-8. Rounding of the products stays below the limit
    to n ~ 1e10.
    """
    Z = np.random.default_rng(seed).standard_normal((A.count, A.dimension, SYMMETRY_PROBES)).astype(A.dtype)
    image = A.products(Z, np.arange(A.count))
    M = Z.swapaxes(1, 2) @ image
    skew = np.linalg.norm(M - M.swapaxes(1, 2), axis=(1, 2)) / np.sqrt(SYMMETRY_PROBES * (SYMMETRY_PROBES - 1))
    size = np.linalg.norm(image, axis=(1, 2)) / np.sqrt(SYMMETRY_PROBES)
    for one, off, norm in zip(A.singles, skew, size, strict=True):
        _refuse_skew(float(off), float(norm), one.name, A.dtype)


def returned(result: ArrayLike, shape: tuple[int, ...], name: str, dtype: DTypeLike = np.float64) -> NDArray[Any]:
    """What a function returned, if it is a finite array of the right shape, as `dtype`."""
    if np.iscomplexobj(result):
        raise InputError(f"{name}: expected real numbers to be returned, got complex ones")
    try:
        checked = np.asarray(result, dtype=dtype)
    except (TypeError, ValueError):
        raise InputError(f"{name}: expected numbers of shape {shape} to be returned, got {shown(result)}") from None
    if checked.shape != shape:
        raise InputError(f"{name}: expected shape {shape} to be returned, got {checked.shape}")
    if not np.isfinite(checked).all():
        raise NumericalError(f"{name}: returned entries that are not finite", quantity=name, time=0.0)
    return checked


def _symmetrised(A: Array, name: str, dtype: DTypeLike = np.float64) -> Array:
    _refuse_skew(float(np.linalg.norm(A - A.T)), float(np.linalg.norm(A)), name, dtype)
    return (A + A.T) / 2


def _refuse_skew(skew: float, size: float, name: str, dtype: DTypeLike) -> None:
    limit = SYMMETRY if dtype == np.float64 else SINGLE_SYMMETRY
    if skew > limit * size:
        raise InputError(
            f"{name}: expected a symmetric operator, got |A - A^T| = {skew / size:.2g} |A|, above {limit:g}; "
            "correct its product, or give (A + A^T)/2 if that is what is meant"
            + ", or dtype=numpy.float32 if it is rounded to single precision"
            * (dtype == np.float64)
        )


def _precision(dtype: DTypeLike) -> np.dtype[Any]:
    found = np.dtype(dtype)
    if found not in (np.float32, np.float64):
        raise InputError(f"dtype: expected float32 or float64, got {found}")
    return found
