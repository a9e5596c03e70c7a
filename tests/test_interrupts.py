"""Interrupted and killed for real: what is kept is said, the next one goes on with it, and no process is left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import overlaps as ov
from command import command
from overlaps import papers
from overlaps.interface import processes
from specs import two_units
from test_cli import POWER_LAW

SECONDS = 180  # until a test gives up

WAITING = """
import os, sys, time
from overlaps.papers.workers import one_by_one
from tqdm.auto import tqdm

def work(folder, name):
    tqdm(disable=True).close()
    open(os.path.join(folder, f"{name} {os.getpid()}"), "w").close()
    time.sleep(1000 if name == "long" else 0)
    return name

if __name__ == "__main__":
    folder = sys.argv[1]
    for task, result in one_by_one([[(folder, "a"), (folder, "long")], [(folder, "long")]], work, 2):
        print(result, flush=True)
"""


def until(happens: Callable[[], object]) -> None:
    """Wait for something, and fail if it does not happen."""
    end = time.monotonic() + SECONDS
    while not happens():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


def alive(process: int) -> bool:
    """Whether it runs; one that has ended and nobody has asked after does not."""
    try:
        os.kill(process, 0)
        return "\nState:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except (ProcessLookupError, FileNotFoundError):
        return False


def begin(*arguments: str | Path, code: str | None = None) -> subprocess.Popen[str]:
    start = ["-m", "overlaps"] if code is None else [code]
    command = [sys.executable, *start, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)


def test_before_a_command_has_begun(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    """While the arguments are read, where Typer would end in silence."""

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("overlaps.cli.commands.Commands.make_context", stop)
    code, _, told = command(monkeypatch, capsys, "papers")
    assert code == 130 and told == "overlaps: interrupted; the command had not begun, the same command does\n"


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_workers_end_with_their_parent(tmp_path: Path, ending: signal.Signals) -> None:
    """Killed, terminated or interrupted while both are at work; Ctrl-C of a terminal reaches all of them."""
    (tmp_path / "script.py").write_text(WAITING)
    (tmp_path / "seen").mkdir()
    parent = begin(tmp_path / "seen", code=str(tmp_path / "script.py"))
    until(lambda: len(list((tmp_path / "seen").glob("long *"))) == 2)
    workers = {int(path.name.split()[1]) for path in (tmp_path / "seen").iterdir()}
    assert len(workers) == 2 and all(map(alive, workers))
    if ending is signal.SIGINT:
        os.killpg(parent.pid, ending)
    else:
        parent.send_signal(ending)
    _, told = parent.communicate(timeout=SECONDS)
    until(lambda: not any(map(alive, workers)))
    if ending is signal.SIGINT:
        assert told.count("Traceback") == 1, "that of the parent, and no other"
        assert "leaked" not in told, "locks of progress bars"


@pytest.mark.skipif(sys.platform != "linux", reason="what a process hears is read in /proc")
def test_the_first_worker_hears_no_interrupt_from_its_start_on(tmp_path: Path) -> None:
    """Before it can say that it ignores them, while it loads the library."""
    code = """
from pathlib import Path
from overlaps.papers.workers import Worker
if __name__ == "__main__":
    worker = Worker(print)
    print(Path(f"/proc/{worker.process.pid}/status").read_text())
    worker.stop()
