"""Real samples: an input is a row of a data set, each row equally likely at every step.

Rows are turned into the principal axes of their covariance C = U Λ Uᵀ, in units where the mean eigenvalue is one,

    x = Uᵀ (row − mean)/√(tr C/N),

so that coordinate i has variance ω_i exactly, as a Gaussian input with this spectrum has; everything else about the
rows is as it is. Training takes them as they are; theory takes them as Gaussian.

>>> import numpy as np
>>> import overlaps as ov
>>> rows = np.random.default_rng(0).uniform(size=(500, 3)) * [1.0, 2.0, 3.0]
>>> data = ov.Samples(rows)
>>> bool(np.allclose(data.rows.T @ data.rows / 500, np.diag(data.eigenvalues)))
True
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...interface.checks import whole
from ...interface.errors import InputError
from ..covariance import PrincipalAxes, principal_axes, true_or_false
from ..inputs import Centred, Shared
from ..spectrum import Spectrum
from ..table import Source, blocks, numbers, source_path


@dataclass(frozen=True, repr=False)
class Samples(Shared, Centred):
    """Inputs drawn from the rows of a data set, with replacement.

    `train` runs on the rows themselves, and its error is the mean over all rows. `solve` and `sample` take inputs as
    Gaussian with the same covariance; where they part from `train`, the inputs are to blame, or for `solve` the size.

    Parameters
    ----------
    source: a table of samples × columns, as for `Spectrum.from_data`; a path is relative to the working directory.
    centre: whether the mean of each column is subtracted.
    digest: SHA-256 of the table, filled in; a spec carries it, so that a file that has changed since is refused.
    """

    source: Source = field(compare=False)  # data sets are equal if their digests are
    centre: bool = True
    digest: str = ""

    def __post_init__(self) -> None:
        path = source_path(self.source)
        object.__setattr__(self, "source", numbers(self.source, "an array") if path is None else os.fspath(path))
        object.__setattr__(self, "centre", true_or_false(self.centre))
        if not isinstance(self.digest, str):
            raise InputError(f"digest: expected text, got {self.digest!r}")
        if self.digest and self.digest != self._axes.digest:
            raise InputError(
                f"digest: {self._name} is not the data this was written for (they had {self.digest:.12}..., these have "
                f"{self._axes.digest:.12}...); restore the file, or leave digest out to use these data"
            )
        object.__setattr__(self, "digest", self._axes.digest)

    @cached_property
    def _axes(self) -> PrincipalAxes:
        return principal_axes(self.source, self.centre)

    @property
    def _name(self) -> str:
        path = source_path(self.source)
        return "the array" if path is None else str(path)

    @property
    def spectrum(self) -> Spectrum:
        """The spectrum of the covariance, one level per dimension."""
        return Spectrum(self._axes.eigenvalues, source=self._axes.source)

    @property
    def eigenvalues(self) -> NDArray[np.float64]:
        """ω, shape (levels,), largest first."""
        return self._axes.eigenvalues.copy()

    @property
    def fractions(self) -> NDArray[np.float64]:
        """φ, shape (levels,), all equal."""
        return np.array(self.spectrum.fractions)

    def dimensions(self, size: int) -> NDArray[np.int64]:
        """Ones, shape (levels,): `size` must be the number of columns that vary."""
        levels = self._axes.eigenvalues.size
        if whole("size", size, least=1) != levels:
            raise InputError(f"size: these samples have {levels} dimensions, so the size is {levels}, not {size}")
        return np.ones(levels, np.int64)

    @cached_property
    def rows(self) -> NDArray[np.float64]:
        """All samples in the principal axes, shape (samples, dimensions); read when first asked for."""
        digest, axes = hashlib.sha256(), self._axes
        rows = np.empty((axes.count, axes.eigenvalues.size))
        done = 0
        for block in blocks(self.source, digest):
            end = done + len(block)
            if end > axes.count or block.shape[1] != axes.kept.size:
                break
            rows[done:end] = axes.coordinates(block)
            done = end
        if digest.hexdigest() != self.digest:
            raise InputError(f"source: {self._name} has changed since this was built; build it again")
        return rows

    def described(self, as_gaussian: bool) -> str:
        """Where the rows come from, and whether they are taken as they are."""
        about = "taken as Gaussian, with the covariance of" if as_gaussian else "rows of"
        return f"{about} {self.spectrum.source}"

    @property
    def table(self) -> NDArray[np.float64]:  # type: ignore[override]
        """The rows that training draws."""
        return self.rows

    def __repr__(self) -> str:
        return f"Samples({self._name}: {self._axes.source})"


def examples() -> tuple[Samples, ...]:
    """Rows that are not Gaussian."""
    rows = np.random.default_rng(0).uniform(-1, 1, size=(400, 5)) * [1.0, 2.0, 1.0, 0.5, 1.0]
    return (Samples(rows),)


MODEL = Samples
REFUSED = ({"source": np.array([[1.0, np.nan], [0.0, 1.0]])}, {"centre": 2, "source": np.eye(3)})
