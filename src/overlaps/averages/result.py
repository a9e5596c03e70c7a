"""The averages themselves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Averages:
    """D (K, K+M), S (K, K), dv (K,) = E[∂loss/∂v], error = E[loss] without label noise."""

    D: NDArray[np.float64]
    S: NDArray[np.float64]
    dv: NDArray[np.float64]
    error: float
