"""Hermite expansions, Gaussian moments, averages over the sphere and over a line, each by an independent route."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import gammaln, ndtr

import overlaps as ov
from gaussian import hermite
from overlaps.data.nonlinearity import moments, nonlinearity
from overlaps.giant_step import (
    centred,
    gaussian_moment,
    hermite_coefficients,
    hermite_mean,
    hermite_product,
    initial_series,
    sphere_moment,
)
from overlaps.giant_step.hermite import is_bounded
from overlaps.giant_step.line import Line, graded, lines
from overlaps.giant_step.sphere import on_sphere


def odd_factorial(n: int) -> float:
    """n!! by the gamma function, n odd: (2m − 1)!! = 2^m Γ(m + ½)/√π."""
    m = (n + 1) // 2
    return math.exp(m * math.log(2) + gammaln(m + 0.5)) / math.sqrt(math.pi)


def he(k: int, x):
    return np.polynomial.hermite_e.HermiteE.basis(k)(x)


def normal_average(f, covariance, mean, count: int = 40):
    """E f(Z) of Z ~ N(mean, covariance), f of (points, variables), by a tensor rule of Gauss and Hermite."""
    C = np.asarray(covariance, float)
    w, U = np.linalg.eigh(C)
    x, weight = hermite(count)
    grids = np.meshgrid(*[x] * len(C), indexing="ij")
    xi = np.stack([g.ravel() for g in grids], axis=1)
    weights = np.prod(np.stack(np.meshgrid(*[weight] * len(C), indexing="ij")), axis=0).ravel()
    return weights @ f(xi @ (U * np.sqrt(np.maximum(w, 0))).T + np.asarray(mean, float))


# Hermite coefficients


def test_tanh_has_the_coefficients_of_the_reference_and_of_an_adaptive_integral():
    found = hermite_coefficients("tanh", 7)
    assert np.all(np.abs(found.c[[1, 3, 5]] - [0.605706, -0.0606, 0.00571]) < [1e-6, 1e-6, 5e-6])
    assert not found.c[::2].any()
    for k in range(8):
        exact = quad(lambda x, k=k: math.tanh(x) * he(k, x) * math.exp(-x * x / 2), -12, 12, epsabs=1e-13, limit=200)[0]
        assert abs(found.c[k] - exact / math.sqrt(2 * math.pi) / math.factorial(k)) <= found.error[k] + 1e-13
    assert found.slope_square == pytest.approx(0.4644, abs=5e-5)
    assert np.all(found.error < 1e-11) and found.order == 7 and "'tanh'" in repr(found)


def test_relu_and_erf_have_their_closed_forms_within_the_stated_errors():
    relu, erf = hermite_coefficients("relu", 20), hermite_coefficients("erf", 21)
    exact = np.zeros(21)
    exact[:2] = 1 / math.sqrt(2 * math.pi), 0.5
    for m in range(1, 11):
        sign = (-1) ** (m - 1)
        exact[2 * m] = sign * odd_factorial(2 * m - 3) / math.sqrt(2 * math.pi) / math.factorial(2 * m)
    assert np.all(np.abs(relu.c - exact) <= relu.error + 1e-16)
    assert relu.slope_square == pytest.approx(0.5, abs=1e-12)
    exact = np.zeros(22)
    for m in range(11):  # of the slope, a Gaussian: E[g' H_2m] = (2m − 1)!! (−1/2)^m/√π
        exact[2 * m + 1] = odd_factorial(2 * m - 1) * (-0.5) ** m / math.sqrt(math.pi) / math.factorial(2 * m + 1)
    assert np.all(np.abs(erf.c - exact) <= erf.error + 1e-16)
    assert erf.slope_square == pytest.approx(2 / math.pi / math.sqrt(3), rel=1e-12)  # E e^{−z²} = 1/√3


@pytest.mark.parametrize(("shift", "known"), [(0.5, 0.2954529), (1.0, 0.55040)])
def test_the_shifted_mean_is_the_series(shift, known):
    series = hermite_coefficients("tanh", 41).shifted(shift)
    assert series == pytest.approx(known, abs=6e-6)
    assert series == pytest.approx(float(moments("tanh", shift, 1.0).a), abs=1e-11)
    s = np.array([[0.1, 0.2, 0.3]])
    np.testing.assert_allclose(hermite_coefficients("erf", 41).shifted(s), moments("erf", s, 1.0).a, atol=1e-12)


def test_a_function_minus_its_mean():
    g = centred("relu")
    np.testing.assert_allclose(hermite_coefficients(g, 4).c, [0, *hermite_coefficients("relu", 4).c[1:]], atol=1e-12)
    assert g.kinks == (0.0,) and g.function(2.0) == pytest.approx(2 - 1 / math.sqrt(2 * math.pi))
    assert centred("tanh") is ov.network.activations.BUILT_IN["tanh"]
    assert g.compiled[0](-1.0) == g.function(-1.0)


def test_a_linear_activation_has_one_coefficient():
    found = hermite_coefficients("linear", 4)
    np.testing.assert_allclose(found.c, [0, 1, 0, 0, 0], atol=1e-12)
    assert found.slope_square == pytest.approx(1)


def test_which_activations_are_bounded():
    def sigmoid(x):
        return 1 / (1 + math.exp(-x))

    bounded = ov.Activation("sigmoid", sigmoid, lambda x: sigmoid(x) * (1 - sigmoid(x)))
    slow = ov.Activation("log", lambda x: math.log1p(x * x), lambda x: 2 * x / (1 + x * x))
    for name, expected in {"erf": True, "tanh": True, "relu": False, "linear": False, "softplus": False}.items():
        assert is_bounded(ov.network.activations.BUILT_IN[name]) is expected
    assert is_bounded(bounded) and not is_bounded(slow) and not is_bounded(centred("relu"))
    with pytest.raises(ov.InputError, match="activation: exp has no value at 1000"):
        is_bounded(ov.Activation("exp", math.exp, math.exp))


# averages of Hermite polynomials and of powers


@pytest.mark.parametrize("covariance", [[[1.7, 0.5], [0.5, 0.8]], [[1, 0.3], [0.3, 1]], [[0.4, 0.6], [0.6, 0.9]]])
@pytest.mark.parametrize("mean", [(0.0, 0.0), (0.7, -1.2)])
def test_products_of_hermite_polynomials(covariance, mean):
    for j, k in [(0, 0), (1, 1), (2, 4), (3, 3), (4, 4), (5, 2), (6, 3)]:
        exact = normal_average(lambda z, j=j, k=k: he(j, z[:, 0]) * he(k, z[:, 1]), covariance, mean, 12)
        assert hermite_product(j, k, covariance, mean) == pytest.approx(exact, rel=1e-10, abs=1e-10)


def test_known_products_and_means_of_hermite_polynomials():
    assert hermite_product(4, 4, [[1.7, 0.5], [0.5, 0.8]]) == pytest.approx(-0.8436, abs=1e-10)
    assert hermite_product(7, 7, [[1, 0.5], [0.5, 1]]) == pytest.approx(math.factorial(7) / 2**7)
    assert hermite_product(5, 5, np.ones((2, 2))) == 120  # correlation one
    assert hermite_product(6, 3, np.zeros((2, 2)), (0.3, -2.0)) == pytest.approx(he(6, 0.3) * he(3, -2.0))
    mean, variance = np.array([[0.0], [0.4], [-2.0]]), np.array([0.0, 0.3, 1.0, 2.5])
    x, w = hermite(20)
    for k in range(8):
        exact = he(k, mean[..., None] + np.sqrt(variance)[..., None] * x) @ w
        np.testing.assert_allclose(hermite_mean(k, mean, variance), exact, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(hermite_mean(5, mean, 1.0), mean**5, atol=1e-12)


def test_gaussian_moments():
    for k in range(1, 8):
        assert gaussian_moment([2 * k], [[1.0]]) == pytest.approx(odd_factorial(2 * k - 1))
        assert gaussian_moment([2 * k - 1], [[1.0]]) == 0
    L = np.random.default_rng(1).standard_normal((3, 3))
    C, mean = L @ L.T, [0.3, -0.8, 1.1]
    for powers in [(2, 2, 0), (1, 2, 3), (4, 1, 1), (2, 2, 2)]:
        for m in ([0, 0, 0], mean):
            exact = normal_average(lambda z, p=powers: np.prod(z ** np.array(p), axis=1), C, m, 9)
            assert gaussian_moment(powers, C, m) == pytest.approx(exact, rel=1e-10, abs=1e-10)
    assert gaussian_moment([1] * 8, np.ones((8, 8))) == pytest.approx(odd_factorial(7))  # eight times the same one
    assert gaussian_moment([3, 2], np.zeros((2, 2)), [2, 3]) == 72


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: hermite_coefficients("tanh", 61), "order: expected at most 60"),
        (lambda: hermite_coefficients("tanhh", 3), "did you mean 'tanh'"),
        (lambda: hermite_mean(3, np.nan, 1.0), "mean: has entries that are not finite"),
        (lambda: hermite_mean(3, 0.0, -1.0), "variance: expected numbers of at least 0"),
        (lambda: hermite_product(2, 2, [[1, 2], [2, 1]]), "covariance: expected a positive"),
        (lambda: hermite_product(2, 2, [[1, 0.5], [0, 1]]), "covariance: expected a symmetric"),
        (lambda: hermite_product(2, 101, np.eye(2)), "k: expected at most 100"),
        (lambda: gaussian_moment([], np.zeros((0, 0))), "powers: expected one power"),
        (lambda: gaussian_moment(4, [[1.0]]), "powers: expected shape"),
        (lambda: gaussian_moment([21, 20], np.eye(2)), "powers: expected a sum of at most 40"),
        (lambda: gaussian_moment([1] * 30, np.eye(30)), "product of powers"),
        (lambda: gaussian_moment([1, -1], np.eye(2)), r"powers\[1\]: expected at least 0"),
        (lambda: sphere_moment(30, 6, np.ones(3), np.eye(3)), "p, k: expected p \\+ 2k of at most 40"),
        (lambda: sphere_moment(0, 2, np.zeros(2), [[1, 1], [0, 1]]), "covariance: expected a symmetric"),
        (lambda: sphere_moment(2, 0, [], np.zeros((0, 0))), "mean: expected at least 1 input"),
        (lambda: initial_series(np.ones(22), np.ones(4), np.eye(4)), "c: expected at most 21"),
        (lambda: on_sphere(np.ones((2, 2)), 4), "inputs: averages over weights along 2"),
    ],
)
def test_refusals_name_the_field(call, message):
    with pytest.raises(ov.InputError, match=message):
        call()


def test_what_overflows_is_said_so():
    for call in (
        lambda: hermite_mean(80, 1e5, 1.0),
        lambda: hermite_product(60, 60, 1e9 * np.eye(2)),
        lambda: gaussian_moment([40], [[1e200]]),
        lambda: sphere_moment(20, 10, [1e100, 0], 1e200 * np.eye(2)),
    ):
        with pytest.raises(ov.NumericalError, match="larger than any"):
            call()


# weights on the sphere


def problem(d: int):
    rng = np.random.default_rng(3)
    L = rng.standard_normal((d, d)) / math.sqrt(d)
    return rng.standard_normal(d), L @ L.T + 0.3 * np.eye(d)


@pytest.mark.parametrize("d", [1, 2, 5, 40])
def test_moments_on_the_sphere_have_their_closed_forms(d):
    mu, S = problem(d)
    for p in range(1, 5):
        exact = (mu @ mu) ** p * odd_factorial(2 * p - 1) / np.prod(d + 2.0 * np.arange(p))
        assert sphere_moment(2 * p, 0, mu, S) == pytest.approx(exact)
    assert sphere_moment(2, 1, mu, S) == pytest.approx((mu @ mu * np.trace(S) + 2 * mu @ S @ mu) / (d * (d + 2)))
    assert sphere_moment(0, 1, mu, S) == pytest.approx(np.trace(S) / d)
    assert sphere_moment(0, 2, mu, S) == pytest.approx((np.trace(S) ** 2 + 2 * np.sum(S * S)) / (d * (d + 2)))
    assert sphere_moment(3, 1, mu, S) == 0


def test_moments_on_the_sphere_are_averages_over_it():
    mu, S = problem(3)
    # the sphere of three dimensions: Legendre's rule in height, equal steps around it, exact for polynomials
    z, w = np.polynomial.legendre.leggauss(12)
    angle = 2 * np.pi * np.arange(24) / 24
    flat = np.sqrt(1 - z**2)[:, None]
    points = np.stack([flat * np.cos(angle), flat * np.sin(angle), np.tile(z[:, None], 24)], axis=-1).reshape(-1, 3)
    weights = np.repeat(w / 2 / 24, 24)
    for p, k in [(0, 3), (2, 2), (4, 1), (4, 3), (6, 4), (0, 6)]:
        values = (points @ mu) ** p * np.einsum("ij,jk,ik->i", points, S, points) ** k
        assert sphere_moment(p, k, mu, S) == pytest.approx(weights @ values, rel=1e-11)
    # the circle: equal steps
    mu, S = problem(2)
    angle = 2 * np.pi * np.arange(64) / 64
    points = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    values = (points @ mu) ** 6 * np.einsum("ij,jk,ik->i", points, S - np.eye(2), points) ** 5
    assert sphere_moment(6, 5, mu, S - np.eye(2)) == pytest.approx(values.mean(), rel=1e-11)


def test_the_initial_alignment_is_an_integral_over_one_projection():
    d = 60
    mu = np.random.default_rng(0).standard_normal(d)
    mu *= 3 / np.linalg.norm(mu)
    c = hermite_coefficients("tanh", 15).c

    def density(t):
        return (1 - t * t) ** ((d - 3) / 2)

    def initial(t):
        return float(moments("tanh", 3 * t, math.sqrt(1 - t * t)).a) ** 2 * density(t)

    exact = 2 * quad(initial, 0, 0.9, epsrel=1e-9)[0] / quad(density, -1, 1)[0]
    assert initial_series(c, mu, np.eye(d) - np.outer(mu, mu) / 9) == pytest.approx(exact, rel=2e-6)


def test_the_initial_alignment_of_a_general_covariance():
    # six standard errors: a false alarm in 5e8 runs
    d, draws = 12, 40_000
    rng = np.random.default_rng(5)
    mu = rng.standard_normal(d) * 0.5
    L = rng.standard_normal((d, d)) * 0.15 / math.sqrt(d)
    S = (np.eye(d) + L + L.T) * 0.9
    w = rng.standard_normal((draws, d))
    w /= np.linalg.norm(w, axis=1, keepdims=True)
    values = Line(nonlinearity("tanh")).mean(w @ mu + 0.0, np.sqrt(np.einsum("ij,jk,ik->i", w, S, w))) ** 2
    exact, error = values.mean(), values.std() / math.sqrt(draws)
    assert abs(initial_series(hermite_coefficients("tanh", 19).c, mu, S) - exact) < 6 * error
    assert error < 0.006 * exact


def test_few_coordinates_of_a_uniform_weight():
    x, w = hermite(60)
    for d in (30, 300):
        u = on_sphere(x[:, None], d)[:, 0]
        assert w @ u**2 * d - 1 == pytest.approx(0, abs=8 / d**2)
        assert w @ u**4 * d * (d + 2) / 3 - 1 == pytest.approx(0, abs=3 / d)
        assert np.all(np.abs(u) < 1)


# averages over a line


def test_lines_of_a_smooth_function_are_exact_for_all_widths():
    line = Line(nonlinearity("erf"))
    mean, sd = np.array([[-4.0], [0.0], [0.6], [30.0]]), np.array([0.0, 0.01, 0.5, 1.0, 4.0, 25.0])
    exact = moments("erf", mean, sd)
    np.testing.assert_allclose(line.mean(mean, sd), exact.a, atol=1e-9)
    np.testing.assert_allclose(line.mean(mean, sd, np.square), exact.c, atol=1e-9)
    np.testing.assert_allclose(line.slope(mean, sd[1:]) * sd[1:], exact.b[:, 1:], atol=1e-9)
    g, dg = lines(ov.network.activations.BUILT_IN["tanh"], 0.5)
    mean, sd = np.array([-1.0, 0.0, 2.0]), np.array([0.4, 1.0, 6.0])
    np.testing.assert_allclose(g.slope(mean, sd), dg.mean(mean, sd), atol=1e-7)  # Stein
    np.testing.assert_allclose(g.mean(mean, sd), moments("tanh", mean, sd).a, atol=1e-7)


def test_lines_of_a_kinked_function():
    line = Line(nonlinearity("relu"))
    mean, sd = np.array([[-0.5], [0.0], [2.0]]), np.array([1.0, 4.0, 25.0])
    exact = moments("relu", mean, sd)
    np.testing.assert_allclose(line.mean(mean, sd), exact.a, atol=1e-6)
    np.testing.assert_allclose(line.mean(mean, sd, np.square), exact.c, rtol=1e-7)
    np.testing.assert_allclose(line.slope(mean, sd), ndtr(mean / sd), atol=1e-7)


@pytest.mark.parametrize("points", [6, 8])
@pytest.mark.parametrize("centre", [0.0, 0.7, -20.0])
def test_graded_nodes_resolve_a_steep_function_and_the_tails(points, centre):
    x, w = (part[:, 0] for part in graded([np.array([centre])], np.array([50.0]), points))
    assert w.sum() == pytest.approx(1, abs=1e-9)
    for k, error in ((1, 1e-8), (2, 1e-7), (3, 1e-6), (4, 1e-5)):
        assert w @ x ** (2 * k) == pytest.approx(odd_factorial(2 * k - 1), rel=error)
    steep = float(moments("tanh", -50.0 * centre, 50.0).c)
    assert w @ np.tanh(50 * (x - centre)) ** 2 == pytest.approx(steep, abs=1e-7)
    assert w @ np.exp(x) == pytest.approx(math.exp(0.5), rel=1e-6)


@pytest.mark.parametrize("name", ["tanh", "erf", "relu"])
def test_wide_fields(name):
    """Widths from narrow to a million in one call, against adaptive quadrature and closed forms."""
    g = Line(nonlinearity(name), 0.45)
    mean = np.array([0.0, 1.0, -3.0, 50.0, -200.0, 3e4, 0.3, 2e5])
    sd = np.array([1.0, 0.0, 7.0, 30.0, 1e3, 1e4, 0.01, 1e6])
    known = moments(name, mean, sd)
    np.testing.assert_allclose(g.mean(mean, sd), known.a, rtol=2e-6, atol=1e-7)
    np.testing.assert_allclose(g.mean(mean, sd, np.square), known.c, rtol=2e-6, atol=1e-7)


@pytest.mark.parametrize("name, rel", [("tanh", 5e-4), ("relu", 2e-2)])
def test_displacement(name, rel):
    """B(z, t) against one quadrature for each point; that of ReLU has a kink in z where t is small."""
    g = Line(nonlinearity(name), 0.45)
    B = g.displacement(300.0, 1e3)
    for z in (-250.0, -3.1, -0.4, 0.0, 0.77, 2.2, 40.0):
        for t in (0.3, 0.05, 2.0, 17.0, 900.0):
            nodes, weights = (part[:, 0] for part in graded([np.array([-z / t])], np.array([t]), 30))
            f = nonlinearity(name).function
            exact = weights @ (f(z + t * nodes) - f(np.array([z]))) ** 2 * (1 + t**2) / t**2
            found = B(np.array([z]), np.arcsinh(np.array([t])))[0]
            assert found == pytest.approx(exact, rel=rel, abs=rel * 0.1)
