"""Losses of the output of many ReLU units, f = Σ_k v_k max(λ_k, 0), by random points that are made smooth.

The slope of a ReLU jumps at zero, so an average of slopes over fixed random points jumps as the fields move. Instead of
counting the points with a positive field, every point is reflected to a positive field and weighted with its
probability: for a field of mean μ and variance σ²

    E[1(λ > 0) ψ(λ)] = E[ ψ(|λ|) / (1 + exp(−2 μ |λ|/σ²)) ],

the other fields following by regression on λ; the right-hand side is continuous. With one field made positive, or two,
one after the other, and with the derivatives of the loss ℓ(f, y),

    E[δ_k]           = v_k E[1_k ℓ']                       E[∂loss/∂v_k] = E[1_k λ_k ℓ']
    S_kl             = v_k v_l E[1_k 1_l ℓ'²]
    D_kl             = v_k v_l E[1_k 1_l ℓ''] + δ_kl v_k p_k(0) E[ℓ' | λ_k = 0]

with p_k(0) the density of λ_k at zero. Nothing is divided by a covariance. The probabilities of 1_k and 1_k 1_l are
known (`bivariate`) and averages are scaled to them, so that what is random is ℓ' and ℓ'' where these are one.

E[δ] and E[∂loss/∂v] decide where training goes, and small errors in them grow with what is learnt: they have control
variates (`relu_controls`).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..compiled.functions import loop
from ..compiled.named import named
from ..network.architectures import Committee
from ..network.losses import OutputLoss, loss
from ..network.losses.output import outer
from ..problem.statement import Problem
from . import relu_independent, rules
from .quadrature import LossQuadrature
from .relu_controls import LossTable, first_two, independent, moved_output, one_field, reflected, single
from .relu_shifted import pair
from .result import Averages, over_components

Array = NDArray[np.float64]
START = 11  # log2 of the number of points, before mirroring
BUDGET = 14_000_000  # points times pairs of units
FEWER = 3  # log2 of how many times fewer points averages of two fields need
SEEN = 1e-6  # share of the variance of f, and of f², below which points count as not seeing it
REACH, TABULATED = 30.0, 1e-7  # outputs that a table has, and how far it may be off, relative
PANEL_UNITS = 4  # for up to this many units panels are affordable
PANEL_ACCURACY = 1e-3  # at this accuracy or a looser one points suffice even there


class Known(NamedTuple):
    """Averages in closed form: P(k and l positive) (K, K), and (K,) each E[1_k f], E[g_k] and E[g_k f] for
    g_k = max(λ_k, 0), and p_k(0) E[f | λ_k = 0].
    """

    chance: Array
    output: Array
    level: Array
    product: Array
    kink: Array


@loop(error_model="numpy")
def known_averages(C, mean, v):  # pragma: no cover - compiled
    """`Known` of fields of covariance C (K, K) and mean (K,), for readout v (K,)."""
    K = v.size
    known = Known(np.zeros((K, K)), np.zeros(K), np.zeros(K), np.zeros(K), np.zeros(K))
    for k in range(K):
        for l in range(K):
            both, known.chance[k, l], curvature, first = pair(C, mean, k, l)
            known.output[k] += v[l] * first
            known.product[k] += v[l] * both
            known.kink[k] += v[l] * curvature
            if k == l:
                known.level[k] = first
    return known


@loop(error_model="numpy")
def _pairs(slope, bend, y, table, C, mean, H, w, v, known):  # pragma: no cover - compiled
    """E[1_k 1_l ℓ''] and E[1_k 1_l ℓ'²], (K, K) each."""
    n, K = H.shape
    D, S = np.zeros((K, K)), np.zeros((K, K))
    along, rest, left, moved = np.zeros((K, K)), np.zeros((K, K, K)), np.zeros((K, K)), np.empty(K)
    chances = np.zeros((K, K))
    for k in range(K):
        if C[k, k] > 0.0:
            for j in range(K):
                along[k, j] = C[j, k] / C[k, k]
        # regression on field l of what is left when field k is known
        for l in range(k):
            left[k, l] = C[l, l] - along[k, l] * C[l, k]
            if left[k, l] <= 1e-12 * C[l, l]:
                left[k, l] = 0.0
                continue
            for j in range(K):
                rest[k, l, j] = (C[j, l] - along[k, j] * C[l, k]) / left[k, l]
            rest[k, l, k] = 0.0
    for i in range(n):
        h = H[i]
        for k in range(K):
            chance, place = reflected(h[k], mean[k], C[k, k])
            if chance == 0.0:
                continue
            for j in range(K):
                moved[j] = h[j] + (place - h[k]) * along[k, j]
            for l in range(k + 1):
                weight, shift = w[i] * chance, 0.0
                if l < k:
                    again, there = reflected(moved[l], mean[l] + along[k, l] * (place - mean[k]), left[k, l])
                    weight, shift = weight * again, there - moved[l]
                f = moved_output(v, moved, rest[k, l], shift)
                first, second = first_two(slope, bend, y, table, f)
                chances[k, l] += weight
                S[k, l] += weight * first * first
                D[k, l] += weight * second
    for k in range(K):
        for l in range(k + 1):
            # the probability is known: what is left to the points is ℓ' and ℓ'' given that fields are positive
            ratio = known.chance[k, l] / chances[k, l] if chances[k, l] > 0.0 else 0.0
            S[k, l] *= ratio
            D[k, l] *= ratio
            S[l, k], D[l, k] = S[k, l], D[k, l]
    return D, S


def calibrated(H: Array, w: Array, v: Array, known: Known) -> Array:
    """Weights of the points, as near to w as possible, with which the means of f and f² over points are the exact ones.

    Both are known in closed form, and most of what varies in ℓ' and ℓ'' from point to point is a function of them. The
    sum of the weights stays one. Moments that the points cannot have, because no field is positive at any of them, are
    left as they are: the `SEEN` share of a variance keeps weights bounded there, and changes nothing elsewhere.
    """
    f = np.maximum(H, 0.0) @ v
    first, second = float(v @ known.level), float(v @ known.product)
    spread = np.sqrt(max(second - first**2, 0.0))
    if not spread > 1e-9 * max(abs(first), 1e-300):
        return w
    x = (f - first) / spread
    features = np.stack([x, x**2 - 1.0], axis=1)
    means = w @ features
    features -= means
    spreads = (features * w[:, None]).T @ features
    return w * (1.0 - features @ np.linalg.solve(spreads + SEEN * np.eye(2), means))


@loop(error_model="numpy")
def _evaluated(function, f, y):  # pragma: no cover - compiled
    """A function of output and label at outputs f (points,)."""
    out = np.empty(f.size)
    for i in range(f.size):
        out[i] = function(f[i], y)
    return out


@cache
def tabulated(name: str, y: float) -> LossTable:
    """Table of ℓ' and ℓ'' of a loss for a label, accurate to a relative `TABULATED`; empty where no table is."""
    slope, bend = (named(_outer, part, name) for part in ("slope", "bend"))
    for step in (0.04, 0.02, 0.01):
        places = np.arange(-REACH, REACH, step)
        table = LossTable(-REACH, step, 1.0 / step, _evaluated(slope, places, y), _evaluated(bend, places, y))
        between = places[:-1] + 0.37 * step
        ours = _looked_up(slope, bend, y, table, between)
        misfit = np.abs(ours - [_evaluated(slope, between, y), _evaluated(bend, between, y)]).max(1)
        if np.all(misfit <= TABULATED * np.abs([table.slope, table.bend]).max(1)):
            return table
    return LossTable(0.0, 1.0, 1.0, np.zeros(1), np.zeros(1))


@loop(error_model="numpy")
def _looked_up(slope, bend, y, table, f):  # pragma: no cover - compiled
    """`first_two` at outputs f (points,), (2, points)."""
    out = np.empty((2, f.size))
    for i in range(f.size):
        out[0, i], out[1, i] = first_two(slope, bend, y, table, f[i])
    return out


class Factor(NamedTuple):
    """Correlations of fields without their diagonal, and (K, K) matrices that make standard fields of points z:
    z @ own independent ones, z @ together those of the correlations.
    """

    correlations: Array
    own: Array
    together: Array

    def serves(self, C: Array, sd: Array) -> bool:
        """Whether fields of this covariance and these standard deviations have these correlations."""
        off = C - np.diag(np.diag(C)) - self.correlations * np.outer(sd, sd)
        return float(np.abs(off).max(initial=0.0)) <= 1e-14 * float(np.diag(C).max(initial=0.0))


def _factor(C: Array, sd: Array) -> Factor:
    """The symmetric root of the correlations, of all roots the one that moves independent fields least, with points
    turned so that the first coordinates, the most even ones of Sobol points, run along what most fields share.

    R² + 1/10 is turned to triangular form instead of R to diagonal form: the turn then is a smooth function of R, also
    where eigenvalues cross.
    """
    scale = np.where(sd > 0, sd, 1.0)
    R = C / np.outer(scale, scale)
    values, vectors = np.linalg.eigh(R)
    turn, upper = np.linalg.qr((vectors * (values**2 + 0.1)) @ vectors.T)
    own = (turn * np.where(np.diag(upper) < 0, -1.0, 1.0)).T
    together = own @ (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    return Factor(R - np.diag(np.diag(R)), own, together)


def _at_zero(mean: Array, sd: Array) -> Array:
    """Density of each field at zero; none where it does not vary."""
    scale = np.where(sd > 0, sd, 1.0)
    return np.where(sd > 0, np.exp(-0.5 * (mean / scale) ** 2) / (scale * np.sqrt(2 * np.pi)), 0.0)


def _outer(part: str, name: str) -> Any:
    which = loss(name)
    assert isinstance(which, OutputLoss)
    return outer(which, part)


class ReluOutputs(LossQuadrature):
    """Averages of a smooth loss of labels and the output of many ReLU units."""

    def __init__(self, problem: Problem, teacher_readout: Array, log2: int = START, points_set: int = 0) -> None:
        super().__init__(problem, teacher_readout)
        self.log2, self.points_set = log2, points_set
        self.name = f"quadrature (Sobol, 2^{log2 + 1} points made positive)"
        self.default_accuracy, self.gain, self.jumps = 1e-3, 1.0, True
        self.parts = [named(_outer, part, problem.law.name) for part in ("value", "slope", "bend")]

    @staticmethod
    def serves(problem: Problem, accuracy: float) -> bool:
        """Whether a smooth loss of many ReLU outputs is averaged by points made positive, at this accuracy.

        Panels serve few units: they are more accurate, and cost more.
        """
        student, law = problem.student, problem.law
        if not (isinstance(student, Committee) and student.activation == "relu" and student.units >= PANEL_UNITS):
            return False
        if student.units == PANEL_UNITS and accuracy < PANEL_ACCURACY:
            return False
        smooth = isinstance(law, OutputLoss) and law.bend is not None and not problem.label_noise
        return smooth and problem.teacher is None and bool(problem.data.components.variances.all())

    def __call__(self, C: Array, v: Array, means: Array | None = None) -> Averages:
        weights, variances, _ = self.problem.data.components
        P = 0 if means is None else means.shape[1]
        at = means if means is not None and P else np.zeros((len(C), weights.size))
        found = over_components(self.each(variances[:, None, None] * C, v, at), weights, variances)
        return Averages(found.D, found.S, found.dv, found.error, found.E[:, :P])

    def each(self, C: Array, v: Array, means: Array) -> list[Averages]:
        """Averages over each component by itself, see `LossQuadrature.each`."""
        few = min(max(self.log2 - FEWER, (2 * v.size).bit_length()), self.log2)
        pair_z, pair_w = rules.sobol(v.size, few, 5000 + 100 * self.points_set)
        value, slope, bend = self.parts
        parts: list[Averages] = []
        v = np.ascontiguousarray(v)
        both = np.outer(v, v)
        for c, mean, y, sd, known, factor in self._components(C, v, means):
            table = tabulated(self.problem.law.name, y)
            z, H, weights = self._calibrated(mean, v, sd, known, factor)
            found, at_zero, error = single(value, slope, bend, y, table, c, mean, H, weights, v)
            near, first = independent(slope, bend, y, table, factor.correlations, sd, mean, z @ factor.own, weights, v)
            exact = relu_independent.averages(lambda f, y=y: _evaluated(slope, f, y), c, mean, v)
            E, dv, b = one_field(found, near, first, exact, known)
            H = mean + pair_z @ (factor.together * sd)
            D, S = _pairs(slope, bend, y, table, c, mean, H, calibrated(H, pair_w, v, known), v, known)
            kink = _at_zero(mean, sd) * (at_zero[:, 1] - b * at_zero[:, 0]) + b * known.kink
            parts.append(Averages(both * D + np.diag(v * kink), both * S, dv, max(error, 0.0), (v * E)[:, None]))
        return parts

    def each_error(self, C: Array, v: Array, means: Array) -> Array:
        """Generalisation error in each component, (P,); see `LossQuadrature.each_error`."""
        v, out = np.ascontiguousarray(v), np.empty(len(C))
        for i, (_, mean, y, sd, known, factor) in enumerate(self._components(C, v, means)):
            _, H, weights = self._calibrated(mean, v, sd, known, factor)
            out[i] = weights @ _evaluated(self.parts[0], np.maximum(H, 0.0) @ v, y)
        return np.maximum(out, 0.0)

    def _components(
        self, C: Array, v: Array, means: Array
    ) -> Iterator[tuple[Array, Array, float, Array, Known, Factor]]:
        """Of each component: covariance, means, label, standard deviations, `Known` and `Factor`."""
        factor = None
        for c, mean, label in zip(C, means.T, self.problem.data.components.labels.tolist(), strict=True):
            c, mean, sd = np.ascontiguousarray(c), np.ascontiguousarray(mean), np.sqrt(np.maximum(np.diag(c), 0.0))
            if factor is None or not factor.serves(c, sd):
                factor = _factor(c, sd)
            yield c, mean, float(label), sd, known_averages(c, mean, v), factor

    def _calibrated(self, mean: Array, v: Array, sd: Array, known: Known, factor: Factor) -> tuple[Array, Array, Array]:
        """Points z (n, K), the fields H (n, K) that they make, and weights (n,)."""
        z, w = rules.sobol(v.size, self.log2, 4000 + 100 * self.points_set)
        H = mean + z @ (factor.together * sd)
        return z, H, calibrated(H, w, v, known)

    def check(self) -> ReluOutputs:
        """The same averages by other random points."""
        return self.drawn(self.points_set ^ 1)

    def drawn(self, points_set: int) -> ReluOutputs:
        return ReluOutputs(self.problem, self.teacher_readout, self.log2, points_set)

    def coarser(self) -> ReluOutputs:
        return ReluOutputs(self.problem, self.teacher_readout, self.log2 - 1, self.points_set)

    def finer(self) -> ReluOutputs | None:
        """A more accurate version, or None where the budget of points is spent."""
        if 2 ** (self.log2 + 2) * self.problem.student.units**2 > BUDGET:
            return None
        return ReluOutputs(self.problem, self.teacher_readout, self.log2 + 1, self.points_set)
