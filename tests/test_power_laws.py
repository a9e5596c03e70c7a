"""Functions of power-law spectra against quadrature."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import roots_jacobi

from overlaps.laws import powerlaw


@pytest.mark.parametrize("s", [0.2, 1.0, 2.5])
def test_incomplete_gamma_of_small_arguments(s: float) -> None:
    """x^-s γ(s, x) − 1/s = ∫ u^(s−1) (e^(−xu) − 1) du from zero to one, to the last digits."""
    nodes, weights = roots_jacobi(20, 0.0, s - 1)
    x = np.array([1e-12, 1e-5, 3e-4, 9.9e-4])
    exact = np.expm1(-np.multiply.outer(x, (nodes + 1) / 2)) @ weights / 2**s
    np.testing.assert_allclose(powerlaw._lower(s, x), exact, rtol=3e-13)
