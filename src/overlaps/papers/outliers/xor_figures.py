"""A two-layer network on the XOR mixture: figures 2.4 to 2.6, 9.5 and 9.6.

The paper gives d = 1000, λ = 10 and K = 20, but neither β, here .02, nor the length of training, here time 50, nor the
number of test samples, here 50 d, which for the train samples of figures 9.5 and 9.6 is the full batch. Predictions are
made from the overlaps and readouts of the run itself and take samples to be independent of the weights.

Units that started with a small readout align late: once their set is learned they neither grow nor shrink, and only
their part outside Span(μ, ν) decays, about as exp(−βt). Curves of single units are coloured by their |v_i|.

The caption of figure 9.6 calls it the analogue of 2.4; it shows that of 2.5. Figure 2.6 comes without parameters. Here
K = 5, which leaves one eigenvalue that is no outlier where all four classes are discerned, and λ = 100: at λ = 10 noise
leads nearly every run that has discerned one class to a second.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

import overlaps as ov

from ..panels import TIME, finish, panels, titled
from .model import start, xor
from .panels import ALIGNMENT, DOUBLE, KINDS, NAMES, PREDICTED
from .paper import PAPER
from .xor_claims import sets

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[np.float64]
NOISE = 10.0  # λ, whose inverse is the variance within a class
NOISES = {"noise": (3.0, 50.0)}  # that may be set
SEED = 2  # one of the many that end with all four classes discerned
FEW_UNITS, LAST = 5, 100.0  # of figure 2.6: units, and the time at which hidden classes are counted


class Scale(NamedTuple):
    """Units K, dimension d, samples of a matrix, times to look, and λ."""

    units: int
    size: int
    samples: int
    times: tuple[float, ...]
    noise: float = NOISE

    @classmethod
    def of(cls, quick: bool, noise: float = NOISE) -> Scale:
        """The paper's, or a small one."""
        if quick:
            return cls(8, 200, 2000, (0.0, 5.0, 10.0, 25.0, 50.0), noise)
        return cls(20, 1000, 50_000, (0, 2, 4, 6, 8, 10, 12.5, 15, 20, 25, 30, 35, 40, 45, 50), noise)

    def note(self, kind: str) -> str:
        """What the figure is drawn with, `kind` being that of its samples."""
        text = f"K = {self.units}, d = {self.size}, λ = {self.noise:g}, β = 0.02, δ = 1/d; "
        text += f"{self.samples // self.size} d {kind} samples"
        if self == Scale.of(False, self.noise):
            return text
        return text + "\nquick: K = 8 instead of 20, d = 200 instead of 1000, 10 d samples instead of 50 d"


@cache
def run(quick: bool, source: str, noise: float = NOISE) -> xr.Dataset:
    """The one run of figures 2.4, 2.5, 9.5 and 9.6, seen through test or train samples."""
    scale = Scale.of(quick, noise)
    problem = xor(scale.units, variance=1 / noise)
    tolerance = DOUBLE if quick else 3e-3  # small blocks cost little in double precision
    watch = ov.spectra.Observer(source=source, samples=scale.samples, tolerance=tolerance)
    begin = start(problem, scale.size, SEED)
    return ov.train(problem, begin, scale.times, runs=1, seed=SEED, observe=watch, progress=False).data.isel(run=0)


def points(problem: ov.Problem, data: xr.Dataset, size: int) -> list[ov.Start]:
    """Overlaps and readouts of a run at each of its times."""
    states = zip(*(data[name].values for name in ("Q", "m", "v")), strict=True)
    return [ov.Start.from_overlaps(problem, Q=Q, m=m, size=size, student_readout=v) for Q, m, v in states]


def readout_pairs(problem: ov.Problem, data: xr.Dataset, size: int, kind: str) -> tuple[Array, Array]:
    """Eigenvalues of the population's block vv along a run, falling, (times, K), and ρ(v, E_4), (times,)."""
    values, rho = [], []
    for point in points(problem, data, size):
        theta, vectors = np.linalg.eigh(ov.spectra.readout_block(problem, point, kind))  # pyright: ignore[reportArgumentType]
        values.append(theta[::-1])
        rho.append(np.linalg.norm(vectors[:, -4:].T @ point.v) / np.linalg.norm(point.v))
    return np.array(values), np.array(rho)


@cache
def theory(quick: bool, kind: str, noise: float = NOISE) -> tuple[Array, Array, Array, int]:
    """Eigenvalues of vv and ρ of v as in `readout_pairs`, ρ(W_i, E_2) of the unit i of largest readout, and i."""
    scale, data = Scale.of(quick, noise), run(quick, "test", noise)
    problem, unit = xor(scale.units, variance=1 / noise), int(np.abs(data["v"].values[-1]).argmax())
    rho = [
        ov.spectra.predicted_outliers(problem, point, scale.samples, (unit, unit), kind).alignment_of_student(unit, 2)  # pyright: ignore[reportArgumentType]
        for point in points(problem, data, scale.size)
    ]
    return *readout_pairs(problem, data, scale.size, kind), np.array(rho), unit


