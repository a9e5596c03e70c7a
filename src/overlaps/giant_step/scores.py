"""Scores of features, of any model, given as arrays with one sample per row.

    alignment    E[F(x)·F(x')]                   x, x' independent samples of one class
    elasticity   E|F(x) − F_before(x)|²          how far training has moved the features of a class
    recall@k     share of samples with one of their own class among the k nearest others
    Kendall's W  12 Σ_i (R_i − R̄)² / (m²(n³ − n) − m Σ_ties (t³ − t))

where R_i is the sum of the ranks that m rankings give to item i of n, and ties of t items share their mean rank
(M. G. Kendall and B. Babington Smith, Ann. Math. Stat. 10, 275 (1939)). Alignment of x with itself is left out: |F(x)|²
is another quantity, larger by far.

>>> import numpy as np
>>> from overlaps.giant_step.scores import alignment, kendall_w
>>> alignment(np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 2.0]]))  # (1 + 0 + 2)/3
1.0
>>> kendall_w([[1, 2, 3, 4, 5], [2, 1, 4, 3, 5], [5, 4, 3, 2, 1]]).W
0.1111111111111111
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..data.power_law import jackknife
from ..interface.checks import array, checked, has_masked, whole
from ..interface.errors import InputError, shown, unknown

Array = NDArray[np.float64]
SIMILARITIES = ("cosine", "inner")
CONSTANT = 1e-12  # relative difference of values that may be rounding
LARGEST = 1e145  # feature of which a million squares can be summed
TABLE = 6  # items up to which all rankings are counted: the chi-square limit is far off for so few


class Concordance(NamedTuple):
    """Kendall's W, from 0 to 1, and the probability of one at least as large if all rankings are random."""

    W: float
    p_value: float


class Correlation(NamedTuple):
    """Pearson's correlation and its two-sided p-value."""

    r: float
    p_value: float


@checked
def alignment(features: ArrayLike) -> float:
    """Mean inner product of the features of two different samples of a class, unbiased.

    Parameters
    ----------
    features: (samples, width), at least two samples.
    """
    return raw_alignment(_features("features", features, least=2))


def raw_alignment(F: Array) -> float:
    """`alignment` without checks and copies."""
    total, flat = F.sum(0), F.ravel()
    return float((total @ total - flat @ flat) / (len(F) * (len(F) - 1)))


@checked
def alignment_error(features: ArrayLike) -> float:
    """Standard error of `alignment` over samples of the class, by the jackknife.

    Parameters
    ----------
    features: (samples, width), at least three samples.
    """
    F = _features("features", features, least=3)
    n, total, squares = len(F), F.sum(0), np.einsum("ij,ij->i", F, F)
    # |Σ − f_i|² less the squares that are left
    without = (total @ total - 2 * F @ total + squares) - (squares.sum() - squares)
    return float(jackknife(without / ((n - 1) * (n - 2))))


@checked
def elasticity(features: ArrayLike, before: ArrayLike) -> float:
    """Mean squared distance between features after and before training.

    Parameters
    ----------
    features, before: (samples, width), the same samples in the same order.
    """
    F = _features("features", features)
    return raw_elasticity(F, _features("before", array("before", before, F.shape)))


@checked
def elasticity_error(features: ArrayLike, before: ArrayLike) -> float:
    """Standard error of `elasticity` over samples of the class, at least two."""
    F = _features("features", features, least=2)
    moved = F - _features("before", array("before", before, F.shape))
    return _standard_error(np.einsum("ij,ij->i", moved, moved))


def _standard_error(values: Array) -> float:
    """Of the mean of independent values, (samples,)."""
    return float(values.std(ddof=1) / np.sqrt(values.size))


def raw_elasticity(F: Array, before: Array) -> float:
    """`elasticity` without checks and copies."""
    moved = (F - before).ravel()
    return float(moved @ moved / len(F))


def hits(features: ArrayLike, labels: ArrayLike, neighbours: int = 1, similarity: str = "cosine") -> NDArray[np.bool_]:
    """For each sample whether one of its nearest others is of its class, (samples,).

    Parameters
    ----------
    features: (samples, width); labels: (samples,).
    neighbours: how many of the nearest others count.
    similarity: ``"cosine"`` or ``"inner"``, the larger the nearer; of equal ones the first is nearer.
    """
    F = _features("features", features, least=2)
    if not isinstance(similarity, str) or similarity not in SIMILARITIES:
        raise unknown("similarity", similarity if isinstance(similarity, str) else shown(similarity), SIMILARITIES)
    kind = _kinds(labels, len(F))
    k = whole("neighbours", neighbours, least=1, most=len(F) - 1)
    near = F @ F.T
    if similarity == "cosine":
        near /= _lengths(near)
    return _found(near, kind, k)


def recalls(features: Array, labels: ArrayLike) -> tuple[float, float]:
    """Recall@1 by cosine and by inner product, for one product of the features with themselves.

    A sample whose features are all zero, as of narrow ReLU layers, is nobody's neighbour by cosine, and finds none.
    """
    kind, near = _kinds(labels, len(features)), features @ features.T
    lengths = np.sqrt(np.maximum(np.diag(near), 0))
    alive = lengths > 0
    cosines = np.where(alive, near / np.where(alive, lengths, 1), -np.inf)
    return float((_found(cosines, kind, 1) & alive).mean()), float(_found(near, kind, 1).mean())


