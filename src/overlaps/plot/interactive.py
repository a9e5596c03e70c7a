"""The same pictures to hover over, with Plotly: trajectories, comparisons, forecasts, sweeps and spectra.

Figures take values that any result has (datasets, arrays), so that what was loaded from a file is drawn like what was
just computed. All are made on a light or a dark page with the colours of `palette`; scales differ by line style, so
that nothing depends on colour alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from ..interface.errors import MissingExtraError, unknown
from . import grid
from .axis import along
from .curves import LABELS, TrajectoryLike, label
from .log_axes import label_plotly
from .palette import theme, translucent

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

Array = NDArray[np.float64]
DASHES = {"macro": "solid", "meso": "dash", "diffusion": "dashdot", "micro": "dot", "optimise": "dashdot"}
WIDE = 30  # ratio of the last to the first positive time from which the axis is logarithmic
MOST = 400  # points of a line; more are thinned out, evenly along the axis
HEIGHT = 380
BINS = 120  # of a histogram of eigenvalues
LEAST = 0.5  # eigenvalues in a bin, where the axis of their counts begins
UPLOADS = ["sendChartToCloud"]  # buttons of Plotly that would send what is drawn to a server of others
NEAR = 0.09  # of the width of an axis that a label needs


def graph_objects() -> Any:
    """Plotly, or the refusal that says how to get it."""
    try:
        import plotly.graph_objects as go
    except ImportError:
        raise MissingExtraError("interactive pictures need Plotly", "pip install 'overlaps[app]'") from None
    return go


def blank(title: str = "", *, dark: bool = False, height: int = HEIGHT) -> Figure:
    """An empty figure in the style of all others."""
    colours = theme(dark)
    axis = {
        "gridcolor": colours.faint,
        "linecolor": colours.ink,
        "zeroline": False,
        "ticks": "outside",
        "automargin": True,
        "exponentformat": "power",
    }
    return graph_objects().Figure(
        layout={
            "title": {"text": title, "font": {"size": 15}, "x": 0, "xanchor": "left", "xref": "paper"},
            "font": {"family": "system-ui, sans-serif", "size": 13, "color": colours.ink},
            "paper_bgcolor": colours.paper,
            "plot_bgcolor": colours.paper,
            "colorway": list(colours.colours),
            "xaxis": axis,
            "yaxis": dict(axis),
            "height": height,
            "margin": {"l": 60, "r": 20, "t": 50 if title else 20, "b": 90},
            "legend": {"orientation": "h", "yref": "container", "yanchor": "bottom", "y": 0, "x": 0},
            "hovermode": "x unified",
            "hoverdistance": -1,  # the nearest point, however far: times are few
            "hoverlabel": {"bgcolor": colours.paper, "font": {"color": colours.ink}},
            "modebar": {"remove": UPLOADS},  # wherever the figure is shown: in a notebook, in a file, on a page
        }
    )


def trajectory(
    results: TrajectoryLike | Mapping[str, TrajectoryLike] | Sequence[TrajectoryLike],
    name: str = "error",
    *,
    x: str = "time",
    dark: bool = False,
) -> Figure:
    """A variable of one trajectory or of several against x: means over runs, bands of one standard deviation.

    Parameters
    ----------
    results: a trajectory, or several; entries have colours, scales have line styles.
    name: a variable that evolves, such as ``"error"``, ``"Q"`` or ``"R"``.
    x: ``"time"``, ``"samples"`` or ``"epoch"``.
    """
    several = list(results.values()) if isinstance(results, Mapping) else results
    drawn = list(several) if isinstance(several, Sequence) else [several]
    figure, colours = blank(dark=dark), theme(dark)
    positive = wide = True
    words_of_axis = ""
    for number, result in enumerate(drawn):
        time, words_of_axis, values, entries = _series(result, name, x)
        wide = wide and _is_wide(time)
        shown = thinned(time, logarithmic=wide)
        positive = positive and bool((values.mean(0)[shown] > 0).all())
        for i, entry in enumerate(entries):
            # entries differ by colour; a variable of one entry has colours left for the results
            shade = colours.colours[(i if len(entries) > 1 else number) % len(colours.colours)]
            words = f"{name}{list(entry)}, {result.scale}" if len(entries) > 1 else label(result)
            line = {"color": shade, "dash": DASHES.get(result.scale, "solid"), "width": 2}
            mean = values[:, shown, i].mean(0)
            spread = values[:, shown, i].std(0, ddof=1) if result.runs > 1 else None
            add_line(figure, time[shown], mean, spread, words, line)
    _scale_axes(figure, words_of_axis, name, wide=wide, positive=positive and name.endswith("error"))
    return label_plotly(figure)


def together(
    theory: TrajectoryLike, simulation: TrajectoryLike, words: str, name: str = "error", *, dark: bool = False
) -> Figure:
    """A variable of two trajectories that were compared, laid over each other; `words` is the verdict."""
    both = trajectory([theory, simulation], name, dark=dark)
    both.update_layout(title_text=f"{theory.scale} against {simulation.scale}: {words}", margin_t=50)
    return both


def comparison(
    theory: TrajectoryLike, simulation: TrajectoryLike, table: xr.Dataset, words: str, *, dark: bool = False
) -> tuple[Figure, Figure]:
    """Two figures of a comparison: the errors laid over each other, and z at every point that was compared.

    Parameters
    ----------
    table: as `Verdict.table` has it. words: the verdict.
    """
    colours = theme(dark)
    both = together(theory, simulation, words, dark=dark)
    scores = blank("deviation in standard errors (z)", dark=dark)
    wide = _is_wide(table["time"].values)
    for i, name in enumerate(dict.fromkeys(table["variable"].values.tolist())):
        part = table.isel(point=np.flatnonzero(table["variable"].values == name))
        scores.add_scatter(
            x=part["time"].values, y=part["z"].values, mode="markers", name=str(name),
            text=[f"{name}{entry}" for entry in part["entry"].values],
            marker={"size": 6, "symbol": i, "color": colours.colours[i % len(colours.colours)]},
            hovertemplate="%{text}: z = %{y:.2f}<extra></extra>",
        )  # fmt: skip
    for level in (-2, 0, 2):
        scores.add_hline(y=level, line={"color": colours.ink, "width": 1, "dash": "solid" if level == 0 else "dot"})
    scores.update_layout(
        hovermode="closest", xaxis_title="time", yaxis_title="z", xaxis_type="log" if wide else "linear"
    )
    return both, label_plotly(scores)


def forecast_of_rows(curves: xr.Dataset, summary: Mapping[str, Any], *, dark: bool = False) -> dict[str, Figure]:
    """Figures of a forecast of labelled rows by what they show: learning curves, schedule, spectrum.

    Parameters
    ----------
    curves, summary: `RowsForecast.curves` and `RowsForecast.summary()`, or learn.nc and learn.json of `overlaps learn`.
    """
    colours = theme(dark)
    learning = blank("error of fresh rows in one pass", dark=dark)
    later = curves.isel(sample=slice(1, None))
    x = later["sample"].values
    names = ("constant", f"best constant rate {summary['best_constant_rate']:.3g}"), ("plan", "best schedule")
    for i, (name, words) in enumerate(names):
        low, middle, high = (later[f"error_{name}{end}"].values for end in ("_low", "", "_high"))
        line = {"color": colours.colours[i], "dash": ("dash", "solid")[i], "width": 2}
        add_line(learning, x, middle, (low, high), words, line)
    floor = {"color": colours.ink, "width": 1, "dash": "dot"}
    learning.add_hline(y=summary["floor"], line=floor)
    if summary["floor"] > 0:
        learning.add_annotation(  # whose place on a logarithmic axis is a logarithm
            text="no linear map goes below", x=0, xref="paper", xanchor="left", y=np.log10(summary["floor"]),
            yanchor="bottom", showarrow=False,
        )  # fmt: skip
    learning.update_layout(xaxis_title="samples", yaxis_title="error", xaxis_type="log", yaxis_type="log")
    schedule = blank("learning rate", dark=dark)
    samples, rates = summary["schedule"]["samples"], summary["schedule"]["rates"]
    line = {"color": colours.colours[1], "width": 2}
    schedule.add_scatter(x=samples, y=rates, name="best schedule", mode="lines+markers", line=line)
    constant = {"color": colours.colours[0], "dash": "dash"}
    schedule.add_hline(y=summary["best_constant_rate"], line=constant, annotation_text="best constant")
    schedule.update_layout(xaxis_title="samples", yaxis_title="rate")
    spectrum_ = eigenvalues(curves["eigenvalue"].values, dark=dark)
    explained = np.cumsum(curves["explained"].values)
    ranks = np.arange(1, explained.size + 1)
    some = thinned(ranks.astype(float), logarithmic=True)
    spectrum_.add_scatter(
        x=ranks[some], y=explained[some], yaxis="y2", name="labels' variance told by the first directions",
        line={"color": colours.colours[1], "width": 2},
    )  # fmt: skip
    second = {"overlaying": "y", "side": "right", "range": [0, 1], "title": "share of the labels' variance"}
    spectrum_.update_layout(
        yaxis2={**second, "showgrid": False, "automargin": True, "tickmode": "linear", "dtick": 0.2}
    )
    return {"learning curve": label_plotly(learning), "schedule": schedule, "spectrum": label_plotly(spectrum_)}


def forecast_of_spectrum(data: xr.Dataset, *, dark: bool = False) -> dict[str, Figure]:
    """Figures of a forecast for a spectrum: `Forecast.data`, or forecast.nc of `overlaps spectrum`."""
    rate = data.attrs["rate"]
    curve = blank(f"linear student at rate {rate:g}: error {data['error'].attrs['law']}", dark=dark)
    curve.add_scatter(x=data["time"].values, y=data["error"].values, mode="lines", name="error")
    curve.update_layout(
        xaxis_title="time (samples per input dimension)", yaxis_title="error", xaxis_type="log", yaxis_type="log",
        showlegend=False,
    )  # fmt: skip
    plateaus = blank("erf committee, infinite size: where its plateau is and when it is left", dark=dark)
    plateaus.add_scatter(x=data["unit"].values, y=data["plateau"].values, mode="lines+markers", name="plateau")
    plateaus.add_scatter(
        x=data["unit"].values, y=data["escape_time"].values, yaxis="y2", mode="lines+markers", name="escape time",
        line={"dash": "dash"}, marker={"symbol": "square"},
    )  # fmt: skip
    second = {
        "overlaying": "y",
        "side": "right",
        "tickmode": "auto",
        "type": "log",
        "title": "escape time",
        "showgrid": False,
    }
    plateaus.update_layout(
        xaxis_title="units of student and teacher", yaxis_title="error", yaxis2={**second, "automargin": True}
    )
    return {
        "learning curve": label_plotly(curve),
        "spectrum": eigenvalues(data["eigenvalue"].values, dark=dark),
        "plateaus": label_plotly(plateaus),
    }


def sweep(
    data: xr.Dataset, x: str, y: str = "error", color: str | None = None, *,
    at: Mapping[str, Any] | None = None, dark: bool = False,
) -> Figure:  # fmt: skip
    """Lines of a variable, a map over two fields or a phase diagram; arguments as of `Sweep.plot`.

    data: as of `Sweep.data`.
    """
    colours, fields = theme(dark), grid.fields_of(data)
    data = grid.chosen(data, dict(at or {}))
    figure = blank(dark=dark)
    if y in fields:
        data = grid.on_a_map(data, x, y, color or "error", fields)
        (_add_phases if color == "status" else _add_map)(figure, data, x, y, color or "error")
        figure.update_layout(hovermode="closest", yaxis_title=y.replace("_", " "))
        if grid.is_logarithmic(data[y]) and data[y].values.min() > 0:
            figure.update_layout(yaxis_type="log")
    else:
        lines = grid.lines(data, x, y, color)
        levels = [] if color in (None, "scale") else data[str(color)].values.tolist()
        ranged = bool(levels) and grid.is_range(levels)
        shades = _shades(levels) if ranged else list(colours.colours)
        for line in lines:
            shown = line.x > 0 if grid.is_logarithmic(data[x]) else np.isfinite(line.x)
            number = line.scale_order if line.level is None else line.order
            style = {
                "color": shades[number % len(shades)],
                "dash": DASHES.get(str(line.scale), "solid"),
                "width": 2,
            }
            spread = None if line.spread is None else line.spread[shown]
            add_line(figure, line.x[shown], line.mean[shown], spread, line.names, style)
        if ranged:
            figure.update_traces(showlegend=False)
            _add_bar(figure, levels, str(color))
        positive = y.endswith("error") and all(line.mean.min() > 0 for line in lines)
        figure.update_layout(yaxis_title=y.replace("_", " "), yaxis_type="log" if positive else "linear")
    if grid.is_logarithmic(data[x]) and (y not in fields or data[x].values.min() > 0):
        figure.update_layout(xaxis_type="log")
    figure.update_layout(xaxis_title=grid.axis_name(data[x]))
    return label_plotly(figure)


def _share(levels: Sequence[float]) -> Array:
    """Numbers, or their logarithms where their range is wide."""
    values = np.asarray(levels, float)
    return np.log10(values) if grid.is_wide(list(levels)) else values


def _shades(levels: Sequence[float]) -> list[str]:
    """A colour of one scale for each number, as #rrggbb."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    values = _share(levels)
    return [to_hex(colour) for colour in colormaps["viridis"]((values - values.min()) / np.ptp(values))]


