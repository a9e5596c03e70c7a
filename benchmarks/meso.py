"""Meso: its cost against the size, the number of levels, and micro."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numba import njit

import overlaps as ov
from overlaps.online.meso import Chain

from .micro import runner
from .problems import committee, generator
from .table import Row, at_least, at_most, duration, share, times
from .timing import race


@njit
def draw_chain(levels: int, width: int, rest: float, steps: int, rng: np.random.Generator) -> float:
    """Nothing but the random numbers of a chain: `width` normals and one gamma variable a level and step."""
    total = 0.0  # pragma: no cover - compiled
    for _ in range(steps):
        for _ in range(levels):
            for _ in range(width):
                total += rng.standard_normal()
            total += rng.standard_gamma(0.5 * rest)
    return total


def chain(problem: ov.Problem, start: ov.Start, steps: int) -> Callable[[], object]:
    """A run of the chain of `steps` steps from `start`."""
    first, stops = Chain(problem, start), np.array([steps])
    return lambda: first.copy_with(generator()).record(stops)


def sizes(quick: bool = False) -> list[Row]:
    """The cost of a step does not depend on the size, and is a small part of micro's."""
    steps, repeats = (500, 1) if quick else (100_000, 15)
    problem = committee()
    start = ov.draw(problem, 1000, scale=0.1)
    result = race(
        {
            "small": (chain(problem, start, steps), steps),
            "large": (chain(problem, start.at_size(problem, 10**7), steps), steps),
            "micro": (runner(problem, start, steps // 50), steps // 50),
            "draws": (lambda: draw_chain(1, 4, 996.0, steps, generator()), steps),
        },
        repeats,
    )
    small, large = duration(result.cost("small")), duration(result.cost("large"))
    micro = duration(result.cost("micro"))
    return [
        at_most(
            "meso: step at N = 10⁷ / at N = 10³",
            result.ratio("large", "small"),
            1.3,
            f"{large} and {small}: the cost of the exact finite-size law does not depend on the size.",
        ),
        at_least(
            "micro / meso, N = 1000, K = M = 2",
            result.ratio("micro", "small"),
            15,
            f"A step costs {small} instead of {micro}, for a run of the same law.",
        ),
        Row(
            "meso: share spent drawing, N = 1000",
            share(result.ratio("draws", "small")),
            "4 normals and a gamma variable a step; the rest is the gradient and the rotations.",
        ),
    ]


def algorithms(quick: bool = False) -> list[Row]:
    """What batches and momentum cost: the chain draws K new directions a step, whatever the batch."""
    steps, repeats, batch = (200, 1, 8) if quick else (20_000, 7, 64)
    plain = committee()
    start = ov.draw(plain, 1000, scale=0.1)

    def by(**options: float) -> ov.Problem:
        return replace(plain, algorithm=ov.OnlineSGD(0.1, **options))

    result = race(
        {
            "plain": (chain(by(), start, steps), steps),
            "momentum": (chain(by(momentum=0.9), start, steps), steps),
            "batch": (chain(by(batch=batch), start, steps), steps),
            "micro": (runner(by(batch=batch), start, max(1, steps // 1000)), max(1, steps // 1000)),
        },
        repeats,
    )
    return [
        Row(
            "meso: step with momentum 0.9 / plain step",
            times(result.ratio("momentum", "plain")),
            f"{duration(result.cost('momentum'))} and {duration(result.cost('plain'))}: the rows are weights and "
            "velocities.",
        ),
        Row(
            f"micro / meso with batches of {batch}, N = 1000, K = M = 2",
            times(result.ratio("micro", "batch")),
            f"A step costs {duration(result.cost('batch'))} instead of {duration(result.cost('micro'))}.",
        ),
    ]


def levels(quick: bool = False) -> list[Row]:
    """The cost of a step against the number of levels."""
    steps, repeats = (200, 1) if quick else (200_000, 7)
    counts = (1, 10, 100)
    problems = {count: committee(levels=count) for count in counts}
    starts = {count: ov.draw(problems[count], 10_000, scale=0.1) for count in counts}
    sides = {str(c): (chain(problems[c], starts[c], steps // c), steps // c) for c in counts}
    result = race(sides, repeats)
    costs = ", ".join(f"L = {c}: {duration(result.cost(str(c)))}" for c in counts)
    per_level = result.cost("100") / 100
    return [
        Row(
            "meso: step with L levels",
            costs,
            f"A level costs {duration(per_level)}: linear in the levels, whatever the size.",
        )
    ]


def full_run(quick: bool = False) -> list[Row]:
    """A whole run at a size where micro is out of reach."""
    size = 1000 if quick else 10**6
    end, steps = 10.0, 2 if quick else 8
    problem = committee()
    start = ov.draw(problem, size, scale=0.1)
    grid = ov.logtimes(0.01, end, 50)
    result = race(
        {
            "meso": (lambda: ov.sample(problem, start, grid, runs=1, progress=False), 1),
            "micro": (runner(problem, start, steps), steps),
        },
        repeats=1 if quick else 3,
    )
    total = result.cost("micro") * end * size
    return [
        Row(
            f"micro (estimated) / meso, whole run at N = {size:,} to time {end:g}",
            times(total / result.cost("meso")),
            f"{end * size:,.0f} steps take meso {duration(result.cost('meso'))}, recording 50 times; micro, at "
            f"{duration(result.cost('micro'))} a step as measured, would take {total / 3600:.2g} hours.",
        )
    ]
