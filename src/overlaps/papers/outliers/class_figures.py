"""Softmax regression on ten classes: figures 2.1 to 2.3 and 9.1 to 9.4.

Drawn with test samples (fresh ones, drawn once) and with train samples (the first that the run learns from). How many
test samples the paper takes is not said; here as many as the run trains on, 50 d, which is the full batch of figures
9.3 and 9.4. Predictions are made from overlaps that solve the ODE from the overlaps of the start: no run enters, and
samples are taken to be independent of the weights, which those of training are not.

At time 50 the k outliers of a block of the Hessian stand out of its bulk from 16 d samples on, those of the G-matrix
from 3600 d on (`ov.spectra.visibility`): with 50 d its E_k holds the first mean and nine vectors of the bulk, and x^c,
most of which lies along μ_c, aligns with it all the same. Train samples show more: .95 and .89 for .93 and .86.

Figure 2.2 prints 50 d = 25,000 steps, which is d = 500; its d is 1000 (50,000 steps).
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

import overlaps as ov

from ..panels import TIME, finish, panels, titled
from .model import classes, coordinates, start
from .panels import ALIGNMENT, DOUBLE, KINDS, NAMES, PREDICTED
from .paper import PAPER

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[np.float64]
SEED = 1
NOISE = 10.0  # λ, whose inverse is the variance within a class
NOISES = {"noise": (3.0, 50.0)}  # that may be set


class Scale(NamedTuple):
    """Classes k, dimension d, samples of a matrix, times to look, and λ."""

    classes: int
    size: int
    samples: int
    times: tuple[float, ...]
    noise: float = NOISE

    @classmethod
    def of(cls, quick: bool, noise: float = NOISE) -> Scale:
        """The paper's, or a small one."""
        if quick:
            return cls(6, 200, 4000, (0.0, 2.0, 5.0, 10.0, 25.0, 50.0), noise)
        return cls(10, 1000, 50_000, (0, 1, 2, 3, 4, 6, 8, 10, 12.5, 15, 20, 25, 30, 35, 40, 45, 50), noise)

    def note(self, kind: str | None = None) -> str:
        """What the figure is drawn with, `kind` being that of its samples if it has any."""
        text = f"k = {self.classes}, d = {self.size}, λ = {self.noise:g}, β = 0.01, δ = 1/d"
        text += f"; {self.samples // self.size} d {kind} samples" if kind else ""
        if self == Scale.of(False, self.noise):
            return text
        return (
            text
            + f"\nquick: k = 6 instead of 10, d = 200 instead of 1000{', 20 d samples instead of 50 d' * bool(kind)}"
        )


@cache
def problem_of(quick: bool, noise: float = NOISE) -> tuple[ov.Problem, ov.Start]:
    """Classes with means e_50i, and the start of the run."""
    k, size, *_ = Scale.of(quick, noise)
    problem = classes(k, variance=1 / noise, size=size)
    return problem, start(problem, size, SEED)


def observed(quick: bool, noise: float, **options: Any) -> xr.Dataset:
    """The one run of all these figures, with an observer of these options."""
    problem, begin = problem_of(quick, noise)
    times = Scale.of(quick, noise).times
    watch = ov.spectra.Observer(**options)
    return ov.train(problem, begin, times, runs=1, seed=SEED, observe=watch, progress=False).data.isel(run=0)


@cache
def aligned(quick: bool, source: str, noise: float = NOISE) -> xr.Dataset:
    """Alignments of all classes with E_k of their blocks."""
    tolerance = DOUBLE if quick else 3e-3  # small blocks cost little in double precision
    return observed(quick, noise, source=source, samples=Scale.of(quick, noise).samples, tolerance=tolerance)


@cache
def leading_values(quick: bool, source: str, noise: float = NOISE) -> xr.Dataset:
    """The 2k largest eigenvalues of the first class's block of the Hessian: k outliers and k of the bulk."""
    scale = Scale.of(quick, noise)
    # in double precision: half of these pairs belong to the bulk, where they are close to each other
    options = {"kinds": ["hessian"], "blocks": [0], "count": 2 * scale.classes, "tolerance": DOUBLE}
    return observed(quick, noise, source=source, samples=scale.samples, **options)


@cache
def weights(quick: bool, noise: float = NOISE) -> Array:
    """Classifiers x^a along the run, (times, k, d)."""
    # one sample and one pair: only the weights are wanted
    data = observed(quick, noise, kinds=["hessian"], blocks=[0], count=1, samples=1, keep_weights=True)
    return data["weights"].values / np.sqrt(Scale.of(quick, noise).size)


@cache
def macro(quick: bool, noise: float = NOISE) -> xr.Dataset:
    """The ODE from the overlaps of the start."""
    problem, begin = problem_of(quick, noise)
    return ov.solve(problem, begin, Scale.of(quick, noise).times).data.isel(run=0)


