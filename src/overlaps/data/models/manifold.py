"""The hidden manifold: inputs x = f(u), u = Fᵀ C/√D, of a latent C in D dimensions that the teacher reads.

With C standard normal, F (D, N) of columns of squared length D and a = E f(u), b = E u f(u), c = E f(u)² over one
standard normal u, fields of the inputs x − a are Gaussian as D, N → ∞ with covariances

    Cov(x) = (c − a² − b²) 1 + b² FᵀF/D       t = Cov(x, ν) = b Fᵀ Bᵀ/D       Cov(ν) = B Bᵀ/D

where ν = B C/√D are the fields of a teacher B (M, D): S. Goldt, M. Mézard, F. Krzakala and L. Zdeborová, Phys. Rev. X
10, 041044 (2020). In the eigenbasis of FᵀF/D this is a problem of levels, ω = (c − a² − b²) + b² s, whose fixed
directions are the t.

If C is a mixture, C = m_s + scale z given its component s, then so is u, and x has a mean a_s(i) = E[f(u_i) | s] and a
covariance of the same form with b_s(i), c_s(i) of its own. Q and R always denote Σ_b ω_b Q_b and Σ_b A_b with the
covariances of the standard normal latent, so that they mean the same for all latents.

>>> import overlaps as ov
>>> ov.HiddenManifold(latent_ratio=0.5)
HiddenManifold(sign of gaussian features, D/N = 0.5, standard normal latent)
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ...interface.checks import array, number, whole
from ...interface.errors import InputError, shown, unknown
from ...network.activations import Activation
from .. import features as matrices
from ..covariance import true_or_false
from ..inputs import Components, Shared, TeacherFields
from ..latent import Conditional, LatentMixture
from ..nonlinearity import GaussianEquivalent, Nonlinearity, gaussian_equivalent, nonlinearity
from ..realised import Realised

Array = NDArray[np.float64]


@dataclass(frozen=True, repr=False, eq=False)
class HiddenManifold(Shared):
    """Inputs that are a non-linear function of random features of a latent, which the teacher reads.

    Parameters
    ----------
    latent_dim: D; or instead
    latent_ratio: D/N.
    features: how F (D, N) is made: ``"gaussian"`` entries, ``"orthogonal"`` rows or columns, ``"hadamard"`` (the same
        with entries ±1; the larger of D and N a power of two), or the matrix itself, which fixes D and N, as an array
        or the path of a .npy file. Columns are scaled to squared length D.
    nonlinearity: f: ``"sign"``, ``"relu"``, ``"tanh"``, ``"linear"``, another activation, or a function of arrays.
    latent: None for a standard normal latent, or a `LatentMixture`.
    centre: whether E f(u) over a standard normal u is taken off the inputs; without it an f of non-zero mean makes one
        direction of the weights N times as fast as the others.
    seed: of the features; the same seed gives the same matrix at each size.
    digest: SHA-256 of a matrix that was given, filled in; a spec carries it, and a file that has changed is refused.
    """

    latent_dim: int | None = None
    latent_ratio: float | None = None
    features: str | os.PathLike[str] | Array = "gaussian"
    nonlinearity: str | Callable[..., Any] | Activation = "sign"
    latent: LatentMixture | None = None
    centre: bool = True
    seed: int = 0
    digest: str = ""

    def __post_init__(self) -> None:
        put = lambda name, value: object.__setattr__(self, name, value)  # noqa: E731
        if isinstance(self.features, os.PathLike):
            put("features", os.fspath(self.features))
        given = not isinstance(self.features, str) or self.features.endswith(".npy")
        if not given and self.features not in matrices.KINDS:
            raise unknown("features", str(self.features), [*matrices.KINDS, "a matrix", "a path to a .npy file"])
        if given:
            if not isinstance(self.features, str):
                put("features", array("features", cast("Any", self.features), (None, None)))
            if self.latent_dim is not None or self.latent_ratio is not None:
                raise InputError("latent_dim, latent_ratio: the matrix of features says what they are; leave them out")
            found = hashlib.sha256(np.ascontiguousarray(self.matrix).tobytes()).hexdigest()
            if self.digest and self.digest != found:
                raise InputError(
                    "digest: the features are not those this was written for; restore the file, or leave digest out"
                )
            put("digest", found)
        elif self.digest:
            raise InputError("digest: is that of a matrix of features, and none is given; leave it out")
        elif (self.latent_dim is None) == (self.latent_ratio is None):
            raise InputError("latent_dim: expected either latent_dim= (a whole number D) or latent_ratio= (D/N)")
        if self.latent_dim is not None:
            put("latent_dim", whole("latent_dim", self.latent_dim, least=1))
        if self.latent_ratio is not None:
            put("latent_ratio", number("latent_ratio", self.latent_ratio, above=0))
        if self.latent is not None and not isinstance(self.latent, LatentMixture):
            raise InputError(
                f"latent: expected None (standard normal) or an overlaps.LatentMixture, got {shown(self.latent)}"
            )
        put("centre", true_or_false("centre", self.centre))
        put("seed", whole("seed", self.seed, least=0))
        equivalent = self.equivalent
        variance = equivalent.c - equivalent.a**2
        if variance > 1e6:
            raise InputError(
                f"nonlinearity: inputs would have a variance of {variance:.2g}, beyond any useful rate; divide "
                f"{self.f.name} by its standard deviation {np.sqrt(variance):.3g}"
            )
        if variance <= 1e-12 * equivalent.c:
            raise InputError(
                f"nonlinearity: {self.f.name} is constant, so that inputs say nothing; use another function"
            )

    @cached_property
    def matrix(self) -> Array:
        """The matrix of features as given, columns scaled to squared length D; only where one is given."""
        given: Any = self.features
        if isinstance(given, str):
            if not os.path.isfile(given):
                raise InputError(f"features: no file {given}")
            try:
                given = np.load(given, allow_pickle=False)
            except Exception as error:  # the reader raises whatever a broken or an empty file leads it to
                raise InputError(f"features: {self.features} is not a matrix written by numpy.save ({error})") from None
        F = array("features", given, (None, None))
        if F.size == 0:
            raise InputError(f"features: expected a matrix (D, N), got shape {F.shape}")
        return matrices.normalised(F)

    @property
    def _given(self) -> bool:
        return bool(self.digest)

    @cached_property
    def f(self) -> Nonlinearity:
        """The non-linearity."""
        return nonlinearity(self.nonlinearity)

    @cached_property
    def equivalent(self) -> GaussianEquivalent:
        """a, b, c of the non-linearity."""
        return gaussian_equivalent(self.f)

    @cached_property
    def second_coefficient(self) -> float:
        """E (u² − 1) f(u)/√2, the second Hermite coefficient."""
        f = self.f
        raised = Nonlinearity(f"u {f.name}", lambda u: u * f.function(u), f.kinks)
        return (gaussian_equivalent(raised).b - self.equivalent.a) / np.sqrt(2)

    @property
    def offset(self) -> float:
        """What is taken off f(u)."""
        return self.equivalent.a if self.centre else 0.0

    reads_latent = True
    labelled = False

    @cached_property
    def has_means(self) -> bool:
        """Whether inputs have means given a component: of mixtures, unless the central limit theorem undoes them."""
        if abs(self.equivalent.a - self.offset) > 1e-9 * np.sqrt(self.equivalent.c):
            return True
        return self.latent is not None and not (
            self.latent.label == "coordinate" and self.latent.standardise == "population"
        )

    def conditional(self, D: int) -> Conditional:
        """Gaussian components of the latent: weights (P,), means (P, D), standard deviations (D,)."""
        if self.latent is None:
            return Conditional(np.ones(1), np.zeros((1, D)), np.ones(D))
        return self.latent.conditional(D)

    @cached_property
    def components(self) -> Components:
        """Weights and labels of the components; the covariances of their inputs are in `at(size).parts`."""
        latent = self.latent
        weights = np.ones(1) if latent is None or latent.label == "coordinate" else latent.probabilities
        return Components(weights, np.ones(weights.size), np.arange(weights.size))

    @property
    def own_size(self) -> int | None:  # type: ignore[override]
        """The number of columns of features that are given."""
        return self.matrix.shape[1] if self._given else None

    def teacher_size(self, size: int) -> int:
        """D at size N."""
        if self._given:
            D, N = self.matrix.shape
            if whole("size", size, least=1) != N:
                raise InputError(f"size: the features have {N} columns, so the size is {N}, not {size}")
            return D
        if self.latent_dim is not None:
            return self.latent_dim
        assert self.latent_ratio is not None
        D = round(self.latent_ratio * whole("size", size, least=1))
        if D < 1:
            raise InputError(
                f"size: {size} inputs at D/N = {self.latent_ratio:g} have no latent dimension; use a larger size"
            )
        return D

    def at(self, size: int) -> Realised:
        """The manifold at size N."""
        return _realised(self, whole("size", size, least=2))

    def check_theory(self, size: int | None) -> None:
        """Refuse a size at which the inputs are not equivalent to Gaussian ones."""
        if size is not None:
            self.at(size).check_equivalence()

    def mixture_strength(self, size: int | None) -> float:
        """The strength of the mixture of latents, see `Realised.strength`; zero for one component."""
        return self.at(size).strength if self.has_means and size is not None else 0.0

    def _limit(self) -> tuple[Array, Array]:
        """Eigenvalues s of FᵀF/D and their shares at infinite size."""
        if self._given:
            realised = self.at(self.matrix.shape[1])
            f = self.equivalent
            s = (realised.eigenvalues - f.rest) / f.b**2 if f.b else np.zeros(1)
            return s, realised.dimensions / realised.N
        if self.latent_ratio is None:
            raise InputError(
                f"latent_dim: D = {self.latent_dim} alone does not say what infinite size is; give latent_ratio= "
                "(D/N), or a start that has a size"
            )
        return matrices.limit(str(self.features), self.latent_ratio)

    def eigenvalues_at(self, size: int | None) -> Array:
        """ω, (levels,): of the features at that size, or those of infinite size."""
        if size is not None:
            return self.at(size).eigenvalues
        f = self.equivalent
        return f.rest + f.b**2 * self._limit()[0]

    @property
    def eigenvalues(self) -> Array:
        """ω at infinite size, (levels,)."""
        return self.eigenvalues_at(None)

    @property
    def fractions(self) -> Array:
        """φ at infinite size, (levels,)."""
        return self._limit()[1]

    def dimensions(self, size: int) -> NDArray[np.int64]:
        """Dimensions per level at a size, (levels,)."""
        return self.at(size).dimensions

    def turned(self, rows: Array) -> Array:
        """Rows (…, N) in the eigenbasis of the covariance, ordered by level."""
        return rows @ self.at(rows.shape[-1]).basis

    def teacher_rows(self, B: Array, size: int) -> Array:
        """√N Cov(x, ν) for a standard normal latent and teachers B (M, D), (M, N)."""
        realised = self.at(size)
        return self.equivalent.b * np.sqrt(size) / realised.D * (B @ realised.F)

    def teacher_fields(self, B: Array, size: int) -> TeacherFields:
        """Covariance B Bᵀ/D of the fields for a standard normal latent, (M, M), and their means, (M, P)."""
        means = self.at(size).parts.teacher_fields(B).m if self.has_means else np.zeros((len(B), 0))
        return TeacherFields(B @ B.T / B.shape[1], means)

    def mean_vectors(self, size: int) -> Array:
        """Means of the inputs given each component, (P, N); none where they vanish."""
        return self.at(size).parts.mean if self.has_means else np.zeros((0, size))

    def mean_gram(self, fractions: Array, size: int | None = None) -> Array:
        """Inner products of the means per level, (levels, P, P)."""
        if not self.has_means:
            return np.zeros((fractions.size, 0, 0))
        if size is None:
            raise InputError("latent: the means of the inputs exist at a size only; draw a start")
        realised = self.at(size)
        means, edges = self.turned(realised.parts.mean), np.cumsum(realised.dimensions)[:-1]
        return np.array([block @ block.T for block in np.split(means, edges, axis=1)])

    def typical(self, Q: Array, R: Array, T: Array) -> tuple[Array, Array, Array]:
        """Overlaps per level at infinite size, Q_b, A_b, G_b, of weights drawn without regard to the features.

        Then Q_b ∝ φ_b, G_b = b² s_b φ_b (N/D) T, and A_b ∝ s_b φ_b, the expectation of it given its sum R.
        """
        s, share = self._limit()
        N_over_D = (
            1 / self.latent_ratio if self.latent_ratio is not None else self.matrix.shape[1] / self.matrix.shape[0]
        )
        Q_b = np.multiply.outer(share / (share @ self.eigenvalues), Q)
        A_b = np.multiply.outer(share * s / (share @ s), R) if s.any() else np.zeros((s.size, *R.shape))
        G_b = np.multiply.outer(self.equivalent.b**2 * N_over_D * share * s, T)
        low = float(np.linalg.eigvalsh(np.block([[Q_b, A_b], [A_b.transpose(0, 2, 1), G_b]]))[:, 0].min())
        if low < -1e-10 * max(1.0, float(np.abs(Q).max())) or (R.any() and not s.any()):
            raise InputError("R: too large for weights drawn without regard to the features; use Start.from_weights")
        return Q_b, A_b, G_b

    def _key(self) -> tuple[Any, ...]:
        features = self.digest or self.features
        return (self.latent_dim, self.latent_ratio, features, self.nonlinearity, self.latent, self.centre, self.seed)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HiddenManifold) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        if self._given:
            D, N = self.matrix.shape
            text, size = f"{self.f.name} of {D} x {N} features", ""
        else:
            text = f"{self.f.name} of {self.features} features"
            size = f", D = {self.latent_dim}" if self.latent_ratio is None else f", D/N = {self.latent_ratio:g}"
        text += size + ", " + ("standard normal latent" if self.latent is None else repr(self.latent))
        return f"HiddenManifold({text}{'' if self.centre else ', not centred'})"


@lru_cache(maxsize=2)  # diagonalising the features takes long, and every scale asks for them
def _realised(data: HiddenManifold, size: int) -> Realised:
    D = data.teacher_size(size)
    if max(D, size) > 2e4:
        raise InputError(
            f"size: features of {D} x {size} take minutes and gigabytes to diagonalise; use a smaller size, or "
            "latent_ratio= and Start.from_overlaps for infinite size"
        )
    F = data.matrix if data._given else matrices.draw(str(data.features), D, size, data.seed)
    return Realised(data, F)


def examples() -> tuple[HiddenManifold, ...]:
    """Fewer latents than inputs, and as many, for a function with a kink and for one without."""
    return HiddenManifold(latent_ratio=0.5), HiddenManifold(
        latent_ratio=1.0, features="orthogonal", nonlinearity="tanh", seed=3
    )


MODEL = HiddenManifold
REFUSED = (
    {"latent_ratio": 0.0},
    {"features": "round", "latent_ratio": 0.5},
    {"nonlinearity": "nothing", "latent_ratio": 0.5},
)
