"""Losses: functions of the student fields λ, the teacher fields ν, the class c and the readout v.

A committee has the output f = Σ_k v_k g(λ_k). Its target y is the teacher's output Σ_m u_m g̃(ν_m) plus noise, or
where there is no teacher the label c of the sample, and

    square    loss = (f − y)²/2             logistic    loss = log(1 + e^f) − y f,    y = 0 or 1
    ∂loss/∂λ_k = v_k g'(λ_k) ∂loss/∂f       ∂loss/∂v_k = g(λ_k) ∂loss/∂f

Softmax regression has the cross-entropy, loss = −λ_c + log Σ_a e^{λ_a}.

A user's loss is the whole map from fields to loss, activation included, as two plain functions:

>>> import numpy as np
>>> from overlaps import Loss
>>> def value(lam, nu, c, v):
...     return np.log(np.cosh(np.sum(v * lam) - np.sum(nu)))
>>> def gradient(lam, nu, c, v):
...     t = np.tanh(np.sum(v * lam) - np.sum(nu))
...     return v * t, lam * t
>>> Loss(value, gradient)
Loss('user')

All scales call one compiled kernel per loss, `kernel(λ, ν, c, v, u, noise, dλ, dv)`, which writes
∂loss/∂λ into dλ and ∂loss/∂v into dv; spectra call `curvature(λ, ν, c, v, u, λλ, λv, vv)` for second derivatives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .activations import BUILT_IN, Activation, compile_plain
from .errors import InputError

Array = NDArray[np.float64]
FIELDS = "(float64[::1], float64[::1], int64, float64[::1])"  # λ, ν, c, v as Numba sees them


@dataclass(frozen=True)
class Loss:
    """A loss written by the user.

    Parameters
    ----------
    value: ``value(lam, nu, c, v) -> float``; lam (K,) student fields, nu (M,) teacher fields, c the
        label (an integer, 0 where the data have none), v (K,) the student's readout.
    gradient: ``gradient(lam, nu, c, v) -> (dlam, dv)``, both (K,): the derivatives of `value` with
        respect to lam and v. Checked against finite differences when a problem is built.
    name: how it is called in messages and plots.
    """

    value: Callable[..., Any] = field(repr=False)
    gradient: Callable[..., Any] = field(repr=False)
    name: str = "user"

    def __repr__(self) -> str:
        return f"Loss({self.name!r})"


def check_gradient(
    loss: Loss, students: int, teachers: int, trained_readout: bool, labels: Sequence[int] = (0,)
) -> None:
    """Compare a user's gradient with central differences of its value at six random points, for each label."""
    rng = np.random.default_rng(20260)
    step = 1e-6
    for _, c in product(range(6), labels):
        lam, nu = rng.standard_normal(students), rng.standard_normal(teachers)
        v = rng.standard_normal(students)
        try:
            given = loss.gradient(lam.copy(), nu.copy(), c, v.copy())
            dlam, dv = (np.asarray(part, dtype=float) for part in given)
            value = float(loss.value(lam.copy(), nu.copy(), c, v.copy()))
        except Exception as error:
            raise InputError(
                f"loss {loss.name!r}: called with lam ({students},), nu ({teachers},), c, v ({students},) it failed: "
                f"{type(error).__name__}: {error}; value must return a number and gradient the pair (dlam, dv)"
            ) from error
        if dlam.shape != (students,) or dv.shape != (students,):
            raise InputError(
                f"loss {loss.name!r}: gradient must return two arrays of shape ({students},), "
                f"got {dlam.shape} and {dv.shape}"
            )
        parts = [("lam", lam, dlam)] + ([("v", v, dv)] if trained_readout else [])
        for name, point, derivative in parts:
            for k in range(students):
                ends: list[float] = []
                for sign in (1.0, -1.0):
                    shifted = point.copy()
                    shifted[k] += sign * step
                    at = (shifted, nu, c, v) if name == "lam" else (lam, nu, c, shifted)
                    ends.append(float(loss.value(*at)))
                measured = (ends[0] - ends[1]) / (2 * step)
                if not abs(derivative[k] - measured) <= 1e-5 * (1 + abs(measured) + abs(value)):
                    raise InputError(
                        f"loss {loss.name!r}: gradient gives d value/d {name}[{k}] = {derivative[k]:.6g} where finite "
                        f"differences of value give {measured:.6g}; correct gradient"
                    )


class Outer(NamedTuple):
    """A loss ℓ(f, y) of the output f and its target y, as compiled functions: ℓ, ∂ℓ/∂f, ∂²ℓ/∂f²."""

    value: Any
    slope: Any
    bend: Any


