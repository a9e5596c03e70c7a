"""What a trajectory is drawn against: its times, the samples seen by then, or the passes through a training set."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from ..interface.errors import InputError, shown

AXES = {"time": "time", "samples": "samples seen", "epoch": "epochs"}


def along(data: xr.Dataset, dimension: str, x: Any = "time") -> tuple[NDArray[np.float64], str]:
    """Values of the axis x of variables of a dimension, `time` or `observed`, and its label."""
    if not isinstance(x, str) or x not in AXES:
        raise InputError(f"x: expected {', '.join(map(repr, AXES))}, got {shown(x)}")
    if x == "time":
        return data[dimension].values, f"time ({data[dimension].attrs['units']})"
    known = [repr(name) for name in AXES if name in data.coords]
    if x not in data.coords:
        why = "which theory has only from a start with a size" if x == "samples" else "which are those of MultiPass"
        raise InputError(f"x: this trajectory has no {AXES[x]}, {why}; use {' or '.join(known)}")
    if dimension != "time":
        raise InputError(f"x: what was observed has times of its own; use 'time', got {shown(x)}")
    return data[x].values, AXES[x]
