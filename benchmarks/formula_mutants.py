"""Whether tests notice mistakes: `python -m benchmarks.formula_mutants` makes formulas wrong, one by one, and counts.

pytest collects the tests of all files once, in this process, which has compiled nothing. A mutant, as made by
`benchmarks.mutants`, lives in a child of it: the code of the function is replaced, and compiled anew with all that
holds it (`benchmarks.compiled_anew`). The tests about its file (`benchmarks.formula_files`) are run until one fails,
the examples of the file first and then the quickest; a test that takes longer than the limit counts as a failure. The
test that failed is then run on the right code, and has noticed nothing if it fails there as well.

The table goes into docs/formula_mutants.md, and each mutant into a JSON file as it is done: an interrupted run goes on.
`--only` judges the mutants of one function or file, or one of them, `--again` those that nothing has noticed so far.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
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

import numba
import numpy as np
import pytest

from .compiled_anew import anew
from .formula_files import LEFT_OUT, TESTS, files
from .formula_page import PAGE, SAME, page
from .mutants import functions, mutated, sites

SEED = 25
LIMIT = 120  # seconds of a processor for a test, which do not depend on what else runs
HANGS = 1800  # seconds for one that does nothing
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


class Judge:
    """A plugin of pytest that judges mutants instead of running the tests, and in each child runs those that matter."""

    def __init__(self, given: argparse.Namespace, record: dict[str, Any], say: Callable[..., None]) -> None:
        self.given, self.record, self.say = given, record, say
        self.out: Any = None  # of a child
        self.session: Any = None

    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """All mutants, one by one; a child runs its tests as pytest does."""
        if self.out is not None:
            return None
        self.session = session
        judge_all(self)
        return True

    def chosen(self, module: str) -> list[pytest.Item]:
        """Tests about a module: its examples, then the quickest first; without those that fail on the right code."""
        right, seconds, about = self.record["right"], self.record["seconds"], files(module)
        items = [each for each in self.session.items if each.nodeid.partition("::")[0] in about]
        known = [each for each in items if right.get(each.nodeid, True)]
        return sorted(known, key=lambda item: (not item.nodeid.startswith("src/"), seconds.get(item.nodeid, 1.0)))

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """A test begins; too long a one ends the child."""
        if self.out is not None:
            signal.setitimer(signal.ITIMER_PROF, LIMIT)
        self._write(test=nodeid, began=clock.time())

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A part of a test has ended."""
        crash = getattr(report.longrepr, "reprcrash", None)
        words = str(crash.message if crash else report.longrepr).strip() if report.failed else ""
        self._write(test=report.nodeid, failed=report.failed, seconds=report.duration, words=_first_line(words))

    def _write(self, **what: Any) -> None:
        if self.out is not None:
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


