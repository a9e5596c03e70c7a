"""A two-layer network on the XOR mixture without noise: Euler steps, quadrature, finite differences, simulation.

μ and ν are the first two coordinates; labels are 1, 1, 0, 0 at μ, −μ, ν, −ν.

Tests that sample have fixed seeds and tolerances of five standard errors or more: a false alarm has a probability below
1e-6 had the seed been drawn.
"""

from __future__ import annotations

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit as sigmoid
from scipy.stats import norm

from differences import gradient_of, hessian_of
from overlaps import InputError
from overlaps.laws import (
    hidden_classes,
    xor_flow,
    xor_initial_outlier,
    xor_norm,
    xor_outliers,
    xor_readout_block,
    xor_transition,
)

MEANS = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
LABELS = np.array([1.0, 1.0, 0.0, 0.0])


def logistic_loss(v, w, x, y):
    output = v @ np.maximum(w @ x, 0.0)
    return np.logaddexp(0.0, output) - y * output


def field(v, w, decay):
    """Minus the gradient of the mean loss at the four means, from the chain rule sample by sample; w is (K, 2)."""
    dv, dw = -decay * v, -decay * w
    for x, y in zip(MEANS, LABELS, strict=True):
        h = w @ x
        error = sigmoid(v @ np.maximum(h, 0.0)) - y
        dv = dv - 0.25 * error * np.maximum(h, 0.0)
        dw = dw - 0.25 * error * np.outer(v * (h > 0), x)
    return dv, dw


def euler(v, w, decay, last, dt):
    """Euler steps; an overlap that would change sign is put to zero, where it stays."""
    for _ in range(round(last / dt)):
        dv, dw = field(v, w, decay)
        v, ahead = v + dt * dv, w + dt * dw
        w = np.where(ahead * w <= 0, 0.0, ahead)
    return v, w


def start(seed, units, scale=0.1, readout=1.0):
    """Readout and overlaps with μ and ν."""
    rng = np.random.default_rng(seed)
    v, a, b = (size * rng.standard_normal(units) for size in (readout, scale, scale))
    return v, a, b


@pytest.mark.parametrize("readout", [1.0, 0.05])
def test_xor_flow_against_euler_steps(readout):
    """With small readouts some of them change sign on the way."""
    v, a, b = start(1, 6, scale=0.4, readout=readout)
    decay, last = 0.05, 8.0
    law = np.array(xor_flow(v, a, b, decay, [last]))[:, 0]
    assert np.any(np.sign(law[0]) != np.sign(v)) == (readout == 0.05)
    assert np.sum(law[1:] == 0) >= 3
    errors = []
    for dt in (4e-3, 1e-3):
        v_end, w_end = euler(v, np.stack([a, b], axis=1), decay, last, dt)
        errors.append(max(np.abs(v_end - law[0]).max(), np.abs(w_end.T - law[1:]).max()))
    assert errors[1] < 3e-3
    assert 2.5 < errors[0] / errors[1] < 6  # first order


@pytest.mark.parametrize(("decay", "published"), [(0.02, 2.4423), (0.05, 1.3863), (0.1, 0.4055), (0.12, 0.0800)])
def test_xor_norm_is_where_the_flow_ends(decay, published):
    assert xor_norm(decay) == pytest.approx(published, abs=5e-5)
    v, a, b = np.array(xor_flow(*start(2, 12), decay, [5000.0]))[:, 0]
    sets = [a > 0, a < 0, b > 0, b < 0]
    assert sum(np.any(s) for s in sets) == 4
    for s, sign in zip(sets, (1, 1, -1, -1), strict=True):
        assert np.all(np.sign(v[s]) == sign)
        assert v[s] @ v[s] == pytest.approx(xor_norm(decay), rel=1e-6)
    assert np.allclose(np.abs(a) + np.abs(b), np.abs(v), rtol=1e-6)


def test_xor_norm_is_zero_from_an_eighth_on():
    assert xor_norm(0.125) == xor_norm(0.13) == xor_norm(0.25) == xor_norm(7.0) == 0
    assert 0 < xor_norm(0.1249999) < 1e-5
    v, a, b = xor_flow(*start(3, 5), 0.13, [0, 5000.0])
    assert max(np.abs(x[1]).max() for x in (v, a, b)) < 1e-9


