"""What SGD will do on labelled rows, and how best to train on them, before it is done.

A linear student on the square loss learns what the best linear map tells of the labels. From n rows follow

- the learning curve of one pass, at the best constant rate and with the best schedule (`overlaps.plan.optimise`), for
  *fresh* rows: without the bias of a fit (`overlaps.plan.rows_task`), and with a band of two standard deviations, of
  the estimates (a bootstrap over rows) and of single runs together;
- many passes over four fifths of the rows (`MultiPass`): the epoch from which the test error rises;
- what ten times the samples would bring, to one pass and to ridge regression (`overlaps.laws.ridge`);
- a verdict on all this: real trainings on the rows, and a pass tested on rows held out (`overlaps.plan.trust`). Rates
  beyond those at which theory may be trusted are not considered for the schedule.

>>> import numpy as np
>>> import overlaps as ov
>>> rng = np.random.default_rng(0)
>>> rows = rng.standard_normal((600, 10))
>>> labels = rows @ np.linspace(1.0, 0.0, 10) + rng.standard_normal(600)
>>> found = ov.forecast(ov.Samples(rows, labels), progress=False)
>>> found.trust.trusted
True
"""

from __future__ import annotations

import io
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from ..data import Samples
from ..interface import files
from ..interface.checks import checked, folder_for
from ..trajectory.citations import ROWS_FORECAST
from ..trajectory.dataset import Trajectory, provenance
from .diverging_runs import diverged, in_words
from .optimise import PlanCheck, TrainingPlan
from .trust import LARGEST, SURE, Trust

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]
NEAR = 0.01  # of the least test error of many passes, which epochs have
MORE = 10  # times the samples, of what more data would bring
BAND = 2.0  # standard deviations