def _add_bar(figure: Figure, levels: Sequence[float], name: str) -> None:
    """What the colours of the lines mean, beside them."""
    values, marked = _share(levels), np.linspace(0, len(levels) - 1, min(len(levels), 6)).round().astype(int)
    bar = {
        "title": {"text": name.replace("_", " ")},
        "tickvals": values[marked].tolist(),
        "ticktext": [f"{levels[i]:.3g}" for i in marked],
    }
    figure.add_scatter(
        x=[None], y=[None], mode="markers", showlegend=False, hoverinfo="skip",
        marker={"colorscale": "Viridis", "cmin": values.min(), "cmax": values.max(), "color": [values.min()],
                "colorbar": bar},
    )  # fmt: skip


def _add_map(figure: Figure, data: xr.Dataset, x: str, y: str, name: str) -> None:
    mean = grid.map_of(data, x, y, name)
    values, positive = mean.values, name.endswith("error") and np.nanmin(mean.values, initial=np.inf) > 0
    words = grid.map_name(data, name)
    figure.add_heatmap(
        x=mean[x].values, y=mean[y].values, z=np.log10(values) if positive else values, customdata=values,
        colorscale="Viridis", colorbar={"title": {"text": f"log₁₀ {words}" if positive else words}},
        hovertemplate=f"{x} %{{x}}<br>{y} %{{y}}<br>{name.replace('_', ' ')} %{{customdata:.4g}}<extra></extra>",
    )  # fmt: skip


