"""What n samples show of the population: bulk edges, outliers and alignments of Hessian and G-matrix blocks.

A block is Xᵀ diag(f) X/n (`weighted`). For a constant weight, f = c, as in softmax regression at its origin, the bulk
is the Marchenko-Pastur law, and a population eigenvalue c s (1 + ℓ), s the variance of the noise, shows at

    c s (1 + ℓ)(1 + γ/ℓ),  γ = N/n,   if ℓ > √γ, and not at all otherwise;  edge c s (1 + √γ)²,

with the squared overlap (1 − γ/ℓ²)/(1 + γ/ℓ) (`mp_edge`, `bbp`). Weights that vary widen the bulk, and samples of one
component may carry most of them: `predicted_outliers` takes their law from the fields. Near the threshold this is the
limit N → ∞: at finite N vectors at the edge hold part of a direction that does not show yet.

Reference: Baik, Ben Arous and Péché, Ann. Probab. 33, 1643 (2005); Paul, Statist. Sinica 17, 1617 (2007), for the
overlap; and those of `weighted`, and of `covariance_law` for inputs whose noise is not isotropic.

>>> import overlaps as ov
>>> problem = ov.Problem(
...     data=ov.GaussianMixture(means=10, variance=0.1), student=ov.Softmax(10), loss="cross-entropy",
...     algorithm=ov.OnlineSGD(1.0),
... )
>>> origin = ov.Start.from_overlaps(problem, Q=[[0.0] * 10] * 10, size=1000)
>>> predicted_outliers(problem, origin, samples=4000)  # weights 0.09, ℓ = λ p = 1, γ = 0.2475
PredictedSpectrum(4000 samples of N = 1000: bulk 0.00227 to 0.0202; 10 outliers: 0.0225, 0.0225, 0.0225, ...)
>>> round(0.09 * mp_edge(0.1, 0.2475), 4), [round(x, 4) for x in bbp(1.0, 0.2475)]
(0.0202, [2.495, 0.6032])
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..interface.checks import array, checked, number, whole
from ..interface.errors import InputError
from ..problem.start import Start
from ..problem.statement import Problem
from .given_fields import GivenFields
from .population import Kind
from .span import Span
from .weighted import block_weights, cut_law, weight_law

Array = NDArray[np.float64]
MOST = 10**12  # largest number of samples that `visibility` considers


@checked
def mp_edge(variance: float, ratio: float) -> float:
    """Upper edge of the Marchenko-Pastur law, variance (1 + √ratio)², ratio = N/n."""
    return number("variance", variance, least=0) * (1 + number("ratio", ratio, least=0) ** 0.5) ** 2


class Spike(NamedTuple):
    """Largest eigenvalue in units of the noise, and the squared overlap of its vector with the spike."""

    value: float
    overlap: float


@checked
def bbp(spike: float, ratio: float) -> Spike:
    """What a population eigenvalue 1 + spike (all others one) shows as in n = N/ratio samples: the edge if hidden."""
    spike, ratio = number("spike", spike, least=0), number("ratio", ratio, least=0)
    if spike <= ratio**0.5:
        return Spike(mp_edge(1.0, ratio), 0.0)
    return Spike((1 + spike) * (1 + ratio / spike), (1 - ratio / spike / spike) / (1 + ratio / spike))


@dataclass(frozen=True, eq=False)
class PredictedSpectrum:
    """What a block of n samples is predicted to show; made by `predicted_outliers`.

    Attributes
    ----------
    low, high: edges of the bulk.
    low_margin, high_margin: by how much the outermost eigenvalue of the bulk may pass them, but for one time in 1000.
    values: outliers on either side of the bulk, the largest absolute value first, (count,). Those near zero, between
        parts of a bulk, are not looked for.
    directions: their eigenvectors within the span of students and means, of length one there, (r, count); where noise
        is not isotropic, in the coordinates of the inputs, r = N, and the lower edge of weights that are all positive
        is given as zero.
    lengths: squared length of that part of the eigenvector, (count,); the rest is noise. The squared overlap with a
        unit vector a of the span is lengths · (a·directions)².
    """

    samples: int
    low: float
    high: float
    low_margin: float
    high_margin: float
    values: Array
    directions: Array
    lengths: Array
    span: Span | GivenFields

    @property
    def standing(self) -> int:
        """How many outliers exceed all of the bulk in absolute value."""
        return int((np.abs(self.values) > max(abs(self.low), abs(self.high))).sum())

    def alignment(self, direction: ArrayLike, count: int) -> float:
        """ρ of a direction in the span (r,) with the `count` eigenvectors of largest absolute value.

        Where fewer outliers stand out, the others are random vectors of the bulk, which add nothing as N grows.
        """
        a = array("direction", direction, (len(self.directions),))
        count = whole("count", count, least=1)
        if not a.any():
            raise InputError("direction: expected a vector that is not zero, which has no direction")
        first = min(count, self.standing)
        caught = float(self.lengths[:first] @ (self.directions[:, :first].T @ a) ** 2)
        return float(np.sqrt(min(caught / float(a @ a), 1.0)))

    def alignment_of_student(self, i: int, count: int) -> float:
        """ρ(w_i, the `count` eigenvectors of largest absolute value)."""
        return self.alignment(self.span.students[whole("i", i, least=0, most=len(self.span.students) - 1)], count)

    def __repr__(self) -> str:
        listed = ", ".join(f"{value:.3g}" for value in self.values[:3]) + (", ..." if self.values.size > 3 else "")
        found = f"{self.values.size} outlier{'s' * (self.values.size != 1)}" + (f": {listed}" if listed else "")
        where = f"{self.samples} samples of N = {self.span.size}"
        return f"PredictedSpectrum({where}: bulk {self.low:.3g} to {self.high:.3g}; {found})"


@checked
def predicted_outliers(
    problem: Problem, start: Start, samples: int, block: tuple[int, int] = (0, 0), kind: Kind = "hessian"
) -> PredictedSpectrum:
    """Edges of the bulk and outliers of block (w_i, w_j) of the empirical Hessian, or G-matrix (``"gradient"``).

    The law of the weights is that at the nodes of a quadrature, which is refined until edges and population change by
    3e-3 at most; a NumericalError is raised where the budget of points ends above 1e-2, as for very large weights.

    Parameters
    ----------
    start: students and readouts, at a size; weights are not needed.
    samples: n, at least 2, drawn independently of the students (test samples).
    block: (i, j), students numbered from 0.
    """
    law = weight_law(problem, start, samples, block, kind)
    mirrored = law.mirrored()
    upper, lower = law.outliers(), mirrored.outliers()
    values = np.concatenate([upper[0], -lower[0]])
    order = np.argsort(-np.abs(values), kind="stable")
    high, low = law.edge, mirrored.edge
    return PredictedSpectrum(
        law.samples,
        -low.z + 0.0,
        high.z,
        low.margin,
        high.margin,
        values[order],
        np.concatenate([upper[1], lower[1]], axis=1)[:, order],
        np.concatenate([upper[2], lower[2]])[order],
        law.span,
    )


@checked
def bulk_edge(
    problem: Problem, start: Start, samples: int, block: tuple[int, int] = (0, 0), kind: Kind = "hessian"
) -> float:
    """Upper edge of the bulk of block (w_i, w_j), see `predicted_outliers`."""
    return weight_law(problem, start, samples, block, kind).edge.z


class Visibility(NamedTuple):
    """Population eigenvalues, largest absolute value first, how many of them stand out, and n for all to do so.

    `needed` is None where one of them does not exceed the bulk of the population.
    """

    population: Array
    visible: int
    needed: int | None


@checked
def visibility(
    problem: Problem,
    start: Start,
    samples: int,
    count: int,
    block: tuple[int, int] = (0, 0),
    kind: Kind = "hessian",
) -> Visibility:
    """How many of the `count` largest population eigenvalues of a block stand out of the bulk of `samples` samples.

    Counted on the side where the block is larger, which is above for weights that are positive and below for negative
    ones. `needed` is found by bisection, to one part in 1000.
    """
    samples = whole("samples", samples, least=2)
    inside, parts, f = block_weights(problem, start, samples, block, kind)
    count = whole("count", count, least=1, most=inside.rank)
    shares = np.array([part.weight * (part.node_weights @ weight) for part, weight in zip(parts, f, strict=True)])
    seconds = [part.weight * part.second_moments(weight[:, None])[0] for part, weight in zip(parts, f, strict=True)]
    bulk, noise = inside.bulk(shares)
    sign = 1.0 if bulk >= 0 else -1.0
    edge = abs(bulk) if noise is None else float(np.linalg.eigvalsh(sign * noise)[-1])
    values = np.sort(sign * np.linalg.eigvalsh(np.sum(seconds, axis=0)).astype(float))[::-1][:count]
    signed = [sign * weight for weight in f]

    def visible(n: int) -> int:
        return min(cut_law(inside, parts, signed, n).above(), count)

    now = visible(samples)
    if values[-1] <= edge * (1 + 1e-9) or visible(MOST) < count:
        return Visibility(sign * values, now, None)
    few, many = (2, samples) if now == count else (samples, MOST)
    while many > 1.001 * few and many > few + 1:
        middle = int(np.sqrt(float(few) * float(many))) if many > 2 * few else (few + many) // 2
        few, many = (few, middle) if visible(middle) == count else (middle, many)
    return Visibility(sign * values, now, many)


@checked
def count_outliers(values: ArrayLike, edge: float, margin: float = 0.0) -> int:
    """How many eigenvalues lie above edge + margin.

    With `high` and `high_margin` of a `PredictedSpectrum` a block without outliers counts one in at most some 1 of 1000
    samples.
    """
    limit = number("edge", edge) + number("margin", margin, least=0)
    return int((array("values", values, (None,)) > limit).sum())
