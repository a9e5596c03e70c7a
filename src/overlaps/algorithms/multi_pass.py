"""SGD with many passes over a fixed training set: every step draws its rows from the same n, with replacement.

    w ← w − (η/√N) ⟨δ xᵀ⟩ + …,        x, y one of n rows, each equally likely

is a step of `OnlineSGD` whose population is the training set. Time is steps per input dimension, as there; an epoch is
n samples, so that time t with batches of b is b N t/n epochs. The rows are the first n of all rows of a data set after
a shuffle of a given seed; those that are left test what was learned. Labels that are classes have their shares in both
(`overlaps.data.splits`).

>>> from overlaps import MultiPass
>>> MultiPass(rate=0.1, samples=1000, batch=4).epochs(5.0, size=50)
1.0
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..interface.checks import whole
from ..interface.errors import InputError
from .online_sgd import OnlineSGD
from .schedules import TimeDependent
from .update import Update


@dataclass(frozen=True)
class MultiPass:
    """SGD on a fixed training set, for labelled `Samples`.

    Parameters
    ----------
    rate: η, learning rate: a number, or a schedule.
    samples: n, rows of the training set; all others test what was learned.
    batch: b, rows a step, drawn with replacement.
    decay, momentum, memory: as in `OnlineSGD`.
    shuffle: seed of the order of all rows, the first n of which are the training set.
    """

    rate: float | TimeDependent
    samples: int
    batch: int = 1
    decay: float = 0.0
    momentum: float = 0.0
    memory: float | None = None
    shuffle: int = 0

    engine: ClassVar[tuple[str, str, str]] = (
        "online.multi_pass.engine",
        "online.multi_pass.engine",
        "online.multi_pass.engine",
    )
    draws_samples: ClassVar[bool] = True
    readout_rate: ClassVar[None] = None
    times_are_steps: ClassVar[bool] = False
    plain: ClassVar[bool] = False  # closed forms are for one-pass training

    def __post_init__(self) -> None:
        for name in ("rate", "batch", "decay", "momentum", "memory"):
            object.__setattr__(self, name, getattr(self.one_pass, name))  # as it checks them
        object.__setattr__(self, "samples", whole("samples", self.samples, least=2))
        object.__setattr__(self, "shuffle", whole("shuffle", self.shuffle, least=0))

    @cached_property
    def one_pass(self) -> OnlineSGD:
        """The same steps on fresh samples."""
        return OnlineSGD(self.rate, decay=self.decay, batch=self.batch, momentum=self.momentum, memory=self.memory)

    def check_problem(self, data: Any, trains_readout: bool) -> None:
        """Refuse inputs that are not rows with labels."""
        if not (data.labelled and data.table is not None):
            raise InputError(
                f"algorithm: MultiPass goes through labelled rows again and again, got {type(data).__name__}"
                f"{' without labels' * (data.table is not None)}; use Samples(X, y), or OnlineSGD or FullBatch"
            )

    def extent(self, size: int, first: float, last: float) -> tuple[int, str]:
        """Steps of a run to the time `last` at a size, and in words what is recorded."""
        return self.one_pass.extent(size, first, last)

    def step_samples(self, size: int) -> int:
        """Samples that a step of a run reads, at any size."""
        return self.batch

    def update(self, trains_readout: bool) -> Update:
        """The step of both layers."""
        return self.one_pass.update(trains_readout)

    def epochs(self, times: NDArray[np.float64] | float, size: int) -> NDArray[np.float64] | float:
        """How often the training set has been gone through by times."""
        return self.batch * size * times / self.samples


def examples() -> tuple[MultiPass, ...]:
    """Single rows, and every other part of a step."""
    from .schedules import Schedule

    return (
        MultiPass(rate=0.2, samples=150),
        MultiPass(rate=Schedule([0.0, 2.0], [0.4, 0.1]), samples=200, batch=4, decay=0.1, momentum=0.5, shuffle=3),
        MultiPass(rate=0.3, samples=100, memory=1.0),
    )


ALGORITHM = MultiPass
REFUSED = (
    {"rate": 0.0, "samples": 10},
    {"samples": 1, "rate": 0.1},
    {"batch": 0, "rate": 0.1, "samples": 10},
    {"decay": -1.0, "rate": 0.1, "samples": 10},
    {"momentum": 1.0, "rate": 0.1, "samples": 10},
    {"shuffle": -1, "rate": 0.1, "samples": 10},
)
