"""What data models share: components, levels and the dimensions each holds, and who reads what."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..interface.checks import whole
from ..interface.errors import InputError
from .spectrum import SPECTRA, Isotropic, PowerLaw, Spectrum


class Components(NamedTuple):
    """Weights p_c, variances s_c and labels of the components, each (components,); classes are whole numbers."""

    weights: NDArray[np.float64]
    variances: NDArray[np.float64]
    labels: NDArray[np.int64] | NDArray[np.float64]

    @property
    def drawn(self) -> tuple[NDArray[np.float64], NDArray[Any]]:
        """What a simulation draws a component by, and its label: cumulative weights, labels."""
        return np.cumsum(self.weights), self.labels


class Shared:
    """Inputs that student and teacher both read, written in the eigenbasis of their covariance.

    A data model whose teacher reads something else, or whose inputs are written otherwise, answers for itself.
    """

    in_words = ""  # what to call the inputs where their repr says too much
    reads_latent = False  # whether the teacher reads something else than the student
    labelled = False  # whether the samples carry labels, so that no teacher is needed
    is_gaussian = False  # whether inputs are Gaussian given their component, and read by both networks
    one_covariance = True  # whether the covariances of the components are multiples of each other
    commuting = True  # whether they share an eigenbasis, that of the levels
    matrices: NDArray[np.float64] | None = None  # covariances in the coordinates of the inputs, if not by level
    table: NDArray[np.float64] | None = None  # rows that are drawn as they are, (rows, N); None: inputs are Gaussian
    targets: NDArray[np.float64] | None = None  # labels of these rows, (rows,); None where they have none
    class_numbers: NDArray[np.int64] | None = None  # of components that stand for classes of rows, (components,)
    tails = 0.0  # ν of a variance (ν − 2)/χ²_ν that each sample draws for itself, and theory at values; zero: none
    own_size: int | None = None  # N where the data fix it: columns of rows, entries of means; None: any size
    own_teacher: NDArray[np.float64] | None = None  # the linear teacher that labels of rows stand for, (1, N)

    @property
    def other_values(self) -> Any:
        """The same inputs with another number of values of a variance that has `tails`; others have none to change."""
        raise NotImplementedError

    @property
    def drawn_components(self) -> Components:
        """The components that samples are drawn from; they are those of theory unless samples have `tails`."""
        return self.components  # type: ignore[attr-defined,no-any-return]

    def eigenvalues_at(self, size: int | None) -> NDArray[np.float64]:
        """ω at a size, (levels,); here they are the same at all sizes."""
        return self.eigenvalues  # type: ignore[attr-defined,no-any-return]

    def described(self, as_gaussian: bool) -> str:
        """The inputs in a few words, for the record of a result; `as_gaussian`: whether it takes them as Gaussian."""
        return self.in_words or repr(self)

    def standard_deviations(self, eigenvalues: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of a coordinate in each drawn component and level, (components, levels), for the eigenvalues ω (levels,)."""
        if self.one_covariance:
            variances = self.drawn_components.variances
            return np.multiply.outer(np.sqrt(variances), np.sqrt(eigenvalues))
        return np.sqrt(self.component_eigenvalues)  # type: ignore[attr-defined,no-any-return]

    def check_theory(self, size: int | None) -> None:
        """Refuse a size at which the theory of Gaussian inputs does not describe these; here it does at all sizes."""

    def mixture_strength(self, size: int | None) -> float:
        """How much the covariances of the components differ in a way that one covariance cannot describe."""
        return 0.0

    def teacher_size(self, size: int) -> int:
        """Entries of a teacher vector."""
        return size

    def turned(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Rows (…, N) of the coordinates of the inputs in the eigenbasis, ordered by level."""
        return rows

    def teacher_rows(self, B: NDArray[np.float64], size: int) -> NDArray[np.float64]:
        """The fixed directions (M, N) that teachers B stand for."""
        return B

    def teacher_fields(self, B: NDArray[np.float64], size: int) -> TeacherFields | None:
        """Law of the teacher's fields where it does not follow from the overlaps of the fixed directions."""
        return None


class TeacherFields(NamedTuple):
    """Covariance T (M, M) and means m (M, P) of the fields of a teacher."""

    T: NDArray[np.float64]
    m: NDArray[np.float64]


class Centred:
    """Inputs of one component, of mean zero."""

    has_means = False

    @property
    def components(self) -> Components:
        """One component, of mean zero."""
        return Components(np.ones(1), np.ones(1), np.zeros(1, np.int64))

    def mean_gram(self, fractions: NDArray[np.float64], size: int | None = None) -> NDArray[np.float64]:
        """There are no means: (levels, 0, 0)."""
        return np.zeros((fractions.size, 0, 0))

    def mean_vectors(self, size: int) -> NDArray[np.float64]:
        """There are no means: (0, N)."""
        return np.zeros((0, size))


class Levels(Shared):
    """What all Gaussian inputs share: the levels of their `spectrum`, and how many dimensions each holds."""

    spectrum: Spectrum | PowerLaw | Isotropic
    is_gaussian = True

    def __post_init__(self) -> None:
        if not isinstance(self.spectrum, SPECTRA):
            wanted = " or ".join(kind.__name__ for kind in SPECTRA)
            raise InputError(f"spectrum: expected {wanted}, got {type(self.spectrum).__name__}")

    @property
    def eigenvalues(self) -> NDArray[np.float64]:
        """ω, shape (levels,)."""
        return np.array(self.spectrum.eigenvalues)

    @property
    def fractions(self) -> NDArray[np.float64]:
        """φ, shape (levels,); sums to one."""
        return np.array(self.spectrum.fractions)

    def dimensions(self, size: int) -> NDArray[np.int64]:
        """Whole numbers of dimensions per level, shape (levels,), that sum to `size`.

        Where φ_b N is not whole the largest remainders are rounded up; every level keeps at least one
        dimension. All three scales then use these realised fractions.
        """
        size = whole("size", size, least=1)
        levels = self.fractions.size
        if size < levels:
            raise InputError(f"size: {size} dimensions cannot hold {levels} levels; use size >= {levels}")
        return apportion(self.fractions, size, least=1)

    @property
    def component_eigenvalues(self) -> NDArray[np.float64]:
        """Eigenvalues of the covariance of each component, (components, levels)."""
        return np.multiply.outer(self.components.variances, self.eigenvalues)  # type: ignore[attr-defined,no-any-return]


def apportion(shares: NDArray[np.float64], total: int, least: int = 0) -> NDArray[np.int64]:
    """Whole numbers close to `shares` times `total` that sum to `total`, each at least `least`.

    The largest remainders are rounded up.
    """
    ideal = shares * total
    counts = np.maximum(np.floor(ideal + 1e-9).astype(np.int64), least)
    remainder = ideal - counts
    missing = total - int(counts.sum())
    if missing > 0:  # fewer than there are positive remainders, of which each is below one
        counts[np.argsort(-remainder, kind="stable")[:missing]] += 1
    # shares that were raised to the least number are taken from the others, one at a time
    others = [(remainder[b], b) for b in np.flatnonzero(counts > least).tolist()] if missing < 0 else []
    heapify(others)
    for _ in range(-missing):
        left, b = heappop(others)
        counts[b] -= 1
        if counts[b] > least:
            heappush(others, (left + 1, b))
    return counts
