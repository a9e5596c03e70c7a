"""A function of two variables from a table that is uniform in both, by the cubic through four neighbours in each.

The error is of fourth order in the spacing. Looking up is most of the work of an elasticity, hence a compiled loop.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..compiled.functions import kept

Array = NDArray[np.float64]


@dataclass(frozen=True)
class InterpolationTable:
    """Values at low + step·(i, j), (rows, columns); points must be inside, one step away from the edges.

    Parameters
    ----------
    values: (rows, columns), at least four of each.
    low: of row 0 and of column 0; step: between rows and between columns.
    """

    values: Array
    low: tuple[float, float]
    step: tuple[float, float]

    def __call__(self, x: Array, y: Array) -> Array:
        """The function at points of one shape."""
        out = np.empty(x.shape)
        row, column = (x.ravel() - self.low[0]) / self.step[0], (y.ravel() - self.low[1]) / self.step[1]
        _interpolate(self.values, row, column, out.reshape(-1))
        return out


@kept()
def _weights(u):  # pragma: no cover - compiled
    """Of the neighbours at −1, 0, 1, 2 for a point u between 0 and 1, by Lagrange."""
    a, b, c = u + 1.0, u - 1.0, u - 2.0
    return -u * b * c / 6.0, a * b * c / 2.0, -a * u * c / 2.0, a * u * b / 6.0


@kept()
def _interpolate(values, row, column, out):  # pragma: no cover - compiled
    rows, columns = values.shape
    for n in range(out.size):
        i = min(max(int(row[n]), 1), rows - 3)
        j = min(max(int(column[n]), 1), columns - 3)
        first, second = _weights(row[n] - i), _weights(column[n] - j)
        total = 0.0
        for k in range(4):
            line = values[i - 1 + k]
            total += first[k] * (
                second[0] * line[j - 1] + second[1] * line[j] + second[2] * line[j + 1] + second[3] * line[j + 2]
            )
        out[n] = total
