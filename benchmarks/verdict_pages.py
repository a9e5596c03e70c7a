"""Tables of verdicts in the documentation: `python -m benchmarks.verdict_pages` writes them.

They come from src/overlaps/papers/verify.json, the record of a full `overlaps verify --all --json FILE`; each of its
rows has a date, and a digest of the code that measured it. What stands between two marks of a page is written anew, the
rest is left as it is. With files as arguments their rows are taken into the record first, in place of those of the same
claim.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

from overlaps.papers import Paper, papers
from overlaps.papers.ledger import VERDICTS
from overlaps.papers.record import RECORD, Row, measured, recorded
from overlaps.papers.verification import versions

from .table import write_section

DOCS = Path(__file__).parents[1] / "docs"


def merged(record: Path, others: list[Path]) -> str:
    """A record of all claims of the ledger, with rows of other records in place of its own."""
    found = recorded(record) if record.exists() else {}
    for other in others:
        found |= recorded(other)
    claims = []
    for handle, paper in papers().items():
        for name, claim in paper.claims.items():
            row = found.get((handle, name))
            if row is None:
                raise SystemExit(f"{handle} {name} has not been measured")
            about = {"paper": handle, "claim": name, "where": claim.where, "statement": claim.statement}
            about |= {"method": claim.method, "recorded": claim.expected, "found": row["verdict"]}
            kept = ("verdict", "value", "error", "note", "seconds", "date", "code")
            claims.append(about | {key: row[key] for key in kept})
    as_recorded = sum(row["recorded"] == row["found"] for row in claims)
    counts = {"claims": len(claims), **Counter(row["found"] for row in claims), "as recorded": as_recorded}
    about = {"complete": True, "quick": False, "versions": versions(), "as_recorded": as_recorded == len(claims)}
    return json.dumps(about | {"counts": counts, "claims": claims}, indent=1, ensure_ascii=False) + "\n"


def cell(text: str) -> str:
    """Text that may stand in a table: angle brackets and bars are no HTML and no edges."""
    return text.replace("|", "\\|").replace("<", "&lt;").replace(">", "&gt;").replace("*", "\\*").replace("_", "\\_")


def claims_table(paper: Paper, found: dict[tuple[str, str], Row]) -> str:
    """Claims, and statements without one."""
    lines = [":::{container} stacked claims"]
    lines.append("| claim | where | verdict | number ± error | what it says | what is measured | control |")
    lines.append("|---|---|---|---|---|---|---|")
    for name, claim in paper.claims.items():
        row = found[paper.handle, name]
        controls = "; ".join(control.words for control in paper.controls[name])
        parts = [cell(claim.where), row["found"], measured(row), *map(cell, (claim.statement, claim.method, controls))]
        lines.append(" | ".join([f"| `{name}`", *parts]) + " |")
    lines.append(":::")
    said = len(paper.stated) + len(paper.unclaimed)
    lines += ["", "## Statements without a claim", ""]
    lines.append(f"{said} statements were found in the paper, of which {len(paper.stated)} have a claim. The others:")
    lines += ["", "| where | statement | why it has none |", "|---|---|---|"]
    lines += (f"| {cell(each.where)} | {cell(each.statement)} | {each.why} |" for each in paper.unclaimed)
    return "\n".join(lines)


def summary(found: dict[tuple[str, str], Row]) -> str:
    """All papers: statements, claims and verdicts, as measured."""
    heads = ["paper", "statements", "with a claim", "found here", *VERDICTS[:-1], "minutes"]
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    for handle, paper in papers().items():
        mine = [found[handle, name] for name in paper.claims]
        count = Counter(row["found"] for row in mine)
        minutes = sum(row["seconds"] for row in mine) / 60
        cells = [f"[{handle}](papers/{handle}.md)", len(paper.stated) + len(paper.unclaimed), len(paper.stated)]
        cells += [count["found here"], *(count[verdict] for verdict in VERDICTS[:-1]), f"{minutes:.0f}"]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    dates = sorted({row["date"] for row in found.values()})
    same = sum(row["found"] == row["recorded"] for row in found.values())
    used = ", ".join(f"{name} {version}" for name, version in json.loads(RECORD.read_text())["versions"].items())
    lines.append("")
    lines.append(f"Measured in full on {' and '.join(dates)}: {same} of {len(found)} claims as recorded ({used}).")
    states = {(handle, row["code"]) for (handle, _), row in found.items()}
    if len(states) > len(papers()):
        lines.append(
            f"The record is put together of several runs: papers and library were in {len(states)} states of "
            f"their code, instead of {len(papers())}."
        )
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """Take in records, and write the pages."""
    RECORD.write_text(merged(RECORD, [Path(each) for each in arguments]), encoding="utf-8")
    found = recorded()
    write_section(DOCS / "papers.md", "verdicts", f"\n{summary(found)}\n\n")
    for handle, paper in papers().items():
        write_section(DOCS / "papers" / f"{handle}.md", "verdicts", f"\n{claims_table(paper, found)}\n\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
