"""What all rooms have in common: a state that is asked for, watched, linked to, shown as code and downloaded.

A room draws what there is whenever its controls move or there is *news*, that is when a job of its state has been done.
A visitor's jobs begin once the state has been the same for two looks, so that a slider which is dragged starts none.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from dash import ClientsideFunction, Dash, Input, Output, State, ctx, dcc, no_update

from ...interface.errors import InputError, NumericalError
from .choice import Choice
from .jobs import Job, Jobs, Task
from .uploads import Uploads


class Room(ABC):
    """A room of the page; `register` adds its callbacks."""

    key: ClassVar[str]  # what its addresses and the names of its parts begin with
    path: ClassVar[str]
    name: ClassVar[str]
    choice: ClassVar[type[Choice]]
    sliders: ClassVar[tuple[str, ...]] = ()  # names of its sliders, whose values are shown beside them
    names: ClassVar[dict[str, str]] = {}  # of tasks, as those who wait read them
    several: ClassVar[bool] = True  # whether a task is of several parts, each of which says how far it is by itself
    kinds: ClassVar[dict[str, str]]  # of files that can be downloaded, with the words of their buttons

    def __init__(self, jobs: Jobs, uploads: Uploads) -> None:
        self.jobs, self.uploads = jobs, uploads

    @abstractmethod
    def body(self, chosen: Any) -> list[Any]:
        """The room as it looks in a state before anything is computed."""

    @abstractmethod
    def tasks(self, chosen: Any) -> dict[str, Task]:
        """What is computed in processes for a state, by name."""

    @abstractmethod
    def draw(self, app: Dash) -> None:
        """Add the callback that draws."""

    @abstractmethod
    def file(self, chosen: Any, answers: dict[str, Any], kind: str) -> bytes | None:
        """The content of a file to download, or None if it is not there yet."""

    def words(self, chosen: Any, jobs: dict[str, Job]) -> str:
        """Status text while a job runs."""
        if not self.jobs.ready:
            share = f"{self.jobs.prepared} of {len(self.jobs.prepare)} parts"
            if self.jobs.compiles:
                return f"Compiling, once after an installation, a minute or so: {share} are done."
            return f"Starting: {share} are loaded."
        running = [
            f"{name} ({self.progress(job)})"
            if job.progress
            else name
            if job.began
            else f"{name} (waiting for its turn)"
            for name, job in ((self.names.get(name, name), job) for name, job in jobs.items())
            if not job.done
        ]
        return f"Computing {', '.join(running)}." if running else ""

    def progress(self, job: Job) -> str:
        """How far a job is: the time that is left is said only where it is that of the whole."""
        part, _, _ = job.progress.partition(", ")
        return f"now {part}" if self.several else job.progress

    def refused(self, chosen: Any) -> str:
        """Why something has not been computed, if anything."""
        return " ".join(job.words for job in self.jobs.find(self.tasks(chosen)).values() if job.words)

    def answers(self, chosen: Any) -> dict[str, Any]:
        """What has been computed for a state so far, by name."""
        return {name: job.answer for name, job in self.jobs.find(self.tasks(chosen)).items() if job.answer is not None}

    def register(self, app: Dash) -> None:
        """Add all callbacks."""
        self.draw(app)
        self._watch(app)
        self._tell(app)
        app.clientside_callback(
            ClientsideFunction("overlaps", "remembered"),
            Output(f"door-{self.key}", "href"),
            Input(f"{self.key}-link", "href"),
            prevent_initial_call=True,
        )
        self._download(app)
        for name in self.sliders:
            app.clientside_callback(
                ClientsideFunction("overlaps", "shown"),
                Output(f"{name}-value", "children"),
                Input(name, "value"),
            )

    def _watch(self, app: Dash) -> None:
        key = self.key

        @app.callback(
            Output(f"{key}-news", "data"), Output(f"{key}-status", "children"), Input(f"{key}-poll", "n_intervals"),
            State(f"{key}-choice", "data"), State("visitor", "data"), State(f"{key}-news", "data"),
            prevent_initial_call=True,
        )  # fmt: skip
        def watch(_: int, data: dict[str, Any] | None, visitor: str, news: dict[str, Any] | None) -> Any:
            """Ask for what a state needs, and say how far it is."""
            try:
                chosen = self.choice.from_mapping(data or {})
                link, tasks = chosen.to_link(), self.tasks(chosen)
            except (InputError, NumericalError):  # the message is shown where the result would be drawn
                return no_update, ""
            if data is None or news is None or news["state"] != link:
                jobs = self.jobs.find(tasks)
            else:
                jobs = self.jobs.ask(str(visitor)[:64], tasks)
            done = sorted(name for name, job in jobs.items() if job.done)
            latest = {"state": link, "done": done, "all": len(done) == len(tasks)}
            return no_update if latest == news else latest, self.words(chosen, jobs)

    def _tell(self, app: Dash) -> None:
        key = self.key

        @app.callback(
            Output(f"{key}-link", "href"), Output(f"{key}-code", "children"), Input(f"{key}-choice", "data"),
            prevent_initial_call=True,
        )  # fmt: skip
        def tell(data: dict[str, Any] | None) -> Any:
            """The link and the code of a state."""
            if data is None:
                return no_update, no_update
            chosen = self.choice.from_mapping(data)
            return self.path + chosen.to_link(), chosen.code()

    def _download(self, app: Dash) -> None:
        key = self.key

        @app.callback(
            output=[Output(f"{key}-download", "data"), Output(f"{key}-refused", "children", allow_duplicate=True)],
            inputs={"clicks": [Input(f"{key}-get-{kind}", "n_clicks") for kind in self.kinds]},
            state={"data": State(f"{key}-choice", "data")}, prevent_initial_call=True,
        )  # fmt: skip
        def download(clicks: list[int | None], data: dict[str, Any] | None) -> Any:
            """A file of a state."""
            if data is None or not any(clicks):
                return no_update, no_update
            chosen = self.choice.from_mapping(data)
            kind = str(ctx.triggered_id).removeprefix(f"{key}-get-")
            content = chosen.to_toml().encode() if kind == "toml" else self.file(chosen, self.answers(chosen), kind)
            if content is None:
                return no_update, "This is not computed yet."
            part, _, ending = kind.rpartition("-")
            return dcc.send_bytes(content, f"overlaps-{key}{'-' + part if part else ''}.{ending}"), ""


def plain(figure: Any) -> Any:
    """A figure on the page: without a title, which the page has, on its background, as large as there is room."""
    clear = "rgba(0,0,0,0)"
    named = [trace.showlegend for trace in figure.data if trace.showlegend is not False]
    below = 90 if len(named) > 1 or any(named) else 60  # a legend is below the axis
    bar = {"bgcolor": clear, "color": "#818894", "activecolor": figure.layout.font.color}
    return figure.update_layout(
        paper_bgcolor=clear, plot_bgcolor=clear, height=None, autosize=True, uirevision="kept", modebar=bar,
        title_text="", margin_t=40, margin_b=below,
    )  # fmt: skip
