"""The square loss in closed form, from the pair and four-field averages of one activation.

With weights ω = (v, −u) over all K+M fields and Δ = Σ_a ω_a g_a,

    D_ka = v_k ( ω_a E[g'_k g'_a] + δ_ka Σ_b ω_b E[g''_k g_b] )
    S_kl = v_k v_l ( Σ_ab ω_a ω_b E[g'_k g'_l g_a g_b] + noise² E[g'_k g'_l] )
    E[∂loss/∂v_k] = Σ_a ω_a E[g_k g_a]            error = ½ Σ_ab ω_a ω_b E[g_a g_b]

Written with derivatives of g instead of the moments I3 = E[g'_k h_a g_b] (I3 = C_ka E[g''_k g_b] + C_ab E[g'_k g'_b],
by Stein's lemma) nothing is ever divided by a determinant that vanishes when student and teacher align.

Fields of a mixture have means, and a covariance for each component: these averages are in `shifted`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..compiled.functions import kept
from ..data.inputs import Components
from . import erf, linear, relu, shifted
from .result import Averages, by_component, over_components
from .rules import unit_rule

Array = NDArray[np.float64]
FAMILIES = {"erf": 0, "linear": 1, "relu": 2}


@kept(error_model="numpy")
def _pair(family, C, a, b):  # pragma: no cover - compiled
    if family == 0:
        return erf.pair(C, a, b)
    if family == 1:
        return linear.pair(C, a, b)
    return relu.pair(C, a, b)


@kept(error_model="numpy")
def _four(family, C, k, l, a, b, nodes, weights):  # pragma: no cover - compiled
    if nodes is not None:
        return relu.four(C, k, l, a, b, nodes, weights)
    if family == 0:
        return erf.four(C, k, l, a, b)
    return linear.four(C, k, l, a, b)


@kept(error_model="numpy")
def _error(family, C, w):  # pragma: no cover - compiled
    total = 0.0
    for a in range(w.size):
        total += 0.5 * w[a] * w[a] * _pair(family, C, a, a)[0]
        for b in range(a):
            total += w[a] * w[b] * _pair(family, C, a, b)[0]
    return total


@kept(error_model="numpy")
def _errors(family, C, v, u):  # pragma: no cover - compiled
    out = np.empty(C.shape[0])
    k = v.shape[1]
    w = np.empty(k + u.size)
    for m in range(u.size):  # loops compile faster than array expressions
        w[k + m] = -u[m]
    for i in range(C.shape[0]):
        for a in range(k):
            w[a] = v[i, a]
        out[i] = _error(family, C[i], w)
    return out


@kept(error_model="numpy")
def first_order(family, C, w, K, D, dv):  # pragma: no cover - compiled
    """Write D (K, K+M) and dv (K,) at field covariance C (K+M, K+M) and weights w = (v, −u)."""
    for k in range(K):
        self_term = 0.0
        dv[k] = 0.0
        for a in range(w.size):
            both, slopes, curvature = _pair(family, C, k, a)
            dv[k] += w[a] * both
            D[k, a] = w[k] * w[a] * slopes
            self_term += w[a] * curvature
        D[k, k] += w[k] * self_term


@kept(error_model="numpy")
def second_order(family, C, w, K, noise, nodes, weights, S):  # pragma: no cover - compiled
    """Write S (K, K), by far the longest of the averages."""
    F = w.size
    fields, scale = C, np.ones(F)
    if nodes is not None:
        fields, scale = relu.correlations(C)
    for k in range(K):
        for l in range(k + 1):
            total = noise**2 * _pair(family, C, k, l)[1]
            for a in range(F):
                w_a = w[a] * scale[a]
                total += w_a * w_a * _four(family, fields, k, l, a, a, nodes, weights)
                for b in range(a):
                    total += 2.0 * w_a * w[b] * scale[b] * _four(family, fields, k, l, a, b, nodes, weights)
            S[k, l] = S[l, k] = w[k] * w[l] * total


@kept(error_model="numpy")
def _each(family, C, means, w, K, noise, nodes, weights):  # pragma: no cover - compiled
    P, F = means.shape
    D, S = np.empty((P, K, F)), np.empty((P, K, K))
    dv, error, E = np.empty((P, K)), np.empty(P), np.empty((P, K))
    for c in range(P):
        error[c] = shifted.averages(family, C[c], means[c], w, K, noise, nodes, weights, D[c], S[c], dv[c], E[c])
    return D, S, dv, error, E


@kept(error_model="numpy")
def _each_error(family, C, means, w):  # pragma: no cover - compiled
    out = np.empty(len(means))
    for c in range(out.size):
        out[c] = shifted.error(family, C[c], means[c], w)
    return out


class ClosedForm:
    """Closed-form averages of the square loss; for ReLU with one-dimensional orthant integrals of `nodes` points.

    components: weights and variances of the components of a mixture, which only averages over all of them need.
    """

    def __init__(
        self,
        activation: str,
        teacher_readout: Array,
        label_noise: float,
        nodes: int = 40,
        components: Components | None = None,
    ) -> None:
        self.activation = activation
        self.family = FAMILIES[activation]
        self.teacher_readout = np.ascontiguousarray(teacher_readout)
        self.label_noise = label_noise
        self.nodes = nodes
        # code for orthants takes long to compile, and is left out where the rule for them is None
        self.rule = unit_rule(nodes) if activation == "relu" else (None, None)
        self.components = components or Components(np.ones(1), np.ones(1), np.zeros(1, np.int64))
        self.name = f"closed form ({activation})"
        self.default_accuracy = 1e-9
        self.gain = 3.0
        self.jumps = False

    def __call__(self, C: Array, v: Array, means: Array | None = None) -> Averages:
        """Averages at field covariance C (K+M, K+M) and readout v (K,); `means` (K+M, P) of fields in a mixture.

        In component c of a mixture the fields have covariance s_c C; without means, their mean is zero.
        """
        weights, variances, _ = self.components
        P = 0 if means is None else means.shape[1]
        if P or weights.size > 1:  # components without means differ in their variances
            at = means if means is not None and P else np.zeros((len(C), weights.size))
            found = over_components(self.each(variances[:, None, None] * C, v, at), weights, variances)
            return replace(found, E=found.E[:, :P])
        K = v.size
        w = np.concatenate([v, -self.teacher_readout])
        D, S, dv = np.empty((K, w.size)), np.empty((K, K)), np.empty(K)
        C = np.ascontiguousarray(C)
        first_order(self.family, C, w, K, D, dv)
        second_order(self.family, C, w, K, self.label_noise, *self.rule, S)
        return Averages(D, S, dv, max(_error(self.family, C, w), 0.0), np.zeros((K, 0)))

    def each(self, C: Array, v: Array, means: Array) -> list[Averages]:
        """Averages over each component by itself, unweighted, for fields of covariance C[c] and mean means[:, c].

        C (P, K+M, K+M), v (K,), means (K+M, P); D is E[∂δ/∂h], S is E[δ δᵀ] with label noise, E (K, 1) is E[δ].
        """
        w = np.concatenate([v, -self.teacher_readout])
        at = np.ascontiguousarray(means.T)
        C = np.ascontiguousarray(C)
        D, S, dv, error, E = _each(self.family, C, at, w, v.size, self.label_noise, *self.rule)
        return [Averages(D[c], S[c], dv[c], max(float(error[c]), 0.0), E[c][:, None]) for c in range(len(at))]

    def each_error(self, C: Array, v: Array, means: Array) -> Array:
        """Generalisation error in each component, (P,); C (P, K+M, K+M), v (K,), means (K+M, P)."""
        w = np.concatenate([v, -self.teacher_readout])
        return np.maximum(_each_error(self.family, np.ascontiguousarray(C), np.ascontiguousarray(means.T), w), 0.0)

    def errors(self, C: Array, v: Array, means: Array | None = None) -> Array:
        """Generalisation error for a batch: C (n, K+M, K+M) or (n, P, K+M, K+M), v (n, K), means (n, K+M, P)."""
        weights, variances, _ = self.components
        if weights.size > 1 and (means is None or means.shape[2] == 0):
            means = np.zeros((len(C), C.shape[-1], weights.size))
        if means is not None and means.shape[2]:
            each = by_component(C, variances)
            return np.array([self.each_error(each[i], v[i], means[i]) @ weights for i in range(len(C))])
        errors = _errors(self.family, np.ascontiguousarray(C), np.ascontiguousarray(v), self.teacher_readout)
        return np.maximum(errors, 0.0)  # where all is learnt, rounding decides the sign

    def _with(self, nodes: int) -> ClosedForm:
        return ClosedForm(self.activation, self.teacher_readout, self.label_noise, nodes, self.components)

    def check(self) -> ClosedForm:
        """The same averages by an independent rule: other nodes for ReLU, nothing else where all is closed."""
        return self._with(self.nodes - 7)

    def coarser(self) -> ClosedForm:
        return self._with(self.nodes // 2)

    def finer(self) -> ClosedForm | None:
        """A more accurate version, or None where there is nothing to refine."""
        if self.activation != "relu" or self.nodes >= 320:
            return None
        return self._with(self.nodes * 2)
