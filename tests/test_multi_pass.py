"""Many passes over a training set: theory against runs, against exact moments, and what it says of overfitting.

The statistical tests share LEVEL = 1e-4, with fixed seeds.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import t as student

import overlaps as ov
from overlaps.cli.experiment import Experiment, Plan
from overlaps.data.digits import digit_labels
from overlaps.online.multi_pass.training_set import first_rows, training_set

LEVEL = 1e-4
LINEAR = ov.Committee(1, "linear")
DIAGONAL = 0.01  # what the variance in modes is said to be good for


@cache
def digits() -> ov.Samples:
    return ov.Samples(ov.digits(), digit_labels() % 2)


@cache
def few() -> ov.Samples:
    """So few columns that the moments can be followed as one matrix, and rows that are not Gaussian."""
    rng = np.random.default_rng(1)
    rows = rng.uniform(-1, 1, size=(120, 40)) * np.geomspace(2, 0.4, 40)
    return ov.Samples(rows, rows @ rng.standard_normal(40) / 4 + 0.7 * rng.standard_normal(120))


def learn(data: ov.Samples, *asked: Any, **options: Any) -> tuple[ov.Problem, ov.Start]:
    scale = options.pop("scale", 0.0)
    p = ov.Problem(data=data, student=LINEAR, algorithm=ov.MultiPass(*asked, **options))
    return p, ov.draw(p, data.size, seed=1, scale=scale)


def test_training_and_test_rows_are_all_rows() -> None:
    """The first n after a shuffle, each once; another shuffle takes others."""
    data = few()
    p, _ = learn(data, 0.1, samples=40)
    rows = training_set(p)
    both = np.concatenate([rows.rows, rows.test_rows])
    assert rows.rows.shape == (40, 40) and np.array_equal(np.unique(both, axis=0), np.unique(data.rows, axis=0))
    assert data.targets is not None
    where = {row.tobytes(): target for row, target in zip(data.rows, data.targets, strict=True)}
    assert [where[row.tobytes()] for row in both] == [*rows.targets, *rows.test_targets]
    assert not np.array_equal(training_set(learn(data, 0.1, samples=40, shuffle=1)[0]).rows, rows.rows)
    assert p.algorithm != learn(data, 0.1, samples=40, shuffle=1)[0].algorithm


@pytest.mark.parametrize(
    "options",
    [
        {"rate": 0.3, "samples": 300},
        {"rate": 0.1, "samples": 40},
        {"rate": ov.Schedule([0.0, 40.0], [0.4, 0.05]), "samples": 300, "batch": 8, "momentum": 0.5, "decay": 0.02},
    ],
    ids=["digits", "fewer rows than columns", "all"],
)
def test_theory_is_that_of_runs(options: dict[str, Any]) -> None:
    """On the digits, test error, training error and overlaps, beyond what the variance in modes is good for."""
    p, start = learn(digits(), **options)
    times = np.array([0.0, 2.0, 13.0, 60.0])
    theory = ov.solve(p, start, times)
    runs = ov.train(p, start, times, runs=60, seed=3, progress=False)
    allowed = student.isf(LEVEL / 2 / 12, 59)
    for name in ("error", "training_error", "Q", "R"):
        a, b = (np.asarray(r.data[name]).reshape(r.runs, times.size, -1) for r in (theory, runs))
        bar = b.std(0, ddof=1) / np.sqrt(60)
        scale = np.abs(a).max()
        assert np.all(np.abs(b.mean(0) - a[0]) <= allowed * bar + DIAGONAL * scale), name
    assert theory.data["epoch"].values == pytest.approx(p.algorithm.epochs(times, 61))  # pyright: ignore
    assert np.all((theory.data["error"] > theory.data["training_error"]).isel(time=slice(1, None)))


def moments(p: ov.Problem, start: ov.Start, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean (N,) and second moments (N, N) of the weights after steps of one row, by averages over the rows."""
    rows, rate = training_set(p), float(p.update.rate(0.0))
    assert start.student is not None
    X, y, N = rows.rows, rows.targets, start.student.shape[1]
    mean, second = start.student[0], np.outer(start.student[0], start.student[0])
    C, c = X.T @ X / len(X), X.T @ y / len(X)
    for _ in range(steps):
        # w' = w + a (√N y - w·x) x for each row, a = η/N; its square is averaged over rows and weights
        squares = N * y**2 - 2 * np.sqrt(N) * y * (X @ mean) + np.einsum("ni,ij,nj->n", X, second, X)
        drift = np.sqrt(N) * np.outer(c, mean) - C @ second
        second = second + rate / N * (drift + drift.T) + (rate / N) ** 2 * (X.T * squares) @ X / len(X)
        mean = mean + rate / N * (np.sqrt(N) * c - C @ mean)
    return mean, second


