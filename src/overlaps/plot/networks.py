"""A problem as a small picture: the spectrum of its inputs, and a sketch of the networks that read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .log_axes import label
from .palette import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INPUTS, MOST = 5, 6  # nodes that are drawn of the inputs, and of a layer
SMALL = 7  # points of text


def problem(
    ax: Axes, eigenvalues: NDArray[np.float64], fractions: NDArray[np.float64], student: tuple[int, str],
    teacher: tuple[int, str], *, readout: bool = True,
) -> None:  # fmt: skip
    """Draw both on `ax`.

    Parameters
    ----------
    eigenvalues, fractions: of the levels, (levels,).
    student, teacher: units and name of a network; no units where labels come with the data.
    readout: whether the student's units are read out by one, as those of the teacher are.
    """
    ax.set_axis_off()
    spectrum(ax.inset_axes((0.1, 0.2, 0.3, 0.66)), eigenvalues, fractions)
    sketch = ax.inset_axes((0.46, 0.0, 0.54, 1.0))
    sketch.set_axis_off()
    sketch.set(xlim=(-0.4, 4.4), ylim=(-1.5, 1.25))
    inputs = _column(sketch, 2.0, INPUTS, "0.45")
    sketch.text(2.0, -1.42, "inputs", ha="center", fontsize=SMALL)
    for (units, words), middle, end, colour in ((student, 3.0, 4.0, COLOURS[0]), (teacher, 1.0, 0.0, COLOURS[1])):
        if not units:
            sketch.text(0.6, 0.0, words, ha="center", va="center", fontsize=SMALL)
            continue
        hidden = _column(sketch, middle, min(units, MOST), colour)
        _lines(sketch, (2.0, inputs), (middle, hidden), colour)
        if readout or end < middle:
            _lines(sketch, (middle, hidden), (end, np.zeros(1)), colour)
            _column(sketch, end, 1, colour)
        more = f"{units} units" if units > MOST else ""
        sketch.text((middle + end) / 2, 1.1, more, ha="center", fontsize=SMALL)
        sketch.text((middle + end) / 2, -1.2, words, ha="center", fontsize=SMALL, color=colour)


def spectrum(ax: Axes, eigenvalues: NDArray[np.float64], fractions: NDArray[np.float64]) -> None:
    """Eigenvalues, the largest first, against the share of the dimensions that have at least these."""
    order = np.argsort(eigenvalues)[::-1]
    values, ends = eigenvalues[order], np.cumsum(np.concatenate([[0.0], fractions[order]]))
    ax.stairs(values, ends, color=COLOURS[0], fill=True, alpha=0.7)
    positive = values[values > 0]
    if positive.size and positive.max() / positive.min() > 30:
        ax.set_yscale("log")
        label(ax)
    else:
        ax.set_ylim(0, 1.15 * max(float(values.max()), 1e-12))
    ax.set_xlim(0, 1)
    ax.tick_params(which="both", labelsize=SMALL)
    ax.set_xlabel("share of dimensions", fontsize=SMALL)
    ax.set_title("eigenvalues", fontsize=SMALL)


def _column(ax: Axes, x: float, count: int, colour: str) -> NDArray[np.float64]:
    """Nodes one above the other; their heights."""
    heights = np.linspace(0.9, -0.9, count) if count > 1 else np.zeros(1)
    ax.scatter(np.full(count, x), heights, s=30, color=colour, zorder=3)
    return heights


def _lines(ax: Axes, one: tuple[float, Any], other: tuple[float, Any], colour: str) -> None:
    for low in one[1]:
        for high in other[1]:
            ax.plot([one[0], other[0]], [low, high], color=colour, lw=0.5, alpha=0.6)
