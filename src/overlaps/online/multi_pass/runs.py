"""Training runs through a fixed training set: each step draws rows of it, and test rows are never trained on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...problem.start import Start
from ...problem.statement import Problem
from ..micro import Weights
from ..recording import Measure
from .training_set import training_set

Array = NDArray[np.float64]


class FixedRows(Weights):
    """One training run; its error is the mean loss over the test rows."""

    def __init__(self, problem: Problem, start: Start) -> None:
        super().__init__(problem, start)
        self.set = training_set(problem)
        self.sampler = self.sampler._replace(rows=self.set.rows, labels=self.set.targets)
        self.measures["training_error"] = Measure()

    @property
    def tested(self) -> tuple[Array, NDArray[Any]]:
        """The rows that training leaves out, and their targets."""
        return self.set.test_rows, self.set.test_targets

    def measure(self) -> dict[str, float | Array]:
        """As in one pass, and the mean loss over the rows trained on."""
        return {**super().measure(), "training_error": self.mean_loss(self.set.rows, self.set.targets)}