def _add_phases(figure: Figure, data: xr.Dataset, x: str, y: str, _: str) -> None:
    worst = grid.worst_status(data["status"], x, y)
    names, count = list(grid.STATUS), len(grid.STATUS)
    steps = [[(i + end) / count, grid.STATUS[name]] for i, name in enumerate(names) for end in (0, 1)]
    figure.add_heatmap(
        x=worst[x].values, y=worst[y].values, z=worst.values, zmin=-0.5, zmax=count - 0.5, colorscale=steps,
        text=[[names[int(number)] for number in row] for row in worst.values],
        colorbar={"tickvals": list(range(count)), "ticktext": names, "title": {"text": grid.worst_of(data)}},
        hovertemplate=f"{x} %{{x}}<br>{y} %{{y}}<br>%{{text}}<extra></extra>",
    )  # fmt: skip


def eigenvalues(values: ArrayLike, *, dark: bool = False) -> Figure:
    """Eigenvalues against their rank, both logarithmic; those that are zero are left out."""
    omega = np.sort(np.asarray(values, float))[::-1]
    ranks = np.arange(1.0, omega.size + 1)
    some = thinned(ranks, logarithmic=True)
    some = some[omega[some] > 0]
    figure = blank("spectrum of the inputs", dark=dark)
    figure.add_scatter(
        x=ranks[some], y=omega[some], mode="markers", name="eigenvalue", marker={"color": theme(dark).colours[0]}
    )
    figure.update_layout(xaxis_title="rank", yaxis_title="eigenvalue", xaxis_type="log", yaxis_type="log")
    return label_plotly(figure)