@pytest.mark.parametrize("readout", [1.0, 0.05])
def test_xor_flow_rests_at_zero_for_good(readout):
    """An overlap that has come to zero is pushed back to it from both sides at all later times; lengths balance."""
    times = np.linspace(0, 40, 81)
    decay = 0.03
    v0, a0, b0 = start(4, 20, scale=0.3, readout=readout)
    v, a, b = xor_flow(v0, a0, b0, decay, times)
    seen = 0
    for i in range(times.size):
        w = np.stack([a[i], b[i]], axis=1)
        for unit, direction in np.argwhere(w == 0):
            seen += 1
            for side in (1e-9, -1e-9):
                beside = w.copy()
                beside[unit, direction] = side
                assert field(v[i], beside, decay)[1][unit, direction] * side < 0
    assert seen > 1000
    gone = np.stack([a, b]) == 0
    assert np.all(gone[:, 1:] >= gone[:, :-1])
    balance = (v0**2 - a0**2 - b0**2) * np.exp(-2 * decay * times[:, None])
    assert np.allclose(v**2 - a**2 - b**2, balance, atol=1e-9)
    keeps = v0**2 >= a0**2 + b0**2
    assert np.all(np.sign(v[:, keeps]) == np.sign(v0[keeps]))


def test_xor_flow_symmetries():
    v, a, b = start(5, 7)
    times = [0, 1, 5, 200]
    one = np.array(xor_flow(v, a, b, 0.04, times))
    assert np.allclose(one[:, 0], [v, a, b], rtol=1e-15)
    order = np.random.default_rng(0).permutation(7)
    assert np.allclose(np.array(xor_flow(v[order], a[order], b[order], 0.04, times)), one[:, :, order], atol=1e-9)
    assert np.allclose(np.array(xor_flow(v, -a, b, 0.04, times)), one * np.array([1, -1, 1])[:, None, None], atol=1e-9)
    # labels and means exchanged
    assert np.allclose(np.array(xor_flow(-v, b, a, 0.04, times))[[0, 2, 1]] * [[[-1]], [[1]], [[1]]], one, atol=1e-9)
    # two equal units come to zero together; a unit of length zero, and an overlap of zero, stay
    v, a, b = xor_flow([1, 1, 0, 1], [0.3, 0.3, 0, 0], [0.1, 0.1, 0, 0.2], 0.05, [0, 100])
    assert np.array_equal(a[:, 0], a[:, 1]) and np.all(b[1] == 0)
    assert v[1, 2] == a[1, 3] == 0


def test_overlaps_that_differ_by_rounding_come_to_zero_together():
    near = 1 + 1e-16 * np.arange(40)
    v, a, b = xor_flow(1.1 * near, 0.3 * near, -0.1 * near, 0.05, [0.1, 5, 50])
    assert np.all(b[1:] == 0) and np.all(b[0] < 0)
    assert np.allclose(a, a[:, :1], rtol=1e-12) and np.allclose(v, v[:, :1], rtol=1e-12)


def test_units_pick_their_set_by_their_signs():
    v0, a0, b0 = start(6, 200, scale=0.03)
    keeps = v0**2 >= a0**2 + b0**2
    _, a, b = np.array(xor_flow(v0, a0, b0, 0.05, [2000.0]))[:, 0]
    left, other = np.where(v0 > 0, a, b)[keeps], np.where(v0 > 0, b, a)[keeps]
    assert np.all(other == 0)
    assert np.all(np.sign(left) == np.sign(np.where(v0 > 0, a0, b0)[keeps]))


def growth(u, variance):
    """E[(y − ½) g(u·x)], by adaptive quadrature over the field."""
    total = 0.0
    for mean, y in zip(MEANS, LABELS, strict=True):
        centre, width = mean @ u[:2], np.sqrt(variance) * np.linalg.norm(u)
        low = max(0.0, centre - 40 * width)
        high = max(0.0, centre) + 40 * width
        near = [p for p in (centre, width) if low < p < high]
        total += 0.25 * (y - 0.5) * quad(lambda h, c=centre, s=width: h * norm.pdf(h, c, s), low, high, points=near)[0]
    return total


