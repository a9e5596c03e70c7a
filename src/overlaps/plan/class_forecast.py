"""What SGD will do to a classifier on labelled rows, before it is done: loss, 0-1 error and confusion of one pass.

Theory takes each class of the rows as a Gaussian with its mean and covariance (`overlaps.online.classified_rows`) and
is solved for several constant rates, of which the one of least loss at the end is foretold in full. Then

- trainings on the rows at that rate, and on four fifths of them, tested on the others, say how far to trust it
  (`overlaps.plan.class_trust`);
- `overlaps.beyond_gaussian` says from when on the network uses more than means and covariances of the classes, and of
  clusters within them.

>>> import numpy as np
>>> import overlaps as ov
>>> rng = np.random.default_rng(0)
>>> kinds = np.array(["left", "right"])[np.arange(600) % 2]
>>> rows = rng.standard_normal((600, 10)) + np.where(kinds == "left", -0.5, 0.5)[:, None]
>>> found = ov.forecast(ov.Samples(rows, kinds), loss="logistic", progress=False)
>>> found.trust.trusted, found.theory.data["misclassified"].values[0, -1] < 0.1
(True, np.True_)
"""

from __future__ import annotations

import io
import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from tqdm.auto import tqdm

from ..algorithms import OnlineSGD
from ..compare.beyond_gaussian import BeyondGaussian, beyond_gaussian
from ..data import Samples
from ..data.labels import CLASSES
from ..interface import files
from ..interface.checks import checked, folder_for, whole
from ..interface.errors import InputError, NumericalError
from ..network.architectures import Committee, Softmax
from ..problem.start import Start, draw
from ..problem.statement import Problem
from ..trajectory.dataset import Trajectory
from ..trajectory.scales import solve, train
from .class_trust import ClassTrust, measure_trust

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]
RATES = np.geomspace(0.05, 5.0, 7)  # that are tried at first
FURTHER = 4  # more of them, where the best is at an edge
ROUGH = 0.05  # accuracy of theory in the search for the best of them
POINTS = 16  # of a learning curve
RUNS, WORK = (6, 60), 3e7  # trainings, of large sets and of small ones, and steps × columns of all of them
SCALE = 0.5  # standard deviation of the first weights of a two-layer network


