"""A full disk is one line that names the file; nothing is half-written, and it goes on when there is room."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tqdm import tqdm

from overlaps.cli.sweep_spec import SweepSpec, write
from overlaps.interface import files
from overlaps.sweep.workers import Here
from sweeps import same
from test_run_again import SPEC, SWEEP

PYTHON = sys.executable

FILES = """
import os, resource, sys
import matplotlib, numpy as np, xarray as xr
matplotlib.use("agg")
import matplotlib.pyplot as plt
from overlaps.interface import files

folder, limit = sys.argv[1], sys.argv[2]
data = xr.Dataset({"Q": (("a", "b"), np.random.default_rng(0).normal(size=(500, 40)))})
figure, ax = plt.subplots()
ax.plot(data["Q"])
larger = 0
for left in range(0, 200_000, 23_000):
    if limit == "file":  # no file may grow longer
        resource.setrlimit(resource.RLIMIT_FSIZE, (left, resource.RLIM_INFINITY))
    else:  # a disk of a megabyte with this much left
        with open(f"{folder}/other", "wb") as other:
            other.write(bytes(2**20 - left))
    for name, write in (
        ("a.nc", lambda path: files.write_dataset(path, data)),
        ("a.png", lambda path: files.write_picture(path, figure, dpi=200)),
        ("a.json", lambda path: files.write(path, "x" * 100_000)),
    ):
        path = f"{folder}/{name}"
        try:
            write(path)
        except OSError as error:
            assert error.filename == path and "not written" in error.strerror, error
            larger += 1
        else:
            os.unlink(path)
        assert set(os.listdir(folder)) <= {"other"}, os.listdir(folder)
print("refused", larger)
"""

# A sweep by command on a disk with room for nothing, for some cells, for all of them, for their dataset; then for all.
SWEEPS = """
import contextlib, errno, io, resource, shutil, sys
from pathlib import Path
import matplotlib
matplotlib.use("agg")
import psutil
from overlaps.cli.commands import main
from overlaps.sweep import assembly
from overlaps.sweep.store import Store

spec, folder, limit, result = sys.argv[1], Path(sys.argv[2]), sys.argv[3], sys.argv[4]
rooms = [int(each) for each in sys.argv[5:]]
out, fill = folder / "out", folder / "fill"

def sweep(workers):
    told = [io.StringIO(), io.StringIO()]
    sys.argv = ["overlaps", "sweep", spec, "--out", str(out), "--workers", workers]
    with contextlib.redirect_stdout(told[0]), contextlib.redirect_stderr(told[1]):
        try:
            main()
            code = 0
        except SystemExit as stop:
            code = stop.code or 0
    return code, *(each.getvalue() for each in told)

def leave(left):
    if limit == "file":  # no file may grow longer
        resource.setrlimit(resource.RLIMIT_FSIZE, (left, resource.RLIM_INFINITY))
    else:
        fill.unlink(missing_ok=True)
        fill.write_bytes(bytes(shutil.disk_usage(folder).free - left))

def cells():
    return {path.name: path.read_bytes() for path in out.glob("cells/??/*.npz")}

for left in rooms:
    leave(left)
    before = cells()
    code, told, error = sweep("2" if left == rooms[1] else "1")
    now = cells()
    assert before.items() <= now.items(), "a cell was lost or written again"
    assert not [path for path in out.rglob("*") if path.name.startswith((".draft", "tmp"))], "something half-written"
    assert not (out / "store.txt").exists() or not Store.existing(out).check().damaged
    assert not [p for p in psutil.Process().children() if "tracker" not in " ".join(p.cmdline())], "a process is left"
    lines = [line for line in error.splitlines() if line.startswith("overlaps:")]
    assert code == 2 and len(lines) == 1 and "Traceback" not in error, (code, error)
    print(len(now), lines[0])
