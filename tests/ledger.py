"""Breaking one formula of a paper, to see whether its claims notice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


def patched(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, wrong: Callable[..., Any]) -> None:
    """Replace a function by one that is given the right one first."""
    right = getattr(owner, name)
    monkeypatch.setattr(owner, name, lambda *args, **more: wrong(right, *args, **more))
