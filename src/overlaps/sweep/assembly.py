"""One labelled dataset out of all cells of a grid: dimensions of the grid, seed and scale, then those of a trajectory.

Where cells have different times, the dataset has all of them; where they have different numbers of units, levels or
runs, the largest. What a cell does not have is missing, NaN among numbers and empty among names; `status` and `reason`
say of each cell what came of it. Stated errors of a variable are in one of its own, such as `error_accuracy`. A
large dataset is on disk, and its values are read when they are used.
"""

from __future__ import annotations

import errno
import math
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from .. import __version__
from ..interface.packed import DatasetParts, parts
from .cell import PENDING
from .grid import Grid

LARGE = 200_000_000  # bytes of an array, or of all cells, that are not held in memory
START = "start_"  # what begins the names of variables that say where a cell began
Values = np.ndarray[Any, Any]
Index = tuple[int, ...]


@dataclass(frozen=True)
class Layout:
    """Where each cell is: dimensions and shape of all, with the coordinates of the grid."""

    grid: Grid
    seeds: tuple[int, ...]
    scales: tuple[str, ...]

    @property
    def dims(self) -> tuple[str, ...]:
        return (*self.grid.dims, "seed", "scale")

    @property
    def shape(self) -> tuple[int, ...]:
        return (*self.grid.shape, len(self.seeds), len(self.scales))

    @property
    def coordinates(self) -> dict[str, Any]:
        """Values of all fields that are varied, along their dimensions."""
        found: dict[str, Any] = {}
        for axis in self.grid.axes:
            labels = axis.labels(0)
            own = range(len(labels)) if axis.twice else labels
            found[axis.names[0]] = (axis.names[0], list(own), {"path": axis.paths[0]})
            for i, name in enumerate(axis.names[1:], 1):
                found[name] = (axis.names[0], axis.labels(i), {"path": axis.paths[i]})
        return {**found, "seed": list(self.seeds), "scale": list(self.scales)}


def assemble(
    layout: Layout,
    addresses: Mapping[Index, str],
    content: Callable[[str], bytes | None],
    troubles: Mapping[str, tuple[str, str]],
    folder: Path | None,
) -> xr.Dataset:
    """The dataset of all cells that are there.

    addresses: of the cell at each place. content: what came of a cell, or None. troubles: status and reason of cells
    that have no contents. folder: for what is too large for memory.
    """
    cells = _Cells(addresses, content)
    shape = _Shape()
    status = np.full(layout.shape, PENDING, dtype="<U8")
    reason = np.full(layout.shape, "", dtype=object)
    present = 0
    used: dict[str, dict[str, None]] = {"overlaps": {__version__: None}, "numpy": {}, "scipy": {}, "numba": {}}
    for index, cell in cells.all():
        if cell is None:
            status[index], reason[index] = troubles.get(addresses[index], (PENDING, ""))
            continue
        status[index], reason[index] = cell.attrs["status"], cell.attrs["reason"]
        if cell.values:
            present += 1
            shape.add(cell)
            for name in used.keys() & cell.attrs.keys():
                used[name][str(cell.attrs[name])] = None
    whole = present == len(addresses)
    arrays = {name: shape.array(name, layout.shape, whole, folder) for name in shape.variables}
    accuracies = {name: np.full(layout.shape, np.nan) for name in shape.stated}
    for index, cell in cells.all():
        if cell is None:
            continue
        for name in cell.values:
            if name in arrays:
                shape.write(arrays[name], index, name, cell)
            if name in accuracies and "accuracy" in cell.own[name]:
                accuracies[name][index] = cell.own[name]["accuracy"]
    variables: dict[str, Any] = {"status": (layout.dims, status), "reason": (layout.dims, reason.astype(str))}
    coordinates: dict[str, Any] = {**layout.coordinates, **shape.coordinates}
    for name, values in arrays.items():
        own = {key: value for key, value in shape.attrs[name].items() if key != "accuracy"}
        if name in shape.constant:
            coordinates[name] = (shape.variables[name], shape.constant[name], own)
        else:
            entry = ((*layout.dims, *shape.variables[name]), values, own)
            (coordinates if name in shape.beside else variables)[name] = entry
    variables |= {f"{name}_accuracy": (layout.dims, values) for name, values in accuracies.items()}
    return xr.Dataset(variables, coordinates, {name: ", ".join(found) for name, found in used.items() if found})


def _on_disk(folder: Path, kind: np.dtype[Any], shape: tuple[int, ...], fill: float) -> Values:
    """An array in a file that has no name, and is gone with the last use of it, however that ends."""
    block = np.full(min(math.prod(shape), 1_000_000), fill, kind)
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            for begin in range(0, math.prod(shape), block.size):
                # written, for a map of a file that the disk has no room for would end the process
                file.write(block[: math.prod(shape) - begin].tobytes())
            file.flush()
            return np.memmap(file, kind, "r+", shape=shape)
    except OSError as error:
        reason = f"{error.strerror or error}; there is no room for an array of the dataset"
        raise OSError(error.errno or errno.EIO, reason, str(folder)) from None


