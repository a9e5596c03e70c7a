"""A hidden manifold at one size: features, eigenbasis, and the law of the inputs given a component of the latent.

Given component s the latent is C = m_s + scale z, and u_i = Fᵀ C/√D has mean μ_si and standard deviation τ_i. With
a_si = E f(u_i), b_si = E z f(u_i), c_si = E f(u_i)² over u_i = μ_si + τ_i z, and features F_z = scale F/τ,

    E[x | s] = a_s    Cov(x | s) = diag(c_s − a_s² − b_s²) + b_s (F_zᵀF_z/D) b_s     Cov(x, ν | s) = b_s F_zᵀ scale Bᵀ/D

to leading order in 1/√D. One component of mean zero and scale one is the Gaussian equivalence of the standard latent.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..interface.errors import InputError
from .inputs import TeacherFields
from .nonlinearity import moments

if TYPE_CHECKING:
    from .models.manifold import HiddenManifold

Array = NDArray[np.float64]
ALIKE = (
    0.3  # covariance, relative to the variance, that Gaussian equivalence may leave out (tests measure what it costs)
)
FEW = 0.1  # one over the number of latent coordinates in an input that the central limit theorem needs
ROUNDING = 1e-12  # eigenvalues that differ by this share of the largest are one


class ComponentConstants(NamedTuple):
    """Constants of x given each component, per coordinate of the inputs.

    weights: of the components, (P,).
    latent: means of the latent, (P, D). scale: its standard deviation, (D,).
    mean: a_s, without the mean that centring takes off, (P, N).
    slope: b_s = E[z f(u)] for the standardised z of u, (P, N).
    rest: variance c_s − a_s² − b_s² that is noise to a linear reader, (P, N).
    F: features of the standardised u, columns of squared length D, (D, N).
    """

    weights: Array
    latent: Array
    scale: Array
    mean: Array
    slope: Array
    rest: Array
    F: Array

    def teacher_rows(self, B: Array) -> Array:
        """√N Cov(x, ν | s) of teachers B (M, D), (P, M, N)."""
        D, N = self.F.shape
        return np.sqrt(N) / D * self.slope[:, None, :] * ((B * self.scale) @ self.F)

    def teacher_fields(self, B: Array) -> TeacherFields:
        """Covariance (M, M), common to the components, and means (M, P) of the teacher's fields."""
        D = B.shape[1]
        return TeacherFields((B * self.scale**2) @ B.T / D, B @ self.latent.T / np.sqrt(D))

    def apply(self, W: Array) -> Array:
        """W Cov(x | s), (P, K, N), for weights (K, N)."""
        P, (D, N) = len(self.weights), self.F.shape
        K = len(W)
        inner = (self.slope[:, None, :] * W).reshape(P * K, N) @ self.F.T
        return self.rest[:, None, :] * W + self.slope[:, None, :] * (inner @ self.F / D).reshape(P, K, N)

    def fields(self, W: Array, B: Array) -> tuple[Array, Array]:
        """Covariances (P, K+M, K+M) and means (K+M, P) of the fields of students W (K, N) and teachers B (M, D)."""
        return self.joined(W, self.apply(W), self.teacher_rows(B), self.teacher_fields(B))

    def joined(self, W: Array, through: Array, rows: Array, teacher: TeacherFields) -> tuple[Array, Array]:
        """`fields` of what they are made of: W Cov(x | s), the teacher's rows and the law of its fields."""
        K, N = W.shape
        F = K + len(teacher.T)
        C = np.empty((len(self.weights), F, F))
        C[:, :K, :K] = through @ W.T / N
        C[:, :K, K:] = W @ rows.transpose(0, 2, 1) / N
        C[:, K:, :K] = C[:, :K, K:].transpose(0, 2, 1)
        C[:, K:, K:] = teacher.T
        return C, np.concatenate([W @ self.mean.T / np.sqrt(N), teacher.m])

    def covariance(self, s: int) -> Array:
        """Cov(x | s), (N, N)."""
        full = self.F.T @ self.F / len(self.F) * np.outer(self.slope[s], self.slope[s])
        full[np.diag_indices_from(full)] += self.rest[s]
        return full


