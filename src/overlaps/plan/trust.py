"""By how much the theory of Gaussian inputs may be trusted on given rows: short trainings against their prediction.

Two things may fail. Rows are not Gaussian: to second order in the rate SGD feels their fourth moments, of which

    E|x|⁴/(E|x|²)²        for Gaussian inputs of the same spectrum 1 + 2 Σ ω²/(Σ ω)²

is the most important number; it is large where the lengths of rows differ much, as those of bright and dark images do,
or where rows have heavy tails. This is measured by training on the rows themselves at several rates, and grows with the
rate. And rows are few: what was estimated from them is uncertain, which is measured by one pass over four fifths of the
rows, tested on the fifth that is held out, of all classes if labels are classes.

`Trust.within(rate)` is the relative deviation of trainings on these rows that has to be reckoned with: the one
measured, interpolated in the rate, and 2.5 standard errors of it. `Trust.fresh` is that of fresh rows: the one of rows
held out, or two standard errors of it if they are more. Measured and predicted errors of rows held out are compared as
logarithms, so that half of what was predicted is as far off as twice of it.

Where trainings are too far from the theory of Gaussian inputs, the one with measured fourth moments is compared with
them as well (`overlaps.online.labelled_rows`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..algorithms import OnlineSGD
from ..compiled.functions import kept
from ..data import Samples
from ..data.splits import shuffled
from ..interface.errors import NumericalError
from ..network.architectures import Committee
from ..problem.start import draw
from ..problem.statement import Problem
from ..trajectory.scales import solve, train
from .diverging_runs import diverged, errors_of_runs
from .rows_task import Estimates, spread

Array = NDArray[np.float64]
LARGEST = 0.1  # deviation beyond which theory is not to be trusted
SURE = 2.5  # standard errors of what is measured
KNOWN, APART = 2.0, 4.0  # standard errors to which the error of fresh rows is known, and by which rows held out are off
MEASURABLE = 2e11  # most rows × columns² for fourth moments to be measured, some ten seconds
UNUSUAL = 1.5  # ratio of fourth moments to Gaussian ones that is named as the reason
BRIGHT = 0.01  # share of the rows, those of largest length
TIMES = 4  # at which a training is compared with its prediction
LADDER = (1 / 3, 1.0, 3.0, 9.0)  # rates that are tried, in units of the one that is to be used
HUGE = 1e100  # losses beyond which a pass has diverged
MANIFOLD = 10.0  # relative deviation from which errors are told as multiples


@dataclass(frozen=True, eq=False)
class HeldOut:
    """One pass over four fifths of the rows, tested on the others, at the end: predicted and measured, with errors.

    rows: how many were held out. doubt: standard error of the prediction, of the estimates. error: standard error of
    what was measured, over runs and the rows held out. Where a pass diverged, what was measured is infinite and its
    error is zero.
    """

    rows: int
    predicted: float
    doubt: float
    measured: float
    error: float

    @property
    def deviation(self) -> float:
        """Relative to the prediction."""
        return self.measured / self.predicted - 1

    @property
    def standard_error(self) -> float:
        """Of the deviation."""
        return float(np.hypot(self.doubt, self.error)) / self.predicted

    @property
    def apart(self) -> float:
        """|log measured/predicted| in standard errors; infinite where the pass diverged."""
        if not np.isfinite(self.measured):
            return np.inf
        if self.predicted <= 0 or self.measured <= 0:  # the bias that is taken off may be more than there is
            doubt = float(np.hypot(self.doubt, self.error))
            return 0.0 if self.measured == self.predicted else abs(self.measured - self.predicted) / max(doubt, 1e-300)
        doubt = float(np.hypot(self.doubt / self.predicted, self.error / self.measured))
        return self._logarithm / max(doubt, 1e-300)

    @property
    def _logarithm(self) -> float:
        return abs(float(np.log(self.measured / self.predicted)))

    @property
    def agrees(self) -> bool:
        """Whether measured and predicted are within a tenth of each other, or four standard errors, as logarithms."""
        if self.apart <= APART:
            return True
        near = self.predicted > 0 and 0 < self.measured < np.inf
        return near and self._logarithm <= np.log1p(LARGEST)

    def __repr__(self) -> str:
        seen = f"{self.measured:.4g} ± {self.error:.1g}" if np.isfinite(self.measured) else "it diverged"
        return (
            f"one pass tested on {self.rows} rows held out: {seen}, predicted from the others {self.predicted:.4g} ± "
            f"{self.doubt:.1g}"
        )


@dataclass(frozen=True, eq=False)
class Trust:
    """How far trainings on the rows are from theory.

    Attributes
    ----------
    rates: at which rows were trained on, rising, (rates,).
    times: at which trainings were compared, (times,).
    predicted, trained, errors: error by theory, mean over runs, and standard error of the mean, (rates, times);
        infinite where a run diverged.
    runs: of each training. diverged: how many of them diverged, (rates,).
    fourth, gaussian: E|x|⁴/(E|x|²)² of the rows, and of Gaussian inputs with their spectrum.
    bright: share of Σ|x|² in the hundredth of the rows of largest length.
    best: the rate that is to be used.
    held_out: the pass over a part of the rows; None where they are too few for it.
    measured: error at the best rate by the theory with measured fourth moments, (times,); None where that of Gaussian
        inputs is near enough, where trainings diverge, and where rows are too many for it.
    """

    rates: Array
    times: Array
    predicted: Array
    trained: Array
    errors: Array
    runs: int
    diverged: NDArray[np.int64]
    fourth: float
    gaussian: float
    bright: float
    best: float
    held_out: HeldOut | None
    measured: Array | None = None

    @property
    def deviations(self) -> Array:
        """Of the trainings from theory, relative, (rates, times)."""
        return self.trained / self.predicted - 1

    def within(self, rate: float) -> float:
        """Relative deviation from theory that has to be reckoned with at a rate.

        Infinite where runs diverged, and beyond the rates that were tried, where nothing is promised.
        """
        bars = _bars(self.predicted, self.trained, self.errors)
        if rate > self.rates[-1] * (1 + 1e-9):
            return np.inf
        known = np.isfinite(bars)
        after = int(np.searchsorted(self.rates, rate))
        if not known[max(0, after - 1) : after + 1].all():
            return np.inf
        return float(np.interp(rate, self.rates, bars))

    @property
    def within_measured(self) -> float | None:
        """The same at the best rate for the theory with measured fourth moments; None where it was not asked."""
        if self.measured is None:
            return None
        at = self._place
        return float(_bars(self.measured, self.trained[at], self.errors[at]))

    @property
    def fresh(self) -> float | None:
        """Relative deviation that has to be reckoned with on fresh rows; None where rows are too few to hold some out.

        The larger of that of the rows held out and of two standard errors of it.
        """
        held = self.held_out
        return None if held is None else max(abs(held.deviation), KNOWN * held.standard_error)

    @property
    def _place(self) -> int:
        return int(np.argmin(np.abs(self.rates - self.best)))

    @property
    def reason(self) -> str:
        """Why theory is not to be trusted; empty where it is."""
        bar = self.within(self.best)
        if bar > LARGEST:
            return f"{self._words(bar)} at rate {self.best:.3g}; {self.shape}{self._instead}"
        held = self.held_out
        if held is not None and not held.agrees:
            if not np.isfinite(held.measured):
                return "passes over a part of the rows diverge"
            return f"rows held out are off by {held.deviation:+.0%}, {held.apart:.0f} standard errors of the logarithm"
        return ""

    @property
    def _instead(self) -> str:
        """In words, how near the theory with measured fourth moments is; empty where it was not asked."""
        bar = self.within_measured
        if bar is None:
            return ""
        if bar > LARGEST:
            return f"; with fourth moments measured from the rows theory is off by up to {percent(bar)} too"
        return (
            "; with fourth moments measured from the rows, solve(..., system='measured-moments'), theory may be "
            f"trusted within {percent(bar)} on these rows"
        )

    def _words(self, bar: float) -> str:
        at = self._place
        if self.diverged[at]:
            return f"{self.diverged[at]} of {self.runs} trainings diverge"
        if not np.isfinite(bar):
            return "trainings diverge at the rates around it, and nothing is promised"
        worst = int(np.argmax(np.abs(self.deviations[at])))
        deviation, error = self.deviations[at, worst], self.errors[at, worst] / self.predicted[at, worst]
        if deviation > MANIFOLD:
            return f"training has {1 + deviation:.1e} ± {error:.1g} times the error of theory"
        return f"training is {deviation:+.0%} ± {error:.0%} off theory"

    @property
    def highest_rate(self) -> float:
        """The largest rate at which theory may be trusted; zero where there is none."""
        tried = np.geomspace(self.rates[0], self.rates[-1], 200)
        good = np.array([self.within(rate) <= LARGEST for rate in tried])
        return float(tried[good].max()) if good.any() else 0.0

    @property
    def shape(self) -> str:
        """In words, how the rows differ from Gaussian ones."""
        ratio = f"E|x|^4/(E|x|^2)^2 is {self.fourth:.3g}, of Gaussian inputs {self.gaussian:.3g}"
        if self.fourth * UNUSUAL < self.gaussian:
            return f"rows differ less in length than Gaussian ones: {ratio}"
        if self.fourth < UNUSUAL * self.gaussian:
            return f"rows have the lengths of Gaussian ones ({ratio}), so their shape or the noise must differ"
        carried = f"the {BRIGHT:.0%} longest rows carry {self.bright:.0%} of the variance"
        return f"rows are bright and dark, or have heavy tails: {ratio}, and {carried}"

    @property
    def trusted(self) -> bool:
        """Whether theory may be trusted at the rate that is to be used."""
        return not self.reason

    @property
    def words(self) -> str:
        """The verdict in a line."""
        if not self.trusted:
            return f"do not trust the theory on these data: {self.reason}"
        known = "rows are too few to hold some out, so that nothing is known of fresh rows"
        if self.fresh is not None:
            known = f"the error of fresh rows is known to ±{percent(self.fresh)}"
        bar = percent(self.within(self.best))
        return f"theory may be trusted within {bar} on these rows at rate {self.best:.3g}; {known}"

    def __repr__(self) -> str:
        lines = [f"verdict: {self.words}"]
        if self.trusted and self.fourth > UNUSUAL * self.gaussian:
            lines.append(f"  although {self.shape}")
        for rate, predicted, trained, error, lost in zip(
            self.rates, self.predicted[:, -1], self.trained[:, -1], self.errors[:, -1], self.diverged, strict=True
        ):
            seen = f"{lost} diverged" if lost else f"error {trained:.4g} ± {error:.1g}"
            lines.append(f"  {self.runs} trainings at rate {rate:.3g}: {seen}, predicted {predicted:.4g}")
        if self.held_out is not None:
            lines.append(f"  {self.held_out!r}")
        return "\n".join(lines)


def measure_trust(
    data: Samples, estimates: Estimates, best: float, last: float, *, runs: int, seed: int, progress: bool
) -> Trust:
    """Train on the rows until `last` at the rate `best` and at larger ones, and over a part of the rows in one pass."""
    N, n = data.size, len(data.rows)
    lengths = np.einsum("ij,ij->i", data.rows, data.rows)
    omega = data.eigenvalues
    fourth = float(np.mean(lengths**2) / np.mean(lengths) ** 2)
    gaussian = 1 + 2 * float(omega @ omega) / float(omega.sum()) ** 2
    longest = np.sort(lengths)[-max(1, round(BRIGHT * n)) :]
    stops = np.unique(np.geomspace(max(1, N / 4), max(4, last * N), TIMES).round().astype(int))
    rates, predicted = _stable_rates(estimates, best, stops)
    problem = Problem(data=data, student=Committee(1, "linear"), algorithm=OnlineSGD(best))
    start = draw(problem, N, scale=0.0)
    trained, errors = np.full(predicted.shape, np.inf), np.full(predicted.shape, np.inf)
    lost = np.zeros(rates.size, np.int64)
    for i, rate in enumerate(rates.tolist()):
        at_rate = replace(problem, algorithm=OnlineSGD(rate))
        found = errors_of_runs(train, at_rate, start, stops / N, runs, seed, progress=progress)
        finite, lost[i] = np.isfinite(found).all(0), diverged(found)
        trained[i, finite] = found[:, finite].mean(0)
        errors[i, finite] = found[:, finite].std(0, ddof=1) / np.sqrt(runs)
    held = held_out_pass(estimates, best, runs=runs, seed=seed, classes=data.labels.numbers if data.classes else None)  # type: ignore[union-attr]
    found = Trust(
        rates,
        stops / N,
        predicted,
        trained,
        errors,
        runs,
        lost,
        fourth,
        gaussian,
        float(longest.sum() / lengths.sum()),
        best,
        held,
    )
    if not LARGEST < found.within(best) < np.inf or float(n) * N**2 > MEASURABLE:
        return found
    try:
        measured = solve(problem, start, stops / N, system="measured-moments").data["error"].values[0]
    except NumericalError:
        return found
    return replace(found, measured=measured)


def percent(share: float) -> str:
    """A share in per cent, to two digits."""
    return f"{100 * share:.2g} %" if share < 0.995 else f"{100 * share:.0f} %"


def _bars(predicted: Array, trained: Array, errors: Array) -> Array:
    """The largest relative deviation over times, the last axis, with its standard errors."""
    return (np.abs(trained / predicted - 1) + SURE * errors / predicted).max(-1)


def _stable_rates(estimates: Estimates, best: float, stops: NDArray[np.int64]) -> tuple[Array, Array]:
    """Rates to train at, (rates,), and errors there by theory at the stops, (rates, stops), which are bounded."""

    def foretold(rates: Array) -> tuple[Array, NDArray[np.bool_]]:
        errors = np.array([estimates.plain.errors(np.full(stops[-1], rate))[stops] for rate in rates])
        least = estimates.plain.errors(np.zeros(1))[0]
        return errors, np.isfinite(errors).all(1) & (errors[:, -1] < 2 * least + estimates.plain.noise)

    rates = best * np.array(LADDER)
    stable = foretold(rates)[1]
    if not stable.all():  # nothing is promised beyond the last, so that it should be near the edge of stability
        first = max(1, int(stable.argmin()))
        rates = np.append(rates[:first], np.sqrt(rates[first - 1] * rates[first]))
    predicted, stable = foretold(rates)
    return rates[stable], predicted[stable]


def held_out_pass(
    estimates: Estimates, rate: float, *, runs: int, seed: int, classes: NDArray[np.int64] | None = None
) -> HeldOut | None:
    """One pass over four fifths of the rows in random orders, and what was to be expected on the others.

    classes: of the rows, (n,), which have the same shares in both parts.
    """
    n, N = estimates.rows.shape
    rng = np.random.default_rng([seed, 5])
    held = np.zeros(n, bool)
    held[shuffled(rng, n, classes)[: n // 5]] = True
    count = n - int(held.sum())
    if count < 1.25 * N + 2 or held.sum() < 10:
        return None
    rates = np.full(count, rate)
    predicted = float(estimates.without(held).errors(rates)[-1])
    ends = np.array([task.rough_errors(rates)[-1] for task in estimates.resampled(20, seed)])
    rows, targets, places = estimates.rows, estimates.targets, np.flatnonzero(~held)
    test, labels = rows[held], targets[held]
    losses = np.empty((runs, len(test)))
    for run in range(runs):
        theta = np.zeros(N)
        one_pass(theta, rows, targets, rng.permutation(places), rates)
        with np.errstate(over="ignore", invalid="ignore"):
            losses[run] = 0.5 * (labels - test @ theta) ** 2
    # the prediction was made from four fifths of the rows
    doubt = float(spread(ends)) * np.sqrt(n / count)
    if not np.isfinite(losses).all() or losses.max() > HUGE:
        return HeldOut(len(test), predicted, doubt, np.inf, 0.0)
    each = losses.mean(0)
    over_rows = float(each.std(ddof=1)) / np.sqrt(len(test))
    over_runs = float(losses.mean(1).std(ddof=1)) / np.sqrt(runs)
    return HeldOut(len(test), predicted, doubt, float(each.mean()), float(np.hypot(over_rows, over_runs)))


@kept(nogil=True, fastmath={"reassoc", "contract"})
def one_pass(theta, rows, targets, order, rates):  # pragma: no cover - compiled
    """Steps of SGD on the square loss in the order of rows given, each once: θ ← θ − (η/N) (θ·x − y) x, in place."""
    N = theta.size
    for i in range(order.size):
        x = rows[order[i]]
        field = 0.0
        for k in range(N):
            field += theta[k] * x[k]
        pull = rates[i] / N * (targets[order[i]] - field)
        for k in range(N):
            theta[k] += pull * x[k]
