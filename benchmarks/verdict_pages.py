"""Tables of verdicts in the documentation: `python -m benchmarks.verdict_pages` writes them.

They come from src/overlaps/papers/verify.json, which is put together of full runs of `overlaps verify --json FILE`:
with files as arguments their rows are taken in first, in place of those of the same claim. Each row keeps the date, the
versions and the digest of the code that measured it, and a row of another statement or method than the claim has now is
refused. What stands between two marks of a page is written anew, the rest is left as it is.

What `verify --all --quick` takes is in benchmarks/verify_quick.json: `--quick` measures it again, on all cores.
"""

from __future__ import annotations

import json
import os
import sys
import time as clock
from collections import Counter
from pathlib import Path
from typing import Any

from overlaps.papers import Paper, papers, verify
from overlaps.papers.ledger import VERDICTS
from overlaps.papers.record import RECORD, Row, measured, recorded

from .statements import counted
from .table import write_section

DOCS = Path(__file__).parents[1] / "docs"
QUICK = Path(__file__).with_name("verify_quick.json")

STATED = ("where", "statement", "method")
KEPT = (*STATED, "verdict", "value", "error", "note", "seconds", "date", "code", "versions")


def in_full(record: Path) -> dict[tuple[str, str], Row]:
    """The rows of a record of full measurements, each with the versions that it was measured with."""
    about = json.loads(record.read_text(encoding="utf-8"))
    if about["quick"]:
        raise SystemExit(f"{record} was measured at reduced sizes")
    used = ", ".join(f"{name} {version}" for name, version in about.get("versions", {}).items())
    return {at: {"versions": used} | row for at, row in recorded(record).items()}


def merged(record: Path, others: list[Path]) -> str:
    """A record of all claims of the ledger, with rows of other records in place of its own."""
    found = in_full(record) if record.exists() else {}
    for other in others:
        found |= in_full(other)
    claims, missing = [], []
    for handle, paper in papers().items():
        for name, claim in paper.claims.items():
            row = found.get((handle, name))
            if row is None or any(row[key] != getattr(claim, key) for key in STATED):
                missing.append(
                    f"{handle} {name}: {'not measured' if row is None else 'measured as it was stated before'}"
                )
                continue
            about = {"paper": handle, "claim": name, "recorded": claim.expected, "found": row["verdict"]}
            claims.append(about | {key: row[key] for key in KEPT})
    if missing:
        raise SystemExit("\n".join(missing))
    as_recorded = sum(row["recorded"] == row["found"] for row in claims)
    counts = {"claims": len(claims), **Counter(row["found"] for row in claims), "as recorded": as_recorded}
    about = {"complete": True, "quick": False, "as_recorded": as_recorded == len(claims)}
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
    lines += ["", "## Statements without a claim", ""]
    statements, claimed = counted(paper)
    lines.append(
        f"{statements} statements, {claimed} with a claim: equations, theorems, figures and the like by their numbers, "
        f"in {len(paper.stated)} claims about what the paper says and {len(paper.unclaimed)} entries of what has none:"
    )
    lines += ["", "| where | statement | why it has none |", "|---|---|---|"]
    lines += (f"| {cell(each.where)} | {cell(each.statement)} | {each.why} |" for each in paper.unclaimed)
    return "\n".join(lines)


def summary(found: dict[tuple[str, str], Row]) -> str:
    """All papers: statements and how many have a claim, and verdicts as measured."""
    heads = ["paper", "statements", "with a claim", "claims on what it says", *VERDICTS[:-1], "found here", "minutes"]
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    for handle, paper in papers().items():
        mine = [found[handle, name] for name in paper.claims]
        count = Counter(row["found"] for row in mine)
        minutes = sum(row["seconds"] for row in mine) / 60
        cells = [f"[{handle}](papers/{handle}.md)", *counted(paper), len(paper.stated)]
        cells += [*(count[each] for each in VERDICTS[:-1]), len(paper.claims) - len(paper.stated), f"{minutes:.0f}"]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    dates = sorted({row["date"] for row in found.values()})
    same = sum(row["found"] == row["recorded"] for row in found.values())
    used = sorted({row["versions"] for row in found.values()})
    lines.append("")
    lines.append(f"Measured in full on {' and '.join(dates)}: {same} of {len(found)} claims as recorded.")
    states = {(handle, row["code"]) for (handle, _), row in found.items()}
    if len(states) > len(papers()):
        lines.append(
            "The record is put together of several runs of `verify`, in which papers and library were in "
            f"{len(states)} states of their code, where one run has {len(papers())}; every row was measured for "
            "the statement and by the method that it shows, and has its own date, versions and digest of the code."
        )
    lines.append(f"Versions: {'; '.join(used)}.")
    return "\n".join(lines)


def measured_quick() -> dict[str, Any]:
    """What `verify --all --quick` takes on all cores here, and how many claims come out how."""
    cores, began, before = os.cpu_count() or 1, clock.perf_counter(), os.times()
    report = verify(quick=True, processes=cores)
    after = os.times()  # of this process, and of those that it has waited for
    used = sum(after[:4]) - sum(before[:4])
    return {
        "date": clock.strftime("%Y-%m-%d"),
        "cores": cores,
        "seconds": round(clock.perf_counter() - began),
        "cpu_seconds": round(used),
        "claims": len(report.rows),
        "as_recorded": sum(row.as_recorded for row in report.rows),
        "undecided": len(report.undecided),
        "wrong": [f"{row.handle} {row.claim.name}" for row in report.wrong],
    }


def quick_words(found: dict[str, Any]) -> str:
    """A sentence about the quick claims, all of which must be measured, and none of which contradicts the record."""
    if found["wrong"] or found["claims"] != found["as_recorded"] + found["undecided"]:
        raise SystemExit(f"{QUICK.name}: of {found['claims']} claims not all are as recorded: {found['wrong']}")
    return (
        f"`verify --all --quick` took {found['seconds'] / 60:.1f} minutes on {found['cores']} cores, and "
        f"{found['cpu_seconds'] / 60:.1f} CPU minutes, on {found['date']}: {found['as_recorded']} of {found['claims']} "
        f"claims as recorded, {found['undecided']} that cannot be told at reduced sizes."
    )


def main(arguments: list[str]) -> int:
    """Take in records, and write the pages."""
    if "--quick" in arguments:
        found = measured_quick()
        quick_words(found)
        QUICK.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    records = [Path(each) for each in arguments if each != "--quick"]
    RECORD.write_text(merged(RECORD, records), encoding="utf-8")
    found = recorded()
    write_section(DOCS / "papers.md", "verdicts", f"\n{summary(found)}\n\n")
    write_section(DOCS / "papers.md", "quick", f"\n{quick_words(json.loads(QUICK.read_text(encoding='utf-8')))}\n\n")
    for handle, paper in papers().items():
        write_section(DOCS / "papers" / f"{handle}.md", "verdicts", f"\n{claims_table(paper, found)}\n\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
