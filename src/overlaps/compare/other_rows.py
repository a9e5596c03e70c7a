"""A theory estimated from n rows against training on n' other rows of the same population.

Runs on n' rows learn what these rows say of the population, and so differ from training on the population itself: by a
bias that goes as 1/n', and by a standard error that goes as 1/√n'. The theory of n rows differs from it likewise. With
f the theory of the n rows as they are, f_∞ that of the population behind them (both of
`overlaps.trajectory.fresh_rows`) and s the standard error, runs are expected to have the mean

    f_∞ + (n/n') (f − f_∞)        with a standard error        s √(1 + n/n')

to which the standard error over the runs is added. For a very large table in place of the population both corrections
of the runs' side vanish. Many passes go through training sets of one size, whatever the table, so that there is no
bias, and the error of the runs' side is taken as no smaller than that of the theory.

Overlaps and errors from zero weights are mean squares, whose standard error is proportional to themselves: an estimate
that is too small by chance has one that is too small. Where runs are above what is expected, s is taken as that of a
truth where the runs are, larger by their ratio.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..interface.errors import InputError
from ..trajectory.dataset import Trajectory
from ..trajectory.fresh_rows import FRESH, STANDARD_ERROR
from ..trajectory.points import points

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class OtherRows:
    """What runs on other rows are expected at, (1, points), and with which standard error besides their own (points,).

    resamples: that the standard error rests on.
    """

    expected: Array
    standard_error: Array
    resamples: int

    @classmethod
    def between(cls, theory: Trajectory, simulation: Trajectory) -> OtherRows | None:
        """For two trajectories of labelled rows that are not the same; None for all others."""
        mine, theirs = (side.data.attrs.get("rows", "") for side in (theory, simulation))
        if not mine or not theirs or mine == theirs:
            return None
        if theory.scale != "macro":
            raise InputError("theory: runs on other rows differ by chance, of which they say nothing; use solve")
        if theory.problem is not None and theory.problem.classifies_rows:
            raise InputError(
                "theory: it was solved for other rows than those of the runs, and theory of classes does not say what "
                "other rows would give; train on the rows of the theory, or test on rows held out by MultiPass(rate, "
                "samples=...)"
            )
        if "resamples" not in theory.data.attrs:
            raise InputError(
                "theory: it was solved for other rows than those of the runs; solve it with resamples=30, which states "
                "the error of what is estimated from rows, or train on the same rows"
            )
        if theory.size != simulation.size:
            raise InputError(
                f"compare: rows of {theory.size} and of {simulation.size} dimensions are not from one population; use "
                "the same columns, none of which is constant in either"
            )
        if simulation.start.student is not None and np.any(simulation.start.student):
            raise InputError("simulation: runs on other rows must start from zero weights; use draw(..., scale=0.0)")
        n, other = (float(side.data.attrs["row_count"]) for side in (theory, simulation))
        fresh, error = (_points(theory, ending)[0] for ending in (FRESH, STANDARD_ERROR))
        ratio, seen = n / other, points(simulation).values.mean(0)
        expected = fresh
        if "training_error" in theory.data:
            ratio = max(1.0, ratio)
        else:
            expected = fresh + ratio * (points(theory).values[0] - fresh)
        larger = np.divide(seen, expected, out=np.ones_like(seen), where=expected > 0)
        error = error * np.sqrt(1 + ratio) * np.maximum(larger, 1.0)
        return cls(expected[None], error, int(theory.data.attrs["resamples"]))


def _points(theory: Trajectory, ending: str) -> Array:
    """What stands beside the variables of a trajectory under names with an ending, in the order of its points.

    A fixed readout has nothing beside it: it is the same for all rows, and has no error.
    """
    data, same = theory.data, {}
    for name in theory.variables:
        values = data.get(name + ending, data[name] if ending == FRESH else 0 * data[name]).values
        same[name] = (data[name].dims, values)
    return points(replace(theory, data=data.assign(same))).values
