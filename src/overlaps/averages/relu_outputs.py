"""Losses of the output of many ReLU units, f = Σ_k v_k max(λ_k, 0), by random points that are made smooth.

A slope of a ReLU jumps, and an average over fixed points jumps with it as fields move. So fields are made positive
instead of waiting until they are: for a field of mean μ and variance σ²

    E[1(λ > 0) ψ(λ)] = E[ ψ(|λ|) / (1 + exp(−2 μ |λ|/σ²)) ],

the other fields following by regression on λ; the right-hand side is continuous. With one field made positive, or two,
one after the other, and with the derivatives of the loss ℓ(f, y),

    E[δ_k]           = v_k E[1_k ℓ']                       E[∂loss/∂v_k] = E[1_k λ_k ℓ']
    S_kl             = v_k v_l E[1_k 1_l ℓ'²]
    D_kl             = v_k v_l E[1_k 1_l ℓ''] + δ_kl v_k p_k(0) E[ℓ' | λ_k = 0]

with p_k(0) the density of λ_k at zero. Nothing is divided by a covariance. The probabilities of 1_k and 1_k 1_l are
known (`bivariate`) and averages are scaled to them, so that what is random is ℓ' and ℓ'' where these are one.

E[δ] and E[∂loss/∂v] decide where training goes, and small errors in them grow with what is learnt. Two things that are
known are taken from them before points are used: the line a + b f through ℓ', as E[1_k f] and E[g_k f] for
g_k = max(λ_k, 0) are averages of two fields (`relu_shifted`); and what ℓ' − a − b f is for independent fields of the
same means and variances, whose averages are one-dimensional (`relu_independent`). Points follow both, fields and
independent fields, and a regression says how much of the known error of the latter is that of the former.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..compiled.functions import kept, loop
from ..compiled.named import named
from ..losses import OutputLoss, loss
from ..losses.output import outer
from ..problem.network import Committee
from ..problem.statement import Problem
from . import relu_independent, rules
from .quadrature import LossQuadrature
from .relu_shifted import pair
from .result import Averages, over_components

Array = NDArray[np.float64]
START = 9  # log2 of the number of points, before mirroring
BUDGET = 1_700_000  # points times pairs of units
FEWER = 3  # log2 of how many times fewer points averages of two fields need
FIELDS = 4  # up to which panels are better


@kept(error_model="numpy")
def _reflected(field, mean, variance):  # pragma: no cover - compiled
    """(weight, |field|) with E[1(h > 0) ψ(h)] = E[weight ψ(|h|)] for h of that mean and variance."""
    if variance <= 0.0:
        return (1.0 if mean > 0.0 else 0.0), field
    place = abs(field)
    return 1.0 / (1.0 + math.exp(min(-2.0 * place * mean / variance, 700.0))), place


@kept(fastmath={"reassoc", "contract"}, error_model="numpy")
def _output(v, h):  # pragma: no cover - compiled
    total = 0.0
    for k in range(v.size):
        total += v[k] * max(h[k], 0.0)
    return total


@kept(fastmath={"reassoc", "contract"}, error_model="numpy")
def _moved_output(v, h, along, shift):  # pragma: no cover - compiled
    """Output at fields h + shift × along."""
    total = 0.0
    for k in range(v.size):
        total += v[k] * max(h[k] + shift * along[k], 0.0)
    return total


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


class Positive(NamedTuple):
    """Field k made positive, point by point, (points, K) each: weight, output f, ℓ'(f) and the field itself."""

    weight: Array
    output: Array
    slope: Array
    field: Array


@loop(error_model="numpy")
def _independent(slope, y, sd, mean, z, w, v):  # pragma: no cover - compiled
    """`Positive` of independent fields mean + sd z."""
    n, K = z.shape
    found = Positive(np.zeros((n, K)), np.zeros((n, K)), np.zeros((n, K)), np.zeros((n, K)))
    h = np.empty(K)
    for i in range(n):
        for k in range(K):
            h[k] = mean[k] + sd[k] * z[i, k]
        f = _output(v, h)
        for k in range(K):
            chance, place = _reflected(h[k], mean[k], sd[k] * sd[k])
            found.weight[i, k], found.field[i, k] = w[i] * chance, place
            found.output[i, k] = f + v[k] * (place - max(h[k], 0.0))
            found.slope[i, k] = slope(found.output[i, k], y)
    return found


