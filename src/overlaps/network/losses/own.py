"""Losses of one's own: functions of the student fields λ, the teacher fields ν, the label c and the readout v.

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

They are compiled to what all scales call, see `overlaps.network.losses`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...interface.errors import InputError, shown
from ..activations import Activation, compile_plain

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
    kinks: where `gradient` jumps or is not smooth: a function ``kinks(lam, nu, c, v) -> float``, or several, each of
        which is zero there, for instance the margin ``1 - y * np.sum(v * lam)`` of a hinge, ``lam[0]`` for a first unit
        that is a ReLU, or ``abs(lam[0] - nu[0]) - 0.1`` for two kinks side by side. Macro is then as accurate as for a
        smooth loss, for up to four fields.
    """

    value: Callable[..., Any] = field(repr=False)
    gradient: Callable[..., Any] = field(default=None, repr=False)  # type: ignore[assignment]
    name: str = "user"
    kinks: Callable[..., Any] | Sequence[Callable[..., Any]] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for name in ("value", "gradient"):
            if not callable(getattr(self, name)):
                raise InputError(
                    f"{name}: expected a function {name}(lam, nu, c, v), got {shown(getattr(self, name))}; a loss is "
                    "its value and its derivatives, Loss(value, gradient)"
                )
        if not isinstance(self.name, str):
            raise InputError(f"name: expected text, got {shown(self.name)}")
        kinks = self.kinks
        several = kinks if isinstance(kinks, Sequence) else () if kinks is None else (kinks,)
        for i, one in enumerate(several):
            if not callable(one):
                wanted = "a function kinks(lam, nu, c, v) that changes its sign at a kink"
                raise InputError(f"kinks[{i}]: expected {wanted}, got {shown(one)}")
        object.__setattr__(self, "kinks", tuple(several) or None)

    def __repr__(self) -> str:
        return f"Loss({self.name!r})"

    def compiled(self, part: str, student: Activation | None, teacher: Activation | None) -> Any:
        """A part of the loss, compiled, see `overlaps.network.losses`; the activations are in the functions already."""
        parts = {"gradient": _gradient, "value": _value, "curvature": _curvature, "decision": _decision}
        return parts[part](self)


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


@cache
def _gradient(loss: Loss) -> Any:
    """The compiled gradient of a user's loss (which knows neither u nor label noise)."""
    from ...compiled.symbols import njit

    gradient = compile_plain(loss.gradient, loss.name, FIELDS)

    @njit
    def kernel(lam, nu, c, v, u, noise, dlam, dv):  # pragma: no cover - compiled
        first, second = gradient(lam, nu, c, v)
        for k in range(lam.size):
            dlam[k] = first[k]
            dv[k] = second[k]

    return kernel


@cache
def _value(loss: Loss) -> Any:
    """The compiled value of a user's loss, which knows neither u nor label noise."""
    from ...compiled.symbols import njit

    user = compile_plain(loss.value, loss.name, FIELDS)

    @njit
    def value(lam, nu, c, v, u, noise=0.0):  # pragma: no cover - compiled
        return user(lam, nu, c, v)

    return value


@cache
def _decision(loss: Loss) -> Any:
    """The place of the target whose loss is least, compiled."""
    from ...compiled.symbols import njit

    user = compile_plain(loss.value, loss.name, FIELDS)

    @njit
    def decision(lam, nu, targets, v, u):  # pragma: no cover - compiled
        best, least = 0, user(lam, nu, targets[0], v)
        for c in range(1, targets.size):
            other = user(lam, nu, targets[c], v)
            if other < least:
                best, least = c, other
        return best

    return decision


