"""Whether tests notice mistakes: `python -m benchmarks.formula_mutants` makes formulas wrong, one by one, and counts.

A mutant (`benchmarks.mutants`) is made in a child of this process, which has imported the library and compiled nothing:
the code of the function is replaced, and compiled anew with all that holds it (`benchmarks.compiled_anew`). The tests
about its file (`benchmarks.formula_files`) are run by pytest until one fails, the examples of the file first and then
the quickest; a test that takes longer than the limit counts as a failure. The test that failed is then run on the right
code, and has noticed nothing if it fails there as well.

The table goes into docs/formula_mutants.md, and each mutant into a JSON file as it is done: an interrupted run goes on.
`--only` judges the mutants of one function or file, or one of them, `--again` those that nothing has noticed so far.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import pkgutil
import random
import signal
import sys
import tempfile
import time as clock
import traceback
from collections.abc import Callable
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

import pytest

from .compiled_anew import anew
from .formula_files import LEFT_OUT, TESTS, files
from .formula_page import PAGE, page
from .mutants import functions, mutated, sites

SEED = 25
LIMIT = 120  # seconds for a test
PLACES = 6  # of a function that are drawn from, so that long functions have no more say than short ones
TOO_LONG = "takes longer than the limit, or ends Python"


class Mutant(NamedTuple):
    """A place of a function, and what is wrong there."""

    module: str
    function: str
    place: int
    words: str
    code: CodeType

    @property
    def key(self) -> str:
        """Its name in the record."""
        return f"{self.module}.{self.function}#{self.place}"


class Reporter:
    """A plugin of pytest that sorts the tests by what they took before, and writes down what becomes of each."""

    def __init__(self, out: Path, record: dict[str, Any]) -> None:
        self.out, self.record = out.open("a", buffering=1, encoding="utf-8"), record

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Examples of the file first, then the quickest; without tests that fail on the right code."""
        right, seconds = self.record["right"], self.record["seconds"]
        known = [item for item in items if right.get(item.nodeid, True)]
        items[:] = sorted(known, key=lambda item: (not item.nodeid.startswith("src/"), seconds.get(item.nodeid, 1.0)))

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """A test begins."""
        self._write(test=nodeid, began=clock.time())

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A part of a test has ended."""
        crash = getattr(report.longrepr, "reprcrash", None)
        words = str(crash.message if crash else report.longrepr).strip() if report.failed else ""
        self._write(test=report.nodeid, failed=report.failed, seconds=report.duration, words=_first_line(words))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file could not even be imported."""
        if report.failed:
            self._write(test=report.nodeid, failed=True, seconds=0.0, words=_first_line(str(report.longrepr)))

    def _write(self, **what: Any) -> None:
        self.out.write(json.dumps(what) + "\n")


def _first_line(words: str) -> str:
    return words.splitlines()[0][:200] if words else ""


def drawn(count: int) -> list[Mutant]:
    """As many mutants, drawn by a seed; a larger number has those of a smaller one among them."""
    draw, pool, seen = random.Random(SEED), [], set()
    for module in sorted(TESTS):
        for name, function in sorted(functions(f"overlaps.{module}").items()):
            if name.rpartition(".")[2] not in LEFT_OUT and function not in seen:
                seen.add(function)
                places = list(range(sites(function)))
                pool += [(module, name, at, function) for at in draw.sample(places, min(PLACES, len(places)))]
    draw.shuffle(pool)
    found: list[Mutant] = []
    for module, name, at, function in pool:
        made = mutated(function, at) if len(found) < count else None
        if made is not None:
            found.append(Mutant(module, name, at, made[1], made[0]))
    return found


