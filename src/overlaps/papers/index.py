"""All papers by handle: every folder here is one."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

from ..interface.checks import checked
from ..interface.errors import InputError, unknown
from ..interface.folder import modules
from .ledger import Claim, Paper


@cache
def papers() -> dict[str, Paper]:
    """All papers by handle; every folder here is one. Figures are in the order of print, appendix and tables last;
    claims are in the order of their files.
    """
    found: dict[str, Paper] = {}
    for folder in sorted(path for path in Path(__file__).parent.iterdir() if any(path.glob("*.py"))):
        missing = [name for name in ("__init__.py", "paper.py") if not (folder / name).is_file()]
        if missing:
            raise InputError(f"papers: {folder.name} has no {missing[0]}; a paper is a folder with both")
        paper: Paper = modules(f"{__package__}.{folder.name}")["paper"].PAPER
        if paper.handle != folder.name:
            raise InputError(f"papers: {folder.name} calls itself {paper.handle!r}; folder and handle must agree")
        for figure in paper.figures.values():
            for name in figure.claims:
                if name not in paper.claims:
                    raise unknown(f"claim of {figure.name} of {paper.handle}", name, paper.claims)
        for what, named in (("control", paper.controls), ("pin", paper.pins)):
            for name in named:
                if name not in paper.claims:
                    raise unknown(f"claim of a {what} of {paper.handle}", name, paper.claims)
        # modules register in the order in which they happen to be loaded
        found[paper.handle] = replace(
            paper,
            figures=dict(sorted(paper.figures.items(), key=lambda item: _place(item[0]))),
            claims=dict(sorted(paper.claims.items(), key=lambda item: _line(item[1]))),
        )
    return found


def _line(claim: Claim) -> tuple[str, int]:
    """Where a claim is written down."""
    return claim.measure.__module__, claim.measure.__code__.co_firstlineno


def _place(name: str) -> list[str | int]:
    """To sort names with numbers: fig2, fig2.1, fig10, figK1, table1."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name)]


@checked
def paper(handle: str) -> Paper:
    """The paper of that handle."""
    if handle not in papers():
        raise unknown("paper", handle, papers())
    return papers()[handle]
