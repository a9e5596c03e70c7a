"""The schedule that leaves the smallest error at a given time, found from theory alone.

For one linear unit on isotropic inputs, N → ∞, with distance D from its teacher and label noise σ²,

    dD/dt = −2 η D + η² (D + σ²),

the best rate at every time is η = D/(D + σ²): large while there is much to learn, small at the end, when noise must be
averaged out. `optimise` finds such rates for any problem that `solve` knows: at knots in time, by the derivatives of
`overlaps.plan.objectives` and the search of `overlaps.plan.search`.

>>> import overlaps as ov
>>> unit = ov.Committee(units=1, activation="linear")
>>> problem = ov.Problem(
...     data=ov.GaussianInputs(), teacher=unit, student=unit, algorithm=ov.OnlineSGD(rate=0.5), label_noise=0.5
... )
>>> start = ov.Start.from_overlaps(problem, Q=[[0.0]], R=[[0.0]], T=[[1.0]], size=500)
>>> plan = ov.optimise(problem, start, time=10)
>>> plan
plan for time 10, student 1 x linear, teacher 1 x linear (exact mean at size 500)
  best constant rate 0.257: error 0.02391
  best schedule, 15 knots: error 0.01806
    time         0    0.555     2.43        5     7.57     9.45       10
    rate     0.798    0.722    0.461    0.259     0.17    0.134    0.126
  24% less error, found by 57 evaluations; nothing was trained
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..algorithms import Schedule
from ..interface.checks import array, checked, listed, number, numbers, whole
from ..interface.errors import InputError, NumericalError, shown, unknown
from ..interface.progress import bar, without_bars
from ..online.weak_mixture import WEAK
from ..problem.start import Start, check
from ..problem.statement import Problem
from ..trajectory.scales import sample, train
from .diverging_runs import diverged, errors_of_runs, in_words
from .objectives import Objective, is_one_pass, objective, with_rate
from .search import MOST, REFINED, SCANNED, best_constant, best_values, knot_times

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]
WIDTH = 100.0  # bounds of a rate, by default: the largest of the problem divided and multiplied by this
LARGEST_BATCH = 10_000
TRIALS = {"rate": SCANNED + REFINED + MOST, "decay": SCANNED + REFINED, "batch": 55}  # at most, or nearly so
Report = Callable[[], object]


@dataclass(frozen=True, eq=False)
class TrainingPlan:
    """The best way to train until a time; made by `optimise`.

    Attributes
    ----------
    problem: with the best schedule, batch or decay in its algorithm; ready for `train`.
    start, time: where training begins, and when the error is asked for.
    vary: what was varied.
    times, rates: knots of the schedule of rates; a single one where the rate is constant.
    best_constant: the best constant rate; the batch or decay where these were varied.
    error: predicted at the end. baseline: that of the best constant rate, or of the problem as it was given where batch
        or decay were varied.
    compared: the problem of the baseline.
    floor: what no rate can take off the error.
    theory: which theory predicts it. evaluations: how many schedules were tried.
    """

    problem: Problem
    start: Start
    time: float
    vary: str
    times: Array
    rates: Array
    best_constant: float
    error: float
    baseline: float
    compared: Problem
    floor: float
    theory: str
    evaluations: int

    @property
    def gain(self) -> float:
        """Share of the baseline's error above the floor that the plan saves."""
        return 1 - (self.error - self.floor) / (self.baseline - self.floor)

    def __repr__(self) -> str:
        above = f" above the floor {self.floor:.4g}" if self.floor else ""
        told = {
            "rate": f"best constant rate {self.best_constant:.3g}",
            "batch": f"batch {self.compared.update.batch}, as given",
            "decay": f"decay {self.compared.algorithm.decay:g}, as given",
        }[self.vary]
        lines = [f"plan for time {self.time:g}, {self.problem.describe_networks()} ({self.theory})"]
        lines.append(f"  {told}: error {self.baseline:.4g}")
        if self.vary == "rate":
            some = np.unique(np.linspace(0, self.times.size - 1, 7).round().astype(int))
            lines.append(f"  best schedule, {self.times.size} knots: error {self.error:.4g}")
            lines.append("    time " + "".join(f"{t:>9.3g}" for t in self.times[some]))
            lines.append("    rate " + "".join(f"{r:>9.3g}" for r in self.rates[some]))
        else:
            lines.append(f"  best {self.vary} {self.best_constant:.4g}: error {self.error:.4g}")
        found = f"found by {self.evaluations} evaluations; nothing was trained"
        lines.append(f"  {self.gain:.0%} less error{above}, {found}")
        return "\n".join(lines)

    def check(self, runs: int = 100, seed: int = 0, *, progress: bool = True) -> PlanCheck:
        """Runs with the plan and without it: of the overlap chain, `sample`; on labelled rows of training, `train`.

        Runs that diverge have infinite errors.
        """
        if self.start.size is None:
            raise InputError("start: runs need a size; give the start one by Start.at_size, or draw it")
        runs = whole("runs", runs, least=2)
        ends: list[Array] = []
        for problem, last in ((self.problem, self.time), (self.compared, self._compared_time)):
            way = train if problem.learns_rows else sample
            ends.append(errors_of_runs(way, problem, self.start, [last], runs, seed, progress=progress)[:, -1])
        return PlanCheck(self, *ends)

    @property
    def _compared_time(self) -> float:
        """When the baseline has seen as many samples."""
        return self.time * self.problem.update.batch / self.compared.update.batch

    def plot(self) -> Figure:
        """The schedule beside the best constant rate, and the error of both, against the samples seen."""
        from ..plot.palette import COLOURS, panels

        figure, (rate, error) = panels(1, 2, (9, 3.5))
        for problem, last, colour, style, name in (
            (self.problem, self.time, COLOURS[0], "-", "plan"),
            (self.compared, self._compared_time, "k", "--", "best constant" if self.vary == "rate" else "as given"),
        ):
            at = np.linspace(0.0, last, 200)
            samples = problem.update.batch * at
            rate.plot(samples, problem.update.rate.at(at), style, color=colour, label=f"{name}: {self.vary}")
            curve = objective(problem, self.start, last).curve(problem, at) + self.floor
            error.plot(samples, curve, style, color=colour, label=f"{name}: {curve[-1]:.3g} at the end")
        if self.vary == "rate":
            rate.plot(self.problem.update.batch * self.times, self.rates, ".", color=COLOURS[0])
        rate.set(xlabel="samples per input dimension", ylabel="rate", yscale="log")
        error.set(xlabel="samples per input dimension", ylabel=f"error ({self.theory})", yscale="log")
        error.legend()
        return figure


