"""Outputs of many ReLU units: independent fields against quadrature, and what they are worth as a control variate."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mixtures import xor
from overlaps.averages import LossQuadrature, relu_independent, relu_outputs
from overlaps.averages.relu_outputs import ReluOutputs, _factor, known_averages

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
        ours = relu_independent.averages(logistic, np.diag(np.square(sd)), np.array(mean), v)
        np.testing.assert_allclose([ours.positive, ours.product], [positive, product], atol=1e-6)
        known = known_averages(np.diag(np.square(sd)), np.array(mean), v)
        np.testing.assert_allclose([ours.output, ours.square], [known.output, known.product], atol=1e-12)


def test_first_order_in_correlations() -> None:
    """Averages of three weakly correlated units by panels, and of lines in closed form: differences of both signs of ρ.

    What the first order leaves out is of second order, so that symmetric differences are right to third.
    """
    rng = np.random.default_rng(8)
    mean, sd, v, small = rng.standard_normal(3), rng.uniform(0.5, 1.5, 3), np.array([1.3, -0.8, 0.6]), 0.02
    R = np.array([[0.0, 1.0, -0.7], [1.0, 0.0, 0.4], [-0.7, 0.4, 0.0]])
    p, none = xor(3), np.zeros(0)
    exact = LossQuadrature(p, none).finer()
    assert exact is not None
    labels = p.data.components.labels
    c = int(np.flatnonzero(labels == 0)[0])  # of label 0, whose slope is the logistic function
    (up, line_up), (down, line_down) = (
        (exact.each(np.repeat(C[None], 4, 0), v, np.repeat(mean[:, None], 4, 1))[c], known_averages(C, mean, v))
        for C in (np.outer(sd, sd) * (np.eye(3) + sign * small * R) for sign in (1.0, -1.0))
    )
    ours = relu_independent.averages(logistic, np.outer(sd, sd) * (np.eye(3) + R), mean, v)
    change = [(up.E[:, 0] - down.E[:, 0]) / v, up.dv - down.dv, line_up.output - line_down.output]
    change.append(line_up.product - line_down.product)
    expected = np.array(change) / (2 * small)
    found = [ours.positive_first, ours.product_first, ours.output_first, ours.square_first]
    np.testing.assert_allclose(found, expected, atol=5e-4 * np.abs(expected).max())


def test_fields_without_variance_are_what_they_are() -> None:
    """A field that does not vary is its mean; so is the output where none does."""
    mean, v = np.array([0.4, -0.3]), np.array([1.0, 2.0])
    near = relu_independent.averages(logistic, np.zeros((2, 2)), mean, v)
    value = float(logistic(np.array(0.4)))
    np.testing.assert_allclose([near.positive, near.product], [[value, 0.0], [0.4 * value, 0.0]], atol=1e-6)


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


def test_units_that_no_point_sees_leave_the_weights_alone() -> None:
    """Five units of one direction, six standard deviations below zero: the loss is log 2, weights sum to one."""
    v = np.array([0.4, 0.6, 0.1, 0.8, 0.9])
    C, means = 0.01 * np.outer(v, v), np.tile(-0.6 * v[:, None], 4)
    for points_set in (0, 1):
        how = ReluOutputs(xor(5), v, points_set=points_set)
        found = how.each_error(np.tile(C + 1e-9 * np.eye(5), (4, 1, 1)), v, means)
        np.testing.assert_allclose(found, np.log(2), rtol=1e-6)
    w = np.full(64, 1 / 64)
    far = relu_outputs.calibrated(np.full((64, 5), -1.0), w, v, known_averages(C, means[:, 0], v))
    np.testing.assert_allclose(far, w, rtol=1e-9)


def errors(how: ReluOutputs, exact: LossQuadrature, states: list[tuple[Array, Array, Array]]) -> Array:
    """Root mean square errors of E and dv over states."""
    apart = [[np.ravel(getattr(how(*s), name) - getattr(exact(*s), name)) for s in states] for name in ("E", "dv")]
    return np.array([np.sqrt(np.mean(np.concatenate(part) ** 2)) for part in apart])


def test_control_variates_help_and_wrong_ones_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three weakly correlated units, against panels; with wrong expectations the averages are those of no rule."""
    rng = np.random.default_rng(5)
    p, none = xor(3), np.zeros(0)
    exact, how = LossQuadrature(p, none), ReluOutputs(p, none, 7)
    states = []
    for _ in range(4):
        A = rng.standard_normal((3, 100)) / 3
        states.append((A @ A.T, rng.standard_normal(3), 0.3 * rng.standard_normal((3, 4))))
    with_both = errors(how, exact, states)
    true = relu_independent.averages

    def first_order_alone_lost(*at: Any) -> relu_independent.Independent:
        return replaced(true(*at), ("positive_first", "product_first"), 1.5)

    def all_wrong(*at: Any) -> relu_independent.Independent:
        return replaced(true(*at), ("positive", "product"), 1.02)

    for wrong, times in ((first_order_alone_lost, 3), (all_wrong, 10)):
        with monkeypatch.context() as patch:
            patch.setattr(relu_independent, "averages", wrong)
            assert np.all(errors(how, exact, states) > times * with_both)
    # correlations that are said to be none leave the first order without variance, and with it without use
    with monkeypatch.context() as patch:
        patch.setattr(relu_outputs, "_factor", lambda C, sd: _factor(C, sd)._replace(correlations=np.zeros_like(C)))
        assert np.all(with_both < [0.9, 0.5] * errors(how, exact, states))


def replaced(near: relu_independent.Independent, names: tuple[str, ...], factor: float) -> relu_independent.Independent:
    """With these averages wrong by a factor."""
    return near._replace(**{name: factor * getattr(near, name) for name in names})


def test_a_table_of_a_cubic_is_the_cubic() -> None:
    """Between places of the table it is the one cubic that has the values and slopes there."""
    from overlaps.averages.relu_controls import LossTable
    from overlaps.averages.relu_outputs import _looked_up

    cubic = np.polynomial.Polynomial([0.3, -1.1, 0.7, 2.0])
    places, f = np.arange(-2.0, 2.01, 0.25), np.random.default_rng(4).uniform(-2, 2, 50)
    table = LossTable(-2.0, 0.25, 4.0, cubic(places), cubic.deriv()(places))
    ours = _looked_up(*ReluOutputs(xor(5), np.zeros(0)).parts[1:], 0.0, table, f)
    np.testing.assert_allclose(ours, [cubic(f), cubic.deriv()(f)], atol=1e-12)


def test_a_table_is_as_good_as_the_loss() -> None:
    """ℓ' and ℓ'' between and beyond the places of the table; a loss that no table serves has an empty one."""
    from overlaps.averages.relu_outputs import _looked_up, tabulated
    from overlaps.network.losses.logistic import bend, slope

    how = ReluOutputs(xor(5), np.zeros(0))
    f = np.concatenate([np.random.default_rng(9).uniform(-12, 12, 500), [-80.0, 80.0]])
    for y in (0.0, 1.0):
        ours = _looked_up(*how.parts[1:], y, tabulated("logistic", y), f)
        np.testing.assert_allclose(ours, [[slope(x, y) for x in f], [bend(x, y) for x in f]], atol=1e-7)
