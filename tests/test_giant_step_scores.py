"""Scores of features against sums over pairs, SciPy and counts of all rankings."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from scipy.stats import combine_pvalues, friedmanchisquare, pearsonr

import overlaps as ov
from overlaps.giant_step import alignment, combined, correlation, elasticity, hits, kendall_w, recall
from overlaps.giant_step import scores as scored
from overlaps.giant_step.scores import recalls


def features(samples: int, width: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((samples, width)) + 0.4


def test_alignment_is_the_mean_over_pairs_of_different_samples():
    F = features(7, 3)
    pairs = [F[i] @ F[j] for i in range(7) for j in range(7) if i != j]
    assert alignment(F) == pytest.approx(np.mean(pairs), rel=1e-13)
    assert alignment(F[:2]) == pytest.approx(F[0] @ F[1])
    assert alignment(np.ones((5, 4))) == 4


def test_alignment_is_unbiased():
    # over all ordered pairs of three values of one sample each: the mean of pair scores is |mean|² exactly
    values = features(3, 2)
    found = np.mean([alignment(values[[i, j]]) for i in range(3) for j in range(3)])
    assert found == pytest.approx(values.mean(0) @ values.mean(0))


def test_elasticity_is_the_mean_squared_motion():
    F, before = features(6, 4), features(6, 4, 1)
    assert elasticity(F, before) == pytest.approx(
        np.mean([np.sum((a - b) ** 2) for a, b in zip(F, before, strict=True)])
    )
    assert elasticity(F, F) == 0 and elasticity(F[:1], F[:1] + 2) == pytest.approx(16)


def neighbours_of(F: np.ndarray, i: int, similarity: str) -> list[int]:
    """Others from near to far; Python's sort keeps the first of equals ahead."""

    def near(j: int) -> float:
        inner = float(F[i] @ F[j])
        return inner / float(np.linalg.norm(F[i]) * np.linalg.norm(F[j])) if similarity == "cosine" else inner

    return sorted((j for j in range(len(F)) if j != i), key=lambda j: -near(j))


@pytest.mark.parametrize("k", [1, 2, 4])
@pytest.mark.parametrize("similarity", ["cosine", "inner"])
def test_hits_are_those_of_a_search_among_all_others(similarity, k):
    F, labels = features(24, 3), np.array(list("abc") * 8)
    found = hits(F, labels, k, similarity)
    wanted = [any(labels[j] == labels[i] for j in neighbours_of(F, i, similarity)[:k]) for i in range(24)]
    np.testing.assert_array_equal(found, wanted)
    assert recall(F, labels, k, similarity) == np.mean(wanted) and 0 < np.mean(wanted) < 1


def test_the_first_of_equally_near_samples_counts():
    F, labels = np.array([[1.0, 0], [2, 0], [4, 0], [0, 1], [0, 1]]), [0, 1, 0, 1, 1]
    np.testing.assert_array_equal(hits(F, labels), [False, False, True, True, True])
    np.testing.assert_array_equal(hits(F, labels, 2), [True, False, True, True, True])
    np.testing.assert_array_equal(hits(F, labels, similarity="inner"), [True, False, False, True, True])


def test_both_recalls_at_once_are_the_two():
    lengths = np.exp(np.random.default_rng(1).standard_normal((60, 1)))
    F, labels = features(60, 3) * lengths, np.arange(60) % 4
    both = recalls(F, labels)
    assert both == (recall(F, labels), recall(F, labels, similarity="inner")) and both[0] != both[1]


def test_recall_of_separate_and_of_opposite_classes():
    F = np.concatenate([np.ones((3, 2)), -np.ones((3, 2))]) + 0.01 * features(6, 2)
    assert recall(F, [1, 1, 1, 2, 2, 2]) == 1
    assert recall(F, [1, 2, 3, 1, 2, 3]) == 0


def test_the_error_of_a_recall_is_the_spread_of_its_hits():
    """Seven directions, of which the first is next to the second, and the others in pairs, some of one label."""
    angles = np.deg2rad([0, 3, 4, 40, 41, 80, 81])
    F = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    cases = {
        0: [1, 0, 1, 0, 1, 0, 1],
        1: [0, 0, 1, 0, 1, 0, 1],
        4: [1, 0, 1, 0, 0, 1, 1],
        6: [1, 0, 0, 0, 0, 1, 1],
        7: [0] * 5 + [1] * 2,
    }
    found = {count: scored.recall_error(F, labels) for count, labels in cases.items()}
    for count, labels in cases.items():
        assert hits(F, labels).sum() == count
        if count in (1, 4, 6):
            assert found[count] == pytest.approx(hits(F, labels).std() / np.sqrt(7), rel=1e-12)
    # none might as well have been one, and all might have been all but one
    assert found[0] == found[1] and found[7] == found[6]


