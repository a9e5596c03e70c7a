"""Measuring claims: each verdict next to the recorded one, of one paper or of all.

A claim that needs an extra which is not installed is not measured. That is told, and is not the same as one whose
measurement went wrong.
"""

from __future__ import annotations

import json
import time as clock
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from .index import paper, papers
from .ledger import VERDICTS, Claim, Measurement
from .workers import DIED, Task, Trouble, one_by_one

ERROR, MISSING = "in error", "not measured"


@dataclass(frozen=True)
class Row:
    """A claim of a paper and what was measured of it, or the trouble that kept it from being measured."""

    handle: str
    claim: Claim
    measured: Measurement | None
    trouble: Trouble
    seconds: float

    @property
    def as_recorded(self) -> bool:
        """Whether it was measured, with the recorded verdict."""
        return self.found == self.claim.expected

    @property
    def found(self) -> str:
        """The verdict; or that something went wrong, or that an extra is not installed."""
        if self.measured is not None:
            return self.measured.verdict
        return MISSING if self.trouble.install else ERROR

    def __repr__(self) -> str:
        m, claim, found = self.measured, self.claim, self.found
        mark = "ok " if self.as_recorded else "---" if found == MISSING else "NOT"
        result = f"{m.value:.6g} ± {m.error:.1g}{'; ' + m.note if m.note else ''}" if m else self.trouble.words
        return "\n".join(
            (
                f"{mark} {claim.name}: {found} (recorded: {claim.expected}), {self.seconds:.1f} s",
                f"      says: {claim.statement}",
                f"      how: {claim.method}",
                f"      {'measured' if m else found}: {result}",
            )
        )


@dataclass(frozen=True)
class Report:
    """Measured claims next to the recorded verdicts.

    Attributes
    ----------
    rows: one per claim, paper by paper.
    quick: whether they were measured at reduced sizes.
    """

    rows: tuple[Row, ...]
    quick: bool

    @property
    def as_recorded(self) -> bool:
        """Whether every claim was measured, with the recorded verdict."""
        return all(row.as_recorded for row in self.rows)

    @property
    def not_measured(self) -> list[Row]:
        """The claims that need an extra which is not installed."""
        return [row for row in self.rows if row.found == MISSING]

    @property
    def wrong(self) -> list[Row]:
        """The claims that are not as recorded, or went wrong."""
        return [row for row in self.rows if not row.as_recorded and row.found != MISSING]

    @property
    def handles(self) -> list[str]:
        """The papers, in order."""
        return list(dict.fromkeys(row.handle for row in self.rows))

    def summary(self) -> str:
        """A table of the papers: how many claims came out how, and whether as recorded."""
        lines = [["paper", *_counts(()), "seconds"]]
        for name in [*self.handles, "all"] if len(self.handles) > 1 else self.handles:
            rows = [row for row in self.rows if name in (row.handle, "all")]
            lines.append([name, *map(str, _counts(rows).values()), f"{sum(row.seconds for row in rows):.0f}"])
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(
            "  ".join([line[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(line[1:], widths[1:], strict=True))])
            for line in lines
        )

    def to_json(self) -> str:
        """All rows as JSON text, and how many came out how."""
        rows = [
            {
                "paper": row.handle,
                "claim": row.claim.name,
                "statement": row.claim.statement,
                "method": row.claim.method,
                "recorded": row.claim.expected,
                "found": row.found,
                "verdict": row.measured and row.measured.verdict,
                "value": row.measured and row.measured.value,
                "error": row.measured and row.measured.error,
                "note": row.measured.note if row.measured else row.trouble.words,
                "install": row.trouble.install or None,
                "seconds": round(row.seconds, 2),
            }
            for row in self.rows
        ]
        about = {"quick": self.quick, "as_recorded": self.as_recorded, "counts": _counts(self.rows), "claims": rows}
        return json.dumps(about, indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    def __repr__(self) -> str:
        lines: list[str] = []
        for handle in self.handles:
            rows = [row for row in self.rows if row.handle == handle]
            lines += [f"{handle}: {paper(handle).title}", *map(repr, rows)]
            lines.append(f"{sum(row.as_recorded for row in rows)} of {len(rows)} claims as recorded")
        if len(self.handles) > 1:
            lines += ["", self.summary()]
        if self.not_measured:
            lines += ["", f"not measured ({len(self.not_measured)}):"]
            lines += (f"  {row.handle} {row.claim.name}: {row.trouble.words}" for row in self.not_measured)
        return "\n".join(lines)


def _counts(rows: Sequence[Row]) -> dict[str, int]:
    """How many claims there are, came out how, and are as recorded."""
    count = Counter(row.found for row in rows)
    found = {each: count[each] for each in (*VERDICTS, ERROR, MISSING)}
    return {"claims": len(rows), **found, "as recorded": sum(row.as_recorded for row in rows)}


def verify(*handles: str, quick: bool = False, processes: int = 1) -> Report:
    """Measure every claim of these papers, or of all; one that cannot be measured does not keep the others from it.

    Parameters
    ----------
    handles: of the papers; all by default.
    quick: reduced sizes.
    processes: how many claims are measured at the same time; more than one start this script's main module again,
        which must then be guarded by ``if __name__ == "__main__"``.
    """
    from tqdm.auto import tqdm

    chosen = [paper(handle) for handle in handles] or list(papers().values())
    # claims of one module share runs, so they stay in one process
    lists: dict[tuple[str, str], list[Task]] = {}
    for each in chosen:
        for claim in each.claims.values():
            lists.setdefault((each.handle, claim.measure.__module__), []).append((each.handle, claim.name, quick))
    found: dict[tuple[str, str], Outcome] = {}
    count = sum(map(len, lists.values()))
    with tqdm(total=count, desc=", ".join(handles) or "papers", unit="claim", disable=None) as bar:
        begin = lambda task: bar.set_postfix_str(f"{task[0]} {task[1]}")  # noqa: E731
        for (handle, name, _), outcome in one_by_one(list(lists.values()), _measure, processes, begin):
            found[handle, name] = outcome or (None, DIED, 0.0)
            bar.update()
    rows = (Row(p.handle, claim, *found[p.handle, claim.name]) for p in chosen for claim in p.claims.values())
    return Report(tuple(rows), quick)


Outcome = tuple[Measurement | None, Trouble, float]


def _measure(handle: str, name: str, quick: bool) -> Outcome:
    """What was measured of a claim, or what was wrong, and the seconds it took."""
    began = clock.perf_counter()
    measured, trouble = None, Trouble()
    try:
        measured = paper(handle).claims[name].measure(quick)
    except Exception as error:  # whatever is wrong with one claim, the others are measured
        trouble = Trouble.of(error)
    return measured, trouble, clock.perf_counter() - began
