"""Trajectories: names, files, pictures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr
from matplotlib.axes import Axes

import overlaps as ov
from contracts.cases import labelled_gaussian_rows
from problems import problem

P = problem(students=3, spectrum=ov.PowerLaw(4, 0.5), train_readout=True)
TIMES = [0, 0.5, 1.5]


def value(lam, nu, c, v):
    return 0.5 * (np.sum(v * lam) - np.sum(nu)) ** 2


def gradient(lam, nu, c, v):
    miss = np.sum(v * lam) - np.sum(nu)
    return v * miss, lam * miss


@pytest.fixture(scope="module")
def start() -> ov.Start:
    return ov.draw(P, 40, seed=1, scale=0.5)


@pytest.fixture(scope="module")
def results(start: ov.Start) -> dict[str, ov.Trajectory]:
    return {
        "macro": ov.solve(P, start, TIMES, levels=True),
        "meso": ov.sample(P, start, TIMES, runs=3, seed=1, levels=True, progress=False),
        "micro": ov.train(P, start, TIMES, runs=2, seed=1, levels=True, progress=False),
    }


SCALES = ["macro", "meso", "micro"]
RUNS = {"macro": 1, "meso": 3, "micro": 2}


@pytest.mark.parametrize("scale", SCALES)
def test_names_and_dims(results: dict[str, ov.Trajectory], scale: str) -> None:
    """The same variable has the same dimensions at every scale."""
    m = results[scale]
    expected = {
        "Q": ("run", "time", "student", "student_"),
        "R": ("run", "time", "student", "teacher"),
        "T": ("teacher", "teacher_"),
        "v": ("run", "time", "student"),
        "error": ("run", "time"),
        "Q_levels": ("run", "time", "level", "student", "student_"),
        "R_levels": ("run", "time", "level", "student", "teacher"),
        "T_levels": ("level", "teacher", "teacher_"),
    }
    assert {name: m.data[name].dims for name in m.data.data_vars} == expected
    sizes = {"run": RUNS[scale], "time": 3, "student": 3, "student_": 3, "teacher": 2, "teacher_": 2, "level": 4}
    assert dict(m.data.sizes) == sizes
    assert m.time.tolist() == TIMES and m.scale == scale and m.runs == RUNS[scale] and m.size == 40
    assert np.all(np.isfinite(m.data["error"]))
    assert m.data.attrs["spec"] == P.to_toml() and m.data.attrs["overlaps"] == ov.__version__


@pytest.mark.parametrize("scale", SCALES)
def test_levels_add_up(results: dict[str, ov.Trajectory], scale: str) -> None:
    d = results[scale].data
    for name in ("Q", "R", "T"):
        total = (d[f"{name}_levels"] * d["eigenvalue"]).sum("level")
        assert np.abs(total - d[name]).max() < 1e-12


@pytest.mark.parametrize("scale", SCALES)
def test_all_scales_begin_at_the_start(results: dict[str, ov.Trajectory], start: ov.Start, scale: str) -> None:
    first = results[scale].data.isel(time=0)
    for r in range(RUNS[scale]):
        assert first["Q_levels"].values[r] == pytest.approx(start.Q, abs=1e-12)
        assert first["R_levels"].values[r] == pytest.approx(start.R, abs=1e-12)
        assert first["v"].values[r] == pytest.approx(start.v)


def test_levels_only_on_request(start: ov.Start) -> None:
    assert "Q_levels" not in ov.solve(P, start, [0.1]).data


def test_error_is_the_average_at_the_overlaps(results: dict[str, ov.Trajectory]) -> None:
    """The error column belongs to the overlaps and the readout beside it."""
    d = results["micro"].data.isel(run=1, time=2)
    C = np.block([[d["Q"].values, d["R"].values], [d["R"].values.T, d["T"].values]])
    assert float(d["error"]) == pytest.approx(ov.gaussian_averages(P, C, d["v"].values).error, abs=1e-13)


def test_repr(results: dict[str, ov.Trajectory], start: ov.Start) -> None:
    """What it is, what it cost, how accurate."""
    macro, meso, micro = (repr(results[scale]) for scale in SCALES)
    assert macro.startswith("macro trajectory: K = 3, M = 2, 4 levels")
    assert "closed form (erf)" in macro and "evaluations" in macro and "3 times from 0 to 1.5" in macro
    assert "meso trajectory" in meso and "N = 40, 3 runs, seed 1" in meso and "60 steps" in meso and "±" in meso
    assert "micro trajectory" in micro and "2 runs" in micro and "cost:" in micro
    alone = ov.train(P, start, [0.1], runs=1, progress=False)
    assert "1 run," in repr(alone) and "no error bar" in repr(alone)


def test_accuracy_of_the_scales(results: dict[str, ov.Trajectory]) -> None:
    assert 0 < results["macro"].accuracy("Q") < 1e-8
    assert results["micro"].accuracy("Q") == 0


# --- files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", SCALES)
def test_save_and_load(results: dict[str, ov.Trajectory], scale: str, tmp_path: Path) -> None:
    m = results[scale]
    path = m.save(tmp_path / "deep" / "run.nc")
    assert path == tmp_path / "deep" / "run.nc"
    again = ov.load(path)
    xr.testing.assert_identical(again.data, m.data)
    assert again.problem == P
    assert repr(again) == repr(m)
    for name in ("Q", "R", "T", "v", "u", "fractions", "dimensions"):
        assert np.array_equal(getattr(again.start, name), getattr(m.start, name)), name
    assert again.size == m.size and again.accuracy("Q") == m.accuracy("Q")
    assert [p.name for p in path.parent.iterdir()] == ["run.nc"], "scratch files left behind"


def test_loaded_start_can_be_run(results: dict[str, ov.Trajectory], tmp_path: Path) -> None:
    again = ov.load(results["macro"].save(tmp_path / "a.nc"))
    assert again.problem is not None
    once_more = ov.solve(again.problem, again.start, TIMES)
    assert np.array_equal(once_more.data["Q"], results["macro"].data["Q"])


def test_infinite_size_survives(tmp_path: Path) -> None:
    p = problem(students=1, teachers=1)
    m = ov.solve(p, ov.Start.from_overlaps(p, Q=[[0.5]], R=[[0.1]], T=[[1.0]]), [1.0])
    again = ov.load(m.save(tmp_path / "a.nc"))
    assert again.size is None and again.start.dimensions is None


def test_problem_with_user_functions(tmp_path: Path) -> None:
    """Functions cannot be stored: the problem is gone, the numbers and a description are not."""
    p = problem("linear", 1, 1, loss=ov.Loss(value, gradient))
    m = ov.sample(p, ov.draw(p, 10), [1.0], runs=2, progress=False)
    again = ov.load(m.save(tmp_path / "a.nc"))
    assert again.problem is None
    assert "Loss('user')" in again.data.attrs["description"]
    xr.testing.assert_identical(again.data, m.data)


def test_save_replaces_and_takes_strings(results: dict[str, ov.Trajectory], tmp_path: Path) -> None:
    path = str(tmp_path / "a.nc")
    results["macro"].save(path)
    results["micro"].save(path)
    assert ov.load(path).scale == "micro"


def test_failed_save_leaves_the_old_file(
    results: dict[str, ov.Trajectory], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk half way through."""
    path = results["macro"].save(tmp_path / "a.nc")
    before = path.read_bytes()

    def broken(*args: Any, **kwargs: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(xr.Dataset, "to_netcdf", broken)
    with pytest.raises(OSError, match="disk full"):
        results["micro"].save(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["a.nc"]


def test_load_of_something_else(tmp_path: Path) -> None:
    with pytest.raises(ov.InputError, match="load: no file"):
        ov.load(tmp_path / "nothing.nc")
    with pytest.raises(ov.InputError, match="load: no file"):
        ov.load(tmp_path)
    (tmp_path / "garbage.nc").write_bytes(b"not a netCDF file" * 100)
    with pytest.raises(ov.InputError, match="is not a netCDF file"):
        ov.load(tmp_path / "garbage.nc")
    (tmp_path / "empty.nc").write_bytes(b"")
    with pytest.raises(ov.InputError, match="is not a netCDF file"):
        ov.load(tmp_path / "empty.nc")
    xr.Dataset({"a": ("x", [1.0])}).to_netcdf(tmp_path / "other.nc", engine="h5netcdf")
    with pytest.raises(ov.InputError, match="was not written by"):
        ov.load(tmp_path / "other.nc")


def test_load_of_a_truncated_file(results: dict[str, ov.Trajectory], tmp_path: Path) -> None:
    path = results["macro"].save(tmp_path / "a.nc")
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(ov.InputError, match=r"^load: "):
        ov.load(path)


# --- pictures --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", ["Q", "R", "v", "error", "Q_levels", "R_levels"])
def test_every_variable_can_be_drawn(results: dict[str, ov.Trajectory], scale: str, name: str) -> None:
    ax = results[scale].plot(name)
    assert isinstance(ax, Axes)
    assert len(ax.lines) == results[scale].data[name].isel(run=0, time=0).size
    assert ax.get_xlabel() and ax.get_ylabel()
    plt.close(ax.figure)


def test_plots_can_be_laid_over_each_other(results: dict[str, ov.Trajectory]) -> None:
    ax = results["macro"].plot()
    assert results["micro"].plot("error", ax=ax, color="k", label="mine") is ax
    labels = [str(line.get_label()) for line in ax.lines]
    assert len(labels) == 2 and labels[0].startswith("macro") and labels[1] == "mine"
    plt.close(ax.figure)


def test_samples_and_epochs_can_be_the_axis(results: dict[str, ov.Trajectory]) -> None:
    """Batches of four see four times as many samples; what a trajectory does not have is refused by name."""
    batches = replace(P, algorithm=ov.OnlineSGD(0.3, batch=4))
    start = ov.draw(batches, 50, seed=0)
    for result in (ov.solve(batches, start, [0.0, 2.0]), ov.train(batches, start, [0.0, 2.0], runs=2)):
        ax = result.plot("Q", x="samples")
        assert ax.lines[0].get_xdata().tolist() == [0.0, 400.0] and ax.get_xlabel() == "samples seen"
        plt.close(ax.figure)
        figure = result.plot("error", x="samples", interactive=True)
        assert max(figure.data[-1].x) == 400.0 and figure.layout.xaxis.title.text == "samples seen"
    rows = labelled_gaussian_rows()
    passes = ov.Problem(data=rows, student=ov.Committee(1, "linear"), algorithm=ov.MultiPass(0.2, samples=100))
    result = ov.solve(passes, ov.draw(passes, rows.size), [0.0, 5.0])
    ax = result.plot("error", x="epoch")
    assert ax.lines[0].get_xdata().tolist() == result.data["epoch"].values.tolist() and ax.get_xlabel() == "epochs"
    plt.close(ax.figure)
    q = problem(students=1, teachers=1)
    infinite = ov.solve(q, ov.Start.from_overlaps(q, Q=[[0.5]], R=[[0.1]], T=[[1.0]]), [0.0, 1.0])
    with pytest.raises(ov.InputError, match=r"^x: this trajectory has no samples seen, .*use 'time'$"):
        infinite.plot(x="samples")
    with pytest.raises(ov.InputError, match=r"^x: this trajectory has no epochs, .*use 'time' or 'samples'$"):
        results["macro"].plot(x="epoch")
    for wrong in ("step", 3, None):
        with pytest.raises(ov.InputError, match=r"^x: expected "):
            results["macro"].plot(x=wrong)  # type: ignore[arg-type]


def test_rates_can_be_drawn() -> None:
    """With both values at a jump, of both layers where both learn."""
    steps = ov.schedules.Steps([1.0], [0.4, 0.1])
    ax = replace(P, algorithm=ov.OnlineSGD(steps)).plot_rates(2.0)
    x, y = (np.asarray(part) for part in ax.lines[0].get_data())
    assert y[x == 1.0].tolist() == [0.4, 0.1] and set(y[x < 1]) == {0.4} and set(y[x > 1]) == {0.1}
    assert (x[0], x[-1]) == (0.0, 2.0) and (np.diff(x) >= 0).all() and ax.get_ylabel() == "learning rate"
    plt.close(ax.figure)
    both = replace(
        P, student=replace(P.student, train_readout=True), algorithm=ov.OnlineSGD(steps, ov.schedules.Cosine(0.2, 2.0))
    )
    ax = both.plot_rates(3.0, color="k")
    assert [line.get_label() for line in ax.lines] == ["rate", "readout_rate"] and ax.get_legend() is not None
    assert np.asarray(ax.lines[1].get_ydata())[-1] == 0.0
    plt.close(ax.figure)
    with pytest.raises(ov.InputError, match=r"^last: "):
        both.plot_rates(0.0)


def test_single_time_can_be_drawn(start: ov.Start) -> None:
    for times in ([0.0], [1.0], [0.0, 1.0]):
        ax = ov.solve(P, start, times).plot()
        plt.close(ax.figure)


def test_unknown_variable(results: dict[str, ov.Trajectory]) -> None:
    with pytest.raises(ov.InputError, match="unknown variable 'errors'; did you mean 'error'"):
        results["macro"].plot("errors")


def test_citations(results: dict[str, ov.Trajectory]) -> None:
    assert all(isinstance(line, str) and line for line in results["macro"].citations())


# --- times -----------------------------------------------------------------------------------------------------------


def test_logtimes() -> None:
    t = ov.logtimes(0.1, 100, 4)
    assert t.tolist() == pytest.approx([0, 0.1, 1, 10, 100])
    assert t[1] == 0.1 and t[-1] == 100  # exactly, so that they can be selected


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((0, 1, 3), "first: expected a number above 0"),
        ((1, 1, 3), "last: expected a time after first"),
        ((2, 1, 3), "last: expected a time after first"),
        ((1, float("inf"), 3), "last: expected a finite"),
        ((1, 2, 1), "count: expected at least 2"),
        ((1, 2, 2.5), "count: expected a whole number"),
        (("a", 2, 3), "first: expected a number"),
    ],
)
def test_bad_logtimes(arguments: tuple, words: str) -> None:
    with pytest.raises(ov.InputError, match=words):
        ov.logtimes(*arguments)


