"""Training error against step: figures 1 and 2.

Lines are mean-field theory, dots are means over runs with their standard deviations. Print says neither the loss nor
the activation of these figures, nor the couplings of figure 1: both losses and both activations are drawn, for four
couplings. Runs are sampled by their exact law, which for Gaussian inputs is that of runs on data matrices (of 0.8 GB
at m = n = 10000).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import xarray as xr

import overlaps as ov

from ..panels import finish, panels, titled
from .model import ACTIVATIONS, COUPLING, LOSSES, NAMES, problem, start
from .paper import PAPER

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STEPS, SAMPLES = 25, (10_000, 1000)


class Scale(NamedTuple):
    """Activations with losses, couplings of figure 1, runs, and accuracy of the theory."""

    cases: tuple[tuple[str, str], ...]
    couplings: tuple[float, ...]
    runs: int
    accuracy: float

    @classmethod
    def of(cls, quick: bool) -> Scale:
        """All of them, or two."""
        cases = tuple((activation, loss) for activation in ACTIVATIONS for loss in LOSSES)
        if quick:
            return cls(cases[::3], (-0.9, 0.5), 3, 1e-2)
        return cls(cases, (-0.9, COUPLING, 0.0, 0.5), 10, 2e-3)

    def note(self, name: str = "", *, momentum: float = 0.0, coupling: float = COUPLING) -> str:
        """What a figure is drawn with, against the parameter called `name`."""
        text = f"t = .2, |θ(0)| = .1, two classes of weight .5; lines: mean-field theory within {self.accuracy:g}, "
        text += f"dots: mean and standard deviation of {self.runs} runs"
        text += f"; s = {momentum:g}" * (momentum != 0) + f"; ν(0, 1) = {coupling:g}" * (coupling != COUPLING)
        if self == Scale.of(False):
            return text
        text += f"\nquick: {self.runs} runs instead of 10, two pairs of activation and loss instead of four"
        return text + ", two couplings instead of four" * (name == "coupling")


def curves(scale: Scale, ratio: float, name: str, values: Sequence[float], **others: float) -> xr.Dataset:
    """Theory, and runs for each number of samples, for each case and value of the parameter called `name`."""
    shape = len(scale.cases), len(values)
    theory, runs = np.empty((*shape, STEPS + 1)), np.empty((*shape, len(SAMPLES), scale.runs, STEPS + 1))
    for i, case in enumerate(scale.cases):
        for j, value in enumerate(values):
            options: dict[str, Any] = {name: value} | others
            task = problem(*case, ratio=ratio, steps=STEPS, **options)
            solved = ov.solve(task, start(task, min(SAMPLES)), accuracy=scale.accuracy)
            theory[i, j] = solved.data["training_error"].values[0]
            for k, m in enumerate(SAMPLES):
                drawn = ov.sample(task, start(task, m), runs=scale.runs, seed=10 * i + j, progress=False)
                runs[i, j, k] = drawn.data["training_error"].values
    found = {
        "theory": (("case", name, "step"), theory, {"long_name": "training error, mean-field theory"}),
        "runs": (("case", name, "samples", "run", "step"), runs, {"long_name": "training error of runs"}),
    }
    cases = [f"{NAMES[activation]}, {loss} loss" for activation, loss in scale.cases]
    axes = {"case": cases, name: list(values), "samples": list(SAMPLES), "step": np.arange(STEPS + 1)}
    return xr.Dataset(found, axes, {"parameters": scale.note(name, **others)})


def draw(data: xr.Dataset, rows: Sequence[tuple[str, dict[str, Any]]], name: str, symbol: str) -> Figure:
    """A row of axes for each (title, selection), a column for each case."""
    figure, axes = panels(len(rows), data.sizes["case"])
    places = iter(axes)
    for title, chosen in rows:
        for case in data["case"].values:
            ax, part = next(places), data.sel(case=case, **chosen)
            for i, value in enumerate(part[name].values):
                one = part.sel({name: value})
                ax.plot(one["step"], one["theory"], f"C{i}-", lw=1, label=f"{symbol} = {value:g}")
                mean, deviation = one["runs"].mean("run"), one["runs"].std("run", ddof=1)
                ax.errorbar(one["step"], mean, deviation, fmt=f"C{i}o", ms=3, lw=1, capsize=2)
            ax.errorbar(
                [], [], [], fmt="o", color="0.4", ms=3, capsize=2, label=f"{part.sizes['run']} runs, ± deviation"
            )
            finish(ax, f"{title}\n{case}", "time (steps)", "training error")
    titled(figure, data.attrs["parameters"])
    return figure


@PAPER.figure(
    "fig1",
    "training error of gradient descent against step, gamma = .1 and 1, m = 10000 and 1000, for several couplings of "
    "the means; loss, activation and couplings are not given in print, both losses and activations are shown for each "
    "printed panel; runs are sampled by their exact law",
    claims=("figure-1",),
    limits={"momentum": (0.0, 0.95)},
)
def fig1(quick: bool, *, momentum: float = 0.0) -> tuple[Figure, xr.Dataset]:
    """Rows: (a) to (d). Columns: activation and loss."""
    scale = Scale.of(quick)
    ratios = xr.DataArray([0.1, 1.0], dims="ratio", name="ratio")
    data = xr.concat(
        [curves(scale, float(ratio), "coupling", scale.couplings, momentum=momentum) for ratio in ratios], ratios
    )
    order = [(ratio, m) for ratio in (0.1, 1.0) for m in SAMPLES]
    rows: list[tuple[str, dict[str, Any]]] = [
        (f"printed ({letter}): γ = {ratio:g}, m = {m}", {"ratio": ratio, "samples": m})
        for letter, (ratio, m) in zip("abcd", order, strict=True)
    ]
    return draw(data, rows, "coupling", "ν(0, 1)"), data


@PAPER.figure(
    "fig2",
    "training error of momentum gradient descent against step, gamma = 1, m = 10000 and 1000, forgetting factors 0, .5 "
    "and .9; loss and activation are not given in print, both of each are shown; runs are sampled by their exact law",
    claims=("figure-2",),
    limits={"coupling": (-0.95, 0.95)},
)
def fig2(quick: bool, *, coupling: float = COUPLING) -> tuple[Figure, xr.Dataset]:
    """Rows: (a) and (b). Columns: activation and loss."""
    data = curves(Scale.of(quick), 1.0, "momentum", (0.0, 0.5, 0.9), coupling=coupling)
    rows: list[tuple[str, dict[str, Any]]] = [
        (f"printed ({letter}): m = {m}", {"samples": m}) for letter, m in zip("ab", SAMPLES, strict=True)
    ]
    return draw(data, rows, "momentum", "s"), data
