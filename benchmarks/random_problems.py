"""Random problems whose stated errors `benchmarks.coverage` judges, each with the route that finds its truth."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

import overlaps as ov
from overlaps.averages import method_for

from . import reference

Array = NDArray[np.float64]
TIMES = np.array([0.3, 1.0, 3.0])


def own_function(x: float) -> float:
    return x / math.sqrt(1 + x * x)


def own_derivative(x: float) -> float:
    return (1 + x * x) ** -1.5


def own_loss(lam, nu, c, v):
    return np.log(np.cosh(lam[0] - nu[0]))


def own_gradient(lam, nu, c, v):
    return np.array([np.tanh(lam[0] - nu[0])]), np.zeros(1)


def absolute(lam, nu, c, v):
    return abs(lam[0] - nu[0])


def absolute_gradient(lam, nu, c, v):
    return np.array([np.sign(lam[0] - nu[0])]), np.zeros(1)


def absolute_kink(lam, nu, c, v):
    return lam[0] - nu[0]


OWN = ov.Activation("own", own_function, own_derivative)
OWN_LOSS = ov.Loss(own_loss, own_gradient, name="log cosh")
ABSOLUTE = ov.Loss(absolute, absolute_gradient, name="absolute", kinks=absolute_kink)
FUNCTIONS: dict[str, tuple[Any, Any]] = {
    "tanh": (np.tanh, lambda x: 1 / np.cosh(np.clip(x, -300, 300)) ** 2),
    "softplus": (lambda x: np.logaddexp(0, x), expit),
    "own": (lambda x: x / np.sqrt(1 + x * x), lambda x: (1 + x * x) ** -1.5),
    "linear": (lambda x: x, np.ones_like),
}


class Uncertain(NamedTuple):
    """A truth that is itself known within errors only, numbers or arrays, by variable."""

    values: dict[str, Array]
    errors: dict[str, Any]


Truth = Callable[[ov.Problem, ov.Start, Array], dict[str, Array] | Uncertain]


class Case(NamedTuple):
    """A problem to solve, the options of `solve`, and how the truth is found."""

    problem: ov.Problem
    start: ov.Start
    times: Array | None
    options: dict[str, Any]
    truth: Truth


def rate(rng: np.random.Generator, most: float) -> float:
    """Up to the edge of divergence."""
    return float(np.exp(rng.uniform(np.log(0.05), np.log(most))))


def spectrum(rng: np.random.Generator) -> Any:
    levels = int(rng.integers(1, 6))
    return ov.PowerLaw(levels, float(rng.uniform(0.2, 1.5))) if levels > 1 else ov.Isotropic()


def committees(
    rng: np.random.Generator, activation: Any, most: float, accuracies: tuple[float | None, ...], units: int
) -> tuple[ov.Problem, ov.Start, float | None]:
    """A committee that learns from one, at random."""
    K, M = (int(rng.integers(1, units + 1)) for _ in range(2))
    trains = bool(rng.random() < 0.3)
    problem = ov.Problem(
        data=ov.GaussianInputs(spectrum(rng)),
        teacher=ov.Committee(M, activation),
        student=ov.Committee(K, activation, readout=float(np.sqrt(M / K)), train_readout=trains),
        algorithm=ov.OnlineSGD(rate(rng, most), decay=float(rng.choice([0.0, 0.1]))),
        label_noise=float(rng.choice([0.0, 0.3])),
    )
    start = ov.draw(problem, 200, seed=int(rng.integers(1000)), scale=float(rng.uniform(0.2, 1.5)))
    return problem, start, accuracies[int(rng.integers(len(accuracies)))]


def closed_truth(problem: ov.Problem, start: ov.Start, times: Array) -> dict[str, Array]:
    """Closed forms at the tightest tolerance there is."""
    return reference.solution(problem, start, times, method_for(problem, start.u), 2.3e-14)


def closed(activation: str, most: float) -> Callable[[np.random.Generator], Case]:
    """Averages in closed form: what is judged are the steps."""

    def draw(rng: np.random.Generator) -> Case:
        problem, start, asked = committees(rng, activation, most, (None, 1e-3, 1e-6, 1e-11), 3)
        return Case(problem, start, TIMES, {"accuracy": asked}, closed_truth)

    return draw


def by_quadrature(activation: str, most: float) -> Callable[[np.random.Generator], Case]:
    """The same problems by quadrature: what is judged are averages and steps, by the closed forms."""

    def draw(rng: np.random.Generator) -> Case:
        problem, start, asked = committees(
            rng, activation, most, (None, 1e-2, 1e-4, 1e-7), 1 if rng.random() < 0.7 else 2
        )
        return Case(problem, start, TIMES, {"accuracy": asked, "method": "quadrature"}, closed_truth)

    return draw


def smooth(activation: Any, most: float) -> Callable[[np.random.Generator], Case]:
    """One unit of an activation without closed forms on either side."""
    name = activation if isinstance(activation, str) else activation.name

    def truth(problem: ov.Problem, start: ov.Start, times: Array) -> dict[str, Array]:
        law = reference.Output(*FUNCTIONS[name], "square", start.u)
        return reference.solution(problem, start, times, reference.Reference(problem, law, 150), 1e-11)

    def draw(rng: np.random.Generator) -> Case:
        problem, start, asked = committees(rng, activation, most, (None, 1e-2, 1e-4, 1e-7), 1)
        return Case(problem, start, TIMES, {"accuracy": asked}, truth)

    return draw


def labelled(loss: str) -> Callable[[np.random.Generator], Case]:
    """Two classes with labels: square and logistic of a tanh or linear unit, hinge of a linear one, softmax."""

    def draw(rng: np.random.Generator) -> Case:
        name = "linear" if loss == "hinge" else str(rng.choice(["tanh", "linear"]))
        student = ov.Softmax(2) if loss == "cross-entropy" else ov.Committee(1, name)
        data = ov.GaussianMixture(
            2,
            variance=[float(rng.uniform(0.1, 2.0)), float(rng.uniform(0.1, 2.0))],
            weights=[0.3, 0.7] if rng.random() < 0.5 else None,
            spectrum=spectrum(rng),
        )
        problem = ov.Problem(
            data=data,
            student=student,
            loss=loss,
            algorithm=ov.OnlineSGD(rate(rng, 1.5), decay=float(rng.choice([0, 0.1]))),
        )
        start = ov.draw(problem, 200, seed=int(rng.integers(1000)), scale=float(rng.uniform(0.3, 2.0)))

        def truth(problem: ov.Problem, start: ov.Start, times: Array) -> dict[str, Array]:
            law = reference.softmax if loss == "cross-entropy" else reference.Output(*FUNCTIONS[name], loss, start.u)
            kind = reference.Hinge if loss == "hinge" else reference.Reference
            nodes = 110 if loss == "cross-entropy" else 300
            return reference.solution(problem, start, times, kind(problem, law, nodes), 1e-10)

        asked = (None, 1e-2, 1e-4, 1e-6)[int(rng.integers(4))]
        return Case(problem, start, TIMES, {"accuracy": asked}, truth)

    return draw


def own_losses(rng: np.random.Generator) -> Case:
    """A user's losses of λ − ν: log cosh, and the absolute value with its kink declared."""
    kinked = bool(rng.random() < 0.5)
    problem = ov.Problem(
        data=ov.GaussianInputs(spectrum(rng)),
        teacher=ov.Committee(1, "linear"),
        student=ov.Committee(1, "linear"),
        algorithm=ov.OnlineSGD(rate(rng, 1.5)),
        loss=ABSOLUTE if kinked else OWN_LOSS,
    )
    start = ov.draw(problem, 200, seed=int(rng.integers(1000)), scale=float(rng.uniform(0.3, 1.5)))

    def truth(problem: ov.Problem, start: ov.Start, times: Array) -> dict[str, Array]:
        kind = reference.Absolute if kinked else reference.Reference
        return reference.solution(problem, start, times, kind(problem, reference.log_cosh, 90), 1e-10)

    asked = (None, 1e-2, 1e-4, 1e-6)[int(rng.integers(4))]
    return Case(problem, start, TIMES, {"accuracy": asked}, truth)


