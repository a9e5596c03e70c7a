"""Spectrum of Xᵀ diag(f) X/n for samples whose components have any covariances: edges of its bulk, and outliers.

Weights f are functions of the fields. Given these a sample of component c has the mean μ_c + B_c ξ and noise of
covariance Σ'_c that does not know f (`given_fields`). With one number κ_c for each component, z outside the bulk and

    κ_c = −y_c,    y_c = (1/n) tr Σ'_c (z − T)⁻¹,    T = Σ_c p_c E_c[f/(1 − f y_c)] Σ'_c,

the resolvent of the bulk is (T − z)⁻¹. The right-hand sides G(y) grow with y and are convex, so that Newton's method
from y = 0 rises to the least solution wherever there is one; the upper edge of the bulk is the least z that has one,
where the largest eigenvalue of ∂G/∂y comes to one. Eigenvalues beyond it are those z for which

    S(z) q = z q,      S(z) = Σ_c p_c E_c[f/(1 − f y_c(z)) (Σ'_c + (μ_c + B_c ξ)(μ_c + B_c ξ)ᵀ)],

and the eigenvector of the sample has the squared overlap (a·q)²/(1 − qᵀ S' q) with a unit vector a, |q| = 1. For one
component of covariance s this is `overlaps.spectra.weighted`, whose margins are taken here as well: the Tracy-Widom law
by the square root that y has at the edge, and the scatter of the weights by the derivative of the edge.

A sum over components costs a few products of N x N matrices for each component and iteration.

Reference: Louart and Couillet, Random Matrices Theory Appl. 7, 1850009 (2018), and Benaych-Georges and Couillet, ESAIM
Probab. Stat. 20, 217 (2016), for the resolvent of mixtures with covariances; those of `weighted` for weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.optimize import brentq

from ..interface.errors import NumericalError
from .edges import Edge, extremes
from .given_fields import GivenComponent, GivenFields

Array = NDArray[np.float64]
EDGE = 1e-6  # relative accuracy of an edge
NEWTON = 60  # iterations, which converge by squares
CLOSE = 1e-9  # relative step at which an iteration has come to its end
ROUNDING = 1e-13  # relative error of G, which close to the edge is a larger step than that


class Bulk(NamedTuple):
    """The solution at z: y (P,), ∂G/∂y (P, P), Σ'_c (z − T)⁻¹ (P, N, N), (z − T)⁻¹ and its trace over N."""

    z: float
    y: Array
    slopes: Array
    products: Array
    resolvent: Array
    trace: float


