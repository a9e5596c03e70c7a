"""The law of one neuron against gradients of many real ones, and scores of a given law against plain quadrature.

Means over neurons are compared with the predicted ones at 5 standard errors, a false alarm in 2e-6, plus what finite
size allows (relative 3/d).
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import overlaps as ov
from gaussian import hermite
from overlaps.giant_step import GiantStepSetting, TrainingSet, TwoClasses, UnseenClass, solve
from overlaps.giant_step.neurons import Neurons, neurons
from overlaps.giant_step.prediction import FINE, _Average

D, SAMPLES = 200, 300


def sphere(rng, count):
    W = rng.standard_normal((D, count))
    return W / np.linalg.norm(W, axis=0)


def measured(setting, one, W, residual):
    """X z, zX z, XX and X² of each neuron of W (d, N), for labels less outputs `residual` (n,) or (n, N)."""
    X = setting.data.X
    slopes = 1 - np.tanh(X @ W) ** 2
    g = X.T @ (residual * slopes) / len(X)
    Sg = one.apply(g)
    z, mean = one.mean @ W, one.mean @ g
    return {"Xz": mean * z, "zXz": (W * Sg).sum(0) * z, "XX": (g * Sg).sum(0), "X²": mean**2}


def agree(found, law):
    """Which of the measured means are predicted."""
    predicted = {
        "Xz": law.weights @ (law.X * law.z),
        "zXz": law.weights @ (law.zX * law.z),
        "XX": law.weights @ law.XX,
        "X²": law.weights @ law.X**2,
    }
    return {
        name: abs(values.mean() - predicted[name])
        < 5 * values.std() / np.sqrt(values.size) + 3 / D * abs(predicted[name])
        for name, values in found.items()
    }


@pytest.mark.parametrize("covariance", ["projected", 1.0, "aligned"])
def test_two_classes_far_from_centred(covariance) -> None:
    """Unequal classes: factors κ and χ of both, noise of given arrays, a class with the covariance of training."""
    rng = np.random.default_rng(0)
    width = np.ones(D)
    if covariance == "aligned":
        width = np.sqrt(np.linspace(0.05, 2, D))
        covariance = 4 * width**4
    y = np.where(np.arange(SAMPLES) < 100, 1.0, -1.0)
    plus, minus = 0.9 * rng.standard_normal(D), 0.5 * rng.standard_normal(D)
    X = 0.8 * width * rng.standard_normal((SAMPLES, D)) + np.where(y[:, None] > 0, plus, minus)
    setting = GiantStepSetting(TrainingSet(X, y), ov.GiantStep(), units=10**9)  # so wide that outputs vanish
    one = UnseenClass(0.5 * plus + 0.2 * minus, covariance)
    law = neurons(setting, setting.groups(), one, True, FINE, True)
    assert agree(measured(setting, one, sphere(rng, 20_000), y[:, None]), law) == dict.fromkeys(
        ("Xz", "zXz", "XX", "X²"), True
    )
    common = neurons(setting, setting.groups(), one, False, FINE, True)
    wrong = agree(measured(setting, one, sphere(rng, 20_000), y[:, None]), common)
    assert not wrong["zXz"] and not wrong["X²"]


def regression(rng):
    X = rng.standard_normal((SAMPLES, D)) + 0.8
    direction = np.where(np.arange(D) % 2, 1.0, -1.0) / np.sqrt(D)
    return X, np.tanh(X @ direction) + 0.5 * X @ direction + 0.1 * rng.standard_normal(SAMPLES)


@pytest.mark.parametrize("towards", [0.0, 0.3])
def test_labels_that_vary_within_the_group(towards) -> None:
    """Their covariance with inputs tilts the gradient along the mean, once: not again as noise."""
    rng = np.random.default_rng(1)
    X, y = regression(rng)
    setting = GiantStepSetting(TrainingSet(X, y), ov.GiantStep(heads=1), units=10**9)
    one = UnseenClass(towards * np.ones(D) + 0.1 * setting.direction, 1.0)
    law = neurons(setting, setting.groups(), one, True, FINE, True)
    found = agree(measured(setting, one, sphere(rng, 20_000), y[:, None]), law)
    assert found["XX"] and found["X²"] and found["Xz"]


def test_outputs_before_the_step_are_taken_from_the_labels() -> None:
    """Narrow networks, whose mean output is of the size of the mean label."""
    rng = np.random.default_rng(2)
    X, y = regression(rng)
    N, networks = 100, 400
    one = UnseenClass(np.full(D, 0.2), 1.0)
    law, without = (
        neurons(setting, setting.groups(), one, True, FINE, True)
        for setting in (GiantStepSetting(TrainingSet(X, y), ov.GiantStep(heads=1), units=width) for width in (N, 10**9))
    )
    setting = GiantStepSetting(TrainingSet(X, y), ov.GiantStep(heads=1), units=N)
    XX, squares = np.empty(networks), np.empty(networks)
    for k in range(networks):
        W = sphere(rng, N)
        outputs = np.tanh(X @ W) @ rng.standard_normal(N) / N  # heads of variance 1/N, over √N
        found = measured(setting, one, W, (y - outputs)[:, None])
        XX[k], squares[k] = found["XX"].mean(), found["X²"].mean()
    for values, name in ((XX, "XX"), (squares, "X")):
        part = getattr(law, name) ** (2 if name == "X" else 1)
        error = values.std() / np.sqrt(networks)  # neurons of one network share its outputs
        assert abs(values.mean() - law.weights @ part) < 5 * error + 3 / N * values.mean()
        part = getattr(without, name) ** (2 if name == "X" else 1)
        assert abs(values.mean() - without.weights @ part) > 5 * error + 3 / N * values.mean()


@pytest.mark.parametrize("X, XX, zX", [(0.7, 1.3, 0.9), (2.0, 2.0, -1.0), (0.0, 0.5, 0.0), (-1.0, 0.0, 0.0)])
@pytest.mark.parametrize("g", ["tanh", "softplus"])
def test_scores_of_a_given_law(g, X, XX, zX) -> None:
    """Alignment and elasticity of one neuron against a product rule over α, z and X."""
    setting = GiantStepSetting(ov.giant_step.TwoClasses(), ov.GiantStep(2.0, 0.0), size=50, units=4, activation=g)
    average = _Average.__new__(_Average)
    one = np.ones(1)
    average.setting, average.spacing, average.points = setting, FINE, 0
    average.g = ov.giant_step.line.lines(setting.g, FINE)[0]
    average.neurons = Neurons(one, 0.3 * one, 1.1 * one, X * one, XX * one, zX * one)
    x, w = hermite(160)
    f = np.tanh if g == "tanh" else lambda u: np.logaddexp(0, u)
    alpha = x * np.sqrt(2 / 4)
    L = np.linalg.cholesky(np.array([[1.1, zX], [zX, XX]]) + 1e-14 * np.eye(2))
    z = 0.3 + L[0, 0] * x
    field = X + np.add.outer(L[1, 0] * x, L[1, 1] * x)  # (z, X | z)
    after = f(z[:, None] + 2.0 * np.multiply.outer(alpha, field))
    alignment = 4 * w @ np.einsum("azx,z,x->a", after, w, w) ** 2
    elasticity = 4 * np.einsum("azx,a,z,x->", (after - f(z)[:, None]) ** 2, w, w, w)
    found = average.scores()
    assert found[0] == pytest.approx(alignment, rel=2e-4)
    assert found[1] == pytest.approx(elasticity, rel=2e-4)
    assert found[2] == pytest.approx(4 * (w @ f(0.3 + np.sqrt(1.1) * x)) ** 2, rel=1e-5)


def test_the_law_given_the_projection_of_a_neuron() -> None:
    """X, XX and zX of neurons with the same w·m, where every term counts: few dimensions and very many samples.

    Averages over all neurons do not see the sign of χ (w·c) z in X and of the product of both parts of the gradient in
    XX: the first is zero by symmetry, the second of relative order 1/d.
    """
    d, n, rng = 12, 200_000, np.random.default_rng(7)
    axis = np.eye(d)[0]
    y = np.where(np.arange(n) < n // 4, 1.0, -1.0)
    X = 0.7 * rng.standard_normal((n, d)) + np.where(y > 0, 1.5, -0.4)[:, None] * axis
    setting = GiantStepSetting(TrainingSet(X, y), ov.GiantStep(), units=10**9)
    one = UnseenClass(1.2 * axis, 1.0)
    law = neurons(setting, setting.groups(), one, True, FINE, True)
    for node in np.argsort(np.abs(law.z - 0.7))[:1].tolist() + np.argsort(np.abs(law.z + 0.5))[:1].tolist():
        along = float(law.z[node]) / 1.2
        assert 0.3 < abs(along) < 0.9
        rest = rng.standard_normal((d - 1, 400))
        W = np.vstack([np.full(400, along), np.sqrt(1 - along**2) * rest / np.linalg.norm(rest, axis=0)])
        g = X.T @ (y[:, None] * (1 - np.tanh(X @ W) ** 2)) / n
        found = {"X": one.mean @ g, "XX": (g * one.apply(g)).sum(0), "zX": (W * one.apply(g)).sum(0)}
        for name, values in found.items():
            # neurons share their n samples, which leave some .5 % of it open: five times that
            error = 5 * values.std() / 20 + 0.025 * abs(values.mean())
            assert abs(values.mean() - getattr(law, name)[node]) < error, (name, along)


@pytest.mark.parametrize("m", [12, 40])
@pytest.mark.parametrize("length", [0.5, 80.0])
def test_alignment_of_given_points_before_the_step_is_that_of_their_pairs(length: float, m: int) -> None:
    """Of error functions it is an arc sine for every two points; of weak classes and of strong ones, at large sizes."""
    d = 2000
    setting = GiantStepSetting(TwoClasses(), ov.GiantStep(0.2, 0.1), size=d, activation="erf")
    far = length * setting.direction / np.linalg.norm(setting.direction)
    points = np.random.default_rng(4).standard_normal((m, d)) + far
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the covariance of so few points has few directions
        found = solve(setting, [UnseenClass.from_points(points)]).mean("alignment_before")[0] / d
    K = points @ points.T / d
    pairs = 2 / np.pi * np.arcsin(K / np.sqrt(np.outer(1 + np.diag(K), 1 + np.diag(K))))
    # points with themselves would add .008 to .06; what sizes leave is of relative order 1/d
    assert found == pytest.approx((pairs.sum() - np.trace(pairs)) / (m * (m - 1)), abs=4e-4 if length > 1 else 1e-4)
