"""Full-batch training: mean-field kernels against the run they describe, and how their cost grows with the horizon."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import nnls
from threadpoolctl import threadpool_limits

import overlaps as ov
from overlaps.full_batch.finite_size_fluctuations import PATHS as LOG2
from overlaps.full_batch.finite_size_fluctuations import REPLICAS, _Replica
from overlaps.full_batch.mean_field_kernels import solve_recursion
from overlaps.full_batch.paths import Points
from overlaps.full_batch.task import FullBatchTask

from .table import Row, at_least, at_most, duration, share, times
from .timing import race

PATHS = 10_000


def problem(steps: int) -> ov.Problem:
    """The perceptron of the comparison paper, two classes."""
    return ov.Problem(
        data=ov.GaussianMixture(gram=[[1, -0.5], [-0.5, 1]], labels=[0, 1]),
        student=ov.Committee(1, "softplus"),
        loss="logistic",
        algorithm=ov.FullBatch(steps, 0.2),
    )


def weights(chosen: ov.Problem, size: int) -> ov.Start:
    """Weights of length 0.1."""
    return ov.draw(chosen, size, seed=1, scale=0.1)


def scales(quick: bool = False) -> list[Row]:
    """One run on 10⁴ samples, the same without its data matrix, its kernels with 10⁴ paths per class."""
    steps, size = (5, 300) if quick else (50, 10_000)
    chosen = problem(steps)
    start = weights(chosen, size)
    task = FullBatchTask(chosen, start)
    h = np.random.default_rng(0).standard_normal((PATHS, task.D))

    def micro() -> None:
        ov.train(chosen, start, runs=1, progress=False)

    def meso() -> None:
        ov.sample(chosen, start, runs=1, progress=False)

    def macro() -> None:
        solve_recursion(task, Points(h), followed=0)

    with threadpool_limits(limits=1):
        result = race({"micro": (micro, 1), "meso": (meso, 1), "macro": (macro, 1)}, 1 if quick else 2)
    run = f"one run of {steps} steps on {size:,} samples in {size:,} dimensions"
    matrix, paths = size**2 * 8e-9, PATHS * task.D * 5 * 8e-6
    return [
        at_most(
            f"full batch: mean-field kernels, {PATHS:,} paths per class / {run}",
            result.ratio("macro", "micro"),
            0.1,
            f"{duration(result.cost('macro'))} and {duration(result.cost('micro'))}. The run draws its matrix of "
            f"{matrix:.2g} GB and reads it twice a step; the paths take {paths:.2g} MB.",
        ),
        at_least(
            f"full batch, {run}: with the data matrix / without forming it, same law",
            result.ratio("micro", "meso"),
            5,
            f"{duration(result.cost('meso'))} a run; one cost grows as N m T, the other as (N + m) T².",
        ),
    ]


def horizon(quick: bool = False) -> list[Row]:
    """Cost of a recursion against the number of steps, in both forms."""
    horizons = (4, 8) if quick else (25, 50, 100, 200)
    rows: list[Row] = []
    for form, count in (("Stein's form", 2048), ("response form", 256)):
        sides: dict[str, Any] = {}
        for T in horizons:
            chosen = problem(T)
            task = FullBatchTask(chosen, ov.Start.from_overlaps(chosen, [[0.01]]))
            h = np.random.default_rng(0).standard_normal((count, task.D))
            followed = 0 if form[0] == "S" else count
            sides[str(T)] = (
                lambda task=task, h=h, followed=followed: solve_recursion(task, Points(h), followed=followed),
                1,
            )
        with threadpool_limits(limits=1):
            result = race(sides, 2)
        costs = np.array([result.cost(str(T)) for T in horizons])
        T = np.array(horizons, float)
        # the smallest relative errors of a T + b T² + c T³, each part positive
        parts, _ = nnls(T[:, None] ** [1, 2, 3] / costs[:, None], np.ones(T.size))
        shares = parts * T[-1] ** np.array([1, 2, 3])
        shares /= shares.sum()
        memory = count * (T[-1] + 1) * (5 if form[0] == "S" else 2 * (T[-1] + 1)) * 8e-6
        rows.append(
            Row(
                f"{form}, {count} paths per class: {horizons[-1]} steps / {horizons[0]} steps",
                times(result.ratio(str(horizons[-1]), str(horizons[0]))),
                f"{duration(costs[-1])} and {duration(costs[0])}; of the longest, parts that grow as T, T² and T³ are "
                f"{shares[0]:.0%}, {shares[1]:.0%} and {shares[2]:.0%}, with {memory:.2g} MB of paths.",
            )
        )
    return rows


def scatter(quick: bool = False) -> list[Row]:
    """Variance and bias without sampling, against the gradients it evaluates and the runs that know as much."""
    steps, size, accuracy = (1, 50, 0.3) if quick else (3, 150, 0.03)
    chosen = problem(steps)
    start = ov.Start.from_overlaps(chosen, [[0.01]])
    task = FullBatchTask(chosen, start)
    directions = sum(_Replica(task, seed, False, LOG2).count(bias=True) for seed in range(REPLICAS))
    # each direction is two recursions over mirrored points, for each component and step
    points = 2 * directions * 2 ** (LOG2 + 1) * len(task.weights) * task.T
    rng, block = np.random.default_rng(0), 2**16
    fields, none = rng.standard_normal((block, task.K)), np.zeros((block, task.M))
    labels, noise = np.zeros(block, dtype=np.int64), np.zeros(block)
    runs = round(2 * (3 / accuracy) ** 2)  # three standard errors of a variance over as many runs are the accuracy
    finite = start.at_size(chosen, size)
    found = ov.full_batch.fluctuations(chosen, start, accuracy=accuracy, progress=False)
    variance, bias = (found[f"{kind}_training_error"].isel(time=-1).item() for kind in ("variance", "bias"))
    known = found["bias_training_error"].attrs["accuracy"] / 3 / abs(bias)
    blurred = np.sqrt(size * variance / runs) / abs(bias)

    def theory() -> None:
        ov.full_batch.fluctuations(chosen, start, accuracy=accuracy, progress=False)

    def gradients() -> None:
        task.duals(fields, none, labels, noise)
        task.slopes(fields, none, labels, noise)

    def sampled() -> None:
        ov.sample(chosen, finite, runs=runs, progress=False)

    with threadpool_limits(limits=1):
        sides = {"theory": (theory, points), "gradients": (gradients, block), "sampled": (sampled, points)}
        result = race(sides, 1 if quick else 3)
    return [
        Row(
            f"full batch: variance and bias of {steps} steps to {share(accuracy)} / the gradients that it evaluates",
            times(result.ratio("theory", "gradients")),
            f"{duration(result.cost('theory') * points)} for {directions:,} directions, two recursions each, "
            f"{points * 3 / 1e6:.3g} million gradients in all; their evaluation is the limit, and the rest is the "
            f"algebra of the recursions. As many runs as have the variance as well, {runs:,} on {size} samples, take "
            f"{duration(result.cost('sampled') * points)}; their standard error of the bias of the last training error "
            f"is {share(blurred)}, that of the theory {100 * known:.1g} %.",
        )
    ]
