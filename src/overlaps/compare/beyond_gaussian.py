"""Beyond Gaussian from t = …: when a classifier begins to use more of its rows than means and covariances.

A network is trained on the rows, and from the same weights on inputs drawn from Gaussians, one for each class of the
rows or for each group of a class, with its mean and its covariance. With the mean error e(t) over runs of the first,
ē(t) of the second, and a share s of the error that is to count as a difference,

    parted = the time from which on  |e(t) − ē(t)| > s ē(t)  at all later times,        gain = (ē − e)/ē at the end.

Early in training a network learns as on the Gaussians, and the times at which it parts from ever more of them tell what
structure it uses, and when: M. Refinetti, A. Ingrosso and S. Goldt, "Neural networks trained with SGD learn
distributions of increasing complexity" (ICML 2023). Both sides are runs of the same size, so that neither a limit nor a
theory enters. Runs scatter, and their bootstrap says how well the time is known: they are drawn again, with
replacement on both sides, and the interval holds 95 of a hundred times that come out.

>>> import numpy as np
>>> import overlaps as ov
>>> rng = np.random.default_rng(0)
>>> rows = rng.standard_normal((2000, 4)) + 0.7 * (np.arange(2000) % 2)[:, None]
>>> problem = ov.Problem(
...     data=ov.Samples(rows, np.arange(2000) % 2), student=ov.Committee(1, "linear"),
...     algorithm=ov.OnlineSGD(0.5), loss="logistic",
... )
>>> ov.beyond_gaussian(problem, ov.draw(problem, 4, scale=0.0), [1.0, 5.0, 20.0], runs=20, share=0.1, progress=False)
training on the rows against training on Gaussians of the same means and covariances, to t = 20, 20 runs each
  2 Gaussians: they do not part by more than 10 %
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..data.class_moments import ClassMoments
from ..interface.checks import checked, number, whole
from ..interface.errors import InputError, shown
from ..problem.start import Start, check
from ..problem.statement import Problem
from ..trajectory.scales import train

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]
RESAMPLES = 400
LEVEL = 0.95  # of intervals


@dataclass(frozen=True, eq=False)
class Parting:
    """How training on the rows parts from training on one set of Gaussians.

    Attributes
    ----------
    components: number of Gaussians.
    errors: mean loss of the runs on the Gaussians, (run, time).
    time: from which on the errors differ by more than the share; infinite where they do not at the last time, and the
        first time where they do so at all of them, which may have begun before.
    interval: that holds it with a probability of 95 per cent; infinite ends where they may not part, and the first time
        where they may have parted before.
    gain: by how much the error of the rows is below that of the Gaussians at the last time, relative to the latter.
    gain_error: its standard error.
    """

    components: int
    errors: Array
    time: float
    interval: tuple[float, float]
    gain: float
    gain_error: float


@dataclass(frozen=True, eq=False)
class BeyondGaussian:
    """Training on rows against training on Gaussians in their place.

    Attributes
    ----------
    times: (time,).
    errors: mean loss of the runs on the rows, (run, time).
    share: of the error, from which on a difference counts.
    partings: one `Parting` for each way to group the rows, in the order asked for; ways that come to the same groups
        share one.
    """

    times: Array
    errors: Array
    share: float
    partings: tuple[Parting, ...]

    def told(self, time: float, digits: int = 3) -> str:
        """The time of a parting in words: a number, or before the first or later than the last recorded time."""
        if not np.isfinite(time):
            return f"later than {self.times[-1]:g}"
        return f"before {time:.{digits}g}" if time <= self.times[0] else f"{time:.{digits}g}"

    @property
    def distinct(self) -> tuple[Parting, ...]:
        """Those of groups that differ."""
        return tuple({id(one): one for one in self.partings}.values())

    def __repr__(self) -> str:
        lines = [
            "training on the rows against training on Gaussians of the same means and covariances, to "
            f"t = {self.times[-1]:g}, {len(self.errors)} runs each"
        ]
        for one in self.distinct:
            told = f"they do not part by more than {100 * self.share:.3g} %"
            if np.isfinite(one.time):
                low, high = (self.told(time) for time in one.interval)
                less = "less" if one.gain > 0 else "more"
                told = (
                    f"beyond Gaussian (by {100 * self.share:.3g} %) from t = {self.told(one.time)} ({low} to {high}); "
                    f"at the end the error is {abs(one.gain):.1%} ± {one.gain_error:.1%} {less} than on the Gaussians"
                )
            lines.append(f"  {one.components} Gaussian{'s' * (one.components > 1)}: {told}")
        return "\n".join(lines)

    @checked
    def plot(self, ax: Axes | None = None) -> Axes:
        """Mean errors against time, with two standard errors of the mean, and where they part."""
        import matplotlib.pyplot as plt

        axes: Axes = plt.subplots()[1] if ax is None else ax
        curves = [("rows", self.errors), *((f"{one.components} Gaussians", one.errors) for one in self.distinct)]
        for i, (label, errors) in enumerate(curves):
            mean, wide = errors.mean(0), 2 * errors.std(0, ddof=1) / np.sqrt(len(errors))
            axes.plot(self.times, mean, color=f"C{i}", label=label)
            axes.fill_between(self.times, mean - wide, mean + wide, color=f"C{i}", alpha=0.2, lw=0)
            if i and np.isfinite(self.distinct[i - 1].time):
                axes.axvline(self.distinct[i - 1].time, color=f"C{i}", ls=":")
        axes.set(xlabel="time (steps per input dimension)", ylabel="error", xscale="log", yscale="log")
        axes.legend()
        return axes


@checked
def beyond_gaussian(
    problem: Problem,
    start: Start,
    times: ArrayLike,
    runs: int = 20,
    seed: int = 0,
    *,
    groups: Sequence[Any] = (None,),
    share: float = 0.02,
    progress: bool = True,
) -> BeyondGaussian:
    """When, and by how much, training on classified rows parts from training on Gaussians in their place.

    Parameters
    ----------
    problem: of `Samples` whose labels are classes, with `OnlineSGD`.
    start: where all runs begin; it has weights.
    times: at least two, increasing; the time is read off between them.
    runs, seed: on the rows, and on each set of Gaussians; at least four.
    groups: ways to part the classes into groups, as `groups` of `Samples`, each of which is compared with; as the
        problem has them by default.
    share: of the error, from which on a difference counts.
    """
    check(problem, start)
    if not problem.classifies_rows:
        raise InputError(
            "problem: rows are needed whose labels are classes, learned by a classifier; use Samples(X, y) with such y"
        )
    runs, share = whole("runs", runs, least=4), number("share", share, above=0)
    if isinstance(groups, (str, int)) or not isinstance(groups, Sequence) or not len(groups):
        raise InputError(
            f"groups: expected a list of ways to group the rows, such as [1, 2, 'auto'], got {shown(groups)}"
        )
    assert start.student is not None
    mine = train(problem, start, times, runs, seed, progress=progress)
    if mine.time.size < 2:
        raise InputError("times: expected at least two, between which the time is found")
    partings: list[Parting] = []
    known: list[tuple[Any, Parting]] = []
    for way in groups:
        data: Any = problem.data if way is None else _regrouped(problem.data, way)
        moments = data.moments
        if (met := next((one for seen, one in known if _alike(seen, moments)), None)) is not None:
            partings.append(met)
            continue
        same = replace(problem, data=data).class_equivalent
        begin = Start.from_weights(same, start.student, student_readout=start.v)
        theirs = train(same, begin, times, runs, seed, progress=progress)
        errors, others = (side.data["error"].values for side in (mine, theirs))
        partings.append(_parting(mine.time, errors, others, share, same.data.components.weights.size))
        known.append((moments, partings[-1]))
    return BeyondGaussian(mine.time, mine.data["error"].values, share, tuple(partings))


def _alike(one: ClassMoments, other: ClassMoments) -> bool:
    """Whether two ways to group the rows have come to the same groups."""
    return (
        one.means.shape == other.means.shape
        and np.array_equal(one.weights, other.weights)
        and np.array_equal(one.means, other.means)
    )


def _regrouped(data: Any, groups: Any) -> Any:
    """The same rows, parted into other groups."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the rows, which was said when they were built
        return replace(data, groups=groups, digest="")


