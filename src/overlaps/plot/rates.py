"""Learning rates against time, with their jumps: η from a knot on, and before it what it was until then."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .palette import new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

POINTS = 400  # of a curve, besides its knots


def rates(schedules: Mapping[str, Any], last: float, units: str, ax: Axes | None = None, **style: Any) -> Axes:
    """Each of the named schedules from time zero to `last`; with a legend where there are several."""
    ax = new_axes() if ax is None else ax
    for name, schedule in schedules.items():
        knots = [knot for knot in schedule.knots if 0 < knot <= last]
        # a knot comes twice, for the rate before it and the one after; the sort keeps that order
        points = [(t, float(schedule(t))) for t in np.linspace(0.0, last, POINTS).tolist() if t not in knots]
        points += [(knot, value) for knot in knots for value in (schedule.before(knot), float(schedule(knot)))]
        times, values = zip(*sorted(points, key=lambda point: point[0]), strict=True)
        ax.plot(times, values, **{"label": name, **style})
    ax.set_xlabel(f"time ({units})")
    ax.set_ylabel("learning rate")
    ax.set_ylim(bottom=0)
    if len(schedules) > 1:
        ax.legend(fontsize="small")
    return ax
