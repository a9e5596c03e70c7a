"""All papers by handle: every folder here is one."""

from __future__ import annotations

import pkgutil
from functools import cache
from pathlib import Path

from ..errors import InputError, unknown
from ..folder import modules
from .ledger import Paper


@cache
def papers() -> dict[str, Paper]:
    """All papers by handle; every folder here is one."""
    found: dict[str, Paper] = {}
    for folder in pkgutil.iter_modules([str(Path(__file__).parent)]):
        if not folder.ispkg:
            continue
        paper: Paper = modules(f"{__package__}.{folder.name}")["paper"].PAPER
        if paper.handle != folder.name:
            raise InputError(f"papers: {folder.name} calls itself {paper.handle!r}; folder and handle must agree")
        found[paper.handle] = paper
    return found


def paper(handle: str) -> Paper:
    """The paper of that handle."""
    if handle not in papers():
        raise unknown("paper", handle, papers())
    return papers()[handle]
