"""Nonlinearities f that make inputs of a latent, x = f(u), and the constants of their Gaussian equivalent.

For u = mean + sd z with z standard normal (`moments`; mean 0 and sd 1 in `gaussian_equivalent`)

    a = E f(u)        b = E z f(u)        c = E f(u)²

| f | a | b | c |
|---|---|---|---|
| sign | 2Φ(x) − 1 | 2φ(x) | 1 |
| relu | mean Φ(x) + sd φ(x) | sd Φ(x) | (mean² + sd²) Φ(x) + mean sd φ(x) |
| linear | mean | sd | mean² + sd² |
| erf, 2Φ(u) − 1 | 2Φ(h) − 1 | 2 sd φ(h)/√(1 + sd²) | 1 − 8 T(h, 1/√(1 + 2 sd²)) |

with x = mean/sd, h = mean/√(1 + sd²) and φ, Φ the normal density and distribution function. T is the function of D. B.
Owen, Ann. Math. Stat. 27, 1075 (1956), by which P(z₁ < h, z₂ < h) of two correlated normals is Φ(h) − 2 T(h, …). Other
functions go by quadrature with a measured error. How a, b and c become a covariance of the inputs: S. Goldt, M. Mézard,
F. Krzakala and L. Zdeborová, Phys. Rev. X 10, 041044 (2020).

>>> import numpy as np
>>> from overlaps.data.nonlinearity import gaussian_equivalent
>>> gaussian_equivalent("sign")  # b = √(2/π)
GaussianEquivalent('sign': a = 0, b = 0.797885, c = 1, within 2e-15)
>>> gaussian_equivalent(np.cos).c  # (1 + e⁻²)/2
0.567667641618...
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, cached_property
from types import FunctionType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..interface.checks import array, checked, kinks, number
from ..interface.errors import InputError, shown, unknown
from ..network.activations import BUILT_IN as ACTIVATIONS
from ..network.activations import Activation
from .gaussian_moments import Moments, by_panels

Array = NDArray[np.float64]
PROBE = np.random.default_rng(0).standard_normal((16, 16))  # numbers on which functions are tried


@dataclass(frozen=True)
class Nonlinearity:
    """A function f of one number, applied entry by entry.

    Parameters
    ----------
    name: how it is called in plots and messages.
    function: f, either of NumPy arrays or a plain function of one number; as an attribute it takes float arrays of any
        shape and returns new ones of the same shape.
    kinks: points where f is not smooth. Quadrature finds others by itself, at a cost.
    """

    name: str
    function: Callable[..., Any] = field(repr=False)
    kinks: tuple[float, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise InputError(f"name: expected text, got {shown(self.name)}")
        object.__setattr__(self, "kinks", kinks(self.kinks))
        if not isinstance(self.function, _Elementwise):
            object.__setattr__(self, "function", _elementwise(self.name, self.function))

    def __repr__(self) -> str:
        return f"Nonlinearity({self.name!r})"


@dataclass(frozen=True)
class _Elementwise:
    """A function of float arrays around one of arrays, or around one of a number if `scalar`."""

    plain: Callable[..., Any]
    scalar: bool

    def __call__(self, u: Array) -> Array:
        values = np.asarray((self.looped if self.scalar else self.plain)(u), dtype=float)
        return values.copy() if np.may_share_memory(values, u) else values

    @cached_property
    def looped(self) -> Callable[[Array], Any]:
        """The loop over entries, compiled where Numba can and agrees."""
        plain = self.plain

        def guarded(x: float) -> float:
            try:
                return float(plain(x))
            except (ArithmeticError, ValueError):  # overflow far out, or a singular point
                return math.nan

        loop = np.frompyfunc(guarded, 1, 1)
        if isinstance(plain, FunctionType):
            from ..compiled.symbols import vectorize

            try:
                compiled = vectorize(["float64(float64)"], nopython=True)(plain)
                if np.allclose(compiled(PROBE), np.asarray(loop(PROBE), float), rtol=1e-13, atol=1e-300):
                    return compiled
            except Exception:
                return loop  # what Numba cannot compile is run by Python
        return loop


def _elementwise(name: str, function: Any) -> _Elementwise:
    """The function as one of arrays, after a trial on normal draws."""
    if not callable(function):
        raise InputError(f"{name}: expected a function of one number or of a NumPy array, got {shown(function)}")
    before, array_error = PROBE.copy(), None
    try:
        with np.errstate(all="ignore"):
            values = np.asarray(function(before))
    except Exception as error:
        array_error = error
        values = np.array([_one(name, function, x, error) for x in PROBE.ravel().tolist()]).reshape(PROBE.shape)
    if values.dtype.kind not in "biuf":
        raise InputError(f"{name}: expected real numbers, got values of type {values.dtype}")
    if values.shape != PROBE.shape:
        raise InputError(
            f"{name}: expected one value for each entry of an array, got shape {values.shape} for shape {PROBE.shape}; "
            "a constant is written numpy.full_like(u, value)"
        )
    if not np.isfinite(values).all():
        at = PROBE[~np.isfinite(values)][0]
        raise InputError(f"{name}: its value at {at:.6g} is {values[~np.isfinite(values)][0]}; u takes any value")
    if array_error is None:
        if not np.array_equal(before, PROBE):
            raise InputError(f"{name}: it changes the array it is given; work on a copy, u = u.copy()")
        with np.errstate(all="ignore"):
            again = np.asarray(function(PROBE[::-3, 1:].copy()))
        if again.shape != PROBE[::-3, 1:].shape or not np.allclose(again, values[::-3, 1:], rtol=1e-9, atol=1e-12):
            raise InputError(f"{name}: its value for an entry depends on the other entries, or on chance")
    return _Elementwise(function, scalar=array_error is not None)


def _one(name: str, function: Callable[..., Any], x: float, array_error: Exception) -> float:
    """The value of a plain function of one number; `array_error` is what it said to an array."""
    try:
        return number(f"{name}({x:.6g})", function(x))
    except InputError:
        raise
    except Exception as error:
        raise InputError(
            f"{name}: fails at {x:.6g}, u takes any value ({type(error).__name__}: {error}), and for an array "
            f"({type(array_error).__name__}: {array_error})"
        ) from error


BUILT_IN: dict[str, Nonlinearity] = {
    "sign": Nonlinearity("sign", np.sign, kinks=(0.0,)),
    **{name: Nonlinearity(name, g.function, g.kinks) for name, g in ACTIVATIONS.items()},
    "tanh": Nonlinearity("tanh", np.tanh),  # many numbers at once are ten times faster than one by one
}


def nonlinearity(
    which: str | Callable[..., Any] | Activation | Nonlinearity, name: str = "nonlinearity"
) -> Nonlinearity:
    """The nonlinearity of that name (``"sign"``, or an activation), of an activation, or of a function of one number.

    As for activations, ``"linear"`` is u itself and ``"erf"`` is erf(u/√2). name: of the argument, to refuse it.
    """
    if isinstance(which, Nonlinearity):
        return which
    if isinstance(which, Activation):
        return _of_activation(which)
    if isinstance(which, str):
        if which not in BUILT_IN:
            raise unknown(name, which, BUILT_IN)
        return BUILT_IN[which]
    if not callable(which):
        raise InputError(f"{name}: expected a name, an activation or a function, got {shown(which)}")
    try:
        return Nonlinearity(getattr(which, "__name__", type(which).__name__), which)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None


@cache
def _of_activation(which: Activation) -> Nonlinearity:
    """Made once for an activation: its loop over entries is compiled, which takes longer than most gradients."""
    known = ACTIVATIONS.get(which.name) == which
    return BUILT_IN[which.name] if known else Nonlinearity(which.name, which.function, which.kinks)


@cache
def slope(which: Activation) -> Nonlinearity:
    """The derivative of an activation, entry by entry."""
    if ACTIVATIONS.get(which.name) == which and which.name == "tanh":
        return _TANH_SLOPE
    # a plain function of one number, which may be a constant
    looped = _Elementwise(which.derivative, scalar=not isinstance(which.derivative, np.ufunc))
    return Nonlinearity(f"slope of {which.name}", looped, which.kinks)


def _tanh_slope(u: Array) -> Array:
    t = np.tanh(u)
    return 1 - t * t


_TANH_SLOPE = Nonlinearity("slope of tanh", _tanh_slope)


@dataclass(frozen=True)
class GaussianEquivalent:
    """Constants of inputs f(u), u standard normal: a = E f, b = E u f, c = E f².

    Attributes
    ----------
    error: the largest absolute error of the three: measured, or rounding where they are closed forms.
    name: of the nonlinearity.
    """

    a: float
    b: float
    c: float
    error: float
    name: str

    @property
    def rest(self) -> float:
        """c − a² − b², the variance of f that is noise to a linear reader."""
        return max(self.c - self.a**2 - self.b**2, 0.0)

    def __repr__(self) -> str:
        values = ", ".join(f"{n} = {round(v, 14) + 0.0:.6g}" for n, v in (("a", self.a), ("b", self.b), ("c", self.c)))
        return f"GaussianEquivalent({self.name!r}: {values}, within {self.error:.0e})".replace("e-0", "e-")


@checked
def gaussian_equivalent(f: str | Callable[..., Any] | Activation | Nonlinearity) -> GaussianEquivalent:
    """The constants a, b, c of a nonlinearity: a name, an activation or a function of one number."""
    f = nonlinearity(f, "f")
    a, b, c, error = (float(value) for value in moments(f, 0.0, 1.0))
    return GaussianEquivalent(a, b, c, error, f.name)


def moments(f: str | Callable[..., Any] | Activation | Nonlinearity, mean: ArrayLike, sd: ArrayLike) -> Moments:
    """a = E f(u), b = E z f(u), c = E f(u)² and their largest absolute error, for u = mean + sd z.

    Parameters
    ----------
    mean, sd: arrays that broadcast against each other, sd ≥ 0; results have their common shape.
    """
    f = nonlinearity(f, "f")
    mean, sd = array("mean", mean, None), array("sd", sd, None)
    if np.any(sd < 0):
        raise InputError(f"sd: expected standard deviations of at least 0, got {sd.min():g}")
    try:
        shape = np.broadcast_shapes(mean.shape, sd.shape)
    except ValueError:
        raise InputError(f"sd: its shape {sd.shape} does not broadcast with that of mean, {mean.shape}") from None
    m, s = (np.broadcast_to(x, shape).ravel() for x in (mean, sd))
    out = np.empty((4, m.size))
    moving = s > 0
    out[:, moving] = _moments(f, m[moving], s[moving]) if moving.any() else 0.0
    with np.errstate(all="ignore"):
        value = f.function(m[~moving])
    if not np.isfinite(value * value).all():
        at = m[~moving][~np.isfinite(value * value)][0]
        raise InputError(f"{f.name}: its value at u = {at:.6g}, or the square of it, is not finite")
    out[:, ~moving] = [value, 0 * value, value**2, 0 * value]
    return Moments(*(row.reshape(shape) for row in out))


def _moments(f: Nonlinearity, mean: Array, sd: Array) -> tuple[Array, ...]:
    if BUILT_IN.get(f.name) is f and f.name in _CLOSED:
        a, b, c, size = _CLOSED[f.name](mean, sd)
        return a, b, c, 8 * np.finfo(float).eps * size
    return by_panels(f.name, f.function, f.kinks, mean, sd)


def _density(x: Array) -> Array:
    return np.exp(-0.5 * x**2) / np.sqrt(2 * np.pi)


def _sign(mean: Array, sd: Array) -> tuple[Array, ...]:
    from scipy.special import erf

    x = np.clip(mean / sd, -40, 40)  # beyond, both are at their limits
    return erf(x / np.sqrt(2)), 2 * _density(x), np.ones_like(x), np.ones_like(x)


def _relu(mean: Array, sd: Array) -> tuple[Array, ...]:
    from scipy.special import ndtr

    x = np.clip(mean / sd, -40, 40)
    below, bell = ndtr(x), _density(x)
    c = (mean**2 + sd**2) * below + mean * sd * bell
    size = np.abs(mean) + sd
    return mean * below + sd * bell, sd * below, c, np.maximum(size, size**2)


def _linear(mean: Array, sd: Array) -> tuple[Array, ...]:
    size = np.abs(mean) + sd
    return mean, sd, mean**2 + sd**2, np.maximum(size, size**2)


def _erf(mean: Array, sd: Array) -> tuple[Array, ...]:
    from scipy.special import erf, owens_t

    width = np.hypot(1.0, sd)
    h = mean / width
    c = 1 - 8 * owens_t(h, 1 / np.sqrt(1 + 2 * sd**2))
    return erf(h / np.sqrt(2)), 2 * sd / width * _density(np.clip(h, -40, 40)), c, np.ones_like(h)


_CLOSED: dict[str, Callable[[Array, Array], tuple[Array, ...]]] = {
    "sign": _sign,
    "relu": _relu,
    "linear": _linear,
    "erf": _erf,
}
