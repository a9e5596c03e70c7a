"""The front page says what the ledger says."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import overlaps as ov
from overlaps.papers.ledger import VERDICTS

PAGE = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("handle", ov.papers.papers())
def test_claims_are_counted_as_the_ledger_has_them(handle: str) -> None:
    cells = next(line for line in PAGE.splitlines() if line.startswith(f"| `{handle}` |")).split("|")
    count = Counter(claim.expected for claim in ov.papers.paper(handle).claims.values())
    assert [int(cell) for cell in cells[4:9]] == [count[verdict] for verdict in VERDICTS]


def test_its_links_and_pictures_are_there() -> None:
    import re

    for target in re.findall(r"\]\(([^)#]+)\)", PAGE):
        assert target.startswith("https://") or (Path(__file__).parents[1] / target).exists(), target


def test_its_numbers_on_real_rows_are_those_of_the_pages() -> None:
    """Each number of the page on the reader's own rows stands in the page of docs that a command has written."""
    import re

    docs = Path(__file__).parents[1] / "docs"
    said = " ".join(PAGE.split())
    median = re.search(r"median deviation of training from theory is ([\d.]+) %, and ([\d.]+) % where", said)
    assert median is not None
    measured = re.sub(r"[*\n]+", " ", (docs / "real_rows.md").read_text(encoding="utf-8"))
    for number in median.groups():
        assert re.search(rf"median( deviation)?\s+is\s+{re.escape(number)}%", measured), number
    saved = re.search(r"planned schedule saves (\d+) % of the error above the floor where (\d+) % were predicted", said)
    assert saved is not None
    trained, predicted = saved.groups()
    assert f"| error above the floor saved | {predicted} % | {trained} % |" in (docs / "mnist.md").read_text("utf-8")
