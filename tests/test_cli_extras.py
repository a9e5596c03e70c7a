"""Without the extra for deep networks: what needs it is told as not measured or not drawn, and nothing else is."""

from __future__ import annotations

import dataclasses
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import overlaps as ov
from overlaps import papers
from overlaps.interface.errors import MissingExtraError
from overlaps.papers.workers import Trouble

INSTALL = "make setup-deep in a checkout, or pip install 'overlaps[deep]'"
# a paper with these claims and figures alone, measured by the command as it is
SHORT = """
import sys
from overlaps.cli import main
from overlaps.papers import papers
only = papers()["alignment"]
papers().clear()
papers()["alignment"] = only
for kind, left in ((only.claims, {"setup-3", "setup-4", "eq-49"}), (only.figures, {"fig4", "table1"})):
    for name in set(kind) - left:
        del kind[name]
main()
"""


@pytest.fixture
def without(tmp_path: Path) -> dict[str, str]:
    """An environment for processes, and those that they start, in which JAX cannot be found."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text("import sys\nsys.modules['jax'] = None\n", encoding="utf-8")
    path = os.pathsep.join([str(tmp_path / "site"), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": path}


def short(without: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-c", SHORT, *arguments]
    return subprocess.run(line, capture_output=True, encoding="utf-8", env=without)


def test_claims_that_need_the_extra_are_not_measured(without: dict[str, str], tmp_path: Path) -> None:
    """Told by name, number, reason and command; the others are measured, and the exit code is theirs."""
    file = tmp_path / "verdicts.json"
    done = short(without, "verify", "alignment", "--quick", "--json", str(file))
    assert done.returncode == 0, done.stderr
    assert "--- setup-3: not measured (recorded: holds)" in done.stdout
    assert "ok  eq-49: cannot be told" in done.stdout and "1 of 3 claims as recorded" in done.stdout
    last = done.stdout.partition("not measured (2):\n")[2].splitlines()
    assert [line.split(":")[0] for line in last[:2]] == ["  alignment setup-3", "  alignment setup-4"]
    assert all("there is no jax" in line and INSTALL in line for line in last[:2])

    told = json.loads(file.read_text(encoding="utf-8"))
    assert told["counts"]["not measured"] == 2 and told["counts"]["in error"] == 0 and not told["as_recorded"]
    rows = {row["claim"]: row for row in told["claims"]}
    assert {name: row["found"] for name, row in rows.items()} == {
        "setup-3": "not measured",
        "setup-4": "not measured",
        "eq-49": "cannot be told",
    }
    assert rows["setup-3"]["verdict"] is None and "there is no jax" in rows["setup-3"]["note"]
    assert rows["setup-3"]["install"].startswith(INSTALL) and rows["eq-49"]["install"] is None


def test_strict(without: dict[str, str]) -> None:
    done = short(without, "verify", "alignment", "--quick", "--strict")
    assert done.returncode == 1 and "not measured (2):" in done.stdout, done.stderr


def test_figures_that_need_the_extra_are_not_drawn(without: dict[str, str], tmp_path: Path) -> None:
    """A picture from before stays, next to what it was drawn with."""
    folder = tmp_path / "gallery"
    folder.mkdir()
    (folder / "alignment-fig4.webp").write_bytes(b"a picture")
    record = '{"code": "older", "quick": true, "seconds": 1.0, "left_out": ""}'
    (folder / "alignment-fig4.json").write_text(record, encoding="utf-8")
    done = short(without, "papers", "gallery", "--quick", "--out", str(folder))
    assert done.returncode == 0, done.stderr
    assert "gallery: 0 drawn, 0 kept, 0 in error, 2 not drawn:" in done.stdout
    assert "alignment-table1: not drawn: train_metric" in done.stdout and done.stdout.count(INSTALL) == 2
    assert (folder / "alignment-fig4.webp").read_bytes() == b"a picture"
    assert (folder / "alignment-fig4.json").read_text(encoding="utf-8") == record
    assert (folder / "index.md").read_text(encoding="utf-8").count("Not drawn yet.") == 1


def test_one_figure_that_needs_the_extra(without: dict[str, str], tmp_path: Path) -> None:
    line = "papers", "run", "alignment", "fig4", "--quick", "--out", str(tmp_path / "out")
    done = short(without, *line)
    assert done.returncode == 2 and INSTALL in done.stderr  # it was asked for, and there is nothing to show
    assert not (tmp_path / "out").exists()
    done = short(without, *line, "--data", str(tmp_path / "none"))
    assert done.returncode == 2 and "expected a folder" in done.stderr  # a mistake is one with or without


def test_the_list_of_papers(without: dict[str, str]) -> None:
    done = short(without, "papers", "--long")
    assert done.returncode == 0 and "claim setup-3 (holds)" in done.stdout


@pytest.mark.parametrize(
    "error", [ImportError("no jax"), ModuleNotFoundError("no jax", name="jax"), ov.InputError(f"no jax; {INSTALL}")]
)
def test_whatever_else_goes_wrong_is_an_error(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the type that tells, not the words."""

    def measure(quick: bool) -> papers.Measurement:
        """Nothing."""
        raise error

    paper = papers.paper("committee")
    for name, claim in list(paper.claims.items()):
        monkeypatch.setitem(paper.claims, name, dataclasses.replace(claim, measure=measure))
    report = papers.verify("committee", quick=True)
    assert len(report.wrong) == 2 and not report.not_measured
    assert "NOT plateau: in error" in repr(report) and "not measured (" not in repr(report)


def test_the_error_survives_a_process() -> None:
    error = pickle.loads(pickle.dumps(MissingExtraError("no jax", "pip install it")))
    assert str(error) == "no jax; pip install it" and isinstance(error, ov.InputError)
    assert Trouble.of(error) == ("no jax; pip install it", "pip install it")