def latent(rng: np.random.Generator) -> Case:
    """Features of a Gaussian latent, by levels."""
    problem = ov.Problem(
        data=ov.HiddenManifold(
            nonlinearity=str(rng.choice(["sign", "relu", "erf"])), latent_ratio=float(rng.choice([0.5, 1.0]))
        ),
        teacher=ov.Committee(1),
        student=ov.Committee(2, train_readout=bool(rng.random() < 0.5)),
        algorithm=ov.OnlineSGD(rate(rng, 1.5)),
    )
    start = ov.draw(problem, 60, seed=int(rng.integers(1000)), scale=float(rng.uniform(0.3, 1.5)))
    asked = (None, 1e-3, 1e-6, 1e-11)[int(rng.integers(4))]
    return Case(problem, start, TIMES, {"accuracy": asked}, closed_truth)


def random_points(rng: np.random.Generator) -> Case:
    """Five fields with means, by random points, judged by closed forms."""
    problem = ov.Problem(
        data=ov.GaussianMixture(2, variance=float(rng.uniform(0.3, 1.5))),
        teacher=ov.Committee(2),
        student=ov.Committee(3),
        algorithm=ov.OnlineSGD(rate(rng, 1.0)),
    )
    start = ov.draw(problem, 200, seed=int(rng.integers(1000)), scale=float(rng.uniform(0.3, 1.0)))
    asked = 3e-2 if rng.random() < 0.5 else 1e-2
    return Case(problem, start, TIMES[:2], {"accuracy": asked, "method": "quadrature"}, closed_truth)


