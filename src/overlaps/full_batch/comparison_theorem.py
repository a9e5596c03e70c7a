"""Is the comparison theorem true as it is computed here? The alternative process ψ against the perturbed process φ′.

Both are drawn many times, and some entries of their answers (Q, P) are compared by exact relabelling (`relabelled` of
`overlaps.trajectory.points`): features of the entries, standardised over both samples together, are the entries x, all
products of two, x³, cos x and some products of three. Runs are gathered in equal bundles, over which features are
averaged; bundles are exchangeable if the laws are equal, so the level stays exact and relabelling is cheap.

A test that passes says little unless it could have failed: the control is ψ with another z (z = 0, or z = 1 if z is 0
to begin with), which must be rejected.

>>> import overlaps as ov
>>> from overlaps.full_batch.comparison_theorem import check_theorem
>>> problem = ov.Problem(
...     data=ov.GaussianMixture(gram=[[0.5]]),
...     student=ov.Committee(1, "erf"),
...     algorithm=ov.FullBatch(steps=1, rate=0.5),
... )
>>> start = ov.Start.from_weights(problem, student=[[1.0, 0.5]])
>>> check_theorem(problem, start, sigma=0.5, z=1.0).verdict
'holds in law'
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, combinations_with_replacement

import numpy as np
from numpy.typing import NDArray

from ..interface.checks import checked, number, whole
from ..interface.errors import InputError, NumericalError
from ..problem.start import Start, check
from ..problem.statement import Problem
from ..trajectory.points import relabelled
from .comparison_processes import Alternative, Perturbed, constants, numbers
from .data_matrices import DataMatrix
from .descent import descend
from .repeated_runs import STREAMS, bundle_sizes, task_at_size
from .task import FullBatchTask

Array = NDArray[np.float64]
COORDINATES = 12  # entries of the answers that are compared
TRIPLES = 40  # products of three of them
GROUPS = 200  # averages of runs on each side


@dataclass(frozen=True)
class Theorem:
    """The outcome of a test of the comparison theorem.

    Attributes
    ----------
    verdict: ``"holds in law"``; ``"fails"``, if the laws differ; ``"underpowered"``, if they do not, but those of the
        control do not either.
    p, largest_z: of the test: chance of a deviation as large as the largest, and that deviation in standard errors.
    worst: the feature that deviates most.
    control_p, control_z: the same of the control, ψ at z = `control`.
    features, coordinates: how many were compared, and of how many entries of the answers.
    """

    verdict: str
    p: float
    largest_z: float
    worst: str
    control: float
    control_p: float
    control_z: float
    sigma: float
    z: float
    runs: int
    features: int
    coordinates: int
    size: int
    samples: int

    def __repr__(self) -> str:
        return (
            f"{self.verdict}: ψ against φ′ at σ = {self.sigma:g}, z = {self.z:g} (N = {self.size}, m = {self.samples}, "
            f"{self.runs} runs each, {self.features} features of {self.coordinates} entries)\n"
            f"  largest |z-score| {self.largest_z:.1f} at {self.worst}, corrected p = {self.p:.2g}\n"
            f"  control, ψ with z = {self.control:g}: largest |z-score| {self.control_z:.1f}, "
            f"corrected p = {self.control_p:.2g}"
        )


@checked
def check_theorem(
    problem: Problem, start: Start, *, sigma: float, z: float, runs: int = 20000, seed: int = 0, level: float = 1e-3
) -> Theorem:
    """Test that ψ and φ′ are equal in law at the size of `start`, and that another ψ would not have passed.

    Small sizes (a few dimensions, samples and steps) show the most: the terms by which the processes differ are of
    relative size 1/√m.

    Parameters
    ----------
    problem, start: a problem with `FullBatch` and a start with weights.
    sigma, z: constants of the processes, sigma above zero.
    runs: of each process.
    level: chance of calling the theorem wrong although it holds.
    """
    check(problem, start)
    sigma, z = constants(number("sigma", sigma, above=0), z)
    level = number("level", level, above=0)
    if level >= 1:
        raise InputError(f"level: expected a chance below one, got {level:g}")
    runs, seed = whole("runs", runs, least=20, most=10**7), whole("seed", seed, least=0)
    task = task_at_size(problem, start, "alternative")
    names = _entries(task)
    chosen = np.sort(np.random.default_rng(seed).permutation(len(names))[:COORDINATES])
    control = 0.0 if z else 1.0
    draws = [
        _draw(kind, task, runs, [seed, i, STREAMS[scale]], sigma, own, chosen)
        for i, (kind, scale, own) in enumerate(
            [(Perturbed, "perturbed", z), (Alternative, "alternative", z), (Alternative, "alternative", control)]
        )
    ]
    labels = [names[i] for i in chosen]
    p, largest, worst, features = _compare(draws[1], draws[0], labels, level, seed)
    control_p, control_z, _, _ = _compare(draws[2], draws[0], labels, level, seed)
    verdict = "fails" if p < level else "holds in law" if control_p < level else "underpowered"
    assert start.size is not None
    return Theorem(
        verdict, p, largest, worst, control, control_p, control_z, sigma, z, runs, features, len(chosen), start.size,
        task.samples,
    )  # fmt: skip


class _RecordedProcess:
    """A process whose answers are kept."""

    def __init__(self, matrix: DataMatrix) -> None:
        self.matrix = matrix
        self.answers: list[Array] = []

    def fields(self, theta: Array) -> Array:
        self.answers.append(self.matrix.fields(theta))
        return self.answers[-1]

    def gradient(self, omega: Array) -> Array:
        self.answers.append(self.matrix.gradient(omega))
        return self.answers[-1]


def _entries(task: FullBatchTask) -> list[str]:
    """Names of all entries of the answers, in the order in which they are given."""
    assert task.start.size is not None
    names: list[str] = []
    for step in range(-1, task.T):
        width = task.M if step < 0 else task.K
        when = "teacher" if step < 0 else f"step {step}"
        for letter, length in (("p", task.samples), ("q", task.start.size)):
            names += [f"{letter}[{i}, {k}] of {when}" for i in range(length) for k in range(width)]
    return names


def _draw(
    kind: type[Alternative] | type[Perturbed], task: FullBatchTask, runs: int, seed: list[int], sigma: float, z: float,
    chosen: NDArray[np.int64],
) -> Array:  # fmt: skip
    """Some entries of the answers of a process, (runs, chosen)."""
    rng = np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed)))
    parts: list[Array] = []
    for count in bundle_sizes(runs, numbers(kind, task)):
        process = _RecordedProcess(kind(task, count, rng, sigma, z))
        with np.errstate(over="ignore", invalid="ignore"):
            done = descend(task, process, count, rng)
        if done.stopped is not None:
            raise done.stopped
        if done.loss.shape[1] < task.T:
            raise NumericalError(
                f"check_theorem: training diverged at step {done.loss.shape[1]}: an overlap Q reached "
                f"{done.largest:.3g}; reduce rate (now {task.algorithm.rate_text}), sigma or z",
                quantity="Q",
                time=float(done.loss.shape[1]),
            )
        parts.append(np.concatenate([a.reshape(count, -1) for a in process.answers], axis=1)[:, chosen])
    return np.concatenate(parts)


def _compare(a: Array, b: Array, labels: list[str], level: float, seed: int) -> tuple[float, float, str, int]:
    """Corrected p of the largest deviation between two samples (runs, coordinates), its z-score, its name; features."""
    pooled = np.concatenate([a, b])
    x = (pooled - pooled.mean(0)) / np.where(pooled.std(0) > 0, pooled.std(0), 1.0)
    columns, names = _features(x, labels, seed)
    n = len(a)
    each = max(1, n // GROUPS)
    grouped = [side[: n // each * each].reshape(-1, each, columns.shape[1]).mean(1) for side in np.split(columns, [n])]
    p, _ = relabelled(grouped[0], grouped[1], level, seed, repeats=int(min(100_000, max(2000, 20 / level))))
    spread = np.sqrt(sum(side.var(0, ddof=1) / len(side) for side in grouped))
    difference = grouped[0].mean(0) - grouped[1].mean(0)
    scores = np.abs(difference) / np.where(spread > 0, spread, 1.0)
    at = int(scores.argmax())
    return float(p.min()), float(scores[at]), names[at], columns.shape[1]


def _features(x: Array, labels: list[str], seed: int) -> tuple[Array, list[str]]:
    """Features of standardised coordinates x (runs, coordinates), and their names."""
    n = x.shape[1]
    pairs = list(combinations_with_replacement(range(n), 2))
    triples = list(combinations(range(n), 3))
    some = np.random.default_rng(seed).permutation(len(triples))[:TRIPLES]
    groups = [(i,) for i in range(n)] + pairs + [(i, i, i) for i in range(n)] + [triples[i] for i in some]
    columns = [np.prod(x[:, list(group)], axis=1) for group in groups] + [np.cos(x[:, i]) for i in range(n)]
    names = [" · ".join(labels[i] for i in group) for group in groups] + [f"cos {label}" for label in labels]
    return np.stack(columns, axis=1), names