def in_child(tests: list[str], record: dict[str, Any], prepare: Callable[[], object], budget: float) -> dict[str, Any]:
    """Run pytest in a child of this process; which test failed first and how, empty if none did within the budget."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "tests.jsonl"
        out.touch()
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            _be_child(tests, record, prepare, out)
        began, status = clock.monotonic(), 0
        while os.waitpid(child, os.WNOHANG) == (0, 0):
            clock.sleep(0.05)
            if clock.monotonic() - began > budget:
                os.killpg(child, signal.SIGKILL)
                os.waitpid(child, 0)
                status = 1
                break
        lines = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    return _told(lines, record, bool(status)) | {"seconds": round(clock.monotonic() - began, 1)}


def _be_child(tests: list[str], record: dict[str, Any], prepare: Callable[[], object], out: Path) -> None:
    """Never comes back."""
    code = 3
    try:
        os.setsid()
        log = os.open(out.with_suffix(".log"), os.O_WRONLY | os.O_CREAT)
        for stream in (1, 2):
            os.dup2(log, stream)
        prepare()
        options = ["-x", "-p", "no:cacheprovider", f"--timeout={LIMIT}", "--timeout-method=thread"]
        code = int(pytest.main([*options, *tests], plugins=[Reporter(out, record)]))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _told(lines: list[dict[str, Any]], record: dict[str, Any], out_of_time: bool) -> dict[str, Any]:
    """The first failure of what a child wrote, or the test in which it ended; and seconds of tests into the record."""
    seconds: dict[str, float] = {}
    for line in lines:
        if "failed" in line:
            seconds[line["test"]] = seconds.get(line["test"], 0.0) + line["seconds"]
            if line["failed"]:
                return {"test": line["test"], "how": line["words"]}
    for test, taken in seconds.items():
        record["seconds"][test] = round(min(taken, record["seconds"].get(test, taken)), 3)
    begun = [line["test"] for line in lines if "began" in line]
    if begun and begun[-1] not in _finished(lines) and not out_of_time:
        return {"test": begun[-1], "how": TOO_LONG}
    return {"test": "", "how": "out of time" if out_of_time else ""}


def _finished(lines: list[dict[str, Any]]) -> set[str]:
    """Tests of which all three parts have ended, or that were skipped."""
    parts = [line["test"] for line in lines if "failed" in line]
    return {test for test in parts if parts.count(test) >= 2}


def judged(mutant: Mutant, record: dict[str, Any], budget: float) -> dict[str, Any]:
    """Which test notices a mutant: one that fails with it, and does not without."""
    function = functions(f"overlaps.{mutant.module}")[mutant.function]

    def wrong() -> None:
        anew(function)
        function.__code__ = mutant.code

    while True:
        found = in_child(files(mutant.module), record, wrong, budget)
        test = found["test"]
        if not test or (record["right"].get(test) and found["how"] != TOO_LONG):
            return found
        with_right_code = in_child([test], {"right": {}, "seconds": {}}, lambda: anew(function), 2 * LIMIT)
        record["right"][test] = with_right_code["test"] == "" and with_right_code["how"] == ""
        if record["right"][test]:
            return found
        print(f"{test} fails on the right code: {with_right_code['how']}", flush=True)


def import_all() -> None:
    """Everything that children would import each for itself, and nothing that starts threads or compiles."""
    for name in ("matplotlib.pyplot", "scipy.integrate", "scipy.stats", "scipy.special", "xarray"):
        importlib.import_module(name)
    package = importlib.import_module("overlaps")
    for each in pkgutil.walk_packages(package.__path__, "overlaps."):
        if not any(part in each.name for part in ("papers", "pages", "deep", "__main__", "cluster")):
            importlib.import_module(each.name)


def main(arguments: list[str] | None = None, say: Callable[..., None] = print) -> int:
    """Draw mutants, judge those that are not judged yet, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="mutants that are drawn")
    parser.add_argument("--record", type=Path, default=Path("formula_mutants.json"), help="what has been judged so far")
    parser.add_argument("--budget", type=float, default=900.0, help="seconds for a mutant that nothing notices")
    parser.add_argument("--only", default="", help="judge those whose name, module.function#place, begins so; no page")
    parser.add_argument("--again", action="store_true", help="judge anew those that nothing has noticed")
    given = parser.parse_args(arguments)
    record = {"seconds": {}, "right": {}, "mutants": {}}
    if given.record.exists():
        record = json.loads(given.record.read_text(encoding="utf-8"))
    import_all()
    mutants, known = drawn(given.count), record["mutants"]
    for mutant in mutants:
        row = known.get(mutant.key, {})
        done = row.get("words") == mutant.words and not (given.again and not row["test"])
        if (done and not given.only) or not mutant.key.startswith(given.only):
            continue
        found = judged(mutant, record, given.budget)
        first = row.get("first", found["test"]) if row.get("words") == mutant.words else found["test"]
        known[mutant.key] = {"words": mutant.words, **found, "first": first}
        _write(given.record, json.dumps(record, indent=1))
        verdict = found["test"] or "NOT NOTICED"
        say(f"{mutant.key}: {mutant.words}: {verdict}, {found['how']} {found['seconds']} s", flush=True)
    if not given.only:
        PAGE.write_text(page({each.key: known[each.key] for each in mutants}), encoding="utf-8")
    return 0


def _write(path: Path, text: str) -> None:
    """All of it or nothing."""
    draft = path.with_suffix(".draft")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)


if __name__ == "__main__":
    sys.exit(main())
