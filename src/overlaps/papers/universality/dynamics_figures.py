"""Training on one mixture next to the Gaussian equations: figures 2 and 4.

A ReLU network, m = 2 components, α = 9, N = 1000, D = 500, 10⁵ steps, mean over ten runs. Figure 2 takes the mixture as
it is, figure 4 standardises every coordinate. Both readings of eq. (17) are drawn: one label per sample (left), and
a label per coordinate (right). Besides the Gaussian equations and runs, as in the paper, there are the equations of the
mixture itself (`overlaps.online.strong_mixture`), which follow the runs of both; what is left late in figure 2, where
errors are large, is of second order in the rate.

Printed without its definition: the shaded stage in which the error has stopped falling. Here it begins where the mean
error of the runs is within 5 % of its whole change from its last value, and stays there. Also open: the activation of
these two figures (ReLU is what the main text shows), the means of a component (here one number for each coordinate) and
initial weights. With normal readouts about every second start of figure 2 loses its ReLU units, which become silent for
all inputs and learn no more; the one drawn does not. In full a figure takes two to four minutes on two cores.

>>> saturation(np.array([0.1, 1.0, 10.0, 100.0]), np.array([1.0, 0.5, 0.03, 0.0]))
10.0
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

import overlaps as ov

from ..panels import ERROR, TIME, panels, step_times, titled
from .model import LABELS, SIZE, STEPS, problem, start
from .paper import PAPER

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[np.float64]
SEED = 5
COMPONENTS, BOUND = 2, 9.0
BOUNDS = {"bound": (0.25, 9.0)}  # that may be set
SATURATED = 0.05  # share of the whole change of the error that is left when training counts as complete
TITLES = {"error": ERROR, "Q": "$Q$", "R": "$R$", "v": "$v$"}
STYLES: dict[str, dict[str, Any]] = {
    "mixture": {"lw": 1.4, "label": "SGD, mixture"},
    "gaussian": {"lw": 1.0, "ls": "-.", "alpha": 0.6, "label": "SGD, normal latent"},
    "ode": {"ls": "--", "lw": 1.0, "label": "equations of the normal latent"},
    "latent": {"color": "k", "ls": ":", "lw": 1.2, "label": "equations of the mixture"},
}


class Scale(NamedTuple):
    """Size N, steps, runs that are averaged, and times to look."""

    size: int
    steps: int
    runs: int
    times: int

    @classmethod
    def of(cls, quick: bool) -> Scale:
        """The paper's, or a small one."""
        return cls(200, 4000, 4, 15) if quick else cls(SIZE, STEPS, 10, 30)

    @property
    def grid(self) -> Array:
        """Log-spaced times from .1 on."""
        return step_times(self.size, self.steps / self.size, self.times, first=0.1)

    def note(self, bound: float = BOUND) -> str:
        """What a figure is drawn with."""
        text = (
            f"ReLU, m = {COMPONENTS}, α = {bound:g}, N = {self.size}, D = {self.size // 2}, rate .2, {self.runs} runs"
        )
        full = Scale.of(False)
        if self == full:
            return text
        text += f"\nquick: N = {self.size} instead of {full.size}, {self.runs} runs instead of {full.runs}, "
        return text + f"to time {self.steps // self.size} instead of {full.steps // full.size}"


def saturation(times: Array, error: Array) -> float:
    """Time from which on |error − last| is at most 5 % of |first − last|; times and error (T,)."""
    outside = np.abs(error - error[-1]) > SATURATED * abs(error[0] - error[-1])
    return float(times[np.flatnonzero(outside)[-1] + 1]) if outside.any() else float(times[0])


@cache
def gaussian(quick: bool) -> tuple[xr.Dataset, xr.Dataset]:
    """Runs on the normal latent, and its equations."""
    scale, task = Scale.of(quick), problem("relu", features=SEED)
    begin = start(task, scale.size, SEED)
    runs = ov.train(task, begin, scale.grid, runs=scale.runs, seed=SEED, progress=False)
    return runs.data, ov.solve(task, begin, scale.grid).data


@cache
def mixture(quick: bool, standardised: bool, label: str, bound: float = BOUND) -> tuple[xr.Dataset, xr.Dataset]:
    """Runs on the mixture, and its equations."""
    scale, how = Scale.of(quick), "population" if standardised else None
    latent = ov.LatentMixture(COMPONENTS, bound, label=label, standardise=how, seed=SEED)
    task = problem("relu", latent, features=SEED)
    begin = start(task, scale.size, SEED)
    runs = ov.train(task, begin, scale.grid, runs=scale.runs, seed=SEED, progress=False)
    return runs.data, ov.solve(task, begin, scale.grid).data


