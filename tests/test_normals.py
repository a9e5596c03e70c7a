"""Normal numbers: the published values of their bits, their functions against the library's, and tests of randomness.

Tests of randomness have fixed seeds; each rejects a perfect generator with probability 1e-4.
"""

import math

import numpy as np
import pytest
from scipy import stats

from overlaps.compiled.normals import (
    BITS,
    GAMMA,
    draw_key,
    fill_normals,
    minus_log,
    mix,
    normals_from,
    sine_cosine,
)

LEVEL = 1e-4
COUNT = 2_000_000


def many(seed: int, length: int = COUNT, vectors: int = 1) -> np.ndarray:
    rng, z = np.random.Generator(np.random.SFC64(seed)), np.empty((vectors, length))
    for each in z:
        fill_normals(each, rng)
    return z


def test_bits_are_those_that_are_published() -> None:
    # SplitMix64 of seed 1234567, as its reference implementation prints them
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    assert [int(mix(BITS((1234567 + i * int(GAMMA)) % 2**64))) for i in range(1, 5)] == published


def test_logarithm_sine_and_cosine_are_those_of_the_library() -> None:
    bits = np.random.default_rng(0).integers(0, 2**64, 20_000, dtype=np.uint64, endpoint=False)
    extremes = np.array([0, 1, 2**11, 2**63 - 1, 2**63, 2**62, 2**64 - 1], dtype=np.uint64)
    for b in np.concatenate([bits, extremes]):
        n = int(b) >> 11
        exact = -math.log1p(-(2**53 - n - 0.5) / 2**53) if n > 2**52 else -math.log((n + 0.5) / 2**53)
        assert minus_log(b) == pytest.approx(exact, rel=5e-16, abs=2e-16)
        angle = 2 * math.pi * ((int(b) >> 62) / 4 + ((int(b) >> 10) % 2**52 + 0.5) / 2**54 - 1 / 8)
        assert sine_cosine(b) == pytest.approx((math.sin(angle), math.cos(angle)), abs=1e-15)


def test_a_part_of_a_vector_is_that_part() -> None:
    key = draw_key(np.random.default_rng(1))
    whole, part, odd = np.empty(2049), np.empty(1024), np.empty(5)
    normals_from(0, key, whole)
    normals_from(1024, key, part)
    normals_from(2044, key, odd)
    assert np.array_equal(part, whole[1024:2048]) and np.array_equal(odd, whole[2044:])


def test_no_number_is_infinite_and_keys_differ() -> None:
    assert minus_log(BITS(2**64 - 1)) == 0 <= minus_log(BITS(2**64 - 2**11 - 1)) and 2 * minus_log(BITS(0)) < 8.7**2
    rng = np.random.default_rng(2)
    keys = {draw_key(rng) for _ in range(1000)}
    assert len(keys) == 1000


@pytest.mark.parametrize("power", range(1, 9))
def test_moments(power: int) -> None:
    z = many(3)[0]
    mean = stats.norm.moment(power)
    spread = math.sqrt((stats.norm.moment(2 * power) - mean**2) / z.size)
    assert 2 * stats.norm.sf(abs((z**power).mean() - mean) / spread) > LEVEL


@pytest.mark.parametrize("part", [slice(None, None, 2), slice(1, None, 2), slice(None)])
def test_distribution(part: slice) -> None:
    assert stats.kstest(many(4)[0][part], "norm").pvalue > LEVEL


def test_tails() -> None:
    z = many(5, 10_000_000)[0]
    for bound in (3.0, 4.0, 4.5, 5.0):
        for tail in (z > bound, z < -bound):
            assert stats.binomtest(int(tail.sum()), z.size, stats.norm.sf(bound)).pvalue > LEVEL


@pytest.mark.parametrize("lag", [1, 2, 3, 8, 16, 64, 1024])
@pytest.mark.parametrize("power", [1, 2])
def test_numbers_of_a_vector_do_not_know_each_other(lag: int, power: int) -> None:
    z = many(6)[0]
    z = z if power == 1 else (z**2 - 1) / math.sqrt(2)
    correlation = (z[lag:] * z[:-lag]).sum() / math.sqrt(z.size - lag)
    assert 2 * stats.norm.sf(abs(correlation)) > LEVEL


def test_pairs_fill_the_plane_evenly() -> None:
    """Neighbours, of one pair and of two, in a table of 32 × 32 equally likely cells."""
    z = many(7)[0]
    for first in (0, 1):
        x, y = (np.minimum((stats.norm.cdf(z[at::2]) * 32).astype(int), 31) for at in (first, first + 1))
        table = np.bincount(32 * x[: y.size] + y, minlength=1024)
        assert stats.chisquare(table).pvalue > LEVEL


def test_vectors_of_successive_keys_do_not_know_each_other() -> None:
    """Covariances of 200 vectors and of 200 places in them, as sums of squares of what should be nought."""
    z = many(8, 1000, 20_000)
    for table in (z[:200], np.ascontiguousarray(z[:, :200].T)):
        products = table @ table.T / math.sqrt(table.shape[1])
        off = products[np.triu_indices(200, 1)]
        assert 2 * min(stats.norm.sf(w := (np.mean(off**2) - 1) * math.sqrt(off.size / 2)), stats.norm.cdf(w)) > LEVEL
    assert stats.kstest(np.sum(z**2, axis=1), stats.chi2(1000).cdf).pvalue > LEVEL
    assert stats.kstest(z.mean(axis=0) * math.sqrt(len(z)), "norm").pvalue > LEVEL


def test_a_worse_generator_is_noticed() -> None:
    """Angles made of the bits of the radius, and a radius of ten bits, fail the tests above."""
    rng = np.random.default_rng(9)
    u = rng.random(COUNT // 2)
    same = (np.sqrt(-2 * np.log(u))[:, None] * np.stack([np.sin(2 * np.pi * u), np.cos(2 * np.pi * u)], 1)).ravel()
    x, y = (np.minimum((stats.norm.cdf(same[at::2]) * 32).astype(int), 31) for at in (0, 1))
    assert stats.chisquare(np.bincount(32 * x + y, minlength=1024)).pvalue < LEVEL
    coarse = np.sqrt(-2 * np.log((rng.integers(0, 1024, COUNT) + 0.5) / 1024)) * np.sin(2 * np.pi * rng.random(COUNT))
    assert stats.binomtest(int((coarse > 4.0).sum()), COUNT, stats.norm.sf(4.0)).pvalue < LEVEL
