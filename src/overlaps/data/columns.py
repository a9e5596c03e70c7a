"""A table divided into columns, where one of them may hold labels.

>>> import numpy as np
>>> columns = columns_of(np.array([[1.0, 5.0, 2.0], [0.0, 6.0, 3.0]]))
>>> columns.column(1).tolist(), columns.without(1).tolist()
([5.0, 6.0], [[1.0, 2.0], [0.0, 3.0]])
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..interface.checks import has_masked
from ..interface.errors import InputError
from .table import Source, beginning, check_finite, is_frame, numbers, parquet, source_path, stored, unread


@dataclass(frozen=True, eq=False)
class Columns:
    """A table divided into columns: an array, or a frame of pandas, whose columns may have names and hold text."""

    table: Any
    names: list[str] | None = None

    def __len__(self) -> int:
        return self.table.shape[1]

    def column(self, place: int) -> NDArray[Any]:
        """One column, (rows,)."""
        return np.asarray(self.table.iloc[:, place] if is_frame(self.table) else self.table[:, place])

    def without(self, place: int) -> NDArray[np.generic]:
        """All columns but one, as numbers; what is not finite is refused under its place in the whole table."""
        kept = [i for i in range(len(self)) if i != place]
        table = numbers(self.table.iloc[:, kept] if is_frame(self.table) else self.table[:, kept], "a table")
        check_finite(table, self.words(place))
        return table

    def words(self, place: int) -> tuple[str, ...]:
        """How messages call all columns but one: by name, or by their place in the whole table."""
        names = self.names or [f"{i} (counted from 0)" for i in range(len(self))]
        return tuple(
            f"column {name!r}" if self.names else f"column {name}" for name in names[:place] + names[place + 1 :]
        )


def columns_of(source: Source) -> Columns:
    """The columns of a source, read whole."""
    import pandas

    path = source_path(source)
    if path is None:
        if is_frame(source):
            return Columns(source, [str(name) for name in source.columns])  # type: ignore[union-attr]
        table = np.empty(0) if has_masked(source) else np.asanyarray(source)  # what is masked is refused by `numbers`
        if table.ndim == 2 and table.dtype.kind in "OUS":
            return Columns(pandas.DataFrame(table.astype(object)).infer_objects())
        return Columns(numbers(source, "an array"))
    if not os.path.isfile(path):
        raise InputError(f"source: no file {path}")
    if path.suffix.lower() == ".parquet":
        return columns_of(parquet(path))
    if path.suffix.lower() in (".npy", ".npz"):
        table = np.asanyarray(stored(path))
        return Columns(table[:, None] if table.ndim == 1 else numbers(table, str(path)))
    if path.suffix.lower() != ".csv":
        raise unread(path)
    begin = beginning(path)
    try:
        frame = pandas.read_csv(
            path, header=0 if begin.header else None, skipinitialspace=True, encoding="utf-8-sig", index_col=False
        )
    except (OSError, ValueError) as error:
        raise InputError(f"source: {path} cannot be read as .csv ({' '.join(str(error).split())})") from None
    if frame.empty:
        raise InputError("source: expected samples, got none")
    return Columns(frame, [str(name) for name in frame.columns] if begin.header else None)
