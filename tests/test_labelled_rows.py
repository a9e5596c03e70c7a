"""Rows with labels: how they are read, and the exact mean of a linear student on them against runs.

The statistical tests share LEVEL = 1e-4, with fixed seeds; each of the wrong theories must be rejected at that level.
"""

from __future__ import annotations

import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from scipy.special import erf
from scipy.stats import t as student

import overlaps as ov
from overlaps.algorithms.update import Update
from overlaps.data.digits import PATH, digit_labels
from overlaps.data.labels import quantities

LEVEL = 1e-4
LINEAR = ov.Committee(1, "linear")
CSV = Path(__file__).parent / "data" / "labelled_rows.csv"
RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 3)) * [1.0, 2.0, 0.5]
Y = X @ [1.0, -0.5, 0.3] + 0.4 * RNG.standard_normal(60)


def learn(data: Any, algorithm: Any = 0.1, student: Any = LINEAR, **change: Any) -> ov.Problem:
    algorithm = ov.OnlineSGD(algorithm) if isinstance(algorithm, float) else algorithm
    return ov.Problem(data=data, student=student, algorithm=algorithm, **change)


# --- how they are read -----------------------------------------------------------------------------------------------


def test_the_best_linear_map_and_what_it_leaves() -> None:
    """Against least squares of NumPy on the columns as they are."""
    data = ov.Samples(X, Y)
    centred, target = X - X.mean(0), Y - Y.mean()
    weights, left, *_ = np.linalg.lstsq(centred, target, rcond=None)
    assert data.unexplained == pytest.approx(left[0] / 60)
    assert data.own_teacher is not None and data.targets is not None
    np.testing.assert_allclose(data.rows @ data.own_teacher[0] / np.sqrt(3), centred @ weights, atol=1e-12)
    np.testing.assert_allclose(data.targets, target)
    plain = ov.Samples(X, Y, centre=False)
    assert plain.unexplained == pytest.approx(np.linalg.lstsq(X, Y, rcond=None)[1][0] / 60)


def test_sources_of_labels_are_one(tmp_path: Path) -> None:
    """Arrays, frames and files that hold the same rows and labels are the same data, wherever the labels stand."""
    frame = pandas.DataFrame({"a": X[:, 0], "price": Y, "b": X[:, 1], "c": X[:, 2]})
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", Y)
    np.savez(tmp_path / "both.npz", X=X, price=Y)
    np.savez(tmp_path / "table.npz", X=frame.to_numpy())
    frame.to_csv(tmp_path / "named.csv", index=False, float_format="%.17g")
    frame.to_csv(tmp_path / "plain.csv", index=False, header=False, float_format="%.17g")
    same = [
        ov.Samples(X, Y),
        ov.Samples(X.tolist(), Y.tolist()),
        ov.Samples(X, pandas.Series(Y)),
        ov.Samples(X, Y[:, None]),
        ov.Samples(tmp_path / "x.npy", Y),
        ov.Samples(tmp_path / "x.npy", tmp_path / "y.npy"),
        ov.Samples(frame, target="price"),
        ov.Samples(frame, target=1),
        ov.Samples(frame.to_numpy(), target=np.int64(-3)),
        ov.Samples(tmp_path / "both.npz", target="price"),
        ov.Samples(tmp_path / "table.npz", target=1),
        ov.Samples(tmp_path / "named.csv", target="price"),
        ov.Samples(str(tmp_path / "plain.csv"), target=1),
    ]
    assert len(set(same)) == 1 and all(data.labelled for data in same)
    others = [ov.Samples(X), ov.Samples(X, Y + X[:, 0]), ov.Samples(X, Y, standardise=True)]
    assert len({same[0], *others}) == 4


