"""Setting up: what make says when it cannot, what the locks must be, which versions of Numba are tried."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tomllib
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]


def script(name: str) -> ModuleType:
    """A script of .ci as a module; those have no suffix, and leave nothing compiled."""
    loader = SourceFileLoader(f"ci_{name}", str(ROOT / ".ci" / name))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = before
    return module


locks, numba, wheel = script("locks"), script("numba"), script("wheel")
Pin, File = locks.Pin, locks.File
LINUX = ["manylinux_2_17_x86_64", "linux_x86_64"]


# The locks


def test_locks_of_this_checkout_are_consistent() -> None:
    """All that needs no index; `make locks` asks that too."""
    about = tomllib.loads((ROOT / "pyproject.toml").read_text())
    pins = []
    for lock in locks.LOCKS:
        found, wrong = locks.read(lock, (ROOT / lock).read_text())
        assert found and not wrong
        pins += found
    assert not locks.double(pins)
    assert not locks.bounds(about["project"], about["build-system"]["requires"], pins)


def test_lines_that_are_no_pins() -> None:
    pins, wrong = locks.read("a.txt", "numpy==2.4.6\nscipy>=1\n\npytest\n-r b.txt\nfive==1.0.0b2\n")
    assert pins == [Pin("numpy", "2.4.6", "a.txt"), Pin("five", "1.0.0b2", "a.txt")]
    assert [line.split("'")[1] for line in wrong] == ["scipy>=1", "pytest", "-r b.txt"]


def test_double_pins_under_any_spelling() -> None:
    pins = [
        Pin("typing_extensions", "4.1", "a.txt"),
        Pin("numpy", "2.0", "a.txt"),
        Pin("Typing-Extensions", "4.2", "b.txt"),
    ]
    assert locks.double(pins) == ["b.txt: Typing-Extensions==4.2: pinned before, in a.txt"]


@pytest.mark.parametrize(
    ("pins", "fault"),
    [
        ([("numpy", "2.4", locks.RUNTIME), ("jax", "0.9", locks.DEEP)], None),
        ([("numpy", "1.26", locks.RUNTIME), ("jax", "0.9", locks.DEEP)], "pyproject.toml asks for numpy>=2.0"),
        ([("numpy", "2.4", locks.DEV), ("jax", "0.9", locks.DEEP)], f"belongs into {locks.RUNTIME}"),
        ([("numpy", "2.4", locks.RUNTIME), ("jax", "0.9", locks.DEV)], f"belongs into {locks.DEEP}"),
        ([("numpy", "2.4", locks.RUNTIME)], f"{locks.DEEP}: jax>=0.5 of pyproject.toml is not pinned"),
    ],
)
def test_bounds_of_pyproject(pins: list[tuple[str, str, str]], fault: str | None) -> None:
    project = {"dependencies": ["numpy>=2.0"], "optional-dependencies": {"deep": ["jax>=0.5"]}}
    build = [Pin("hatchling", "1.0", locks.RUNTIME), Pin("editables", "0.6", locks.RUNTIME)]
    found = locks.bounds(project, ["hatchling"], [*build, *(Pin(*pin) for pin in pins)])
    assert len(found) == (fault is not None)
    assert fault is None or fault in found[0]


def test_an_extra_without_a_lock() -> None:
    project = {"dependencies": [], "optional-dependencies": {"maps": ["cartopy"]}}
    assert locks.bounds(project, [], [Pin("editables", "1", locks.RUNTIME)]) == [
        "pyproject.toml: extra 'maps' has no lock"
    ]


def test_what_pins_need_is_pinned() -> None:
    run, dev = locks.RUNTIME, locks.DEV
    pins = [Pin("a", "1", run), Pin("b", "2", run), Pin("c", "3", dev), Pin("d", "4", locks.DEEP)]

    def found(requires: dict[str, list[str]], python: str = "3.11.0") -> list[str]:
        return locks.missing(pins, requires, python)

    assert not found({"a": ["B>=2", "e; extra == 'x'", "f; python_version < '3.11'"], "c": ["a"], "d": ["b<3"]})
    assert found({"a": ["e>1"]}) == [f"{run}: a==1: needs e>1, which is not pinned"]
    assert found({"a": ["b>2"]}) == [f"{run}: a==1: needs b>2, pinned is 2"]
    assert found({"a": ["c"]}) == [f"{run}: a==1: needs c, which is pinned in {dev} only"]
    assert found({"c": ["d"]}) == [f"{dev}: c==3: needs d, which is pinned in {locks.DEEP} only"]
    assert found({"a": ["b[x]"], "b": ["e; extra == 'x'"]}) == [f"{run}: a==1: needs e, which is not pinned"]
    backport = {"a": ["e; python_full_version < '3.11.3'"]}
    assert found(backport) and not found(backport, "3.12.0")


@pytest.mark.parametrize(
    ("files", "python", "reason"),
    [
        ([File("p-1.0-py3-none-any.whl", ">=3.9")], "3.11.0", None),
        ([File("p-1.0-py3-none-any.whl", None)], "3.11.0", None),
        ([File("p-1.0-py3-none-any.whl", ">=3.11.5")], "3.11.0", "it needs Python >=3.11.5"),
        ([File("p-1.0-py3-none-any.whl", ">=3.11.5")], "3.12.0", None),
        ([File("p-1.0-cp311-cp311-manylinux_2_17_x86_64.whl", ">=3.9")], "3.11.0", None),
        (
            [File("p-1.0-cp311-cp311-manylinux_2_17_x86_64.whl", ">=3.9")],
            "3.12.0",
            "no wheel for it here, only for cp311",
        ),
        ([File("p-1.0-cp311-abi3-manylinux_2_17_x86_64.whl", ">=3.9")], "3.12.0", None),
        ([File("p-1.0-cp311-cp311-win_amd64.whl", ">=3.9")], "3.11.0", "no wheel for it here, only for cp311"),
        ([File("p-1.0.tar.gz", ">=3.9"), File("p-2.0-py3-none-any.whl", None)], "3.11.0", "the index has no wheel"),
        ([], "3.11.0", "the index has no wheel"),
    ],
)
def test_why_a_pin_does_not_install(files: list, python: str, reason: str | None) -> None:
    found = locks.refusal(Pin("p", "1.0", "a.txt"), files, python, locks.tags(python, LINUX))
    assert found is None if reason is None else found.startswith(reason)


def test_pages_of_the_index() -> None:
    """In both languages that an index may speak."""
    page = (
        '{"files": [{"filename": "p-1.0-py3-none-any.whl", "requires-python": ">=3.9"}, {"filename": "p-1.0.tar.gz"}]}'
    )
    wanted = [File("p-1.0-py3-none-any.whl", ">=3.9"), File("p-1.0.tar.gz", None)]
    assert locks.files_of("application/vnd.pypi.simple.v1+json", page) == wanted
    page = '<a href="../f/p-1.0-py3-none-any.whl#sha256=0" data-requires-python="&gt;=3.9">p</a>'
    page += '<a href="p-1.0.tar.gz">p</a>'
    assert locks.files_of("text/html", page) == wanted


def test_the_index_is_that_of_pip() -> None:
    words = """
  -i, --index-url <url>       Base URL of the Python Package Index (default
                              https://index.example/simple). This should"""
    assert locks.default_index(words) == "https://index.example/simple"
    with pytest.raises(SystemExit, match="PIP_INDEX_URL"):
        locks.default_index("no such option")
    listed = "global.index-url='https://b.example'\n:env:.index-url='https://a.example'\nglobal.cert='c.pem'\n"
    assert locks.setting("index-url", listed) == "https://a.example"
    assert locks.setting("cert", listed) == "c.pem"
    assert locks.setting("timeout", listed) is None


# Numba


def test_both_ends_of_the_range_of_numba() -> None:
    versions = numba.released(
        "numba (0.9)\nAvailable versions: 0.10.1, 0.10.0, 0.9.0, 0.8.1, 0.8.0, 0.7.0\n  LATEST: 0.9\n"
    )
    assert versions == [Version(word) for word in ("0.7.0", "0.8.0", "0.8.1", "0.9.0", "0.10.0", "0.10.1")]
    asked = Requirement("numba>=0.8,<0.10")
    assert numba.ends(asked, versions, "0.8.1") == [Version("0.8.0"), Version("0.9.0")]
    assert numba.ends(asked, versions, "0.9.0") == [Version("0.8.0")]
    assert numba.ends(Requirement("numba==0.9.0"), versions, "0.9.0") == []
    with pytest.raises(SystemExit, match="no version"):
        numba.ends(Requirement("numba>=1"), versions, "0.9.0")


def test_tests_for_numba_are_there() -> None:
    for test in numba.TESTS:
        path, _, name = test.partition("::")
        assert f"def {name}" in (ROOT / path).read_text()


# The wheel


def test_what_does_not_belong_into_the_wheel() -> None:
    good = ["overlaps/py.typed", "overlaps/data/digits.npz", "overlaps-0.1.dist-info/METADATA"]
    bad = ["tests/test_setup.py", "overlaps/__pycache__/a.nbi", "overlaps/__pycache__/a.cpython-311.pyc"]
    assert wheel.extras([*good, *bad]) == bad


# make


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What make needs for setting up, with a folder of interpreters that do what a test wants."""
    folder = tmp_path / "checkout"
    shutil.copytree(ROOT / ".ci", folder / ".ci")
    for name in ("Makefile", "pyproject.toml", *locks.LOCKS):
        shutil.copy(ROOT / name, folder / name)
    (folder / "bin").mkdir()
    return folder


def python(checkout: Path, name: str, body: str) -> None:
    """An interpreter that is a shell script."""
    path = checkout / "bin" / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def make(checkout: Path, *words: str) -> tuple[int, str, str]:
    """Exit code, output and errors of make, but for the line with which make itself ends."""
    env = {"PATH": f"{checkout / 'bin'}:{os.environ['PATH']}", "HOME": str(checkout)}
    done = subprocess.run(["make", *words], cwd=checkout, env=env, capture_output=True, text=True)
    errors = [line for line in done.stderr.splitlines() if not line.startswith("make: ***")]
    return done.returncode, done.stdout, "\n".join(errors)


# Makes an environment whose pip writes down what it is asked for, and fails while there is a file `broken`.
MAKES = f"""
case "$*" in
  "-m venv "*)
    mkdir -p "$3/bin"
    cp "$0" "$3/bin/python" ;;
  "-m pip --version") ;;
  "-m pip "*)
    echo "$*" >> pip.log
    test ! -e broken ;;
  *) exec {sys.executable} "$@" ;;
