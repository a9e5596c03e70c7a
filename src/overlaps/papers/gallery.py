"""Drawing figures: one into a folder of its own, or all of them into a gallery.

A gallery keeps for each figure a picture and a record of what it was drawn with. A figure is drawn again only if the
library or its paper has changed since (`code_digest`), so that an interrupted gallery goes on where it was, and a
finished one costs nothing.
"""

from __future__ import annotations

import hashlib
import json
import re
import time as clock
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from ..compiled.code_cache import sources
from ..interface import files
from ..interface.checks import new_folder
from ..interface.errors import InputError, unknown
from ..interface.processes import keeping
from ..interface.progress import bar, without_bars
from .index import paper, papers
from .ledger import VERDICTS, Paper, PaperFigure
from .panels import colours
from .workers import DIED, Task, Trouble, one_by_one

if TYPE_CHECKING:
    pass


def draw_figure(
    handle: str,
    figure: str,
    out: Path,
    *,
    quick: bool = False,
    data: Path | None = None,
    numbers: Mapping[str, float] | None = None,
) -> tuple[Path, Path]:
    """Draw a figure into the new folder `out`; returns the paths of picture and data.

    `data` is a user's file for the figures that draw one; `numbers` stand in place of parameters of the paper, for the
    figures that name some in their `limits`.
    """
    import matplotlib.pyplot as plt

    chosen = paper(handle).figures
    if figure not in chosen:
        raise unknown(f"figure of {handle}", figure, chosen)
    made = chosen[figure]
    if data is not None and not made.takes_data:
        able = ", ".join(f.name for f in chosen.values() if f.takes_data) or "none"
        raise InputError(f"data: {figure} of {handle} draws no data of yours (those that do: {able})")
    made.allowed(numbers or {})
    if out.exists():
        new_folder("out", out)  # refused before computing, and made only once there is something to keep
    with colours():
        picture, values = made.draw(quick, numbers, data)
        new_folder("out", out)
        paths = out / f"{handle}-{figure}.png", out / f"{handle}-{figure}.nc"
        files.write_picture(paths[0], picture, dpi=150)
    plt.close(picture)
    files.write_dataset(paths[1], values)
    return paths


@dataclass(frozen=True)
class Gallery:
    """What a gallery holds: how many figures were drawn now and kept from before, and what is with the others.

    `trouble` is what went wrong with a figure, `missing` what one needs that is not installed; a picture from before
    stays in both cases.
    """

    page: Path
    drawn: int
    kept: int
    trouble: dict[str, str]
    missing: dict[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        numbers = f"{self.drawn} drawn, {self.kept} kept, {len(self.trouble)} in error, {len(self.missing)} not drawn"
        lines = [f"gallery: {numbers}: {self.page}"]
        lines += (f"  {name}: in error: {words}" for name, words in self.trouble.items())
        lines += (f"  {name}: not drawn: {words}" for name, words in self.missing.items())
        return "\n".join(lines)


def draw_gallery(folder: Path, *handles: str, quick: bool = False, processes: int = 1) -> Gallery:
    """Draw the figures of these papers, or of all, into `folder`, but for those it has, and write its page, index.md.

    Parameters
    ----------
    folder: made if there is none; pictures are in it as soon as they are drawn.
    quick: reduced sizes.
    processes: how many papers are drawn at the same time; more than one start this script's main module again, which
        must then be guarded by ``if __name__ == "__main__"``.
    """
    chosen = [paper(handle) for handle in handles] or list(papers().values())
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"out: cannot make the folder {folder} ({error.strerror}); name another") from None
    # figures of one paper share runs, so they stay in one process
    queue = [tasks for each in chosen if (tasks := _missing(each, folder, quick))]
    count = sum(len(each.figures) for each in chosen)
    kept = count - sum(map(len, queue))
    trouble: dict[str, str] = {}
    missing: dict[str, str] = {}

    def what_is_kept() -> str:
        there = count - sum(len(_missing(each, folder, quick)) for each in chosen)
        return f"{there} of {count} figures are in {folder}; the same command draws the others"

    files.clear_drafts(folder)
    try:
        with keeping(what_is_kept), bar(count, "gallery", "figure", initial=kept) as shown:
            begin = lambda task: shown.set_postfix_str(f"{task[0]}-{task[1]}")  # noqa: E731
            for (handle, name, *_), found in one_by_one(queue, _draw, processes, begin):
                words, install = found or DIED
                if words:
                    (missing if install else trouble)[f"{handle}-{name}"] = words
                shown.update()
    finally:  # also if interrupted: what is there is shown
        path = folder / "index.md"
        files.write(path, page(folder))
    return Gallery(path, count - kept - len(trouble) - len(missing), kept, trouble, missing)


@cache
def code_digest(handle: str) -> str:
    """Digest of all files that a figure of this paper may depend on: the library's sources, and those of its paper."""
    digest, here = hashlib.sha256(sources().encode()), Path(__file__).parent
    for path in sorted([*here.glob("*.py"), *(here / handle).rglob("*")]):
        if path.is_file() and "__pycache__" not in path.parts:
            digest.update(path.relative_to(here).as_posix().encode() + b"\n" + path.read_bytes() + b"\n")
    return digest.hexdigest()[:16]


def _missing(paper: Paper, folder: Path, quick: bool) -> list[Task]:
    """Figures whose picture is not there, or was drawn by other code or at other sizes."""
    tasks, code = [], code_digest(paper.handle)
    for name in paper.figures:
        record, picture = _record(folder, paper.handle, name), folder / f"{paper.handle}-{name}.webp"
        if not picture.exists() or (record.get("code"), record.get("quick")) != (code, quick):
            tasks.append((paper.handle, name, code, folder, quick))
    return tasks