class Realised:
    """A hidden manifold at size N: its features, the eigenbasis of the covariance, and the law given each component.

    Attributes
    ----------
    F: (D, N). eigenvalues, dimensions: ω and its multiplicity, (levels,). basis: eigenvectors in columns, (N, N).
    """

    def __init__(self, data: HiddenManifold, F: Array) -> None:
        self.data, self.F = data, F
        (self.D, self.N), f = F.shape, data.equivalent
        s, self.basis = np.linalg.eigh(F.T @ F / self.D)
        s, self.basis = s[::-1], np.ascontiguousarray(self.basis[:, ::-1])
        # eigenvalues that differ by rounding alone are one level, such as the zeros of D < N
        edges = np.flatnonzero(np.append(True, s[:-1] - s[1:] > ROUNDING * s[0]))
        self.dimensions = np.diff(np.append(edges, self.N)).astype(np.int64)
        s = np.add.reduceat(s, edges) / self.dimensions
        self.eigenvalues = f.rest + f.b**2 * np.where(s > ROUNDING * s[0], s, 0.0)
        self._scaled = F / np.sqrt(self.D)

    @cached_property
    def parts(self) -> ComponentConstants:
        """Constants of the inputs given each component of the latent."""
        data, D = self.data, self.D
        given = data.conditional(D)
        width = np.sqrt(given.scales**2 @ self.F**2 / D)
        means = given.means @ self.F / np.sqrt(D)
        a, b, c, _ = moments(data.f, means, np.broadcast_to(width, means.shape))
        F = given.scales[:, None] * self.F / width
        return ComponentConstants(
            given.weights, given.means, given.scales, a - data.offset, b, np.maximum(c - a**2 - b**2, 0.0), F
        )

    @cached_property
    def strength(self) -> float:
        """How far components are from the standard normal latent; what one covariance for all costs goes as its square.

        The largest, over components, of the root mean square of a_s/σ and of the roots of those of (b_s − b)/σ and
        scale − 1 (over coordinates), which change covariances at first order; σ² = c − a². Zero for a standard latent.
        """
        parts, f = self.parts, self.data.equivalent
        spread = np.sqrt(f.c - f.a**2)
        changes = [parts.mean / spread, (parts.slope - f.b) / spread, (parts.scale - 1)[None]]
        sizes = [float(np.sqrt((change**2).mean(1)).max()) for change in changes]
        return max(sizes[0], np.sqrt(sizes[1]), np.sqrt(sizes[2]))

    @cached_property
    def dropped(self) -> float:
        """Covariance of the inputs that Gaussian equivalence leaves out, relative to their variance.

        With correlations ρ = FᵀF/D of the u and the second Hermite coefficient h of f it is at most h² ρ² and
        (c − a² − b² − h²) |ρ|³ between two inputs; the root mean square over rows of their sum, in units of c − a².
        """
        f, h = self.data.equivalent, self.data.second_coefficient
        rho = np.abs(self.F.T @ self.F / self.D)
        np.fill_diagonal(rho, 0.0)
        left = h**2 * rho**2 + max(f.rest - h**2, 0.0) * rho**3
        return float(np.sqrt((left**2).sum(1).mean()) / (f.c - f.a**2))

    def check_equivalence(self) -> None:
        """Refuse features whose inputs have no Gaussian equivalent."""
        if self.dropped > ALIKE:
            raise InputError(
                "features: they are too alike for Gaussian equivalence, which leaves out covariances of "
                f"{self.dropped:.2g} of the variance of the inputs (at most {ALIKE:g}); use a larger D (now "
                f"{self.D} for {self.N} inputs), features that differ, or train"
            )
        latent = self.data.latent
        share = float((self.F**4).sum(0).mean() / self.D**2)
        if latent is not None and latent.label == "coordinate" and share > FEW:
            raise InputError(
                "features: a label per coordinate needs inputs that sum many coordinates of the latent, these have "
                f"about {1 / share:.0f} (at least {1 / FEW:.0f}); use label='sample', features that mix, or train"
            )

    def draw(self, rng: np.random.Generator, count: int, B: Array) -> tuple[Array, Array, NDArray[np.int64]]:
        """Inputs (count, N), fields (count, M) of the teacher B (M, D) and components (count,)."""
        data, latent = self.data, self.data.latent
        if latent is None:
            C, labels = rng.standard_normal((count, self.D)), np.zeros(count, np.int64)
        else:
            C, labels = latent.sample(rng, count, self.D)
        X = data.f.function(C @ self._scaled)
        if data.offset:
            X -= data.offset
        return X, C @ B.T / np.sqrt(self.D), labels
