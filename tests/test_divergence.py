"""KL divergences of latents: closed forms, direct integrals and direct Monte Carlo, bounds, and reference numbers.

Statistical tests have fixed seeds and a false-alarm rate of 10⁻⁴ each.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.special import logsumexp

import overlaps as ov
from overlaps.data.divergence import line_information, sampled_information
from overlaps.data.latent import LatentMixture

SIGMAS = stats.norm.isf(1e-4 / 2)
WEIGHTS = (0.2, 0.3, 0.5)
KINDS = [
    LatentMixture(bound=1.0),
    LatentMixture(bound=9.0),
    LatentMixture(components=3, bound=3.0, weights=WEIGHTS),
    LatentMixture(components=8, bound=0.3),
    LatentMixture(components=3, bound=2.0, means="scalar", weights=WEIGHTS),
    LatentMixture(components=3, bound=9.0, label="coordinate"),
    LatentMixture(components=3, bound=4.0, standardise="population"),
    LatentMixture(components=2, bound=4.0, standardise="empirical", label="coordinate", weights=(0.1, 0.9)),
    LatentMixture(components=4, bound=2.0, standardise="overall"),
]


def log_ratio(latent: LatentMixture, C: np.ndarray) -> np.ndarray:
    """ln p(C) − ln φ(C) of vectors C (count, D) with one label each."""
    D = C.shape[1]
    scale = latent.scale(D)
    centres = (latent.centres(D) - latent.shift(D)) / scale
    parts = -0.5 * (((C[:, None, :] - centres) * scale) ** 2).sum(2) + np.log(scale).sum()
    return logsumexp(parts, axis=1, b=latent.probabilities) + 0.5 * (C**2).sum(1)


@pytest.mark.parametrize("latent", KINDS, ids=repr)
def test_coordinates_are_the_integral_of_the_definition(latent):
    """∫ p ln(p/φ) of each coordinate, by adaptive quadrature."""
    D = 5
    found = latent.divergence(D, samples=100)
    centres = (latent.centres(D) - latent.shift(D)) / latent.scale(D)
    each = []
    for r in range(D):
        sd, c = 1 / latent.scale(D)[r], centres[:, r]

        def integrand(x, r=r, sd=sd, c=c):
            log_p = logsumexp(-0.5 * ((x - c) / sd) ** 2, b=latent.probabilities) - np.log(sd)
            return np.exp(log_p - 0.5 * np.log(2 * np.pi)) * (log_p + 0.5 * x**2)

        cuts = np.sort(np.concatenate([c - 12 * sd, c, c + 12 * sd]))
        each.append(sum(quad(integrand, a, b, epsabs=1e-13, limit=200)[0] for a, b in pairwise(cuts)))
    assert found.coordinate == pytest.approx(np.mean(each), abs=1e-10 + found.coordinate_error)
    assert found.coordinate_error < 1e-12 * (1 + found.upper)


@pytest.mark.parametrize("latent", [k for k in KINDS if k.label == "sample"], ids=repr)
def test_the_joint_one_is_the_mean_of_the_definition(latent):
    """E ln(p/φ) over samples of the vector itself."""
    D, count = 7, 40_000
    found = latent.divergence(D)
    C, _ = latent.sample(np.random.default_rng(5), count, D)
    ratios = log_ratio(latent, C) / D
    error = np.hypot(ratios.std() / np.sqrt(count), found.joint_error)
    assert abs(ratios.mean() - found.joint) < SIGMAS * error


@pytest.mark.parametrize("latent", KINDS, ids=repr)
@pytest.mark.parametrize("D", [1, 2, 30, 500])
def test_bounds(latent, D):
    """Also Σ_r KL_r ≤ KL of the same centres, which reference numbers of different subsets of coordinates violate."""
    found = latent.divergence(D)
    slack = 1e-12 * (1 + found.upper)
    assert 0 <= found.lower <= found.upper
    assert found.lower - slack <= found.joint <= found.upper + slack
    assert found.coordinate <= found.joint + SIGMAS * found.joint_error + slack
    if latent.label == "coordinate":
        assert found.coordinate == found.joint and found.joint_error == found.coordinate_error
    if D == 1:
        assert found.coordinate == pytest.approx(found.joint, abs=SIGMAS * found.joint_error + slack)


def test_one_component_is_closed():
    """KL of N(μ, 1) is μ²/2; standardised by other centres' scale, that of N(m, σ²)."""
    found = LatentMixture(means=[[0.3, -2.0, 1.0]]).divergence(3)
    exact = (0.09 + 4 + 1) / 6
    for value in (found.coordinate, found.joint, found.lower, found.upper):
        assert value == pytest.approx(exact, abs=1e-14)
    found = LatentMixture(means=[[0.3, -2.0, 1.0]], standardise="overall").divergence(3)
    mean = -0.7 / 3
    s2 = 1 + np.var([0.3, -2.0, 1.0])
    exact = np.mean(((np.array([0.3, -2.0, 1.0]) - mean) ** 2 / s2 + 1 / s2 - 1 + np.log(s2)) / 2)
    assert found.joint == pytest.approx(exact, abs=1e-14)


@pytest.mark.parametrize("standardise", [None, "population", "overall"])
def test_no_bound_has_no_divergence(standardise):
    found = LatentMixture(components=3, bound=0.0, standardise=standardise).divergence(50)
    assert found.coordinate == found.joint == found.lower == found.upper == 0


