"""Panels of the figures: scores and recall of unseen classes, measured and predicted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from ..panels import finish
from .model import KINDS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIMILARITY = "train-unseen similarity β·μ"


def spread(ax: Axes, x: ArrayLike, values: xr.DataArray, label: str, **style: Any) -> None:
    """Means over runs (run, unseen) against x (unseen,), with standard deviations."""
    order = np.argsort(np.asarray(x))
    mean, deviation = values.mean("run").values, values.std("run", ddof=1).values
    style = {"fmt": "o", "ms": 3, "lw": 1, "capsize": 2, **style}
    ax.errorbar(np.asarray(x)[order], mean[order], deviation[order], label=label, **style)


def score(ax: Axes, data: xr.Dataset, name: str, x: str, title: str) -> None:
    """A score against e or β·μ, and its theory."""
    across = data[x] if x == "e" else data[x].mean("run")
    spread(ax, across, data[name], "runs, ± standard deviation")
    if x == "e":  # scores jump at e = 0, where nothing is projected out: a line on each side of it, and a point
        line, values = data["line_e"].values, data[f"line_{name}"].values
        sides = [line < 0, line > 0]
        zero = data["e"].values == 0
        if zero.any():
            ax.plot(data["e"].values[zero], data[f"theory_{name}"].values[zero], "kx", ms=7, label="theory at e = 0")
    else:
        line, values = data[f"theory_{x}"].values, data[f"theory_{name}"].values
        sides = [np.argsort(line)]
    for i, side in enumerate(sides):
        ax.plot(line[side], values[side], "k-", lw=1, label=None if i else "theory")
    finish(ax, title, "scale e" if x == "e" else SIMILARITY, name)


def upper_axis(ax: Axes, data: xr.Dataset) -> None:
    """β·μ as a second axis of e, to which it is proportional."""
    e = data["e"].values
    slope = float(np.polyfit(e, data["beta_mu"].mean("run").values, 1)[0])
    scaled = (lambda x: slope * np.asarray(x), lambda x: np.asarray(x) / slope)
    ax.secondary_xaxis("top", functions=scaled).set_xlabel("β·μ")


def all_sets(
    of: Callable[[str, bool, float], xr.Dataset], quick: bool, step: float
) -> tuple[dict[str, xr.Dataset], xr.Dataset]:
    """A setup for each training set, and all in one, variables named after their set."""
    parts = {kind: of(kind, quick, step) for kind in KINDS}
    renamed = [part.rename({str(name): f"{kind}_{name}" for name in part.data_vars}) for kind, part in parts.items()]
    return parts, joined(renamed)


def joined(parts: Sequence[xr.Dataset]) -> xr.Dataset:
    """Datasets with the same coordinates and parameters as one."""
    return xr.merge(list(parts), compat="equals", join="exact", combine_attrs="override")


def recall(ax: Axes, data: xr.Dataset, title: str, name: str, *, logarithmic: bool = False) -> None:
    """Recall before and after the step and the gain, against β·μ."""
    x = data["beta_mu"].mean("run").values
    if logarithmic:
        above = np.flatnonzero(data["e"].values > 0)
        data, x = data.isel(unseen=above), x[above]
        ax.set_xscale("log")
    before, after = data[f"{name}_before"], data[name]
    for values, label, colour in ((before, "before", "C0"), (after, "after", "C1"), (after - before, "gain", "C2")):
        spread(ax, x, values, label, color=colour, fmt="o-" if x.size < 40 else "o")
    finish(ax, title, SIMILARITY, "Recall@1")
