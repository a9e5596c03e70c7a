"""The room *papers*: every figure, drawn anew, and every verdict; and the room where a paper's model has sliders."""

from __future__ import annotations

import base64
from typing import Any, ClassVar

from dash import Dash, Input, Output, dcc, html, no_update

from ...interface.errors import InputError
from ...papers import papers
from . import controls, paper_figures
from .choice import Choice
from .hessian_course import Mixed
from .jobs import Task
from .paper_figures import Figured
from .room import Room
from .student_teacher import Explored

SIZES = [{"label": "quick", "value": "quick"}, {"label": "those of the paper", "value": "paper"}]
MODELS = {  # the models of papers that have controls in another room, at parameters of the paper
    "committee": ("/", Explored(units=2, rate=0.5, last=200.0)),
    "scaling": ("/", Explored(levels=10, exponent=0.25, units=2, rate=0.5, last=500.0)),
    "outliers": ("/outliers", Mixed(classes=5, variance=0.1)),
}


class Papers(Room):
    """Figures and verdicts."""

    key: ClassVar[str] = "papers"
    path: ClassVar[str] = "/papers"
    name: ClassVar[str] = "papers"
    choice: ClassVar[type[Choice]] = Figured
    kinds: ClassVar[dict[str, str]] = {"png": "PNG", "svg": "SVG", "nc": "netCDF", "toml": "TOML"}

    def body(self, chosen: Figured) -> list[Any]:
        known = [{"label": each.handle, "value": each.handle} for each in papers().values()]
        left = [
            controls.dropdown("paper", "paper", known, chosen.paper),
            controls.dropdown("figure", "figure", figures_of(chosen.paper), chosen.figure),
            controls.options("sizes", "sizes", SIZES, chosen.sizes),
            html.P(id="model"),
        ]
        right = [html.Div(id="about"), html.Div(id="picture"), html.Div(id="verdicts")]
        return controls.room(self.key, "Papers, figure by figure and claim by claim", left, right, self.kinds)

    def tasks(self, chosen: Figured) -> dict[str, Task]:
        return {"the figure": Task(paper_figures.draw, (chosen,))}

    def draw(self, app: Dash) -> None:
        @app.callback(
            Output("figure", "options"), Output("figure", "value"), Output("picture", "children"),
            Output("model", "children"), Output("papers-refused", "children"), Output("papers-choice", "data"),
            Output("papers-poll", "disabled"),
            Input("paper", "value"), Input("figure", "value"), Input("sizes", "value"), Input("papers-news", "data"),
        )  # fmt: skip
        def show(handle: str, name: str, sizes: str, news: dict[str, Any] | None) -> Any:
            """The figure, once it is drawn."""
            try:
                there = handle in papers() and name in papers()[handle].figures
                chosen = Figured(handle, name if there else "", sizes)
            except InputError as error:
                return no_update, no_update, [], [], str(error), no_update, True
            drawn = next(iter(self.answers(chosen).values()), None)
            complete = news is not None and news["state"] == chosen.to_link() and news["all"]
            shown = [] if drawn is None else picture_of(chosen, drawn.files["svg"])
            told = chosen.to_mapping()
            refused = self.refused(chosen)
            return figures_of(chosen.paper), chosen.figure, shown, model_of(chosen.paper), refused, told, complete

        @app.callback(Output("about", "children"), Output("verdicts", "children"), Input("paper", "value"))
        def verdicts(handle: str) -> Any:
            """A paper and its claims."""
            if handle not in papers():
                return no_update, no_update
            each = papers()[handle]
            return [html.H2(each.title), html.P(each.citation)], verdicts_of(handle)

    def file(self, chosen: Figured, answers: dict[str, Any], kind: str) -> bytes | None:
        drawn = next(iter(answers.values()), None)
        return None if drawn is None else drawn.files[kind]


def figures_of(handle: str) -> Any:
    """Figures to choose from."""
    return [{"label": f.name, "value": f.name} for f in papers()[handle].figures.values()]


def picture_of(chosen: Figured, svg: bytes) -> Any:
    """A figure that was drawn; as an image, in which nothing runs."""
    caption = papers()[chosen.paper].figures[chosen.figure].caption
    source = f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}"
    return html.Figure([html.Img(src=source, className="picture", alt=caption), html.Figcaption(caption)])


def model_of(handle: str) -> Any:
    """Where the model of a paper has controls."""
    if handle not in MODELS:
        return []
    path, chosen = MODELS[handle]
    return ["Its model has sliders: ", dcc.Link("open it", href=path + chosen.to_link()), "."]


def verdicts_of(handle: str) -> Any:
    """A table of claims."""
    each = papers()[handle]
    rows = [html.Tr([html.Td(c.expected), html.Td(c.where), html.Td(c.statement)]) for c in each.claims.values()]
    head = html.Thead(html.Tr([html.Th(words, scope="col") for words in ("verdict", "where", "claim")]))
    table = html.Div(html.Table([head, html.Tbody(rows)]), className="wide", tabIndex="0")
    return [html.H2("Verdicts on what the paper says"), table]