def test_equal_components_are_one():
    found = LatentMixture(means=[[1.0, 2.0]] * 4).divergence(2)
    assert found.joint == pytest.approx(1.25, abs=1e-13) and found.coordinate == pytest.approx(1.25, abs=1e-13)


def test_far_components_tell_their_label():
    """I → ln m as the distance grows; also past the distance at which gaps are closed up."""
    p = np.full(3, 1 / 3)
    told, error = line_information(p, np.array([[0.0, 15.0, 30.0], [0.0, 40.0, 1e6], [-1e6, 0.0, 1e6]]))
    np.testing.assert_allclose(told, np.log(3), atol=1e-12)
    assert error.max() < 1e-12
    told, _ = line_information(p, np.array([[0.0, 1.0, 100.0], [0.0, 1.0, 1000.0]]))
    near, _ = line_information(np.full(2, 0.5), np.array([[0.0, 1.0]]))
    np.testing.assert_allclose(told, np.log(3) - 2 / 3 * np.log(2) + 2 / 3 * near[0], atol=1e-12)  # chain rule


def test_samples_and_integral_agree_on_a_line():
    """The information of centres on a line, by both ways; rotating the line into the plane changes nothing."""
    p = np.array(WEIGHTS)
    for spread in (0.3, 1.5, 4.0):
        centres = spread * np.array([-1.0, 0.2, 1.1])
        (exact,), _ = line_information(p, centres[None])
        for span in (centres[:, None], centres[:, None] * np.array([0.6, 0.8])):
            told, error = sampled_information(p, span, 20_000, seed=1)
            assert abs(told - exact) < SIGMAS * error < 0.1


def test_error_bars_of_samples_are_true():
    """Over repetitions the deviation from the exact value has the size that is stated, within the 10⁻⁴ interval."""
    p, centres = np.full(2, 0.5), np.array([[-1.0], [1.0]])
    (exact,), _ = line_information(p, centres.T)
    told = np.array([sampled_information(p, centres, 500, seed) for seed in range(200)])
    chi2 = np.sum(((told[:, 0] - exact) / told[:, 1]) ** 2)
    assert stats.chi2.ppf(5e-5, 200) < chi2 < stats.chi2.isf(5e-5, 200)


# components, bound, standardise, mean over coordinates, joint per dimension (D = 500); the latter over all coordinates
REFERENCE = [
    (2, 1.0, None, 0.089, 0.1665),
    (2, 3.0, None, 1.23, 1.528),
    (2, 9.0, None, 14.0, 13.31),
    (8, 1.0, None, 0.0455, 0.1653),
    (2, 9.0, "population", 0.45, 0.99),
]


@pytest.mark.parametrize(("components", "bound", "standardise", "coordinate", "joint"), REFERENCE)
def test_reference_numbers(components, bound, standardise, coordinate, joint):
    """Values of one draw of centres, against the mean and spread over fifty draws of our own.

    The reference says of one number per coordinate that it is of 100 coordinates only; all are taken as such, since the
    one of eight components, 0.0455, would be 3.8 standard errors off if it were of 500.
    """
    draws = [
        LatentMixture(components=components, bound=bound, standardise=standardise, seed=seed).divergence(
            500, samples=100
        )
        for seed in range(50)
    ]
    for values, given, share in (
        (np.array([d.coordinate for d in draws]), coordinate, 5),
        ([d.joint for d in draws], joint, 1),
    ):
        spread = np.std(values, ddof=1) * np.sqrt(share + 1 / len(draws))
        assert abs(given - np.mean(values)) < SIGMAS * spread


def test_joint_per_dimension_does_not_fall_with_the_number_of_components_but_coordinates_do():
    """KL/D ≈ α²/6 whatever m, while more overlapping components make each coordinate more Gaussian."""
    two, many = (LatentMixture(components=m, bound=3.0).divergence(4000, samples=1000) for m in (2, 16))
    # standard error of Σ_s p_s μ_sr²/2 over 4000 coordinates, m independent ones each
    for found, m in ((two, 2), (many, 16)):
        error = 9 / 2 * np.sqrt(4 / 45) / np.sqrt(4000 * m)
        assert abs(found.joint - 1.5) < SIGMAS * error + np.log(16) / 4000
    assert many.coordinate < 0.8 * two.coordinate


def test_scale_matters_to_the_divergence_but_not_to_what_is_told():
    plain, standard = (LatentMixture(bound=4.0, standardise=s).divergence(100) for s in (None, "population"))
    assert plain.upper - plain.coordinate == pytest.approx(standard.upper - standard.coordinate, abs=1e-12)
    assert standard.joint < plain.joint


def test_repr_and_refusals():
    found = LatentMixture(components=3).divergence(50, samples=500)
    assert " ± " in repr(found) and "per coordinate" in repr(found) and repr(found).endswith("D = 50)")
    for arguments, message in (
        ({"D": 0}, "D: expected at least 1"),
        ({"D": 5, "samples": 1}, "samples: expected at least 2"),
        ({"D": 5, "seed": -1}, "seed: expected at least 0"),
    ):
        with pytest.raises(ov.InputError, match=message):
            LatentMixture().divergence(**arguments)
    assert LatentMixture(components=3).divergence(50, seed=3) == LatentMixture(components=3).divergence(50, seed=3)
