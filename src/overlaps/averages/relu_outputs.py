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
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from ..compiled.functions import kept, loop
from ..compiled.named import named
from ..losses import OutputLoss, loss
from ..losses.output import outer
from ..problem.network import Committee
from ..problem.statement import Problem
from . import rules
from .bivariate import both_positive, density, positive
from .quadrature import LossQuadrature
from .result import Averages, over_components
from .shifted import error as squared_output

Array = NDArray[np.float64]
START = 8  # log2 of the number of points, before mirroring
BUDGET = 1_700_000  # points times pairs of units
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


@loop(error_model="numpy")
def _averages(value, slope, bend, y, C, mean, H, w, v):  # pragma: no cover - compiled
    """(D, S, dv, error, E[δ]) of one component from its points H (points, K) and their weights."""
    n, K = H.shape
    D, S, dv, E, error = np.zeros((K, K)), np.zeros((K, K)), np.zeros(K), np.zeros(K), 0.0
    along, rest, left, at_zero = np.zeros((K, K)), np.zeros((K, K, K)), np.zeros((K, K)), np.zeros(K)
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
    moved, chances = np.empty(K), np.zeros((K, K))
    places = np.zeros(K)
    for i in range(n):
        h = H[i]
        error += w[i] * value(_output(v, h), y)
        for k in range(K):
            if C[k, k] > 0.0:
                at_zero[k] += w[i] * slope(_moved_output(v, h, along[k], -h[k]), y)
            chance, place = _reflected(h[k], mean[k], C[k, k])
            if chance == 0.0:
                continue
            for j in range(K):
                moved[j] = h[j] + (place - h[k]) * along[k, j]
            f = _output(v, moved)
            first, weight = slope(f, y), w[i] * chance
            chances[k, k] += weight
            places[k] += weight * place
            E[k] += weight * first
            dv[k] += weight * place * first
            S[k, k] += weight * first * first
            D[k, k] += weight * bend(f, y)
            for l in range(k):
                centre = mean[l] + along[k, l] * (place - mean[k])
                again, there = _reflected(moved[l], centre, left[k, l])
                f = _moved_output(v, moved, rest[k, l], there - moved[l])
                first = slope(f, y)
                chances[k, l] += weight * again
                S[k, l] += weight * again * first * first
                D[k, l] += weight * again * bend(f, y)
    for k in range(K):
        sd = math.sqrt(max(C[k, k], 0.0))
        # chances and places are known: what is left to the points is ℓ' and ℓ'' given that fields are positive
        exact = positive(mean[k] / sd) if sd > 0.0 else (1.0 if mean[k] > 0.0 else 0.0)
        ratio = exact / chances[k, k] if chances[k, k] > 0.0 else 0.0
        E[k] *= ratio
        dv[k] *= ratio
        if sd > 0.0 and exact > 1e-300:
            dv[k] += (mean[k] * exact + sd * density(mean[k] / sd) - ratio * places[k]) * E[k] / exact
        E[k] *= v[k]
        S[k, k] *= ratio * v[k] * v[k]
        D[k, k] *= ratio * v[k] * v[k]
        if sd > 0.0:
            D[k, k] += v[k] * density(mean[k] / sd) / sd * at_zero[k]
        for l in range(k):
            other = math.sqrt(max(C[l, l], 0.0))
            if sd > 0.0 and other > 0.0 and chances[k, l] > 0.0:
                r = min(1.0, max(-1.0, C[k, l] / sd / other))
                ratio = both_positive(mean[k] / sd, mean[l] / other, r, (1.0 - r) * (1.0 + r)) / chances[k, l]
            else:
                ratio = 1.0
            S[k, l] *= ratio * v[k] * v[l]
            D[k, l] *= ratio * v[k] * v[l]
            S[l, k], D[l, k] = S[k, l], D[k, l]
    return D, S, dv, error, E


def calibrated(H: Array, w: Array, C: Array, mean: Array, v: Array) -> Array:
    """Weights of the points, as near to w as can be, for which the means of f and f² are what they are.

    Both are known in closed form, and most of what varies in ℓ' and ℓ'' from point to point is a function of them.
    """
    active = np.maximum(H, 0.0)
    f = active @ v
    sd = np.sqrt(np.maximum(np.diag(C), 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(sd > 0, mean / sd, np.where(mean > 0, np.inf, -np.inf))
    level = mean * ndtr(t) + sd * np.exp(-0.5 * t**2) / np.sqrt(2 * np.pi)
    first, second = float(v @ level), 2.0 * squared_output(2, C, mean, v)
    spread = np.sqrt(max(second - first**2, 0.0))
    if not spread > 1e-9 * max(abs(first), 1e-300):
        return w
    x = (f - first) / spread
    features = np.stack([np.ones_like(x), x, x**2 - 1.0], axis=1)
    weighted = features * w[:, None]
    short = np.array([1.0, 0.0, 0.0]) - weighted.sum(0)
    return w * (1.0 + features @ np.linalg.solve(features.T @ weighted, short))


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

    def _nodes(self, K: int) -> tuple[Array, Array]:
        return rules.sobol(K, self.log2, 4000 + 100 * self.seed)

    def __call__(self, C: Array, v: Array, means: Array | None = None) -> Averages:
        weights, variances, _ = self.problem.data.components
        P = 0 if means is None else means.shape[1]
        at = means if means is not None and P else np.zeros((len(C), weights.size))
        found = over_components(self.each(variances[:, None, None] * C, v, at), weights, variances)
        return Averages(found.D, found.S, found.dv, found.error, found.E[:, :P])

    def each(self, C: Array, v: Array, means: Array) -> list[Averages]:
        """Averages over each component by itself, see `LossQuadrature.each`."""
        z, w = self._nodes(v.size)
        parts: list[Averages] = []
        v = np.ascontiguousarray(v)
        for c, mean, label in zip(C, means.T, self.problem.data.components.labels.tolist(), strict=True):
            c, mean = np.ascontiguousarray(c), np.ascontiguousarray(mean)
            H = mean + z @ self._factor(c, None)[1].T
            D, S, dv, error, E = _averages(*self.parts, float(label), c, mean, H, calibrated(H, w, c, mean, v), v)
            parts.append(Averages(D, S, dv, max(error, 0.0), E[:, None]))
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
