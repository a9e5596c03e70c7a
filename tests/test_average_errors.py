"""Every average states an error that holds: random problems, each again by an independent and tighter route.

Routes: closed forms against quadrature, one-dimensional formulas for the hinge, nested panels written here. A statement
holds where the truth lies within it; at least 99 of 100 must, none by more than ten times, and a mutant that states a
hundredth of the error is rejected by the same count.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest
from numba import njit
from scipy.special import ndtr

import overlaps as ov
from gaussian import panels
from overlaps.averages import LossQuadrature, SumForm, method_for
from overlaps.averages.field_rule import FieldRule
from overlaps.averages.panels import no_margin, panel_rule
from overlaps.averages.relu_outputs import ReluOutputs
from overlaps.averages.square_quadrature import SquareQuadrature
from overlaps.averages.sum_averages import sum_of_angles
from overlaps.averages.sums import fitted
from problems import problem, random_covariance

NAMES = ("D", "S", "dv", "error")
ROUNDING = 1e-12


def own_erf() -> ov.Activation:
    return ov.Activation(
        "my erf", lambda x: math.erf(x / math.sqrt(2)), lambda x: math.sqrt(2 / math.pi) * math.exp(-x * x / 2)
    )


def raised_erf() -> ov.Activation:
    """An error function with an even part, which meets that of softplus."""
    return ov.Activation("raised erf", lambda x: 0.4 + math.erf(x), lambda x: 2 / math.sqrt(math.pi) * math.exp(-x * x))


def ratios(stated: ov.averages.GaussianAverages, truth: object, C: np.ndarray) -> Iterator[float]:
    """Of the true error and the stated one, for each quantity; D in the directions that fields have, D C."""
    for name in NAMES:
        x, y, within = np.asarray(getattr(stated, name)), np.asarray(getattr(truth, name)), stated.accuracy[name]
        if name == "D":
            x, y, within = x @ C, y @ C, within * max(1.0, float(np.abs(C).sum(0).max()))
        yield float(np.abs(x - y).max()) / (within + ROUNDING * max(1.0, float(np.abs(y).max())))


def covers(found: list[float], factor: float = 1.0) -> bool:
    """Whether errors are within what was stated, over `factor`, in 99 cases of 100, and never ten times as large."""
    against = factor * np.array(found)
    return bool(np.mean(against <= 1) >= 0.99 and against.max() <= 10)


def test_quadrature_at_any_covariance() -> None:
    """Fields from tiny to large, nearly singular ones among them; a lattice of fixed spacing is off by 2.7e-3 here."""
    rng = np.random.default_rng(1)
    found = []
    for activation in ("erf", "relu", "linear"):
        for K, M in ((1, 1), (1, 2), (2, 2)):
            for variance in (1e-4, 0.3, 2.0, 20.0):
                p, F = problem(activation, K, M, label_noise=0.3), K + M
                C = random_covariance(rng, F, variance)
                if rng.random() < 0.3:  # a student close to its teacher
                    keep = np.eye(F)
                    keep[0] = keep[K] + 10.0 ** rng.uniform(-8, -1) * keep[0]
                    C = keep @ C @ keep.T
                v, u = rng.standard_normal(K), rng.standard_normal(M)
                closed = ov.gaussian_averages(p, C, v, u)
                found += ratios(ov.gaussian_averages(p, C, v, u, method="quadrature"), closed, C)
    assert covers(found)
    assert not covers(found, factor=100)


def test_sums_of_error_functions() -> None:
    """tanh, softplus, unlike pairs and a user's own, against lattices and panels, which know no error functions."""
    rng = np.random.default_rng(2)
    found = []
    pairs = [("tanh", "tanh"), ("tanh", "softplus"), ("linear", "tanh"), ("erf", "relu"), (own_erf(), "tanh")]
    pairs += [(raised_erf(), "softplus")]
    for student, teacher in pairs:
        for K, M in ((1, 1), (2, 1), (1, 2)):
            for variance in (0.01, 1.0, 5.0):
                p = problem(student, K, M, teacher_activation=teacher, label_noise=0.3)
                u, C = rng.standard_normal(M), random_covariance(rng, K + M, variance)
                v = rng.standard_normal(K)
                assert isinstance(method_for(p, u), SumForm)
                better = SquareQuadrature(p, u, FieldRule([n.g.kinks for n in (p.student,) * K + (p.teacher,) * M], 2))
                found += ratios(ov.gaussian_averages(p, C, v, u), better(C, v), C)
    assert covers(found)
    assert not covers(found, factor=100)


