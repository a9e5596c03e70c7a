"""The claims ledger: a verdict that differs from the record is noticed, and nothing is overwritten or lost."""

from __future__ import annotations

import dataclasses
import json
import re
from importlib import import_module
from pathlib import Path

import pytest

import overlaps as ov
from overlaps import papers
from overlaps.papers.record import RECORD, recorded


def test_figures_are_in_the_order_of_print():
    assert list(papers.paper("scaling").figures) == [f"fig{i}" for i in range(1, 21)]
    assert list(papers.paper("outliers").figures)[4:8] == ["fig2.5", "fig2.6", "fig9.1", "fig9.2"]
    assert list(papers.paper("universality").figures)[3:] == [
        "fig5",
        *(f"figS{i}" for i in range(1, 5)),
        "table1",
        "table2",
    ]


def test_claims_of_the_committee_hold():
    report = papers.verify("committee", quick=True)
    assert report.as_recorded, report
    assert "2 of 2 claims as recorded" in repr(report)
    for row in report.rows:
        assert row.measured and abs(row.measured.value - 1) < 1e-3 and row.measured.error < 1e-3


def test_a_verdict_that_is_not_the_recorded_one_fails(monkeypatch):
    """Break the recorded verdict, and the formula: both must be noticed."""
    paper = papers.paper("committee")
    claim = paper.claims["plateau"]
    monkeypatch.setitem(paper.claims, "plateau", dataclasses.replace(claim, expected="fails"))
    assert not papers.verify("committee", quick=True).as_recorded
    monkeypatch.setitem(paper.claims, "plateau", claim)
    from overlaps.papers.committee import paper as committee

    monkeypatch.setattr(committee, "plateau_height", lambda k: 1.01 * k / 3.14159 * (3.14159 / 6 - k / (2 * k)))
    assert not papers.verify("committee", quick=True).as_recorded


def test_figures_are_drawn_once_and_never_overwritten(tmp_path):
    picture, data = papers.draw_figure("committee", "overlaps", tmp_path / "out", quick=True)
    assert picture.stat().st_size > 10_000 and data.is_file()
    with pytest.raises(ov.InputError, match="exists already"):
        papers.draw_figure("committee", "overlaps", tmp_path / "out", quick=True)


def test_a_refused_figure_leaves_no_folder(tmp_path):
    (tmp_path / "short.csv").write_text("a,b\n1,2\n3,5\n")
    with pytest.raises(ov.InputError, match="singular covariance"):
        papers.draw_figure("scaling", "fig14", tmp_path / "out", data=tmp_path / "short.csv")
    assert not (tmp_path / "out").exists()
    (tmp_path / "old").mkdir()
    with pytest.raises(ov.InputError, match="exists already"):  # before the data are looked at
        papers.draw_figure("scaling", "fig14", tmp_path / "old", data=tmp_path / "nowhere.csv")


def test_registering_refuses_what_would_be_lost():
    paper = papers.Paper("x", "title", "citation")
    about = {"where": "eq. (1)", "statement": "s"}
    paper.claim("a", **about, expected="holds")(lambda quick: papers.Measurement("holds", 1.0, 0.1))
    with pytest.raises(ov.InputError, match="already"):
        paper.claim("a", **about, expected="holds")(lambda quick: papers.Measurement("holds", 1.0, 0.1))
    with pytest.raises(ov.InputError, match="did you mean 'holds'"):
        paper.claim("b", **about, expected="hold")
    with pytest.raises(ov.InputError, match="where: expected the place"):
        paper.claim("b", where=" ", statement="s", expected="holds")
    with pytest.raises(ov.InputError, match="unknown verdict"):
        papers.Measurement("maybe", 1.0, 0.1)


@pytest.fixture
def example(monkeypatch):
    """A paper with one claim of each verdict, of which the measurement can be chosen."""
    paper = papers.Paper("example", "title", "citation")
    found = {}
    for name in ("holds", "fails", "cannot be told", "found here"):
        paper.claim(name, where="eq. (1)", statement="s", expected=name)(
            lambda quick, name=name: papers.Measurement(found.get(name, name), 1.0, 0.1)
        )
    monkeypatch.setitem(papers.papers(), "example", paper)
    return found


