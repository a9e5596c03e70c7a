"""Averages by quadrature, for any activation and any loss.

With C = L Lᵀ and h = L z, Stein's lemma gives D L = E[δ zᵀ], so no second derivative of the loss is needed; where
C is singular the missing directions are in the null space of every block's overlaps and D may be zero there.

For a mixture the same points serve every component, h = mean_c + √s_c L z, and D = Σ_c p_c s_c D_c needs one
division by L, none by s_c. Softmax does not feel a shift common to all its fields, so it is integrated over the K − 1
others: λ = mean + H z with the columns of H orthogonal to (1, …, 1).

The square loss of two committees factorises: everything but S is made of two-field averages, which are done one pair
at a time to high accuracy; S needs up to four fields and uses the rule in all K+M dimensions, as other losses do for
all. Rules: tensor up to four fields, frozen Sobol points beyond (`rules`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri, gamma

from ..activations import activation
from ..compiled.functions import loop
from ..compiled.named import named
from ..data.square_roots import cholesky, choleskys
from ..losses import Loss
from ..problem.network import Committee, Softmax
from ..problem.statement import Problem
from . import rules
from .result import Averages, by_component

Array = NDArray[np.float64]

BUDGET = 1_200_000  # points per average
LABEL_BUDGET = 30_000  # points per component, to begin with
# for d fields, to begin with: spacing of the nodes, and the probability left outside the ball that holds them; beyond
# these d, a tensor grid of useful accuracy no longer fits the budget
TENSOR_START = {1: (0.15, 1e-15), 2: (0.2, 1e-14), 3: (0.3, 1e-10), 4: (0.42, 1e-8)}
LABEL_TENSOR_START = {1: (0.5, 1e-12), 2: (0.7, 1e-11), 3: (0.9, 1e-9), 4: (1.0, 1e-7)}
LABEL_KINK_START = {1: (0.3, 1e-12), 2: (0.4, 1e-10)}  # panels that meet at a kink have radius/spacing nodes each
SOBOL_START, LABEL_SOBOL_START, SOBOL_LIMIT = 13, 11, 17  # log2 of the number of points, before mirroring


@loop()
def _gradients(kernel, H, K, c, v, u):  # pragma: no cover - compiled
    n = H.shape[0]
    dlam, dv = np.empty((n, K)), np.empty((n, K))
    for i in range(n):
        kernel(H[i, :K], H[i, K:], c, v, u, 0.0, dlam[i], dv[i])
    return dlam, dv


@loop()
def _values(value, H, K, c, v, u):  # pragma: no cover - compiled
    out = np.empty(H.shape[0])
    for i in range(out.size):
        out[i] = value(H[i, :K], H[i, K:], c, v, u)
    return out


@loop(nogil=True)
def _many_values(value, z, w, L, means, K, c, v, u):  # pragma: no cover - compiled
    """Averages of the loss for many laws of the fields, mean + L z, at the same nodes: L (n, d, q), means (n, d)."""
    n, d, q = L.shape
    h = np.empty(d)
    out = np.empty(n)
    for i in range(n):
        total = 0.0
        for j in range(len(w)):
            for a in range(d):
                h[a] = means[i, a]
                for b in range(q):
                    h[a] += L[i, a, b] * z[j, b]
            total += w[j] * value(h[:K], h[K:], c, v[i], u)
        out[i] = total
    return out


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


class FieldRule:
    """Points for d fields at once; `refinement` 0 to begin with, each step finer or coarser.

    labelled: for losses of labels, whose fields vary over little of the width of a logistic function; they begin with
    fewer points, and panels that meet at kinks are not worth their number beyond two fields.
    """

    def __init__(self, kinks: list[tuple[float, ...]], refinement: int = 0, labelled: bool = False) -> None:
        self.kinks = kinks
        self.refinement, self.labelled = refinement, labelled
        self._moved: NDArray[np.int64] | None = None
        d = self.fields = len(kinks)
        start = TENSOR_START
        if labelled:
            start = LABEL_KINK_START if any(kinks) else LABEL_TENSOR_START
        self.is_tensor = d in start
        if self.is_tensor:
            spacing, outside = start[d]
            self.spacing = spacing / 1.3**refinement
            self.radius = float(np.sqrt(chdtri(d, outside / 100.0**refinement)))
            self.name = f"tensor rule, spacing {self.spacing:.2g}"
        else:
            self.log2 = (LABEL_SOBOL_START if labelled else SOBOL_START) + refinement
            self.name = f"Sobol, 2^{self.log2 + 1} points"

    def points(self, L: Array, shift: Array | None = None, gain: float = 1.0) -> tuple[Array, Array]:
        """Nodes (points, d) of z and weights (points,), for fields shift + L z, amplified by `gain` in the output."""
        if not self.is_tensor:
            return rules.sobol(self.fields, self.log2)
        kinks, spacing = self.kinks, self.spacing
        if shift is not None and any(kinks):
            kinks = [tuple(k - s for k in own) for own, s in zip(kinks, shift.tolist(), strict=True)]
        if self.labelled:
            # a logistic function of σ z has poles π/σ from the real axis, and nodes have to be closer than that
            if not any(kinks):
                return self._narrowed(self.narrowing(L, np.array(gain)))
            spacing /= min(max(gain * float(np.linalg.norm(L, axis=0).max()), 1.0), 4.0)
        return rules.tensor(L, kinks, spacing, self.radius)

    def narrowing(self, L: Array, gain: Array) -> Array:
        """How many times the spacing of each variable is narrowed, (..., q), for L (..., d, q) and gain (...).

        In steps of a factor, so that grids are few and do not change with every width; with the same steps they are the
        same.
        """
        if not self.labelled:
            return np.zeros((*L.shape[:-2], L.shape[-1]))
        width = np.maximum(gain[..., None] * np.linalg.norm(L, axis=-2), 1.0)
        return np.ceil(np.log(width) / np.log(1.25))

    def _narrowed(self, times: Array) -> tuple[Array, Array]:
        return rules.smooth_grid(self._affordable(self.spacing / 1.25**times), self.radius)

    def _affordable(self, spacings: Array) -> tuple[float, ...]:
        """The spacings, all larger by a factor where there would be too many points; finer rules may have more."""
        d = self.fields
        points = np.pi ** (d / 2) / gamma(d / 2 + 1) * np.prod(self.radius / spacings)
        budget = LABEL_BUDGET * 1.3 ** (d * self.refinement)
        return tuple((spacings * max(1.0, points / budget) ** (1 / d)).tolist())

    def ordered_points(self, L: Array) -> tuple[Array, Array, NDArray[np.int64]]:
        """`points`, and for each the first coordinate that differs from the point before."""
        z, w = self.points(L)
        if any(self.kinks):
            return z, w, rules.first_change(z)
        if self._moved is None:
            self._moved = rules.first_change(z)
        return z, w, self._moved

    @property
    def default_accuracy(self) -> float:
        """Relative accuracy to ask for where the user names none."""
        return 1e-6 if self.is_tensor else 1e-3

    @property
    def jumps(self) -> bool:
        """Whether averages jump a little as points that do not move with the fields cross a kink."""
        return not self.is_tensor and any(self.kinks)

    @property
    def gain(self) -> float:
        """What a refinement must gain on a smooth integrand; a tensor rule that gains less has met a kink."""
        return 3.0 if self.is_tensor else 1.0

    def coarser(self) -> FieldRule:
        return FieldRule(self.kinks, self.refinement - 1, self.labelled)

    def finer(self) -> FieldRule | None:
        """The next refinement, or None where the budget of points is spent."""
        better = FieldRule(self.kinks, self.refinement + 1, self.labelled)
        if not self.is_tensor:
            return better if better.log2 <= SOBOL_LIMIT else None
        d = self.fields
        if self.labelled and LABEL_BUDGET * 1.3 ** (d * better.refinement) > BUDGET:
            return None
        volume = np.pi ** (d / 2) / gamma(d / 2 + 1)
        return better if volume * (better.radius / better.spacing) ** d <= BUDGET else None


def _solve_stein(moment: Array, L: Array) -> Array:
    """D with D L = moment, zero in the directions that L lost."""
    D = np.zeros_like(moment)
    for j in range(len(L) - 1, -1, -1):
        if L[j, j] > 0:
            D[:, j] = (moment[:, j] - D[:, j + 1 :] @ L[j + 1 :, j]) / L[j, j]
    return D


class LossQuadrature:
    """Averages of any loss, over the components of any mixture."""

    def __init__(self, problem: Problem, teacher_readout: Array, rule: FieldRule | None = None) -> None:
        self.problem = problem
        self.teacher_readout = np.ascontiguousarray(teacher_readout)
        K, M = problem.student.units, problem.teacher_units
        self.basis = contrasts(K) if isinstance(problem.student, Softmax) and problem.loss == "cross-entropy" else None
        if rule is None:
            labelled = problem.teacher is None
            kinks: list[tuple[float, ...]] = [()] * (K + M if self.basis is None else K - 1)
            # a user's loss is a function of the fields alone: what the networks' activations are does not enter
            if isinstance(problem.student, Committee) and not isinstance(problem.loss, Loss):
                kinks = [problem.student.g.kinks] * K
                if problem.teacher is not None:
                    kinks = kinks + [problem.teacher.g.kinks] * M
            rule = FieldRule(kinks, labelled=labelled)
        self.rule = rule
        self.name = f"quadrature ({self.rule.name})"
        self.default_accuracy, self.gain, self.jumps = self.rule.default_accuracy, self.rule.gain, self.rule.jumps
        if not problem.data.components.variances.any():
            self.name, self.default_accuracy, self.gain = "values at the means (no noise)", 1e-9, 3.0
            self.jumps = False

    def coarser(self) -> LossQuadrature:
        return LossQuadrature(self.problem, self.teacher_readout, self.rule.coarser())

    def finer(self) -> LossQuadrature | None:
        """A more accurate version, or None where the budget of points is spent."""
        better = self.rule.finer()
        return better and LossQuadrature(self.problem, self.teacher_readout, better)

    def _factor(self, C: Array) -> tuple[Array, Array]:
        """L of the fields that are integrated over, and the matrix that makes all K+M fields of these z."""
        if self.basis is None:
            L = cholesky(C)
            return L, L
        L = cholesky(self.basis.T @ C @ self.basis)
        return L, self.basis @ L

    def _points(self, L: Array, spread: Array, mean: Array, gain: float) -> tuple[Array, Array, Array]:
        """Nodes z, their weights and the fields mean + spread z (points, K+M); one point where there is no noise."""
        z, w = self.rule.points(L, mean, gain) if L.any() else (np.zeros((1, len(L))), np.ones(1))
        return z, w, mean + z @ spread.T

    def fields(self, C: Array, means: Array, v: Array) -> Iterator[tuple[float, float, int, Array, Array, Array]]:
        """For each component: weight, √variance, label, nodes z, weights of the nodes and fields (points, K+M)."""
        gain = float(np.abs(v).max())
        L, spread = self._factor(C)
        if means.shape[1] == 0:
            means = np.zeros((len(C), self.problem.data.components.weights.size))
        for p, s, label, mean in zip(*self.problem.data.components, means.T, strict=True):
            root = float(np.sqrt(s))
            yield float(p), root, label.item(), *self._points(root * L, root * spread, mean, gain)

    def _moments(self, z: Array, w: Array, H: Array, label: int, v: Array) -> tuple[Array, Array, Array, float, Array]:
        """E[δ zᵀ], S, dv, error and E[δ] of one component, from its points."""
        dlam, dreadout = _gradients(self.problem.gradient, H, v.size, label, v, self.teacher_readout)
        weighted = dlam * w[:, None]
        S = weighted.T @ dlam
        if self.problem.label_noise:
            assert isinstance(self.problem.student, Committee)
            slope = np.vectorize(self.problem.student.g.compiled[1], otypes=[float])
            rows = v * slope(H[:, : v.size])
            S += self.problem.label_noise**2 * (rows * w[:, None]).T @ rows
        error = float(w @ _values(self.problem.value, H, v.size, label, v, self.teacher_readout))
        return weighted.T @ z, S, w @ dreadout, error, weighted.sum(0)

    def _derivative(self, stein: Array, L: Array) -> Array:
        """D (K, K+M) from E[δ zᵀ]."""
        D = _solve_stein(stein, L)
        return D if self.basis is None else D @ self.basis.T

    def __call__(self, C: Array, v: Array, means: Array | None = None) -> Averages:
        K = v.size
        means = np.zeros((len(C), 0)) if means is None else means
        L, _ = self._factor(C)
        stein, S, dv, error = np.zeros((K, len(L))), np.zeros((K, K)), np.zeros(K), 0.0
        E: list[Array] = []
        for p, root, label, z, w, H in self.fields(C, means, v):
            moments = self._moments(z, w, H, label, v)
            stein += p * root * moments[0]
            S += p * root**2 * moments[1]
            dv += p * moments[2]
            error += p * moments[3]
            E.append(p * moments[4])
        return Averages(self._derivative(stein, L), S, dv, error, np.array(E).T[:, : means.shape[1]])

    def each(self, C: Array, v: Array, means: Array) -> list[Averages]:
        """Averages over each component by itself, unweighted, for fields of covariance C[c] and mean means[:, c].

        C (P, K+M, K+M), v (K,), means (K+M, P); D is E[∂δ/∂h], zero in directions in which fields do not vary, S is
        E[δ δᵀ] with label noise, E (K, 1) is E[δ].
        """
        gain = float(np.abs(v).max())
        parts: list[Averages] = []
        for c, mean, label in zip(C, means.T, self.problem.data.components.labels, strict=True):
            L, spread = self._factor(c)
            stein, S, dv, error, E = self._moments(*self._points(L, spread, mean, gain), label.item(), v)
            parts.append(Averages(self._derivative(stein, L), S, dv, error, E[:, None]))
        return parts

    def each_error(self, C: Array, v: Array, means: Array) -> Array:
        """Generalisation error in each component, (P,); C (P, K+M, K+M), v (K,), means (K+M, P)."""
        gain, v = float(np.abs(v).max()), np.ascontiguousarray(v)
        out = np.empty(len(C))
        for i, (c, mean, label) in enumerate(zip(C, means.T, self.problem.data.components.labels, strict=True)):
            _, w, H = self._points(*self._factor(c), mean, gain)
            out[i] = w @ _values(self.problem.value, H, v.size, label.item(), v, self.teacher_readout)
        return out

    def errors(self, C: Array, v: Array, means: Array | None = None) -> Array:
        """Generalisation error for a batch: C (n, K+M, K+M) or (n, P, K+M, K+M), v (n, K), means (n, K+M, P)."""
        weights, variances, _ = self.problem.data.components
        if means is None or means.shape[2] == 0:
            means = np.zeros((len(C), C.shape[-1], weights.size))
        each = by_component(C, variances)
        if not self.rule.is_tensor or any(self.rule.kinks) or len(C) == 1:
            return np.array([weights @ self.each_error(each[i], v[i], means[i]) for i in range(len(C))])
        total, v = np.zeros(len(C)), np.ascontiguousarray(v)
        for c, (weight, label) in enumerate(zip(weights, self.problem.data.components.labels, strict=True)):
            total += weight * self._error_batch(each[:, c], v, means[:, :, c], label.item())
        return total

    def _error_batch(self, C: Array, v: Array, means: Array, label: int) -> Array:
        """Error of one component for a batch: C (n, K+M, K+M), v (n, K), means (n, K+M); a few grids serve all."""
        basis = np.eye(C.shape[-1]) if self.basis is None else self.basis
        L = choleskys(basis.T @ C @ basis)
        gain = np.abs(v).max(1)
        varies = np.abs(L).max(axis=(1, 2)) > 0
        narrow = np.where(varies[:, None], self.rule.narrowing(L, gain), -1.0)
        _, first, which = np.unique(narrow, axis=0, return_index=True, return_inverse=True)
        out = np.empty(len(C))
        for key, i in enumerate(first):
            some = which.ravel() == key
            z, w, _ = self._points(L[i], L[i], np.zeros(L.shape[1]), float(gain[i]))
            out[some] = _many_values(
                self.problem.value, z, w, basis @ L[some], means[some], v.shape[1], label, v[some],
                self.teacher_readout,
            )  # fmt: skip
        return out


def contrasts(K: int) -> Array:
    """Orthonormal columns (K, K−1) orthogonal to (1, …, 1)."""
    basis = np.triu(np.ones((K, K - 1)))
    for j in range(K - 1):
        basis[j + 1, j] = -(j + 1.0)
    return basis / np.linalg.norm(basis, axis=0)


class SquareQuadrature:
    """Averages of the square loss for any two activations."""

    def __init__(self, problem: Problem, teacher_readout: Array, rule: FieldRule | None = None) -> None:
        self.problem = problem
        self.teacher_readout = np.ascontiguousarray(teacher_readout)
        student, teacher = problem.student, problem.teacher
        assert isinstance(student, Committee) and teacher is not None
        self.networks = student, teacher
        self.kinks = [student.g.kinks] * student.units + [teacher.g.kinks] * teacher.units
        self.rule = rule or FieldRule(self.kinks)
        self.name = f"quadrature ({self.rule.name})"
        self.default_accuracy, self.gain, self.jumps = self.rule.default_accuracy, self.rule.gain, self.rule.jumps
        self._pair_rules: dict[tuple[tuple[float, ...], ...], FieldRule] = {}
        self._teacher_products: tuple[bytes, Array] = (b"", np.empty(0))

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
        rule = self._pair_rule(tuple(self.kinks[i] for i in chosen))
        L = cholesky(C[np.ix_(chosen, chosen)])
        both, slopes, stein = _pair_moments(*self._activation(a), *self._activation(b), L, *rule.ordered_points(L))
        if L[0, 0] == 0:
            return both, slopes, 0.0  # a field without variance: g'' would multiply a weight that is zero
        along = 1.0 if a == b else L[1, 0] / L[0, 0]
        return both, slopes, stein / L[0, 0] - along * slopes

    def _pair_rule(self, kinks: tuple[tuple[float, ...], ...]) -> FieldRule:
        if kinks not in self._pair_rules:
            self._pair_rules[kinks] = FieldRule(list(kinks), self.rule.refinement)
        return self._pair_rules[kinks]

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
        return Averages(D, S, dv, float(error), np.zeros((K, 0)))

    def _second_moment(self, C: Array, v: Array) -> Array:
        L = cholesky(C)
        (g, dg), (g_teacher, _) = map(_named, self.networks)
        moment = _square_moment(g, dg, g_teacher, L, *self.rule.ordered_points(L), v, self.teacher_readout)
        return np.outer(v, v) * moment

    def errors(self, C: Array, v: Array, means: Array | None = None) -> Array:
        """Generalisation error for a batch: C (n, K+M, K+M), v (n, K)."""
        out = np.empty(len(C))
        for i, (c, readout) in enumerate(zip(C, v, strict=True)):
            w = np.concatenate([readout, -self.teacher_readout])
            out[i] = 0.5 * w @ self._products(c, readout.size) @ w
        return out
