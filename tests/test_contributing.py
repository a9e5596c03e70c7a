"""The files shown in CONTRIBUTING.md pass all contracts where they are put, and do not with a mistake in them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

import overlaps as ov
from overlaps.compiled import code_cache

ROOT = Path(__file__).parent.parent
CONTRACTS = Path(__file__).parent / "contracts"
SHOWN = {
    Path(path): text
    for path, text in re.findall(
        r"^```python\n# src/(\S+\.py)\n(.*?)^```$", (ROOT / "CONTRIBUTING.md").read_text(), re.M | re.S
    )
}
SINE, LOG_COSH, SPIKED, NESTEROV, INVERSE_ROOT, HEIGHTS = SHOWN
NAMES = {
    SINE: "sine",
    LOG_COSH: "log-cosh",
    SPIKED: "SpikedInputs",
    NESTEROV: "NesterovSGD",
    INVERSE_ROOT: "InverseRoot",
    HEIGHTS: "committee-heights",
}


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """A copy of the library with the files in place."""
    passing = shutil.ignore_patterns("*.pyc*", "*.tmp.*")
    shutil.copytree(Path(ov.__file__).parent, tmp_path / "overlaps", ignore=passing)
    for path, text in SHOWN.items():
        assert not (tmp_path / path).exists() and (tmp_path / path.parent).is_dir()
        (tmp_path / path).write_text(text)
    return tmp_path


def settings(library: Path) -> dict[str, str]:
    """Those of a process that uses the copy, with the code compiled so far of the library.

    New files make a new set of sources, of which nothing is kept. All functions that were there before are as they
    were, so their code is handed on: to compile them once more takes a minute, and is no part of these tests.
    """
    code = library / "code"
    settings = {**os.environ, "PYTHONPATH": str(library), code_cache.VARIABLE: str(code)}
    ask = "from overlaps.compiled import code_cache; print(code_cache.version())"
    version = subprocess.run([sys.executable, "-c", ask], env=settings, capture_output=True, text=True, check=True)
    kept = code_cache.folder()
    if kept and kept.is_dir():
        passing = shutil.ignore_patterns("draft-*")  # those of another process, which go away
        shutil.copytree(kept, code / version.stdout.strip(), ignore=passing)
    return settings


def outcomes(library: Path, chosen: str) -> dict[str, bool]:
    """By name, whether each of the chosen contracts passed."""
    report = library / "report.xml"
    command = [sys.executable, "-m", "pytest", str(CONTRACTS), "-k", chosen, "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, f"--junitxml={report}"],
        env=settings(library),
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    cases = ElementTree.parse(report).iter("testcase")
    return {case.attrib["name"]: case.find("failure") is None and case.find("error") is None for case in cases}


def changed(library: Path, path: Path, *changes: tuple[str, str]) -> None:
    text = SHOWN[path]
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (library / path).write_text(text)


def test_files_are_whole() -> None:
    assert [path.parts[-2] for path in SHOWN] == [
        "activations",
        "losses",
        "models",
        "algorithms",
        "schedules",
        "committee",
    ]


def test_files_pass_the_contracts_of_their_folder(library: Path) -> None:
    found = outcomes(library, " or ".join(NAMES.values()))
    assert all(found.values()), [name for name, passed in found.items() if not passed]
    count = {name: sum(f"[{name}" in test for test in found) for name in NAMES.values()}
    least = {
        "sine": 7,
        "log-cosh": 6,
        "SpikedInputs": 2 * 4 + 3 + 6,  # examples, refusals, and what asks of every data model
        "NesterovSGD": 11,
        "InverseRoot": 7,
        "committee-heights": 2,
    }
    assert all(count[name] >= tests for name, tests in least.items()), count


@pytest.mark.parametrize(
    ("path", "change", "message"),
    [
        (SINE, ("math.cos(x)", "math.sin(x)"), "activation 'sine': derivative(-3.1)"),
        (SINE, ('"sine"', '"sinus"'), "sine.py: calls itself 'sinus'"),
        (LOG_COSH, ("math.tanh(f - y)", "math.tanh(y - f)"), "loss 'log-cosh': slope(-2.3, -0.6)"),
        (LOG_COSH, ("1.0 - t * t", "1.0 + t * t"), "loss 'log-cosh': bend(-2.3, -0.6)"),
        (SPIKED, ("MODEL = SpikedInputs", ""), "spiked.py: expected it to define MODEL"),
        (HEIGHTS, ('"plateau",', '"plateaux",'), "unknown claim of heights of committee 'plateaux'"),
    ],
)
def test_wrong_derivatives_and_names_are_not_even_loaded(library, path, change, message) -> None:
    changed(library, path, change)
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import overlaps.network.losses, overlaps.data, overlaps.papers as p; p.papers()",
        ],
        env={**os.environ, "PYTHONPATH": str(library)},
        capture_output=True,
        text=True,
    )
    assert done.returncode and message in done.stderr


def test_other_mistakes_are_found_by_the_contracts(library: Path) -> None:
    """A kink that is not declared, and a refusal that names the wrong field."""
    changed(
        library,
        SINE,
        ("return math.sin(x)", "return abs(math.sin(x))"),
        ("return math.cos(x)", "return math.copysign(math.cos(x), math.sin(2.0 * x))"),
    )
    changed(library, SPIKED, ("self.share >= 1", "self.share > 1"))
    found = outcomes(library, "(kinks and sine) or (refused and SpikedInputs)")
    assert found == {
        "test_all_kinks_are_declared[sine]": False,
        "test_what_is_outside_its_domain_is_refused_by_field[SpikedInputs-0]": True,
        "test_what_is_outside_its_domain_is_refused_by_field[SpikedInputs-1]": True,
        "test_what_is_outside_its_domain_is_refused_by_field[SpikedInputs-2]": False,
    }