@pytest.mark.parametrize("shape", [(2, 3), (3, 5), (4, 6), (7, 12)])
def test_kendalls_w_is_friedmans_statistic(shape):
    rng = np.random.default_rng(0)
    m, n = shape
    x = rng.standard_normal(shape)
    tied = rng.integers(0, 3, shape).astype(float)
    for values in (x, tied):
        found, known = kendall_w(values), friedmanchisquare(*values.T)
        np.testing.assert_allclose(found.W, known.statistic / (m * (n - 1)), rtol=1e-12)
        if values is tied or m > 3 or n > 6:
            assert found.p_value == pytest.approx(known.pvalue, rel=1e-10)


def test_known_values_of_kendalls_w():
    assert kendall_w([[1, 2, 3, 4, 5]] * 3).W == 1
    found = [
        kendall_w([[1, 2, 3, 4, 5], [2, 1, 4, 3, 5], [5, 4, 3, 2, 1]]).W,
        kendall_w([[1, 2, 2, 3]] * 4).W,  # ties do not lower it
        kendall_w([[1, 1, 1], [1, 2, 3]]).W,  # a ranking that ranks nothing
    ]
    np.testing.assert_allclose(found, [1 / 9, 1, 1 / 2], rtol=1e-14)
    assert kendall_w([[1, 2, 3], [3, 2, 1]]) == (0.0, 1.0)
    assert kendall_w([[1, 2, 3, 4, 5]] * 3).p_value == pytest.approx(1 / 120**2)
    assert kendall_w([[10, 20], [0.1, 0.2]]).p_value == 0.5


@pytest.mark.parametrize(("m", "n"), [(2, 4), (3, 3)])
def test_the_p_value_of_few_items_counts_all_rankings(m, n):
    orders = [np.array(order, float) for order in permutations(range(n))]
    every = [()]
    for _ in range(m):
        every = [(*rows, order) for rows in every for order in orders]
    W = np.array([kendall_w(rows).W for rows in every])
    for rows in every[:: len(every) // 7]:
        found = kendall_w(rows)
        assert found.p_value == pytest.approx(np.mean(W >= found.W - 1e-9))


def test_correlation_is_pearsons():
    rng = np.random.default_rng(1)
    x = rng.standard_normal(20)
    y = 0.5 * x + rng.standard_normal(20)
    known = pearsonr(x, y)
    np.testing.assert_allclose(correlation(x, y), (known.statistic, known.pvalue), rtol=1e-10)
    np.testing.assert_allclose(correlation(1e300 * x, 1e-300 * y), correlation(x, y), rtol=1e-10)
    assert correlation([1, 2, 3], [3, 2, 1]).r == pytest.approx(-1)


def test_combined_p_values_are_fishers():
    for p in ([0.03, 0.2, 0.9], [0.5], [1e-12, 0.4], [1.0, 1.0]):
        assert combined(p) == pytest.approx(combine_pvalues(p, method="fisher").pvalue, rel=1e-10)
    assert combined([0.0, 0.5]) == 0


ONE = features(4, 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: alignment(ONE[:1]), "features: the score needs at least 2 samples of a class, got 1"),
        (lambda: alignment(ONE[0]), "features: expected shape"),
        (lambda: alignment([[1, np.nan], [1, 2]]), "features: has entries that are not finite"),
        (lambda: alignment(np.full((2, 2), 1e200)), "features: expected numbers of at most"),
        (lambda: elasticity(ONE, ONE[:3]), "before: expected shape"),
        (lambda: elasticity(ONE, 1e200 * ONE), "before: expected numbers of at most"),
        (lambda: elasticity(ONE[:0], ONE[:0]), "features: the score needs at least 1"),
        (lambda: recall(ONE, [0, 0, 0, 1]), "labels: class 1 has one sample"),
        (lambda: recall(ONE, [0, 0, 1]), "labels: expected one for each of 4 samples"),
        (lambda: recall(ONE, [[0], 0, 1, 1]), "labels: expected numbers or names"),
        (lambda: recall(ONE, [None, None, 1, 1]), "labels: expected numbers or names"),
        (lambda: recall(ONE * [[0], [1], [1], [1]], [0, 0, 1, 1]), "features: sample 0 has length zero"),
        (lambda: recall(ONE, [0, 0, 1, 1], 4), "neighbours: expected at most 3"),
        (lambda: recall(ONE, [0, 0, 1, 1], similarity="cosin"), "did you mean 'cosine'"),
        (lambda: recall(ONE, [0, 0, 1, 1], similarity=2), "unknown similarity '2'"),
        (lambda: kendall_w([[1, 2, 3]]), "values: expected at least 2 rankings"),
        (lambda: kendall_w([[1], [2]]), "values: expected at least 2 rankings of at least 2 items"),
        (lambda: kendall_w([[1, 1], [2, 2]]), "values: every ranking gives all items the same"),
        (lambda: correlation([1, 2], [1, 2]), "x: a correlation needs at least 3"),
        (lambda: correlation([1, 2, 3], [1, 1, 1]), "y: expected values that differ"),
        (lambda: correlation([1, 1, 1 + 3e-16], [1, 2, 3]), "x: expected values that differ"),
        (lambda: correlation([0, 0, 0], [1, 2, 3]), "x: expected values that differ"),
        (lambda: combined([]), "p_values: expected probabilities"),
        (lambda: combined([0.5, 1.5]), "p_values: expected probabilities"),
    ],
)
def test_refusals_name_the_field(call, message):
    with pytest.raises(ov.InputError, match=message):
        call()