@dataclass(frozen=True, eq=False)
class ClassForecast:
    """What to expect of one pass of SGD on classified rows.

    Attributes
    ----------
    problem: the classifier at the best constant rate.
    samples: that a training sees.
    rates, ends: rates that were tried, rising, and the loss that theory foretells at the end; infinite where it
        diverges.
    theory: at the best rate: error, misclassified and confusion along training.
    runs: trainings on the rows at that rate.
    trust: by how much theory may be trusted on these rows.
    beyond: when trainings part from training on Gaussians, of the classes and of clusters within them.
    """

    problem: Problem
    samples: int
    rates: Array
    ends: Array
    theory: Trajectory
    runs: Trajectory
    trust: ClassTrust
    beyond: BeyondGaussian

    @property
    def rate(self) -> float:
        """The best constant rate."""
        return float(self.rates[self.ends.argmin()])

    @property
    def at_edge(self) -> str:
        """In words, that a rate beyond those tried may be better; empty where the best is between others."""
        place = int(self.ends.argmin())
        if 0 < place < len(self.rates) - 1:
            return ""
        return f", the {'smallest' if place == 0 else 'largest'} that was tried: one beyond it may be better"

    @property
    def constant_guess(self) -> float:
        """0-1 error of always guessing the class of most rows."""
        return self.trust.guess

    def __repr__(self) -> str:
        data: Any = self.problem.data
        d = self.theory.data
        some = np.unique(np.linspace(0, d.sizes["time"] - 1, 5).round().astype(int))
        seen = self.samples / d["time"].values[-1] * d["time"].values
        trained = self.runs.data
        lines = [
            f"{self.problem.describe_networks()}, {self.problem.loss} loss, on {len(data.rows)} rows of {data.size} "
            f"columns in {len(data.classes)} classes; one pass of {self.samples} samples",
            f"  best constant rate {self.rate:.3g} of {self.rates[0]:.3g} to {self.rates[-1]:.3g}{self.at_edge}",
            "  samples         " + "".join(f"{x:>17.0f}" for x in seen[some]),
        ]
        for name in ("error", "misclassified"):
            mean, spread = trained[name].mean("run").values, trained[name].std("run", ddof=1).values
            bars = spread / np.sqrt(self.runs.runs)
            lines.append(f"    {name:<14}" + "".join(f"{x:>17.4g}" for x in d[name].values[0, some]))
            cells = (f"{x:.4g} ± {e:.1g}" for x, e in zip(mean[some], bars[some], strict=True))
            lines.append("      trained     " + "".join(f"{cell:>17}" for cell in cells))
        right = np.diag(d["confusion"].values[0, -1])
        told = ", ".join(f"{name} {x:.1%}" for name, x in zip(data.classes, right, strict=True))
        trust = self.trust
        lines += [
            f"  always guessing the largest class misclassifies {self.constant_guess:.4g}",
            f"  taken for what they are, at the end: {told}",
            f"  fresh rows, by training on four fifths: {trust.held_loss!r}; {trust.held_wrong!r}",
            f"  {trust.words}",
            *(f"  {line}" for line in repr(self.beyond).splitlines()),
        ]
        return "\n".join(lines)

    def plot(self) -> Figure:
        """Loss and 0-1 error against samples with trainings, the rates tried, and the confusion matrix at the end."""
        import matplotlib.pyplot as plt

        from ..plot.log_axes import label

        figure, axes = plt.subplots(2, 2, figsize=(10, 7), layout="constrained")
        data: Any = self.problem.data
        seen = self.theory.time * data.size
        for ax, name in zip(axes[0], ("error", "misclassified"), strict=True):
            runs = self.runs.data[name].values
            ax.plot(seen, self.theory.data[name].values[0], "k-", label="theory")
            ax.errorbar(seen, runs.mean(0), runs.std(0, ddof=1), fmt="C0o", ms=4, label="trained on the rows")
            ax.set(xscale="log", xlabel="samples", ylabel=name)
            ax.legend()
        axes[0, 0].set_title(f"{self.problem.loss} loss at rate {self.rate:.3g}")
        finite = np.isfinite(self.ends)
        axes[1, 0].semilogx(self.rates[finite], self.ends[finite], "k.-")
        axes[1, 0].set(xlabel="rate", ylabel="error at the end", title="rates")
        confusion, count = self.theory.data["confusion"].values[0, -1], len(data.classes)
        axes[1, 1].imshow(confusion, vmin=0, vmax=1, cmap="viridis")
        axes[1, 1].set(xlabel="taken for", ylabel="class", title="confusion at the end")
        axes[1, 1].set_xticks(range(count), [str(name) for name in data.classes])
        axes[1, 1].set_yticks(range(count), [str(name) for name in data.classes])
        for ax in figure.axes:
            label(ax)
        return figure

    def summary(self) -> dict[str, Any]:
        """The numbers that matter, for JSON."""
        data: Any = self.problem.data
        end, runs, trust = self.theory.data.isel(run=0, time=-1), self.runs.data.isel(time=-1), self.trust
        return {
            "rows": len(data.rows),
            "columns": data.size,
            "classes": [str(name) for name in data.classes],
            "student": self.problem.describe_networks(),
            "loss": str(self.problem.loss),
            "samples": self.samples,
            "best_constant_rate": self.rate,
            "rates_tried": self.rates.tolist(),
            "error": float(end["error"]),
            "error_trained": float(runs["error"].mean()),
            "misclassified": float(end["misclassified"]),
            "misclassified_trained": float(runs["misclassified"].mean()),
            "confusion": end["confusion"].values.tolist(),
            "misclassified_by_a_constant_guess": self.constant_guess,
            "beats_a_constant_guess": trust.beats_a_guess,
            "error_fresh": trust.held_loss.measured,
            "error_fresh_standard_error": trust.held_loss.error,
            "misclassified_fresh": trust.held_wrong.measured,
            "misclassified_fresh_standard_error": trust.held_wrong.error,
            "trusted": trust.trusted,
            "within": trust.within if trust.trusted else None,
            "verdict": trust.words,
            "beyond_gaussian": [
                {
                    "components": one.components,
                    "time": one.time if np.isfinite(one.time) else None,
                    "interval": [x if np.isfinite(x) else None for x in one.interval],
                    "gain": one.gain,
                    "gain_error": one.gain_error,
                }
                for one in self.beyond.distinct
            ],
        }

    @checked
    def write(self, folder: str | os.PathLike[str]) -> dict[str, Path]:
        """Picture, table, numbers and summary into a folder, made if it is not there: the paths by what they are."""
        import matplotlib.pyplot as plt

        where = folder_for("folder", folder)
        names = {"picture": "learn.png", "table": "learn.csv", "data": "learn.nc", "summary": "learn.json"}
        paths = {what: where / name for what, name in names.items()}
        picture = self.plot()
        files.write_picture(paths["picture"], picture, dpi=150)
        plt.close(picture)
        trained = self.runs.data.mean("run")
        columns = {"samples": self.theory.time * self.problem.data.eigenvalues.size}
        for name in ("error", "misclassified"):
            columns |= {name: self.theory.data[name].values[0], f"{name}_trained": trained[name].values}
        rows = io.StringIO()
        np.savetxt(rows, np.column_stack(list(columns.values())), "%.8g", ",", header=",".join(columns), comments="")
        files.write(paths["table"], rows.getvalue())
        self.theory.save(paths["data"])
        files.write(paths["summary"], json.dumps(self.summary(), indent=2) + "\n")
        return paths