def test_times_between_steps(start: ov.Start) -> None:
    """A time between two steps lies on the line between them."""
    m = ov.train(P, start, [0.25, 0.2625, 0.275], runs=1, progress=False)  # steps 10, 10.5, 11
    Q = m.data["Q"].values[0]
    assert Q[1] == pytest.approx((Q[0] + Q[2]) / 2, abs=1e-14)


@pytest.mark.parametrize("scale", ["meso", "micro"])
def test_same_seed_same_bits(start: ov.Start, scale: str) -> None:
    """And other requested times do not change the run."""
    run = {"meso": ov.sample, "micro": ov.train}[scale]
    a = run(P, start, [1.0, 1.5], runs=2, seed=5, progress=False)
    b = run(P, start, [0.3, 1.0, 1.25, 1.5], runs=2, seed=5, progress=False)
    c = run(P, start, [1.0, 1.5], runs=2, seed=6, progress=False)
    assert np.array_equal(a.data["Q"], b.data["Q"].sel(time=[1.0, 1.5]))
    assert not np.array_equal(a.data["Q"], c.data["Q"])
    assert not np.array_equal(a.data["Q"].isel(run=0, time=-1), a.data["Q"].isel(run=1, time=-1))


@pytest.mark.parametrize("scale", ["meso", "micro"])
def test_divergence_of_a_run(scale: str, tmp_path: Path) -> None:
    """It names run, time and quantity, and what all runs had reached before can be saved."""
    p = problem("linear", 1, 1, rate=6.0)
    start = ov.draw(p, 20, seed=1)
    run = {"meso": ov.sample, "micro": ov.train}[scale]
    with pytest.raises(
        ov.NumericalError, match=rf"{scale}: an overlap grew without bound: Q\[0, 0\].*run \d.*time"
    ) as caught:
        run(p, start, [0, 0.5, 10_000], runs=2, progress=False)
    error = caught.value
    assert error.quantity == "Q[0, 0]" and 0.5 <= error.time <= 10_000
    assert error.partial is not None and error.partial.time.tolist() == [0, 0.5]
    assert np.all(np.isfinite(ov.load(error.partial.save(tmp_path / "a.nc")).data["Q"]))
