"""What the laws need of a spectrum: eigenvalues ω_b > 0 in falling order, each with its share φ_b of the dimensions.

Levels of equal eigenvalue are one level (the error sees only their sum), and a level of eigenvalue zero, or below 1e-50
of the largest, is none.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data import SPECTRA, Isotropic, PowerLaw, Spectrum
from ..interface.checks import whole
from ..interface.errors import InputError, shown

Array = NDArray[np.float64]
HUGE = 1e100  # powers of it up to the third are finite
AnySpectrum = Spectrum | PowerLaw | Isotropic


class TrainedLevels(NamedTuple):
    """Trained levels (ω, φ), falling; and the variance Σ φ ω of the inputs that no trained weight reads."""

    eigenvalues: Array
    fractions: Array
    frozen: float


def levels(spectrum: AnySpectrum, trained: int | None = None) -> TrainedLevels:
    """The levels of `spectrum`, of which the `trained` ones of largest eigenvalue are trained (default: all)."""
    if not isinstance(spectrum, SPECTRA):
        wanted = " or ".join(kind.__name__ for kind in SPECTRA)
        raise InputError(f"spectrum: expected {wanted}, got {shown(spectrum)}")
    omega, phi = np.array(spectrum.eigenvalues), np.array(spectrum.fractions)
    if not 1 / HUGE < omega.max() < HUGE:
        raise InputError(
            f"spectrum: eigenvalues of {omega.max():.1e} have no square in floating point; give inputs other units"
        )
    order = np.argsort(-omega, kind="stable")
    omega, phi = omega[order], phi[order]
    count = omega.size if trained is None else whole("trained", trained, least=0, most=omega.size)
    frozen = float(phi[count:] @ omega[count:])
    values, shares = merged(omega[:count], phi[:count])
    return TrainedLevels(values, shares, frozen)


def merged(omega: Array, *weights: Array) -> tuple[Array, ...]:
    """Distinct eigenvalues above zero, falling, and the weights summed over equal ones."""
    keep = omega > 1e-50 * omega.max(initial=0.0)
    values, place = np.unique(-omega[keep], return_inverse=True)
    sums = (np.bincount(place, w[keep], minlength=values.size).astype(float) for w in weights)
    return -values, *sums


def power_law(spectrum: AnySpectrum) -> PowerLaw:
    """`spectrum` if it is a falling power law, which the scaling laws are about."""
    if not isinstance(spectrum, PowerLaw):
        raise InputError(
            f"spectrum: this law is about a PowerLaw, got {shown(spectrum)}; small_rate_error and linear_error take "
            "any spectrum"
        )
    if spectrum.exponent < 1e-6:
        raise InputError(
            f"exponent: scaling laws need β > 0 (a trace that converges; here at least 1e-6), got "
            f"{spectrum.exponent:g}; small_rate_error and linear_error take any spectrum"
        )
    if (1 + spectrum.exponent) * np.log(spectrum.levels) > np.log(HUGE):
        raise InputError(
            f"exponent: {spectrum.levels} levels with β = {spectrum.exponent:g} span more than {HUGE:g} in eigenvalue; "
            "use fewer levels or a smaller exponent"
        )
    return spectrum
