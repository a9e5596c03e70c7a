"""A short version of `make fuzz`, and the cases that were once wrong: each is refused by name, or answered rightly."""

from __future__ import annotations

import datetime
import inspect
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import overlaps as ov

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.fuzz.answers import Found, has_nan, judged
from benchmarks.fuzz.calls import fuzz_calls
from benchmarks.fuzz.families import FAMILIES
from benchmarks.fuzz.files import fuzz_files
from benchmarks.fuzz.problems import START, TIMES, P
from benchmarks.fuzz.specs import fuzz_specs
from benchmarks.fuzz.values import nested

MADE_BY_OTHERS = {  # results, which functions make, and what only says what is taken
    "DamagedFileError", "InputError", "MissingExtraError", "NumericalError", "Isotropic", "Start", "Trajectory",
    "digits", "digit_labels", "MetricTraining", "PairTraining", "Theorem", "Hermite", "Scores", "Modes", "Plateau",
    "SingleVector", "Window", "Eigenpairs", "Model", "NetworkMatrix", "OperatorFamily", "PopulationBlock",
    "PopulationMatrix", "PredictedSpectrum", "SymmetricOperator",
}  # fmt: skip
TRAINED = {"train_metric", "train_pair"}  # for longer than a call may take; refused by name in test_deep_*


def test_every_public_function_is_called() -> None:
    called = {name.rpartition(".")[2] for family in FAMILIES.values() for name in family}
    for home in (ov, *(getattr(ov, name) for name in ov.__all__)):
        if isinstance(home, ModuleType) and home is not ov.papers:
            public = {name for name in home.__all__ if callable(getattr(home, name))}
            assert public - called - MADE_BY_OTHERS <= TRAINED, home.__name__


@pytest.mark.parametrize("family", FAMILIES)
def test_calls(family: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    calls = 60 if family == "results" else 150  # pictures take their time
    found = fuzz_calls(FAMILIES[family], calls, seed=11)
    assert not found.wrong and found.calls == calls
    assert found.count["refused"] > calls / 3 and found.count["answered"] > 0


def test_specs() -> None:
    found = fuzz_specs(600, seed=11)
    assert not found.wrong and found.count["refused"] > 100 and found.count["answered"] > 50


def test_damaged_files(tmp_path: Path) -> None:
    found = fuzz_files(60, seed=11)
    assert not found.wrong and found.count["refused"] > 50


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (lambda: 1 / 0, "tracebacks"),
        (lambda: np.array([np.nan]), "NaN"),
        (lambda: [0.0, {"a": np.nan}], "NaN"),
        (lambda: sum(1 for _ in iter(int, 1)), "hangs"),
        (lambda: time.sleep(60), "hangs"),
        (lambda: ov.logtimes(1, 0, 3), "refused"),
        (lambda: ov.logtimes(1, 2, "a"), "other"),
        (lambda: ov.OnlineSGD(-1), "unnamed"),
        (lambda: ov.logtimes(1, 2, 3), "answered"),
        (lambda: np.zeros(1 << 55), "memory"),
    ],
)
def test_what_is_wrong_is_counted_as_such(call: Callable[[], Any], kind: str) -> None:
    found = Found()
    judged(found, "call", call, "", seconds=0.2, replaced=["last"], others=["count"])
    assert found.count == {kind: 1} and bool(found.wrong) == (kind in ("unnamed", "tracebacks", "NaN", "hangs"))


# --- cases that were wrong -------------------------------------------------------------------------------------------