def test_fits_gain_with_every_term() -> None:
    tanh = ov.network.activations.BUILT_IN["tanh"]
    errors = [fitted(tanh, terms).error for terms in (3, 4, 5, 6, 7)]
    assert all(a > 4 * b for a, b in pairwise(errors)) and errors[2] < 1e-5
    sine = ov.Activation("sine", math.sin, math.cos)
    assert fitted(sine, 5) is None and fitted(ov.network.activations.BUILT_IN["relu"], 5).error == 0
    assert isinstance(method_for(problem(sine), np.ones(2)), SquareQuadrature)
    assert method_for(problem("erf", teacher_activation="relu"), np.ones(2), "closed").exact


def steep() -> ov.Activation:
    return ov.Activation("steep", lambda x: math.tanh(20 * x), lambda x: 20 * (1 - math.tanh(20 * x) ** 2))


def test_fits_that_do_not_exist_for_every_number_of_terms() -> None:
    """tanh(20 x) is fitted by five to eight error functions, by neither fewer nor more."""
    assert [terms for terms in range(2, 10) if fitted(steep(), terms)] == [5, 6, 7, 8]
    p = problem(steep(), 1, 1)
    how = method_for(p, np.ones(1))
    assert isinstance(how, SumForm) and how.coarser() is how
    while (better := how.finer()) is not None:
        how = better
    assert how.fit_terms == 8 and how.check().fit_terms == 7
    C, v = random_covariance(np.random.default_rng(3), 2), np.ones(1)
    assert np.allclose(how(C, v).S, how.check()(C, v).S, rtol=1e-5, atol=0)


def test_a_steep_activation_is_solved() -> None:
    """The quadrature that judges the fit is refined first: at its usual spacing it is off by far more."""
    p = problem(steep(), 1, 1, spectrum=ov.PowerLaw(2, 0.7))
    result = ov.solve(p, ov.draw(p, 200, scale=0.3), [0.2])
    assert "8 error functions" in result.data.attrs["averages"] and result.accuracy("Q") < 1e-5


def two_classes(student: ov.Committee, loss: object = "hinge") -> ov.Problem:
    data = ov.GaussianMixture(means=2, labels=[0, 1], variance=[0.7, 1.3], weights=[0.4, 0.6])
    return ov.Problem(data=data, student=student, algorithm=ov.OnlineSGD(0.5), loss=loss)


def hinge_of_one_number(mean: float, variance: float, y: float) -> tuple[float, float, float]:
    """(E[loss], E[loss'], E[loss'²]) of max(0, 1 − y f), f ~ N(mean, variance)."""
    sd = math.sqrt(variance)
    t = (1 - y * mean) / sd
    density = math.exp(-t * t / 2) / math.sqrt(2 * math.pi)
    return sd * (t * ndtr(t) + density), -y * float(ndtr(t)), float(ndtr(t))


@pytest.mark.parametrize("units", [1, 3])
def test_hinge_of_linear_units(units: int) -> None:
    """One-dimensional formulas: the output is one number, however many units there are."""
    rng = np.random.default_rng(units)
    p = two_classes(ov.Committee(units, "linear"))
    for variance in (0.01, 1.0, 50.0):
        C, v = random_covariance(rng, units, variance), rng.standard_normal(units)
        means = rng.standard_normal((units, 2))
        a = ov.gaussian_averages(p, C, v, means=means)
        error, E, S = 0.0, np.zeros((units, 2)), np.zeros((units, units))
        for c, (weight, s, y) in enumerate(((0.4, 0.7, -1), (0.6, 1.3, 1))):
            loss, slope, square = hinge_of_one_number(float(v @ means[:, c]), s * float(v @ C @ v), y)
            error += weight * loss
            E[:, c] = weight * slope * v
            S += weight * s * square * np.outer(v, v)
        for name, truth in (("error", error), ("E", E), ("S", S)):
            assert np.abs(getattr(a, name) - truth).max() <= a.accuracy[name] + 1e-12 * (1 + variance), name
            assert a.accuracy[name] < 1e-9 * (1 + variance)


