"""Does theory agree with simulation? A verdict with z-scores, instead of curves laid over each other.

At every point (one entry of one variable at one time) the deviation of the mean over runs from the theory is divided
by its standard error, after taking off the theory's own numerical error. Against macro, Student's t distribution turns
this into a p-value and Holm's method corrects for the number of points. Between two simulations the question is whether
their laws are equal, and runs are exchangeable if they are: the largest deviation over all points is ranked among those
of random relabellings of the runs (Westfall and Young), an exact test that needs no normality. Either way p is shown
as an equivalent z-score.

- **agrees**: no point deviates, and half the points of each variable would have shown a deviation of `resolve` times
  its largest value.
- **underpowered**: no point deviates, but the runs could not have shown one; or one does, and it remains open whether
  it vanishes with N (too few runs, or a decay slower than 1/N at these sizes, as when runs split between two branches).
- **finite-size**: some point deviates, and the deviation at the deviating points shrinks as 1/N: the overlap chain is
  run at N/2 and N/4 from the same overlaps, and the interval of the power of N fitted to all three sizes reaches 0.75
  and lies above 0.25.
- **disagrees**: some point deviates and does not vanish: the power lies below 0.5, or both sides are simulations.

A theory of labelled rows that is compared with training on the same rows has no other error: they are the population.
On other rows of the same source it is an estimate (see `overlaps.compare.other_rows`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy import stats

from ..data.power_law import Exponent
from ..interface.checks import checked, number
from ..interface.errors import InputError, NumericalError, shown
from ..trajectory.dataset import Trajectory
from ..trajectory.points import ComparedPoints, fit_decay, holm, points, relabelled
from .other_rows import OtherRows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Verdict:
    """The outcome of a comparison.

    Attributes
    ----------
    verdict: ``"agrees"``, ``"finite-size"``, ``"disagrees"`` or ``"underpowered"``.
    reason: one sentence with the numbers behind it.
    table: dataset over `point` with variable, entry, time, deviation, standard_error, z and the adjusted p.
    exponent: power of N with which the deviation shrinks, where it was measured.
    """

    verdict: str
    reason: str
    table: xr.Dataset
    exponent: Exponent | None
    theory: Trajectory
    simulation: Trajectory

    def __repr__(self) -> str:
        n = self.simulation
        lines = [
            f"{self.verdict}: {self.theory.scale} against {n.scale} (N = {n.size}, {n.runs} runs), "
            f"{self.table.sizes['point']} points",
            f"  {self.reason}",
            "  largest |z| (uncorrected) at its time:",
        ]
        for name in self.theory.variables:
            rows = np.flatnonzero(self.table["variable"].values == name)
            if rows.size:
                i = rows[int(np.argmax(np.abs(self.table["z"].values[rows])))]
                at = self.table.isel(point=i)
                lines.append(
                    f"    {name + str(at['entry'].values):<12} z = {float(at['z']):+.2f} at time {float(at['time']):g} "
                    f"(deviation {float(at['deviation']):+.2g} ± {float(at['standard_error']):.1g}, "
                    f"corrected p = {float(at['p_adjusted']):.2g})"
                )
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from ..plot.notebook import card

        return card(repr(self), lambda ax: self.plot("error", ax), describe="both errors against time")

    @checked
    def plot(self, name: str = "error", ax: Axes | None = None, *, interactive: bool = False) -> Any:
        """Both trajectories of a variable, laid over each other.

        Parameters
        ----------
        ax: matplotlib axes to draw on; new ones by default.
        interactive: a Plotly figure to hover over instead, which is returned.
        """
        if interactive:
            from ..plot.interactive import together

            if ax is not None:
                raise InputError("plot: axes are for matplotlib; leave them out, or interactive=True")
            return together(self.theory, self.simulation, self.verdict, name)
        axes: Axes = self.theory.plot(name, ax, color="k")
        self.simulation.plot(name, axes)
        axes.set_title(f"{self.verdict} ({self.theory.scale} against {self.simulation.scale})")
        axes.legend()
        return axes

    def to_dict(self) -> dict[str, Any]:
        """The verdict as plain values, for JSON."""
        largest: dict[str, Any] = {"largest_z": None, "largest_z_at": None}
        if self.table.sizes["point"]:
            worst = self.table.isel(point=int(np.argmax(np.abs(self.table["z"].values))))
            variable = str(worst["variable"].values) + str(worst["entry"].values)
            largest = {
                "largest_z": float(worst["z"]),
                "largest_z_at": {"variable": variable, "time": float(worst["time"])},
            }
        return {
            "verdict": self.verdict,
            "reason": self.reason,
            "theory": self.theory.scale,
            "simulation": self.simulation.scale,
            "size": self.simulation.size,
            "runs": self.simulation.runs,
            "points": int(self.table.sizes["point"]),
            **largest,
            "exponent": None
            if self.exponent is None
            else {"value": self.exponent.value, "low": self.exponent.low, "high": self.exponent.high},
        }


@checked
def compare(
    theory: Trajectory,
    simulation: Trajectory,
    *,
    level: float = 0.01,
    resolve: float = 0.1,
    finite_size: bool = True,
    seed: int = 0,
    progress: bool = True,
) -> Verdict:
    """Compare a theory (macro, or meso as a reference law) with runs (micro or meso) at the same times.

    Where both are of labelled rows, and the rows are not the same, the theory must have been solved with `resamples`:
    the bias of its fit is taken off, and the standard error of its estimates is counted.

    Parameters
    ----------
    level: chance of calling a correct theory deviating, over all points together.
    resolve: deviation, relative to the largest value of a variable, that the runs must be able to show to count as
        agreement.
    finite_size: where points deviate, measure at N/2 and N/4 whether the deviation shrinks (costs about two more meso
        runs of the same length); otherwise the verdict is ``"disagrees"``.
    seed: of those extra runs, of the bootstrap and of the relabellings.
    progress: whether the extra runs show a progress bar.
    """
    level, resolve = number("level", level, above=0), number("resolve", resolve, above=0)
    if level >= 1:
        raise InputError(f"level: expected a chance below one, got {level:g}")
    a, b = _matched(theory, simulation)
    doubt = OtherRows.between(theory, simulation)
    if doubt is not None:
        a = replace(a, values=doubt.expected)
    tests = _tests(theory, simulation, a, b, level, seed, doubt)
    word, reason, exponent = (
        _judge_size(theory, simulation, b, tests, level, seed, finite_size=finite_size, progress=progress)
        if np.any(tests.deviating)
        else (*_judge_power(theory, simulation, a, tests, level, resolve), None)
    )
    return Verdict(word, reason, tests.table, exponent, theory, simulation)


class _Tests(NamedTuple):
    """Every point tested; arrays are (points,).

    lone: the scale of a side that has a single run, and so no standard error, or nothing.
    live: points that fluctuate, or that are constant and differ.
    deviating: live points at which the two sides differ at the level asked for.
    visible: smallest deviations that would have been found, in units of the largest value of the variable.
    attainable: smallest p that relabelling could give, 0 where p is not found by relabelling.
    """

    lone: str
    live: NDArray[np.bool_]
    deviating: NDArray[np.bool_]
    visible: Array
    attainable: float
    table: xr.Dataset


def _tests(
    theory: Trajectory,
    simulation: Trajectory,
    a: ComparedPoints,
    b: ComparedPoints,
    level: float,
    seed: int,
    doubt: OtherRows | None = None,
) -> _Tests:
    lone = next((r.scale for r in (theory, simulation) if r.scale != "macro" and r.runs < 2), "")
    deviation, error, freedom, slack = _deviation(theory, simulation, a, b, doubt)
    scale = np.array([max(float(np.abs(theory.data[n]).max()), 1e-12) for n in a.variable])
    still = error <= 1e-13 * scale  # constants, and the common start
    broken = still & (np.abs(deviation) > slack + 1e-9 * scale) & (not lone)
    live = ~still | broken
    excess = np.maximum(np.abs(deviation) - slack, 0.0)
    t = np.where(still, np.where(broken, np.inf, 0.0), excess / np.where(still, 1.0, error))
    p = np.maximum(2 * stats.t.sf(t, freedom), 1e-300)
    adjusted, visible = np.ones_like(p), np.zeros_like(p)
    attainable = 0.0
    if lone:
        p[:] = 1.0
    elif theory.scale != "macro" and np.any(live):
        repeats = int(min(100_000, max(2000, 20 / level)))
        adjusted[live], visible[live] = relabelled(a.values[:, live], b.values[:, live], level, seed, repeats)
        attainable = max(2 / math.comb(theory.runs + simulation.runs, simulation.runs), 1 / (1 + repeats))
    elif np.any(live):
        adjusted[live] = holm(p[live])
        visible = stats.t.isf(level / (2 * np.count_nonzero(live)), freedom) * error
    table = xr.Dataset(
        {
            "variable": ("point", a.variable),
            "entry": ("point", a.entry),
            "time": ("point", a.time),
            "deviation": ("point", deviation),
            "standard_error": ("point", error),
            "z": ("point", np.sign(deviation) * stats.norm.isf(p / 2)),
            "p_adjusted": ("point", adjusted),
        }
    ).isel(point=np.flatnonzero(live))
    return _Tests(lone, live, (adjusted < level) & (attainable <= level), visible / scale, attainable, table)


def _judge_power(
    theory: Trajectory, simulation: Trajectory, a: ComparedPoints, tests: _Tests, level: float, resolve: float
) -> tuple[str, str]:
    """The verdict and its reason where no point deviates: whether a deviation would have been found."""
    if tests.lone:
        return "underpowered", f"one {tests.lone} run has no standard error; use runs=2 or more, better 10"
    if not np.any(tests.live):
        return "agrees", "nothing fluctuates, and both sides are equal"
    if tests.attainable > level:
        return "underpowered", (
            f"{theory.runs} and {simulation.runs} runs have too few relabellings for level {level:g} (the smallest p "
            f"is {tests.attainable:.2g}); use more runs"
        )
    groups = {n: tests.visible[tests.live & (a.variable == n)] for n in theory.variables}
    smallest = {n: float(np.median(group)) for n, group in groups.items() if group.size}
    worst = max(smallest, key=lambda n: smallest[n])
    if smallest[worst] > resolve:
        return "underpowered", (
            f"no point deviates, but a deviation of {worst} below {smallest[worst]:.0%} of its largest value would "
            f"have gone unseen (resolve = {resolve:.0%}); use more runs or a larger size"
        )
    return "agrees", (
        f"no point deviates at level {level:g}; a deviation of {smallest[worst]:.2g} of a variable's largest "
        "value would have been seen"
    )


def _judge_size(
    theory: Trajectory,
    simulation: Trajectory,
    b: ComparedPoints,
    tests: _Tests,
    level: float,
    seed: int,
    *,
    finite_size: bool,
    progress: bool,
) -> tuple[str, str, Exponent | None]:
    """The verdict, its reason and the exponent of the size where points deviate: whether they vanish as 1/N."""
    count = int(np.count_nonzero(tests.deviating))
    found = f"{count} of {int(np.count_nonzero(tests.live))} points deviate at level {level:g}"
    if not finite_size:
        return "disagrees", f"{found}; whether this shrinks with N was not measured", None
    # the same runs choose the points and enter the fit, which pulls the exponent down a little, never up
    exponent, obstacle = _shrinks(theory, simulation, b, tests.deviating, seed, progress)
    if exponent is None:
        return "disagrees", f"{found}; whether this shrinks with N could not be measured: {obstacle}", None
    measured = f"the deviation goes as N^-a with a = {exponent} over N/4, N/2, N"
    if exponent.high >= 0.75 and exponent.low > 0.25:
        return "finite-size", f"{found}, and {measured}, as 1/N should", exponent
    if exponent.high < 0.5:
        return "disagrees", f"{found}, and {measured}: it does not vanish as 1/N", exponent
    return "underpowered", f"{found}, but {measured}: larger sizes or more runs must tell 1/N from a constant", exponent


def _matched(theory: Trajectory, simulation: Trajectory) -> tuple[ComparedPoints, ComparedPoints]:
    for name, side in (("theory", theory), ("simulation", simulation)):
        if not isinstance(side, Trajectory):
            raise InputError(f"{name}: expected a trajectory from solve, sample, train or load, got {shown(side)}")
    if simulation.scale == "macro":
        raise InputError("simulation: expected runs (micro or meso), got macro; pass the theory first")
    if theory.scale == "macro" and "accuracy" not in theory.data["Q"].attrs:
        raise InputError("theory: it stopped early, so its accuracy was not measured; solve it to an earlier time")
    if theory.scale != "macro" and theory.size != simulation.size:
        raise InputError(f"compare: two simulations of different size, {theory.size} and {simulation.size}")
    if theory.time.shape != simulation.time.shape or not np.allclose(theory.time, simulation.time, rtol=1e-12, atol=0):
        raise InputError(
            f"compare: the times differ ({theory.time.size} up to {theory.time[-1]:g} against {simulation.time.size} "
            f"up to {simulation.time[-1]:g}); compute both on one grid"
        )
    shapes = [(r.start.v.size, r.start.u.size) for r in (theory, simulation)]
    if shapes[0] != shapes[1]:
        raise InputError(f"compare: (student, teacher) units differ, {shapes[0]} against {shapes[1]}")
    return points(theory), points(simulation)


def _deviation(
    theory: Trajectory, simulation: Trajectory, a: ComparedPoints, b: ComparedPoints, doubt: OtherRows | None
) -> tuple[Array, Array, Array, Array]:
    """Deviation, its standard error, degrees of freedom and the theory's own error, all (points,)."""
    squares, freedoms = [], []
    for side in (a, b):
        n = len(side.values)
        squares.append(side.values.var(0, ddof=1) / n if n > 1 else np.zeros(side.values.shape[1]))
        freedoms.append(max(n - 1, 1))
    if doubt is not None:
        squares.append(doubt.standard_error**2)
        freedoms.append(doubt.resamples)
    total = np.sum(squares, axis=0)
    shares = np.sum([square**2 / freedom for square, freedom in zip(squares, freedoms, strict=True)], axis=0)
    freedom = np.where(shares > 0, total**2 / np.where(shares > 0, shares, 1.0), 1.0)
    slack = np.array([theory.accuracy(n) + simulation.accuracy(n) for n in a.variable])
    return b.values.mean(0) - a.values.mean(0), np.sqrt(total), freedom, slack


