"""Training sets, unseen classes and settings of a giant step: exact moments and laws, and refusals.

Statistical tests allow six standard errors or a p-value of 1e-6: some 400 of the former and two of the latter give a
false alarm in fewer than one of 1e5 runs.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import kstest

import overlaps as ov
from overlaps.giant_step import GiantStepSetting, TrainingSet, TwoClasses, UnseenClass, rotated, scaled
from overlaps.giant_step.unseen import check_classes, rotation

KINDS = ("sphere", "ball", "truncated")


# two classes


@pytest.mark.parametrize("kind", KINDS)
def test_the_moments_of_two_classes(kind):
    data, d, n = TwoClasses(kind), 8, 40_000
    X, y = data.draw(np.random.default_rng(0), n, d)
    assert y[: n // 2].min() == 1 and y[n // 2 :].max() == -1
    turned = X * y[:, None]  # both classes have the law of class +
    m, v = data.mean(d), data.variance(d)
    assert np.all(np.abs(turned.mean(0) - m) < 6 * math.sqrt(v / n))
    for half in (turned[: n // 2], turned[n // 2 :]):
        assert np.all(np.abs(half.mean(0) - m) < 6 * math.sqrt(v / (n // 2)))
    noise = turned - m
    covariance = noise.T @ noise / n
    spread = np.sqrt((np.square(noise[:, :, None] * noise[:, None, :]).mean(0) - covariance**2) / n)
    assert np.all(np.abs(covariance - v * np.eye(d)) < 6 * spread + 1e-12)


def test_the_laws_of_two_classes():
    d, n = 6, 4000
    rng = np.random.default_rng(1)
    for kind, distance in (("sphere", 2.5), ("ball", None)):
        data = TwoClasses(kind, distance)
        X, y = data.draw(rng, n, d)
        noise = X - y[:, None] * data.direction(d)
        assert np.linalg.norm(data.direction(d)) == pytest.approx(distance or 5.0)
        radius = np.linalg.norm(noise, axis=1) / math.sqrt(d)
        if kind == "sphere":
            np.testing.assert_allclose(radius, 1, rtol=1e-14)
        else:
            assert radius.max() <= 1 and kstest(radius**d, "uniform").pvalue > 1e-6
    X, y = TwoClasses("truncated").draw(rng, n, d)
    assert (X * y[:, None]).min() >= 1
    tail = math.erfc(1 / math.sqrt(2))
    share = np.array([math.erfc(x / math.sqrt(2)) / tail for x in (X * y[:, None]).ravel()])
    assert kstest(share, "uniform").pvalue > 1e-6


def test_the_truncated_gaussian_has_the_moments_of_its_integrals():
    def tail(f):
        return quad(lambda x: f(x) * math.exp(-x * x / 2), 1, 12)[0]

    data = TwoClasses("truncated")
    mean = tail(lambda x: x) / tail(lambda x: 1.0)
    np.testing.assert_allclose(data.mean(5), mean, rtol=1e-9)
    assert data.variance(5) == pytest.approx(tail(lambda x: (x - mean) ** 2) / tail(lambda x: 1.0))
    np.testing.assert_array_equal(data.direction(3), 1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: TwoClasses("spheres"), "did you mean 'sphere'"),
        (lambda: TwoClasses(3), "unknown kind 3"),
        (lambda: TwoClasses("truncated", 2.0), "distance: where a truncated"),
        (lambda: TwoClasses("ball", -1.0), "distance: expected a number above 0"),
        (lambda: UnseenClass(np.ones(3)), "mean: expected at least 4"),
        (lambda: UnseenClass(np.ones(4), "isotropic"), "covariance: expected 'projected'"),
        (lambda: UnseenClass(np.ones(4), -1.0), "covariance: expected a number of at least 0"),
        (lambda: UnseenClass(np.ones(4), [1.0, 1.0, 1.0, -1e-10]), "covariance: expected variances of at least 0"),
        (lambda: UnseenClass(np.ones(4), -np.eye(4)), "covariance: expected variances of at least 0"),
        (lambda: UnseenClass(np.ones(4), np.triu(np.ones((4, 4)))), "covariance: expected a symmetric"),
        (lambda: UnseenClass(np.ones(4), np.eye(5)), "covariance: expected shape"),
        (lambda: UnseenClass(np.ones(4), 1.0, points=np.ones((3, 5))), "points: expected shape"),
        (lambda: UnseenClass.from_points(np.ones((1, 4))), "points: a class needs at least 2 samples, got 1"),
        (lambda: UnseenClass.from_points(np.ones((5, 3))), "points: expected at least 4 inputs"),
        (lambda: UnseenClass.from_points([[1e200, 0, 0, 0], [0, 0, 0, 0]]), "mean: too long"),
        (lambda: scaled(np.ones((2, 4)), [1.0]), "direction: expected shape"),
        (lambda: scaled(np.ones(4), [np.inf]), "scales: has entries that are not finite"),
        (lambda: rotated(np.ones(4), [-0.1]), "sizes: expected numbers of at least 0"),
        (lambda: rotated([], [0.1]), "direction: expected at least 4"),
        (lambda: rotated(np.ones(4), [0.1], seed=-1), "seed: expected at least 0"),
        (lambda: check_classes(UnseenClass(np.ones(4)), 4), "unseen: expected a list"),
        (lambda: check_classes([], 4), "unseen: expected a list"),
        (lambda: check_classes(iter([UnseenClass(np.ones(4))]), 4), "unseen: expected a list"),
        (lambda: check_classes([np.ones(4)], 4), r"unseen\[0\]: expected an UnseenClass"),
        (lambda: check_classes(scaled(np.ones(4), [1.0]), 5), r"unseen\[0\]: expected 5 inputs"),
    ],
)
def test_refusals_name_the_field(call, message):
    with pytest.raises(ov.InputError, match=message):
        call()


# unseen classes


def law(one: UnseenClass, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Offset and matrix of the affine map from Z to points, read off `fields` with W = 1: exact mean and covariance."""
    zero, basis, W = np.zeros((1, d)), np.eye(d), np.eye(d)
    offset = one.fields(zero, zero @ W, W)[0]
    return offset, one.fields(basis, basis @ W, W) - offset


