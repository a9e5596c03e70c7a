"""Stability of the origin for two-layer ReLU networks with the logistic loss, where decay may win over the data.

Near zero weights the output is small, so that a unit of direction û (length one) moves as

    d|w|/dt = η v F(û) − ηβ |w|      dv/dt = η |w| F(û) − ηβ v      F(û) = E[(y − 1/2) g(û·x)],

which grows only if F exceeds the decay β in some direction. With g = ReLU and a mixture, F is a sum of
E[g(a + s ξ)] = a Φ(a/s) + s φ(a/s); its largest value lies in the span of the means. For the XOR mixture it is κ/8, the
transition of Ben Arous, Gheissari, Huang and Jagannath (2023), whose value without noise is 1/8.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..data.square_roots import cholesky

Array = NDArray[np.float64]


def largest_pull(gram: Array, weights: Array, variances: Array, labels: NDArray[np.int64]) -> float:
    """max over directions of |E[(y − 1/2) g(û·x)]| for a mixture with isotropic noise.

    By ascent on the sphere from many starts, along the gradient Σ_c p_c (y_c − 1/2) Φ(û·μ_c/s_c) μ_c.
    """
    from scipy.special import ndtr

    rows = cholesky(gram)
    rows = rows[:, np.abs(rows).max(0) > 0]
    spread = np.maximum(np.sqrt(variances), 1e-12)
    pulls = weights * (labels - 0.5)
    best = abs(float(pulls @ spread)) / np.sqrt(2 * np.pi)  # a direction that sees no mean
    length = float(np.sqrt(np.max(np.sum(rows**2, 1), initial=0.0)))
    if length == 0:
        return best
    rng = np.random.default_rng(0)
    some = rng.permutation(len(rows))[:20]
    starts = np.concatenate([rows[some], -rows[some], rng.standard_normal((20, rows.shape[1]))])
    starts = starts[np.linalg.norm(starts, axis=1) > 0]
    for sign in (1.0, -1.0):
        u = starts / np.linalg.norm(starts, axis=1, keepdims=True)
        for step in np.geomspace(2.0, 0.02, 300):
            gradient = sign * (pulls * ndtr(u @ rows.T / spread)) @ rows
            before, u = u, u + step / length * gradient
            u /= np.linalg.norm(u, axis=1, keepdims=True)
            if np.abs(u - before).max() < 1e-10:
                break
        a = u @ rows.T
        bell = np.exp(-0.5 * (a / spread) ** 2) / np.sqrt(2 * np.pi)
        best = max(best, float((sign * (a * ndtr(a / spread) + spread * bell) @ pulls).max()))
    return best