def spectrum(
    values: ArrayLike, edges: tuple[float, float] | None = None, outliers: ArrayLike = (), *,
    across: tuple[float, float] | None = None, dark: bool = False,
) -> Figure:  # fmt: skip
    """A histogram of eigenvalues, with the edges of the bulk and the outliers that theory predicts.

    Parameters
    ----------
    values: eigenvalues of a matrix, (any,).
    edges, outliers: lower and upper edge, and outliers, as of `spectra.predicted_outliers`.
    across: ends of the axis of eigenvalues, where they are to be the same in several figures.
    """
    colours = theme(dark)
    figure = blank(dark=dark)
    found, predicted = np.asarray(values, float).ravel(), np.asarray(outliers, float).ravel()
    seen = np.concatenate([found, predicted, [] if edges is None else edges])
    low, high = (float(seen.min()), float(seen.max())) if across is None else across
    counts, bins = np.histogram(found, BINS, (low, high))
    middles = (bins[1:] + bins[:-1]) / 2
    figure.add_bar(
        x=middles, y=counts, width=bins[1] - bins[0], name="eigenvalues", showlegend=True, customdata=counts,
        marker={"color": colours.colours[0], "line": {"width": 0}},
        hovertemplate="%{x:.3g}: %{customdata}<extra></extra>",
    )  # fmt: skip
    top = 2.0 * max(counts.max(), 1)
    if edges is not None:
        figure.add_scatter(
            x=np.repeat(edges, 2), y=[LEAST, top, top, LEAST], fill="toself", mode="none", name="predicted bulk",
            fillcolor=translucent(colours.colours[2], 0.2), hoverinfo="skip",
        )  # fmt: skip
    if predicted.size:
        x = np.column_stack([predicted, predicted, np.full(predicted.size, np.nan)]).ravel()
        figure.add_scatter(
            x=x, y=np.tile([LEAST, top, np.nan], predicted.size), mode="lines", connectgaps=False,
            line={"color": colours.colours[1], "dash": "dash", "width": 1.5}, name="predicted outliers",
            hovertemplate="predicted outlier %{x:.3g}<extra></extra>",
        )  # fmt: skip
    for outlier, height in zip(sorted(predicted), _staggered(np.sort(predicted), high - low), strict=True):
        figure.add_annotation(  # its place on a logarithmic axis is a logarithm
            x=outlier, y=np.log10(top) - 0.07 * height * np.log10(top / LEAST), text=f"{outlier:.3g}", showarrow=False,
            xanchor="left", xshift=2, font={"color": colours.colours[1], "size": 11},
            bgcolor=colours.paper, borderpad=1,  # over the lines beside it
        )  # fmt: skip
    figure.update_layout(
        xaxis_title="eigenvalue", yaxis_title="eigenvalues in a bin", yaxis_type="log", hovermode="closest",
        xaxis_range=[low - 0.02 * (high - low), high + 0.06 * (high - low)],
        yaxis_range=[np.log10(LEAST), np.log10(top)], bargap=0,
    )  # fmt: skip
    label_plotly(figure)
    return figure.update_yaxes(exponentformat="none", minor_ticks="")


