"""Sweeps: every cell is what a call by hand gives, in its place, and one dataset has them all."""

from __future__ import annotations

import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr

import overlaps as ov
from notebooks import shown
from overlaps.plot import grid
from overlaps.sweep.cell import Cell, Outcome, compute
from overlaps.sweep.grid import Grid, rebuilt
from sweeps import NET, OVER, PROBLEM, same, small

TIMES = [0.0, 0.5, 1.0]


def test_every_cell_is_what_a_call_by_hand_gives() -> None:
    data = small(scales=("macro", "meso", "micro")).data
    assert data["error"].dims == ("rate", "exponent", "seed", "scale", "run", "time")
    assert data["error"].shape == (3, 2, 2, 3, 1, 3)
    for rate in OVER["algorithm.rate"]:
        for exponent in OVER["data.spectrum.exponent"]:
            problem = replace(
                PROBLEM,
                data=ov.GaussianInputs(ov.PowerLaw(levels=2, exponent=exponent)),
                algorithm=ov.OnlineSGD(rate=rate),
            )
            for seed in (0, 1):
                start = ov.draw(problem, 40, seed)
                by_hand = {
                    "macro": ov.solve(problem, start, TIMES),
                    "meso": ov.sample(problem, start, TIMES, 1, seed),
                    "micro": ov.train(problem, start, TIMES, 1, seed),
                }
                for scale, expected in by_hand.items():
                    cell = data.sel(rate=rate, exponent=exponent, seed=seed, scale=scale)
                    for name in ("Q", "R", "error"):
                        np.testing.assert_array_equal(cell[name].values, expected.data[name].values)
                    np.testing.assert_array_equal(cell["eigenvalue"], start.eigenvalues)
    assert set(np.unique(data["status"])) == {"done"}
    assert (data["error_accuracy"].sel(scale="macro") < 1e-6).all()


def test_processes_and_this_process_give_the_same_bits(tmp_path: Path) -> None:
    assert same(small(tmp_path / "store", workers=2).data, small().data)


def test_a_cell_that_is_refused_or_diverges_is_recorded_and_the_others_are_computed() -> None:
    found = small(over={"algorithm.rate": [-1.0, 0.5, 400.0]}, times=[0.0, 1.0, 30.0])
    status = found.data["status"].isel(seed=0)
    assert status.sel(rate=0.5).values.tolist() == ["done", "done"]
    assert status.sel(rate=-1.0).values.tolist() == ["refused", "refused"]
    assert status.sel(rate=400.0).values.tolist() == ["failed", "failed"]
    reason = found.data["reason"].isel(seed=0)
    assert "rate: expected a number above 0, got -1" in reason.sel(rate=-1.0, scale="macro").item()
    assert "without bound" in reason.sel(rate=400.0, scale="meso").item()
    error = found.data["error"].isel(seed=0, run=0)
    assert np.isfinite(error.sel(rate=0.5)).all() and np.isnan(error.sel(rate=-1.0)).all()
    assert np.isfinite(error.sel(rate=400.0, time=0.0)).all()  # what came before is kept
    assert found.counts == {"done": 4, "refused": 4, "failed": 4}
    assert "rate: expected" in repr(found) and "4 refused" in repr(found)
    with pytest.raises(ov.InputError, match=r"this cell is refused: .*rate: expected"):
        found.trajectory(rate=-1.0, seed=0, scale="macro")


def test_fields_of_problem_start_and_run_crossed_or_together() -> None:
    found = small(
        over={
            "student.units, teacher.units": [(1, 1), (2, 1)],
            "size": [40, 80],
            "start.scale": [0.0, 1.0],
            "meso.runs": [1, 3],
        },
        seeds=[5],
        scales=("meso",),
    )
    data = found.data
    assert data["status"].dims == ("student_units", "size", "start_scale", "runs", "seed", "scale")
    assert data["teacher_units"].dims == ("student_units",) and data["teacher_units"].values.tolist() == [1, 1]
    assert data["seed"].values.tolist() == [5]
    cell = data.sel(student_units=2, size=80, start_scale=1.0, runs=3, seed=5, scale="meso")
    problem = rebuilt(PROBLEM, {"student.units": 2}, "problem")
    by_hand = ov.sample(problem, ov.draw(problem, 80, 5), TIMES, 3, 5)
    np.testing.assert_array_equal(cell["Q"].values, by_hand.data["Q"].values)
    one = data.sel(student_units=1, size=40, start_scale=0.0, runs=1).squeeze()
    assert np.isfinite(one["error"].isel(run=0)).all() and np.isnan(one["error"].isel(run=slice(1, None))).all()
    assert np.isnan(one["Q"].isel(student=1)).all()  # there is one unit
    assert found.trajectory(student_units=2, size=80, start_scale=1.0, runs=3).runs == 3


