"""Block Lanczos with full reorthogonalisation and thick restarts, for several operators at once.

From a block V_0 of b vectors the basis grows by V_{j+1} = orth((I − Q Qᵀ) A V_j), Q = (V_0, ..., V_j), and its products
A Q are kept. Rayleigh-Ritz: H = Qᵀ A Q = S Θ Sᵀ gives the vectors Q S, the values Θ and the true residuals
A Q S − Q S Θ. When the basis is full, its best half Q S is kept and the growth goes on.

A random block finds eigenvalues repeated up to b times. Narrow blocks need the fewest products, wide ones the fewest
passes over the data; several operators that share these passes are best served by narrow blocks. Numbers have the
precision of V_0, single or double; only the small matrices H are diagonalised in double in either case.

Reference: Golub and Underwood, The block Lanczos method, in Mathematical Software III (1977); Wu and Simon, SIAM J.
Matrix Anal. Appl. 22, 602 (2000), for the restarts.

>>> import numpy as np
>>> levels = np.r_[5.0, 5.0, -4.0, np.linspace(-1, 1, 97)]
>>> start = orthonormal(np.zeros((1, 2, 100)), np.empty((1, 0, 100)), 1.0, np.random.default_rng(0))
>>> found = block_lanczos(lambda V, members: levels[:, None] * V, start, 3, 0, 1e-10, 50, np.random.default_rng(0))
>>> found.values.round(8).tolist()
[[5.0, 5.0, -4.0]]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..interface.errors import NumericalError

Array = NDArray[np.float64]
Block = NDArray[Any]  # single or double
BASIS = 160  # vectors before a restart: fewer cost products, more cost orthogonalisation
ROOM = 2**27  # numbers in the bases of all operators together, 1 GB
ROUNDING = 50  # units of rounding below which nothing is left of a vector


@dataclass(frozen=True, eq=False)
class BestPairs:
    """The best pairs of every operator when its search ended; vectors are columns.

    Attributes
    ----------
    values: (operators, count), the largest absolute value first.
    vectors: (operators, n, count).
    residuals: |A v − θ v| / largest |θ|, (operators, count).
    images: A times these vectors and the next few, each scaled to length one, (operators, n, count + guard).
    products: number of products of an operator with a vector.
    steps: number of blocks multiplied.
    """

    values: Array
    vectors: Block
    residuals: Array
    images: Block
    products: int
    steps: int


def block_lanczos(
    product: Callable[[Block, NDArray[np.intp]], Block],
    start: Block,
    count: int,
    guard: int,
    tolerance: float,
    steps: int,
    rng: np.random.Generator,
    unit: Array | None = None,
) -> BestPairs:
    """The `count` eigenpairs of largest absolute value of every operator, as far as `steps` blocks lead.

    Parameters
    ----------
    product: (V (j, n, b), members (j,)) -> (j, n, b); operators whose residuals are small enough are left out.
    start: orthonormal rows, (operators, b, n), n >= 2 b; steps b >= count + guard.
    guard: how many more vectors are brought back in `images`.
    tolerance: an operator is done when its `count` residuals are at most this.
    unit: of the residuals where it is larger than the largest |θ|, (operators,).
    """
    operators, b, n = start.shape
    wide = count + guard
    most = max(ROOM // (2 * operators * n), 2 * wide + b)
    room = max(2 * b, min(max(BASIS, 4 * wide, 4 * b), most, n - b))
    Q, AQ = np.empty((operators, room, n), start.dtype), np.empty((operators, room, n), start.dtype)
    H, unit = np.zeros((operators, room, room)), np.zeros(operators) if unit is None else unit
    unit = np.maximum(unit, np.finfo(start.dtype).tiny)[:, None]
    values, residuals = np.empty((operators, count)), np.empty((operators, count))
    vectors, images = np.empty((operators, count, n), start.dtype), np.empty((operators, wide, n), start.dtype)
    theta, S, size = np.empty((operators, 0)), np.empty((operators, 0, 0)), unit
    members, new, m, step, products = np.arange(operators), start, 0, 0, 0
    check = 1 if b >= wide else -(-2 * wide // b)
    while True:
        image = product(np.ascontiguousarray(new.swapaxes(1, 2)), members)
        step, products = step + 1, products + members.size * b
        Q[:, m : m + b], AQ[:, m : m + b] = new, image.swapaxes(1, 2)
        m += b
        along = AQ[:, m - b : m] @ Q[:, :m].swapaxes(1, 2)
        H[:, m - b : m, :m] = along
        if step == 1:
            size = np.maximum(np.abs(image).max(axis=(1, 2))[:, None], unit)
        full = m + b > room
        if full or step >= min(check, steps):
            theta, S = _ritz(H[:, :m, :m])
            size = np.maximum(np.abs(theta[:, :1]), unit)
            best = S[:, :wide].astype(start.dtype)
            X, AX = best[:, :count] @ Q[:, :m], best @ AQ[:, :m]
            AX /= size[:, :, None].astype(start.dtype)
            error = AX[:, :count] - (theta[:, :count] / size)[:, :, None].astype(start.dtype) * X
            values[members], residuals[members] = theta[:, :count], np.sqrt(_squares(error))
            length = np.sqrt(_squares(AX))[:, :, None]
            vectors[members], images[members] = X, AX / np.where(length > 0, length, 1)
            worst = residuals[members].max(axis=1)
            left = ~(worst <= tolerance)
            if step >= steps or not left.any():
                return BestPairs(values, vectors.swapaxes(1, 2), residuals, images.swapaxes(1, 2), products, step)
            if not left.all():
                members = members[left]
                H, theta, S, size, unit, along = (part[left] for part in (H, theta, S, size, unit, along))
                for basis in (Q, AQ):
                    basis[: members.size, :m] = basis[left, :m]
                Q, AQ = Q[: members.size], AQ[: members.size]
            check = step + _pause(step, float(np.median(worst[left])), tolerance)
        floor = ROUNDING * np.finfo(start.dtype).eps * size
        new = orthonormal(AQ[:, m - b : m] - along @ Q[:, :m], Q[:, :m], floor, rng)
        if full:
            kept = m // 2
            best = S[:, :kept].astype(start.dtype)
            Q[:, :kept], AQ[:, :kept] = best @ Q[:, :m], best @ AQ[:, :m]
            H[:, :kept, :kept] = theta[:, :kept, None] * np.eye(kept)
            m = kept


def _pause(step: int, residual: float, tolerance: float) -> int:
    """Steps to the next check, which costs as much as a block product: 3/4 of those that a steady fall would need."""
    fall = -np.log(min(residual, 0.9)) / step
    return int(np.clip(0.75 * np.log(residual / max(tolerance, 1e-16)) / fall, 1, max(1, step)))


def orthonormal(block: Block, basis: Block, floor: float | Array, rng: np.random.Generator) -> Block:
    """Rows of `block` (..., b, n) made orthonormal to each other and to the orthonormal rows of `basis` (..., m, n).

    Rows with nothing above `floor` are replaced by random directions, before the factorisation: a direction it made of
    rounding errors may carry parts of the other rows. Repeated until no row has a part along the basis.
    """
    eps = float(np.finfo(block.dtype).eps)
    for sweep in range(10):
        lost = np.abs(block).max(axis=-1) <= (ROUNDING * eps if sweep else floor)
        if lost.any():
            block = block.copy()
            block[lost] = rng.standard_normal((int(lost.sum()), block.shape[-1]))
        block = _normalised(block)
        along = block @ basis.swapaxes(-1, -2)
        block = block - along @ basis
        if np.abs(along).max(initial=0.0) <= 0.1 * np.sqrt(eps):  # its square is what rows lost in length
            return block
    raise NumericalError("eigenpairs: the basis could not be made orthonormal", quantity="basis", time=0.0)


def _normalised(block: Block) -> Block:
    """Orthonormal rows with the same span: by Cholesky factors of their products, twice, or by Householder."""
    rows = block / np.abs(block).max(axis=-1, keepdims=True)
    try:
        for sweep in range(2):
            gram = rows @ rows.swapaxes(-1, -2)
            if sweep and not np.abs(gram - np.eye(gram.shape[-1])).max() < 0.1:
                raise np.linalg.LinAlgError
            rows = np.linalg.inv(np.linalg.cholesky(gram)) @ rows
        return rows
    except np.linalg.LinAlgError:  # rows depend on each other, or nearly so
        q = np.linalg.qr(block.swapaxes(-1, -2))[0]
        return np.ascontiguousarray(q.swapaxes(-1, -2))


def _squares(rows: Block) -> Block:
    return np.einsum("...n,...n->...", rows, rows)


def _ritz(H: Array) -> tuple[Array, Array]:
    """Eigenvalues (j, m) of the lower triangles H (j, m, m), largest absolute value first, and eigenvectors in rows."""
    theta, S = np.linalg.eigh(H)
    order = np.argsort(-np.abs(theta), axis=1, kind="stable")
    theta = np.take_along_axis(theta, order, axis=1)
    return theta, np.take_along_axis(S, order[:, None, :], axis=2).swapaxes(1, 2)