@cache
def known_kinks(loss: Loss, students: int, teachers: int) -> tuple[tuple[tuple[float, ...], ...], Any]:
    """Kinks of a user's loss in single fields, for each of them, and the function of those in several, compiled.

    The latter, ``kinks(λ, ν, c, v, u, which)``, has all functions of `kinks` that depend on more than one field, or on
    the readout or the label, by their number, and how many they are for which = −1; None where there are none.
    """
    places: list[tuple[float, ...]] = [()] * (students + teachers)
    several: list[Any] = []
    assert loss.kinks is None or isinstance(loss.kinks, tuple)
    for one in loss.kinks or ():
        where = _single_field(one, students, teachers)
        if where is None:
            several.append(compile_plain(one, loss.name, FIELDS))
        else:
            places[where] = tuple(sorted({*places[where], *_zeros(one, where, students, teachers)}))
    return tuple(places), _joined(tuple(several)) if several else None


def _single_field(one: Callable[..., Any], students: int, teachers: int) -> int | None:
    """The field that a function depends on, where it depends on nothing else."""
    rng = np.random.default_rng(20261)
    seen: set[int] = set()
    d = students + teachers
    for _ in range(6):
        h, v = 2 * rng.standard_normal(d), rng.standard_normal(students)
        before = float(one(h[:students], h[students:], 0, v))
        if before != float(one(h[:students], h[students:], 1, v)) or before != float(
            one(h[:students], h[students:], 0, -v)
        ):
            return None
        for a in range(d):
            moved = h.copy()
            moved[a] = 2 * rng.standard_normal()
            if float(one(moved[:students], moved[students:], 0, v)) != before:
                seen.add(a)
    return seen.pop() if len(seen) == 1 else None


def _zeros(one: Callable[..., Any], where: int, students: int, teachers: int) -> list[float]:
    """Places between −40 and 40 of a field where a function of it alone changes its sign or touches zero."""
    from scipy.optimize import brentq, minimize_scalar

    h, v = np.zeros(students + teachers), np.ones(students)

    def at(x: float) -> float:
        h[where] = x
        return float(one(h[:students], h[students:], 0, v))

    def zero(low: float, high: float) -> float:
        return float(brentq(at, low, high, xtol=1e-14))  # pyright: ignore[reportArgumentType]

    x = np.linspace(-40.0, 40.0, 4002)
    values = np.array([at(place) for place in x.tolist()])
    changes = np.flatnonzero((values[1:] > 0) != (values[:-1] > 0))
    places = [zero(x[i], x[i + 1]) for i in changes]
    far, same = np.abs(values), (values[1:] > 0) == (values[:-1] > 0)
    near = (far[1:-1] <= np.minimum(far[:-2], far[2:])) & (far[1:-1] < np.maximum(far[:-2], far[2:]))
    for i in 1 + np.flatnonzero(near & same[1:] & same[:-1]):  # two changes of sign, or none, between neighbours
        low, high = float(x[i - 1]), float(x[i + 1])
        towards = np.sign(values[i]) or 1.0
        found: Any = minimize_scalar(
            lambda y, sign: sign * at(y),
            bounds=(low, high),
            args=(towards,),
            method="bounded",
            options={"xatol": 1e-12},
        )
        if found.fun < 0.0:
            places += [zero(low, found.x), zero(found.x, high)]
        elif found.fun <= 1e-6 * max(far[i - 1], far[i + 1]):
            places.append(float(found.x))
    return places


def _joined(several: tuple[Any, ...]) -> Any:
    """All these functions in one, by their number."""
    from ...compiled.symbols import njit

    count, chosen = float(len(several)), _chosen(several)
    return njit(lambda lam, nu, c, v, u, which: count if which < 0 else chosen(lam, nu, c, v, which))


def _chosen(several: tuple[Any, ...]) -> Any:
    from ...compiled.symbols import njit

    first, *others = several
    if not others:
        return njit(lambda lam, nu, c, v, which: float(first(lam, nu, c, v)))
    rest = _chosen(tuple(others))
    return njit(
        lambda lam, nu, c, v, which: float(first(lam, nu, c, v)) if which == 0 else rest(lam, nu, c, v, which - 1)
    )


@cache
def _curvature(loss: Loss) -> Any:
    """Second derivatives of a user's loss, by central differences of its gradient."""
    from ...compiled.symbols import njit

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