@dataclass(frozen=True, eq=False)
class RowsForecast:
    """What to expect of SGD on labelled rows; made by `forecast`.

    Attributes
    ----------
    data: the rows. samples: how many of them a training sees.
    plan: the best schedule and the best constant rate; `plan.problem` is ready for `train`.
    check: trainings on the rows with the plan and with the constant rate.
    trust: by how much theory may be trusted on these rows.
    curves: dataset with error_constant, error_plan (sample), of fresh rows, their lower and upper ends, rate_plan
        (sample), eigenvalue and explained (level), the share of the labels' variance that each direction tells.
        Where runs diverge, upper ends are infinite.
    floor, floor_error: error that no linear map of fresh rows goes below, and its standard error.
    passes: theory of many passes over four fifths of the rows at the best constant rate, tested on the others.
    more: predicted error of fresh rows with ten times the samples and the best schedule for them.
    ridge: error of ridge regression with its best decay, on as many rows as samples and on ten times as many.
    guess: error of always guessing the mean of the labels.
    gain_error, more_error, ridge_errors: standard errors of the gain that theory foretells, of `more` and of `ridge`,
        by a bootstrap over rows.
    """

    data: Samples
    samples: int
    plan: TrainingPlan
    check: PlanCheck
    trust: Trust
    curves: xr.Dataset
    floor: float
    floor_error: float
    passes: Trajectory
    more: float
    ridge: tuple[float, float]
    guess: float
    gain_error: float
    more_error: float
    ridge_errors: tuple[float, float]

    @property
    def epochs(self) -> float:
        """Epochs before overfitting: when the test error of many passes is least; infinite if it still falls."""
        return self.passes.best_epoch

    @property
    def gain(self) -> float | None:
        """Share of the error above the floor that the schedule is promised to save.

        None where theory has no trust, or where trainings save another share: by more than a tenth and 2.5 standard
        errors. Where the floor is most of the error, theory may be right about it and wrong about what is above.
        """
        return self.plan.gain if self.trust.trusted and not self._saves_otherwise else None

    @property
    def _saves_otherwise(self) -> bool:
        trained = self.check.gain
        return trained is None or abs(trained - self.plan.gain) > LARGEST + SURE * self.check.gain_error

    def __repr__(self) -> str:
        c, rows = self.curves, len(self.data.rows)
        omega = c["eigenvalue"].values
        share = float(omega.sum()) ** 2 / float(omega @ omega)
        some = np.unique(np.linspace(1, c.sizes["sample"] - 1, 5).round().astype(int))
        lines = [
            f"forecast for {self.data!r}",
            f"  {rows} rows, {omega.size} directions, of which {share:.3g} carry the variance; a linear map tells "
            f"{float(c['explained'].sum()):.0%} of the labels' variance",
            f"  floor: no linear map of fresh rows goes below error {self.floor:.4g} ± {self.floor_error:.1g}; always "
            f"guessing the mean of the labels has {self.guess:.4g}{self._no_better}",
            f"  one pass over {self.samples} samples; error of fresh rows ± two standard deviations:",
            "    samples         " + "".join(f"{x:>17}" for x in c["sample"].values[some]),
        ]
        for name, words in (("constant", f"rate {self.plan.best_constant:.3g}"), ("plan", "best schedule")):
            value, high = c[f"error_{name}"].values[some], c[f"error_{name}_high"].values[some]
            cells = (
                f"{v:.4g} ± {h - v:.2g}" if np.isfinite(h) else f"{v:.4g}, no bound"
                for v, h in zip(value, high, strict=True)
            )
            lines.append(f"    {words:<16}" + "".join(f" {cell:>16}" for cell in cells))
        lines.append("    its rate        " + "".join(f"{x:>17.3g}" for x in c["rate_plan"].values[some]))
        lines += [
            f"    {self.saved}",
            f"  {self._many_passes}",
            f"  with {MORE} times the samples: error {self.more:.4g} ± {self.more_error:.1g} in one pass with their "
            f"best schedule, {self.ridge[1]:.4g} ± {self.ridge_errors[1]:.1g} by the best ridge regression "
            f"({self.ridge[0]:.4g} ± {self.ridge_errors[0]:.1g} with these)",
            *(f"  {line}" for line in repr(self.trust).splitlines()),
        ]
        return "\n".join(lines)

    @property
    def saved(self) -> str:
        """In words, what the schedule saves: as promised where theory may be trusted, and as trained."""
        check, ends = self.check, [in_words(x) for x in self._trained]
        told = "what it saves is not promised, since theory is not to be trusted here"
        if self.gain is not None:
            told = f"it saves {self.gain:.0%} ± {100 * self.gain_error:.2g}% of the error above the floor"
        elif self.trust.trusted:
            told = f"what it saves is not promised, since trainings do not save the {self.plan.gain:.0%} of theory"
        trained = f"in {check.planned.size} trainings on the rows"
        if check.gain is not None:
            trained += f" {check.gain:.0%} ± {100 * check.gain_error:.2g}%"
        foretold = f"(predicted {self.plan.error:.4g}) against {ends[1]} ({self.plan.baseline:.4g})"
        return f"{told}; {trained}: {ends[0]} {foretold}"

    @property
    def _no_better(self) -> str:
        """In words, that one pass is no better on fresh rows than a guess; empty where it is."""
        ends = [float(self.curves[f"error_{name}"][-1]) for name in ("constant", "plan")]
        return "" if min(ends) < self.guess else ", and one pass over these samples does no better"

    @property
    def _many_passes(self) -> str:
        epochs = self.passes.data["epoch"].values
        error = np.maximum(self.passes.data["error"].values[0], 0.0)  # of rows without noise, rounding is below zero
        told = f"many passes over {trained_rows(self.data)} rows at rate {self.plan.best_constant:.3g}: the test error"
        bars = [""] * error.size
        if "error_standard_error" in self.passes.data:
            bars = [f" ± {x:.1g}" for x in self.passes.data["error_standard_error"].values[0]]
        last = f"{error[-1]:.4g}{bars[-1]} after {epochs[-1]:.3g} epochs"
        if not np.isfinite(self.epochs):
            return f"{told} still falls, to {last}"
        least, near = int(error.argmin()), epochs[error <= (1 + NEAR) * error.min()]
        return (
            f"{told} is least, {error[least]:.4g}{bars[least]}, after {self.epochs:.3g} epochs, and within {NEAR:.0%} "
            f"of it from {near[0]:.2g} to {near[-1]:.2g}; it is {last}"
        )

    @property
    def _trained(self) -> tuple[Array, Array]:
        return self.check.planned, self.check.compared

    def _repr_html_(self) -> str:
        from ..plot.notebook import card

        return card(repr(self), self._draw_curves, describe="error of fresh rows against samples")

    def _draw_curves(self, ax: Any) -> None:
        from ..plot.curves import LABELS

        c = self.curves.isel(sample=slice(1, None))
        x = c["sample"].values
        for name, style, words in (
            ("constant", "--", f"rate {self.plan.best_constant:.3g}"),
            ("plan", "-", "schedule"),
        ):
            ax.plot(x, c[f"error_{name}"].values, style, label=words)
            ax.fill_between(x, c[f"error_{name}_low"].values, c[f"error_{name}_high"].values, alpha=0.15, lw=0)
        ax.axhline(self.floor, color="0.5", ls=":", label="floor")
        ax.set(xscale="log", yscale="log", xlabel="samples", ylabel=LABELS["error"])
        ax.legend()

    def plot(self) -> Figure:
        """Spectrum and what it tells of the labels, learning curves with bands and trainings, schedule, verdict."""
        from ..plot.curves import LABELS
        from ..plot.log_axes import label
        from ..plot.palette import COLOURS, panels

        c, plan, trust = self.curves, self.plan, self.trust
        blue, orange = COLOURS[:2]
        figure, ((spectrum, curve), (rate, verdict)) = panels(2, 2, (10, 7))
        ranks = np.arange(1, c.sizes["level"] + 1)
        seen = c["eigenvalue"].values > 0
        spectrum.loglog(ranks[seen], c["eigenvalue"].values[seen], ".", label="eigenvalue")
        spectrum.set(xlabel="direction", ylabel="eigenvalue", title="spectrum")
        told = spectrum.twinx()
        told.semilogx(ranks, np.cumsum(c["explained"].values), color=orange)
        told.set_ylabel("labels' variance told by the first directions", color=orange)
        told.set_ylim(0, 1)
        x = c["sample"].values
        for name, colour, words in (
            ("constant", "k", f"rate {plan.best_constant:.3g}"),
            ("plan", blue, "best schedule"),
        ):
            error = [c[f"error_{name}{end}"].values[1:] for end in ("", "_low", "_high")]
            curve.plot(x[1:], error[0], color=colour, label=words)
            curve.fill_between(x[1:], error[1], error[2], color=colour, alpha=0.15, lw=0)
        for runs, colour in zip(self._trained, (blue, "k"), strict=True):
            if not diverged(runs):
                curve.errorbar(x[-1], runs.mean(), runs.std(ddof=1), fmt="o", color=colour)
        curve.axhline(self.floor, color="0.5", ls=":", label="floor")
        curve.set(
            xscale="log",
            yscale="log",
            xlabel="samples",
            ylabel=LABELS["error"],
            title="one pass; dots: trained on the rows",
        )
        curve.legend()
        promised = "not promised to save anything"
        if self.gain is not None:
            promised = f"saves {self.gain:.0%} of the error above the floor"
        rate.plot(plan.times * self.data.size, plan.rates, ".-", color=blue, label="best schedule")
        rate.axhline(plan.best_constant, color="k", ls="--", label="best constant")
        rate.set(xlabel="samples", ylabel="rate", title=promised)
        rate.legend()
        for i, r in enumerate(trust.rates):
            if np.isfinite(trust.trained[i]).all():
                verdict.errorbar(
                    trust.times * self.data.size,
                    100 * trust.deviations[i],
                    100 * trust.errors[i] / trust.predicted[i],
                    fmt="o-",
                    label=f"rate {r:.3g}",
                )
        verdict.axhline(0, color="k", lw=0.8)
        verdict.set(xscale="log", xlabel="samples", ylabel="trained against theory, %", title=_wrapped(trust.words))
        if np.isfinite(trust.trained).all(1).any():
            verdict.legend()
        for ax in figure.axes:
            label(ax)
        return figure

    def citations(self) -> list[str]:
        """The papers behind the forecast: one pass, its bands by a bootstrap, ridge regression."""
        return list(ROWS_FORECAST)

    def summary(self) -> dict[str, Any]:
        """The numbers that matter, for JSON."""
        trust, held = self.trust, self.trust.held_out
        lost = [diverged(runs) for runs in self._trained]
        return {
            "rows": len(self.data.rows),
            "columns": self.data.size,
            "samples": self.samples,
            "explained": float(self.curves["explained"].sum()),
            "floor": self.floor,
            "floor_error": self.floor_error,
            "best_constant_rate": self.plan.best_constant,
            "error_constant": float(self.curves["error_constant"][-1]),
            "error_plan": float(self.curves["error_plan"][-1]),
            "error_of_a_constant_guess": self.guess,
            "gain_predicted": self.gain,
            "gain_predicted_standard_error": self.gain_error if np.isfinite(self.gain_error) else None,
            "gain_trained": self.check.gain,
            "gain_trained_standard_error": None if self.check.gain is None else self.check.gain_error,
            "diverged": {"trainings": self.check.planned.size, "planned": lost[0], "constant": lost[1]},
            "schedule": {"samples": (self.plan.times * self.data.size).tolist(), "rates": self.plan.rates.tolist()},
            "epochs_before_overfitting": self.epochs if np.isfinite(self.epochs) else None,
            f"error_{MORE}_times_the_samples": self.more,
            f"error_{MORE}_times_the_samples_standard_error": self.more_error if np.isfinite(self.more_error) else None,
            "ridge": self.ridge[0],
            "ridge_standard_error": self.ridge_errors[0],
            f"ridge_{MORE}_times_the_samples": self.ridge[1],
            f"ridge_{MORE}_times_the_samples_standard_error": self.ridge_errors[1],
            "trusted": trust.trusted,
            "within": trust.within(trust.best) if trust.trusted else None,
            "within_fresh": None if trust.fresh is None or not np.isfinite(trust.fresh) else trust.fresh,
            "within_by_measured_moments": trust.within_measured,
            "verdict": trust.words,
            "citations": self.citations(),
            "held_out": None
            if held is None
            else {
                "rows": held.rows,
                "predicted": held.predicted,
                "measured": held.measured if np.isfinite(held.measured) else None,
                "standard_error_of_the_deviation": held.standard_error if np.isfinite(held.standard_error) else None,
            },
        }

    @checked
    def write(self, folder: str | os.PathLike[str]) -> dict[str, Path]:
        """Picture, table, numbers and summary into a folder, made if it is not there: the paths by what they are."""
        import matplotlib.pyplot as plt

        where = folder_for("folder", folder)
        paths = {
            "picture": where / "learn.png",
            "table": where / "learn.csv",
            "data": where / "learn.nc",
            "summary": where / "learn.json",
        }
        picture = self.plot()
        files.write_picture(paths["picture"], picture, dpi=150)
        plt.close(picture)
        names = [str(name) for name, values in self.curves.items() if values.dims == ("sample",)]
        table = np.column_stack([self.curves["sample"].values, *(self.curves[name].values for name in names)])
        rows = io.StringIO()
        np.savetxt(rows, table, "%.8g", ",", header=",".join(["samples", *names]), comments="")
        files.write(paths["table"], rows.getvalue())
        about = provenance(self.plan.problem, "exact mean", averaged=True)
        files.write_dataset(paths["data"], self.curves.assign_attrs(about))
        files.write(paths["summary"], json.dumps(self.summary(), indent=2) + "\n")
        return paths


def _wrapped(text: str) -> str:
    import textwrap

    return "\n".join(textwrap.wrap(text, 60)[:3])


def trained_rows(data: Samples) -> int:
    """Rows that many passes are made over."""
    return len(data.rows) * 4 // 5
