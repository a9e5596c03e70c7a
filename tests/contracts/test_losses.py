"""Every loss of the library: its derivatives, averages and refusals, and all three scales."""

from __future__ import annotations

import numpy as np
import pytest

import overlaps as ov
from overlaps.network.losses import CrossEntropy, OutputLoss
from problems import random_covariance

from .cases import LOSSES, assert_same, equal_in_law, round_trip, tends_to_theory, with_loss

every = pytest.mark.parametrize("name", LOSSES)
OUTER = [name for name, loss in LOSSES.items() if isinstance(loss, OutputLoss)]


def targets(loss: OutputLoss) -> tuple[float, ...]:
    return loss.labels or (-1.7, -0.4, 0.0, 1.0, 2.3)


@pytest.mark.parametrize("name", OUTER)
def test_slope_and_bend_are_finite_differences(name: str) -> None:
    """At a kink the slope is between those of both sides."""
    loss, step = LOSSES[name], 1e-5
    assert isinstance(loss, OutputLoss)
    for y in targets(loss):
        for f in np.linspace(-6, 6, 1201):
            low, at, high = (loss.value(f + move, y) for move in (-step, 0.0, step))
            sides, slack = sorted(((at - low) / step, (high - at) / step)), 1e-4 * (1 + abs(at))
            assert sides[0] - slack <= loss.slope(f, y) <= sides[1] + slack
            if loss.bend is not None:
                assert sides[1] - sides[0] < slack, "a loss that has a bend has no kinks"
                measured = (high - low) / (2 * step)
                assert loss.slope(f, y) == pytest.approx(measured, abs=1e-6 * (1 + abs(at)))
                measured = (loss.slope(f + step, y) - loss.slope(f - step, y)) / (2 * step)
                assert loss.bend(f, y) == pytest.approx(measured, abs=1e-6 * (1 + abs(at)))
        assert np.isfinite([loss.value(f, y) + loss.slope(f, y) for f in (-1e3, 1e3)]).all(), "outputs take any value"


def any_target(name: str) -> bool:
    """Whether a loss takes any target, of a teacher or a label, so that noise can be added to it."""
    return getattr(LOSSES[name], "labels", ()) is None


@every
def test_compiled_derivatives_are_those_of_the_compiled_value(name: str) -> None:
    """With respect to fields and readout, at random points, for all labels; curvature where there is one."""
    p, rng, step = with_loss(name), np.random.default_rng(0), 1e-5
    K, M, u = p.student.units, p.teacher_units, p.teacher_readouts
    takes_noise = any_target(name)

    def gradient(lam: np.ndarray, v: np.ndarray, nu: np.ndarray, c: int, noise: float) -> np.ndarray:
        dlam, dv = np.empty(K), np.empty(K)
        p.gradient(lam, nu, c, v, u, noise, dlam, dv)
        return np.concatenate([dlam, dv])

    def differences(f, x: np.ndarray) -> np.ndarray:
        return np.stack([(f(x + move) - f(x - move)) / (2 * step) for move in step * np.eye(2 * K)], -1)

    for c in sorted(set(p.data.components.labels.tolist())) * 5:
        x, nu, noise = rng.standard_normal(2 * K), rng.standard_normal(M), 0.4 * takes_noise
        value = lambda x: p.value(x[:K], nu, c, x[K:], u, noise)  # noqa: B023, E731
        slope = lambda x: gradient(x[:K], x[K:], nu, c, noise)  # noqa: B023, E731
        found = slope(x)
        np.testing.assert_allclose(found, differences(value, x), atol=1e-8)
        if LOSSES[name].smooth:
            ll, lv, vv = (np.empty((K, K)) for _ in range(3))
            p.curvature(x[:K], nu, c, x[K:], u, ll, lv, vv)
            noise = 0.0
            np.testing.assert_allclose(np.block([[ll, lv], [lv.T, vv]]), differences(slope, x), atol=1e-6)
        else:
            with pytest.raises(ov.InputError, match=f"^loss: .*{name}"):
                _ = p.curvature


def softmax_value(lam, nu, c, v):
    return np.log(np.sum(np.exp(lam))) - lam[c]


def softmax_gradient(lam, nu, c, v):
    e = np.exp(lam)
    e = e / np.sum(e)
    e[c] -= 1.0
    return e, 0.0 * v


