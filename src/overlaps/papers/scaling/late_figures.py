"""Figures 6 and 20: the decay to perfect learning of an erf committee, K = M."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from numpy.typing import NDArray

import overlaps as ov

from ..panels import ERROR, TIME, finish, panels, titled
from .model import committee
from .panels import PRINTED, log_log
from .paper import PAPER

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]


def typical_run(levels: int, units: int, times: Array) -> ov.Trajectory:
    """η = .25, β = 1, first order; a typical teacher, T⁽ˡ⁾_nm = δ_nm T⁽ˡ⁾, and small students slightly apart."""
    problem, sigma = committee(levels, 1.0, 0.25, students=units, teachers=units, first_order=True), 0.01
    phi, same = problem.data.fractions[:, None, None], np.eye(units)
    # the overlaps a random start at N = 9000 has on average, and a first preference for the own teacher of its size
    start = ov.Start.from_overlaps(problem, Q=sigma**2 * phi * same, R=sigma / np.sqrt(9000) * phi * same, T=phi * same)
    return ov.solve(problem, start, times, levels=True)


def from_then_on(result: ov.Trajectory, begin: float) -> tuple[Array, dict[str, Array]]:
    """Times since `begin`, and what the laws say from the overlaps there: second order, and first as in (17), (121)."""
    i = int(np.searchsorted(result.time, begin))
    times, problem = result.time[i:] - result.time[i], result.problem
    assert problem is not None
    Q, R = (result.data[name].values[0, i:] for name in ("Q", "R"))
    begin_Q, begin_R = (result.data[f"{name}_levels"].values[0, i] for name in ("Q", "R"))
    return times, {
        "error": result.data["error"].values[0, i:],
        "law": ov.laws.late_error(problem, begin_Q, begin_R, times),
        "first_order": ov.laws.late_error(problem, begin_Q, begin_R, times, order=1),
        "expansion": ov.laws.near_error(problem, Q, R, order=1),
    }


@PAPER.figure(
    "fig6",
    "late decay of erf students: power laws, and the closed form for L = 9",
    claims=("time-exponent-erf", "eq17"),
    reduced="the left panel is the equation of motion of K = M = 2 students that have specialised, at η = .25, in "
    "place of SGD with K = M = 40 and η = .01, of which ten starts for each β take hours",
    limits={"levels": (3, 20)},
)
def figure6(quick: bool, *, levels: int = 9) -> tuple[Figure, xr.Dataset]:
    """Left: the equation of motion, K = M = 2, η = .25, L = 512. Right: K = M = 2, η = .25, β = 1, L = 9."""
    from .late_claims import slow_rate, specialised  # which in turn measure the runs of this module

    many = 128 if quick else 512
    betas = [0.5, 0.75, 1.0, 1.25, 1.5]
    times = ov.logtimes(0.1, 1e4, 80)
    figure, axes = panels(1, 2)
    curves = []
    for i, beta in enumerate(betas):
        curves.append(specialised(many, beta, times))
        axes[0].plot(times, curves[-1], color=f"C{i}", label=f"β = {beta:g}")
        problem = committee(many, beta, 0.25, students=2, teachers=2, first_order=True)
        low = ov.laws.window(ov.PowerLaw(many, beta), slow_rate(problem)).low
        window = times[(times >= 3 * low) & (times <= 300 * low)]
        first = float(np.interp(window[0], times, curves[-1]))
        law = first * (window / window[0]) ** -ov.laws.time_exponent(beta)
        axes[0].plot(window, law, color=f"C{i}", ls="--", lw=1.2)
    axes[0].plot([], [], color="0.4", ls="--", lw=1.2, label="time to the −β/(1 + β)")
    axes[0].set_ylim(bottom=1e-6)
    log_log(axes[0], f"equation of motion, K = M = 2, η = 0.25, L = {many}", loc="lower left")
    less = "quick: L = 128 instead of 512"
    words = "late decay of erf students, first order in the rate\nreduced (left): equation of motion at K = M = 2, "
    words += "η = 0.25 in place of SGD at K = M = 40, η = 0.01"
    titled(figure, words + f"\n{less}" * quick)

    t = np.linspace(0, 3000, 151 if quick else 601)
    result = typical_run(levels, 2, t)
    later, said = from_then_on(result, 1000.0)
    axes[1].plot(t, result.data["error"].values[0], label="equation of motion, O(η)")
    axes[1].plot(1000 + later, said["law"], "--", label="closed form, second order")
    axes[1].plot(1000 + later, said["first_order"], label="closed form, first order: (17) corrected", **PRINTED)
    axes[1].set_yscale("log")
    finish(axes[1], f"K = M = 2, η = 0.25, β = 1, L = {levels}", TIME, ERROR)
    data = xr.Dataset(
        {"error_left": (("beta", "time"), curves), "error": ("t", result.data["error"].values[0])},
        {"beta": betas, "time": times, "t": t},
    )
    for name, values in said.items():
        data[f"late_{name}"] = "later", values
    titles = "; ".join(ax.get_title() for ax in axes)
    return figure, data.assign_coords(later=later).assign_attrs(parameters=titles)


@PAPER.figure(
    "fig20",
    "late decay for L = 3 and 9: the expansion (121) along the equation of motion against the closed form",
    claims=("eq17",),
    limits={"levels": (4, 20)},
)
def figure20(quick: bool, *, levels: int = 9) -> tuple[Figure, xr.Dataset]:
    """K = M = 2, η = .25, β = 1, first order; reference point α₀ = 1000."""

    figure, axes = panels(1, 3)
    t = np.linspace(0, 3000, 151 if quick else 601)
    data = xr.Dataset(coords={"time": t})
    for i, number in enumerate((3, levels)):
        result = typical_run(number, 2, t)
        error = result.data["error"].values[0]
        axes[0].plot(t, error, label=f"L = {number}")
        later, said = from_then_on(result, 1000.0)
        ax = axes[1 + i]
        ax.plot(later, said["error"], label="error of the equation of motion")
        ax.plot(later, said["law"], "--", label="closed form, second order")
        ax.plot(later, said["expansion"], color="C2", label="expansion (121) along it")
        ax.plot(later, said["first_order"], label="closed form of (121): (122) corrected", **PRINTED)
        ax.set(yscale="log", xlim=(0, 1000))
        shown = later <= 1000
        ax.set_ylim(0.7 * said["error"][shown].min(), 1.5 * said["expansion"][shown].max())
        finish(ax, f"L = {number}", "time − 1000 (samples per input dimension)", ERROR)
        data[f"error_L{number}"] = "time", error
        for name, values in said.items():
            data[f"late_{name}_L{number}"] = "later", values
        data = data.assign_coords(later=later)
    axes[0].set_yscale("log")
    finish(axes[0], "equation of motion", TIME, ERROR)
    titled(figure, "K = M = 2, η = 0.25, β = 1, typical teacher, first order in the rate")
    return figure, data.assign_attrs(parameters=figure.get_suptitle())
