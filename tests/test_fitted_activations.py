"""Fits of activations state errors that hold; kinks that lie close together are found; random points are many sets."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import erf
from scipy.stats import norm

import overlaps as ov
from overlaps.averages import LossQuadrature, SumForm, judge_of_fit, method_for
from overlaps.averages.field_rule import FieldRule
from overlaps.averages.fit_residual import Corrected
from overlaps.averages.rules import sobol
from overlaps.averages.square_quadrature import SquareQuadrature
from overlaps.averages.sums import CANCELLING, fitted
from overlaps.online.rule_choice import RuleChoice
from problems import problem, random_covariance

EPSILON = 0.05


def smooth_clip(B: float) -> ov.Activation:
    """[ln cosh B(x+1) − ln cosh B(x−1)]/2B, clipped at ±1 the more sharply, the larger B."""

    def value(x: float) -> float:
        a, b = abs(B * (x + 1)), abs(B * (x - 1))
        return (a + math.log1p(math.exp(-2 * a)) - b - math.log1p(math.exp(-2 * b))) / (2 * B)

    return ov.Activation(f"clip {B:g}", value, lambda x: (math.tanh(B * (x + 1)) - math.tanh(B * (x - 1))) / 2)


@pytest.mark.parametrize("B", [0.7, 0.9, 1.0, 1.3, 2.0, 3.0])
def test_the_error_of_a_fit_is_uniform(B: float) -> None:
    """On places of its own, without a division by the coefficients, which cancel where widths are alike."""
    g = smooth_clip(B)
    x = np.linspace(0, 9, 1234)
    wanted = np.array([g.function(place) for place in x])
    for terms in range(3, 9):
        fit = fitted(g, terms)
        if fit is None:
            continue
        c, widths = fit.steps
        off = np.abs(fit.constant + fit.linear * x + erf(x[:, None] / np.sqrt(2 * widths)) @ c - wanted).max()
        assert off <= 1.01 * fit.error <= 1e-3 and np.abs(c).sum() <= CANCELLING
    assert (fitted(g, 5) is None) == (B >= 2)


@pytest.mark.parametrize("B", [0.9, 1.2, 1.7, 2.0])
def test_averages_of_a_smooth_clip(B: float) -> None:
    """One unit each; with fits that cancel, S was off by 2.9e11 at B = 2, and by 76 times what was stated at 0.9."""
    p = problem(smooth_clip(B), 1, 1)
    found = ov.gaussian_averages(p, C := np.array([[1.2, 0.4], [0.4, 1.0]]))
    truth = SquareQuadrature(p, np.ones(1), FieldRule([(), ()], 4, sharpness=np.full(2, p.student.g.sharpness)))(
        C, np.ones(1)
    )
    for name in ("D", "S", "dv", "error"):
        off = np.abs(np.asarray(getattr(found, name)) - np.asarray(getattr(truth, name))).max()
        assert off <= found.accuracy[name] + 1e-14 and found.accuracy[name] < 1e-5


def test_what_a_fit_leaves_by_random_points() -> None:
    """At four fields a lattice knows it: points tell it to hundredths of the largest error, alone they do not."""
    rng = np.random.default_rng(4)
    z, w = sobol(4, 13, 1959, 5)
    for activation in ("tanh", smooth_clip(1.0)):
        p, C, v = problem(activation, 2, 2, label_noise=0.3), random_covariance(rng, 4), np.array([1.0, -0.7])
        how = method_for(p, np.ones(2))
        assert isinstance(how, SumForm)
        judge = Corrected(p, how)
        exact = SquareQuadrature(p, np.ones(2)).finer()
        assert exact is not None
        truth = exact(C, v)
        judge.square.rule.points = lambda *_, **__: (z, w, np.zeros(len(w), np.int64))  # type: ignore[method-assign]
        off = np.abs(judge(C, v).S - truth.S).max()
        assert off < 0.02 * how.fit_error and off < 0.02 * np.abs(judge.square(C, v).S - truth.S).max()
    assert isinstance(judge_of_fit(problem("tanh", 3, 2), method_for(problem("tanh", 3, 2), np.ones(2))), Corrected)


def test_solutions_of_many_fields_by_fits() -> None:
    """Five fields: what is stated is at least what more terms change, and a fit is not judged by random points."""
    p = problem(smooth_clip(1.0), 3, 2)
    start, times = ov.draw(p, 200, seed=1, scale=0.5), [0.3, 2.0]
    rough, fine = (ov.solve(p, start, times, accuracy=a) for a in (1e-3, 1e-6))
    assert "error functions" in fine.data.attrs["averages"]
    for name in rough.variables:
        assert np.abs(rough.data[name] - fine.data[name]).max() <= rough.accuracy(name) + fine.accuracy(name)


def test_random_points_that_replace_a_fit_are_many_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    """One set judged by one other states a difference that may be small by chance."""
    p = problem("tanh", 3, 2)
    monkeypatch.setattr(
        RuleChoice, "_fitted", lambda self, how, *_: method_for(self.problem, how.teacher_readout, "quadrature")
    )
    found = ov.solve(p, ov.draw(p, 200, seed=1, scale=0.5), [0.2], accuracy=1e-2)
    assert "times quadrature (Sobol" in found.data.attrs["averages"]


def insensitive(lam, nu, c, v):
    return max(0.0, abs(lam[0] - nu[0]) - 0.05)


def insensitive_gradient(lam, nu, c, v):
    x = lam[0] - nu[0]
    return np.array([np.sign(x) if abs(x) > 0.05 else 0.0]), np.zeros(1)


def above(lam, nu, c, v):
    return lam[0] - nu[0] - 0.05


def below(lam, nu, c, v):
    return lam[0] - nu[0] + 0.05


def both(lam, nu, c, v):
    return abs(lam[0] - nu[0]) - 0.05


@pytest.mark.parametrize("kinks", [both, (above, below)])
def test_kinks_that_lie_close_together(kinks: object) -> None:
    """Two kinks between two steps of a scan, of one function or of two; averages and a solution to 1e-6."""
    law = ov.Loss(insensitive, insensitive_gradient, name="insensitive", kinks=kinks)
    p = ov.Problem(
        data=ov.GaussianInputs(),
        teacher=ov.Committee(1, "linear"),
        student=ov.Committee(1, "linear"),
        algorithm=ov.OnlineSGD(0.5),
        loss=law,
    )
    for C in ([[1.2, 0.4], [0.4, 1.0]], [[1.0, 0.9], [0.9, 1.0]], [[3.0, 0.4], [0.4, 2.0]]):
        found, sd = ov.gaussian_averages(p, C), math.sqrt(C[0][0] + C[1][1] - 2 * C[0][1])
        t = EPSILON / sd
        truth = {"S": 2 * norm.sf(t), "D": 2 * norm.pdf(t) / sd, "error": 2 * sd * (norm.pdf(t) - t * norm.sf(t))}
        for name, value in truth.items():
            assert abs(np.ravel(getattr(found, name))[0] - value) < min(1e-10, found.accuracy[name] + 1e-14)
    start = ov.Start.from_overlaps(p, Q=[[0.5]], R=[[0.1]], T=[[1.0]])
    assert ov.solve(p, start, [0.3, 1.0], accuracy=1e-6).accuracy("Q") < 1e-6


def test_kinks_of_a_single_field_that_lie_close_together() -> None:
    """|λ| − .004 twice within a step of the scan, and |λ|, which changes no sign."""

    def narrow(lam, nu, c, v):
        return abs(lam[0] - 1.003) - 0.004

    def touching(lam, nu, c, v):
        return abs(nu[0] + 0.7)

    p = problem("linear", 1, 1, loss=ov.Loss(insensitive, insensitive_gradient, kinks=[narrow, touching]))
    (own, other), joint = p.kinks
    np.testing.assert_allclose(own, [0.999, 1.007], atol=1e-9)
    np.testing.assert_allclose(other, [-0.7], atol=1e-7)
    assert joint is None


def test_errors_by_weighted_points_are_not_negative() -> None:
    """Weights that make polynomials exact are negative at some points, and a loss may be large there alone."""
    z, w = sobol(9, 10, 1959, 5)
    peak = z[np.argmin(w)].copy()

    def value(lam, nu, c, v):
        return np.exp(-9 * np.sum((lam - peak) ** 2))

    def gradient(lam, nu, c, v):
        return -18 * (lam - peak) * np.exp(-9 * np.sum((lam - peak) ** 2)), np.zeros(9)

    p = ov.Problem(
        data=ov.GaussianMixture(2),
        student=ov.Committee(9, "linear"),
        algorithm=ov.OnlineSGD(0.5),
        loss=ov.Loss(value, gradient),
    )
    how = method_for(p, np.ones(0))
    assert isinstance(how, LossQuadrature) and how.rule.log2 == 10
    C, v, none = np.eye(9), np.ones(9), np.zeros((9, 2))
    assert w @ np.array([value(h, none, 0, v) for h in z]) < 0
    assert 0 <= how(C, v, none).error < 1e-9 and 0 <= how.errors(C[None], v[None], none[None])[0] < 1e-9