@loop(error_model="numpy")
def _single(value, slope, y, C, mean, H, w, v):  # pragma: no cover - compiled
    """`Positive`, the means of f and ℓ'(f) at λ_k = 0, (K, 2), and the error."""
    n, K = H.shape
    found = Positive(np.zeros((n, K)), np.zeros((n, K)), np.zeros((n, K)), np.zeros((n, K)))
    at_zero, error = np.zeros((K, 2)), 0.0
    along = np.zeros(K)
    for i in range(n):
        error += w[i] * value(_output(v, H[i]), y)
    for k in range(K):
        along[:] = 0.0
        if C[k, k] > 0.0:
            for j in range(K):
                along[j] = C[j, k] / C[k, k]
        for i in range(n):
            h = H[i]
            if C[k, k] > 0.0:
                f = _moved_output(v, h, along, -h[k])
                at_zero[k, 0] += w[i] * f
                at_zero[k, 1] += w[i] * slope(f, y)
            chance, place = _reflected(h[k], mean[k], C[k, k])
            f = _moved_output(v, h, along, place - h[k])
            found.weight[i, k], found.output[i, k], found.field[i, k] = w[i] * chance, f, place
            found.slope[i, k] = slope(f, y)
    return found, at_zero, error


@loop(error_model="numpy")
def _pairs(slope, bend, y, C, mean, H, w, v, known):  # pragma: no cover - compiled
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
            chance, place = _reflected(h[k], mean[k], C[k, k])
            if chance == 0.0:
                continue
            for j in range(K):
                moved[j] = h[j] + (place - h[k]) * along[k, j]
            for l in range(k + 1):
                weight, shift = w[i] * chance, 0.0
                if l < k:
                    again, there = _reflected(moved[l], mean[l] + along[k, l] * (place - mean[k]), left[k, l])
                    weight, shift = weight * again, there - moved[l]
                f = _moved_output(v, moved, rest[k, l], shift)
                first = slope(f, y)
                chances[k, l] += weight
                S[k, l] += weight * first * first
                D[k, l] += weight * bend(f, y)
    for k in range(K):
        for l in range(k + 1):
            # the probability is known: what is left to the points is ℓ' and ℓ'' given that fields are positive
            ratio = known.chance[k, l] / chances[k, l] if chances[k, l] > 0.0 else 0.0
            S[k, l] *= ratio
            D[k, l] *= ratio
            S[l, k], D[l, k] = S[k, l], D[k, l]
    return D, S


def _slope(y: Array, x: Array, least: Array | float = 0.0) -> Array:
    """Slope of the regression of y on x, both (points, K), of which x is centred; zero where x varies less."""
    spread = (x**2).sum(0)
    return np.divide((x * y).sum(0), spread, out=np.zeros_like(spread), where=spread > least)


def _corrected(y: Array, x: Array, exact: Array) -> Array:
    """Sums of y (points, K) over points, corrected by those of x, whose expectations are known (K,)."""
    return y.sum(0) + _slope(y, x - x.mean(0)) * (exact - x.sum(0))


def one_field(
    found: Positive, near: Positive, known: Known, apart: Known, slopes: tuple[Array, Array]
) -> tuple[Array, Array, Array]:
    """E[1_k ℓ'], E[g_k ℓ'] and the slope b of the line a + b f through ℓ'(f) where field k is positive, (K,) each.

    near, apart: what found and known are for independent fields, whose E[1_k ℓ'] and E[g_k ℓ'] are slopes.
    """
    total = found.weight.sum(0)
    total = np.where(total > 0, total, 1.0)
    f, first = ((found.weight * part).sum(0) / total for part in (found.output, found.slope))
    root = np.sqrt(np.maximum(found.weight, 0.0))
    b = _slope(root * found.slope, root * (found.output - f), 1e-12 * f**2)
    a = first - b * f
    left, same = (part.weight * (part.slope - a - b * part.output) for part in (found, near))
    E = _corrected(left, same, slopes[0] - a * np.diag(apart.chance) - b * apart.output)
    dv = _corrected(left * found.field, same * near.field, slopes[1] - a * apart.level - b * apart.product)
    return E + a * np.diag(known.chance) + b * known.output, dv + a * known.level + b * known.product, b