@cache
def outer(name: str) -> Outer:
    """``"square"``, (f − y)²/2, or ``"logistic"``, log(1 + e^f) − y f."""
    from numba import njit

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
def committee_kernel(name: str, student: Activation, teacher: Activation | None) -> Any:
    """The compiled gradient of an `outer` loss of a committee; the target is the teacher's output, or the label."""
    from numba import njit

    (g, dg), slope = student.compiled, outer(name).slope
    labelled = teacher is None
    g_teacher = g if teacher is None else teacher.compiled[0]

    @njit(inline="always")
    def kernel(lam, nu, c, v, u, noise, dlam, dv):  # pragma: no cover - compiled
        target = noise
        if labelled:
            target += c
        for m in range(nu.size):
            target += u[m] * g_teacher(nu[m])
        f = 0.0
        for k in range(lam.size):
            dv[k] = g(lam[k])
            f += v[k] * dv[k]
        delta = slope(f, target)
        for k in range(lam.size):
            dlam[k] = v[k] * dg(lam[k]) * delta
            dv[k] *= delta

    return kernel


@cache
def committee_value(name: str, student: Activation, teacher: Activation | None) -> Any:
    """The compiled loss without noise, ``value(λ, ν, c, v, u)``."""
    from numba import njit

    (g, _), loss = student.compiled, outer(name).value
    labelled = teacher is None
    g_teacher = g if teacher is None else teacher.compiled[0]

    @njit
    def value(lam, nu, c, v, u):  # pragma: no cover - compiled
        target = 0.0
        if labelled:
            target += c
        for m in range(nu.size):
            target += u[m] * g_teacher(nu[m])
        f = 0.0
        for k in range(lam.size):
            f += v[k] * g(lam[k])
        return loss(f, target)

    return value


@cache
def committee_curvature(name: str, student: Activation, teacher: Activation | None) -> Any:
    """The compiled second derivatives of the loss, ``curvature(λ, ν, c, v, u, λλ, λv, vv)``, each written as (K, K)."""
    from numba import njit

    (g, dg), ddg, (_, slope, bend) = student.compiled, student.curvature, outer(name)
    labelled = teacher is None
    g_teacher = g if teacher is None else teacher.compiled[0]

    @njit
    def curvature(lam, nu, c, v, u, ll, lv, vv):  # pragma: no cover - compiled
        target = 0.0
        if labelled:
            target += c
        for m in range(nu.size):
            target += u[m] * g_teacher(nu[m])
        K = lam.size
        f = 0.0
        for k in range(K):
            f += v[k] * g(lam[k])
        first, second = slope(f, target), bend(f, target)
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
    def value(lam, nu, c, v, u):  # pragma: no cover - compiled
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
def user_kernel(loss: Loss) -> Any:
    """The compiled gradient of a user's loss (which knows neither u nor label noise)."""
    from numba import njit

    gradient = compile_plain(loss.gradient, loss.name, FIELDS)

    @njit
    def kernel(lam, nu, c, v, u, noise, dlam, dv):  # pragma: no cover - compiled
        first, second = gradient(lam, nu, c, v)
        for k in range(lam.size):
            dlam[k] = first[k]
            dv[k] = second[k]

    return kernel


@cache
def user_value(loss: Loss) -> Any:
    """The compiled value of a user's loss, which does not know u."""
    from numba import njit

    user = compile_plain(loss.value, loss.name, FIELDS)

    @njit
    def value(lam, nu, c, v, u):  # pragma: no cover - compiled
        return user(lam, nu, c, v)

    return value


@cache
def user_curvature(loss: Loss) -> Any:
    """Second derivatives of a user's loss, by central differences of its gradient."""
    from numba import njit

    gradient = compile_plain(loss.gradient, loss.name, FIELDS)
    step = 1e-5

    @njit
    def curvature(lam, nu, c, v, u, ll, lv, vv):  # pragma: no cover - compiled
        for j in range(lam.size):
            at = lam[j]
            lam[j] = at + step
            up, _ = gradient(lam, nu, c, v)
            lam[j] = at - step
            down, _ = gradient(lam, nu, c, v)
            lam[j] = at
            ll[:, j] = (up - down) / (2 * step)
            at = v[j]
            v[j] = at + step
            up, up_v = gradient(lam, nu, c, v)
            v[j] = at - step
            down, down_v = gradient(lam, nu, c, v)
            v[j] = at
            lv[:, j] = (up - down) / (2 * step)
            vv[:, j] = (up_v - down_v) / (2 * step)
        for i in range(lam.size):
            for j in range(i):
                ll[i, j] = ll[j, i] = (ll[i, j] + ll[j, i]) / 2
                vv[i, j] = vv[j, i] = (vv[i, j] + vv[j, i]) / 2

    return curvature
