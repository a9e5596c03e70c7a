"""Eigenpairs of largest absolute value, with their residuals.

E_k(A), the span of the k eigenvectors of A whose eigenvalues are largest in absolute value, is what trained weights are
compared with. `eigenpairs` gives these pairs for a matrix, an operator known by its products, or a family of operators
at once; `gram_eigenpairs` for FᵀF, by way of the smaller F Fᵀ where that is cheaper:

    F Fᵀ u = λ u   gives   FᵀF (Fᵀu) = λ (Fᵀu).

Small matrices are diagonalised as a whole, large ones by block Lanczos (`krylov`) in blocks of 4. Every pair comes with
|A v − θ v|/|A|, |A| the largest |θ|: an eigenvalue of A lies that near to θ. A random block of 4 sees every eigenvalue,
but only 4 copies of one that is repeated. Hence a second block, orthogonal to all that was found, searches for larger
ones: with 8 products, or to convergence where 4 of the values found are alike. What it finds joins the others, and the
search is repeated until it finds nothing.

Reference for E_k(A): Ben Arous, Gheissari, Huang and Jagannath, High-dimensional SGD aligns with emerging outlier
eigenspaces, arXiv:2310.03010, section 2.

>>> import numpy as np
>>> pairs = eigenpairs(np.diag([3.0, -5.0, 1.0]), 2)
>>> pairs
Eigenpairs(2 of 3: -5, 3; residuals at most 0, dense eigh)
>>> abs(pairs.vectors).round(12).tolist()
[[0.0, 1.0], [1.0, 0.0], [0.0, 0.0]]
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..interface.checks import array, checked, number, whole
from ..interface.errors import InputError, NumericalError
from .krylov import BestPairs, Block, block_lanczos, orthonormal
from .operators import SYMMETRY_PROBES, OperatorFamily, SymmetricOperator, check_symmetric

Array = NDArray[np.float64]
Members = NDArray[np.intp]
Operators = SymmetricOperator | OperatorFamily
DENSE = 500  # dimension up to which a matrix is diagonalised as a whole: measured, 350 for count 2, 600 for count 10
GUARD = 4  # vectors carried on beyond those wanted
NARROW = 4  # vectors of a random block
SINGLE = 1e-4  # tolerance from which single precision is enough
STEPS = 500  # most blocks of count + 4 vectors multiplied, or narrow ones with as many vectors
SEARCH = 8  # block products of the search for what was missed, where no values are alike
ALIKE = 10  # tolerances within which values are alike


@dataclass(frozen=True, eq=False)
class Eigenpairs:
    """Eigenpairs of one operator, or of a family: arrays then have a leading axis of its members.

    Attributes
    ----------
    values: the largest absolute value first, (..., count).
    vectors: in columns, orthonormal, (..., n, count).
    residuals: |A v − θ v| divided by the largest |θ|, (..., count).
    tolerance: what the residuals were asked to be.
    products: products of an operator with a vector, summed over the family; 0 where the matrix was at hand.
    method: how they were found.
    ahead: A times these vectors and up to 4 more, of length one, (..., n, count + 4): where a warm start begins.
    """

    values: Array
    vectors: Array
    residuals: Array
    tolerance: float
    products: int
    method: str
    ahead: Array

    @property
    def converged(self) -> bool:
        """Whether every residual is within the tolerance."""
        return bool((self.residuals <= self.tolerance).all())

    def __repr__(self) -> str:
        *family, n, count = self.vectors.shape
        first = np.atleast_2d(self.values)[0]
        listed = ", ".join(f"{value:.6g}" for value in first[:5]) + (", ..." if count > 5 else "")
        many = f"{family[0]} operators, " if family else ""
        state = "" if self.converged else f", NOT CONVERGED to {self.tolerance:g}"
        worst = f"residuals at most {self.residuals.max():.2g}{state}"
        return f"Eigenpairs({many}{count} of {n}: {listed}{' (first)' if family else ''}; {worst}, {self.method})"


@checked
def eigenpairs(
    A: Operators | ArrayLike,
    count: int,
    *,
    tolerance: float = 1e-9,
    start: Eigenpairs | ArrayLike | None = None,
    seed: int = 0,
) -> Eigenpairs:
    """The `count` eigenpairs of largest absolute value.

    Parameters
    ----------
    A: operator, family of operators, or symmetric array (n, n).
    count: how many, at most n.
    tolerance: largest residual |A v − θ v| in units of the largest |θ|, below 1, and from 1e-13, or from 1e-4 for a
        family in single precision.
    start: where to begin. The `Eigenpairs` of an operator nearby, as at the step of training before: if little has
        changed, one product with count + 4 vectors is all it costs. A pair that was not among the first count + 4
        then and has overtaken since is followed by the 4 vectors beyond those wanted, and may be seen some calls late;
        a call without `start` sees it at once. Vectors (..., n, b) speed up the search, too, but are not trusted to be
        the largest: the check of symmetry and the search for what was missed are made as well.
    seed: of the random start.

    Raises
    ------
    NumericalError: if 500 blocks do not suffice; `partial` has the pairs with their residuals.
    """
    if not isinstance(A, (SymmetricOperator, OperatorFamily)):
        A = SymmetricOperator.from_matrix(A)
    n, count, tolerance = A.dimension, _count(count, A), _tolerance(tolerance, A)
    if isinstance(A, SymmetricOperator) and A.factor is not None and start is None and _by_gram(A.factor, count):
        return gram_eigenpairs(A.factor, count, tolerance=tolerance)
    rows, trusted = _rows(start, A), isinstance(start, Eigenpairs) and start.converged
    wide, width = count + GUARD, max(NARROW, rows.shape[1])
    small = n <= max(DENSE, 12 * max(wide, width))
    if small and not (trusted and 2 * width <= n):
        return _dense(A, count, tolerance)
    rng, spent = np.random.default_rng(seed), 0 if trusted else A.count * SYMMETRY_PROBES
    if not trusted:
        check_symmetric(A, seed=seed)
    for _ in range(STEPS):
        steps = 2 if small else STEPS * wide // width
        found = block_lanczos(A.products, _block(rows, width, rng), count, GUARD, tolerance, steps, rng)
        spent += found.products
        name = "block Lanczos" if start is None else "warm start"
        pairs = _pairs(found, tolerance, spent, f"{name}, {found.steps} x {width} vectors", A)
        if small and not pairs.converged:
            return _dense(A, count, tolerance, spent)
        _converged(pairs, A)
        if trusted:
            return pairs
        other = _search_outside(A, found, tolerance, rng)
        spent += other.products
        most = np.abs(found.values[:, -1]) + tolerance * np.abs(found.values[:, 0])
        if (np.abs(other.values[:, 0]) <= most).all():
            return replace(pairs, products=spent)
        rows, width = np.concatenate([found.vectors, other.images], axis=2).swapaxes(1, 2), wide
    raise NumericalError(f"{A.name}: larger eigenvalues without end", quantity=f"eigenvalues of {A.name}", time=0.0)


@checked
def gram_eigenpairs(F: ArrayLike, count: int, *, tolerance: float = 1e-9) -> Eigenpairs:
    """The `count` largest eigenpairs of FᵀF, F (samples, n): those of F Fᵀ mapped back, or directly, by cost.

    With rows of F = per-sample gradients / √samples these are the eigenpairs of the mean of their outer products. Pairs
    beyond the rank of F have value 0 and vectors in its null space.
    """
    factor = array("F", F, (None, None))
    A = SymmetricOperator.from_factor(factor, "F")
    count, tolerance = _count(count, A), _tolerance(tolerance, A)
    if not _by_gram(factor, count):
        return eigenpairs(A, count, tolerance=tolerance)
    _, U = np.linalg.eigh(factor @ factor.T)
    rng, width = np.random.default_rng(0), count + GUARD
    block = _block((U.T[::-1][:width] @ factor)[None], width, rng)
    found = block_lanczos(A.products, block, count, GUARD, tolerance, STEPS, rng)
    return _converged(_pairs(found, tolerance, found.products, f"Gram matrix of {len(factor)} samples", A), A)


def _by_gram(F: Array, count: int) -> bool:
    """Whether the Gram matrix is smaller, and cheaper than some 25 block products."""
    samples, n = F.shape
    width = count + GUARD
    return 2 * max(samples, width) < n and samples * n + 25 * samples**2 < 100 * n * width


def _dense(A: Operators, count: int, tolerance: float, spent: int = 0) -> Eigenpairs:
    values, vectors, residuals, ahead = [], [], [], []
    for one in A.singles:
        matrix = one.dense()
        spent += 0 if one.formed else A.dimension
        theta, V = np.linalg.eigh(matrix)
        order = np.argsort(-np.abs(theta), kind="stable")
        theta, V = theta[order], V[:, order]
        error = matrix @ V[:, :count] - V[:, :count] * theta[:count]
        values.append(theta[:count])
        vectors.append(V[:, :count])
        residuals.append(np.linalg.norm(error / max(abs(theta[0]), np.finfo(float).tiny), axis=0))
        ahead.append(V[:, : count + GUARD])
    found = BestPairs(np.stack(values), np.stack(vectors), np.stack(residuals), np.stack(ahead), spent, 1)
    return _converged(_pairs(found, tolerance, spent, "dense eigh", A), A)


def _search_outside(A: Operators, found: BestPairs, tolerance: float, rng: np.random.Generator) -> BestPairs:
    """The largest pair of every operator orthogonal to those found."""

    def outside(V: Block, members: Members) -> Block:
        known = found.vectors[members]
        V = V - known @ (known.swapaxes(1, 2) @ V)
        image = A.products(V, members)
        return image - known @ (known.swapaxes(1, 2) @ image)

    operators, n, count = found.vectors.shape
    size, values = np.abs(found.values[:, 0]), np.sort(found.values, axis=1)
    # up to 4 wanted pairs, none is missed: a random block of 4 sees as many copies of each eigenvalue
    alike = count > NARROW and (values[:, NARROW - 1 :] - values[:, : 1 - NARROW] <= ALIKE * tolerance * size[:, None])
    until = (tolerance, STEPS * (count + GUARD) // NARROW) if np.any(alike) else (0.0, SEARCH)
    zeros = np.zeros((operators, NARROW, n), found.vectors.dtype)
    start = orthonormal(zeros, found.vectors.swapaxes(1, 2), 0.0, rng)
    return block_lanczos(outside, start, 1, NARROW - 1, *until, rng, unit=size)


def _count(count: int, A: Operators) -> int:
    count = whole("count", count, least=1)
    if count > A.dimension:
        raise InputError(f"count: {A.name} has {A.dimension} eigenpairs, got a wish for {count}")
    return count


def _tolerance(tolerance: float, A: Operators) -> float:
    tolerance = number("tolerance", tolerance, least=1e-13)
    if A.dtype == np.float32 and tolerance < SINGLE:
        raise InputError(
            f"tolerance: products of {A.name} are in single precision, expected at least {SINGLE:g}, got "
            f"{tolerance:g}; use tolerance={SINGLE:g}, or products in double precision"
        )
    if tolerance >= 1:
        raise InputError(f"tolerance: expected a part of the operator's norm, below 1, got {tolerance:g}")
    return tolerance


def _rows(start: Eigenpairs | ArrayLike | None, A: Operators) -> Block:
    """The vectors to start from in rows, (operators, any, n)."""
    many = (A.count,) if isinstance(A, OperatorFamily) else ()
    if start is None:
        return np.empty((A.count, 0, A.dimension), A.dtype)
    V = array("start", start.ahead if isinstance(start, Eigenpairs) else start, (*many, A.dimension, None))
    return V.reshape(-1, *V.shape[-2:]).swapaxes(1, 2).astype(A.dtype, copy=False)


def _block(rows: Block, width: int, rng: np.random.Generator) -> Block:
    """Orthonormal rows that span `rows`, filled up with random ones, (operators, width, n)."""
    block = np.zeros((rows.shape[0], width, rows.shape[2]), rows.dtype)
    length = np.linalg.norm(rows, axis=2, keepdims=True)
    block[:, : rows.shape[1]] = rows / np.where(length > 0, length, 1.0)
    return orthonormal(block, block[:, :0], 1e-8, rng)


def _pairs(found: BestPairs, tolerance: float, products: int, method: str, A: Operators) -> Eigenpairs:
    parts = found.values, found.vectors.astype(float), found.residuals, found.images.astype(float)
    values, vectors, residuals, ahead = parts if isinstance(A, OperatorFamily) else (part[0] for part in parts)
    return Eigenpairs(values, vectors, residuals, tolerance, products, method, ahead)


def _converged(pairs: Eigenpairs, A: Operators) -> Eigenpairs:
    """`pairs`, refused if they have not converged."""
    if pairs.converged:
        return pairs
    worst = pairs.residuals.max(axis=-1)
    which = f" (operators {np.flatnonzero(worst > pairs.tolerance).tolist()})" if worst.ndim else ""
    raise NumericalError(
        f"{A.name}: residual {worst.max():.2g}{which} instead of {pairs.tolerance:g} after {pairs.products} products; "
        "ask for fewer pairs or a larger tolerance, or use its dense matrix",
        quantity=f"eigenvalues of {A.name}",
        time=0.0,
        partial=pairs,
    )
