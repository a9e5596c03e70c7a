"""Colours that people who see colours differently can distinguish, for pictures on paper and on the screen alike.

The seven colours after black of Okabe and Ito, *Color universal design* (2008), without their yellow, which cannot be
read on white; every line has a style besides. On a dark page they are lightened so that contrast stays above 3 : 1.

>>> contrast("#000000", "#ffffff")
21.0
>>> all(contrast(colour, "#ffffff") > 2.9 for colour in COLOURS)
True
>>> all(contrast(colour, DARK.paper) > 4.5 for colour in DARK.colours)
True
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = ("#0072b2", "#d55e00", "#008f66", "#b0588a", "#2f8fc4", "#a06a00", "#4d4d4d")


class Theme(NamedTuple):
    """Colours of a page: its paper, its ink, faint lines, and the lines of figures."""

    paper: str
    ink: str
    faint: str
    colours: tuple[str, ...]


LIGHT = Theme("#ffffff", "#1f2933", "#d5dae0", COLOURS)
DARK = Theme(
    "#14181d", "#e6e9ed", "#3a424c", ("#56b4e9", "#ff9a4d", "#2fd0a0", "#e59bc6", "#9ad0f5", "#f0c04a", "#c8c8c8")
)


def theme(dark: bool) -> Theme:
    """The colours of a light or of a dark page."""
    return DARK if dark else LIGHT


def panels(rows: int = 1, columns: int = 1, size: tuple[float, float] | None = None) -> tuple[Any, Any]:
    """A new figure of matplotlib and its axes, as of `pyplot.subplots`, whose lines have these colours in turn."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(rows, columns, figsize=size, layout="constrained")
    for ax in figure.axes:
        ax.set_prop_cycle(color=COLOURS)
    return figure, axes


def new_axes() -> Axes:
    """Axes of a figure of their own."""
    return panels()[1]


def luminance(colour: str) -> float:
    """Relative luminance of a colour written as #rrggbb, from 0 to 1 (WCAG 2.1)."""
    parts = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """Ratio of the luminances of two colours, from 1 to 21; text needs 4.5, lines need 3 (WCAG 2.1)."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def translucent(colour: str, share: float) -> str:
    """A colour that lets what is behind it through."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{share:g})"