def test_hinge_of_two_relu_units() -> None:
    """Against nested panels: one field by many nodes, the other analytically; it was refused before."""
    rng = np.random.default_rng(4)
    p = two_classes(ov.Committee(2, "relu"))
    for _ in range(4):
        C, v, means = random_covariance(rng, 2), rng.uniform(0.5, 2, 2), rng.standard_normal((2, 2))
        a = ov.gaussian_averages(p, C, v, means=means)
        error = 0.0
        for c, (weight, s, y) in enumerate(((0.4, 0.7, -1), (0.6, 1.3, 1))):
            sd = math.sqrt(s * C[0, 0])
            edges = np.sort(np.clip(np.concatenate([[-9, 9], ([0, 1 / v[0]] - means[0, c]) / sd]), -9, 9))
            z, w = panels(np.unique(np.concatenate([edges, np.linspace(-9, 9, 60)])), 12)
            first = v[0] * np.maximum(means[0, c] + sd * z, 0.0)
            # given the first field: 1 − y f = b − y v₁ max(h, 0), integrated over h > 0 up to its sign, and h < 0
            m, r = means[1, c] + s * C[1, 0] / sd * z, math.sqrt(s * (C[1, 1] - C[1, 0] ** 2 / C[0, 0]))
            b, slope = 1 - y * first, -y * v[1]
            low, high = np.zeros_like(b), np.full_like(b, np.inf)
            cut = -b / slope
            inside = np.where(slope < 0, b > 0, True)
            high, low = np.where(slope < 0, np.maximum(cut, 0.0), high), np.where(slope > 0, np.maximum(cut, 0.0), low)
            phi = lambda x: np.exp(-x * x / 2) / math.sqrt(2 * math.pi)  # noqa: E731
            t0, t1 = (low - m) / r, (high - m) / r
            chance, moment = ndtr(t1) - ndtr(t0), phi(t0) - np.where(np.isinf(t1), 0.0, phi(np.minimum(t1, 99)))
            on = inside * (b * chance + slope * (m * chance + r * moment))
            error += weight * float(w @ (on + np.maximum(b, 0) * ndtr(-m / r)))
        assert abs(a.error - error) <= a.accuracy["error"] + 1e-10
        assert a.accuracy["error"] < 1e-8


def absolute(lam, nu, c, v):
    return abs(v[0] * max(lam[0], 0.0) + v[1] * max(lam[1], 0.0) - max(nu[0], 0.0))


def absolute_gradient(lam, nu, c, v):
    sign = np.sign(v[0] * max(lam[0], 0.0) + v[1] * max(lam[1], 0.0) - max(nu[0], 0.0))
    return sign * v * (lam > 0), sign * np.maximum(lam, 0.0)


def zero(lam, nu, c, v):
    return v[0] * max(lam[0], 0.0) + v[1] * max(lam[1], 0.0) - max(nu[0], 0.0)


FIRST, SECOND, THIRD = (lambda lam, nu, c, v: lam[0]), (lambda lam, nu, c, v: lam[1]), (lambda lam, nu, c, v: nu[0])


def test_kinks_of_a_users_loss() -> None:
    """|f − y| of ReLU networks: told its kinks, it is known to 1e-6; S of signs is the chance that units are active."""
    rng = np.random.default_rng(5)
    told = ov.Loss(absolute, absolute_gradient, kinks=(FIRST, SECOND, THIRD, zero))
    assert problem("relu", 2, 1, loss=told).kinks[0] == ((0.0,), (0.0,), (0.0,))
    C, v = random_covariance(rng, 3), np.array([1.2, 0.8])
    a = ov.gaussian_averages(problem("relu", 2, 1, loss=told), C, v)
    angle = math.acos(C[0, 1] / math.sqrt(C[0, 0] * C[1, 1]))
    active = np.array([[0.5, (math.pi - angle) / (2 * math.pi)], [0.0, 0.5]])
    truth = np.outer(v, v) * (active + np.triu(active, 1).T)
    assert np.abs(a.S - truth).max() <= a.accuracy["S"] + 1e-12 and a.accuracy["S"] < 1e-6
    blind = ov.gaussian_averages(problem("relu", 2, 1, loss=ov.Loss(absolute, absolute_gradient)), C, v)
    assert np.abs(blind.S - truth).max() > 1e-5
    with pytest.raises(ov.InputError, match=r"^kinks\[1\]: expected a function"):
        ov.Loss(absolute, absolute_gradient, kinks=(zero, 0.0))


