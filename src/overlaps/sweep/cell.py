"""A cell: one problem from one start at one scale with one seed, and what came of it as bytes.

What keeps a cell from being computed is part of what came of it:

| status | meaning |
|---|---|
| done | there is a trajectory, or a plan |
| refused | the problem, its start or its options cannot be used, an `InputError` |
| failed | it diverged, or did not converge, a `NumericalError`; what came before is kept |
| error | something else went wrong, or its process died three times; it is not kept, and tried again next time |

>>> import overlaps as ov
>>> net = ov.Committee(units=1, activation="linear")
>>> problem = ov.Problem(data=ov.GaussianInputs(), teacher=net, student=net, algorithm=ov.OnlineSGD(rate=3.0))
>>> cell = Cell(problem, "macro", size=100, seed=0, spread=1.0, start=None, times=(0.0, 1.0, 2.0), options={})
>>> compute(cell).status
'done'
"""

from __future__ import annotations

import time as clock
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from inspect import signature
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import xarray as xr

from ..interface.errors import InputError, NumericalError
from ..interface.packed import pack
from ..interface.progress import without_bars
from ..problem.address import address, version
from ..problem.start import Start, draw
from ..problem.statement import Problem
from ..trajectory.dataset import Trajectory
from ..trajectory.scales import sample, solve, train

if TYPE_CHECKING:
    from ..plan.optimise import TrainingPlan

DONE, REFUSED, FAILED, ERROR, PENDING = "done", "refused", "failed", "error", "pending"
KEPT = (DONE, REFUSED, FAILED)
SCALES: dict[str, Callable[..., Any]] = {"macro": solve, "meso": sample, "micro": train}
WAYS = (*SCALES, "optimise")  # how a cell can be computed
RUNS = ("meso", "micro")  # scales whose cells have runs, each with random numbers of its own
NOT_OPTIONS = {"problem", "start", "times", "seed", "store", "progress"}


@cache
def options_of(scale: str) -> tuple[str, ...]:
    """What a scale can be asked for besides problem, start, times and seed."""
    way = SCALES[scale] if scale in SCALES else _optimise()
    return tuple(name for name in signature(way).parameters if name not in NOT_OPTIONS)


def _optimise() -> Callable[..., Any]:
    """What makes plans; loaded where one is asked for, since each new process would take a tenth longer to start."""
    from ..plan.optimise import optimise

    return optimise


@dataclass(frozen=True)
class Cell:
    """What is computed, and from where.

    Attributes
    ----------
    problem: what is learned.
    scale: ``"macro"``, ``"meso"``, ``"micro"`` or ``"optimise"``.
    size, seed, spread: of the start that is drawn: input dimensions, seed, and scale of the student's weights.
    start: in its place, one that is given.
    times: when; None for all steps of full batches.
    options: of `solve`, `sample`, `train` or `optimise`.
    """

    problem: Problem
    scale: str
    size: int
    seed: int
    spread: float
    start: Start | None
    times: tuple[float, ...] | None
    options: Mapping[str, Any]

    @property
    def address(self) -> str:
        """Its name in a store, by all that decides what is computed."""
        drawn = (self.size, self.seed, self.spread) if self.start is None else self.start
        seed = self.seed if self.scale in RUNS else None  # others draw no random numbers but for the start
        return address(version(), self.scale, self.problem, drawn, seed, self.times, self.options)

    def result(self) -> Trajectory | TrainingPlan:
        """Compute it."""
        start = draw(self.problem, self.size, self.seed, self.spread) if self.start is None else self.start
        options = dict(self.options)
        if self.scale in RUNS:
            options["seed"] = self.seed
        with without_bars():  # the sweep has one
            if self.scale == "optimise":
                options.setdefault("time", None if self.times is None else self.times[-1])
                return _optimise()(self.problem, start, **options)
            return SCALES[self.scale](self.problem, start, self.times, **options)


class Outcome(NamedTuple):
    """What came of a cell: its status, why it is not done, the seconds it took, and everything as bytes."""

    status: str
    reason: str = ""
    seconds: float = 0.0
    content: bytes = b""


def compute(cell: Cell) -> Outcome:
    """Compute a cell. Errors become the status of its outcome; only what ends the process is raised."""
    began = clock.perf_counter()
    status, reason = DONE, ""
    found: Trajectory | xr.Dataset = xr.Dataset()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of problems, which were said where they were built
            found = _numbers(cell.result())
    except InputError as error:
        status, reason = REFUSED, str(error)
    except NumericalError as error:
        status, reason = FAILED, str(error)
        if isinstance(error.partial, Trajectory):
            found = error.partial
    except Exception as error:  # the others are computed
        status, reason = ERROR, f"{type(error).__name__}: {error}"
    reason, seconds = " ".join(reason.split()), clock.perf_counter() - began
    about = {"status": status, "reason": reason, "seconds": seconds}
    content = found.packed(about) if isinstance(found, Trajectory) else pack(found, about)
    return Outcome(status, reason, seconds, content)


def _numbers(result: Trajectory | TrainingPlan) -> Trajectory | xr.Dataset:
    """What is kept of a result: a trajectory, or the numbers of a plan."""
    if isinstance(result, Trajectory):
        return result
    from ..plan.optimise import TrainingPlan

    if not isinstance(result, TrainingPlan):
        raise InputError("time: a cell is one plan, for one time; sweep over 'optimise.time' for several")
    return xr.Dataset(
        {
            "error": (("run", "time"), np.array([[result.error]])),
            "baseline_error": (("run", "time"), np.array([[result.baseline]])),
            "floor": ((), result.floor),
            "gain": ((), result.gain),
            "best_constant": ((), result.best_constant),
            "knot_time": (("knot",), result.times),
            "knot_rate": (("knot",), result.rates),
            "evaluations": ((), result.evaluations),
        },
        {"time": ("time", np.array([result.time]))},
        {"theory": result.theory, "vary": result.vary},
    )
