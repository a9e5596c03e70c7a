"""What the site shows of the papers, from the ledger itself: thumbnails of figures.

``{thumbnails} scaling`` shows all figures of a paper, or
those that its lines name; each leads to its place on the page of all figures. Every figure must be under a topic.
A thumbnail is the first panel of a figure, for the whole could not be read at its size: the frame of its first axes
with ticks, labels and title.
"""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

WIDTH = 460  # pixels of a thumbnail, twice what is shown
PANEL = 672, 504  # pixels of a panel of a figure (`overlaps.papers.panels`)
WHITE = 250  # least brightness of a line of pixels between panels
INKS = 150, 200  # brightness below which a pixel is part of a frame: what compression has left of it
TITLE, LABELS = 29, 38  # pixels from a frame within which its own title and labels begin
LINE = 36  # pixels of a line of text at most
PAGE = "gallery/index"
TOPICS = "gallery"  # the page whose topics must have every figure


def directives() -> dict[str, Any]:
    from docutils import nodes
    from docutils.parsers.rst import Directive

    from overlaps.papers import papers

    class Thumbnails(Directive):
        optional_arguments = 1
        has_content = True

        def run(self) -> list[Any]:
            env = self.state.document.settings.env
            known = {f"{p.handle}-{f.name}": (p, f) for p in papers().values() for f in p.figures.values()}
            names = [name for line in self.content for name in line.split()]
            if self.arguments:
                names = [name for name in known if name.startswith(f"{self.arguments[0]}-")]
            else:
                env.overlaps_topics = getattr(env, "overlaps_topics", set()) | set(names)
            if unknown := [name for name in names if name not in known]:
                raise self.error(f"no such figures: {unknown}")
            if self.arguments is None and env.docname != TOPICS:
                raise self.error(f"topics are on the page {TOPICS}")
            shown = "\n".join(self.card(env, name, known[name][1].caption) for name in names)
            return [nodes.raw("", f'<div class="thumbnails">\n{shown}\n</div>', format="html")]

        def card(self, env: Any, name: str, caption: str) -> str:
            from PIL import Image

            handle, figure = name.split("-", 1)
            picture = Path(env.srcdir) / "gallery" / f"{name}.webp"
            place = re.sub(r"[^a-z0-9]+", "-", f"{handle} {figure}".lower())
            words = html.escape(caption[:1].upper() + caption[1:])
            if picture.exists():
                env.note_dependency(str(picture))
                with Image.open(picture) as image:
                    width, height = first_panel(image).size
                size = f'width="{WIDTH // 2}" height="{round(WIDTH / 2 * height / width)}"'
                image = f'<img src="_static/thumbnails/{name}.webp" alt="" loading="lazy" {size}>'
            else:
                image = "<em>not drawn yet</em>"
            return (
                f'<a href="{PAGE}.html#{place}" title="{words}">{image}'
                f"<strong>{html.escape(named(handle, figure))}</strong><span>{words}</span></a>"
            )

    return {"thumbnails": Thumbnails}


def named(handle: str, figure: str) -> str:
    """A figure in words.

    >>> named("universality", "figS1"), named("alignment", "table1"), named("committee", "overlaps")
    ('universality, figure S1', 'alignment, table 1', 'committee, overlaps')
    """
    kind = re.match(r"(fig|table)(.+)", figure)
    return f"{handle}, {({'fig': 'figure'}.get(kind[1], kind[1]) + ' ' + kind[2]) if kind else figure}"