def test_classes_are_plus_and_minus_one() -> None:
    """Booleans, text and whole numbers, in sorted order, whatever holds them."""
    yes = Y > 0
    for labels, names in (
        (yes, (False, True)),
        (np.where(yes, "spam", "ham"), ("ham", "spam")),
        (np.where(yes, "spam", "ham").astype(object), ("ham", "spam")),
        (pandas.Series(np.where(yes, "spam", "ham"), dtype="category"), ("ham", "spam")),
        (np.where(yes, 7, 3), (3, 7)),
    ):
        data = ov.Samples(X, labels)
        assert data.classes == names and data.labels is not None
        assert data.labels.values.tolist() == np.where(yes, 1.0, -1.0).tolist()
    assert ov.Samples(X, np.where(yes, 7.0, 3.0)).classes == ()  # real numbers stay what they are
    assert ov.Samples(X, np.arange(60)).classes == ()  # many whole numbers are counts
    data = ov.Samples(CSV, target="kind")
    assert data.classes == ("early", "late") and "early = -1, late = +1" in repr(data) and data.size == 4


def test_standardised_columns_have_equal_weight() -> None:
    data = ov.Samples(X * [1.0, 1e3, 1e-3] + 5, Y, standardise=True)
    again = ov.Samples((X - X.mean(0)) / X.std(0), Y)
    np.testing.assert_allclose(data.eigenvalues, again.eigenvalues)
    assert data.unexplained == pytest.approx(again.unexplained) and "standardised" in repr(data)


def test_a_spec_of_labelled_rows(tmp_path: Path) -> None:
    p = learn(ov.Samples(CSV, target="kind", standardise=True))
    again = ov.Problem.from_toml(p.to_toml())
    assert again == p and again.to_toml() == p.to_toml() and 'target = "kind"' in p.to_toml()
    np.save(tmp_path / "x.npy", X)
    for data, field in ((ov.Samples(X, Y), "source"), (ov.Samples(tmp_path / "x.npy", Y), "y")):
        with pytest.raises(ov.InputError, match=rf"^{field}: an array cannot be written to TOML; save it with numpy"):
            learn(data).to_toml()


