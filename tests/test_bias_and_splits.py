"""Rows with a bias, splits in which every class has its share, rows held out, and what is warned of."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import overlaps as ov
from command import command
from overlaps.data import class_moments
from overlaps.data.splits import shuffled
from overlaps.interface import memory
from overlaps.plan.class_trust import ClassTrust, Compared
from overlaps.plan.rows_task import Estimates
from overlaps.plan.trust import HeldOut, held_out_pass, percent

RNG = np.random.default_rng(0)
X = RNG.standard_normal((400, 4)) * [3.0, 1.0, 2.0, 1.0] + [0.0, 5.0, 0.0, -1.0]
Y = X @ [0.3, -0.2, 0.0, 0.1] + 7.0 + 0.3 * RNG.standard_normal(400)
RARE = np.arange(400) % 40 == 0


@pytest.mark.parametrize("options", [{}, {"standardise": True}, {"centre": False}])
def test_a_bias_is_one_in_every_row(options: dict[str, Any]) -> None:
    """Eigenvalues are second moments of the rows and have mean one; the column that is added is not centred."""
    data = ov.Samples(X, Y, bias=True, **options)
    assert data.size == 5
    assert np.allclose(data.rows.T @ data.rows / 400, np.diag(data.eigenvalues)) and np.isclose(
        data.eigenvalues.mean(), 1
    )
    assert np.allclose(data.columns[:, -1], 1) and "with a column of ones" in repr(data)
    assert data != ov.Samples(X, Y, **options)


def test_a_bias_learns_the_mean_of_the_labels() -> None:
    """Labels keep their mean, the best map is that of centred labels, and runs meet theory.

    Within 5 standard errors of 40 runs at two times, which a right theory misses with a chance of 1e-6.
    """
    data, centred = ov.Samples(X, Y, bias=True), ov.Samples(X, Y)
    assert data.targets is not None and np.isclose(data.targets.mean(), Y.mean())
    assert np.isclose(data.unexplained, centred.unexplained)
    problem = ov.Problem(data=data, student=ov.Committee(1, "linear"), algorithm=ov.OnlineSGD(0.1))
    start = ov.draw(problem, 5, scale=0.0)
    theory = ov.solve(problem, start, [1.0, 60.0], system="measured-moments").data["error"].values[0]
    runs = ov.train(problem, start, [1.0, 60.0], runs=40, progress=False).data["error"].values
    assert (np.abs(runs.mean(0) - theory) < 5 * runs.std(0) / np.sqrt(40) + 0.02 * theory).all()
    one, other = (Estimates.of(x).fresh for x in (data, centred))
    assert one.noise == pytest.approx(other.noise, rel=1e-9)  # as many numbers are fitted
    fresh = ov.solve(problem, start, [60.0], resamples=10).data
    assert fresh["error_fresh"].item() > fresh["error"].item()


def test_unequal_classes_need_a_bias() -> None:
    """Without one the smaller class is taken for what half of the rows are, in theory and in training."""
    rows = X + RARE[:, None]
    ends = {}
    for bias in (False, True):
        data = ov.Samples(rows, RARE, bias=bias)
        problem = ov.Problem(data=data, student=ov.Committee(1, "linear"), loss="logistic", algorithm=ov.OnlineSGD(0.5))
        start = ov.draw(problem, data.size, scale=0.0)
        theory, runs = ov.solve(problem, start, [100.0]), ov.train(problem, start, [100.0], runs=4, progress=False)
        ends[bias] = [float(x.data["misclassified"].mean()) for x in (theory, runs)]
    assert min(ends[False]) > 0.3 and max(ends[True]) < 0.06


def trust(**changes: Any) -> ClassTrust:
    """A verdict on trainings that are as foretold."""
    beyond: Any = None
    near = Compared("loss", 0.5, 0.5, 0.001)
    wrong = Compared("0-1 error", 0.4, 0.4, 0.001)
    return replace(ClassTrust(near, wrong, near, wrong, 1.0, 1.0, 50.0, beyond, end=0.4, guess=0.5), **changes)


def test_a_classifier_that_a_guess_beats_is_not_to_be_trusted_plainly() -> None:
    assert trust().trusted and trust().words.startswith("trust it: ")
    useless = trust(guess=0.1)
    assert useless.trusted and not useless.beats_a_guess and "trust it" not in useless.words
    assert "of no use: its 0-1 error, 0.4, is above the 0.1 of always guessing" in useless.words
    assert "use bias=True (`learn --bias`)" in useless.words
    assert "bias=True" not in trust(guess=0.1, bias=True).words
    off = trust(guess=0.1, held_loss=Compared("loss", 0.5, 0.9, 0.01))
    assert off.words.startswith("do not trust it: ") and "of no use" in off.words


def test_columns_that_deserve_a_warning() -> None:
    with pytest.warns(
        UserWarning, match=r"bias: column 4 .* is one in every row, and centring drops it; use bias=True"
    ):
        ov.Samples(np.column_stack([X, np.ones(400)]), Y)
    numbered = np.column_stack([np.arange(400) / 4, X])  # whose range is less than a hundred times that of the others
    with pytest.warns(UserWarning, match=r"standardise: column 0 .* holds 98.*% of the variance .*standardise=True"):
        ov.Samples(numbered, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ov.Samples(np.column_stack([X, np.ones(400)]), Y, centre=False)
        ov.Samples(numbered, Y, standardise=True)
        ov.Samples(X, Y)


def test_every_class_has_its_share_of_both_parts() -> None:
    """The number held out is right on average over shuffles, and no class of five is left out."""
    classes = np.repeat([0, 1, 2], [188, 5, 7])
    held = np.array(
        [np.bincount(classes[shuffled(np.random.default_rng(s), 200, classes)[160:]], minlength=3) for s in range(500)]
    )
    assert held.min() >= 1 and (held[:, 1] == 1).all()
    assert held.mean(0) == pytest.approx([37.6, 1.0, 1.4], abs=0.1)
    order = shuffled(np.random.default_rng(1), 200)
    assert np.array_equal(np.sort(order), np.arange(200))
    assert np.array_equal(order, np.random.default_rng(1).permutation(200))  # of labels that are no classes


def test_training_sets_hold_all_classes() -> None:
    data = ov.Samples(X, RARE)
    problem = ov.Problem(
        data=data, student=ov.Committee(1, "linear"), loss="logistic", algorithm=ov.MultiPass(0.1, samples=320)
    )
    from overlaps.online.multi_pass.training_set import training_set

    for shuffle in range(5):
        part = training_set(replace(problem, algorithm=ov.MultiPass(0.1, samples=320, shuffle=shuffle)))
        assert (part.targets == 1).sum() == 8 and (part.test_targets == 1).sum() == 2
    with pytest.warns(UserWarning, match="samples: the 1 rows tested on have none of class"):
        training_set(replace(problem, algorithm=ov.MultiPass(0.1, samples=399)))


def test_rows_held_out_reject_either_way() -> None:
    """Half is as far off as twice; a tenth of what was predicted is not let pass for being less than all of it."""
    low, high = HeldOut(40, 1.0, 0.05, 0.5, 0.025), HeldOut(40, 1.0, 0.05, 2.0, 0.1)
    assert low.apart == pytest.approx(high.apart) and not low.agrees and not high.agrees
    assert not HeldOut(40, 0.0612, 0.03, 0.00148, 0.0002).agrees
    assert HeldOut(40, 1.0, 0.001, 1.09, 0.001).agrees and not HeldOut(40, 1.0, 0.001, 1.11, 0.001).agrees
    assert not HeldOut(40, 1.0, 0.1, np.inf, 0.0).agrees
    assert HeldOut(40, 0.0, 0.0, 0.0, 0.0).agrees and HeldOut(40, -1e-3, 1e-3, 1e-3, 1e-3).agrees
    assert [percent(x) for x in (0.0123, 0.994, 2.174)] == ["1.2 %", "99 %", "217 %"]


def test_rare_labels_are_among_those_held_out() -> None:
    """Five of two hundred: what is known of fresh rows is little, and the verdict says so."""
    labels = np.arange(200) < 5
    data = ov.Samples(X[:200], labels)
    assert data.labels is not None
    held = held_out_pass(Estimates.of(data), 0.01, runs=20, seed=0, classes=data.labels.numbers)
    assert held is not None and held.agrees and held.measured == pytest.approx(held.predicted, rel=0.3)
    found = ov.forecast(data, runs=20, progress=False)
    assert found.trust.fresh is not None and found.trust.fresh > 0.5
    assert f"the error of fresh rows is known to ±{percent(found.trust.fresh)}" in found.trust.words
    assert found.summary()["within_fresh"] == found.trust.fresh
    with pytest.raises(ov.InputError, match="give their 2 values as whole numbers or text, which are classes"):
        ov.forecast(ov.Samples(X[:200], labels.astype(float)), loss="logistic", progress=False)


def test_memory_that_is_free_decides(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(class_moments, "available_memory", lambda: 1e9)
    with pytest.raises(ov.InputError, match=r"groups: 10 matrices of 3000 dimensions are 0.72 GB, .*1 GB of memory"):
        class_moments.refuse_large("groups", 10, 3000, "use fewer groups or columns")
    class_moments.refuse_large("groups", 6, 3000, "use fewer groups or columns")
    (tmp_path / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable:    2000 kB\n")
    monkeypatch.setattr(memory, "MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "LIMIT", tmp_path)
    assert memory.available_memory() == 2000 * 1024
    (tmp_path / "memory.max").write_text("1500\n")
    (tmp_path / "memory.current").write_text("500\n")
    assert memory.available_memory() == 1000
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "meminfo").unlink()
    assert memory.available_memory() == memory.UNKNOWN


def table(path: Path) -> Path:
    """A table with a column of classes and one of groups."""
    rows = [f"{a:.4f},{b:.4f},{'pq'[i % 2]},{'yes' if i % 3 else 'no'}" for i, (a, b) in enumerate(X[:120, :2])]
    path.write_text("a,b,batch,kind\n" + "\n".join(rows) + "\n")
    return path


@pytest.mark.parametrize(("groups", "target"), [("2", "kind"), ("auto", "-1"), ("batch", "3"), ("batch", "-1")])
def test_groups_and_bias_of_a_file(
    groups: str, target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    seen: list[ov.Samples] = []

    def kept(data: ov.Samples, **options: Any) -> None:
        seen.append(data)
        raise ov.InputError("seen: enough")

    monkeypatch.setattr("overlaps.plan.forecast.forecast", kept)
    path = table(tmp_path / "rows.csv")
    if groups != "batch":  # which is text, and would be refused as a feature
        path.write_text(path.read_text().replace(",p,", ",0.5,").replace(",q,", ",1.5,"))
    arguments = ["--target", target, "--loss", "logistic", "--groups", groups, "--bias", "--out", str(tmp_path / "o")]
    code, _, err = command(monkeypatch, capsys, "learn", str(path), *arguments)
    assert code == 2 and "seen: enough" in err
    assert seen[0].classes == ("no", "yes") and seen[0].bias
    assert seen[0].size == (3 if groups == "batch" else 4)
    if groups == "batch":
        assert len(seen[0].moments.weights) == 4


def test_groups_that_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    path = table(tmp_path / "rows.csv")
    for more, words in (
        (["--target", "kind", "--groups", "colour"], "groups: expected a number of clusters, auto, or the name of one"),
        (["--target", "kind", "--groups", "kind"], "groups: column kind is the target"),
        (["--target", "a", "--regression", "--groups", "2"], "groups: they are parts of classes, and labels are"),
    ):
        code, _, err = command(monkeypatch, capsys, "learn", str(path), *more, "--out", str(tmp_path / "out"))
        assert code == 2 and words in err, err


def test_labels_that_are_sums_of_the_columns_are_told() -> None:
    """R² is 1: there is no noise to forecast."""
    from overlaps.plan.rows_forecasting import warn_without_noise

    with pytest.warns(UserWarning, match=r"y: the labels are a linear map of the columns, within rounding"):
        warn_without_noise(ov.Samples(X, X @ [1.0, 1.0, 1.0, 2.0]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_without_noise(ov.Samples(X, Y))


def test_errors_of_many_passes_are_not_negative() -> None:
    data = ov.Samples(X, X @ [1.0, 1.0, 1.0, 2.0])
    problem = ov.Problem(data=data, student=ov.Committee(1, "linear"), algorithm=ov.MultiPass(0.5, samples=300))
    theory = ov.solve(problem, ov.draw(problem, 4, scale=0.0), np.linspace(0, 20000, 30)).data
    assert theory["error"].values.min() >= 0 and theory["training_error"].values.min() >= 0


def test_a_spec_keeps_the_bias(tmp_path: Path) -> None:
    np.savetxt(tmp_path / "rows.csv", np.column_stack([X, Y]), delimiter=",")
    problem = ov.Problem(
        data=ov.Samples(tmp_path / "rows.csv", target=4, bias=True),
        student=ov.Committee(1, "linear"),
        algorithm=ov.OnlineSGD(0.1),
    )
    assert "bias = true" in problem.to_toml() and ov.Problem.from_toml(problem.to_toml()) == problem
