"""What a solution may cost: seconds, and evaluations of its right-hand side.

>>> budget = Budget(seconds=60.0, evaluations=100)
>>> budget.spend(80), budget.exhausted
(None, '')
>>> budget.spend(30), budget.exhausted
(None, '110 evaluations did not suffice (max_evaluations=100)')
"""

from __future__ import annotations

import time as clock

from ..interface.checks import number, whole
from ..interface.progress import Course

SECONDS = 600.0  # of a solution, where the user names none


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
