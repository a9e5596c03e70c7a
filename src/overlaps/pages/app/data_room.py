"""The room *my data*: drop a table, choose the column of labels, and read what `overlaps learn` says of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from dash import Dash, Input, Output, State, ctx, dcc, html, no_update

from ...interface import files
from ...interface.errors import InputError
from ...plot import interactive
from ..report import forecasts
from . import controls, table_forecast
from .choice import Choice
from .jobs import Task
from .room import Room, plain
from .table_forecast import ShownForecast, Tabled
from .uploads import LARGEST, SHIPPED, Uploads

GRAPHS = {
    "learning": "Error of fresh rows in one pass against samples; bands: two standard deviations",
    "rates": "Learning rate against samples",
    "eigenvalues": "Spectrum of the inputs, and what it tells of the labels",
}


class Data(Room):
    """A table of the visitor."""

    key: ClassVar[str] = "data"
    path: ClassVar[str] = "/data"
    name: ClassVar[str] = "my data"
    choice: ClassVar[type[Choice]] = Tabled
    kinds: ClassVar[dict[str, str]] = {"png": "PNG", "svg": "SVG", "nc": "netCDF", "toml": "TOML"}

    def body(self, chosen: Tabled) -> list[Any]:
        left = [
            controls.upload("file", "Drop a .csv, .npy or .npz file here, or choose one", LARGEST, "drop"),
            html.Button("take the shipped images of digits", id="shipped"),
            html.P(chosen.file, id="file-name", className="name"),
            html.Div(id="file-refused", className="refused", role="alert"),
            controls.dropdown(
                "target", "column of the labels", [chosen.target] if chosen.target else [], chosen.target
            ),
            controls.options("standardise", "divide columns by their deviations", ("no", "yes"), chosen.standardise),
            html.P("The file stays in this server while it runs. Labels are numbers, or two classes."),
            dcc.Store(id="rows", data={"rows": chosen.rows, "file": chosen.file}),
        ]
        right = [
            html.P(id="verdict", className="verdict"),
            html.Div(
                [
                    *(controls.graph(name, words) for name, words in GRAPHS.items()),
                    html.Div(id="forecast-words"),
                ],
                id="forecast",
                hidden=True,
            ),
        ]
        return controls.room(self.key, "What SGD will do on your rows", left, right, self.kinds)

    def tasks(self, chosen: Tabled) -> dict[str, Task]:
        if not chosen.rows:
            return {}
        if chosen.rows == SHIPPED:
            return {"forecast": Task(table_forecast.learn, (None, chosen))}
        path = self.uploads.path(chosen.rows)
        found = {"columns": Task(table_forecast.columns, (path,))}
        if chosen.target:
            found["forecast"] = Task(table_forecast.learn, (path, chosen))
        return found

    def refused(self, chosen: Tabled) -> str:
        said = super().refused(chosen)
        if not said or chosen.rows in ("", SHIPPED):
            return said
        return said.replace(str(self.uploads.path(chosen.rows)), chosen.file)  # as the visitor calls it

    def words(self, chosen: Tabled, jobs: dict[str, Any]) -> str:
        return super().words(chosen, jobs) if chosen.rows else "Drop a table, or take the shipped one."

    def draw(self, app: Dash) -> None:
        take(app, self.uploads)

        @app.callback(
            output={
                "options": Output("target", "options"), "target": Output("target", "value"),
                "verdict": Output("verdict", "children"), "hidden": Output("forecast", "hidden"),
                "figures": [Output(name, "figure") for name in GRAPHS], "words": Output("forecast-words", "children"),
                "refused": Output("data-refused", "children"), "choice": Output("data-choice", "data"),
                "done": Output("data-poll", "disabled"),
            },
            inputs={
                "rows": Input("rows", "data"), "target": Input("target", "value"),
                "standardise": Input("standardise", "value"), "news": Input("data-news", "data"),
                "dark": Input("dark", "data"),
            },
        )  # fmt: skip
        def show(rows: dict[str, str], target: str | None, standardise: str, news: Any, dark: bool) -> Any:
            """Columns of the file, and its forecast once it is there."""
            nothing = [no_update] * len(GRAPHS)
            shown = {"verdict": "", "hidden": True, "figures": nothing, "words": "", "refused": ""}
            try:
                chosen, known = self.with_column(Tabled(**rows, target=target or "", standardise=standardise))
                found = self.answers(chosen).get("forecast")
            except InputError as error:
                shown["refused"] = str(error)
                return {**shown, "options": [], "target": None, "choice": no_update, "done": True}
            shown["refused"] = self.refused(chosen)
            if found is not None:
                figures = forecast_figures(found, dark)
                shown |= {"verdict": found.verdict, "hidden": False, "figures": figures, "words": told(found)}
            done = news is not None and news["state"] == chosen.to_link() and news["all"]
            options = [{"label": name, "value": name} for name in known]
            return {**shown, "options": options, "target": chosen.target or None, "choice": chosen.to_mapping(),
                    "done": done}  # fmt: skip

    def with_column(self, chosen: Tabled) -> tuple[Tabled, list[str]]:
        """The state with a column that the table has, the last if none is chosen, and all columns as far as known."""
        known = ["odd"] if chosen.rows == SHIPPED else self.answers(chosen).get("columns", [])
        known = known or [chosen.target] * bool(chosen.target)
        return replace(chosen, target=known[-1]) if known and chosen.target not in known else chosen, known

    def file(self, chosen: Tabled, answers: dict[str, Any], kind: str) -> bytes | None:
        found = answers.get("forecast")
        if found is None:
            return None
        return files.dataset_bytes(found.curves) if kind == "nc" else found.pictures[kind]


def told(found: ShownForecast) -> list[Any]:
    """A forecast in tables and sentences, those of the report."""
    tables = [part for table in forecasts.tables_of(found.curves, found.summary) for part in controls.table(table)]
    return [html.P(forecasts.asks(found.summary)), *tables, *(html.P(line) for line in forecasts.HOW)]


def take(app: Dash, uploads: Uploads) -> None:
    """Add the callback that takes a file."""

    @app.callback(
        Output("rows", "data"), Output("file-name", "children"),
        Output("file-refused", "children"),
        Input("file", "contents"), Input("shipped", "n_clicks"), State("file", "filename"), prevent_initial_call=True,
    )  # fmt: skip
    def dropped(contents: str | None, _: int | None, name: str | None) -> Any:
        """A file that was dropped, or the shipped one."""
        if ctx.triggered_id == "shipped":
            return {"rows": SHIPPED, "file": "digits"}, "images of digits, odd or even", ""
        if not contents:
            return no_update, no_update, no_update
        name = str(name)[-100:]
        try:
            return {"rows": uploads.keep(contents, name), "file": name}, name, ""
        except InputError as error:
            return no_update, name, str(error)


def forecast_figures(found: ShownForecast, dark: bool) -> list[Any]:
    """The pictures of a forecast, in the order of `GRAPHS`."""
    drawn = interactive.forecast_of_rows(found.curves, found.summary, dark=dark)
    return [plain(drawn[name]) for name in ("learning curve", "schedule", "spectrum")]
