"""Sweeps and their pictures, and the names of papers."""

from __future__ import annotations

from typing import Any

import overlaps as ov

from ..problems import QUIET, TIMES, VECTOR, Case

SWEPT = ov.sweep(
    VECTOR, {"algorithm.rate": [0.1, 0.3], "data.spectrum.exponent": [0.5, 1.0]}, times=TIMES, size=20, workers=1,
    progress=False,
)  # fmt: skip


def _errors(rates: Any) -> Any:
    """Errors of the cells that are done; others are missing."""
    found = ov.sweep(VECTOR, {"algorithm.rate": rates}, times=TIMES, size=20, workers=1, progress=False).data
    return found["error"].where(found["status"] == "done", 0.0).values if "error" in found else None


CASES: dict[str, Case] = {
    "sweep": (
        ov.sweep,
        {
            "problem": VECTOR,
            "over": {"algorithm.rate": [0.1]},  # one cell, for which no processes are started
            "seeds": 1,
            "times": TIMES,
            "scales": "macro",
            "size": 20,
            "scale": 1.0,
            "runs": 1,
            "start": None,
            "macro": {},
            "meso": {},
            "store": None,
            "workers": 1,
            **QUIET,
        },
    ),
    "sweep, over": (_errors, {"rates": [0.1, 0.3]}),
    "papers.paper": (ov.papers.paper, {"handle": "committee"}),
    "papers.verdict": (ov.papers.verdict, {"as_printed": 0.1, "corrected": 0.1, "tolerance": 0.2}),
    "papers.told": (
        ov.papers.told,
        {"judged": "reproduced", "value": 1.0, "error": 0.1, "expected": 1.0, "errors": 3.0},
    ),
}
