"""The paper, for its figures and claims to register with."""

from __future__ import annotations

from ..ledger import Paper

PAPER = Paper(
    handle="scaling",
    title="Analyzing neural scaling laws in two-layer networks with power-law data spectra",
    citation="R. Worschech and B. Rosenow, arXiv:2410.09005 (2024)",
)