def test_projected_points_have_the_mean_and_covariance_of_their_class():
    v = np.array([1.0, -2.0, 0.5, 3.0, 0.0])
    unit = v / np.linalg.norm(v)
    for one, e in zip(scaled(v, [-0.4, 1e-6, 2.0]), (-0.4, 1e-6, 2.0), strict=True):
        mean, A = law(one, 5)
        np.testing.assert_allclose(mean, e * v, rtol=1e-14)
        np.testing.assert_allclose(A.T @ A, np.eye(5) - np.outer(unit, unit), atol=1e-9)
        Z = np.random.default_rng(0).standard_normal((20, 5))
        x = one.fields(Z, Z, np.eye(5))
        np.testing.assert_allclose(x @ unit, e * np.linalg.norm(v), rtol=1e-8)
        np.testing.assert_allclose(x, Z - np.outer(Z @ v, v) / (v @ v) + e * v, atol=1e-9)
        assert one.value == e and one.trace == pytest.approx(4)
    mean, A = law(scaled(v, 0.0)[0], 5)
    np.testing.assert_array_equal(A, np.eye(5))
    assert not mean.any() and scaled(v, 0.0)[0].trace == 5


def test_fields_are_those_of_points_for_every_covariance():
    rng = np.random.default_rng(2)
    d, mean = 6, rng.standard_normal(6)
    L = rng.standard_normal((d, d))
    unit = mean / np.linalg.norm(mean)
    Z, W, vectors = rng.standard_normal((7, d)), rng.standard_normal((d, 3)), rng.standard_normal((d, 2))
    given_points = rng.standard_normal((9, d)) @ L
    cases = {
        "projected": (UnseenClass(mean), np.eye(d) - np.outer(unit, unit)),
        "number": (UnseenClass(mean, 2.5), 2.5 * np.eye(d)),
        "diagonal": (UnseenClass(mean, np.arange(6.0)), np.diag(np.arange(6.0))),
        "matrix": (UnseenClass(mean, L @ L.T), L @ L.T),
        "degenerate": (UnseenClass(mean, np.outer(mean, mean)), np.outer(mean, mean)),
    }
    for one, S in cases.values():
        offset, A = law(one, d)
        np.testing.assert_allclose(offset, mean, atol=1e-12)
        np.testing.assert_allclose(A.T @ A, S, atol=1e-7)
        np.testing.assert_allclose(one.fields(Z, Z @ W, W), (offset + Z @ A) @ W, atol=1e-12)
        np.testing.assert_allclose(one.apply(vectors), S @ vectors, atol=1e-12)
        assert one.trace == pytest.approx(np.trace(S))
    one = UnseenClass.from_points(given_points, value=3.0)
    np.testing.assert_allclose(one.fields(Z, Z @ W, W), given_points @ W, atol=1e-12)
    np.testing.assert_allclose(one.mean, given_points.mean(0))
    centred = given_points - given_points.mean(0)
    np.testing.assert_allclose(one.apply(np.eye(d)), centred.T @ centred / 9, atol=1e-12)
    assert one.value == 3.0