def alignment_figure(quick: bool, source: str, noise: float) -> tuple[Figure, xr.Dataset]:
    """Alignments of both layers with the outlier eigenspaces of their blocks."""
    import matplotlib.pyplot as plt
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    scale, data = Scale.of(quick, noise), run(quick, source, noise)
    times, final = np.array(scale.times), np.abs(data["v"].values[-1])
    colors = ScalarMappable(Normalize(0, final.max()), plt.colormaps["viridis_r"])
    curves: dict[str, Any] = {"final_readout": ("unit", data["v"].values[-1])}
    figure, axes = panels(2, 2)
    sampled = "these" if source == "test" else "as many test"
    for kind, first, second in zip(KINDS, axes[:2], axes[2:], strict=True):
        rho, readout = data[f"{kind}_alignment"].values, data[f"{kind}_readout_alignment"].values
        _, predicted_readout, predicted, unit = theory(quick, kind, noise)
        for i in range(scale.units):
            first.plot(times, rho[:, i], color=colors.to_rgba(final[i]), lw=0.9)
        first.plot(times, predicted, **PREDICTED, label=f"prediction for largest $|v_i|$, {sampled} samples")
        finish(first, f"$W_i$ with $E_2$ of ${NAMES[kind]}_{{W_i W_i}}$", TIME, ALIGNMENT, loc="upper left")
        second.plot(times, readout, color="C3", label=f"{source} samples")
        second.plot(times, predicted_readout, **PREDICTED, label="population")
        finish(second, f"$v$ with $E_4$ of ${NAMES[kind]}_{{vv}}$", TIME, ALIGNMENT, loc="lower right")
        first.set_ylim(0, 1.15)
        second.set_ylim(0, 1.02)
        curves |= {
            f"{kind}_alignment": (("time", "unit"), rho),
            f"{kind}_predicted": ("time", predicted, {"unit": unit + 1}),
            f"{kind}_readout_alignment": ("time", readout),
            f"{kind}_readout_population": ("time", predicted_readout),
        }
    figure.colorbar(colors, ax=axes[1], label=f"$|v_i|$ at time {times[-1]:g}")
    titled(figure, scale.note(source))
    axis = {"time": times, "unit": np.arange(1, scale.units + 1)}
    return figure, xr.Dataset(curves, axis, {"parameters": scale.note(source)})


def draw_values(ax: Axes, times: Array, values: Array, exact: Array, outliers: int) -> None:
    """Eigenvalues of a block vv, the first ones in colour, and those of the population."""
    for i in range(values.shape[1] - 1, -1, -1):
        label = {0: f"ranks 1 to {outliers}" if outliers > 1 else "rank 1", outliers: "others"}.get(i)
        ax.plot(times, values[:, i], color="C3" if i < outliers else "C0", lw=1.2 if i < outliers else 0.7, label=label)
    for i in range(outliers):
        ax.plot(times, exact[:, i], **PREDICTED, label="population" if i == 0 else None)
    ax.set_yscale("log")
    ax.set_ylim(max(0.5 * values[:, -1].min(), 2e-5), 2 * values.max())


def readout_figure(quick: bool, source: str, noise: float) -> tuple[Figure, xr.Dataset]:
    """All eigenvalues of the blocks vv."""
    scale, data = Scale.of(quick, noise), run(quick, source, noise)
    times, curves = np.array(scale.times), dict[str, Any]()
    figure, axes = panels(1, 2)
    for kind, ax in zip(KINDS, axes, strict=True):
        values, exact = data[f"{kind}_readout_values"].values, theory(quick, kind, noise)[0]
        draw_values(ax, times, values, exact, 4)
        finish(ax, f"block vv of ${NAMES[kind]}$", TIME, "eigenvalue", loc="best")
        curves |= {f"{kind}_values": (("time", "rank"), values), f"{kind}_population": (("time", "rank"), exact)}
    titled(figure, scale.note(source))
    axis = {"time": times, "rank": np.arange(1, scale.units + 1)}
    return figure, xr.Dataset(curves, axis, {"parameters": scale.note(source)})


@PAPER.figure(
    "fig2.4",
    "XOR: alignment of both layers with the outlier eigenspaces of their blocks",
    claims=("theorem-2.6",),
    limits=NOISES,
)
def fig2_4(quick: bool, *, noise: float = NOISE) -> tuple[Figure, xr.Dataset]:
    """d = 1000, λ = 10, K = 20; above: first layer, below: second; left: Hessian, right: G-matrix."""
    return alignment_figure(quick, "test", noise)


