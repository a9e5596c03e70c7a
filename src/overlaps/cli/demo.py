"""What `overlaps demo` shows: predicted before training, then trained.

Four problems, one picture:

- a committee whose units wait on a plateau before they specialise, run as a spec at all three scales. At N = 10⁶, where
  nothing is trained, macro and the diffusion of the overlaps predict how much longer it waits. `overlaps.laws.plateau`
  has closed forms for its height error* and for the way out,

      error* − error = prefactor × r² exp(2 t/τ_esc),

  r being what students differ by at t = 0, here the time at which the error of macro is flattest;
- the largest eigenvalues of a block of the Hessian along SGD on a Gaussian mixture, predicted from the overlaps that
  solve the equation of motion: no run enters;
- training on images, predicted from Gaussian inputs of the same spectrum. For erf units that prediction fails, and the
  demonstration says so;
- a training on labelled images, planned: learning curve, best rate and best schedule, and how far to trust them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

import overlaps as ov

from ..interface import files
from ..plan.rows_forecast import RowsForecast
from ..plot import curves
from . import planned
from .experiment import Experiment, ExperimentResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

Array = NDArray[np.float64]

SPEC = """\
# Two hidden units learn from two, on inputs whose variances fall off as a power law.
loss = "square"

[data.spectrum]
kind = "PowerLaw"
levels = 10
exponent = 0.25

[teacher]
units = 2
activation = "erf"

[student]
units = 2
activation = "erf"

[algorithm]
rate = 0.15

[run]
size = 1000
seed = 0
scale = 0.1
first = 1.0
last = 400.0
count = 80
meso_runs = 8
micro_runs = 6
"""
CLASSES = 3
IMAGES = {"linear": 1, "erf": 2}  # units of the students that learn on images, by activation

LOST = 0.1  # of the plateau's error: where it counts as left, and closed forms of small differences still hold

# safe for colour-blind readers: Okabe and Ito
BLUE, RED, GREEN, ORANGE = "#0072B2", "#D55E00", "#009E73", "#E69F00"
TEXT: Any = {"font.size": 7, "axes.titlesize": 7.5, "legend.fontsize": 5.8}
CLOSED: Any = {"color": "k", "lw": 1.0, "ls": (0, (5, 2))}


@dataclass(frozen=True)
class Sizes:
    """How much is computed.

    Parameters
    ----------
    spec: of the committee, to be run by `Experiment`.
    large, large_runs: the size at which nothing is trained, and the runs of the diffusion there, to twice the time.
    mixture, samples, mixture_runs, observations: dimensions, samples of the Hessian, runs and times of the outliers.
    image_runs: runs of each student on the images, and of its prediction.
    plan_runs: runs of each training that checks the plan.
    """

    spec: str = SPEC
    large: int = 10**6
    large_runs: int = 4
    mixture: int = 300
    samples: int = 3000
    mixture_runs: int = 4
    observations: int = 14
    image_runs: int = 30
    plan_runs: int = 100


class Large(NamedTuple):
    """The committee at a size at which it is not trained.

    plateau: of its teacher, for small rates. flat: the time at which the error of macro is flattest.
    """

    macro: ov.Trajectory
    meso: ov.Trajectory
    plateau: ov.laws.Plateau
    flat: float

    @property
    def left(self) -> float:
        """Time at which a share `LOST` of the plateau's error is gone, by the closed form."""
        p = self.plateau
        specialised = float(p.specialisation(self.macro.data["R"].sel(run=0, time=self.flat).values))
        return self.flat + p.length(specialised, float(np.sqrt(LOST * p.error / p.prefactor)))


