"""Methods of what functions return: pictures, files, and questions about results."""

from __future__ import annotations

import tempfile
from pathlib import Path

import overlaps as ov

from ..problems import LAW, START, Case, P
from .overlaps import MACRO, MESO
from .sweep import SWEPT

VERDICT = ov.compare(MACRO, MESO, progress=False)
MOVING = MESO.animate("R", frames=2)
FORECAST = ov.forecast(LAW, 0.1, units=2, size=50)
WHERE = tempfile.TemporaryDirectory()
FOLDER = Path(WHERE.name)

CASES: dict[str, Case] = {
    "Trajectory.plot": (MESO.plot, {"name": "error", "ax": None, "interactive": False}),
    "Trajectory.accuracy": (MACRO.accuracy, {"name": "error"}),
    "Trajectory.animate": (MESO.animate, {"name": "R", "frames": 2, "pause": 100}),
    "Trajectory.save": (MESO.save, {"path": str(FOLDER / "meso.nc")}),
    "Verdict.plot": (VERDICT.plot, {"name": "error", "ax": None, "interactive": False}),
    "Animation.save": (MOVING.save, {"path": str(FOLDER / "moving.html")}),
    "Forecast.write": (FORECAST.write, {"folder": str(FOLDER / "forecast")}),
    "Start.check_fits": (START.check_fits, {"problem": P}),
    "Sweep.plot": (SWEPT.plot, {"x": "rate", "y": "error", "color": "exponent", "at": {"scale": "macro"}, "ax": None}),
    "Sweep.trajectory": (SWEPT.trajectory, {"rate": 0.1, "exponent": 0.5, "seed": 0, "scale": "macro"}),
    "Sweep.cell": (SWEPT.cell, {"address": next(iter(SWEPT._cells))}),
}
