"""What averages of a fitted activation lack, for more fields than a lattice has room for.

With ĝ the sum of error functions fitted to g, all averages but S are of two fields, which lattices do to high accuracy.
S is corrected by the difference of two averages over the same random points z_i of weights w_i,

    S ≈ S[ĝ] + Σ_i w_i (s(g, z_i) − s(ĝ, z_i)),

with S[ĝ] in closed form. The points are off by some hundredths of what they average, which is as small as the largest
error of the fit: they do not tell S to that error by themselves, but they tell how large it is.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..compiled.functions import kept
from ..data.square_roots import cholesky
from ..problem.statement import Problem
from .result import Averages, over_components
from .square_quadrature import SquareQuadrature
from .sum_form import SumForm

Array = NDArray[np.float64]


@kept(error_model="numpy")
def value(x, g):  # pragma: no cover - compiled
    """The sum of `Terms` g at x; a modulus is E[|x + r ξ|]."""
    total = g.constant + g.linear * x
    for i in range(g.steps.size):
        total += g.steps[i] * math.erf(x / math.sqrt(2 * g.widths[i]))
    for i in range(g.moduli.size):
        r = g.moduli_widths[i]
        if r > 0.0:
            smooth = math.sqrt(2 * r / math.pi) * math.exp(-0.5 * x * x / r)
            total += g.moduli[i] * (x * math.erf(x / math.sqrt(2 * r)) + smooth)
        else:
            total += g.moduli[i] * abs(x)
    return total


@kept(error_model="numpy")
def slope(x, g):  # pragma: no cover - compiled
    """Its derivative, of a sum without moduli."""
    total = g.linear
    for i in range(g.steps.size):
        total += g.steps[i] * math.sqrt(2 / (math.pi * g.widths[i])) * math.exp(-0.5 * x * x / g.widths[i])
    return total


@kept(error_model="numpy")
def square_moment(g, h, L, z, w, v, u):  # pragma: no cover - compiled
    """E[g'_k g'_l Δ²], (K, K), of sums g of students and h of teachers over the points z with weights w."""
    K, d = v.size, z.shape[1]
    out, slopes = np.zeros((K, K)), np.zeros(K)
    for i in range(z.shape[0]):
        delta = 0.0
        for a in range(d):
            field = 0.0
            for j in range(a + 1):
                field += L[a, j] * z[i, j]
            if a < K:
                delta += v[a] * value(field, g)
                slopes[a] = slope(field, g)
            else:
                delta -= u[a - K] * value(field, h)
        for k in range(K):
            for l in range(K):
                out[k, l] += w[i] * delta * delta * slopes[k] * slopes[l]
    return out


class Corrected:
    """The averages of a fit with its error taken off: what judges the fit beyond four fields."""

    def __init__(self, problem: Problem, how: SumForm) -> None:
        self.square = SquareQuadrature(problem, how.teacher_readout)
        self.fit = SumForm(how.student, how.teacher, how.teacher_readout, 0.0, how.components, how.fit_terms)
        self.name = f"{self.square.name} of what fits leave"

    def __call__(self, C: Array, v: Array, means: Array | None = None) -> Averages:
        """Averages at field covariance C (K+M, K+M) and readout v (K,); components differ in their variances alone."""
        weights, variances, _ = self.fit.components
        parts = [replace(self._one(s * C, v), E=np.zeros((v.size, 1))) for s in variances.tolist()]
        return replace(over_components(parts, weights, variances), E=np.zeros((v.size, 0)))

    def _one(self, C: Array, v: Array) -> Averages:
        points, fit = self.square(C, v), self.fit.single(C, v)
        L, u = cholesky(C), self.square.teacher_readout
        z, w, _ = self.square.rule.points(L)
        by_points = np.outer(v, v) * square_moment(self.fit.g, self.fit.h, L, z, w, v, u)
        return replace(points, S=points.S + (fit.S - by_points))
