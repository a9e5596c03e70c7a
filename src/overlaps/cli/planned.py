"""The part of the demonstration that plans a training of a linear student on labelled rows, even against odd digits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..plan.diverging_runs import in_words
from ..plan.rows_forecast import RowsForecast
from ..plot.curves import LABELS

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_curves(ax: Axes, found: RowsForecast, plan_colour: str, constant_colour: str) -> None:
    """Learning curves of fresh rows with their bands, and one pass on rows held out."""
    curves, plan = found.curves.isel(sample=slice(1, None)), found.plan
    x = curves["sample"].values
    for name, colour, words in (
        ("constant", constant_colour, f"best constant rate {plan.best_constant:.2g}"),
        ("plan", plan_colour, "best schedule"),
    ):
        low, high = curves[f"error_{name}_low"].values, curves[f"error_{name}_high"].values
        ax.plot(x, curves[f"error_{name}"].values, color=colour, lw=1.2, label=f"{words}, predicted")
        ax.fill_between(x, low, high, color=colour, alpha=0.15, lw=0)
    held = found.trust.held_out
    if held is not None:
        error = f"trained, tested on {held.rows} rows held out"
        ax.errorbar(0.8 * x[-1], held.measured, held.error, fmt="o", ms=3.5, color=constant_colour, lw=1, label=error)
    ax.axhline(found.floor, color="0.5", ls=":", lw=1, label="no linear map goes below")
    ax.set(xscale="log", yscale="log", xlabel="samples", ylabel=LABELS["error"])
    ax.set_title("(e) labelled digits: one pass, fresh rows")
    ax.legend(loc="upper right")


def _share(gain: float | None) -> str:
    return "runs diverged" if gain is None else f"{gain:.0%}"


def draw_schedule(ax: Axes, found: RowsForecast, plan_colour: str, constant_colour: str) -> None:
    """The schedule, and what it was predicted to save and saved."""
    plan, size = found.plan, found.data.size
    x = np.linspace(0.0, plan.time, 300)
    ax.plot(size * x, plan.problem.update.rate.at(x), color=plan_colour, lw=1.2, label="best schedule")
    ax.plot(size * plan.times, plan.rates, ".", color=plan_colour, ms=4)
    ax.axhline(plan.best_constant, color=constant_colour, lw=1.2, ls="--", label="best constant rate")
    ax.set(xlabel="samples", ylabel="learning rate", ylim=(0, None))
    ax.set_title(f"(f) excess error saved: {plan.gain:.0%}, trained {_share(found.check.gain)}")
    ax.legend(loc="upper right")


def words(found: RowsForecast) -> list[str]:
    """What was planned, what training made of it, and the verdict."""
    plan, check, held = found.plan, found.check, found.trust.held_out
    ends = [in_words(x) for x in (check.planned, check.compared)]
    lines = [
        f"labelled digits, even or odd, {len(found.data.rows)} rows: a training planned before it is done",
        f"  best constant rate {plan.best_constant:.3g}: error predicted {plan.baseline:.4g}, trained {ends[1]}",
        f"  best schedule: error predicted {plan.error:.4g}, trained {ends[0]}; it saves {plan.gain:.0%} of the error "
        f"above the floor, in training {_share(check.gain)}",
        f"  {found.trust.words}",
    ]
    return lines if held is None else [*lines, f"  {held!r}"]