def test_what_cannot_be_told_is_no_contradiction(example):
    """It is counted and named; a verdict where nothing could be told is one."""
    report = papers.verify("example")
    assert report.as_recorded and not report.wrong and not report.undecided
    example["holds"] = "cannot be told"
    report = papers.verify("example")
    assert not report.as_recorded and not report.wrong
    assert [row.claim.name for row in report.undecided] == ["holds"]
    assert "--- holds: cannot be told" in repr(report) and "example holds: recorded holds" in repr(report)
    about = json.loads(report.to_json())
    assert about["counts"]["cannot be told"] == 2 and about["claims"][0]["where"] == "eq. (1)"
    example["cannot be told"] = "holds"
    assert [row.claim.name for row in papers.verify("example").wrong] == ["cannot be told"]
    example["found here"] = "fails"
    assert [row.claim.name for row in papers.verify("example").wrong] == ["cannot be told", "found here"]


def test_verdicts_and_exit_codes(example, monkeypatch):
    """A claim that cannot be told is an exit code of 1 with --strict only."""
    from typer.testing import CliRunner

    from overlaps.cli.commands import app

    monkeypatch.setattr("os.cpu_count", lambda: 1)  # other processes would not know of the example
    run = lambda *more: CliRunner().invoke(app, ["verify", "example", *more]).exit_code  # noqa: E731
    example["holds"] = "cannot be told"
    assert (run(), run("--strict")) == (0, 1)
    example["holds"] = "fails"
    assert run() == 1


def test_claims_are_printed_as_they_are_done(example, monkeypatch, capsys, tmp_path):
    """Each before the next is measured, by the command too; an interrupted record is shown first."""
    from overlaps.cli import commands

    monkeypatch.setattr("os.cpu_count", lambda: 1)
    paper, printed = papers.paper("example"), []

    def listening(claim):
        def measure(quick):
            printed.append(capsys.readouterr().out)
            return claim.measure(quick)

        return dataclasses.replace(claim, measure=measure)

    for name, claim in list(paper.claims.items()):
        monkeypatch.setitem(paper.claims, name, listening(claim))
    commands.verify("example")
    assert all(f"ok  {name}: {name}" in out for name, out in zip(paper.claims, printed[1:], strict=False))
    assert "holds:" not in printed[0] and capsys.readouterr().out.endswith("\n4 of 4 claims as recorded\n")
    seen, record = [], tmp_path / "verdicts.json"
    papers.verify("example", record=record, done=seen.append)
    assert [row.claim.name for row in seen] == list(paper.claims)
    record.write_text(record.read_text().replace('"complete": true', '"complete": false'))
    again = []
    papers.verify("example", record=record, done=again.append)
    assert [row.measured for row in again] == [row.measured for row in seen] and len(printed) == 8


def test_a_number_says_something_only_if_a_tenth_would_show():
    assert papers.told("holds", 1.02, 0.03) == "holds"
    assert papers.told("holds", 0.8, 0.3) == "cannot be told"
    assert papers.told("fails", 2.4, 0.3) == "fails"  # far off, however large the error
    assert papers.told("holds", 1.9, 0.29) == "cannot be told"  # nothing holds by a wide error, least of all far off
    assert papers.told("fails", 0.8, 0.3) == "cannot be told"
    assert papers.told("holds", 2.05, 0.05, expected=2.0, errors=4.0) == "holds"


def test_runs_are_kept_and_functions_put_back():
    net = ov.Committee(1, "linear")
    problem = ov.Problem(data=ov.GaussianInputs(), teacher=net, student=net, algorithm=ov.OnlineSGD(0.5))
    start, right = ov.draw(problem, 50, seed=0), ov.sample
    with papers.kept_runs():
        runs = [ov.sample(problem, start, [1.0], runs=2, seed=seed, progress=False) for seed in (0, 0, 1)]
        assert runs[0] is runs[1] and runs[0] is not runs[2]
        assert ov.sample is not right
    assert ov.sample is right


