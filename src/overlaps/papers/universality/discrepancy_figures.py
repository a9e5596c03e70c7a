"""tLog-RMSE from the Gaussian equations against the divergence of the mixture: figures 3, 5, S3 and S4.

Mixtures as they are in figures 3 (ReLU) and S3 (erf), standardised in 5 and S4; what is open in print, and how runs are
measured, is in `sweep`. The divergence is that of a single coordinate, in nats, of the mixture before standardisation
in all four, its mean over mixtures; that of the whole vector is in the data. The two readings of eq. (17), one label
per sample and a label per coordinate, make the two columns, as the conclusion hangs on them. Curves are means over all
mixtures, with bands of their standard error; thin broken ones are means over the half that the paper would have kept.

In full each figure is 700 runs: 25 minutes on two cores, less what the tables have done before in the same process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import xarray as xr

from ..panels import panels, titled
from .model import LABELS, NAMES, VARIABLES
from .paper import PAPER
from .sweep import Scale, sweep

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MEANINGS = {
    "mean": "tLog-RMSE, mean over entries and mixtures",
    "error": "its standard error over mixtures",
    "selected": "its mean over the half of the mixtures selected as in the paper",
    "mean_floor": "tLog-RMSE of runs on the normal latent, mean over entries and mixtures",
    "floor_error": "its standard error over mixtures",
    "mean_size": "mean over times, entries and mixtures of the absolute value",
}


def summary(data: xr.Dataset) -> xr.Dataset:
    """Means over entries and mixtures with standard errors, for each variable: what the figures draw."""
    parts: list[xr.Dataset] = []
    for name in VARIABLES:
        mine = data.sel(entry=data["variable"] == name).mean("entry")
        parts.append(
            xr.Dataset(
                {
                    "mean": mine["distance"].mean("mixture"),
                    "error": standard_error(mine["distance"]),
                    "selected": mine["distance"].sel(mixture=data["kept"]).mean("mixture"),
                    "mean_floor": mine["floor"].mean("mixture"),
                    "floor_error": standard_error(mine["floor"]),
                    "mean_size": mine["size"].mean("mixture"),
                }
            )
        )
    data = xr.concat(parts, xr.DataArray(list(VARIABLES), dims="metric", name="metric"))
    for name, meaning in MEANINGS.items():
        data[name].attrs = {"long_name": meaning}
    return data


def standard_error(values: xr.DataArray) -> xr.DataArray:
    """Of the mean over mixtures."""
    return values.std("mixture", ddof=1) / values.sizes["mixture"] ** 0.5


def draw(ax: Axes, data: xr.Dataset) -> None:
    """One variable and label: a curve for each number of components, the floor and the scale."""
    divergence = data["divergence"].mean("mixture")
    low, high = (float(data["mean_floor"] + sign * data["floor_error"]) for sign in (-1, 1))
    ax.axhspan(low, high, color="0.8", lw=0, label="floor: normal latent, ± standard error")
    ax.axhline(float(data["mean_size"]), color="k", ls=":", lw=1, label="mean absolute value")
    for i, m in enumerate(dict.fromkeys(data["components"].values.tolist())):
        at = data["components"] == m
        x, mean, error, selected = (
            v.sel(point=at).values for v in (divergence, data["mean"], data["error"], data["selected"])
        )
        ax.plot(x, mean, f"C{i}o-", ms=3, label=f"m = {m}")
        ax.fill_between(x, mean - error, mean + error, color=f"C{i}", alpha=0.25, lw=0)
        ax.plot(x, selected, color=f"C{i}", ls="--", lw=0.7, label="half selected as in the paper" if i == 0 else None)
    ax.fill_between([], [], color="0.4", alpha=0.25, lw=0, label="± standard error over mixtures")


def discrepancy_figure(activation: str, standardised: bool, quick: bool) -> tuple[Figure, xr.Dataset]:
    """Rows: Q, R, v. Columns: the two labels."""
    data = sweep(activation, standardised, quick)
    data = data.merge(summary(data), combine_attrs="override")
    figure, axes = panels(len(VARIABLES), len(LABELS))
    places = iter(axes)
    for name in VARIABLES:
        for label, text in LABELS.items():
            ax = next(places)
            draw(ax, data.sel(label=label, metric=name))
            ax.set(xscale="log", yscale="log", xlabel="KL divergence per coordinate (nats)")
            ax.set_ylabel(f"tLog-RMSE $M({name})$")
            ax.set_title(f"${name}$, {text}", fontsize="medium")
    handles, labels = axes[0].get_legend_handles_labels()  # the same in all of them
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize="small")
    how = "standardised" if standardised else "as they are"
    titled(figure, f"{NAMES[activation]}, mixtures {how}, {Scale.of(quick).note()}")
    return figure, data


@PAPER.figure(
    "fig3",
    "tLog-RMSE from the Gaussian equations against divergence, mixtures as they are, ReLU; open in print: the label "
    "(both are shown), numbers of components (2, 4, 8), start (normal), divergence (of one coordinate)",
    claims=("un-standardised",),
)
def fig3(quick: bool) -> tuple[Figure, xr.Dataset]:
    """m = 2, 4, 8, α from 1 to 9."""
    return discrepancy_figure("relu", False, quick)


@PAPER.figure(
    "fig5",
    "figure 3 for standardised mixtures: at the floor for a label per coordinate only; all mixtures count, the half "
    "that the paper would select is a thin line",
    claims=("standardised", "tables-alpha"),
)
def fig5(quick: bool) -> tuple[Figure, xr.Dataset]:
    """m = 2, 4, 8, α from 1 to 9."""
    return discrepancy_figure("relu", True, quick)


@PAPER.figure("figS3", "figure 3 for erf", claims=("un-standardised",))
def figS3(quick: bool) -> tuple[Figure, xr.Dataset]:
    """m = 2, 4, 8, α from 1 to 9."""
    return discrepancy_figure("erf", False, quick)


@PAPER.figure("figS4", "figure 5 for erf", claims=("standardised", "tables-alpha"))
def figS4(quick: bool) -> tuple[Figure, xr.Dataset]:
    """m = 2, 4, 8, α from 1 to 9."""
    return discrepancy_figure("erf", True, quick)
