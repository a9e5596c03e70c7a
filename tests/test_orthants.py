"""Orthants of ReLU fields without means: against nested half-lines, as fields align, and what the panels are for."""

from __future__ import annotations

import math

import numpy as np
import pytest

import overlaps as ov
from gaussian import FACTOR, ROUNDING, RULE, assert_honest, panels, positive_four
from overlaps.averages import orthant, relu
from overlaps.averages.rules import unit_rule
from problems import problem, random_covariance


def relu_four_by_panels(C: np.ndarray, first_edges: np.ndarray, nodes: int = 32) -> float:
    """E[1(h_0 > 0) 1(h_1 > 0) relu(h_2) relu(h_3)], the first field on panels of its own."""
    return positive_four(C, np.zeros(4), panels(first_edges, nodes), nodes)[1]


def test_orthant_of_equal_correlations() -> None:
    """Four fields with correlation 1/2: P = 1/5."""
    C = np.full((4, 4), 0.5) + 0.5 * np.eye(4)
    assert orthant.probability(C, np.arange(4), *RULE) == pytest.approx(0.2, abs=1e-14)


def test_relu_of_four_distinct_fields() -> None:
    """Plackett's integral or the moment recursion."""
    rng = np.random.default_rng(4)
    for _ in range(5):
        C = random_covariance(rng, 4)
        expected = relu_four_by_panels(C, np.array([0.0, 3.0, 9.0]))
        R, s = relu.correlations(C)
        assert s[2] * s[3] * relu.four(R, 0, 1, 2, 3, *RULE) == pytest.approx(expected, abs=1e-11)


def unit_rows_at(rng: np.random.Generator, pair: tuple[int, int], rest: float, sign: float) -> np.ndarray:
    """Covariance of four unit fields; fields of `pair` have correlation sign (1 − rest)."""
    rows = rng.standard_normal((5, 6))
    rows /= np.linalg.norm(rows, axis=1)[:, None]
    i, j = pair
    across = rows[4] - rows[i] * (rows[4] @ rows[i])
    across /= np.linalg.norm(across)
    cosine = 1 - rest
    rows[j] = sign * (cosine * rows[i] + math.sqrt(rest * (2 - rest)) * across)
    C = rows[:4] @ rows[:4].T
    C[range(4), range(4)] = 1.0
    C[i, j] = C[j, i] = sign * cosine
    return C


@pytest.mark.parametrize("rest", [1e-2, 1e-4, 1e-6, 1e-8, 1e-10])
def test_relu_of_nearly_aligned_fields_against_panels(rest: float) -> None:
    """Two fields nearly equal: the orthant integral has a layer of width √rest, and its stated accuracy must know."""
    edges = np.concatenate([[0.0], np.geomspace(1e-6, 9.0, 14)])  # the layer is resolved where it sits, at z_0 = 0
    missed, stated = [], []
    for seed in range(10):
        C = unit_rows_at(np.random.default_rng(seed), (0, 3), rest, 1.0)
        rough, fine = (relu.four(C, 0, 1, 2, 3, *unit_rule(n)) for n in (20, 40))
        missed.append(abs(fine - relu_four_by_panels(C, edges, nodes=16)))
        stated.append(abs(fine - rough) + ROUNDING)
    assert max(missed) < 1e-6
    assert_honest(missed, stated, "four fields")


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("pair", [(0, 1), (0, 2), (1, 3), (2, 3)])
def test_relu_is_continuous_as_fields_align(pair: tuple[int, int], sign: float) -> None:
    """A jump where nearly aligned fields are first treated as one, or noise just before.

    The average is Lipschitz in the angle √(2 rest) with a constant below 1/2 for unit fields. Rounding of the
    covariance itself moves the angle by no more than √(2 · 2e-16) = 2e-8.
    """
    grid = np.concatenate([[0.0], np.logspace(-17, -2, 61)])
    values = np.array(
        [relu.four(unit_rows_at(np.random.default_rng(6), pair, rest, sign), 0, 1, 2, 3, *RULE) for rest in grid]
    )
    jumps = np.abs(values - values[0])
    allowed = 0.5 * np.sqrt(2 * grid) + 1e-7
    worst = int(np.argmax(jumps - allowed))
    assert np.all(jumps <= allowed), f"1 − |correlation| = {grid[worst]:.1e}: jump of {jumps[worst]:.1e}"


@pytest.mark.parametrize("distance", [3e-8, 1e-7, 3e-7, 1e-6, 1e-5])
def test_relu_student_about_to_arrive(distance: float) -> None:
    """S of a student close to its teacher is O(distance²); noise of a larger size spoils the end of learning."""
    rng = np.random.default_rng(9)
    rows, nudge = rng.standard_normal((2, 2, 6)) / math.sqrt(6)
    both = np.concatenate([rows + distance * nudge, rows])
    a = ov.gaussian_averages(problem("relu"), both @ both.T)
    assert a.accuracy["S"] < 1e-6
    assert np.abs(a.S).max() <= 10 * distance**2 + FACTOR * a.accuracy["S"] + 1e-7


def test_kinks_are_met_by_panels() -> None:
    """ReLU by quadrature is as good as a smooth activation; without its kink it is not."""
    rng = np.random.default_rng(10)
    C = random_covariance(rng, 2)
    exact = ov.gaussian_averages(problem("relu", 1, 1), C)
    split = ov.gaussian_averages(problem("relu", 1, 1), C, method="quadrature")
    g = ov.network.activations.BUILT_IN["relu"]
    careless = ov.Activation("careless", g.function, g.derivative)
    blind = ov.gaussian_averages(problem(careless, 1, 1), C)
    for name in ("D", "S", "dv", "error"):
        size = np.abs(getattr(exact, name)).max()
        assert np.abs(getattr(split, name) - getattr(exact, name)).max() < 1e-11 * max(1.0, size)
    assert np.abs(blind.D - exact.D).max() > 1e-6
