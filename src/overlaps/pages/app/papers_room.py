"""The room *papers*: every figure, drawn anew, and every verdict; and the room where a paper's model has sliders."""

from __future__ import annotations

from typing import Any, ClassVar

from dash import Dash, Input, Output, State, dcc, html, no_update

from ...interface.errors import InputError
from ...papers import papers
from ...papers.record import measured, recorded
from .. import formulas
from . import controls, paper_figures
from .choice import Choice
from .jobs import Task
from .paper_figures import Figured
from .paper_models import model
from .room import Room

SIZES = [{"label": "quick", "value": "quick"}, {"label": "those of the paper", "value": "paper"}]
NAMES = {
    "rate": "learning rate η",
    "units": "hidden units, K = M",
    "levels": "spectral levels, L",
    "exponent": "exponent of the spectrum, β",
    "noise": "inverse of the variance, λ",
    "bound": "bound of the means, α",
    "momentum": "forgetting factor s",
    "step": "exponent of the step, ln η/ln n",
    "coupling": "product of the means, ν(0, 1)",
}
PICTURE = "/figure.svg"  # address of a figure in full size


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
            *(
                html.Div(controls.entry(f"figure-{name}", words), id=f"{name}-entry", hidden=True)
                for name, words in NAMES.items()
            ),
            controls.options("sizes", "sizes", SIZES, chosen.sizes),
            html.P(id="model"),
            dcc.Store(id="linked", data=chosen.to_mapping()),
        ]
        right = [html.Div(id="about"), html.Div(id="picture"), html.Div(id="verdicts")]
        return controls.room(self.key, "Papers, figure by figure and claim by claim", left, right, self.kinds)

    def tasks(self, chosen: Figured) -> dict[str, Task]:
        sizes = "at quick sizes" if chosen.sizes == "quick" else "at the sizes of the paper"
        return {f"{chosen.figure} of {chosen.paper} {sizes}": Task(paper_figures.draw, (chosen,))}

    def draw(self, app: Dash) -> None:
        @app.callback(
            output={
                "figures": Output("figure", "options"), "figure": Output("figure", "value"),
                "entries": {name: entry(name) for name in NAMES}, "picture": Output("picture", "children"),
                "model": Output("model", "children"), "refused": Output("papers-refused", "children"),
                "choice": Output("papers-choice", "data"), "done": Output("papers-poll", "disabled"),
            },
            inputs={
                "handle": Input("paper", "value"), "name": Input("figure", "value"), "sizes": Input("sizes", "value"),
                "numbers": {name: Input(f"figure-{name}", "value") for name in NAMES},
                "news": Input("papers-news", "data"),
            },
            state={"before": State("papers-choice", "data"), "linked": State("linked", "data")},
        )  # fmt: skip
        def show(
            handle: str, name: str, sizes: str, numbers: dict[str, Any], news: dict[str, Any] | None,
            before: dict[str, Any] | None, linked: dict[str, Any],
        ) -> Any:  # fmt: skip
            """The figure, once it is drawn; another figure begins with the parameters of its paper."""
            nothing = {name: [no_update] * 4 for name in NAMES}
            try:
                there = handle in papers() and name in papers()[handle].figures
                chosen = Figured(handle, name if there else "", sizes)
                if before is None:
                    chosen = Figured.from_mapping({**linked, "sizes": sizes})
                elif (chosen.paper, chosen.figure) == (before["paper"], before["figure"]):
                    chosen = Figured.of(chosen.paper, chosen.figure, sizes, numbers)
            except InputError as error:
                return {"figures": no_update, "figure": no_update, "entries": nothing, "picture": [], "model": [],
                        "refused": str(error), "choice": no_update, "done": True}  # fmt: skip
            drawn = next(iter(self.answers(chosen).values()), None)
            complete = news is not None and news["state"] == chosen.to_link() and news["all"]
            return {
                "figures": figures_of(chosen.paper), "figure": chosen.figure,
                "entries": {name: entry_of(chosen, name) for name in NAMES},
                "picture": [] if drawn is None else picture_of(chosen), "model": model_of(chosen),
                "refused": self.refused(chosen), "choice": chosen.to_mapping(), "done": complete,
            }  # fmt: skip

        @app.callback(Output("about", "children"), Output("verdicts", "children"), Input("paper", "value"))
        def verdicts(handle: str) -> Any:
            """A paper and its claims."""
            if handle not in papers():
                return no_update, no_update
            each = papers()[handle]
            return [html.H2(each.title), html.P(each.citation)], verdicts_of(handle)

        @app.server.route(PICTURE)
        def full() -> Any:
            """A figure that was drawn, in full size."""
            from flask import Response, abort, request

            try:
                answers = self.answers(Figured.from_link(request.query_string.decode("ascii", "replace")))
            except InputError:
                answers = {}
            content = self.file(Figured(), answers, "svg")
            return abort(404) if content is None else Response(content, mimetype="image/svg+xml")

    def file(self, chosen: Figured, answers: dict[str, Any], kind: str) -> bytes | None:
        drawn = next(iter(answers.values()), None)
        return None if drawn is None else drawn.files[kind]


