"""When training on rows parts from training on Gaussians of the same means and covariances; forecasts of classes."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import overlaps as ov
from command import command
from overlaps.compare.beyond_gaussian import BeyondGaussian, Parting, parted


def two_heaps(count: int = 4000, size: int = 10) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A class in two heaps with another one between them: rows, classes, and the heap of each row."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((count, size)), np.arange(count) % 2
    side = np.where(rng.random(count) < 0.5, 1.0, -1.0) * y
    X[:, 0] = 3 * side + 0.3 * X[:, 0]
    return X, y, side


X, Y, SIDE = two_heaps()
STUDENT = ov.Committee(4, "relu", readout=[1.0, 1.0, -1.0, -1.0])
PROBLEM = ov.Problem(data=ov.Samples(X, Y), student=STUDENT, algorithm=ov.OnlineSGD(0.2))


def test_the_time_between_two_times() -> None:
    times, one = np.array([1.0, 2.0, 4.0, 8.0]), np.ones(4)
    assert parted(times, np.array([1.0, 1.0, 0.9, 0.8]), one, 0.05) == pytest.approx(3.0)
    assert parted(times, np.array([0.8, 1.0, 1.1, 1.2]), one, 0.05) == pytest.approx(3.0)  # only from the last time on
    assert parted(times, 0.5 * one, one, 0.05) == 1.0
    assert parted(times, one, one, 0.05) == np.inf


def test_structure_is_told_by_groups() -> None:
    """Rows that are two heaps part from one Gaussian a class, not from one a heap, whose mixture they are.

    The error with one Gaussian for each heap is the same in law; that 20 runs differ by a fifth has a chance of 1e-4.
    """
    start = ov.draw(PROBLEM, 10, scale=0.7, seed=1)
    found = ov.beyond_gaussian(
        PROBLEM, start, [0.5, 1.0, 4.0, 16.0, 40.0], runs=20, groups=[None, SIDE], share=0.2, progress=False
    )
    classes, heaps = found.partings
    assert (classes.components, heaps.components) == (2, 3)
    assert 0 < classes.time < 40 and classes.interval[0] <= classes.time <= classes.interval[1]
    assert classes.gain > 5 * classes.gain_error and classes.gain > 0.2
    assert heaps.time == np.inf and abs(heaps.gain) < 5 * heaps.gain_error + 0.02
    text = repr(found)
    assert "2 Gaussians: beyond Gaussian (by 20 %) from t = " in text and "3 Gaussians: they do not part" in text
    assert len(found.plot().lines) == 4


def test_a_time_before_the_first_is_told_as_such() -> None:
    """Where errors differ at all times from the first on, nothing says when that began."""
    errors = np.ones((4, 3))
    one = Parting(2, errors, 0.5, (0.5, 2.0), 0.3, 0.01)
    never = Parting(3, errors, np.inf, (4.0, np.inf), 0.0, 0.01)
    found = BeyondGaussian(np.array([0.5, 4.0, 16.0]), errors, 0.02, (one, never))
    assert "from t = before 0.5 (before 0.5 to 2); at the end" in repr(found)
    assert [found.told(time, 2) for time in (0.51, np.inf)] == ["0.51", "later than 16"]


def test_what_is_refused() -> None:
    start = ov.draw(PROBLEM, 10)
    with pytest.raises(ov.InputError, match=r"^groups: expected a list"):
        ov.beyond_gaussian(PROBLEM, start, [1.0, 2.0], groups="auto")  # type: ignore[arg-type]
    with pytest.raises(ov.InputError, match=r"^times: expected at least two"):
        ov.beyond_gaussian(PROBLEM, start, [1.0], progress=False)
    linear = ov.Problem(data=PROBLEM.data, student=ov.Committee(1, "linear"), algorithm=ov.OnlineSGD(0.2))
    with pytest.raises(ov.InputError, match=r"^problem: rows are needed whose labels are classes"):
        ov.beyond_gaussian(linear, ov.draw(linear, 10), [1.0, 2.0])


def classes(count: int = 800) -> tuple[np.ndarray, np.ndarray]:
    """Three Gaussian classes of different covariances in 12 columns."""
    rng = np.random.default_rng(2)
    y = np.arange(count) % 3
    return rng.standard_normal((count, 12)) * (1 + 0.3 * y)[:, None] + 2.0 * np.eye(12)[y], y


def test_a_forecast_of_classes(tmp_path: Path) -> None:
    """Of Gaussian classes, where it holds; everything is written."""
    rows, y = classes()
    found = ov.forecast(ov.Samples(rows, y), loss="cross-entropy", runs=8, progress=False)
    assert found.trust.within < 0.12 and found.rate in found.rates and np.isfinite(found.ends).sum() >= 2
    end = found.theory.data.isel(run=0, time=-1)
    assert abs(float(end["misclassified"]) - found.runs.data["misclassified"].values[:, -1].mean()) < 0.03
    summary = found.summary()
    assert summary["classes"] == ["0", "1", "2"] and len(summary["confusion"]) == 3
    assert found.trust.words in repr(found)
    paths = found.write(tmp_path)
    assert json.loads(paths["summary"].read_text())["samples"] == 800
    assert ov.load(paths["data"]).data["confusion"].shape[-2:] == (3, 3)
    assert paths["table"].read_text().startswith("samples,error,error_trained,misclassified,misclassified_trained")


def test_the_choice_is_explicit() -> None:
    rows, y = classes()
    with pytest.raises(ov.InputError, match=r"^y: these are 3 classes .*use loss='cross-entropy'"):
        ov.forecast(ov.Samples(rows, y), progress=False)
    with pytest.raises(
        ov.InputError,
        match=r"^labels: expected 0 and 1, .*for the logistic loss, got 2; .*loss='cross-entropy'",
    ):
        ov.forecast(ov.Samples(rows, y), loss="logistic", progress=False)
    with pytest.raises(ov.InputError, match=r"^loss: these labels are real numbers"):
        ov.forecast(ov.Samples(rows, rows[:, 0] + 0.5 * y), loss="logistic", progress=False)
    bad: Any = "entropy"
    with pytest.raises(ov.InputError, match=r"unknown loss"):
        ov.forecast(ov.Samples(rows, y), loss=bad, progress=False)


def test_random_labels_are_not_trusted() -> None:
    """Fewer rows than two for each column: what is learned of them is nothing on rows held out."""
    rng = np.random.default_rng(0)
    rows, labels = rng.standard_normal((90, 50)), rng.integers(0, 2, 90)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of few rows
        found = ov.forecast(ov.Samples(rows, labels), loss="logistic", progress=False)
    trust = found.trust
    assert not trust.trusted and trust.within < 0.1  # trainings on the rows are as foretold
    assert trust.held_loss.measured > 1.3 * trust.held_loss.foretold
    assert trust.held_wrong.measured == pytest.approx(0.5, abs=0.1) and trust.held_wrong.foretold < 0.35
    assert "do not trust it: rows held out have loss" in trust.words
    assert "too few rows, 0.9 for each column and class" in trust.words
    assert found.summary()["within"] is None


def test_bright_and_dark_classes_are_not_trusted() -> None:
    """The loss is within a tenth, the 0-1 error is half of what is foretold, and the fourth moments say why."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((2000, 20)) * np.exp(1.2 * rng.standard_normal((2000, 1)))
    labels = rows @ rng.standard_normal(20) + 0.5 * rng.standard_normal(2000) > 0
    trust = ov.forecast(ov.Samples(rows, labels), loss="logistic", runs=20, progress=False).trust
    assert not trust.trusted and trust.wrong.measured < 0.6 * trust.wrong.foretold
    assert "trainings on the rows have 0-1 error" in trust.words and "bright and dark" in trust.words
    lengths = [np.square(rows[labels == k] - rows[labels == k].mean(0)).sum(1) for k in (False, True)]
    squares = sum(x.size * x.mean() ** 2 for x in lengths)
    assert trust.fourth == pytest.approx(sum(np.sum(x**2) for x in lengths) / squares, rel=1e-9)
    assert 1 + 2 / 20 <= trust.gaussian < 1.5  # the least is that of isotropic Gaussians