def full_batch(rng: np.random.Generator) -> Case:
    """Kernels by random paths, judged by sixteen times as many others."""
    problem = ov.Problem(
        data=ov.GaussianMixture(2, variance=float(rng.uniform(0.2, 1.0))),
        student=ov.Committee(1, str(rng.choice(["erf", "tanh"]))),
        loss=str(rng.choice(["square", "logistic"])),
        algorithm=ov.FullBatch(steps=int(rng.integers(2, 6)), rate=rate(rng, 1.0)),
    )
    start = ov.draw(problem, 200, seed=int(rng.integers(1000)), scale=float(rng.uniform(0.3, 1.0)))
    asked = float(rng.choice([1e-2, 2e-3]))

    def truth(problem: ov.Problem, start: ov.Start, times: Array) -> dict[str, Array]:
        found = ov.solve(problem, start, accuracy=asked / 10)
        return {name: found.data[name].values for name in found.variables}

    return Case(problem, start, None, {"accuracy": asked}, truth)


def strong_mixture(rng: np.random.Generator) -> Case:
    """The equations of strong mixtures where levels hold as well, a latent of one component, and judge them."""
    problem = ov.Problem(
        data=ov.HiddenManifold(latent_ratio=0.5),
        teacher=ov.Committee(1),
        student=ov.Committee(int(rng.integers(1, 3)), train_readout=bool(rng.random() < 0.5)),
        algorithm=ov.OnlineSGD(rate(rng, 1.0), decay=float(rng.choice([0.0, 0.1]))),
    )
    start = ov.draw(problem, 50, seed=int(rng.integers(1000)), scale=float(rng.uniform(0.5, 1.5)))
    return Case(problem, start, TIMES, {"accuracy": 0.1, "system": "strong-mixture"}, closed_truth)


def updates(rng: np.random.Generator) -> Case:
    """Batches, momentum, memory and schedules, with jumps and without, by quadrature; judged by closed forms."""
    most = rate(rng, 2.0)
    kinds = ov.Schedule([0.4, 1.7], [most, 0.3 * most]), ov.schedules.Steps([0.7], [most, 0.2 * most]), most
    remembers = ({}, {"momentum": float(rng.uniform(0.1, 0.9))}, {"memory": float(rng.uniform(0.3, 3.0))})
    kind, memory = kinds[int(rng.integers(3))], remembers[int(rng.integers(3))]
    if "momentum" in memory:
        kind = most * (1 - memory["momentum"])
    net = ov.Committee(1, str(rng.choice(["erf", "relu"])))
    problem = ov.Problem(
        data=ov.GaussianInputs(spectrum(rng)),
        teacher=net,
        student=net,
        algorithm=ov.OnlineSGD(kind, decay=float(rng.choice([0.0, 0.1])), batch=int(rng.integers(1, 9)), **memory),
    )
    start = ov.draw(problem, 200, seed=int(rng.integers(1000)), scale=float(rng.uniform(0.3, 1.5)))
    asked = (None, 1e-2, 1e-4, 1e-7)[int(rng.integers(4))]
    method = "quadrature" if rng.random() < 0.6 else "auto"
    return Case(problem, start, TIMES, {"accuracy": asked, "method": method}, closed_truth)


def tails(rng: np.random.Generator) -> Case:
    """Inputs of Student's t law, by quadrature; judged by closed forms."""
    net = ov.Committee(1)
    problem = ov.Problem(
        data=ov.StudentInputs(float(rng.uniform(5.0, 12.0)), values=6),
        teacher=net,
        student=net,
        algorithm=ov.OnlineSGD(rate(rng, 0.6)),
    )
    start = ov.draw(problem, 200, seed=int(rng.integers(1000)), scale=float(rng.uniform(0.3, 1.5)))
    asked = (1e-2, 1e-3, 1e-4)[int(rng.integers(3))]
    return Case(problem, start, TIMES[:2], {"accuracy": asked, "method": "quadrature"}, closed_truth)


def exact_mean(rng: np.random.Generator) -> Case:
    """The mean over runs of a linear unit at finite size, judged by its moments step by step."""
    net = ov.Committee(1, "linear")
    problem = ov.Problem(
        data=ov.GaussianInputs(spectrum(rng)), teacher=net, student=net, algorithm=ov.OnlineSGD(rate(rng, 1.0))
    )
    start = ov.draw(problem, 40, seed=int(rng.integers(1000)), scale=float(rng.uniform(0.3, 1.5)))
    return Case(problem, start, np.array([0.3, 1.0, 3.0, 20.0]), {"accuracy": None, "system": "exact-mean"}, steps)


def steps(problem: ov.Problem, start: ov.Start, times: Array) -> dict[str, Array]:
    return reference.linear_steps(problem, start, times)
