"""Training error against step: figures 1 and 2.

Lines are mean-field theory, dots are one run. Print says neither the loss nor the activation of these figures, nor the
couplings of figure 1: both losses and both activations are drawn, for four couplings. In full every dot is a run on a
data matrix, of 0.8 GB at m = n = 10000, and a figure takes some minutes; the quick ones sample the same law without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import xarray as xr

import overlaps as ov

from ..outliers.panels import finish
from ..scaling.panels import panels
from .model import ACTIVATIONS, COUPLING, LOSSES, NAMES, problem, start
from .paper import PAPER

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STEPS, SAMPLES = 25, (10_000, 1000)


class Scale(NamedTuple):
    """Couplings of figure 1, whether data matrices are formed, and the relative accuracy asked of the theory."""

    couplings: tuple[float, ...]
    formed: bool
    accuracy: float

    @classmethod
    def of(cls, quick: bool) -> Scale:
        """All couplings on data matrices, or two without."""
        return cls((-0.9, 0.5), False, 1e-2) if quick else cls((-0.9, COUPLING, 0.0, 0.5), True, 2e-3)

    def note(self) -> str:
        """What a figure is drawn with."""
        text = f"t = .2, |θ(0)| = .1, two classes of weight .5; lines: mean-field theory within {self.accuracy:g}, "
        if self.formed:
            return text + "dots: one run each"
        return text + "dots: one run each\nquick: runs by their law instead of on data matrices, fewer couplings"


def curves(
    scale: Scale, ratio: float, samples: Sequence[int], name: str, values: Sequence[float], fixed: dict[str, float]
) -> xr.Dataset:
    """Theory and a run for each activation, loss and value of the parameter called `name`."""
    shape = len(ACTIVATIONS), len(LOSSES), len(values)
    theory, runs = np.empty((*shape, STEPS + 1)), np.empty((*shape, len(samples), STEPS + 1))
    for a, activation in enumerate(ACTIVATIONS):
        for b, loss in enumerate(LOSSES):
            for c, value in enumerate(values):
                options: dict[str, Any] = {**fixed, name: value}
                task = problem(activation, loss, ratio=ratio, steps=STEPS, **options)
                solved = ov.solve(task, start(task, min(samples)), accuracy=scale.accuracy)
                theory[a, b, c] = solved.data["training_error"].values[0]
                go = ov.train if scale.formed else ov.sample
                for i, m in enumerate(samples):
                    run = go(task, start(task, m), runs=1, seed=c, progress=False)
                    runs[a, b, c, i] = run.data["training_error"].values[0]
    dims = ("activation", "loss", name)
    found = {
        "theory": ((*dims, "step"), theory, {"long_name": "training error, mean-field theory"}),
        "run": ((*dims, "samples", "step"), runs, {"long_name": "training error of one run"}),
    }
    axes = {"activation": list(ACTIVATIONS), "loss": list(LOSSES), name: list(values)}
    return xr.Dataset(found, {**axes, "samples": list(samples), "step": np.arange(STEPS + 1)})


def draw(data: xr.Dataset, rows: Sequence[tuple[str, dict[str, Any]]], name: str, symbol: str, note: str) -> Figure:
    """A row of axes for each (title, selection), a column for each activation and loss."""
    figure, axes = panels(len(rows), len(ACTIVATIONS) * len(LOSSES))
    places = iter(axes)
    for title, chosen in rows:
        for activation in ACTIVATIONS:
            for loss in LOSSES:
                ax, part = next(places), data.sel(activation=activation, loss=loss, **chosen)
                for i, value in enumerate(part[name].values):
                    one = part.sel({name: value})
                    ax.plot(one["step"], one["theory"], f"C{i}-", lw=1, label=f"{symbol} = {value:g}")
                    ax.plot(one["step"], one["run"], f"C{i}o", ms=3)
                finish(ax, f"{title}; {NAMES[activation]}, {loss} loss", "step", "training error")
    figure.suptitle(note, fontsize="medium")
    return figure


@PAPER.figure(
    "fig1",
    "training error of gradient descent against step, gamma = .1 and 1, m = 10000 and 1000, for several couplings of "
    "the means; loss, activation and couplings are not given in print, both losses and activations are shown",
)
def fig1(quick: bool) -> tuple[Figure, xr.Dataset]:
    """Rows: (a) to (d). Columns: activation and loss."""
    scale = Scale.of(quick)
    ratios = xr.DataArray([0.1, 1.0], dims="ratio", name="ratio")
    each = [curves(scale, float(ratio), SAMPLES, "coupling", scale.couplings, {}) for ratio in ratios]
    data = xr.concat(each, ratios).assign_attrs(parameters=scale.note())
    rows = [
        (f"({letter}) γ = {ratio:g}, m = {m}", {"ratio": ratio, "samples": m})
        for letter, (ratio, m) in zip("abcd", [(ratio, m) for ratio in (0.1, 1.0) for m in SAMPLES], strict=True)
    ]
    return draw(data, rows, "coupling", "ν(0, 1)", scale.note()), data


@PAPER.figure(
    "fig2",
    "training error of momentum gradient descent against step, gamma = 1, m = 10000 and 1000, forgetting factors 0, .5 "
    "and .9; loss and activation are not given in print, both of each are shown",
)
def fig2(quick: bool) -> tuple[Figure, xr.Dataset]:
    """Rows: (a) and (b). Columns: activation and loss."""
    scale = Scale.of(quick)
    data = curves(scale, 1.0, SAMPLES, "momentum", (0.0, 0.5, 0.9), {"coupling": COUPLING})
    rows = [(f"({letter}) m = {m}", {"samples": m}) for letter, m in zip("ab", SAMPLES, strict=True)]
    return draw(data, rows, "momentum", "s", scale.note()), data.assign_attrs(parameters=scale.note())