class _Cells:
    """The cells of a grid one by one, in memory if they fit."""

    def __init__(self, addresses: Mapping[Index, str], content: Callable[[str], bytes | None]) -> None:
        self.addresses, self.content = addresses, content
        self.held: dict[str, DatasetParts | None] = {}
        self.bytes = 0

    def all(self) -> Iterator[tuple[Index, DatasetParts | None]]:
        """Each place and its cell; one that was not there the first time is not there the second time either."""
        for index, address in self.addresses.items():
            if address in self.held:
                yield index, self.held[address]
                continue
            content = self.content(address)
            cell = None if content is None else parts(content)
            if cell is None or self.bytes < LARGE:
                self.held[address] = cell
                self.bytes += len(content or b"")
            yield index, cell


class _Shape:
    """Dimensions of all variables, and what is needed to put each cell into its place."""

    def __init__(self) -> None:
        self.variables: dict[str, tuple[str, ...]] = {}
        self.attrs: dict[str, dict[str, Any]] = {}
        self.kinds: dict[str, np.dtype[Any]] = {}
        self.lengths: dict[str, int] = {}
        self.ragged: set[str] = set()  # dimensions that are not as long in all cells
        self.points: dict[str, Values] = {}  # coordinates of dimensions that have them
        self.beside: set[str] = set()  # coordinates that are not those of a dimension
        self.constant: dict[str, Values] = {}  # those of them that are the same in all cells
        self.stated: list[str] = []  # variables with a stated error
        self.counts: dict[str, int] = {}
        self.cells = 0

    def add(self, cell: DatasetParts) -> None:
        """Make room for a cell."""
        self.cells += 1
        for name, dims in cell.dims.items():
            if name.startswith(START):
                continue
            for dim, length in zip(dims, cell.values[name].shape, strict=True):
                if self.lengths.setdefault(dim, length) != length:
                    self.ragged.add(dim)
                    self.lengths[dim] = max(length, self.lengths[dim])
            if dims == (name,):
                self._join(name, cell.values[name])
                self.attrs.setdefault(name, cell.own[name])
                continue
            self.variables.setdefault(name, dims)
            self.attrs.setdefault(name, cell.own[name])
            self.counts[name] = self.counts.get(name, 0) + 1
            kind: np.dtype[Any] = cell.values[name].dtype
            self.kinds[name] = np.promote_types(self.kinds[name], kind) if name in self.kinds else kind
            if cell.is_coordinate[name]:
                self._beside(name, cell.values[name])
            if "accuracy" in cell.own[name] and name not in self.stated:
                self.stated.append(name)

    def _join(self, dim: str, points: Values) -> None:
        """All coordinates of a dimension that cells have: numbers in order, names as they came."""
        known = self.points.get(dim)
        if known is None:
            self.points[dim] = points
        elif not np.array_equal(known, points):
            self.ragged.add(dim)
            joined = np.union1d(known, points)
            if points.dtype.kind not in "fiu":
                joined = np.array([*known, *(p for p in points if p not in known)])
            self.points[dim] = joined
        self.lengths[dim] = len(self.points[dim])

    def _beside(self, name: str, values: Values) -> None:
        first = name not in self.beside
        self.beside.add(name)
        if first:
            self.constant[name] = values
        elif name in self.constant and not np.array_equal(self.constant[name], values):
            del self.constant[name]

    @property
    def coordinates(self) -> dict[str, Any]:
        return {dim: (dim, points, self.attrs[dim]) for dim, points in self.points.items()}

    def array(self, name: str, cells: tuple[int, ...], whole: bool, folder: Path | None) -> Values:
        """An empty place for a variable of all cells."""
        if name in self.constant and self.counts[name] < self.cells:
            del self.constant[name]
        dims, kind = self.variables[name], self.kinds[name]
        shape = (*cells, *(self.lengths[dim] for dim in dims))
        full = whole and self.counts[name] == self.cells and not self.ragged.intersection(dims)
        if kind.kind in "USO":
            return np.full(shape, "", kind)
        if not full and kind.kind in "iub":
            kind = np.dtype(float)
        fill = np.nan if kind.kind == "f" else 0
        if folder is None or kind.itemsize * np.prod(shape, dtype=float) < LARGE:
            return np.full(shape, fill, kind)
        return _on_disk(folder, kind, shape, fill)

    def write(self, into: Values, index: Index, name: str, cell: DatasetParts) -> None:
        """Put a variable of a cell into its place."""
        values, dims = cell.values[name], cell.dims[name]
        if not self.ragged.intersection(dims):
            into[index] = values
            return
        into[index][np.ix_(*(self._places(dim, n, cell) for dim, n in zip(dims, values.shape, strict=True)))] = values

    def _places(self, dim: str, length: int, cell: DatasetParts) -> Values:
        if dim not in self.points or dim not in cell.values:
            return np.arange(length)
        points, own = self.points[dim], cell.values[dim]
        if points.dtype.kind in "fiu":
            return np.searchsorted(points, own)
        return np.array([int(np.flatnonzero(points == each)[0]) for each in own], int)
