"""Groups of rows within each class: clusters, and how many of them, chosen on rows that were held out.

A class that is a mixture itself is described better by several Gaussians than by one. Clusters are those of k-means
within the class. How many there are is decided by rows that no cluster was fitted to: with shares π_g, means μ_g and
covariances Σ_g of the clusters of four fifths of the rows of a class, the number is chosen for which

    L = ⟨ log Σ_g π_g N(x; μ_g, Σ_g) ⟩        over the other fifth

is largest; a larger number must be better by two standard errors of the difference over these rows. Only the first r
principal coordinates count, at most a tenth of the rows and fifty; and each Σ_g is drawn towards the covariance of its
class as by r further rows, so that a small cluster has no singular one.

>>> import numpy as np
>>> from overlaps.data.clusters import grouped
>>> rng = np.random.default_rng(0)
>>> far = np.where(rng.random(400) < 0.5, 4.0, -4.0)  # one class in two heaps
>>> rows = np.column_stack([far, np.zeros(400)]) + rng.standard_normal((400, 2))
>>> int(grouped(rows, np.zeros(400, np.int64), "auto").max()) + 1
2
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..interface.checks import whole
from ..interface.errors import InputError, shown
from .class_moments import FEWEST, names_of_rows

Array = NDArray[np.float64]
Groups = NDArray[np.int64]
NUMBERS = (1, 2, 3, 4, 6, 8, 12, 16)  # numbers of clusters that are tried, in this order
COORDINATES = 50  # at most, in which the likelihood of rows is computed
PATIENCE = 2  # numbers without an improvement after which no more are tried


def grouped(rows: Array, classes: Groups, groups: ArrayLike | int | str) -> NDArray[Any]:
    """A group for each of the rows (n, N), which are of these classes (n,).

    groups: one for each row, as it is; a number of clusters in each class; or ``"auto"``, the best number of them.
    Clusters are fewer where they would have less than five rows.
    """
    check_groups(groups)
    if one_for_each(groups):
        return names_of_rows("groups", groups, len(rows))
    wanted = None if isinstance(groups, str) else int(groups)  # type: ignore[arg-type]
    found = np.zeros(len(rows), np.int64)
    for c in np.unique(classes):
        mine = np.flatnonzero(classes == c)
        count = _best_number(rows[mine]) if wanted is None else wanted
        found[mine] = _clusters(rows[mine], count)
    return found


def check_groups(groups: Any) -> None:
    """Refuse what is no number of clusters, not ``"auto"`` and no group for each row."""
    if (isinstance(groups, str) and groups == "auto") or one_for_each(groups):
        return
    # a span of time is an integer to NumPy
    if isinstance(groups, (bool, np.timedelta64)) or not isinstance(groups, (int, np.integer)):
        raise InputError(f"groups: expected a number of clusters, 'auto', or one for each row, got {shown(groups)}")
    whole("groups", int(groups), least=1)


def one_for_each(groups: Any) -> bool:
    """Whether there is a group for each row, in a list, an array or a series."""
    return not isinstance(groups, str) and (isinstance(groups, Sequence) or getattr(groups, "ndim", 0) > 0)


def _clusters(rows: Array, count: int) -> Groups:
    """Clusters of rows (n, N), at most `count`, each of at least five rows."""
    from scipy.cluster.vq import ClusterError, kmeans2

    for k in range(min(count, len(rows) // FEWEST), 1, -1):
        try:
            member = kmeans2(rows, k, iter=50, minit="++", missing="raise", rng=np.random.default_rng(k))[1]
        except ClusterError:  # one is empty
            continue
        if np.bincount(member, minlength=k).min() >= FEWEST:
            return member.astype(np.int64)
    return np.zeros(len(rows), np.int64)


def _best_number(rows: Array) -> int:
    """The number of clusters of a class under which rows that were held out are most likely."""
    order = np.random.default_rng(0).permutation(len(rows))
    held, kept = np.split(rows[order], [len(rows) // 5])
    r = min(rows.shape[1], len(kept) // 10, COORDINATES)
    if r == 0 or len(held) == 0:
        return 1
    best, number, worse = np.full(len(held), -np.inf), 1, 0
    for count in NUMBERS:
        member = _clusters(kept, count)
        if int(member.max()) + 1 < count:
            break
        likelihoods = _held_out(kept[:, :r], member, held[:, :r])
        gained = likelihoods - best
        if count == 1 or gained.mean() > 2 * gained.std() / np.sqrt(len(held)):
            best, number, worse = likelihoods, count, 0
        else:
            worse += 1
            if worse == PATIENCE:
                break
    return number


def _held_out(rows: Array, member: Groups, held: Array) -> Array:
    """Logarithm of the density of each of the rows `held` (m, r) under Gaussians of the clusters of `rows` (n, r)."""
    from scipy.linalg import solve_triangular
    from scipy.special import logsumexp

    n, r = rows.shape
    whole_class = np.cov(rows.T, bias=True).reshape(r, r)
    whole_class[np.diag_indices(r)] += 1e-6 * max(float(np.trace(whole_class)) / r, 1e-300)
    parts = []
    for g in range(int(member.max()) + 1):
        mine = rows[member == g]
        mean = mine.mean(0)
        spread = ((mine - mean).T @ (mine - mean) + r * whole_class) / (len(mine) + r)
        root = np.linalg.cholesky(spread)
        z = solve_triangular(root, (held - mean).T, lower=True)
        parts.append(np.log(len(mine) / n) - 0.5 * (z**2).sum(0) - np.log(np.diag(root)).sum())
    return np.asarray(logsumexp(parts, axis=0))
