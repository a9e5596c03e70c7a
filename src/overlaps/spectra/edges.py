"""An edge of the bulk of a sample matrix, by how much single eigenvalues may pass it, and how far weights reach.

The outermost eigenvalue of the bulk of n samples fluctuates by the Tracy-Widom law and with the sample of weights. The
law of the weights is cut at the median of the largest, and of the smallest, of n samples, where half of all samples
have none beyond.

>>> import numpy as np
>>> Edge(-1.0, 2.0, 0.1, 0.0).margin.__round__(5)
0.32724
>>> extremes(np.array([1.0, 2.0, 3.0]), np.array([0.1, 0.8, 0.1]), samples=3)
(2.0, 2.0)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
TRACY_WIDOM, NORMAL = 3.2724, 3.0902  # points exceeded with probability 1e-3 (real symmetric; standard normal)


@dataclass(frozen=True, eq=False)
class Edge:
    """An upper edge of the bulk: z at m, its Tracy-Widom width, and its spread with the sample of weights."""

    m: float
    z: float
    width: float
    spread: float

    @property
    def margin(self) -> float:
        """What the outermost eigenvalue of the bulk passes the edge by at most one time in 1000, or less."""
        return TRACY_WIDOM * self.width + NORMAL * self.spread


def extremes(values: Array, probabilities: Array, samples: int) -> tuple[float, float]:
    """Medians of the smallest and of the largest of n samples of a law on `values` (points,)."""
    order = np.argsort(values)
    below = np.cumsum(probabilities[order])
    low = float(values[order][np.searchsorted(below, np.log(2) / samples)])
    high = float(values[order][np.searchsorted(below, min(1 - np.log(2) / samples, below[-1]))])
    return min(low, high), max(low, high)
