"""A report as one HTML file that needs no network: what it says, and how it is written.

Plotly is in the file once, figures are JSON beside it. Every text is escaped, figures too (no ``<`` is left in their
JSON), and the page forbids itself to load anything from anywhere (Content-Security-Policy).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...interface import files
from ...interface.errors import InputError, MissingExtraError
from ...plot.palette import DARK, LIGHT

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

MOST = 6_000_000  # bytes of a report
SENT_NOWHERE = {"showSendToCloud": False, "plotlyServerURL": ""}  # Plotly offers to upload what is drawn otherwise


@dataclass(frozen=True)
class Shown:
    """A figure under its heading; `caption` says in words what is to be seen."""

    heading: str
    caption: str
    figure: Figure


@dataclass(frozen=True)
class Table:
    """A table under its heading, (rows, columns) of text; `note` says what stands in it.

    folded: words to open it by, for a table that is long and seldom read.
    """

    heading: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""
    folded: str = ""


@dataclass(frozen=True)
class Document:
    """What a report says.

    Attributes
    ----------
    title, question: what it is about, and what was asked; `terms` says what its words mean.
    verdict: the answer in a word or two; `answer` in sentences.
    how: sentences on how it was computed. versions: of the packages, by name.
    spec: TOML to repeat it with, or empty. command: the command that does.
    """

    title: str
    question: str
    verdict: str
    answer: Sequence[str]
    figures: Sequence[Shown]
    tables: Sequence[Table]
    how: Sequence[str]
    command: str
    versions: dict[str, str] = field(default_factory=dict)
    citations: Sequence[str] = ()
    spec: str = ""
    terms: str = ""

    def to_html(self) -> str:
        """The page."""
        try:
            import jinja2
            from plotly.offline import get_plotlyjs
        except ImportError:
            raise MissingExtraError("a report needs Plotly and Jinja2", "pip install 'overlaps[app]'") from None
        environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
        template = environment.from_string((Path(__file__).parent / "template.html").read_text(encoding="utf-8"))
        drawn = [embedded(shown.figure.to_plotly_json()) for shown in self.figures]
        return template.render(
            page=self, figures=list(zip(self.figures, drawn, strict=True)), light=LIGHT, dark=DARK,
            themes=embedded({"light": _colours(LIGHT), "dark": _colours(DARK)}), config=embedded(SENT_NOWHERE),
            plotly=get_plotlyjs() if drawn else "",
        )  # fmt: skip


def write(document: Document, out: Path) -> Path:
    """Write the page, whole or not at all."""
    if out.is_dir():
        raise InputError(f"out: {out} is a folder; name a file, such as {out / 'report.html'}")
    if not out.parent.is_dir():
        raise InputError(f"out: no folder {out.parent}; make it first")
    text = document.to_html()
    if len(text.encode()) > MOST:
        raise InputError(f"report: it would have {len(text.encode()) / 1e6:.1f} MB, more than {MOST / 1e6:g}")
    return files.write(out, text)


def embedded(value: Any) -> str:
    """JSON that can stand within a script element: nothing in it ends the element or begins another."""
    from plotly.utils import PlotlyJSONEncoder

    text = json.dumps(value, cls=PlotlyJSONEncoder, allow_nan=False, ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _colours(theme: Any) -> list[str]:
    """All colours of a theme as figures write them; those of the other theme stand in the same order."""
    parts = [[str(int(c[i : i + 2], 16)) for i in (1, 3, 5)] for c in theme.colours]
    return [theme.paper, theme.ink, theme.faint, *theme.colours, *(f"rgba({','.join(part)}," for part in parts)]
