"""Averages of softmax and logistic losses over mixtures, against independent quadratures.

Tensor rules are compared with Gauss-Hermite rules of more nodes (another rule, another factor of the covariance), Sobol
points with what they say of themselves and with other points.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.special import expit, softmax

import overlaps as ov
from gaussian import hermite, hermite_grid
from mixtures import classes, xor
from overlaps.averages import method_for
from problems import random_covariance


def softmax_reference(C, means, data, z, w):
    """D = Σ p s (diag P − S), S = Σ p s E[(π−y)(π−y)ᵀ], E, error: with the derivative of softmax, not Stein's lemma."""
    k = len(C)
    values, vectors = np.linalg.eigh(C)
    root = vectors * np.sqrt(np.maximum(values, 0))
    D, S, E, error = np.zeros((k, k)), np.zeros((k, k)), np.zeros_like(means), 0.0
    for c, (p, s, label) in enumerate(zip(*data.components, strict=True)):
        h = means[:, c] + np.sqrt(s) * z @ root.T
        pi = softmax(h, axis=1)
        delta = pi - np.eye(k)[label]
        D += p * s * (np.diag(w @ pi) - (pi * w[:, None]).T @ pi)
        S += p * s * (delta * w[:, None]).T @ delta
        E[:, c] = p * (w @ delta)
        error -= p * float(w @ np.log(pi[:, label]))
    return D, S, E, error


@pytest.mark.parametrize(("k", "nodes"), [(2, 60), (3, 40), (4, 26)])
@pytest.mark.parametrize("spread", [0.3, 2.0])
def test_softmax_by_tensor_rules(k, nodes, spread):
    rng = np.random.default_rng(k)
    problem = classes(k, variance=rng.uniform(0.1, 0.3, k), weights=rng.dirichlet(np.full(k, 5.0)))
    C, means = random_covariance(rng, k, spread), rng.standard_normal((k, k))
    ours = ov.gaussian_averages(problem, C, means=means)
    D, S, E, error = softmax_reference(C, means, problem.data, *hermite_grid(k, nodes))
    for name, theirs in (("D", D), ("S", S), ("E", E), ("error", error)):
        assert np.abs(getattr(ours, name) - theirs).max() <= max(3 * ours.accuracy[name], 3e-9), name
        assert ours.accuracy[name] < 1e-5
    assert "tensor" in ours.method


def test_a_shift_common_to_all_fields_does_not_matter():
    """Neither of their means nor of their covariance: C + a 1ᵀ + 1 aᵀ + b 1 1ᵀ is the same softmax."""
    rng = np.random.default_rng(0)
    problem, one = classes(4, variance=0.2), np.ones((4, 1))
    C, means, a = random_covariance(rng, 4), rng.standard_normal((4, 4)), rng.standard_normal((4, 1))
    first = ov.gaussian_averages(problem, C, means=means)
    moved = C + 0.1 * (a @ one.T + one @ a.T) + 5 * one @ one.T
    second = ov.gaussian_averages(problem, moved, means=means + 7)
    for name in ("D", "S", "E", "error"):
        np.testing.assert_allclose(getattr(second, name), getattr(first, name), atol=1e-7)
    np.testing.assert_allclose(first.D @ one, 0, atol=1e-12)


@pytest.mark.parametrize("k", [5, 10])
def test_softmax_by_sobol_points(k):
    """Where noise is exchangeable, averages are one-dimensional integrals; S and D of a block at figure parameters.

    E[e^{h_c}/Σ e^{h_a}] = ∫ E[e^{h_c} exp(−t e^{h_c})] Π_{a≠c} E[exp(−t e^{h_a})] dt, by the trapezoidal rule in log t.
    """
    problem = classes(k, variance=0.1)
    a, m = 4.5, 2.0
    C, means = a * np.eye(k) + 0.3, m * np.eye(k) - m / (k - 1) * (1 - np.eye(k))
    x, w = hermite(60)
    u = np.linspace(-45, 25, 3001)
    t = np.exp(u)[:, None]

    def laplace(mean, power):
        e = np.exp(mean + np.sqrt(0.1 * a) * x)
        return (e**power * np.exp(-t * e)) @ w

    own, other = m, -m / (k - 1)
    du, plain = u[1] - u[0], laplace(other, 0)
    P_own = np.sum(t[:, 0] * laplace(own, 1) * plain ** (k - 1)) * du
    P_other = np.sum(t[:, 0] * laplace(other, 1) * laplace(own, 0) * plain ** (k - 2)) * du
    S_own = np.sum(t[:, 0] ** 2 * laplace(own, 2) * plain ** (k - 1)) * du
    S_other = np.sum(t[:, 0] ** 2 * laplace(other, 2) * laplace(own, 0) * plain ** (k - 2)) * du
    assert P_own + (k - 1) * P_other == pytest.approx(1, abs=1e-9)
    ours = ov.gaussian_averages(problem, C, means=means)
    # tensor rule for 4 fields, Sobol for 9: each within what it says of itself
    D = 0.1 / k * (P_own - S_own + (k - 1) * (P_other - S_other))
    S = 0.1 / k * (1 - 2 * P_own + S_own + (k - 1) * S_other)
    for value, name in ((D, "D"), (S, "S")):
        apart = np.abs(np.diag(getattr(ours, name)) - value).max()
        assert apart <= 3 * ours.accuracy[name] + 1e-12
        assert ours.accuracy[name] < 1e-2 * value
    assert np.abs(np.diag(ours.E) - (P_own - 1) / k).max() <= 3 * ours.accuracy["E"]


