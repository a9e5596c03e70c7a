"""The room *explore*: drag a slider, theory moves at once; the chain of overlaps and a training follow."""

from __future__ import annotations

from typing import Any, ClassVar

from dash import Dash, Input, Output, State, html, no_update

from ...interface import files
from ...interface.errors import InputError, NumericalError
from ...plot import interactive
from ...plot.palette import theme
from ...trajectory.dataset import Trajectory
from . import controls, student_teacher, warming
from .choice import Choice
from .jobs import Task
from .room import Room, plain
from .student_teacher import NAMED, Explored, knots_of, theory_at_once

NAMES = ("levels", "exponent", "units", "activation", "rate", "schedule", "last", "size", "seed")
LAST = 1000.0  # of the slider; a link may ask for more
PENCIL: Any = {**controls.CONFIG, "modeBarButtonsToAdd": ["drawopenpath"]}
SCHEDULED = "the schedule sets the rate"


class Explore(Room):
    """Spectrum, units, activation, rate or schedule, size."""

    key: ClassVar[str] = "explore"
    path: ClassVar[str] = "/"
    name: ClassVar[str] = "explore"
    choice: ClassVar[type[Choice]] = Explored
    sliders: ClassVar[tuple[str, ...]] = ("levels", "exponent", "units", "rate", "last", "size", "seed")
    names: ClassVar[dict[str, str]] = {
        "theory": "theory (macro)", "chain": "the chain of overlaps (meso)", "training": "a training (micro)"
    }  # fmt: skip
    several: ClassVar[bool] = False
    kinds: ClassVar[dict[str, str]] = {
        "png": "PNG", "svg": "SVG", "toml": "TOML", "theory-nc": "netCDF of theory", "chain-nc": "netCDF of the chain",
        "training-nc": "netCDF of the training",
    }  # fmt: skip

    def body(self, chosen: Explored) -> list[Any]:
        def slider(name: str, words: str, step: float | str, most: float | None = None) -> Any:
            least, limit = Explored.LIMITS[name]
            return controls.slider(name, words, least, most or limit, getattr(chosen, name), step)

        left = [
            slider("rate", "learning rate η", 0.01),
            html.Div(
                [html.Span(SCHEDULED, role="status"), html.Button("constant rate", id="constant")],
                id="scheduled",
                className="control",
                hidden=not chosen.schedule,
            ),
            slider("units", "units, K = M", 1),
            controls.options("activation", "activation", Explored.WORDS["activation"], chosen.activation),
            slider("levels", "spectral levels, L", 1),
            slider("exponent", "exponent β", 0.05),
            slider("size", "inputs, N", 50),
            slider("last", "last time", 10, max(LAST, chosen.last)),
            slider("seed", "seed", 1),
            controls.text("schedule", "schedule, time:rate", chosen.schedule, "0:0.5 10:0.1"),
        ]
        right = [
            controls.graph("error", "Generalisation error against time"),
            controls.graph("overlap", "Overlaps R of students with teachers against time"),
            controls.graph("drawing", "Learning rate against time: draw a schedule with the mouse", PENCIL),
        ]
        title = "Drag a slider: theory moves at once, training follows"
        return controls.room(self.key, title, left, right, self.kinds)

    def tasks(self, chosen: Explored) -> dict[str, Task]:
        found = {}
        if self._theory(chosen) is None:
            found["theory"] = Task(student_teacher.theory, (chosen,))
        try:
            chosen.check_cost()
        except InputError:
            return found
        return {
            **found,
            "chain": Task(student_teacher.chain, (chosen,)),
            "training": Task(student_teacher.training, (chosen,)),
        }

    def words(self, chosen: Explored, jobs: dict[str, Any]) -> str:
        said = super().words(chosen, jobs)
        try:
            chosen.check_cost()
        except InputError as error:
            return f"{said} Theory only. {error}".strip()
        meso = f"{chosen.chains} runs of the chain of overlaps (dashed, band of one deviation)"
        there = {"chain", "training"} <= {name for name, job in jobs.items() if job.answer is not None}
        return said or (f"Theory (line), {meso} and one training (dotted)." if there else "")

    def _theory(self, chosen: Explored) -> Trajectory | None:
        """Theory, if that is quick; before code is compiled it is not."""
        return theory_at_once(chosen) if warming.done.is_set() else None

    def results(self, chosen: Explored) -> dict[str, Trajectory]:
        """What there is of the three scales."""
        there = self.answers(chosen)
        if (at_once := self._theory(chosen)) is not None:
            there["theory"] = at_once
        return {name: there[name] for name in ("theory", "chain", "training") if name in there}

    def draw(self, app: Dash) -> None:
        @app.callback(
            output=[
                Output("error", "figure"), Output("overlap", "figure"), Output("drawing", "figure"),
                Output("explore-refused", "children"), Output("explore-choice", "data"),
                Output("explore-poll", "disabled"),
            ],
            inputs={
                "values": {name: Input(name, "value") for name in NAMES}, "news": Input("explore-news", "data"),
                "dark": Input("dark", "data"),
            },
        )  # fmt: skip
        def move(values: dict[str, Any], news: dict[str, Any] | None, dark: bool) -> Any:
            """Theory at once, and what else there is."""
            try:
                chosen = Explored.from_mapping({name: v for name, v in values.items() if v is not None})
                results = list(self.results(chosen).values())
            except (InputError, NumericalError) as error:
                return no_update, no_update, no_update, str(error), no_update, True
            complete = news is not None and news["state"] == chosen.to_link() and news["all"]
            pictures: list[Any] = [no_update, no_update]
            if results:
                pictures = [errors(results, dark), overlaps(results, dark)]
            return *pictures, drawing(chosen, dark), self.refused(chosen), chosen.to_mapping(), complete

        @app.callback(
            Output("schedule", "value"), Input("drawing", "relayoutData"), State("last", "value"),
            prevent_initial_call=True,
        )  # fmt: skip
        def pencil(change: dict[str, Any] | None, last: Any) -> Any:
            """A path that was drawn becomes the schedule."""
            shapes = (change or {}).get("shapes") or []
            return knots_of(shapes[-1]["path"], float(last)) if shapes and "path" in shapes[-1] else no_update

        @app.callback(Output("rate", "disabled"), Output("scheduled", "hidden"), Input("schedule", "value"))
        def scheduled(schedule: str | None) -> Any:
            """Whether the slider sets the rate, or the schedule does, and says so."""
            return bool(schedule), not schedule

        @app.callback(
            Output("schedule", "value", allow_duplicate=True), Input("constant", "n_clicks"), prevent_initial_call=True
        )
        def constant(clicks: int | None) -> Any:
            """No schedule: the rate is that of the slider."""
            return "" if clicks else no_update

    def file(self, chosen: Explored, answers: dict[str, Any], kind: str) -> bytes | None:
        results = self.results(chosen)
        if kind.endswith("-nc"):
            result = results.get(kind.removesuffix("-nc"))
            return None if result is None else files.dataset_bytes(result.to_dataset())
        return files.picture(still(list(results.values()), chosen), kind) if results else None


