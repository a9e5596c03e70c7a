"""The claims ledger: what a paper says and shows, and how it is measured and drawn here.

A paper is a folder beside this file. Its module `paper` defines ``PAPER = Paper(handle, title, citation)``, and any of
its modules registers

- figures: ``@PAPER.figure("fig1", "caption", claims=("name",))`` on a function ``(quick) -> (matplotlib Figure,
  xarray.Dataset)``; with ``takes_data=True`` on a function ``(quick, data)`` that draws a user's data file, or a
  shipped set if it is None; `claims` are those that the figure shows,
- claims: ``@PAPER.claim("name", statement="...", expected="holds")`` on a function ``(quick) -> Measurement``.

The recorded verdict of a claim is ``"holds"``, ``"holds corrected"`` (after correcting a formula, which the statement
must give) or ``"fails"``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from ..interface.errors import InputError, unknown

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure as Picture

Maker = TypeVar("Maker", bound=Callable[..., Any])
VERDICTS = ("holds", "holds corrected", "fails")


@dataclass(frozen=True)
class Measurement:
    """What was measured of a claim: a verdict, the number behind it and its error."""

    verdict: str
    value: float
    error: float
    note: str = ""

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            raise unknown("verdict", self.verdict, VERDICTS)
        if not (math.isfinite(self.value) and 0 <= self.error < math.inf):
            raise InputError(f"value: expected a number and its error, zero or more, got {self.value} ± {self.error}")


@dataclass(frozen=True)
class Claim:
    """What a paper says, and how it is measured here."""

    name: str
    statement: str
    expected: str
    measure: Callable[[bool], Measurement]

    @property
    def method(self) -> str:
        """How it is measured: the first line of the measuring function's docstring."""
        return (self.measure.__doc__ or "").strip().split("\n")[0]


def verdict(as_printed: float, corrected: float, tolerance: float) -> str:
    """From the deviations of a formula and of its correction."""
    if as_printed <= tolerance:
        return "holds"
    return "holds corrected" if corrected <= tolerance else "fails"


@dataclass(frozen=True)
class PaperFigure:
    """A figure with the paper's parameters."""

    name: str
    caption: str
    make: Callable[..., tuple[Picture, xr.Dataset]]
    claims: tuple[str, ...] = ()
    takes_data: bool = False


@dataclass(frozen=True)
class Paper:
    """A paper and what is registered of it."""

    handle: str
    title: str
    citation: str
    figures: dict[str, PaperFigure] = field(default_factory=dict)
    claims: dict[str, Claim] = field(default_factory=dict)

    def figure(
        self, name: str, caption: str, *, claims: tuple[str, ...] = (), takes_data: bool = False
    ) -> Callable[[Maker], Maker]:
        """Register a function ``(quick) -> (figure, data)``, or ``(quick, data)`` for one that draws a user's data."""

        def register(make: Maker) -> Maker:
            if name in self.figures:
                raise InputError(f"figure: {self.handle} has {name!r} already")
            self.figures[name] = PaperFigure(name, caption, make, claims, takes_data)
            return make

        return register

    def claim(self, name: str, *, statement: str, expected: str) -> Callable[..., Callable[[bool], Measurement]]:
        """Register a function ``(quick) -> Measurement``; `expected` is the recorded verdict."""
        if expected not in VERDICTS:
            raise unknown("verdict", expected, VERDICTS)

        def register(measure: Callable[[bool], Measurement]) -> Callable[[bool], Measurement]:
            if name in self.claims:
                raise InputError(f"claim: {self.handle} has {name!r} already")
            self.claims[name] = Claim(name, statement, expected, measure)
            return measure

        return register