@dataclass(frozen=True, eq=False)
class PlanCheck:
    """Last errors of runs with a plan, (runs,), and of its baseline; infinite where a run diverged."""

    plan: TrainingPlan
    planned: Array
    compared: Array

    @property
    def gain(self) -> float | None:
        """Share of the baseline's error above the floor that was saved in these runs; None if any diverged."""
        floor = self.plan.floor
        if diverged(self.planned) or diverged(self.compared):
            return None
        return 1 - (float(self.planned.mean()) - floor) / (float(self.compared.mean()) - floor)

    @property
    def gain_error(self) -> float:
        """Standard error of `gain` over runs; infinite where any diverged."""
        if self.gain is None:
            return np.inf
        planned, compared = (float(x.std(ddof=1)) / np.sqrt(x.size) for x in (self.planned, self.compared))
        above = float(self.compared.mean()) - self.plan.floor
        return float(np.hypot(planned, (1 - self.gain) * compared) / abs(above))

    def __repr__(self) -> str:
        lines = [f"check of the plan by {self.planned.size} runs"]
        for name, predicted, runs in (
            ("plan", self.plan.error, self.planned),
            ("baseline", self.plan.baseline, self.compared),
        ):
            lines.append(f"  {name}: predicted {predicted:.4g}, runs {in_words(runs)}")
        if self.gain is not None:
            lines.append(
                f"  error above the floor saved: predicted {self.plan.gain:.0%}, "
                f"runs {self.gain:.0%} ± {100 * self.gain_error:.2g}%"
            )
        return "\n".join(lines)


@overload
def optimise(
    problem: Problem,
    start: Start,
    time: float,
    vary: str = ...,
    knots: int | ArrayLike = ...,
    *,
    bounds: tuple[float, float] | None = ...,
    progress: bool = ...,
) -> TrainingPlan: ...


