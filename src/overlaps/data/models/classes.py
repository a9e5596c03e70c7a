"""Gaussian classes: x = μ_c + Σ_c^½ z with probability p_c, each component with a covariance matrix of its own.

Matrices are any; they need not commute. The coordinates are the user's own. Overlaps are written in the eigenbasis of

    Σ̄ = Σ_c p_c Σ_c,        or, where all Σ_c commute, in the one that they share,

so that Q = W Σ̄ Wᵀ/N is the mean covariance of the fields; given component c they have the covariance W Σ_c Wᵀ/N and
the mean W μ_c/√N. Several components may have one label: a class is then a mixture itself.

>>> import numpy as np
>>> from overlaps import GaussianClasses
>>> turned = np.array([[1.0, 0.6], [0.6, 1.0]])
>>> GaussianClasses([[0.5, 0.0], [-0.5, 0.0]], [np.diag([1.5, 0.5]), turned])
GaussianClasses(2 components of 2 dimensions, traces 2 to 2, they do not commute)
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...interface import files
from ...interface.checks import array, checked, whole
from ...interface.errors import InputError
from ..class_moments import class_moments, names_of_rows, refuse_large
from ..clusters import grouped
from ..covariance import principal_axes
from ..eigenbasis import common_eigenbasis
from ..inputs import Components, Shared
from ..tuples import component_labels, probabilities

Array = NDArray[np.float64]
OVERFLOWS = 1e50  # whose sixth power is no number
ROUNDING = 1e-10  # of the largest entry: what a covariance may miss of symmetry and of positive eigenvalues
ALONE = 1e-9  # relative commutator from which covariances do not commute


@dataclass(frozen=True, repr=False, eq=False)
class GaussianClasses(Shared):
    """Inputs from several Gaussian components, each with a mean, a weight, a covariance matrix and a label.

    Where all covariances are multiples of one, or share their eigenvectors, `GaussianMixture` says so and is taken at
    any size; theory is the same.

    Parameters
    ----------
    means: mean vectors, (components, N), of length O(1) like those of `GaussianMixture`; or the path of a .npz file
        with the arrays means, covariances and, unless equal and 0, 1, 2, …, weights and labels, as `save` writes it.
    covariances: matrices (components, N, N), symmetric and positive, of trace O(N); they may be singular.
    weights: probabilities of the components; equal ones by default.
    labels: a number per component, which several may share; 0, 1, 2, … by default. Classes are whole numbers, or −1 and
        1 for losses of two classes; the square loss takes any.
    digest: SHA-256 of all of them, filled in; a spec carries it, so that a file that has changed since is refused.
    """

    means: ArrayLike | str | os.PathLike[str]
    covariances: ArrayLike | None = None
    weights: Sequence[float] | Array | None = None
    labels: Sequence[float] | None = None
    digest: str = ""

    is_gaussian = True
    labelled = True
    has_means = True
    one_covariance = False

    def __post_init__(self) -> None:
        put = lambda name, value: object.__setattr__(self, name, value)  # noqa: E731
        if isinstance(self.means, (str, os.PathLike)):
            put("means", os.fspath(self.means))
            extra = next((n for n in ("covariances", "weights", "labels") if getattr(self, n) is not None), None)
            if extra is not None:
                raise InputError(f"{extra}: {self.means} says what they are; leave {extra} out, or give arrays")
        else:
            means = array("means", self.means, (None, None))
            put("means", means)
            refuse_large(
                "covariances", len(means), means.shape[1], "use fewer dimensions, or GaussianMixture, which has levels"
            )
            if self.covariances is None:
                raise InputError("covariances: expected a matrix for each component, (components, N, N), got none")
            put("covariances", array("covariances", self.covariances, None))
        parts = self._parts
        if self.digest and self.digest != parts.digest:
            raise InputError(
                "digest: these are not the classes this was written for; restore the file, or leave digest out"
            )
        put("digest", parts.digest)
        if not isinstance(self.means, str):
            put("means", parts.means)
            put("covariances", parts.matrices)
            if self.weights is not None:
                put("weights", tuple(parts.weights.tolist()))
            if self.labels is not None:
                put("labels", tuple(parts.labels.tolist()))

    @classmethod
    @checked
    def from_rows(cls, X: ArrayLike, labels: Any, groups: Any = None, *, standardise: bool = False) -> GaussianClasses:
        """Gaussians with the mean, covariance and share of each class of rows X (rows, columns).

        Coordinates and units are those of `Samples(X, standardise=...).rows`: principal axes of all rows, centred, in
        which the mean eigenvalue of their covariance is one.

        Parameters
        ----------
        labels: class of each row; whole numbers stay, text and booleans become 0, 1, … in sorted order.
        groups: parts of the classes, each of which has a Gaussian of its own: one for each row, (rows,), or clusters,
            as for `Samples`.
        standardise: whether each column is divided by its standard deviation.
        """
        rows = array("X", X, (None, None))
        axes = principal_axes(rows, True, standardise)
        coordinates = axes.coordinates(rows)
        if groups is not None:
            classes = np.unique(names_of_rows("labels", labels, len(rows)), return_inverse=True)[1]
            groups = grouped(coordinates, classes, groups)
        found = class_moments(coordinates, labels, groups)
        return cls(found.means, found.covariances, found.weights, found.labels.tolist())

    @cached_property
    def _parts(self) -> _Parts:
        if isinstance(self.means, str):
            return _Parts.checked(**_read(self.means))
        return _Parts.checked(self.means, self.covariances, self.weights, self.labels)

    @checked
    def save(self, path: str | os.PathLike[str]) -> GaussianClasses:
        """Write all arrays to a .npz file; what is returned names it, and can be part of a spec."""
        path = Path(path)
        if path.suffix != ".npz":
            raise InputError(f"path: expected a name that ends in .npz, got {path}")
        parts = self._parts
        path.parent.mkdir(parents=True, exist_ok=True)
        content = io.BytesIO()
        np.savez(content, means=parts.means, covariances=parts.matrices, weights=parts.weights, labels=parts.labels)
        return GaussianClasses(files.write(path, content.getvalue()))

    @property
    def size(self) -> int:
        """N."""
        return self._parts.means.shape[1]

    @property
    def matrices(self) -> Array:  # type: ignore[override]
        """Σ_c in the coordinates of the inputs, (components, N, N)."""
        return self._parts.matrices

    @cached_property
    def components(self) -> Components:
        """Weights, labels and variances of the components, (components,): traces in units of that of Σ̄."""
        parts = self._parts
        traces = np.trace(parts.matrices, axis1=1, axis2=2)
        mean = float(parts.weights @ traces)
        return Components(parts.weights, traces / mean if mean > 0 else traces, parts.labels)

    @cached_property
    def _shared(self) -> tuple[Array, Array, NDArray[np.int64]] | None:
        """Basis, eigenvalues (levels, components) and dimensions of the levels that all share; None if there are none.

        Matrices that do not commute differ on almost every vector, which is a cheap test.
        """
        matrices = self._parts.matrices
        rng = np.random.default_rng(0)
        mixed = np.tensordot(rng.uniform(0.5, 1.5, len(matrices)), matrices, 1)
        z = rng.standard_normal(self.size)
        scale = float(np.linalg.norm(mixed @ (mixed @ z))) or 1.0
        if any(np.linalg.norm(m @ (mixed @ z) - mixed @ (m @ z)) > ALONE * scale for m in matrices):
            return None
        return common_eigenbasis(matrices)

    @property
    def commuting(self) -> bool:  # type: ignore[override]
        """Whether all covariances share an eigenbasis."""
        return self._shared is not None

    @cached_property
    def _levels(self) -> tuple[Array, Array, NDArray[np.int64]]:
        """Eigenbasis of Σ̄ in columns (N, N), its eigenvalues, largest first, and their dimensions."""
        parts = self._parts
        if self._shared is not None:
            basis, values, sizes = self._shared
            return basis, values @ parts.weights, sizes
        values, basis = np.linalg.eigh(np.tensordot(parts.weights, parts.matrices, 1))
        return np.ascontiguousarray(basis[:, ::-1]), np.maximum(values[::-1], 0.0), np.ones(self.size, np.int64)

    @property
    def component_eigenvalues(self) -> Array:
        """Eigenvalues of each Σ_c, (components, levels), where all commute; others have none in common."""
        if self._shared is None:
            raise InputError("covariances: these do not commute, so that they share no eigenvalues; use solve or train")
        return self._shared[1].T

    @property
    def eigenvalues(self) -> Array:
        """ω of Σ̄, (levels,)."""
        return self._levels[1].copy()

    @property
    def fractions(self) -> Array:
        """φ, (levels,): shares of the dimensions."""
        return self._levels[2] / self.size

    @property
    def own_size(self) -> int:  # type: ignore[override]
        return self.size

    def dimensions(self, size: int) -> NDArray[np.int64]:
        """Dimensions of each level, (levels,); `size` must be that of the means."""
        if whole("size", size, least=1) != self.size:
            raise InputError(f"size: these classes have {self.size} dimensions, so the size is {self.size}, not {size}")
        return self._levels[2]

    def turned(self, rows: Array) -> Array:
        """Rows (…, N) in the eigenbasis, ordered by level."""
        return rows @ self._levels[0]

    def mean_vectors(self, size: int) -> Array:
        """The means, (components, N)."""
        self.dimensions(size)
        return self._parts.means

    def mean_gram(self, fractions: Array, size: int | None = None) -> Array:
        """Inner products of the means per level, (levels, components, components)."""
        means, edges = self.turned(self._parts.means), np.cumsum(self._levels[2])[:-1]
        return np.array([block @ block.T for block in np.split(means, edges, axis=1)])

    @cached_property
    def roots(self) -> list[Array]:
        """For each component a matrix (N, rank) with root rootᵀ = Σ_c."""
        found = []
        for matrix in self._parts.matrices:
            values, vectors = np.linalg.eigh(matrix)
            kept = values > 1e-14 * max(float(values[-1]), 1e-300)
            found.append(np.ascontiguousarray(vectors[:, kept] * np.sqrt(values[kept])))
        return found

    def draw_inputs(self, rng: np.random.Generator, count: int) -> tuple[Array, NDArray[np.int64]]:
        """Inputs (count, N) and the components that they are of, (count,)."""
        drawn = rng.choice(len(self._parts.means), count, p=self._parts.weights)
        X = self._parts.means[drawn]
        for c, root in enumerate(self.roots):
            mine = np.flatnonzero(drawn == c)
            X[mine] += rng.standard_normal((mine.size, root.shape[1])) @ root.T
        return X, drawn

    def field_covariances(self, W: Array, other: Array | None = None) -> Array:
        """W Σ_c Vᵀ/N of rows W (K, N) and V (L, N), which are W by default: (components, K, L)."""
        V = W if other is None else other
        return np.array([W @ matrix @ V.T for matrix in self._parts.matrices]) / self.size

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GaussianClasses) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        parts = self._parts
        count, traces = len(parts.means), np.trace(parts.matrices, axis1=1, axis2=2)
        source = f"{self.means}: " if isinstance(self.means, str) else ""
        text = f"{count} component{'s' * (count > 1)} of {self.size} dimension{'s' * (self.size > 1)}, "
        text += f"traces {traces.min():.4g} to {traces.max():.4g}"
        if np.ptp(parts.weights) > 1e-12:
            text += f", weights {parts.weights.min():.3g} to {parts.weights.max():.3g}"
        if tuple(parts.labels) != tuple(range(count)):
            text += f", labels {parts.labels.tolist()}"
        text += ", they commute" if self.commuting else ", they do not commute"
        return f"GaussianClasses({source}{text})"


@dataclass(frozen=True, eq=False)
class _Parts:
    """Checked arrays: means (P, N), matrices (P, N, N), weights (P,), labels (P,)."""

    means: Array
    matrices: Array
    weights: Array
    labels: NDArray[Any]

    @classmethod
    def checked(cls, means: Any, covariances: Any, weights: Any = None, labels: Any = None) -> _Parts:
        means = array("means", means, (None, None))
        count, size = means.shape
        if means.size == 0:
            raise InputError(f"means: expected at least one vector, got shape {means.shape}")
        instead = "use fewer components or dimensions, or GaussianMixture with covariances that commute"
        refuse_large("covariances", count, size, instead)
        matrices = array("covariances", covariances, (count, size, size))
        scale = float(np.abs(matrices).max())
        for name, most in (("means", float(np.abs(means).max())), ("covariances", scale)):
            if most > OVERFLOWS:
                raise InputError(f"{name}: {most:.3g} overflows in products; divide the inputs by a constant")
        for c, matrix in enumerate(matrices):
            skew = float(np.abs(matrix - matrix.T).max())
            if skew > ROUNDING * scale:
                raise InputError(
                    f"covariances: expected symmetric matrices, that of component {c} differs from its transpose by "
                    f"{skew:.3g}"
                )
            matrix += matrix.T
            matrix /= 2
            if not _is_positive(matrix, scale):
                low = float(np.linalg.eigvalsh(matrix)[0])
                raise InputError(
                    f"covariances: expected positive matrices, that of component {c} has the eigenvalue {low:.3g}; "
                    "use covariances of data, or set negative eigenvalues to zero"
                )
        share = np.full(count, 1 / count) if weights is None else np.array(probabilities(weights, count))
        return cls(means, matrices, share, _labels(labels, count))

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all arrays."""
        found = hashlib.sha256()
        for part in (self.means, self.matrices, self.weights, self.labels.astype(float)):
            found.update(np.ascontiguousarray(part).tobytes())
        return found.hexdigest()