def first_panel(image: Any) -> Any:
    """The upper left panel of a figure, without the title of the whole, which crosses the gap between two columns."""
    import numpy as np

    grey = np.asarray(image.convert("L"))
    dark = grey < WHITE
    height, width = dark.shape
    columns, rows = max(round(width / PANEL[0]), 1), max(round(height / PANEL[1]), 1)
    found = next((box for ink in INKS if (box := frame(grey < ink))), None)
    right, top, bottom = width, 0, height
    if columns > 1:
        right = middle_of_gap(dark[height // 6 : height // rows - 40].any(0), width // columns, 60)
        crossed = np.flatnonzero(dark[: min(120, height // 6), right - 3 : right + 3].any(1))
        top = int(crossed[-1]) + 4 if crossed.size else 0
    if rows > 1:
        bottom = middle_of_gap(dark[:, :right].any(1), top + (height - top) // rows, 80)
    if found is not None:
        x, y, end, below = found
        top = max(top, y - reach(dark[:y, x:end].any(1)[::-1], TITLE))
        bottom = below + reach(dark[below:, x:end].any(1), LABELS)
        right = max(end + 3, end + reach(dark[y:bottom, end : width // columns + 4].any(0), LABELS))
    return image.crop((0, top, right, bottom))


def frame(ink: Any) -> tuple[int, int, int, int] | None:
    """Left, upper, right and lower end of the first frame within the first panel, if it has one that is seen whole."""
    import numpy as np

    least, most = PANEL[0] // 2, PANEL[0]
    open_below = np.vstack([ink, np.zeros_like(ink[:1])])
    for y in np.flatnonzero(ink[:, :most].sum(1) > least):
        turns = np.flatnonzero(np.diff(np.concatenate([[0], ink[y].astype(np.int8), [0]])))
        for left, right in zip(turns[::2], turns[1::2], strict=True):
            height = int(np.argmin(open_below[y:, left : left + 8], 0).max())  # a tick may stand out to the left
            if least < right - left < most and left < least and height > PANEL[1] // 2:
                return int(left), int(y), int(right), int(y) + height
    return None


def reach(filled: Any, within: int) -> int:
    """How far what belongs to a frame goes: lines of text that begin within so many pixels of it, and some white."""
    import numpy as np

    turns = np.flatnonzero(np.diff(np.concatenate([[0], filled.astype(np.int8), [0]])))
    ends = [
        int(end) for begin, end in zip(turns[::2], turns[1::2], strict=True) if begin < within and end - begin < LINE
    ]
    return min(max(ends, default=0) + 3, filled.size)


def middle_of_gap(filled: Any, expected: int, reach: int) -> int:
    """The middle of the widest gap of lines that are not filled, within so many of where it is expected."""
    import numpy as np

    edges = np.flatnonzero(np.diff(np.concatenate([[1], filled[expected - reach : expected + reach], [1]])))
    begins, ends = edges[::2], edges[1::2]
    if not begins.size:
        return expected
    widest = int(np.argmax(ends - begins))
    return int(expected - reach + (begins[widest] + ends[widest]) // 2)


def write_thumbnails(app: Any, error: Exception | None) -> None:
    """Small pictures, made anew where a picture is younger."""
    if error is not None or app.builder.format != "html":
        return
    from PIL import Image

    folder = Path(app.outdir) / "_static" / "thumbnails"
    folder.mkdir(parents=True, exist_ok=True)
    for picture in sorted((Path(app.srcdir) / "gallery").glob("*.webp")):
        small = folder / picture.name
        if not small.exists() or small.stat().st_mtime < picture.stat().st_mtime:
            with Image.open(picture) as image:
                panel = first_panel(image)
                panel.thumbnail((WIDTH, 4 * WIDTH))
                panel.save(small, quality=75, method=4)


def check_topics(app: Any, env: Any) -> None:
    """Every figure is under a topic."""
    from sphinx.util import logging

    from overlaps.papers import papers

    there = getattr(env, "overlaps_topics", set())
    names = [f"{p.handle}-{name}" for p in papers().values() for name in p.figures]
    if missing := [name for name in names if name not in there]:
        logging.getLogger(__name__).warning("figures under no topic: %s", ", ".join(missing), location=TOPICS)


def setup(app: Any) -> dict[str, bool]:
    for name, directive in directives().items():
        app.add_directive(name, directive)
    app.connect("env-check-consistency", check_topics)
    app.connect("build-finished", write_thumbnails)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
