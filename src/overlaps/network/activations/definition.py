"""An activation g of hidden units, h ↦ g(h), with its derivative g' and the points where it has a kink.

A user's activation is a pair of plain functions of one number, written with `math` or NumPy:

>>> import math
>>> from overlaps import Activation
>>> Activation("sine", math.sin, math.cos)
Activation('sine')

Both functions are compiled by Numba when they are first needed, so the same two lines serve the
training loop, the overlap chain and the quadrature.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from types import FunctionType
from typing import Any

from ...interface.checks import kinks
from ...interface.errors import InputError, shown

Scalar = Callable[[float], float]


@dataclass(frozen=True)
class Activation:
    """A scalar non-linearity.

    Parameters
    ----------
    name: how it is called in specs, plots and messages.
    function: g, a plain function of one number.
    derivative: g', checked against finite differences of `function`.
    kinks: points where g or g' is not smooth; quadrature splits its panels there.
    """

    name: str
    function: Scalar = field(repr=False)
    derivative: Scalar = field(repr=False)
    kinks: tuple[float, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise InputError(f"name: expected text, got {shown(self.name)}")
        for name, part in (("function", self.function), ("derivative", self.derivative)):
            if not callable(part):
                raise InputError(f"{name}: expected a function of one number, got {shown(part)}")
        object.__setattr__(self, "kinks", kinks(self.kinks))
        step = 1e-6
        for x in (-3.1, -1.7, -0.63, -0.21, 0.17, 0.58, 1.3, 2.9):
            if any(abs(x - k) < 10 * step for k in self.kinks):
                continue
            try:
                value, slope = float(self.function(x)), float(self.derivative(x))
                measured = float(self.function(x + step) - self.function(x - step)) / (2 * step)
            except Exception as error:
                raise InputError(
                    f"activation {self.name!r}: fails at {x}, fields take any value ({type(error).__name__}: {error})"
                ) from error
            if not (math.isfinite(value) and math.isfinite(slope)):
                raise InputError(f"activation {self.name!r}: not finite at {x} (value {value}, slope {slope})")
            if abs(slope - measured) > 1e-6 * (1 + abs(slope) + abs(value)):
                raise InputError(
                    f"activation {self.name!r}: derivative({x}) = {slope:.6g} but finite differences of "
                    f"function give {measured:.6g}; correct derivative, or list the kink in kinks="
                )

    def __repr__(self) -> str:
        return f"Activation({self.name!r})"

    @cached_property
    def compiled(self) -> tuple[Any, Any]:
        """(g, g') as Numba functions of one float."""
        parts = (_plain(part) for part in (self.function, self.derivative))
        g, dg = (compile_plain(part, self.name, "(float64,)") for part in parts)
        return g, dg

    @cached_property
    def is_smooth(self) -> bool:
        """Whether g' is continuous: no kinks are declared, and none is found between −10 and 10."""
        if self.kinks:
            return False
        x = [-10.0037 + 0.01 * i for i in range(2001)]
        slopes = [float(self.derivative(point)) for point in x]
        steepest = sorted(range(2000), key=lambda i: -abs(slopes[i + 1] - slopes[i]))[:20]
        for i in steepest:
            low, high, first = x[i], x[i + 1], abs(slopes[i + 1] - slopes[i])
            ends = slopes[i], slopes[i + 1]
            for _ in range(30):  # towards the half that has more of the change: that of a jump stays, others shrink
                middle = (low + high) / 2
                between = float(self.derivative(middle))
                if abs(between - ends[0]) > abs(ends[1] - between):
                    high, ends = middle, (ends[0], between)
                else:
                    low, ends = middle, (between, ends[1])
            if abs(ends[1] - ends[0]) > max(0.1 * first, 1e-6):
                return False
        return True

    @cached_property
    def sharpness(self) -> float:
        """Largest third derivative of g over its largest slope, away from kinks; quadrature resolves 1/√sharpness.

        1 for erf(x/√2), whose slope is exp(−x²/2), and n for a slope exp(−n x²/2).
        """
        step = 0.02
        x = [-10.0037 + step * i for i in range(1001)]
        slopes = [float(self.derivative(point)) for point in x]
        bends = [
            abs(slopes[i + 1] - 2 * slopes[i] + slopes[i - 1]) / step**2
            for i in range(1, 1000)
            if not any(abs(x[i] - kink) < 2 * step for kink in self.kinks)
        ]
        return max(bends) / max(*map(abs, slopes), 1e-300)

    @cached_property
    def curvature(self) -> Any:
        """g'' as a Numba function, by differences of g' that do not cross a kink."""
        from ...compiled.symbols import njit

        dg, kinks, step = self.compiled[1], (*self.kinks, math.inf), 1e-5

        @njit
        def second(x):  # pragma: no cover - compiled
            low, high = x - step, x + step
            for kink in kinks:
                if low <= kink <= high:
                    low, high = (x, high) if x > kink else (low, x)
            return (dg(high) - dg(low)) / (high - low)

        return second


def _plain(function: Scalar) -> Scalar:
    """A Python function around math.sin or a ufunc, which Numba calls but does not compile by themselves."""
    return function if isinstance(function, FunctionType) else lambda x: function(x)


def compile_plain(function: Callable[..., Any], name: str, signature: str) -> Any:
    """Compile a user's plain function for arguments of that Numba signature, or say why it cannot be."""
    from numba.core.errors import NumbaError

    from ...compiled.symbols import njit

    try:
        compiled = njit(function, error_model="numpy")
        compiled.compile(signature)
    except (TypeError, NumbaError) as error:
        lines = [line.strip() for line in str(error).splitlines()]
        noise = ("Failed in", "File", "During", "def ", "^", "<source")
        reason = next((line for line in lines if line and not line.startswith(noise)), type(error).__name__)
        reason = re.sub(r" from '[^']*'", "", reason)  # where the offending module is installed does not help
        raise InputError(
            f"{name!r}: {getattr(function, '__name__', function)!r} cannot be compiled ({reason}); "
            "write it as a plain function with math, NumPy and loops"
        ) from None
    return compiled
