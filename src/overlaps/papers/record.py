"""What a full `overlaps verify --all` has measured: `verify.json`, a row for each claim with its date and its code.

`python -m benchmarks.verdict_pages` takes new rows into it; the documentation and the page show it.

>>> recorded()["committee", "plateau"]["found"], measured({"value": 0.99991, "error": 0.00031})
('holds', '0.9999 ± 0.0003')
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RECORD = Path(__file__).with_name("verify.json")
Row = dict[str, Any]


def recorded(record: Path = RECORD) -> dict[tuple[str, str], Row]:
    """The rows of a record by paper and claim."""
    return {(row["paper"], row["claim"]): row for row in json.loads(record.read_text(encoding="utf-8"))["claims"]}


def measured(row: Row) -> str:
    """The number that was measured, and its error."""
    return f"{row['value']:.4g} ± {row['error']:.1g}"
