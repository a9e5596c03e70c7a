"""The gallery: drawn once, again only if the code has changed, whatever happens to a single figure; and complete."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import overlaps as ov
import workers
from overlaps import papers
from overlaps.papers import gallery, index

FOLDER = Path(__file__).parents[1] / "docs" / "gallery"


class Drawings:
    """A paper of two cheap figures that count how often they are made; `trouble` is raised by the second."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self.trouble: BaseException | None = None
        self.paper = papers.Paper("fake", "A fake", "nobody, nowhere")
        self.paper.claim("c*", where="eq. (1)", statement="x_1 < |y| costs $2, see `ov.laws.x_1`", expected="fails")(
            lambda quick: papers.Measurement("fails", 1.0, 0.1)
        )
        for name in ("fig1", "fig2"):
            self.paper.figure(name, f"the caption of {name}", claims=("c*",))(self.maker(name))

    def maker(self, name: str):
        def make(quick: bool):
            import matplotlib.pyplot as plt

            self.made.append(name)
            figure, ax = plt.subplots()
            if name == "fig2" and self.trouble is not None:
                raise self.trouble
            ax.plot([0, 1])
            figure.suptitle("a line" + "\nquick: one line instead\nof two" * quick)
            return figure, xr.Dataset({"y": ("x", np.arange(2.0))})

        return make


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Drawings:
    drawings = Drawings()
    monkeypatch.setattr(gallery, "papers", lambda: {"fake": drawings.paper})
    monkeypatch.setattr(gallery, "code_digest", lambda handle: "first")
    return drawings


def draw(folder: Path, *, quick: bool = True) -> papers.Gallery:
    return papers.draw_gallery(folder, quick=quick, processes=1)


def counts(result: papers.Gallery) -> tuple[int, int, list[str]]:
    return result.drawn, result.kept, list(result.trouble)


def test_a_figure_is_drawn_once(fake: Drawings, tmp_path: Path) -> None:
    assert counts(draw(tmp_path / "new")) == (2, 0, [])
    assert counts(draw(tmp_path / "new")) == (0, 2, [])
    assert fake.made == ["fig1", "fig2"]
    assert counts(draw(tmp_path / "new", quick=False)) == (2, 0, [])  # at other sizes
    (tmp_path / "new" / "fake-fig1.webp").unlink()
    assert counts(draw(tmp_path / "new", quick=False)) == (1, 1, [])