@pytest.mark.parametrize("epsilon", [0.0, 1e-3, 0.3, 50.0])
@pytest.mark.parametrize("d", [4, 5, 9])
def test_rotations_are_those_of_the_qr_decomposition(d, epsilon):
    for seed in range(4):
        R = np.column_stack([rotation(e, epsilon, np.random.default_rng(seed)) for e in np.eye(d)])
        np.testing.assert_allclose(R @ R.T, np.eye(d), atol=1e-12)
        assert np.linalg.det(R) == pytest.approx(1)
        Q, T = np.linalg.qr(np.eye(d) + epsilon * np.random.default_rng(seed).standard_normal((d, d)))
        Q = Q * np.sign(np.diag(T))
        Q[:, 0] *= np.sign(np.linalg.det(Q))
        np.testing.assert_allclose(R, Q, atol=1e-10)
        if epsilon <= 1e-3:
            np.testing.assert_allclose(R, np.eye(d), atol=10 * epsilon)


def test_rotated_classes():
    v = np.full(50, 5 / math.sqrt(50))
    classes = rotated(v, [0.0, 0.1, 1.0, 3.0], seed=4)
    np.testing.assert_array_equal(classes[0].mean, v)
    np.testing.assert_allclose([np.linalg.norm(one.mean) for one in classes], 5)
    cosines = [float(one.mean @ v) / 25 for one in classes]
    assert 1 >= cosines[0] > cosines[1] > 0.9 > cosines[2] > cosines[3] and [one.value for one in classes][2] == 1.0
    again = rotated(v, [0.0, 0.1, 1.0, 3.0], seed=4)
    assert all(np.array_equal(a.mean, b.mean) for a, b in zip(classes, again, strict=True))
    assert not np.array_equal(rotated(v, 1.0, seed=5)[0].mean, rotated(v, 1.0, seed=4)[0].mean)


# settings


STEP = ov.GiantStep()


