"""Plots of trajectories and comparisons, with matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import unknown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from .trajectory import Trajectory

LABELS = {"error": "generalisation error", "Q": "Q", "R": "R", "v": "v"}


def trajectory(result: Trajectory, name: str, ax: Axes | None = None, **style: Any) -> Axes:
    """Mean over runs of a variable against time, all entries, with a band of one standard deviation."""
    import matplotlib.pyplot as plt

    names = [n for n in result.data.data_vars if "time" in result.data[n].dims]
    if name not in names:
        raise unknown("variable", name, [str(n) for n in names])
    if ax is None:
        _, ax = plt.subplots(layout="constrained")
    values = result.data[name].transpose("run", "time", ...).values
    values = values.reshape(*values.shape[:2], -1)
    mean = values.mean(0)
    label = style.pop(
        "label",
        result.scale if result.size is None or result.scale == "macro" else f"{result.scale}, N = {result.size}",
    )
    line = {"macro": "-", "meso": "--", "micro": ":"}[result.scale]
    positive = result.time > 0
    for i in range(mean.shape[1]):
        drawn = ax.plot(
            result.time[positive], mean[positive, i], label=label if i == 0 else None, **{"ls": line, **style}
        )[0]
        if result.runs > 1:
            spread = values[:, :, i].std(0, ddof=1)[positive]
            ax.fill_between(
                result.time[positive],
                mean[positive, i] - spread,
                mean[positive, i] + spread,
                color=drawn.get_color(),
                alpha=0.2,
                lw=0,
            )
    if result.time.size > 2 and result.time[-1] / max(result.time[positive][0], 1e-300) > 30:
        ax.set_xscale("log")
    if name == "error" and np.all(mean[positive] > 0):
        ax.set_yscale("log")
    ax.set_xlabel("time (samples per input dimension)")
    ax.set_ylabel(LABELS.get(name, name))
    return ax
