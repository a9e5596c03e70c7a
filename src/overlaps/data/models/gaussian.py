"""Gaussian inputs: coordinate i of level b is x_i = √ω_b z_i with z_i standard normal."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..inputs import Centred, Levels
from ..spectrum import Isotropic, PowerLaw, Spectrum


@dataclass(frozen=True)
class GaussianInputs(Levels, Centred):
    """Centred Gaussian inputs with a given covariance `spectrum`, written in its eigenbasis.

    At size N level b holds `dimensions(N)[b]` consecutive coordinates, in the order of the levels.
    """

    spectrum: Spectrum | PowerLaw | Isotropic = field(default_factory=Isotropic)
    in_words = "Gaussian"  # results describe the spectrum separately


def examples() -> tuple[GaussianInputs, ...]:
    """Inputs of one level and of several."""
    return GaussianInputs(), GaussianInputs(PowerLaw(levels=3, exponent=0.5)), GaussianInputs(Spectrum([4.0, 1.0, 0.0]))


MODEL = GaussianInputs
REFUSED = ({"spectrum": 1.0},)
