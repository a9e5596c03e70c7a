"""Refine a solution until its stated errors are as small as was asked.

An engine offers ever finer solutions, each with an error e_n(t) for every variable n. What such a solution has reached
is its largest error relative to the largest value of the variable,

    r = max_n max_t e_n(t) / s_n,        s_n = max(max |x_n|, 10⁻³),

and the first with r at most what is aimed at is the answer. If there is none the finest is accepted up to a larger r,
where no accuracy was named; otherwise it is part of a `NumericalError` that says what was reached.

>>> Goal.named(1e-7, aim=1e-9, accept=1e-6)
Goal(aim=1e-07, accept=1e-07)
>>> Goal.named(None, aim=1e-9, accept=1e-6)
Goal(aim=1e-09, accept=1e-06)

What all these solutions together may cost is a `Budget`: seconds, and evaluations of the right-hand side.

>>> budget = Budget(seconds=60.0, evaluations=100)
>>> budget.spend(80), budget.exhausted
(None, '')
>>> budget.spend(30), budget.exhausted
(None, '110 evaluations did not suffice (max_evaluations=100)')
"""

from __future__ import annotations

import time as clock
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..interface.checks import number, whole
from ..interface.errors import NumericalError
from ..interface.progress import Course
from .dataset import Trajectory

Array = NDArray[np.float64]
SMALLEST = 1e-3  # what a variable is at least taken as, for a relative error
SECONDS = 600.0  # of a solution, where the user names none
ROUNDING = 1e-14  # of a size: no smaller error is stated


class Goal(NamedTuple):
    """Relative accuracy to refine to, and the one to accept where refining has come to its end."""

    aim: float
    accept: float

    @classmethod
    def named(cls, accuracy: float | None, *, aim: float, accept: float) -> Goal:
        """Both are the accuracy that a user names; without one, the two given here."""
        if accuracy is None:
            return cls(aim, max(aim, accept))
        return cls(number("accuracy", accuracy, above=0), accuracy)


class Budget:
    """Counts what a solution has cost since this was made, and shows how far it is (`course`)."""

    def __init__(self, seconds: float | None = None, evaluations: int | None = None) -> None:
        self.seconds = SECONDS if seconds is None else number("max_seconds", seconds, above=0)
        self.evaluations = None if evaluations is None else whole("max_evaluations", evaluations, least=1)
        self.began, self.spent = clock.perf_counter(), 0
        self.course = Course("macro")

    @property
    def elapsed(self) -> float:
        """Seconds so far."""
        return clock.perf_counter() - self.began

    def at_most(self, evaluations: int) -> None:
        """What an engine allows where the user has named no number of evaluations."""
        if self.evaluations is None:
            self.evaluations = evaluations

    def spend(self, evaluations: int) -> None:
        """Count evaluations."""
        self.spent += evaluations

    @property
    def left(self) -> int:
        """Evaluations that are left."""
        return 2**62 if self.evaluations is None else self.evaluations - self.spent

    @property
    def exhausted(self) -> str:
        """Why a solution has to stop here; empty where it need not."""
        if self.evaluations is not None and self.spent > self.evaluations:
            return f"{self.spent} evaluations did not suffice (max_evaluations={self.evaluations})"
        if self.elapsed > self.seconds:
            return f"{self.elapsed:.3g} seconds did not suffice (max_seconds={self.seconds:g})"
        return ""


def largest_values(result: Trajectory) -> dict[str, float]:
    """What an error of each variable is relative to."""
    return {name: max(float(np.abs(result.data[name]).max()), SMALLEST) for name in result.variables}


def differences(one: Trajectory, other: Trajectory) -> dict[str, Array]:
    """Largest difference of each variable of two solutions at each time."""
    return {
        name: np.abs(one.data[name].values[0] - other.data[name].values[0]).reshape(one.time.size, -1).max(1)
        for name in one.variables
    }


@dataclass(frozen=True)
class Stated:
    """A solution, and what is known of its errors.

    errors: of each variable, at every time (times,) or altogether (1,).
    sizes: what they are relative to.
    """

    result: Trajectory
    errors: Mapping[str, Array]
    sizes: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.sizes:
            object.__setattr__(self, "sizes", largest_values(self.result))

    @property
    def worst(self) -> str:
        """The variable whose relative error is largest."""
        return max(self.sizes, key=self.relative)

    @property
    def reached(self) -> float:
        """The largest relative error."""
        return self.relative(self.worst)

    @property
    def when(self) -> float:
        """The time at which it occurs."""
        errors = self.errors[self.worst]
        return float(self.result.time[int(np.argmax(errors)) if errors.size > 1 else -1])

    def relative(self, name: str) -> float:
        """Error of a variable, relative to its size; infinite where it is not a number."""
        ratio = float(np.max(self.errors[name])) / self.sizes[name]
        return ratio if np.isfinite(ratio) else np.inf

    def labelled(self) -> Trajectory:
        """The solution with `accuracy` among the attributes of each variable."""
        for name, errors in self.errors.items():
            size = max(float(np.abs(self.result.data[name]).max()), SMALLEST)
            self.result.data[name].attrs["accuracy"] = max(float(np.max(errors)), ROUNDING * size)
        return self.result


def told_apart(one: float, other: float) -> tuple[str, str]:
    """Two numbers in as few digits, two at least, as show that they differ.

    >>> told_apart(0.1033, 0.1), told_apart(0.25, 0.1)
    (('1.03e-01', '1.00e-01'), ('2.5e-01', '1.0e-01'))
    """
    digits = next((n for n in range(1, 17) if f"{one:.{n}e}" != f"{other:.{n}e}"), 17)
    return f"{one:.{digits}e}", f"{other:.{digits}e}"


def refined(attempts: Iterator[Stated], goal: Goal, budget: Budget) -> Trajectory:
    """The first of ever finer solutions that is accurate enough, or the last where that is accepted."""
    found: Stated | None = None
    spent = ""
    try:
        for found in attempts:
            if found.reached <= goal.aim:
                return found.labelled()
    except NumericalError:
        # a finer solution that runs out of time leaves the one before it, whose error is known
        spent = budget.exhausted
        if not spent or found is None:
            raise
    assert found is not None, "an engine offers at least one solution"
    result = found.labelled()
    if found.reached <= goal.accept:
        return result
    why = f"; {spent}" if spent else ""
    reached, asked = told_apart(found.reached, goal.accept)
    raise NumericalError(
        f"macro: {found.worst} reached a relative accuracy of {reached} where {asked} was asked "
        f"(worst at time {found.when:g}; averages: {result.data.attrs['averages']}{why}); pass "
        f"accuracy={found.reached * 1.5:.0e} to accept it",
        quantity=found.worst,
        time=found.when,
        partial=result,
    )