leave(5_000 if limit == "file" else 20_000)
assembly.LARGE, large = 100, assembly.LARGE  # what does not fit into memory, where the disk has no room either
print(len(cells()), sweep("1")[2].strip().splitlines()[-1])
assembly.LARGE = large
leave(resource.RLIM_INFINITY if limit == "file" else 0)
fill.unlink(missing_ok=True)
before = cells()
code, told, error = sweep("1")
assert code == 0, error
assert f"24 cells, {24 - len(before)} to compute" in told, told
assert before.items() <= cells().items() and len(cells()) == 24
shutil.copy(out / "sweep.nc", result)
"""


def small_disk(folder: Path, command: str) -> subprocess.CompletedProcess[str]:
    """Run a shell command in which `folder` is a file system of one megabyte."""
    mount = f"mount -t tmpfs -o size=1m tmpfs {folder}"
    return subprocess.run(["unshare", "-rm", "sh", "-c", f"{mount} && {command}"], capture_output=True, text=True)


def may_mount(folder: Path) -> bool:
    return sys.platform == "linux" and shutil.which("unshare") is not None and not small_disk(folder, ":").returncode


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that may be the disk, beside others that are not."""
    (tmp_path / "disk").mkdir()
    return tmp_path / "disk"


def test_files_that_grow_too_long_are_named_and_nothing_is_left(folder: Path) -> None:
    """No crash, though HDF5 writes into a full disk only through memory."""
    done = subprocess.run([PYTHON, "-c", FILES, str(folder), "file"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[1]) >= 9


def test_files_and_a_run_on_a_small_disk(folder: Path) -> None:
    """The same on a disk of one megabyte, where this user may make one; and a run by command on it."""
    if not may_mount(folder):
        return  # the limit of a file's length above stands for it
    code, spec = folder.parent / "code.py", folder.parent / "spec.toml"
    code.write_text(FILES)
    done = small_disk(folder, f"{PYTHON} {code} {folder} disk")
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[1]) >= 9
    spec.write_text(SPEC)
    fill = f"head -c 1044480 /dev/zero > {folder}/fill"
    run = f"{PYTHON} -m overlaps run {spec} --out {folder}/out"
    done = small_disk(folder, f"{fill}; {run}; code=$?; ls -A {folder}/out; exit $code")
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1 and os.strerror(errno.ENOSPC) in done.stderr
    assert f"{folder}/out/" in done.stderr
    assert ".draft" not in done.stdout


def swept(folder: Path, told: str, reason: int, uninterrupted: Path) -> list[int]:
    """Ask that each line names the file that there was no room for; how many cells there were after each."""
    lines = told.splitlines()
    names = ["store.txt", "cells/", "sweep.nc", "sweep.png", "no room for an array"]
    assert len(lines) == len(names)
    for line, name in zip(lines, names, strict=True):
        assert f"{folder}/out" in line and name in line and os.strerror(reason) in line, told
    ends = [files.read_dataset("test", path)[0] for path in (folder.parent / "result.nc", uninterrupted)]
    assert same(*ends)
    return [int(line.split()[0]) for line in lines]


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    asked = SweepSpec.from_toml(SPEC + SWEEP)
    out = tmp_path_factory.mktemp("uninterrupted") / "out"
    made = asked.planned(out)
    made.compute(Here(), made.missing(), tqdm(disable=True))
    return write(made, SPEC + SWEEP, out)["data"]


@pytest.mark.parametrize("limit", ["file", "disk"])
def test_a_sweep_is_gone_on_with_when_there_is_room(folder: Path, limit: str, uninterrupted: Path) -> None:
    if limit == "disk" and not may_mount(folder):
        return
    code, spec, result = (folder.parent / name for name in ("code.py", "spec.toml", "result.nc"))
    code.write_text(SWEEPS)
    spec.write_text(SPEC + SWEEP)
    rooms = {"file": "100 1000 20000 100000", "disk": "0 60000 180000 90000"}[limit]
    command = f"{PYTHON} {code} {spec} {folder} {limit} {result} {rooms}"
    done = small_disk(folder, command) if limit == "disk" else subprocess.run(
        command.split(), capture_output=True, text=True
    )  # fmt: skip
    assert done.returncode == 0, done.stderr + done.stdout
    kept = swept(folder, done.stdout, errno.EFBIG if limit == "file" else errno.ENOSPC, uninterrupted)
    assert kept[0] == 0 and kept[2:] == [24, 24, 24]
    assert limit == "file" or 0 < kept[1] < 24