def _staggered(places: Array, width: float) -> list[int]:
    """Lines for labels next to each other on an axis of this width, so that they do not overlap."""
    heights: list[int] = []
    for i, place in enumerate(places):
        near = [heights[j] for j in range(i) if place - places[j] < NEAR * width]
        heights.append(next(h for h in range(len(near) + 1) if h not in near))
    return heights


def add_line(figure: Figure, x: Array, y: Array, spread: Any, name: str, line: Mapping[str, Any]) -> None:
    """A line with its band, which goes with it when it is hidden by its legend.

    spread: deviations (points,), a pair of lower and upper ends, or None.
    """
    if spread is not None:
        low, high = spread if isinstance(spread, tuple) else (y - spread, y + spread)
        figure.add_scatter(
            x=np.concatenate([x, x[::-1]]), y=np.concatenate([high, low[::-1]]), fill="toself", mode="none",
            fillcolor=translucent(line["color"], 0.15), hoverinfo="skip", showlegend=False, legendgroup=name,
        )  # fmt: skip
    figure.add_scatter(
        x=x, y=y, mode="lines", name=name, line=dict(line), legendgroup=name, hovertemplate="%{y:.4g}",
        showlegend=bool(name),
    )  # fmt: skip


def thinned(x: Array, *, logarithmic: bool) -> NDArray[np.intp]:
    """Places of at most `MOST` points of an axis, evenly along it; all that are positive where it is logarithmic."""
    known = np.flatnonzero(x > 0) if logarithmic else np.arange(x.size)
    if known.size <= MOST:
        return known
    at = np.log(x[known]) if logarithmic else x[known]
    return known[np.unique(np.searchsorted(at, np.linspace(at[0], at[-1], MOST)).clip(0, known.size - 1))]


def _series(result: TrajectoryLike, name: str, x: str) -> tuple[Array, str, Array, list[tuple[int, ...]]]:
    """Axis x and its label, values (run, time, entries) and the entries of a variable that evolves."""
    evolving = {str(n): [d for d in ("time", "observed") if d in v.dims] for n, v in result.data.data_vars.items()}
    names = [n for n, dims in evolving.items() if dims]
    if name not in names:
        raise unknown("variable", name, names)
    axis = evolving[name][0]
    values = result.data[name].transpose("run", axis, ...).values
    entries = list(np.ndindex(values.shape[2:]))
    return *along(result.data, axis, x), values.reshape(*values.shape[:2], -1), entries


def _is_wide(time: Array) -> bool:
    late = time[time > 0]
    return bool(late.size > 1 and late.max() / late.min() > WIDE)


def _scale_axes(figure: Figure, words: str, name: str, *, wide: bool, positive: bool) -> None:
    figure.update_layout(
        xaxis_title=words,
        yaxis_title=LABELS.get(name, name.replace("_", " ")),
        xaxis_type="log" if wide else "linear",
        yaxis_type="log" if positive else "linear",
    )
