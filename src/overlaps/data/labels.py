"""Labels of the rows of a table: where they are read from, and what they are as numbers.

Real labels are targets of a regression and stay as they are. Booleans, text and up to twenty whole numbers are classes,
in sorted order. Two of them stand as −1 and +1 in a regression; a regression on the numbers of more than two means
nothing, and is refused, while classifiers take any number of them. Whole numbers with more values are counts, hence
real. Quantities with few values are given as floats.

>>> import numpy as np
>>> from overlaps.data.labels import encoded
>>> encoded(np.array(["odd", "even", "odd"] * 5))
Labels(15 rows of 2 classes: even = -1, odd = +1)
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..interface.checks import has_masked
from ..interface.errors import InputError, shown
from .columns import Columns, columns_of
from .table import Source, numbers, source_path, stored

Array = NDArray[np.float64]
ROUNDING = 1e-12  # spread of labels, relative to the largest, that is rounding
FEWEST = 5  # least number of rows in a class
CLASSES = 20  # values up to which whole numbers may be the numbers of classes

WHOLE = re.compile(r"-?[0-9]{1,9}")  # text that may be the number of a column


@dataclass(frozen=True, eq=False)
class Labels:
    """Labels as numbers.

    values: (rows,); of two classes −1 and +1, of more their numbers.
    classes: names of the classes in sorted order, which are numbered 0, 1, …; empty for a regression.
    """

    values: Array
    classes: tuple[Any, ...] = ()

    @property
    def numbers(self) -> NDArray[np.int64]:
        """Number of the class of each row, (rows,)."""
        if not self.classes:
            raise InputError("y: these labels are real numbers, not classes; pass classes as whole numbers or text")
        return ((self.values + 1) / 2 if len(self.classes) == 2 else self.values).astype(np.int64)

    def __repr__(self) -> str:
        count = len(self.classes)
        if count == 0:
            return f"Labels({self.values.size} real ones, {self.values.min():.4g} to {self.values.max():.4g})"
        words = [f"{name} = {sign}1" for name, sign in zip(self.classes, "-+", strict=False)]
        if count > 2:
            words = [str(name) for name in self.classes[:4]] + ["..."] * (count > 4)
        return f"Labels({self.values.size} rows of {count} classes: {', '.join(words)})"


class Split(NamedTuple):
    """Features and labels as they were given.

    columns: how messages call the columns of the features where they were beside the labels; empty otherwise.
    """

    features: Source
    labels: NDArray[Any] | None
    columns: tuple[str, ...] = ()


def split(source: Source, y: ArrayLike | str | None, target: str | int | None) -> Split:
    """Features and labels: labels from `y`, or from the column `target` of the source."""
    if target is None:
        return Split(source, None if y is None else _given(y))
    if y is not None:
        raise InputError("target: y gives the labels already; give a column of the table or labels, not both")
    if isinstance(target, (bool, np.bool_)) or not isinstance(target, (str, int, np.integer)):
        raise InputError(f"target: expected the name or the number of a column, got {shown(target)}")
    path = source_path(source)
    if path is not None and path.suffix.lower() == ".npz" and isinstance(target, str) and not WHOLE.fullmatch(target):
        return Split(*_from_archive(path, target))
    columns = columns_of(source)
    place = _place(columns, target)
    if len(columns) == 1:
        raise InputError("target: the table has one column, which leaves none to learn from")
    return Split(columns.without(place), columns.column(place), columns.words(place))


def _place(columns: Columns, target: str | int) -> int:
    """Where a column is, by its name or its number; text that is no name may be a number too."""
    names = columns.names or []
    if isinstance(target, str) and target not in names and WHOLE.fullmatch(target):
        target = int(target)
    if not isinstance(target, str):
        place = int(target)
        if not -len(columns) <= place < len(columns):
            raise InputError(f"target: there is no column {place}, the table has {len(columns)}, counted from 0")
        return place % len(columns)
    if not names:
        raise InputError(f"target: these columns have no names, got {shown(target)}; give its number, counted from 0")
    if names.count(target) != 1:
        known = ", ".join(names[:12]) + ", ..." * (len(names) > 12)
        raise InputError(f"target: expected the name of one column, got {shown(target)} (columns: {known})")
    return names.index(target)


def _given(y: Any) -> NDArray[Any]:
    """Labels that are an array, a series, a frame of one column, or the path of a file with one column."""
    if isinstance(y, (bool, np.bool_)):
        raise InputError(
            f"y: expected one label for each row, got {shown(y)}; centre and standardise are passed by name"
        )
    if isinstance(y, (str, os.PathLike)):
        try:
            columns = columns_of(y)
        except InputError as error:
            raise InputError(str(error).replace("source:", "y:", 1)) from None
        if len(columns) != 1:
            raise InputError(f"y: expected one column of labels, {y} has {len(columns)}; name it by target instead")
        return columns.column(0)
    if has_masked(y):
        raise InputError("y: has masked entries; leave out such rows")
    values = np.asarray(y)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise InputError(f"y: expected one label for each row, got an array of shape {values.shape}")
    return values


def _from_archive(path: Path, target: str) -> tuple[Source, NDArray[Any]]:
    """Labels that are an array of their own in a .npz file."""
    labels = stored(path, target)
    rest = stored(path, leave=target)
    return numbers(rest, str(path)), _given(labels)


def quantities(labels: NDArray[Any] | None) -> Array:
    """Labels that are numbers as floats, of which none is the number of a class; text is refused."""
    if labels is None or labels.dtype.kind not in "biuf":
        kind = "missing" if labels is None else f"of {labels.dtype.name}"
        raise InputError(f"regression: the labels are {kind}, expected numbers; leave it out for classes")
    return labels.astype(float)


def encoded(labels: NDArray[Any]) -> Labels:
    """Labels as numbers; refused where there is nothing to learn."""
    if labels.size == 0:
        raise InputError("y: expected one label for each row, got none")
    if labels.dtype.kind in "fiu":
        values = labels.astype(float)
        wrong = np.flatnonzero(~np.isfinite(values))
        if wrong.size:
            raise InputError(
                f"y: row {wrong[0]} (counted from 0) has the label {values[wrong[0]]}, expected finite numbers; leave "
                "out such rows"
            )
        if np.ptp(values) <= ROUNDING * np.abs(values).max():
            same = f"are {values[0]:g}" + " up to rounding" * bool(np.ptp(values))
            raise InputError(f"y: all labels {same}, so there is nothing to learn")
        kinds = np.unique(labels) if labels.dtype.kind in "iu" else labels[:0]
        if not 0 < kinds.size <= CLASSES:
            if np.abs(values).max() > 1e100:
                raise InputError(f"y: {np.abs(values).max():.3g} overflows when squared; divide y by a constant")
            return Labels(values)
    elif labels.dtype.kind == "c":
        raise InputError("y: expected real numbers or classes, got complex numbers")
    missing = next((i for i, label in enumerate(labels.tolist()) if _is_missing(label)), None)
    if missing is not None:
        raise InputError(f"y: row {missing} (counted from 0) has no label; leave out such rows")
    return _classes(labels)


def _is_missing(label: Any) -> bool:
    """None, NaN and pandas' missing values, none of which equals itself as a truth value; and empty text."""
    return label is None or (isinstance(label, str) and not label.strip()) or (label != label) is not False


def _classes(labels: NDArray[Any]) -> Labels:
    names, counts = np.unique(labels.astype(str) if labels.dtype.kind in "OTUS" else labels, return_counts=True)
    if names.size == 1:
        raise InputError(f"y: all labels are {names[0]}, so there is nothing to learn")
    if counts.min() < FEWEST:
        rare = int(counts.argmin())
        some = int(counts[rare])
        raise InputError(
            f"y: class {names[rare]} has {some} row{'s' * (some > 1)}, expected at least {FEWEST} of each class"
            + "; if these are quantities, pass them as floats (`learn --regression`)" * (labels.dtype.kind in "iu")
        )
    numbers = np.searchsorted(names, labels.astype(names.dtype)).astype(float)
    return Labels(2 * numbers - 1 if names.size == 2 else numbers, tuple(names.tolist()))
