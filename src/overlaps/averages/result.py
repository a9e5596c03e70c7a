"""The averages themselves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Averages:
    """D (K, K+M), S (K, K), dv (K,) = E[∂loss/∂v], error = E[loss] without label noise, E (K, P).

    For a mixture D = Σ_c p_c s_c D_c and S = Σ_c p_c s_c S_c, with the variances s_c of the components, and column c of
    E is p_c E_c[δ]; inputs of mean zero have no E.
    """

    D: NDArray[np.float64]
    S: NDArray[np.float64]
    dv: NDArray[np.float64]
    error: float
    E: NDArray[np.float64]