@pytest.mark.parametrize("kind", KINDS)
def test_groups_of_a_population_are_those_of_a_large_draw(kind):
    data, d, n = TwoClasses(kind), 6, 30_001
    known = GiantStepSetting(data, STEP, size=d, samples=n).groups()
    found = GiantStepSetting(TrainingSet(*data.draw(np.random.default_rng(0), n, d)), STEP).groups()
    for name in ("shares", "labels", "squares"):
        np.testing.assert_allclose(getattr(found, name), getattr(known, name), rtol=1e-14)
    error = 6 * np.sqrt(known.variances / (known.shares * n))[:, None]
    assert np.all(np.abs(found.means - known.means) < error)
    assert np.all(np.abs(found.pulls - known.pulls) < 6 * np.sqrt(known.spread)[:, None])
    np.testing.assert_allclose(found.variances, known.variances, rtol=0.06)
    assert not found.spread.any()


def test_the_spread_of_a_pull_is_its_variance_over_training_sets():
    # of 3000 sums of squares the relative standard error is √(2/3000)
    data, d, n = TwoClasses("ball"), 5, 8
    rng, draws = np.random.default_rng(0), 3000
    known = GiantStepSetting(data, STEP, size=d, samples=n).groups()
    pulls = np.array([X[: n // 2].sum(0) / n for X, _ in (data.draw(rng, n, d) for _ in range(draws))])
    assert np.all(np.abs(pulls.var(0) / known.spread[0] - 1) < 6 * math.sqrt(2 / draws))


def test_groups_of_arrays_are_sums_over_them():
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((9, 4)), np.array([1.0, -1, 1, 1, -1, 1, 1, -1, 1])
    two = GiantStepSetting(TrainingSet(X, y), STEP)
    g = two.groups()
    np.testing.assert_allclose(g.pulls.sum(0), X.T @ y / 9)
    np.testing.assert_allclose(two.direction, X.T @ y / 9)
    np.testing.assert_allclose(g.shares, [6 / 9, 3 / 9])
    np.testing.assert_allclose(g.means, [X[y > 0].mean(0), X[y < 0].mean(0)])
    np.testing.assert_allclose(g.variances, [X[y > 0].var(0).mean(), X[y < 0].var(0).mean()])
    target = rng.standard_normal(9)
    one = GiantStepSetting(TrainingSet(X, target), ov.GiantStep(heads=1), units=7).groups()
    np.testing.assert_allclose(one.pulls, [X.T @ target / 9])
    np.testing.assert_allclose([*one.labels, *one.squares], [target.mean(), np.mean(target**2)])
    assert two.count == (9, 4, 4)
    only = GiantStepSetting(TrainingSet(X, np.ones(9)), STEP).groups()
    assert only.shares.tolist() == [1.0] and only.means.shape == (1, 4)


def test_a_sampler_draws_with_the_generator_it_is_given():
    def sampler(rng, samples, inputs):
        return rng.standard_normal((samples, inputs)), np.where(np.arange(samples) % 3, 1.0, -1.0)

    setting = GiantStepSetting(sampler, STEP, size=5, samples=12, units=3)
    X, y = setting.draw(np.random.default_rng(7))
    np.testing.assert_array_equal(X, np.random.default_rng(7).standard_normal((12, 5)))
    np.testing.assert_allclose(setting.groups(seed=7).pulls.sum(0), X.T @ y / 12)
    assert setting.eta == pytest.approx(12**0.25) and "GiantStepSetting(sampler" in repr(setting)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: GiantStepSetting(TwoClasses(), 0.1), "algorithm: expected a GiantStep"),
        (lambda: GiantStepSetting("sphere", STEP), "data: expected TwoClasses"),
        (lambda: GiantStepSetting(TwoClasses, STEP), "data: expected TwoClasses"),
        (lambda: GiantStepSetting(TwoClasses(), STEP, size=3), "size: expected at least 4"),
        (lambda: GiantStepSetting(TwoClasses(), STEP, samples=1), "samples: expected at least 2"),
        (lambda: GiantStepSetting(TwoClasses(), STEP, units=0), "units: expected at least 1"),
        (lambda: GiantStepSetting(TwoClasses(), STEP, activation="tan"), "did you mean 'tanh'"),
        (lambda: GiantStepSetting(TwoClasses(), ov.GiantStep(heads=1)), "heads: two classes"),
        (lambda: TrainingSet(np.ones((5, 3)), np.ones(5)), "X: expected at least 2 samples of at least 4"),
        (lambda: TrainingSet(np.ones((1, 4)), np.ones(1)), "X: expected at least 2 samples"),
        (lambda: TrainingSet(np.ones((5, 4)), np.ones(4)), "y: expected shape"),
        (lambda: GiantStepSetting(TrainingSet(np.ones((5, 4)), np.zeros(5)), STEP), "y: expected labels 1 and -1"),
        (
            lambda: GiantStepSetting(TrainingSet(np.ones((5, 4)), np.ones(5)), STEP, samples=9),
            "samples: the training set has 5",
        ),
        (
            lambda: GiantStepSetting(lambda *sizes: 3, STEP, size=4).groups(),
            r"data: expected the sampler to return \(X, y\)",
        ),
        (
            lambda: GiantStepSetting(lambda r, n, d: (np.ones((n, d)), [0]), STEP, size=4).groups(),
            "data: y of the sampler",
        ),
        (
            lambda: GiantStepSetting(lambda r, n, d: (np.ones((d, 1)), [0]), STEP, size=4).groups(),
            "data: X of the sampler",
        ),
    ],
)
def test_settings_that_are_refused(call, message):
    with pytest.raises(ov.InputError, match=message):
        call()


