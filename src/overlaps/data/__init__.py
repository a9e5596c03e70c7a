"""What inputs look like."""

from .inputs import Centred, Components, Levels, TeacherFields
from .latent import LatentMixture
from .models import MODELS
from .models.classes import GaussianClasses
from .models.gaussian import GaussianInputs
from .models.manifold import HiddenManifold
from .models.mixture import GaussianMixture
from .models.samples import Samples
from .models.student import StudentInputs
from .spectrum import SPECTRA, Isotropic, PowerLaw, Spectrum

__all__ = [
    "MODELS",
    "SPECTRA",
    "Centred",
    "Components",
    "GaussianClasses",
    "GaussianInputs",
    "GaussianMixture",
    "HiddenManifold",
    "Isotropic",
    "LatentMixture",
    "Levels",
    "PowerLaw",
    "Samples",
    "Spectrum",
    "StudentInputs",
    "TeacherFields",
]
