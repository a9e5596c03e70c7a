"""Labels and styles of the paper's figures: errors against time on logarithmic scales."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..panels import ERROR, TIME, finish

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PRINTED = {"color": "0.6", "ls": "--", "lw": 1.2}  # formulas as printed


def log_log(ax: Axes, title: str, x: str = TIME, y: str = ERROR, *, columns: int = 1) -> None:
    """Logarithmic axes with their labels, a title and a legend of that many columns."""
    ax.set(xscale="log", yscale="log")
    finish(ax, title, x, y, ncols=columns)
