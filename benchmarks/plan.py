"""Plans: a forecast of labelled rows with its schedule against one training, and large tables in time and memory."""

from __future__ import annotations

import resource
import sys
import time
from dataclasses import replace
from typing import Any

import numpy as np

import overlaps as ov

from .problems import committee
from .table import Row, at_most, duration, times
from .timing import race


def table(rows: int, columns: int) -> tuple[Any, Any]:
    """Gaussian rows of eigenvalues 1/k, with labels that a linear map tells half of."""
    rng = np.random.default_rng(0)
    omega = 1 / np.arange(1, columns + 1)
    X = rng.standard_normal((rows, columns), dtype=np.float32) * np.sqrt(omega / omega.mean()).astype(np.float32)
    y = X @ rng.standard_normal(columns).astype(np.float32) / np.sqrt(columns)
    return X, y.astype(float) + 0.5 * rng.standard_normal(rows)


def _peak() -> float:
    """The most memory that this process has taken so far, in GB."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / (1e9 if sys.platform == "darwin" else 1e6)


def _seconds(what: str, rows: int, columns: int, most: float, memory: float) -> Row:
    X, y = table(rows, columns)
    ov.forecast(ov.Samples(X[:200, :20], y[:200]), progress=False)  # compiled before it is timed
    before = _peak()
    began = time.process_time()
    data = ov.Samples(X, y)
    found = ov.forecast(data, progress=False)
    spent = time.process_time() - began
    peak = _peak()
    problem = replace(found.plan.problem, algorithm=ov.OnlineSGD(found.plan.best_constant))
    began = time.process_time()
    ov.train(problem, found.plan.start, [rows / data.size], runs=1, progress=False)
    run = time.process_time() - began
    began = time.process_time()
    np.linalg.eigh(X.T.astype(float) @ X.astype(float))
    axes = time.process_time() - began
    return Row(
        f"forecast with schedule and verdict, {what}",
        f"{spent:.3g} s",
        f"{spent / run:.3g} times one training that goes through the rows once, {duration(run)}. The process takes "
        f"{peak:.2g} GB at most, table and packages included ({before:.2g} GB before). Principal axes, the search for "
        "the schedule, many passes, and the verdict, which rests on "
        f"{found.trust.runs} trainings at each of {found.trust.rates.size} rates. The limit is linear algebra: one "
        f"covariance and its eigenvectors by LAPACK take {duration(axes)}, and {spent / axes:.2g} times that is all.",
        f"≤ {most:g} s" + f" and {memory:g} GB" * (memory < np.inf),
        spent <= most and peak <= memory,
    )


def forecasts(quick: bool = False) -> list[Row]:
    """From the table to the verdict."""
    if quick:
        return [_seconds("300 rows × 20 columns", 300, 20, 60, np.inf)]
    return [
        _seconds("10⁴ rows × 784 columns", 10_000, 784, 10, np.inf),
        _seconds("2·10⁴ rows × 3072 columns", 20_000, 3072, 60, 4),
    ]


def schedules(quick: bool = False) -> list[Row]:
    """Derivatives with respect to the rates of all steps, and at all knots of a committee's schedule."""
    from overlaps.plan.linear_mean import LinearMean
    from overlaps.plan.objectives import InfiniteSize

    levels, steps, knots = (20, 100, 3) if quick else (668, 10_000, 15)
    omega = 1 / np.arange(1.0, levels + 1)
    ones = np.ones(levels)
    mean = LinearMean(omega / omega.mean(), ones / levels, ones, -ones, ones, levels, 0.5)
    rates = np.linspace(0.6, 0.1, steps)
    problem = committee()
    start = ov.Start.from_overlaps(problem, Q=[[0.25, 0.02], [0.02, 0.2]], R=0.01 * np.eye(2), T=np.eye(2))
    last = 5.0 if quick else 50.0
    judge = InfiniteSize(problem, start, last)
    at, flat = np.linspace(0.0, last, knots), np.full(knots, 0.5)
    stepwise = replace(problem, algorithm=ov.OnlineSGD(ov.Schedule(at, flat)))
    result = race(
        {
            "forward": (lambda: mean(rates), 1),
            "reverse": (lambda: mean.slopes(rates), 1),
            "solution": (lambda: judge.excess(stepwise), 1),
            "differences": (lambda: judge.slopes(at, flat), 1),
        },
        1 if quick else 3,
    )
    return [
        at_most(
            f"derivatives with respect to {steps:,} rates / the error alone, linear student, {levels} levels",
            result.ratio("reverse", "forward"),
            10,
            f"{duration(result.cost('reverse'))} by reverse accumulation and {duration(result.cost('forward'))}; "
            f"differences would take {times(2.0 * steps)}.",
        ),
        at_most(
            f"derivatives at {knots} knots / one solution, committee, K = M = 2",
            result.ratio("differences", "solution"),
            2.0 * knots,
            f"{duration(result.cost('differences'))} and {duration(result.cost('solution'))}: central differences, "
            "each from the state at the knot before.",
        ),
    ]
