"""How a forecast of labelled rows is made: plan, trust, many passes and learning curves, each with its error.

Errors are those of *fresh* rows, so the bias of a fit is taken off, and their standard errors are those of a bootstrap
over rows (`overlaps.plan.rows_task`). What it answers, and an example, are in `overlaps.plan.rows_forecast`.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from ..algorithms import MultiPass, OnlineSGD
from ..data import Samples
from ..interface.checks import whole
from ..interface.errors import InputError
from ..interface.progress import bar, without_bars
from ..laws.ridge import equivalent_error
from ..network.architectures import Committee
from ..problem.start import Start, draw
from ..problem.statement import Problem
from ..trajectory.dataset import SAMPLES, Trajectory
from ..trajectory.scales import solve
from .diverging_runs import diverged
from .optimise import PlanCheck, TrainingPlan, optimise
from .rows_forecast import BAND, MORE, RowsForecast, trained_rows
from .rows_task import Estimates, RowsTask, spread
from .trust import Trust, measure_trust

Array = NDArray[np.float64]
RESAMPLED = 30  # bootstrap samples of the rows
POINTS = 60  # of a learning curve
RUNS = 8, 200  # of each training, of large sets and of small ones
EPOCHS, PASSES = 40, 5e8  # until which many passes are followed: epochs, and steps × columns
WORK = 1e8  # steps × columns of the trainings at one rate
RESAMPLES_OF_PASSES, CHEAP = 10, 2e9  # for their errors, if so many times rows × columns² are no more than this
EXACT = 1e-12  # share of the labels' variance that is no more than rounding
WIDTH = 1000.0  # the best constant rate divided by this is the smallest of a schedule


def forecast_rows(data: Samples, samples: int | None, runs: int | None, seed: int, progress: bool) -> RowsForecast:
    """See `overlaps.forecast`."""
    estimates = Estimates.of(data)
    N, n = data.size, len(data.rows)
    warn_without_noise(data)
    if n < 1.25 * N + 2:
        raise InputError(
            f"data: {n} rows of {N} columns are too few for a forecast of fresh rows; give at least "
            f"{int(1.25 * N) + 2}, or fewer columns"
        )
    samples = n if samples is None else whole("samples", samples, least=N // 2 + 1)
    runs = int(np.clip(WORK / (samples * N), *RUNS)) if runs is None else whole("runs", runs, least=2)
    with bar(6, "forecast", "part", shown=progress) as shown, without_bars():
        problem = Problem(data=data, student=Committee(1, "linear"), algorithm=OnlineSGD(_middle_rate(data)))
        start = draw(problem, N, scale=0.0)
        best = optimise(problem, start, samples / N, knots=2).best_constant
        shown.update()
        last = min(samples, n) / N
        trust = measure_trust(data, estimates, best, last, runs=runs, seed=seed, progress=False)
        shown.update(2)
        bounds = best / WIDTH, max(trust.highest_rate, best)
        plan, later = optimise(problem, start, [samples / N, MORE * samples / N], bounds=bounds)
        check = plan.check(runs, seed, progress=False)
        shown.update()
        passes = _many_passes(problem, data, start, best)
        shown.update()
        tasks: list[RowsTask] = estimates.resampled(RESAMPLED, seed)
        curves = _curves(estimates, plan, samples, _spread(trust), check, seed, tasks)
        shown.update()
    fresh = estimates.fresh
    rates = _rates(later, MORE * samples, N)
    more, more_error = float(fresh.errors(rates)[-1]), spread(np.array([task.last_error(rates) for task in tasks]))
    (few, few_error), (many, many_error) = (_ridge(fresh, tasks, n) for n in (samples, MORE * samples))
    return RowsForecast(
        data,
        samples,
        plan,
        check,
        trust,
        curves,
        fresh.noise / 2,
        float(np.std([task.noise / 2 for task in tasks], ddof=1)),
        passes,
        more,
        (few, many),
        float(np.mean(estimates.targets**2)) / 2,
        _gain_error(plan, tasks, samples),
        float(more_error),
        (few_error, many_error),
    )


def warn_without_noise(data: Samples) -> None:
    """Warn of labels that are a linear map of the columns, within rounding."""
    assert data.targets is not None
    if data.unexplained <= EXACT * float(np.mean(data.targets**2)):
        warnings.warn(
            "y: the labels are a linear map of the columns, within rounding (R^2 is 1), so that there is no noise and "
            "nothing to forecast; if columns are parts of the target, or made of it, leave them out",
            stacklevel=5,
        )


def _gain_error(plan: TrainingPlan, tasks: list[RowsTask], samples: int) -> float:
    """Standard error of the gain of a plan, by tasks of resampled rows."""
    rates = _rates(plan, samples, plan.problem.data.eigenvalues.size), np.full(samples, plan.best_constant)
    planned, constant = (np.array([task.last_error(x) - task.noise / 2 for task in tasks]) for x in rates)
    with np.errstate(invalid="ignore"):
        return float(spread(planned / constant))


def _ridge(fresh: RowsTask, tasks: list[RowsTask], samples: int) -> tuple[float, float]:
    """Error of ridge regression on fresh rows at its best decay, and its standard error by tasks of resampled rows."""

    def error(task: RowsTask, decay: float) -> float:
        live = task.omega > 0
        lam, signal = task.omega[live], (task.omega * task.signal)[live]
        return equivalent_error(lam, signal, task.noise, samples, decay)

    decays = (np.geomspace(1e-5, 1e2, 60) * float(fresh.omega.max())).tolist()
    errors = [error(fresh, decay) for decay in decays]
    best = int(np.argmin(errors))
    # at the best decay the error does not change with it to first order
    return errors[best], float(np.std([error(task, decays[best]) for task in tasks], ddof=1))


def _many_passes(problem: Problem, data: Samples, start: Start, rate: float) -> Trajectory:
    """Theory of many passes over four fifths of the rows, tested on the others."""
    N, trained = data.size, trained_rows(data)
    epochs = min(EPOCHS, PASSES / (trained * N))
    times = np.concatenate([[0.0], np.geomspace(0.05, epochs, POINTS)]) * trained / N
    cheap = RESAMPLES_OF_PASSES * len(data.rows) * N**2 < CHEAP
    return solve(
        replace(problem, algorithm=MultiPass(rate, samples=trained)),
        start,
        times,
        resamples=RESAMPLES_OF_PASSES if cheap else None,
    )


def _middle_rate(data: Samples) -> float:
    """A rate from which to look for the best: a tenth of that at which theory diverges."""
    return 0.1 * 2 / float(np.mean(data.eigenvalues))


def _rates(plan: TrainingPlan, samples: int, size: int) -> Array:
    return plan.problem.update.rate.at(np.arange(samples) / size)


def _spread(trust: Trust) -> float:
    """Standard deviation of runs at the best rate, at the end, relative to their mean; infinite if any diverge."""
    at = int(np.argmin(np.abs(trust.rates - trust.best)))
    if trust.diverged[at]:
        return np.inf
    return float(trust.errors[at, -1] * np.sqrt(trust.runs) / trust.trained[at, -1])


def _curves(
    estimates: Estimates,
    plan: TrainingPlan,
    samples: int,
    constant: float,
    check: PlanCheck,
    seed: int,
    tasks: list[RowsTask],
) -> xr.Dataset:
    """Learning curves of fresh rows with their bands; tasks are of resampled rows."""
    fresh, N = estimates.fresh, estimates.omega.size
    at = np.unique(np.concatenate([[0], np.geomspace(max(1, N / 10), samples, POINTS).round()]).astype(int))
    values: dict[str, Any] = {}
    planned = np.inf if diverged(check.planned) else float(check.planned.std(ddof=1) / check.planned.mean())
    single = {"constant": constant, "plan": planned}
    rates = {"constant": np.full(samples, plan.best_constant), "plan": _rates(plan, samples, N)}
    for name in rates:
        error = fresh.errors(rates[name])[at]
        doubt = spread(np.array([task.rough_errors(rates[name])[at] for task in tasks]))
        # runs spread by little at first: they all start at zero
        width = np.full(at.size, np.inf)
        if np.isfinite(single[name]):
            width = BAND * np.hypot(doubt, single[name] * error * np.minimum(1.0, at / N))
        values |= {
            f"error_{name}": ("sample", error),
            f"error_{name}_low": ("sample", np.maximum(error - width, 0.0)),
            f"error_{name}_high": ("sample", error + width),
        }
    values["rate_plan"] = ("sample", plan.problem.update.rate.at(at / N))
    variance = float(np.mean(estimates.targets**2))
    order = np.argsort(-estimates.omega, kind="stable")
    values["eigenvalue"] = ("level", estimates.omega[order])
    values["explained"] = ("level", (fresh.omega * fresh.signal)[order] / variance)
    return xr.Dataset(values, {"sample": at, "time": ("sample", at / N, {"units": SAMPLES})}, {"seed": seed})
