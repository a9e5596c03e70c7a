"""The paper, for its figures and claims to register with."""

from __future__ import annotations

from ..ledger import Paper

PAPER = Paper(
    handle="outliers",
    title="High-dimensional SGD aligns with emerging outlier eigenspaces",
    citation="G. Ben Arous, R. Gheissari, J. Huang and A. Jagannath, arXiv:2310.03010 (2023)",
)
