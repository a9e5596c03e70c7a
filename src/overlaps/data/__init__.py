"""What inputs look like."""

from .inputs import GaussianInputs
from .spectrum import Isotropic, PowerLaw, Spectrum

__all__ = ["GaussianInputs", "Isotropic", "PowerLaw", "Spectrum"]