def forecast_classes(
    data: Samples,
    loss: str,
    student: Committee | Softmax | None,
    samples: int | None,
    runs: int | None,
    seed: int,
    progress: bool,
) -> ClassForecast:
    """See `overlaps.forecast`."""
    if not data.classes:
        what = "loss" if student is None else "student"
        assert data.labels is not None
        kinds = np.unique(data.labels.values)
        hint = ""
        if kinds.size <= CLASSES and np.array_equal(kinds, np.rint(kinds)):
            hint = f", or give their {kinds.size} values as whole numbers or text, which are classes"
        raise InputError(
            f"{what}: these labels are real numbers, for which forecasts know a linear student and the square loss; "
            f"leave {what} out{hint}"
        )
    count, N, n = len(data.classes), data.size, len(data.rows)
    linear = student is None
    if student is None:
        student = Softmax(count) if loss == "cross-entropy" else Committee(1, "linear")
    samples = n if samples is None else whole("samples", samples, least=N // 2 + 1)
    runs = int(np.clip(WORK / (samples * N), *RUNS)) if runs is None else whole("runs", runs, least=4)
    times = np.geomspace(0.1, 1.0, POINTS) ** 2 * samples / N
    first = Problem(data=data, student=student, algorithm=OnlineSGD(float(RATES[0])), loss=loss)
    start = draw(first, N, seed, scale=0.0 if linear else SCALE)
    with tqdm(total=5, desc="forecast", unit="part", delay=1, disable=None if progress else True) as bar:
        rates, ends = _ends(first, start, times)
        bar.update()
        if not np.isfinite(ends).any():
            raise NumericalError(
                "forecast: theory diverges at all rates that were tried; standardise the columns",
                quantity="error",
                time=0.0,
            )
        best = _at_rate(first, float(rates[ends.argmin()]))
        theory = solve(best, start, times)
        bar.update()
        trained = train(best, start, times, runs, seed, progress=False)
        bar.update()
        beyond = beyond_gaussian(best, start, times, runs, seed, groups=[None, "auto"], progress=False)
        bar.update()
        trust = measure_trust(best, start, theory, trained, beyond, seed)
        bar.update()
    return ClassForecast(best, samples, rates, ends, theory, trained, trust, beyond)


def _at_rate(problem: Problem, rate: float) -> Problem:
    return replace(problem, algorithm=OnlineSGD(rate))


def _ends(problem: Problem, start: Start, times: Array) -> tuple[Array, Array]:
    """Rates from the middle one on to the best and one beyond it, rising, and losses at the end, (rates,) each."""
    grid = RATES[0] * (RATES[1] / RATES[0]) ** np.arange(-FURTHER, len(RATES) + FURTHER)
    ends: dict[int, float] = {}

    def tried(at: int) -> float:
        if at not in ends:
            ends[at] = _end(_at_rate(problem, float(grid[at])), start, times)
        return ends[at]

    middle = FURTHER + len(RATES) // 2
    for step in (1, -1):
        at = middle + step
        while 0 <= at < len(grid) and (tried(at) < tried(at - step) or (step < 0 and np.isinf(tried(at)))):
            at += step
        if at != middle + step and np.isfinite(ends[at - step]):
            break
    places = sorted(ends)
    return grid[places], np.array([ends[at] for at in places])


def _end(problem: Problem, start: Start, times: Array) -> float:
    """The loss that theory foretells at the end, roughly; infinite where it diverges."""
    try:
        return float(solve(problem, start, times[-1:], accuracy=ROUGH).data["error"].item())
    except NumericalError:
        return np.inf