@cache
def predicted_at(quick: bool, kind: str, time: int, noise: float = NOISE) -> ov.spectra.PredictedSpectrum:
    """What block (1, 1) of as many test samples is predicted to show at that time, by its number."""
    problem, _ = problem_of(quick, noise)
    scale, state = Scale.of(quick, noise), macro(quick, noise).isel(time=time)
    point = ov.Start.from_overlaps(problem, Q=state["Q"].values, m=state["m"].values, size=scale.size)
    return ov.spectra.predicted_outliers(problem, point, scale.samples, kind=kind)  # pyright: ignore[reportArgumentType]


def predicted(quick: bool, kind: str, noise: float = NOISE) -> list[ov.spectra.PredictedSpectrum]:
    """The same at all times."""
    return [predicted_at(quick, kind, i, noise) for i in range(len(Scale.of(quick, noise).times))]


def in_span(data: xr.Dataset) -> Array:
    """ρ(x^c, Span(μ)) for orthonormal means, (times, k)."""
    Q = np.diagonal(data["Q"].values, axis1=1, axis2=2)
    return np.sqrt((data["m"].values ** 2).sum(axis=2) / Q)


def alignment_figure(quick: bool, source: str, order: tuple[str, str], noise: float) -> tuple[Figure, xr.Dataset]:
    """Alignment of every class with the E_k of its blocks."""
    scale, data = Scale.of(quick, noise), aligned(quick, source, noise)
    k, times, span = scale.classes, np.array(scale.times), in_span(macro(quick, noise))[:, 0]
    curves: dict[str, Any] = {"in_span": ("time", span)}
    figure, axes = panels(1, 2)
    for kind, ax in zip(order, axes, strict=True):
        rho = data[f"{kind}_alignment"].values
        theory = np.array([p.alignment_of_student(0, k) for p in predicted(quick, kind, noise)])
        for c in range(k - 1, -1, -1):
            label = {0: "c = 1", 1: f"c = 2 to {k}"}.get(c)
            ax.plot(times, rho[:, c], color="C3" if c == 0 else "C0", lw=1.5 if c == 0 else 0.8, label=label)
        sampled = "these" if source == "test" else "as many test"
        ax.plot(times, theory, **PREDICTED, label=f"prediction for c = 1 and {sampled} samples")
        ax.plot(times, span, color="0.5", ls=":", label=r"$\rho(x^1, \mathrm{Span}(\mu))$, ODE")
        ax.set_ylim(0, 1.02)
        finish(ax, f"$x^c$ with $E_k$ of ${NAMES[kind]}_{{cc}}$", TIME, ALIGNMENT, loc="lower right")
        curves |= {
            f"{kind}_alignment": (("time", "class"), rho),
            f"{kind}_predicted": ("time", theory),
            f"{kind}_residual": (("time", "class"), data[f"{kind}_residual"].values),
        }
    titled(figure, scale.note(source))
    axis = {"time": times, "class": np.arange(1, k + 1)}
    return figure, xr.Dataset(curves, axis, {"parameters": scale.note(source)})


def transition_figure(quick: bool, source: str, noise: float) -> tuple[Figure, xr.Dataset]:
    """Eigenvalues of block (1, 1) of the Hessian, and x^1·μ_j."""
    scale = Scale.of(quick, noise)
    k, times, data, theory = (
        scale.classes,
        np.array(scale.times),
        leading_values(quick, source, noise),
        predicted(quick, KINDS[0], noise),
    )
    values, overlaps, limit = (
        data["hessian_values"].values[:, 0],
        data["m"].values[:, 0],
        macro(quick, noise)["m"].values[:, 0],
    )
    edge = np.array([p.high for p in theory])
    # what does not stand out sits at the edge
    outliers = np.array([np.append(p.values, np.full(k, p.high))[:k] for p in theory])

    figure, (left, right) = panels(1, 2)
    left.fill_between(times, 0, edge, color="0.9", lw=0, label="predicted bulk")
    for i in range(2 * k - 1, -1, -1):
        label = {0: "largest", 1: f"ranks 2 to {k}", k: f"ranks {k + 1} to {2 * k}"}.get(i)
        left.plot(times, values[:, i], color="C3" if i == 0 else "C0" if i < k else "0.4", lw=0.9, label=label)
    for i in range(k):
        left.plot(times, outliers[:, i], **PREDICTED, label="predicted outliers" if i == 0 else None)
    left.set_ylim(0.8 * values.min(), 1.3 * values.max())
    title = f"{2 * k} largest eigenvalues of ${NAMES['hessian']}_{{11}}$"
    finish(left, title, TIME, "eigenvalue", loc="upper left", ncols=2)
    for j in range(k - 1, -1, -1):
        label = {0: "j = 1", 1: f"j = 2 to {k}"}.get(j)
        right.plot(times, overlaps[:, j], color="C3" if j == 0 else "C0", lw=0.9, label=label)
        right.plot(times, limit[:, j], **PREDICTED, label="ODE" if j == 0 else None)
    finish(right, "$x^1$ and the means", TIME, r"inner product $x^1 \cdot \mu_j$", loc="upper left")
    titled(figure, scale.note(source))
    curves = {
        "eigenvalues": (("time", "rank"), values),
        "predicted_outliers": (("time", "outlier"), outliers),
        "predicted_edge": ("time", edge),
        "overlaps": (("time", "mean"), overlaps),
        "ode": (("time", "mean"), limit),
    }
    axes = {"time": times} | {name: np.arange(1, n + 1) for name, n in (("rank", 2 * k), ("outlier", k), ("mean", k))}
    return figure, xr.Dataset(curves, axes, {"parameters": scale.note(source)})


