"""Every claim of every paper comes out as recorded; papers and claims are found by themselves."""

from __future__ import annotations

import numpy as np
import pytest

from overlaps.papers import papers

CLAIMS = [(handle, name) for handle, paper in papers().items() for name in paper.claims]


@pytest.mark.parametrize("handle, name", CLAIMS, ids=lambda part: part)
def test_claims_are_as_recorded(handle: str, name: str) -> None:
    claim = papers()[handle].claims[name]
    measured = claim.measure(True)
    assert measured.verdict == claim.expected, measured
    assert np.isfinite(measured.value) and 0 <= measured.error < np.inf
    assert claim.method.endswith("."), "the docstring of its function says in one sentence how it is measured"
