"""Compiled code on disk: a later process finds it, an edit or damage never survives, and no folder is no error.

Each test starts fresh processes that keep their code in a folder of the test's own.
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

import overlaps as ov
from overlaps.compiled import code_cache
from overlaps.compiled.named import named
from overlaps.compiled.named_type import NamedType
from overlaps.problem.statement import _known

PACKAGE = Path(ov.__file__).parent

# What a process compiles, what it computes, and what it warns of.
PROCESS = """
import json, sys, warnings
from numba.core import event
class Count(event.Listener):
    names = []
    def on_start(self, event): self.names.append(event.data["dispatcher"].py_func.__qualname__)
    def on_end(self, event): pass
count = Count()
event.register("numba:compile", count)
with warnings.catch_warnings(record=True) as heard:
    warnings.simplefilter("always")
    import overlaps as ov
    g = ov.Activation("own", lambda x: x + 0.1 * x * x, lambda x: 1 + 0.2 * x) if sys.argv[1] == "own" else "erf"
    net = ov.Committee(1, g)
    problem = ov.Problem(data=ov.GaussianInputs(), teacher=net, student=net, algorithm=ov.OnlineSGD(0.5))
    covariance = [[1.0, 0.3], [0.3, 1.0]]
    found = {"quadrature": float(ov.gaussian_averages(problem, covariance, method="quadrature").S[0, 0])}
    if sys.argv[1] == "scales":
        start = ov.draw(problem, 100)
        run = ov.sample(problem, start, [1.0], runs=1).data
        found |= {"sample": run["error"].item(), "Q": run["Q"].item()}
        found["solve"] = ov.solve(problem, start, [1.0]).data["Q"].item()
        found["gaussian_averages"] = float(ov.gaussian_averages(problem, covariance).S[0, 0])
heard = [str(w.message) for w in heard if "compiled code" in str(w.message)]
print(json.dumps({"compiled": len(count.names), "found": found, "heard": heard}))
"""


def launch(which: str, where: Path | str | None, before: str = "", **environment: str) -> subprocess.Popen[str]:
    """A fresh process that keeps its code there, None: wherever it does by itself; `before` is run first."""
    settings = {k: v for k, v in os.environ.items() if k not in (code_cache.VARIABLE, code_cache.WARNED)} | environment
    if where is not None:
        settings[code_cache.VARIABLE] = str(where)
    command = [sys.executable, "-c", before + PROCESS, which]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=settings)


def result(process: subprocess.Popen[str]) -> tuple[int, dict[str, float], list[str]]:
    """Number of functions that were compiled, numbers, warnings."""
    out, err = process.communicate()
    assert process.returncode == 0, err
    told = json.loads(out)
    return told["compiled"], told["found"], told["heard"]


def told(which: str, where: Path | str | None, before: str = "", **environment: str):
    return result(launch(which, where, before, **environment))


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, float]]:
    """A folder that one process has filled, and what that process found."""
    where = tmp_path_factory.mktemp("filled")
    compiled, found, heard = told("erf", where)
    assert compiled > 2 and not heard
    return where, found


@pytest.fixture(scope="module")
def all_scales(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, float]]:
    """The same with the code of all scales, whose compilation takes long."""
    where = tmp_path_factory.mktemp("all scales")
    compiled, found, heard = told("scales", where)
    assert compiled > 10 and not heard
    return where, found


def kept(where: Path) -> list[Path]:
    """The files of compiled code in the only version there is."""
    (version,) = where.iterdir()
    return sorted(version.iterdir())


def test_second_process_compiles_nothing(filled: tuple[Path, dict[str, float]]) -> None:
    where, found = filled
    assert told("erf", where) == (0, found, [])


def test_second_process_finds_the_code_of_all_scales(all_scales: tuple[Path, dict[str, float]]) -> None:
    where, found = all_scales
    assert told("scales", where) == (0, found, [])


def test_own_functions_leave_nothing_behind(tmp_path: Path) -> None:
    told("own", tmp_path)
    assert not list(tmp_path.rglob("*moment*"))


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip(path: Path) -> None:
    """One bit of the code, in the middle of the file."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def half_write(path: Path) -> None:
    """As a process leaves it that is killed while it writes."""
    path.rename(path.with_name(f"draft-{path.name}"))


def other_content(path: Path) -> None:
    path.write_text("something else")


def other_function(path: Path) -> None:
    """A whole file, but what was kept for another function with the same types of arguments, or others."""
    name, arguments, parts = pickle.loads(path.read_bytes()[code_cache.DIGEST :] or pickle.dumps(("", (), ())))
    content = pickle.dumps((name + "_other", arguments, parts))
    path.write_bytes(sha256(content).digest() + content)


def folder(path: Path) -> None:
    path.unlink()
    (path / "inside").mkdir(parents=True)


DAMAGE = [truncate, flip, half_write, Path.unlink, lambda path: path.write_bytes(b""), other_content, folder]
NAMES = ["truncated", "flipped bit", "half-written", "deleted", "empty", "foreign", "a folder instead"]


