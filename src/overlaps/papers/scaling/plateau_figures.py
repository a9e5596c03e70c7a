"""Figures 1, 4, 5, 17, 18, 19: the symmetric plateau of an erf committee, K = M.

The equations are solved to first order in the rate where the paper does so. Where N is not a multiple of L, some levels
hold one dimension more than others. β is not given for figures 4 and 18; their heights
are those of β = 1/4, as in figures 5, 17 and 19.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

import overlaps as ov

from ..panels import ERROR, TIME, finish, headroom, panels, titled
from .model import committee
from .paper import PAPER

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[np.float64]


PLATEAUS = {"levels": (4, 20), "units": (3, 5), "exponent": (0.1, 0.5)}  # of figures 4 and 18, that may be set
INSETS = "insets: the plateau; dashed: its heights, dotted: with averaged teacher rows"


class RandomPlateau(NamedTuple):
    """A run to a plateau and off it, the law for its teacher, and the law for a teacher with averaged rows."""

    result: ov.Trajectory
    law: ov.laws.Plateau
    averaged: ov.laws.Plateau


def random_plateau(levels: int, units: int, times: Array, exponent: float = 0.25) -> RandomPlateau:
    """The runs of figures 4 and 17-19: N = 7000, σ = .01, β = .25, η = .1, one random start, first order."""
    problem = committee(levels, exponent, 0.1, students=units, teachers=units, first_order=True)
    start = ov.draw(problem, 7000, scale=0.01)
    result = ov.solve(problem, start, times, levels=True)
    laws = (ov.laws.plateau(problem, T) for T in (start.T, ov.laws.equal_rows(start.T)))
    return RandomPlateau(result, *laws)


def moment(result: ov.Trajectory, name: str, order: int) -> Array:
    """X^(l) = Σ_b ω_b^l X_b, (time, ..., ...)."""
    omega = result.data["eigenvalue"].values
    return np.einsum("b,tbij->tij", omega**order, result.data[f"{name}_levels"].values[0])


def predicted_end(result: ov.Trajectory, law: ov.laws.Plateau, begin: float) -> float:
    """Time at which the plateau ends, from what has grown of the specialisation at time `begin`."""
    i = int(np.searchsorted(result.time, begin))
    grown = float(law.specialisation(result.data["R"].values[0, i]))
    return float(result.time[i]) + law.length(grown)


@PAPER.figure(
    "fig1",
    "erf, K = M = 2: with more eigenvalues the plateau shortens and the late decay becomes a power law; all from one "
    "start for each L",
    claims=("plateau-shortens", "erf-transition"),
    limits={"exponent": (0.1, 2.0), "rate": (0.02, 1.0)},
)
def figure1(quick: bool, *, exponent: float = 1.0, rate: float = 0.1) -> tuple[Figure, xr.Dataset]:
    """N = 1024, η = .1, β = 1, σ = .01; the equation of motion, and two runs of SGD each unless quick."""

    figure, (ax,) = panels(1, 1)
    numbers, times = [1, 4, 16, 64], np.linspace(0, 350 / rate, 141 if quick else 701)
    curves, runs = [], []
    for i, levels in enumerate(numbers):
        problem = committee(levels, exponent, rate, students=2, teachers=2)
        start = ov.draw(problem, 1024, seed=1, scale=0.01)
        curves.append(ov.solve(problem, start, times).data["error"].values[0])
        ax.plot(times, curves[-1], color=f"C{i}", label=f"L = {levels}, equation of motion")
        if not quick:
            runs.append(ov.train(problem, start, times, runs=2, seed=1, progress=False).data["error"].values)
            for run in runs[-1]:  # dotted on their curve, from which they hardly differ
                ax.plot(times, run, color="k", ls=":", lw=1.1, zorder=3)
    if runs:
        ax.plot([], [], color="k", ls=":", lw=1.1, label="runs of SGD, two for each L")
    ax.set_yscale("log")
    finish(ax, "erf students", TIME, ERROR)
    words = f"K = M = 2, η = {rate:g}, β = {exponent:g}, σ = 0.01, N = 1024"
    titled(figure, words + "\nquick: no runs of SGD instead of two each" * quick)
    data = xr.Dataset({"error": (("L", "time"), curves)}, {"L": numbers, "time": times}, {"parameters": words})
    if runs:
        data["error_sgd"] = ("L", "run", "time"), np.array(runs)
    return figure, data


@PAPER.figure(
    "fig4",
    "R, Q and error on the plateau of four erf students, with the heights and the length predicted",
    claims=("plateau-heights", "escape-time"),
    limits=PLATEAUS,
)
def figure4(quick: bool, *, levels: int = 10, units: int = 4, exponent: float = 0.25) -> tuple[Figure, xr.Dataset]:
    """L = 10, M = K = 4; insets: the plateau with the heights of unequal and of averaged teacher rows."""

    result, law, rows = random_plateau(levels, units, np.linspace(0, 7000, 281 if quick else 1401), exponent)
    t, error = result.time, result.data["error"].values[0]
    figure, axes = panels(1, 3)
    for ax, name, heights, mean in ((axes[0], "R", law.R, rows.R[0]), (axes[1], "Q", law.Q, rows.Q)):
        _draw_plateau(ax, t, result.data[name].values[0], np.atleast_1d(heights), float(mean), (300, 1000))
        ax.set_ylabel(f"{name}⁽¹⁾")
        ax.set_title(f"overlaps {name} of the first order", fontsize="medium")
    end = predicted_end(result, law, 300.0)
    axes[2].plot(t, error, label="equation of motion")
    axes[2].axhline(law.error, color="k", ls="--", lw=0.8, label="plateau, predicted")
    axes[2].axvline(300.0, color="0.4", ls="-.", lw=1, label="α₀ = 300, from which the end is predicted")
    axes[2].axvline(end, color="C1", ls=":", lw=1.8, label="end of the plateau, predicted")
    axes[2].set(xlim=(100, 4500), ylim=(0.97 * law.error, 1.005 * law.error))
    finish(axes[2], "error", TIME, ERROR)
    words = f"M = K = {units}, L = {levels}, N = 7000, η = 0.1, β = {exponent:g}, one random start"
    titled(figure, f"{words}, first order in the rate\n{INSETS}")
    data = result.data[["R", "Q", "error"]].isel(run=0)
    data["plateau_R"] = "teacher", law.R
    return figure, data.assign_attrs(
        plateau_Q=law.Q, plateau_error=law.error, averaged_R=float(rows.R[0]), escape_time=law.escape_time, end=end
    )


def _draw_plateau(ax: Axes, t: Array, values: Array, heights: Array, mean: float, window: tuple[float, float]) -> None:
    """All entries against time; inset: the plateau between two times, predicted heights dashed, their mean dotted."""
    K, symmetric = values.shape[1], len(heights) == 1
    # R stands on a height for each teacher, Q on one for all
    colour = [[f"C{int(i != j) if symmetric else j}" for j in range(K)] for i in range(K)]
    for i, j in np.ndindex(K, K):
        ax.plot(t, values[:, i, j], lw=0.9, color=colour[i][j])
    words = (
        ("of a student with itself", "of two students") if symmetric else [f"with teacher {j + 1}" for j in range(K)]
    )
    for j, text in enumerate(words):
        ax.plot([], [], color=f"C{j}", label=text)
    ax.plot(
        [], [], color="k", ls="--", lw=0.8, label="height of the plateau" if symmetric else "heights of the plateau"
    )
    ax.plot([], [], color="0.5", ls=":", lw=1.2, label="with averaged teacher rows")
    headroom(ax, 0.6)
    ax.legend(fontsize="x-small", loc="upper right")
    ax.set_xlabel(TIME)
    inset = ax.inset_axes((0.12, 0.56, 0.34, 0.38))  # where no curve goes
    shown = (t >= window[0]) & (t <= window[1])
    for i, j in np.ndindex(K, K):
        inset.plot(t[shown], values[shown, i, j], lw=0.9, color=colour[i][j])
    for height in heights:
        inset.axhline(height, color="k", ls="--", lw=0.8)
    inset.axhline(mean, color="0.5", ls=":", lw=1.2)
    inset.tick_params(labelsize=7)


@PAPER.figure(
    "fig18",
    "higher-order overlaps on the plateau, with the corrected heights of eq. (98)",
    claims=("eq98",),
    limits=PLATEAUS,
)
def figure18(quick: bool, *, levels: int = 10, units: int = 4, exponent: float = 0.25) -> tuple[Figure, xr.Dataset]:
    """Orders 4 and 6 of the run of figure 4; dashed: exact heights, dotted: (T⁽ˡ⁾+D⁽ˡ⁾)/(T⁽¹⁾+D⁽¹⁾) times the first."""

    result, law, rows = random_plateau(levels, units, np.linspace(0, 7000, 281 if quick else 1401), exponent)
    omega, t = result.data["eigenvalue"].values, result.time
    figure, axes = panels(2, 2)
    data = xr.Dataset(coords={"time": t})
    for i, order in enumerate((4, 6)):
        for j, name in enumerate(("R", "Q")):
            values = moment(result, name, order)
            each, averaged = (getattr(x, f"{name}_levels") for x in (law, rows))
            heights, mean = omega**order @ each, float(np.mean(omega**order @ averaged))
            _draw_plateau(axes[2 * i + j], t, values, np.atleast_1d(heights), mean, (250, 1000))
            axes[2 * i + j].set_ylabel(f"{name}⁽{'⁴⁶'[i]}⁾")
            axes[2 * i + j].set_title(f"overlaps {name} of order {order}", fontsize="medium")
            data[f"{name}{order}"] = ("time", "i", f"j_{name}"), values
            data[f"{name}{order}_plateau"] = (f"rows_{name}",), np.atleast_1d(heights)
    words = f"M = K = {units}, L = {levels}, N = 7000, η = 0.1, β = {exponent:g}, first order in the rate"
    titled(figure, f"{words}\n{INSETS}")
    return figure, data.assign_attrs(parameters=figure.get_suptitle())


@PAPER.figure(
    "fig17",
    "height of the plateau for several numbers of eigenvalues, against the fixed point",
    claims=("eq99",),
    limits={"units": (2, 6), "exponent": (0.1, 1.0)},
)
def figure17(quick: bool, *, units: int = 4, exponent: float = 0.25) -> tuple[Figure, xr.Dataset]:
    """L = 2, 8, 10, 12; dashed: the exact fixed point for unequal rows, dotted: rows averaged."""

    numbers, times = [2, 8, 10, 12], np.linspace(0, 1750, 71 if quick else 351)
    curves, heights, averaged = [], [], []
    figure, (ax,) = panels(1, 1)
    for i, levels in enumerate(numbers):
        result, law, rows = random_plateau(levels, units, times, exponent)
        curves.append(result.data["error"].values[0])
        heights.append(law.error)
        averaged.append(rows.error)
        ax.plot(times, curves[-1], color=f"C{i}", label=f"L = {levels}")
        ax.axhline(law.error, color=f"C{i}", ls="--", lw=0.8)
        ax.axhline(averaged[-1], color=f"C{i}", ls=":", lw=0.8)
    low, high = min(heights), max(heights)
    ax.plot([], [], color="0.35", ls="--", lw=0.8, label="height of the fixed point")
    ax.plot([], [], color="0.35", ls=":", lw=0.8, label="height with averaged teacher rows")
    ax.set_ylim(low - 0.3 * (high - low), high + 0.6 * (high - low))
    finish(ax, "the equation of motion on its plateau", TIME, ERROR)
    titled(figure, f"M = K = {units}, N = 7000, η = 0.1, β = {exponent:g}, first order in the rate")
    coords = {"L": numbers, "time": times}
    values = {"error": (("L", "time"), curves), "plateau": ("L", heights), "plateau_averaged": ("L", averaged)}
    return figure, xr.Dataset(values, coords, {"parameters": ax.get_title()})


@PAPER.figure(
    "fig19",
    "length of the plateau, predicted from its start at α = 500",
    claims=("escape-time", "plateau-shortens"),
    limits={"exponent": (0.1, 0.5)},
)
def figure19(quick: bool, *, exponent: float = 0.25) -> tuple[Figure, xr.Dataset]:
    """Left: M = 4 and L = 2, 4, 6, 8. Right: L = 10 and M = 2, 3, 4, 6, 8 (the paper does not say which L)."""

    figure, axes = panels(1, 2)
    data = xr.Dataset()
    cases = (
        ("L", [2, 4, 6, 8], np.linspace(0, 7000, 141 if quick else 701), (0.0066, 0.00725)),
        ("M", [2, 3] if quick else [2, 3, 4, 6, 8], np.linspace(0, 10_000, 201 if quick else 1001), (0, 0.0105)),
    )
    for ax, (name, numbers, times, shown) in zip(axes, cases, strict=True):
        curves, ends = [], []
        for i, n in enumerate(numbers):
            result, law, _ = random_plateau(*((n, 4) if name == "L" else (10, n)), times, exponent)
            begin = 500.0
            early = law.specialisation(result.data["R"].values[0, np.searchsorted(result.time, begin)])
            # a short plateau is over by then: its length is counted from an earlier time
            if not early < 0.5 * law.R.mean():
                begin = 150.0
            curves.append(result.data["error"].values[0])
            ends.append(predicted_end(result, law, begin))
            ax.plot(times, curves[-1], color=f"C{i}", label=f"{name} = {n}")
            ax.axvline(ends[-1], color=f"C{i}", ls="--", lw=0.9)
        ax.axvline(500, color="k", lw=0.9, label="α = 500, from which the end is predicted")
        ax.plot([], [], color="0.35", ls="--", lw=0.9, label="end of the plateau, predicted")
        ax.set(xlim=(0, times[-1]), ylim=shown)
        finish(ax, "M = K = 4" if name == "L" else "L = 10", TIME, ERROR)
        data[f"error_{name}"] = (name, f"time_{name}"), curves
        data[f"end_{name}"] = name, ends
        data = data.assign_coords({name: numbers, f"time_{name}": times})
    words = f"N = 7000, σ = 0.01, β = {exponent:g}, η = 0.1, first order in the rate; "
    words += "an end that comes before α = 500 is predicted from α = 150"
    titled(figure, words + "\nquick: M = 2 and 3 instead of 2 to 8" * quick)
    return figure, data.assign_attrs(parameters=figure.get_suptitle())


@PAPER.figure(
    "fig5",
    "plateaus of SGD with one eigenvalue per dimension: against the width, and against their number; one start each, "
    "which print does not give",
    claims=("plateau-shortens", "escape-scaling"),
    limits={"exponent": (0.1, 1.0)},
)
def figure5(quick: bool, *, exponent: float = 0.25) -> tuple[Figure, xr.Dataset]:
    """η = .01, σ = 1e-6, β = .25; dashed: the height of the fixed point for the teacher drawn."""

    # the drift depends on η t alone: a quick figure has ten times the paper's rate for a tenth of its time
    size, rate = (64, 0.1) if quick else (512, 0.01)
    left = ("M", [3, 4] if quick else [6, 8, 10, 32, 40], 160 / rate)
    right = ("L", [8, 32, 64] if quick else [25, 50, 100, 250, 500], 700 / rate)
    figure, axes = panels(1, 2)
    data = xr.Dataset()
    for ax, (name, numbers, last) in zip(axes, (left, right), strict=True):
        times = np.linspace(0, last, 201)
        n = size if name == "M" or quick else 500
        curves, heights = [], []
        for i, number in enumerate(numbers):
            levels, units = (n, number) if name == "M" else (number, 3 if quick else 6)
            problem = committee(levels, exponent, rate, students=units, teachers=units)
            start = ov.draw(problem, n, seed=2, scale=1e-6)
            curves.append(ov.train(problem, start, times, runs=1, seed=2).data["error"].values[0])
            heights.append(ov.laws.plateau(problem, start.T).error)
            ax.plot(times, curves[-1], color=f"C{i}", label=f"{name} = {number}")
            ax.axhline(heights[-1], color=f"C{i}", ls="--", lw=0.8)
        ax.plot([], [], color="0.35", ls="--", lw=0.8, label="height of the fixed point")
        ax.set_ylim(0, 1.6 * max(heights))
        where = f"L = N = {n}" if name == "M" else f"M = K = {3 if quick else 6}, N = {n}"
        finish(ax, f"{where}; one run of SGD each", TIME, ERROR)
        data[f"error_{name}"] = (name, f"time_{name}"), curves
        data[f"plateau_{name}"] = name, heights
        data = data.assign_coords({name: numbers, f"time_{name}": times})
    words = f"SGD, β = {exponent:g}, η = {rate:g}, σ = 1e-6"
    less = "\nquick: N = 64 instead of 512 and 500, M = 3 and 4 instead of 6 to 40 (left) and 3 instead of 6 (right), "
    less += "L = 8 to 64 instead of 25 to 500,\nη = 0.1 instead of 0.01 for a tenth of the time"
    titled(figure, words + less * quick)
    return figure, data.assign_attrs(parameters=figure.get_suptitle())
