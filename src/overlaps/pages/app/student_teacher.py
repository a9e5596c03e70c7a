"""The room *explore*, what it computes: student and teacher on a power-law spectrum, at the three scales.

Theory (macro) is solved in the request itself if that takes half a second at most, and else like the chain of overlaps
(meso) and a training (micro): in a process of `jobs`.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ...algorithms import OnlineSGD, Schedule
from ...data import GaussianInputs, PowerLaw
from ...interface.errors import InputError, NumericalError, shown
from ...network.architectures import Committee
from ...problem.start import Start, draw
from ...problem.statement import Problem
from ...trajectory.dataset import Trajectory
from ...trajectory.scales import sample, solve, train
from ...trajectory.times import logtimes
from .choice import Choice

KNOTS = 50  # of a schedule that is drawn
COUNT, FIRST = 80, 0.1  # observed times: how many, and the first
SCALE = 0.5  # of the students' weights at the start
ACCURACY = 1e-4  # of theory
NAMED = 9  # overlaps that a legend names
AT_ONCE = 0.5  # seconds that theory may take in a request
LONG = 60.0  # and in a process
CHAIN = 6e7  # entries of overlaps that the chain may update, over all runs: some ten seconds
TRAINING = 2e10  # products of weights and inputs of a training: half a minute

_turn = threading.Lock()


@dataclass(frozen=True)
class Explored(Choice):
    """Spectrum, network, rate or schedule, size and time.

    `schedule` holds times and rates one after the other, as text: ``"0:0.5 10:0.1"``; empty for the constant `rate`.
    """

    ROOM: ClassVar[str] = "explore"
    LIMITS: ClassVar[Mapping[str, tuple[float, float]]] = {
        "levels": (1, 32),
        "exponent": (0.0, 3.0),
        "units": (1, 6),
        "rate": (0.01, 5.0),
        "last": (10.0, 10_000.0),
        "size": (50, 5000),
        "seed": (0, 99),
    }
    WORDS: ClassVar[Mapping[str, tuple[str, ...]]] = {"activation": ("erf", "relu", "linear")}
    TEXTS: ClassVar[Mapping[str, int]] = {"schedule": 1500}

    levels: int = 1
    exponent: float = 0.25
    units: int = 2
    activation: str = "erf"
    rate: float = 0.5
    schedule: str = ""
    last: float = 100.0
    size: int = 500
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.problem  # refused here, if at all

    @property
    def knots(self) -> list[tuple[float, float]]:
        """Times and rates of the schedule."""
        words = self.schedule.replace(",", " ").split()
        if len(words) > KNOTS:
            raise InputError(f"schedule: expected at most {KNOTS} knots, got {len(words)}")
        pairs = []
        for word in words:
            time, colon, rate = word.partition(":")
            try:
                pair = float(time), float(rate)
            except ValueError:
                raise InputError(f"schedule: expected time:rate, such as 10:0.1, got {shown(word)}") from None
            if not (colon and 0 <= pair[0] <= self.LIMITS["last"][1] and 0 <= pair[1] <= self.LIMITS["rate"][1]):
                raise InputError(f"schedule: {shown(word)} is beyond the largest time or rate, or below zero")
            pairs.append(pair)
        if len(pairs) == 1:
            raise InputError("schedule: expected two knots or more; a constant rate is set by its slider")
        return pairs

    @property
    def rates(self) -> tuple[list[float], list[float]]:
        """Times and rates, from the start to the last time."""
        knots = self.knots or [(0.0, self.rate)]
        if knots[0][0] > 0:
            knots = [(0.0, knots[0][1]), *knots]
        if knots[-1][0] < self.last:
            knots = [*knots, (self.last, knots[-1][1])]
        return [t for t, _ in knots], [r for _, r in knots]

    @property
    def problem(self) -> Problem:
        """The problem as Python states it."""
        net = Committee(units=self.units, activation=self.activation)
        times, rates = [t for t, _ in self.knots], [r for _, r in self.knots]
        return Problem(
            data=GaussianInputs(spectrum=PowerLaw(levels=self.levels, exponent=self.exponent)),
            teacher=net,
            student=net,
            algorithm=OnlineSGD(rate=Schedule(times, rates) if times else self.rate),
        )

    @property
    def chains(self) -> int:
        """Runs of the chain that some ten seconds allow, 2 to 20."""
        return int(min(max(CHAIN / (self.size * self.last * self.levels * self.units**2), 2), 20))

    def check_cost(self) -> None:
        """Refuse a training of minutes."""
        steps = self.size * self.last
        if steps * self.size * self.units > TRAINING or steps * self.levels * self.units**2 > CHAIN:
            raise InputError(
                f"size: {steps:.1e} steps take minutes here; use a smaller size or time, or the code below"
            )

    def code(self) -> str:
        times, rates = [t for t, _ in self.knots], [r for _, r in self.knots]
        rate = f"ov.Schedule({times}, {rates})" if times else f"{self.rate!r}"
        names = ""
        if self.units**2 <= NAMED:
            entries = [f"R[{i}, {k}]" for i in range(self.units) for k in range(self.units)]
            names = f"overlap.legend(overlap.lines[:{len(entries)}], {entries})\n"
        return f"""import matplotlib.pyplot as plt

