"""Full-batch training at rates that depend on the step, against recursions written out here."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import overlaps as ov
from full_batches import committee, explicit_descent, marchenko_pastur, paper, textbook

METHODS = [("gd", 0.0), ("ema-momentum", 0.0), ("ema-momentum", 0.7), ("heavy-ball", 0.6), ("nesterov", 0.5)]
RATES: list[Any] = [
    ov.schedules.Cosine(0.4, 8.0, final=0.05),
    ov.schedules.Steps([3.0, 7.0], [0.1, 0.5, 0.0]),
    ov.schedules.Function(lambda l: 0.3 / (1 + l)),
]


def unrolled(algorithm: ov.FullBatch) -> ov.FullBatch:
    """The same algorithm by kernels of its own at rate one: the recursion's answer to single gradients."""
    T = algorithm.steps + 1
    first = textbook(*recursion(algorithm), lambda x: algorithm.decay * x, np.ones(1))[:, 0]
    weights = np.zeros((T, T))
    for mu in range(T - 1):
        step = iter(range(T))
        impulse = textbook(
            *recursion(algorithm), lambda x, mu=mu, step=step: algorithm.decay * x + (next(step) == mu), np.zeros(1)
        )
        weights[mu] = -impulse[:, 0]
    return replace(algorithm, rate=1.0, method=(first, weights), momentum=0.0, decay=0.0)


def recursion(algorithm: ov.FullBatch) -> tuple[Any, int, Any, float]:
    return algorithm.method, algorithm.steps, algorithm.rate, algorithm.momentum


@pytest.mark.parametrize("rate", RATES, ids=lambda rate: type(rate).__name__)
@pytest.mark.parametrize("decay", [0.0, 0.3])
@pytest.mark.parametrize(("method", "s"), METHODS)
def test_kernels_are_the_recursion(method: str, s: float, decay: float, rate: Any) -> None:
    algorithm = ov.FullBatch(12, rate, method, momentum=s, decay=decay)
    first, history = algorithm.kernels
    own = unrolled(algorithm).kernels
    np.testing.assert_allclose(first, own[0], atol=1e-13)
    np.testing.assert_allclose(history, own[1], atol=1e-13)


def test_a_constant_schedule_is_a_number() -> None:
    for method, s in METHODS:
        constant, number = (
            ov.FullBatch(9, rate, method, momentum=s, decay=0.1) for rate in (ov.schedules.Constant(0.2), 0.2)
        )
        np.testing.assert_allclose(constant.history, number.history, atol=1e-14)


def test_a_schedule_multiplies_the_rows_of_kernels_of_ones_own() -> None:
    weights = np.triu(np.random.default_rng(0).uniform(size=(5, 5)), 1)
    rate = ov.schedules.Exponential(0.4, 3.0)
    history = ov.FullBatch(4, rate, (np.ones(5), weights)).history
    np.testing.assert_allclose(history, 0.4 * np.exp(-np.arange(5) / 3.0)[:, None] * weights, atol=1e-15)


EVERYTHING = {
    "momentum": dict(rate=ov.schedules.Cosine(1.2, 6.0, final=0.2), method="ema-momentum", momentum=0.6, decay=0.1),
    "warm-up": dict(rate=ov.schedules.WarmupStableDecay(0.8, 2.0, 1.0, 2.0), method="nesterov", momentum=0.3),
}


@pytest.mark.parametrize("name", EVERYTHING)
def test_all_scales_follow_the_recursion(name: str) -> None:
    """Micro, the sampler without a matrix, theory, and both processes of the comparison theorem."""
    problem = paper(steps=6, **EVERYTHING[name])
    by_hand = replace(problem, algorithm=unrolled(problem.algorithm))
    start = ov.draw(problem, 30, seed=1, scale=0.5)
    for scale in (
        lambda p: ov.train(p, start, runs=3, seed=1, kernels=True).data,
        lambda p: ov.sample(p, start, runs=3, seed=1, kernels=True).data,
        lambda p: ov.solve(p, start, accuracy=0.05).data,
        lambda p: ov.full_batch.alternative(p, start, runs=3, sigma=0.1, progress=False).data,
        lambda p: ov.full_batch.perturbed(p, start, runs=3, sigma=0.1, progress=False).data,
    ):
        ours, theirs = scale(problem), scale(by_hand)
        for variable in ours.data_vars:
            if variable != "B_theta":  # not determined in directions that V_theta hardly has
                size = max(1.0, float(np.abs(theirs[variable]).max()))
                np.testing.assert_allclose(ours[variable], theirs[variable], atol=1e-6 * size, err_msg=str(variable))


def test_the_refinement_at_finite_size_follows_the_recursion() -> None:
    short = paper("softplus", "square", steps=2, **EVERYTHING["momentum"])
    by_hand = replace(short, algorithm=unrolled(short.algorithm))
    begin = ov.Start.from_overlaps(short, [[0.01]])
    one, other = (ov.full_batch.fluctuations(p, begin, accuracy=0.5, progress=False) for p in (short, by_hand))
    for variable in one.data_vars:
        np.testing.assert_allclose(one[variable], other[variable], rtol=1e-4, atol=1e-6)


