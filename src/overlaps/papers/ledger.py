"""The claims ledger: what a paper says and shows, and how it is measured and drawn here.

A paper is a folder beside this file. Its module `paper` defines ``PAPER = Paper(handle, title, citation)``, and any of
its modules registers

- figures: ``@PAPER.figure("fig1", "caption", claims=("name",))`` on a function ``(quick) -> (matplotlib Figure,
  xarray.Dataset)``; with ``takes_data=True`` on a function ``(quick, data)`` that draws a user's data file, or a
  shipped set if it is None; `claims` are those that the figure shows; `limits` name keyword arguments of the function,
  parameters of the paper by default, that may be set to other numbers; `reduced` says what is drawn in place of what
  the paper has, where not all of that can be drawn here,
- claims: ``@PAPER.claim("name", where="eq. (3)", statement="...", expected="holds")`` on a function ``(quick) ->
  Measurement``; `where` is the place of the paper that is judged,
- pins: ``@PAPER.pin("name", ..., number=0.5)`` on a function ``() -> number``, a formula as printed at given numbers: a
  claim whose printed formula gives another number is in error,
- statements without a claim: ``PAPER.no_claim("eq. (4)", "what is said", "why there is none")``,
- controls: ``@PAPER.control("name", "what is made wrong")`` on a function ``(patch) -> None`` that breaks a formula by
  ``patch(owner, "function", wrong)``, so that the claim must come out with another verdict.

A claim is judged where the paper makes it, and then at its limit. Its recorded verdict is one of

    holds            as the paper says
    holds corrected  after a correction, which the statement gives
    fails            not as the paper says
    cannot be told   data, sizes or details are not to be had, or the test has no power
    found here       what the paper does not say; where measurement does not bear it out, it fails
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from ..interface.checks import checked, number, whole
from ..interface.errors import InputError, unknown

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure as Picture

Maker = TypeVar("Maker", bound=Callable[..., Any])
Wrong = Callable[..., Any]  # given the right function first, and then its arguments
Patch = Callable[[Any, str, Wrong], None]
VERDICTS = ("holds", "holds corrected", "fails", "cannot be told", "found here")
UNDECIDED = "cannot be told"
POWER = 0.1  # what a measurement must be able to notice, as a share of what is claimed


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
    """What a paper says, where it says so, and how it is measured here."""

    name: str
    where: str
    statement: str
    expected: str
    measure: Callable[[bool], Measurement]

    @property
    def method(self) -> str:
        """How it is measured: the first line of the measuring function's docstring."""
        return (self.measure.__doc__ or "").strip().split("\n")[0]


def verdict(as_printed: float, corrected: float, tolerance: float) -> str:
    """From the deviations of a formula and of its correction."""
    as_printed, corrected = number("as_printed", as_printed), number("corrected", corrected)
    if as_printed <= number("tolerance", tolerance):
        return "holds"
    return "holds corrected" if corrected <= tolerance else "fails"


@checked
def told(judged: str, value: float, error: float, expected: float = 1.0, errors: float = 3.0) -> str:
    """A verdict on a number, or that it cannot be told.

    So many `errors` wider than a tenth of what is `expected` say nothing for a claim, wherever the number is, and
    nothing against it unless the number is outside of them.
    """
    value, error = number("value", value), number("error", error, least=0)
    expected, errors = number("expected", expected), number("errors", errors, least=0)
    near = abs(value - expected) <= errors * error
    wide = errors * error > POWER * abs(expected)
    return UNDECIDED if wide and (near or judged != "fails") else judged


@dataclass(frozen=True)
class Control:
    """A wrong formula, in words, and what breaks it: a claim that does not notice has no power."""

    words: str
    apply: Callable[[Patch], None]


@dataclass(frozen=True)
class Pin:
    """A formula as printed at given numbers, and what it gives: a slip of the pen in it shows."""

    value: Callable[[], float]
    number: float

    def check(self) -> None:
        """An error if the formula gives another number, to six digits."""
        found = float(self.value())
        if not math.isclose(found, self.number, rel_tol=2e-6, abs_tol=1e-12):
            name = f"{self.value.__module__.rsplit('.', 2)[-2]} {self.value.__name__}"
            raise ArithmeticError(f"printed formula: {name} gives {found:.7g} in place of {self.number:.7g}")


@dataclass(frozen=True)
class Unclaimed:
    """A statement of a paper that has no claim, where it is made, and why there is none."""

    where: str
    statement: str
    why: str


