"""The truth lies within the stated error: a small version of `make coverage`, and a mutant that it rejects."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from benchmarks import coverage, reference
from benchmarks.coverage import PAGE, ROWS, Outcome
from benchmarks.table import read_section

import overlaps as ov
from overlaps.averages import method_for
from problems import problem

ONCE = {
    "erf, by quadrature, to time 10",
    "tanh, three to five fields",
    "a user's activation, smooth clip",
    "mixture, hinge loss of two ReLU units",
    "mixture, cross-entropy of three and four classes",
    "full batch, by training",
    "strong-mixture equations, one component",
    "strong-mixture equations, faint components",
    "strong-mixture equations, by training",
    "batch, momentum, memory, schedules",
    "Student-t inputs",
    "exact mean of a linear unit",
}
SEEDS = {row: 1 if row in ONCE else 2 if row == "full batch, by more paths" else 3 for row in ROWS}


def outcomes() -> list[Outcome]:
    return [coverage.measure(row, seed) for row, count in SEEDS.items() for seed in range(count)]


def holds(found: list[Outcome]) -> bool:
    """At most one in twenty beyond the stated error, none beyond ten times as much; refusals are rare."""
    ratios = np.array([o.ratio for o in found if np.isfinite(o.ratio)])
    return ratios.size > 0.8 * len(found) and bool(np.mean(ratios > 1) <= 0.05) and bool(ratios.max() <= 10)


def test_stated_errors_hold_and_a_hundredth_of_them_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant states a hundredth of what it measured, as if one solution had been compared with itself."""
    found = outcomes()
    assert holds(found), [o for o in found if not o.ratio <= 1]
    accuracy: Callable[[ov.Trajectory, str], float] = ov.Trajectory.accuracy
    monkeypatch.setattr(ov.Trajectory, "accuracy", lambda self, name: accuracy(self, name) / 100)
    few = [
        coverage.measure(row, seed)
        for row in ("erf, by quadrature", "a user's loss", "full batch, by more paths")
        for seed in (0, 1)
    ]
    assert not holds(few)


def test_reference_averages_are_the_closed_forms() -> None:
    """The route that judges is right itself: erf units by its grid, with label noise."""
    p = problem("erf", 1, 1, label_noise=0.3)
    C, v = np.array([[0.8, 0.3], [0.3, 1.1]]), np.array([1.2])
    from scipy.special import erf

    law = reference.Output(
        lambda x: erf(x / np.sqrt(2)), lambda x: np.sqrt(2 / np.pi) * np.exp(-(x**2) / 2), "square", np.ones(1)
    )
    mine, theirs = reference.Reference(p, law, 150)(C, v), method_for(p, np.ones(1))(C, v)
    for name in ("D", "S", "dv", "error"):
        np.testing.assert_allclose(getattr(mine, name), getattr(theirs, name), rtol=1e-11)


def test_the_page_has_a_table_of_every_row() -> None:
    text = read_section(PAGE, "coverage")
    for row in (*ROWS, "all"):
        assert f"| {row} |" in text
    drawn = int(next(line for line in text.splitlines() if line.startswith("| all |")).split("|")[2])
    assert drawn >= 1000
