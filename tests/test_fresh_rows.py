"""Theory from rows for other rows of the same population: its bias, how often its standard error holds, and `compare`.

Coverage is counted over tables of a known population, at two standard errors. Where 90 in 100 hold, fewer than 82 of a
hundred have a chance of 5e-3; residuals of the fit itself, instead of fits without the row, hold 82 times on average.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from benchmarks import fresh_rows
from benchmarks.fresh_rows import Population
from benchmarks.table import read_section

import overlaps as ov
from overlaps.data.weighted_rows import weighted, without_own_pull

LINEAR = ov.Committee(1, "linear")
N = 12
GAUSSIAN = Population(N)


def table(count: int, seed: int) -> ov.Samples:
    return GAUSSIAN.table(count, seed)


def learn(data: ov.Samples, algorithm: Any = None, student: ov.Committee = LINEAR) -> tuple[ov.Problem, ov.Start]:
    problem = ov.Problem(data=data, student=student, algorithm=algorithm or ov.OnlineSGD(0.3))
    return problem, ov.draw(problem, data.size, scale=0.0)


def test_the_formula_of_the_counts_is_solve() -> None:
    """The counts of `benchmarks.fresh_rows` are those of `solve(resamples=)`, and its truth that of a large table."""
    data = table(80, 0)
    problem, start = learn(data)
    theory = ov.solve(problem, start, fresh_rows.TIMES, resamples=10).data
    value, error = fresh_rows.fresh(data, 10)
    np.testing.assert_allclose(theory["error"].values, fresh_rows.by_formula(data)["error"].values, rtol=1e-9)
    np.testing.assert_allclose(theory["error_fresh"].values[0], value, rtol=1e-7)
    np.testing.assert_allclose(theory["error_standard_error"].values[0], error, rtol=1e-7)
    for population, _ in fresh_rows.ROWS.values():
        large = fresh_rows.by_formula(population.table(20_000, 0))["error"].values[0]
        np.testing.assert_allclose(large, population.truth, rtol=0.05)


@pytest.mark.parametrize("row", ["12 columns, 60 rows", "12 columns, 150 rows, uniform"])
def test_the_truth_lies_within_the_stated_error(row: str) -> None:
    """Of a hundred tables, at each of four times; less often without the bias taken off."""
    population, rows = fresh_rows.ROWS[row]
    within, value, error = fresh_rows.measure(population, rows, 100, 12)
    assert (within.sum(0) >= 82).all(), within.sum(0)
    assert within.mean() >= 0.88
    # no bias is left, at four standard errors of the mean over tables
    assert (np.abs(value.mean(0) - population.truth) < 4 * value.std(0) / 10).all()
    # not a promise that is kept by promising little
    assert (error.mean(0) < 1.5 * value.std(0)).all()
    plain = np.array([fresh_rows.by_formula(population.table(rows, s))["error"].values[0] for s in range(100)])
    assert (np.abs(plain[:, -1] - population.truth[-1]) <= 2 * error[:, -1]).sum() < (85 if rows == 60 else 95)


def test_the_page_has_every_row() -> None:
    page = read_section(fresh_rows.PAGE, "rows")
    assert all(f"| {name} |" in page for name in fresh_rows.ROWS)


def test_weights_are_rows_that_come_again() -> None:
    """Whole weights against a table with copies, standardised and centred with them."""
    rng = np.random.default_rng(0)
    count = rng.integers(0, 3, 60)
    for options in ({}, {"standardise": True}, {"centre": False}):
        rows = rng.standard_normal((60, 3)) * [1.0, 2.0, 0.2] + 1.0
        labels = rows @ [1.0, 0.3, 2.0] + rng.standard_normal(60)
        data = ov.Samples(rows, labels, **options)
        with pytest.warns(UserWarning, match="repeated"):
            copies = ov.Samples(np.repeat(rows, count, 0), np.repeat(labels, count), **options)
        found = weighted(data, count.astype(float), data.targets)
        np.testing.assert_allclose(found.eigenvalues, copies.eigenvalues)
        assert found.unexplained == pytest.approx(copies.unexplained)
        np.testing.assert_allclose(found.own_teacher**2, copies.own_teacher**2)  # pyright: ignore


def test_a_column_that_repeats_another_stays() -> None:
    """Directions without variance are there in every resample, so that the size is the same."""
    rows = np.random.default_rng(0).standard_normal((60, 3))
    data = ov.Samples(np.column_stack([rows, rows[:, 0]]), rows[:, 0] + rows[:, 1] ** 2)
    assert weighted(data, np.ones(60), data.targets).size == data.size == 4
    assert np.isfinite(ov.solve(*learn(data), [1.0], resamples=10).data["error_standard_error"]).all()


def test_residuals_of_fits_without_the_row() -> None:
    """Against fits that leave each row out."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((20, 3))
    labels = rows @ [1.0, 0.3, 2.0] + rng.standard_normal(20)
    data = ov.Samples(rows, labels)
    found = without_own_pull(data) - data.rows @ data.own_teacher[0] / np.sqrt(3)  # pyright: ignore
    for i in range(20):
        keep = np.arange(20) != i
        design = np.column_stack([np.ones(20), rows])
        fit = np.linalg.lstsq(design[keep], labels[keep], rcond=None)[0]
        assert found[i] == pytest.approx(labels[i] - design[i] @ fit)


