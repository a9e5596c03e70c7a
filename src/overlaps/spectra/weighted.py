"""Spectrum of Xᵀ diag(f) X/n for n weighted samples: edges of its bulk, outliers, and what their vectors hold.

Weights f are functions of the fields, so outside the span of students and means (rank r) inputs are noise that does not
know them. With t = s f, s the variance of the noise, and γ = (N − r)/n, the Stieltjes transform m of the bulk is the
inverse of

    z(m) = −1/m + E[t/(1 + γ t m)],

and z' = 0 at its edges. Eliminating the noise leaves an r x r matrix: z outside the bulk is an eigenvalue if

    S(z) q = 0,      S(z) = E[f u uᵀ/(1 + γ t m(z))] − z,      u = Uᵀ x,

and its eigenvector has the part q/√(−qᵀS'q), |q| = 1, in the span. S' is negative, as S⁻¹ is a block of the resolvent,
so that there are as many outliers above the bulk as S has positive eigenvalues at its edge.

The largest eigenvalue of the bulk fluctuates by the Tracy-Widom law, in units of (z''/(2 (N − r)²))^{1/3} ~ n^{−2/3},
and with the sample of weights, by √(Var[t/(1 + γ t m)]/n). The law of t is cut at the median of the largest (smallest)
of n samples. This matters where weights are unbounded: the edge is that of the largest samples then, and grows with n.

Reference: Silverstein and Choi, J. Multivariate Anal. 54, 295 (1995), for the edges; Lu and Li, Inf. Inference 9, 507
(2020), for spikes that know the weights; Johnstone, Ann. Statist. 29, 295 (2001), for the Tracy-Widom law.

>>> import overlaps as ov
>>> problem = ov.Problem(
...     data=ov.GaussianMixture(means=2, variance=0.5), student=ov.Softmax(2), loss="cross-entropy",
...     algorithm=ov.OnlineSGD(1.0),
... )
>>> origin = ov.Start.from_overlaps(problem, Q=[[0.0] * 2] * 2, size=402)
>>> law = weight_law(problem, origin, samples=1600, block=(0, 0), kind="hessian")  # f = 1/4, ℓ = 1, γ = 1/4
>>> round(law.edge.z, 9) == 1 / 8 * 9 / 4, law.outliers()[0].round(9).tolist() == 2 * [1 / 8 * 2 * 5 / 4]
(True, True)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from ..averages.quadrature import LossQuadrature
from ..interface.checks import listed, whole
from ..interface.errors import InputError, shown
from ..problem.start import Start
from ..problem.statement import Problem
from .batch import by_law
from .covariance_law import CovarianceLaw, covariance_law
from .edges import Edge, extremes
from .given_fields import GivenFields
from .population import Kind, check_accuracy, check_kind, pieces, refined, sample_weights
from .span import Component, Span, law_of_inputs

Array = NDArray[np.float64]
ACCURACY = 3e-3  # of edges, and of the matrix within the span, relative; samples fluctuate by more
CLOSE = 1e-7  # outliers nearer than this share of their size are one, of higher multiplicity


@dataclass(frozen=True, eq=False)
class WeightLaw:
    """The law of a block's weights jointly with the inputs in the span, as seen in n samples; made by `weight_law`.

    Attributes
    ----------
    parts: the components of the inputs, with nodes.
    f: weights at their nodes, (points,) each.
    ratio: γ = (N − r)/n.
    noise: N − r.
    samples: n.
    """

    parts: list[Component]
    f: list[Array]
    span: Span
    ratio: float
    noise: int
    samples: int

    @cached_property
    def flat(self) -> tuple[Array, Array]:
        """t and probabilities of all nodes, (points,)."""
        t = np.concatenate([part.variance * f for part, f in zip(self.parts, self.f, strict=True)])
        return t, np.concatenate([part.weight * part.node_weights for part in self.parts])

    def mirrored(self) -> WeightLaw:
        """The law of minus the matrix."""
        return WeightLaw(self.parts, [-f for f in self.f], self.span, self.ratio, self.noise, self.samples)

    def z(self, m: float) -> float:
        """z(m), for m between that of an edge and zero."""
        t, p = self.flat
        return -1 / m + float(p @ (t / (1 + self.ratio * t * m)))

    def slope(self, m: float) -> float:
        """z'(m)."""
        t, p = self.flat
        return 1 / m**2 - self.ratio * float(p @ (t / (1 + self.ratio * t * m)) ** 2)

    def inside(self, m: float, power: int = 1) -> Array:
        """E[f u uᵀ/(1 + γ t m)], (r, r); for power 2 E[t f u uᵀ/(1 + γ t m)²]."""
        total = np.zeros((self.span.rank, self.span.rank))
        for part, f in zip(self.parts, self.f, strict=True):
            t = part.variance * f
            weight = f / (1 + self.ratio * t * m) if power == 1 else f * t / (1 + self.ratio * t * m) ** 2
            total += part.weight * part.second_moments(weight[:, None])[0]
        return total

    @cached_property
    def edge(self) -> Edge:
        """The upper edge: γ E[(t m/(1 + γ t m))²] = 1 for the m < 0 that is nearest to zero."""
        t, p = self.flat
        if not t.any():
            return Edge(-np.inf, 0.0, 0.0, 0.0)

        def excess(y: float) -> float:
            return self.ratio * float(p @ (t * y / (1 - self.ratio * t * y)) ** 2) - 1

        last = (1 - 1e-12) / (self.ratio * t.max()) if t.max() > 0 else 1e9 / (self.ratio * np.abs(t).max())
        if excess(last) <= 0:  # no weight is positive and N > n: the bulk reaches zero
            return Edge(-np.inf, 0.0, 0.0, 0.0)
        first = last
        while excess(first) > 0:
            first /= 2
        m = -_root(excess, first, min(2 * first, last))
        shrunk = t / (1 + self.ratio * t * m)
        bend = -2 / m**3 + 2 * self.ratio**2 * float(p @ shrunk**3)
        variance = float(p @ shrunk**2) - float(p @ shrunk) ** 2
        width = (bend / (2 * self.noise**2)) ** (1 / 3)
        return Edge(m, self.z(m), width, float(np.sqrt(max(variance, 0.0) / self.samples)))

    def outliers(self) -> tuple[Array, Array, Array]:
        """Above the bulk: values (count,), directions in the span (r, count) and squared lengths there (count,)."""
        edge = self.edge
        rank = self.span.rank
        if not np.isfinite(edge.m):
            return np.empty(0), np.empty((rank, 0)), np.empty(0)
        count = self.above()
        roots: list[float] = []
        for j in range(count):

            def gap(m: float, j: int = j) -> float:
                return float(np.linalg.eigvalsh(self.inside(m))[rank - 1 - j]) - self.z(m)

            far = edge.m
            while gap(far) > 0:
                far /= 2
            roots.append(_root(gap, max(2 * far, edge.m), far))
        values, directions, lengths = [np.empty(0)], [np.empty((rank, 0))], [np.empty(0)]
        first = 0
        while first < count:
            last = first + 1
            while last < count and abs(roots[last] - roots[first]) < CLOSE * abs(roots[first]):
                last += 1
            m = float(np.mean(roots[first:last]))
            null = np.linalg.eigh(self.inside(m))[1][:, ::-1][:, first:last]
            steep = np.eye(last - first) + self.ratio / self.slope(m) * (null.T @ self.inside(m, 2) @ null)
            share, turn = np.linalg.eigh(steep)
            values.append(np.full(last - first, self.z(m)))
            directions.append(null @ turn)
            lengths.append(1 / share)
            first = last
        return np.concatenate(values), np.concatenate(directions, axis=1), np.concatenate(lengths)

    def above(self) -> int:
        """How many outliers there are above the bulk."""
        if not np.isfinite(self.edge.m):
            return 0
        return int((np.linalg.eigvalsh(self.inside(self.edge.m)) > self.edge.z).sum())