NUMBERS = st.floats(-1e6, 1e6) | st.just(0.0)


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(
    st.sampled_from(KINDS),
    st.none() | st.floats(-1.0, 1e6),
    st.integers(2, 9),
    st.integers(0, 7),
    st.floats(-3.0, 3.0),
    st.lists(NUMBERS, min_size=1, max_size=9),
    st.none() | NUMBERS | st.lists(NUMBERS, max_size=9),
)
def test_any_setting_and_class_is_finite_or_refused(kind, distance, inputs, samples, exponent, mean, covariance):
    try:
        setting = GiantStepSetting(
            TwoClasses(kind, distance), ov.GiantStep(exponent=exponent), size=inputs, samples=samples
        )
        groups = setting.groups()
        one = UnseenClass(mean, *([] if covariance is None else [covariance]))
        Z = np.random.default_rng(0).standard_normal((3, len(mean)))
        found = [*setting.draw(np.random.default_rng(0)), setting.eta, one.fields(Z, Z, np.eye(len(mean))), one.trace]
        found += [groups.pulls, groups.means, groups.variances, groups.spread]
    except ov.InputError:
        return
    assert all(np.all(np.isfinite(value)) for value in found)


def test_how_unequal_variances_are():
    """Zero for equal variances, also of points, which have unequal ones by chance; a matrix is as its diagonal."""
    mean, variances = np.zeros(5), np.array([4.0, 1.0, 1.0, 1.0, 1.0])
    assert UnseenClass(mean, 2.5).concentration == 0
    assert UnseenClass(mean, np.full(5, 2.5)).concentration == pytest.approx(0, abs=1e-15)
    for covariance in (variances, np.diag(variances)):
        assert UnseenClass(mean, covariance).concentration == pytest.approx(20 / 64 - 1 / 5)
    for each in (UnseenClass(mean, variances), UnseenClass(mean, 2.5), UnseenClass(mean), UnseenClass(mean + 0.3)):
        assert each.trace == pytest.approx(np.trace(each.apply(np.eye(5))))
    rng = np.random.default_rng(8)
    drawn = np.array([UnseenClass.from_points(rng.standard_normal((100, 50))).concentration for _ in range(40)])
    # of order 1/(m d) is left, where one draw of m = 100 points has 1/m of noise
    assert abs(drawn.mean()) < 6 * drawn.std(ddof=1) / math.sqrt(40) + 1 / 5000
    assert drawn.std(ddof=1) < 1 / 1000