def test_a_function_that_makes_problems() -> None:
    def problem(units: int, noise: float) -> ov.Problem:
        return replace(PROBLEM, student=ov.Committee(units, "linear"), label_noise=noise)

    found = ov.sweep(
        problem,
        {"units": [1, 2], "noise": [0.0, 0.5], "size": [30]},
        times=TIMES,
        scales="macro",
        progress=False,
        workers=1,
    )
    assert found.data["error"].sel(units=2, noise=0.5).size and found.counts == {"done": 4}
    with pytest.raises(ov.InputError, match="unknown field in over: 'unit'; did you mean 'units'"):
        ov.sweep(problem, {"unit": [1]}, times=TIMES)


def test_times_and_starts_of_each_problem() -> None:
    start = ov.draw(PROBLEM, 40, seed=3)
    found = small(over={"algorithm.rate": [0.5, 1.0]}, times=lambda p: [0.0, 1 / p.algorithm.rate], start=start)
    assert found.data["time"].values.tolist() == [0.0, 1.0, 2.0]
    assert np.isnan(found.data["error"].sel(rate=0.5, time=1.0)).all()
    by_hand = ov.solve(replace(PROBLEM, algorithm=ov.OnlineSGD(1.0)), start, [0.0, 1.0])
    ends = found.data["error"].sel(rate=1.0, scale="macro", time=1.0)
    np.testing.assert_array_equal(ends.values[:, 0], by_hand.data["error"].values[0, 1])
    made = small(over={"algorithm.rate": [0.5]}, start=lambda p, size, seed: ov.draw(p, size, seed))
    assert same(made.data, small(over={"algorithm.rate": [0.5]}).data)
    other = small(over={"data.spectrum.exponent": [0.5, 2.0]}, start=start)
    assert other.data["status"].sel(exponent=2.0).values.ravel().tolist() == ["refused"] * 4


def test_full_batches_many_passes_observers_and_plans() -> None:
    batch = ov.Problem(data=ov.GaussianInputs(), teacher=NET, student=NET, algorithm=ov.FullBatch(rate=0.1, steps=3))
    found = ov.sweep(batch, {"algorithm.steps": [2, 3]}, size=30, progress=False, workers=1)
    assert set(found.counts) == {"done"} and found.data["time"].values.tolist() == [0, 1, 2, 3]
    assert np.isnan(found.data["training_error"].sel(steps=2, time=3)).all()
    rows = np.random.default_rng(0).standard_normal((60, 4))
    passes = ov.Problem(
        data=ov.Samples(rows, rows[:, 0] + np.random.default_rng(1).standard_normal(60)),
        student=NET,
        algorithm=ov.MultiPass(rate=0.2, samples=20),
    )
    found = ov.sweep(
        passes, {"algorithm.samples": [20, 40], "data.standardise": [False, True]}, times=[0, 5],
        scales=("macro", "micro"), progress=False, workers=1,
    )  # fmt: skip
    assert (
        found.trajectory(algorithm_samples=20, standardise="False", seed=0, scale="micro").size == 4
    )  # columns of the rows
    assert found.counts == {"done": 8} and "epoch" in found.data.coords
    watched = ov.sweep(
        PROBLEM, {"algorithm.rate": [0.5]}, times=TIMES, size=30, scales="micro", progress=False, workers=1,
        micro={"observe": ov.spectra.Observer(kinds="hessian", samples=50)},
    )  # fmt: skip
    assert watched.data["hessian_values"].sel(rate=0.5).size
    noisy = replace(PROBLEM, label_noise=0.5)
    plans = ov.sweep(
        noisy, {"optimise.time": [2.0, 4.0]}, times=TIMES, size=30, scales="optimise", optimise={"knots": 3},
        progress=False, workers=1,
    )  # fmt: skip
    by_hand = ov.optimise(noisy, ov.draw(noisy, 30), 4.0, knots=3)
    assert plans.data["error"].sel(optimise_time=4.0, time=4.0).item() == by_hand.error
    np.testing.assert_array_equal(plans.data["knot_rate"].isel(optimise_time=1).values.ravel(), by_hand.rates)