@pytest.mark.parametrize(("variance", "published"), [(0.1, 0.0935), (0.01, 0.1150), (1.0, None), (30.0, None)])
def test_xor_transition_is_the_largest_growth_rate(variance, published):
    law = xor_transition(variance)
    if published:
        assert law == pytest.approx(published, abs=5e-5)
    mu = np.array([1.0, 0.0, 0.0])
    assert growth(mu, variance) == pytest.approx(law, abs=1e-9)
    # the weights grow at the same rate, as the drift of a homogeneous function
    assert (growth(1.0001 * mu, variance) - growth(0.9999 * mu, variance)) / 2e-4 == pytest.approx(law, abs=1e-7)
    rng = np.random.default_rng(8)
    for _ in range(10):
        u = rng.standard_normal(3)
        assert abs(growth(u / np.linalg.norm(u), variance)) < law


def test_xor_transition_limits():
    assert xor_transition() == xor_transition(0.0) == 0.125
    assert xor_transition(1e-320) == pytest.approx(0.125)
    assert xor_transition(1e12) == pytest.approx((2 * np.pi * 1e12) ** -0.5 / 8, rel=1e-9)
    values = [xor_transition(s) for s in np.geomspace(1e-3, 1e6, 50)]
    assert np.all(np.diff(values) < 0)


@pytest.mark.parametrize(
    ("units", "published"),
    [(4, [0.0156, 0.3281, 0.5625, 0.0938]), (6, [0.0010, 0.0908, 0.5273, 0.3809]), (20, [0, 0, None, 0.9873])],
)
def test_hidden_classes_published(units, published):
    for value, known in zip(hidden_classes(units), published, strict=True):
        assert known is None or value == pytest.approx(known, abs=5e-5)


@pytest.mark.parametrize("classes", [1, 4, 7])
@pytest.mark.parametrize("units", [1, 3, 30, 1000])
def test_hidden_classes_by_inclusion_and_exclusion(units, classes):
    """In exact arithmetic, where cancellation does no harm; also far in the tail."""
    law = hidden_classes(units, classes)
    assert law.sum() == pytest.approx(1, abs=1e-12)
    for j in range(1, classes + 1):
        terms = ((-1) ** (j - i) * comb(j, i) * Fraction(i, classes) ** units for i in range(j + 1))
        assert law[j - 1] == pytest.approx(float(comb(classes, j) * sum(terms)), rel=1e-10, abs=1e-300)


def test_hidden_classes_by_simulation():
    runs = 100_000
    picks = np.random.default_rng(9).integers(4, size=(runs, 5))
    found = np.array([len(set(row)) for row in picks.tolist()])
    law = hidden_classes(5)
    for j in range(1, 5):
        assert abs(np.mean(found == j) - law[j - 1]) < 5 * np.sqrt(law[j - 1] * (1 - law[j - 1]) / runs)


@pytest.mark.parametrize("kind", ["hessian", "gradient"])
def test_xor_blocks_without_noise(kind):
    """The readout's block and the units' blocks, by finite differences of the loss at the four means."""
    v, a, b = start(10, 5, scale=0.8)
    w = np.stack([a, b], axis=1)
    Q = w @ w.T + np.eye(5)

    def block(loss, at):
        if kind == "hessian":
            return hessian_of(lambda z: np.mean([loss(z, x, y) for x, y in zip(MEANS, LABELS, strict=True)]), at)
        slopes = [gradient_of(lambda z, x=x, y=y: loss(z, x, y), at) for x, y in zip(MEANS, LABELS, strict=True)]
        return np.mean([np.outer(slope, slope) for slope in slopes], axis=0)

    readout = block(lambda z, x, y: logistic_loss(z, w, x, y), v)
    assert np.allclose(xor_readout_block(v, a, b, kind=kind), readout, atol=1e-7)
    for i in range(5):

        def loss(z, x, y, i=i):
            return logistic_loss(v, np.concatenate([w[:i], z[None], w[i + 1 :]]), x, y)

        # H and G of a unit are diagonal in μ and ν: each mean is along one of them
        law = xor_outliers(v, a, b, Q, 0.0, kind=kind)[i]
        assert np.allclose(block(loss, w[i]), np.diag(law), atol=1e-7)