@overload
def optimise(
    problem: Problem,
    start: Start,
    time: Sequence[float] | Array,
    vary: str = ...,
    knots: int | ArrayLike = ...,
    *,
    bounds: tuple[float, float] | None = ...,
    progress: bool = ...,
) -> tuple[TrainingPlan, ...]: ...


@checked
def optimise(
    problem: Problem,
    start: Start,
    time: Any,
    vary: str = "rate",
    knots: int | ArrayLike = 15,
    *,
    bounds: tuple[float, float] | None = None,
    progress: bool = True,
) -> TrainingPlan | tuple[TrainingPlan, ...]:
    """The rates, the batch or the decay that leave the smallest error at `time`, by theory.

    Parameters
    ----------
    problem: with `OnlineSGD`; its rate says where to look, the rest of its algorithm is kept. A `readout_rate` of its
        own is kept too.
    time: when the error is asked for; several times give one plan each.
    vary: ``"rate"``: a schedule, linear between knots; ``"batch"``: one batch for all steps, at the rate of the problem
        and as many samples as it sees until `time` (steps are then fewer, and so is the time of the plan);
        ``"decay"``: one weight decay.
    knots: of the schedule: how many, dense at both ends, or their times.
    bounds: smallest and largest rate, batch or decay; of a rate by default a hundredth and a hundred times that of the
        problem. A trial within them that diverges is left out.
    progress: whether to show how far it is, in a terminal or a notebook; how long it takes at most, not how long.

    The error is the exact mean over runs for linear networks where the start has a size, with momentum or memory too,
    and that of infinite size otherwise; a schedule of a committee is a local optimum. The batch and the decay are one
    number each, since `OnlineSGD` takes no others: their best values may be sought beside a schedule of the rate.
    """
    check(problem, start)
    if not is_one_pass(problem):
        raise InputError(
            f"algorithm: optimise is for one-pass SGD, got {type(problem.algorithm).__name__}; without its noise the "
            "largest rate is the best, and full batches have their own theory"
        )
    problem.data.check_theory(start.size)
    if not problem.data.commuting:
        raise InputError(
            "data: schedules are not searched for on covariances that do not commute, whose every solution takes "
            "seconds; compare a few rates by solve, or use covariances that commute"
        )
    if problem.data.mixture_strength(start.size) > WEAK:
        raise InputError(
            "data: components of this latent differ too much for the equations that optimise varies; compare a few "
            "schedules by solve"
        )
    ways = {"rate": _best_rates, "batch": _best_batch, "decay": _best_decay}
    if vary not in ways:
        raise unknown("vary", str(vary), list(ways))
    if vary not in {field.name for field in fields(problem.algorithm)}:
        raise InputError(f"vary: {type(problem.algorithm).__name__} has no {vary} to vary; use vary='rate'")
    if numbers("time", time).ndim:
        return tuple(
            optimise(problem, start, float(t), vary, knots, bounds=bounds, progress=progress)
            for t in array("time", time, (None,))
        )
    time = number("time", time, above=0)
    if start.size is not None and time * start.size < 1:
        raise InputError(f"time: {time:g} is less than one step at size {start.size}; use at least 1/size")
    judge = objective(problem, start, time)
    if vary != "rate" and not _is_count(knots):
        raise InputError(f"knots: a {vary} is one number; leave knots out")
    with bar(TRIALS[vary], "optimise, at most", "trial", shown=progress) as told, without_bars():
        return ways[vary](judge, start, bounds, knots, told.update)


def _limits(bounds: tuple[float, float] | None, low: float, high: float) -> tuple[float, float]:
    if bounds is None:
        return low, high
    ends = listed("bounds", bounds, "a smallest and a largest value")
    if len(ends) != 2:
        raise InputError(f"bounds: expected a smallest and a largest value, got {shown(bounds)}")
    low, high = (number(f"bounds[{i}]", x, above=0) for i, x in enumerate(ends))
    if low >= high:
        raise InputError(f"bounds: expected a smallest and a larger value, got {low:g} and {high:g}")
    return low, high


def _is_count(knots: Any) -> bool:
    """Whether knots are a number of them, and not their times."""
    return numbers("knots", knots).ndim == 0


def _largest_rate(problem: Problem, time: float) -> float:
    rate = problem.update.rate
    return float(np.max(rate.at(np.array([0.0, *(t for t in rate.knots if t <= time), time]))))


