"""Block Lanczos with full reorthogonalisation and thick restarts, for several operators at once.

From a block V_0 of b vectors the basis grows by V_{j+1} = orth((I − Q Qᵀ) A V_j), Q = (V_0, ..., V_j), and its products
A Q are kept. Rayleigh-Ritz: H = Qᵀ A Q = S Θ Sᵀ gives the vectors Q S, the values Θ and the true residuals
A Q S − Q S Θ. When the basis is full, its best half Q S is kept and the growth goes on. A block finds eigenvalues
repeated up to b times, and the space of the first b eigenvectors converges at a rate set by eigenvalue b + 1, however
close the wanted ones are to each other.

Reference: Golub and Underwood, The block Lanczos method, in Mathematical Software III (1977); Wu and Simon, SIAM J.
Matrix Anal. Appl. 22, 602 (2000), for the restarts.

>>> import numpy as np
>>> levels = np.r_[5.0, 5.0, -4.0, np.linspace(-1, 1, 97)]
>>> start = orthonormal(np.zeros((1, 6, 100)), np.empty((1, 0, 100)), 1.0, np.random.default_rng(0))
>>> found = block_lanczos(lambda V, members: levels[:, None] * V, start, 3, 1e-10, 50, np.random.default_rng(0))
>>> found.values.round(8).tolist()
[[5.0, 5.0, -4.0]]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import NumericalError

Array = NDArray[np.float64]
BLOCKS = 12  # in the basis before a restart: fewer cost products, more cost orthogonalisation
ROOM = 2**27  # numbers in the bases of all operators together, 1 GB


@dataclass(frozen=True, eq=False)
class Found:
    """The best pairs of every operator when its search ended; vectors are columns.

    Attributes
    ----------
    values: (operators, count), the largest absolute value first.
    vectors: (operators, n, count).
    residuals: |A v − θ v| / largest |θ|, (operators, count).
    others: A times the b − count next vectors, each scaled to length one, (operators, n, b − count).
    products: number of products of an operator with a vector.
    steps: number of blocks multiplied.
    """

    values: Array
    vectors: Array
    residuals: Array
    others: Array
    products: int
    steps: int


def block_lanczos(
    product: Callable[[Array, NDArray[np.intp]], Array],
    start: Array,
    count: int,
    tolerance: float,
    steps: int,
    rng: np.random.Generator,
) -> Found:
    """The `count` eigenpairs of largest absolute value of every operator, as far as `steps` blocks lead.

    Parameters
    ----------
    product: (V (j, n, b), members (j,)) -> (j, n, b); operators whose residuals are small enough are left out.
    start: orthonormal rows, (operators, b, n), b >= count; n >= 2 b.
    tolerance: an operator is done when its `count` residuals are at most this.
    """
    operators, b, n = start.shape
    room = max(2 * b, min(max(4, min(BLOCKS, ROOM // (2 * operators * n * b))) * b, n - b))
    Q, AQ, H = np.empty((operators, room, n)), np.empty((operators, room, n)), np.zeros((operators, room, room))
    values, residuals = np.empty((operators, count)), np.empty((operators, count))
    vectors, others = np.empty((operators, n, count)), np.empty((operators, n, b - count))
    theta, S, size = np.empty((operators, 0)), np.empty((operators, 0, 0)), np.ones((operators, 1))
    members, new, m, step, check, products = np.arange(operators), start, 0, 0, 1, 0
    while True:
        image = product(np.ascontiguousarray(new.swapaxes(1, 2)), members)
        step, products = step + 1, products + members.size * b
        Q[:, m : m + b], AQ[:, m : m + b] = new, image.swapaxes(1, 2)
        m += b
        H[:, m - b : m, :m] = AQ[:, m - b : m] @ Q[:, :m].swapaxes(1, 2)
        full = m + b > room
        if full or step >= min(check, steps):
            theta, S = _ritz(H[:, :m, :m])
            size = np.maximum(np.abs(theta[:, :1]), np.finfo(float).tiny)
            X, AX = S[:, :b] @ Q[:, :m], S[:, :b] @ AQ[:, :m]
            AX /= size[:, :, None]
            error = AX[:, :count] - (theta[:, :count] / size)[:, :, None] * X[:, :count]
            values[members], residuals[members] = theta[:, :count], np.linalg.norm(error, axis=2)
            vectors[members] = X[:, :count].swapaxes(1, 2)
            length = np.linalg.norm(AX[:, count:], axis=2, keepdims=True)
            others[members] = (AX[:, count:] / np.where(length > 0, length, 1.0)).swapaxes(1, 2)
            worst = residuals[members].max(axis=1)
            left = ~(worst <= tolerance)
            if step >= steps or not left.any():
                return Found(values, vectors, residuals, others, products, step)
            if not left.all():
                members = members[left]
                Q, AQ, H, theta, S, size = (part[left] for part in (Q, AQ, H, theta, S, size))
            check = step + _pause(step, float(np.median(worst[left])), tolerance)
        new = orthonormal(AQ[:, m - b : m], Q[:, :m], 1e-14 * size, rng)
        if full:
            kept = m // 2
            Q[:, :kept], AQ[:, :kept] = S[:, :kept] @ Q[:, :m], S[:, :kept] @ AQ[:, :m]
            H[:, :kept, :kept] = theta[:, :kept, None] * np.eye(kept)
            m = kept


def _pause(step: int, residual: float, tolerance: float) -> int:
    """Steps to the next check, which costs as much as a block product: 3/4 of those that a steady fall would need."""
    fall = -np.log(min(residual, 0.9)) / step
    return int(np.clip(0.75 * np.log(residual / max(tolerance, 1e-16)) / fall, 1, max(1, step)))


def orthonormal(block: Array, basis: Array, floor: float | Array, rng: np.random.Generator) -> Array:
    """Rows of `block` (..., b, n) made orthonormal to each other and to the orthonormal rows of `basis` (..., m, n).

    Rows with nothing new above `floor` are replaced by random directions, before the factorisation: a direction it made
    of rounding errors may carry parts of the other rows. Repeated until no row loses length.
    """
    for sweep in range(10):
        block = block - (block @ basis.swapaxes(-1, -2)) @ basis
        lost = np.abs(block).max(axis=-1) <= (1e-14 if sweep else floor)
        if lost.any():
            block[lost] = rng.standard_normal((int(lost.sum()), block.shape[-1]))
        q, r = np.linalg.qr(block.swapaxes(-1, -2))
        block = np.ascontiguousarray(q.swapaxes(-1, -2))
        if sweep and np.abs(np.diagonal(r, axis1=-2, axis2=-1)).min() > 0.7 and not lost.any():
            return block
    raise NumericalError("eigenpairs: the basis could not be made orthonormal", quantity="basis", time=0.0)


def _ritz(H: Array) -> tuple[Array, Array]:
    """Eigenvalues (j, m) of the lower triangles H (j, m, m), largest absolute value first, and eigenvectors in rows."""
    theta, S = np.linalg.eigh(H)
    order = np.argsort(-np.abs(theta), axis=1, kind="stable")
    theta = np.take_along_axis(theta, order, axis=1)
    return theta, np.take_along_axis(S, order[:, None, :], axis=2).swapaxes(1, 2)
