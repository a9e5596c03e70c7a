"""What inputs look like."""

from .inputs import Components, GaussianInputs
from .mixture import GaussianMixture
from .samples import Samples
from .spectrum import SPECTRA, Isotropic, PowerLaw, Spectrum

__all__ = ["SPECTRA", "Components", "GaussianInputs", "GaussianMixture", "Isotropic", "PowerLaw", "Samples", "Spectrum"]