HUGE = 10**5000
MASKED = np.ma.masked_array([1.0, 2.0], [False, True])


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda: ov.Committee(HUGE), "units"),
        (lambda: ov.OnlineSGD(HUGE), "rate"),
        (lambda: ov.draw(P, HUGE), "size"),
        (lambda: ov.sweep(P, {"size": [20]}, times=TIMES, size=HUGE), "size"),
        (lambda: ov.sweep(P, {"size": [20]}, times=TIMES, seeds=[HUGE], scales="macro"), "seeds"),
        (lambda: ov.solve(P, START, nested(500)), "times"),
        (lambda: ov.Spectrum(nested(500), [1.0]), "eigenvalues"),
        (lambda: ov.Spectrum(MASKED, [0.5, 0.5]), "eigenvalues"),
        (lambda: ov.solve(P, START, MASKED), "times"),
        (lambda: ov.gaussian_averages(P, np.ma.masked_array(np.eye(4), np.eye(4))), "covariance"),
        (lambda: ov.OnlineSGD(np.ma.masked_array(0.1, True)), "rate"),  # type: ignore[arg-type]
        (lambda: ov.fit_power([1.0, 2.0, np.ma.masked], [1.0, 2.0, 3.0]), "x"),
        (lambda: ov.Spectrum.from_data([MASKED, MASKED]), "source"),
        (lambda: ov.Spectrum.from_data(np.array([[1.0, np.ma.masked]] * 2, object)), "source"),
        (lambda: ov.Samples(np.eye(2), [1.0, np.ma.masked]), "y"),
        (lambda: ov.Samples(np.eye(2), ["a", np.ma.masked]), "y"),
        (lambda: ov.sweep(P, {"algorithm.rate": [(MASKED, MASKED), [MASKED]]}, times=TIMES), "over"),
        (lambda: ov.giant_step.recall(np.eye(4), np.ma.masked_array([0, 0, 1, 1], [0, 1, 0, 0])), "labels"),
        (lambda: ov.Schedule(MASKED, [0.5, 0.1]), "times"),
        (lambda: ov.logtimes(1, np.nextafter(1, 2), 5), "count"),
        (lambda: ov.Samples(np.eye(2), [[1.0, 2.0], [3.0]]), "y"),
        (lambda: ov.deep.Residual(4, 0.5), "widths"),  # type: ignore[arg-type]
        (lambda: ov.deep.read_folder("λ" * 300), "path"),
        (lambda: ov.HiddenManifold(latent_dim=3, features=datetime.timedelta(1)), "features"),  # type: ignore[arg-type]
        (lambda: ov.HiddenManifold(features=[1, [2, 3]]), "features"),  # type: ignore[list-item]
        (lambda: ov.HiddenManifold(features=np.ma.masked_array(np.eye(2), np.eye(2))), "features"),
        (lambda: ov.Activation("mine", np.tanh, 0.5), "derivative"),  # type: ignore[arg-type]
        (lambda: ov.forecast(datetime.timedelta(1)), "data"),  # type: ignore[call-overload]
        (lambda: ov.gaussian_equivalent(0.5), "f"),  # type: ignore[arg-type]
        (lambda: ov.giant_step.scaled([1.0], [1.0]), "direction"),
        (lambda: ov.spectra.SymmetricOperator.from_matrix([1.0], "mine"), "matrix"),
        (lambda: ov.spectra.stop_time(ov.train(P, START, TIMES, progress=False), "a"), "trajectory"),  # type: ignore[arg-type]
    ],
)
def test_values(call: Callable[[], Any], field: str) -> None:
    with pytest.raises(ov.InputError, match=rf"^{field}\b") as refused:
        call()
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 400


@pytest.mark.parametrize("digits", [4300, 4301, 100_000])
def test_numbers_of_thousands_of_digits_in_a_spec(digits: int) -> None:
    with pytest.raises(ov.InputError) as refused:
        ov.Problem.from_toml(P.to_toml().replace("units = 2", f"units = {'9' * digits}"))
    assert len(str(refused.value)) < 400


