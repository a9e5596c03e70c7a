"""What is reported: rows of a name, a value, a goal where there is one, and what the value means."""

from __future__ import annotations

import os
import platform
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path


@dataclass(frozen=True)
class Row:
    """One measurement. `met` is None where no goal was set."""

    what: str
    value: str
    means: str
    goal: str = ""
    met: bool | None = None

    @property
    def verdict(self) -> str:
        """The goal and whether it was met; empty without a goal."""
        return "" if self.met is None else f"{self.goal}: {'met' if self.met else 'MISSED'}"


def at_least(what: str, ratio: float, least: float, means: str) -> Row:
    """A ratio that should not be smaller than `least`."""
    return Row(what, times(ratio), means, f"≥ {least:g}×", ratio >= least)


def at_most(what: str, ratio: float, most: float, means: str) -> Row:
    """A ratio that should not be larger than `most`."""
    return Row(what, times(ratio), means, f"≤ {most:g}×", ratio <= most)


def times(ratio: float) -> str:
    """A ratio, as people say it."""
    return f"{ratio:.3g}×" if ratio < 1000 else f"{float(f'{ratio:.2g}'):,.0f}×"


def share(part: float) -> str:
    """A part of one in percent."""
    return f"{100 * part:.0f} %"


def duration(seconds: float) -> str:
    """Seconds, with a unit that fits."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def machine() -> str:
    """Core count and versions: all that identifies where the numbers come from."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "numba", "overlaps"))
    return f"{os.cpu_count()} cores, one thread used; Python {platform.python_version()}, {packages}"


def as_text(title: str, rows: Sequence[Row]) -> str:
    """A section for the terminal."""
    lines = [title]
    for row in rows:
        verdict = f"   [{row.verdict}]" if row.verdict else ""
        lines.append(f"  {row.what}: {row.value}{verdict}")
        lines.append(textwrap.fill(row.means, 112, initial_indent="      ", subsequent_indent="      "))
    return "\n".join(lines) + "\n"


def summary(sections: Mapping[str, Sequence[Row]]) -> str:
    """How many goals were met, and which were not."""
    judged = [row for rows in sections.values() for row in rows if row.met is not None]
    missed = [row.what for row in judged if not row.met]
    text = f"goals: {len(judged) - len(missed)} of {len(judged)} met"
    return text + (f"; missed: {'; '.join(missed)}" if missed else "")


def as_markdown(sections: Mapping[str, Sequence[Row]]) -> str:
    """All sections as one page."""
    lines = ["# Results of `make bench`", "", f"{machine()}.", ""]
    lines += [
        "The two sides of a ratio take turns; a cost is the least CPU time over the turns, a ratio the median over",
        f"turns. Absolute times are those of one machine, ratios carry over better. {summary(sections)}.",
    ]
    for title, rows in sections.items():
        lines += ["", f"## {title}", "", "| measure | value | goal | what it means |", "|---|---|---|---|"]
        lines += [_line(row.what, row.value, row.verdict, row.means) for row in rows]
    return "\n".join(lines) + "\n"


def as_readme(sections: Mapping[str, Sequence[Row]], front: Mapping[str, str]) -> str:
    """The table of the README: the measures of `front` under the names it gives them, and how many goals were met."""
    rows = {row.what: row for rows in sections.values() for row in rows}
    shown = [_line(name, rows[what].value, rows[what].verdict) for what, name in front.items()]
    judged = [row.met for row in rows.values() if row.met is not None]
    count = f"{sum(judged)} of the {len(judged)} goals in RESULTS.md were met."
    return "\n".join(["| measure | value | goal |", "|---|---|---|", *shown, "", count])


def _around(page: Path, name: str) -> tuple[str, str, str]:
    """A page up to the first of the two marks of this name, what stands between them, and the rest, marks included."""
    begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->\n"
    head, rest = page.read_text(encoding="utf-8").split(begin)
    between, tail = rest.split(end)
    return head + begin, between, end + tail


def read_section(page: Path, name: str) -> str:
    """What stands between the two marks of this name in a page of the documentation."""
    return _around(page, name)[1]


def write_section(page: Path, name: str, text: str) -> None:
    """Replace what stands between the two marks of this name in a page of the documentation."""
    head, _, tail = _around(page, name)
    page.write_text(head + text + tail, encoding="utf-8")


def _line(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
