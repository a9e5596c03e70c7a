"""Controls with labels, and the places where a room answers; the same in all rooms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dash import dcc, html

from ..report.document import SENT_NOWHERE, Table

POLL = 500  # milliseconds between two questions whether a job is done
CONFIG: Any = {
    "displaylogo": False,
    **SENT_NOWHERE,
    "toImageButtonOptions": {"format": "png", "scale": 2, "filename": "overlaps"},
}


def aria(**attributes: str) -> Any:
    """Attributes for those who do not see the page: ``aria(label="…")`` is ``aria-label``."""
    return {f"aria-{name}": value for name, value in attributes.items()}


def data(**attributes: str) -> Any:
    """What styles show of a part: ``data(column="…")`` is ``data-column``."""
    return {f"data-{name}": value for name, value in attributes.items()}


def slider(name: str, words: str, least: float, most: float, value: float, step: float | str) -> html.Div:
    """A slider under its label, which also says its value; arrow keys move it."""
    label = html.Label([words, html.Span(f"{value:g}", id=f"{name}-value", className="value")], htmlFor=name)
    control = dcc.Input(id=name, type="range", min=least, max=most, step=step, value=value, className="slider")
    return html.Div([label, control], className="control")


def text(name: str, words: str, value: str, hint: str) -> html.Div:
    """A line of text under its label; taken when it is left or Enter is pressed."""
    control = dcc.Input(id=name, type="text", value=value, placeholder=hint, debounce=True, spellCheck="false")
    return html.Div([html.Label(words, htmlFor=name), control], className="control")


def entry(name: str, words: str) -> html.Div:
    """A number under its label; taken when it is left or Enter is pressed."""
    control = dcc.Input(id=name, type="number", step="any", debounce=True)
    return html.Div([html.Label(words, htmlFor=name), control], className="control")


def options(name: str, words: str, known: Sequence[Any], value: str) -> html.Fieldset:
    """One of a few words."""
    return html.Fieldset(
        [html.Legend(words), dcc.RadioItems(list(known), value, id=name, inline=True)], className="control"
    )


def dropdown(name: str, words: str, known: Sequence[Any], value: str | None) -> html.Div:
    """One of many words."""
    control = dcc.Dropdown(list(known), value, id=name, clearable=False)
    return html.Div([html.Label(words, htmlFor=name), control], className="control")


def upload(name: str, words: str, largest: int, look: str = "") -> dcc.Upload:
    """A button that takes a file, chosen or dropped; the field behind it is hidden, by `style.css`."""
    return dcc.Upload(html.Button(words, className=look), id=name, max_size=largest)


def graph(name: str, words: str, config: Any = CONFIG) -> html.Figure:
    """A picture to hover over, under words that say what it shows."""
    shown = dcc.Graph(id=name, config=config, responsive=True)
    place = html.Div(shown, className="graph", role="img", **aria(label=words))
    return html.Figure([html.Figcaption(words), place])


def table(shown: Table) -> list[Any]:
    """A table of a report under its heading."""
    head = html.Thead(html.Tr([html.Th(words, scope="col") for words in shown.columns]))
    body = html.Tbody(
        [
            html.Tr([html.Td(cell, **data(column=name)) for name, cell in zip(shown.columns, row, strict=True)])
            for row in shown.rows
        ]
    )
    place = html.Div(
        html.Table([head, body], className="numbers stacked" if len(shown.columns) > 2 else "numbers"),
        className="wide",
        tabIndex="0",
    )
    return [html.H2(shown.heading), *([html.P(shown.note)] if shown.note else []), place]


def room(key: str, title: str, controls: list[Any], main: list[Any], kinds: dict[str, str]) -> list[Any]:
    """Controls on the left, what they show on the right, and what can be taken along below."""
    buttons = [html.Button(words, id=f"{key}-get-{kind}") for kind, words in kinds.items()]
    take = [
        html.H2("Take it along"),
        html.P([html.A("Link to this state", id=f"{key}-link", href="#"), ", which restores it."]),
        html.Div(buttons, className="buttons", role="group", **aria(label="downloads")),
        html.Details([html.Summary("Show me the code"), html.Pre(id=f"{key}-code", tabIndex="0")]),
        dcc.Download(id=f"{key}-download"),
    ]
    said = [
        html.Div(id=f"{key}-refused", className="refused", role="alert"),
        html.Div(id=f"{key}-status", className="status", role="status"),
    ]
    hidden = [
        dcc.Interval(id=f"{key}-poll", interval=POLL),
        dcc.Store(id=f"{key}-choice"),
        dcc.Store(id=f"{key}-news"),
    ]
    return [
        html.H1(title),
        html.Div(className="room", children=[
            html.Div(controls, className="controls", role="group", **aria(label="controls")),
            html.Div([*said, *main, *take], className="answers"),
        ]),
        *hidden,
    ]  # fmt: skip
