"""Long stretches of the exact mean against its steps one by one; a schedule of equal rates takes every step."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import comb

import numpy as np
import pytest
from scipy.optimize import root_scalar

import overlaps as ov
from overlaps.online.long_stretches import SHORTEST, constant_pull, drift, geometric_sums
from overlaps.online.second_moments import Linear, advance_one, second_moments
from overlaps.trajectory.refinement import Budget

STUDENT = ov.Committee(1, "linear")


@pytest.mark.parametrize("delta", [-0.004, 0.0, 1e-9, 0.003, 0.0312, 0.0313, 0.4, 1.0])
def test_sums_are_those_of_exact_arithmetic(delta: float) -> None:
    nodes, n, degree = np.array([0, 1, 3, 17, 128]), 128, 12
    found = geometric_sums(np.array([delta]), nodes, n, degree)[:, 0]
    rho = 1 - Fraction(delta)
    for m, sums in zip(nodes.tolist(), found, strict=True):
        exact = [sum(rho ** (m - 1 - j) * comb(j, r) for j in range(m)) / comb(n, r) for r in range(degree + 1)]
        np.testing.assert_allclose(sums, np.array(exact, float), rtol=1e-13, atol=1e-16 * float(exact[0]))


@pytest.mark.parametrize("g", [0.0, 1e-12, 0.3, 0.5, 1.0, 1.7])
def test_drift_is_a_power(g: float) -> None:
    exact = (1 - Fraction(g)) ** 300 - 1
    np.testing.assert_allclose(drift(np.array([g]), 300), float(exact), rtol=1e-13)


def _linear(size: int, seed: int, batch: int, noise: float) -> Linear:
    rng = np.random.default_rng(seed)
    omega = rng.pareto(1.0, size) + 0.01 * rng.random(size)
    T, v, u = rng.exponential(1 / size, (size, 1, 1)), rng.choice([-1.0, 0.7], 1), np.array([1.3])
    return Linear(omega * size / omega.sum(), np.ones(size), T, v, u, noise, 1 / batch, float(size), np.zeros(size))


def _critical(given: Linear) -> float:
    """The rate at which a constant noise keeps itself up, Σ_b ω_b c_b/(β δ_b) = 1."""

    def excess(rate: float) -> float:
        g = rate * given.v[0] ** 2 * given.omega / given.size
        return float(given.share * np.sum(g / (2 - (1 + given.share) * g))) - 1

    largest = 2 * given.size / ((1 + given.share) * given.v[0] ** 2 * given.omega.max())
    return float(root_scalar(excess, bracket=(0.0, largest * (1 - 1e-9))).root)


@pytest.mark.parametrize("noise", [0.0, 0.2])
@pytest.mark.parametrize("part", [0.02, 0.5, 0.97, 1.01, 40.0])
@pytest.mark.parametrize(("size", "batch"), [(5, 1), (23, 4), (120, 1), (500, 30)])
def test_stretches_are_steps(size: int, batch: int, part: float, noise: float) -> None:
    given = _linear(size, size, batch, noise)
    problem = ov.Problem(
        data=ov.GaussianInputs(),
        teacher=STUDENT,
        student=STUDENT,
        algorithm=ov.OnlineSGD(rate=part * _critical(given), batch=batch),
    )
    pull = constant_pull(problem.update, given.v, size)
    assert pull is not None
    rng = np.random.default_rng(1)
    A = rng.normal(0, 0.1 / size, (size, 1, 1))
    Q = rng.exponential(1 / size, (size, 1, 1)) + A**2 / given.T
    stops = np.array([0, 1, 2, 130, 131, 900, 7000, 7001, 12_000, 30_000])
    found = second_moments(given, problem.update, Q, A, stops)
    assert found.missed < 1e-8
    assert part > 1 or found.diverged is None
    done = 0
    for i, stop in enumerate(stops.tolist()):
        count = stop - done
        taken = advance_one(given, Q, A, np.ones((count, 1, 1)), np.full((count, 1), pull))
        done += taken
        if taken < count:
            assert found.diverged == done and found.reached == i
            return
        error, stated = _error(given, Q, A), np.finfo(float).eps * (10 + stop) + found.missed
        np.testing.assert_allclose(found.A[i], A, rtol=0, atol=stated * max(1.0, np.abs(A).max()))
        np.testing.assert_allclose(found.Q[i], Q, rtol=0, atol=stated * max(1.0, np.abs(Q).max()))
        assert _error(given, found.Q[i], found.A[i]) == pytest.approx(error, rel=0, abs=stated * max(1.0, error))
    assert found.diverged is None


def _error(given: Linear, Q: np.ndarray, A: np.ndarray) -> float:
    v, u = given.v[0], given.u[0]
    return float(given.omega @ (v * v * Q - 2 * v * u * A + u * u * given.T)[:, 0, 0])


def test_stretches_are_taken_and_grow() -> None:
    """A stretch costs as much as the shortest has steps; were none longer, a million steps would cost a million."""
    budget = Budget()
    given = _linear(50, 3, 1, 0.1)
    problem = ov.Problem(
        data=ov.GaussianInputs(), teacher=STUDENT, student=STUDENT, algorithm=ov.OnlineSGD(rate=0.3 * _critical(given))
    )
    second_moments(given, problem.update, np.zeros((50, 1, 1)), np.zeros((50, 1, 1)), np.array([10**6]), budget=budget)
    assert budget.spent < 10**4


def _both(problem: ov.Problem, start: ov.Start, times: list[float], system: str = "auto") -> list[ov.Trajectory]:
    """By long stretches, and step by step."""
    rate = problem.update.rate(0.0)
    each = replace(problem, algorithm=replace(problem.algorithm, rate=ov.Schedule([0, 1], [rate, rate])))
    return [ov.solve(same, start, times, system=system) for same in (problem, each)]


def test_times_between_steps() -> None:
    problem = ov.Problem(
        data=ov.GaussianInputs(ov.PowerLaw(30, 0.5)),
        teacher=STUDENT,
        student=STUDENT,
        algorithm=ov.OnlineSGD(rate=0.4),
        label_noise=0.3,
    )
    start = ov.draw(problem, 30)
    times = [0.0, 0.01, 0.5, 7.77, 7.771, 211.0001, 211.05, 1000.0]
    found, exact = _both(problem, start, times, system="exact-mean")
    for name in ("Q", "R", "error"):
        accuracy = found.data[name].attrs["accuracy"]
        assert accuracy < 1e-10
        np.testing.assert_allclose(found.data[name], exact.data[name], atol=accuracy, rtol=0)


def test_divergence_is_found_at_the_same_step() -> None:
    problem = ov.Problem(
        data=ov.GaussianInputs(ov.PowerLaw(30, 0.5)), teacher=STUDENT, student=STUDENT, algorithm=ov.OnlineSGD(rate=1.3)
    )
    start, ended = ov.draw(problem, 30), []
    for rate in (1.3, ov.Schedule([0, 1], [1.3, 1.3])):
        with pytest.raises(ov.NumericalError, match="grew without bound by time") as caught:
            ov.solve(replace(problem, algorithm=ov.OnlineSGD(rate)), start, [0.0, 1.0, 10_000.0], system="exact-mean")
        assert caught.value.partial is not None and caught.value.partial.time.size == 2
        ended.append(caught.value.time)
    assert ended[0] * 30 > 2 * SHORTEST
    assert ended[0] == pytest.approx(ended[1], abs=1.5 / 30)


def test_many_passes_by_stretches() -> None:
    rng = np.random.default_rng(5)
    X = rng.standard_normal((300, 20)) * np.sqrt(ov.PowerLaw(20, 0.5).eigenvalues)
    data = ov.Samples(X, X @ rng.standard_normal(20) / 4 + rng.standard_normal(300))
    problem = ov.Problem(data=data, student=STUDENT, algorithm=ov.MultiPass(rate=0.2, samples=150, batch=2))
    found, exact = _both(problem, ov.draw(problem, 20), [0.0, 0.3, 12.0, 300.0, 300.02, 900.0])
    for name in ("Q", "R", "error", "training_error"):
        accuracy = found.data[name].attrs["accuracy"]
        np.testing.assert_allclose(found.data[name], exact.data[name], atol=accuracy, rtol=0)


@pytest.mark.parametrize(
    ("algorithm", "units"),
    [
        (ov.OnlineSGD(0.1, decay=0.1), 1),
        (ov.OnlineSGD(0.1, momentum=0.5), 1),
        (ov.OnlineSGD(ov.Schedule([0, 1], [0.1, 0.2])), 1),
        (ov.OnlineSGD(0.1), 2),
    ],
    ids=["decay", "momentum", "schedule", "units"],
)
def test_everything_else_takes_every_step(algorithm: ov.OnlineSGD, units: int) -> None:
    problem = ov.Problem(data=ov.GaussianInputs(), teacher=STUDENT, student=STUDENT, algorithm=algorithm)
    assert constant_pull(problem.update, np.ones(units), 20) is None
