"""The report on `overlaps verify --json`: which claims of which papers hold, and what was measured."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from ... import __version__
from ...interface.errors import InputError
from ...plot import interactive
from ...plot.palette import LIGHT
from ..formulas import written
from .document import Document, Shown, Table

COLUMNS = ("claim", "where", "it says", "found", "recorded", "measured", "how")


def of_verify(path: Path, record: dict[str, Any]) -> Document:
    """Read what `overlaps verify --json` has written."""
    try:
        claims = [{**row, "paper": str(row["paper"])} for row in record["claims"]]
        quick, complete = record["quick"], record["complete"]
        papers = list(dict.fromkeys(row["paper"] for row in claims))
        counts = Counter(row["found"] for row in claims)
        agree = sum(row["found"] == row["recorded"] for row in claims)
        tables = [Table(f"{name}", COLUMNS, [_row(row) for row in claims if row["paper"] == name]) for name in papers]
        seconds = sum(row["seconds"] for row in claims)
    except (KeyError, TypeError):
        raise InputError(f"report: {path} is no record of `overlaps verify --json`; run it again") from None
    sizes = "at reduced sizes (--quick)" if quick else "at full sizes"
    told = ", ".join(f"{count} {word}" for word, count in counts.most_common())
    option = " --quick" if quick else ""
    return Document(
        title=f"Claims of {len(papers)} paper{'s' * (len(papers) != 1)}, measured",
        question="Which claims hold, which need a correction, which fail, and which cannot be told?",
        verdict=f"{agree} of {len(claims)} claims came out as recorded.",
        answer=[f"Found: {told}.", *([] if complete else ["The measurement was interrupted; claims are missing."])],
        figures=_counts(claims, papers),
        tables=tables,
        how=[f"Every claim was measured {sizes}; all of them took {seconds:.0f} seconds of one core each."],
        command=f"overlaps verify {papers[0] if len(papers) == 1 else '--all'}{option} --json {path.name}",
        versions={"overlaps": __version__},
        citations=_citations(papers),
    )


def _row(row: dict[str, Any]) -> list[str]:
    value, error, note = row["value"], row["error"], row["note"] or ""
    number = "" if value is None else f"{value:.5g} ± {error:.1g}" if error else f"{value:.5g}"
    measured = "; ".join(part for part in (number, str(note)) if part)
    return [
        *(str(row[name]) for name in ("claim", "where")),
        written(str(row["statement"])),
        *(str(row[name]) for name in ("found", "recorded")),
        measured,
        str(row["method"]),
    ]


def _counts(claims: list[dict[str, Any]], papers: list[str]) -> list[Shown]:
    """How many claims of each paper came out how."""
    figure = interactive.blank(height=140 + 45 * len(papers))
    for i, word in enumerate(dict.fromkeys(row["found"] for row in claims)):
        many = [sum(row["paper"] == name and row["found"] == word for row in claims) for name in papers]
        shape = ("", "/", ".", "x", "-", "\\", "+")[i % 7]
        marker = {"color": LIGHT.colours[i % len(LIGHT.colours)], "pattern": {"shape": shape}}
        figure.add_bar(y=papers, x=many, name=word, orientation="h", marker=marker)
    figure.update_layout(barmode="stack", hovermode="closest", xaxis_title="claims")
    return [Shown("Verdicts by paper", "Claims of each paper by what was found of them.", figure)] if claims else []


def _citations(handles: list[str]) -> list[str]:
    from ...papers import papers

    known = papers()
    return [f"{known[name].title}. {known[name].citation}" for name in handles if name in known]