def errors(results: list[Trajectory], dark: bool) -> Any:
    """The errors of the scales, laid over each other."""
    return plain(interactive.trajectory(results, "error", dark=dark))


def overlaps(results: list[Trajectory], dark: bool) -> Any:
    """The overlaps R; a legend names the entries once, if they are few: scales have the line styles of the errors."""
    figure = plain(interactive.trajectory(results, "R", dark=dark))
    entries = results[0].data["R"][0, 0].size
    lines = [trace for trace in figure.data if trace.mode == "lines"]
    for number, trace in enumerate(lines):
        trace.showlegend = number < entries <= NAMED
        trace.name = trace.name.rpartition(", ")[0] if number < entries else trace.name
    return figure


def drawing(chosen: Explored, dark: bool) -> Any:
    """The rate against time, to draw over."""
    figure = plain(interactive.blank(dark=dark))
    times, rates = chosen.rates
    colours = theme(dark).colours
    figure.add_scatter(x=times, y=rates, mode="lines", line={"color": colours[0]}, showlegend=False)
    figure.update_layout(
        xaxis={"range": [0, chosen.last], "title": "time"},
        yaxis={"range": [0, 1.5 * max(rates) or 1], "title": "rate"},
        dragmode="drawopenpath", newshape={"line": {"color": colours[1]}}, hovermode="closest",
        uirevision=chosen.to_link(), shapes=[],
    )  # fmt: skip
    return figure


def still(results: list[Trajectory], chosen: Explored) -> Any:
    """Errors, overlaps and rate, as the code of the state draws them with matplotlib."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 11), layout="constrained")
    error, overlap, rate = figure.subplots(3)
    for result in results:
        result.plot("error", error)
        overlap.set_prop_cycle(None)  # entries have the same colours at all scales
        result.plot("R", overlap)
    error.legend()
    if chosen.units**2 <= NAMED:
        entries = [f"R[{i}, {k}]" for i in range(chosen.units) for k in range(chosen.units)]
        overlap.legend(overlap.lines[: len(entries)], entries)
    rate.plot(*chosen.rates)
    rate.set(xlabel="time", ylabel="rate", xlim=(0, chosen.last), ylim=(0, None))
    return figure
