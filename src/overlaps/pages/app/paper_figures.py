"""The room *papers*, what it computes: a figure of a paper, at quick sizes or at those of the paper.

Some figures take other numbers than the paper's for a few of its parameters (`PaperFigure.limits`).

>>> Figured("committee", "overlaps", numbers="rate=0.5 units=2").parameters
{'units': 2, 'rate': 0.5}
>>> Figured.of("committee", "overlaps", "quick", {"units": 3, "rate": 0.2}).numbers  # those that are not the paper's
'rate=0.2'
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from ...interface.errors import InputError, unknown
from .choice import Choice

if TYPE_CHECKING:
    from ...papers import PaperFigure

SIZES = ("quick", "paper")


@dataclass(frozen=True)
class Figured(Choice):
    """A paper, a figure of it, and its sizes; the first figure of the paper if none is named.

    numbers: parameters that are not the paper's, as text: ``"units=2 rate=0.5"``.
    """

    ROOM: ClassVar[str] = "papers"
    WORDS: ClassVar[Mapping[str, tuple[str, ...]]] = {"sizes": SIZES}
    TEXTS: ClassVar[Mapping[str, int]] = {"paper": 40, "figure": 40, "numbers": 200}

    paper: str = "committee"
    figure: str = ""
    sizes: str = "quick"
    numbers: str = ""

    def __post_init__(self) -> None:
        from ...papers import papers

        super().__post_init__()
        if self.paper not in papers():
            raise unknown("paper", self.paper, papers())
        figures = papers()[self.paper].figures
        if not self.figure:
            object.__setattr__(self, "figure", next(iter(figures)))
        if self.figure not in figures:
            raise unknown(f"figure of {self.paper}", self.figure, figures)
        _ = self.parameters  # refused here, if at all

    @classmethod
    def of(cls, paper: str, figure: str, sizes: str, numbers: Mapping[str, float | None]) -> Figured:
        """With these numbers as far as the figure takes them, and the paper's for those that are none."""
        chosen = cls(paper, figure, sizes)
        known = chosen.shown.parameters
        other = {name: numbers[name] for name in known if numbers.get(name) not in (None, known[name])}
        return cls(chosen.paper, chosen.figure, sizes, " ".join(f"{name}={value}" for name, value in other.items()))

    @property
    def shown(self) -> PaperFigure:
        """The figure of the ledger."""
        from ...papers import papers

        return papers()[self.paper].figures[self.figure]

    @property
    def other(self) -> dict[str, float]:
        """The parameters that are not the paper's."""
        pairs = {}
        for word in self.numbers.split():
            name, _, value = word.partition("=")
            try:
                pairs[name] = float(value)
            except ValueError:
                raise InputError(f"numbers: expected name=number, such as rate=0.5, got {word[:40]!r}") from None
        return self.shown.allowed(pairs)

    @property
    def parameters(self) -> dict[str, float]:
        """All that may be set, as they are."""
        return self.shown.parameters | self.other

    def code(self) -> str:
        quick = ", quick=True" if self.sizes == "quick" else ""
        quick += f", numbers={self.other}" if self.other else ""
        return f"""from pathlib import Path

from overlaps import papers

picture, data = papers.draw_figure({self.paper!r}, {self.figure!r}, Path("overlaps-figure"){quick})
print(picture, data)
"""


class Drawn(NamedTuple):
    """A figure in the formats that can be downloaded."""

    files: dict[str, bytes]


def draw(chosen: Figured) -> Drawn:
    """A figure as PNG and SVG, and its data as netCDF."""
    import matplotlib.pyplot as plt

    from ...interface import files
    from ...papers.panels import colours

    with colours():
        picture, data = chosen.shown.draw(chosen.sizes == "quick", chosen.other)
        shown = {kind: files.picture(picture, kind) for kind in ("png", "svg")}
    plt.close(picture)
    return Drawn({**shown, "nc": files.dataset_bytes(data)})
