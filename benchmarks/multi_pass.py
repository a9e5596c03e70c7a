"""Many passes: theory of forty epochs against the training run that it predicts."""

from __future__ import annotations

import numpy as np

import overlaps as ov

from .table import Row, duration, times
from .timing import race


def forty_epochs(quick: bool = False) -> list[Row]:
    """A linear student on Gaussian rows with a power-law spectrum, one row a step."""
    rows, size, samples = (400, 40, 200) if quick else (10_000, 500, 8000)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, size)) * np.sqrt(ov.PowerLaw(size, 0.5).eigenvalues)
    data = ov.Samples(X, X @ rng.standard_normal(size) / 10 + rng.standard_normal(rows))
    problem = ov.Problem(
        data=data, student=ov.Committee(1, "linear"), algorithm=ov.MultiPass(rate=0.1, samples=samples)
    )
    start = ov.draw(problem, size, scale=0.0)
    t = np.linspace(0, 40 * samples / size, 21)
    ov.solve(problem, start, t)  # the axes of the training set are found once
    result = race(
        {
            "theory": (lambda: ov.solve(problem, start, t), 1),
            "run": (lambda: ov.train(problem, start, t, runs=1, progress=False), 1),
        },
        1 if quick else 3,
    )
    return [
        Row(
            f"one MultiPass run of 40 epochs / its theory, N = {size}, n = {samples}",
            times(result.ratio("run", "theory")),
            f"{duration(result.cost('run'))} and {duration(result.cost('theory'))}: theory is the mean of all runs, a "
            "step of the second moments for each step of SGD, so that it costs about what a few runs do; what it saves "
            "is the tens of runs that a mean within a per cent takes.",
        )
    ]
