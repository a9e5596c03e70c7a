"""Pictures of a sweep: lines against a field or time, a heat map over two fields, or a phase diagram of what came out.

Seeds and runs are averaged over; times, where they are not drawn, are the last ones. A band is one standard deviation
over seeds and runs.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import xarray as xr

from ..interface.errors import InputError, unknown
from . import log_axes
from .palette import COLOURS, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STYLES = {"macro": "-", "meso": "--", "micro": ":", "optimise": "-."}
DONE = "done"  # the status of a cell that has numbers
AVERAGED = ("seed", "run")
WIDE = 30  # ratio of the largest to the smallest positive number from which an axis is logarithmic
LEGEND = 8  # lines that are named each
STATUS = {DONE: COLOURS[0], "failed": COLOURS[1], "refused": "#999999", "error": COLOURS[3], "pending": "#e5e5e5"}


def draw(data: xr.Dataset, x: str, y: str, color: str | None, at: Mapping[str, Any], ax: Axes | None) -> Axes:
    """Lines if `y` is a variable, a map if it is a dimension of the grid; see `Sweep.plot`."""
    if ax is None:
        ax = new_axes()
    fields, data = fields_of(data), chosen(data, at)
    if y in fields:
        _map(data, x, y, color or "error", fields, ax)
    else:
        _lines(data, x, y, color, ax)
    return ax


def chosen(data: xr.Dataset, at: Mapping[str, Any]) -> xr.Dataset:
    """The part of a sweep at these values, numbers at the nearest there are; fields of numbers ascend."""
    for name, value in at.items():
        if name not in data.dims:
            raise unknown("dimension in at:", name, map(str, data.dims))
        near = {"method": "nearest"} if data[name].dtype.kind in "fiu" else {}
        try:
            data = data.sel({name: value}, **near)  # type: ignore[arg-type]
        except KeyError:
            raise InputError(f"at: {name} has no value {value!r}; it has {data[name].values.tolist()!r:.120}") from None
    for name in fields_of(data):  # in the order in which they are drawn, whatever that of the grid is
        if data[name].dtype.kind in "fiu" and (np.diff(data[name].values) < 0).any():
            data = data.sortby(name)
    return data


def map_of(data: xr.Dataset, x: str, y: str, color: str) -> xr.DataArray:
    """Means of a variable over two fields, (y, x)."""
    values = _reduced(data, _variable(data, color), {x, y})
    return values.mean(_rest(values, x, y)).transpose(y, x)


def fields_of(data: xr.Dataset) -> list[str]:
    """The fields of the grid: dimensions of its cells, but for seeds and scales."""
    return [str(dim) for dim in data["status"].dims if dim not in ("seed", "scale")]


class SweepLine(NamedTuple):
    """A line of a sweep: where it is (points,), its mean, and its deviation over seeds and runs or nothing.

    level: the value of the field that the colour stands for, `order` its place; `names` say level and scale in words.
    """

    x: Any
    mean: Any
    spread: Any | None
    level: Any
    order: int
    scale: str | None
    scale_order: int
    names: str


def lines(data: xr.Dataset, x: str, y: str, color: str | None) -> list[SweepLine]:
    """All lines of variable `y` against `x`, one for each value of `color` and each scale."""
    values = _variable(data, y)
    along = [*fields_of(data), *(str(d) for d in values.dims if d in ("time", "observed", "knot"))]
    for what, name in (("x", x), ("color", color)):
        if name is not None and name not in values.dims:
            raise unknown(f"dimension for {what}:", name, [*along, "scale"])
    values = _reduced(data, values, {x, color, "scale"})
    scales = values["scale"].values.tolist() if "scale" in values.dims else [None]
    levels = [None] if color in (None, "scale") else values[str(color)].values.tolist()
    found: list[SweepLine] = []
    for number, scale in enumerate(scales):
        of_scale = values if scale is None else values.sel(scale=scale)
        for i, level in enumerate(levels):
            line = of_scale if level is None else of_scale.isel({str(color): i})
            mean, rest = line.mean(_rest(line, x)).values, _rest(line, x)
            known = np.isfinite(mean)
            if not known.any():
                continue
            words = [str(word) for word in (None if level is None else f"{color} = {_in_words(level)}", scale) if word]
            spread = None
            if rest and line.sizes.get("seed", 1) * line.sizes.get("run", 1) > 1:
                spread = line.std(rest, ddof=1).values[known]
            at = positions(data[x])[known]
            found.append(SweepLine(at, mean[known], spread, level, i, scale, number, ", ".join(words)))
    return found


def _lines(data: xr.Dataset, x: str, y: str, color: str | None, ax: Axes) -> None:
    drawn = lines(data, x, y, color)
    levels = [] if color in (None, "scale") else data[str(color)].values.tolist()
    shades = _shades(levels)  # a field of numbers is one range of colours, names have a colour each
    for line in drawn:
        shade = shades[line.order] if levels else COLOURS[line.scale_order % len(COLOURS)]
        style = STYLES.get(str(line.scale), "-")
        ax.plot(line.x, line.mean, style, color=shade, label=line.names)
        if line.spread is not None:
            sure = np.isfinite(line.spread)
            low, high = ((line.mean + sign * line.spread)[sure] for sign in (-1, 1))
            ax.fill_between(line.x[sure], low, high, color=shade, alpha=0.12, lw=0)
    if is_logarithmic(data[x]):
        ax.set_xscale("log")
    if y.endswith("error") and all(line.mean.min() > 0 for line in drawn):
        ax.set_yscale("log")
    log_axes.label(ax)
    ax.set_xlabel(axis_name(data[x]))
    ax.set_ylabel(y.replace("_", " "))
    if len(ax.lines) <= LEGEND and any(line.names for line in drawn):
        ax.legend(fontsize="small")
    elif all(isinstance(level, (int, float)) for level in levels):
        _bar_of_lines(ax, levels, str(color))


def on_a_map(data: xr.Dataset, x: str, y: str, color: str, fields: list[str]) -> xr.Dataset:
    """What a map over two fields can show: the first scale of a variable, and all of the status."""
    for what, name in (("x", x), ("y", y)):
        if name not in fields:
            raise unknown(f"field for {what}:", name, fields)
    return data.isel(scale=0) if "scale" in data.dims and color != "status" else data


def map_name(data: xr.Dataset, color: str) -> str:
    """What a map shows of a variable: at which time, and at which scale."""
    at = f" at time {data['time'].values.max():g}" if "time" in _variable(data, color).dims else ""
    scale = f", {data['scale'].item()}" if "scale" in data.coords and data["scale"].ndim == 0 else ""
    return f"{color.replace('_', ' ')}{at}{scale}"


def worst_of(data: xr.Dataset) -> str:
    """The scales whose worst status a phase diagram shows; empty for one."""
    scales = data["scale"].values.tolist() if "scale" in data.dims else []
    return f"worst of {', '.join(scales)}" if len(scales) > 1 else ""


def _map(data: xr.Dataset, x: str, y: str, color: str, fields: list[str], ax: Axes) -> None:
    """A heat map of a variable, with what is missing in grey; or a phase diagram of the status of cells."""
    data = on_a_map(data, x, y, color, fields)
    across, up = data[x], data[y]
    if color == "status":
        _phases(data, x, y, ax)
    else:
        mean = map_of(data, x, y, color)
        positive = color.endswith("error") and np.nanmin(mean.values, initial=np.inf) > 0
        ax.set_facecolor("0.85")
        cells = ax.pcolormesh(
            _edges(across), _edges(up), np.ma.masked_invalid(mean.values), norm="log" if positive else "linear"
        )
        ax.figure.colorbar(cells, ax=ax).set_label(map_name(data, color))
    for which, points in (("x", across), ("y", up)):
        _scale_axis(ax, which, points)
        if points.dtype.kind not in "fiu":
            getattr(ax, f"set_{which}ticks")(range(points.size), points.values.tolist())
    log_axes.label(ax)
    ax.set_xlabel(axis_name(across))
    ax.set_ylabel(axis_name(up))


def worst_status(status: xr.DataArray, x: str, y: str) -> xr.DataArray:
    """The worst status of all seeds and scales at each place, (y, x), as its place in `STATUS`."""
    _reduced(None, status, {x, y, "scale"})
    order = list(STATUS)
    numbers = xr.apply_ufunc(np.vectorize(lambda word: float(order.index(word)), otypes=[float]), status)
    return numbers.max(_rest(numbers, x, y)).transpose(y, x)


def _phases(data: xr.Dataset, x: str, y: str, ax: Axes) -> None:
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    order, worst = list(STATUS), worst_status(data["status"], x, y).values
    colours = ListedColormap([STATUS[word] for word in order])
    ax.pcolormesh(_edges(data[x]), _edges(data[y]), worst, cmap=colours, vmin=-0.5, vmax=len(order) - 0.5)
    seen = [word for i, word in enumerate(order) if (worst == i).any()] or [DONE]
    ax.legend(
        handles=[Patch(color=STATUS[word], label=word) for word in seen], title=worst_of(data) or None, fontsize="small"
    )


def _variable(data: xr.Dataset, name: str) -> xr.DataArray:
    numbers = [str(n) for n, v in data.data_vars.items() if v.dtype.kind in "fiub"]
    if name not in numbers:
        raise unknown("variable", name, [*numbers, "status"])
    return data[name]


def _reduced(data: xr.Dataset | None, values: xr.DataArray, kept: set[str | None]) -> xr.DataArray:
    """The last time of cells that reached it, where times are not drawn; what is neither drawn nor averaged over must
    have been chosen."""
    for dim in ("time", "observed"):
        if dim in values.dims and dim not in kept:
            values = last(values, dim)
            values = values if data is None else values.where(data["status"] == DONE)
    open_ones = [str(d) for d in values.dims if d not in kept and d not in AVERAGED and values.sizes[d] > 1]
    if open_ones:
        examples = {name: values[name].values[0].item() if name in values.coords else 0 for name in open_ones}
        raise InputError(
            f"at: {' and '.join(open_ones)} must be drawn or chosen; choose by at={examples!r}, or draw by x, y or "
            "color"
        )
    return values.squeeze([d for d in values.dims if d not in kept and d not in AVERAGED])


def last(values: xr.DataArray, dim: str) -> xr.DataArray:
    """The last values along a dimension that are there, cells may end before others."""
    if values.dtype.kind != "f":
        return values.isel({dim: -1})
    there = values.notnull()
    end = (there * np.arange(1, there.sizes[dim] + 1)[_along(there, dim)]).argmax(dim)
    return values.isel({dim: end})


def _along(values: xr.DataArray, dim: str) -> tuple[Any, ...]:
    return tuple(slice(None) if each == dim else None for each in values.dims)


def _rest(values: xr.DataArray, *drawn: str) -> list[Hashable]:
    return [dim for dim in values.dims if dim not in drawn]


def positions(points: xr.DataArray) -> Any:
    return points.values if points.dtype.kind in "fiu" else np.arange(points.size)


def is_logarithmic(points: xr.DataArray) -> bool:
    """Whether an axis of numbers is logarithmic: a wide one, or one whose points are evenly spaced on it."""
    values = positions(points)
    if points.dtype.kind not in "fiu" or values.min() < 0:
        return False
    positive = values[values > 0]
    return positive.size > 2 and bool(positive.max() / positive.min() > WIDE or is_geometric(values.tolist()))


def is_geometric(values: list[Any]) -> bool:
    """Whether ascending numbers have even ratios, up to two digits, and not even differences as well."""
    if len(values) < 3 or min(values) <= 0:
        return False
    steps, ratios = np.diff(values), np.diff(np.log(values))
    even = np.abs(ratios - ratios.mean()).max() <= 0.15 * ratios.mean()
    return bool(even and steps.max() > 1.3 * steps.min())


def _scale_axis(ax: Axes, which: str, points: xr.DataArray) -> None:
    if is_logarithmic(points) and (which == "x" or points.values.min() > 0):
        getattr(ax, f"set_{which}scale")("log")


def _edges(points: xr.DataArray) -> Any:
    """Edges of the cells of a map between its points, in the logarithm where the axis is logarithmic."""
    if points.dtype.kind not in "fiu":
        return np.arange(points.size + 1) - 0.5
    logarithmic = is_logarithmic(points) and points.values.min() > 0
    values = np.log(points.values) if logarithmic else points.values.astype(float)
    if values.size == 1:
        middle = np.array([values[0] - 0.5, values[0] + 0.5])
    else:
        between = (values[1:] + values[:-1]) / 2
        middle = np.concatenate([[2 * values[0] - between[0]], between, [2 * values[-1] - between[-1]]])
    return np.exp(middle) if logarithmic else middle


def axis_name(points: xr.DataArray) -> str:
    name = str(points.name).replace("_", " ")
    return f"{name} ({points.attrs['units']})" if "units" in points.attrs else name


def _in_words(level: Any) -> str:
    return f"{level:.4g}" if isinstance(level, float) else str(level)


def is_range(levels: list[Any]) -> bool:
    """Whether levels are so many numbers that they are one range of colours, and do not have a colour each."""
    return len(levels) > 4 and all(isinstance(level, (int, float)) for level in levels)


def is_wide(levels: list[Any]) -> bool:
    """Whether numbers have their colours by their logarithms, as they would have their places on an axis."""
    return min(levels) > 0 and (max(levels) / min(levels) > WIDE or is_geometric(levels))


def _range(lines: list[Any]) -> Any:
    """Numbers as shares of their range, of its logarithm where that is wide."""
    from matplotlib.colors import LogNorm, Normalize

    return (LogNorm if is_wide(lines) else Normalize)(min(lines), max(lines))


def _shades(lines: list[Any]) -> list[Any]:
    import matplotlib.pyplot as plt

    if is_range(lines):
        return list(plt.get_cmap("viridis")(_range(lines)(lines)))
    return [COLOURS[i % len(COLOURS)] for i in range(len(lines))]


def _bar_of_lines(ax: Axes, lines: list[Any], name: str) -> None:
    from matplotlib.cm import ScalarMappable

    ax.figure.colorbar(ScalarMappable(_range(lines), "viridis"), ax=ax).set_label(name.replace("_", " "))
