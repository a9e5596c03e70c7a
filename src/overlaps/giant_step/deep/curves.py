"""Figures of deep training, with matplotlib: curves against epochs, and classes as points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import xarray as xr

from ..result import LABELS as SCORES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LABELS = {**SCORES, "concordance": "Kendall's W", "recall_all": "Recall@k"}


def spread(variable: xr.DataArray, ax: Axes | None = None) -> Axes:
    """Mean over runs of a variable (run, epoch) or (run, epoch, kind), with a band of one standard deviation."""
    ax = _axes(variable, ax)
    kinds = [str(dim) for dim in variable.dims if dim not in ("run", "epoch")]
    epochs = variable["epoch"].values
    for i in range(variable.sizes[kinds[0]] if kinds else 1):
        one = variable.isel({kinds[0]: i}) if kinds else variable
        text = f"{kinds[0]} {one[kinds[0]].item() if kinds[0] in one.coords else i + 1}" if kinds else None
        mean = one.mean("run").values
        drawn = ax.plot(epochs, mean, label=text)[0]
        if one.sizes["run"] > 1:
            deviation = one.std("run", ddof=1).values
            ax.fill_between(epochs, mean - deviation, mean + deviation, color=drawn.get_color(), alpha=0.2, lw=0)
    if kinds:
        ax.legend()
    return ax


def lines(variable: xr.DataArray, names: Sequence[str], ax: Axes | None = None) -> Axes:
    """A variable (epoch, unseen) of one run, a line for each class."""
    ax = _axes(variable, ax)
    for name, values in zip(names, variable.transpose("unseen", "epoch").values, strict=True):
        ax.plot(variable["epoch"].values, values, label=name)
    return ax


def points(data: xr.Dataset, ax: Axes | None = None) -> Axes:
    """Recall@1 against alignment of the classes at one epoch, one colour for each run."""
    import matplotlib.pyplot as plt

    if ax is None:
        _, ax = plt.subplots(layout="constrained")
    for run, r in enumerate(data["correlation"].values):
        one = data.isel(run=run)
        ax.plot(one["alignment"], 100 * one["recall"], "o", label=f"run {run}, r = {r:.2f}")
    ax.set_xlabel("alignment of the class")
    ax.set_ylabel("Recall@1 of the class (%)")
    ax.legend()
    return ax


def _axes(variable: xr.DataArray, ax: Axes | None) -> Axes:
    import matplotlib.pyplot as plt
    from matplotlib.ticker import MaxNLocator

    if ax is None:
        _, ax = plt.subplots(layout="constrained")
    name = str(variable.name)
    ax.set_xlabel("epoch")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_ylabel(LABELS.get(name, name.replace("_", " ")))
    return ax
