"""Mean and covariance of every group of the rows of a table: classes, or parts of them.

With n_c of n rows in group c, and averages over these,

    p_c = n_c/n        μ_c = ⟨x⟩_c        Σ_c = ⟨(x − μ_c)(x − μ_c)ᵀ⟩_c,

so that Σ_c p_c (Σ_c + μ_c μ_cᵀ) is the second moment of all rows. These are the moments of the rows themselves, which
training on the rows draws from; nothing is taken off or added for a population behind them.

>>> import numpy as np
>>> from overlaps.data.class_moments import class_moments
>>> rows = np.arange(20.0).reshape(10, 2)
>>> class_moments(rows, ["low"] * 5 + ["high"] * 5).means.tolist()
[[14.0, 15.0], [4.0, 5.0]]
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..interface.checks import has_masked
from ..interface.errors import InputError
from ..interface.memory import available_memory

Array = NDArray[np.float64]
FEWEST = 5  # least number of rows in a group
SMALL = 1e8  # bytes, below which memory is not asked for
COPIES = 2  # of all covariances that theory holds: as they are, and turned


class ClassMoments(NamedTuple):
    """Of each group: means (P, N), covariances (P, N, N), shares of the rows (P,) and class numbers (P,).

    names: of the classes, in the order of their numbers.
    """

    means: Array
    covariances: Array
    weights: Array
    labels: NDArray[np.int64]
    names: tuple[Any, ...]


def refuse_large(name: str, count: int, size: int, instead: str) -> None:
    """Refuse more covariances of some dimensions than fit into the memory that is free."""
    needed = 8.0 * count * float(size) ** 2
    if needed > SMALL and COPIES * needed > (free := available_memory()):
        raise InputError(
            f"{name}: {count} matrices of {size} dimensions are {needed * 1e-9:.3g} GB, of which theory holds {COPIES} "
            f"copies, and {free * 1e-9:.3g} GB of memory are free; {instead}"
        )


def class_moments(rows: Array, labels: ArrayLike, groups: ArrayLike | None = None) -> ClassMoments:
    """Moments of the rows (n, N) of each class, or of each pair of class and group, in sorted order.

    labels: (n,); whole numbers are class numbers as they are, anything else is numbered 0, 1, … in sorted order.
    groups: (n,), parts of the classes; a group that holds rows of several classes is one part of each.
    """
    n, N = rows.shape
    given = names_of_rows("labels", labels, n)
    kinds, numbers = np.unique(given, return_inverse=True)
    if kinds.size == 1:
        raise InputError(f"labels: all rows are of class {kinds[0]}, so there is nothing to learn")
    parts = np.zeros(n, np.int64)
    if groups is not None:
        parts = np.unique(names_of_rows("groups", groups, n), return_inverse=True)[1]
    pairs, member = np.unique(np.stack([numbers, parts]), axis=1, return_inverse=True)
    count, member = pairs.shape[1], member.ravel()
    refuse_large("groups", count, N, "use fewer groups or columns")
    sizes = np.bincount(member, minlength=count)
    named = [f"class {kinds[a]}" + (f", group {b}" if groups is not None else "") for a, b in pairs.T]
    few = int(sizes.argmin())
    if sizes[few] < FEWEST:
        raise InputError(
            f"labels: {named[few]} has {sizes[few]} row{'s' * int(sizes[few] > 1)}, expected at least {FEWEST} of "
            "each; leave it out, or merge it with another"
        )
    if sizes[few] <= N:
        warnings.warn(
            f"labels: {named[few]} has {sizes[few]} rows of {N} columns, so that its covariance is singular: theory is "
            "that of these rows, not of the population behind them",
            stacklevel=3,
        )
    means, covariances = np.empty((count, N)), np.empty((count, N, N))
    for c in range(count):
        mine = rows[member == c]
        means[c] = mine.mean(0)
        mine = mine - means[c]
        covariances[c] = mine.T @ mine / len(mine)
    whole = kinds.dtype.kind in "iu"
    number = kinds.astype(np.int64)[pairs[0]] if whole else pairs[0]
    return ClassMoments(means, covariances, sizes / n, number, tuple(kinds.tolist()))


def names_of_rows(name: str, given: ArrayLike, count: int) -> NDArray[Any]:
    """One class or group for each row; floats must be whole, and none may be missing."""
    if has_masked(given):
        raise InputError(f"{name}: has masked entries; leave out such rows")
    try:
        values = np.asarray(given)
    except ValueError:
        raise InputError(f"{name}: expected one for each of {count} rows, got lists of different lengths") from None
    if values.shape != (count,):
        raise InputError(f"{name}: expected one for each of {count} rows, got shape {values.shape}")
    if values.dtype.kind == "f":
        wrong = np.flatnonzero(~np.isfinite(values) | (values != np.rint(values)))
        if wrong.size:
            raise InputError(
                f"{name}: row {wrong[0]} (counted from 0) has {values[wrong[0]]}, expected whole numbers, text or "
                "booleans; quantities are learned by Samples(X, y)"
            )
        return values.astype(np.int64)
    if values.dtype.kind == "O":
        missing = next((i for i, one in enumerate(values.tolist()) if one is None or one != one), None)
        if missing is not None:
            raise InputError(f"{name}: row {missing} (counted from 0) has none; leave out such rows")
        return values.astype(str)
    if values.dtype.kind not in "iubUST":
        raise InputError(f"{name}: expected whole numbers, text or booleans, got {values.dtype}")
    return values
