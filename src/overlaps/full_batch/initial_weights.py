"""Weights that have given overlaps, for runs that need N of them.

Gaussian inputs have no preferred direction within a level but those of their means, so that all weights with the same
overlaps have the same law. With means μ (P, n) of a level, overlaps O (K+M, P) of weights and means and Gram matrices H
of the weights and G of the means,

    Z = O G⁺ μ + L U,    L Lᵀ = H − O G⁺ Oᵀ,    U orthonormal and orthogonal to the means.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..problem.start import Start
from ..problem.statement import Problem

Array = NDArray[np.float64]


def with_weights(problem: Problem, start: Start) -> Start:
    """`start`, which has a size, with weights along the eigenvectors, and of its overlaps where it has none."""
    turned = problem.data.turned
    if start.student is not None and start.teacher is not None and start.means is not None:
        return replace(start, student=turned(start.student), teacher=turned(start.teacher), means=turned(start.means))
    assert start.size is not None and start.dimensions is not None
    K, M = start.Q.shape[1], start.u.size
    means = turned(problem.data.mean_vectors(start.size))
    rows = np.empty((K + M, start.size))
    rng = np.random.default_rng(0)
    ends = np.cumsum(start.dimensions)
    for gram, part in zip(start.gram, np.split(np.arange(start.size), ends[:-1]), strict=True):
        H, O, mu = gram[: K + M, : K + M], gram[: K + M, K + M :], means[:, part]
        along_means = O @ np.linalg.pinv(gram[K + M :, K + M :], rcond=1e-12, hermitian=True)
        values, vectors = np.linalg.eigh(H - along_means @ O.T)
        own = values > 1e-14 * max(float(np.trace(H)), 1e-300)
        span = _span(mu)
        free = rng.standard_normal((part.size, np.count_nonzero(own)))
        for _ in range(2):
            free = free - span @ (span.T @ free)
        U = np.linalg.qr(free)[0]
        rows[:, part] = along_means @ mu + (vectors[:, own] * np.sqrt(values[own])) @ U.T
    rows *= np.sqrt(start.size)
    return replace(start, student=rows[:K], teacher=rows[K:], means=means)


def _span(rows: Array) -> Array:
    """Orthonormal columns that span the rows, (n, rank)."""
    if not rows.size:
        return np.zeros((rows.shape[1], 0))
    _, lengths, columns = np.linalg.svd(rows, full_matrices=False)
    return columns[lengths > 1e-10 * max(float(lengths[0]), 1e-300)].T
