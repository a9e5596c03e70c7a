"""Forecasts of labelled rows: estimates without bias, coverage of bars, verdicts, what is written and refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import xarray as xr

import overlaps as ov
from command import command
from notebooks import shown
from overlaps.cli.labelled_file import rows_of
from overlaps.pages.report import read
from overlaps.pages.report.document import write
from overlaps.plan.diverging_runs import diverged, errors_of_runs
from overlaps.plan.optimise import PlanCheck
from overlaps.plan.rows_task import Estimates, RowsTask
from overlaps.plan.trust import one_pass

OMEGA = np.array(ov.PowerLaw(levels=20, exponent=0.5).eigenvalues)
THETA = np.linspace(1.0, -0.5, 20) / 4


def drawn(count: int, seed: int, brightness: float = 0.0, noise: float = 0.5) -> tuple[Any, Any]:
    """Gaussian rows of a known task; or bright and dark ones of the same covariance."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((count, 20)) * np.sqrt(OMEGA)
    rows *= np.exp(brightness * rng.standard_normal((count, 1)) - brightness**2)
    return rows, rows @ THETA + noise * rng.standard_normal(count)


def estimates(count: int, seed: int) -> Estimates:
    rows, labels = drawn(count, seed)
    return Estimates.of(ov.Samples(rows, labels))


RATES = np.full(400, 0.3)
AT = [0, 40, 400]


def test_estimates_of_fresh_rows_have_no_bias() -> None:
    """Means over 150 tables of five rows a column against the truth: four standard errors, chance 6e-5 each."""
    truth = RowsTask(OMEGA, THETA**2, 0.25).errors(RATES)[AT]
    held = np.arange(100) % 5 == 0
    found = [(e.fresh.errors(RATES)[AT], e.plain.errors(RATES)[AT], e.without(held).errors(RATES)[AT]) for e in TABLES]
    fresh, plain, part = np.array(found).transpose(1, 0, 2)
    for each in (fresh, part):
        assert (np.abs(each.mean(0) - truth) < 4 * each.std(0) / np.sqrt(len(each))).all()
    # the population of the rows is not that of fresh ones, and the test sees it
    assert truth[-1] - plain[:, -1].mean() > 8 * plain[:, -1].std() / np.sqrt(len(plain))


def test_the_bootstrap_has_the_spread_of_the_estimates() -> None:
    """Standard deviations over tables, and by resampling one of them: within a third of each other."""
    spread = np.std([e.fresh.errors(RATES)[AT] for e in TABLES], axis=0)
    guesses = [np.std([t.errors(RATES)[AT] for t in e.resampled(30, 0)], axis=0) for e in TABLES[:12]]
    assert np.mean(guesses, axis=0) == pytest.approx(spread, rel=0.35)