"""
    (tmp_path / "script.py").write_text(code)
    told = begin(code=str(tmp_path / "script.py")).communicate(timeout=SECONDS)[0]
    blocked = next(int(line.split()[1], 16) for line in told.splitlines() if line.startswith("SigBlk"))
    assert blocked >> (signal.SIGINT - 1) & 1


def test_an_interrupt_while_a_process_is_started_is_answered_afterwards() -> None:
    """Also where another thread of this process hears it."""
    started, begun = False, threading.Event()
    sender = threading.Thread(target=lambda: begun.wait(SECONDS) and signal.raise_signal(signal.SIGINT))
    sender.start()
    with pytest.raises(KeyboardInterrupt), processes.without_interrupts():
        begun.set()
        sender.join()
        time.sleep(0.01)
        started = True
    assert started and signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_workers_end_where_the_kernel_does_not_end_them(tmp_path: Path) -> None:
    """As on systems other than Linux: a child looks for its parent, which is killed."""
    child = (
        "import os, time; from overlaps.interface.processes import watch_parent; "
        "watch_parent(os.getppid(), 0.05); print(os.getpid(), flush=True); time.sleep(1000)"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert parent.stdout is not None
    process = int(parent.stdout.readline())
    assert alive(process)
    parent.kill()
    until(lambda: not alive(process))
    parent.wait()
    parent.stdout.close()


def test_a_worker_whose_parent_has_gone_already(monkeypatch: pytest.MonkeyPatch) -> None:
    class Ended(Exception):
        pass

    def end(code: int) -> None:
        raise Ended

    monkeypatch.setattr(os, "_exit", end)
    monkeypatch.setattr(processes.sys, "platform", "other")
    monkeypatch.setattr(processes, "watch_parent", lambda parent: None)
    with pytest.raises(Ended):
        processes.end_with_parent(os.getppid() + 1)


def test_interrupts_that_python_makes_something_else_of(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    """In a destructor it tells of them and goes on, where a class is made they become a RuntimeError, and some code
    passes over all errors."""

    class Ends:
        def __init__(self, error: BaseException) -> None:
            self.error = error

        def __del__(self) -> None:
            raise self.error

    def work() -> dict[str, object]:
        Ends(KeyboardInterrupt())
        time.sleep(SECONDS)
        return {}

    def passes_over() -> dict[str, object]:
        with suppress(BaseException):
            signal.raise_signal(signal.SIGINT)
        with suppress(BaseException):
            time.sleep(SECONDS)  # it is sent again
        time.sleep(SECONDS)  # and again
        return {}

    def in_a_class() -> None:
        raise RuntimeError("Error calling __set_name__") from KeyboardInterrupt()

    monkeypatch.setattr(papers, "papers", in_a_class)
    assert command(monkeypatch, capsys, "papers")[0] == 130
    with pytest.raises(KeyboardInterrupt, match="all is kept"), processes.keeping(lambda: "all is kept"):
        in_a_class()
    hook = sys.unraisablehook
    for lost in (work, passes_over):
        monkeypatch.setattr(papers, "papers", lost)
        began = time.monotonic()
        code, _, told = command(monkeypatch, capsys, "papers")
        assert code == 130 and told.startswith("overlaps: interrupted; ") and time.monotonic() - began < SECONDS
        assert sys.unraisablehook is hook and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    told_of: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda trouble: told_of.append(trouble.exc_type))
    with processes.no_interrupt_lost():
        Ends(ZeroDivisionError())
    assert told_of == [ZeroDivisionError]


# --- commands --------------------------------------------------------------------------------------------------------


def interrupted(process: subprocess.Popen[str]) -> str:
    """Press Ctrl-C; the one line that the command says."""
    os.killpg(process.pid, signal.SIGINT)
    _, told = process.communicate(timeout=SECONDS)
    assert process.returncode == 130, told
    lines = [line for line in told.splitlines() if line.startswith("overlaps:")]
    assert len(lines) == 1 and "Traceback" not in told, told
    return lines[0]


def test_run(tmp_path: Path) -> None:
    spec = tmp_path / "spec.toml"
    long = two_units(POWER_LAW, size=60, last=2.0, count=6, meso_runs=20, micro_runs=100_000)
    spec.write_text(long)
    process = begin("run", spec, "--out", tmp_path / "out")
    until((tmp_path / "out" / "meso.nc").exists)
    said = interrupted(process)
    assert "interrupted; " in said and "macro.nc, meso.nc" in said and str(tmp_path / "out") in said
    assert ov.load(tmp_path / "out" / "meso.nc").scale == "meso"
    assert not list((tmp_path / "out").glob(".draft*"))


def test_gallery(tmp_path: Path) -> None:
    process = begin("papers", "gallery", "--quick", "--out", tmp_path)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    until(lambda: len(children.read_text().split()) >= 2)
    said = interrupted(process)
    there = len(list(tmp_path.glob("*.json")))
    count = sum(len(each.figures) for each in papers.papers().values())
    assert f"interrupted; {there} of {count} figures are in {tmp_path}; the same command draws the others" in said
    assert (tmp_path / "index.md").is_file()


def test_verify_goes_on(tmp_path: Path) -> None:
    """Kept claim by claim; the next one measures the others, and the record is that of an uninterrupted one."""
    record = tmp_path / "verdicts.json"
    process = begin("verify", "scaling", "--quick", "--json", record)
    until(lambda: record.exists() and json.loads(record.read_text())["claims"])
    said = interrupted(process)
    about = json.loads(record.read_text())
    count = len(papers.paper("scaling").claims)
    assert not about["complete"] and 0 < len(about["claims"]) <= count
    assert f"interrupted; {len(about['claims'])} of {count} claims are in {record}; the same command measures" in said


@pytest.mark.parametrize("words", ["learn", "spectrum"])
def test_commands_that_write_at_their_end(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = np.random.default_rng(0).standard_normal((40, 2))
    np.savetxt(tmp_path / "a.csv", table, delimiter=",", header="a,b", comments="")

    def interrupt(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("overlaps.plan.forecast.forecast", interrupt)
    monkeypatch.setattr(ov.Spectrum, "from_data", lambda path: None)
    target = ["--target", "a"] if words == "learn" else []
    code, _, told = command(
        monkeypatch, capsys, words, str(tmp_path / "a.csv"), *target, "--out", str(tmp_path / "out")
    )
    assert code == 130 and told == "overlaps: interrupted; nothing was written; the same command begins anew\n"
    assert not (tmp_path / "out").exists()


# --- the record of verify --------------------------------------------------------------------------------------------


class Claims:
    """Three claims, of which one may be interrupted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from overlaps.papers import verification

        self.measured: list[str] = []
        self.interrupt = ""
        paper = papers.Paper("fake", "Fake", "nobody")
        for name in "abc":
            paper.claim(name, where="1", statement=name, expected="holds")(lambda quick, name=name: self.measure(name))
        monkeypatch.setattr(verification, "paper", lambda handle: paper)
        monkeypatch.setattr(verification, "code_digest", lambda handle: self.code)
        self.code = "first"

    def measure(self, name: str) -> papers.Measurement:
        if name == self.interrupt:
            raise KeyboardInterrupt
        self.measured.append(name)
        return papers.Measurement("holds", 0.1 + ord(name), 0.1 / 3)