def in_child(judge: Judge, tests: list[pytest.Item], prepare: Callable[[], object], budget: float) -> dict[str, Any]:
    """Run tests in a child of this process; which failed first and how, empty if none did within the budget."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "tests.jsonl"
        out.touch()
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            _be_child(judge, tests, prepare, out)
        began, killed = clock.monotonic(), False
        while os.waitpid(child, os.WNOHANG) == (0, 0):
            clock.sleep(0.05)
            if clock.monotonic() - began > budget:
                os.killpg(child, signal.SIGKILL)
                os.waitpid(child, 0)
                killed = True
                break
        lines = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
        if not lines and not killed:
            raise RuntimeError(f"no test was run: {out.with_suffix('.log').read_text(errors='replace')[-2000:]}")
        return _told(lines, judge.record, killed) | {"seconds": round(clock.monotonic() - began, 1)}


def _be_child(judge: Judge, tests: list[pytest.Item], prepare: Callable[[], object], out: Path) -> None:
    """Never comes back."""
    try:
        os.setsid()
        log = os.open(out.with_suffix(".log"), os.O_WRONLY | os.O_CREAT)
        for stream in (1, 2):
            os.dup2(log, stream)
        prepare()
        judge.out = out.open("a", buffering=1, encoding="utf-8")
        judge.session.items[:] = tests
        judge.session.config.hook.pytest_runtestloop(session=judge.session)
    except judge.session.Failed:
        pass  # the first failure
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def _told(lines: list[dict[str, Any]], record: dict[str, Any], out_of_time: bool) -> dict[str, Any]:
    """The first failure of what a child wrote, or the test in which it ended; and seconds of tests into the record."""
    seconds: dict[str, float] = {}
    failed: list[dict[str, Any]] = []
    for line in lines:
        if "failed" in line:
            seconds[line["test"]] = seconds.get(line["test"], 0.0) + line["seconds"]
            failed += [line] if line["failed"] else []
    for test, taken in seconds.items():
        record["seconds"][test] = round(min(taken, record["seconds"].get(test, taken)), 3)
    if failed:
        return {"test": failed[0]["test"], "how": failed[0]["words"]}
    begun = [line["test"] for line in lines if "began" in line]
    if begun and begun[-1] not in _finished(lines) and not out_of_time:
        return {"test": begun[-1], "how": TOO_LONG}
    return {"test": "", "how": "out of time" if out_of_time else ""}


def _finished(lines: list[dict[str, Any]]) -> set[str]:
    """Tests of which all three parts have ended, or that were skipped."""
    parts = [line["test"] for line in lines if "failed" in line]
    return {test for test in parts if parts.count(test) >= 2}


def judged(judge: Judge, mutant: Mutant) -> dict[str, Any]:
    """Which test notices a mutant: one that fails with it, and does not without."""
    function, right = functions(f"overlaps.{mutant.module}")[mutant.function], judge.record["right"]

    def wrong() -> None:
        anew(function)
        function.__code__ = mutant.code

    while True:
        tests = judge.chosen(mutant.module)
        found = in_child(judge, tests, wrong, judge.given.budget)
        test = found["test"]
        if not test or (right.get(test) and found["how"] != TOO_LONG):
            return found
        again = [each for each in tests if each.nodeid == test]
        with_right_code = in_child(judge, again, lambda: anew(function), 2 * HANGS)
        right[test] = with_right_code["test"] == "" and with_right_code["how"] == ""
        if right[test]:
            return found
        judge.say(f"{test} fails on the right code: {with_right_code['how']}", flush=True)


def judge_all(judge: Judge) -> None:
    """Those that are not judged yet, each into the record as it is done; then the page."""
    given, record, known = judge.given, judge.record, judge.record["mutants"]
    mutants = drawn(given.count)
    for mutant in mutants:
        row = known.get(mutant.key, {})
        same = row.get("words") == mutant.words
        done = same and not (given.again and not row["test"])
        if (done and not given.only) or not mutant.key.startswith(given.only):
            continue
        found = (
            judged(judge, mutant) if mutant.key not in SAME else {"test": "", "how": "computes the same", "seconds": 0}
        )
        known[mutant.key] = {"words": mutant.words, **found, "first": row["first"] if same else found["test"]}
        _write(given.record, json.dumps(record, indent=1))
        verdict = found["test"] or "NOT NOTICED"
        judge.say(f"{mutant.key}: {mutant.words}: {verdict}, {found['how']} {found['seconds']} s", flush=True)
    if not given.only:
        PAGE.write_text(page({each.key: known[each.key] for each in mutants}), encoding="utf-8")


def import_all() -> None:
    """Everything that children would import each for itself, and nothing that starts threads or compiles it."""
    numba.njit(lambda x: np.dot(x, x) + math.erf(x.sum()))(np.ones(2))  # the first function takes a second longer
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
    parser.add_argument("--budget", type=float, default=3600.0, help="seconds for a mutant that nothing notices")
    parser.add_argument("--only", default="", help="judge those whose name, module.function#place, begins so; no page")
    parser.add_argument("--again", action="store_true", help="judge anew those that nothing has noticed")
    given = parser.parse_args(arguments)
    record = {"seconds": {}, "right": {}, "mutants": {}}
    if given.record.exists():
        record = json.loads(given.record.read_text(encoding="utf-8"))
    import_all()
    tests = sorted(
        {file for module in TESTS if given.only.startswith(module) or not given.only for file in files(module)}
    )
    options = ["-x", "-s", "-p", "no:cacheprovider", f"--timeout={HANGS}", "--timeout-method=thread"]
    return int(pytest.main([*options, *tests], plugins=[Judge(given, record, say)]))


def _write(path: Path, text: str) -> None:
    """All of it or nothing."""
    draft = path.with_suffix(".draft")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)


if __name__ == "__main__":
    sys.exit(main())
