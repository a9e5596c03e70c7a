"""What a notebook shows of a result: its `repr`, and where there is one a small picture, as a piece of HTML.

All text is escaped; the picture is inline (PNG), so that a saved notebook shows it without a network.
"""

from __future__ import annotations

import base64
import html
from collections.abc import Callable
from typing import Any

from ..interface import files
from . import log_axes
from .palette import COLOURS

SIZE = 4.2, 2.3  # inches of a picture
STYLE = "display:flex;flex-wrap:wrap;gap:1em;align-items:flex-start"
LONGEST = 1200  # characters of text


def card(text: str, draw: Callable[[Any], object] | None = None, *, describe: str = "") -> str:
    """A piece of HTML: the text, and beside it what `draw` draws on matplotlib axes.

    describe: the picture in words, for those who do not see it.
    """
    short = text if len(text) <= LONGEST else text[:LONGEST].rsplit("\n", 1)[0] + "\n  ..."
    described = f'<pre style="margin:0;white-space:pre-wrap;max-width:44em">{html.escape(short)}</pre>'
    shown = "" if draw is None else picture(draw, describe)
    return f'<div style="{STYLE}">{described}{shown}</div>'


def picture(draw: Callable[[Any], object], describe: str) -> str:
    """A small picture as an element of HTML; nothing of it stays open in pyplot."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=SIZE, layout="constrained")
    FigureCanvasAgg(figure)
    ax = figure.add_subplot()
    ax.set_prop_cycle(color=COLOURS)
    draw(ax)
    log_axes.label(ax)
    for text in (ax.xaxis.label, ax.yaxis.label, ax.title):
        text.set_fontsize(8)
    for each in figure.axes:  # a colour bar has axes too
        each.tick_params(which="both", labelsize=7)
    if ax.get_legend() is not None:
        ax.legend(fontsize=6)
    content = base64.b64encode(files.picture(figure, dpi=90)).decode()
    return f'<img alt="{html.escape(describe)}" src="data:image/png;base64,{content}">'
