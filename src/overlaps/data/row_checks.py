"""What is worth a warning before anything is learned from labelled rows.

- Columns of very different scales: those of large scale hold all the variance, the others are learned last or never. So
  does a single column of most of the variance, as the number of the row beside columns of unit variance.
- A column of ones that centring drops, though it may be there as a bias.
- A column that is the target: a correlation of one with the labels is no discovery; nor is a column of few values of
  which each belongs to one class alone, as codes of the classes in another order.
- Rows that stand in the table twice: held-out rows are then among those trained on.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .table import Source, blocks

Array = NDArray[np.float64]
SCALES = 100.0  # times the range of the median column, or its inverse for a tenth of the columns
MOST = 0.9  # share of the variance in one of three or more columns
REPEATED = 5  # times that a code occurs on average
CODES = 20  # values of a column, beyond which it is not taken for codes of classes
FIRST = 200  # rows that are tried before all are read
COLLINEAR = 0.9999  # correlation of a column with the labels


def warn_of_rows(
    source: Source,
    labels: Array,
    standardise: bool,
    level: int,
    columns: tuple[str, ...] = (),
    drops_ones: bool = False,
) -> None:
    """Warn of scales, of a target among the features and of repeated rows; `level` as for `warnings.warn`.

    labels: (rows,), not constant. columns: how messages call each column, by its number if empty.
    drops_ones: whether a column of ones is dropped, as centring does.
    """

    def called(column: int) -> str:
        return columns[column] if columns else f"column {column} (counted from 0)"

    codes: list[dict[float, float] | None] = []
    low = high = shift = np.empty(0)
    sums = squares = products = np.empty(0)
    target, done, repeated = labels - labels.mean(), 0, 0
    few = len(set(labels.tolist())) <= CODES
    seen: set[int] = set()
    for block in blocks(source):
        if done == 0:
            low, high, shift = block[0].copy(), block[0].copy(), block[0].copy()
            sums, squares, products = (np.zeros(block.shape[1]) for _ in range(3))
            codes = [{} if few else None for _ in range(block.shape[1])]
        low, high = np.minimum(low, block.min(0)), np.maximum(high, block.max(0))
        here = labels[done : done + len(block)]
        for row, label in zip(block, here, strict=True):
            seen.add(hash((row.tobytes(), float(label))))
        codes = [_codes(known, column, here) for known, column in zip(codes, block.T, strict=True)]
        done += len(block)
        repeated = done - len(seen)
        block = block - shift
        sums += block.sum(0)
        squares += np.einsum("ij,ij->j", block, block)
        products += target[done - len(block) : done] @ block
    spread = np.sqrt(np.maximum(squares / done - (sums / done) ** 2, 0.0))
    varies = high > low
    correlation = np.zeros(varies.size)
    held = varies & (spread > 0)
    correlation[held] = products[held] / done / spread[held] / target.std()
    worst = int(np.argmax(np.abs(correlation)))
    if abs(correlation[worst]) > COLLINEAR:
        warnings.warn(
            f"target: {called(worst)} has a correlation of {correlation[worst]:.6g} with the labels; "
            "if it is the target, or made of it, leave it out of the features",
            stacklevel=level + 1,
        )
    else:
        # among few rows a value that occurs once trivially belongs to one label
        several = [known is not None and 1 < len(known) <= done / REPEATED for known in codes]
        decided = several.index(True) if any(several) else None
        if decided is not None:
            warnings.warn(
                f"target: {called(decided)} determines the labels: each of its values belongs to one "
                "of them alone; if it is the target, or made of it, leave it out of the features",
                stacklevel=level + 1,
            )
    if not standardise:
        _warn_of_scales((high - low)[varies], spread, called, level + 2)
    ones = np.flatnonzero(~varies & (low == 1.0))
    if drops_ones and ones.size:
        warnings.warn(
            f"bias: {called(int(ones[0]))} is one in every row, and centring drops it; use bias=True (`learn --bias`) "
            "for a column of ones that is not centred",
            stacklevel=level + 1,
        )
    if repeated:
        warnings.warn(
            f"source: {repeated} of {done} rows are repeated, features and label; held-out rows are then among those "
            "trained on: leave out the copies unless they are separate samples",
            stacklevel=level + 1,
        )


def _warn_of_scales(ranges: Array, spread: Array, called: Callable[[int], str], level: int) -> None:
    """Warn where few columns hold nearly all the variance, by ranges of those that vary and deviations of all."""
    if ranges.size < 2:
        return
    middle = float(np.median(ranges))
    if ranges.max() > SCALES * middle or middle > SCALES * np.quantile(ranges, 0.1):
        warnings.warn(
            f"standardise: columns have very different scales (ranges from {ranges.min():.3g} to "
            f"{ranges.max():.3g}), so that a few of them hold nearly all the variance and the others are hardly "
            "learned; use standardise=True unless their units mean something",
            stacklevel=level + 1,
        )
        return
    largest = int(np.argmax(spread))
    share = spread[largest] ** 2 / float(spread @ spread) if spread.any() else 0.0
    if ranges.size > 2 and share > MOST:
        warnings.warn(
            f"standardise: {called(largest)} holds {share:.1%} of the variance of the rows, so that the other columns "
            "are hardly learned; use standardise=True, and leave the column out if it only numbers the rows",
            stacklevel=level + 1,
        )


def _codes(known: dict[float, float] | None, column: Array, labels: Array) -> dict[float, float] | None:
    """The label of each value of a column, with those known before; None where a value has several, or for many."""
    if known is None:
        return None
    for part in (slice(FIRST), slice(None)):  # most columns have too many values among the first rows already
        values, first = np.unique(column[part], return_index=True)
        if values.size > CODES:
            return None
        for value, label in zip(values.tolist(), labels[part][first].tolist(), strict=True):
            if (labels[part][column[part] == value] != label).any() or known.setdefault(value, label) != label:
                return None
    return known if len(known) <= CODES else None
