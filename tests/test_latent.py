"""Latent mixtures: samples have the law that is said, before and after standardisation.

Statistical tests have fixed seeds and a false-alarm rate of 10⁻⁴ each, corrected for the number of coordinates.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import overlaps as ov
from overlaps.data.latent import LatentMixture
from overlaps.interface.spec import from_mapping, parse, to_mapping, write

D, COUNT, ALARM = 6, 20_000, 1e-4
MEANS = np.random.default_rng(8).uniform(-2, 2, (3, D))
WEIGHTS = (0.2, 0.3, 0.5)
KINDS = [
    LatentMixture(),
    LatentMixture(components=3, bound=2.0, means="scalar", weights=WEIGHTS),
    LatentMixture(means=MEANS, weights=WEIGHTS),
    LatentMixture(components=3, bound=2.0, label="coordinate"),
    LatentMixture(components=2, bound=9.0, label="coordinate", means="scalar", standardise="population"),
    LatentMixture(components=3, bound=4.0, standardise="population", weights=WEIGHTS),
    LatentMixture(components=3, bound=4.0, standardise="empirical"),
    LatentMixture(means=MEANS, weights=WEIGHTS, label="coordinate", standardise="empirical"),
    LatentMixture(components=2, bound=3.0, standardise="overall"),
]


def drawn(latent: LatentMixture, seed: int = 0):
    return latent.sample(np.random.default_rng(seed), COUNT, D)


@pytest.mark.parametrize("latent", KINDS, ids=repr)
def test_each_coordinate_has_the_law_of_the_mixture(latent):
    C, _ = drawn(latent)
    centres, scale = (latent.centres(D) - latent.shift(D)) / latent.scale(D), latent.scale(D)
    for r in range(D):

        def law(x, r=r):
            return latent.probabilities @ stats.norm.cdf((x - centres[:, r, None]) * scale[r])

        assert stats.kstest(C[:, r], law).pvalue > ALARM / (D * len(KINDS))


@pytest.mark.parametrize("latent", KINDS, ids=repr)
def test_components_and_their_labels(latent):
    """Given the label, C is Gaussian with the means and scales of `conditional`; labels have their weights."""
    C, labels = drawn(latent, 1)
    weights, means, scales = latent.conditional(D)
    assert labels.dtype == np.int64 and labels.shape == (COUNT,)
    assert weights.sum() == pytest.approx(1) and means.shape == (weights.size, D) and scales.shape == (D,)
    counts = np.bincount(labels, minlength=weights.size)
    assert stats.chisquare(counts, weights * COUNT).pvalue > ALARM or weights.size == 1
    limit = stats.norm.isf(ALARM / (2 * means.size))
    for s, n in enumerate(counts):
        own = C[labels == s]
        assert np.all(np.abs(own.mean(0) - means[s]) < limit * scales / np.sqrt(n))
        squares = (own - means[s]) ** 2
        assert np.all(np.abs(squares.mean(0) - scales**2) < limit * squares.std(0) / np.sqrt(n))


@pytest.mark.parametrize("means", ["vector", "scalar"])
def test_labels_per_sample_correlate_coordinates_and_those_per_coordinate_do_not(means):
    """Cov(C) = 1 + Cov(μ_s) with a label per sample, and diagonal with labels per coordinate."""
    for label in ("sample", "coordinate"):
        latent = LatentMixture(components=3, bound=2.0, label=label, means=means, weights=WEIGHTS, seed=4)
        C, _ = drawn(latent, 2)
        centres, p = latent.centres(D), latent.probabilities
        between = (p[:, None] * (centres - p @ centres)).T @ (centres - p @ centres)
        between = between if label == "sample" else np.diag(np.diag(between))
        expected = np.eye(D) + between
        products = (C - p @ centres)[:, :, None] * (C - p @ centres)[:, None, :]
        z = (products.mean(0) - expected) / (products.std(0) / np.sqrt(COUNT))
        assert np.abs(z).max() < stats.norm.isf(ALARM / D**2)


@pytest.mark.parametrize("label", ["sample", "coordinate"])
def test_standardised_latents_have_mean_zero_and_variance_one(label):
    for standardise in ("population", "empirical"):
        latent = LatentMixture(components=3, bound=9.0, label=label, standardise=standardise, weights=WEIGHTS)
        weights, means, scales = latent.conditional(D)
        exact = 0.0 if standardise == "population" else 5 / np.sqrt(10_000)  # five standard errors of the measured ones
        mean = weights @ means
        np.testing.assert_allclose(mean, 0, atol=1e-14 + exact)
        np.testing.assert_allclose(weights @ (means - mean) ** 2 + scales**2, 1, atol=1e-13 + 2 * exact)
    plain = LatentMixture(components=3, bound=9.0, label=label, weights=WEIGHTS)
    p, centres = plain.probabilities, plain.centres(D)
    population = LatentMixture(components=3, bound=9.0, label=label, weights=WEIGHTS, standardise="population")
    np.testing.assert_allclose(population.shift(D), p @ centres)
    np.testing.assert_allclose(population.scale(D) ** 2, 1 + p @ centres**2 - (p @ centres) ** 2)


def test_measured_standardisation_is_that_of_its_samples():
    """10⁴ samples give mean and deviation to a hundredth, and not exactly those of the mixture."""
    one = LatentMixture(components=2, bound=5.0, standardise="empirical", seed=3)
    exact = LatentMixture(components=2, bound=5.0, standardise="population", seed=3)
    shift = (one.shift(400) - exact.shift(400)) / exact.scale(400)
    # with a label per sample the error of the mean is common: ± half the distance of the centres
    assert 0 < np.abs(shift).max() < 5 / np.sqrt(10_000)
    ratio = one.scale(400) / exact.scale(400) - 1
    assert 0 < np.abs(ratio).max() < 5 / np.sqrt(10_000)
    np.testing.assert_array_equal(one.shift(400), LatentMixture(bound=5.0, standardise="empirical", seed=3).shift(400))


def test_overall_standardisation_leaves_offsets():
    latent = LatentMixture(components=2, bound=3.0, standardise="overall")
    C = latent.sample(np.random.default_rng(0), 50_000, 50)[0]
    assert np.ptp(latent.shift(50)) == np.ptp(latent.scale(50)) == 0
    weights, means, scales = latent.conditional(50)
    mean = weights @ means
    assert mean.mean() == pytest.approx(0, abs=1e-14) and np.abs(mean).max() > 0.3
    assert np.mean(weights @ means**2 + scales**2) == pytest.approx(1)
    assert C.mean() == pytest.approx(0, abs=0.02) and C.var() == pytest.approx(1, abs=0.03)


def test_fields_see_what_conditional_says():
    """Fields of labels per coordinate are Gaussian at large D; those of a label per sample are Gaussian given it."""
    size = 2000
    B = np.random.default_rng(1).standard_normal(size)
    for label in ("sample", "coordinate"):
        latent = LatentMixture(components=2, bound=6.0, label=label)
        C, labels = latent.sample(np.random.default_rng(2), 4000, size)
        fields = C @ B / np.sqrt(size)
        weights, means, scales = latent.conditional(size)
        for s in range(weights.size):
            law = stats.norm(means[s] @ B / np.sqrt(size), np.sqrt(scales**2 @ B**2 / size))
            assert stats.kstest(fields[labels == s], law.cdf).pvalue > ALARM / 3


def test_seeds():
    latent = LatentMixture(components=3, bound=2.0)
    np.testing.assert_array_equal(latent.centres(40), LatentMixture(components=3, bound=2.0).centres(40))
    np.testing.assert_allclose(LatentMixture(components=3, bound=6.0).centres(40), 3 * latent.centres(40))
    assert not np.isclose(latent.centres(40), LatentMixture(components=3, bound=2.0, seed=1).centres(40)).any()
    for i in range(2):
        np.testing.assert_array_equal(drawn(latent)[i], drawn(latent)[i])
    assert np.ptp(LatentMixture(means="scalar").centres(40), axis=1).max() == 0
    assert np.abs(LatentMixture(bound=2.0).centres(10_000)).max() <= 2
    # uniform on [-2, 2)
    assert stats.kstest(LatentMixture(bound=2.0).centres(5000).ravel(), stats.uniform(-2, 4).cdf).pvalue > ALARM


def test_no_bound_is_a_standard_normal_latent():
    latent = LatentMixture(bound=0)
    _, means, scales = latent.conditional(4)
    assert not means.any() and np.all(scales == 1)
    C = latent.sample(np.random.default_rng(0), 10, 4)[0]
    np.testing.assert_array_equal(C, np.random.default_rng(0).standard_normal((10, 4)))


def test_what_is_kept_cannot_be_changed():
    latent = LatentMixture(standardise="population")
    for kept in (latent.centres(5), latent.shift(5), latent.scale(5), *latent.conditional(5), latent.probabilities):
        with pytest.raises(ValueError, match="read-only"):
            kept[0] = 3.0
    assert latent.centres(5) is latent.centres(5)


@pytest.mark.parametrize("latent", [*KINDS, LatentMixture(bound=0), LatentMixture(components=1, seed=7)], ids=repr)
def test_toml(latent):
    again = from_mapping(LatentMixture, parse(write(to_mapping(latent))), {})
    assert again == latent and hash(again) == hash(latent) and repr(again) == repr(latent)


def test_repr():
    assert (
        repr(LatentMixture(means=MEANS)) == "LatentMixture(3 components, means given for D = 6, one label per sample)"
    )
    latent = LatentMixture(components=1, means="scalar", label="coordinate", standardise="overall", seed=2)
    assert repr(latent) == (
        "LatentMixture(1 component, means in [-1, 1) common to all coordinates, one label per coordinate, "
        "standardised overall, seed 2)"
    )
    assert "weights 0.2 to 0.5" in repr(LatentMixture(means=MEANS, weights=WEIGHTS))
    assert LatentMixture().components == 2 and LatentMixture().bound == 1.0
    assert LatentMixture(means=MEANS).components == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"components": 0}, "components: expected at least 1, got 0"),
        ({"components": 2.5}, "components: expected a whole number"),
        ({"bound": -1}, "bound: expected a number of at least 0, got -1"),
        ({"bound": float("nan")}, "bound: expected a finite number"),
        ({"bound": 1e9}, "bound: expected centres within 1e"),
        ({"label": "samples"}, "unknown label 'samples'; did you mean 'sample'"),
        ({"label": 1}, "label: expected one of sample, coordinate, got 1"),
        ({"means": "vectors"}, "unknown means 'vectors'"),
        ({"means": [1.0, 2.0]}, r"means: expected shape \(any, any\), got \(2,\)"),
        ({"means": np.zeros((0, 3))}, "means: expected at least one centre"),
        ({"means": [[1.0, np.inf]]}, "means: has entries that are not finite"),
        ({"means": [[1e7]]}, "means: expected centres within"),
        ({"means": MEANS, "bound": 1.0}, "bound: 1.0 is of centres to be drawn, but means are given"),
        ({"means": MEANS, "components": 2}, "components: 2 do not go with 3 rows of means"),
        ({"weights": [0.5, 0.6]}, "weights: expected a sum of one"),
        ({"weights": [1.5, -0.5]}, "weights: expected numbers above zero"),
        ({"weights": [1.0]}, r"weights: expected shape \(2\), got \(1,\)"),
        ({"standardise": "sample"}, "unknown standardise 'sample'"),
        ({"standardise": True}, "standardise: expected one of population, empirical, overall, got True"),
        ({"seed": -1}, "seed: expected at least 0"),
    ],
)
def test_bad_input_is_refused(arguments, message):
    with pytest.raises(ov.InputError, match=message):
        LatentMixture(**arguments)


def test_bad_sizes_are_refused():
    with pytest.raises(ov.InputError, match="so D is 6, not 7"):
        LatentMixture(means=MEANS).centres(7)
    with pytest.raises(ov.InputError, match="D: expected at least 1"):
        LatentMixture().sample(np.random.default_rng(0), 3, 0)
    with pytest.raises(ov.InputError, match="count: expected at least 0"):
        LatentMixture().sample(np.random.default_rng(0), -1, 3)
    assert LatentMixture().sample(np.random.default_rng(0), 0, 3)[0].shape == (0, 3)