class HessianOutliers(NamedTuple):
    """Eigenvalues of the first class's block of the Hessian along training.

    predicted: dataset with count (time), the number of outliers that are to be seen; outlier (time, rank), their
        values, at the edge of the bulk where they are not; and edge (time), that edge.
    """

    macro: ov.Trajectory
    micro: ov.Trajectory
    samples: int
    predicted: xr.Dataset

    @property
    def measured(self) -> Array:
        """The largest, (run, time, rank): one for each class, and the first of the bulk."""
        return self.micro.data["hessian_values"].values[:, :, 0]

    @property
    def expected(self) -> Array:
        """The same as predicted, (time, rank): what does not stand out sits at the edge of the bulk."""
        return np.concatenate([self.predicted["outlier"].values, self.predicted["edge"].values[:, None]], axis=1)

    @property
    def deviation(self) -> tuple[float, float]:
        """Largest deviation of the mean over runs from the prediction, and largest spread of the runs; relative."""
        difference, spread = self.measured.mean(0) - self.expected, self.measured.std(0, ddof=1)
        return float(np.abs(difference / self.expected).max()), float((spread / self.expected).max())


class OnImages(NamedTuple):
    """A student on images (micro), and on Gaussian inputs of the same spectrum and size (meso)."""

    meso: ov.Trajectory
    micro: ov.Trajectory

    @property
    def ratio(self) -> Array:
        """Error trained over error predicted, means over runs, (time,)."""
        return (self.micro.data["error"].mean("run") / self.meso.data["error"].mean("run")).values


