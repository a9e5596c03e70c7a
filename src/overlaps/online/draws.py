"""Drawing inputs of a mixture, in the one order that all simulations share: the component, then its noise.

    x = μ_c + √ω_c z,    c with probability p_c, z standard normal

Inputs of one component and mean zero have no component to draw.
"""

from __future__ import annotations

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
def fill(x, c, root, means, rng):  # pragma: no cover - compiled
    """Write an input of component c into x (N,)."""
    fill_normals(x, rng)
    for i in range(x.size):
        x[i] *= root[c, i]
    if len(means) > 0:
        for i in range(x.size):
            x[i] += means[c, i]
