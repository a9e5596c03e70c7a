"""The hidden manifold: training against the matrix product that makes its inputs, and theory against training."""

from __future__ import annotations

from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import overlaps as ov
from overlaps.online.micro import AHEAD, HiddenWeights

from .table import Row, at_most, duration
from .timing import race

SIZE, LATENT = 1000, 500


def problem() -> ov.Problem:
    """The problem of the universality paper: two erf units learn two, both layers, on sign features."""
    return ov.Problem(
        data=ov.HiddenManifold(latent_dim=LATENT),
        teacher=ov.Committee(2),
        student=ov.Committee(2, train_readout=True),
        algorithm=ov.OnlineSGD(0.2),
    )


def training(quick: bool = False) -> list[Row]:
    """A run of 10⁵ steps recorded at 200 times, the products of its blocks alone, and the theory of it."""
    steps, repeats = (2000, 1) if quick else (100_000, 3)
    chosen = problem()
    start = ov.draw(chosen, SIZE, seed=1)
    template = HiddenWeights(chosen, start)
    stops = np.unique(np.geomspace(1, steps, 200).astype(np.int64))
    rng = np.random.default_rng(0)
    C, F = rng.standard_normal((AHEAD, LATENT)), start_features(chosen)
    out = np.empty((AHEAD, SIZE))
    theories: list[ov.Trajectory] = []

    def run() -> None:
        template.copy_with(np.random.Generator(np.random.SFC64(1))).record(stops)

    def products() -> None:
        for _ in range(steps // AHEAD):
            np.matmul(C, F, out=out)

    def theory() -> None:
        theories.append(ov.solve(chosen, start, stops / SIZE))

    sides: dict[str, Any] = {"run": (run, steps), "products": (products, steps), "theory": (theory, steps)}
    with threadpool_limits(limits=1):
        result = race(sides, repeats)
    step, product = result.cost("run"), result.cost("products")
    error = max(theories[-1].accuracy(name) for name in theories[-1].variables)
    took = duration(result.cost("theory") * steps)
    return [
        at_most(
            f"hidden manifold, N = {SIZE}, D = {LATENT}: {steps:,} steps, recorded 200 times / the products C F alone",
            result.ratio("run", "products"),
            2.5,
            f"A step costs {duration(step)}, of which the product that makes its inputs takes {duration(product)}; the "
            "rest draws the latents, applies f and learns.",
        ),
        at_most(
            f"its theory at {LATENT + 1} levels to t = {steps // SIZE}, within {error:.0e} / that run",
            result.ratio("theory", "run"),
            0.5,
            f"{took}, with the error measured by comparing solutions"
            + (" (1e-7 was the goal)." if error <= 1e-7 else ", ABOVE the goal of 1e-7."),
        ),
    ]


def start_features(chosen: ov.Problem) -> np.ndarray:
    """The features of the run."""
    assert isinstance(chosen.data, ov.HiddenManifold)
    return chosen.data.at(SIZE).F
