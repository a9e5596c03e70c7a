"""The benchmarks still run, and compare like with like; how fast things are is for `make bench` to say."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks import __main__ as command
from benchmarks import compiled_anew, suite, table
from benchmarks.front import FRONT
from benchmarks.micro import crossover, same_weights
from benchmarks.timing import race

from overlaps.averages import bivariate, closed, erf, linear

BENCHMARKS = {f"{one.__module__.split('.')[-1]}.{one.__name__}": one for group in suite.SUITE.values() for one in group}


@pytest.mark.parametrize("benchmark", BENCHMARKS.values(), ids=BENCHMARKS.keys())
def test_runs(benchmark: suite.Benchmark) -> None:
    rows = benchmark(True)
    assert rows
    for row in rows:
        assert row.what and row.value and row.means.endswith(".")
        assert "nan" not in row.value + row.means


@pytest.mark.parametrize("engine", ["direct", "blocked"])
@pytest.mark.parametrize("students", [2, 5])
def test_the_numpy_loop_is_the_same_training(engine: str, students: int) -> None:
    """Fed the same samples, both sides of the ratio end at the same weights."""
    assert same_weights(60, students, 100, engine) < 1e-12


def test_sides_take_turns_and_the_first_turn_is_not_counted() -> None:
    seen: list[str] = []
    now = iter(range(100))
    sides = {"a": (lambda: seen.append("a"), 1), "b": (lambda: seen.append("b"), 2)}
    result = race(sides, 2, clock=lambda: float(next(now)))
    assert seen == ["a", "b"] * 3
    assert result.turns == {"a": [1.0, 1.0], "b": [0.5, 0.5]}
    assert result.ratio("a", "b") == 2.0


def test_crossover() -> None:
    assert crossover((2, 8), [0.5, 2.0]) == pytest.approx(4.0)
    assert crossover((2, 8), [1.5, 2.0]) == 2.0
    assert crossover((2, 8), [0.2, 0.5]) == 8.0


def test_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [table.at_least("fast", 7.0, 5, "It is."), table.at_most("flat", 1.4, 1.3, "It is not.")]
    monkeypatch.setattr(suite, "SUITE", {"Part": (lambda quick: rows,)})
    suite.run(out=tmp_path / "page.md")
    shown, page = capsys.readouterr().out, (tmp_path / "page.md").read_text(encoding="utf-8")
    for text in (shown, page):
        assert "goals: 1 of 2 met; missed: flat" in text
        assert "cores" in text and "numpy" in text
        assert str(Path.home()) not in text and str(tmp_path) not in text
    assert "| fast | 7× | ≥ 5×: met | It is. |" in page


def test_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--slow"]) == 2
    assert "usage" in capsys.readouterr().err


def measured() -> dict[str, list[table.Row]]:
    """The rows of RESULTS.md, by the heading that they stand under."""
    sections: dict[str, list[table.Row]] = {}
    for line in (Path(suite.__file__).with_name("RESULTS.md")).read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            sections[line.removeprefix("## ")] = []
        elif line.startswith("| ") and not line.startswith("| measure |"):
            what, value, verdict, means = line.removeprefix("| ").removesuffix(" |").split(" | ")
            goal, _, found = verdict.strip().rpartition(": ")
            sections[[*sections][-1]].append(table.Row(what, value, means, goal, found == "met" if goal else None))
    return sections


def test_the_readme_has_the_measured_table() -> None:
    """Ten rows of RESULTS.md with value, goal and whether it was met, and the count of all goals, a missed one too."""
    page = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    assert suite.with_table(page, table.as_readme(measured(), FRONT)) == page
    assert len(FRONT) <= 10
    assert suite.with_table(page, "another") != page


def test_the_table_of_the_readme_shows_what_was_missed() -> None:
    rows = [table.at_least("fast", 7.0, 5, "It is."), table.at_most("flat", 1.4, 1.3, "It is not.")]
    shown = table.as_readme({"Part": rows}, {"flat": "how flat"}).splitlines()
    assert shown[2:] == ["| how flat | 1.4× | ≤ 1.3×: MISSED |", "", "1 of the 2 goals in RESULTS.md were met."]


def test_a_mutant_of_a_compiled_function_is_noticed(tmp_path: Path) -> None:
    """What `python -m benchmarks.formula_mutants` does: the mistake is in the code that the tests run, kept or not."""
    place, record = "averages.erf._minors#18", tmp_path / "record.json"
    command = [sys.executable, "-m", "benchmarks.formula_mutants", "--only", place, "--record", str(record)]
    where = Path(__file__).parents[1]
    done = subprocess.run(command, cwd=where, capture_output=True, text=True, timeout=500)
    assert place in done.stdout, done.stderr
    found = json.loads(record.read_text(encoding="utf-8"))
    row = found["mutants"][place]
    assert row["test"].startswith("tests/test_average") and row["how"]
    assert found["right"][row["test"]] is True  # it passes on the right code


def test_compiled_functions_that_hold_another_are_found() -> None:
    assert {erf.pair.py_func, erf._minors.py_func} < compiled_anew.reached(closed.second_order.py_func)
    assert bivariate.positive.py_func not in compiled_anew.reached(linear.pair.py_func)
