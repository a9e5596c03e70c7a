"""The report on `overlaps sweep`: what came of every cell, and how the error depends on what was varied."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from ...plot import interactive
from ...plot.grid import DONE, last
from .document import Document, Shown, Table
from .runs import PACKAGES

MOST = 200  # rows of the table of cells
CAPTION = "Means over seeds and runs; other fields at their first values."


def of_sweep(folder: Path, data: xr.Dataset) -> Document:
    """Read what `overlaps sweep` has written."""
    path = folder / "spec.toml"
    dims = [str(dim) for dim in data["status"].dims]
    fields = sorted((d for d in dims if d not in ("seed", "scale")), key=lambda d: -data.sizes[d])
    counts = Counter(data["status"].values.ravel().tolist())
    done = counts.get("done", 0)
    statuses = ", ".join(f"{count} {word}" for word, count in counts.most_common())
    reasons = Counter(text for text in data["reason"].values.ravel().tolist() if text)
    over = ", ".join(f"{d} ({data.sizes[d]} values)" for d in dims if data.sizes[d] > 1)
    return Document(
        title="How learning depends on " + (", ".join(f.replace("_", " ") for f in fields) or "the seed"),
        question=f"What does theory or training give over {over or 'one value'}?",
        verdict=f"{done} of {data['status'].size} cells are done.",
        answer=[
            f"Cells: {statuses}.",
            *_best(data, fields),
            *(f"{n} not done: {text}" for text, n in reasons.most_common(5)),
        ],
        figures=_figures(data, fields),
        tables=[_cells(data, fields)],
        how=["Each cell is what overlaps run would compute at its scale; seeds and runs are averaged over."],
        command=f"overlaps sweep spec.toml --out {folder.name or 'DIR'}",
        versions={name: str(data.attrs[name]) for name in PACKAGES if name in data.attrs},
        citations=[paper for paper in str(data.attrs.get("citations", "")).split("\n") if paper],
        spec=path.read_text(encoding="utf-8") if path.exists() else "",
    )


def _figures(data: xr.Dataset, fields: list[str]) -> list[Shown]:
    others = {name: data[name].values[0] for name in fields[2:]}
    made: list[Shown] = []
    if len(fields) > 1 and (data["status"].values != DONE).any():
        title = f"What came of the cells over {fields[0]} and {fields[1]}".replace("_", " ")
        caption = "The worst of all seeds and scales; other fields at their first values."
        made.append(Shown(title, caption, interactive.sweep(data, fields[0], fields[1], "status", at=others)))
    if "error" not in data or not fields or not np.isfinite(data["error"].values).any():
        return made
    rest = {name: data[name].values[0] for name in fields[1:]}
    if "time" in data["error"].dims:
        along = interactive.sweep(data, "time", color=fields[0], at=rest)
        made.append(Shown(f"Error against time, for each {fields[0].replace('_', ' ')}", CAPTION, along))
    color = fields[1] if len(fields) > 1 else None
    end = interactive.sweep(data, fields[0], color=color, at=others)
    made.append(Shown(f"Error at the last time against {fields[0].replace('_', ' ')}", CAPTION, end))
    if color is not None and min(data.sizes[fields[0]], data.sizes[color]) > 2:
        picture = interactive.sweep(data, fields[0], color, at=others)
        made.append(Shown(f"Error at the last time over {fields[0]} and {color}", CAPTION + " First scale.", picture))
    return made


def _last_error(data: xr.Dataset) -> xr.DataArray | None:
    """Mean error of each cell at its last time, over the dimensions of the sweep."""
    if "error" not in data:
        return None
    error = data["error"]
    if "time" in error.dims:
        error = last(error, "time")
    return error.mean([d for d in error.dims if d not in data["status"].dims])


def _best(data: xr.Dataset, fields: list[str]) -> list[str]:
    error = _last_error(data)
    if error is None or not np.isfinite(error.values).any():
        return []
    mean = error.mean([d for d in error.dims if d == "seed"])
    place = np.unravel_index(np.nanargmin(mean.values), mean.shape)
    at = mean.isel({d: int(i) for d, i in zip(mean.dims, place, strict=True)})
    where = ", ".join(f"{name.replace('_', ' ')} {_formatted(at[name].item())}" for name in fields)
    if not where:
        return []
    seeds = data.sizes.get("seed", 1)
    mean = f", a mean over {seeds} seeds," if seeds > 1 else ""
    scale = f" at scale {at['scale'].item()}" if "scale" in at.coords else ""
    return [f"The smallest error at the last time{mean} is {float(at):.4g}, at {where}{scale}."]


def _cells(data: xr.Dataset, fields: list[str]) -> Table:
    dims, error = [str(d) for d in data["status"].dims], _last_error(data)
    rows = []
    for index in list(np.ndindex(data["status"].shape))[:MOST]:
        at = dict(zip(dims, index, strict=True))
        values = (data[d].values[i].item() if d in data.coords else i for d, i in at.items())
        value = np.nan if error is None else float(error.isel(at))
        outcome = f"{value:.4g}" if np.isfinite(value) else str(data["reason"].isel(at).item())
        rows.append([*map(_formatted, values), str(data["status"].isel(at).item()), outcome])
    note = f"The first {MOST} of {data['status'].size} cells." if data["status"].size > MOST else ""
    columns = [*(d.replace("_", " ") for d in dims), "status", "error at the last time, or why not"]
    return Table("Cells", columns, rows, note, folded=f"{len(rows)} cells, one by one")


def _formatted(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