def weight_law(
    problem: Problem, start: Start, samples: int, block: tuple[int, int], kind: Kind
) -> WeightLaw | CovarianceLaw:
    """The law of the weights of block (w_i, w_j) in `samples` samples at the size of `start`."""
    return cut_law(*block_weights(problem, start, samples, block, kind), whole("samples", samples, least=2))


def block_weights(
    problem: Problem, start: Start, samples: int, block: tuple[int, int], kind: Kind
) -> tuple[Span | GivenFields, list[Any], list[Array]]:
    """The inputs, and for every component its nodes and the weights f of block (w_i, w_j) there, (points,).

    Nodes are refined until the edges in `samples` samples and E[f u uᵀ] change by 3e-3 at most; beyond 1e-2 a
    NumericalError is raised.
    """
    check_kind(problem, kind)
    samples = whole("samples", samples, least=2)
    problem, start = by_law(problem, start)
    inside = law_of_inputs(problem, start)
    if inside.size is None:
        raise InputError(
            "start: a number of samples means something at a size only, this start has none; use start.at_size"
        )
    if isinstance(inside, Span) and inside.size <= inside.rank:
        raise InputError(
            f"start: expected a size above {inside.rank}, the span of students and means; use a larger size"
        )
    K = problem.student.units
    students = listed("block", block, "students, a pair (i, j)")
    if len(students) != 2:
        raise InputError(f"block: expected a pair of students (i, j), got {shown(block)}")
    i, j = sorted(whole("block", index, least=0, most=K - 1) for index in students)
    pair = i * K - i * (i - 1) // 2 + j - i

    def seen(rule: LossQuadrature) -> Nodes:
        parts: list[Any] = inside.components(rule)
        f = [
            np.concatenate([sample_weights(problem, start, kind, piece)[0][:, pair] for piece in pieces(part, K)])
            for part in parts
        ]
        if isinstance(inside, GivenFields):  # edges take matrices of N x N: moments of f in each component will do
            both = list(zip(parts, f, strict=True))
            moments = np.array([[part.node_weights @ g, np.sqrt(part.node_weights @ g**2)] for part, g in both])
            core = np.sum([part.weight * part.second_moments(g[:, None])[0] for part, g in both], axis=0)
            return Nodes(parts, f, moments, core)
        law = _cut(inside, parts, f, samples)
        return Nodes(parts, f, np.array([law.edge.z, law.mirrored().edge.z]), law.inside(0.0))

    nodes, accuracy = refined(seen, LossQuadrature(problem, start.u, all_fields=True), _difference, ACCURACY)
    check_accuracy(f"block (w_{i}, w_{j})", accuracy)
    return inside, nodes.parts, nodes.f


