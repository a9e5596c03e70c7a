"""Labels and styles of the paper's figures: errors against time on logarithmic scales."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..panels import ERROR, TIME, finish

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PRINTED = {"color": "0.3", "ls": (0, (1, 2)), "lw": 2.0}  # formulas as printed


def log_log(ax: Axes, title: str, x: str = TIME, y: str = ERROR, **where: Any) -> None:
    """Logarithmic axes with their labels, a title and a legend, with options of the legend."""
    ax.set(xscale="log", yscale="log")
    finish(ax, title, x, y, **where)