def _parting(times: Array, rows: Array, gaussians: Array, share: float, components: int) -> Parting:
    time = parted(times, rows.mean(0), gaussians.mean(0), share)
    rng = np.random.default_rng(0)
    found = np.empty(RESAMPLES)
    gains = np.empty(RESAMPLES)
    for i in range(RESAMPLES):
        one, other = (x[rng.integers(0, len(x), len(x))].mean(0) for x in (rows, gaussians))
        found[i], gains[i] = parted(times, one, other, share), _gain(one, other)
    low, high = (float(x) for x in np.quantile(found, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], method="nearest"))
    gain = _gain(rows.mean(0), gaussians.mean(0))
    return Parting(components, gaussians, time, (min(low, time), max(high, time)), gain, float(gains.std(ddof=1)))


def _gain(rows: Array, gaussians: Array) -> float:
    return float(1 - rows[-1] / gaussians[-1])


def parted(times: Array, rows: Array, gaussians: Array, share: float) -> float:
    """The time from which on |rows − gaussians| > share × gaussians, between times by a straight line; or infinity.

    The first time where they are so far apart at all times.
    """
    beyond = np.abs(rows - gaussians) / gaussians - share
    inside = np.flatnonzero(beyond <= 0)
    if inside.size == 0:
        return float(times[0])
    last = int(inside[-1])
    if last == times.size - 1:
        return np.inf
    weight = -beyond[last] / (beyond[last + 1] - beyond[last])
    return float(times[last] + weight * (times[last + 1] - times[last]))
