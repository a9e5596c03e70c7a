"""Inputs with heavy tails: a Gaussian whose variance is drawn anew for each sample.

    x = √(s ω_b) z,    s = (ν − 2)/χ²_ν,    z standard normal

is Student's t of ν degrees of freedom, with the covariance of the Gaussian, E s = 1. Training and the overlap chain
draw s for every sample. Theory takes it at a finite number of values s_c with probabilities p_c, as a mixture of
components that have no means, by a rule of Gauss (see `overlaps.data.tail_rule`) that is exact for E s and, where there
is one, E s² = (ν − 2)/(ν − 4); what it still changes is part of the stated accuracy. Full batches take this mixture at
all scales, for their theory is given how many samples each component has.

>>> from overlaps import StudentInputs
>>> StudentInputs(degrees=6).components.variances.round(2).tolist()
[396.05, 37.15, 9.05, 3.36, 1.58, 0.86, 0.52, 0.34, 0.23, 0.16, 0.12, 0.08]
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from ...interface.checks import number, whole
from ...interface.errors import InputError
from ..inputs import Centred, Components, Levels
from ..spectrum import Isotropic, PowerLaw, Spectrum
from ..tail_rule import tail_rule

MOST = 60  # values of the variance


@dataclass(frozen=True)
class StudentInputs(Levels, Centred):
    """Inputs of Student's t law with a given covariance `spectrum`.

    Parameters
    ----------
    degrees: ν, above two, so that there is a covariance; tails are heavier the smaller it is.
    spectrum: eigenvalues of the covariance of the inputs.
    values: number of variances at which theory takes the law, from three on. Some of them are rare, and full-batch
        training needs samples of each: use few there.
    """

    degrees: float
    spectrum: Spectrum | PowerLaw | Isotropic = field(default_factory=Isotropic)
    values: int = 12

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "degrees", number("degrees", self.degrees, above=2))
        object.__setattr__(self, "values", whole("values", self.values, least=3, most=MOST))
        if self.degrees > 1e6:
            raise InputError(f"degrees: {self.degrees:g} make inputs Gaussian; use GaussianInputs")

    @cached_property
    def components(self) -> Components:  # type: ignore[override]
        """Weights and variances of the components, largest variance first, all with label 0."""
        return Components(*tail_rule(self.degrees, self.values), np.zeros(self.values, np.int64))

    @property
    def tails(self) -> float:  # type: ignore[override]
        """ν of the variance that each sample draws for itself."""
        return self.degrees

    @property
    def drawn_components(self) -> Components:
        """One: what differs between samples is the variance that each draws for itself."""
        return Components(np.ones(1), np.ones(1), np.zeros(1, np.int64))

    @property
    def other_values(self) -> StudentInputs:
        """The same inputs with half as many values again, or where these are too many with two thirds of them."""
        more = self.values + (self.values + 1) // 2
        return replace(self, values=more if more <= MOST else self.values - self.values // 3)


def examples() -> tuple[StudentInputs, ...]:
    """Heavy tails on one level, and lighter ones on several."""
    return StudentInputs(5.0), StudentInputs(degrees=8.0, spectrum=PowerLaw(levels=3, exponent=0.5), values=6)


MODEL = StudentInputs
REFUSED = ({"degrees": 2.0}, {"values": 2, "degrees": 5.0}, {"spectrum": 1.0, "degrees": 5.0})
