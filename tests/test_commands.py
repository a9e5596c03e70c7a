"""Every command and every code block of README, CONTRIBUTING and the documentation runs.

Python blocks with prompts are doctests already; this finds the others: commands, specs, and files shown in full.
Commands that measure or draw for minutes are taken up to the call that would do it, which must be for a paper and a
figure that there are; the claims and figures themselves have tests of their own.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

import overlaps as ov
from command import command
from overlaps.cli.experiment import Experiment
from overlaps.cli.sweep_spec import SweepSpec

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\S*)[^\n]*\n(.*?)^```$", re.M | re.S)
KINDS = {"python", "console", "toml", "text", "{plot}", "{toctree}", "{eval-rst}", "{include}", "{thumbnails}", ""}
NETWORKS = """
teacher = {units = 1}
student = {units = 1}
algorithm = {rate = 0.5}
"""
SPEC = f"""{NETWORKS}
data = {{}}
run = {{size = 50, last = 1.0, count = 3, meso_runs = 10, micro_runs = 4}}
"""
SWEEP = """
[sweep.over]
algorithm.rate = [0.5, 1.0]
"""


class Block(NamedTuple):
    page: str
    kind: str
    text: str


BLOCKS = [
    Block(str(page.relative_to(ROOT)), kind, text)
    for page in PAGES
    if "_build" not in page.parts
    for kind, text in FENCE.findall(page.read_text(encoding="utf-8"))
]
COMMANDS = sorted(
    {
        line.removeprefix("$ ").split("  #")[0].split(" # ")[0].strip()
        for block in BLOCKS
        if block.kind == "console"
        for line in block.text.splitlines()
        if line.startswith("$ ")
    }
)


def test_blocks_are_of_kinds_that_something_runs() -> None:
    assert len(BLOCKS) > 50 and len(COMMANDS) > 10
    assert {block.kind for block in BLOCKS} <= KINDS
    for block in BLOCKS:
        if block.kind in ("python", "{plot}"):
            assert ">>> " in block.text or block.text.startswith("# src/overlaps/"), block


@pytest.mark.parametrize("block", [b for b in BLOCKS if b.kind == "toml"], ids=lambda b: b.page)
def test_specs_are_accepted(block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As they are, or a part of one with the rest of a spec."""
    monkeypatch.chdir(tmp_path)
    np.save("images.npy", np.random.default_rng(0).standard_normal((1200, 1000)))
    text = block.text if "[student]" in block.text else NETWORKS + block.text
    if "[sweep]" in text:
        SweepSpec.from_toml(SPEC + block.text)
    else:
        Experiment.from_toml(text)


@pytest.mark.parametrize("line", COMMANDS)
def test_commands(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    words = [word.strip("[]") for word in shlex.split(line)]
    if words[0] == "make":
        done = subprocess.run(["make", "--dry-run", *words[1:]], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return
    if words[0] == "pip":
        extras = re.findall(r"\[(\w+)\]", line)
        assert all(f"\n{extra} = [" in (ROOT / "pyproject.toml").read_text() for extra in extras)
        return
    if words[0] == ".ci/run":
        assert (ROOT / words[0]).is_file()
        return
    if (
        words[0] == "python"
    ):  # an example on a file that does not come with the library; examples have tests of their own
        assert (ROOT / words[1]).is_file()
        return
    assert words[0] == "overlaps", line
    monkeypatch.chdir(tmp_path)
    (tmp_path / "spec.toml").write_text(SPEC + SWEEP * (words[1] == "sweep"))
    rows = np.random.default_rng(0).standard_normal((200, 4))
    np.savetxt("data.csv", rows, delimiter=",")
    for name in ("mine.npy", "digits.npy"):
        np.save(name, rows)
    if words[1] == "learn":
        labels = rows @ [1.0, -1.0, 0.5, 0.0] + np.random.default_rng(1).standard_normal(200)
        labels = np.digitize(labels, [-1.0, 1.0]) if "--loss" in words else labels  # classes
        labelled = np.column_stack([rows, labels])
        target = words[words.index("--target") + 1]
        np.savetxt(words[2], labelled, "%.6g", ",", header=f"a,b,c,d,{target}", comments="")
    if words[1] == "report":
        (tmp_path / "out").mkdir()
        ov.forecast(ov.PowerLaw(5, 1.0)).write(tmp_path / "out")
    stand_in = {"SPEC.toml": "spec.toml", "DATA.csv": "data.csv", "DIR": "out", "HANDLE": "committee"}
    stand_in |= {"FIGURE": "overlaps", "FILE": "verdicts.json" if "verify" in words else "data.csv"}
    called: list[object] = []

    def verify(*handles: str, quick: bool, processes: int, record: Path | None, done: Any) -> ov.papers.Report:
        called.extend(ov.papers.paper(handle) for handle in handles or ["committee"])
        return ov.papers.Report((), quick)

    def draw_figure(handle: str, figure: str, out: Path, *, quick: bool, data: Path | None) -> tuple[Path, Path]:
        called.append(ov.papers.paper(handle).figures[figure])
        assert data is None or data.exists()
        return out, out

    def draw_gallery(out: Path, *, quick: bool, processes: int) -> ov.papers.Gallery:
        called.append(out)
        return ov.papers.Gallery(out, 0, 0, {})

    for stub in (verify, draw_figure, draw_gallery):
        monkeypatch.setattr(ov.papers, stub.__name__, stub)

    def demonstrate(out: Path) -> SimpleNamespace:
        called.append(out)
        return SimpleNamespace(folder=out, figure_path=out, verdict_path=out)

    monkeypatch.setattr("overlaps.cli.demo.demonstrate", demonstrate)
    monkeypatch.setattr("overlaps.pages.app.serve", lambda port, host: called.append(port))
    code, _, err = command(monkeypatch, capsys, *(stand_in.get(word, word) for word in words[1:]))
    assert code == 0, err
    assert called or words[1] in ("--help", "check", "run", "sweep", "spectrum", "learn", "papers", "report")
