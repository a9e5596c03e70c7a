"""The bias of a linear fit to n rows of a larger population, and the fit without it.

With N columns that vary, and the mean subtracted where rows are centred, p = N + 1 (or N) numbers are fitted. Residuals
of the fit are then too small, and the squares of its coefficients too large, in the principal axes of the rows

    σ² = ⟨r²⟩/(1 − p/n)        θ*_k² = θ̂_k² − σ²/(n λ_k)

which is exact on average over labels for given rows. Single θ*_k² may come out negative; sums of them are unbiased.

>>> import numpy as np
>>> without_fit_bias(np.array([1.5, 0.5]), np.array([1.0, 0.1]), 0.9, count=30, centred=True)
(array([0.97777778, 0.03333333]), 1.0)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..interface.errors import InputError

Array = NDArray[np.float64]


def without_fit_bias(omega: Array, signal: Array, noise: float, *, count: int, centred: bool) -> tuple[Array, float]:
    """θ*² (N,) and σ² of the population behind `count` rows with eigenvalues λ (N,), given those of the fit."""
    kept = omega > 1e-12 * omega.max()
    fitted = int(np.count_nonzero(kept)) + centred
    if count <= fitted:
        raise InputError(
            f"data: {count} rows of {fitted - centred} dimensions leave no noise to estimate; give more rows, at least "
            f"{2 * fitted}"
        )
    noise = noise / (1 - fitted / count)
    return signal - np.divide(noise / count, omega, out=np.zeros_like(omega), where=kept), noise
