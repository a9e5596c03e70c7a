"""What inputs look like."""

from .inputs import Centred, Components, GaussianInputs, Levels
from .mixture import GaussianMixture
from .samples import Samples
from .spectrum import SPECTRA, Isotropic, PowerLaw, Spectrum

__all__ = [
    "SPECTRA",
    "Centred",
    "Components",
    "GaussianInputs",
    "GaussianMixture",
    "Isotropic",
    "Levels",
    "PowerLaw",
    "Samples",
    "Spectrum",
]