def dynamics(quick: bool, standardised: bool, bound: float) -> xr.Dataset:
    """Error, Q, R and v against time: of the mixture for both labels, and of the normal latent."""
    both = xr.DataArray(list(LABELS), dims="label", name="label")
    pairs = [mixture(quick, standardised, label, bound) for label in LABELS]
    plain, ode = gaussian(quick)
    curves: dict[str, xr.DataArray] = {}
    for name, title in TITLES.items():
        runs = xr.concat([pair[0][name] for pair in pairs], both)
        found = {
            f"{name}_mixture": (runs.mean("run"), "mean over runs on the mixture"),
            f"{name}_spread": (runs.std("run", ddof=1), "standard deviation of runs on the mixture"),
            f"{name}_latent": (
                xr.concat([pair[1][name] for pair in pairs], both).isel(run=0, drop=True),
                "its equations",
            ),
            f"{name}_gaussian": (plain[name].mean("run"), "mean over runs on the normal latent"),
            f"{name}_ode": (ode[name].isel(run=0, drop=True), "equations of the normal latent"),
        }
        curves |= {key: values.assign_attrs(long_name=f"{title}, {what}") for key, (values, what) in found.items()}
    times = Scale.of(quick).grid
    ends = [saturation(times, pair[0]["error"].mean("run").values) for pair in pairs]
    data = xr.Dataset(curves).reset_coords(drop=True)
    data["saturation"] = ("label", ends, {"units": "samples per input dimension"})
    return data.assign_attrs(parameters=Scale.of(quick).note(bound), standardised=int(standardised))


def names(values: xr.DataArray) -> dict[tuple[int, ...], str]:
    """Names of the entries of a variable: of Q, which is symmetric, each pair once."""
    shape = values.isel(time=0).shape
    pairs = len(shape) == 2 and str(values.name).startswith("Q")
    found = {}
    for at in np.ndindex(shape):
        if not (pairs and at[0] > at[1]):
            letters = "".join(str(k + 1) for k in at)
            name = f"{values.name}".split("_")[0]
            found[at] = f"${name}_{{{letters}}}$" + (
                f"$= {name}_{{{letters[::-1]}}}$" if pairs and at[0] != at[1] else ""
            )
    return found


def entries(values: xr.DataArray) -> Array:
    """Entries of a variable in columns, as they are named, (times, entries)."""
    values = values.transpose("time", ...)
    return np.stack([values.values[(slice(None), *at)] for at in names(values)], axis=1)


def draw(ax: Axes, data: xr.Dataset, name: str) -> None:
    """All entries of a variable: runs as lines with a band, equations broken and dotted."""
    times = data["time"].values
    for kind, style in STYLES.items():
        curves = entries(data[f"{name}_{kind}"])
        for i in range(curves.shape[1]):
            more: dict[str, Any] = {"color": f"C{i}"} | style | {"label": None}
            ax.plot(times, curves[:, i], **more)
    if name != "error":
        for i, text in enumerate(names(data[f"{name}_ode"]).values()):
            ax.plot([], [], color=f"C{i}", lw=3, label=text)
    mean, spread = (entries(data[f"{name}_{kind}"]) for kind in ("mixture", "spread"))
    for i, (low, high) in enumerate(zip((mean - spread).T, (mean + spread).T, strict=True)):
        ax.fill_between(times, low, high, color=f"C{i}", alpha=0.2, lw=0)
    ax.axvspan(float(data["saturation"]), times[-1], color="0.93", lw=0, zorder=0)


def dynamics_figure(quick: bool, standardised: bool, bound: float) -> tuple[Figure, xr.Dataset]:
    """Rows: error, Q, R and v. Columns: the one label and the other."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    data = dynamics(quick, standardised, bound)
    figure, axes = panels(len(TITLES), len(LABELS))
    for column, (label, text) in enumerate(LABELS.items()):
        for ax, (name, title) in zip(axes[column :: len(LABELS)], TITLES.items(), strict=True):
            draw(ax, data.sel(label=label), name)
            ax.set(xscale="log", xlabel=TIME, ylabel=title)
            ax.set_title(f"{title}, {text}", fontsize="medium")
            if name != "error":  # beside the panel, where it covers no curve
                ax.legend(fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5), handlelength=1.0)
    lines: list[dict[str, Any]] = [{"color": "0.4"} | style for style in STYLES.values()]
    explained: list[Artist] = [Line2D([], [], **style) for style in lines]
    explained.append(Patch(color="0.4", alpha=0.2, lw=0, label="± standard deviation of runs on the mixture"))
    words = f"saturation: within {SATURATED:.0%} of the change of the error from its last value"
    explained.append(Patch(color="0.93", label=words))
    title = "lines of all panels, each in the colour of its entry (the error in that of the first)"
    figure.legend(handles=explained, title=title, loc="outside lower center", ncols=2)
    titled(figure, data.attrs["parameters"])
    return figure, data


@PAPER.figure(
    "fig2",
    "training on a mixture as it is, and the Gaussian equations; whether a label is drawn for a sample or for each "
    "coordinate is open in print: both are shown; activation, start and the beginning of the shaded stage, which print "
    "does not define, are chosen here",
    claims=("un-standardised", "conditional"),
    limits=BOUNDS,
)
def fig2(quick: bool, *, bound: float = BOUND) -> tuple[Figure, xr.Dataset]:
    """m = 2, α = 9."""
    return dynamics_figure(quick, standardised=False, bound=bound)


@PAPER.figure(
    "fig4",
    "figure 2 for a standardised mixture: on the Gaussian equations for a label per coordinate only; each coordinate "
    "has its own mean and deviation, which print leaves open",
    claims=("standardised", "conditional"),
    limits=BOUNDS,
)
def fig4(quick: bool, *, bound: float = BOUND) -> tuple[Figure, xr.Dataset]:
    """m = 2, α = 9."""
    return dynamics_figure(quick, standardised=True, bound=bound)
