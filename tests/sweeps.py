"""Small sweeps that several tests share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import xarray as xr

import overlaps as ov
from overlaps.sweep import Sweep

NET = ov.Committee(units=1, activation="linear")
PROBLEM = ov.Problem(
    data=ov.GaussianInputs(ov.PowerLaw(levels=2, exponent=0.5)),
    teacher=NET,
    student=NET,
    algorithm=ov.OnlineSGD(rate=0.5),
)
OVER = {"algorithm.rate": [0.25, 0.5, 1.0], "data.spectrum.exponent": [0.5, 1.0]}
OPTIONS: dict[str, Any] = {"seeds": 2, "times": [0.0, 0.5, 1.0], "size": 40, "progress": False}


def small(store: Path | None = None, over: dict[str, Any] = OVER, **options: Any) -> Sweep:
    """Twenty-four cells of a linear problem."""
    return ov.sweep(PROBLEM, over, store=store, **{"workers": 1, **OPTIONS, **options})


def same(a: xr.Dataset, b: xr.Dataset) -> bool:
    """Whether two datasets are equal bit by bit, names and attributes included."""
    bits = all(a[name].values.tobytes() == b[name].values.tobytes() for name in a.variables if name in b.variables)
    return bits and a.identical(b)