@dataclass(frozen=True, eq=False)
class CovarianceLaw:
    """The law of a block's weights jointly with the inputs, as seen in n samples; made by `covariance_law`.

    Attributes
    ----------
    parts: the components of the inputs, with nodes.
    f: weights at their nodes, (points,) each.
    samples: n.
    """

    parts: list[GivenComponent]
    f: list[Array]
    span: GivenFields
    samples: int

    def mirrored(self) -> CovarianceLaw:
        """The law of minus the matrix."""
        return CovarianceLaw(self.parts, [-f for f in self.f], self.span, self.samples)

    @cached_property
    def largest(self) -> Array:
        """The largest weight of each component, or zero where none is positive, (P,)."""
        return np.array([max(float(f.max()), 0.0) for f in self.f])

    def _averages(self, y: Array, power: int = 1) -> Array:
        """p_c E_c[(f/(1 − f y_c))^power], (P,)."""
        return np.array(
            [
                part.weight * float(part.node_weights @ (f / (1 - f * each)) ** power)
                for part, f, each in zip(self.parts, self.f, y, strict=True)
            ]
        )

    def at(self, z: float, y: Array) -> Bulk | None:
        """G at y, with what it is made of; None where z − T is not positive."""
        noise, n = self.span.noise, self.samples
        if (self.largest * y >= 1).any():
            return None
        shifted = z * np.eye(self.span.size) - np.tensordot(self._averages(y), noise, 1)
        try:
            factor = np.linalg.cholesky(shifted)
        except np.linalg.LinAlgError:
            return None
        half = np.linalg.inv(factor)
        resolvent = half.T @ half
        products = noise @ resolvent
        crossed = np.einsum("cij,dji->cd", products, products, optimize=True)
        slopes = crossed * self._averages(y, 2) / n
        y = np.trace(products, axis1=1, axis2=2) / n
        return Bulk(z, y, slopes, products, resolvent, float(np.trace(resolvent)) / self.span.size)

    def solve(self, z: float, first: Array) -> Bulk | None:
        """The least solution at z, from a y below it; None where there is none, which is inside the bulk."""
        y = first
        for _ in range(NEWTON):
            found = self.at(z, y)
            if found is None or np.abs(np.linalg.eigvals(found.slopes)).max() >= 1:
                return None
            rest = found.y - y
            step, scale = np.linalg.solve(np.eye(y.size) - found.slopes, rest), np.abs(found.y).max()
            if np.abs(step).max() <= CLOSE * scale or np.abs(rest).max() <= ROUNDING * scale:
                return found._replace(y=y)
            y = np.maximum(y + step, first)  # where weights are negative G bends down, and a step may have gone too far
        raise NumericalError(
            f"bulk: the resolvent at {z:.6g} has not converged in {NEWTON} iterations", quantity="bulk", time=0.0
        )

    @cached_property
    def _at_edge(self) -> Bulk | None:
        """The solution just outside the upper edge; None where no weight is positive."""
        nothing = np.zeros(len(self.parts))
        if not self.largest.any():
            return None
        low = float(np.linalg.eigvalsh(np.tensordot(self._averages(nothing), self.span.noise, 1))[-1])
        scale = max(float((self.largest * np.linalg.norm(self.span.noise, 2, axis=(1, 2))).max()), 1e-300)
        low, high = max(low, 0.0), max(low, 1e-3 * scale)
        while (outside := self.solve(high, nothing)) is None:
            low, high = high, 2 * high
        while high - low > EDGE * high:
            middle = (low + high) / 2
            found = self.solve(middle, outside.y)  # y grows as z falls, so that of a larger z is below
            if found is None:
                low = middle
            else:
                high, outside = middle, found
        return outside

    @cached_property
    def edge(self) -> Edge:
        """The upper edge, its Tracy-Widom width, and its spread with the sample of weights."""
        bulk = self._at_edge
        if bulk is None:
            return Edge(-np.inf, 0.0, 0.0, 0.0)
        # near the edge the trace is that at the edge less A √(z − edge), and N A = width^(-3/2)
        rise = 1e-3 * bulk.z
        first, second = (self.solve(bulk.z + k * rise, np.zeros(len(self.parts))) for k in (1, 4))
        assert first is not None and second is not None, "there is a solution at every z above the edge"
        steepness = (first.trace - second.trace) / np.sqrt(rise)
        width = (self.span.size * max(steepness, 1e-300)) ** (-2 / 3)
        return Edge(-bulk.trace, bulk.z, min(width, bulk.z), self._scatter(bulk))

    def _scatter(self, bulk: Bulk) -> float:
        """By how much the edge moves with the sample of weights: dz = Σ_c ℓ_c tr(Σ'_c R dT R)/Σ_c ℓ_c tr(Σ'_c R²)."""
        values, vectors = np.linalg.eig(bulk.slopes.T)
        left = np.abs(vectors[:, int(np.argmax(np.real(values)))])  # of one sign, as all slopes are positive
        crossed = np.einsum("cij,dji->cd", bulk.products, bulk.products, optimize=True)
        squares = np.einsum("cij,ji->c", bulk.products, bulk.resolvent)
        moves = left @ crossed / (left @ squares)
        mean, square = self._averages(bulk.y), self._averages(bulk.y, 2)
        variance = float(moves**2 @ square) - float(moves @ mean) ** 2
        return float(np.sqrt(max(variance, 0.0) / self.samples))

    def inside(self, y: Array) -> Array:
        """S at the solution y, (N, N)."""
        total = np.zeros((self.span.size, self.span.size))
        for part, f, each in zip(self.parts, self.f, y, strict=True):
            total += part.weight * part.second_moments((f / (1 - f * each))[:, None])[0]
        return total

    def above(self) -> int:
        """How many outliers there are above the bulk."""
        bulk = self._at_edge
        return 0 if bulk is None else int((np.linalg.eigvalsh(self.inside(bulk.y)) > bulk.z).sum())

    def outliers(self) -> tuple[Array, Array, Array]:
        """Above the bulk: values (count,), directions (N, count) and squared lengths along them (count,)."""
        count, N, edge = self.above(), self.span.size, self._at_edge
        values, directions, lengths = np.empty(count), np.empty((N, count)), np.empty(count)
        if edge is None:
            return values, directions, lengths
        top = max(float(np.linalg.eigvalsh(self.inside(edge.y))[-1]), edge.z)

        def below(z: float) -> Array:
            found = edge if z <= edge.z else self.solve(z, np.zeros(len(self.parts)))
            assert found is not None, "there is a solution at every z above the edge"
            return self.inside(found.y)

        for j in range(count):
            place = N - 1 - j

            def gap(z: float, place: int = place) -> float:
                return float(eigh(below(z), eigvals_only=True, subset_by_index=(place, place))[0]) - z

            values[j] = _root(gap, edge.z, top * (1 + 1e-9)) if gap(edge.z) > 0 else edge.z
            S, step = below(values[j]), 1e-4 * values[j]
            directions[:, j] = eigh(S, subset_by_index=(place, place))[1][:, 0]
            q, ahead = directions[:, j], max(values[j] - step, edge.z)
            slope = float(q @ (below(values[j] + step) - below(ahead)) @ q) / (values[j] + step - ahead)
            lengths[j] = 1 / (1 - min(slope, 0.0))
        return values, directions, lengths


def _root(function: Callable[[float], float], a: float, b: float) -> float:
    found = brentq(function, a, b, xtol=1e-10 * abs(b), rtol=1e-10)  # pyright: ignore[reportArgumentType]
    return float(found)  # pyright: ignore[reportArgumentType]


def covariance_law(inside: GivenFields, parts: list[GivenComponent], f: list[Array], samples: int) -> CovarianceLaw:
    """The law with weights cut at the median of the extremes of n samples, where half of them have none beyond."""
    size = np.trace(inside.noise, axis1=1, axis2=2) / inside.size
    p = np.concatenate([part.weight * part.node_weights for part in parts])
    t = np.concatenate([scale * weight for scale, weight in zip(size, f, strict=True)])
    low, high = extremes(t, p, samples)
    cut = [np.clip(w, low / s, high / s) if s > 0 else w for w, s in zip(f, size, strict=True)]
    return CovarianceLaw(parts, cut, inside, samples)