def calibrated(H: Array, w: Array, v: Array, known: Known) -> Array:
    """Weights of the points, as near to w as can be, for which the means of f and f² are what they are.

    Both are known in closed form, and most of what varies in ℓ' and ℓ'' from point to point is a function of them.
    """
    f = np.maximum(H, 0.0) @ v
    first, second = float(v @ known.level), float(v @ known.product)
    spread = np.sqrt(max(second - first**2, 0.0))
    if not spread > 1e-9 * max(abs(first), 1e-300):
        return w
    x = (f - first) / spread
    features = np.stack([np.ones_like(x), x, x**2 - 1.0], axis=1)
    weighted = features * w[:, None]
    short = np.array([1.0, 0.0, 0.0]) - weighted.sum(0)
    return w * (1.0 + features @ np.linalg.solve(features.T @ weighted, short))


@loop(error_model="numpy")
def _evaluated(function, f, y):  # pragma: no cover - compiled
    """A function of output and label at outputs f (points,)."""
    out = np.empty(f.size)
    for i in range(f.size):
        out[i] = function(f[i], y)
    return out


def _root(C: Array, sd: Array) -> Array:
    """Symmetric root of the correlations: of all roots the one that moves independent fields least."""
    scale = np.where(sd > 0, sd, 1.0)
    values, vectors = np.linalg.eigh(C / np.outer(scale, scale))
    return (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T


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

    def __init__(self, problem: Problem, teacher_readout: Array, log2: int = START, seed: int = 0) -> None:
        super().__init__(problem, teacher_readout)
        self.log2, self.seed = log2, seed
        self.name = f"quadrature (Sobol, 2^{log2 + 1} points made positive)"
        self.default_accuracy, self.gain, self.jumps = 1e-3, 1.0, False
        self.parts = [named(_outer, part, problem.law.name) for part in ("value", "slope", "bend")]

    @staticmethod
    def serves(problem: Problem) -> bool:
        """Whether the problem is one of these."""
        student, law = problem.student, problem.law
        if not (isinstance(student, Committee) and student.activation == "relu" and student.units > FIELDS):
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
        z, w = rules.sobol(v.size, self.log2, 4000 + 100 * self.seed)
        few = min(max(self.log2 - FEWER, (2 * v.size).bit_length()), self.log2)
        pair_z, pair_w = rules.sobol(v.size, few, 5000 + 100 * self.seed)
        value, slope, bend = self.parts
        parts: list[Averages] = []
        v = np.ascontiguousarray(v)
        both = np.outer(v, v)
        for c, mean, label in zip(C, means.T, self.problem.data.components.labels.tolist(), strict=True):
            c, mean, y = np.ascontiguousarray(c), np.ascontiguousarray(mean), float(label)
            sd, known = np.sqrt(np.maximum(np.diag(c), 0.0)), known_averages(c, mean, v)
            spread = sd * _root(c, sd)
            H = mean + z @ spread
            weights = calibrated(H, w, v, known)
            found, at_zero, error = _single(value, slope, y, c, mean, H, weights, v)
            near = _independent(slope, y, sd, mean, z, weights, v)
            slopes = relu_independent.averages(lambda f, y=y: _evaluated(slope, f, y), mean, sd, v)
            E, dv, b = one_field(found, near, known, known_averages(np.diag(sd**2), mean, v), slopes)
            H = mean + pair_z @ spread
            D, S = _pairs(slope, bend, y, c, mean, H, calibrated(H, pair_w, v, known), v, known)
            kink = _at_zero(mean, sd) * (at_zero[:, 1] - b * at_zero[:, 0]) + b * known.kink
            parts.append(Averages(both * D + np.diag(v * kink), both * S, dv, max(error, 0.0), (v * E)[:, None]))
        return parts

    def check(self) -> ReluOutputs:
        """The same averages by other random points."""
        return ReluOutputs(self.problem, self.teacher_readout, self.log2, 1 - self.seed)

    def coarser(self) -> ReluOutputs:
        return ReluOutputs(self.problem, self.teacher_readout, self.log2 - 1, self.seed)

    def finer(self) -> ReluOutputs | None:
        """A more accurate version, or None where the budget of points is spent."""
        if 2 ** (self.log2 + 2) * self.problem.student.units**2 > BUDGET:
            return None
        return ReluOutputs(self.problem, self.teacher_readout, self.log2 + 1, self.seed)