class Nodes(NamedTuple):
    """Components with nodes and weights, and what these say: edges of the bulk (or moments of f) and E[f u uᵀ]."""

    parts: list[Any]
    f: list[Array]
    edges: Array
    core: Array


def _difference(found: Nodes, other: Nodes) -> float:
    """Difference of the edges in units of the larger one, or of E[f u uᵀ] in units of it or of the edge."""
    edge = float(np.abs(found.edges).max())
    size = max(float(np.abs(found.core).max()), edge)
    return max(
        float(np.abs(found.edges - other.edges).max()) / (edge or 1.0),
        float(np.abs(found.core - other.core).max()) / (size or 1.0),
    )


def cut_law(inside: Span | GivenFields, parts: list[Any], f: list[Array], samples: int) -> WeightLaw | CovarianceLaw:
    """The law with weights cut at the median of the extremes of n samples, where half of them have none beyond."""
    if isinstance(inside, GivenFields):
        law: WeightLaw | CovarianceLaw = covariance_law(inside, parts, f, samples)
        empty = not any(weight.any() for weight in law.f)
    else:
        law = _cut(inside, parts, f, samples)
        empty = not law.flat[0].any()
    if empty:
        raise InputError(
            f"block: its weights times the noise are zero, in {samples} samples at least, so there is no bulk; "
            "use population"
        )
    return law


def _cut(inside: Span, parts: list[Component], f: list[Array], samples: int) -> WeightLaw:
    assert inside.size is not None
    noise = inside.size - inside.rank
    whole_law = WeightLaw(parts, f, inside, noise / samples, noise, samples)
    low, high = extremes(*whole_law.flat, samples)
    cut = [
        np.clip(weight, low / part.variance, high / part.variance) if part.variance else weight
        for part, weight in zip(parts, f, strict=True)
    ]
    return WeightLaw(parts, cut, inside, noise / samples, noise, samples)


def _root(function: Callable[[float], float], a: float, b: float) -> float:
    found = brentq(function, a, b, xtol=1e-14 * abs(a), rtol=1e-13)  # pyright: ignore[reportArgumentType]
    return float(found)  # pyright: ignore[reportArgumentType]