def test_a_printed_formula_is_held_against_its_pin(monkeypatch):
    """(15) with 3 for M + 1, which a claim at M = 2 cannot see, is an error of the claim."""
    from overlaps.papers.scaling import printed

    scaling = papers.paper("scaling")
    monkeypatch.setattr(printed, "eq15", lambda M, *rest, right=printed.eq15: right(M, *rest) * (1 if M == 2 else 1.01))
    with pytest.raises(ArithmeticError, match=r"scaling\.?.* gives 549\.\d+ in place of 543\.65"):
        scaling.measure("escape-time", True)


@pytest.mark.parametrize("handle", [handle for handle in papers.papers() if handle != "committee"])
def test_printed_formulas_are_pinned(handle):
    """Each public function of a paper's `printed` is called by a pin, which gives its number."""
    import inspect
    from importlib import import_module

    for each in papers.paper(handle).pins.values():
        for pin in each:
            pin.check()
    printed, pins = (import_module(f"overlaps.papers.{handle}.{name}") for name in ("printed", "pins"))
    code = [value.__code__ for value in vars(pins).values() if hasattr(value, "__code__")]
    inner = [each for outer in code for each in outer.co_consts if inspect.iscode(each)]
    called = {name for each in code + inner for name in each.co_names}
    public = [name for name, value in inspect.getmembers(printed, inspect.isfunction) if not name.startswith("_")]
    own = {name for name in public if vars(printed)[name].__module__ == printed.__name__}
    assert own and own <= called, own - called


DOCS = Path(__file__).parents[1] / "docs"


def test_the_record_of_the_documentation_is_of_these_claims():
    """Measured in full: every claim, as it is stated now, with the recorded verdict."""
    about = json.loads(RECORD.read_text(encoding="utf-8"))
    rows = {(row["paper"], row["claim"]): row for row in about["claims"]}
    assert about["complete"] and not about["quick"] and about["as_recorded"]
    claims = {(handle, c.name): c for handle, p in papers.papers().items() for c in p.claims.values()}
    assert rows.keys() == claims.keys()
    for at, claim in claims.items():
        row = rows[at]
        assert (row["statement"], row["method"], row["where"]) == (claim.statement, claim.method, claim.where), at
        assert row["recorded"] == row["found"] == claim.expected and row["date"] and row["versions"], at


def test_rows_of_another_statement_are_refused(tmp_path):
    """A record is put together of full measurements of claims as they are stated now, which keep their versions."""
    from benchmarks import verdict_pages

    about = json.loads(RECORD.read_text(encoding="utf-8"))
    same = json.loads(verdict_pages.merged(RECORD, []))
    assert same["claims"] == about["claims"]
    other = tmp_path / "other.json"
    row = about["claims"][0] | {"value": 0.5, "date": "2030-01-01"}
    write = lambda **more: other.write_text(json.dumps({"quick": False, "claims": [row | more]}))  # noqa: E731
    write(versions="overlaps 9")
    first = json.loads(verdict_pages.merged(RECORD, [other]))["claims"][0]
    assert (first["value"], first["date"], first["versions"]) == (0.5, "2030-01-01", "overlaps 9")
    write(statement="what it once said")
    with pytest.raises(SystemExit, match=f"{row['claim']}: measured as it was stated before"):
        verdict_pages.merged(RECORD, [other])
    other.write_text(json.dumps({"quick": True, "claims": [row]}))
    with pytest.raises(SystemExit, match="reduced sizes"):
        verdict_pages.merged(RECORD, [other])


