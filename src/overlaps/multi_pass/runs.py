"""Training runs through a fixed training set: each step draws rows of it, test rows are only ever tested on."""

from __future__ import annotations

from ..online.micro import Weights
from ..problem.start import Start
from ..problem.statement import Problem
from .training_set import training_set


class FixedRows(Weights):
    """One training run; its error is the mean loss over the test rows."""

    def __init__(self, problem: Problem, start: Start) -> None:
        super().__init__(problem, start)
        self.set = training_set(problem)
        self.sampler = self.sampler._replace(rows=self.set.rows, labels=self.set.targets)
        self.measures: tuple[str, ...] = ("error", "training_error")

    def measure(self, name: str) -> float:
        """The mean loss over the rows tested on, or trained on."""
        if name == "error":
            return self.mean_loss(self.set.test_rows, self.set.test_targets)
        return self.mean_loss(self.set.rows, self.set.targets)
