"""What inputs look like."""

from .inputs import Centred, Components, GaussianInputs, Levels, TeacherFields
from .latent import LatentMixture
from .manifold import HiddenManifold
from .mixture import GaussianMixture
from .samples import Samples
from .spectrum import SPECTRA, Isotropic, PowerLaw, Spectrum

__all__ = [
    "SPECTRA",
    "Centred",
    "Components",
    "GaussianInputs",
    "GaussianMixture",
    "HiddenManifold",
    "Isotropic",
    "LatentMixture",
    "Levels",
    "PowerLaw",
    "Samples",
    "Spectrum",
    "TeacherFields",
]
