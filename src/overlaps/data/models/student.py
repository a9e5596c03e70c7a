"""Inputs with heavy tails: a Gaussian whose variance is drawn anew for each sample.

    x = √(s ω_b) z,    s = (ν − 2)/χ²_ν,    z standard normal

is Student's t of ν degrees of freedom, with the covariance of the Gaussian, E s = 1. The law of s is taken at a finite
number of values s_c with probabilities p_c, so that inputs are a mixture of components that have no means: nodes of
Gauss and Laguerre for the law of 1/s weighted with s, which keep Σ p_c = Σ p_c s_c = 1 exactly. All scales take this
mixture; its distance from the t law falls with the number of components.

>>> from overlaps import StudentInputs
>>> StudentInputs(degrees=6).components.variances.round(2).tolist()
[7.07, 2.1, 0.99, 0.57, 0.37, 0.26, 0.19, 0.14, 0.11, 0.08, 0.07, 0.05]
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ...interface.checks import number, whole
from ...interface.errors import InputError
from ..inputs import Centred, Components, Levels
from ..spectrum import Isotropic, PowerLaw, Spectrum


@dataclass(frozen=True)
class StudentInputs(Levels, Centred):
    """Inputs of Student's t law with a given covariance `spectrum`, as a mixture of variances.

    Parameters
    ----------
    degrees: ν, above two, so that there is a covariance; tails are heavier the smaller it is.
    spectrum: eigenvalues of the covariance of the inputs.
    values: number of variances that the mixture has. Some of them are rare, and full-batch training needs samples of
        each: use few there.
    """

    degrees: float
    spectrum: Spectrum | PowerLaw | Isotropic = field(default_factory=Isotropic)
    values: int = 12

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "degrees", number("degrees", self.degrees, above=2))
        object.__setattr__(self, "values", whole("values", self.values, least=2, most=30))
        if self.degrees > 1e6:
            raise InputError(f"degrees: {self.degrees:g} make inputs Gaussian; use GaussianInputs")

    @cached_property
    def components(self) -> Components:  # type: ignore[override]
        """Weights and variances of the components, largest variance first, all with label 0."""
        # half of χ², in a sample weighted with s; by Golub and Welsch, whose weights never overflow
        power, k = self.degrees / 2 - 2, np.arange(self.values)
        beside = np.sqrt(k[1:] * (k[1:] + power))
        nodes, vectors = np.linalg.eigh(np.diag(2 * k + power + 1) + np.diag(beside, 1) + np.diag(beside, -1))
        variances = (self.degrees - 2) / (2 * nodes)
        probabilities = vectors[0] ** 2 / variances
        return Components(probabilities / probabilities.sum(), variances, np.zeros(self.values, np.int64))


def examples() -> tuple[StudentInputs, ...]:
    """Heavy tails on one level, and lighter ones on several."""
    return StudentInputs(5.0), StudentInputs(degrees=8.0, spectrum=PowerLaw(levels=3, exponent=0.5), values=6)


MODEL = StudentInputs
REFUSED = ({"degrees": 2.0}, {"values": 1, "degrees": 5.0}, {"spectrum": 1.0, "degrees": 5.0})
