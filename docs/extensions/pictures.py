"""Pictures are fetched when they come into view, and their place is kept free until then.

Without their sizes a link into a page of many pictures would end elsewhere once they have come. The picture of the
landing page is fetched at once.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

IMAGE = re.compile(r'<img ([^>]*src="[^"]*_images/([^"]+)"[^>]*?) ?/?>')


@cache
def size(path: Path) -> tuple[int, int]:
    """Width and height of a picture."""
    from PIL import Image

    with Image.open(path) as image:
        return image.size


def framed(body: str, sources: dict[str, Path], *, lazy: bool) -> str:
    """The HTML of a page, with the size of every picture, by its name among `sources`."""

    def one(found: re.Match[str]) -> str:
        source = sources.get(unquote(found[2]))
        if source is None or source.suffix == ".svg":
            return found[0]
        width, height = size(source)
        when = ' loading="lazy"' if lazy else ""
        return f'<img {found[1]} width="{width}" height="{height}"{when} />'

    return IMAGE.sub(one, body)


def frame(app: Any, name: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    if "body" in context and app.builder.format == "html":
        sources = {made: Path(app.srcdir) / source for source, made in app.builder.images.items()}
        context["body"] = framed(context["body"], sources, lazy=name != "index")


def setup(app: Any) -> dict[str, bool]:
    app.connect("html-page-context", frame)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