@pytest.mark.parametrize(
    ("over", "words"),
    [
        ({"algorithm.speed": [1]}, "over: algorithm is OnlineSGD and has no 'speed'"),
        ({"algoritm.rate": [1]}, "unknown field in over: 'algoritm.rate'"),
        ({"algorithm.rate.knots": [1]}, "leads nowhere"),
        ({"algorithm.rate": 0.5}, "algorithm.rate: expected a list of values, got 0.5"),
        ({"algorithm.rate": []}, "has no values"),
        ({"algorithm.rate": [0.5, 0.5]}, "has the value 0.5 twice"),
        ({"algorithm.rate": [1, 1.0]}, "has the value 1 twice"),
        ({"size": [40, "a", 40.0]}, "has the value 40 twice"),
        ({"algorithm.rate, size": [(0.5, 1, 2)]}, "each value is 2 values"),
        ({"algorithm.rate": [1], "algorithm.rate, size": [(1, 2)]}, "is varied twice"),
        ({"meso.speed": [1]}, "unknown field in over: 'meso.speed'"),
        ({3: [1]}, "expected the path of a field"),
        ([("algorithm.rate", [1])], "over: expected a mapping"),
    ],
)
def test_grids_that_lead_nowhere_are_refused(over: object, words: str) -> None:
    with pytest.raises(ov.InputError, match=words):
        ov.sweep(PROBLEM, over, times=TIMES)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"seeds": 0}, "seeds"),
        ({"seeds": [1, 1]}, "seeds: expected a number, or different seeds"),
        ({"scales": ()}, "scales: expected different scales"),
        ({"scales": "macr"}, "unknown scale in scales: 'macr'; did you mean 'macro'"),
        ({"macro": {"speed": 1}}, "unknown option of macro: 'speed'"),
        ({"meso": 3}, "meso: expected a mapping of options"),
        ({"size": 0}, "size"),
        ({"runs": 0}, "runs"),
        ({"start": 3}, "start: expected an overlaps.Start"),
        ({"workers": -1}, "workers"),
        ({"workers": 2, "cluster": "tcp://127.0.0.1:1"}, "leave workers out"),
        ({"store": 3}, "store: expected text or a path"),
    ],
)
def test_options_that_cannot_be_used_are_refused(options: dict, words: str) -> None:
    with pytest.raises(ov.InputError, match=words):
        small(**options)


def test_a_problem_is_needed() -> None:
    with pytest.raises(ov.InputError, match=r"problem: expected an overlaps\.Problem, or a function"):
        ov.sweep(3, OVER)  # type: ignore[arg-type]


def test_the_grid_is_refused_before_it_fills_the_memory() -> None:
    with pytest.raises(ov.InputError, match="combinations"):
        Grid.of(PROBLEM, {"algorithm.rate": np.arange(1, 10**4), "size": np.arange(1, 10**4)})


