"""Axes and styles of the paper's figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..scaling.panels import TIME, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ALIGNMENT", "PREDICTED", "TIME", "finish", "panels"]

ALIGNMENT = "alignment ρ"
PREDICTED: dict[str, Any] = {"color": "k", "ls": "--", "lw": 1.0}


def finish(ax: Axes, title: str, x: str, y: str, **where: Any) -> None:
    """Labels, a title and a legend, with options of the legend."""
    ax.set(xlabel=x, ylabel=y)
    ax.set_title(title, fontsize="medium")
    ax.legend(fontsize="small", **where)