@pytest.mark.parametrize("activation", ["relu", "erf", "tanh"])
@pytest.mark.parametrize("units", [1, 2])
def test_logistic_networks_by_tensor_rules(activation, units):
    """D by finite differences of E in the means: ∂(p_c E_c[δ])/∂mean_c = p_c D_c; S, dv and error by brute force."""
    rng = np.random.default_rng(units)
    problem = ov.Problem(
        data=ov.GaussianMixture(means=2, labels=[1, 0], weights=[0.3, 0.7], variance=[0.5, 0.8]),
        student=ov.Committee(units, activation, train_readout=True),
        algorithm=ov.OnlineSGD(1.0),
        loss="logistic",
    )
    C, means, v = random_covariance(rng, units), rng.standard_normal((units, 2)), rng.standard_normal(units)
    ours = ov.gaussian_averages(problem, C, student_readout=v, means=means)
    step, D = 1e-4, np.zeros((units, units))
    for c, s in enumerate((0.5, 0.8)):
        for j in range(units):
            move = np.zeros_like(means)
            move[j, c] = step
            ends = [ov.gaussian_averages(problem, C, v, means=means + sign * move).E[:, c] for sign in (1, -1)]
            D[:, j] += s * (ends[0] - ends[1]) / (2 * step)
    np.testing.assert_allclose(ours.D, D, atol=max(2e-6, 3 * ours.accuracy["D"]))
    # brute force with fine trapezoidal nodes
    grid = np.linspace(-8, 8, 1601 if units == 1 else 801)
    z = np.array(list(product(grid, repeat=units)))
    w = np.exp(-0.5 * (z**2).sum(1))
    w /= w.sum()
    g = {"relu": lambda x: np.maximum(x, 0), "tanh": np.tanh, "erf": None}[activation]
    if g is None:
        from scipy.special import erf

        g = lambda x: erf(x / np.sqrt(2))  # noqa: E731
    error, dv = 0.0, np.zeros(units)
    L = np.linalg.cholesky(C)
    for c, (p, s, y) in enumerate(((0.3, 0.5, 1), (0.7, 0.8, 0))):
        h = g(means[:, c] + np.sqrt(s) * z @ L.T)
        f = h @ v
        error += p * (w @ (np.logaddexp(0, f) - y * f))
        dv += p * (w * (expit(f) - y)) @ h
    np.testing.assert_allclose(ours.error, error, atol=max(2e-6, 3 * ours.accuracy["error"]))
    np.testing.assert_allclose(ours.dv, dv, atol=max(3e-6, 3 * ours.accuracy["dv"]))


@pytest.mark.parametrize("units", [4, 20])
def test_relu_networks_by_sobol_points_say_how_good_they_are(units):
    rng = np.random.default_rng(3)
    problem = xor(units)
    C, means, v = random_covariance(rng, units), 0.5 * rng.standard_normal((units, 4)), rng.standard_normal(units)
    ours = ov.gaussian_averages(problem, C, student_readout=v, means=means)
    z = rng.standard_normal((400_000, units))
    L = np.linalg.cholesky(C)
    S, E, dv, error = np.zeros((units, units)), np.zeros((units, 4)), np.zeros(units), 0.0
    for c, y in enumerate((1, 1, 0, 0)):
        h = means[:, c] + np.sqrt(0.1) * z @ L.T
        f = np.maximum(h, 0) @ v
        e = expit(f) - y
        delta = v * (h > 0) * e[:, None]
        S += 0.025 * delta.T @ delta / len(z)
        E[:, c] = 0.25 * delta.mean(0)
        dv += 0.25 * (np.maximum(h, 0) * e[:, None]).mean(0)
        error += 0.25 * float(np.mean(np.logaddexp(0, f) - y * f))
    noise = 5 / np.sqrt(len(z))  # five standard errors of terms of order one
    for name, theirs in (("S", S), ("E", E), ("dv", dv), ("error", error)):
        apart = np.abs(getattr(ours, name) - theirs).max()
        assert apart <= 3 * ours.accuracy[name] + noise * max(1.0, float(np.abs(v).max()) ** 2), name
        assert ours.accuracy[name] < 0.02 * max(0.1, float(np.abs(theirs).max())), name