# --- compare ----------------------------------------------------------------------------------------------------------

TIMES = [0.5, 3.0, 12.0]


def test_the_same_rows_are_the_population() -> None:
    """Resamples add to a theory and change nothing; against training on the same rows they do not count."""
    problem, start = learn(table(200, 0))
    plain, theory = (ov.solve(problem, start, TIMES, resamples=k) for k in (None, 10))
    for name in plain.data:
        xr.testing.assert_equal(plain.data[name], theory.data[name])
    runs = ov.train(problem, start, TIMES, runs=40, seed=0, progress=False)
    a, b = (ov.compare(side, runs, resolve=0.5, progress=False) for side in (plain, theory))
    assert a.verdict == b.verdict == "agrees"
    xr.testing.assert_equal(a.table, b.table)


def test_other_rows_count_what_was_estimated(tmp_path: Path) -> None:
    """A theory without the error of its rows is not compared with others; with it the error is that of both tables."""
    (p, start), (q, other) = learn(table(6000, 0)), learn(table(3000, 1))
    runs = ov.train(q, other, TIMES, runs=40, seed=0, progress=False)
    with pytest.raises(ov.InputError, match=r"^theory: it was solved for other rows .*resamples=30"):
        ov.compare(ov.solve(p, start, TIMES), runs)
    theory = ov.solve(p, start, TIMES, resamples=15)
    found = ov.compare(theory, runs, resolve=0.5)
    assert found.verdict == "agrees"
    at = found.table.isel(point=np.flatnonzero((found.table["variable"] == "error").values))
    d = {name: theory.data[name].values[0] for name in ("error", "error_fresh", "error_standard_error")}
    seen = runs.data["error"]
    expected = d["error_fresh"] + 2 * (d["error"] - d["error_fresh"])
    np.testing.assert_allclose(at["deviation"], seen.mean("run") - expected)
    larger = np.maximum(seen.mean("run").values / expected, 1)
    own = seen.std("run", ddof=1).values / np.sqrt(40)
    np.testing.assert_allclose(at["standard_error"], np.hypot(own, d["error_standard_error"] * np.sqrt(3) * larger))
    again = ov.compare(ov.load(theory.save(tmp_path / "a.nc")), ov.load(runs.save(tmp_path / "b.nc")), resolve=0.5)
    assert again.verdict == "agrees" and "on other rows of the same population: error" in repr(theory)
    theory.plot("error")


def test_another_population_is_found() -> None:
    """Labels with twice the noise: rows of theirs are not those of the theory."""
    problem, start = learn(table(400, 0))
    rng = np.random.default_rng(5)
    rows = rng.standard_normal((400, N)) * np.sqrt(GAUSSIAN.omega)
    q, other = learn(ov.Samples(rows, rows @ GAUSSIAN.theta + rng.standard_normal(400)))
    runs = ov.train(q, other, TIMES, runs=20, seed=0, progress=False)
    assert ov.compare(ov.solve(problem, start, TIMES, resamples=15), runs).verdict == "disagrees"


