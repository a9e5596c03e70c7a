"""The paper, for its figures and claims to register with."""

from __future__ import annotations

from ..ledger import Paper

PAPER = Paper(
    handle="comparison",
    title="A Gaussian comparison theorem for training dynamics in machine learning",
    citation="A. Panahi, arXiv:2603.09310 (2026)",
)
