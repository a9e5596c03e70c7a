"""Tables of numbers, samples × columns, read a block of rows at a time: arrays, and files larger than memory.

| source | read |
|---|---|
| array | as it is; any real or integer type, a memory map too |
| ``.npy`` | memory-mapped |
| ``.npz`` | its only array, or the one called ``X``; whole, since it is compressed |
| ``.csv`` | by lines, commas between columns; a header is skipped |
| ``.parquet`` | by pandas, where pyarrow is installed |
| frame of pandas | its columns of numbers; others are refused by name |

A header is a first line without a number; one with a word above a number of the next line, whatever else stands in it
(``age,2019`` above ``30,1.5``); or one that counts the columns from 0 or 1, as frames without names are written. One or
two such numbers may as well be a sample: they are a header only if a number of the next line is not whole.

>>> from overlaps.data.table import blocks
>>> [block.tolist() for block in blocks([[1, 2], [3, 4]])]
[[[1.0, 2.0], [3.0, 4.0]]]
"""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Protocol, TextIO

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..interface.checks import has_masked
from ..interface.errors import InputError, MissingExtraError

Array = NDArray[np.float64]
Source = ArrayLike | str | os.PathLike[str]
BLOCK = 2**21  # numbers in a block, 16 MB
LARGEST = 1e140  # beyond, sums of squares may overflow
GAPS = ("n/a", "na", "<na>", "#n/a", "none", "null", "missing")  # words for a number that is missing


class Digest(Protocol):
    """What `hashlib` makes."""

    def update(self, data: Any, /) -> None: ...


def blocks(source: Source, digest: Digest | None = None) -> Iterator[Array]:
    """Blocks of rows of `source`, each (rows, columns) and finite; at least one, or the source is refused.

    `digest` is fed the number of columns and the table as doubles: equal tables, equal digests, whatever the source.
    """
    path = source_path(source)
    if path is None:
        parts = _slices(numbers(source, "an array"))
    elif not os.path.isfile(path):  # False for names that cannot be
        raise InputError(f"source: no file {path}")
    elif path.suffix.lower() == ".csv":
        parts = _lines(path)
    elif path.suffix.lower() in (".npy", ".npz"):
        parts = _slices(numbers(stored(path), str(path)))
    elif path.suffix.lower() == ".parquet":
        parts = _slices(numbers(parquet(path), str(path)))
    else:
        raise unread(path)
    row = 0
    for part in parts:
        with np.errstate(over="ignore"):  # a long double beyond the range of a double is found below
            block = np.ascontiguousarray(part, dtype=np.float64)
        # one comparison finds NaN, infinities and overflow alike
        if not np.all(np.abs(block) <= LARGEST):
            raise _unusable(block, row)
        if digest is not None:
            digest.update(b"" if row else block.shape[1].to_bytes(8, "little"))
            digest.update(block.data)
        row += len(block)
        yield block
    if row == 0:
        raise InputError("source: expected samples, got none")


def unread(path: Path) -> InputError:
    return InputError(
        f"source: {path} has the suffix {path.suffix!r}; .npy, .npz, .csv and .parquet are read, or pass the array "
        "itself"
    )


def source_path(source: Source) -> Path | None:
    """The file a source names, or None for an array."""
    return Path(source) if isinstance(source, (str, os.PathLike)) else None


def check_finite(table: NDArray[np.generic], columns: tuple[str, ...]) -> None:
    """Refuse a table with what is not finite, or too large, by the words for its column."""
    for first, part in zip(range(0, len(table), _height(table.shape[1])), _slices(table), strict=True):
        with np.errstate(over="ignore"):
            block = part.astype(np.float64, copy=False)
        if not np.all(np.abs(block) <= LARGEST):
            raise _unusable(block, first, columns)


def _unusable(block: Array, first: int, columns: tuple[str, ...] = ()) -> InputError:
    r, c = np.argwhere(~(np.abs(block) <= LARGEST))[0]
    where = f"row {first + r}, {columns[c] if columns else f'column {c} (counted from 0)'}"
    if np.isfinite(block[r, c]):
        return InputError(f"source: {block[r, c]:.3g} in {where} overflows when squared; divide all data by a constant")
    return InputError(
        f"source: {where} is {block[r, c]}, expected finite numbers; leave out such rows or fill the gaps"
    )


