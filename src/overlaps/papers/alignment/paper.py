"""The paper, for its figures and claims to register with."""

from __future__ import annotations

from ..ledger import Paper

PAPER = Paper(
    handle="alignment",
    title="Emergence of alignment and local elasticity in two-layer neural networks",
    citation="anonymous authors, under double-blind review (year not given)",
)