def test_square_loss_of_labels_with_noise_on_them():
    """Linear units: δ = v (v·λ − y − noise), a Gaussian whose moments are plain algebra."""
    problem = ov.Problem(
        data=ov.GaussianMixture(means=2, labels=[-1, 2], weights=[0.4, 0.6], variance=[0.5, 0.2]),
        student=ov.Committee(2, "linear", [1.0, -0.5]),
        algorithm=ov.OnlineSGD(1.0),
        label_noise=0.3,
    )
    rng = np.random.default_rng(0)
    C, means, v = random_covariance(rng, 2), rng.standard_normal((2, 2)), np.array([1.0, -0.5])
    ours = ov.gaussian_averages(problem, C, means=means)
    S, E, error = np.zeros((2, 2)), np.zeros((2, 2)), 0.0
    for c, (p, s, y) in enumerate(((0.4, 0.5, -1), (0.6, 0.2, 2))):
        bias, spread = v @ means[:, c] - y, s * v @ C @ v
        S += p * s * np.outer(v, v) * (bias**2 + spread + 0.09)
        E[:, c] = p * v * bias
        error += p * (bias**2 + spread) / 2
    D = (0.4 * 0.5 + 0.6 * 0.2) * np.outer(v, v)
    for name, theirs in (("D", D), ("S", S), ("E", E), ("error", error)):
        np.testing.assert_allclose(getattr(ours, name), theirs, atol=1e-8, err_msg=name)


def test_means_must_be_given_for_a_mixture():
    with pytest.raises(ov.InputError, match="the inputs have 3 means"):
        ov.gaussian_averages(classes(3), np.eye(3))
    with pytest.raises(ov.InputError, match="no closed form"):
        ov.gaussian_averages(classes(3), np.eye(3), means=np.eye(3), method="closed")


@pytest.mark.parametrize("Q", [1.0, 25.0, 400.0, 4000.0])
def test_wide_fields_need_closer_nodes(Q):
    """Logistic regression with fields far wider than a logistic function, against adaptive quadrature."""
    from scipy.integrate import quad

    problem = ov.Problem(
        data=ov.GaussianMixture(means=2, labels=[0, 1]),
        student=ov.Committee(1, "linear"),
        algorithm=ov.OnlineSGD(1.0),
        loss="logistic",
    )
    ours = ov.gaussian_averages(problem, [[Q]], means=[[1.0, -1.0]])

    def average(f):
        def weighted(z, m, y):
            return f(expit(m + np.sqrt(Q) * z), y) * np.exp(-z * z / 2) / np.sqrt(2 * np.pi)

        return sum(
            0.5 * quad(weighted, -9, 9, (m, y), limit=2000, points=[-m / np.sqrt(Q)])[0] for m, y in ((1, 0), (-1, 1))
        )

    assert ours.S[0, 0] == pytest.approx(average(lambda p, y: (p - y) ** 2), abs=1e-8)
    assert ours.D[0, 0] == pytest.approx(average(lambda p, y: p * (1 - p)), abs=1e-8)


@pytest.mark.parametrize(("k", "scale"), [(2, 5.0), (3, 3.0)])
def test_wide_starts_are_solved(k, scale):
    problem = classes(k, variance=1.0)
    start = ov.draw(problem, 200, seed=0, scale=scale)
    theory = ov.solve(problem, start, [1.0, 3.0])
    assert theory.accuracy("m") < 1e-4
    assert ov.compare(theory, ov.sample(problem, start, [1.0, 3.0], runs=60)).verdict in ("agrees", "finite-size")


def test_errors_of_a_batch_are_those_of_each() -> None:
    """Few grids serve a batch of laws of very different widths, some without any width."""
    rng = np.random.default_rng(0)
    for problem, d in ((xor(units=2, activation="tanh"), 2), (classes(3, variance=[0.1, 0.5, 2.0]), 3)):
        how = method_for(problem, np.zeros(0))
        X = rng.standard_normal((40, d, d)) * np.geomspace(0.01, 10, 40)[:, None, None]
        C = X @ X.transpose(0, 2, 1)
        C[7] = 0.0
        v = rng.uniform(0.2, 3.0, (40, d)) if problem.loss != "cross-entropy" else np.ones((40, d))
        weights, variances, _ = problem.data.components
        means = rng.standard_normal((40, d, weights.size))
        scaled = variances[:, None, None] * C[:, None]
        each = [weights @ how.each_error(scaled[i], v[i], means[i]) for i in range(40)]
        np.testing.assert_allclose(how.errors(C, v, means), each, rtol=1e-12)