def numbers(values: Any, what: str) -> NDArray[np.generic]:
    """A table of real numbers, refused by what it is before anything is read."""
    if has_masked(values):
        raise InputError("source: has masked entries; leave out such rows or fill the gaps")
    if is_frame(values):
        values = _frame_numbers(values)
    try:
        table = np.asanyarray(values)
    except MemoryError:
        raise
    except Exception as error:  # whatever objects of others raise when they are made an array
        raise InputError(f"source: expected a table of numbers, samples x columns ({error})") from None
    if table.dtype.kind not in "biuf":
        hint = "; its real and imaginary parts may stand as columns" if table.dtype.kind == "c" else ""
        raise InputError(f"source: expected real numbers, got {what} of {table.dtype.name}{hint}")
    if table.ndim != 2:
        raise InputError(
            f"source: expected two dimensions, samples x columns, got shape {table.shape}; reshape it, for instance "
            "images to one row each"
        )
    if 0 in table.shape:
        raise InputError(f"source: expected samples and columns, got shape {table.shape}")
    return table


def is_frame(values: Any) -> bool:
    return hasattr(values, "columns") and hasattr(values, "iloc")


def _frame_numbers(frame: Any) -> Array:
    """The columns of a frame as doubles; text and dates are refused by the name of their column."""
    for place in range(frame.shape[1]):
        column = frame.iloc[:, place]
        if getattr(column.dtype, "kind", "O") not in "biuf":
            raise InputError(
                f"source: column {named(frame.columns[place])} is not of numbers but of {column.dtype}; leave it out, "
                "or encode it as numbers"
            )
    return frame.to_numpy(dtype=float, na_value=np.nan)


def named(column: Any) -> str:
    """How messages call a column of a frame: its name in quotes, or its number."""
    return repr(column) if isinstance(column, str) else str(column)


def _slices(table: NDArray[np.generic]) -> Iterator[NDArray[np.generic]]:
    height = _height(table.shape[1])
    for low in range(0, len(table), height):
        yield table[low : low + height]