@pytest.mark.parametrize("kind", ["hessian", "gradient"])
def test_xor_outliers_see_which_side_of_zero_an_overlap_is_on(kind):
    """Overlaps of the order of the noise: Φ against samples; corrections of order √variance."""
    rng = np.random.default_rng(11)
    v, Q = np.array([1.3, -0.8]), np.array([[1.5, 0.0], [0.0, 1.2]])
    for variance, tolerance in ((1e-2, 0.4), (1e-5, 0.01)):
        a = np.array([0.9, 0.5 * np.sqrt(variance)])
        b = np.array([-0.7 * np.sqrt(variance), 0.8])
        w = np.zeros((2, 4))
        w[:, :2] = np.stack([a, b], axis=1)
        w[[0, 1], [2, 3]] = np.sqrt(np.diag(Q) - a**2 - b**2)
        sums = np.zeros((2, 2))
        for mean, y in zip(MEANS, LABELS, strict=True):
            x = np.sqrt(variance) * rng.standard_normal((200_000, 4))
            x[:, :2] += mean
            h = x @ w.T
            output = np.maximum(h, 0.0) @ v
            factor = sigmoid(output) * sigmoid(-output) if kind == "hessian" else (sigmoid(output) - y) ** 2
            active = factor[:, None] * (h > 0) * v**2
            sums += 0.25 * active.T @ x[:, :2] ** 2 / len(x)
        law = xor_outliers(v, a, b, Q, variance, kind=kind)
        assert np.abs(sums / law - 1).max() < tolerance
    step = xor_outliers(v, np.sign(a), np.sign(b), 9 * np.eye(2), 0.0, kind=kind)
    assert np.abs(step / law - 1).max() > 0.05  # the test would see Φ missing


def test_xor_readout_block_counts_the_sets():
    for units in (1, 2, 3, 8):
        v, a, b = np.array(xor_flow(*start(20 + units, units), 0.05, [3000.0]))[:, 0]
        sets = sum(np.any(s) for s in (a > 0, a < 0, b > 0, b < 0))
        for kind in ("hessian", "gradient"):
            values = np.linalg.eigvalsh(xor_readout_block(v, a, b, kind=kind))
            assert np.sum(values > 1e-6) == sets


def test_xor_initial_outlier():
    assert xor_initial_outlier(8, 0.1) == pytest.approx(0.0404, abs=5e-5)
    rng = np.random.default_rng(12)
    variance, units = 1e-5, 5
    active = np.maximum(np.sqrt(variance) * rng.standard_normal((400_000, units)), 0.0)
    output = active @ rng.standard_normal(units)
    slope = sigmoid(output) * sigmoid(-output)
    values = np.linalg.eigvalsh((active.T * slope) @ active / len(active))
    # corrections of relative order √variance, and a standard error below 0.2 %
    assert values[-1] == pytest.approx(xor_initial_outlier(units, variance), rel=0.01)
    assert np.allclose(values[:-1], variance / 4 * (0.5 - 1 / (2 * np.pi)), rtol=0.02)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: xor_norm(0.0), "decay: expected a number above 0"),
        (lambda: xor_transition(-1.0), "variance"),
        (lambda: xor_flow([1.0], [1.0, 2.0], [1.0], 0.1, [1.0]), "m_mu: expected shape"),
        (lambda: xor_flow([], [], [], 0.1, [1.0]), "at least one unit"),
        (lambda: xor_flow([1.0], [np.nan], [1.0], 0.1, [1.0]), "not finite"),
        (lambda: xor_flow([1e9], [1.0], [1.0], 0.1, [1.0]), "at most 100"),
        (lambda: xor_flow([1.0], [1.0], [1.0], -0.1, [1.0]), "decay"),
        (lambda: xor_flow([1.0], [1.0], [1.0], 0.1, [2.0, 1.0]), "increasing"),
        (lambda: xor_flow([1.0], [1.0], [1.0], 0.1, [1e9]), "long at rest"),
        (lambda: hidden_classes(0), "units"),
        (lambda: hidden_classes(3, 0), "classes"),
        (lambda: xor_readout_block([1.0], [1.0], [1.0], kind="h"), "unknown kind"),
        (lambda: xor_outliers([1.0], [1.0], [1.0], [[1.0]], 0.1), "Q: expected squared lengths"),
        (lambda: xor_outliers([1.0], [0.5], [0.0], [[0.2]], 0.1), "least .* = 0.25 on the"),
        (lambda: xor_outliers([1.0], [0.0], [0.0], [[0.0]], 0.1), "Q: expected squared lengths"),
        (lambda: xor_outliers([1.0], [0.0], [0.0], [[1.0]], -0.1), "variance"),
        (lambda: xor_initial_outlier(0, 0.1), "units"),
        (lambda: xor_initial_outlier(2, 0.0), "variance"),
    ],
)
def test_refusals(call, says):
    with pytest.raises(InputError, match=says):
        call()
