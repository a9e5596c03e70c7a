"""What inputs look like."""

from .inputs import GaussianInputs
from .spectrum import SPECTRA, Isotropic, PowerLaw, Spectrum

__all__ = ["SPECTRA", "GaussianInputs", "Isotropic", "PowerLaw", "Spectrum"]
