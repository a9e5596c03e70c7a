"""Square roots of positive, possibly singular matrices: rows X with X Xᵀ = C."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def cholesky(C: Array) -> Array:
    """Lower-triangular L with L Lᵀ = C for a positive, possibly singular C; lost pivots become zero columns."""
    d = len(C)
    L = np.zeros((d, d))
    for j in range(d):
        pivot = C[j, j] - L[j, :j] @ L[j, :j]
        if pivot > 1e-14 * max(C[j, j], 1e-300):
            L[j, j] = np.sqrt(pivot)
            L[j + 1 :, j] = (C[j + 1 :, j] - L[j + 1 :, :j] @ L[j, :j]) / L[j, j]
    return L


def choleskys(C: Array) -> Array:
    """`cholesky` of a batch, (n, d, d)."""
    d = C.shape[-1]
    L = np.zeros_like(C)
    for j in range(d):
        pivot = C[:, j, j] - np.einsum("nk,nk->n", L[:, j, :j], L[:, j, :j])
        good = pivot > 1e-14 * np.maximum(C[:, j, j], 1e-300)
        root = np.sqrt(np.where(good, pivot, 1.0))
        L[:, j, j] = np.where(good, root, 0.0)
        below = (C[:, j + 1 :, j] - np.einsum("nik,nk->ni", L[:, j + 1 :, :j], L[:, j, :j])) / root[:, None]
        L[:, j + 1 :, j] = np.where(good[:, None], below, 0.0)
    return L


def root(C: Array) -> Array:
    """Columns X (d, d) with X Xᵀ = C, along its eigenvectors; eigenvalues that rounding made negative are zero."""
    values, vectors = np.linalg.eigh(C)
    return vectors * np.sqrt(np.maximum(values, 0.0))


def coordinates(gram: Array, width: int, triangular: bool) -> Array:
    """Rows (d, width) with rows rowsᵀ = gram (d, d): lower triangular, or any where width is the whole space."""
    columns = root(gram)
    if not triangular:
        return columns[:, ::-1][:, :width]
    # R of a QR decomposition of the transpose is a Cholesky factor that survives singular matrices
    lower = np.asarray(np.linalg.qr(columns.T, mode="r")).T
    return lower * np.where(np.diag(lower) < 0, -1.0, 1.0)
