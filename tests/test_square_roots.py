"""Square roots of positive matrices of any size, singular ones too: times their transposes they are the matrices."""

from __future__ import annotations

import numpy as np
import pytest

from overlaps.data.square_roots import cholesky, choleskys, coordinates, root


def gram(rank: int) -> np.ndarray:
    """A matrix (5, 5) of that rank."""
    rows = np.random.default_rng(rank).standard_normal((5, rank))
    return rows @ rows.T


@pytest.mark.parametrize("scale", [1e-24, 1.0, 1e24])
@pytest.mark.parametrize("rank", [1, 3, 5])
def test_roots_of_matrices_large_and_small(rank: int, scale: float) -> None:
    """A covariance of fields is as small as the weights are, and the share that is lost is a share of it."""
    C = scale * gram(rank)
    found = [cholesky(C), *choleskys(np.array([C, C / 2])), root(C), coordinates(C, 5, True), coordinates(C, 5, False)]
    for X, share in zip(found, [1.0, 1.0, 0.5, 1.0, 1.0, 1.0], strict=True):
        np.testing.assert_allclose(X @ X.T, share * C, rtol=0, atol=1e-12 * scale * np.trace(gram(rank)))
    for X in (*found[:3], found[4]):
        assert np.array_equal(X, np.tril(X))
    if rank == 5:
        np.testing.assert_allclose(found[0], np.linalg.cholesky(C), rtol=1e-10, atol=1e-12 * np.sqrt(scale))
    else:
        assert np.count_nonzero(np.diag(found[0])) == np.count_nonzero(np.diag(found[1])) == rank


def test_roots_of_nothing() -> None:
    assert not cholesky(np.zeros((3, 3))).any() and not choleskys(np.zeros((2, 3, 3))).any()
    mixed = choleskys(np.array([np.zeros((2, 2)), np.eye(2)]))  # one of the batch does not spoil another
    assert np.array_equal(mixed, [np.zeros((2, 2)), np.eye(2)])
