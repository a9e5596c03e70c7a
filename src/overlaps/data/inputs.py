"""Gaussian inputs: coordinate i of level b is x_i = √ω_b z_i with z_i standard normal."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..checks import whole
from ..errors import InputError
from .spectrum import SPECTRA, Isotropic, PowerLaw, Spectrum


@dataclass(frozen=True)
class GaussianInputs:
    """Centred Gaussian inputs with a given covariance `spectrum`, written in its eigenbasis.

    At size N level b holds `dimensions(N)[b]` consecutive coordinates, in the order of the levels.
    """

    spectrum: Spectrum | PowerLaw | Isotropic = field(default_factory=Isotropic)

    def __post_init__(self) -> None:
        if not isinstance(self.spectrum, SPECTRA):
            wanted = " or ".join(kind.__name__ for kind in SPECTRA)
            raise InputError(f"spectrum: expected {wanted}, got {type(self.spectrum).__name__}")

    @property
    def eigenvalues(self) -> NDArray[np.float64]:
        """ω, shape (levels,)."""
        return np.array(self.spectrum.eigenvalues)

    @property
    def fractions(self) -> NDArray[np.float64]:
        """φ, shape (levels,); sums to one."""
        return np.array(self.spectrum.fractions)

    def dimensions(self, size: int) -> NDArray[np.int64]:
        """Whole numbers of dimensions per level, shape (levels,), that sum to `size`.

        Where φ_b N is not whole the largest remainders are rounded up; every level keeps at least one
        dimension. All three scales then use these realised fractions.
        """
        size = whole("size", size, least=1)
        ideal = self.fractions * size
        if size < ideal.size:
            raise InputError(f"size: {size} dimensions cannot hold {ideal.size} levels; use size >= {ideal.size}")
        counts = np.maximum(np.floor(ideal + 1e-9).astype(np.int64), 1)
        remainder = ideal - counts
        while counts.sum() < size:
            b = int(np.argmax(remainder))
            counts[b] += 1
            remainder[b] -= 1
        while counts.sum() > size:
            b = int(np.argmin(np.where(counts > 1, remainder, np.inf)))
            counts[b] -= 1
            remainder[b] += 1
        return counts
