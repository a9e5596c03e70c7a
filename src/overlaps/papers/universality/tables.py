"""Tables I (erf) and II (ReLU): tLog-RMSE of every entry for standardised mixtures of two components, α = 0 to 9.

Printed numbers next to those found here for both readings of eq. (17), as means over all mixtures with standard errors,
and over the half of them that the paper would have kept; how they are measured, and what is open in print, is in
`sweep`. At α = 0 the latent is normal: that row is the floor. The last row is the mean over times of |X|.

In print no row differs from α = 0, as here for a label per coordinate only, by the central limit theorem; with one
label per sample distances grow with α. Printed floors are several times those found here, for a reason not known: M of
another definition, other initial weights or coarser steps of the equations. Printed Q_01 and Q_10 differ in M in most
rows, in Table II in |X|, too, which no covariance does; here they are one number. Printed |X| of Table II also differ
between diagonal entries, as those of one start would; here each mixture has its own.

In full each table is 380 runs: 13 minutes on two cores. Figures 5 and S4 use the same runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from ..estimates import mean_error
from ..panels import panels, titled
from .model import LABELS, NAMES, VARIABLES
from .paper import PAPER
from .printed import TABLES
from .sweep import ENTRIES, Scale, baseline, distances

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[np.float64]
COMPONENTS = 2
SIZES = {
    "erf": (0.995, 0.093, 0.093, 0.988, 0.088, 0.126, 0.129, 0.085, 0.488, 0.508),
    "relu": (0.847, 0.053, 0.064, 1.009, 0.053, 0.089, 0.072, 0.165, 0.507, 0.597),
}  # E[|X|], the last rows as printed


class Means(NamedTuple):
    """Of values (..., mixtures, entries): mean over mixtures, its standard error, and the mean over the kept half."""

    mean: Array
    error: Array
    selected: Array

    @classmethod
    def of(cls, values: Array, kept: NDArray[np.bool_]) -> Means:
        return cls(*mean_error(values, -2), values[..., kept, :].mean(-2))


def entries_table(activation: str, quick: bool) -> xr.Dataset:
    """The table as printed and as found."""
    base, bounds = baseline(activation, quick), dict(Scale.of(quick).grid)[COMPONENTS]
    both = [distances(activation, True, label, COMPONENTS, quick) for label in LABELS]
    rows = np.array([np.concatenate([base.floor[None], found]) for found in both])  # α = 0 first
    found, sizes = Means.of(rows, base.kept), Means.of(base.size, base.kept)
    alpha = np.array([0.0, *bounds])
    dims = ("label", "bound", "entry")
    return xr.Dataset(
        {
            "printed": (dims[1:], np.array(TABLES[activation])[alpha.astype(int)], {"long_name": "tLog-RMSE in print"}),
            "distance": (dims, found.mean, {"long_name": "tLog-RMSE, mean over mixtures"}),
            "error": (dims, found.error, {"long_name": "standard error of the mean"}),
            "selected": (dims, found.selected, {"long_name": "mean over the half selected as in the paper"}),
            "printed_size": ("entry", np.array(SIZES[activation]), {"long_name": "E|X| in print"}),
            "size": ("entry", sizes.mean, {"long_name": "mean over times and mixtures of |X|"}),
        },
        {"label": list(LABELS), "bound": alpha, "entry": list(ENTRIES)},
        {"parameters": Scale.of(quick).note(), "activation": activation},
    )


def draw(ax: Axes, title: str, rows: list[str], names: list[str], cells: list[list[str]]) -> None:
    """A table of text, with a column for each of the named entries."""
    from matplotlib.transforms import Bbox

    ax.axis("off")
    ax.set_title(title, fontsize="medium")
    table = ax.table(
        cellText=cells, rowLabels=rows, colLabels=names, cellLoc="center", bbox=Bbox.from_bounds(0.04, 0, 0.96, 1)
    )
    table.auto_set_font_size(False)
    table.set_fontsize(9)


def table_figure(activation: str, quick: bool) -> tuple[Figure, xr.Dataset]:
    """Printed, and found for the two labels: a table each for the entries of Q, of R and of v."""
    data = entries_table(activation, quick)
    rows = [f"α = {bound:g}" for bound in data["bound"].values] + ["E|X|"]
    figure, axes = panels((1 + len(LABELS)) * len(VARIABLES), 1)
    figure.set_size_inches(9, 0.6 + (0.5 + 0.2 * len(rows)) * len(axes))

    def text(values: Array) -> list[str]:
        return [f"{value:.3f}" for value in values]

    places = iter(axes)
    for name in VARIABLES:
        part = data.isel(entry=[i for i, entry in enumerate(ENTRIES) if entry.startswith(name)])
        names = [f"${name}_{{{str(entry)[1:]}}}$" for entry in part["entry"].values]
        printed = [text(row) for row in [*part["printed"].values, part["printed_size"].values]]
        draw(next(places), f"{name}, in print", rows, names, printed)
        for label, what in LABELS.items():
            mine = part.sel(label=label)
            cells = [
                [f"{m:.3f} ± {e:.3f} ({s:.3f})" for m, e, s in zip(*row, strict=True)]
                for row in zip(mine["distance"].values, mine["error"].values, mine["selected"].values, strict=True)
            ]
            title = f"{name}, {what}: mean ± standard error (mean over the half selected as in the paper)"
            draw(next(places), title, rows, names, [*cells, text(mine["size"].values)])
    titled(figure, f"{NAMES[activation]}, m = {COMPONENTS}, standardised, {data.attrs['parameters']}")
    return figure, data


@PAPER.figure(
    "table1",
    "tLog-RMSE of every entry for standardised mixtures of two components, erf, as printed and for both readings of "
    "the label; all mixtures, and the half that the paper would select",
    claims=("tables-alpha", "tables-level", "tables-symmetry"),
)
def table1(quick: bool) -> tuple[Figure, xr.Dataset]:
    """α from 0 to 9."""
    return table_figure("erf", quick)


@PAPER.figure("table2", "table I for ReLU", claims=("tables-alpha", "tables-level", "tables-symmetry"))
def table2(quick: bool) -> tuple[Figure, xr.Dataset]:
    """α from 0 to 9."""
    return table_figure("relu", quick)
