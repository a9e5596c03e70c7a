"""What SGD will do to a classifier on labelled rows, before it is done: loss, 0-1 error and confusion of one pass.

Theory takes each class of the rows as a Gaussian with its mean and covariance (`overlaps.online.classified_rows`) and
is solved for several constant rates, of which the one of least loss at the end is foretold in full. Then

- trainings on the rows at that rate say how far to trust it: by how much their loss is off at any of the times;
- `overlaps.beyond_gaussian` says from when on the network uses more than means and covariances of the classes, and of
  clusters within them;
- a training on four fifths of the rows, tested on the others, says what fresh rows would have.

>>> import numpy as np
>>> import overlaps as ov
>>> rng = np.random.default_rng(0)
>>> kinds = np.array(["left", "right"])[np.arange(600) % 2]
>>> rows = rng.standard_normal((600, 10)) + np.where(kinds == "left", -0.5, 0.5)[:, None]
>>> found = ov.forecast(ov.Samples(rows, kinds), loss="logistic", progress=False)
>>> found.trusted, found.theory.data["misclassified"].values[0, -1] < 0.1
(True, np.True_)
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from tqdm.auto import tqdm

from ..algorithms import MultiPass, OnlineSGD
from ..compare.beyond_gaussian import BeyondGaussian, beyond_gaussian
from ..data import Samples
from ..interface import files
from ..interface.checks import whole
from ..interface.errors import InputError, NumericalError
from ..network.architectures import Committee, Softmax
from ..problem.start import Start, draw
from ..problem.statement import Problem
from ..trajectory.dataset import Trajectory
from ..trajectory.scales import solve, train

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]
RATES = np.geomspace(0.05, 5.0, 7)  # that are tried
ROUGH = 0.05  # accuracy of theory in the search for the best of them
POINTS = 16  # of a learning curve
RUNS, WORK = (6, 60), 3e7  # trainings, of large sets and of small ones, and steps × columns of all of them
LARGEST = 0.1  # deviation beyond which theory is not to be trusted
SURE = 2.5  # standard errors of what is measured


@dataclass(frozen=True, eq=False)
class ClassForecast:
    """What to expect of one pass of SGD on classified rows.

    Attributes
    ----------
    problem: the classifier at the best constant rate.
    samples: that a training sees.
    rates, ends: rates, and the loss that theory foretells at the end, (7,); infinite where it diverges, and beyond
        those rates on both sides of the best at which it is larger.
    theory: at the best rate: error, misclassified and confusion along training.
    runs: trainings on the rows at that rate.
    beyond: when they part from training on Gaussians, of the classes and of clusters within them.
    fresh: trainings on four fifths of the rows, tested on the others, at the end.
    """

    problem: Problem
    samples: int
    rates: Array
    ends: Array
    theory: Trajectory
    runs: Trajectory
    beyond: BeyondGaussian
    fresh: Trajectory

    @property
    def rate(self) -> float:
        """The best constant rate."""
        return float(self.rates[self.ends.argmin()])

    @property
    def deviations(self) -> Array:
        """Loss of the trainings less that foretold, relative to the latter, (time,)."""
        predicted = self.theory.data["error"].values[0]
        return self.runs.data["error"].values.mean(0) / predicted - 1

    @property
    def within(self) -> float:
        """The relative deviation to reckon with: the largest one measured, and 2.5 standard errors of it."""
        predicted, trained = self.theory.data["error"].values[0], self.runs.data["error"].values
        errors = trained.std(0, ddof=1) / np.sqrt(len(trained)) / predicted
        return float((np.abs(self.deviations) + SURE * errors).max())

    @property
    def trusted(self) -> bool:
        """Whether trainings are within a tenth of theory at all times."""
        return self.within <= LARGEST

    @property
    def words(self) -> str:
        """The verdict."""
        if self.trusted:
            return f"trust it: trainings on the rows are within {self.within:.1%} of the loss foretold at all times"
        return f"do not trust it: trainings on the rows are off the loss foretold by up to {self.within:.1%}"

    def __repr__(self) -> str:
        data: Any = self.problem.data
        d = self.theory.data
        some = np.unique(np.linspace(0, d.sizes["time"] - 1, 5).round().astype(int))
        seen = self.samples / d["time"].values[-1] * d["time"].values
        trained = self.runs.data
        lines = [
            f"{self.problem.describe_networks()}, {self.problem.loss} loss, on {len(data.rows)} rows of {data.size} "
            f"columns in {len(data.classes)} classes; one pass of {self.samples} samples",
            f"  best constant rate {self.rate:.3g} of {self.rates[0]:.3g} to {self.rates[-1]:.3g}",
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
        fresh = [float(self.fresh.data[name].mean()) for name in ("error", "misclassified")]
        lines += [
            f"  taken for what they are, at the end: {told}",
            f"  fresh rows, by training on four fifths: error {fresh[0]:.4g}, misclassified {fresh[1]:.4g}",
            f"  {self.words}",
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
        tried = np.isfinite(self.ends)
        axes[1, 0].semilogx(self.rates[tried], self.ends[tried], "k.-")
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
        end, runs, fresh = self.theory.data.isel(run=0, time=-1), self.runs.data.isel(time=-1), self.fresh.data
        return {
            "rows": len(data.rows),
            "columns": data.size,
            "classes": [str(name) for name in data.classes],
            "loss": str(self.problem.loss),
            "samples": self.samples,
            "best_constant_rate": self.rate,
            "error": float(end["error"]),
            "error_trained": float(runs["error"].mean()),
            "misclassified": float(end["misclassified"]),
            "misclassified_trained": float(runs["misclassified"].mean()),
            "confusion": end["confusion"].values.tolist(),
            "error_fresh": float(fresh["error"].mean()),
            "misclassified_fresh": float(fresh["misclassified"].mean()),
            "trusted": self.trusted,
            "within": self.within,
            "verdict": self.words,
            "beyond_gaussian": [
                {
                    "components": one.components,
                    "time": one.time if np.isfinite(one.time) else None,
                    "interval": [x if np.isfinite(x) else None for x in one.interval],
                    "gain": one.gain,
                    "gain_error": one.gain_error,
                }
                for one in self.beyond.partings
            ],
        }

    def write(self, folder: Path) -> dict[str, Path]:
        """Picture, table, numbers and summary into an existing folder: the paths by what they are."""
        import matplotlib.pyplot as plt

        names = {"picture": "learn.png", "table": "learn.csv", "data": "learn.nc", "summary": "learn.json"}
        paths = {what: folder / name for what, name in names.items()}
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
    data: Samples, loss: str, samples: int | None, runs: int | None, seed: int, progress: bool
) -> ClassForecast:
    """See `overlaps.forecast`."""
    if not data.classes:
        raise InputError("loss: these labels are real numbers, which the square loss learns; leave loss out")
    count, N, n = len(data.classes), data.size, len(data.rows)
    student = Softmax(count) if loss == "cross-entropy" else Committee(1, "linear")
    samples = n if samples is None else whole("samples", samples, least=N // 2 + 1)
    runs = int(np.clip(WORK / (samples * N), *RUNS)) if runs is None else whole("runs", runs, least=4)
    times = np.geomspace(0.1, 1.0, POINTS) ** 2 * samples / N
    first = Problem(data=data, student=student, algorithm=OnlineSGD(float(RATES[0])), loss=loss)
    start = draw(first, N, scale=0.0)
    with tqdm(total=5, desc="forecast", unit="part", delay=1, disable=None if progress else True) as bar:
        ends = _ends(first, start, times)
        bar.update()
        if not np.isfinite(ends).any():
            raise NumericalError(
                "forecast: theory diverges at all rates that were tried; standardise the columns",
                quantity="error",
                time=0.0,
            )
        best = _at_rate(first, float(RATES[ends.argmin()]))
        theory = solve(best, start, times)
        bar.update()
        trained = train(best, start, times, runs, seed, progress=False)
        bar.update()
        beyond = beyond_gaussian(best, start, times, runs, seed, groups=[None, "auto"], progress=False)
        bar.update()
        fresh = train(_on_part(best, n), start, times[-1:], runs, seed, progress=False)
        bar.update()
    return ClassForecast(best, samples, RATES, ends, theory, trained, beyond, fresh)


def _at_rate(problem: Problem, rate: float) -> Problem:
    return replace(problem, algorithm=OnlineSGD(rate))


def _on_part(problem: Problem, rows: int) -> Problem:
    """The same on four fifths of the rows, which are drawn with replacement, tested on the others."""
    return replace(problem, algorithm=MultiPass(problem.algorithm.rate, samples=rows * 4 // 5))


def _ends(problem: Problem, start: Start, times: Array) -> Array:
    """Losses at the end for rates from the middle one on to the best, (rates,); infinite where none was tried."""
    ends = np.full(len(RATES), np.inf)
    here = len(RATES) // 2
    ends[here] = _end(_at_rate(problem, float(RATES[here])), start, times)
    for step in (1, -1):
        at = here + step
        while 0 <= at < len(RATES):
            ends[at] = _end(_at_rate(problem, float(RATES[at])), start, times)
            if ends[at] >= ends[at - step]:
                break
            at += step
        if ends.argmin() != here:
            break
    return ends


def _end(problem: Problem, start: Start, times: Array) -> float:
    """The loss that theory foretells at the end, roughly; infinite where it diverges."""
    try:
        return float(solve(problem, start, times[-1:], accuracy=ROUGH).data["error"].item())
    except NumericalError:
        return np.inf