@pytest.fixture
def claims(monkeypatch: pytest.MonkeyPatch) -> Claims:
    return Claims(monkeypatch)


def values(record: Path) -> list[dict[str, object]]:
    return [{**row, "seconds": 0} for row in json.loads(record.read_text())["claims"]]


def test_an_interrupted_record_is_gone_on_with(claims: Claims, tmp_path: Path) -> None:
    claims.interrupt = "b"
    with pytest.raises(KeyboardInterrupt, match="1 of 3 claims are in"):
        papers.verify("fake", record=tmp_path / "a.json")
    claims.interrupt = ""
    report = papers.verify("fake", record=tmp_path / "a.json")
    assert claims.measured == ["a", "b", "c"] and report.as_recorded and report.complete
    papers.verify("fake", record=tmp_path / "b.json")
    assert values(tmp_path / "a.json") == values(tmp_path / "b.json")
    assert json.loads((tmp_path / "a.json").read_text())["complete"]
    with pytest.raises(ov.InputError, match=r"json: .*a\.json exists; give a new file"):
        papers.verify("fake", record=tmp_path / "a.json")


def test_other_code_measures_again(claims: Claims, tmp_path: Path) -> None:
    claims.interrupt = "b"
    with pytest.raises(KeyboardInterrupt):
        papers.verify("fake", record=tmp_path / "a.json")
    claims.interrupt, claims.code = "", "second"
    papers.verify("fake", record=tmp_path / "a.json")
    assert claims.measured == ["a", "a", "b", "c"]


def test_a_record_of_something_else_is_not_overwritten(claims: Claims, tmp_path: Path) -> None:
    claims.interrupt = "b"
    with pytest.raises(KeyboardInterrupt):
        papers.verify("fake", quick=True, record=tmp_path / "a.json")
    before = (tmp_path / "a.json").read_text()
    with pytest.raises(ov.InputError, match="holds claims measured quick; give a new file"):
        papers.verify("fake", record=tmp_path / "a.json")
    assert (tmp_path / "a.json").read_text() == before
    for text in ("", "[]", '{"complete": false}', before.replace('"fake"', '"other"'), "[" * 10_000):
        (tmp_path / "a.json").write_text(text)
        with pytest.raises(ov.InputError, match=r"^json: "):
            papers.verify("fake", quick=True, record=tmp_path / "a.json")
        assert (tmp_path / "a.json").read_text() == text
    with pytest.raises(ov.InputError, match="json: no folder"):
        papers.verify("fake", record=tmp_path / "none" / "a.json")
    with pytest.raises(KeyboardInterrupt, match="1 of 3 claims were measured, and are not kept; --json FILE keeps"):
        papers.verify("fake")


BATCHES = """
from dataclasses import replace
import overlaps as ov

net = ov.Committee(1, "erf")
p = ov.Problem(data=ov.GaussianInputs(), teacher=net, student=net, algorithm=ov.OnlineSGD(0.5))
start = ov.draw(p, 50)
for scale in (ov.sample, ov.train):
    for batch in (2, 10**12):  # the first compiles
        print(batch, flush=True)
        try:
            scale(replace(p, algorithm=ov.OnlineSGD(0.5, batch=batch)), start, [0.0, 0.1], runs=2, progress=False)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
"""


def test_a_batch_of_any_size_ends(tmp_path: Path) -> None:
    """Compiled loops look whether anybody waits for them between the samples of a batch; one of 10¹² takes hours."""
    (tmp_path / "script.py").write_text(BATCHES)
    with begin(code=str(tmp_path / "script.py")) as run:
        end = threading.Timer(SECONDS, run.kill)
        end.start()
        assert run.stdout is not None
        for _ in range(2):
            while run.stdout.readline().strip() != str(10**12):
                assert run.poll() is None
            time.sleep(0.3)
            run.send_signal(signal.SIGINT)
            assert run.stdout.readline().strip() == "interrupted"
        assert run.wait(SECONDS) == 0
        end.cancel()
