"""tLog-RMSE: how far runs are from a theory over the whole of training, each decade of time counting the same.

For each entry v of a variable and each run v̂, over T times that are equally spaced on a logarithmic scale,

    M = √( (1/T) Σ_t (v(t) − v̂(t))² )

averaged over the entries (all K² of Q, K M of R, K of v) and over the runs: J. Bae and H. Jeong, "From empirical
observations to universality", eqs. (18) and (20). There (18) is printed as (1/T) Σ_t √(v² − v̂²), which is no distance:
it is imaginary where |v̂| > |v|, and a small difference d counts as √(2 |v| d). Its real part is given as `printed`,
together with the share of times at which the root is imaginary; `absolute` is (1/T) Σ_t |v − v̂|.

Runs scatter about their mean, so a run is at a distance from a theory that is exactly right, too. This *floor* is
measured by the runs themselves: run i less the mean of the other n − 1 has the variance of one run times 1 + 1/(n − 1),

    floor_i = √( (1/T) Σ_t (v̂_i − mean of the others)² / (1 + 1/(n − 1)) ).

Its mean square is that of the distance of a run from the exact mean; if runs are Gaussian, it has the same law. The
*excess* M − floor is then zero on average if the theory is the mean of the runs.

`tlog_rmse` measures all of this for trajectories; the excess of plain arrays, right and 0.3 off:

>>> import numpy as np
>>> from overlaps.compare.discrepancy import excess
>>> exact = np.exp(-np.geomspace(0.01, 10, 20))
>>> runs = exact + 0.1 * np.random.default_rng(0).standard_normal((8, exact.size))
>>> abs(excess(exact, runs)) < 0.01, round(excess(exact + 0.3, runs), 2)
(True, 0.22)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..data.power_law import jackknife
from ..interface.checks import checked
from ..interface.errors import InputError, shown, unknown
from ..trajectory.dataset import Trajectory

Array = NDArray[np.float64]
EQUAL = 1e-6  # relative difference of ratios of times that counts as none
DENSE = 0.9  # of all whole steps: share beyond which they are linear in time
FEW = 4  # times that are log-spaced even if they are 1, 2, 3 and 4


@dataclass(frozen=True, eq=False)
class Discrepancy:
    """Distances of runs from a theory; every dictionary has a value for each variable.

    Attributes
    ----------
    rmse: tLog-RMSE, mean over entries and runs.
    standard_error: that of `rmse` over runs; None for a single run.
    floor: what `rmse` would be if the theory were the exact mean of the runs; None for a single run.
    excess: rmse − floor; None for a single run.
    excess_standard_error: that of `excess`, by the jackknife over runs (√2 too large where the theory is exact); None
        for fewer than three runs.
    absolute: mean over times of |v − v̂|, mean over entries and runs.
    printed: mean over times of the real part of √(v² − v̂²), mean over entries and runs.
    imaginary: share of times, entries and runs at which that root is imaginary.
    absolute_standard_error, printed_standard_error: those of `absolute` and `printed` over runs; None for a single run.
    entries: tLog-RMSE of each run and entry, (run, …).
    accuracy: numerical error of the theory and, where its error is a quadrature, of the simulation: `rmse`, `floor`,
        `excess` and `absolute` are off by at most so much, beside their standard errors.
    times: the times that counted, (T,).
    """

    rmse: dict[str, float]
    standard_error: dict[str, float] | None
    floor: dict[str, float] | None
    excess: dict[str, float] | None
    excess_standard_error: dict[str, float] | None
    absolute: dict[str, float]
    printed: dict[str, float]
    imaginary: dict[str, float]
    entries: dict[str, Array]
    accuracy: dict[str, float]
    times: Array
    absolute_standard_error: dict[str, float] | None = None
    printed_standard_error: dict[str, float] | None = None

    def __repr__(self) -> str:
        runs = len(next(iter(self.entries.values())))
        t = self.times
        lines = [f"tLog-RMSE of {runs} run{'s' * (runs > 1)} at {t.size} times from {t[0]:g} to {t[-1]:g}"]
        head = ("", "rmse", "floor", "excess", "absolute", "printed (imaginary)")
        rows = [head, *(self._row(name) for name in self.rmse)]
        widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
        lines += ["  " + "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows]
        if runs == 1:
            lines.append("  a single run has no floor and no error bar; ask for runs=2 or more")
        lines.append(f"  the theory is accurate to {max(self.accuracy.values()):.1e}")
        return "\n".join(lines)

    def _row(self, name: str) -> tuple[str, ...]:
        def shown(value: dict[str, float] | None, error: dict[str, float] | None) -> str:
            if value is None:
                return "-"
            return f"{value[name]:.3g}" + (f" ± {error[name]:.1g}" if error is not None else "")

        return (
            name,
            shown(self.rmse, self.standard_error),
            shown(self.floor, None),
            shown(self.excess, self.excess_standard_error),
            shown(self.absolute, self.absolute_standard_error),
            f"{shown(self.printed, self.printed_standard_error)} ({self.imaginary[name]:.0%})",
        )


@checked
def tlog_rmse(theory: Trajectory, simulation: Trajectory, variables: Sequence[str] | None = None) -> Discrepancy:
    """Distance of the runs of a simulation (micro or meso) from a theory (macro) on the same log-spaced times.

    Time zero, where both start, does not count.

    Parameters
    ----------
    variables: names of those to measure; by default all that both have.
    """
    names = _names(theory, simulation, variables)
    times, kept = _times(theory, simulation)
    exact = {name: _values(theory, name)[0, kept] for name in names}
    runs = {name: _values(simulation, name)[:, kept] for name in names}
    for name in names:
        if exact[name].shape != runs[name].shape[1:]:
            raise InputError(
                f"tlog_rmse: {name} of the theory has the shape {exact[name].shape[1:]}, that of the runs "
                f"{runs[name].shape[2:]}; compare problems with the same numbers of units"
            )
    several, three = simulation.runs > 1, simulation.runs > 2
    entries = {name: distances(exact[name], runs[name]) for name in names}
    excesses = {name: excess(exact[name], runs[name]) for name in names} if several else None
    mean = {name: float(entries[name].mean()) for name in names}
    squares = {name: exact[name] ** 2 - runs[name] ** 2 for name in names}
    absolute = {name: np.abs(exact[name] - runs[name]) for name in names}
    printed = {name: np.sqrt(np.maximum(squares[name], 0.0)) for name in names}
    return Discrepancy(
        rmse=mean,
        standard_error={name: _standard_error(entries[name]) for name in names} if several else None,
        floor={name: mean[name] - excesses[name] for name in names} if excesses else None,
        excess=excesses,
        excess_standard_error={name: _jackknife(exact[name], runs[name]) for name in names} if three else None,
        absolute={name: float(absolute[name].mean()) for name in names},
        printed={name: float(printed[name].mean()) for name in names},
        imaginary={name: float(np.mean(squares[name] < 0)) for name in names},
        entries=entries,
        accuracy={name: theory.accuracy(name) + simulation.accuracy(name) for name in names},
        times=times,
        absolute_standard_error={name: _standard_error(absolute[name]) for name in names} if several else None,
        printed_standard_error={name: _standard_error(printed[name]) for name in names} if several else None,
    )


def distances(exact: Array, runs: Array) -> Array:
    """Root mean square over times of runs (n, T, …) less exact (T, …) or (n, T, …): (n, …)."""
    return np.sqrt(np.mean((runs - exact) ** 2, axis=1))


def floors(runs: Array) -> Array:
    """Distance of each run (n, T, …) from the mean of the others, as it would be from the exact mean: (n, …)."""
    n = len(runs)
    others = (runs.sum(0) - runs) / (n - 1)
    return distances(others, runs) / np.sqrt(1 + 1 / (n - 1))


def excess(exact: Array, runs: Array) -> float:
    """Mean over runs and entries of the distance from exact (T, …), less that from the mean of the runs (n, T, …)."""
    return float(distances(exact, runs).mean() - floors(runs).mean())


def _standard_error(entries: Array) -> float:
    """Of the mean over runs, entries (n, …) of one run being dependent."""
    per_run = entries.reshape(len(entries), -1).mean(1)
    return float(per_run.std(ddof=1) / np.sqrt(per_run.size))


def _jackknife(exact: Array, runs: Array) -> float:
    return float(jackknife(np.array([excess(exact, np.delete(runs, i, axis=0)) for i in range(len(runs))])))


def _values(side: Trajectory, name: str) -> Array:
    return side.data[name].transpose("run", "time", ...).values


def _names(theory: Trajectory, simulation: Trajectory, variables: Sequence[str] | None) -> list[str]:
    for name, side in (("theory", theory), ("simulation", simulation)):
        if not isinstance(side, Trajectory):
            raise InputError(f"{name}: expected a trajectory from solve, sample, train or load, got {shown(side)}")
    if theory.scale != "macro":
        raise InputError(f"theory: expected macro, from solve, got {theory.scale}; two simulations are for compare")
    if "accuracy" not in theory.data["Q"].attrs:
        raise InputError("theory: it stopped early, so its accuracy was not measured; solve it to an earlier time")
    if simulation.scale == "macro":
        raise InputError("simulation: expected runs (micro or meso), got macro; pass the theory first")
    common = [name for name in theory.variables if name in simulation.variables]
    if variables is None:
        return common
    if isinstance(variables, str):
        variables = [variables]
    if not isinstance(variables, Sequence) or not variables or not all(isinstance(name, str) for name in variables):
        raise InputError(f"variables: expected names such as 'Q', got {shown(variables)}")
    for name in variables:
        if name not in common:
            raise unknown("variable that both have", name, common)
    return list(dict.fromkeys(variables))


def _times(theory: Trajectory, simulation: Trajectory) -> tuple[Array, slice]:
    t, other = simulation.time, theory.time
    if t.shape != other.shape or not np.allclose(t, other, rtol=1e-12, atol=0):
        raise InputError(
            f"tlog_rmse: the times differ ({other.size} up to {other[-1]:g} against {t.size} up to {t[-1]:g}); compute "
            "both on one grid"
        )
    kept = slice(int(t[0] == 0), None)
    t = t[kept]
    if t.size < 3:
        raise InputError(f"times: expected at least three after time zero, got {t.size}; use logtimes")
    assert simulation.size is not None
    if not log_spaced(t, simulation.size):
        raise InputError(
            "times: expected equal ratios between one and the next, up to rounding to whole steps, so that each decade "
            f"counts the same; got ratios from {(t[1:] / t[:-1]).min():.4g} to {(t[1:] / t[:-1]).max():.4g}; use "
            "logtimes"
        )
    return t, kept


def log_spaced(times: Array, size: int) -> bool:
    """Whether times (T,), in units of `size` steps, have equal ratios, or come from such by rounding to whole steps.

    Steps may be rounded to the nearest or down, and equal ones merged.
    """
    steps = times * size
    if np.abs(np.diff(np.log(steps), 2)).max(initial=0.0) <= EQUAL:
        return True
    if np.abs(steps - np.rint(steps)).max() > EQUAL or steps[0] < 0.5:
        return False
    steps = np.rint(steps)
    last, following = steps[:-1], steps[1:]
    if steps.size > max(FEW, DENSE * (steps[-1] - steps[0] + 1)):
        return False  # nearly all whole steps are what is left of very many log-spaced ones, and linear for all that
    for below, above in ((0.5, 0.5), (0.0, 1.0)):
        # neighbouring steps may have merged, and then only bound the ratio from above
        least = np.where(following - last > 1, (following - below) / (last + above), 1.0).max()
        if least <= ((following + above) / (last - below)).min():
            return True
    return False
