"""Wrong formulas that the claims must notice."""

from __future__ import annotations

from ..ledger import Patch
from . import paper
from .paper import PAPER


@PAPER.control("plateau", "a height that is one per cent larger")
def plateau(patch: Patch) -> None:
    patch(paper, "plateau_height", lambda right, units: 1.01 * right(units))


@PAPER.control("specialisation", "a rate that is one per cent larger")
def specialisation(patch: Patch) -> None:
    patch(paper, "escape_rate", lambda right, units: 1.01 * right(units))