@pytest.mark.parametrize(
    "algorithm",
    [
        ov.OnlineSGD(ov.Schedule([0.0, 12.0], [0.5, 0.1]), batch=2, momentum=0.5),
        ov.MultiPass(0.2, samples=60),
        ov.FullBatch(20, 0.2, ratio=N / 60),
        ov.GradientFlow(0.3),
    ],
    ids=["schedule", "many passes", "full batch", "flow"],
)
def test_z_scores_on_other_rows_have_their_law(algorithm: Any) -> None:
    """Six pairs of tables each, all algorithms of labelled rows, two units: mean square of z near one.

    Points are correlated within a pair, so that the mean of six squares is below 3.7 but for a chance of 1e-3.
    """
    squares = []
    for seed in range(6):
        (p, start), (q, other) = (
            learn(table(150, 20 * seed + k), algorithm, ov.Committee(2, "linear", [1.0, -0.6])) for k in (0, 1)
        )
        times = None if algorithm.times_are_steps else TIMES
        theory = ov.solve(p, start, times, resamples=10)
        if not algorithm.draws_samples:  # nothing to run: theory of the other rows in its place
            runs = ov.solve(q, other, times)
            runs.data.attrs["scale"] = "micro"
            runs = replace(runs, data=xr.concat([runs.data] * 2, "run", data_vars="minimal"))
        else:
            runs = ov.train(q, other, times, runs=20, seed=seed, progress=False)
        z = ov.compare(theory, runs, finite_size=False).table["z"].values
        squares.append(float(np.mean(z**2)))
    assert 0.05 < np.mean(squares) < 3.7, squares


def test_refusals() -> None:
    data = table(100, 0)
    p, start = learn(data)
    random = ov.draw(p, N, seed=1)
    gaussian = ov.Problem(data=ov.GaussianInputs(), teacher=LINEAR, student=LINEAR, algorithm=ov.OnlineSGD(0.1))
    cases: list[tuple[Any, str]] = [
        (lambda: ov.solve(p, start, TIMES, resamples=5), r"^resamples: expected at least 10, got 5"),
        (lambda: ov.solve(p, start, TIMES, resamples=True), r"^resamples: expected a whole number"),
        (lambda: ov.solve(p, random, TIMES, resamples=10), r"^resamples: other rows have other axes.*scale=0.0"),
        (lambda: ov.solve(gaussian, ov.draw(gaussian, 5), [1.0], resamples=10), r"^resamples: .*must be labelled"),
        (
            lambda: ov.solve(p, start, TIMES, resamples=10, system="measured-moments"),
            r"^resamples: fourth moments of the rows are not drawn again",
        ),
        (lambda: ov.solve(*learn(table(15, 0)), TIMES, resamples=10), r"^resamples: 15 rows of 12 columns are too few"),
    ]
    theory = ov.solve(p, start, TIMES, resamples=10)
    q, other = learn(table(100, 1))
    moved = ov.train(q, ov.draw(q, N, seed=1), TIMES, runs=2, progress=False)
    runs = ov.train(q, other, TIMES, runs=2, progress=False)
    smaller = ov.Samples(data.columns[:, :-1], data.targets)
    few = ov.train(*learn(smaller), TIMES, runs=2, progress=False)
    chain = ov.sample(p, start, TIMES, runs=2, progress=False)
    cases += [
        (lambda: ov.compare(theory, moved), r"^simulation: runs on other rows must start from zero weights"),
        (lambda: ov.compare(theory, few), r"^compare: rows of 12 and of 11 dimensions are not from one population"),
        (lambda: ov.compare(chain, runs), r"^theory: runs on other rows differ by chance"),
    ]
    for ask, words in cases:
        with pytest.raises(ov.InputError, match=words):
            ask()
    with pytest.raises(ov.NumericalError, match=r"^resamples: theory of the rows stands.*did not suffice") as caught:
        ov.solve(p, start, TIMES, resamples=10, max_evaluations=1000)
    assert caught.value.partial is not None and "error" in caught.value.partial.data


def test_theory_of_classes_is_not_for_other_rows() -> None:
    rows, kinds = np.random.default_rng(0).standard_normal((120, 3)), np.arange(120) % 2
    sides = []
    for part in (slice(0, 60), slice(60, 120)):
        data = ov.Samples(rows[part] + 0.5 * kinds[part, None], kinds[part])
        p = ov.Problem(data=data, student=ov.Committee(1, "linear"), loss="logistic", algorithm=ov.OnlineSGD(0.5))
        sides.append((p, ov.draw(p, 3, scale=0.0)))
    theory, runs = ov.solve(*sides[0], [1.0]), ov.train(*sides[1], [1.0], runs=5, progress=False)
    with pytest.raises(ov.InputError, match=r"^theory: .*theory of classes does not say what.*MultiPass"):
        ov.compare(theory, runs)
