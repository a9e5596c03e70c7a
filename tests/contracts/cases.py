"""What there is, found by itself, and the statistics of the contracts.

All contracts together raise a false alarm in BUDGET of all runs, were seeds free: each thing has at most three
statistical tests, and all of them share the budget, however many there are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import overlaps as ov
from overlaps import algorithms
from overlaps.data import models
from overlaps.interface.folder import modules
from overlaps.network.activations import BUILT_IN as ACTIVATIONS
from overlaps.network.losses import BUILT_IN as LOSSES
from overlaps.problem.statement import ROLES
from overlaps.trajectory.points import points, relabelled

MODELS = {module.MODEL.__name__: module for module in modules(models.__name__).values()}
EXAMPLES = {f"{name}-{i}": data for name, module in MODELS.items() for i, data in enumerate(module.examples())}
NETWORKS = {kind.__name__: kind for role in ("student", "teacher") for kind in ROLES[role]}
TRAINING = {m.ALGORITHM.__name__: m for m in modules(algorithms.__name__).values() if hasattr(m, "ALGORITHM")}
ALGORITHM_EXAMPLES = {f"{name}-{i}": a for name, module in TRAINING.items() for i, a in enumerate(module.examples())}
GIANT_STEPS = 1

BUDGET = 2e-4  # a fifth of that of the whole suite
LEVEL = BUDGET / (3 * (sum(map(len, (ACTIVATIONS, LOSSES, EXAMPLES, NETWORKS, ALGORITHM_EXAMPLES))) + GIANT_STEPS))
TIMES = (0.5, 1.03, 4.0)


def refused_by_field(kind: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
    """Arguments outside the domain are refused in one line, which begins with the name of the first of them."""
    with pytest.raises(ov.InputError, match=rf"^(unknown )?{next(iter(arguments))}\b") as caught:
        kind(**arguments)
    assert "\n" not in str(caught.value)


def p_value(a: NDArray[np.float64], b: NDArray[np.float64], level: float) -> float:
    """Test of equal laws by relabelling runs, (runs, points) each; exact at its level, whatever the law.

    Under the hypothesis the runs of both are exchangeable. Features are the points and their squares about the pooled
    mean, so that means and spreads are compared. A few relabellings tell what is nowhere near the level.
    """
    centre = np.concatenate([a, b]).mean(0)
    both = [np.concatenate([x, (x - centre) ** 2], axis=1) for x in (a, b)]
    alive = np.concatenate(both).std(0) > 1e-12
    both = [x[:, alive] for x in both]
    few = float(relabelled(*both, level, seed=0, repeats=1999)[0].min())
    return few if few > 0.01 else float(relabelled(*both, level, seed=1, repeats=int(2 / level))[0].min())


def equal_in_law(problem: ov.Problem, size: int = 40, runs: int = 150, times: Any = TIMES) -> None:
    """Micro and meso, from the same weights."""
    start = ov.draw(problem, size, seed=3, scale=0.7)
    micro, meso = (scale(problem, start, times, runs=runs, seed=1, progress=False) for scale in (ov.train, ov.sample))
    p = p_value(points(micro).values, points(meso).values, LEVEL)
    assert p > LEVEL, f"micro and meso differ in law, p = {p:.1e}"


def tends_to_theory(
    problem: ov.Problem, scale: Any = ov.sample, size: int = 1000, runs: int = 40, times: Any = TIMES, **how: Any
) -> None:
    """Macro, against runs so large that what finite size adds is well below their standard error."""
    start = ov.draw(problem, size, seed=3, scale=0.7)
    theory = ov.solve(problem, start, times, **how)
    simulation = scale(problem, start, times, runs=runs, seed=2, progress=False)
    verdict = ov.compare(theory, simulation, level=LEVEL, resolve=0.2, finite_size=False)
    assert verdict.verdict == "agrees", verdict


@cache
def labelled_gaussian_rows() -> ov.Samples:
    """Rows that theory describes, with labels of which a linear map explains a part."""
    rng = np.random.default_rng(5)
    rows = rng.standard_normal((400, 80)) * np.geomspace(2.0, 0.3, 80)
    return ov.Samples(rows, rows @ rng.standard_normal(80) / 8 + rng.standard_normal(400))


def round_trip(problem: ov.Problem) -> None:
    """A spec written and read back is the same problem."""
    text = problem.to_toml()
    again = ov.Problem.from_toml(text)
    assert again == problem and hash(again) == hash(problem) and again.to_toml() == text


def assert_same(a: Any, b: Any, C: NDArray[np.float64]) -> None:
    """Two averages are equal within three times what both say of themselves; D where fields have directions, as D C."""
    for name in ("D", "S", "dv", "error", "E"):
        x, y = np.asarray(getattr(a, name)), np.asarray(getattr(b, name))
        stated = a.accuracy[name] + b.accuracy[name]
        if name == "D":
            x, y = x @ C, y @ C
            stated *= max(1.0, float(np.abs(C).max())) * len(C)
        allowed = 3 * stated + 1e-13 * max(1.0, float(np.abs(x).max(initial=0.0)))
        apart = float(np.abs(x - y).max(initial=0.0))
        assert apart <= allowed, f"{name}: {apart:.2e} apart, {stated:.2e} stated"


@cache
def with_loss(name: str) -> ov.Problem:
    """A problem of that loss: softmax, labels of a mixture or a teacher, whichever it takes."""
    loss, sgd = LOSSES[name], ov.OnlineSGD(0.7, decay=0.02)
    if not hasattr(loss, "labels"):
        mixture = ov.GaussianMixture(
            gram=[[1.0, 0.3, 0.0], [0.3, 1.0, -0.2], [0.0, -0.2, 0.8]],
            weights=[0.5, 0.3, 0.2],
            variance=[0.2, 0.3, 0.4],
        )
        return ov.Problem(data=mixture, student=ov.Softmax(3), algorithm=sgd, loss=name)
    student = ov.Committee(2, "erf", [1.0, -0.7], train_readout=True)
    if loss.labels is None:
        return ov.Problem(data=ov.GaussianInputs(), teacher=ov.Committee(1), student=student, algorithm=sgd, loss=name)
    labels = (loss.labels * 2)[: max(2, len(loss.labels))]
    mixture = ov.GaussianMixture(means=len(labels), labels=labels, variance=0.5)
    return ov.Problem(data=mixture, student=student, algorithm=sgd, loss=name)
