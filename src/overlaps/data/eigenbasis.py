"""The eigenbasis that commuting covariance matrices share, and its levels: directions with the same eigenvalues in all.

>>> import numpy as np
>>> basis, levels, sizes = common_eigenbasis(np.array([np.diag([1.0, 2.0, 1.0]), np.diag([3.0, 1.0, 3.0])]))
>>> levels.tolist(), sizes.tolist()
([[2.0, 1.0], [1.0, 3.0]], [1, 2])
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..interface.errors import InputError

Array = NDArray[np.float64]
EQUAL = 1e-8  # eigenvalues this close, relative to the largest entry, are one


def common_eigenbasis(matrices: Array) -> tuple[Array, Array, NDArray[np.int64]]:
    """Of symmetric matrices (components, N, N): basis (N, N) in columns, ordered by level, eigenvalues and sizes.

    Eigenvalues of the levels are (levels, components), numbers of their dimensions (levels,), largest first. Matrices
    that do not commute, or are not positive, are refused.
    """
    count, size = matrices.shape[:2]
    scale = float(np.abs(matrices).max(initial=0.0)) or 1.0
    if np.abs(matrices - matrices.transpose(0, 2, 1)).max() > 1e-10 * scale:
        raise InputError("covariances: expected symmetric matrices")
    for a in range(count):
        for b in range(a):
            commutator = float(np.abs(matrices[a] @ matrices[b] - matrices[b] @ matrices[a]).max())
            if commutator > 1e-8 * scale**2:
                raise InputError(
                    f"covariances: those of components {b} and {a} do not commute (by {commutator:.2g}): they share no "
                    "eigenbasis, so that no finite set of overlaps describes them; use GaussianClasses, or covariances "
                    "that do, such as their diagonals"
                )
    # a combination in general position has different eigenvalues on all common eigenspaces
    mixing = np.random.default_rng(0).uniform(0.5, 1.5, count)
    basis = np.linalg.eigh(np.tensordot(mixing, matrices, 1))[1]
    turned = basis.T @ matrices @ basis
    values = np.diagonal(turned, axis1=1, axis2=2).T  # (N, components)
    rest = float(np.abs(turned - values.T[:, :, None] * np.eye(size)).max())
    if rest > 1e-6 * scale:
        raise InputError(
            f"covariances: in the eigenbasis they nearly share, entries of {rest:.2g} are left off the diagonal; "
            "use covariances that commute to rounding, such as their diagonals"
        )
    if values.min() < -EQUAL * scale:
        raise InputError(f"covariances: expected none with a negative eigenvalue, got {values.min():.3g}")
    values = np.where(values < 1e-12 * scale, 0.0, values)
    levels: list[Array] = []
    level = np.empty(size, np.int64)
    for i in np.lexsort(_ranks(values, EQUAL * scale).T[::-1])[::-1]:
        near = [b for b, own in enumerate(levels) if np.abs(own - values[i]).max() <= EQUAL * scale]
        if not near:
            levels.append(values[i])
        level[i] = near[0] if near else len(levels) - 1
    return basis[:, np.argsort(level, kind="stable")], np.array(levels), np.bincount(level)


def _ranks(values: Array, gap: float) -> NDArray[np.int64]:
    """Ranks within each column, where values closer than `gap` share one, so that rounding does not order levels."""
    ranks = np.zeros(values.shape, np.int64)
    for column, found in zip(values.T, ranks.T, strict=True):
        order = np.argsort(column, kind="stable")
        found[order[1:]] = np.cumsum(np.diff(column[order]) > gap)
    return ranks
