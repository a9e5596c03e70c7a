"""The documentation: notebooks are what tutorials say, and the page of questions names calls that exist.

What needs a built site, links, pictures and headings, is checked by its build (docs/extensions/page_checks.py).
"""

from __future__ import annotations

import ast
import doctest
import inspect
import re
import sys
from pathlib import Path

import pytest

import overlaps as ov

DOCS = Path(__file__).parents[1] / "docs"
sys.path.insert(0, str(DOCS / "extensions"))
from tutorial_notebooks import cells, notebook  # noqa: E402

QUESTIONS = (DOCS / "which_function.md").read_text(encoding="utf-8")
CALLS = [call for call in re.findall(r"`(ov\.[^`]+)`", QUESTIONS) if call != "import overlaps as ov"]


@pytest.mark.parametrize("page", sorted((DOCS / "tutorials").glob("*.md")), ids=lambda page: page.stem)
def test_a_notebook_has_the_examples_of_its_tutorial(page: Path) -> None:
    """The tests run the examples of the page; the cells are these, one after the other."""
    text = page.read_text(encoding="utf-8")
    examples = [e for e in doctest.DocTestParser().get_examples(text) if e.source.strip()]
    code = "\n".join(source for kind, source in cells(text) if kind == "code")
    assert ast.dump(ast.parse(code)) == ast.dump(ast.parse("".join(example.source for example in examples)))
    made = notebook(text)
    assert len({cell["id"] for cell in made["cells"]}) == len(made["cells"])
    assert not any("](" in cell["source"].replace("](http", "") for cell in made["cells"] if "outputs" not in cell)


def found(node: ast.expr) -> object:
    """What a dotted name stands for."""
    if isinstance(node, ast.Name):
        return {"ov": ov}[node.id]
    assert isinstance(node, ast.Attribute)
    return getattr(found(node.value), node.attr)


@pytest.mark.parametrize("call", CALLS)
def test_calls_that_answer_questions_can_be_made(call: str) -> None:
    """They name what exists, with arguments that it takes."""
    for node in ast.walk(ast.parse(call, mode="eval")):
        if isinstance(node, ast.Call):
            keywords = {word.arg: None for word in node.keywords if word.arg}
            inspect.signature(found(node.func)).bind(*node.args, **keywords)  # type: ignore[arg-type]
        elif isinstance(node, ast.Attribute):
            assert found(node) is not None


def test_every_function_answers_a_question() -> None:
    functions = {name for name in ov.__all__ if inspect.isfunction(getattr(ov, name))}
    assert functions <= set(re.findall(r"ov\.(\w+)", QUESTIONS))