@dataclass(frozen=True, eq=False)
class Demonstration(ExperimentResult):
    """What was predicted, what was trained, and where it is; `results` are those of the committee."""

    large: Large
    outliers: HessianOutliers
    images: dict[str, OnImages]
    planned: RowsForecast

    def figure(self) -> Figure:
        """Six panels: error and overlaps of the committee, outliers of the Hessian, learning on images, the plan."""
        import matplotlib.pyplot as plt

        with plt.rc_context(TEXT):
            figure, axes = plt.subplots(3, 2, figsize=(6.4, 7.6), layout="constrained")
            (error, overlap), (outlier, image), (curves, schedule) = axes
            self._draw_error(error)
            self._draw_overlaps(overlap)
            self._draw_outliers(outlier)
            self._draw_images(image)
            planned.draw_curves(curves, self.planned, BLUE, RED)
            planned.draw_schedule(schedule, self.planned, BLUE, RED)
            figure.suptitle(
                "predicted before training, then trained (bands and bars: one standard deviation over runs)",
                fontsize=8,
            )
        return figure

    def _draw_error(self, ax: Axes) -> None:
        from matplotlib.lines import Line2D

        small, large = self.results, self.large
        for results, colour in ((small.values(), BLUE), ((large.macro, large.meso), RED)):
            for result in results:
                curves.trajectory(result, "error", ax, color=colour, lw=curves.WIDTHS[result.scale])
        p = large.plateau
        ax.plot([large.flat / 4, large.left], [p.error, p.error], **CLOSED)
        ax.plot(large.left, (1 - LOST) * p.error, "kd", ms=4)
        sizes = f"N = {self.experiment.run.size}", f"N = {large.meso.size:,}"
        handles = [
            _handle(small["macro"], f"macro, start of {sizes[0]}", BLUE),
            *(_handle(small[name], curves.label(small[name]), BLUE) for name in ("meso", "micro")),
            _handle(large.macro, f"macro, start of {sizes[1]}", RED),
            _handle(large.meso, f"diffusion, {sizes[1]}, {large.meso.runs} runs, none trained", RED),
            Line2D([], [], **CLOSED, marker="d", ms=4, label="closed forms: plateau, and a tenth of it lost"),
        ]
        ax.legend(handles=handles, loc="upper right")
        ax.set(xscale="linear", xlim=(0, None))
        ax.set_title(f"(a) error of a committee; verdict on training: {self._word('macro against micro')}")

    def _draw_overlaps(self, ax: Axes) -> None:
        from matplotlib.lines import Line2D

        entries = list(np.ndindex(self.results["macro"].data["R"].shape[2:]))
        colours = [(BLUE, RED, GREEN, ORANGE)[i % 4] for i in range(len(entries))]
        for result in self.results.values():
            ax.set_prop_cycle(color=colours)
            curves.trajectory(result, "R", ax, lw=curves.WIDTHS[result.scale])
        handles = [Line2D([], [], color=c, label=f"R{list(e)}") for c, e in zip(colours, entries, strict=True)]
        handles += [_handle(result, name, "0.3") for name, result in self.results.items()]
        ax.legend(handles=handles, loc="upper left", ncols=2)
        ax.set(xscale="linear", xlim=(0, None), ylabel="overlap R[student, teacher]")
        ax.set_title(f"(b) its units specialise, N = {self.results['macro'].size}")

    def _draw_outliers(self, ax: Axes) -> None:
        o = self.outliers
        time, edge = o.predicted["time"].values, o.predicted["edge"].values
        mean, spread = o.measured.mean(0), o.measured.std(0, ddof=1)
        floor = 0.8 * mean.min()
        ax.fill_between(time, floor, edge, color="0.9", lw=0)
        ax.plot(time, edge, color="0.4", ls="--", lw=1.2, label="edge of the bulk, predicted")
        for i, colour in enumerate((BLUE, RED, GREEN)):
            text = "outliers, predicted" if i == 0 else None
            seen = o.predicted["count"].values > i
            ax.plot(time[seen], o.predicted["outlier"].values[seen, i], color=colour, lw=1.2, label=text)
        for i, colour in enumerate((BLUE, RED, GREEN, "0.4")):
            text = f"measured, mean and spread of {o.micro.runs} runs" if i == 0 else None
            ax.errorbar(time, mean[:, i], spread[:, i], fmt="o", ms=3.5, color=colour, lw=1, label=text)
        ax.set(xscale="log", xlabel=f"time ({o.micro.unit})", ylabel="eigenvalue")
        ax.set_ylim(floor, 1.28 * mean.max())
        ax.set_title(f"(c) outliers of the Hessian; {CLASSES} classes, N = {o.micro.size}")
        ax.legend(loc="upper right")

    def _draw_images(self, ax: Axes) -> None:
        for (name, (meso, micro)), colour in zip(self.images.items(), (BLUE, RED), strict=True):
            word = self._word(on_images(name))
            curves.trajectory(meso, "error", ax, color=colour, lw=1.2, label=f"{name}, predicted from the spectrum")
            curves.trajectory(micro, "error", ax, color=colour, lw=2.5, label=f"{name}, trained on the images: {word}")
        ax.set_title(f"(d) students on images of digits, N = {self.images['erf'].micro.size}")
        ax.legend(loc="lower left")

    def _word(self, pair: str) -> str:
        return self.verdicts[pair].verdict

    def __repr__(self) -> str:
        """What was predicted, what was trained, and the verdicts."""
        return "\n".join([*self._committee(), *self._hessian(), *self._on_images(), *planned.words(self.planned)])

    def _committee(self) -> list[str]:
        macro, micro, large = self.results["macro"], self.results["micro"], self.large
        level, there = ((1 - LOST) * height(result) for result in (macro, large.macro))
        return [
            f"committee, {self.experiment.problem.describe_networks()}, N = {micro.size}",
            f"  leaves its plateau (a tenth of the error lost) at time: predicted {_mean(leaving(macro, level))}, "
            f"trained {_mean(leaving(micro, level))} ({micro.runs} runs)",
            f"  error at time {micro.time[-1]:g}: predicted {float(macro.data['error'][0, -1]):.4g}, "
            f"trained {_mean(micro.data['error'].values[:, -1])}",
            *(f"  {pair}: {verdict.verdict}" for pair, verdict in self.verdicts.items() if "images" not in pair),
            f"the same at N = {large.meso.size}, not trained",
            f"  leaves its plateau at time: closed form {large.left:.4g}, macro {_mean(leaving(large.macro, there))}, "
            f"meso {_mean(leaving(large.meso, there))} ({large.meso.runs} runs)",
            f"  error on the plateau: closed form for small rates {large.plateau.error:.4g}, "
            f"macro {height(large.macro):.4g}",
        ]

    def _hessian(self) -> list[str]:
        o = self.outliers
        difference, spread = o.deviation
        first, last = (int(o.predicted["count"].values[i]) for i in (0, -1))
        return [
            f"outliers of the Hessian, {CLASSES} classes, N = {o.micro.size}, {o.samples} samples",
            f"  predicted: {first} outliers at first, {last} at time {o.micro.time[-1]:g}",
            f"  the {CLASSES + 1} largest eigenvalues are within {difference:.1%} of the prediction at all times (mean "
            f"over {o.micro.runs} runs, which spread by up to {spread:.1%})",
        ]

    def _on_images(self) -> list[str]:
        lines = [
            f"images, N = {self.images['erf'].micro.size}: predicted from their spectrum, as if they were Gaussian"
        ]
        for name, pair in self.images.items():
            ends = (_mean(side.data["error"].values[:, -1]) for side in pair)
            lines += [
                "  {}: error at time {:g}: predicted {}, trained {}".format(name, pair.micro.time[-1], *ends),
                f"    trained/predicted is {pair.ratio.min():.2f} to {pair.ratio.max():.2f} at all times; "
                f"verdict: {self._word(on_images(name))}",
            ]
        return lines


