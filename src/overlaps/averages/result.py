"""The averages themselves."""

from __future__ import annotations

from collections.abc import Sequence
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


def over_components(
    parts: Sequence[Averages], weights: NDArray[np.float64], variances: NDArray[np.float64]
) -> Averages:
    """Averages of a mixture from those of its components, each unweighted and with E (K, 1) = E_c[δ]."""
    inputs = weights * variances
    return Averages(
        np.tensordot(inputs, np.array([part.D for part in parts]), 1),
        np.tensordot(inputs, np.array([part.S for part in parts]), 1),
        weights @ np.array([part.dv for part in parts]),
        float(weights @ np.array([part.error for part in parts])),
        weights * np.concatenate([part.E for part in parts], axis=1),
    )


def by_component(C: NDArray[np.float64], variances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Covariances of each component, (n, P, d, d): as they are, or from that of variance one, (n, d, d)."""
    return C if C.ndim == 4 else variances[:, None, None] * C[:, None]