@PAPER.figure(
    "fig2.1",
    "alignment of every class with the outlier eigenspaces of its Hessian and G-matrix blocks",
    claims=("figure-2.1", "theorem-2.3"),
    limits=NOISES,
)
def fig2_1(quick: bool, *, noise: float = NOISE) -> tuple[Figure, xr.Dataset]:
    """k = 10, d = 1000, λ = 10, β = .01, δ = 1/d; left: Hessian, right: G-matrix."""
    return alignment_figure(quick, "test", ("hessian", "gradient"), noise)


@PAPER.figure(
    "fig9.3", "figure 2.1 with the samples of training", claims=("train-vs-test", "theorem-2.3"), limits=NOISES
)
def fig9_3(quick: bool, *, noise: float = NOISE) -> tuple[Figure, xr.Dataset]:
    """Left: G-matrix, right: Hessian, as in the paper."""
    return alignment_figure(quick, "train", ("gradient", "hessian"), noise)


@PAPER.figure(
    "fig2.3",
    "the top eigenvalue of the first class separates, and so does its inner product with its mean",
    claims=("theorem-2.5", "eq-2.1"),
    limits=NOISES,
)
def fig2_3(quick: bool, *, noise: float = NOISE) -> tuple[Figure, xr.Dataset]:
    """Parameters of figure 2.1."""
    return transition_figure(quick, "test", noise)


@PAPER.figure(
    "fig9.4", "figure 2.3 with the samples of training", claims=("train-vs-test", "theorem-2.5"), limits=NOISES
)
def fig9_4(quick: bool, *, noise: float = NOISE) -> tuple[Figure, xr.Dataset]:
    """Parameters of figure 2.1."""
    return transition_figure(quick, "train", noise)


def fresh_samples(quick: bool, noise: float = NOISE) -> ov.spectra.Batch:
    """Fresh test samples."""
    problem, begin = problem_of(quick, noise)
    return ov.spectra.Batch.draw(problem, begin, Scale.of(quick, noise).samples, seed=1000)


def fresh_block(quick: bool, batch: ov.spectra.Batch, time: int, kind: str, noise: float) -> Array:
    """Block (1, 1) of these samples at the weights of that time, by its number, (d, d)."""
    problem, _ = problem_of(quick, noise)
    point = ov.Start.from_weights(problem, weights(quick, noise)[time] * np.sqrt(Scale.of(quick, noise).size))
    make = ov.spectra.hessian if kind == "hessian" else ov.spectra.gradient_matrix
    return make(problem, point, batch).block(0).dense()


def mark_means(ax: Axes, scale: Scale) -> None:
    """Grey lines at the coordinates of the means, and the limits of the axis."""
    for i, at in enumerate(coordinates(scale.classes, scale.size) + 1):
        ax.axvline(at, color="0.85", lw=1, zorder=0, label="coordinates of the means" if i == 0 else None)
    ax.set_xlim(0, scale.size + 1)