def _shrinks(
    theory: Trajectory,
    simulation: Trajectory,
    b: ComparedPoints,
    deviating: NDArray[np.bool_],
    seed: int,
    progress: bool,
) -> tuple[Exponent | None, str]:
    from ..trajectory.scales import sample

    if theory.scale != "macro":
        return None, "both sides are simulations at finite size"
    if simulation.problem is None:
        return None, "the problem's functions are not in the file"
    assert simulation.size is not None
    runs = [b.values[:, deviating]]
    sizes = [simulation.size]
    for part in (2, 4):
        size = simulation.size // part
        try:
            start = simulation.start.at_size(simulation.problem, size)
        except InputError as error:
            return None, f"there is no start at N/{part} = {size} ({error})"
        count = max(part * simulation.runs, 64)
        try:
            more = sample(simulation.problem, start, simulation.time, runs=count, seed=seed + part, progress=progress)
        except NumericalError as error:
            return None, f"at N/{part} = {size}: {error}"
        runs.append(points(more).values[:, deviating])
        sizes.append(size)
    reference = points(theory).values.mean(0)[deviating]
    if any(np.any(r.var(0) == 0) for r in runs):
        return None, "some deviating points do not fluctuate"
    return fit_decay(np.array(sizes, float), runs, [reference] * 3, seed), ""
