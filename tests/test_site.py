"""The documentation: notebooks are what tutorials say, and the page of questions names calls that exist.

What needs a built site, links, pictures and headings, is checked by its build (docs/extensions/page_checks.py).
"""

from __future__ import annotations

import ast
import doctest
import inspect
import io
import re
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from PIL import Image

import overlaps as ov

DOCS = Path(__file__).parents[1] / "docs"
sys.path.insert(0, str(DOCS / "extensions"))
from papers_shown import first_panel  # noqa: E402
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


def test_the_table_of_the_first_prediction_is_that_of_its_verdict() -> None:
    page, names = (DOCS / "tutorials" / "my_first_prediction.md").read_text(encoding="utf-8"), {}
    for example in doctest.DocTestParser().get_examples(page):
        exec("" if "print(" in example.source or "plot" in example.source else example.source, names)
        if "verdict" in names:
            break
    table, made = names["verdict"].table, []
    for name in dict.fromkeys(table["variable"].values.tolist()):
        part = table.isel(point=np.flatnonzero(table["variable"].values == name))
        at = part.isel(point=int(np.argmax(np.abs(part["z"].values))))
        value = {each: float(at[each]) for each in ("time", "deviation", "standard_error", "z", "p_adjusted")}
        made.append(
            f"| {name}{at['entry'].item()} | {value['time']:.3g} | {value['deviation']:+.2g} ± "
            f"{value['standard_error']:.1g} | {value['z']:+.2f} | {value['p_adjusted']:.2g} |"
        )
    assert "\n".join(made) in page


@pytest.mark.parametrize(("columns", "rows"), [(1, 1), (2, 1), (2, 2)])
def test_a_thumbnail_is_the_first_panel(columns: int, rows: int) -> None:
    figure, axes = plt.subplots(rows, columns, figsize=(5.6 * columns, 4.2 * rows), layout="constrained", squeeze=False)
    for i, ax in enumerate(axes.flat):
        ax.set_facecolor((1.0, 0.1 * i, 0.0))
        ax.set(xlabel="x", ylabel="y")
    figure.suptitle("a title of the whole figure, long enough to cross the gap between its columns")
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=120)
    plt.close(figure)
    image = Image.open(buffer).convert("RGB")
    panel = first_panel(image)
    colours = {colour for count, colour in panel.getcolors(10**6) if count > 1000}
    assert (255, 0, 0) in colours and not colours & {(255, 26, 0), (255, 51, 0), (255, 76, 0)}
    if columns > 1:
        assert panel.height < image.height / rows and panel.width < 0.6 * image.width


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
