"""Random problems of more fields, longer times and several components, each with the route that finds its truth.

Where nothing else is known, training at a large size is: its mean over runs is off by three standard errors and, of
order one over the size, by what the theory leaves to infinite size.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

import overlaps as ov

from . import reference
from .random_problems import FUNCTIONS, TIMES, Case, Uncertain, closed_truth, committees, rate, spectrum

Array = NDArray[np.float64]
FIELDS = ((1, 2), (2, 1), (2, 2), (1, 3), (3, 1), (3, 2))
BENDS = (0.8, 1.1, 1.4, 2.0)


@cache
def smooth_clip(B: float) -> ov.Activation:
    """[ln cosh B(x+1) − ln cosh B(x−1)]/2B: where B is small, a sum of few error functions; where it is large, none."""

    def value(x: float) -> float:
        a, b = abs(B * (x + 1)), abs(B * (x - 1))
        return (a + math.log1p(math.exp(-2 * a)) - b - math.log1p(math.exp(-2 * b))) / (2 * B)

    return ov.Activation(f"clip {B:g}", value, lambda x: (math.tanh(B * (x + 1)) - math.tanh(B * (x - 1))) / 2)


def clip_functions(B: float) -> tuple[Any, Any]:
    """The same for arrays."""

    def both(x: Array) -> Array:
        return np.logaddexp(B * x, -B * x)

    return (
        lambda x: (both(x + 1) - both(x - 1)) / (2 * B),
        lambda x: (np.tanh(B * (x + 1)) - np.tanh(B * (x - 1))) / 2,
    )


def many_fields(fitted: str, most: float) -> Callable[[np.random.Generator], Case]:
    """Two to five fields of tanh or of a user's activation that is fitted or not, judged by lattices of four fields."""

    def draw(rng: np.random.Generator) -> Case:
        bend = float(rng.choice(BENDS))
        activation = "tanh" if fitted == "tanh" else smooth_clip(bend)
        functions = FUNCTIONS["tanh"] if fitted == "tanh" else clip_functions(bend)
        # four fields of a sharp activation would take a lattice too fine for a judge
        kinds = FIELDS if fitted == "tanh" or bend < 1.5 else FIELDS[:2]
        K, M = kinds[int(rng.integers(len(kinds)))] if fitted == "tanh" or rng.random() < 0.6 else (1, 1)
        problem = ov.Problem(
            data=ov.GaussianInputs(spectrum(rng)),
            teacher=ov.Committee(M, activation),
            student=ov.Committee(K, activation, readout=float(np.sqrt(M / K)), train_readout=bool(rng.random() < 0.3)),
            algorithm=ov.OnlineSGD(rate(rng, most if K + M < 4 else most / 2)),
            label_noise=float(rng.choice([0.0, 0.3])),
        )
        start = ov.draw(problem, 200, seed=int(rng.integers(1000)), scale=float(rng.uniform(0.2, 1.0)))
        # without a fit, five fields are averaged by random points
        asked = (1e-2, 1e-3, 1e-5) if K + M < 4 else (1e-2, 1e-4) if K + M == 4 and bend < 1.2 else (1e-2, 3e-3)

        def truth(problem: ov.Problem, start: ov.Start, times: Array) -> Uncertain:
            fine, coarse = (
                reference.solution(problem, start, times, reference.ByFours(problem, *functions, start.u, finer), 1e-7)
                for finer in (0, -1)
            )
            # where fields vary much, lattices of four of them are themselves not exact
            return Uncertain(fine, {name: np.abs(fine[name] - coarse[name]) for name in fine})

        return Case(problem, start, TIMES[:2], {"accuracy": asked[int(rng.integers(len(asked)))]}, truth)

    return draw


def more_classes(rng: np.random.Generator) -> Case:
    """Softmax of three and four classes, judged by a grid over their differences."""
    count = 3 if rng.random() < 0.7 else 4
    problem = ov.Problem(
        data=ov.GaussianMixture(count, variance=rng.uniform(0.1, 1.5, count).tolist(), spectrum=spectrum(rng)),
        student=ov.Softmax(count),
        loss="cross-entropy",
        algorithm=ov.OnlineSGD(rate(rng, 3.0), decay=float(rng.choice([0, 0.1]))),
    )
    start = ov.draw(problem, 200, seed=int(rng.integers(1000)), scale=float(rng.uniform(0.3, 1.5)))

    def truth(problem: ov.Problem, start: ov.Start, times: Array) -> dict[str, Array]:
        how = reference.Differences(problem, reference.softmax, 90 if count == 3 else 44)
        return reference.solution(problem, start, times, how, 1e-8)

    asked = (None, 1e-2, 1e-4)[int(rng.integers(3))]
    return Case(problem, start, TIMES[:2], {"accuracy": asked}, truth)


def two_kinked_units(rng: np.random.Generator) -> Case:
    """The hinge loss of two ReLU units, with kinks in both fields and in the output, judged by panels by hand."""
    data = ov.GaussianMixture(2, variance=[float(rng.uniform(0.2, 1.5)), float(rng.uniform(0.2, 1.5))])
    problem = ov.Problem(
        data=data, student=ov.Committee(2, "relu"), loss="hinge", algorithm=ov.OnlineSGD(rate(rng, 1.5))
    )
    start = ov.draw(problem, 200, seed=int(rng.integers(1000)), scale=float(rng.uniform(0.3, 1.5)))

    def truth(problem: ov.Problem, start: ov.Start, times: Array) -> dict[str, Array]:
        return reference.solution(problem, start, times, reference.TwoReLUs(problem), 1e-8)

    asked = (1e-2, 1e-4, 1e-5)[int(rng.integers(3))]
    return Case(problem, start, TIMES[:2], {"accuracy": asked}, truth)