def test_empty_and_encrypted_arrays(tmp_path: Path) -> None:
    empty = tmp_path / "empty.npy"
    empty.write_bytes(b"")
    with pytest.raises(ov.InputError, match=r"^features: .*empty\.npy"):
        ov.HiddenManifold(features=str(empty))
    np.savez(tmp_path / "a.npz", X=np.eye(3))
    content = bytearray((tmp_path / "a.npz").read_bytes())
    for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):  # the flag that says that a member is encrypted
        content[content.index(mark) + place] |= 1
    (tmp_path / "a.npz").write_bytes(content)
    with zipfile.ZipFile(tmp_path / "a.npz") as archive, pytest.raises(RuntimeError, match="encrypted"):
        archive.read("X.npy")
    with pytest.raises(ov.InputError, match=r"^source: .*a\.npz"):
        ov.Spectrum.from_data(tmp_path / "a.npz")


def test_lists_of_images_that_are_broken_or_lead_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "cars_annos.mat").write_bytes(b"MATLAB 5.0 MAT-file" + bytes(range(256)))
    with pytest.raises(ov.InputError, match=r"^path: .*cars_annos\.mat"):
        ov.deep.read_cars196(tmp_path)
    (tmp_path / "classes.txt").write_text("1 a\n")
    (tmp_path / "image_class_labels.txt").write_text("1 1\n")
    (tmp_path / "images.txt").write_bytes(b"1 \xff\xfe.png\n")
    with pytest.raises(ov.InputError, match=r"^path: .*images\.txt"):
        ov.deep.read_cub200(tmp_path)
    (tmp_path / "images.txt").write_text("1 ../../secret.png\n")
    with pytest.raises(ov.InputError, match=r"^path: .*secret\.png"):
        ov.deep.read_cub200(tmp_path)


@pytest.mark.parametrize("where", ["problem", "start", "times"])
def test_functions_of_a_sweep_that_raise_are_the_reason_of_their_cells(where: str) -> None:
    def broken(*_: Any, rate: float = 0.0, **__: Any) -> Any:
        raise KeyError("rate")

    problem = broken if where == "problem" else P
    path = "rate" if where == "problem" else "algorithm.rate"
    options = {where: broken} if where != "problem" else {}
    found = ov.sweep(problem, {path: [0.1, 0.2]}, scales="macro", workers=1, **{"times": TIMES, **options})
    assert found.counts == {"refused": 2}
    assert list(found.reasons) == [f"refused: {where}: the function raised KeyError: 'rate'"]


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("Trajectory.plot", "ax"), ("Verdict.plot", "ax"), ("Sweep.plot", "ax"), ("Sweep.cell", "address"),
        ("Animation.save", "path"), ("Forecast.write", "folder"), ("Start.check_fits", "problem"),
    ],
)  # fmt: skip
def test_methods_of_results_refuse_by_name(name: str, field: str) -> None:
    method, arguments = FAMILIES["results"][name]
    for wrong in (3, object()):
        with pytest.raises(ov.InputError, match=rf"^{field}: expected"):
            method(**{**arguments, field: wrong})


def test_results_can_be_looked_into_and_written_into_a_folder_by_its_name(tmp_path: Path) -> None:
    found = ov.solve(P, START, TIMES)
    assert "plot" in dict(inspect.getmembers(found)) and not hasattr(found, "best_epoch")
    with pytest.raises(ov.InputError, match="best_epoch: these runs do not go through a training set"):
        _ = found.best_epoch
    written = ov.forecast(ov.PowerLaw(5, 0.8), 0.1, units=2, size=50).write(str(tmp_path / "new"))
    assert all(path.parent == tmp_path / "new" and path.exists() for path in written)
    (tmp_path / "file").write_text("")
    with pytest.raises(ov.InputError, match=r"^folder: cannot make"):
        ov.forecast(ov.PowerLaw(5, 0.8), 0.1, units=2, size=50).write(tmp_path / "file")


def test_nothing_that_is_missing_is_mistaken_for_a_number() -> None:
    assert has_nan({"a": [1.0, (np.nan,)]}) and not has_nan({"a": [1.0, (2.0,), "nan"]})
    assert inspect.isfunction(ov.sweep)
