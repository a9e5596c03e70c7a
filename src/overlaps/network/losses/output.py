"""Losses ℓ(f, y) of the output of a committee and its target, compiled for all scales.

A committee has the output f = Σ_k v_k g(λ_k). Its target y is the teacher's output Σ_m u_m g̃(ν_m) plus noise, or
where there is no teacher the label c of the sample, and

    ∂loss/∂λ_k = v_k g'(λ_k) ∂ℓ/∂f       ∂loss/∂v_k = g(λ_k) ∂ℓ/∂f
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from ...interface.errors import InputError
from ..activations import Activation, compile_plain

Outer = Callable[[float, float], float]


@dataclass(frozen=True)
class OutputLoss:
    """A loss of the output of a committee, known by its name.

    Parameters
    ----------
    name: how it is called in specs, plots and messages.
    value: ℓ(f, y), a plain function of output and target.
    slope: ∂ℓ/∂f, checked against finite differences of `value`.
    bend: ∂²ℓ/∂f², checked against finite differences of `slope`; None where all of it is at kinks, and Hessians are
        refused.
    labels: the labels it takes, for losses of labels alone; None for any target, of a teacher or a label.
    signs: whether it also takes −1 and 1, the first as 0.
    kinks: a function of f and y that changes its sign where the slope is not smooth; None where it is everywhere.
        Macro is as accurate for a loss with known kinks as for a smooth one.
    """

    name: str
    value: Outer = field(repr=False)
    slope: Outer = field(repr=False)
    bend: Outer | None = field(repr=False)
    labels: tuple[int, ...] | None = None
    signs: bool = False
    kinks: Outer | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        step = 1e-5
        for f in (-2.3, -0.71, 0.13, 0.87, 1.9):
            for y in (*(self.labels or (-0.6, 0.0, 1.1)), *((-1,) if self.signs else ())):
                for what, of, derivative in (("slope", self.value, self.slope), ("bend", self.slope, self.bend)):
                    if derivative is None:
                        continue
                    given, measured = derivative(f, y), (of(f + step, y) - of(f - step, y)) / (2 * step)
                    if not (math.isfinite(given) and abs(given - measured) <= 1e-7 * (1 + abs(given))):
                        raise InputError(
                            f"loss {self.name!r}: {what}({f}, {y}) = {given:.6g} but finite differences give "
                            f"{measured:.6g}; correct {what}"
                        )

    def unknown_label(self, labels: Sequence[float]) -> float | None:
        """The first of these labels that it does not take."""
        taken = (-1, 1) if self.signs and -1 in labels else self.labels
        return None if taken is None else next((label for label in labels if label not in taken), None)

    @property
    def smooth(self) -> bool:
        """Whether its slope is continuous."""
        return self.bend is not None

    def compiled(self, part: str, student: Activation | None, teacher: Activation | None) -> Any:
        """A part of the loss, see `overlaps.network.losses`, for a committee of these activations."""
        make = {
            "gradient": committee_gradient,
            "value": committee_value,
            "curvature": committee_curvature,
            "kinks": committee_kinks,
            "decision": committee_decision,
        }[part]
        return make(self, student, teacher)


@cache
def _scalar(function: Outer, name: str) -> Any:
    return compile_plain(function, name, "(float64, float64)")


def outer(loss: OutputLoss, part: str) -> Any:
    """``"value"``, ``"slope"`` or ``"bend"`` of a loss as a compiled function of output and target."""
    return _scalar(getattr(loss, part), loss.name)


@cache
def target_of(teacher: Activation | None) -> Any:
    """The compiled target without noise, ``target(ν, c, u)``: the output of a teacher, or the label."""
    from ...compiled.symbols import njit

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
def committee_gradient(loss: OutputLoss, student: Activation, teacher: Activation | None) -> Any:
    """The gradient, ``gradient(λ, ν, c, v, u, noise, dλ, dv)``, which writes ∂loss/∂λ and ∂loss/∂v."""
    from ...compiled.symbols import njit

    (g, dg), slope = student.compiled, _scalar(loss.slope, loss.name)
    target = target_of(teacher)

    @njit(inline="always")
    def gradient(lam, nu, c, v, u, noise, dlam, dv):  # pragma: no cover - compiled
        f = 0.0
        for k in range(lam.size):
            dv[k] = g(lam[k])
            f += v[k] * dv[k]
        delta = slope(f, target(nu, c, u) + noise)
        for k in range(lam.size):
            dlam[k] = v[k] * dg(lam[k]) * delta
            dv[k] *= delta

    return gradient


@cache
def committee_value(loss: OutputLoss, student: Activation, teacher: Activation | None) -> Any:
    """The loss of one sample, ``value(λ, ν, c, v, u, noise=0)``."""
    from ...compiled.symbols import njit

    (g, _), outer = student.compiled, _scalar(loss.value, loss.name)
    target = target_of(teacher)

    @njit
    def value(lam, nu, c, v, u, noise=0.0):  # pragma: no cover - compiled
        f = 0.0
        for k in range(lam.size):
            f += v[k] * g(lam[k])
        return outer(f, target(nu, c, u) + noise)

    return value


@cache
def committee_decision(loss: OutputLoss, student: Activation, teacher: Activation | None) -> Any:
    """The place of the target whose loss is least, ``decision(λ, ν, targets, v, u)``; the first of several."""
    from ...compiled.symbols import njit

    (g, _), outer = student.compiled, _scalar(loss.value, loss.name)

    @njit
    def decision(lam, nu, targets, v, u):  # pragma: no cover - compiled
        f = 0.0
        for k in range(lam.size):
            f += v[k] * g(lam[k])
        best, least = 0, outer(f, float(targets[0]))
        for c in range(1, targets.size):
            other = outer(f, float(targets[c]))
            if other < least:
                best, least = c, other
        return best

    return decision


@cache
def committee_kinks(loss: OutputLoss, student: Activation, teacher: Activation | None) -> Any:
    """The function ``kinks(λ, ν, c, v, u, which)`` that changes its sign where the slope of the loss is not smooth.

    It is the only one, which = 0; for which = −1 it is the number of such functions.
    """
    from ...compiled.symbols import njit

    assert loss.kinks is not None
    (g, _), outer = student.compiled, _scalar(loss.kinks, loss.name)
    target = target_of(teacher)

    @njit
    def kinks(lam, nu, c, v, u, which):  # pragma: no cover - compiled
        if which < 0:
            return 1.0
        f = 0.0
        for k in range(lam.size):
            f += v[k] * g(lam[k])
        return outer(f, target(nu, c, u))

    return kinks


@cache
def committee_curvature(loss: OutputLoss, student: Activation, teacher: Activation | None) -> Any:
    """The second derivatives, ``curvature(λ, ν, c, v, u, λλ, λv, vv)``, each written as (K, K)."""
    from ...compiled.symbols import njit

    if loss.bend is None:
        raise InputError(
            f"loss: all curvature of the {loss.name} loss is at its kink, where no average of second derivatives sees "
            "it; use loss='logistic' for Hessians"
        )
    (g, dg), ddg = student.compiled, student.curvature
    slope, bend = _scalar(loss.slope, loss.name), _scalar(loss.bend, loss.name)
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