def test_merged_levels_have_the_spread_of_all() -> None:
    """Of resamples of a table with more columns than are followed one by one."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((1500, 1100)) / np.sqrt(np.arange(1, 1101))
    tasks = Estimates(rows, rows[:, 0] + rng.standard_normal(1500)).resampled(8, 0)
    rates = np.full(2000, 0.2)
    every, merged = np.array([[t.errors(rates)[-1], t.rough_errors(rates)[-1]] for t in tasks]).T
    assert merged == pytest.approx(every, rel=5e-3) and merged.std() == pytest.approx(every.std(), rel=0.1)
    assert not np.array_equal(merged, every)


TABLES = [estimates(100, seed) for seed in range(150)]


def test_rows_without_noise() -> None:
    """The error of many passes falls to zero, and by rounding below it."""
    rows = np.random.default_rng(0).standard_normal((200, 4))
    with pytest.warns(UserWarning, match="linear map of the columns"):
        found = ov.forecast(ov.Samples(rows, rows.sum(1)), runs=2, seed=0)
    assert "the test error is least, 0" in repr(found)
    assert "<pre" in found._repr_html_() and "<img" in found._repr_html_()


def test_weights_of_the_rows_are_a_fit_to_first_order() -> None:
    """Against a fit with these weights, for weights near one."""
    e = estimates(400, 3)
    weights = (1 + 0.05 * np.sin(np.arange(400))) / 400
    weights /= weights.sum()
    X, y = e.rows, e.targets
    covariance = (X * weights[:, None]).T @ X
    theta = np.linalg.solve(covariance, (weights * y) @ X)
    task = e.weighted(np.array([weights]))[0]
    assert task.signal == pytest.approx(theta**2, abs=3e-4)
    assert np.abs(task.signal - e.theta**2).max() > 10 * np.abs(task.signal - theta**2).max()


def test_one_pass_is_sgd() -> None:
    rng = np.random.default_rng(0)
    rows, targets, order, rates = rng.normal(size=(6, 3)), rng.normal(size=6), rng.permutation(6), rng.uniform(size=6)
    theta, mine = np.zeros(3), np.zeros(3)
    one_pass(theta, rows, targets, order, rates)
    for i, rate in zip(order, rates, strict=True):
        mine -= rate / 3 * (mine @ rows[i] - targets[i]) * rows[i]
    assert theta == pytest.approx(mine, rel=1e-12)


def digits() -> ov.Samples:
    """Even and odd ones."""
    return ov.Samples(ov.digits(), ov.digit_labels() % 2 == 0)


def test_digits_are_predicted_as_in_the_reference() -> None:
    """Theory of the reference table to its four digits, and trainings on the rows within four standard errors of it."""
    data = digits()
    for rate, expected in ((0.1, (0.2972, 0.1700, 0.1578)), (0.4, (0.2378, 0.1901, 0.1871))):
        problem = ov.Problem(data=data, student=ov.Committee(1, "linear"), algorithm=ov.OnlineSGD(rate))
        start = ov.draw(problem, 61, scale=0.0)
        times = np.array([61, 1000, 6000]) / 61
        assert ov.solve(problem, start, times).data["error"].values[0] == pytest.approx(expected, abs=6e-5)


@pytest.fixture(scope="module")
def forecast_of_digits() -> Any:
    return ov.forecast(digits(), progress=False)


def test_forecast_of_digits(forecast_of_digits: Any, tmp_path: Path) -> None:
    found = forecast_of_digits
    assert found.trust.trusted and found.trust.within(found.trust.best) < 0.02
    assert found.plan.gain == pytest.approx(0.43, abs=0.02) and found.check.gain == pytest.approx(found.gain, abs=0.06)
    assert found.floor < found.ridge[1] < found.more and found.ridge[1] < found.ridge[0]
    assert found.floor < found.more < float(found.curves["error_plan"][-1]) < float(found.curves["error_constant"][-1])
    held = found.trust.held_out
    assert abs(held.deviation) < 4 * held.standard_error
    assert "<img" in shown(found)
    text = repr(found)
    assert "verdict: theory may be trusted within" in text and "rows held out" in text
    paths = found.write(tmp_path)
    assert all(path.stat().st_size > 0 for path in paths.values())
    summary = json.loads(paths["summary"].read_text())
    assert summary["trusted"] and summary["gain_predicted"] == found.gain
    with xr.open_dataset(paths["data"], engine="h5netcdf") as data:
        assert data["error_plan"].values[-1] == pytest.approx(summary["error_plan"])
    table = np.genfromtxt(paths["table"], delimiter=",", names=True)
    assert table["samples"][-1] == 1797 and np.isfinite(table["error_plan"]).all()


def test_what_is_promised_is_what_trainings_save(forecast_of_digits: Any) -> None:
    """A plan that saves another share in training is not promised; numbers have errors, by a bootstrap over rows."""
    found = forecast_of_digits
    assert 0.02 < found.gain_error < 0.1 and 0 < found.check.gain_error < 0.03
    assert found.guess == pytest.approx(np.mean(found.data.targets**2) / 2)
    assert "always guessing the mean of the labels has 0.5\n" in repr(found) and "although" not in repr(found)
    assert 0.5 * found.floor_error < found.more_error < 2 * found.floor_error
    assert all(0.5 * found.floor_error < error < 2 * found.floor_error for error in found.ridge_errors)
    check = replace(found.check, planned=found.check.compared)
    other = replace(found, check=check)
    assert other.trust.trusted and other.gain is None
    assert "not promised, since trainings do not save the 43% of theory; in 200 trainings on the rows 0%" in repr(other)
    assert "does no better" in repr(replace(found, guess=0.1))
    heavy = replace(found, trust=replace(found.trust, fourth=2 * found.trust.gaussian))
    assert "although rows are bright and dark" in repr(heavy)


def test_error_of_a_gain_is_its_spread() -> None:
    """Standard error of the share saved, against many repetitions of as many runs."""
    rng = np.random.default_rng(0)
    planned, compared = 1.5 + 0.1 * rng.standard_normal((2000, 20)), 2.0 + 0.3 * rng.standard_normal((2000, 20))
    plan: Any = SimpleNamespace(floor=1.0)
    checks = [PlanCheck(plan, a, b) for a, b in zip(planned, compared, strict=True)]
    spread = np.std([check.gain for check in checks])
    assert np.mean([check.gain_error for check in checks]) == pytest.approx(spread, rel=0.1)


def test_the_plan_is_ready_for_training(forecast_of_digits: Any) -> None:
    plan = forecast_of_digits.plan
    result = ov.train(plan.problem, plan.start, [plan.time], runs=4, seed=3, progress=False)
    assert result.data["error"].values.mean() == pytest.approx(plan.error, rel=0.02)


USELESS = {"bright and dark": 1.0, "brighter and darker": 1.6, "heavy tails": 2.5, "Cauchy": 1.0}


@pytest.mark.parametrize("kind", USELESS)
def test_rows_that_make_theory_useless_are_told(kind: str, tmp_path: Path) -> None:
    """The verdict, and the reason as it is measured."""
    rng = np.random.default_rng(0)
    if "bright" in kind:
        rows, labels = drawn(2000, 0, brightness=USELESS[kind])
    else:
        rows = rng.standard_t(USELESS[kind], (2000, 20)) * np.sqrt(OMEGA)
        labels = rows @ THETA + 0.5 * rng.standard_normal(2000)
    found = ov.forecast(ov.Samples(rows, labels), runs=40, progress=False)
    trust = found.trust
    assert not trust.trusted and found.gain is None and "not promised" in repr(found)
    summary = json.loads(found.write(tmp_path)["summary"].read_text(), parse_constant=pytest.fail)
    assert summary["gain_predicted"] is None and summary["diverged"]["trainings"] == 40
    assert "do not trust the theory on these data: " in trust.words
    assert "rows are bright and dark, or have heavy tails: E|x|^4/(E|x|^2)^2 is" in trust.words
    lengths = np.square(rows - rows.mean(0)).sum(1)
    assert trust.fourth == pytest.approx(np.mean(lengths**2) / np.mean(lengths) ** 2, rel=1e-9)
    assert trust.fourth > 2 * trust.gaussian and trust.bright > 0.05
    if trust.measured is None:  # they diverge, as trainings do
        assert kind != "bright and dark"
    if trust.measured is not None and trust.within_measured is not None:  # what theory there is instead
        problem = replace(found.plan.problem, algorithm=ov.OnlineSGD(trust.best))
        again = ov.solve(problem, found.plan.start, trust.times, system="measured-moments").data["error"].values[0]
        assert trust.measured == pytest.approx(again) and trust.within_measured < trust.within(trust.best)
        assert summary["within_by_measured_moments"] == trust.within_measured
        assert "with fourth moments measured from the rows" in trust.words
    lost = trust.diverged[trust.rates == trust.best].item()
    assert f"{lost} of 40 trainings diverge" in trust.words if lost else "training" in trust.words
    if kind == "Cauchy":  # most runs diverge, and all is told of them
        assert lost > 20 and summary["diverged"]["planned"] > 20 and summary["gain_trained"] is None
        assert np.isinf(found.curves["error_plan_high"].values[-1]) and "of 40 diverged" in repr(found)
        assert np.isinf(trust.within(trust.best)) and trust.highest_rate == 0
        answer = write(read(tmp_path), tmp_path / "report.html").read_text()
        assert "not promised" in answer and "diverged with the schedule" in answer


def test_runs_that_diverge_are_counted_one_by_one() -> None:
    """Errors of single runs: those that diverge end in infinity, the others are as trained."""
    rows, labels = drawn(400, 0, brightness=1.6)
    data = ov.Samples(rows, labels)
    problem = ov.Problem(data=data, student=ov.Committee(1, "linear"), algorithm=ov.OnlineSGD(0.25))
    start = ov.draw(problem, 20, scale=0.0)
    errors = errors_of_runs(ov.train, problem, start, [1.0, 20.0], 40, 0, progress=False)
    assert errors.shape == (40, 2) and 0 < diverged(errors) < 40
    assert np.isfinite(errors[:, 0]).all() and np.isinf(errors[:, 1]).sum() == diverged(errors)
    calm = errors_of_runs(ov.train, problem, start, [0.1], 5, 0, progress=False)
    assert np.array_equal(calm, ov.train(problem, start, [0.1], 5, 0, progress=False).data["error"].values)


def test_nothing_is_promised_beyond_the_rates_that_were_tried() -> None:
    """At the largest rate that was tried the deviation is finite, beyond it there is none to reckon with."""
    rows, labels = drawn(2000, 0)
    trust = ov.forecast(ov.Samples(rows, labels), runs=40, progress=False).trust
    last = trust.rates[-1]
    assert np.isfinite(trust.within(last)) and np.isinf(trust.within(1.01 * last))
    assert trust.highest_rate <= last * (1 + 1e-9)


def test_gaussian_rows_are_trusted() -> None:
    rows, labels = drawn(2000, 0)
    trust = ov.forecast(ov.Samples(rows, labels), runs=40, progress=False).trust
    assert trust.trusted and trust.fourth == pytest.approx(trust.gaussian, rel=0.05)
    assert trust.highest_rate > 3 * trust.best


def test_schedules_keep_to_rates_that_are_trusted() -> None:
    """Moderately bright rows: a constant rate is fine, rates of the unbounded plan are not."""
    rows, labels = drawn(2000, 0, brightness=0.35)
    found = ov.forecast(ov.Samples(rows, labels), runs=40, progress=False)
    assert found.trust.trusted
    assert found.plan.rates.max() <= max(found.trust.highest_rate, found.trust.best) * (1 + 1e-9)
    assert abs(found.check.planned.mean() / found.plan.error - 1) < 0.1


def test_refusals() -> None:
    rows, labels = drawn(100, 0)
    data = ov.Samples(rows, labels)
    for options, words in (
        ({"rate": 0.1}, "rate: is found"),
        ({"samples": 1}, "samples: expected at least 11"),
        ({"runs": 1}, "runs: expected at least 2"),
    ):
        with pytest.raises(ov.InputError, match=words):
            ov.forecast(data, progress=False, **options)  # pyright: ignore[reportCallIssue, reportArgumentType]
    with pytest.raises(ov.InputError, match="data: these rows have no labels"):
        ov.forecast(ov.Samples(rows))
    with pytest.raises(ov.InputError, match="samples: is for labelled rows"):
        ov.forecast(ov.Isotropic(), samples=10)  # pyright: ignore[reportCallIssue, reportArgumentType]
    with pytest.raises(ov.InputError, match="data: 24 rows of 20 columns are too few"):
        ov.forecast(ov.Samples(*drawn(24, 0)))


def test_learn_from_a_file(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    rows, labels = drawn(300, 0)
    names = ",".join(f"c{i}" for i in range(20)) + ",price"
    np.savetxt(tmp_path / "rows.csv", np.column_stack([rows, labels]), delimiter=",", header=names, comments="")
    arguments = "learn", str(tmp_path / "rows.csv"), "--target", "price", "--out", str(tmp_path / "out")
    code, out, err = command(monkeypatch, capsys, *arguments)
    assert code == 0, err
    assert "one pass over 300 samples" in out and "verdict: " in out
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "learn.csv",
        "learn.json",
        "learn.nc",
        "learn.png",
    ]
    code, out, err = command(monkeypatch, capsys, *arguments)
    assert code == 2 and "out: " in err and "exists already" in err
    code, out, err = command(
        monkeypatch, capsys, "learn", str(tmp_path / "rows.csv"), "--target", "cost", "--out", str(tmp_path / "no")
    )
    assert code == 2 and "target: expected the name of one column, got 'cost'" in err
    assert not (tmp_path / "no").exists()


def test_grades_are_quantities(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    """Whole numbers of few values, one of them rare, are learned as numbers where that is said."""
    rows = np.random.default_rng(0).standard_normal((200, 4))
    grades = np.clip(np.round(6 + rows @ [1.0, 0.5, 0.0, 0.0]), 3, 9)
    path = tmp_path / "quality.csv"
    np.savetxt(path, np.column_stack([rows, grades]), "%.6g", ",", header="a,b,c,d,quality", comments="")
    arguments = "learn", str(path), "--target", "quality", "--out", str(tmp_path / "out")
    code, _, err = command(monkeypatch, capsys, *arguments)
    assert code == 2 and "pass them as floats (`learn --regression`)" in err
    assert repr(rows_of(path, "quality", None, True).labels) == "Labels(200 real ones, 3 to 9)"
