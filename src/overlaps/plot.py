"""Plots of trajectories and comparisons, with matplotlib."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from .interface.errors import unknown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class Drawn(Protocol):
    """What is needed of a trajectory to draw it."""

    @property
    def data(self) -> xr.Dataset: ...
    @property
    def scale(self) -> str: ...
    @property
    def size(self) -> int | None: ...
    @property
    def runs(self) -> int: ...
    @property
    def time(self) -> NDArray[np.float64]: ...


LABELS = {"error": "generalisation error", "training_error": "training error"}
LINES = {"macro": "-", "meso": "--", "diffusion": "-.", "micro": ":", "alternative": "-.", "perturbed": "--"}
WIDTHS = {name: 2.5 if name == "micro" else 1.2 for name in LINES}


def label(result: Drawn) -> str:
    """A trajectory in a legend."""
    if result.scale == "macro":
        return "macro (infinite size)"
    return f"{result.scale}, N = {result.size}, {result.runs} run{'s' * (result.runs > 1)}"


def trajectory(result: Drawn, name: str, ax: Axes | None = None, **style: Any) -> Axes:
    """Mean over runs of a variable against time, all entries, with a band of one standard deviation."""
    import matplotlib.pyplot as plt

    along = {n: [d for d in ("time", "observed") if d in result.data[n].dims] for n in result.data.data_vars}
    names = [str(n) for n, dims in along.items() if dims]
    if name not in names:
        raise unknown("variable", name, names)
    if ax is None:
        _, ax = plt.subplots(layout="constrained")
    axis = along[name][0]
    time = result.data[axis].values
    values = result.data[name].transpose("run", axis, ...).values
    values = values.reshape(*values.shape[:2], -1)
    mean = values.mean(0)
    text = style.pop("label", label(result))
    late = time[time > 0]
    logarithmic = late.size > 1 and late[-1] / late[0] > 30
    shown = time > 0 if logarithmic else time >= 0
    for i in range(mean.shape[1]):
        drawn = ax.plot(
            time[shown],
            mean[shown, i],
            label=text if i == 0 else None,
            **{"ls": LINES[result.scale], **style},
        )[0]
        if result.runs > 1:
            spread = values[:, :, i].std(0, ddof=1)[shown]
            ax.fill_between(
                time[shown],
                mean[shown, i] - spread,
                mean[shown, i] + spread,
                color=drawn.get_color(),
                alpha=0.2,
                lw=0,
            )
    if logarithmic:
        ax.set_xscale("log")
    if name == "error" and np.all(mean[shown] > 0):
        ax.set_yscale("log")
    ax.set_xlabel(f"time ({result.data[axis].attrs['units']})")
    ax.set_ylabel(LABELS.get(name, name.replace("_", " ")))
    return ax


def outcome(results: Mapping[str, Drawn], verdicts: Mapping[str, str]) -> Figure:
    """Error and overlaps of all scales against time; one colour per entry, one line style per scale."""
    import matplotlib.pyplot as plt
    from matplotlib.lines import Line2D

    figure, axes = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")
    first = next(iter(results.values())).data
    names = ("R" if "R" in first else "m", "Q")
    for ax, name in zip(axes, ("error", *names), strict=True):
        for result in results.values():
            ax.set_prop_cycle(None)
            trajectory(result, name, ax, lw=WIDTHS[result.scale])
    handles = [
        Line2D([], [], color="k", ls=LINES[r.scale], lw=WIDTHS[r.scale], label=label(r)) for r in results.values()
    ]
    axes[0].legend(handles=handles)
    for ax, name in zip(axes[1:], names, strict=True):
        entries = list(np.ndindex(first[name].shape[2:]))
        if len(entries) <= 9:
            ax.legend(
                handles=[Line2D([], [], color=f"C{i}", label=f"{name}{list(e)}") for i, e in enumerate(entries)],
                fontsize="small",
            )
    figure.suptitle("; ".join(f"{pair}: {word}" for pair, word in verdicts.items()))
    return figure
