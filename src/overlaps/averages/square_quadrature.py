"""The square loss of two committees by quadrature, for any pair of activations.

It factorises: everything but S is made of two-field averages, which are done one pair at a time to high accuracy; S
needs up to four fields and uses the points of `FieldRule` in all K+M dimensions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..compiled.functions import loop
from ..compiled.named import named
from ..data.square_roots import cholesky
from ..network.activations import activation
from ..network.architectures import Committee
from ..problem.statement import Problem
from .field_rule import FieldRule
from .result import Averages

Array = NDArray[np.float64]


@loop()
def _pair_moments(g_a, dg_a, g_b, dg_b, L, z, w, moved):  # pragma: no cover - compiled
    """(E[g_a g_b], E[g'_a g'_b], E[g'_a g_b z_1]) for a = L_11 z_1, b = L_21 z_1 + L_22 z_2 (or b = a)."""
    d = z.shape[1]
    both, slopes, stein = 0.0, 0.0, 0.0
    first, slope, second = 0.0, 0.0, 0.0
    for i in range(z.shape[0]):
        if moved[i] == 0:
            first, slope = g_a(L[0, 0] * z[i, 0]), dg_a(L[0, 0] * z[i, 0])
        h = L[d - 1, 0] * z[i, 0]
        if d == 2:
            h += L[1, 1] * z[i, 1]
        second = g_b(h)
        both += w[i] * first * second
        slopes += w[i] * slope * dg_b(h)
        stein += w[i] * slope * second * z[i, 0]
    return both, slopes, stein


@loop()
def _square_moment(g, dg, g_teacher, L, z, w, moved, v, u):  # pragma: no cover - compiled
    """E[g'_k g'_l Δ²], (K, K), evaluating each activation only where its field has moved."""
    K, d = v.size, z.shape[1]
    out = np.zeros((K, K))
    value, slope = np.zeros(d), np.zeros(K)
    for i in range(z.shape[0]):
        for a in range(moved[i], d):
            h = 0.0
            for j in range(a + 1):
                h += L[a, j] * z[i, j]
            if a < K:
                value[a] = v[a] * g(h)
                slope[a] = dg(h)
            else:
                value[a] = -u[a - K] * g_teacher(h)
        delta = 0.0
        for a in range(d):
            delta += value[a]
        scale = w[i] * delta * delta
        for k in range(K):
            for l in range(k + 1):
                out[k, l] += scale * slope[k] * slope[l]
    for k in range(K):
        for l in range(k):
            out[l, k] = out[k, l]
    return out


def _part(name: str, part: str) -> Any:
    return activation(name).compiled[part == "derivative"]


def _named(network: Committee) -> tuple[Any, Any]:
    """g and g' of a network, compiled; by name where they have one."""
    if isinstance(network.activation, str):
        return named(_part, network.activation, "function"), named(_part, network.activation, "derivative")
    return network.g.compiled


class SquareQuadrature:
    """Averages of the square loss for any two activations."""

    def __init__(self, problem: Problem, teacher_readout: Array, rule: FieldRule | None = None) -> None:
        self.problem = problem
        self.teacher_readout = np.ascontiguousarray(teacher_readout)
        student, teacher = problem.student, problem.teacher
        assert isinstance(student, Committee) and teacher is not None
        self.networks = student, teacher
        self.kinks = [student.g.kinks] * student.units + [teacher.g.kinks] * teacher.units
        self.sharpness = np.repeat([student.g.sharpness, teacher.g.sharpness], [student.units, teacher.units])
        self.rule = rule or FieldRule(self.kinks, sharpness=self.sharpness)
        self.name = f"quadrature ({self.rule.name})"
        self.default_accuracy, self.gain, self.jumps = self.rule.default_accuracy, self.rule.gain, self.rule.jumps
        self._pair_rules: dict[tuple[int, ...], FieldRule] = {}
        self._teacher_products: tuple[bytes, Array] = (b"", np.empty(0))

    def check(self) -> SquareQuadrature:
        """The same averages by an independent rule of the same accuracy."""
        return SquareQuadrature(self.problem, self.teacher_readout, self.rule.check())

    def drawn(self, points_set: int) -> SquareQuadrature:
        """The same averages by another set of random points; sets of other numbers are independent."""
        return SquareQuadrature(self.problem, self.teacher_readout, self.rule.drawn(points_set))

    def coarser(self) -> SquareQuadrature:
        return SquareQuadrature(self.problem, self.teacher_readout, self.rule.coarser())

    def finer(self) -> SquareQuadrature | None:
        """A more accurate version, or None where the budget of points is spent."""
        better = self.rule.finer()
        return better and SquareQuadrature(self.problem, self.teacher_readout, better)

    def _activation(self, a: int) -> tuple[Any, Any]:
        student, teacher = self.networks
        return _named(student if a < student.units else teacher)

    def _pair(self, C: Array, a: int, b: int) -> tuple[float, float, float]:
        """(E[g_a g_b], E[g'_a g'_b], E[g''_a g_b]); the last by Stein's lemma in the first coordinate."""
        chosen = [a] if a == b else [a, b]
        rule = self._pair_rule(chosen)
        L = cholesky(C[np.ix_(chosen, chosen)])
        both, slopes, stein = _pair_moments(*self._activation(a), *self._activation(b), L, *rule.points(L))
        if L[0, 0] == 0:
            return both, slopes, 0.0  # a field without variance: g'' would multiply a weight that is zero
        along = 1.0 if a == b else L[1, 0] / L[0, 0]
        return both, slopes, stein / L[0, 0] - along * slopes

    def _pair_rule(self, chosen: list[int]) -> FieldRule:
        K = self.networks[0].units
        key = tuple(int(i >= K) for i in chosen)
        if key not in self._pair_rules:
            own, sharpness = [self.kinks[i] for i in chosen], self.sharpness[chosen]
            # where all fields at once take random points, pairs are still lattices or panels, and as fine as ever
            refinement = self.rule.refinement if self.rule.is_tensor else max(self.rule.refinement, 0)
            self._pair_rules[key] = FieldRule(own, refinement, sharpness=sharpness, shifted=self.rule.shifted)
        return self._pair_rules[key]

    def _products(self, C: Array, K: int) -> Array:
        """E[g_a g_b] for all fields, (K+M, K+M)."""
        F = len(C)
        G = np.empty((F, F))
        for a in range(K):
            for b in range(a, F):
                G[a, b] = G[b, a] = self._pair(C, a, b)[0]
        G[K:, K:] = self._teachers(C, K)
        return G

    def _teachers(self, C: Array, K: int) -> Array:
        """E[g_m g_n] among teachers; T never moves, so it is integrated once."""
        key = C[K:, K:].tobytes()
        if key != self._teacher_products[0]:
            F = len(C)
            G = np.array([[self._pair(C, a, b)[0] for b in range(K, F)] for a in range(K, F)])
            self._teacher_products = (key, G)
        return self._teacher_products[1]

    def __call__(self, C: Array, v: Array, means: Array | None = None) -> Averages:
        K, F = v.size, len(C)
        w = np.concatenate([v, -self.teacher_readout])
        pairs = np.array([[self._pair(C, k, a) for a in range(F)] for k in range(K)])
        products, slopes, curvatures = pairs[..., 0], pairs[..., 1], pairs[..., 2]
        dv = products @ w
        D = v[:, None] * w * slopes
        D[:, :K] += np.diag(v * (curvatures @ w))
        noise = self.problem.label_noise**2 * np.outer(v, v) * slopes[:, :K]
        S = self._second_moment(C, v) + (noise + noise.T) / 2
        u = self.teacher_readout
        error = 0.5 * (v @ dv - u @ (products[:, K:].T @ v) + u @ self._teachers(C, K) @ u)
        return Averages(D, S, dv, max(float(error), 0.0), np.zeros((K, 0)))

    def _second_moment(self, C: Array, v: Array) -> Array:
        L = cholesky(C)
        (g, dg), (g_teacher, _) = map(_named, self.networks)
        moment = _square_moment(g, dg, g_teacher, L, *self.rule.points(L), v, self.teacher_readout)
        return np.outer(v, v) * moment

    def errors(self, C: Array, v: Array, means: Array | None = None) -> Array:
        """Generalisation error for a batch: C (n, K+M, K+M), v (n, K)."""
        out = np.empty(len(C))
        for i, (c, readout) in enumerate(zip(C, v, strict=True)):
            w = np.concatenate([readout, -self.teacher_readout])
            out[i] = max(0.5 * float(w @ self._products(c, readout.size) @ w), 0.0)
        return out
