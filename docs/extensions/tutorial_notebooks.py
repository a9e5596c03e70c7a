"""Tutorials, and the ten lines of the landing page, as notebooks to download, made when the site is built.

Text becomes cells of text, examples become cells of code without prompts and outputs; a cell ends where an example
shows something, so that the notebook shows the same. The pages themselves are run by the tests.
"""

from __future__ import annotations

import doctest
import json
import re
from pathlib import Path
from typing import Any

TEN_LINES = re.compile(r"^## Ten lines\n.*?(?=^## )", re.M | re.S)  # of the landing page
BLOCK = re.compile(r"^```(\{plot\}|python)\n(.*?)^```$", re.M | re.S)
OPTION = re.compile(r"^:\w+:.*\n", re.M)
LINK = re.compile(r"\[([^]]+)\]\((?!https?://)[^)]+\)")
DIRECTIVE = re.compile(r"\s*# doctest:.*$", re.M)


def cells(page: str) -> list[tuple[str, str]]:
    """Cells of a page in Markdown, each ``("markdown" | "code", text)``.

    >>> cells("# Title\\n\\n```python\\n>>> x = 1\\n>>> x\\n1\\n>>> y = 2\\n\\n```\\n\\nMore, see [it](it.md).\\n")
    [('markdown', '# Title'), ('code', 'x = 1\\nx'), ('code', 'y = 2'), ('markdown', 'More, see it.')]
    """
    found: list[tuple[str, str]] = []
    at = 0
    for block in BLOCK.finditer(page):
        found.append(("markdown", page[at : block.start()]))
        found += _code(OPTION.sub("", block[2]))
        at = block.end()
    found.append(("markdown", page[at:]))
    told = [(kind, LINK.sub(r"\1", text).strip() if kind == "markdown" else text) for kind, text in found]
    return [cell for cell in told if cell[1]]


def _code(block: str) -> list[tuple[str, str]]:
    if ">>>" not in block:
        return [("code", block.strip())]
    made: list[str] = [""]
    for example in doctest.DocTestParser().get_examples(block):
        made[-1] += DIRECTIVE.sub("", example.source)
        if example.want:
            made.append("")
    return [("code", text.strip()) for text in made]


def notebook(page: str) -> dict[str, Any]:
    """A page as the JSON of a notebook, format 4.5."""
    made = []
    for number, (kind, text) in enumerate(cells(page)):
        code = {"execution_count": None, "outputs": []} if kind == "code" else {}
        made.append({"id": f"cell-{number}", "cell_type": kind, "metadata": {}, "source": text, **code})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": made, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def offer(app: Any, name: str, source: list[str]) -> None:
    """Below the title of a tutorial, and of the ten lines, its notebook."""
    if name.startswith("tutorials/"):
        heading, link = r"^(# .*\n)", linked(f"{Path(name).name}.ipynb", "Download this page as a notebook")
    elif name == "index":
        heading, link = r"^(## Ten lines\n)", linked("ten_lines.ipynb", "Open as a notebook")
    else:
        return
    source[0] = re.sub(
        heading, lambda title: f"{title[1]}\n```{{raw}} html\n{link}\n```\n", source[0], count=1, flags=re.M
    )


def linked(file: str, words: str) -> str:
    return f'<p class="notebook"><a href="{file}" download>{words}</a></p>'


def pages(docs: Path) -> dict[str, str]:
    """What becomes a notebook: its path, without an ending, and its text."""
    found = {f"tutorials/{page.stem}": page.read_text(encoding="utf-8") for page in (docs / "tutorials").glob("*.md")}
    lines = TEN_LINES.search((docs / "index.md").read_text(encoding="utf-8"))
    return {**found, "ten_lines": lines[0]} if lines else found


def write(app: Any, error: Exception | None) -> None:
    if error is None and app.builder.format == "html":
        for name, text in pages(Path(app.srcdir)).items():
            (Path(app.outdir) / f"{name}.ipynb").write_text(json.dumps(notebook(text), indent=1), encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    app.connect("source-read", offer)
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
