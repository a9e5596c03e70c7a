"""Quick figures of the papers, drawn once for all tests of a process."""

from __future__ import annotations

from functools import cache

import matplotlib.pyplot as plt
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.text import Text

from overlaps.papers import paper


@cache
def made(handle: str, name: str) -> tuple[Figure, xr.Dataset]:
    """A figure and its data, of reduced size."""
    figure = paper(handle).figures[name]
    picture, data = figure.make(True, None) if figure.takes_data else figure.make(True)
    plt.close(picture)
    return picture, data


def words(picture: Figure) -> str:
    """All that is written on a figure."""
    return " ".join(text.get_text() for text in picture.findobj(Text))