def test_points_made_positive() -> None:
    """Against panels for three units; and an average of many units does not jump where a field changes its sign."""
    from mixtures import xor

    rng = np.random.default_rng(6)
    C, v, means = random_covariance(rng, 3, 3.0), rng.standard_normal(3), rng.standard_normal((3, 4))
    p = xor(3)
    exact, points = LossQuadrature(p, np.zeros(0))(C, v, means), ReluOutputs(p, np.zeros(0), 11)
    ours, other = points(C, v, means), points.check()(C, v, means)
    for name in (*NAMES, "E"):
        x, y, z = (np.asarray(getattr(a, name)) for a in (ours, exact, other))
        assert np.abs(x - y).max() <= 1e-3 * np.abs(y).max(), name
        assert np.abs(x - y).max() <= 5 * np.abs(x - z).max() + 1e-4 * np.abs(y).max(), name
    p, K = xor(8), 8
    assert isinstance(method_for(p, np.zeros(0)), ReluOutputs)
    C, v, means = random_covariance(rng, K), rng.standard_normal(K), rng.standard_normal((K, 4))
    for how, smooth in ((ReluOutputs(p, np.zeros(0)), True), (LossQuadrature(p, np.zeros(0)), False)):
        S = np.array([how((1 + 2e-3 * i) * C, v, means).S[0, 0] for i in range(40)])
        bends = np.abs(np.diff(S, 2)).max() / np.abs(np.diff(S)).mean()
        assert bool(bends < 0.5) is smooth, how.name


def test_errors_are_not_negative() -> None:
    """What is learnt has error zero, and rounding does not make it less."""
    rng = np.random.default_rng(7)
    for activation in ("erf", "relu", "linear", "tanh"):
        rows = rng.standard_normal((40, 2, 5))
        C = np.array([np.concatenate([r, r]) @ np.concatenate([r, r]).T for r in rows])
        how = method_for(problem(activation), np.ones(2))
        assert min(how.errors(C, np.ones((40, 2)))) >= 0 and min(how(c, np.ones(2)).error for c in C) >= 0


def test_angles_are_arc_sines_to_rounding() -> None:
    """Between 0 and 1, near 1/2 where the formula changes, at tiny numbers, and where rounding went beyond one."""
    x = np.concatenate([np.linspace(-1, 1, 2001), 0.5 + np.linspace(-1e-9, 1e-9, 21), 10.0 ** -np.arange(1.0, 300, 7)])
    x = np.concatenate([x, 1 - 10.0 ** -np.arange(1, 17), [1 + 1e-15, -1 - 1e-15]])
    exact = np.arcsin(np.clip(x, -1, 1))
    found = np.array([sum_of_angles(np.ones(1), x[i : i + 1]) for i in range(x.size)])
    assert np.all(np.abs(found - exact) <= 5e-16 * np.abs(exact))
    weight = np.random.default_rng(0).standard_normal(x.size)
    assert sum_of_angles(weight, x) == pytest.approx(weight @ exact, rel=1e-12)


@pytest.mark.parametrize("kink", [np.nan, 0.3])
@pytest.mark.parametrize("radius", [1.5, 3.0])
def test_panels_fill_the_ball(radius: float, kink: float) -> None:
    """A normal point of the plane within a radius that counts: E[|z|² | |z| < R] = 2 − R² e^{−R²/2}/(1 − e^{−R²/2})."""
    at, spacings = np.full((2, 1), kink), np.full(2, 0.1)
    z, w = panel_rule(np.eye(2), np.zeros(2), at, no_margin, 1, 0, np.ones(1), np.ones(1), spacings, radius, 9)
    squares = (z**2).sum(1)
    beyond = np.exp(-(radius**2) / 2)
    assert squares.max() < radius**2 and w.sum() == pytest.approx(1.0, abs=1e-14)
    assert w @ squares == pytest.approx(2 - radius**2 * beyond / (1 - beyond), rel=1e-4)
    assert w @ z == pytest.approx([0.0, 0.0], abs=1e-5)


@njit
def parabola(lam, nu, label, v, u, which):  # pragma: no cover - compiled
    """A joint function of one field that is negative within u_1 of u_0 alone."""
    return 1.0 if which < 0 else (lam[0] - u[0]) ** 2 - u[1] ** 2


@pytest.mark.parametrize("half", [0.02, 0.1])
@pytest.mark.parametrize("centre", [-2.0, -0.7, 0.3, 1.3])
def test_two_kinks_closer_than_the_steps_of_the_scan(centre: float, half: float) -> None:
    """E max(half² − (z − centre)², 0) by panels that meet at both, against an integral between them."""
    one, field, none = np.eye(1), np.zeros(1), np.full((1, 1), np.nan)
    z, w = panel_rule(one, field, none, parabola, 1, 0, np.ones(1), np.array([centre, half]), np.ones(1), 9.0, 12)
    nodes, weights = np.polynomial.legendre.leggauss(30)
    at = centre + half * nodes
    exact = half**3 * weights @ ((1 - nodes**2) * np.exp(-(at**2) / 2)) / math.sqrt(2 * math.pi)
    assert w @ np.maximum(half**2 - (z[:, 0] - centre) ** 2, 0.0) == pytest.approx(exact, rel=1e-11)
