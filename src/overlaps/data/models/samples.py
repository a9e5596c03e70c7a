"""Real samples: an input is a row of a data set, each row equally likely at every step.

Rows are turned into the principal axes of their covariance C = U Λ Uᵀ, in units where the mean eigenvalue is one,

    x = Uᵀ (row − mean)/√(tr C/N),

so that coordinate i has variance ω_i exactly, as a Gaussian input with this spectrum has; everything else about the
rows is as it is. Training takes them as they are; theory takes them as Gaussian.

Rows with labels y need no teacher. What a linear map can learn of them is the teacher θ*, all else is noise,

    θ*_k = ⟨x_k y⟩/ω_k,        σ² = ⟨(y − θ*·x)²⟩,

with averages over the rows, which are the population that training draws from.

Labels that are classes are learned by a classifier as well: by the logistic, hinge or cross-entropy loss, by a network
of units that are not linear, or by any student if `groups` are given. Theory then takes the rows of each class, or of
each group of it, as Gaussian with a mean and a covariance of their own (`overlaps.online.classified_rows`).

>>> import numpy as np
>>> import overlaps as ov
>>> rows = np.random.default_rng(0).uniform(size=(500, 3)) * [1.0, 2.0, 3.0]
>>> data = ov.Samples(rows)
>>> bool(np.allclose(data.rows.T @ data.rows / 500, np.diag(data.eigenvalues)))
True
>>> ov.Samples(rows, rows[:, 0] > rows[:, 2]).classes
(False, True)
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...interface.checks import whole
from ...interface.errors import InputError, shown
from ..class_moments import ClassMoments, class_moments, names_of_rows
from ..clusters import check_groups, grouped, one_for_each
from ..covariance import PrincipalAxes, principal_axes, true_or_false
from ..inputs import Centred, Shared
from ..labels import Labels, Split, encoded, split
from ..row_checks import warn_of_rows
from ..row_classes import RowClasses
from ..spectrum import Spectrum
from ..table import Source, blocks, numbers, source_path

Array = NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class Samples(Shared, Centred):
    """Inputs drawn from the rows of a data set, with replacement; with labels, what is to be learned as well.

    `train` runs on the rows themselves, and its error is the mean over all rows. `solve` and `sample` take inputs as
    Gaussian with the same covariance; where they part from `train`, the inputs are to blame, or for `solve` the size.

    Parameters
    ----------
    source: a table of samples × columns, as for `Spectrum.from_data`; a path is relative to the working directory.
    y: a label for each row: real numbers, or classes, of which the square loss learns two as −1 and +1 (see
        `overlaps.data.labels`); an array, a series, or the path of a file with one column. Without labels a teacher
        must give them.
    standardise: whether each column is divided by its standard deviation.
    target: in place of `y`, the name or number of the column of `source` that holds the labels, a number that is a name
        too being the name; of a .npz file, the name of the array that does.
    centre: whether the mean of each column is subtracted, and that of the labels.
    bias: whether every row has one input more, which is one in the units of `rows` and is not centred. Its weight is
        the bias of a unit, which classes of unequal shares need. Labels then keep their mean, for it to learn.
    digest: SHA-256 of the table, filled in; a spec carries it, so that a file that has changed since is refused.
    groups: parts of the classes that theory takes as one Gaussian each: a group for each row, (rows,), a number of
        clusters in each class, or ``"auto"`` for the number under which held-out rows are most likely (see
        `overlaps.data.clusters`). None: the classes themselves, and a linear student with the square loss is a
        regression on labels −1 and +1; with groups=1 it is a classifier like any other.
    """

    source: Source = field(compare=False)  # data sets are equal if their digests are
    y: ArrayLike | str | None = field(default=None, compare=False)
    standardise: bool = False
    target: str | int | None = field(default=None, compare=False)
    centre: bool = True
    digest: str = ""
    groups: ArrayLike | int | str | None = field(default=None, compare=False)
    bias: bool = False

    def __post_init__(self) -> None:
        for name in ("centre", "standardise", "bias"):
            object.__setattr__(self, name, true_or_false(name, getattr(self, name)))
        path = source_path(self.source)
        if path is not None:
            object.__setattr__(self, "source", os.fspath(path))
        elif self.target is None:
            object.__setattr__(self, "source", numbers(self.source, "an array"))
        if isinstance(self.y, os.PathLike):
            object.__setattr__(self, "y", os.fspath(self.y))
        elif self.y is not None and not isinstance(self.y, (str, bool, np.bool_)):
            try:
                object.__setattr__(self, "y", np.asanyarray(self.y))
            except MemoryError:
                raise
            except Exception:  # lists of different lengths, objects of others
                raise InputError(f"y: expected one label for each row, got {shown(self.y)}") from None
        if isinstance(self.target, np.integer):
            object.__setattr__(self, "target", int(self.target))
        if not isinstance(self.digest, str):
            raise InputError(f"digest: expected text, got {shown(self.digest)}")
        labels = self.labels
        if self.groups is not None:
            self._check_groups()
        if labels is not None and labels.values.size != self._axes.count:
            raise InputError(
                f"y: expected one label for each row, got {labels.values.size} labels and {self._axes.count} rows"
            )
        if self.digest and self.digest != self._digest:
            raise InputError(
                f"digest: {self._name} is not the data this was written for (they had {self.digest:.12}..., these have "
                f"{self._digest:.12}...); restore the file, or leave digest out to use these data"
            )
        object.__setattr__(self, "digest", self._digest)
        if labels is not None:
            drops_ones = self.centre and not self.bias
            warn_of_rows(
                self._table.features, labels.values, self.standardise, 4, self._table.columns, drops_ones=drops_ones
            )

    def _check_groups(self) -> None:
        """Refuse groups of what are no classes, or in words that are not known."""
        if not self.classes:
            raise InputError("groups: they are parts of classes; give labels that are classes, or leave groups out")
        groups: Any = self.groups
        check_groups(groups)
        if one_for_each(groups):
            groups = names_of_rows("groups", groups, self._axes.count)
        elif isinstance(groups, np.integer):
            groups = int(groups)
        object.__setattr__(self, "groups", groups)

    @cached_property
    def _table(self) -> Split:
        return split(self.source, self.y, self.target)

    @cached_property
    def labels(self) -> Labels | None:
        """Labels of the rows as numbers, before their mean is subtracted; None where there are none."""
        labels = self._table.labels
        return None if labels is None else encoded(labels)

    @property
    def labelled(self) -> bool:  # type: ignore[override]
        """Whether the rows carry labels."""
        return self.y is not None or self.target is not None

    @property
    def classes(self) -> tuple[Any, ...]:
        """Names of the classes in sorted order, of which two stand as −1 and +1; empty for real labels."""
        return () if self.labels is None else self.labels.classes

    @cached_property
    def _axes(self) -> PrincipalAxes:
        return principal_axes(self._table.features, self.centre, self.standardise, self.bias)

    @cached_property
    def _digest(self) -> str:
        if self.labels is None:
            return self._axes.digest
        found = hashlib.sha256(self._axes.digest.encode() + self.labels.values.tobytes())
        if self.groups is not None:
            found.update(str(np.asarray(self.groups).tolist()).encode())
        return found.hexdigest()

    @property
    def _name(self) -> str:
        path = source_path(self.source)
        return "the array" if path is None else str(path)

    @property
    def spectrum(self) -> Spectrum:
        """The spectrum of the covariance, one level per dimension."""
        return Spectrum(self._axes.eigenvalues, source=self._axes.source)

    @property
    def eigenvalues(self) -> Array:
        """ω, shape (levels,), largest first."""
        return self._axes.eigenvalues.copy()

    @property
    def fractions(self) -> Array:
        """φ, shape (levels,), all equal."""
        return np.array(self.spectrum.fractions)

    @property
    def size(self) -> int:
        """N, the number of columns that vary, and one more with a bias."""
        return self._axes.eigenvalues.size

    @property
    def own_size(self) -> int:  # type: ignore[override]
        return self.size

    def dimensions(self, size: int) -> NDArray[np.int64]:
        """Ones, shape (levels,): `size` must be the number of columns that vary."""
        if whole("size", size, least=1) != self.size:
            raise InputError(f"size: these samples have {self.size} dimensions, so the size is {self.size}, not {size}")
        return np.ones(self.size, np.int64)

    @cached_property
    def rows(self) -> Array:
        """All samples in the principal axes, shape (samples, dimensions); read when first asked for."""
        digest, axes = hashlib.sha256(), self._axes
        rows = np.empty((axes.count, axes.eigenvalues.size))
        done = 0
        for block in blocks(self._table.features, digest):
            end = done + len(block)
            if end > axes.count or block.shape[1] != axes.kept.size:
                break
            rows[done:end] = axes.coordinates(block)
            done = end
        if digest.hexdigest() != axes.digest:
            raise InputError(f"source: {self._name} has changed since this was built; build it again")
        return rows

    @property
    def columns(self) -> Array:
        """The rows along the columns of the table that vary, (samples, dimensions), in the units of `rows`.

        With a bias the last column is one.
        """
        return self.rows @ self._axes.vectors.T

    def described(self, as_gaussian: bool) -> str:
        """Where the rows come from, and whether they are taken as they are."""
        about = "taken as Gaussian, with the covariance of" if as_gaussian else "rows of"
        return f"{about} {self.spectrum.source}"

    @property
    def table(self) -> Array:  # type: ignore[override]
        """The rows that training draws."""
        return self.rows

    @property
    def centres_labels(self) -> bool:
        """Whether the mean of the labels is subtracted: where rows are centred, unless a bias learns it."""
        return self.centre and not self.bias

    @cached_property
    def targets(self) -> Array | None:  # type: ignore[override]
        """What is to be learned for each row, (rows,): its label, less their mean if `centres_labels`; None without."""
        if self.labels is None:
            return None
        values = self.labels.values
        if len(self.classes) > 2:
            some = ", ".join(str(name) for name in self.classes[:4]) + ", ..." * (len(self.classes) > 4)
            raise InputError(
                f"y: these are {len(self.classes)} classes ({some}), and a regression on their numbers means nothing; "
                f"use loss='cross-entropy' (`learn --loss cross-entropy`) with Softmax({len(self.classes)}), group "
                f"them into two, for instance by y == {self.classes[0]!r}, or pass quantities as floats"
            )
        return values - values.mean() if self.centres_labels else values

    @cached_property
    def own_teacher(self) -> Array | None:  # type: ignore[override]
        """The best linear map as the weights of a teacher, √N θ*, (1, N); None without labels."""
        if self.targets is None:
            return None
        omega = self._axes.eigenvalues
        products = self.rows.T @ self.targets / len(self.rows)
        theta = np.divide(products, omega, out=np.zeros_like(omega), where=omega > 0)
        return np.sqrt(omega.size) * theta[None]

    @cached_property
    def unexplained(self) -> float:
        """σ², the mean square of what the best linear map leaves of the labels."""
        if self.targets is None or self.own_teacher is None:
            raise InputError("y: these rows have no labels; give them as y, or by target")
        return float(np.mean((self.targets - self.rows @ self.own_teacher[0] / np.sqrt(self.size)) ** 2))

    @cached_property
    def moments(self) -> ClassMoments:
        """Mean, covariance and share of each class of rows, or of each group of it, in the axes of `rows`."""
        if self.labels is None:
            raise InputError("y: these rows have no labels; give classes as y, or by target")
        numbers = self.labels.numbers
        groups = None if self.groups is None else grouped(self.rows, numbers, self.groups)
        found = class_moments(self.rows, np.array(self.classes)[numbers], groups)
        return found._replace(labels=np.unique(found.labels, return_inverse=True)[1])

    def as_gaussian(self, targets: NDArray[Any]) -> RowClasses:
        """The Gaussians that theory takes classes for, whose targets are these, (classes,)."""
        found = self.moments
        labels = targets[found.labels].tolist()
        return RowClasses(
            found.means,
            found.covariances,
            found.weights,
            labels,
            second_moments=self._axes.eigenvalues,
            class_numbers=found.labels,
        )

    def __repr__(self) -> str:
        about = "" if self.labels is None else f"; {str(self.labels)[7:-1]}"
        return f"Samples({self._name}: {self._axes.source}{about})"


def examples() -> tuple[Samples, ...]:
    """Rows that are not Gaussian, without labels and with two kinds of them."""
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1, 1, size=(400, 5)) * [1.0, 2.0, 1.0, 0.5, 1.0]
    real = rows @ [1.0, -0.5, 0.3, 0.0, 0.2] + 0.3 * rng.standard_normal(400)
    yes = np.where(real > 0.1, "yes", "no")
    return Samples(rows), Samples(rows, real), Samples(rows, yes, standardise=True), Samples(rows, yes, groups=2)


MODEL = Samples
FEW = np.random.default_rng(0).normal(size=(12, 2))
REFUSED = (
    {"source": np.array([[1.0, np.nan], [0.0, 1.0]])},
    {"centre": 2, "source": np.eye(3)},
    {"y": [1.0, 2.0], "source": FEW},
    {"y": [1.0] * 12, "source": FEW},
    {"y": [1.0, np.nan] * 6, "source": FEW},
    {"y": ["a"] * 11 + ["b"], "source": FEW},
    {"y": np.arange(12) % 3, "source": FEW},
    {"groups": 2, "source": FEW},
    {"groups": 0, "y": np.arange(12) % 2, "source": FEW},
    {"groups": "many", "y": np.arange(12) % 2, "source": FEW},
    {"groups": [0, 1], "y": np.arange(12) % 2, "source": FEW},
    {"y": True, "source": np.eye(3)},
    {"standardise": 3, "source": np.eye(3)},
    {"bias": 1, "source": np.eye(3)},
    {"target": 3, "source": np.eye(3)},
    {"target": "price", "source": np.eye(3)},
    {"target": 0, "y": [1.0, 2.0, 3.0], "source": np.eye(3)},
)
