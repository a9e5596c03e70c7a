"""Files of results: whole or not there, and never read back as something else than was written."""

from __future__ import annotations

import ast
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import overlaps as ov
from overlaps.interface import files
from problems import problem

HOME = Path(ov.__file__).parent
PYTHON = sys.executable


@pytest.fixture(scope="module")
def trajectory() -> ov.Trajectory:
    p = problem(students=2, spectrum=ov.PowerLaw(3, 0.5))
    return ov.sample(p, ov.draw(p, 20, seed=1, scale=0.5), [0, 0.5, 1.0], runs=3, progress=False)


@pytest.fixture
def saved(trajectory: ov.Trajectory, tmp_path: Path) -> Path:
    return trajectory.save(tmp_path / "a.nc")


# --- writing ---------------------------------------------------------------------------------------------------------


def test_written_whole_and_under_its_name(tmp_path: Path) -> None:
    path = files.write(tmp_path / "a.txt", "β\n")
    assert path.read_bytes() == "β\n".encode()
    files.write(path, b"other")
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"] and path.read_bytes() == b"other"
    (tmp_path / "plain").write_bytes(b"")
    assert path.stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_link_stays_a_link_and_a_device_a_device(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "a.txt")
    files.write(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "a.txt").read_text() == "new"
    before = os.stat(os.devnull)
    files.write(os.devnull, "new")
    assert os.stat(os.devnull).st_ino == before.st_ino


@pytest.mark.parametrize("where", ["no folder/a.txt", "."])
def test_what_cannot_be_written_is_named(tmp_path: Path, where: str) -> None:
    with pytest.raises(OSError, match="the file was not written") as refused:
        files.write(tmp_path / where, "text")
    assert refused.value.filename == str(tmp_path / where) and not list(tmp_path.iterdir())


def test_interrupted_while_writing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The old file stays, and nothing beside it."""
    path = files.write(tmp_path / "a.txt", "old")

    def interrupted(handle: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        files.write(path, "new")
    assert [p.read_text() for p in tmp_path.iterdir()] == ["old"]


def test_drafts_of_the_dead_are_removed(tmp_path: Path) -> None:
    """Those of a process that was killed; those of one that still writes, here or on another machine, stay."""
    dead = subprocess.run(
        [PYTHON, "-c", "import os; print(os.getpid())"], capture_output=True, text=True, check=True
    ).stdout.strip()
    host = files._host()
    names = [f".draft-{host}-{dead}-00ff", f".draft-{host}-{os.getpid()}-00ff", f".draft-elsewhere-{dead}-00ff"]
    for name in [*names, ".draft-of-mine"]:
        (tmp_path / name).touch()
    files.clear_drafts(tmp_path)
    assert {p.name for p in tmp_path.iterdir()} == {*names[1:], ".draft-of-mine"}


WRITERS = {"write_text", "write_bytes", "to_netcdf", "savefig", "savez", "savetxt", "tofile", "to_csv"}


def test_all_results_are_written_in_one_place() -> None:
    """Compiled code is kept by its own rules, since losing it costs only time."""
    found = set()
    for path in HOME.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and node.attr in WRITERS:
                found.add(f"{path.relative_to(HOME).as_posix()}: {node.attr}")
    assert found == {
        "interface/files.py: write_bytes",
        "interface/files.py: to_netcdf",
        "interface/files.py: savefig",
        "interface/packed.py: savez",  # into memory, as the others
        "data/models/classes.py: savez",
        "compiled/code_cache.py: write_bytes",
        "plan/rows_forecast.py: savetxt",  # into memory
        "plan/class_forecast.py: savetxt",
        "pages/app/uploads.py: write_bytes",  # what a visitor drops, gone with the server
    }


# --- damage ----------------------------------------------------------------------------------------------------------


def test_every_flipped_bit_is_told(saved: Path) -> None:
    """500 of them, wherever they are; without a checksum one in twenty gives other numbers in silence."""
    content = saved.read_bytes()
    rng = np.random.default_rng(0)
    for place, bit in zip(rng.integers(len(content), size=500), rng.integers(8, size=500), strict=True):
        damaged = bytearray(content)
        damaged[place] ^= 1 << int(bit)
        saved.write_bytes(damaged)
        with pytest.raises(ov.DamagedFileError, match=rf"^load: .*{saved.name}") as refused:
            ov.load(saved)
        assert refused.value.path == saved


def test_every_cut_is_told(saved: Path) -> None:
    content = saved.read_bytes()
    cuts = [*range(0, len(content), 397), *range(len(content) - 2 * files.SEAL, len(content))]
    for cut in cuts:
        saved.write_bytes(content[:cut])
        with pytest.raises(ov.InputError, match=r"^load: .*a\.nc"):
            ov.load(saved)


def test_more_at_the_end_is_told(saved: Path) -> None:
    with saved.open("ab") as file:
        file.write(b"\0")
    with pytest.raises(ov.DamagedFileError, match="its checksum is missing"):
        ov.load(saved)


def test_a_file_changed_by_another_program_is_told(saved: Path, trajectory: ov.Trajectory) -> None:
    """The seal belongs to the contents, also where these are good netCDF."""
    changed = trajectory.data.assign_attrs({files.PROMISE: "sha256", "seed": 5})
    changed.to_netcdf(saved, engine="h5netcdf")
    with pytest.raises(ov.DamagedFileError, match="its checksum is missing"):
        ov.load(saved)


def test_damage_is_pickled_with_its_path(tmp_path: Path) -> None:
    """A worker process can hand it on."""
    error = pickle.loads(pickle.dumps(ov.DamagedFileError("load: damaged", tmp_path)))
    assert error.path == tmp_path and str(error) == "load: damaged"


def test_files_without_a_checksum_are_read_and_told(saved: Path, trajectory: ov.Trajectory) -> None:
    """As versions before 0.2 wrote them."""
    with xr.open_dataset(saved, engine="h5netcdf") as opened:
        old = opened.load()
    del old.attrs[files.PROMISE]
    old.attrs["overlaps"] = "0.1.0"
    old.to_netcdf(saved, engine="h5netcdf")
    with pytest.warns(UserWarning, match=r"a\.nc was written by overlaps 0\.1\.0 without a checksum"):
        again = ov.load(saved)
    assert np.array_equal(again.data["Q"], trajectory.data["Q"])


def test_others_read_sealed_files(saved: Path, trajectory: ov.Trajectory) -> None:
    """Anything that reads netCDF does."""
    with xr.open_dataset(saved) as opened:
        assert np.array_equal(opened["Q"], trajectory.data["Q"])
