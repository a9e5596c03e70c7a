"""The built-in losses, compiled: square, logistic and hinge for committees, cross-entropy for softmax.

A committee has the output f = Σ_k v_k g(λ_k). Its target y is the teacher's output Σ_m u_m g̃(ν_m) plus noise, or
where there is no teacher the label c of the sample, and

    square    loss = (f − y)²/2             logistic    loss = log(1 + e^f) − y f,    y = 0 or 1
    hinge     loss = max(0, 1 − (2y − 1) f)
    ∂loss/∂λ_k = v_k g'(λ_k) ∂loss/∂f       ∂loss/∂v_k = g(λ_k) ∂loss/∂f

Softmax regression has the cross-entropy, loss = −λ_c + log Σ_a e^{λ_a}.

All scales call one compiled kernel per loss, `kernel(λ, ν, c, v, u, noise, dλ, dv)`, which writes
∂loss/∂λ into dλ and ∂loss/∂v into dv; spectra call `curvature(λ, ν, c, v, u, λλ, λv, vv)` for second derivatives.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from .activations import BUILT_IN, Activation


class Outer(NamedTuple):
    """A loss ℓ(f, y) of the output f and its target y, as compiled functions: ℓ, ∂ℓ/∂f, ∂²ℓ/∂f²."""

    value: Any
    slope: Any
    bend: Any


@cache
def outer(name: str) -> Outer:
    """``"square"``, (f − y)²/2; ``"logistic"``, log(1 + e^f) − y f; or ``"hinge"``, max(0, 1 − (2y − 1) f).

    The bend of the hinge is its value off the kink, zero.
    """
    from numba import njit

    if name == "hinge":
        return Outer(
            njit(lambda f, y: max(0.0, 1.0 - (2.0 * y - 1.0) * f), inline="always"),
            njit(lambda f, y: 1.0 - 2.0 * y if (2.0 * y - 1.0) * f < 1.0 else 0.0, inline="always"),
            njit(lambda f, y: 0.0, inline="always"),
        )

    if name == "square":
        return Outer(
            njit(lambda f, y: 0.5 * (f - y) * (f - y), inline="always"),
            njit(lambda f, y: f - y, inline="always"),
            njit(lambda f, y: 1.0, inline="always"),
        )
    softplus, sigmoid = BUILT_IN["softplus"].compiled

    @njit
    def bend(f, y):  # pragma: no cover - compiled
        p = sigmoid(f)
        return p * (1.0 - p)

    return Outer(njit(lambda f, y: softplus(f) - y * f), njit(lambda f, y: sigmoid(f) - y), bend)


@cache
def target_of(teacher: Activation | None) -> Any:
    """The compiled target without noise, ``target(ν, c, u)``: the output of a teacher, or the label."""
    from numba import njit

    if teacher is None:
        return njit(lambda nu, c, u: float(c), inline="always")
    g = teacher.compiled[0]

    @njit(inline="always")
    def target(nu, c, u):  # pragma: no cover - compiled
        total = 0.0
        for m in range(nu.size):
            total += u[m] * g(nu[m])
        return total

    return target


@cache
def committee_kernel(name: str, student: Activation, teacher: Activation | None) -> Any:
    """The compiled gradient of an `outer` loss of a committee; the target is the teacher's output, or the label."""
    from numba import njit

    (g, dg), slope = student.compiled, outer(name).slope
    target = target_of(teacher)

    @njit(inline="always")
    def kernel(lam, nu, c, v, u, noise, dlam, dv):  # pragma: no cover - compiled
        f = 0.0
        for k in range(lam.size):
            dv[k] = g(lam[k])
            f += v[k] * dv[k]
        delta = slope(f, target(nu, c, u) + noise)
        for k in range(lam.size):
            dlam[k] = v[k] * dg(lam[k]) * delta
            dv[k] *= delta

    return kernel


@cache
def committee_value(name: str, student: Activation, teacher: Activation | None) -> Any:
    """The compiled loss, ``value(λ, ν, c, v, u, noise=0)``."""
    from numba import njit

    (g, _), loss = student.compiled, outer(name).value
    target = target_of(teacher)

    @njit
    def value(lam, nu, c, v, u, noise=0.0):  # pragma: no cover - compiled
        f = 0.0
        for k in range(lam.size):
            f += v[k] * g(lam[k])
        return loss(f, target(nu, c, u) + noise)

    return value


@cache
def committee_curvature(name: str, student: Activation, teacher: Activation | None) -> Any:
    """The compiled second derivatives of the loss, ``curvature(λ, ν, c, v, u, λλ, λv, vv)``, each written as (K, K)."""
    from numba import njit

    (g, dg), ddg, (_, slope, bend) = student.compiled, student.curvature, outer(name)
    target = target_of(teacher)

    @njit
    def curvature(lam, nu, c, v, u, ll, lv, vv):  # pragma: no cover - compiled
        K = lam.size
        f = 0.0
        for k in range(K):
            f += v[k] * g(lam[k])
        y = target(nu, c, u)
        first, second = slope(f, y), bend(f, y)
        for i in range(K):
            inner = v[i] * dg(lam[i])
            for j in range(K):
                ll[i, j] = second * inner * v[j] * dg(lam[j])
                lv[i, j] = second * inner * g(lam[j])
                vv[i, j] = second * g(lam[i]) * g(lam[j])
            ll[i, i] += first * v[i] * ddg(lam[i])
            lv[i, i] += first * dg(lam[i])

    return curvature


@cache
def cross_entropy() -> tuple[Any, Any, Any]:
    """Compiled gradient, value and second derivatives of −λ_c + log Σ_a e^{λ_a}; there is no readout."""
    from numba import njit

    @njit
    def logsum(lam):  # pragma: no cover - compiled
        top = lam[0]
        for k in range(1, lam.size):
            top = max(top, lam[k])
        total = 0.0
        for k in range(lam.size):
            total += np.exp(lam[k] - top)
        return top + np.log(total)

    @njit
    def kernel(lam, nu, c, v, u, noise, dlam, dv):  # pragma: no cover - compiled
        norm = logsum(lam)
        for k in range(lam.size):
            dlam[k] = np.exp(lam[k] - norm)
            dv[k] = 0.0
        dlam[c] -= 1.0

    @njit
    def value(lam, nu, c, v, u, noise=0.0):  # pragma: no cover - compiled
        return logsum(lam) - lam[c]

    @njit
    def curvature(lam, nu, c, v, u, ll, lv, vv):  # pragma: no cover - compiled
        norm = logsum(lam)
        for i in range(lam.size):
            ll[i, i] = np.exp(lam[i] - norm)
        for i in range(lam.size):
            for j in range(i):
                ll[i, j] = ll[j, i] = -ll[i, i] * ll[j, j]
        for i in range(lam.size):
            ll[i, i] *= 1.0 - ll[i, i]
            for j in range(lam.size):
                lv[i, j] = 0.0
                vv[i, j] = 0.0

    return kernel, value, curvature


@cache
def compiled_pair(kernel: Any, value: Any) -> Any:
    """Gradient and loss of many samples at once, compiled: writes δ (n, K) and losses (n,), of noisy targets."""
    from numba import njit

    @njit(nogil=True)
    def evaluate(p, nu, labels, v, u, noise, delta, loss):  # pragma: no cover - compiled
        unused = np.empty(v.size)
        for i in range(p.shape[0]):
            kernel(p[i], nu[i], labels[i], v, u, noise[i], delta[i], unused)
            loss[i] = value(p[i], nu[i], labels[i], v, u, noise[i])

    return evaluate
