"""Classes that a network has not been trained on: N(μ, Σ), often around a direction ν of the training data,

    x = z − (z·ν) ν/|ν|² + ν        z ~ N(0, 1_d)        μ = ν,  Σ = 1 − ν νᵀ/|ν|²  (ν = 0: x = z)

Unseen classes go away from the training data by scaling, ν = e v, or by rotation, ν = R v with R in SO(d) from the
QR decomposition of 1 + ε M, M of independent standard normal entries. The diagonal of the triangular factor has either
sign by convention; with negative ones Q is close to −1 for small ε. Columns of Q are turned so that all are positive,
and then the first is turned back if the determinant is −1, so that Q goes to 1 with ε. Rotations are of order one from
ε ≈ 1/√d on: sizes are c = ε √d.

>>> import numpy as np
>>> from overlaps.giant_step import rotated
>>> v = np.full(200, 5 / np.sqrt(200))
>>> [round(float(unseen.mean @ v / 25), 2) for unseen in rotated(v, [0.1, 1.0, 3.0])]
[1.0, 0.54, 0.19]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..data import square_roots
from ..interface.checks import array, checked, number, whole
from ..interface.errors import InputError, shown

Array = NDArray[np.float64]
PROJECTED = "projected"


@dataclass(frozen=True, eq=False)
class UnseenClass:
    """One Gaussian class of inputs.

    Parameters
    ----------
    mean: μ, (d,).
    covariance: Σ: ``"projected"`` for 1 − μμᵀ/|μ|², a variance of all coordinates, one of each (d,), or a matrix
        (d, d).
    value: what marks the class on an axis, such as its scale e or the size of its rotation; its place by default.
    """

    mean: Array
    covariance: str | float | Array = PROJECTED
    value: float | None = None
    points: Array | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        mean = array("mean", self.mean, (None,))
        if mean.size < 4:
            raise InputError(f"mean: expected at least 4 inputs, got {mean.size}")
        with np.errstate(over="ignore"):
            if not np.isfinite(mean @ mean):
                raise InputError("mean: too long for floating-point numbers; scale it down")
        object.__setattr__(self, "mean", mean)
        if self.value is not None:
            object.__setattr__(self, "value", number("value", self.value))
        if self.points is not None:
            object.__setattr__(self, "points", array("points", self.points, (None, mean.size)))
        C = self.covariance
        if isinstance(C, str):
            if C != PROJECTED:
                raise InputError(f"covariance: expected 'projected', a number or an array, got {shown(C)}")
            return
        C = array("covariance", C, None)
        if C.ndim == 0:
            object.__setattr__(self, "covariance", number("covariance", C, least=0))
            return
        if C.shape not in ((mean.size,), (mean.size, mean.size)):
            raise InputError(
                f"covariance: expected shape ({mean.size},) or ({mean.size}, {mean.size}), got {C.shape}; a number "
                "stands for all coordinates"
            )
        if C.ndim == 2 and not np.allclose(C, C.T):
            raise InputError("covariance: expected a symmetric matrix, got one that is not; use (Σ + Σᵀ)/2")
        least = C.min() if C.ndim == 1 else np.linalg.eigvalsh(C)[0]
        if least < -(1e-9 * np.abs(C).max() if C.ndim == 2 else 0):
            raise InputError(f"covariance: expected variances of at least 0 in every direction, got {least:g}")
        object.__setattr__(self, "covariance", C)

    @classmethod
    def from_points(cls, points: ArrayLike, value: float | None = None) -> UnseenClass:
        """A class of given points (samples, d): measured on them, predicted from their mean and covariance."""
        X = array("points", points, (None, None))
        if len(X) < 2:
            raise InputError(f"points: a class needs at least 2 samples, got {len(X)}; give more, or leave it out")
        if X.shape[1] < 4:
            raise InputError(f"points: expected at least 4 inputs, got {X.shape[1]}")
        with np.errstate(over="ignore", invalid="ignore"):  # too large a covariance is refused
            return cls(X.mean(0), np.cov(X, rowvar=False, ddof=0), value, X)

    def __repr__(self) -> str:
        C = self.covariance if isinstance(self.covariance, (str, float)) else f"array {np.shape(self.covariance)}"
        points = "" if self.points is None else f", {len(self.points)} points"
        return f"UnseenClass({self.mean.size} inputs, |mean| {np.linalg.norm(self.mean):.4g}, covariance {C}{points})"

    @cached_property
    def axis(self) -> Array:
        """μ/|μ|, the direction without variance of a projected class; zero for μ = 0."""
        length = float(np.linalg.norm(self.mean))
        return self.mean / length if length else self.mean

    def apply(self, vectors: Array) -> Array:
        """Σ times the columns of vectors (d, count)."""
        C: Any = self.covariance
        if isinstance(C, str):
            return vectors - np.outer(self.axis, self.axis @ vectors)
        if isinstance(C, float):
            return C * vectors
        return C[:, None] * vectors if C.ndim == 1 else C @ vectors

    def forms(self, rows: Array) -> Array:
        """xᵀΣx of each of the rows (count, d), (count,)."""
        return np.einsum("ij,ji->i", rows, self.apply(rows.T))

    @cached_property
    def trace(self) -> float:
        """tr Σ."""
        C: Any = self.covariance
        d = self.mean.size
        if isinstance(C, str):
            return d - float(self.axis @ self.axis)
        return d * C if isinstance(C, float) else float(C.sum() if C.ndim == 1 else np.trace(C))

    @cached_property
    def concentration(self) -> float:
        """tr Σ²/(tr Σ)² − 1/d, zero for equal variances; of m given points less 1/m, which is noise."""
        C: Any = self.covariance
        if isinstance(C, (str, float)) or self.trace == 0:
            return 0.0
        noise = 1 / self.mean.size + (0 if self.points is None else 1 / len(self.points))
        return float((C**2).sum()) / self.trace**2 - noise

    @cached_property
    def root(self) -> Array:
        """A matrix with Σ = root rootᵀ, of a covariance that was given as one."""
        return square_roots.root(np.asarray(self.covariance, float))

    def fields(self, Z: Array, ZW: Array, W: Array) -> Array:
        """Fields x W of points made of standard normal Z (points, d), with ZW = Z W known, (points, width).

        Projected classes and those of one variance are rank-one changes of ZW: no product of large matrices is needed.
        """
        if self.points is not None:
            return self.points @ W
        C: Any = self.covariance
        if isinstance(C, str):
            return ZW + np.outer(1.0 - (Z @ self.axis) / max(np.linalg.norm(self.mean), 1e-300), self.mean @ W)
        shift = self.mean @ W
        if isinstance(C, float):
            return np.sqrt(C) * ZW + shift
        return (Z * np.sqrt(C) if C.ndim == 1 else Z @ self.root.T) @ W + shift


@checked
def scaled(direction: ArrayLike, scales: ArrayLike) -> list[UnseenClass]:
    """Projected classes around e v for each scale e.

    Parameters
    ----------
    direction: v, (d,), such as that of a `GiantStepSetting`; scales: e, (count,).
    """
    v = array("direction", direction, (None,))
    if v.size < 4:
        raise InputError(f"direction: expected at least 4 inputs, got {v.size}")
    lengths = array("scales", np.atleast_1d(scales), (None,))
    with np.errstate(over="ignore"):
        if not np.isfinite((v @ v) * lengths**2).all():
            raise InputError("scales: times the direction they overflow floating-point numbers; scale them down")
    return [UnseenClass(e * v, value=e) for e in lengths.tolist()]


@checked
def rotated(direction: ArrayLike, sizes: ArrayLike, seed: int = 0) -> list[UnseenClass]:
    """Projected classes around R v, with a rotation R of each size c = ε √d.

    Parameters
    ----------
    direction: v, (d,); sizes: c ≥ 0, (count,), of order one for rotations of order one; seed: of the matrices M.
    """
    v = array("direction", direction, (None,))
    c = array("sizes", np.atleast_1d(sizes), (None,))
    if np.any(c < 0):
        raise InputError(f"sizes: expected numbers of at least 0, got {c.min():g}")
    if v.size < 4:
        raise InputError(f"direction: expected at least 4 inputs, got {v.size}")
    streams = np.random.default_rng(whole("seed", seed, least=0)).spawn(c.size)
    return [
        UnseenClass(rotation(v, size / np.sqrt(v.size), rng), value=size)
        for size, rng in zip(c.tolist(), streams, strict=True)
    ]


def rotation(direction: Array, epsilon: float, rng: np.random.Generator) -> Array:
    """R v for the rotation R of the QR decomposition of 1 + ε M, (d,); Q itself is never formed."""
    from scipy.linalg import get_lapack_funcs

    d = direction.size
    M = epsilon * rng.standard_normal((d, d))
    M.flat[:: d + 1] += 1.0
    factor, multiply = get_lapack_funcs(("geqrf", "ormqr"), (M,))
    qr, tau, _, info = factor(M, overwrite_a=True)
    signs = np.where(np.diag(qr) < 0, -1.0, 1.0)
    # each reflection has determinant −1 unless its tau is zero
    if np.count_nonzero(tau) % 2 != np.count_nonzero(signs < 0) % 2:
        signs[0] *= -1
    column = np.asfortranarray((signs * direction)[:, None])
    turned, _, more = multiply("L", "N", qr, tau, column, lwork=64)
    if info or more:
        raise InputError(f"sizes: the QR decomposition failed (LAPACK {info or more})")
    return turned[:, 0]


def marks(unseen: Sequence[UnseenClass]) -> list[float]:
    """What marks each class on an axis."""
    return [float(i) if one.value is None else one.value for i, one in enumerate(unseen)]


def check_classes(unseen: Sequence[UnseenClass], inputs: int) -> None:
    """Refuse what is not a list of classes with that many inputs."""
    if not isinstance(unseen, Sequence) or not unseen:
        raise InputError("unseen: expected a list of classes, such as scaled(direction, [0.1, 0.5])")
    for i, one in enumerate(unseen):
        if not isinstance(one, UnseenClass):
            raise InputError(f"unseen[{i}]: expected an UnseenClass, got {shown(one)}")
        if one.mean.size != inputs:
            raise InputError(f"unseen[{i}]: expected {inputs} inputs as the training data have, got {one.mean.size}")