def _is_positive(matrix: Array, scale: float) -> bool:
    """Whether no eigenvalue is negative beyond rounding: whether there is a Cholesky factor."""
    try:
        np.linalg.cholesky(matrix + ROUNDING * max(scale, 1e-300) * len(matrix) * np.eye(len(matrix)))
    except np.linalg.LinAlgError:
        return False
    return True


def _labels(given: Any, count: int) -> NDArray[Any]:
    """One number per component; whole numbers stay whole, as classes are."""
    if given is None:
        return np.arange(count)
    return np.array(component_labels(given, count))


def _read(path: str) -> dict[str, Any]:
    """The arrays of a file that `save` has written."""
    if not os.path.isfile(path):
        raise InputError(f"means: no file {path}")
    try:
        with np.load(path, allow_pickle=False) as stored:
            found = {name: stored[name] for name in stored.files}
    except Exception as error:  # the reader raises whatever a broken or an encrypted file leads it to
        raise InputError(f"means: {path} is not a .npz file of GaussianClasses.save ({error})") from None
    unknown = sorted(set(found) - {"means", "covariances", "weights", "labels"})
    if unknown or not {"means", "covariances"} <= set(found):
        raise InputError(
            f"means: {path} must hold the arrays means and covariances, and may hold weights and labels; it has "
            f"{', '.join(sorted(found))}"
        )
    return found


