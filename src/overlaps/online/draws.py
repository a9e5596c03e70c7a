"""Drawing inputs of a mixture, in the one order that all simulations share: component, variance, then the noise.

    x = μ_c + √(s ω_c) z,    c with probability p_c, z standard normal, s = (ν − 2)/χ²_ν where there are tails

Inputs of one component and mean zero have no component to draw, and without tails s = 1 is not drawn either.
"""

from __future__ import annotations

import numpy as np

from ..compiled.normals import fill_normals
from ..compiled.symbols import njit


@njit(nogil=True)
def component(cumulative, means, rng):  # pragma: no cover - compiled
    """A component, from cumulative weights; `means` is the number of mean vectors, zero where all means are zero."""
    if means == 0 and cumulative.size == 1:
        return 0
    u = rng.random()
    for c in range(cumulative.size - 1):
        if u < cumulative[c]:
            return c
    return cumulative.size - 1


@njit(nogil=True)
def stretch(tails, rng):  # pragma: no cover - compiled
    """√s of the variance s that a sample draws for itself, of `tails` degrees of freedom; one where these are zero."""
    if tails == 0.0:
        return 1.0
    return np.sqrt((tails - 2.0) / (2.0 * rng.standard_gamma(0.5 * tails)))


@njit(nogil=True)
def fill(x, c, longer, root, means, rng):  # pragma: no cover - compiled
    """Write an input of component c, its noise `longer` times as long, into x (N,)."""
    fill_normals(x, rng)
    for i in range(x.size):
        x[i] *= longer * root[c, i]
    if len(means) > 0:
        for i in range(x.size):
            x[i] += means[c, i]