@pytest.mark.parametrize("damage", [*DAMAGE, other_function], ids=[*NAMES, "another function's"])
def test_damage_costs_a_compilation(
    damage: Callable[[Path], None], filled: tuple[Path, dict[str, float]], tmp_path: Path
) -> None:
    where = shutil.copytree(filled[0], tmp_path / "copy")
    whole = contents(where)
    for path in reversed(kept(where)):
        damage(path)
    compiled, found, heard = told("erf", where)
    assert compiled > 2 and found == filled[1] and not heard
    assert contents(where) == whole  # again, for the next process


def contents(where: Path) -> dict[str, tuple[bool, str]]:
    """By file, whether its content has its hash, and the function and the types of arguments it is for.

    Without those of the trial whether Numba takes named functions, which is made once.
    """
    found = {}
    for path in kept(where):
        if not path.name.startswith(("draft-", "takes-named", "_apply-")):
            stored = path.read_bytes()
            content = stored[code_cache.DIGEST :]
            found[path.name] = sha256(content).digest() == stored[: code_cache.DIGEST], str(pickle.loads(content)[:2])
    assert len(found) > 2
    return found


def test_edit_of_an_average_is_seen_everywhere(tmp_path: Path, all_scales: tuple[Path, dict[str, float]]) -> None:
    """In a copy of the library, with nothing removed by hand: by what calls it in other files too.

    The copy has the code of the library, whose sources are the same, wherever they are. Averages of four fields enter
    `solve` and `gaussian_averages`, those of a pair `sample`; both are edited at once, by the same hash.
    """
    copy, where = tmp_path / "library" / "overlaps", tmp_path / "code"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    before = all_scales[1]
    shutil.copytree(all_scales[0], where)
    path = {"PYTHONPATH": str(copy.parent)}
    assert told("scales", where, **path) == (0, before, [])
    average = copy / "averages" / "erf.py"
    text = average.read_text(encoding="utf-8")
    edited = text
    for function in ("four", "pair"):
        head, body = edited.split(f"def {function}(")
        assert "    return " in body
        edited = f"{head}def {function}({body.replace('    return ', '    return 10 * ', 1)}"
    average.write_text(edited, encoding="utf-8")
    compiled, after, _ = told("scales", where, **path)
    assert compiled > 0
    for name in ("solve", "gaussian_averages", "sample"):
        assert abs(after[name] / before[name] - 1) > 0.01, (name, before, after)
    assert after["Q"] == before["Q"] and after["quadrature"] == before["quadrature"]  # these do not take it
    average.write_text(text, encoding="utf-8")
    assert told("scales", where, **path) == (0, before, [])


def test_edit_while_a_process_runs(tmp_path: Path, filled: tuple[Path, dict[str, float]]) -> None:
    """A module that is imported after an edit is not given the code of before it, and nothing of it is kept."""
    copy, where = tmp_path / "library" / "overlaps", tmp_path / "code"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(filled[0], where)
    path, before = {"PYTHONPATH": str(copy.parent)}, filled[1]
    files = kept(where)
    quadrature = copy / "averages" / "square_quadrature.py"
    text = quadrature.read_text(encoding="utf-8")
    assert text.count("scale = w[i] * delta * delta") == 1
    edit = f"""
import overlaps.compiled.functions, pathlib, sys
assert "overlaps.averages.square_quadrature" not in sys.modules
file = pathlib.Path({str(quadrature)!r})
text = file.read_text(encoding="utf-8").replace("scale = w[i] * delta", "scale = 2.0 * w[i] * delta")
file.write_text(text, encoding="utf-8")
"""
    compiled, after, _ = told("erf", where, before=edit, **path)
    assert compiled > 0 and after["quadrature"] == pytest.approx(2 * before["quadrature"], rel=1e-12)
    assert kept(where) == files


def test_two_processes_at_once(filled: tuple[Path, dict[str, float]], tmp_path: Path) -> None:
    pair = [launch("erf", tmp_path) for _ in range(2)]
    for process in pair:
        compiled, found, heard = result(process)
        assert compiled > 0 and found == filled[1] and not heard
    assert told("erf", tmp_path) == (0, filled[1], [])
    assert not list(tmp_path.rglob("draft-*"))


@pytest.mark.parametrize("home", ["unwritable", "none"])
def test_nowhere_to_keep_code(home: str, filled: tuple[Path, dict[str, float]], tmp_path: Path) -> None:
    """One warning that names the folder and the variable; the numbers are the same, and nothing is left anywhere."""
    (tmp_path / "file").touch()
    before = "import os; os.environ.pop('HOME', 0); import pathlib; pathlib.Path.home = classmethod(lambda c: 1 / 0)\n"
    before = before.replace("1 / 0", "exec('raise RuntimeError')") if home == "none" else ""
    settings = {"HOME": str(tmp_path / "file" / "home"), "XDG_CACHE_HOME": ""}
    compiled, found, heard = told("erf", None, before, **settings)
    assert compiled > 2 and found == filled[1]
    assert len(heard) == 1 and "set OVERLAPS_CACHE_DIR to a folder that can be written" in heard[0]
    assert ("no home folder" if home == "none" else str(tmp_path / "file" / "home" / ".cache")) in heard[0]
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]


