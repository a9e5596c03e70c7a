"""A short version of `make torture`: sweeps and runs that are killed at random end as if nobody had killed them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.table import write_section
from benchmarks.torture import Tally, table, torture


@pytest.mark.skipif(sys.platform != "linux", reason="processes are told apart by /proc")
def test_killed_at_random(tmp_path: Path) -> None:
    told: list[str] = []
    record = tmp_path / "record.json"
    tally = torture(3, 2, tmp_path, ["sweep", "run"], lambda words, **_: told.append(words), record)
    assert tally.counts.total() == 3 and told[-1].startswith("3 of 3 kills") and tally.ended >= 2
    assert Tally.at(record) == tally
    record.write_text(record.read_text().replace('"code": "', '"code": "other '))
    assert Tally.at(record) == Tally(file=record)  # kills of another code do not count
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- torture: begin -->\nold\n<!-- torture: end -->\nafter\n")
    write_section(page, "torture", table(tally))
    text = page.read_text()
    assert text.startswith("before") and text.endswith("after\n") and "old" not in text and "| all |" in text
