"""Outputs of many ReLU units: independent fields against quadrature, and what they are worth as a control variate."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from mixtures import xor
from overlaps.averages import LossQuadrature, relu_independent, relu_outputs
from overlaps.averages.relu_outputs import ReluOutputs, known_averages

Array = NDArray[np.float64]


def logistic(f: Array) -> Array:
    """Slope of the logistic loss for label 0."""
    return 1 / (1 + np.exp(-f))


def by_panels(mean: float, sd: float) -> tuple[Array, Array]:
    """Nodes and weights of max(λ, 0): one at zero for all that is negative, Gauss-Legendre above."""
    x, w = np.polynomial.legendre.leggauss(400)
    width = mean + 12 * sd
    place = 0.5 * width * (x + 1)
    density = np.exp(-0.5 * ((place - mean) / sd) ** 2) / (sd * np.sqrt(2 * np.pi))
    positive = 0.5 * width * w * density
    return np.append(place, 0.0), np.append(positive, 1 - positive.sum())


def test_independent_fields() -> None:
    """Averages of two independent ReLU units, by characteristic functions and by panels."""
    for mean, sd in (([0.3, -0.2], [1.0, 0.5]), ([-2.0, 3.0], [0.7, 0.4]), ([0.0, 0.1], [2.0, 0.01])):
        v = np.array([1.3, -2.0])
        (g, p), (h, q) = (by_panels(m, s) for m, s in zip(mean, sd, strict=True))
        joint, value = np.outer(p, q), logistic(v[0] * g[:, None] + v[1] * h)
        positive = [(joint * value)[g > 0].sum(), (joint * value)[:, h > 0].sum()]
        product = [(joint * value * g[:, None]).sum(), (joint * value * h).sum()]
        ours = relu_independent.averages(logistic, np.array(mean), np.array(sd), v)
        np.testing.assert_allclose(ours, [positive, product], atol=1e-6)


def test_fields_without_variance_are_what_they_are() -> None:
    """A field that does not vary is its mean; so is the output where none does."""
    mean, v = np.array([0.4, -0.3]), np.array([1.0, 2.0])
    positive, product = relu_independent.averages(logistic, mean, np.zeros(2), v)
    value = float(logistic(np.array(0.4)))
    np.testing.assert_allclose([positive, product], [[value, 0.0], [0.4 * value, 0.0]], atol=1e-6)


def test_known_averages_are_those_of_points() -> None:
    """E[1_k f], E[g_k], E[g_k f] against 2^18 random points, at five standard errors: false alarms 1e-5."""
    rng = np.random.default_rng(3)
    A = rng.standard_normal((5, 6))
    C, mean, v = A @ A.T / 6, rng.standard_normal(5), rng.standard_normal(5)
    h = mean + rng.standard_normal((2**18, 5)) @ np.linalg.cholesky(C).T
    g = np.maximum(h, 0.0)
    f = (g @ v)[:, None]
    known = known_averages(C, mean, v)
    for ours, points in ((known.output, (h > 0) * f), (known.level, g), (known.product, g * f)):
        assert np.all(np.abs(ours - points.mean(0)) < 5 * points.std(0) / 2**9)


def errors(how: ReluOutputs, exact: LossQuadrature, states: list[tuple[Array, Array, Array]]) -> Array:
    """Root mean square errors of E and dv over states."""
    apart = [[np.ravel(getattr(how(*s), name) - getattr(exact(*s), name)) for s in states] for name in ("E", "dv")]
    return np.array([np.sqrt(np.mean(np.concatenate(part) ** 2)) for part in apart])


def test_a_control_variate_helps_and_a_wrong_one_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three weakly correlated units, against panels; with a wrong expectation the averages are those of no rule."""
    rng = np.random.default_rng(5)
    p, none = xor(3), np.zeros(0)
    exact, how = LossQuadrature(p, none), ReluOutputs(p, none, 7)
    states = []
    for _ in range(4):
        A = rng.standard_normal((3, 100)) / 3
        states.append((A @ A.T, rng.standard_normal(3), 0.3 * rng.standard_normal((3, 4))))
    with_control = errors(how, exact, states)
    true = relu_independent.averages
    with monkeypatch.context() as patch:
        patch.setattr(relu_outputs, "_corrected", lambda y, _x, _exact: y.sum(0))
        assert np.all(with_control < 0.5 * errors(how, exact, states))
    with monkeypatch.context() as patch:
        patch.setattr(relu_independent, "averages", lambda *at: tuple(1.02 * part for part in true(*at)))
        assert np.all(errors(how, exact, states) > 10 * with_control)
