"""Axes of the paper's figures: errors against time on logarithmic scales."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TIME = "time (samples per input dimension)"
ERROR = "generalisation error"
PRINTED = {"color": "0.6", "ls": "--", "lw": 1.2}  # formulas as printed


def panels(rows: int, columns: int) -> tuple[Figure, list[Axes]]:
    """A figure of rows × columns axes, row by row."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(rows, columns, figsize=(5.6 * columns, 4.2 * rows), layout="constrained", squeeze=False)
    return figure, list(axes.flat)


def finish(ax: Axes, title: str, x: str = TIME, y: str = ERROR, *, columns: int = 1) -> None:
    """Logarithmic axes with their labels, a title and a legend of that many columns."""
    ax.set(xscale="log", yscale="log", xlabel=x, ylabel=y)
    ax.set_title(title, fontsize="medium")
    ax.legend(fontsize="small", ncols=columns)


def step_times(size: int, last: float, count: int, first: float = 1.0) -> NDArray[np.float64]:
    """About `count` logarithmically spaced times from `first` to `last`, each after a whole number of steps."""
    steps = np.unique(np.geomspace(first * size, last * size, count).round())
    return steps / size


def band(ax: Axes, times: NDArray[np.float64], errors: NDArray[np.float64], color: str, label: str) -> None:
    """Mean over runs (runs, times) with a band of its standard error."""
    mean, error = errors.mean(0), errors.std(0, ddof=1) / np.sqrt(len(errors))
    ax.plot(times, mean, color=color, label=label)
    ax.fill_between(times, mean - error, mean + error, color=color, alpha=0.25, lw=0)