def _kinds(labels: ArrayLike, samples: int) -> NDArray[np.int64]:
    """Classes numbered from zero, each with at least two samples."""
    if has_masked(labels):
        raise InputError("labels: has masked entries; leave out such samples")
    try:
        names = np.asarray(labels)
        kinds, kind, counts = np.unique(names, return_inverse=True, return_counts=True)
    except MemoryError:
        raise
    except Exception:  # whatever objects of others raise when they are made an array and sorted
        raise InputError(f"labels: expected numbers or names that can be sorted, got {shown(labels)}") from None
    if names.shape != (samples,):
        raise InputError(f"labels: expected one for each of {samples} samples, got shape {names.shape}")
    if counts.min() < 2:
        alone = kinds.tolist()[int(np.argmin(counts))]
        raise InputError(
            f"labels: class {alone!r} has one sample, which has no other of its class to find; give it more, or "
            "leave it out"
        )
    return kind


def _lengths(gram: Array) -> Array:
    """|F_j| by column of a matrix of inner products; the length of the row is the same for all its neighbours."""
    lengths = np.sqrt(np.maximum(np.diag(gram), 0))
    if not np.all(lengths > 0):
        raise InputError(
            f"features: sample {int(np.argmin(lengths))} has length zero, so that no cosine exists; use "
            "similarity='inner', or leave it out"
        )
    return lengths


def _found(near: Array, kind: NDArray[np.int64], k: int) -> NDArray[np.bool_]:
    np.fill_diagonal(near, -np.inf)
    if k == 1:
        return kind[np.argmax(near, axis=1)] == kind
    order = np.argsort(-near, axis=1, kind="stable")[:, :k]
    return (kind[order] == kind[:, None]).any(axis=1)


def recall(features: ArrayLike, labels: ArrayLike, neighbours: int = 1, similarity: str = "cosine") -> float:
    """Recall@k: the share of samples with one of their own class among the nearest others (see `hits`)."""
    return float(hits(features, labels, neighbours, similarity).mean())


def recall_error(features: ArrayLike, labels: ArrayLike, neighbours: int = 1, similarity: str = "cosine") -> float:
    """Standard error of `recall` over samples, taken as independent; of no hits or no misses, that of one among them.

    All samples find their neighbours among the same others; the correlation that comes of it is not counted.
    """
    found = hits(features, labels, neighbours, similarity)
    n, count = found.size, int(found.sum())
    share = min(max(count, 1), n - 1) / n
    return float(np.sqrt(share * (1 - share) / n))


@checked
def kendall_w(values: ArrayLike) -> Concordance:
    """Kendall's W of several rankings of the same items; equal values share their mean rank.

    The p-value of two or three rankings of up to 6 items without ties is exact (every ranking counted), others are
    those of the chi-square limit.

    Parameters
    ----------
    values: (rankings, items), what each ranks the items by, at least two of each.
    """
    from scipy.stats import chi2, rankdata

    x = array("values", values, (None, None))
    m, n = x.shape
    if m < 2 or n < 2:
        raise InputError(f"values: expected at least 2 rankings of at least 2 items, got shape {x.shape}")
    ranks = rankdata(x, axis=1)
    tied = sum(float((t**3 - t).sum()) for t in (np.unique(row, return_counts=True)[1] for row in ranks))
    scale = m**2 * (n**3 - n) - m * tied
    if scale == 0:
        raise InputError("values: every ranking gives all items the same value, so nothing is ranked")
    W = 12 * float(((ranks.sum(0) - m * (n + 1) / 2) ** 2).sum()) / scale
    if tied == 0 and n <= TABLE and m <= 3:
        return Concordance(W, _exact(W, m, n))
    return Concordance(W, float(chi2.sf(m * (n - 1) * W, n - 1)))


def _exact(W: float, m: int, n: int) -> float:
    """P(W' ≥ W) for m ≤ 3 random rankings of n items; one of them may be taken as 1 … n."""
    from itertools import permutations

    ranks = np.array(list(permutations(range(1, n + 1))), float)
    sums = np.arange(1, n + 1) + ranks
    if m == 3:
        sums = (sums[:, None, :] + ranks[None, :, :]).reshape(-1, n)
    spread = ((sums - m * (n + 1) / 2) ** 2).sum(1)
    return float(np.mean(12 * spread / (m**2 * (n**3 - n)) >= W * (1 - 1e-12)))


@checked
def correlation(x: ArrayLike, y: ArrayLike) -> Correlation:
    """Pearson's correlation of x and y, (samples,) each with at least three, and its two-sided p-value."""
    from scipy.stats import pearsonr

    first = array("x", x, (None,))
    second = array("y", y, first.shape)
    if first.size < 3:
        raise InputError(f"x: a correlation needs at least 3 samples, got {first.size}")
    for name, values in (("x", first), ("y", second)):
        # largest of them one: no square of a difference overflows or vanishes
        values /= np.abs(values).max() or 1.0
        if np.ptp(values) <= CONSTANT:
            raise InputError(f"{name}: expected values that differ, got the same {values.size} times")
    found: Any = pearsonr(first, second)
    return Correlation(float(found.statistic), float(found.pvalue))


@checked
def combined(p_values: ArrayLike) -> float:
    """One p-value of several independent tests, by Fisher's method: −2 Σ log p is chi-square with 2 degrees each."""
    from scipy.stats import chi2

    p = array("p_values", p_values, (None,))
    if p.size == 0 or np.any(p < 0) or np.any(p > 1):
        raise InputError(f"p_values: expected probabilities, got {shown(p_values)}")
    with np.errstate(divide="ignore"):
        return float(chi2.sf(-2 * np.log(p).sum(), 2 * p.size))


def _features(name: str, value: ArrayLike, least: int = 1) -> Array:
    F = array(name, value, (None, None))
    if len(F) < least:
        raise InputError(
            f"{name}: the score needs at least {least} samples of a class, got {len(F)}; give more, or leave it out"
        )
    if np.abs(F).max(initial=0.0) > LARGEST:
        raise InputError(f"{name}: expected numbers of at most {LARGEST:g}, got {np.abs(F).max():g}; rescale them")
    return F
