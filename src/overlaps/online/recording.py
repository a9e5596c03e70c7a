"""What is recorded of one-pass runs, and when.

A value asked for between two steps is interpolated linearly between them, so that all scales share one time axis.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ..data.inputs import Shared
from ..problem.start import LIMIT, Start, joined

Array = NDArray[np.float64]
Steps = NDArray[np.int64]


class Recorded(NamedTuple):
    """Overlaps of a run at some steps: Q (steps, levels, K, K), A (steps, levels, K, M+P), v (steps, K).

    measured: further variables that runs measure themselves, (steps, …) each; the error is one of them unless it
        follows from the overlaps.
    covariances: of the fields in each component, (steps, components, K+M, K+M), where overlaps do not give them.
    """

    Q: Array
    A: Array
    v: Array
    measured: dict[str, Array] = {}  # noqa: RUF012 - of a named tuple, never written to
    covariances: Array | None = None

    @property
    def bounded(self) -> NDArray[np.bool_]:
        """For each step, whether all overlaps are below the limit (and not NaN)."""
        return (np.abs(self.Q).reshape(len(self.Q), -1).max(1) < LIMIT) & (np.abs(self.v).max(1) < LIMIT)


NEVER = np.zeros(1, np.bool_)  # `Run.stop` of runs that are not stopped


class Measure(NamedTuple):
    """Dimensions and shape of what a run measures at a step; of a number both are empty."""

    dims: tuple[str, ...] = ()
    shape: tuple[int, ...] = ()


class Observed(NamedTuple):
    """What runs observe besides overlaps: at which times, and the dimensions of each observed array."""

    times: Array
    dims: dict[str, tuple[str, ...]]


class Run(Protocol):
    """One run: it goes to given steps and records its overlaps there.

    chunk: about how many steps it takes between two reports of its progress.
    measures: the variables that it measures; an error that is not among them follows from the overlaps.
    observations: what it has observed besides, one set of arrays for each observed time so far.
    stop: (1,) set to true when the training is interrupted: the run then skips its remaining steps.
    """

    chunk: int
    measures: dict[str, Measure]
    observations: list[dict[str, Array]]
    stop: NDArray[np.bool_]

    def copy_with(self, rng: np.random.Generator) -> Run:
        """A copy of this run with random numbers of its own."""
        ...

    def record(self, steps: Steps) -> Recorded:
        """Go to each of these steps and record the overlaps there."""
        ...


class Stops(NamedTuple):
    """The steps that are recorded for some times, and how the values at those times follow.

    steps: (stops,) increasing.
    before: (times,) the place in `steps` of the last one not after each time.
    share: (times,) of the way from there to the next.
    """

    steps: Steps
    before: NDArray[np.int64]
    share: Array

    @classmethod
    def at(cls, times: Array, size: int) -> Stops:
        """For increasing times, in units of `size` steps."""
        exact = times * size
        floor = np.floor(exact + 1e-9).astype(np.int64)
        share = np.where(exact - floor > 1e-9, exact - floor, 0.0)
        steps = np.unique(np.concatenate([floor, floor[share > 0] + 1]))
        return cls(steps, np.searchsorted(steps, floor), share)

    @property
    def last(self) -> NDArray[np.int64]:
        """The place in `steps` of the last one that each time needs, (times,)."""
        return self.before + (self.share > 0)

    def interpolated(self, values: Array, count: int) -> Array:
        """Values (runs, times, …) at the first `count` times, of values (runs, stops, …)."""
        weight = self.share[:count].reshape(-1, *[1] * (values.ndim - 2))
        return (1 - weight) * values[:, self.before[:count]] + weight * values[:, self.last[:count]]

    def segments(self, chunk: int) -> list[tuple[Steps, slice]]:
        """Groups of stops about `chunk` steps long, with the places of the recorded ones; long gaps are broken up."""
        groups: list[tuple[Steps, slice]] = []
        done, first = 0, 0
        while first < self.steps.size:
            while self.steps[first] - done > chunk:
                done += chunk
                groups.append((np.array([done], np.int64), slice(0, 0)))
            last = int(np.searchsorted(self.steps, max(done + chunk, self.steps[first]), side="right"))
            groups.append((self.steps[first:last], slice(first, last)))
            done, first = int(self.steps[last - 1]), last
        return groups


class Records:
    """Overlaps of all runs at all stops: of the fields, on request of every level, and what runs measured.

    What has not been recorded is NaN.
    """

    def __init__(
        self, start: Start, runs: int, stops: int, levels: bool, measured: dict[str, Measure], data: Shared
    ) -> None:
        (B, K, F), M = start.A.shape, start.u.size
        self.T = start.T
        # components whose covariances are no multiples of each other have fields of their own
        self.by_level: Array | None = None
        self.covariances: Array | None = None
        if not data.one_covariance:
            self.by_level = data.component_eigenvalues if data.commuting else None  # type: ignore[attr-defined]
            P = data.components.weights.size  # type: ignore[attr-defined]
            self.covariances = np.full((runs, stops, P, K + M, K + M), np.nan)
        self.omega, self.teacher_weights = start.eigenvalues, start.seen
        self.Q, self.R, self.m = (np.full((runs, stops, K, n), np.nan) for n in (K, M, F - M))
        self.v = np.full((runs, stops, K), np.nan)
        self.measured = {name: np.full((runs, stops, *of.shape), np.nan) for name, of in measured.items()}
        self.Q_levels = np.full((runs, stops, B, K, K), np.nan) if levels else None
        self.A_levels = np.full((runs, stops, B, K, F), np.nan) if levels else None

    def write(self, run: int, first: int, recorded: Recorded, count: int) -> None:
        """Keep the first `count` steps of what a run has recorded, from place `first` on."""
        at, M = slice(first, first + count), self.R.shape[-1]
        self.Q[run, at] = np.einsum("b,tbij->tij", self.omega, recorded.Q[:count])
        self.R[run, at] = np.einsum("b,tbij->tij", self.teacher_weights, recorded.A[:count, :, :, :M])
        self.m[run, at] = recorded.A[:count, :, :, M:].sum(1)
        self.v[run, at] = recorded.v[:count]
        if self.covariances is not None:
            found = recorded.covariances
            if found is None:
                assert self.by_level is not None
                gram = joined(recorded.Q, recorded.A[..., :M], self.T)
                found = np.einsum("cb,tbij->tcij", self.by_level, gram)
            self.covariances[run, at] = found[:count]
        for name, values in self.measured.items():
            values[run, at] = recorded.measured[name][:count]
        if self.Q_levels is not None and self.A_levels is not None:
            self.Q_levels[run, at], self.A_levels[run, at] = recorded.Q[:count], recorded.A[:count]

    @property
    def _arrays(self) -> dict[str, Array]:
        levels = {"Q_levels": self.Q_levels, "A_levels": self.A_levels}
        arrays = {"Q": self.Q, "R": self.R, "m": self.m, "v": self.v, **self.measured}
        own = {"covariances": self.covariances, **levels}
        return {**arrays, **{name: values for name, values in own.items() if values is not None}}

    def row(self, run: int) -> dict[str, Array]:
        """Everything that a run has recorded."""
        return {name: values[run] for name, values in self._arrays.items()}

    def restore(self, run: int, row: dict[str, Array]) -> None:
        """Record what `row` has given."""
        for name, values in self._arrays.items():
            values[run] = row[name]

    @property
    def finished(self) -> int:
        """The number of stops that all runs have recorded."""
        recorded: NDArray[np.bool_] = np.isfinite(self.v).min(axis=(0, 2))
        return recorded.size if recorded.all() else int(recorded.argmin())