esac"""


def test_an_interpreter_that_is_missing(checkout: Path) -> None:
    code, _, told = make(checkout, "PYTHON=python9", "demo")
    assert code == 2 and told.startswith("make PYTHON=python9 demo: there is no python9;") and "\n" not in told
    assert not (checkout / ".venv").exists()


def test_an_interpreter_that_is_no_python(checkout: Path) -> None:
    python(checkout, "python9", "exit 3")
    code, _, told = make(checkout, "PYTHON=python9", "setup")
    assert (code, told) == (2, "make PYTHON=python9 setup: python9 does not run as Python")


def test_an_interpreter_that_is_too_old(checkout: Path) -> None:
    python(checkout, "python9", 'case "$2" in *print*) echo 3.9.2 ;; *) exit 1 ;; esac')
    code, _, told = make(checkout, "PYTHON=python9", "test")
    assert code == 2
    assert told == "make PYTHON=python9 test: python9 is Python 3.9.2, too old; overlaps needs 3.11 or newer"


def test_an_interpreter_without_venv(checkout: Path) -> None:
    python(checkout, "python3", f'case "$2" in *ensurepip*) exit 1 ;; *) exec {sys.executable} "$@" ;; esac')
    code, _, told = make(checkout, "demo")
    assert code == 2 and "apt install python3-venv" in told and "\n" not in told
    assert not (checkout / ".venv").exists()


def test_set_up_says_one_line_and_happens_once(checkout: Path) -> None:
    python(checkout, "python9", MAKES)
    code, said, told = make(checkout, "PYTHON=python9", "setup")
    assert (code, told) == (0, "")
    count = len((checkout / locks.RUNTIME).read_text().splitlines())
    assert said.startswith(f"setting up .venv: {count} pinned packages") and said.count("\n") == 1
    lines = (checkout / "pip.log").read_text().splitlines()
    assert lines == [
        f"-m pip install -qq -r {locks.RUNTIME}",
        "-m pip install -qq --no-deps --no-build-isolation --editable .",
    ]
    make(checkout, "setup")
    assert len((checkout / "pip.log").read_text().splitlines()) == 2
    make(checkout, "setup-dev")
    more = (checkout / "pip.log").read_text().splitlines()[2]
    assert all(lock in more for lock in locks.LOCKS)
    assert "Nothing to be done" in make(checkout, "setup")[1]


def test_set_up_that_was_interrupted_begins_anew(checkout: Path) -> None:
    """At whatever moment: nothing of the half-made environment is left."""
    python(checkout, "python9", MAKES)
    (checkout / "broken").touch()
    assert make(checkout, "PYTHON=python9", "setup")[0] == 2
    (checkout / ".venv" / "half").touch()
    (checkout / "broken").unlink()
    code, said, _ = make(checkout, "PYTHON=python9", "setup")
    assert code == 0 and "half made" in said
    assert not (checkout / ".venv" / "half").exists() and not (checkout / ".venv" / ".unfinished").exists()
    (checkout / ".venv" / "bin" / "python").unlink()  # and one that lost its interpreter, when there is more to install
    assert make(checkout, "PYTHON=python9", "setup-dev")[0] == 0


def test_an_interrupted_addition_spoils_what_was_there(checkout: Path) -> None:
    python(checkout, "python9", MAKES)
    assert make(checkout, "PYTHON=python9", "setup")[0] == 0
    (checkout / "broken").touch()
    assert make(checkout, "setup-dev")[0] == 2
    (checkout / "broken").unlink()
    code, said, _ = make(checkout, "PYTHON=python9", "setup")
    assert code == 0 and "half made" in said


def test_two_set_ups_at_once(checkout: Path) -> None:
    (checkout / ".venv").mkdir()
    (checkout / ".venv" / ".unfinished").write_text(f"{os.getpid()}\n")
    code, _, told = make(checkout, "setup")
    assert code == 2 and told.startswith(f"make setup: process {os.getpid()} is setting up .venv; wait for it")
    assert (checkout / ".venv" / ".unfinished").exists()


def test_another_interpreter_for_an_environment_that_is_there(checkout: Path) -> None:
    python(checkout, "python9", MAKES)
    make(checkout, "PYTHON=python9", "setup")
    python(checkout, "python10", 'case "$2" in *print*) echo 3.99.0 ;; esac')
    code, said, _ = make(checkout, "PYTHON=python10", "setup")
    assert code == 0 and "make clean first for 3.99.0" in said


def test_help_has_every_goal(checkout: Path) -> None:
    said = make(checkout, "help")[1]
    goals = (checkout / "Makefile").read_text().split(".PHONY: ")[1].splitlines()[0].split()
    assert all(f"make {goal}" in said for goal in goals if goal not in ("help", "interpreter"))
