"""The giant step: gradient by finite differences of the loss, its rank-one part, expanded features, windows."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import overlaps as ov
from overlaps.giant_step import expanded_features, gradient, gradient_error, operator_norm, rank_one

G = {
    "tanh": np.tanh,
    "relu": lambda u: np.maximum(u, 0),
    "softplus": lambda u: np.log1p(np.exp(u)),
    "linear": lambda u: u,
    "erf": np.vectorize(lambda u: math.erf(u / math.sqrt(2))),
}


def draw(n: int = 6, d: int = 5, N: int = 4, heads: int = 2, seed: int = 0):
    rng = np.random.default_rng(seed)
    return (
        rng.standard_normal((n, d)),
        rng.choice([-1.0, 1.0], n),
        rng.standard_normal((d, N)) / math.sqrt(d),
        rng.standard_normal((heads, N)),
    )


def loss(X, y, W, a, g) -> float:
    """(1/2n) Σ_c Σ_i (y_ci − Σ_j g(x_i·w_j) a_cj/√N)², sample by sample."""
    n, N, total = len(X), W.shape[1], 0.0
    for c, head in enumerate(a):
        for x, label in zip(X, y, strict=True):
            output = sum(float(g(x @ W[:, j])) * head[j] for j in range(N)) / math.sqrt(N)
            total += ((-1) ** c * label - output) ** 2
    return total / (2 * n)


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("name", G)
def test_the_gradient_is_that_of_the_loss(name, heads):
    X, y, W, a = draw(heads=heads)
    if heads == 1:
        y = np.linspace(-2, 3, len(y))  # a regression
    found, step = gradient(X, y, W, a, name), 1e-5
    for i, j in np.ndindex(W.shape):
        shift = np.zeros_like(W)
        shift[i, j] = step
        slope = (loss(X, y, W + shift, a, G[name]) - loss(X, y, W - shift, a, G[name])) / (2 * step)
        assert found[i, j] == pytest.approx(-slope, rel=1e-6, abs=1e-9)


def test_an_activation_of_ones_own_has_the_same_gradient():
    X, y, W, a = draw()
    own = ov.Activation("own", math.tanh, lambda x: 1 / math.cosh(x) ** 2)
    np.testing.assert_allclose(gradient(X, y, W, a, own), gradient(X, y, W, a), rtol=1e-12)


def test_the_rank_one_part():
    X, y, _, a = draw()
    for heads, alpha in ((a, a[0] - a[1]), (a[:1], a[0])):
        first, second = rank_one(X, y, heads)
        np.testing.assert_allclose(first, 0.605705509602 * X.T @ y / 6 / 2, rtol=1e-10)  # √N = 2
        np.testing.assert_array_equal(second, alpha)


def test_the_gradient_is_its_rank_one_part_up_to_noise_that_shrinks():
    # about n^{-1/2} of noise, and small sizes are farther off: halved or less for four times the sizes
    errors = []
    for n in (128, 512):
        data = ov.giant_step.TwoClasses("sphere", 3.0)
        rng = np.random.default_rng(0)
        X, y = data.draw(rng, n, n)
        W = rng.standard_normal((n, n))
        W /= np.linalg.norm(W, axis=0)
        a = rng.standard_normal((2, n)) / math.sqrt(n)
        errors.append(gradient_error(gradient(X, y, W, a), *rank_one(X, y, a)))
    assert errors[0] < 0.12 and errors[1] < 0.55 * errors[0]


def test_the_error_of_a_gradient_is_a_ratio_of_largest_singular_values():
    rng = np.random.default_rng(1)
    for shape in ((5, 7), (80, 70), (65, 200)):
        M, u, v = rng.standard_normal(shape), rng.standard_normal(shape[0]), rng.standard_normal(shape[1])
        top = np.linalg.svd(M, compute_uv=False)[0]
        assert operator_norm(M) == pytest.approx(top, rel=1e-8)
        rest = np.linalg.svd(M - np.outer(u, v), compute_uv=False)[0]
        assert gradient_error(M, u, v) == pytest.approx(rest / top, rel=1e-8)
        assert gradient_error(np.outer(u, v), u, v) < 1e-12


def test_norms_of_special_matrices():
    assert operator_norm(np.eye(100)) == pytest.approx(1)  # all singular values are equal
    assert operator_norm(np.zeros((70, 70))) == 0 and operator_norm(np.zeros((0, 3))) == 0
    for scale in (1e-250, 1e250):
        assert operator_norm(np.full((70, 80), scale)) == pytest.approx(scale * math.sqrt(5600))
        assert operator_norm(np.full((3, 3), scale)) == pytest.approx(3 * scale)


def test_expanded_features_are_the_sum_of_powers():
    rng = np.random.default_rng(2)
    x, before, b, alpha = rng.standard_normal((3, 5)), rng.random((3, 4)), rng.random(5), rng.standard_normal(4)
    c = [0, 0.6057055096, 0, -0.0605992, 0, 0.005712]
    for order in (1, 3, 5):
        wanted = before.copy()
        for i, j in np.ndindex(3, 4):
            wanted[i, j] += sum(c[k] * (0.7 * c[1] * (x[i] @ b)) ** k * alpha[j] ** k for k in range(1, order + 1))
        np.testing.assert_allclose(expanded_features(x, before, b, alpha, 0.7, order), wanted, atol=2e-5)
    np.testing.assert_array_equal(
        expanded_features(x, before, b, alpha, 0.7, 3), expanded_features(x, before, b, alpha, 0.7, 4)
    )


def test_expanded_features_are_the_features_after_a_small_step_on_average():
    # of neurons, F − F_0 has mean E g(z + s) − E g(z) given the shift s; for a small step that is c_1 s, so that the
    # projection of F − F_0 on that of F_l is one up to noise of 1/√(points · width)
    rng = np.random.default_rng(3)
    n = d = N = 400
    X, y = ov.giant_step.TwoClasses("sphere", 5.0).draw(rng, n, d)
    W = rng.standard_normal((d, N))
    W /= np.linalg.norm(W, axis=0)
    a, x = rng.standard_normal((2, N)) / math.sqrt(N), rng.standard_normal((200, d)) + 0.1
    before, eta = np.tanh(x @ W), 1e-3
    after = np.tanh(x @ (W + eta * math.sqrt(N) * gradient(X, y, W, a)))
    moved = expanded_features(x, before, X.T @ y / n, a[0] - a[1], eta, 3) - before
    assert np.sum((after - before) * moved) / np.sum(moved**2) == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda X, y, W, a: gradient(X, y, W, np.ones((3, 4))), "heads: expected 1 or 2 rows of 4, got 3"),
        (lambda X, y, W, a: gradient(X, y, W, a[:, :2]), "heads: expected shape"),
        (lambda X, y, W, a: gradient(X, y[1:], W, a), "y: expected shape"),
        (lambda X, y, W, a: gradient(X, y, W.T, a), "W: expected shape"),
        (lambda X, y, W, a: gradient(X[:0], y[:0], W, a), "X, W: expected at least one sample"),
        (lambda X, y, W, a: rank_one(X[:0], y[:0], a), "X, heads: expected at least one sample"),
        (lambda X, y, W, a: rank_one(X, y, np.ones((3, 4))), "heads: expected 1 or 2 rows"),
        (lambda X, y, W, a: gradient_error(np.zeros((5, 4)), X[0], a[0]), "G: the gradient is zero"),
        (lambda X, y, W, a: gradient_error(W, X[0], a), "second: expected shape"),
        (lambda X, y, W, a: expanded_features(X, X @ W, X[0], a[0], 0.0, 2), "eta: expected a number above 0"),
        (lambda X, y, W, a: expanded_features(X, X @ W, X[0], a[0], 1.0, 0), "order: expected at least 1"),
        (lambda X, y, W, a: ov.GiantStep(rate=0), "rate: expected a number above 0"),
        (lambda X, y, W, a: ov.GiantStep(exponent=np.nan), "exponent: expected a finite number"),
        (lambda X, y, W, a: ov.GiantStep(heads=3), "heads: expected at most 2"),
        (lambda X, y, W, a: ov.GiantStep(steps=0), "steps: expected at least 1"),
    ],
)
def test_refusals_name_the_field(call, message):
    with pytest.raises(ov.InputError, match=message):
        call(*draw())


def test_what_overflows_is_said_so():
    X, y, W, a = draw()
    for call in (
        lambda: gradient(1e200 * X, y, 1e200 * W, a, "relu"),
        lambda: rank_one(1e308 * np.sign(X), y * 9, a),
        lambda: expanded_features(X, X @ W, X[0], a[0], 1e200, 3),
    ):
        with pytest.raises(ov.NumericalError, match="larger than any"):
            call()


# windows of exponents


@pytest.mark.parametrize(("exponent", "order"), [(0.05, 1), (0.2499, 1), (0.2501, 2), (0.3, 2), (0.34, 3), (0.39, 4)])
def test_exponents_inside_a_window(exponent, order):
    window = ov.GiantStep(exponent=exponent).window
    assert (window.order, window.boundary) == (order, False)
    a = Fraction(exponent)
    assert Fraction(order - 1, 2 * order) < a < Fraction(order, 2 * order + 2)
    assert f"in the window of order {order}" in str(window)


@pytest.mark.parametrize(("exponent", "order"), [(1 / 4, 2), (1 / 3, 3), (3 / 8, 4), (2 / 5, 5)])
def test_exponents_on_a_boundary_are_said_to_be(exponent, order):
    window = ov.GiantStep(exponent=exponent).window
    assert (window.order, window.boundary) == (order, True)
    assert f"on the boundary of the windows of order {order - 1} and {order}" in str(window)


def test_exponents_at_the_ends_and_outside():
    lowest = ov.GiantStep(exponent=0).window
    assert (lowest.order, lowest.boundary) == (1, True) and "lower boundary" in str(lowest)
    for exponent, words in ((-0.1, "below 0"), (0.5, "at or above 1/2"), (2.0, "at or above 1/2")):
        window = ov.GiantStep(exponent=exponent).window
        assert (window.order, window.boundary) == (None, False) and words in str(window)


@settings(max_examples=40, deadline=None, derandomize=True, database=None)
@given(st.floats(0, 0.5, exclude_max=True))
def test_the_window_holds_its_exponent(exponent):
    window = ov.GiantStep(exponent=exponent).window
    assert window.order is not None
    assert (window.order - 1) / (2 * window.order) - 1e-12 <= exponent <= window.order / (2 * window.order + 2) + 1e-12


def test_the_size_of_a_step_grows_with_the_samples():
    assert ov.GiantStep(rate=2.0, exponent=0.25).size(16) == pytest.approx(4)
    assert ov.GiantStep(rate=0.5, exponent=0).size(1024) == 0.5
    with pytest.raises(ov.InputError, match="exponent: 1000 makes an infinite step"):
        ov.GiantStep(exponent=1000).size(1024)


@settings(max_examples=40, deadline=None, derandomize=True, database=None)
@given(
    st.integers(0, 4),
    st.integers(0, 4),
    st.integers(0, 3),
    st.integers(0, 3),
    st.sampled_from([1e-300, 1, 1e160, 1e307]),
)
def test_gradients_of_anything_are_finite_or_refused(n, d, N, heads, scale):
    X, y, W, a = (scale * part for part in draw(n, d, N, heads))
    for call in (
        lambda: gradient(X, y, W, a),
        lambda: rank_one(X, y, a)[0],
        lambda: operator_norm(X),
        lambda: gradient_error(W, W[:, 0], W[0]) if W.size else 0.0,
    ):
        try:
            found = call()
        except (ov.InputError, ov.NumericalError):
            continue
        assert np.all(np.isfinite(found))
