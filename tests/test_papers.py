"""The claims ledger: a verdict that differs from the record is noticed, and nothing is overwritten or lost."""

from __future__ import annotations

import dataclasses

import pytest

import overlaps as ov
from overlaps import papers


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
    paper.claim("a", statement="s", expected="holds")(lambda quick: papers.Measurement("holds", 1.0, 0.1))
    with pytest.raises(ov.InputError, match="already"):
        paper.claim("a", statement="s", expected="holds")(lambda quick: papers.Measurement("holds", 1.0, 0.1))
    with pytest.raises(ov.InputError, match="did you mean 'holds'"):
        paper.claim("b", statement="s", expected="hold")
    with pytest.raises(ov.InputError, match="unknown verdict"):
        papers.Measurement("maybe", 1.0, 0.1)