import overlaps as ov

net = ov.Committee(units={self.units}, activation={self.activation!r})
problem = ov.Problem(
    data=ov.GaussianInputs(spectrum=ov.PowerLaw(levels={self.levels}, exponent={self.exponent!r})),
    teacher=net,
    student=net,
    algorithm=ov.OnlineSGD(rate={rate}),
)
start = ov.draw(problem, size={self.size}, seed={self.seed}, scale={SCALE})
times = ov.logtimes({FIRST}, {self.last!r}, {COUNT})
macro = ov.solve(problem, start, times, accuracy={ACCURACY})
meso = ov.sample(problem, start, times, runs={self.chains}, seed={self.seed})
micro = ov.train(problem, start, times, runs=1, seed={self.seed})

figure, (error, overlap, rate) = plt.subplots(3, figsize=(7, 11), layout="constrained")
for result in (macro, meso, micro):
    result.plot("error", ax=error)
    overlap.set_prop_cycle(None)  # entries have the same colours at all scales
    result.plot("R", ax=overlap)
error.legend()
{names}rate.plot({self.rates[0]}, {self.rates[1]})
rate.set(xlabel="time", ylabel="rate", xlim=(0, {self.last!r}), ylim=(0, None))
figure.savefig("overlaps.png")
"""


def begin(chosen: Explored) -> tuple[Problem, Start, NDArray[np.float64]]:
    """Problem, start and times."""
    problem = chosen.problem
    start = draw(problem, chosen.size, seed=chosen.seed, scale=SCALE)
    return problem, start, logtimes(FIRST, chosen.last, COUNT)


@lru_cache(maxsize=512)
def theory_at_once(chosen: Explored) -> Trajectory | None:
    """Macro, or None where it takes longer than a visitor who drags a slider would wait."""
    try:
        with _turn:  # one after the other: all at once they would take as long, and each too long
            return solve(*begin(chosen), accuracy=ACCURACY, max_seconds=AT_ONCE)
    except NumericalError as error:
        if "max_seconds" in str(error):
            return None
        raise


def theory(chosen: Explored) -> Trajectory:
    """Macro, in a process."""
    return solve(*begin(chosen), accuracy=ACCURACY, max_seconds=LONG)


def chain(chosen: Explored) -> Trajectory:
    """Meso: some runs of the chain of overlaps."""
    return sample(*begin(chosen), runs=chosen.chains, seed=chosen.seed)


def training(chosen: Explored) -> Trajectory:
    """Micro: one training."""
    return train(*begin(chosen), runs=1, seed=chosen.seed)


def knots_of(path: str, last: float) -> str:
    """A schedule from a path that was drawn in a picture (SVG), as text; parts that go back in time are left out."""
    pairs: list[tuple[float, float]] = []
    most = Explored.LIMITS["rate"][1]
    for word in path.replace("Z", "").replace("M", "L").split("L")[1:]:
        x, y = (float(part) for part in word.split(","))
        if not pairs or x > pairs[-1][0]:
            pairs.append((min(max(x, 0.0), last), min(max(y, 1e-4), most)))
    some = pairs[:: max(len(pairs) // 20, 1)]
    if len(some) < 2:
        return ""
    some[0] = (0.0, some[0][1])
    return " ".join(f"{t:.4g}:{r:.4g}" for t, r in {round(t, 3): r for t, r in some}.items())
