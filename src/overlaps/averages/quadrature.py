"""Averages by quadrature, for any loss.

With C = L Lᵀ and h = L z, Stein's lemma gives D L = E[δ zᵀ], so no second derivative of the loss is needed; where
C is singular the missing directions are in the null space of every block's overlaps and D may be zero there. The second
derivative of softmax is made of its first, and needs no division by L.

For a mixture the same rule serves every component, h = mean_c + √s_c L z, and D = Σ_c p_c s_c D_c needs one division by
L, none by s_c.

A loss may depend on few combinations P h of the fields: softmax does not feel a shift common to all its fields, and the
output of linear units is one number. Then z are the coordinates of P h alone, P C Pᵀ = L Lᵀ, and the other fields are
put at their means given these, h = mean + C Pᵀ L⁻ᵀ z; no derivative of the loss is more than linear in them.

Points are those of `FieldRule`; kinks of activations and losses are where these say they are.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ..compiled.functions import kept, loop
from ..data.square_roots import cholesky, choleskys
from ..network.architectures import Committee, Softmax
from ..network.losses import Loss
from ..problem.statement import Problem
from .field_rule import FieldRule
from .panels import no_margin
from .result import Averages, by_component

Array = NDArray[np.float64]


@loop(fastmath={"reassoc", "contract"})
def _sums(kernel, value, z, w, H, K, c, v, u):  # pragma: no cover - compiled
    """E[δ zᵀ] (K, r), S (K, K), E[∂loss/∂v] (K,), error and E[δ] (K,) from points z, weights w and fields H.

    Some weights of random points are negative; an error is at least the smallest loss there is.
    """
    n, r = z.shape
    stein, S, dv, error, E = np.zeros((K, r)), np.zeros((K, K)), np.zeros(K), 0.0, np.zeros(K)
    delta, readout = np.empty(K), np.empty(K)
    least = np.inf
    for i in range(n):
        kernel(H[i, :K], H[i, K:], c, v, u, 0.0, delta, readout)
        loss = value(H[i, :K], H[i, K:], c, v, u)
        least = min(least, loss)
        error += w[i] * loss
        for k in range(K):
            scaled = w[i] * delta[k]
            E[k] += scaled
            dv[k] += w[i] * readout[k]
            for j in range(r):
                stein[k, j] += scaled * z[i, j]
            for l in range(k + 1):
                S[k, l] += scaled * delta[l]
    for k in range(K):
        for l in range(k):
            S[l, k] = S[k, l]
    return stein, S, dv, max(error, least), E


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


@kept(error_model="numpy", fastmath={"reassoc", "contract"})
def _softmax_moments(H, w, label):  # pragma: no cover - compiled
    """(S, E[δ], error) of softmax at fields H (points, K); the same as from its gradient, without a pass for each."""
    n, K = H.shape
    S, E, error = np.zeros((K, K)), np.zeros(K), 0.0
    delta = np.empty(K)
    for i in range(n):
        top, total = H[i, 0], 0.0
        for k in range(1, K):
            top = max(top, H[i, k])
        for k in range(K):
            delta[k] = np.exp(H[i, k] - top)
            total += delta[k]
        error += w[i] * (np.log(total) + top - H[i, label])  # each at least zero
        for k in range(K):
            delta[k] /= total
        delta[label] -= 1.0
        for k in range(K):
            E[k] += w[i] * delta[k]
            scaled = w[i] * delta[k]
            for l in range(k + 1):
                S[k, l] += scaled * delta[l]
    for k in range(K):
        for l in range(k):
            S[l, k] = S[k, l]
    return S, E, max(error, 0.0)


def _solve_stein(moment: Array, L: Array) -> Array:
    """D with D L = moment, zero in the directions that L lost."""
    D = np.zeros_like(moment)
    for j in range(len(L) - 1, -1, -1):
        if L[j, j] > 0:
            D[:, j] = (moment[:, j] - D[:, j + 1 :] @ L[j + 1 :, j]) / L[j, j]
    return D


class LossQuadrature:
    """Averages of any loss, over the components of any mixture.

    all_fields: whether `fields` shall have a coordinate for each of them, also where linear units need one for all.
    """

    def __init__(
        self, problem: Problem, teacher_readout: Array, rule: FieldRule | None = None, all_fields: bool = False
    ) -> None:
        self.problem, self.all_fields = problem, all_fields
        self.teacher_readout = np.ascontiguousarray(teacher_readout)
        student, teacher = problem.student, problem.teacher
        self.basis = (
            contrasts(student.units) if isinstance(student, Softmax) and problem.loss == "cross-entropy" else None
        )
        # a user's loss is a function of the fields alone: what the networks' activations are does not enter
        networks = [] if isinstance(problem.loss, Loss) else [n for n in (student, teacher) if isinstance(n, Committee)]
        self.is_linear = bool(networks) and not all_fields and all(n.activation == "linear" for n in networks)
        kinks, self.margin = problem.kinks
        if rule is None:
            sharpness = np.ones(len(kinks))
            if networks:
                sharpness = np.concatenate([np.full(n.units, n.g.sharpness) for n in networks])
            if self.is_linear or self.basis is not None:
                some = 1 if self.basis is None else self.basis.shape[1]
                kinks, sharpness = ((),) * some, sharpness[:some]
            joint = self.margin is not None
            rule = FieldRule(list(kinks), labelled=teacher is None, joint=joint, sharpness=sharpness)
        self.rule = rule
        self.name = f"quadrature ({self.rule.name})"
        self.default_accuracy, self.gain, self.jumps = self.rule.default_accuracy, self.rule.gain, self.rule.jumps
        self.many_panels = self.rule.has_panels and self.rule.fields > 2  # so that a state is dear
        if not problem.data.components.variances.any():
            self.name, self.default_accuracy, self.gain = "values at the means (no noise)", 1e-9, 3.0
            self.jumps = False

    def _with(self, rule: FieldRule) -> LossQuadrature:
        return LossQuadrature(self.problem, self.teacher_readout, rule, self.all_fields)

    def check(self) -> LossQuadrature:
        """The same averages by an independent rule of the same accuracy."""
        return self._with(self.rule.check())

    def drawn(self, points_set: int) -> LossQuadrature:
        """The same averages by another set of random points; sets of other numbers are independent."""
        return self._with(self.rule.drawn(points_set))

    def coarser(self) -> LossQuadrature:
        return self._with(self.rule.coarser())

    def finer(self) -> LossQuadrature | None:
        """A more accurate version, or None where the budget of points is spent."""
        better = self.rule.finer()
        return better and self._with(better)

    def _combinations(self, v: Array) -> Array | None:
        """Columns (K+M, r) of the combinations of fields that the loss depends on; None for all fields."""
        if not self.is_linear:
            return self.basis
        w = np.concatenate([v, -self.teacher_readout])
        return w[:, None] / max(float(np.linalg.norm(w)), 1e-300)

    def _factor(self, C: Array, P: Array | None) -> tuple[Array, Array]:
        """L of the fields that are integrated over, and the matrix that makes all K+M fields of these z."""
        if P is None:
            L = cholesky(C)
            return L, L
        L = cholesky(P.T @ C @ P)
        if self.basis is not None:
            return L, P @ L
        return L, C @ P / L[0, 0] if L[0, 0] > 0 else np.zeros_like(P)

    def _points(self, spread: Array, mean: Array, label: int, v: Array) -> tuple[Array, Array, Array]:
        """Nodes z, their weights and the fields mean + spread z (points, K+M); one point where there is no noise."""
        gain = float(np.abs(v).max())
        at = (v.size, label, v, self.teacher_readout)
        z, w, _ = self.rule.points(spread, mean, gain, self.margin or no_margin, at, in_order=False)
        return z, w, mean + z @ spread.T

    def fields(self, C: Array, means: Array, v: Array) -> Iterator[tuple[float, float, int, Array, Array, Array]]:
        """For each component: weight, √variance, label, nodes z, weights of the nodes and fields (points, K+M)."""
        v = np.ascontiguousarray(v)
        _, spread = self._factor(C, self._combinations(v))
        if means.shape[1] == 0:
            means = np.zeros((len(C), self.problem.data.components.weights.size))
        for p, s, label, mean in zip(*self.problem.data.components, means.T, strict=True):
            root = float(np.sqrt(s))
            yield float(p), root, label.item(), *self._points(root * spread, mean, label.item(), v)

    def component_fields(self, C: Array, mean: Array, label: int, v: Array) -> tuple[Array, Array, Array, Array]:
        """For fields of covariance C (K+M, K+M) and mean (K+M,): L, nodes z, their weights and fields (points, K+M).

        L Lᵀ is the covariance of the fields that are integrated over, which are L z; see `_factor`.
        """
        v = np.ascontiguousarray(v)
        L, spread = self._factor(C, self._combinations(v))
        return L, *self._points(spread, mean, label, v)

    def _moments(self, z: Array, w: Array, H: Array, label: int, v: Array) -> tuple[Array, Array, Array, float, Array]:
        """E[δ zᵀ], S, dv, error and E[δ] of one component, from its points; of softmax without the first."""
        if self.basis is not None:
            S, E, error = _softmax_moments(H, w, label)
            return np.zeros((v.size, z.shape[1])), S, np.zeros(v.size), error, E
        law, u = self.problem, self.teacher_readout
        stein, S, dv, error, E = _sums(law.gradient, law.value, z, w, H, v.size, label, v, u)
        if law.label_noise:
            assert isinstance(law.student, Committee)
            slope = np.vectorize(law.student.g.compiled[1], otypes=[float])
            rows = v * slope(H[:, : v.size])
            S += law.label_noise**2 * (rows * w[:, None]).T @ rows
        return stein, S, dv, float(error), E

    @staticmethod
    def _derivative(stein: Array, L: Array, P: Array | None) -> Array:
        """D (K, K+M) from E[δ zᵀ]."""
        D = _solve_stein(stein, L)
        return D if P is None else D @ P.T

    def __call__(self, C: Array, v: Array, means: Array | None = None) -> Averages:
        K = v.size
        means = np.zeros((len(C), 0)) if means is None else means
        P = self._combinations(v)
        L, _ = self._factor(C, P)
        stein, S, dv, error = np.zeros((K, len(L))), np.zeros((K, K)), np.zeros(K), 0.0
        E: list[Array] = []
        D = np.zeros((K, K))
        for p, root, label, z, w, H in self.fields(C, means, v):
            moments = self._moments(z, w, H, label, v)
            stein += p * root * moments[0]
            S += p * root**2 * moments[1]
            if self.basis is not None:
                D += p * root**2 * softmax_derivative(moments[1], moments[4], label)
            dv += p * moments[2]
            error += p * moments[3]
            E.append(p * moments[4])
        D = D if self.basis is not None else self._derivative(stein, L, P)
        return Averages(D, S, dv, error, np.array(E).T[:, : means.shape[1]])

    def each(self, C: Array, v: Array, means: Array) -> list[Averages]:
        """Averages over each component by itself, unweighted, for fields of covariance C[c] and mean means[:, c].

        C (P, K+M, K+M), v (K,), means (K+M, P); D is E[∂δ/∂h], zero in directions in which fields do not vary, S is
        E[δ δᵀ] with label noise, E (K, 1) is E[δ].
        """
        v = np.ascontiguousarray(v)
        parts: list[Averages] = []
        P = self._combinations(v)
        for c, mean, label in zip(C, means.T, self.problem.data.components.labels.tolist(), strict=True):
            L, spread = self._factor(c, P)
            stein, S, dv, error, E = self._moments(*self._points(spread, mean, label, v), label, v)
            D = softmax_derivative(S, E, label) if self.basis is not None else self._derivative(stein, L, P)
            parts.append(Averages(D, S, dv, error, E[:, None]))
        return parts

    def each_error(self, C: Array, v: Array, means: Array) -> Array:
        """Generalisation error in each component, (P,); C (P, K+M, K+M), v (K,), means (K+M, P)."""
        v = np.ascontiguousarray(v)
        out, P = np.empty(len(C)), self._combinations(v)
        for i, (c, mean, label) in enumerate(
            zip(C, means.T, self.problem.data.components.labels.tolist(), strict=True)
        ):
            _, w, H = self._points(self._factor(c, P)[1], mean, label, v)
            values = _values(self.problem.value, H, v.size, label, v, self.teacher_readout)
            out[i] = max(w @ values, values.min())
        return out

    def errors(self, C: Array, v: Array, means: Array | None = None) -> Array:
        """Generalisation error for a batch: C (n, K+M, K+M) or (n, P, K+M, K+M), v (n, K), means (n, K+M, P)."""
        weights, variances, _ = self.problem.data.components
        if means is None or means.shape[2] == 0:
            means = np.zeros((len(C), C.shape[-1], weights.size))
        each = by_component(C, variances)
        if not self.rule.is_tensor or self.rule.has_panels or self.is_linear or len(C) == 1:
            return np.array([weights @ self.each_error(each[i], v[i], means[i]) for i in range(len(C))])
        total, v = np.zeros(len(C)), np.ascontiguousarray(v)
        for c, (weight, label) in enumerate(zip(weights, self.problem.data.components.labels, strict=True)):
            total += weight * self._error_batch(each[:, c], v, means[:, :, c], label.item())
        return total

    def _error_batch(self, C: Array, v: Array, means: Array, label: int) -> Array:
        """Error of one component for a batch: C (n, K+M, K+M), v (n, K), means (n, K+M); a few lattices serve all."""
        basis = np.eye(C.shape[-1]) if self.basis is None else self.basis
        spread = basis @ choleskys(basis.T @ C @ basis)
        steps = self.rule.steps(spread, np.abs(v).max(1))
        _, first, which = np.unique(steps, axis=0, return_index=True, return_inverse=True)
        out = np.empty(len(C))
        for key, i in enumerate(first):
            some = which.ravel() == key
            z, w = self.rule.stepped(steps[i])
            out[some] = _many_values(
                self.problem.value, z, w, spread[some], means[some], v.shape[1], label, v[some], self.teacher_readout
            )
        return out


def softmax_derivative(S: Array, E: Array, label: int) -> Array:
    """E[∂δ/∂λ] = E[diag π − π πᵀ] from S = E[δ δᵀ] and E = E[δ], with π = δ + y and y the label as a unit vector."""
    y = np.zeros(len(E))
    y[label] = 1.0
    return np.diag(E + y) - (S + np.outer(E, y) + np.outer(y, E) + np.outer(y, y))


def contrasts(K: int) -> Array:
    """Orthonormal columns (K, K−1) orthogonal to (1, …, 1)."""
    basis = np.triu(np.ones((K, K - 1)))
    for j in range(K - 1):
        basis[j + 1, j] = -(j + 1.0)
    return basis / np.linalg.norm(basis, axis=0)