def demonstrate(out: str | os.PathLike[str], sizes: Sizes | None = None, *, progress: bool = True) -> Demonstration:
    """Predict, train and compare; everything is written to the new folder `out`.

    Parameters
    ----------
    sizes: how much is computed; by default what the picture of the README shows, in about a minute.
    progress: whether to say what is being computed, with progress bars on a terminal.
    """
    sizes = Sizes() if sizes is None else sizes
    experiment = Experiment.from_toml(sizes.spec)

    def say(text: str) -> None:
        if progress:
            print(text, flush=True)

    say("1 of 5: a committee at all three scales")
    outcome = experiment.execute(out, progress=progress)
    folder = outcome.folder
    say(f"2 of 5: the same at N = {sizes.large}, not trained")
    large = _large(experiment, sizes, progress)
    large.macro.save(folder / "large macro.nc")
    large.meso.save(folder / "large meso.nc")
    say("3 of 5: outliers of the Hessian along training")
    outliers = _outliers(sizes, progress)
    outliers.macro.save(folder / "outliers macro.nc")
    outliers.micro.save(folder / "outliers micro.nc")
    files.write_dataset(folder / "outliers predicted.nc", outliers.predicted)
    say("4 of 5: training on images of digits")
    verdicts, images = dict(outcome.verdicts), {}
    for name in IMAGES:
        images[name] = pair = _images(name, sizes, progress)
        pair.meso.save(folder / f"images {name} meso.nc")
        pair.micro.save(folder / f"images {name} micro.nc")
        verdicts[on_images(name)] = ov.compare(pair.meso, pair.micro, progress=progress)
    say("5 of 5: planning a training on labelled digits")
    rows = ov.Samples(ov.digits(), ov.digit_labels() % 2 == 0)
    plan = ov.forecast(rows, runs=sizes.plan_runs, progress=progress)
    (folder / "plan").mkdir(exist_ok=True)
    plan.write(folder / "plan")
    found = Demonstration(experiment, folder, outcome.results, verdicts, large, outliers, images, plan)
    found.write()
    return found


def on_images(name: str) -> str:
    """What the verdict on a student that learns on images is called."""
    return f"meso against micro on images, {name}"


def flattest(macro: ov.Trajectory) -> int:
    """The place of the time at which the error changes least, relative to itself, per relative change of time."""
    fall = np.gradient(np.log(macro.data["error"].values[0, 1:]), np.log(macro.time[1:]))
    return 1 + int(np.abs(fall).argmin())


def height(macro: ov.Trajectory) -> float:
    """Error on the plateau, where it is flattest."""
    return float(macro.data["error"][0, flattest(macro)])