def long_and_fast(rng: np.random.Generator) -> Case:
    """Error functions by quadrature to time 10 at rates from 2 to 4, judged by closed forms."""
    problem, start, asked = committees(rng, "erf", 1.0, (None, 1e-3, 1e-6), 2 if rng.random() < 0.4 else 1)
    fast = ov.OnlineSGD(float(rng.uniform(2.0, 4.0)))
    problem = ov.Problem(
        data=problem.data, teacher=problem.teacher, student=problem.student, algorithm=fast, label_noise=0.3
    )
    return Case(problem, start, np.array([1.0, 3.0, 10.0]), {"accuracy": asked, "method": "quadrature"}, closed_truth)


def solved(**options: Any) -> Callable[[ov.Problem, ov.Start, Array], Uncertain]:
    """Truth by other equations, which state an error of their own."""

    def truth(problem: ov.Problem, start: ov.Start, times: Array) -> Uncertain:
        found = ov.solve(problem, start, times, **options)
        return Uncertain(
            {name: found.data[name].values for name in found.variables},
            {name: found.accuracy(name) for name in found.variables},
        )

    return truth


def weak_mixture(rng: np.random.Generator) -> Case:
    """Features of a weak mixture of latents, by levels: what is judged is what one covariance leaves out."""
    latent = ov.LatentMixture(int(rng.integers(2, 5)), float(rng.uniform(0.1, 0.35)), seed=int(rng.integers(1000)))
    flows = rng.random() < 0.6
    problem = ov.Problem(
        data=ov.HiddenManifold(latent_ratio=float(rng.choice([0.2, 0.3, 0.5, 1.0])), latent=latent),
        teacher=ov.Committee(1),
        student=ov.Committee(1, train_readout=bool(rng.random() < 0.5)),
        algorithm=ov.GradientFlow(1.0) if flows else ov.OnlineSGD(rate(rng, 1.5)),
    )
    start = ov.draw(problem, 60, seed=int(rng.integers(1000)), scale=float(rng.uniform(0.5, 1.5)))
    times = np.array([1.0, 5.0, 50.0]) if flows else np.array([1.0, 5.0, 20.0])
    truth = solved(system="strong-mixture", accuracy=0.1)
    return Case(problem, start, times, {"accuracy": 0.16, "system": "levels"}, truth)


def faint_components(rng: np.random.Generator) -> Case:
    """The equations of strong mixtures of two to four components that hardly differ, judged by levels."""
    latent = ov.LatentMixture(int(rng.integers(2, 5)), float(rng.uniform(0.005, 0.02)), seed=int(rng.integers(1000)))
    problem = ov.Problem(
        data=ov.HiddenManifold(latent_ratio=0.5, latent=latent),
        teacher=ov.Committee(1),
        student=ov.Committee(1, train_readout=bool(rng.random() < 0.5)),
        algorithm=ov.OnlineSGD(rate(rng, 1.0)),
    )
    start = ov.draw(problem, 50, seed=int(rng.integers(1000)), scale=float(rng.uniform(0.5, 1.5)))
    return Case(problem, start, TIMES, {"accuracy": 0.1, "system": "strong-mixture"}, solved(system="levels"))


def trained(runs: int) -> Callable[[ov.Problem, ov.Start, Array], Uncertain]:
    """Truth by training at the size of the start: the mean over runs."""

    def truth(problem: ov.Problem, start: ov.Start, times: Array) -> Uncertain:
        full = isinstance(problem.algorithm, ov.FullBatch)
        found = ov.train(problem, start, None if full else times, runs=runs, seed=start.size, progress=False)
        values, errors, size = {}, {}, float(start.size or 1)
        for name in found.variables:
            x = found.data[name].values
            values[name] = x.mean(0, keepdims=True)
            left = 2.0 / size * max(float(np.abs(values[name]).max()), 1e-3)
            errors[name] = 3.0 * x.std(0, ddof=1, keepdims=True) / np.sqrt(runs) + left
        return Uncertain(values, errors)

    return truth


def strong_components(rng: np.random.Generator) -> Case:
    """The equations of strong mixtures of components that do differ, judged by training."""
    latent = ov.LatentMixture(int(rng.integers(2, 4)), float(rng.uniform(0.5, 1.2)), seed=int(rng.integers(1000)))
    problem = ov.Problem(
        data=ov.HiddenManifold(latent_ratio=0.5, latent=latent),
        teacher=ov.Committee(1),
        student=ov.Committee(1),
        algorithm=ov.OnlineSGD(rate(rng, 0.3)),
    )
    start = ov.draw(problem, 400, seed=int(rng.integers(1000)), scale=float(rng.uniform(0.5, 1.5)))
    return Case(problem, start, TIMES, {"accuracy": 0.1, "system": "strong-mixture"}, trained(100))


def full_batch_trained(rng: np.random.Generator) -> Case:
    """Full batches, judged by training at a large size."""
    problem = ov.Problem(
        data=ov.GaussianMixture(2, variance=float(rng.uniform(0.2, 1.0))),
        student=ov.Committee(1, str(rng.choice(["linear", "erf", "tanh"]))),
        loss=str(rng.choice(["square", "logistic"])),
        algorithm=ov.FullBatch(steps=int(rng.integers(2, 6)), rate=rate(rng, 1.0)),
    )
    start = ov.draw(problem, 1200, seed=int(rng.integers(1000)), scale=float(rng.uniform(0.3, 1.0)))
    return Case(problem, start, None, {"accuracy": float(rng.choice([3e-2, 1e-2]))}, trained(24))