def test_theory_against_moments_over_the_rows() -> None:
    """The mean of the weights is exact; their variance in modes is good to a few per cent of itself."""
    p, start = learn(few(), 0.4, samples=80, scale=0.5)
    rows = training_set(p)
    for steps in (1, 40, 400):
        mean, second = moments(p, start, steps)
        theory = ov.solve(p, start, [steps / 40]).data
        assert theory["R"].item() == pytest.approx(mean @ (few().eigenvalues * start.teacher[0]) / 40, rel=1e-10)  # pyright: ignore
        for name, X, y in (
            ("error", rows.test_rows, rows.test_targets),
            ("training_error", rows.rows, rows.targets),
        ):
            C, c = X.T @ X / len(X), X.T @ y / len(X)
            exact = 0.5 * (np.mean(y**2) - 2 * c @ mean / np.sqrt(40) + np.sum(C * second) / 40)
            without = 0.5 * np.mean((y - X @ mean / np.sqrt(40)) ** 2)
            apart = abs(theory[name].item() - exact)
            assert apart < 0.06 * (exact - without) and apart < DIAGONAL * exact, (steps, name)


def test_wrong_theories_are_rejected() -> None:
    """The spectrum of all rows in place of that of the training set, and weights without a variance."""
    p, start = learn(digits(), 0.3, samples=150)
    times = np.array([40.0, 100.0])
    runs = ov.train(p, start, times, runs=60, seed=3, progress=False).data["error"].values
    bar = student.isf(LEVEL / 4, 59) * runs.std(0, ddof=1) / np.sqrt(60)
    one_pass = ov.solve(ov.Problem(data=digits(), student=LINEAR, algorithm=ov.OnlineSGD(0.3)), start, times)
    rows = training_set(p)
    lam, U = rows.axes
    frozen = [
        0.5
        * np.mean(
            (rows.test_targets - rows.test_rows @ (U @ (rows.best * (1 - (1 - 0.3 * lam / 61) ** (61 * t))))) ** 2
        )
        for t in times
    ]
    for wrong in (one_pass.data["error"].values[0], np.array(frozen)):
        assert np.all(np.abs(runs.mean(0) - wrong) > bar + DIAGONAL * wrong)


def test_the_epoch_at_which_the_test_error_turns() -> None:
    """With few rows and many columns training overfits; the predicted epoch is that of the runs."""
    p, start = learn(digits(), 0.1, samples=80)
    times = np.linspace(0, 40, 81)
    theory = ov.solve(p, start, times)
    runs = ov.train(p, start, times, runs=60, seed=3, progress=False)
    assert 1 < theory.best_epoch < 8 and theory.best_epoch == pytest.approx(runs.best_epoch, rel=0.3)
    at = theory.data["error"].values[0]
    assert at.min() < 0.97 * at[-1] and np.all(np.diff(theory.data["training_error"].values[0]) < 0)
    assert ov.solve(p, start, [0.0, 0.1]).best_epoch == np.inf
    assert ov.solve(p, ov.Start.from_weights(p, start.teacher), [0.0, 40.0]).best_epoch == 0.0  # pyright: ignore
    with pytest.raises(ov.InputError, match=r"^best_epoch: these runs do not go through a training set"):
        q = ov.Problem(data=few(), student=LINEAR, algorithm=ov.OnlineSGD(0.1))
        _ = ov.solve(q, ov.draw(q, 40), [1.0]).best_epoch


def test_levels_sum_to_the_totals_and_a_file_keeps_all(tmp_path: Any) -> None:
    p, start = learn(few(), 0.3, samples=40, batch=2)
    result = ov.solve(p, start, [0.5, 3.03], levels=True)
    Q = np.einsum("b,rtbij->rtij", few().eigenvalues, result.data["Q_levels"])
    np.testing.assert_allclose(Q, result.data["Q"], rtol=1e-10)
    again = ov.load(result.save(tmp_path / "a.nc"))
    assert "epoch" in again.data.coords and again.variables == result.variables


@pytest.mark.parametrize("method", ["gd", "nesterov"])
def test_full_batches_of_the_same_rows(method: str) -> None:
    """Given the rows nothing is left to chance: theory is training to rounding, and small steps are gradient flow."""
    momentum = 0.0 if method == "gd" else 0.5
    full = ov.FullBatch(60, 0.1, method, ratio=61 / 300, momentum=momentum, decay=0.01)
    p = ov.Problem(data=digits(), student=ov.Committee(2, "linear", [1.0, -0.7]), algorithm=full)
    start = ov.draw(p, 61, seed=1, scale=0.3)
    theory, runs = ov.solve(p, start, levels=True), ov.train(p, start, runs=2)
    for name in theory.variables:
        np.testing.assert_allclose(theory.data[name].values[0], runs.data[name].values[1], rtol=1e-9, atol=1e-12)
    assert theory.unit == "steps" and ov.compare(theory, runs).verdict == "agrees"
    # by hand, one step of the first unit
    rows = first_rows(p, 300, 0, False)
    W = start.student / np.sqrt(61)  # pyright: ignore
    residual = rows.rows @ (W[0] - 0.7 * W[1]) - rows.targets
    assert theory.data["training_error"].values[0, 0] == pytest.approx(0.5 * np.mean(residual**2))
    if method == "gd":
        moved = W - 0.1 * (np.outer([1.0, -0.7], rows.rows.T @ residual / 300) + 0.01 * W)
        test = rows.test_rows @ (moved[0] - 0.7 * moved[1]) - rows.test_targets
        assert theory.data["error"].values[0, 1] == pytest.approx(0.5 * np.mean(test**2))
    for change, words in (
        ({"batch": 0.5}, r"^batch: of labelled rows FullBatch takes all"),
        ({"ratio": 0.01}, r"^ratio: 0.01 asks for 6100 of 1797 rows"),
    ):
        q = replace(p, algorithm=replace(full, **change))
        with pytest.raises(ov.InputError, match=words):
            ov.solve(q, start)
    for ask, words in (
        (lambda: ov.sample(p, start), r"^data: given its rows full-batch training leaves nothing to chance"),
        (lambda: ov.solve(p, start, method="stein"), r"^method: "),
        (lambda: ov.train(p, start, kernels=True), r"^kernels: "),
        (lambda: ov.full_batch.alternative(p, start), r"^data: this is for Gaussian inputs, got labelled rows"),
    ):
        with pytest.raises(ov.InputError, match=words):
            ask()