@PAPER.figure(
    "fig9.5", "figure 2.4 with the samples of training", claims=("train-vs-test", "theorem-2.6"), limits=NOISES
)
def fig9_5(quick: bool, *, noise: float = NOISE) -> tuple[Figure, xr.Dataset]:
    """Parameters of figure 2.4."""
    return alignment_figure(quick, "train", noise)


@PAPER.figure(
    "fig2.5",
    "XOR: one outlier of the readout's block becomes four",
    claims=("initial-readout-outlier", "rank-deficiency"),
    limits=NOISES,
)
def fig2_5(quick: bool, *, noise: float = NOISE) -> tuple[Figure, xr.Dataset]:
    """Parameters of figure 2.4; left: Hessian, right: G-matrix."""
    return readout_figure(quick, "test", noise)


@PAPER.figure(
    "fig9.6", "figure 2.5 with the samples of training", claims=("train-vs-test", "rank-deficiency"), limits=NOISES
)
def fig9_6(quick: bool, *, noise: float = NOISE) -> tuple[Figure, xr.Dataset]:
    """Parameters of figure 2.4."""
    return readout_figure(quick, "train", noise)


def start_in(problem: ov.Problem, size: int, seed: int, classes: int) -> ov.Start:
    """A start with its units in as many sets, in turn those of μ, ν, −μ and −ν.

    Signs of v_i and of the row w_i are even coins, independent of all else: they are chosen instead of drawn.
    """
    begin = start(problem, size, seed)
    assert begin.student is not None
    turn = np.arange(begin.v.size) % classes
    v = np.abs(begin.v) * np.where(turn % 2 == 0, 1, -1)
    wanted, overlap = np.where(turn < 2, 1, -1), np.where(v > 0, begin.m[0, :, 0], begin.m[0, :, 2])
    W = begin.student * (wanted * np.sign(overlap))[:, None]
    return ov.Start.from_weights(problem, W, student_readout=v)


def find_start(problem: ov.Problem, size: int, classes: int) -> tuple[int, ov.Start]:
    """The first seed and start in as many sets whose run has discerned as many classes at the end."""
    seed = 0
    while True:
        begin = start_in(problem, size, seed, classes)
        end = ov.train(problem, begin, [LAST], runs=1, seed=seed, progress=False).data.isel(run=0, time=-1)
        if sets(end["v"].values, end["m"].values) == classes:
            return seed, begin
        seed += 1


@PAPER.figure(
    "fig2.6",
    "XOR: as many outliers of the readout's block as hidden classes are discerned, 1 to 4",
    claims=("rank-deficiency", "stopping-rule"),
)
def fig2_6(quick: bool) -> tuple[Figure, xr.Dataset]:
    """G-matrix, K = 5, d = 1000, λ = 100: starts that end with 1, 2, 3 and 4 classes discerned."""
    size, samples = (200, 2000) if quick else (1000, 10_000)
    problem, times = xor(FEW_UNITS, variance=0.01), np.linspace(0, LAST, 11 if quick else 41)
    watch = ov.spectra.Observer(kinds="gradient", blocks=[0], samples=samples, tolerance=DOUBLE)
    values, exact, seeds = np.empty((4, times.size, FEW_UNITS)), np.empty((4, times.size, FEW_UNITS)), []
    figure, axes = panels(2, 2)
    for j, ax in enumerate(axes):
        seed, begin = find_start(problem, size, j + 1)
        data = ov.train(problem, begin, times, runs=1, seed=seed, observe=watch, progress=False).data.isel(run=0)
        values[j] = data["gradient_readout_values"].values
        exact[j] = readout_pairs(problem, data, size, "gradient")[0]
        seeds.append(seed)
        draw_values(ax, times, values[j], exact[j], j + 1)
        finish(ax, f"{j + 1} of 4 hidden classes discerned", TIME, "eigenvalue", loc="best")
    note = f"block vv of the G-matrix; K = {FEW_UNITS}, d = {size}, λ = 100, β = 0.02, δ = 1/d; 10 d test samples"
    note += "\nquick: d = 200 instead of 1000" * quick
    titled(figure, note)
    curves = {
        "values": (("classes", "time", "rank"), values),
        "population": (("classes", "time", "rank"), exact),
        "seed": ("classes", np.array(seeds)),
    }
    axis = {"classes": np.arange(1, 5), "time": times, "rank": np.arange(1, FEW_UNITS + 1)}
    return figure, xr.Dataset(curves, axis, {"parameters": note})