def examples() -> tuple[GaussianClasses, ...]:
    """Two and three components whose covariances do not commute, one of them singular, and two that do commute."""
    rng = np.random.default_rng(0)

    def matrix(size: int, rank: int) -> Array:
        factor = rng.standard_normal((size, rank)) * rng.uniform(0.3, 1.5, rank)
        return factor @ factor.T / rank

    means = rng.standard_normal((3, 40)) / np.sqrt(40)
    common = np.linalg.qr(rng.standard_normal((30, 30)))[0]
    spectra = rng.uniform(0.2, 1.5, (2, 30))
    return (
        GaussianClasses(means[:2], [matrix(40, 60), matrix(40, 25)], weights=[0.4, 0.6], labels=[-1, 1]),
        GaussianClasses(means, [matrix(40, 80) for _ in range(3)], labels=[0, 1, 1]),
        GaussianClasses(means[:2, :30], [(common * s) @ common.T for s in spectra]),
    )


MODEL = GaussianClasses
REFUSED = (
    {"means": [[1.0, 2.0], [0.0]], "covariances": np.ones((2, 2, 2))},
    {"covariances": np.eye(2), "means": [[1.0, 0.0]]},
    {"covariances": None, "means": [[1.0, 0.0]]},
    {"covariances": [[[1.0, 0.5], [0.4, 1.0]]], "means": [[1.0, 0.0]]},
    {"covariances": [[[1.0, 2.0], [2.0, 1.0]]], "means": [[1.0, 0.0]]},
    {"covariances": [[[np.nan, 0.0], [0.0, 1.0]]], "means": [[1.0, 0.0]]},
    {"weights": [0.5, 0.6], "means": np.zeros((2, 1)), "covariances": np.ones((2, 1, 1))},
    {"labels": [1], "means": np.zeros((2, 1)), "covariances": np.ones((2, 1, 1))},
    {"means": "nowhere.npz"},
    {"digest": "0", "means": [[1.0]], "covariances": [[[1.0]]]},
)
