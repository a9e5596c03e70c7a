"""What inputs look like."""

from .inputs import GaussianInputs
from .samples import Samples
from .spectrum import SPECTRA, Isotropic, PowerLaw, Spectrum

__all__ = ["SPECTRA", "GaussianInputs", "Isotropic", "PowerLaw", "Samples", "Spectrum"]
