"""The room *papers*, what it computes: a figure of a paper, at quick sizes or at those of the paper."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from ...interface.errors import unknown
from .choice import Choice

SIZES = ("quick", "paper")


@dataclass(frozen=True)
class Figured(Choice):
    """A paper, a figure of it, and its sizes; the first figure of the paper if none is named."""

    ROOM: ClassVar[str] = "papers"
    WORDS: ClassVar[Mapping[str, tuple[str, ...]]] = {"sizes": SIZES}
    TEXTS: ClassVar[Mapping[str, int]] = {"paper": 40, "figure": 40}

    paper: str = "committee"
    figure: str = ""
    sizes: str = "quick"

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

    def code(self) -> str:
        quick = ", quick=True" if self.sizes == "quick" else ""
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
    from ...papers import paper
    from ...papers.panels import colours

    made = paper(chosen.paper).figures[chosen.figure]
    arguments: tuple[Any, ...] = (chosen.sizes == "quick",)
    with colours():
        picture, data = made.make(*arguments, None) if made.takes_data else made.make(*arguments)
        shown = {kind: files.picture(picture, kind) for kind in ("png", "svg")}
    plt.close(picture)
    return Drawn({**shown, "nc": files.dataset_bytes(data)})
