"""Losses: functions of the student fields λ, the teacher fields ν, the class c and the readout v.

The built-in square loss of two committees, with Δ = Σ_k v_k g(λ_k) − Σ_m u_m g̃(ν_m) − noise,

    loss = Δ²/2        ∂loss/∂λ_k = v_k g'(λ_k) Δ        ∂loss/∂v_k = g(λ_k) Δ

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
∂loss/∂λ into dλ and ∂loss/∂v into dv.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .activations import Activation, compile_plain
from .errors import InputError

Array = NDArray[np.float64]
FIELDS = "(float64[::1], float64[::1], int64, float64[::1])"  # λ, ν, c, v as Numba sees them


@dataclass(frozen=True)
class Loss:
    """A loss written by the user.

    Parameters
    ----------
    value: ``value(lam, nu, c, v) -> float``; lam (K,) student fields, nu (M,) teacher fields, c the
        class (an integer), v (K,) the student's readout.
    gradient: ``gradient(lam, nu, c, v) -> (dlam, dv)``, both (K,): the derivatives of `value` with
        respect to lam and v. Checked against finite differences when a problem is built.
    name: how it is called in messages and plots.
    """

    value: Callable[..., Any] = field(repr=False)
    gradient: Callable[..., Any] = field(repr=False)
    name: str = "user"

    def __repr__(self) -> str:
        return f"Loss({self.name!r})"


def check_gradient(loss: Loss, students: int, teachers: int, trained_readout: bool) -> None:
    """Compare a user's gradient with central differences of its value at six random points."""
    rng = np.random.default_rng(20260)
    step = 1e-6
    for _ in range(6):
        lam, nu = rng.standard_normal(students), rng.standard_normal(teachers)
        v = rng.standard_normal(students)
        try:
            given = loss.gradient(lam.copy(), nu.copy(), 0, v.copy())
            dlam, dv = (np.asarray(part, dtype=float) for part in given)
            value = float(loss.value(lam.copy(), nu.copy(), 0, v.copy()))
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
                    at = (shifted, nu, 0, v) if name == "lam" else (lam, nu, 0, shifted)
                    ends.append(float(loss.value(*at)))
                measured = (ends[0] - ends[1]) / (2 * step)
                if not abs(derivative[k] - measured) <= 1e-5 * (1 + abs(measured) + abs(value)):
                    raise InputError(
                        f"loss {loss.name!r}: gradient gives d value/d {name}[{k}] = {derivative[k]:.6g} where finite "
                        f"differences of value give {measured:.6g}; correct gradient"
                    )


@cache
def square_kernel(student: Activation, teacher: Activation) -> Any:
    """The compiled gradient of the square loss for these two activations."""
    from numba import njit

    g, dg = student.compiled
    g_teacher, _ = teacher.compiled

    @njit(inline="always")
    def kernel(lam, nu, c, v, u, noise, dlam, dv):  # pragma: no cover - compiled
        delta = -noise
        for m in range(nu.size):
            delta -= u[m] * g_teacher(nu[m])
        for k in range(lam.size):
            dv[k] = g(lam[k])
            delta += v[k] * dv[k]
        for k in range(lam.size):
            dlam[k] = v[k] * dg(lam[k]) * delta
            dv[k] *= delta

    return kernel


@cache
def square_value(student: Activation, teacher: Activation) -> Any:
    """The compiled square loss without noise, ``value(λ, ν, c, v, u)``, for these two activations."""
    from numba import njit

    g, _ = student.compiled
    g_teacher, _ = teacher.compiled

    @njit
    def value(lam, nu, c, v, u):  # pragma: no cover - compiled
        delta = 0.0
        for m in range(nu.size):
            delta -= u[m] * g_teacher(nu[m])
        for k in range(lam.size):
            delta += v[k] * g(lam[k])
        return 0.5 * delta * delta

    return value


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
    """The compiled value of a user's loss."""
    return compile_plain(loss.value, loss.name, FIELDS)


@cache
def user_loss(loss: Loss) -> Any:
    """The compiled value of a user's loss, called as `square_value` is: it does not know u."""
    from numba import njit

    user = user_value(loss)

    @njit
    def value(lam, nu, c, v, u):  # pragma: no cover - compiled
        return user(lam, nu, c, v)

    return value
