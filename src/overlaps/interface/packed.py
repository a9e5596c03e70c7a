"""Datasets as compact bytes: the arrays of an .npz archive, which NumPy reads, and all names in one of them.

A netCDF file takes some 0.1 s to write and as long to read, most of it for names and attributes. A store of thousands
of small results keeps them in this form, which takes less than 1 ms.

>>> import xarray as xr
>>> data = xr.Dataset({"error": ("time", [0.5, 0.25], {"accuracy": 1e-9})}, {"time": [0.0, 1.0]}, {"scale": "macro"})
>>> unpack(pack(data)).identical(data)
True
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import xarray as xr

ABOUT = "about"  # the array that holds names, dimensions and attributes, as JSON
Plain = tuple[tuple[str, ...], np.ndarray[Any, Any]]  # dimensions and values of a variable without attributes
ZIP = b"PK\x03\x04"  # what such bytes begin with


class DatasetParts(NamedTuple):
    """What a packed dataset is made of.

    attrs: of the dataset. dims, own, is_coordinate, values: of each variable, by its name; own are its attributes.
    """

    attrs: dict[str, Any]
    dims: dict[str, tuple[str, ...]]
    own: dict[str, dict[str, Any]]
    is_coordinate: dict[str, bool]
    values: dict[str, np.ndarray[Any, Any]]


def pack(dataset: xr.Dataset, attrs: Mapping[str, Any] = {}, more: Mapping[str, Plain] = {}) -> bytes:
    """A dataset as bytes, the same for equal datasets.

    attrs, more: attributes and variables besides its own, which would take longer to be put into the dataset.
    """
    coords = dataset.coords
    variables = {str(n): (v.dims, v.values, v.attrs, n in coords) for n, v in dataset.variables.items()}
    variables |= {name: (dims, values, {}, False) for name, (dims, values) in more.items()}
    about = {
        "attrs": {**dataset.attrs, **attrs},
        "variables": [[name, list(dims), own, beside] for name, (dims, _, own, beside) in variables.items()],
    }
    text = json.dumps(about, ensure_ascii=False, default=_plain)
    arrays = {f"v{i}": _storable(values) for i, (_, values, *_) in enumerate(variables.values())}
    buffer = io.BytesIO()
    np.savez(buffer, **{ABOUT: np.frombuffer(text.encode(), np.uint8)}, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


def attributes(content: bytes) -> dict[str, Any]:
    """Those of a packed dataset, without reading the rest."""
    with np.load(io.BytesIO(content)) as archive:
        return json.loads(archive[ABOUT].tobytes().decode())["attrs"]


def parts(content: bytes) -> DatasetParts:
    """The parts of a packed dataset, for those who need not pay for the dataset."""
    with np.load(io.BytesIO(content)) as archive:
        about = json.loads(archive[ABOUT].tobytes().decode())
        found = DatasetParts(about["attrs"], {}, {}, {}, {})
        for i, (name, dims, attrs, is_coordinate) in enumerate(about["variables"]):
            found.dims[name], found.own[name], found.is_coordinate[name] = tuple(dims), attrs, is_coordinate
            found.values[name] = archive[f"v{i}"]
    return found


def unpack(content: bytes) -> xr.Dataset:
    """The dataset that was packed."""
    import xarray as xr

    attrs, dims, own, is_coordinate, values = parts(content)
    variables = {name: (dims[name], values[name], own[name]) for name in values}
    data = {name: value for name, value in variables.items() if not is_coordinate[name]}
    return xr.Dataset(data, {name: value for name, value in variables.items() if is_coordinate[name]}, attrs)


def _storable(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Text as text of fixed length: objects would have to be pickled."""
    return values.astype(str) if values.dtype == object else values


def _plain(value: Any) -> Any:
    """Numbers and arrays of NumPy in attributes, as JSON takes them."""
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else str(value)
