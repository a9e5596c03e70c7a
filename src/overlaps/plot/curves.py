"""Plots of trajectories and comparisons, with matplotlib."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from ..interface.errors import unknown
from . import log_axes
from .axis import along
from .palette import COLOURS, new_axes, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class TrajectoryLike(Protocol):
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
NAMED = 9  # entries of a variable that a legend names
WIDTHS = {name: 2.5 if name == "micro" else 1.2 for name in LINES}


def label(result: TrajectoryLike) -> str:
    """A trajectory in a legend."""
    if result.scale == "macro":
        return "macro (infinite size)"
    return f"{result.scale}, N = {result.size}, {result.runs} run{'s' * (result.runs > 1)}"


def trajectory(result: TrajectoryLike, name: str, ax: Axes | None = None, x: str = "time", **style: Any) -> Axes:
    """Mean over runs of a variable against x, all entries, with a band of one standard deviation.

    Where a theory has a standard error for other rows, the band is two of them about what is expected there.
    """
    evolving = {n: [d for d in ("time", "observed") if d in result.data[n].dims] for n in result.data.data_vars}
    names = [str(n) for n, dims in evolving.items() if dims]
    if name not in names:
        raise unknown("variable", name, names)
    axis = evolving[name][0]
    time, words = along(result.data, axis, x)
    own = False
    if ax is None:
        ax = new_axes()
        own = True
    values = result.data[name].transpose("run", axis, ...).values
    values = values.reshape(*values.shape[:2], -1)
    mean = values.mean(0)
    text = style.pop("label", label(result))
    late = time[time > 0]
    logarithmic = late.size > 1 and late[-1] / late[0] > 30
    shown = time > 0 if logarithmic else time >= 0
    entries = list(np.ndindex(result.data[name].transpose("run", axis, ...).shape[2:]))
    for i, entry in enumerate(entries):
        named = f"{name}{list(entry)}" if own and 1 < len(entries) <= NAMED else text if i == 0 else None
        drawn = ax.plot(
            time[shown],
            mean[shown, i],
            label=named,
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
        if f"{name}_standard_error" in result.data:
            fresh, error = (
                result.data[f"{name}_{kind}"].values[0].reshape(time.size, -1)[shown, i]
                for kind in ("fresh", "standard_error")
            )
            ax.fill_between(time[shown], fresh - 2 * error, fresh + 2 * error, color=drawn.get_color(), alpha=0.2, lw=0)
    if logarithmic:
        ax.set_xscale("log")
    if name == "error" and np.all(mean[shown] > 0):
        ax.set_yscale("log")
    log_axes.label(ax)
    ax.set_xlabel(words)
    ax.set_ylabel(LABELS.get(name, name.replace("_", " ")))
    if own:
        several = 1 < len(entries) <= NAMED
        ax.legend(title=text if several else None, fontsize="small", title_fontsize="small")
    return ax


def outcome(results: Mapping[str, TrajectoryLike], verdicts: Mapping[str, str]) -> Figure:
    """Error and overlaps of all scales against time; one colour per entry, one line style per scale."""
    from matplotlib.lines import Line2D

    figure, axes = panels(1, 3, (13, 4))
    first = next(iter(results.values())).data
    names = ("R" if "R" in first else "m", "Q")
    for ax, name in zip(axes, ("error", *names), strict=True):
        for result in results.values():
            ax.set_prop_cycle(color=COLOURS)
            trajectory(result, name, ax, lw=WIDTHS[result.scale])
    handles = [
        Line2D([], [], color="k", ls=LINES[r.scale], lw=WIDTHS[r.scale], label=label(r)) for r in results.values()
    ]
    axes[0].legend(handles=handles)
    for ax, name in zip(axes[1:], names, strict=True):
        entries = list(np.ndindex(first[name].shape[2:]))
        if len(entries) <= NAMED:
            ax.legend(
                handles=[
                    Line2D([], [], color=COLOURS[i % len(COLOURS)], label=f"{name}{list(e)}")
                    for i, e in enumerate(entries)
                ],
                fontsize="small",
            )
    figure.suptitle("; ".join(f"{pair}: {word}" for pair, word in verdicts.items()))
    return figure
