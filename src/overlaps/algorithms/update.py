"""One step of training as a value, which all scales read.

Rows r hold the weights of a unit and whatever the algorithm remembers of it: its weights alone, or weights and
velocity. With the gradient g = (1/√N) ⟨δ xᵀ⟩ of a batch of b fresh samples (of a readout: ⟨∂loss/∂v⟩/N) one step is

    r ← L(η) r − p(η) g

with a matrix L (J, J) and a vector p (J,) that depend on the rate η = η(t) at the time t = steps/N, the decay and the
size. Both layers are moved by the same L and p, each with its own rate. As N → ∞

    dr/dt = M(η) r − P(η) E[δ xᵀ],    M = lim N (L − 1),  P = lim p,    and noise of covariance P S Pᵀ/b.

A new one-pass algorithm states L, p and their limit; micro, meso and macro follow.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ..interface.checks import steps
from ..interface.errors import InputError
from .schedules import Constant, TimeDependent

Array = NDArray[np.float64]


class Matrices(NamedTuple):
    """L and p of consecutive steps, for the first layer and for the readout.

    keep, keep_readout: (steps, J, J).
    pull, pull_readout: (steps, J).
    """

    keep: Array
    pull: Array
    keep_readout: Array
    pull_readout: Array


class Flow(NamedTuple):
    """M and P at one time, for the first layer and for the readout: (J, J), (J,), (J, J), (J,)."""

    M: Array
    P: Array
    M_readout: Array
    P_readout: Array


class Rule(Protocol):
    """What a one-pass algorithm states of itself; it is a value, a frozen dataclass that can be hashed.

    rows: J of a step at finite size; limit_rows: J of its limit, which may remember less.
    """

    @property
    def rows(self) -> int: ...

    @property
    def limit_rows(self) -> int: ...

    def step(self, rate: Array, size: int) -> tuple[Array, Array]:
        """L (steps, J, J) and p (steps, J) for the rates (steps,) at a size."""
        ...

    def limit(self, rate: float) -> tuple[Array, Array]:
        """M (J, J) and P (J,) for a rate."""
        ...


class OnePass:
    """What one-pass algorithms answer alike: who computes them, what they take, and how their time is counted.

    engine: modules of the three scales, macro, meso, micro.
    draws_samples: whether steps are of random samples, so that there are runs to take.
    times_are_steps: whether times of a trajectory are whole steps, all by default; otherwise they are steps per input
        dimension.
    """

    engine = ("online.macro", "online.meso", "online.micro")
    draws_samples = True
    times_are_steps = False

    def check_problem(self, data: Any, trains_readout: bool) -> None:
        """Refuse inputs, or a student, that the algorithm does not take; here there are none."""

    def extent(self, size: int, first: float, last: float) -> tuple[int, str]:
        """Steps of a run to the time `last` at a size, and in words what is recorded."""
        return steps(last, size), f"times {first:g} to {last:g}"

    def step_samples(self, size: int) -> int:
        """Samples that a step of a run reads at a size."""
        return self.update(False).batch

    def update(self, trains_readout: bool) -> Update:
        """The step of both layers."""
        raise NotImplementedError


@dataclass(frozen=True)
class Update:
    """The step of a problem: its rule with the rates of both layers.

    Attributes
    ----------
    rule: L, p, M and P.
    rate, readout_rate: schedules; that of the readout is None where it is not trained.
    batch: b, fresh samples a step.
    noise: 1/b, or zero where no sample is drawn.
    """

    rule: Rule
    rate: TimeDependent
    readout_rate: TimeDependent | None
    batch: int = 1
    noise: float = 1.0

    @property
    def knots(self) -> Array:
        """Times at which a rate is not smooth, in order."""
        readout = () if self.readout_rate is None else self.readout_rate.knots
        return np.unique(np.array([*self.rate.knots, *readout], float))

    @cached_property
    def changes(self) -> bool:
        """Whether a rate depends on time."""
        return not all(isinstance(s, Constant) for s in (self.rate, self.readout_rate) if s is not None)

    def steps(self, first: int, count: int, size: int) -> Matrices:
        """L and p of `count` steps from step `first` on."""
        return self._steps(first, count, size) if self.changes else _constant_steps(self, count, size)

    def _steps(self, first: int, count: int, size: int) -> Matrices:
        times = np.arange(first, first + count) / size
        keep, pull = self.rule.step(_rates(self.rate, times), size)
        if self.readout_rate is None:
            J = self.rule.rows
            still = np.broadcast_to(np.eye(J), (count, J, J))
            return Matrices(keep, pull, np.ascontiguousarray(still), np.zeros((count, J)))
        return Matrices(keep, pull, *self.rule.step(_rates(self.readout_rate, times), size))

    def step_at(self, t: float, size: int, until: float = np.inf) -> tuple[Array, Array]:
        """L (J, J) and p (J,) of the first layer at any time, also between two steps; `until` is the next knot."""
        keep, pull = self.rule.step(np.array([_at(self.rate, t, until)]), size)
        return keep[0], pull[0]

    def flow(self, t: float, until: float = np.inf) -> Flow:
        """M and P at a time of a stretch that ends at the knot `until`, where the rates are those before the knot."""
        M, P = self.rule.limit(_at(self.rate, t, until))
        J = self.rule.limit_rows
        if self.readout_rate is None:
            return Flow(M, P, np.zeros((J, J)), np.zeros(J))
        return Flow(M, P, *self.rule.limit(_at(self.readout_rate, t, until)))


def _rates(rate: TimeDependent, times: Array) -> Array:
    """The rates at times; refused where one is negative or not finite."""
    found = rate.at(times)
    wrong = np.flatnonzero(~((found >= 0) & np.isfinite(found)))
    if wrong.size:
        raise InputError(
            f"rate: expected rates of at least 0 at all times, {rate!r:.80} has {found[wrong[0]]:g} at time "
            f"{times[wrong[0]]:g}"
        )
    return found


def _at(rate: TimeDependent, t: float, until: float) -> float:
    """The rate at a time, from the knot `until` on that before it; refused where it is negative or not finite."""
    found = rate.before(until) if t >= until else float(rate(t))
    if not 0 <= found < np.inf:
        raise InputError(f"rate: expected rates of at least 0 at all times, {rate!r:.80} has {found:g} at time {t:g}")
    return found


@lru_cache(maxsize=8)
def _constant_steps(update: Update, count: int, size: int) -> Matrices:
    """Those of rates that do not change, made once for stretches of the same length."""
    return update._steps(0, count, size)