def entry(name: str) -> list[Output]:
    """What changes of the control of a parameter with the figure."""
    return [
        Output(f"{name}-entry", "hidden"),
        *(Output(f"figure-{name}", part) for part in ("value", "min", "max")),
    ]


def entry_of(chosen: Figured, name: str) -> list[Any]:
    """Whether the control of a parameter is hidden, its value, least and most."""
    if name not in chosen.parameters:
        return [True, None, None, None]
    return [False, chosen.parameters[name], *chosen.shown.limits[name]]


def figures_of(handle: str) -> Any:
    """Figures to choose from."""
    return [{"label": f.name, "value": f.name} for f in papers()[handle].figures.values()]


def picture_of(chosen: Figured) -> Any:
    """A figure that was drawn; as an image, in which nothing runs, and a link to it in full size."""
    caption, source = chosen.shown.caption, PICTURE + chosen.to_link()
    other = ", ".join(f"{NAMES[name]} = {value:g}" for name, value in chosen.other.items())
    words = f"{caption[:1].upper()}{caption[1:]}.{f' Not as in the paper: {other}.' if other else ''}"
    image = html.A(html.Img(src=source, className="picture", alt=words), href=source, target="_blank")
    larger = html.A("Enlarge", href=source, target="_blank")
    hint = html.Span("Move it sideways to see all of it. ", className="narrow")
    place = html.Div(image, className="wide", role="region", tabIndex="0", **controls.aria(label=f"picture: {caption}"))
    return html.Figure([place, html.Figcaption([hint, words, " ", larger])])


def model_of(chosen: Figured) -> Any:
    """Where the model of a figure has controls."""
    found = model(chosen)
    if found is None:
        return []
    path, state = found
    return ["Its model has sliders: ", dcc.Link("open it", href=path + state.to_link()), "."]


def verdicts_of(handle: str) -> Any:
    """A table of claims: what was found of them, by which number."""
    rows, known, dates = [], recorded(), set()
    for claim in papers()[handle].claims.values():
        row = known[handle, claim.name]
        dates.add(row["date"])
        cells = [row["found"], measured(row), claim.where, formulas.written(claim.statement)]
        rows.append(html.Tr([html.Td(cells[0]), html.Td(cells[1], title=row["note"]), *map(html.Td, cells[2:])]))
    heads = ("verdict", "number ± error", "where", "claim")
    head = html.Thead(html.Tr([html.Th(words, scope="col") for words in heads]))
    table = html.Div(html.Table([head, html.Tbody(rows)], className="claims"), className="wide", tabIndex="0")
    told = [f"Measured in full on {' and '.join(sorted(dates))}, by ", html.Code(f"overlaps verify {handle}"), "."]
    return [html.H2("Verdicts on what the paper says"), html.P(told), table]