def _height(columns: int) -> int:
    return max(1, BLOCK // columns)


def stored(path: Path, name: str | None = None, leave: str | None = None) -> ArrayLike:
    """The array of a file of NumPy; of an archive the one of a name, or the only one, or that called X.

    leave: an array of the archive that does not count.
    """
    try:
        if path.suffix.lower() == ".npy":
            return np.load(path, mmap_mode="r", allow_pickle=False)
        with np.load(path, allow_pickle=False) as archive:
            names = [each for each in archive.files if each != leave]
            if name is not None:
                if name not in names:
                    raise InputError(f"target: {path} holds {', '.join(names) or 'nothing'}, not {name}")
                return archive[name]
            if len(names) != 1 and "X" not in names:
                raise InputError(
                    f"source: {path} holds {', '.join(names) or 'nothing'}; expected one array, or one called X"
                )
            return archive["X" if "X" in names else names[0]]
    except InputError:
        raise
    except Exception as error:  # readers raise whatever a broken or an encrypted file leads them to
        raise InputError(f"source: {path} cannot be read as {path.suffix} ({error})") from None


def parquet(path: Path) -> Any:
    """The frame that a Parquet file holds."""
    import pandas

    try:
        return pandas.read_parquet(path)
    except ImportError:
        raise MissingExtraError(
            f"source: {path} is a Parquet file, which needs pyarrow", "pip install pyarrow"
        ) from None
    except (OSError, ValueError) as error:
        raise InputError(f"source: {path} cannot be read as .parquet ({' '.join(str(error).split())})") from None


@dataclass(frozen=True)
class Beginning:
    """The cells of the first line of a .csv file, none if it is empty, and whether they are a header."""

    cells: list[str]
    header: bool


def beginning(path: Path) -> Beginning:
    """How a .csv file begins; refused where its columns are not separated by commas, or it has an index."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            begin = list(islice(_numbered(file), 2))
            if not begin:
                return Beginning([], False)
            number, line = begin[0]
            cells = _cells(line)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"source: {path} cannot be read as text ({error})") from None
    if len(cells) == 1 and any(mark in cells[0] for mark in ";\t"):
        raise InputError(f"source: {path} has no commas in line {number}; separate its columns by commas")
    header = any(cells) and (not any(is_number(cell) for cell in cells) or _above_numbers([line for _, line in begin]))
    if cells[0] == "" and (header or _counted(cells[1:])):
        raise InputError(
            f"source: line {number} of {path} looks like a header and its first column like an index; write "
            "the file without the index, as to_csv(index=False) does"
        )
    return Beginning(cells, header or bool(_count_header([line for _, line in begin])))


def _lines(path: Path) -> Iterator[Array]:
    begins = beginning(path)
    cells = begins.cells
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            numbered = _numbered(file)
            begin = list(islice(numbered, 2))
            if begins.header:
                del begin[0]
            height = _height(max(1, len(cells)))
            while lines := begin[:height] + list(islice(numbered, max(0, height - len(begin)))):
                begin = begin[height:]
                yield _table(path, lines, len(cells))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"source: {path} cannot be read as text ({error})") from None


def count_header(source: Source) -> str:
    """The header of a .csv file that counts its columns, as '0 to 39'; empty if there is none."""
    path = source_path(source)
    if path is None or path.suffix.lower() != ".csv":
        return ""
    with path.open(encoding="utf-8-sig", newline="") as file:
        return _count_header([line for _, line in islice(_numbered(file), 2)])


def _above_numbers(lines: list[str]) -> bool:
    """Whether a word of the first line stands above a number of the second; what begins like a number is no word."""
    first, *others = [_cells(line) for line in lines]
    words = [cell[:1] not in "0123456789+-.?" and cell.lower() not in GAPS and not is_number(cell) for cell in first]
    return any(word and is_number(cell) for cells in others for word, cell in zip(words, cells, strict=False))


def _count_header(lines: list[str]) -> str:
    """What the first of the first two lines counts, if it is a header."""
    first, *others = [_cells(line) for line in lines]
    values = [float(cell) for cells in others for cell in cells if is_number(cell)]
    fractional = any(math.isfinite(value) and not value.is_integer() for value in values)
    return f"{first[0]} to {first[-1]}" if _counted(first) and (len(first) > 2 or fractional) else ""


def _counted(cells: list[str]) -> bool:
    """Whether the cells are 0, 1, ... or 1, 2, ..., as integers are written."""
    return len(cells) > 0 and any(cells == [str(i + first) for i in range(len(cells))] for first in (0, 1))


def _numbered(file: TextIO) -> Iterator[tuple[int, str]]:
    """Lines that are not blank, with their numbers."""
    return ((i, line) for i, line in enumerate(file, 1) if line.strip())


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in next(csv.reader([line], skipinitialspace=True))]


def is_number(cell: str) -> bool:
    """Whether a cell of a table of text is a number, which may be infinite or nan."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _table(path: Path, lines: list[tuple[int, str]], columns: int) -> Array:
    """Lines of a CSV file as an array (rows, columns); on trouble the line is named."""
    try:
        table = np.loadtxt([line for _, line in lines], delimiter=",", ndmin=2, comments=None, quotechar='"')
        if table.shape[1] == columns:
            return table
    except ValueError:
        pass
    for number, line in lines:
        cells = _cells(line)
        if len(cells) != columns:
            raise InputError(f"source: line {number} of {path} has {len(cells)} columns, expected {columns}")
        for column, cell in enumerate(cells):
            if not is_number(cell):
                raise InputError(
                    f"source: line {number} of {path} has {cell!r} in column {column} (counted from 0), expected a "
                    "number; leave out such rows, and columns of text"
                )
    raise InputError(f"source: {path} cannot be read as numbers between lines {lines[0][0]} and {lines[-1][0]}")
