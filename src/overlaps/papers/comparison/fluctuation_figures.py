"""Variance of the training error over runs, times m, against step: figure 3.

Training sampled exactly (in print 10⁵ runs), the alternative process at z = 0 and continued to z² = −1 by
2 H(0) − H(1), and two theories without sampling: one pass of Algorithm 1, as in print, and fluctuations taken through
all steps. Print says neither the loss, of which both are drawn, nor the last step. In full it takes some ten minutes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import xarray as xr

import overlaps as ov

from ..panels import finish, panels, titled
from .model import COUPLING, LOSSES, NAMES, problem, start
from .paper import PAPER
from .refinement_claims import predicted, scaled_variance

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CURVES = {
    "training": "training",
    "continued": "alternative process, 2 H(0) − H(1)",
    "zero": "alternative process, z = 0",
    "theory": "fluctuations through all steps",
    "one_pass": "one pass of Algorithm 1",
}


class Scale(NamedTuple):
    """Samples, steps, runs and losses."""

    samples: int
    steps: int
    runs: int
    losses: tuple[str, ...]

    @classmethod
    def of(cls, quick: bool) -> Scale:
        """The paper's size, or a small one."""
        return cls(200, 2, 500, LOSSES[:1]) if quick else cls(2000, 8, 4000, LOSSES)

    def note(self, coupling: float = COUPLING) -> str:
        """What the figure is drawn with."""
        text = f"{NAMES['softplus']}, t = .2, ν(0, 1) = {coupling:g}, m = n = {self.samples}, "
        text += f"{self.runs} runs, standard errors"
        full = Scale.of(False)
        if self == full:
            return text
        text += f"\nquick: m = {self.samples} instead of {full.samples}, {self.steps} steps instead of {full.steps}, "
        return text + f"{self.runs} runs instead of {full.runs}, one loss instead of two"


@PAPER.figure(
    "fig3",
    "variance of the training error times m against step, soft ReLU: training, the alternative process continued to "
    "z^2 = -1, and theory by one pass and through all steps; loss and last step are not given in print",
    claims=("claim-1", "fluctuations", "iterations"),
    reduced="4000 runs in place of 10^5",
    limits={"coupling": (-0.95, 0.95)},
)
def fig3(quick: bool, *, coupling: float = COUPLING) -> tuple[Figure, xr.Dataset]:
    """Square and logistic loss."""
    scale = Scale.of(quick)
    shape = len(scale.losses), scale.steps + 1
    curves = {name: np.empty(shape) for name in CURVES}
    errors = {name: np.empty(shape) for name in ("training", "continued", "zero")}
    for i, loss in enumerate(scale.losses):
        task = problem("softplus", loss, coupling=coupling, steps=scale.steps)
        begin = start(task, scale.samples)
        runs = ov.sample(task, begin, runs=scale.runs, seed=3, progress=False).data["training_error"].values
        curves["training"][i], errors["training"][i] = scaled_variance(runs, scale.samples)
        made = ov.full_batch.continued(task, begin, runs=scale.runs, seed=4, progress=False)
        for name, z2 in (("continued", -1.0), ("zero", 0.0)):
            at = made.sel(z2=z2)
            curves[name][i] = at["variance_training_error"].values
            errors[name][i] = at["variance_training_error_se"].values
        for name, once in (("theory", False), ("one_pass", True)):
            curves[name][i] = predicted(loss, scale.steps, once, coupling)["variance_training_error"].values
    dims = ("loss", "step")
    variables = {name: (dims, values, {"long_name": f"m Var, {CURVES[name]}"}) for name, values in curves.items()}
    for name, values in errors.items():
        variables[f"{name}_error"] = (dims, values, {"long_name": f"standard error of m Var, {CURVES[name]}"})
    axes = {"loss": list(scale.losses), "step": np.arange(scale.steps + 1)}
    data = xr.Dataset(variables, axes, {"parameters": scale.note(coupling)})
    figure, places = panels(1, len(scale.losses))
    styles = {"training": "ko", "continued": "C1s", "zero": "0.4", "theory": "C0-", "one_pass": "C3--"}
    for ax, loss in zip(places, scale.losses, strict=True):
        part = data.sel(loss=loss)
        for name, style in styles.items():
            if name in errors:
                line = {"fmt": style, "ms": 4} if name != "zero" else {"fmt": "v", "color": style, "ms": 3}
                ax.errorbar(part["step"], part[name], part[f"{name}_error"], label=CURVES[name], lw=1, **line)
            else:
                ax.plot(part["step"], part[name], style, lw=1.2, label=CURVES[name])
        ax.set_xticks(part["step"].values)
        finish(ax, f"{loss} loss", "time (steps)", "m Var(training error)")
    titled(figure, scale.note(coupling))
    return figure, data