def test_one_of_a_thousand() -> None:
    """The best rate is the smallest there is, which is said, and so is what a constant guess would do."""
    rng = np.random.default_rng(0)
    rows, labels = rng.standard_normal((6000, 20)), np.arange(6000) < 6
    rows[labels] += 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = ov.forecast(ov.Samples(rows, labels), loss="logistic", runs=4, progress=False)
    assert found.constant_guess == pytest.approx(0.001)
    assert "always guessing the largest class misclassifies 0.001" in repr(found)
    assert "the smallest that was tried" in repr(found) and found.rates[0] < 0.01
    assert not found.summary()["beats_a_constant_guess"] and "trust it: " not in found.trust.words.replace(
        "not trust", ""
    )
    assert "this classifier is of no use: its 0-1 error, " in repr(found) and "use bias=True" in repr(found)
    assert repr(found).count("2 Gaussians:") == 1 and found.beyond.partings[0] is found.beyond.partings[1]
    assert found.summary()["misclassified_by_a_constant_guess"] == pytest.approx(0.001)


def test_a_forecast_of_a_network() -> None:
    """Three erf units on two Gaussian classes, which theory is made for."""
    rng = np.random.default_rng(0)
    labels = np.arange(1200) % 2
    rows = rng.standard_normal((1200, 20))
    rows[:, 0] += 2.0 * labels
    student = ov.Committee(3, "erf", readout=[1.0, -0.8, 0.6])
    found = ov.forecast(ov.Samples(rows, labels), student=student, runs=10, progress=False)
    assert found.problem.student == student and str(found.problem.loss) == "square"
    assert "student 3 x erf" in repr(found)
    assert abs(found.trust.loss.deviation) < 0.1
    with pytest.raises(ov.InputError, match="student: these labels are real numbers"):
        ov.forecast(ov.Samples(rows, rows[:, 0] + rng.standard_normal(1200)), student=student, progress=False)


def test_learn_with_classes(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    rows, y = classes(300)
    np.savetxt(tmp_path / "rows.csv", np.column_stack([rows[:, :4], y == 0]), "%.6g", ",")
    arguments = ["--target", "4", "--out", str(tmp_path / "out"), "--loss", "hinge"]
    code, out, err = command(monkeypatch, capsys, "learn", str(tmp_path / "rows.csv"), *arguments)
    assert code == 0, err
    assert "hinge loss, on 300 rows of 4 columns in 2 classes" in out
    assert (tmp_path / "out" / "learn.json").exists()
    arguments = ["--target", "4", "--out", str(tmp_path / "network"), "--activation", "relu"]
    code, out, err = command(monkeypatch, capsys, "learn", str(tmp_path / "rows.csv"), *arguments)
    assert code == 2 and "activation: it is that of a network" in err
    code, out, err = command(monkeypatch, capsys, "learn", str(tmp_path / "rows.csv"), *arguments[:4], "--units", "2")
    assert code == 0, err
    assert "student 2 x erf, square loss, on 300 rows of 4 columns" in out
