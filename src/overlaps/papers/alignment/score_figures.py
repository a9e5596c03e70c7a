"""Alignment and elasticity against the train-unseen similarity: figures 2, 3 and K.1 to K.3, K.6.

Dots are means over runs with standard deviations, lines are theory resummed to all orders. In full a training set takes
some twenty minutes for each setup.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

import overlaps as ov

from ..panels import finish, headroom, panels, titled
from .curves import all_sets, joined, recall, score, spread, upper_axis
from .model import EXPONENT, KINDS, NAMES, STEPS, Scale, setting
from .paper import PAPER
from .setups import SCORES, setup1, setup1_drawn, setup2

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@PAPER.figure(
    "fig2",
    "training sets (Data 1, 2, 3) and unseen classes of setups 1 and 2, projected on two directions",
    claims=("unseen-generator", "rotations"),
)
def fig2(quick: bool) -> tuple[Figure, xr.Dataset]:
    """Coordinates along v and along a direction orthogonal to it, of 400 samples and of unseen classes."""
    size, points, rng = 256, 400, np.random.default_rng(2)
    figure, axes = panels(2, 3)
    axes[-1].remove()
    found: dict[str, Any] = {}
    across = np.zeros(size)
    across[:2] = np.sqrt(0.5) * np.array([1, -1])
    for ax, kind in zip(axes, KINDS, strict=False):
        task = setting(kind, size)
        v = task.direction
        X, y = ov.giant_step.TwoClasses(kind).draw(rng, points, size)
        plane = np.stack([v / np.linalg.norm(v), across])
        found[kind] = (("sample", "axis"), X @ plane.T, {"long_name": f"coordinates of {NAMES[kind]}"})
        for sign, colour in ((1, "C0"), (-1, "C1")):
            part = (X @ plane.T)[y == sign]
            ax.plot(*part.T, colour, marker=".", ls="", ms=3, label=f"y = {sign:+d}")
        finish(ax, f"{NAMES[kind]}, d = {size}", "along v", "across")
    v = setting("sphere", size).direction
    plane = np.stack([v / np.linalg.norm(v), across])
    setups = {
        "setup1": (ov.giant_step.scaled(v, [-0.9, -0.5, 0.1, 0.5, 0.9]), "e"),
        "setup2": (ov.giant_step.rotated(v, [0.0, 0.5, 1.0, 3.0]), "c"),
    }
    for ax, (name, (unseen, symbol)) in zip(axes[3:5], setups.items(), strict=True):
        if name == "setup2":  # one plane holds v and one other direction: that in which the last rotation turns it
            other = unseen[-1].mean - (unseen[-1].mean @ plane[0]) * plane[0]
            plane = np.stack([plane[0], other / np.linalg.norm(other)])
        z = rng.standard_normal((points // 4, size))
        drawn = np.array([one.fields(z, z, np.eye(size)) @ plane.T for one in unseen])
        found[name] = ((f"class_{symbol}", "point", "axis"), drawn, {"long_name": f"coordinates of {name}"})
        for one, part in zip(unseen, drawn, strict=True):
            ax.plot(*part.T, ".", ms=3, label=f"{symbol} = {one.value:g}")
        headroom(ax, 0.35)
        finish(ax, f"unseen classes of setup {name[-1]}, Data 3", "along v", "across")
    data = xr.Dataset(found, attrs={"parameters": f"d = {size}, {points} samples; print shows a sketch"})
    return titled(figure, data.attrs["parameters"]), data


@PAPER.figure(
    "fig3",
    "alignment, elasticity and Recall@1 in setup 1 (a-c) and setup 2 (d-f), with theory; the data set is not given in "
    "print, Data 3 is shown; lines are theory, against scales of setup 1, where e = 0 stands alone as nothing is "
    "projected out there, and angles of setup 2",
    claims=("growth", "together", "finite-order", "recall-phases", "recall-rotations"),
    limits=STEPS,
)
def fig3(quick: bool, *, step: float = EXPONENT) -> tuple[Figure, xr.Dataset]:
    """Rows: alignment, elasticity, Recall@1. Columns: setups."""
    figure, axes = panels(3, 2)
    first, second = setup1_drawn("sphere", quick, step), setup2("sphere", quick, step)
    for ax, name, letter in zip(axes[0:4:2], SCORES, "ab", strict=True):
        score(ax, first, name, "e", f"({letter}) {name}, setup 1\n")
        upper_axis(ax, first)
    recall(axes[4], first, "(c) Recall@1, setup 1", "recall")
    for ax, name, letter in zip(axes[1:4:2], SCORES, "de", strict=True):
        score(ax, second, name, "beta_mu", f"({letter}) {name}, setup 2")
    recall(axes[5], second, "(f) Recall@1, setup 2", "recall")
    both = [
        data.rename({str(name): f"setup{i}_{name}" for name in (*data.data_vars, *data.dims) if name != "run"})
        for i, data in enumerate((first, second), 1)
    ]
    merged = joined(both)
    return titled(figure, merged.attrs["parameters"]), merged


def every_set(
    of: Callable[[str, bool, float], xr.Dataset], quick: bool, step: float, x: str, *, logarithmic: bool = False
) -> tuple[Figure, xr.Dataset]:
    """Rows: training sets. Columns: alignment and elasticity."""
    parts, data = all_sets(of, quick, step)
    figure, axes = panels(len(KINDS), len(SCORES))
    places = iter(axes)
    for kind, part in parts.items():
        if logarithmic:
            above = np.flatnonzero(part["e"].values > 0)
            part = part.isel(unseen=above, curve=above, line=part["line_e"].values > 0)
        for name in SCORES:
            ax = next(places)
            if logarithmic:
                ax.set_xscale("log")
            score(ax, part, name, x, f"{NAMES[kind]}" + "\n" * (x == "e"))
            if x == "e":
                upper_axis(ax, part)
    return titled(figure, data.attrs["parameters"]), data


@PAPER.figure(
    "figK1",
    "alignment and elasticity against e and β·μ in setup 1, all training sets, with theory",
    claims=("growth", "together", "note-4.4"),
    limits=STEPS,
)
def figK1(quick: bool, *, step: float = EXPONENT) -> tuple[Figure, xr.Dataset]:
    """All scales on a linear axis."""
    return every_set(setup1_drawn, quick, step, "e")


@PAPER.figure(
    "figK2",
    "alignment and elasticity against β·μ in setup 2, all training sets, with theory",
    claims=("together",),
    limits=STEPS,
)
def figK2(quick: bool, *, step: float = EXPONENT) -> tuple[Figure, xr.Dataset]:
    """Every dot is a rotation."""
    return every_set(setup2, quick, step, "beta_mu")


@PAPER.figure(
    "figK3",
    "figure K.1 for e > 0 on a logarithmic axis; Data 2 saturates from e = .05 on",
    claims=("growth", "together"),
    limits=STEPS,
)
def figK3(quick: bool, *, step: float = EXPONENT) -> tuple[Figure, xr.Dataset]:
    """Scales above zero."""
    return every_set(setup1_drawn, quick, step, "e", logarithmic=True)


@PAPER.figure(
    "figK6",
    "β·μ against e, all training sets, and the line through the mean of b",
    claims=("linear-similarity",),
    limits=STEPS,
)
def figK6(quick: bool, *, step: float = EXPONENT) -> tuple[Figure, xr.Dataset]:
    """Runs against e v·m/√N."""
    parts, data = all_sets(setup1, quick, step)
    figure, axes = panels(1, len(KINDS))
    size = Scale.of(quick).size
    for ax, (kind, part) in zip(axes, parts.items(), strict=True):
        task = setting(kind, size)
        slope = float(task.direction @ task.groups().pulls.sum(0)) / np.sqrt(size)
        spread(ax, part["e"], part["beta_mu"], "runs, ± standard deviation")
        e = part["e"].values
        ax.plot(e, slope * e, "k-", lw=1, label=f"slope v·m/√N = {slope:.3g}")
        finish(ax, NAMES[kind], "scale e", "β·μ")
    kept = data[[f"{kind}_beta_mu" for kind in KINDS]]
    return titled(figure, data.attrs["parameters"]), kept
