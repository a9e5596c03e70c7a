"""Formulas as MathML, made when the site is built: they need no network, no script and no font of ours.

Docutils has the translation of LaTeX; what it does not know is a warning, and so an error of the build.
"""

from __future__ import annotations

import re
from typing import Any

BARE = re.compile(r"frac\s*[^{\s]|frac\{[^{}]*\}\s*[^{\s]|[_^]\d\d")
ACCENT = re.compile(r"\\(bar|overline|hat|widehat|tilde|widetilde|dot|vec)\s*(\{[^{}]*\}|\\?[a-zA-Z]+?)\s*\}?_")


def translated(tex: str, *, block: bool) -> str:
    r"""A formula of LaTeX as MathML.

    >>> translated(r"\eta^2", block=False).count("<msup>")
    1
    >>> translated(r"\nonsense", block=False)
    Traceback (most recent call last):
    ...
    docutils.utils.math.MathError: Unknown LaTeX command "\nonsense".
    >>> translated(r"\tfrac12", block=False)
    Traceback (most recent call last):
    ...
    docutils.utils.math.MathError: write \frac{1}{2} with braces, and so powers of two digits
    >>> translated(r"\bar m_a", block=False)
    Traceback (most recent call last):
    ...
    docutils.utils.math.MathError: write an index within its accent, \bar{m_a}
    """
    from docutils.utils.math import MathError
    from docutils.utils.math.latex2mathml import tex2mathml

    if BARE.search(tex):  # 12 is one number to docutils
        raise MathError("write \\frac{1}{2} with braces, and so powers of two digits")
    if ACCENT.search(tex):  # docutils would put the index below the letter
        raise MathError("write an index within its accent, \\bar{m_a}")
    return tex2mathml(tex, as_block=block)


def visit(block: bool) -> Any:
    def visited(writer: Any, node: Any) -> None:
        from docutils import nodes
        from docutils.utils.math import MathError
        from sphinx.util import logging

        tex = node.astext().strip()
        try:
            formula = translated(tex, block=block)
        except MathError as error:
            logging.getLogger(__name__).warning("no formula: %s in %s", error, tex, location=node)
            formula = ""
        if block:  # one that is wider than a phone is scrolled, by its keys too
            formula = f'<div class="formula" role="region" aria-label="formula" tabindex="0">{formula}</div>'
        writer.body.append(formula)
        raise nodes.SkipNode

    return visited


def setup(app: Any) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (visit(False), None), (visit(True), None))
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
