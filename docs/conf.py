"""Sphinx configuration. `make docs` builds with warnings as errors."""

from __future__ import annotations

import re
from pathlib import Path

import overlaps

project = "overlaps"
author = "The overlaps authors"
copyright = "2026, The overlaps authors"
release = version = overlaps.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.mathjax"]
exclude_patterns = ["_build"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

html_theme = "furo"
html_title = f"overlaps {release}"
html_copy_source = False

default_role = "code"  # docstrings write names in single backticks
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_type_aliases = {"ArrayLike": "ArrayLike", "Array": "Array", "Source": "Source"}
autosummary_generate = False
python_maximum_signature_line_length = 88

SECTION = re.compile(r"^(Parameters|Attributes|Returns)$")
ITEM = re.compile(r"^([\w, ]+): (.*)$")
BARS = re.compile(r"\|([^|]+)\|")  # |x| is a substitution to docutils, a length to us


def sections_to_definitions(app, what, name, obj, options, lines: list[str]) -> None:
    """Rewrite "Parameters / ----------" sections, one `name: meaning` per item, as definition lists."""
    out: list[str] = []
    inside = False
    for i, line in enumerate(BARS.sub(r"\\|\1\\|", line) for line in lines):
        if SECTION.match(line) and i + 1 < len(lines) and set(lines[i + 1]) == {"-"}:
            inside = line != "Returns"
            out += [f"**{line}**", ""]
        elif line and set(line) == {"-"}:
            continue
        elif inside and (item := ITEM.match(line)):
            out += [f"`{item[1]}`", f"    {item[2]}"]
        elif inside and line and not line.startswith(" "):
            inside = False
            out += ["", line]
        else:
            out.append(line)
    lines[:] = out


def check_api_is_complete(app) -> None:
    """Every public name has a place in api.md, those of its modules on their own pages, and nothing else has."""
    modules = {f"{name}.md": getattr(overlaps, name).__all__ for name in overlaps._MODULES}
    pages = {"api.md": overlaps.__all__, **modules}
    for page, names in pages.items():
        text = (Path(__file__).parent / page).read_text()
        shown = set(re.findall(r"^\.\. auto(?:class|function|exception):: (\w+)$", text, re.M))
        public = set(names) - {"__version__", *overlaps._MODULES}
        if shown != public:
            raise ValueError(f"docs/{page}: missing {sorted(public - shown)}, unknown {sorted(shown - public)}")


def setup(app) -> None:
    app.connect("autodoc-process-docstring", sections_to_definitions)
    app.connect("builder-inited", check_api_is_complete)
