"""How often the truth lies within the stated error of theory from rows: `python -m benchmarks.fresh_rows`.

Tables of n rows are drawn from populations whose theory is known. Each gives `error_fresh` with its standard error s
at four times (see `overlaps.trajectory.fresh_rows`), here by the recursion in the place of `solve`, which takes a
hundredth of the time; a test says that they are the same. Counted is how often the error of the population lies within
2 s. The table goes into docs/accuracy.md.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

import overlaps as ov
from overlaps.plan.rows_task import RowsTask
from overlaps.trajectory.dataset import Trajectory
from overlaps.trajectory.fresh_rows import with_errors_of_rows

from .table import write_section

Array = NDArray[np.float64]
PAGE = Path(__file__).parents[1] / "docs" / "accuracy.md"
RATE, TIMES = 0.3, np.array([0.0, 0.5, 3.0, 20.0])
TABLES, RESAMPLES = 100, 30


@dataclass(frozen=True)
class Population:
    """Where tables are drawn from: independent coordinates in the principal axes, and labels of a linear map.

    exponent: of the spectrum, k^-(1 + exponent). inputs: law of the coordinates. labels: ``"noisy"``, with Gaussian
    noise of variance 1/4, or ``"classes"``, the sign of the map.
    """

    size: int
    exponent: float = 0.5
    inputs: str = "Gaussian"
    labels: str = "noisy"

    @property
    def omega(self) -> Array:
        omega = np.arange(1.0, self.size + 1) ** -(1 + self.exponent)
        return omega * self.size / omega.sum()

    @property
    def theta(self) -> Array:
        """The map that labels are made by: of variance 3/4."""
        theta = np.cos(np.arange(self.size))
        return theta * np.sqrt(0.75 / (self.omega @ theta**2))

    def table(self, count: int, seed: int) -> ov.Samples:
        """Rows with labels."""
        rng, shape = np.random.default_rng(seed), (count, self.size)
        draws = {
            "Gaussian": lambda: rng.standard_normal(shape),
            "uniform": lambda: rng.uniform(-1, 1, shape) * np.sqrt(3),
            "Student, 6": lambda: rng.standard_t(6, shape) / np.sqrt(1.5),
        }
        rows = draws[self.inputs]() * np.sqrt(self.omega)
        field = rows @ self.theta
        if self.labels == "classes":
            return ov.Samples(rows, field > 0)
        return ov.Samples(rows, field + 0.5 * rng.standard_normal(count))

    @property
    def truth(self) -> Array:
        """Error of the population at TIMES; of Gaussian fields sign has the slope √(2/π)."""
        if self.labels == "classes":
            return curve(RowsTask(self.omega, self.theta**2 * (2 / np.pi) / 0.75, 1 - 2 / np.pi))
        return curve(RowsTask(self.omega, self.theta**2, 0.25))


def curve(task: RowsTask) -> Array:
    """The mean error at TIMES of one-pass SGD from zero weights."""
    steps = np.rint(TIMES * task.omega.size).astype(int)
    return task.errors(np.full(steps[-1], RATE))[steps]


def by_formula(data: Any) -> xr.Dataset:
    """The error of `solve` at TIMES."""
    task = RowsTask(data.eigenvalues, data.own_teacher[0] ** 2 / data.size, data.unexplained)
    return xr.Dataset({"error": (("run", "time"), curve(task)[None])})


def learn(data: ov.Samples) -> tuple[ov.Problem, ov.Start]:
    """The problem of this page, and its start."""
    problem = ov.Problem(data=data, student=ov.Committee(1, "linear"), algorithm=ov.OnlineSGD(RATE))
    return problem, ov.draw(problem, data.size, scale=0.0)


def fresh(data: ov.Samples, resamples: int) -> tuple[Array, Array]:
    """`error_fresh` and `error_standard_error` at TIMES."""
    problem, start = learn(data)
    result = Trajectory(by_formula(data), problem, start)
    again: Any = lambda other, zero: SimpleNamespace(data=by_formula(other.data))  # noqa: E731
    found = with_errors_of_rows(result, problem, start, resamples, again).data
    return found["error_fresh"].values[0], found["error_standard_error"].values[0]


ROWS: dict[str, tuple[Population, int]] = {
    "12 columns, 60 rows": (Population(12), 60),
    "12 columns, 150 rows": (Population(12), 150),
    "60 equal eigenvalues, 300 rows": (Population(60, -1.0), 300),
    "60 columns, 600 rows": (Population(60), 600),
    "12 columns, 150 rows, uniform": (Population(12, inputs="uniform"), 150),
    "12 columns, 150 rows, Student's t with 6": (Population(12, inputs="Student, 6"), 150),
    "12 columns, 150 rows, two classes": (Population(12, labels="classes"), 150),
}


def measure(population: Population, rows: int, tables: int, resamples: int) -> tuple[Array, Array, Array]:
    """Whether the truth is within two standard errors, (tables, times), what is stated and the error, alike."""
    found = np.array([fresh(population.table(rows, seed), resamples) for seed in range(tables)])
    return np.abs(found[:, 0] - population.truth) <= 2 * found[:, 1], found[:, 0], found[:, 1]


def section(tables: int = TABLES, resamples: int = RESAMPLES) -> str:
    """The table, as it stands in the page."""
    lines = [
        "| tables | within 2 standard errors, at each time | bias / standard deviation | stated / standard deviation |",
        "|---|---|---|---|",
    ]
    for name, (population, rows) in ROWS.items():
        within, value, error = measure(population, rows, tables, resamples)
        spread = value.std(0, ddof=1)
        bias, stated = (value.mean(0) - population.truth) / spread, error.mean(0) / spread
        cells = [", ".join(f"{x:.0%}" for x in within.mean(0)), _range(bias, "+.2f"), _range(stated, ".2f")]
        lines.append(f"| {name} | {' | '.join(cells)} |")
        print(lines[-1], file=sys.stderr, flush=True)
    lines += [
        "",
        f"`python -m benchmarks.fresh_rows`: {tables} tables of each kind, {resamples} resamples of each table.",
    ]
    return "\n".join(lines) + "\n"


def _range(values: Array, form: str) -> str:
    return f"{values.min():{form}} to {values.max():{form}}"


if __name__ == "__main__":
    write_section(PAGE, "rows", section())
    print(f"written: docs/{PAGE.name}")