BY_HAND = {"cross-entropy": ov.Loss(softmax_value, softmax_gradient)}


def by_hand(name: str) -> ov.Loss:
    """The loss as a user would write it, for erf units."""
    loss = LOSSES[name]
    if isinstance(loss, CrossEntropy):
        return BY_HAND[name]
    from math import erf, pi, sqrt

    from numba import njit

    outer, slope, has_teacher = njit(loss.value), njit(loss.slope), loss.labels is None

    def miss(lam, nu, c, v):
        f, y = 0.0, float(c)
        for k in range(lam.size):
            f += v[k] * erf(lam[k] / sqrt(2.0))
        if has_teacher:
            for m in range(nu.size):
                y += erf(nu[m] / sqrt(2.0))
        return f, y

    both = njit(miss)

    def value(lam, nu, c, v):
        f, y = both(lam, nu, c, v)
        return outer(f, y)

    def gradient(lam, nu, c, v):
        f, y = both(lam, nu, c, v)
        pull = slope(f, y)
        g = np.empty(lam.size)
        for k in range(lam.size):
            g[k] = erf(lam[k] / sqrt(2.0))
        return v * sqrt(2.0 / pi) * np.exp(-0.5 * lam * lam) * pull, g * pull

    if loss.kinks is None:
        return ov.Loss(value, gradient)
    margin = njit(loss.kinks)

    def kinks(lam, nu, c, v):
        f, y = both(lam, nu, c, v)
        return margin(f, y)

    return ov.Loss(value, gradient, kinks=kinks)


@every
def test_averages_are_those_of_the_loss_written_by_hand(name: str) -> None:
    p, rng = with_loss(name), np.random.default_rng(1)
    own = ov.Problem(data=p.data, teacher=p.teacher, student=p.student, algorithm=p.algorithm, loss=by_hand(name))
    fields = p.student.units + p.teacher_units
    C = random_covariance(rng, fields)
    means = rng.standard_normal((fields, p.data.components.weights.size)) if p.data.has_means else None
    assert_same(ov.gaussian_averages(p, C, means=means), ov.gaussian_averages(own, C, means=means), C)


@every
def test_what_a_loss_does_not_take_is_refused(name: str) -> None:
    """Labels it does not know, a teacher or noise where it fits labels, the wrong network, a name misspelt."""
    p = with_loss(name)
    parts = {"data": p.data, "teacher": p.teacher, "student": p.student, "algorithm": p.algorithm, "loss": name}
    with pytest.raises(ov.InputError, match=rf"^unknown loss '{name}x'; did you mean '{name}'"):
        ov.Problem(**{**parts, "loss": f"{name}x"})
    other = ov.Committee(3) if isinstance(p.student, ov.Softmax) else ov.Softmax(2)
    with pytest.raises(ov.InputError, match=r"^loss: "):
        ov.Problem(**{**parts, "student": other})
    if any_target(name):
        assert ov.Problem(**parts, label_noise=0.3).label_noise == 0.3
        return
    with pytest.raises(ov.InputError, match=r"^label_noise: "):
        ov.Problem(**parts, label_noise=0.3)
    with pytest.raises(ov.InputError, match=r"^teacher: "):
        ov.Problem(**{**parts, "teacher": ov.Committee(1)})
    known = range(p.student.units) if isinstance(p.student, ov.Softmax) else LOSSES[name].labels
    refused = {(0, max(known) + 1): max(known) + 1, (0, 0.5): 0.5, (0, -1): -1}
    if tuple(known) == (0, 1):  # two classes may be -1 and 1 as well, but not a mixture of both
        refused[0, -1] = 0
        two = ov.GaussianMixture(means=2, labels=[-1, 1])
        assert ov.Problem(**{**parts, "data": two}).data.components.labels.tolist() == [-1, 1]
    for labels, wrong in refused.items():
        with pytest.raises(ov.InputError, match=rf"^labels: .*got {wrong}\b"):
            ov.Problem(**{**parts, "data": ov.GaussianMixture(means=2, labels=list(labels))})


@every
def test_a_problem_of_it_survives_toml(name: str) -> None:
    round_trip(with_loss(name))


@every
def test_the_three_scales_agree(name: str) -> None:
    """Kinks that a loss declares are no obstacle to macro."""
    p = with_loss(name)
    equal_in_law(p, runs=120)
    tends_to_theory(p)
