"""Measuring claims: each verdict next to the recorded one, of one paper or of all.

A claim that needs an extra which is not installed is not measured. That is told, and is not the same as one whose
measurement went wrong. Nor is one undecided, whose measurement, a quick one perhaps, has no power: it does not
contradict the record.

A record is written as claims are measured, and one that was interrupted is gone on with.
"""

from __future__ import annotations

import json
import os
import platform
import time as clock
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from .. import __version__
from ..interface import files
from ..interface.errors import InputError
from ..interface.processes import keeping
from ..interface.progress import bar, without_bars
from .gallery import code_digest
from .index import paper, papers
from .ledger import UNDECIDED, VERDICTS, Claim, Measurement, Paper
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
    date: str = ""

    @property
    def as_recorded(self) -> bool:
        """Whether it was measured, with the recorded verdict."""
        return self.found == self.claim.expected

    @property
    def undecided(self) -> bool:
        """Whether it cannot be told, where the record has another verdict."""
        return self.found == UNDECIDED != self.claim.expected

    @property
    def found(self) -> str:
        """The verdict; or that something went wrong, or that an extra is not installed."""
        if self.measured is not None:
            return self.measured.verdict
        return MISSING if self.trouble.install else ERROR

    def __repr__(self) -> str:
        m, claim, found = self.measured, self.claim, self.found
        mark = "ok " if self.as_recorded else "---" if found == MISSING or self.undecided else "NOT"
        result = f"{m.value:.6g} ± {m.error:.1g}{'; ' + m.note if m.note else ''}" if m else self.trouble.words
        return "\n".join(
            (
                f"{mark} {claim.name}: {found} (recorded: {claim.expected}), {self.seconds:.1f} s",
                f"      where: {claim.where}",
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
    complete: whether these are all that were asked for.
    """

    rows: tuple[Row, ...]
    quick: bool
    complete: bool = True

    @property
    def as_recorded(self) -> bool:
        """Whether every claim was measured, with the recorded verdict."""
        return all(row.as_recorded for row in self.rows)

    @property
    def not_measured(self) -> list[Row]:
        """The claims that need an extra which is not installed."""
        return [row for row in self.rows if row.found == MISSING]

    @property
    def undecided(self) -> list[Row]:
        """The claims that cannot be told by this measurement, where the record has another verdict."""
        return [row for row in self.rows if row.undecided]

    @property
    def wrong(self) -> list[Row]:
        """The claims that contradict the record, or went wrong."""
        return [row for row in self.rows if not (row.as_recorded or row.undecided or row.found == MISSING)]

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
                "where": row.claim.where,
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
                "date": row.date,
                "code": code_digest(row.handle),
            }
            for row in self.rows
        ]
        about = {
            "complete": self.complete,
            "quick": self.quick,
            "versions": versions(),
            "as_recorded": self.as_recorded,
            "counts": _counts(self.rows),
            "claims": rows,
        }
        return json.dumps(about, indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    def conclusion(self) -> str:
        """How many claims are as recorded, and which were not measured or cannot be told."""
        lines = [self._count(handle) for handle in self.handles] if len(self.handles) == 1 else [self.summary()]
        if self.not_measured:
            lines += ["", f"not measured ({len(self.not_measured)}):"]
            lines += (f"  {row.handle} {row.claim.name}: {row.trouble.words}" for row in self.not_measured)
        if self.undecided:
            lines += ["", f"cannot be told by this measurement ({len(self.undecided)}), which is no contradiction:"]
            lines += (f"  {row.handle} {row.claim.name}: recorded {row.claim.expected}" for row in self.undecided)
        return "\n".join(lines)

    def _count(self, handle: str) -> str:
        rows = [row for row in self.rows if row.handle == handle]
        return f"{sum(row.as_recorded for row in rows)} of {len(rows)} claims as recorded"

    def __repr__(self) -> str:
        lines: list[str] = []
        for handle in self.handles:
            rows = [row for row in self.rows if row.handle == handle]
            lines += [f"{handle}: {paper(handle).title}", *map(repr, rows)]
            lines += [self._count(handle)] if len(self.handles) > 1 else []
        return "\n".join([*lines, *([""] if len(self.handles) > 1 else []), self.conclusion()])


def versions() -> dict[str, str]:
    """Of this library, of Python and of what computes."""
    libraries = {name: version(name) for name in ("numpy", "scipy", "numba")}
    return {"overlaps": __version__, "python": platform.python_version(), **libraries}


def _counts(rows: Sequence[Row]) -> dict[str, int]:
    """How many claims there are, came out how, and are as recorded."""
    count = Counter(row.found for row in rows)
    found = {each: count[each] for each in (*VERDICTS, ERROR, MISSING)}
    return {"claims": len(rows), **found, "as recorded": sum(row.as_recorded for row in rows)}


def verify(
    *handles: str,
    quick: bool = False,
    processes: int = 1,
    record: str | os.PathLike[str] | None = None,
    done: Callable[[Row], None] = lambda row: None,
) -> Report:
    """Measure every claim of these papers, or of all; one that cannot be measured does not keep the others from it.

    Parameters
    ----------
    handles: of the papers; all by default.
    quick: reduced sizes.
    processes: how many claims are measured at the same time; more than one start this script's main module again,
        which must then be guarded by ``if __name__ == "__main__"``.
    record: file that has the report as JSON, written anew with each claim; one that was not completed is gone on with:
        what the same code has measured at the same sizes is not measured again.
    done: called with each claim as it is measured, and at the beginning with those of an interrupted record.
    """

    chosen = [paper(handle) for handle in handles] or list(papers().values())
    path = None if record is None else Path(record)
    found = {} if path is None else _kept(path, chosen, quick)

    def row(handle: str, name: str) -> Row:
        return Row(handle, paper(handle).claims[name], *found[handle, name])

    def report(complete: bool) -> Report:
        rows = (row(p.handle, name) for p in chosen for name in p.claims if (p.handle, name) in found)
        return Report(tuple(rows), quick, complete)

    def keep(complete: bool) -> None:
        if path is not None:
            files.write(path, report(complete).to_json())

    # claims of one module share runs, so they stay in one process
    lists: dict[tuple[str, str], list[Task]] = {}
    for each in chosen:
        for claim in each.claims.values():
            if (each.handle, claim.name) in found:
                continue
            lists.setdefault((each.handle, claim.measure.__module__), []).append((each.handle, claim.name, quick))
    missing, count = sum(map(len, lists.values())), sum(len(each.claims) for each in chosen)

    def what_is_kept() -> str:
        if path is None:
            return f"{len(found)} of {count} claims were measured, and are not kept; --json FILE keeps them"
        return f"{len(report(False).rows)} of {count} claims are in {path}; the same command measures the others"

    shown = bar(count, ", ".join(handles) or "papers", "claim", initial=count - missing)
    keep(complete=False)
    for known in report(complete=False).rows:
        done(known)
    with keeping(what_is_kept), shown:
        begin = lambda task: shown.set_postfix_str(f"{task[0]} {task[1]}")  # noqa: E731
        for (handle, name, _), outcome in one_by_one(list(lists.values()), _measure, processes, begin):
            found[handle, name] = outcome or (None, DIED, 0.0, _today())
            keep(complete=False)
            shown.update()
            done(row(handle, name))
    keep(complete=True)
    return report(complete=True)


def _kept(path: Path, chosen: list[Paper], quick: bool) -> dict[tuple[str, str], Outcome]:
    """What an interrupted `verify` has measured at these sizes, by the code as it is now."""
    if not path.exists():
        if not path.parent.is_dir():
            raise InputError(f"json: no folder {path.parent}; make it first")
        return {}
    files.clear_drafts(path.parent)
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
        complete, sizes = about["complete"], about["quick"]
        others = {row["paper"] for row in about["claims"]}.difference(each.handle for each in chosen)
        rows = [row for row in about["claims"] if row["verdict"] and row["code"] == code_digest(row["paper"])]
        found: dict[tuple[str, str], Outcome] = {
            (row["paper"], row["claim"]): (
                Measurement(row["verdict"], row["value"], row["error"], row["note"]),
                Trouble(),
                row["seconds"],
                row["date"],
            )
            for row in rows
        }
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        raise InputError(f"json: {path} exists and is no record of an interrupted verify; give a new file") from None
    if complete:
        raise InputError(f"json: {path} exists; give a new file")
    if sizes is not quick or others:
        what = (
            f"claims of {', '.join(sorted(others))} too"
            if others
            else f"claims measured {'' if sizes else 'not '}quick"
        )
        raise InputError(f"json: {path} holds {what}; give a new file, or the command that was interrupted")
    return found


Outcome = tuple[Measurement | None, Trouble, float, str]


def _today() -> str:
    return clock.strftime("%Y-%m-%d")


def _measure(handle: str, name: str, quick: bool) -> Outcome:
    """What was measured of a claim, or what was wrong, the seconds it took, and the date."""
    began = clock.perf_counter()
    measured, trouble = None, Trouble()
    try:
        with without_bars():  # those who verify have one
            measured = paper(handle).measure(name, quick)
    except Exception as error:  # whatever is wrong with one claim, the others are measured
        trouble = Trouble.of(error)
    return measured, trouble, clock.perf_counter() - began, _today()