def test_a_sweep_can_be_asked_while_it_runs_and_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its sixth cell waits until the sweep has been asked to stop, so that nothing here depends on who is faster."""
    over, begun, goes_on = {"algorithm.rate": np.linspace(0.1, 1.0, 20)}, [], threading.Event()

    def waiting(cell: Cell) -> Outcome:
        begun.append(cell)
        assert len(begun) <= 5 or goes_on.wait(60)
        return compute(cell)

    monkeypatch.setattr(sys.modules["overlaps.sweep.result"], "compute", waiting)
    found = small(tmp_path, over=over, wait=False, scales="meso")
    while len(begun) < 6:
        time.sleep(0.001)
    assert found.running and "running" in repr(found)
    data = found.data
    pending = data["status"].values == "pending"
    assert pending.any() and (data["status"].values == "done").any()
    assert np.isnan(data["error"].values[pending]).all()
    stopping = threading.Thread(target=found.stop)
    stopping.start()
    assert found._stop.wait(60)
    goes_on.set()
    stopping.join()
    assert not found.running and 4 <= found.counts["done"] == len(begun) <= 7
    looked = small(tmp_path, over=over, workers=0, scales="meso")
    assert looked.counts == found.counts
    assert small(tmp_path, over=over, scales="meso", wait=False).wait().counts == {"done": 40}


def test_pictures() -> None:
    found = small(
        over={"algorithm.rate": [0.25, 0.5, 1.0, 90.0], "data.spectrum.exponent": [0.5, 1.0]}, times=[0, 1, 9]
    )
    lines = found.plot("rate", "error", "exponent")
    assert len(lines.lines) == 4 and lines.get_xlabel() == "rate"  # two exponents at two scales
    times = found.plot("time", color="rate", at={"exponent": 0.5, "scale": "macro"})
    assert len(times.lines) == 4 and "samples per input dimension" in times.get_xlabel()
    heat = found.plot("rate", "exponent", at={"scale": "macro"})
    drawn = heat.collections[0].get_array()
    expected = found.data["error"].sel(scale="macro").isel(time=-1).mean(["seed", "run"]).transpose("exponent", "rate")
    np.testing.assert_allclose(np.ma.filled(drawn, np.nan).ravel(), expected.values.ravel())
    phases = found.plot("rate", "exponent", "status")
    assert [text.get_text() for text in phases.get_legend().get_texts()] == ["done", "failed"]
    for arguments, words in (
        (("speed", "error"), "unknown dimension for x: 'speed'"),
        (("rate", "speed"), "unknown variable 'speed'"),
        (("rate", "error"), "exponent must be drawn or chosen"),
        (("time", "exponent"), "unknown field for x: 'time'"),
    ):
        with pytest.raises(ov.InputError, match=words):
            found.plot(*arguments)
    assert "<img" in shown(found)
    mapped = found.plot("rate", "exponent", at={"scale": "macro"}, interactive=True).data[0]
    np.testing.assert_allclose(np.array(mapped.customdata, float), expected.values)
    words = found.plot("rate", "exponent", "status", interactive=True).data[0].text
    assert [list(row) for row in words] == [["done", "done", "done", "failed"]] * 2
    with pytest.raises(ov.InputError, match="axes are for matplotlib"):
        found.plot("rate", "exponent", ax=phases, interactive=True)
    plt.close("all")


def test_values_in_any_order_are_drawn_in_their_own() -> None:
    rates, sizes = [0.5, 0.25, 1.0, 60.0], [50, 20, 30]
    mixed = small(over={"algorithm.rate": rates, "size": sizes}, seeds=1)
    ordered = small(over={"algorithm.rate": sorted(rates), "size": sorted(sizes)}, seeds=1)
    for arguments in (("rate", "error", "size"), ("rate", "size"), ("rate", "size", "status")):
        one, other = (found.plot(*arguments) for found in (mixed, ordered))
        assert len(one.lines) == len(other.lines)
        for a, b in zip(one.lines, other.lines, strict=True):
            np.testing.assert_array_equal(a.get_xydata(), b.get_xydata())
            assert (np.diff(a.get_xdata()) > 0).all()
        for a, b in zip(one.collections, other.collections, strict=True):
            if hasattr(a, "get_coordinates"):
                np.testing.assert_array_equal(np.ma.filled(a.get_array(), 0), np.ma.filled(b.get_array(), 0))
                np.testing.assert_array_equal(a.get_coordinates(), b.get_coordinates())
                assert (np.diff(a.get_coordinates()[0, :, 0]) > 0).all()
        drawn = [found.plot(*arguments, interactive=True).data for found in (mixed, ordered)]
        for trace, expected in zip(*drawn, strict=True):
            for axis in "xyz":
                values = [np.array(getattr(each, axis, None), float) for each in (trace, expected)]
                np.testing.assert_array_equal(*values)
    plt.close("all")


def test_a_map_says_its_scale_and_the_worst_status_of_all() -> None:
    found = small(over={"algorithm.rate": [0.25, 0.5, 1.0], "size": [20, 30]}, seeds=1)
    heat = found.plot("rate", "size")
    assert heat.figure.axes[1].get_ylabel() == "error at time 1, macro" and heat.get_xscale() == "log"
    assert found.plot("rate", "size", interactive=True).data[0].colorbar.title.text.endswith("at time 1, macro")
    data = found.data.copy(deep=True)
    data["status"].loc[{"rate": 0.5, "size": 30, "scale": "meso"}] = "failed"
    phases = grid.draw(data, "rate", "size", "status", {}, None)
    assert phases.collections[0].get_array().tolist() == [[0, 0, 0], [0, 1, 0]]
    assert phases.get_legend().get_title().get_text() == "worst of macro, meso"
    plt.close("all")


@pytest.mark.parametrize(
    ("values", "logarithmic"),
    [
        ([0.1, 0.3, 1.0, 3.0], True), ([0.5, 0.7071, 1.0], True), ([64, 128, 256], True), ([0, 1, 40, 80], True),
        ([0.1, 0.2, 0.3], False), ([10, 11, 12], False), ([0.0, 1.0, 2.0, 4.0], False), ([1.0, 2.0, 3.0, 4.0], False),
    ],
)  # fmt: skip
def test_values_evenly_spaced_in_their_logarithms_are_drawn_so(values: list[float], logarithmic: bool) -> None:
    assert grid.is_logarithmic(xr.DataArray(values, dims="rate", name="rate")) is logarithmic


def test_large_datasets_are_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = small(tmp_path).data
    monkeypatch.setattr(sys.modules["overlaps.sweep.assembly"], "LARGE", 100)
    mapped = small(tmp_path).data
    assert same(whole, mapped)
    base = mapped["error"].variable._data  # type: ignore[attr-defined]
    while isinstance(base, np.ndarray) and not isinstance(base, np.memmap):
        base = base.base
    assert isinstance(base, np.memmap)