def _record(folder: Path, handle: str, name: str) -> dict[str, object]:
    try:
        return dict(json.loads((folder / f"{handle}-{name}.json").read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return {}


def _draw(handle: str, name: str, code: str, folder: Path, quick: bool) -> Trouble:
    """Draw a figure into a gallery: picture first, then its record; returns what was wrong, if anything."""
    import matplotlib.pyplot as plt

    figure, began, others = papers()[handle].figures[name], clock.perf_counter(), plt.get_fignums()
    picture, record = (folder / f"{handle}-{name}.{kind}" for kind in ("webp", "json"))
    try:
        with colours(), without_bars():  # the gallery has one
            made = figure.draw(quick)[0]
            files.write_picture(picture, made, dpi=120, pil_kwargs={"quality": 80, "method": 6})
    except Exception as error:  # whatever is wrong with one figure, the others are drawn
        return Trouble.of(error)
    finally:
        for number in set(plt.get_fignums()).difference(others):
            plt.close(number)
    # what a quick figure says on itself
    less = " ".join(made.get_suptitle().split()).partition("quick: ")[2]
    seconds = round(clock.perf_counter() - began, 1)
    about = {"code": code, "quick": quick, "seconds": seconds, "left_out": less}
    files.write(record, json.dumps(about, ensure_ascii=False) + "\n")
    return Trouble()


def page(folder: Path) -> str:
    """The page of a gallery in Markdown: every figure with its command and the verdicts on what it shows."""
    lines = [
        "# All figures, one by one",
        "",
        "Every figure of the papers as the software draws it, with the command that draws it and the recorded",
        "verdicts on the claims that it shows; [Papers](../papers.md) has the verdicts on all of them. `make gallery`",
        "draws those whose code has changed, at the sizes of their paper, and goes on where it was interrupted.",
        "Figures that are marked *quick* have been drawn at reduced sizes so far, and say which; those that are marked",
        "*reduced* are drawn in full, with what is said in place of what the paper has.",
    ]
    for each in papers().values():
        count = Counter(claim.expected for claim in each.claims.values())
        verdicts = ", ".join(f"{count[verdict]} {verdict}" for verdict in VERDICTS if count[verdict])
        lines += ["", f"## {each.title}", "", f"{_plain(each.citation)}. Its handle is `{each.handle}`; of its"]
        lines += [f"{len(each.claims)} claims {verdicts.replace('holds', 'hold').replace('fails', 'fail')}."]
        for figure in each.figures.values():
            lines += ["", f"### {each.handle} {figure.name}", "", *_section(each, figure, folder)]
    return "\n".join([*lines, "", "## What they take", "", *_costs(folder)]) + "\n"


def _costs(folder: Path) -> Iterator[str]:
    """A table of all figures: the sizes that each was drawn at, and the seconds that it took."""
    yield from ("| figure | sizes | seconds |", "|---|---|---:|")
    total: dict[str, float] = {}
    for each in papers().values():
        for name in each.figures:
            record = _record(folder, each.handle, name)
            if not record:
                yield f"| {each.handle} {name} | not drawn yet | |"
                continue
            sizes = _sizes(each.figures[name], record)
            seconds = float(str(record["seconds"]))
            total[sizes] = total.get(sizes, 0.0) + seconds
            yield f"| {each.handle} {name} | {sizes} | {seconds:.1f} |"
    for sizes, seconds in total.items():
        yield f"| all of them | {sizes} | {seconds:.1f} |"
    yield ""
    yield "Runs that figures of a paper share count for the first of them. Seconds are of the clock, where the"
    yield "machine may have done other work."


def _sizes(figure: PaperFigure, record: dict[str, object]) -> str:
    """At which sizes a figure is drawn, in a word or two."""
    marks = ["*quick*"] * bool(record["quick"] and record["left_out"]) + ["*reduced*"] * bool(figure.reduced)
    return ", ".join(marks) or "the paper's, or, where it gives none, those of the caption"


def _section(paper: Paper, figure: PaperFigure, folder: Path) -> Iterator[str]:
    """A figure: caption, picture, command, what was left out, and verdicts."""
    name, record = f"{paper.handle}-{figure.name}", _record(folder, paper.handle, figure.name)
    caption = _plain(figure.caption[:1].upper() + figure.caption[1:])
    yield from (f"{caption}.", "")
    if not record:
        yield "Not drawn yet."
    else:
        quick = " --quick" if record["quick"] else ""
        yield f"[![{caption}]({name}.webp)]({name}.webp)"
        yield from ("", "```console", f"$ overlaps papers run {paper.handle} {figure.name}{quick} --out {name}", "```")
        yield ""
        less = f", *quick*: {_plain(str(record['left_out']))}" if record["left_out"] else ""
        yield f"Drawn in {record['seconds']} s{less}."
        if figure.reduced:
            yield from ("", f"*Reduced*: {_plain(figure.reduced)}.")
    yield ""
    for claim in (paper.claims[name] for name in figure.claims):
        yield f"- **{claim.expected}**, `{claim.name}`: {_plain(claim.statement)}"


def _plain(text: str) -> str:
    """Text as it is in Markdown, but for code between backticks."""
    return "".join(
        part if part.startswith("`") else re.sub(r"([\\*_\[\]<>$~])", r"\\\1", part)
        for part in re.split(r"(`[^`]*`)", text)
    )
