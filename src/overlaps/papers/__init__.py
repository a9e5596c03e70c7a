"""The claims ledger: papers, their figures and their claims, each re-derived by this library.

A paper is one module in this folder. It defines ``PAPER = Paper(handle, title, citation)`` and registers

- figures: ``@PAPER.figure("fig1", "caption")`` on a function ``(quick) -> (matplotlib Figure, xarray.Dataset)``; with
  ``takes_data=True`` on a function ``(quick, data)`` that draws a user's data file, or a shipped set if it is None,
- claims: ``@PAPER.claim("name", statement="...", expected="holds")`` on a function ``(quick) -> Measurement``,

and is found by its file name, or that of its folder where it is long. `verify` measures the claims and compares each
verdict with the recorded one: ``"holds"``, ``"holds corrected"`` (after correcting a formula, which the statement must
give) or ``"fails"``.
"""

from __future__ import annotations

import importlib
import pkgutil
import time as clock
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ..checks import new_folder
from ..errors import InputError, unknown

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
    takes_data: bool = False


@dataclass(frozen=True)
class Paper:
    """A paper and what is registered of it."""

    handle: str
    title: str
    citation: str
    figures: dict[str, PaperFigure] = field(default_factory=dict)
    claims: dict[str, Claim] = field(default_factory=dict)

    def figure(self, name: str, caption: str, *, takes_data: bool = False) -> Callable[[Maker], Maker]:
        """Register a function ``(quick) -> (figure, data)``, or ``(quick, data)`` for one that draws a user's data."""

        def register(make: Maker) -> Maker:
            if name in self.figures:
                raise InputError(f"figure: {self.handle} has {name!r} already")
            self.figures[name] = PaperFigure(name, caption, make, takes_data)
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


@cache
def papers() -> dict[str, Paper]:
    """All papers by handle; every module of this folder is one."""
    found: dict[str, Paper] = {}
    for module in pkgutil.iter_modules(__path__):
        paper = importlib.import_module(f"{__name__}.{module.name}").PAPER
        if paper.handle != module.name:
            raise InputError(f"papers: {module.name}.py calls itself {paper.handle!r}; file name and handle must agree")
        found[paper.handle] = paper
    return found


def paper(handle: str) -> Paper:
    """The paper of that handle."""
    if handle not in papers():
        raise unknown("paper", handle, papers())
    return papers()[handle]


def draw_figure(
    handle: str, figure: str, out: Path, *, quick: bool = False, data: Path | None = None
) -> tuple[Path, Path]:
    """Draw a figure into the new folder `out`; returns the paths of picture and data.

    `data` is a user's file for the figures that draw one.
    """
    import matplotlib.pyplot as plt

    chosen = paper(handle).figures
    if figure not in chosen:
        raise unknown(f"figure of {handle}", figure, chosen)
    made = chosen[figure]
    if data is not None and not made.takes_data:
        able = ", ".join(f.name for f in chosen.values() if f.takes_data) or "none"
        raise InputError(f"data: {figure} of {handle} draws no data of yours (those that do: {able})")
    if out.exists():
        new_folder("out", out)  # refused before computing, and made only once there is something to keep
    picture, values = made.make(quick, data) if made.takes_data else made.make(quick)
    new_folder("out", out)
    paths = out / f"{handle}-{figure}.png", out / f"{handle}-{figure}.nc"
    picture.savefig(paths[0], dpi=150)
    plt.close(picture)
    values.to_netcdf(paths[1], engine="h5netcdf")
    return paths


@dataclass(frozen=True)
class Report:
    """Measured claims of a paper next to the recorded verdicts."""

    paper: Paper
    rows: tuple[tuple[Claim, Measurement, float], ...]

    @property
    def as_recorded(self) -> bool:
        return all(m.verdict == c.expected for c, m, _ in self.rows)

    def __repr__(self) -> str:
        lines = [f"{self.paper.handle}: {self.paper.title}"]
        for claim, m, seconds in self.rows:
            mark = "ok " if m.verdict == claim.expected else "NOT"
            lines.append(f"{mark} {claim.name}: {m.verdict} (recorded: {claim.expected}), {seconds:.1f} s")
            lines.append(f"      says: {claim.statement}")
            lines.append(f"      how: {claim.method}")
            lines.append(f"      measured: {m.value:.6g} ± {m.error:.1g}{'; ' + m.note if m.note else ''}")
        good = sum(m.verdict == c.expected for c, m, _ in self.rows)
        lines.append(f"{good} of {len(self.rows)} claims as recorded")
        return "\n".join(lines)


def verify(handle: str, *, quick: bool = False) -> Report:
    """Measure every claim of a paper."""
    from tqdm.auto import tqdm

    chosen = paper(handle)
    rows: list[tuple[Claim, Measurement, float]] = []
    for claim in tqdm(chosen.claims.values(), desc=handle, unit="claim", disable=None):
        began = clock.perf_counter()
        rows.append((claim, claim.measure(quick), clock.perf_counter() - began))
    return Report(chosen, tuple(rows))