def test_refusals() -> None:
    p, start = learn(few(), 0.3, samples=40)
    rows = np.random.default_rng(0).standard_normal((50, 3))
    cases: list[tuple[Any, str]] = [
        (lambda: ov.solve(*learn(few(), 0.3, samples=120), [1.0]), r"^samples: 120 of 120 rows leave none to test on"),
        (lambda: ov.train(*learn(few(), 0.3, samples=199), [1.0]), r"^samples: 199 of 120 rows leave none to test on"),
        (lambda: ov.sample(p, start, [1.0]), r"^algorithm: MultiPass has no overlap chain"),
        (lambda: ov.solve(p, start, [1.0], system="levels"), r"^system: theory of many passes has one way"),
        (lambda: ov.solve(p, start, [1.0], method="closed"), r"^method: theory of many passes has one way"),
        (lambda: ov.train(p, start, [1.0], observe=ov.spectra.Observer()), r"^observe: spectra are observed along"),
        (lambda: ov.train(p, start, [1.0], kernels=True), r"^kernels: "),
        (lambda: learn(ov.Samples(rows), 0.3, samples=40), r"^teacher: these inputs carry no labels"),
        (
            lambda: ov.Problem(
                data=ov.GaussianInputs(), teacher=LINEAR, student=LINEAR, algorithm=ov.MultiPass(0.3, samples=40)
            ),
            r"^algorithm: MultiPass goes through labelled rows .*got GaussianInputs",
        ),
        (lambda: ov.laws.single_vector(p, 1.0), r"^algorithm: this law is for one-pass SGD"),
    ]
    for ask, words in cases:
        with pytest.raises(ov.InputError, match=words):
            ask()
    with pytest.raises(ov.NumericalError, match=r"grew without bound by time .*; reduce rate \(now 6\)"):
        ov.solve(*learn(few(), 6.0, samples=40), [1.0, 1000.0])


def test_a_spec_of_many_passes_runs_without_a_chain(tmp_path: Path) -> None:
    """`overlaps run` compares theory with training; a chain of overlaps there is none."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((300, 20))
    table = np.column_stack([rows, rows[:, 0] + rng.standard_normal(300)])
    np.savetxt(
        tmp_path / "rows.csv", table, delimiter=",", header=",".join([*(f"x{i}" for i in range(20)), "y"]), comments=""
    )
    problem = ov.Problem(
        data=ov.Samples(tmp_path / "rows.csv", target="y"),
        student=ov.Committee(1, "linear"),
        algorithm=ov.MultiPass(rate=0.2, samples=200),
    )
    experiment = Experiment(problem, Plan(size=20, last=5.0, count=4, micro_runs=4))
    assert "meso: not there, rows that come back are not Gaussian inputs; micro: 4 x 100 steps" in experiment.describe()
    outcome = experiment.execute(tmp_path / "out", progress=False)
    assert sorted(outcome.results) == ["macro", "micro"]
    assert "meso: not there" in repr(outcome) and "meso: not there" in outcome.verdict_path.read_text()
    assert outcome.results["macro"].data.attrs["system"] == "many-passes"


def test_second_moments_of_the_training_set_follow_from_the_test_rows() -> None:
    """In the principal axes of all rows, against the product of the rows trained on, which takes four times as long."""
    rows = np.random.default_rng(0).standard_normal((500, 12)) * np.geomspace(1.0, 1e-3, 12)
    data = ov.Samples(rows, rows.sum(1) + np.arange(500) % 7)
    problem = ov.Problem(data=data, student=ov.Committee(1, "linear"), algorithm=ov.MultiPass(0.1, samples=400))
    found = training_set(problem)
    expected = np.linalg.eigvalsh(found.rows.T @ found.rows / 400)[::-1]
    assert found.axes[0] == pytest.approx(expected, rel=1e-9)
