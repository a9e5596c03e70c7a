"""Labels of logarithmic axes: decades, and where there are few of them 2 and 5 as well; all of one size.

>>> ticks(0.02, 0.7)
{'dtick': 'D2', 'tickformat': '~g'}
>>> ticks(1e-6, 10.0)["ticktext"]
['10<sup>−6</sup>', '10<sup>−4</sup>', '10<sup>−2</sup>', '10<sup>0</sup>']
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from plotly.graph_objects import Figure

FEW = 2.0  # decades, up to which 2 and 5 are labelled
MANY = 6  # labels of decades on an axis
PLAIN = 1e-4, 1e5  # numbers between these are written out


def ticks(low: float, high: float) -> dict[str, Any]:
    """Labels of an axis of Plotly that goes from `low` to `high`, both above zero."""
    decades, plain = math.log10(high / low), low >= PLAIN[0] and high <= PLAIN[1]
    if decades <= FEW:
        return {"dtick": "D2", "tickformat": "~g" if plain else ".1~e"}
    step = math.ceil(decades / MANY)
    if plain:
        return {"dtick": step, "tickformat": "~g"}
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1, step)
    words = [f"10<sup>{power}</sup>".replace("-", "−") for power in powers]  # Plotly itself would write 10⁰ as 1
    return {"tickmode": "array", "tickvals": [10.0**power for power in powers], "ticktext": words}


def label_plotly(figure: Figure) -> Figure:
    """Label the logarithmic axes of a figure by what is drawn on them; an axis with a range of its own by that."""
    traces: Any = figure.data
    for key, axis in figure.to_dict()["layout"].items():
        letter = key[0]
        if not key.startswith(("xaxis", "yaxis")) or axis.get("type") != "log":
            continue
        name = key.replace("axis", "")
        drawn = [getattr(trace, letter) for trace in traces if (trace[f"{letter}axis"] or letter) == name]
        values = [np.asarray(each, float).ravel() for each in drawn if each is not None]
        if axis.get("range"):
            values = [10.0 ** np.asarray(axis["range"], float)]
        found = np.concatenate([np.empty(0), *values])
        found = found[np.isfinite(found) & (found > 0)]
        if found.size:
            minor = {"ticks": "outside", "ticklen": 3, "dtick": "D1"}
            figure.layout[key].update(**ticks(float(found.min()), float(found.max())), minor=minor)
    return figure


def label(ax: Axes) -> Axes:
    """Label the logarithmic axes of matplotlib's `ax` in the same way, whatever their limits will be."""
    from matplotlib.ticker import LogFormatterSciNotation, LogLocator, NullFormatter

    class Decades(LogLocator):
        def tick_values(self, vmin: float, vmax: float) -> Any:
            few = 0 < vmin < vmax and math.log10(vmax / vmin) <= FEW
            self.set_params(subs=(1.0, 2.0, 5.0) if few else (1.0,))
            return super().tick_values(vmin, vmax)

    class Words(LogFormatterSciNotation):
        axis: Any

        def __call__(self, x: float, pos: int | None = None) -> str:
            low, high = sorted(self.axis.get_view_interval())
            return f"{x:g}" if low >= PLAIN[0] and high <= PLAIN[1] else super().__call__(x, pos)

    for axis in (ax.xaxis, ax.yaxis):
        if axis.get_scale() == "log":
            axis.set_major_locator(Decades())
            axis.set_major_formatter(Words(labelOnlyBase=False))
            axis.set_minor_formatter(NullFormatter())
    return ax