def test_zero_features_have_an_inner_product():
    assert 0 <= recall(np.zeros((4, 2)), [0, 0, 1, 1], similarity="inner") <= 1


ARRAYS = arrays(float, array_shapes(min_dims=2, max_dims=2, max_side=6), elements=st.floats(allow_nan=False))


@settings(max_examples=80, deadline=None, derandomize=True, database=None)
@given(ARRAYS, st.lists(st.integers(0, 2), min_size=1, max_size=6), st.integers(0, 4))
def test_scores_of_anything_are_finite_or_refused(F, labels, k):
    for score in (
        lambda: alignment(F),
        lambda: elasticity(F, F[::-1]),
        lambda: recall(F, labels, k),
        lambda: recall(F, labels, k, "inner"),
        lambda: kendall_w(F),
        lambda: correlation(F[0], F[-1]),
        lambda: combined(F[0]),
    ):
        try:
            found = score()
        except ov.InputError:
            continue
        assert np.all(np.isfinite(found))


def test_scores_state_their_standard_errors() -> None:
    """Against the scatter of the scores over 400 classes of 60 samples; of 400 the spread is known to 3.5 %."""
    rng = np.random.default_rng(0)
    mean = rng.standard_normal(8)
    labels = np.repeat([0, 1], 30)
    scores, errors = [], []
    for _ in range(400):
        before = mean + rng.standard_normal((60, 8))
        after = before + 0.5 * rng.standard_normal((60, 8)) * rng.random((60, 1))
        apart = after + 0.7 * labels[:, None]
        scores.append([scored.alignment(after), scored.elasticity(after, before), scored.recall(apart, labels)])
        errors.append(
            [scored.alignment_error(after), scored.elasticity_error(after, before), scored.recall_error(apart, labels)]
        )
    ratio = np.sqrt(np.mean(np.square(errors), axis=0)) / np.std(scores, axis=0, ddof=1)
    assert np.all(np.abs(ratio[:2] - 1) < 0.15)  # four standard errors
    assert 0.6 < ratio[2] < 1.4  # samples share their neighbours
    perfect = scored.recall_error(np.repeat(np.eye(2), 5, axis=0) + 0.01, np.repeat([0, 1], 5))
    assert 0 < perfect < 0.2


def test_the_jackknife_leaves_out_one_sample_after_another() -> None:
    F = np.random.default_rng(1).standard_normal((7, 3)) + 1
    without = np.array([scored.alignment(np.delete(F, i, axis=0)) for i in range(7)])
    assert scored.alignment_error(F) == pytest.approx(np.sqrt(6 * without.var()))
