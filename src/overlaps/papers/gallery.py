"""Drawing figures: one into a folder of its own, or all of them into a gallery.

A gallery keeps for each figure a picture and a record of what it was drawn with. A figure is drawn again only if the
code that it may depend on has changed since (its own paper's and the library's; comments and docstrings do not count),
so that an interrupted gallery goes on where it was, and a finished one costs nothing.
"""

from __future__ import annotations

import ast
import hashlib
import json
import time as clock
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from ..checks import new_folder
from ..errors import InputError, NumericalError, unknown
from .index import paper, papers
from .ledger import PaperFigure

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure as Picture

HOME = Path(__file__).parent


def draw_figure(
    handle: str, figure: str, out: Path, *, quick: bool = False, data: Path | None = None
) -> tuple[Path, Path]:
    """Draw a figure into the new folder `out`; returns the paths of picture and data.

    `data` is a user's file for the figures that draw one.
    """
    import matplotlib.pyplot as plt

    chosen = paper(handle).figures
    if figure not in chosen:
        raise unknown(f"figure of {handle}", figure, chosen)
    made = chosen[figure]
    if data is not None and not made.takes_data:
        able = ", ".join(f.name for f in chosen.values() if f.takes_data) or "none"
        raise InputError(f"data: {figure} of {handle} draws no data of yours (those that do: {able})")
    if out.exists():
        new_folder("out", out)  # refused before computing, and made only once there is something to keep
    picture, values = _drawn(made, quick, data)
    new_folder("out", out)
    paths = out / f"{handle}-{figure}.png", out / f"{handle}-{figure}.nc"
    picture.savefig(paths[0], dpi=150)
    plt.close(picture)
    values.to_netcdf(paths[1], engine="h5netcdf")
    return paths


def _drawn(figure: PaperFigure, quick: bool, data: Path | None = None) -> tuple[Picture, xr.Dataset]:
    return figure.make(quick, data) if figure.takes_data else figure.make(quick)


@dataclass(frozen=True)
class Gallery:
    """What a gallery holds: how many figures were drawn now and kept from before, and the trouble with the others."""

    page: Path
    drawn: int
    kept: int
    trouble: dict[str, str]

    def __repr__(self) -> str:
        lines = [f"gallery: {self.drawn} drawn, {self.kept} kept, {len(self.trouble)} not drawn: {self.page}"]
        return "\n".join([*lines, *(f"  {name}: {words}" for name, words in self.trouble.items())])


def draw_gallery(folder: Path, *, quick: bool = False) -> Gallery:
    """Draw all figures of all papers into `folder`, but for those it holds already, and write its page, index.md."""
    import matplotlib.pyplot as plt
    from tqdm.auto import tqdm

    folder.mkdir(parents=True, exist_ok=True)
    wanted = [(handle, figure) for handle, each in papers().items() for figure in each.figures.values()]
    drawn, trouble = 0, {}
    with tqdm(wanted, desc="gallery", unit="figure", disable=None) as bar:
        for handle, figure in bar:
            name, code = f"{handle}-{figure.name}", fingerprint(handle)
            picture, record = folder / f"{name}.webp", folder / f"{name}.json"
            if picture.exists() and _record(record).items() >= {"code": code, "quick": quick}.items():
                continue
            bar.set_postfix_str(name)
            began = clock.perf_counter()
            try:
                made = _drawn(figure, quick)[0]
            except (InputError, NumericalError, MemoryError) as error:
                trouble[name] = " ".join(str(error).split())
                continue
            made.savefig(picture, dpi=90, pil_kwargs={"quality": 80})
            plt.close(made)
            seconds = round(clock.perf_counter() - began, 1)
            record.write_text(json.dumps({"code": code, "quick": quick, "seconds": seconds}) + "\n")
            drawn += 1
    path = folder / "index.md"
    path.write_text(page(folder), encoding="utf-8")
    return Gallery(path, drawn, len(wanted) - drawn - len(trouble), trouble)


def _record(path: Path) -> dict[str, object]:
    try:
        return dict(json.loads(path.read_text()))
    except (OSError, ValueError):
        return {}


def page(folder: Path) -> str:
    """The page of a gallery in Markdown: every figure with its command and the verdicts on what it shows."""
    lines = [
        "# Gallery",
        "",
        "Every figure of the papers as the software draws it, the command that draws it, and the verdicts on the",
        "claims that it shows; [Papers](../papers.md) has the claims in words. `make gallery` draws this page.",
    ]
    for each in papers().values():
        lines += ["", f"## {each.title} (`{each.handle}`)", "", f"{each.citation}."]
        for figure in each.figures.values():
            name = f"{each.handle}-{figure.name}"
            record = _record(folder / f"{name}.json")
            flag = " --quick" if record.get("quick") else ""
            lines += ["", f"### {figure.name}", "", f"{figure.caption}."]
            if not record:
                lines += ["", "Not drawn yet."]
                continue
            lines += ["", f"![{name}]({name}.webp)", ""]
            lines += ["```console", f"$ overlaps papers run {each.handle} {figure.name}{flag} --out {name}", "```", ""]
            lines += [f"- `{claim}`: {each.claims[claim].expected}" for claim in figure.claims]
            lines += ["", f"Drawn in {record['seconds']} s."]
    return "\n".join(lines) + "\n"


@cache
def fingerprint(handle: str) -> str:
    """Digest of the code that the figures of a paper may depend on: all but other papers, comments and docstrings."""
    digest = hashlib.sha256()
    for path in sorted(HOME.parent.rglob("*.py")):
        inside = path.relative_to(HOME).parts if path.is_relative_to(HOME) else ()
        if len(inside) > 1 and inside[0] != handle:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node) is not None:
                node.body = node.body[1:]
        digest.update(f"{path.relative_to(HOME.parent)}\n{ast.dump(tree)}\n".encode())
    return digest.hexdigest()[:16]
