"""The room *outliers*: the spectrum of the Hessian along training, with the edges and outliers that theory predicts."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import xarray as xr
from dash import Dash, Input, Output, no_update

from ...interface import files
from ...interface.errors import InputError
from ...plot import interactive
from ...plot.palette import theme
from . import controls, hessian_course
from .choice import Choice
from .hessian_course import TIMES, Mixed
from .jobs import Task
from .room import Room, plain

NAMES = {
    "classes": "classes",
    "variance": "variance",
    "mixture-rate": "rate",
    "mixture-size": "size",
    "moment": "moment",
}


class Outliers(Room):
    """Classes, variance, rate, size and time."""

    key: ClassVar[str] = "outliers"
    path: ClassVar[str] = "/outliers"
    name: ClassVar[str] = "outliers"
    choice: ClassVar[type[Choice]] = Mixed
    sliders: ClassVar[tuple[str, ...]] = ("classes", "variance", "mixture-rate", "mixture-size")
    kinds: ClassVar[dict[str, str]] = {"png": "PNG", "svg": "SVG", "nc": "netCDF", "toml": "TOML"}

    def body(self, chosen: Mixed) -> list[Any]:
        def slider(name: str, words: str, step: float) -> Any:
            field = NAMES[name]
            return controls.slider(name, words, *Mixed.LIMITS[field], getattr(chosen, field), step)

        left = [
            slider("moment", "time", 1),
            slider("classes", "classes", 1),
            slider("variance", "variance", 0.02),
            slider("mixture-rate", "learning rate η", 0.1),
            slider("mixture-size", "inputs, N", 10),
        ]
        right = [
            controls.graph("spectrum", "Eigenvalues of a block of the Hessian, predicted bulk and outliers"),
            controls.graph("alignment", "Alignment of the weights with the outliers' eigenvectors against time"),
        ]
        return controls.room(self.key, "Outliers of the Hessian along training", left, right, self.kinds)

    def tasks(self, chosen: Mixed) -> dict[str, Task]:
        return {"spectra along a training": Task(hessian_course.along_training, (chosen.at_all_times,))}

    def words(self, chosen: Mixed, jobs: dict[str, Any]) -> str:
        answers = [job.answer for job in jobs.values() if job.answer is not None]
        return moment_words(answers[0], chosen.moment) if answers else super().words(chosen, jobs)

    def draw(self, app: Dash) -> None:
        app.callback(Output("moment-value", "children"), Input("moment", "value"))(time_of)

        @app.callback(
            output=[
                Output("spectrum", "figure"), Output("alignment", "figure"), Output("outliers-refused", "children"),
                Output("outliers-choice", "data"), Output("outliers-poll", "disabled"),
            ],
            inputs={
                "values": {field: Input(name, "value") for name, field in NAMES.items()},
                "news": Input("outliers-news", "data"), "dark": Input("dark", "data"),
            },
        )  # fmt: skip
        def follow(values: dict[str, Any], news: dict[str, Any] | None, dark: bool) -> Any:
            """The spectrum at a time, once the training is there."""
            try:
                chosen = Mixed.from_mapping(values)
            except InputError as error:
                return no_update, no_update, str(error), no_update, True
            found = next(iter(self.answers(chosen).values()), None)
            complete = news is not None and news["state"] == chosen.to_link() and news["all"]
            if found is None:
                return no_update, no_update, self.refused(chosen), chosen.to_mapping(), complete
            return *pictures(found, chosen.moment, dark), "", chosen.to_mapping(), complete

    def file(self, chosen: Mixed, answers: dict[str, Any], kind: str) -> bytes | None:
        found = next(iter(answers.values()), None)
        if found is None:
            return None
        return files.dataset_bytes(found) if kind == "nc" else files.picture(still(found, chosen.moment), kind)


def time_of(moment: Any) -> str:
    """The time at which a moment is, in words."""
    return f"{TIMES[int(moment)]:.3g}" if str(moment).isdigit() and int(moment) < TIMES.size else ""


def at(found: xr.Dataset, moment: int) -> tuple[float, np.ndarray, tuple[float, float], np.ndarray]:
    """Time, eigenvalues, edges of the bulk and outliers."""
    here = found.isel(observed=moment)
    low, high = here["edges"].values.tolist()
    outliers = here["outliers"].values
    return float(here["observed"]), here["eigenvalues"].values, (low, high), outliers[np.isfinite(outliers)]


def moment_words(found: xr.Dataset, moment: int) -> str:
    """A time in words."""
    time, values, (low, high), outliers = at(found, moment)
    above = int((values > high * 1.02).sum())
    told = f"predicted {', '.join(f'{x:.3g}' for x in sorted(outliers, reverse=True)) or 'none'}"
    return f"Time {time:.3g}: bulk from {low:.3g} to {high:.3g}; {above} eigenvalues above it, {told}."


def pictures(found: xr.Dataset, moment: int, dark: bool) -> list[Any]:
    """Histogram with prediction, and alignment along training with a mark at the time."""
    _, values, edges, outliers = at(found, moment)
    all_of_them = [found[name].values.ravel() for name in ("eigenvalues", "edges", "outliers")]
    low, high = float(np.nanmin(np.concatenate(all_of_them))), float(np.nanmax(np.concatenate(all_of_them)))
    while low + 0.75 * (high - low) > 1.05 * max(values.max(), edges[1], *outliers):
        high = low + 0.75 * (high - low)  # the axis stays while time moves, until a quarter of it would be empty
    spectrum = plain(interactive.spectrum(values, edges, outliers, across=(low, high), dark=dark))
    colours = theme(dark).colours
    line = plain(interactive.blank(dark=dark))
    x, y = found["observed"].values, found["alignment"].values
    line.add_scatter(x=x, y=y, mode="lines+markers", line={"color": colours[0]}, showlegend=False)
    line.add_scatter(
        x=[x[moment]], y=[y[moment]], mode="markers", marker={"size": 13, "color": colours[1]}, showlegend=False
    )
    line.update_layout(xaxis_title="time", yaxis_title="alignment", yaxis_range=[0, 1.02], hovermode="closest")
    return [spectrum, line]


def still(found: xr.Dataset, moment: int) -> Any:
    """Spectrum and alignment, as the code of the state draws them with matplotlib."""
    from matplotlib.figure import Figure

    time, values, (low, high), outliers = at(found, moment)
    figure = Figure(figsize=(7, 8), layout="constrained")
    spectrum, alignment = figure.subplots(2)
    spectrum.hist(values, bins=120, log=True, label="eigenvalues")
    spectrum.axvspan(low, high, color="C2", alpha=0.2, label="predicted bulk")
    for i, outlier in enumerate(outliers):
        spectrum.axvline(outlier, color="C1", ls="--", label="predicted outliers" if i == 0 else None)
    spectrum.set(xlabel="eigenvalue", ylabel="eigenvalues in a bin", title=f"time {time:.3g}")
    spectrum.legend()
    observed, aligned = found["observed"].values, found["alignment"].values
    alignment.plot(observed, aligned, "o-")
    alignment.plot(observed[moment], aligned[moment], "o", ms=10)
    alignment.set(xlabel="time", ylabel="alignment", ylim=(0, 1.02))
    return figure
