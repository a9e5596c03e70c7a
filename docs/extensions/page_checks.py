"""What every page of the site must have, checked once it is built: a failure is an error of the build.

Links and pictures within the site lead somewhere, nothing is fetched from elsewhere, pictures are told in words, a page
has one title, and headings go down by one level at a time, so that those who hear a page or use its keys find a way.
"""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """Links, anchors, pictures and headings of a page.

    >>> page = Page("<h1 id='top'>A</h1><h3>B</h3><a href='b.html#c'>b</a><img src='x.png'>")
    >>> sorted(page.anchors), page.links, list(page.complaints())
    (['top'], ['b.html#c', 'x.png'], ['a heading h3 after h1', 'no words for the picture x.png'])
    >>> list(Page("<h1>A</h1><script src='https://else.where/x.js'></script>").complaints())
    ['https://else.where/x.js is fetched from elsewhere']
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.pictures: list[tuple[str, str | None]] = []
        self.headings: list[int] = []
        self.elsewhere: list[str] = []  # what a browser would fetch from a network
        self.linked = 0  # within how many links the parser is
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if name := found.get("id"):
            self.anchors.add(name)
        if tag == "a" and found.get("href"):
            self.links.append(str(found["href"]))
        source = str(found.get("href" if tag == "link" else "src") or "")
        if tag in ("script", "link", "img", "iframe") and urlsplit(source).netloc:
            self.elsewhere.append(source)
        self.linked += tag == "a"
        if tag == "img":
            self.links.append(str(found.get("src")))
            # in a link that has words of its own, a picture may have none
            words = found.get("alt") or ("beside it" if self.linked and "alt" in found else None)
            self.pictures.append((str(found.get("src")), words))
        if len(tag) == 2 and tag[0] == "h" and tag[1].isdigit():
            self.headings.append(int(tag[1]))

    def handle_endtag(self, tag: str) -> None:
        self.linked -= tag == "a"

    def complaints(self) -> Iterator[str]:
        """What is wrong with the page by itself."""
        if self.headings.count(1) != 1:
            yield f"{self.headings.count(1)} titles (h1)"
        for before, after in zip(self.headings, self.headings[1:], strict=False):
            if after > before + 1:
                yield f"a heading h{after} after h{before}"
        yield from (f"{source} is fetched from elsewhere" for source in self.elsewhere)
        for source, words in self.pictures:
            if not words:
                yield f"no words for the picture {source}"


def complaints(folder: Path) -> Iterator[str]:
    """What is wrong with the pages of a folder."""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(folder.rglob("*.html"))}
    for path, page in pages.items():
        name = path.relative_to(folder).as_posix()
        if path.name in ("search.html", "genindex.html", "py-modindex.html"):
            continue
        yield from (f"{name}: {words}" for words in page.complaints())
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                yield f"{name}: {link} leads nowhere"
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                yield f"{name}: {link} has no such place"


def check(app: Any, error: Exception | None) -> None:
    if error is None and app.builder.name == "html":
        from sphinx.errors import SphinxError

        if found := list(complaints(Path(app.outdir))):
            raise SphinxError("pages: " + "; ".join(found[:20]) + (" …" if len(found) > 20 else ""))


def setup(app: Any) -> dict[str, bool]:
    app.connect("build-finished", check, priority=900)  # once all files are there
    return {"parallel_read_safe": True, "parallel_write_safe": True}
