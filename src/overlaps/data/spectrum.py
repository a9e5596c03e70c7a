"""Spectra of the input covariance: eigenvalues ω_b, each on a fraction φ_b of the N dimensions.

The power law of L levels has ω_l = ω₊ l^-(1+β), equal fractions 1/L, and ω₊ = L / Σ_l l^-(1+β), so that
the mean eigenvalue is one and |x|² = N on average.

>>> from overlaps import PowerLaw
>>> round(PowerLaw(levels=10, exponent=0.25).eigenvalues[0], 12)
4.213580444351
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..checks import array, number, whole
from ..errors import InputError


@dataclass(frozen=True)
class Spectrum:
    """Any spectrum: `eigenvalues` ω_b ≥ 0 on `fractions` φ_b of the dimensions (equal ones by default)."""

    eigenvalues: Sequence[float] | NDArray[np.float64]
    fractions: Sequence[float] | NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        values = array("eigenvalues", self.eigenvalues, (None,))
        if values.size == 0:
            raise InputError("eigenvalues: expected at least one, got none")
        if values.min() < 0:
            raise InputError(
                f"eigenvalues: expected none below zero, got {values.min():g} at position {int(values.argmin())}"
            )
        if values.max() == 0:
            raise InputError("eigenvalues: at least one must be above zero, or inputs carry no signal")
        if self.fractions is None:
            shares = np.full(values.size, 1 / values.size)
        else:
            shares = array("fractions", self.fractions, (values.size,))
            if shares.min() <= 0:
                raise InputError(f"fractions: expected numbers above zero, got {shares.min():g}")
            if abs(shares.sum() - 1) > 1e-9:
                raise InputError(f"fractions: expected a sum of one, got {shares.sum():.10g}; divide them by their sum")
        object.__setattr__(self, "eigenvalues", tuple(values.tolist()))
        object.__setattr__(self, "fractions", tuple(shares.tolist()))

    def __repr__(self) -> str:
        values = list(self.eigenvalues)
        if len(values) <= 4:
            return f"Spectrum(eigenvalues={values}, fractions={list(self.fractions or ())})"
        return f"Spectrum({len(values)} levels, eigenvalues {min(values):.3g} to {max(values):.3g})"


@dataclass(frozen=True)
class Isotropic:
    """One level: every eigenvalue is one."""

    @property
    def eigenvalues(self) -> tuple[float, ...]:
        return (1.0,)

    @property
    def fractions(self) -> tuple[float, ...]:
        return (1.0,)


@dataclass(frozen=True)
class PowerLaw:
    """L `levels` with ω_l ∝ l^-(1 + `exponent`), equal fractions, mean eigenvalue one."""

    levels: int
    exponent: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", whole("levels", self.levels, least=1, most=10**7))
        object.__setattr__(self, "exponent", number("exponent", self.exponent, above=-1))

    @property
    def eigenvalues(self) -> tuple[float, ...]:
        raw = np.arange(1, self.levels + 1, dtype=float) ** -(1 + self.exponent)
        return tuple((raw * (self.levels / raw.sum())).tolist())

    @property
    def fractions(self) -> tuple[float, ...]:
        return (1 / self.levels,) * self.levels


SPECTRA = (Isotropic, PowerLaw, Spectrum)  # what may stand in a `spectrum` field
