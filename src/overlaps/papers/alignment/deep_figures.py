"""Setups 3 and 4 on images: figure 4, and the tables 1, 3 and 4 as pictures.

They draw a folder of a user's images (`images.image_sets` says how it is read), and the digits without one.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from ..panels import finish, panels, titled
from .deep_runs import Training, metrics, pairs
from .paper import PAPER

if TYPE_CHECKING:
    from matplotlib.figure import Figure

REDUCED = (
    "residual networks of three stages, trained on digits from random weights, in place of ResNets on CARS196 and "
    "CUB200; `--data` names a folder of other images"
)


def spoken(quick: bool, chosen: Training, full: Training, names: list[str]) -> str:
    """What a figure or table is made with, and what a quick one leaves out."""
    text = chosen.note(", ".join(names)) + "; in print ResNets on CARS196 and CUB200"
    if not quick:
        return text
    pairs_of = {
        "epochs": (chosen.epochs, full.epochs),
        "stages": (len(chosen.widths), len(full.widths)),
        "images of a class": (chosen.images, full.images),
        "outputs": (chosen.outputs, full.outputs),
    }
    return f"{text}\nquick: " + ", ".join(f"{a} {what} instead of {b}" for what, (a, b) in pairs_of.items() if a != b)


@PAPER.figure(
    "fig4",
    "Kendall's W of |β·μ|, alignment and elasticity of five unseen classes against epochs (setup 3), for each set "
    "trained on; a folder of image classes, or the digits",
    claims=("setup-3",),
    reduced=REDUCED,
    takes_data=True,
)
def fig4(quick: bool, data: Path | None) -> tuple[Figure, xr.Dataset]:
    """A panel for each set that is trained on, a line for each set of unseen classes: mean and deviation over runs."""
    found = pairs(quick, data)
    figure, axes = panels(1, len(found))
    kept = {}
    for ax, (name, one) in zip(axes, found.items(), strict=True):
        W = one["concordance"].isel(epoch=slice(1, None))
        for unseen in one["set"].values:
            mean, deviation = (getattr(W.sel(set=unseen), f)("run").values for f in ("mean", "std"))
            ax.plot(W["epoch"], mean, label=f"unseen classes of {unseen}, ± deviation")
            ax.fill_between(W["epoch"], mean - deviation, mean + deviation, alpha=0.2, lw=0)
        ax.set_ylim(0, 1.05)
        finish(ax, f"trained with {name}", "epoch", "Kendall's W")
        kept[f"concordance_{name}"] = W.assign_attrs(long_name=f"Kendall's W, trained with {name}")
    note = spoken(quick, Training.pair(quick), Training.pair(False), list(found))
    values = xr.Dataset(kept, attrs={"parameters": note})
    return titled(figure, values.attrs["parameters"]), values


def seeds(one: xr.Dataset, name: str) -> xr.Dataset:
    """The rows of table 3 or 4: columns (run, column), their mean and deviation, and the combined p-value."""
    last = one.isel(epoch=-1)
    columns = {
        "R@1 v. align": last["correlation"],
        "p-value": last["p_value"],
        **{f"Recall@{k}": 100 * last["recall_all"].sel(neighbours=k) for k in last["neighbours"].values},
        "avg. align": last["alignment_mean"],
    }
    table = np.stack([column.values for column in columns.values()], axis=1)
    mean, deviation = table.mean(0), table.std(0, ddof=1)
    mean[1], deviation[1] = float(last["combined_p_value"]), 0.0
    text = {"long_name": f"{name}: last epoch"}
    return xr.Dataset(
        {
            "seed": (("run", "column"), table, text),
            "mean": ("column", mean, {"long_name": f"{name}: mean over runs, combined p-value"}),
            "deviation": ("column", deviation, {"long_name": f"{name}: standard deviation over runs"}),
        },
        {"column": list(columns)},
    )


def cells(table: xr.Dataset, columns: list[str]) -> list[str]:
    """Mean ± deviation of columns; p-values as they are, recall in per cent."""
    one = table.sel(column=columns)
    pairs_of = zip(columns, one["mean"].values, one["deviation"].values, strict=True)
    digits = {c: 1 if c.startswith("Recall") else 2 for c in columns}
    return [f"{m:.4f}" if c == "p-value" else f"{m:.{digits[c]}f} ± {s:.{digits[c]}f}" for c, m, s in pairs_of]


def headed(column: str) -> str:
    """What stands over a column: recall is in per cent."""
    return f"{column} (%)" if column.startswith("Recall") else column


def shown(rows: list[list[str]], columns: list[str], labels: list[str]) -> Figure:
    """A table as a figure."""
    import matplotlib.pyplot as plt
    from matplotlib.transforms import Bbox

    figure, ax = plt.subplots(figsize=(max(1.5 * len(columns) + 1.5, 9), 0.3 * len(rows) + 1.1), layout="constrained")
    ax.axis("off")
    table = ax.table(
        rows,
        colLabels=[headed(c) for c in columns],
        rowLabels=labels,
        cellLoc="center",
        bbox=Bbox.from_bounds(0.08, 0, 0.92, 1),
    )
    table.auto_set_font_size(False)
    table.set_fontsize(9)
    return figure


@PAPER.figure(
    "table1",
    "correlation of Recall@1 and alignment over unseen classes with its combined p-value, and both at the end of "
    "training (setup 4); a folder of image classes, or the digits",
    claims=("setup-4",),
    reduced=REDUCED,
    takes_data=True,
)
def table1(quick: bool, data: Path | None) -> tuple[Figure, xr.Dataset]:
    """A row for each set."""
    tables = {name: seeds(one, name) for name, one in metrics(quick, data).items()}
    columns = ["R@1 v. align", "p-value", "Recall@1", "avg. align"]
    figure = shown([cells(t, columns) for t in tables.values()], columns, list(tables))
    joined = xr.concat(
        [t.sel(column=columns) for t in tables.values()], xr.DataArray(list(tables), dims="set", name="set")
    )
    joined.attrs["parameters"] = spoken(quick, Training.metric(quick), Training.metric(False), list(tables))
    return titled(figure, joined.attrs["parameters"]), joined


def by_seed(quick: bool, data: Path | None, number: int) -> tuple[Figure, xr.Dataset]:
    """All runs of the first set or the last, and their mean; of a set that another table has, its mean alone."""
    sets = list(metrics(quick, data).items())
    name, one = sets[number]
    table = seeds(one, name)
    columns = [str(c) for c in table["column"].values]
    places = {"p-value": 4, "R@1 v. align": 2, "avg. align": 2}  # decimals; one for recall in per cent
    rows = [[f"{x:.{places.get(c, 1)}f}" for c, x in zip(columns, row, strict=True)] for row in table["seed"].values]
    note, again = spoken(quick, Training.metric(quick), Training.metric(False), [name]), number < 0 and len(sets) == 1
    if again:
        rows, note = [], f"the only set: its runs are in table 3, here is their mean\n{note}"
    labels = [*(f"run {i}" for i in range(len(rows))), "mean ± deviation"]
    figure = shown([*rows, cells(table, columns)], columns, labels)
    table.attrs["parameters"] = note
    return titled(figure, note), table


@PAPER.figure(
    "table3",
    "setup 4 run by run: CARS196 from its folder, any image classes, or the digits",
    claims=("setup-4",),
    reduced=REDUCED,
    takes_data=True,
)
def table3(quick: bool, data: Path | None) -> tuple[Figure, xr.Dataset]:
    """Correlation, p-value, Recall@1 to 8, alignment."""
    return by_seed(quick, data, 0)


@PAPER.figure(
    "table4",
    "setup 4 run by run: CUB200 from its folder, or any second set of image classes; without a folder there are the "
    "digits alone, whose runs are in table 3, and only their mean is shown",
    claims=("setup-4",),
    reduced=REDUCED,
    takes_data=True,
)
def table4(quick: bool, data: Path | None) -> tuple[Figure, xr.Dataset]:
    """Correlation, p-value, Recall@1 to 8, alignment."""
    return by_seed(quick, data, -1)
