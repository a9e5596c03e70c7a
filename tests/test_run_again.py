"""`overlaps run` goes on where it was interrupted, and `overlaps sweep` does; both give what they would have given."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import overlaps as ov
from command import command
from overlaps.cli.experiment import Experiment
from overlaps.trajectory.finished_runs import FinishedRuns

SPEC = """
[teacher]
units = 1
activation = "linear"
[student]
units = 1
activation = "linear"
[data]
kind = "GaussianInputs"
[algorithm]
rate = 0.5
[run]
size = 40
last = 2.0
count = 5
meso_runs = 6
micro_runs = 4
"""
SWEEP = """
[sweep]
seeds = 2
[sweep.over]
algorithm.rate = { log = [0.1, 1.0], count = 3 }
"algorithm.decay, label_noise" = [[0.0, 0.0], [0.1, 0.5]]
"""


def numbers(folder: Path) -> dict[str, bytes]:
    found = {name: ov.load(folder / f"{name}.nc").data for name in ("macro", "meso", "micro")}
    return {f"{n} {v}": data[v].values.tobytes() for n, data in found.items() for v in data.variables}


def test_an_interrupted_run_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = Experiment.from_toml(SPEC)
    whole = experiment.execute(tmp_path / "whole", progress=False)
    train = ov.train

    def interrupted(*arguments: object, **options: object) -> ov.Trajectory:
        train(*arguments, **{**options, "runs": 2})  # type: ignore[arg-type]
        raise KeyboardInterrupt

    monkeypatch.setattr("overlaps.cli.experiment.train", interrupted)
    with pytest.raises(KeyboardInterrupt):
        experiment.execute(tmp_path / "cut", progress=False)
    assert (tmp_path / "cut" / "runs").is_dir() and not (tmp_path / "cut" / "micro.nc").exists()
    monkeypatch.setattr("overlaps.cli.experiment.train", train)
    for name in ("solve", "sample"):
        monkeypatch.setattr(f"overlaps.cli.experiment.{name}", None)  # they are not computed again
    again = experiment.execute(tmp_path / "cut", progress=False)
    assert numbers(tmp_path / "cut") == numbers(tmp_path / "whole")
    assert {k: v.to_dict() for k, v in again.verdicts.items()} == {k: v.to_dict() for k, v in whole.verdicts.items()}
    names = [sorted(path.name for path in (tmp_path / each).iterdir()) for each in ("cut", "whole")]
    assert names[0] == names[1]


def test_a_damaged_trajectory_is_told_and_computed_again(tmp_path: Path) -> None:
    experiment = Experiment.from_toml(SPEC)
    experiment.execute(tmp_path / "run", progress=False)
    before, path = numbers(tmp_path / "run"), tmp_path / "run" / "meso.nc"
    path.write_bytes(path.read_bytes()[:-300])
    with pytest.warns(UserWarning, match=r"meso.nc is .*; it is computed again"):
        experiment.execute(tmp_path / "run", progress=False)
    assert numbers(tmp_path / "run") == before


def test_another_spec_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: object) -> None:
    Experiment.from_toml(SPEC).execute(tmp_path / "run", progress=False)
    (tmp_path / "spec.toml").write_text(SPEC.replace("micro_runs = 4", "micro_runs = 3"))  # fewer
    code, _, err = command(monkeypatch, capsys, "run", str(tmp_path / "spec.toml"), "--out", str(tmp_path / "run"))
    assert code == 2 and "exists already and holds results of another spec" in err


def test_more_runs_extend_fewer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fewer = SPEC.replace("meso_runs = 6", "meso_runs = 3").replace("micro_runs = 4", "micro_runs = 0")
    Experiment.from_toml(SPEC).execute(tmp_path / "whole", progress=False)
    Experiment.from_toml(fewer).execute(tmp_path / "more", progress=False)
    taken: list[int] = []
    add = FinishedRuns.add
    monkeypatch.setattr(FinishedRuns, "add", lambda self, run, row: (taken.append(run), add(self, run, row)))
    monkeypatch.setattr("overlaps.cli.experiment.solve", None)  # macro is there
    more = Experiment.from_toml(SPEC).execute(tmp_path / "more", progress=False)
    assert sorted(taken) == [0, 1, 2, 3, 3, 4, 5]  # three of meso and all of micro
    assert numbers(tmp_path / "more") == numbers(tmp_path / "whole") and len(more.verdicts) == 3
    assert (tmp_path / "more" / "spec.toml").read_text() == (tmp_path / "whole" / "spec.toml").read_text()


def test_sweeps_by_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: object) -> None:
    spec, out = tmp_path / "spec.toml", tmp_path / "out"
    spec.write_text(SPEC + SWEEP)
    asked = ("sweep", str(spec), "--out", str(out), "--workers", "1")
    code, told, err = command(monkeypatch, capsys, *asked, "--dry-run")
    assert code == 0, err
    assert "24 cells" in told and "CPU-hours" in told and "MB" in told and not out.exists()
    code, told, err = command(monkeypatch, capsys, *asked)
    assert code == 0, err
    assert "24 cells, 24 to compute" in told and "done: 24" in told
    data = xr.open_dataset(out / "sweep.nc", engine="h5netcdf").load()
    assert data["error"].dims == ("rate", "decay", "seed", "scale", "run", "time") and data.sizes["run"] == 6
    np.testing.assert_allclose(data["rate"], [0.1, 0.1**0.5, 1.0])
    assert data["label_noise"].values.tolist() == [0.0, 0.5]
    assert (out / "sweep.png").stat().st_size > 10_000 and "24 cells" in (out / "summary.txt").read_text()
    spec.write_text(SPEC + SWEEP.replace("count = 3", "count = 5"))  # two are new
    code, told, err = command(monkeypatch, capsys, *asked)
    assert code == 0 and "40 cells, 16 to compute" in told, err
    code, told, err = command(monkeypatch, capsys, "store", "check", str(out))
    assert code == 0 and "40 cells (40 done)" in told
    path = next(out.glob("cells/??/*.npz"))
    path.write_bytes(b"")
    code, told, err = command(monkeypatch, capsys, "store", "check", str(out))
    assert code == 1 and "damaged: 1, set aside" in told


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("", r"no table \[sweep\]"),
        ("sweep = 3", "spec.sweep: expected a table"),
        ("[sweep]\nseed = 3", "unknown field in spec.sweep 'seed'; did you mean 'seeds'"),
        ("[sweep]\nseeds = 3", "spec.sweep: needs over"),
        ("[sweep.over]\nalgorithm.rate = 3", "expects a list of values"),
        ("[sweep.over]\nalgorithm.speed = [3]", "has no 'speed'"),
        ("[sweep.over]\nalgorithm.rate = { log = [0.0, 1.0], count = 3 }", "log: expected a number above 0"),
        ("[sweep.over]\nalgorithm.rate = { log = [0.1, 1.0] }", "count: expected a whole number"),
        ("[sweep.over]\nalgorithm.rate = { log = 1.0, count = 3 }", "expects the first and the last value"),
        ("[sweep.over]\nalgorithm.rate = { log = [0.1, 1.0], cuont = 3 }", "unknown field in .*'cuont'"),
        ("[sweep.over]\nalgorithm.rate = [{ kind = 'Cosinus' }]", "unknown kind in .*'Cosinus'"),
        ("[sweep.over]\nlabel_noise = [{ a = 1 }]", "label_noise takes no tables"),
    ],
)
def test_specs_that_cannot_be_swept_are_refused(
    table: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: object
) -> None:
    import re

    (tmp_path / "spec.toml").write_text(
        (table + "\n" if table.startswith("sweep") else "") + SPEC + table * ("[" in table)
    )
    asked = ("sweep", str(tmp_path / "spec.toml"), "--out", str(tmp_path / "out"), "--workers", "1")
    code, _, err = command(monkeypatch, capsys, *asked)
    assert code == 2 and re.search(words, err) and len(err.splitlines()) == 1, err


def test_schedules_are_values_of_a_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: object) -> None:
    over = (
        "[sweep]\nscales = ['macro']\n[sweep.over]\nalgorithm.rate = [0.5, { kind = 'Cosine', rate = 0.5, time = 2 }]"
    )
    (tmp_path / "spec.toml").write_text(SPEC + over)
    asked = ("sweep", str(tmp_path / "spec.toml"), "--out", str(tmp_path / "out"), "--workers", "1")
    code, told, err = command(monkeypatch, capsys, *asked)
    assert code == 0 and "done: 2" in told, err
    labels = xr.open_dataset(tmp_path / "out" / "sweep.nc", engine="h5netcdf")["rate"].values.tolist()
    assert labels[0] == "0.5" and labels[1].startswith("Cosine(rate=0.5")


def test_everything_is_written_where_nobody_reads_on(tmp_path: Path) -> None:
    """As with `| head -1`: the reader of standard output goes after one line."""
    (tmp_path / "spec.toml").write_text(SPEC + SWEEP)
    words = ["sweep", str(tmp_path / "spec.toml"), "--out", str(tmp_path / "out"), "--workers", "1"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    swept = subprocess.Popen([sys.executable, "-m", "overlaps", *words], **pipes)
    assert swept.stdout is not None and swept.stderr is not None
    assert swept.stdout.readline() == "24 cells, 24 to compute\n"
    swept.stdout.close()
    told = swept.stderr.read()
    swept.stderr.close()
    assert swept.wait() == 0 and "Error" not in told, told
    assert {"spec.toml", "summary.txt", "sweep.nc", "sweep.png"} <= {path.name for path in (tmp_path / "out").iterdir()}