@dataclass(frozen=True)
class PaperFigure:
    """A figure with the paper's parameters, of which those in `limits` may be set between their least and most.

    reduced: what is drawn in place of what the paper has, where not all of that can be drawn here, not quick either.
    """

    name: str
    caption: str
    make: Callable[..., tuple[Picture, xr.Dataset]]
    claims: tuple[str, ...] = ()
    takes_data: bool = False
    limits: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    reduced: str = ""

    @property
    def parameters(self) -> dict[str, float]:
        """The paper's values of what may be set."""
        signature = inspect.signature(self.make).parameters
        return {name: signature[name].default for name in self.limits}

    def allowed(self, numbers: Mapping[str, float]) -> dict[str, float]:
        """Parameters to draw with, whole where the paper's are."""
        known, found = self.parameters, {}
        for name, value in numbers.items():
            if name not in known:
                raise unknown(f"parameter of {self.name}", name, known)
            least, most = self.limits[name]
            if isinstance(known[name], int):
                found[name] = whole(name, value, least=int(least), most=int(most))
            else:
                found[name] = number(name, value, least=least)
                if found[name] > most:
                    raise InputError(f"{name}: expected at most {most:g}, got {found[name]:g}")
        return found

    def draw(self, quick: bool, numbers: Mapping[str, float] | None = None, data: Any = None) -> tuple[Picture, Any]:
        """The picture and its data (a dataset), with other `numbers` for some of the parameters."""
        chosen = self.allowed(numbers or {})
        return self.make(quick, data, **chosen) if self.takes_data else self.make(quick, **chosen)


@dataclass(frozen=True)
class Paper:
    """A paper and what is registered of it."""

    handle: str
    title: str
    citation: str
    figures: dict[str, PaperFigure] = field(default_factory=dict)
    claims: dict[str, Claim] = field(default_factory=dict)
    controls: dict[str, list[Control]] = field(default_factory=dict)
    pins: dict[str, list[Pin]] = field(default_factory=dict)
    unclaimed: list[Unclaimed] = field(default_factory=list)

    @property
    def stated(self) -> list[Claim]:
        """The claims that are about a statement of the paper, and not found here."""
        return [claim for claim in self.claims.values() if claim.expected != "found here"]

    def no_claim(self, where: str, statement: str, why: str) -> None:
        """List a statement of the paper that has no claim."""
        self.unclaimed.append(Unclaimed(where, statement, why))

    def measure(self, name: str, quick: bool) -> Measurement:
        """What is measured of a claim, after its printed formulas have been held against their pins."""
        for pin in self.pins.get(name, ()):
            pin.check()
        return self.claims[name].measure(quick)

    def figure(
        self,
        name: str,
        caption: str,
        *,
        claims: tuple[str, ...] = (),
        takes_data: bool = False,
        limits: Mapping[str, tuple[float, float]] | None = None,
        reduced: str = "",
    ) -> Callable[[Maker], Maker]:
        """Register a function ``(quick) -> (figure, data)``, or ``(quick, data)`` for one that draws a user's data.

        limits: least and most of keyword arguments of the function that may be set.
        reduced: what is drawn in place of what the paper has, where not all of that can be drawn here.
        """

        def register(make: Maker) -> Maker:
            if name in self.figures:
                raise InputError(f"figure: {self.handle} has {name!r} already")
            self.figures[name] = PaperFigure(name, caption, make, claims, takes_data, dict(limits or {}), reduced)
            return make

        return register

    def claim(
        self, name: str, *, where: str, statement: str, expected: str
    ) -> Callable[..., Callable[[bool], Measurement]]:
        """Register a function ``(quick) -> Measurement``.

        Parameters
        ----------
        where: the place of the paper that is judged: equation, section, figure, table or theorem, by its number.
        statement: what is said there, and the correction where one is needed.
        expected: the recorded verdict.
        """
        if expected not in VERDICTS:
            raise unknown("verdict", expected, VERDICTS)
        if not where.strip():
            raise InputError(f"where: expected the place of {self.handle} that {name!r} judges, such as 'eq. (3)'")

        def register(measure: Callable[[bool], Measurement]) -> Callable[[bool], Measurement]:
            if name in self.claims:
                raise InputError(f"claim: {self.handle} has {name!r} already")
            self.claims[name] = Claim(name, where, statement, expected, measure)
            return measure

        return register

    def control(self, name: str, words: str) -> Callable[[Callable[[Patch], None]], Callable[[Patch], None]]:
        """Register a function ``(patch) -> None`` that makes a formula behind a claim wrong, and in words which."""

        def register(apply: Callable[[Patch], None]) -> Callable[[Patch], None]:
            self.controls.setdefault(name, []).append(Control(words, apply))
            return apply

        return register

    def pin(self, *names: str, number: float) -> Callable[[Callable[[], float]], Callable[[], float]]:
        """Register a function ``() -> number``, a printed formula behind these claims at given numbers."""

        def register(value: Callable[[], float]) -> Callable[[], float]:
            for name in names:
                self.pins.setdefault(name, []).append(Pin(value, number))
            return value

        return register
