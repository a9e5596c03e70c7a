"""Softmax regression on a mixture without noise, against explicit vectors and the cross entropy of single samples."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import minimize, root_scalar

import overlaps as ov
from differences import gradient_of, hessian_of
from gaussian import hermite_grid
from overlaps import InputError
from overlaps.laws import softmax_energy, softmax_fixed_point, softmax_outliers


def cross_entropy(w, x, c):
    fields = w @ x
    top = fields.max()
    return top + np.log(np.sum(np.exp(fields - top))) - fields[c]


def mixture(rng, k, rank, d=None):
    """Means (k, d) that span `rank` dimensions, and unequal weights."""
    means = rng.standard_normal((k, rank)) @ rng.standard_normal((rank, d or rank)) / np.sqrt(rank)
    weights = rng.uniform(0.5, 1.5, k)
    return means, weights / weights.sum()


@pytest.mark.parametrize(("k", "published"), [(3, 2.221653), (10, 2.819037)])
def test_softmax_reference_numbers(k, published):
    m = softmax_fixed_point(np.eye(k), np.full(k, 1 / k), 0.01)
    assert np.allclose(np.diag(m), published, atol=1e-6)
    assert np.allclose(m[~np.eye(k, dtype=bool)], -published / (k - 1), atol=1e-6)


@pytest.mark.parametrize("decay", [1e-10, 0.01, 3.0])
def test_softmax_orthogonal_means_decouple(decay):
    squares, weights = np.array([0.5, 1.0, 2.0, 3.0]), np.array([0.1, 0.2, 0.3, 0.4])
    k = 4
    m = softmax_fixed_point(np.diag(squares), weights, decay)
    for b in range(k):
        pull = weights[b] * squares[b] / decay

        def excess(x, pull=pull):
            wrong = (k - 1) * np.exp(-x * k / (k - 1))  # 1 − π relative to π, without cancellation
            return x - pull * wrong / (1 + wrong)

        own = root_scalar(excess, bracket=(0, pull), xtol=1e-14, rtol=1e-14).root
        assert np.allclose(m[:, b], np.where(np.arange(k) == b, own, -own / (k - 1)), rtol=1e-9)


@pytest.mark.parametrize(("k", "rank"), [(3, 3), (5, 5), (5, 2), (4, 1)])
@pytest.mark.parametrize("decay", [0.003, 0.1])
def test_softmax_fixed_point_minimises_the_cross_entropy(k, rank, decay):
    """Against a minimiser that knows vectors and the loss only, for independent and dependent means."""
    means, weights = mixture(np.random.default_rng(k + rank), k, rank)

    def loss(flat):
        losses = [cross_entropy(flat.reshape(k, rank), x, c) for c, x in enumerate(means)]
        return weights @ losses + decay / 2 * np.sum(flat**2)

    found = minimize(loss, np.zeros(k * rank), method="BFGS", options={"gtol": 1e-7, "maxiter": 10_000})
    m = softmax_fixed_point(means @ means.T, weights, decay)
    # the gradient bounds the distance from a minimum by its size over the decay
    assert np.abs(m - found.x.reshape(k, rank) @ means.T).max() < 1e-4
    assert np.abs(m @ np.linalg.pinv(means @ means.T) @ means @ means.T - m).max() < 1e-9


def drift(m, gram, weights, decay):
    """dm/dt, written with plain loops."""
    k = len(m)
    change = -decay * m
    for a in range(k):
        for b in range(k):
            for c in range(k):
                share = np.exp(m[a, c]) / np.exp(m[:, c]).sum()
                change[a, b] += weights[c] * ((a == c) - share) * gram[c, b]
    return change


@pytest.mark.parametrize("rank", [3, 2])
def test_softmax_fixed_point_is_where_the_flow_ends(rank):
    rng = np.random.default_rng(4)
    means, weights = mixture(rng, 3, rank)
    gram, decay = means @ means.T, 0.05
    start = rng.standard_normal((3, rank)) @ means.T
    end = solve_ivp(
        lambda _, y: drift(y.reshape(3, 3), gram, weights, decay).ravel(), (0, 600), start.ravel(), "LSODA", rtol=1e-9
    )
    assert np.abs(end.y[:, -1].reshape(3, 3) - softmax_fixed_point(gram, weights, decay)).max() < 1e-6


@pytest.mark.parametrize("decay", [0.0, 0.2])
def test_softmax_energy_falls_as_the_square_of_the_gradient(decay):
    """E is the loss of explicit vectors, and along the flow of m and Q it changes by −|gradient|²."""
    rng = np.random.default_rng(5)
    k, d = 4, 7
    means, weights = mixture(rng, k, k, d)
    w, gram = rng.standard_normal((k, d)), means @ means.T

    def loss(flat):
        losses = [cross_entropy(flat.reshape(k, d), x, c) for c, x in enumerate(means)]
        return weights @ losses + decay / 2 * np.sum(flat**2)

    m, Q = w @ means.T, w @ w.T
    assert softmax_energy(m, Q, weights, decay) == pytest.approx(loss(w.ravel()), rel=1e-13)
    dm = drift(m, gram, weights, decay)
    inside = np.linalg.solve(gram, m.T).T
    outside = Q - inside @ m.T
    dQ = np.linalg.solve(gram, dm.T).T @ m.T
    dQ = dQ + dQ.T - 2 * decay * outside
    step = 1e-5
    ahead, behind = (softmax_energy(m + t * dm, Q + t * dQ, weights, decay) for t in (step, -step))
    slope = gradient_of(loss, w.ravel())
    assert (ahead - behind) / (2 * step) == pytest.approx(-slope @ slope, rel=1e-7)


def small_noise_blocks(w, means, weights, variance, a):
    """Blocks of student a of the Hessian and of the G-matrix, by Gauss-Hermite quadrature in three dimensions."""
    z, share = hermite_grid(3, 9)
    H, G = np.zeros((3, 3)), np.zeros((3, 3))
    for c, (p, mean) in enumerate(zip(weights, means, strict=True)):
        x = mean + np.sqrt(variance) * z
        fields = np.exp(x @ w.T)
        pi = fields[:, a] / fields.sum(axis=1)
        H += p * np.einsum("n,ni,nj->ij", share * pi * (1 - pi), x, x)
        G += p * np.einsum("n,ni,nj->ij", share * (pi - (a == c)) ** 2, x, x)
    return {"hessian": H, "gradient": G}


@pytest.mark.parametrize("kind", ["hessian", "gradient"])
def test_softmax_outliers_are_those_of_small_noise(kind):
    rng = np.random.default_rng(6)
    means, weights = mixture(rng, 3, 3)
    w = rng.standard_normal((3, 3))
    law = softmax_outliers(means @ means.T, weights, w @ means.T, kind=kind)
    for a in range(3):
        errors = [
            np.abs(np.linalg.eigvalsh(small_noise_blocks(w, means, weights, s, a)[kind])[::-1] - law[a]).max()
            for s in (1e-4, 1e-5)
        ]
        assert errors[1] < 1e-3 * law[a, 0]
        assert 8 < errors[0] / errors[1] < 12  # first order in the variance


def test_softmax_hessian_is_that_of_the_energy():
    rng = np.random.default_rng(7)
    means, weights = mixture(rng, 4, 4, 5)
    w, a = rng.standard_normal((4, 5)), 2

    def energy(row):
        students = np.concatenate([w[:a], row[None], w[a + 1 :]])
        return softmax_energy(students @ means.T, students @ students.T, weights, 0.0)

    values = np.linalg.eigvalsh(hessian_of(energy, w[a]))[::-1]
    law = softmax_outliers(means @ means.T, weights, w @ means.T)[a]
    assert np.allclose(values, [*law, 0.0], atol=1e-6)


@pytest.mark.parametrize("kind", ["hessian", "gradient"])
@pytest.mark.parametrize("decay", [1e-4, 0.01, 1.0])
def test_top_outlier_stands_alone_from_three_classes_on(kind, decay):
    for k in (3, 4, 10):
        m = softmax_fixed_point(np.eye(k), np.full(k, 1 / k), decay)
        values = softmax_outliers(np.eye(k), np.full(k, 1 / k), m, kind=kind)
        own = np.exp(m[0, 0]) / np.exp(m[:, 0]).sum()
        factor = own * (1 - own) if kind == "hessian" else (1 - own) ** 2
        assert np.allclose(values[:, 0], factor / k, rtol=1e-9)  # along the student's own mean
        assert np.all(values[:, 0] > 1.01 * values[:, 1])
        assert np.allclose(values[:, 1:], values[0, 1], rtol=1e-9)
    two = softmax_outliers(np.eye(2), [0.5, 0.5], softmax_fixed_point(np.eye(2), [0.5, 0.5], decay), kind=kind)
    assert np.allclose(two, two[0, 0], rtol=1e-9)


def test_a_rare_class_has_no_top_outlier_of_its_own():
    """Why the statement above is for equal weights: with strong decay a rare class is hardly learned."""
    weights = np.array([0.02, 0.49, 0.49])
    m = softmax_fixed_point(np.eye(3), weights, 1.0)
    own = np.exp(m[0, 0]) / np.exp(m[:, 0]).sum()
    assert softmax_outliers(np.eye(3), weights, m)[0, 0] > 2 * weights[0] * own * (1 - own)


THIRDS = [1 / 3, 1 / 3, 1 / 3]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: softmax_fixed_point(np.eye(3), [0.5, 0.2, 0.2], 0.1), "sum of one"),
        (lambda: softmax_fixed_point(np.eye(3), [0.5, 0.5], 0.1), "weights: expected shape"),
        (lambda: softmax_fixed_point(np.eye(3), [0.5, 0.6, -0.1], 0.1), "weights"),
        (lambda: softmax_fixed_point(np.eye(3), THIRDS, 0.0), "decay: expected a number above 0"),
        (lambda: softmax_fixed_point(np.eye(3), THIRDS, 1e-14), "decay: expected at least"),
        (lambda: softmax_fixed_point(np.eye(3) - 1, THIRDS, 0.1), "gram: no vectors have these"),
        (lambda: softmax_fixed_point([[1, 0.5], [0, 1]], [0.5, 0.5], 0.1), "symmetric"),
        (lambda: softmax_fixed_point(np.ones((2, 3)), [0.5, 0.5], 0.1), "gram"),
        (lambda: softmax_fixed_point([[1.0]], [1.0], 0.1), "two classes"),
        (lambda: softmax_energy(np.eye(3), np.eye(2), THIRDS, 0.1), "Q: expected shape"),
        (lambda: softmax_energy(np.eye(3), -np.eye(3), THIRDS, 0.1), "squared lengths"),
        (lambda: softmax_energy(np.eye(3), np.eye(3), THIRDS, -0.1), "decay"),
        (lambda: softmax_outliers(np.eye(3), THIRDS, np.eye(2)), "m: expected shape"),
        (lambda: softmax_outliers(np.eye(3), THIRDS, np.eye(3), kind="grad"), "unknown kind 'grad'"),
    ],
)
def test_refusals(call, says):
    with pytest.raises(InputError, match=says):
        call()


@pytest.mark.parametrize("decay", [1e-3, 1e-6, 4.4e-11])
def test_the_minimum_is_that_of_more_digits(decay: float) -> None:
    """Up to the least decay that is taken, against Newton steps in extended precision."""
    x, p = np.array([0.3, -1.2, 0.8]).astype(np.longdouble), np.array([0.2, 0.3, 0.5]).astype(np.longdouble)
    found = softmax_fixed_point(np.outer(x, x).astype(float), p.astype(float), decay)
    w = found[:, 0] / x[0]
    for _ in range(20):
        slope, curvature = decay * w, decay * np.eye(3, dtype=np.longdouble)
        for c in range(3):
            shares = np.exp(w * x[c] - (w * x[c]).max())
            shares /= shares.sum()
            slope += p[c] * x[c] * np.where(np.arange(3) == c, shares - 1, shares)
            slope[c] -= p[c] * x[c] * (shares[c] - 1 + np.delete(shares, c).sum())  # 1 - share keeps its digits
            curvature += p[c] * x[c] ** 2 * (np.diag(shares) - np.outer(shares, shares))
        w = w - eliminated(curvature, slope)
    np.testing.assert_allclose(found, np.outer(w, x).astype(float), rtol=0, atol=1e-10 * np.abs(found).max())


def eliminated(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Gauss' elimination, which NumPy's solver does in double precision alone."""
    rows = np.column_stack([matrix, right])
    for i in range(len(rows)):
        rows[i] = rows[i] / rows[i, i]
        for j in set(range(len(rows))) - {i}:
            rows[j] = rows[j] - rows[j, i] * rows[i]
    return rows[:, -1]


def test_softmax_refuses_a_decay_where_rounding_hides_the_minimum():
    line = np.array([[0.3], [-1.2], [0.8]])
    with pytest.raises(ov.InputError, match=r"decay: expected at least 4\.3e-11"):
        softmax_fixed_point(line @ line.T, [0.2, 0.3, 0.5], 1e-11)
