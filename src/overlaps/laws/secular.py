"""Eigenvalues of a diagonal matrix plus one of rank one, by its secular equation.

For poles p_1 < … < p_L and weights w_b > 0 the equation

    g(x) = Σ_b w_b/(p_b − x) = h,        h > 0,

has one root below p_1 and one between each pair of neighbours. Each is found by rational interpolation that has the two
poles next to it (R.-C. Li, LAPACK working note 89, 1993), as a distance from the nearer pole, so that it keeps its
relative accuracy however close it is. A root costs O(L), all of them O(L²): no matrix is formed.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from ..compiled.functions import kept
from ..interface.errors import NumericalError

Array = NDArray[np.float64]


def roots(poles: Array, weights: Array, level: float) -> tuple[NDArray[np.int64], Array, Array]:
    """All roots of g(x) = `level` for rising `poles`: x_j = poles[near_j] + shift_j, and g′(x_j) > 0.

    Returns near (L,), shift (L,), slope (L,).
    """
    L = poles.size
    near, shift, slope, converged = np.empty(L, np.int64), np.empty(L), np.empty(L), np.zeros(L, np.bool_)
    workers = (os.cpu_count() or 1) if L > 1000 else 1
    edges = np.linspace(0, L, workers + 1).astype(int).tolist()

    def share(i: int) -> None:
        _roots(poles, weights, level, edges[i], edges[i + 1], near, shift, slope, converged)

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(share, range(workers)))
    if not converged.all():
        j = int(converged.argmin())
        raise NumericalError(
            f"laws: eigenvalue {j} of {L} did not converge (next to {poles[j]:.6g})", quantity=f"mode {j}", time=0.0
        )
    return near, shift, slope


def smallest_root(poles: Array, weights: Array, level: float) -> float:
    """The root below all `poles`, by one O(L) search."""
    near, shift, slope, converged = np.zeros(1, np.int64), np.empty(1), np.empty(1), np.zeros(1, np.bool_)
    _roots(poles, weights, level, 0, 1, near, shift, slope, converged)
    if not converged[0]:
        raise NumericalError("laws: the slowest mode did not converge", quantity="mode 0", time=0.0)
    return float(poles[0] + shift[0])


@kept(nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "arcp"})
def _roots(poles, weights, level, first, last, near, shift, slope, converged):  # pragma: no cover - compiled
    L = poles.size
    lowest = 2.0 * weights.sum() / level
    if poles[0] > 0.0 and np.sum(weights / poles) <= level:
        lowest = min(lowest, poles[0])  # g(0) is below the level, so that the first root is above zero
    for j in range(first, last):
        o = j  # the origin: first the pole above, then the nearer one
        gap = poles[j] - poles[j - 1] if j > 0 else lowest
        below, above = -gap, 0.0
        x = -0.5 * gap
        for turn in range(200):
            left, dleft, right, dright = 0.0, 0.0, 0.0, 0.0
            for b in range(j):
                r = 1.0 / ((poles[b] - poles[o]) - x)
                q = weights[b] * r
                left += q
                dleft += q * r
            for b in range(j, L):
                r = 1.0 / ((poles[b] - poles[o]) - x)
                q = weights[b] * r
                right += q
                dright += q * r
            f = left + right - level
            slope[j] = dleft + dright
            if abs(f) <= 1e-15 * (right - left + level):  # it cannot be known better than the rounding of its sums
                converged[j] = True
                break
            if f > 0.0:
                if turn == 0 and j > 0:
                    o, x, below = j - 1, 0.5 * gap, 0.0
                above = x
            else:
                below = x
            # f ≈ c + s/(lower − y) + S/(upper − y) with the slopes of either side
            upper = (poles[j] - poles[o]) - x
            if j == 0:
                c = f - dright * upper
                step = upper + dright * upper * upper / c if c != 0.0 else 0.0
            else:
                lower = (poles[j - 1] - poles[o]) - x
                c = f - dleft * lower - dright * upper
                a = (lower + upper) * f - lower * upper * (dleft + dright)
                p = lower * upper * f
                d = np.sqrt(max(a * a - 4.0 * p * c, 0.0))
                step = (a - d) / (2.0 * c) if a <= 0.0 else 2.0 * p / (a + d)
            y = x + step
            if y == 0.0 or not (below <= y <= above):  # zero is a pole
                y = 0.5 * (below + above)
            converged[j] = abs(y - x) <= 4e-16 * abs(y)
            x = y
            if converged[j]:
                break
        near[j], shift[j] = o, x
