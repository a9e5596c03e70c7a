"""Mixtures: softmax regression on ten classes at the three scales, and the diffusion."""

from __future__ import annotations

import numpy as np

import overlaps as ov
from overlaps.online.diffusion import Diffusion

from .meso import chain
from .micro import runner
from .problems import classes, generator
from .table import Row, at_least, duration
from .timing import race


def numpy_run(problem: ov.Problem, start: ov.Start, steps: int) -> np.ndarray:
    """The same training as an idiomatic NumPy loop: one sample a step, matrix products and outer products."""
    assert start.student is not None and start.means is not None
    rng = np.random.default_rng(0)
    W, N = start.student / np.sqrt(start.student.shape[1]), start.student.shape[1]
    spread, decay = np.sqrt(0.1), problem.algorithm.decay
    for _ in range(steps):
        c = rng.integers(len(W))
        x = start.means[c] + spread * rng.standard_normal(N)
        h = np.exp(W @ x - (W @ x).max())
        delta = h / h.sum()
        delta[c] -= 1.0
        W = (1 - decay / N) * W - np.outer(delta, x) / N
    return W


def scales(quick: bool = False) -> list[Row]:
    """A step of ten classes in 1000 dimensions: NumPy, micro, meso."""
    steps, repeats = (100, 1) if quick else (4000, 7)
    problem = classes(10)
    start = ov.draw(problem, 1000)
    result = race(
        {
            "numpy": (lambda: numpy_run(problem, start, steps), steps),
            "micro": (runner(problem, start, steps), steps),
            "meso": (chain(problem, start, 10 * steps), 10 * steps),
        },
        repeats,
    )
    micro, meso = duration(result.cost("micro")), duration(result.cost("meso"))
    return [
        at_least(
            "softmax, 10 classes, N = 1000: an idiomatic NumPy loop / micro",
            result.ratio("numpy", "micro"),
            2,
            f"A step costs {micro} instead of {duration(result.cost('numpy'))}.",
        ),
        at_least(
            "softmax, 10 classes, N = 1000: micro / meso",
            result.ratio("micro", "meso"),
            2,
            f"A step costs {meso}: {10 * 10} coordinates of the students in the frame, rotated at every step.",
        ),
    ]


def diffusion(quick: bool = False) -> list[Row]:
    """To time 0.5 at N = 10⁶: half a million steps of the chain, or a handful of the diffusion."""
    time, size, repeats = (0.1, 1000, 1) if quick else (0.5, 10**6, 3)
    problem = classes(3)
    start = ov.Start.from_overlaps(problem, Q=np.eye(3), size=size)
    limit, stop = Diffusion(problem, start), np.array([int(time * size)])
    result = race(
        {
            "chain": (chain(problem, start, int(time * size)), 1),
            "diffusion": (lambda: limit.copy_with(generator()).record(stop), 1),
        },
        repeats,
    )
    return [
        at_least(
            f"chain / diffusion, 3 classes, N = {size:,}, to time {time:g}",
            result.ratio("chain", "diffusion"),
            10,
            f"{duration(result.cost('chain'))} and {duration(result.cost('diffusion'))}: the cost of the diffusion "
            "does not depend on the size.",
        )
    ]