def leaving(result: ov.Trajectory, level: float) -> Array:
    """When the error of each run first falls below `level`, (runs,); NaN if it does not."""
    found, time = [], result.time
    for error in result.data["error"].values:
        below = np.flatnonzero(error < level)
        i = int(below[0]) if below.size else 0
        share = (error[i - 1] - level) / (error[i - 1] - error[i]) if i else np.nan
        found.append(time[i - 1] + share * (time[i] - time[i - 1]))
    return np.array(found)


def _large(experiment: Experiment, sizes: Sizes, progress: bool) -> Large:
    problem, plan = experiment.problem, experiment.run
    start = ov.draw(problem, sizes.large, seed=plan.seed, scale=plan.scale)
    times = ov.logtimes(plan.first, 2 * plan.last, plan.count)
    macro = ov.solve(problem, start, times, progress=progress)
    meso = ov.sample(
        problem, start, times, runs=sizes.large_runs, seed=plan.seed, method="diffusion", progress=progress
    )
    return Large(macro, meso, ov.laws.plateau(problem, start.T), float(times[flattest(macro)]))


def _outliers(sizes: Sizes, progress: bool) -> HessianOutliers:
    problem = ov.Problem(
        data=ov.GaussianMixture(means=CLASSES, variance=0.2),
        student=ov.Softmax(CLASSES),
        loss="cross-entropy",
        algorithm=ov.OnlineSGD(1.0, decay=0.01),
    )
    start = ov.draw(problem, sizes.mixture, seed=0)
    steps = np.unique(
        np.geomspace(0.3, 80.0, sizes.observations) * sizes.mixture // 1
    )  # the network is observed at whole steps
    times = steps / sizes.mixture
    macro = ov.solve(problem, start, times, progress=progress)
    outlier, edge, count = np.empty((times.size, CLASSES)), np.empty(times.size), np.empty(times.size, int)
    for i in range(times.size):
        at = macro.data.isel(run=0, time=i)
        point = ov.Start.from_overlaps(problem, Q=at["Q"].values, m=at["m"].values, size=sizes.mixture)
        seen = ov.spectra.predicted_outliers(problem, point, sizes.samples)
        count[i], edge[i], outlier[i] = seen.values.size, seen.high, seen.high
        outlier[i, : count[i]] = seen.values
    watch = ov.spectra.Observer(kinds="hessian", blocks=[0], count=CLASSES + 1, samples=sizes.samples, tolerance=1e-5)
    micro = ov.train(problem, start, times, runs=sizes.mixture_runs, seed=0, observe=watch, progress=progress)
    values = {"count": ("time", count), "outlier": (("time", "rank"), outlier), "edge": ("time", edge)}
    predicted = xr.Dataset(values, {"time": times})
    return HessianOutliers(macro, micro, sizes.samples, predicted)


def _images(activation: str, sizes: Sizes, progress: bool) -> OnImages:
    net = ov.Committee(IMAGES[activation], activation)
    problem = ov.Problem(data=ov.Samples(ov.digits()), teacher=net, student=net, algorithm=ov.OnlineSGD(0.1))
    start = ov.draw(problem, problem.data.eigenvalues.size, seed=0, scale=0.1)
    times = ov.logtimes(0.3, 500.0, 24)
    runs = sizes.image_runs
    meso = ov.sample(problem, start, times, runs=runs, seed=0, progress=progress)
    return OnImages(meso, ov.train(problem, start, times, runs=runs, seed=0, progress=progress))


def _handle(result: ov.Trajectory, text: str, colour: str) -> Line2D:
    """A trajectory in a legend of our own."""
    from matplotlib.lines import Line2D

    return Line2D([], [], color=colour, ls=curves.LINES[result.scale], lw=curves.WIDTHS[result.scale], label=text)


def _mean(values: Array) -> str:
    """Mean and standard error over runs; or how many runs have no value."""
    missing = int(np.isnan(values).sum())
    if missing:
        return "not by the end" + f" in {missing} of {values.size} runs" * (values.size > 1)
    error = f" ± {values.std(ddof=1) / np.sqrt(values.size):.1g}" if values.size > 1 else ""
    return f"{values.mean():.4g}{error}"