@PAPER.figure(
    "fig2.2",
    "entries of the first classifier and of the leading eigenvectors after training",
    claims=("theorem-2.4", "theorem-2.5"),
    limits=NOISES,
)
def fig2_2(quick: bool, *, noise: float = NOISE) -> tuple[Figure, xr.Dataset]:
    """x^1 and the k leading eigenvectors of ∇²R̂_11 and Ĝ_11 at time 50, means e_50i."""
    scale = Scale.of(quick, noise)
    k, axis, x = scale.classes, np.arange(1, scale.size + 1), weights(quick, noise)[-1, 0]
    curves: dict[str, Any] = {"classifier": ("coordinate", x)}
    batch = fresh_samples(quick, noise)
    figure, axes = panels(1, 3)
    axes[0].plot(axis, x, color="C3", lw=0.8, label="$x^1$")
    mark_means(axes[0], scale)
    finish(axes[0], f"$x^1$ after {50 * scale.size} steps", "coordinate", "entry", loc="upper right")
    for kind, ax in zip(KINDS, axes[1:], strict=True):
        vectors = np.linalg.eigh(fresh_block(quick, batch, -1, kind, noise)).eigenvectors[:, : -k - 1 : -1]
        largest = np.abs(vectors).argmax(axis=0)
        vectors = vectors * np.sign(vectors[largest, np.arange(k)])
        for i in range(k - 1, -1, -1):
            label = {0: "first", 1: f"ranks 2 to {k}"}.get(i)
            ax.plot(axis, vectors[:, i], color="C3" if i == 0 else "C0", lw=0.8 if i == 0 else 0.4, label=label)
        mark_means(ax, scale)
        standing = min(predicted_at(quick, kind, len(scale.times) - 1, noise).standing, k)
        title = f"{k} leading eigenvectors of ${NAMES[kind]}_{{11}}$; predicted to stand out: {standing}"
        finish(ax, title, "coordinate", "entry (sign: largest positive)", loc="upper right")
        curves[f"{kind}_vectors"] = (("coordinate", "rank"), vectors, {"predicted_outliers": standing})
    titled(figure, scale.note("test"))
    axis = {"coordinate": axis, "rank": np.arange(1, k + 1)}
    return figure, xr.Dataset(curves, axis, {"parameters": scale.note("test")})


@PAPER.figure(
    "fig9.1", "entries of the first two classifiers before and after training", claims=("theorem-2.4",), limits=NOISES
)
def fig9_1(quick: bool, *, noise: float = NOISE) -> tuple[Figure, xr.Dataset]:
    """x^1 and x^2 at time 0, above, and 50, below."""
    scale = Scale.of(quick, noise)
    axis, x = np.arange(1, scale.size + 1), weights(quick, noise)[[0, -1], :2]
    figure, axes = panels(2, 2)
    for row, time in enumerate((scale.times[0], scale.times[-1])):
        for a in range(2):
            ax = axes[2 * row + a]
            ax.plot(axis, x[row, a], color=f"C{a}", lw=0.8, label=f"$x^{a + 1}$")
            mark_means(ax, scale)
            ax.set_ylim(top=1.4 * x[row, a].max())  # room for the legend
            finish(ax, f"$x^{a + 1}$ at time {time:g}", "coordinate", "entry", loc="upper right")
    titled(figure, scale.note())
    curves = {"classifiers": (("time", "class", "coordinate"), x)}
    names = {"time": [scale.times[0], scale.times[-1]], "class": [1, 2], "coordinate": axis}
    return figure, xr.Dataset(curves, names, {"parameters": scale.note()})


@PAPER.figure(
    "fig9.2",
    "spectrum of the first class's block of the Hessian during training",
    claims=("theorem-2.4", "theorem-2.5"),
    limits=NOISES,
)
def fig9_2(quick: bool, *, noise: float = NOISE) -> tuple[Figure, xr.Dataset]:
    """All eigenvalues at times 0, 2, 10 and 50."""
    scale, shown = Scale.of(quick, noise), (0.0, 2.0, 10.0, 50.0)
    at = [scale.times.index(time) for time in shown]
    batch = fresh_samples(quick, noise)
    values = np.array([np.linalg.eigvalsh(fresh_block(quick, batch, i, "hessian", noise))[::-1] for i in at])
    theory = [predicted_at(quick, "hessian", i, noise) for i in at]
    bins = np.linspace(0, 1.05 * values.max(), 90)
    figure, axes = panels(2, 2)
    for time, ax, levels, p in zip(shown, axes, values, theory, strict=True):
        ax.hist(levels, bins, color="C0", label=f"{scale.size} eigenvalues")
        ax.axvspan(p.low, p.high, color="0.88", zorder=0, label="predicted bulk")
        ax.plot(p.values, np.full(p.values.size, 0.6), "kv", ms=4, label=f"{p.values.size} predicted outliers")
        ax.set_yscale("log")
        ax.set_ylim(0.4, 0.3 * scale.size)
        label = f"eigenvalue of ${NAMES['hessian']}_{{11}}$"
        finish(ax, f"time {time:g}", label, "number of eigenvalues", loc="upper right")
    titled(figure, scale.note("test"))
    curves = {
        "eigenvalues": (("time", "rank"), values),
        "predicted_low": ("time", np.array([p.low for p in theory])),
        "predicted_high": ("time", np.array([p.high for p in theory])),
        "predicted_count": ("time", np.array([p.values.size for p in theory])),
    }
    axis = {"time": list(shown), "rank": np.arange(1, scale.size + 1)}
    return figure, xr.Dataset(curves, axis, {"parameters": scale.note("test")})