def test_micro_is_the_loop_written_out() -> None:
    problem = committee(method="heavy-ball", momentum=0.5, steps=9, ratio=0.7, rate=RATES[1], noise=0.0, decay=0.1)
    size, runs = 20, 2
    start, _, matrix, ours = explicit_descent(problem, size, runs)
    v, B = np.array([1.0, -0.7]), start.teacher / np.sqrt(size)
    for run, X in enumerate(matrix.X):
        y = np.tanh(B @ X).sum(0)

        def gradient(x: np.ndarray, X: np.ndarray = X, y: np.ndarray = y) -> np.ndarray:
            t = np.tanh(X.T @ x)
            return X @ ((t @ v - y)[:, None] * v * (1 - t**2)) / y.size + 0.1 * x

        points = textbook(*recursion(problem.algorithm), gradient, start.student.T / np.sqrt(size))
        np.testing.assert_allclose(ours.Q[run].sum(1), np.einsum("lni,lnj->lij", points, points), atol=1e-10)


@pytest.mark.parametrize(("method", "s"), METHODS)
def test_theory_of_ridge_regression_follows_the_recursion(method: str, s: float) -> None:
    """Along an eigenvector of eigenvalue x of X Xᵀ/m, θ(l) = f θ(0) + g θ* + k X ε/m; each by the recursion itself."""
    ratio, noise, decay, Q, R = 0.4, 0.5, 0.2, 1.3, 0.3
    algorithm = ov.FullBatch(14, RATES[0], method, ratio=ratio, momentum=s, decay=decay)
    linear = ov.Committee(1, "linear")
    problem = ov.Problem(
        data=ov.GaussianInputs(), teacher=linear, student=linear, algorithm=algorithm, label_noise=noise
    )
    theory = ov.solve(problem, ov.Start.from_overlaps(problem, [[Q]], [[R]], [[1.0]])).data
    x, w = marchenko_pastur(ratio)
    f, g, k = (
        textbook(*recursion(algorithm), lambda y, pull=pull: x * y - pull + decay * y, begin + np.zeros_like(x))
        for pull, begin in ((0.0, 1.0), (x, 0.0), (1.0, 0.0))
    )
    norm = (f * f) @ w * Q + 2 * (f * g) @ w * R + (g * g) @ w + noise**2 * ratio * (k * k * x) @ w
    training = (f * f * x) @ w * Q + 2 * (f * (g - 1) * x) @ w * R + ((g - 1) ** 2 * x) @ w
    training += noise**2 * (1 + ratio * (k * k * x * x - 2 * k * x) @ w)
    np.testing.assert_allclose(theory["Q"].values[0, :, 0, 0], norm, atol=1e-8)
    np.testing.assert_allclose(theory["R"].values[0, :, 0, 0], f @ w * R + g @ w, atol=1e-8)
    np.testing.assert_allclose(theory["training_error"].values[0], training / 2, atol=1e-8)


def test_messages_print_a_schedule() -> None:
    rate = ov.schedules.Steps([2.0], [0.1, 40.0])
    problem = paper("linear", "square", rate=rate)
    start = ov.draw(problem, 30)
    for scale in (ov.solve, ov.sample, ov.train):
        with pytest.raises(
            ov.NumericalError, match=r"reduce rate \(now Steps\(times=\(2\.0,\), rates=\(0\.1, 40\.0\)\)"
        ):
            scale(problem, start)
    with pytest.raises(ov.NumericalError, match=r"reduce rate \(now Steps\("):
        ov.full_batch.check_theorem(problem, start, sigma=0.1, z=1.0, runs=20)
    assert "rate Steps(times=(2.0,), rates=(0.1, 40.0)), ema-momentum" in repr(problem.algorithm)


def test_schedules_that_are_refused() -> None:
    with pytest.raises(ov.InputError, match=r"rate: .* is zero at all 4 steps.*its time is the number of the step"):
        ov.FullBatch(4, ov.schedules.Steps([100.0], [0.0, 0.1]))
    with pytest.raises(ov.InputError, match=r"rate: expected rates of at least 0, .* has -2 at step 3"):
        ov.FullBatch(4, ov.schedules.Function(lambda l: -2.0 if l == 3 else 0.1))
    with pytest.raises(ov.InputError, match="rate: expected a number"):
        ov.FullBatch(4, [0.1, 0.2])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "algorithm",
    [
        ov.FullBatch(5, ov.schedules.Cosine(0.3, 5.0), batch=0.5),
        ov.FullBatch(5, ov.schedules.Steps([2.0], [0.3, 0.1]), "nesterov", momentum=0.5, batch=0.25, replacement=True),
        ov.FullBatch(3, 0.2, batch=1.0),
    ],
    ids=["cosine", "steps", "batch"],
)
def test_a_problem_reads_back_as_written(algorithm: ov.FullBatch) -> None:
    problem = replace(paper(steps=3), algorithm=algorithm)
    again = ov.Problem.from_toml(problem.to_toml())
    assert again == problem and hash(again.algorithm) == hash(algorithm) and again.algorithm.rate == algorithm.rate
    np.testing.assert_array_equal(again.algorithm.history, algorithm.history)