def _best_rates(judge: Objective, start: Start, bounds: Any, knots: Any, report: Report) -> TrainingPlan:
    problem, time = judge.problem, judge.last
    if not _is_count(knots):
        times = array("knots", knots, (None,))
        if times.size < 2 or (np.diff(times) <= 0).any() or times[0] < 0 or times[-1] > time:
            raise InputError(f"knots: expected increasing times from 0 to {time:g}, got {shown(knots)}")
    else:
        times = knot_times(time, whole("knots", knots, least=2, most=1000))
    centre = _largest_rate(problem, time)
    low, high = _limits(bounds, centre / WIDTH, centre * WIDTH)
    constant = best_constant(lambda rate: judge.searched(with_rate(problem, rate)), low, high, report)
    if not np.isfinite(constant.excess):
        raise NumericalError(
            f"optimise: the error grows without bound at every constant rate from {low:g} to {high:g}; lower bounds",
            quantity="error",
            time=time,
        )
    rate = float(constant.values[0])
    found = best_values(lambda rates: judge.slopes(times, rates), np.full(times.size, rate), low, high, report)
    best = with_rate(problem, Schedule(times, found.values))
    return TrainingPlan(
        best,
        start,
        time,
        "rate",
        times,
        found.values,
        rate,
        judge.excess(best) + judge.floor,
        judge.excess(with_rate(problem, rate)) + judge.floor,
        with_rate(problem, rate),
        judge.floor,
        judge.theory,
        constant.evaluations + found.evaluations,
    )


def _single(
    judge: Objective, start: Start, vary: str, value: float, best: Problem, excess: float, count: int
) -> TrainingPlan:
    """A plan of one number, compared with the problem as it is."""
    problem, size = judge.problem, judge.last * judge.problem.update.batch
    rate = problem.update.rate
    times = np.array(rate.knots) if rate.knots else np.zeros(1)
    before = judge.excess(problem)
    if not np.isfinite(before):
        raise NumericalError(
            "optimise: the error of the problem as it is grows without bound; lower its rate",
            quantity="error",
            time=judge.last,
        )
    return TrainingPlan(
        best,
        start,
        size / best.update.batch,
        vary,
        times,
        rate.at(times),
        value,
        excess + judge.floor,
        before + judge.floor,
        problem,
        judge.floor,
        judge.theory,
        count,
    )


def _best_decay(judge: Objective, start: Start, bounds: Any, knots: Any, report: Report) -> TrainingPlan:
    problem = judge.problem
    low, high = _limits(bounds, 1e-4, 10.0)

    def changed(decay: float) -> Problem:
        return replace(problem, algorithm=replace(problem.algorithm, decay=decay))

    found = best_constant(lambda decay: judge.excess(changed(decay)), low, high, report)
    without = judge.excess(changed(0.0))
    if without <= found.excess and bounds is None:
        return _single(judge, start, "decay", 0.0, changed(0.0), without, found.evaluations + 1)
    value = float(found.values[0])
    return _single(judge, start, "decay", value, changed(value), found.excess, found.evaluations + 1)


def _best_batch(judge: Objective, start: Start, bounds: Any, knots: Any, report: Report) -> TrainingPlan:
    problem = judge.problem
    if problem.update.changes:
        raise InputError("rate: a batch changes how many steps there are, so its schedule would too; use one rate")
    budget = judge.last * problem.update.batch
    most = LARGEST_BATCH if start.size is None else max(1, int(min(LARGEST_BATCH, budget * start.size)))
    low, high = _limits(bounds, 1, most)
    tried: dict[int, float] = {}

    def changed(batch: int) -> Problem:
        return replace(problem, algorithm=replace(problem.algorithm, batch=batch))

    def excess(batch: int) -> float:
        if batch not in tried:
            report()
            tried[batch] = objective(changed(batch), start, budget / batch).excess(changed(batch))
        return tried[batch]

    candidates = np.unique(np.geomspace(np.ceil(low), np.floor(min(high, most)), 30).round().astype(int)).tolist()
    best = min(candidates, key=excess)
    place = candidates.index(best)
    around = candidates[max(0, place - 1)], candidates[min(len(candidates) - 1, place + 1)]
    best = min(np.unique(np.linspace(*around, 25).round().astype(int)).tolist(), key=excess)
    return _single(judge, start, "batch", best, changed(best), excess(best), len(tried))
