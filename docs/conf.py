"""Sphinx configuration. `make docs` builds with warnings as errors."""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path

from cycler import cycler

import overlaps
from overlaps.plot.palette import COLOURS

sys.path.insert(0, str(Path(__file__).parent / "extensions"))

project = "overlaps"
author = "The overlaps authors"
copyright = "2026, The overlaps authors"
release = version = overlaps.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "matplotlib.sphinxext.plot_directive",
    "sphinx_copybutton",
    "mathml",
    "page_checks",
    "papers_shown",
    "pictures",
    "tutorial_notebooks",
]
exclude_patterns = ["_build"]
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3

html_theme = "furo"
html_title = f"overlaps {release}"
html_copy_source = False
html_show_sourcelink = False
html_static_path = ["_static"]
html_logo = html_favicon = "_static/logo.svg"
html_css_files = ["site.css"]
copybutton_exclude = ".linenos, .gp, .go"  # prompts and outputs are not copied

default_role = "code"  # docstrings write names in single backticks
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_type_aliases = {"ArrayLike": "ArrayLike", "Array": "Array", "Source": "Source"}
autosummary_generate = False
python_maximum_signature_line_length = 88

# What a `plot` block of a page becomes: its code, as it is written, and below it the figures it drew.
plot_template = """
~~~python
{{ source_code.strip() }}
~~~
{% for image in images %}
~~~{image} {{ build_dir }}/{{ image.basename }}.png
{% for option in options -%}
{{ option }}
{% endfor -%}
~~~
{% endfor %}
"""
plot_include_source = True
plot_formats = [("png", 110)]
plot_html_show_source_link = False
plot_html_show_formats = False
plot_apply_rcparams = True
plot_rcparams = {"axes.prop_cycle": cycler(color=COLOURS)}

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
    """Every public name has a place in api.md, and nothing else has; a module may have a page of its own for its names.

    In api.md the names of a module are written as `schedules.Cosine`, unless they are public by themselves too.
    """
    here, names = Path(__file__).parent, set(overlaps.__all__) - {"__version__"}
    modules = {name: getattr(overlaps, name) for name in names if inspect.ismodule(getattr(overlaps, name))}
    pages = {"api.md": names - set(modules)}
    for name, module in modules.items():
        if (here / f"{name}.md").exists():
            inner = {name for name in modules if name in module.__all__ and getattr(module, name) is modules[name]}
            pages[f"{name}.md"] = set(module.__all__) - inner
        else:
            pages["api.md"] |= {f"{name}.{inner}" for inner in module.__all__ if inner not in names}
    for page, public in pages.items():
        text = (here / page).read_text(encoding="utf-8")
        shown = set(re.findall(r"^\.\. auto(?:class|function|exception):: (?:overlaps\.)?((?:\w+\.)?\w+)$", text, re.M))
        if shown != public:
            raise ValueError(f"docs/{page}: missing {sorted(public - shown)}, unknown {sorted(shown - public)}")


def markdown_plots(app) -> None:
    """Make `plot` a directive of Markdown: the blocks of a page share their names and are run from top to bottom.

    Matplotlib's directive hands its text back to a parser of reStructuredText, which MyST has none of; here the text is
    Markdown, `plot_template`, and parsed as part of the page. An exception in a block is a warning of the build.
    Imports are inside: the tests look into this file for doctests, and need not have Sphinx.
    """
    from docutils import nodes
    from docutils.statemachine import StringList
    from matplotlib.sphinxext.plot_directive import PlotDirective

    class MarkdownPlot(PlotDirective):
        def run(self) -> list[nodes.Node]:
            written: list[str] = []
            self.state_machine.insert_input = lambda lines, source: written.extend(lines)
            first = "_plot_counter" not in self.state_machine.document.attributes
            self.options.setdefault("context", "reset" if first else "close-figs")
            messages = super().run()
            page = nodes.Element()
            self.state.nested_parse(StringList(written), self.content_offset, page)
            return [*messages, *page.children]

    app.add_directive("plot", MarkdownPlot, override=True)


def setup(app) -> None:
    markdown_plots(app)
    app.connect("autodoc-process-docstring", sections_to_definitions)
    app.connect("builder-inited", check_api_is_complete)
