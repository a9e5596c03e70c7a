"""The room *papers*: models that have sliders in another room, with the parameters of a figure.

There they start from other weights than in the paper, and the readouts of all units are one.
"""

from __future__ import annotations

from dataclasses import replace

from .choice import Choice
from .hessian_course import Mixed
from .paper_figures import Figured
from .student_teacher import Explored

PLATEAU = Explored(levels=10, exponent=0.25, units=4, rate=0.1, last=7000.0)  # of figures 4, 18 and 19 of *scaling*
SCALING = {
    "fig1": Explored(levels=4, exponent=1.0, units=2, rate=0.1, last=3500.0),
    "fig4": PLATEAU,
    "fig5": replace(PLATEAU, levels=25, units=6),
    "fig6": Explored(levels=9, exponent=1.0, units=2, rate=0.25, last=3000.0),
    "fig17": replace(PLATEAU, last=1750.0),
    "fig18": PLATEAU,
    "fig19": PLATEAU,
    "fig20": Explored(levels=9, exponent=1.0, units=2, rate=0.25, last=3000.0),
}
CLASSES = ("fig2.1", "fig2.2", "fig2.3", "fig9.1", "fig9.2", "fig9.3", "fig9.4")  # of *outliers*: the others are XOR


def model(chosen: Figured) -> tuple[str, Choice] | None:
    """Path of a room and the state that shows the model of a figure, if a room can."""
    if chosen.paper == "committee":
        units, rate = (chosen.parameters[name] for name in ("units", "rate"))
        return "/", Explored(units=int(units), rate=rate, last=min(800 / rate, Explored.LIMITS["last"][1]))
    if chosen.paper == "scaling" and chosen.figure in SCALING:
        known = {name: value for name, value in chosen.other.items() if name in Explored.LIMITS}
        return "/", replace(SCALING[chosen.figure], **known)
    if chosen.paper == "outliers" and chosen.figure in CLASSES:
        return "/outliers", Mixed(classes=10, variance=1 / chosen.parameters["noise"], rate=1.0, size=300)
    return None
