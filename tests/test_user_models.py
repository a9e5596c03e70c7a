"""Models given as functions: spectra against second differences, refusals of functions that contradict each other."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

from overlaps.interface.errors import InputError, NumericalError
from overlaps.spectra.eigenpairs import eigenpairs
from overlaps.spectra.models import Model

Array = NDArray[np.float64]


def logistic(samples: int = 60, parameters: int = 8, decay: float = 0.0) -> Model:
    """Logistic regression with a penalty, whose derivatives fit on a line each."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((samples, parameters)), rng.choice([-1.0, 1.0], samples)

    def slopes(theta: Array) -> Array:
        return -y / (1 + np.exp(y * (X @ theta)))

    def product(theta: Array, u: Array) -> Array:
        s = np.abs(slopes(theta))
        return X.T @ (s * (1 - s) * (X @ u)) / samples + decay * u

    return Model(
        loss=lambda theta: float(np.mean(np.log1p(np.exp(-y * (X @ theta)))) + decay / 2 * theta @ theta),
        gradient=lambda theta: slopes(theta) @ X / samples + decay * theta,
        hessian_product=product,
        gradients=lambda theta: slopes(theta)[:, None] * X + decay * theta,
    )


THETA = np.random.default_rng(1).standard_normal(8)


def differences(model: Model, theta: Array, h: float = 1e-4) -> Array:
    """Hessian by second differences of the loss, error ~ 1e-7."""
    e = h * np.eye(theta.size)
    return np.array(
        [
            [
                (
                    model.loss(theta + a + b)
                    - model.loss(theta + a - b)
                    - model.loss(theta - a + b)
                    + model.loss(theta - a - b)
                )
                / (4 * h * h)
                for a in e
            ]
            for b in e
        ]
    )


@pytest.mark.parametrize("decay", [0.0, 0.3])
def test_hessian_by_second_differences(decay: float) -> None:
    model = logistic(decay=decay)
    H = differences(model, THETA)
    np.testing.assert_allclose(model.hessian(THETA).dense(), H, atol=1e-6)
    np.testing.assert_allclose(model.hessian(THETA).spectrum(), np.linalg.eigvalsh(H)[::-1], atol=1e-6)
    for block in (slice(2, 5), [6, 0, 3], np.array([False, True] * 4)):
        where = np.arange(8)[block]
        np.testing.assert_allclose(model.hessian(THETA, block=block).dense(), H[np.ix_(where, where)], atol=1e-6)


@pytest.mark.parametrize("parameters", [8, 300])
def test_gradient_matrix_is_the_mean_of_outer_products(parameters: int) -> None:
    """Few samples for 300 parameters: the eigenpairs go by the samples' Gram matrix."""
    model, theta = logistic(parameters=parameters), np.random.default_rng(2).standard_normal(parameters)
    assert model.gradients is not None
    G = np.mean([np.outer(g, g) for g in np.asarray(model.gradients(theta))], axis=0)
    operator = model.gradient_matrix(theta)
    np.testing.assert_allclose(operator.dense(), G, atol=1e-12)
    np.testing.assert_allclose(operator @ theta, G @ theta, atol=1e-10)
    pairs = eigenpairs(operator, 4)
    assert ("Gram" in pairs.method) == (parameters == 300)
    np.testing.assert_allclose(pairs.values, np.linalg.eigvalsh(G)[::-1][:4], rtol=1e-9)
    np.testing.assert_allclose(G @ pairs.vectors, pairs.vectors * pairs.values, atol=1e-9 * pairs.values[0])
    np.testing.assert_allclose(model.gradient_matrix(theta, block=slice(1, 4)).dense(), G[1:4, 1:4], atol=1e-12)


def test_operator_keeps_its_point() -> None:
    """What is done to theta afterwards, or by a careless function, does not change the operator."""
    model, theta = logistic(), THETA.copy()

    def careless(at: Array, u: Array) -> Any:
        result = model.hessian_product(at, u)
        at[:] = u[:] = 0
        return result

    operator = replace(model, hessian_product=careless).hessian(theta)
    expected = model.hessian(THETA).dense()
    theta[:] = 0
    np.testing.assert_array_equal(operator.dense(), expected)
    np.testing.assert_array_equal(operator.dense(), expected)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("decay", [0.0, 0.3])
@pytest.mark.parametrize("seed", range(5))
def test_true_derivatives_pass(seed: int, decay: float, scale: float) -> None:
    """In any units of the loss."""
    model = logistic(decay=decay)
    each: Any = model.gradients
    Model(
        loss=lambda theta: scale * model.loss(theta),
        gradient=lambda theta: scale * np.asarray(model.gradient(theta)),
        hessian_product=lambda theta, u: scale * np.asarray(model.hessian_product(theta, u)),
        gradients=lambda theta: scale * each(theta),
    ).check(THETA + seed / 10, seed=seed)


@pytest.mark.parametrize("height", [0.0, 1e3])
def test_a_minimum_passes(height: float) -> None:
    """Where the gradient vanishes only the error of the differences is left: rounding, and their third order."""
    a, place = np.array([1.0, 2.0, 5.0]), np.array([0.3, -0.7, 1.1])
    model = Model(
        loss=lambda x: height + float(np.sum(a * (x - place) ** 2 / 2 + 50 * (x - place) ** 3)),
        gradient=lambda x: a * (x - place) + 150 * (x - place) ** 2,
        hessian_product=lambda x, u: (a + 300 * (x - place)) * u,
    )
    model.check(place)
    with pytest.raises(InputError, match="gradient: expected the derivative of loss"):
        replace(model, gradient=lambda x: a * (x - place) + 1e-3).check(place)