CHANGES = {
    "results cannot be taken apart": "import numba.core.compiler as c; del c.CompileResult._reduce",
    "results are built otherwise": "import numba.core.compiler as c; c.CompileResult._rebuild = None",
    "functions are numbered otherwise": (
        "import numba.core.bytecode as b; b.FunctionIdentity._unique_ids = iter(range(1, 10**9))"
    ),
    "dispatchers ask otherwise": (
        "import numba.core.dispatcher as d; d.Dispatcher._cache = property(lambda s: d.NullCache(), lambda s, v: None)"
    ),
    "types of functions have moved": "import sys; sys.modules['overlaps.compiled.named_type'] = None",
    "models of types are registered otherwise": "import numba.extending as e; e.register_model = lambda t: lambda m: m",
}


@pytest.mark.parametrize("change", CHANGES)
def test_numba_has_changed(change: str, filled: tuple[Path, dict[str, float]], tmp_path: Path) -> None:
    """What the library rests on is taken away: the plain path gives the same numbers, and says so once at most."""
    for _ in range(2):
        compiled, found, heard = told("erf", tmp_path, CHANGES[change] + "\n")
        assert compiled > 0 and found == filled[1] and len(heard) <= 1
        assert all("every process compiles anew: Numba" in words for words in heard)


# The gradients of committees of several activations, which differ in nothing but the functions they call.
GRADIENTS = """
import sys, numpy as np, overlaps as ov
from overlaps.full_batch.task import FullBatchTask
data, descent = ov.GaussianMixture(gram=[[1.0]], labels=[3]), ov.FullBatch(2, 0.1)
for g in sys.argv[1:]:
    problem = ov.Problem(data=data, student=ov.Committee(1, g), algorithm=descent)
    task = FullBatchTask(problem, ov.Start.from_overlaps(problem, [[1.0]]))
    print(g, task.duals(np.array([[2.0]]), np.zeros((1, 0)), np.array([3]), np.zeros(1))[0].item())
"""


def gradients(where: Path, *activations: str) -> list[str]:
    settings = os.environ | {code_cache.VARIABLE: str(where)}
    command = [sys.executable, "-c", GRADIENTS, *activations]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=settings).stdout.splitlines()


def test_code_of_several_processes_does_not_mix(tmp_path: Path) -> None:
    """Functions of one name compiled by different processes stay apart in a process that loads them all."""
    names = ["erf", "tanh", "relu"]
    apart = [line for name in names for line in gradients(tmp_path, name)]
    assert gradients(tmp_path, *names) == apart
    assert gradients(tmp_path, *reversed(names)) == apart[::-1]


def test_old_versions_are_removed_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(code_cache.VARIABLE, str(tmp_path))
    (tmp_path / "own work").mkdir()
    for i in range(14):
        (tmp_path / f"{i:024x}").mkdir()
        os.utime(tmp_path / f"{i:024x}", (i, i))
    assert code_cache.write("name", b"content")
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"own work", code_cache.version(), *(f"{i:024x}" for i in range(5, 14))}
    assert code_cache.contents() == (1, 32 + len(b"content"))
    code_cache.clear()
    assert [path.name for path in tmp_path.iterdir()] == ["own work"]


def test_settings_that_change_the_code_have_a_folder_of_their_own(
    filled: tuple[Path, dict[str, float]], tmp_path: Path
) -> None:
    where = shutil.copytree(filled[0], tmp_path / "copy")
    assert told("erf", where, NUMBA_BOUNDSCHECK="1")[0] > 2
    assert told("erf", where, NUMBA_NUM_THREADS="1") == (0, filled[1], [])
    assert len(list(where.iterdir())) == 2


def test_name_is_the_identity() -> None:
    """Types that go through a pickle are equal, those of other words are not."""
    names = ("gradient", "square", "erf", "erf")
    here = NamedType(named(_known, *names))
    assert pickle.loads(pickle.dumps(here)) == here
    assert NamedType(named(_known, "gradient", "square", "erf", "relu")) != here


def test_named_and_own_functions_give_the_same_bits() -> None:
    """An activation of one's own that is the built-in one takes the other way, to the same numbers."""
    built_in = ov.Committee(2).g
    found = []
    for g in ("erf", ov.Activation("copy", built_in.function, built_in.derivative)):
        problem = ov.Problem(
            data=ov.GaussianInputs(),
            teacher=ov.Committee(2, g),
            student=ov.Committee(2, g),
            algorithm=ov.OnlineSGD(rate=0.5),
        )
        start = ov.draw(problem, 50, seed=1)
        found.append([run(problem, start, [2.0], runs=2, seed=3).data["Q"].values for run in (ov.sample, ov.train)])
    assert np.array_equal(found[0], found[1])