def test_the_pages_of_papers_are_written_from_the_record():
    """`python -m benchmarks.verdict_pages` writes them again."""
    from benchmarks import verdict_pages

    found = recorded()
    page = (DOCS / "papers.md").read_text(encoding="utf-8")
    quick = json.loads(verdict_pages.QUICK.read_text(encoding="utf-8"))
    assert verdict_pages.summary(found) in page and verdict_pages.quick_words(quick) in page
    with pytest.raises(SystemExit, match="x y"):
        verdict_pages.quick_words(quick | {"wrong": ["x y"]})
    for handle, each in papers.papers().items():
        page = (DOCS / "papers" / f"{handle}.md").read_text(encoding="utf-8")
        assert verdict_pages.claims_table(each, found) in page
        assert all(one.where and one.statement and one.why for one in each.unclaimed) and each.unclaimed


def test_statements_are_counted_by_their_numbers():
    """Ranges count in full, what is named twice counts once, and a claim that is found here names none."""
    from benchmarks.statements import counted, places

    paper = papers.Paper("x", "title", "citation")
    for name, where in {
        "a": "lemmas 3.1 to 3.3, eq. (4)",
        "b": "after eq. (4)",
        "c": "not in the paper; eq. (7)",
    }.items():
        verdict = "found here" if name == "c" else "holds"
        paper.claim(name, where=where, statement="s", expected=verdict)(
            lambda quick: papers.Measurement("holds", 1.0, 0.1)
        )
    paper.no_claim("eqs. (4) to (6)", "s", "why")
    assert counted(paper) == (6, 4)
    for each in papers.papers().values():
        assert all(bool(places(claim.where)) != (claim.expected == "found here") for claim in each.claims.values())


@pytest.mark.parametrize("handle", ["alignment", "comparison", "outliers", "scaling", "universality"])
def test_every_numbered_equation_is_named(handle):
    """By a claim, or among what has none with the reason: all numbers of print, as each paper states them."""
    from benchmarks.statements import places

    paper = papers.paper(handle)
    wheres = [each.where for each in (*paper.claims.values(), *paper.unclaimed)]
    named = set().union(*map(places, wheres))
    printed = set().union(*map(places, import_module(f"overlaps.papers.{handle}.statements").EQUATIONS))
    equations = {place for place in named if place.startswith("equation ")}
    assert sorted(printed - equations) == [] and sorted(equations - printed) == []


def test_the_page_of_mutants_is_what_the_command_writes():
    """Its words, and a table for each seed, whether counted before or after its misses were looked at."""
    from benchmarks import claim_mutants

    old = claim_mutants.PAGE.read_text(encoding="utf-8")
    seeds = [int(each) for each in re.findall(r"^## Seed (\d+): counted (?:before|after) formulas", old, re.M)]
    assert 22 in seeds and len(seeds) > 1 and seeds == sorted(seeds, reverse=True)
    assert old.count(claim_mutants.EVERY) == 1
    assert old.startswith(claim_mutants.HEAD)
    row = {"module": "overlaps.laws.linear", "function": "f", "place": 0, "words": "`1` → `2`", "claim": "", "tried": 3}
    title = claim_mutants.heading(1000)
    new = claim_mutants.page(old, title, claim_mutants.table([row]))
    added = new.removeprefix(claim_mutants.HEAD).removesuffix(old.removeprefix(claim_mutants.HEAD))
    assert (
        added.startswith("## Seed 1000: counted after formulas were pinned in every place")
        and "- `laws.linear.f`: `1` → `2` (3 claims)" in added
    )
    assert claim_mutants.page(new, title, claim_mutants.table([row])) == new


def test_a_mutant_of_a_formula_is_noticed_and_undone():
    """What `python -m benchmarks.claim_mutants` does: wrong code in place, noticed by a claim, and right code again."""
    from benchmarks import claim_mutants

    function = claim_mutants.functions("overlaps.papers.scaling.printed")["eq74"]
    right = function.__code__
    assert claim_mutants.sites(function) > 5
    made = claim_mutants.mutated(function, 0)
    assert made is not None and "→" in made[1]
    with claim_mutants.wrong(function, made[0]):
        assert claim_mutants.noticed(["scaling eq74-worst-case"], 5.0)[:2] == (
            "scaling eq74-worst-case",
            "ArithmeticError",
        )
    assert function.__code__ is right and claim_mutants.noticed(["scaling eq74-worst-case"], 5.0)[0] == ""