def test_kinks_pass() -> None:
    """A ReLU unit's loss away from its kinks."""
    rng = np.random.default_rng(4)
    X, y = rng.standard_normal((50, 6)), rng.standard_normal(50)

    def on(w: Array) -> Array:
        return X * (X @ w > 0)[:, None]

    Model(
        loss=lambda w: float(np.mean((on(w) @ w - y) ** 2)) / 2,
        gradient=lambda w: on(w).T @ (on(w) @ w - y) / 50,
        hessian_product=lambda w, u: on(w).T @ (on(w) @ u) / 50,
    ).check(rng.standard_normal(6))


def single(model: Model) -> Model:
    """The same model with results rounded to single precision, as are θ and u."""
    each: Any = model.gradients

    def low(x: Any) -> Any:
        return np.asarray(x, np.float32)

    return Model(
        loss=lambda theta: float(low(model.loss(low(theta)))),
        gradient=lambda theta: low(model.gradient(low(theta))),
        hessian_product=lambda theta, u: low(model.hessian_product(low(theta), low(u))),
        gradients=lambda theta: low(each(low(theta))),
    )


@pytest.mark.parametrize("parameters", [8, 600])
def test_single_precision(parameters: int) -> None:
    """True functions pass and spectra are found; a fifth of a gradient, a tenth of a Hessian and wrong means show."""
    exact, theta = logistic(700, parameters), 0.1 * np.random.default_rng(2).standard_normal(parameters)
    model = single(exact)
    for seed in range(5):
        model.check(theta, seed=seed)
    operator = model.hessian(theta)
    assert operator.dtype == np.float32
    expected = exact.hessian(theta).spectrum()
    np.testing.assert_allclose(operator.spectrum(), expected, atol=1e-5 * expected[0])
    pairs = eigenpairs(operator, 3, tolerance=1e-4)
    np.testing.assert_allclose(pairs.values, expected[:3], atol=1e-4 * expected[0])
    assert pairs.residuals.max() <= 1e-4
    with pytest.raises(InputError, match="tolerance: products of hessian are in single precision"):
        eigenpairs(operator, 3)
    gradient, product, each = cast(Any, (model.gradient, model.hessian_product, model.gradients))
    for false, words in [
        (
            replace(model, gradient=lambda t: np.float32(1.2) * gradient(t)),
            "gradient: expected the derivative of loss",
        ),
        (replace(model, hessian_product=lambda t, u: np.float32(0.9) * product(t, u)), "hessian_product: expected"),
        (replace(model, gradients=lambda t: each(t) + np.float32(0.1)), "gradients: expected their mean"),
    ]:
        with pytest.raises(InputError, match=words):
            false.check(theta)


def test_what_is_no_function_is_refused() -> None:
    model = logistic()
    bad: Any
    for name, bad, words in [
        ("loss", 3, r"loss: expected a function of \(theta\), got 3"),
        ("gradient", None, r"gradient: expected a function of \(theta\)"),
        ("hessian_product", lambda theta: theta, r"hessian_product: expected a function of \(theta, u\)"),
        ("gradients", lambda: 0, r"gradients: expected a function of \(theta\)"),
    ]:
        with pytest.raises(InputError, match=words):
            replace(model, **{name: bad})
    with pytest.raises(InputError, match=r"gradient: expected numbers of shape \(8,\) to be returned, got 'abc'"):
        replace(model, gradient=lambda theta: "abc").check(THETA)
    with pytest.raises(InputError, match="theta: expected at least one parameter"):
        model.hessian([])


def test_contradictions_are_refused() -> None:
    model = logistic()
    gradient: Any = model.gradient
    product: Any = model.hessian_product
    each: Any = model.gradients
    shifted = np.eye(8)[3]
    turned = np.zeros((8, 8))
    turned[0, 1], turned[1, 0] = 1e-6, -1e-6
    for false, words in [
        (replace(model, gradient=lambda t: 1.001 * gradient(t)), "gradient: expected the derivative of loss, .* away"),
        (replace(model, gradient=lambda t: gradient(t) + 1e-2 * shifted), "gradient: expected the derivative of loss"),
        (
            replace(model, hessian_product=lambda t, u: 0.999 * product(t, u)),
            "hessian_product: expected the derivative",
        ),
        (replace(model, hessian_product=lambda t, u: product(t, u) + turned @ u), "hessian: expected a symmetric"),
        (replace(model, gradients=lambda t: each(t) + 1e-6 * shifted), "gradients: expected their mean .* 1e-06"),
        (
            replace(model, gradients=lambda t: each(t).sum(axis=0)),
            r"gradients: expected shape \(samples, 8\), got \(8,\)",
        ),
        (replace(model, gradients=lambda t: each(t)[:, :4]), r"gradients: expected shape \(60, 8\)"),
        (replace(model, gradient=lambda t: gradient(t)[:4]), r"gradient: .*\(8,\) .*\(4,\)"),
        (replace(model, loss=lambda t: gradient(t)), r"loss: .*\(\) .*\(8,\)"),
        (replace(model, hessian_product=lambda t, u: 1.0), r"hessian_product: .*\(8,\) .*\(\)"),
    ]:
        with pytest.raises(InputError, match=words):
            false.check(THETA)
    with pytest.raises(NumericalError, match=r"hessian_product: .*not finite"):
        replace(model, hessian_product=lambda t, u: u + np.nan).hessian(THETA).dense()
    with pytest.raises(InputError, match="gradients: the gradient matrix needs"):
        replace(model, gradients=None).gradient_matrix(THETA)
    replace(model, gradients=None).check(THETA)


@pytest.mark.parametrize("block", [[], [8], [1, 1], 3, slice(5, 5), [[0, 1]], [0.5]])
def test_blocks_that_are_none(block: Any) -> None:
    with pytest.raises(InputError, match="block: expected"):
        logistic().hessian(THETA, block=block)
