"""The giant step: the paper's first experiment against the matrix products it cannot do without."""

from __future__ import annotations

import numpy as np
from threadpoolctl import threadpool_limits

import overlaps as ov
from overlaps.giant_step import GiantStepSetting, TwoClasses, scaled, solve, train

from .table import Row, at_most, duration
from .timing import race

POINTS = 512


def experiment(quick: bool = False) -> list[Row]:
    """d = n = N = 2048, 19 classes, 30 networks: alignment, elasticity and Recall@1 before and after the step."""
    size, turns, networks = (128, 1, 2) if quick else (2048, 10, 3)
    setting = GiantStepSetting(TwoClasses("sphere"), ov.GiantStep(1.0, 0.25), size=size)
    unseen = scaled(setting.direction, np.linspace(-0.9, 0.9, 19))
    rng = np.random.default_rng(0)
    X, W, Z = rng.standard_normal((size, size)), rng.standard_normal((size, size)), rng.standard_normal((POINTS, size))

    def products() -> None:
        """Of one network: gradient, fields of the points before and after, and features with features."""
        fields = X @ W
        _ = X.T @ fields
        for _ in range(2):
            features = Z @ W
            for _ in unseen:
                _ = features @ features.T

    def fields_of_classes() -> None:
        """Fields of all classes of one network by a product for each."""
        for _ in range(2 * len(unseen)):
            _ = Z @ W

    with threadpool_limits(limits=1):
        sides = {
            "experiment": (lambda: train(setting, unseen, networks, POINTS, progress=False), networks),
            "products": (products, 1),
            "fields": (fields_of_classes, 1),
            "theory": (lambda: solve(setting, unseen), 1),
        }
        result = race(sides, turns)
    count = turns * networks
    whole, least, fields = (count * result.cost(name) for name in ("experiment", "products", "fields"))
    return [
        at_most(
            f"setup 1, {count} networks of {size:,} units on {size:,} samples, 19 unseen classes / its matrix products",
            result.ratio("experiment", "products"),
            2.5,
            f"{duration(whole)} against {duration(least)}: gradient, fields of the points, features with features for "
            "Recall@1. The rest is tanh and its slope, drawing, and the operator norm of the gradient's error.",
        ),
        at_most(
            "the same / with a product of points and weights for each class",
            whole / (whole + fields),
            0.9,
            f"That would take {duration(fields)} more; fields of all classes are rank-one changes of one product.",
        ),
        at_most(
            "theory of its 19 classes / the experiment",
            result.ratio("theory", "experiment") / count,
            0.1,
            f"{duration(result.cost('theory'))}, with its error measured.",
        ),
    ]
