"""The paper, for its figures and claims to register with."""

from __future__ import annotations

from ..ledger import Paper

PAPER = Paper(
    handle="universality",
    title="From empirical observations to universality: dynamics of deep learning with inputs built on Gaussian "
    "mixture",
    citation="J. Bae and H. Jeong, arXiv:2405.00642 (2024)",
)