def test_changed_code_is_drawn_again(fake: Drawings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draw(tmp_path)
    monkeypatch.setattr(gallery, "code_digest", lambda handle: "second")
    assert counts(draw(tmp_path)) == (2, 0, [])
    (tmp_path / "fake-fig2.json").write_text('{"code": "sec')  # as one that was being written
    assert counts(draw(tmp_path)) == (1, 1, [])


@pytest.mark.parametrize("error", [ov.InputError("no such thing"), ZeroDivisionError("by zero")])
def test_one_that_fails_keeps_no_other_from_being_drawn(fake: Drawings, tmp_path: Path, error: Exception) -> None:
    import matplotlib.pyplot as plt

    fake.trouble = error
    result = draw(tmp_path)
    assert counts(result) == (1, 0, ["fake-fig2"]) and str(error) in repr(result)
    assert "Not drawn yet." in result.page.read_text() and not plt.get_fignums()
    fake.trouble = None
    assert counts(draw(tmp_path)) == (1, 1, [])
    assert "Not drawn yet." not in result.page.read_text()


def test_what_fails_when_drawn_again_keeps_its_old_picture(
    fake: Drawings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw(tmp_path)
    monkeypatch.setattr(gallery, "code_digest", lambda handle: "second")
    fake.trouble = ov.InputError("no such thing")
    assert counts(draw(tmp_path)) == (1, 0, ["fake-fig2"])
    assert json.loads((tmp_path / "fake-fig2.json").read_text())["code"] == "first"
    assert (tmp_path / "fake-fig2.webp").exists()


def test_an_interrupted_gallery_goes_on_where_it_was(fake: Drawings, tmp_path: Path) -> None:
    fake.trouble = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        draw(tmp_path)
    assert "fake-fig1.webp" in (tmp_path / "index.md").read_text()
    fake.trouble, fake.made = None, []
    assert counts(draw(tmp_path)) == (1, 1, []) and fake.made == ["fig2"]


def test_page(fake: Drawings, tmp_path: Path) -> None:
    """Caption, command, what quick leaves out and verdicts; what means something in Markdown is taken as it is."""
    text = draw(tmp_path).page.read_text()
    assert "of its\n1 claims 1 fail." in text
    assert "The caption of fig1." in text and "fake-fig1.webp" in text
    assert "$ overlaps papers run fake fig1 --quick --out fake-fig1" in text
    assert "*quick*: one line instead of two." in text
    assert r"- **fails**, `c*`: x\_1 \< |y| costs \$2, see `ov.laws.x_1`" in text
    text = draw(tmp_path, quick=False).page.read_text()
    assert "--quick --out" not in text and "instead" not in text


def test_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A paper stays in one process, figure by figure; one that dies twice takes a single figure along."""

    def paper(handle: str, *names: str) -> papers.Paper:
        each = papers.Paper(handle, handle, "nobody")
        for name in names:
            each.figure(name, name)(lambda quick: None)
        return each

    chosen = {"a": paper("a", "1", "2", "3"), "b": paper("b", "4", "dies", "5"), "c": paper("c", "fails", "dies once")}
    monkeypatch.setattr(gallery, "papers", lambda: chosen)
    monkeypatch.setattr(index, "papers", lambda: chosen)
    monkeypatch.setattr(gallery, "code_digest", lambda handle: "first")
    monkeypatch.setattr(gallery, "_draw", workers.draw)
    result = papers.draw_gallery(tmp_path, quick=True, processes=2)
    assert counts(result)[:2] == (6, 0)
    assert sorted(result.trouble) == ["b-dies", "c-fails"] and "died" in result.trouble["b-dies"]
    found = {path.name: path.read_text() for path in tmp_path.iterdir() if path.suffix != ".md"}
    assert sorted(found) == ["a-1", "a-2", "a-3", "b-4", "b-5", "c-dies once", "c-fails"]
    assert found["a-1"] == found["a-2"] == found["a-3"] and found["b-4"] != found["b-5"]
    few = papers.draw_gallery(tmp_path / "few", "a", quick=True)
    assert counts(few)[:2] == (3, 0) and {path.name[0] for path in (tmp_path / "few").iterdir()} == {"a", "i"}
    with pytest.raises(ov.InputError, match="paper"):
        papers.draw_gallery(tmp_path / "few", "z")


# --- what a figure depends on ----------------------------------------------------------------------------------------


def test_code_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Changed by any file of the library, of the paper, or that all papers share; not by those of another paper."""
    monkeypatch.setattr(gallery, "__file__", str(tmp_path / "gallery.py"))
    library = ["first"]
    monkeypatch.setattr(gallery, "sources", lambda: library[0])
    for handle in ("mine", "other", "mine/__pycache__"):
        (tmp_path / handle).mkdir()

    def digest() -> str:
        gallery.code_digest.cache_clear()
        return gallery.code_digest("mine")

    seen = {digest()}
    for name in ("panels.py", "mine/figures.py", "mine/printed.csv"):
        for content in ("1", "2"):
            (tmp_path / name).write_text(content)
            seen.add(digest())
    library[0] = "second"
    seen.add(last := digest())
    assert len(seen) == 8
    (tmp_path / "other" / "figures.py").write_text("1")
    (tmp_path / "mine" / "__pycache__" / "figures.pyc").write_text("1")
    assert digest() == last
    gallery.code_digest.cache_clear()


def test_code_digest_is_that_of_the_paper() -> None:
    found = {handle: gallery.code_digest(handle) for handle in papers.papers()}
    assert len(set(found.values())) == len(found) and all(len(each) == 16 for each in found.values())


# --- the gallery of the documentation --------------------------------------------------------------------------------


def test_the_gallery_of_the_documentation_is_complete() -> None:
    """A figure that is new, renamed or described otherwise: `make gallery` draws it and writes the page again."""
    names = {f"{p.handle}-{figure}" for p in papers.papers().values() for figure in p.figures}
    for kind in ("webp", "json"):
        assert {path.stem for path in FOLDER.glob(f"*.{kind}")} == names
    assert (FOLDER / "index.md").read_text(encoding="utf-8") == gallery.page(FOLDER)
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 6e6


def test_the_gallery_of_the_documentation_says_what_it_leaves_out() -> None:
    """The same words are on the figures; those without are of the paper's sizes or those of their captions."""
    records = {path.stem: json.loads(path.read_text()) for path in FOLDER.glob("*.json")}
    assert all("instead of" in each["left_out"] for each in records.values() if each["left_out"])
    assert not any(each["left_out"] for each in records.values() if not each["quick"])
    page = (FOLDER / "index.md").read_text(encoding="utf-8")
    for handle, each in papers.papers().items():
        for figure in each.figures.values():
            # what differs from print is a field of its own, which the table of sizes shows
            assert not re.search(r"\breduced\b|runs where these are", figure.caption), figure.caption
            (row,) = re.findall(rf"^\| {handle} {re.escape(figure.name)} \| (.*?) \|", page, re.MULTILINE)
            assert ("*reduced*" in row) == bool(figure.reduced)
    assert papers.paper("scaling").figures["fig6"].reduced and "*Reduced*: the left panel" in page
    whole = {f"scaling-fig{i}" for i in (4, *range(7, 15), 17, 18, 20)} | {"alignment-fig2"}
    assert {name for name, each in records.items() if each["quick"] and not each["left_out"]} <= whole
