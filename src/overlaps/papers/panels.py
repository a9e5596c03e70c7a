"""Panels that the figures of all papers are made of, in one set of colours that all readers can tell apart.

A figure has at most two panels a row, so that its text is readable at the width of a page.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..plot.palette import COLOURS
from .estimates import mean_error

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TIME = "time (samples per input dimension)"
ERROR = "generalisation error"


@contextmanager
def colours() -> Iterator[None]:
    """Within this, C0, C1, … are the colours of the library, which colour-blind readers can tell apart."""
    import matplotlib.pyplot as plt
    from cycler import cycler

    with plt.rc_context({"axes.prop_cycle": cycler(color=COLOURS)}):
        yield


def panels(rows: int, columns: int) -> tuple[Figure, list[Axes]]:
    """A figure of rows × columns axes, row by row; of more than two columns, in rows of two."""
    import matplotlib.pyplot as plt

    count = rows * columns
    if columns > 2:
        rows, columns = -(-count // 2), 2
    figure, axes = plt.subplots(rows, columns, figsize=(5.6 * columns, 4.2 * rows), layout="constrained", squeeze=False)
    for unused in axes.flat[count:]:
        unused.remove()
    return figure, list(axes.flat[:count])


def finish(ax: Axes, title: str, x: str, y: str, **where: Any) -> None:
    """Labels, a title and a legend, with options of the legend."""
    ax.set(xlabel=x, ylabel=y)
    ax.set_title(title, fontsize="medium")
    ax.legend(fontsize="small", **where)


def headroom(ax: Axes, share: float) -> None:
    """Room for a legend above what is drawn on a linear axis, a share of its height."""
    low, high = ax.get_ylim()
    ax.set_ylim(low, high + share * (high - low))


def titled(figure: Figure, text: str) -> Figure:
    """What a figure is drawn with, on it, in lines that fit."""
    letters = int(13 * figure.get_figwidth())
    lines = (part for line in text.split("\n") for part in wrap(line, letters))
    figure.suptitle("\n".join(lines), fontsize="medium")
    return figure


def band(ax: Axes, times: NDArray[np.float64], values: NDArray[np.float64], color: str, label: str) -> None:
    """Mean over runs (runs, times) with a band of its standard error."""
    mean, error = mean_error(values)
    ax.plot(times, mean, color=color, label=f"{label}, ± standard error")
    ax.fill_between(times, mean - error, mean + error, color=color, alpha=0.25, lw=0)


def step_times(size: int, last: float, count: int, first: float = 1.0) -> NDArray[np.float64]:
    """About `count` logarithmically spaced times from `first` to `last`, each after a whole number of steps."""
    steps = np.unique(np.geomspace(first * size, last * size, count).round())
    return steps / size
