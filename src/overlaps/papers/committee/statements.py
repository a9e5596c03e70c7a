"""Statements of the paper that have no claim, and why."""

from __future__ import annotations

from .paper import PAPER

PAPER.no_claim(
    "sections II and III",
    "equations of motion of committees on isotropic inputs",
    "they are what `solve` solves, tested against training and the exact chain",
)