def test_a_spec_of_labelled_rows_notices_other_labels(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", X=X, y=Y)
    text = learn(ov.Samples(tmp_path / "a.npz", target="y")).to_toml()
    np.savez(tmp_path / "a.npz", X=X, y=Y[::-1])
    with pytest.raises(ov.InputError, match=r"spec.data: digest: .*a.npz is not the data this was written for"):
        ov.Problem.from_toml(text)


BAD: dict[str, tuple[Any, str]] = {
    "lengths": (lambda: ov.Samples(X, Y[:-1]), r"^y: expected one label for each row, got 59 labels and 60 rows"),
    "constant": (lambda: ov.Samples(X, np.ones(60)), r"^y: all labels are 1, so there is nothing to learn"),
    "constant to rounding": (
        lambda: ov.Samples(X, 1 + 1e-14 * np.arange(60)),
        r"^y: all labels are 1 up to rounding, so there is nothing to learn",
    ),
    "one class": (lambda: ov.Samples(X, ["a"] * 60), r"^y: all labels are a, so"),
    "not a number": (lambda: ov.Samples(X, np.where(Y > 1, np.nan, Y)), r"^y: row \d+ \(counted from 0\) has .*nan"),
    "missing": (lambda: ov.Samples(X, ["a", None, "b"] * 20), r"^y: row 1 \(counted from 0\) has no label"),
    "masked": (lambda: ov.Samples(X, np.ma.masked_greater(Y, 1)), r"^y: has masked entries"),
    "few of a class": (lambda: ov.Samples(X, ["a"] * 57 + ["b"] * 3), r"^y: class b has 3 rows, expected at least 5"),
    "many classes": (lambda: learn(ov.Samples(X, ["a", "b", "c"] * 20)), r"^y: .*3 classes \(a, b, c\).*group them"),
    "class numbers": (lambda: learn(ov.Samples(X, np.arange(60) % 10)), r"^y: .*10 classes .*quantities as floats"),
    "two columns": (lambda: ov.Samples(X, X[:, :2]), r"^y: .*array of shape \(60, 2\)"),
    "complex": (lambda: ov.Samples(X, Y * 1j), r"^y: expected real numbers or classes, got complex"),
    "centre for y": (lambda: ov.Samples(X, True), r"^y: .*centre and standardise are passed by name"),
    "both": (lambda: ov.Samples(X, Y, target=0), r"^target: y gives the labels already"),
    "no such column": (lambda: ov.Samples(CSV, target="colour"), r"^target: .*got 'colour' \(columns: width, height"),
    "no such number": (lambda: ov.Samples(CSV, target=9), r"^target: there is no column 9, the table has 5"),
    "no names": (lambda: ov.Samples(X, target="price"), r"^target: these columns have no names"),
    "no such array": (lambda: ov.Samples(PATH, target="z"), r"^target: .*digits.npz holds X, y, not z"),
    "text": (lambda: ov.Samples(CSV, target="width"), r"^source: column 'kind' is not of numbers"),
    "no file": (lambda: ov.Samples(X, "nowhere.npy"), r"^y: no file nowhere.npy"),
    "one column": (lambda: ov.Samples(X[:, :1], target=0), r"^target: the table has one column"),
    "teacher": (lambda: learn(ov.Samples(X, Y), teacher=LINEAR), r"^teacher: these rows carry labels"),
    "noise": (lambda: learn(ov.Samples(X, Y), label_noise=0.1), r"^label_noise: these rows have labels"),
    "loss": (lambda: learn(ov.Samples(X, Y), loss="logistic"), r"^loss: real labels of rows are learned by the square"),
    "no labels": (lambda: learn(ov.Samples(X)), r"^teacher: these inputs carry no labels"),
    "overlaps": (lambda: ov.Start.from_overlaps(learn(ov.Samples(X, Y)), [[1.0]]), r"^Q: a start on labelled rows"),
    "own teacher": (
        lambda: ov.Start.from_weights(learn(ov.Samples(X, Y)), np.ones((1, 3)), np.ones((1, 3))),
        r"^teacher: labelled rows bring their own",
    ),
    "averages": (lambda: ov.gaussian_averages(learn(ov.Samples(X, Y)), np.eye(2)), r"^data: labels of rows have no"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_learned_is_refused(case: str) -> None:
    make, words = BAD[case]
    with pytest.raises(ov.InputError, match=words) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_parquet_needs_pyarrow(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    frame = pandas.DataFrame({"a": X[:, 0], "b": X[:, 1], "price": Y})
    try:
        frame.to_parquet(path)
    except ImportError:
        path.write_bytes(b"PAR1")
        with pytest.raises(ov.MissingExtraError, match=r"^source: .*rows.parquet .*pyarrow; pip install pyarrow"):
            ov.Samples(path, target="price")
    else:
        assert ov.Samples(path, target="price") == ov.Samples(X[:, :2], Y)


@pytest.mark.parametrize("rate", [0.1, 0.4])
def test_spread_over_runs_is_that_of_gaussian_rows(rate: float) -> None:
    """Within a quarter from t = 10 on, as docs/your_data.md says; five standard errors of the ratio at 400 runs."""
    data = ov.Samples(ov.digits(), digit_labels() % 2)
    p = ov.Problem(data=data, student=LINEAR, algorithm=ov.OnlineSGD(rate))
    start = ov.draw(p, 61, scale=0.0)
    chain, rows = (way(p, start, [10.0, 29.0], runs=400, progress=False).data["error"] for way in (ov.sample, ov.train))
    assert chain.std("run").values == pytest.approx(rows.std("run").values, rel=0.25)


def test_parquet_files_are_read_by_pandas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rows.parquet"
    path.write_bytes(b"")
    frame = pandas.DataFrame({"a": X[:, 0], "price": Y, "b": X[:, 1]})
    monkeypatch.setattr(pandas, "read_parquet", lambda file: frame if file == path else None)
    assert ov.Samples(path, target="price") == ov.Samples(X[:, :2], Y)


def test_a_number_may_be_the_name_of_a_column(tmp_path: Path) -> None:
    """`age,2019,label`: a header, though one name is a number, which then is the name; and otherwise the place."""
    path = tmp_path / "a.csv"
    np.savetxt(path, np.column_stack([X[:, 0], Y, X[:, 1]]), "%.17g", ",", header="age,1,2019", comments="")
    assert ov.Samples(path, target="1") == ov.Samples(path, target=1) == ov.Samples(X[:, :2], Y)
    assert ov.Samples(path, target="2019") == ov.Samples(path, target="2") == ov.Samples(path, target=2)
    path.write_text(path.read_text().replace("age,1,2019", "2,1,age"))
    assert ov.Samples(path, target="2") == ov.Samples(path, target=0)
    with pytest.raises(ov.InputError, match=r"^target: there is no column 7, the table has 3"):
        ov.Samples(path, target="7")
    path.write_text("3,x,1.5\n4,y,2.5\n" * 10)  # text without a header, whose columns have numbers
    with pytest.raises(ov.InputError, match=r"^source: column 1 is not of numbers but of "):
        ov.Samples(path, target="0")


def test_messages_name_columns_of_the_whole_table() -> None:
    """The target is a column before the one that is at fault."""
    frame = pandas.DataFrame({"kind": Y, "a": X[:, 0], "b": X[:, 1]})
    frame.loc[7, "b"] = np.nan
    with pytest.raises(ov.InputError, match=r"^source: row 7, column 'b' is nan"):
        ov.Samples(frame, target="kind")
    with pytest.raises(ov.InputError, match=r"^source: row 7, column 2 \(counted from 0\) is nan"):
        ov.Samples(frame.to_numpy(), target=0)
    with pytest.warns(UserWarning, match=r"^target: column 'copy' has a correlation of -1 with the labels"):
        ov.Samples(pandas.DataFrame({"kind": Y, "a": X[:, 0], "copy": -Y}), target="kind")


def test_whole_numbers_that_are_quantities() -> None:
    """Grades of which few occur seldom are told to be passed as floats."""
    grades = np.repeat([3, 4, 5, 9], [20, 20, 18, 2])
    with pytest.raises(ov.InputError, match=r"class 9 has 2 rows.*pass them as floats \(`learn --regression`\)"):
        ov.Samples(X, grades)
    assert ov.Samples(X, quantities(grades)).classes == ()
    with pytest.raises(ov.InputError, match=r"^regression: the labels are of object, expected numbers"):
        quantities(np.array(["good", None], object))


def test_a_column_that_codes_the_classes_is_worth_a_warning() -> None:
    """Codes in another order than the classes, which no correlation shows; a column of two noisy values is none."""
    rng = np.random.default_rng(0)
    kinds = np.arange(300) % 3
    rows = rng.standard_normal((300, 4))
    codes = np.array([2.0, 0.0, 1.0])[kinds]
    with pytest.warns(UserWarning, match=r"^target: column 4 \(counted from 0\) determines the labels"):
        ov.Samples(np.column_stack([rows, codes]), kinds)
    codes[:3] = codes[2::-1]
    ov.Samples(np.column_stack([rows, codes]), kinds)  # warnings are errors here
    ov.Samples(np.column_stack([rows, kinds > 0]), kinds + 0.1 * rng.standard_normal(300))


def test_what_is_worth_a_warning() -> None:
    with pytest.warns(UserWarning, match=r"columns have very different scales \(ranges from .*standardise=True"):
        ov.Samples(X * [1.0, 1.0, 1e4], Y)
    with pytest.warns(UserWarning, match=r"target: column 1 .*correlation of -1 with the labels.*leave it out"):
        ov.Samples(np.column_stack([X[:, 0], -2 * Y + 3, X[:, 1]]), Y)
    with pytest.warns(UserWarning, match=r"source: 60 of 120 rows are repeated"):
        ov.Samples(np.vstack([X, X]), np.concatenate([Y, Y]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ov.Samples(X * [1.0, 1.0, 1e4], Y, standardise=True)
        ov.Samples(ov.digits(), digit_labels() % 2)
        ov.Samples(np.vstack([X, X]), np.concatenate([Y, -Y]))  # the same features, other labels


# --- the exact mean --------------------------------------------------------------------------------------------------


def test_the_table_of_the_digits() -> None:
    """Theory to four digits; training on the rows within one per cent at a useful rate, four near the edge."""
    data = ov.Samples(ov.digits(), digit_labels() % 2)
    table = {0.1: (0.2972, 0.1700, 0.1578), 0.4: (0.2378, 0.1901, 0.1871), 0.8: (0.2880, 0.2602, 0.2582)}
    times = np.array([61, 1000, 6000]) / 61
    for rate, expected in table.items():
        p = learn(data, rate)
        start = ov.draw(p, 61, scale=0.0)
        theory = ov.solve(p, start, times)
        np.testing.assert_allclose(theory.data["error"].values[0], expected, atol=5.1e-5)
        runs = ov.train(p, start, times, runs=40, seed=2, progress=False).data["error"]
        bar = student.isf(LEVEL / 18, 39) * runs.std("run", ddof=1) / np.sqrt(40)
        gap = np.abs(runs.mean("run").values - expected)
        assert np.all(gap <= bar.values + (0.01 if rate < 0.2 else 0.045) * np.array(expected)), (rate, gap)
        measured = ov.solve(p, start, times, system="measured-moments").data["error"].values[0]
        assert np.all(np.abs(runs.mean("run").values - measured) <= bar.values + 0.005 * measured), rate
    with pytest.raises(ov.NumericalError, match=r"^macro: the mean error at size 61 grew without bound by time .*rate"):
        ov.solve(learn(data, 3.0), ov.draw(learn(data, 3.0), 61), [1e4])


def by_hand(
    p: ov.Problem,
    start: ov.Start,
    steps: list[int],
    *,
    batch: float = 1.0,
    isserlis: float = 1.0,
    velocity: bool = True,
) -> np.ndarray:
    """Errors by the second moments of all rows as one matrix, (J N, J N), written for one unit of readout one.

    batch, isserlis, velocity: factors that make the theory wrong on purpose.
    """
    assert isinstance(p.data, ov.Samples) and start.student is not None and start.teacher is not None
    omega, N, update = p.data.eigenvalues, p.data.size, p.update
    assert isinstance(update, Update)
    J = update.rule.rows
    # rows are (w - B, velocities, B): with decay the teacher itself enters
    first = np.concatenate([(start.student - start.teacher)[0], np.zeros((J - 1) * N), start.teacher[0]])
    moments, errors = np.outer(first, first), []
    matrices = update.steps(0, max(steps), N)
    for s in range(max(steps) + 1):
        power = float(omega @ np.diag(moments)[:N]) / N
        if s in steps:
            errors.append(0.5 * (power + p.data.unexplained))
        if s == max(steps):
            break
        L, pull = matrices.keep[s].copy(), matrices.pull[s]
        if not velocity:
            L[0, 1:] = 0.0
        # w' = L00 w + ..., so that w' - B = L00 (w - B) + (L00 - 1) B + ...
        full = np.zeros((J + 1, J + 1))
        full[:J, :J], full[:J, J], full[J, J] = L, L[:, 0], 1.0
        full[0, J] -= 1.0
        step = np.kron(full, np.eye(N))
        mean = step.copy()
        for j in range(J):
            mean[j * N : (j + 1) * N, :N] -= pull[j] * np.diag(omega) / N
        E = moments[:N, :N]
        noise = np.diag(omega) * (power + p.data.unexplained) + isserlis * (omega[:, None] * E * omega) / N
        moments = mean @ moments @ mean.T
        spread = np.zeros((J + 1, J + 1))
        spread[:J, :J] = np.outer(pull, pull) * batch / update.batch
        moments += np.kron(spread, noise / N)
    return np.array(errors)


ALGORITHMS = {
    "one": ov.OnlineSGD(0.6),
    "batch": ov.OnlineSGD(1.0, batch=8),
    "schedule": ov.OnlineSGD(ov.Schedule([0.0, 3.0, 6.0], [0.2, 0.9, 0.05])),
    "momentum": ov.OnlineSGD(0.15, momentum=0.8),
    "memory": ov.OnlineSGD(0.5, memory=1.0),
    "all": ov.OnlineSGD(ov.Schedule([0.0, 6.0], [0.8, 0.1]), batch=8, momentum=0.6, decay=0.3),
}
STEPS = [12, 40, 72]
WRONG: dict[str, tuple[str, dict[str, Any]]] = {
    "noise of single samples": ("batch", {"batch": 8.0}),
    "no fourth moments": ("one", {"isserlis": 0.0}),
    "no velocity": ("all", {"velocity": False}),
}


def of_twelve(name: str) -> tuple[ov.Problem, ov.Start]:
    p = learn(rows_of_twelve(), ALGORITHMS[name])
    return p, ov.draw(p, 12, seed=1, scale=0.5)


@cache
def rows_of_twelve() -> ov.Samples:
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((300, 12)) * np.geomspace(2, 0.2, 12)
    return ov.Samples(rows, rows @ rng.standard_normal(12) + 0.8 * rng.standard_normal(300))


@pytest.mark.parametrize("name", ALGORITHMS)
def test_the_exact_mean_is_that_of_runs(name: str) -> None:
    """Against the moments as one matrix, to rounding, and against runs of the chain on Gaussian inputs."""
    p, start = of_twelve(name)
    theory = ov.solve(p, start, np.array(STEPS) / 12).data["error"].values[0]
    np.testing.assert_allclose(theory, by_hand(p, start, STEPS), rtol=1e-10)
    assert deviation(name, theory) < 1


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_means_are_rejected(wrong: str) -> None:
    name, change = WRONG[wrong]
    assert deviation(name, by_hand(*of_twelve(name), STEPS, **change)) > 1


def deviation(name: str, theory: np.ndarray) -> float:
    """Largest deviation of the mean of runs, in units of what LEVEL allows."""
    runs = runs_of_twelve(name)
    bar = runs.std(0, ddof=1) / np.sqrt(len(runs))
    return float((np.abs(runs.mean(0) - theory) / bar).max() / student.isf(LEVEL / 2 / len(STEPS), len(runs) - 1))


@cache
def runs_of_twelve(name: str) -> np.ndarray:
    """Errors of runs of the chain, (runs, STEPS)."""
    return ov.sample(*of_twelve(name), np.array(STEPS) / 12, runs=3000, seed=4, progress=False).data["error"].values


def test_units_of_a_linear_committee_and_levels() -> None:
    """Two units with readouts are one vector at another rate; overlaps per level sum to the totals."""
    data = rows_of_twelve()
    two, one = learn(data, 0.3, ov.Committee(2, "linear", [1.0, -0.7])), learn(data, 0.3 * 1.49)
    pair = ov.draw(two, 12, seed=1, scale=0.5)
    assert pair.student is not None
    single = ov.Start.from_weights(one, np.array([[1.0, -0.7]]) @ pair.student)
    times = [0.5, 3.0]
    a, b = ov.solve(two, pair, times, levels=True), ov.solve(one, single, times)
    np.testing.assert_allclose(a.data["error"], b.data["error"], rtol=1e-12)
    Q = np.einsum("b,rtbij->rtij", data.eigenvalues, a.data["Q_levels"])
    np.testing.assert_allclose(Q, a.data["Q"], rtol=1e-12)
    meso = ov.sample(two, pair, times, runs=200, seed=0, progress=False)
    assert ov.compare(a, meso, level=LEVEL).verdict == "agrees"


def test_gradient_flow_and_the_limit_of_large_size() -> None:
    """The other systems of equations take the same labels; flow has a closed form."""
    data = rows_of_twelve()
    flow = learn(data, ov.GradientFlow(0.5))
    start = ov.draw(flow, 12, seed=1, scale=0.5)
    assert start.student is not None and start.teacher is not None
    apart = (start.student - start.teacher)[0] * np.exp(-0.5 * data.eigenvalues * 2.0)
    expected = 0.5 * (data.eigenvalues @ apart**2 / 12 + data.unexplained)
    assert ov.solve(flow, start, [2.0]).data["error"].item() == pytest.approx(expected, rel=1e-8)
    slow = learn(data, 0.01)
    exact, limit = (ov.solve(slow, start, [100.0], system=s).data["error"].item() for s in ("exact-mean", "levels"))
    assert exact == pytest.approx(limit, rel=1e-3) and exact != limit


def test_the_exact_mean_of_other_problems() -> None:
    """It is a system of equations like the others, for linear networks on Gaussian inputs of a size."""
    spectrum = ov.PowerLaw(levels=5, exponent=0.5)
    p = ov.Problem(data=ov.GaussianInputs(spectrum), teacher=LINEAR, student=LINEAR, algorithm=ov.OnlineSGD(0.4))
    start = ov.Start.from_overlaps(p, *(np.full((5, 1, 1), x / 5) for x in (0.0, 0.0, 1.0)), size=40)
    found = ov.solve(p, start, [0.5, 4.0], system="exact-mean").data["error"].values[0]
    np.testing.assert_allclose(found, ov.laws.finite_size_error(spectrum, 40, 0.4, [0.5, 4.0]), rtol=1e-10)
    curved = ov.Problem(data=p.data, teacher=LINEAR, student=ov.Committee(1), algorithm=ov.OnlineSGD(0.4))
    for problem, words in (
        (curved, "^system: the exact mean is that of a linear student"),
        (p, "^start: the exact mean"),
    ):
        with pytest.raises(ov.InputError, match=words):
            ov.solve(problem, ov.Start.from_overlaps(problem, start.Q, start.R, start.T), [1.0], system="exact-mean")


def test_measured_moments_of_rows() -> None:
    """One step from a start that is not random, against the average over the rows themselves; a batch divides it."""
    data = rows_of_twelve()
    assert data.own_teacher is not None and data.targets is not None
    for batch in (1, 3):
        p = learn(data, ov.OnlineSGD(0.9, batch=batch))
        apart = np.zeros((1, 12))
        apart[0, 2] = 3.0  # along one axis the deviations of coordinates are uncorrelated
        start = ov.Start.from_weights(p, data.own_teacher + apart)
        delta = data.rows @ start.student[0] / np.sqrt(12) - data.targets  # pyright: ignore
        gradient = delta[:, None] * data.rows / np.sqrt(12)
        mean = gradient.mean(0)
        second = (gradient**2).mean(0) / batch + (1 - 1 / batch) * mean**2
        squares = apart[0] ** 2 - 2 * 0.9 * apart[0] * mean + 0.81 * second
        cross = 2 * (data.rows @ apart[0] / np.sqrt(12)) * (delta - data.rows @ apart[0] / np.sqrt(12))
        squares -= 0.81 / batch * (cross[:, None] * data.rows**2).mean(0) / 12  # residuals correlated with x: left out
        expected = 0.5 * (data.eigenvalues @ squares / 12 + data.unexplained)
        found = ov.solve(p, start, [1 / 12], system="measured-moments").data["error"].item()
        assert found == pytest.approx(expected, rel=1e-10)
    with pytest.raises(ov.InputError, match=r"^system: measured-moments are those of labelled rows"):
        q = ov.Problem(data=ov.GaussianInputs(), teacher=LINEAR, student=LINEAR, algorithm=ov.OnlineSGD(0.9))
        ov.solve(q, ov.draw(q, 5), [1.0], system="measured-moments")


def test_training_of_any_student_measures_the_loss_of_the_rows(tmp_path: Path) -> None:
    """An erf student on rows: its error is the mean loss over all of them, and what is saved comes back."""
    data = ov.Samples(CSV, target="kind")
    p = learn(data, 0.2, ov.Committee(2))
    start = ov.draw(p, 4, seed=0, scale=0.5)
    assert start.student is not None and data.targets is not None
    result = ov.train(p, start, [0.0, 2.0], runs=2, seed=1, progress=False)
    outputs = erf(data.rows @ start.student.T / np.sqrt(8)).sum(1)
    assert result.data["error"].values[0, 0] == pytest.approx(0.5 * np.mean((outputs - data.targets) ** 2))
    again = ov.load(result.save(tmp_path / "a.nc"))
    assert again.problem == p
    real = learn(ov.Samples(X, Y), 0.2, ov.Committee(2))
    with pytest.raises(ov.InputError, match=r"^student: theory of labelled rows is for linear students"):
        ov.solve(real, ov.draw(real, 3), [1.0])
