"""Checks of single values, so that every field is refused in the same words."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import InputError


def number(name: str, value: Any, *, above: float | None = None, least: float | None = None) -> float:
    """`value` as a finite float, optionally bounded below."""
    try:
        if isinstance(value, (bool, str, bytes)):
            raise TypeError
        result = float(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name}: expected a number, got {value!r}") from None
    if not math.isfinite(result):
        raise InputError(f"{name}: expected a finite number, got {result}")
    if above is not None and not result > above:
        raise InputError(f"{name}: expected a number above {above:g}, got {result:g}")
    if least is not None and not result >= least:
        raise InputError(f"{name}: expected a number of at least {least:g}, got {result:g}")
    return result


def whole(name: str, value: Any, *, least: int, most: int = 2**63 - 1) -> int:
    """`value` as an integer between `least` and `most`."""
    integral = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not integral and not (isinstance(value, (float, np.floating)) and float(value).is_integer()):
        raise InputError(f"{name}: expected a whole number, got {value!r}")
    result = int(value)
    if result < least:
        raise InputError(f"{name}: expected at least {least}, got {result}")
    if result > most:
        raise InputError(f"{name}: expected at most {most}, got {result}")
    return result


def kinks(value: Any) -> tuple[float, ...]:
    """Places where a function of one number is not smooth: one of them, or several."""
    places = value if isinstance(value, Iterable) else (value,)
    return tuple(number(f"kinks[{i}]", place) for i, place in enumerate(places))


def array(name: str, value: ArrayLike, shape: tuple[int | None, ...] | None) -> NDArray[np.float64]:
    """`value` as a finite float array of the given shape; ``None`` stands for any length, or any shape."""
    try:
        if np.iscomplexobj(value):
            raise TypeError
        result = np.array(value, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name}: expected an array of finite numbers, got {value!r:.80}") from None
    if shape is None:
        shape = result.shape
    matches = result.ndim == len(shape) and all(want in (None, n) for want, n in zip(shape, result.shape, strict=True))
    if not matches:
        wanted = ", ".join("any" if n is None else str(n) for n in shape)
        raise InputError(f"{name}: expected shape ({wanted}), got {result.shape}")
    if not np.all(np.isfinite(result)):
        raise InputError(f"{name}: has entries that are not finite")
    return result


def positive(name: str, value: ArrayLike, size: int) -> NDArray[np.float64]:
    """`value` as a symmetric matrix (size, size) without negative eigenvalues, but for rounding."""
    matrix = array(name, value, (size, size))
    if not np.allclose(matrix, matrix.T, rtol=1e-9, atol=1e-12 * max(1.0, float(np.abs(matrix).max(initial=0.0)))):
        raise InputError(f"{name}: expected a symmetric matrix")
    low = float(np.linalg.eigvalsh(matrix).min(initial=0.0))
    if low < -1e-10 * max(1.0, float(np.trace(matrix))):
        raise InputError(f"{name}: expected a positive symmetric matrix, its lowest eigenvalue is {low:.3g}")
    return matrix


def grid(times: ArrayLike | None) -> NDArray[np.float64]:
    """Times of a trajectory: finite, not negative, increasing."""
    if times is None:
        raise InputError("times: expected increasing times, in samples per input dimension (see logtimes), got none")
    result = array("times", times, None)
    result = array("times", result.reshape(1) if result.ndim == 0 else result, (None,))
    if result.size == 0:
        raise InputError("times: expected at least one time, got none")
    if result[0] < 0:
        raise InputError(f"times: expected times of at least 0, got {result[0]:g}")
    if np.any(np.diff(result) <= 0):
        raise InputError("times: expected increasing times; use numpy.unique to sort and merge them")
    return result


def steps(last: float, size: int) -> int:
    """Number of SGD steps to time `last`, refused where nobody would see the end."""
    if last * size > 1e13:
        raise InputError(
            f"times: {last:g} at size {size} is {last * size:.1e} steps; use a smaller time or size, or macro"
        )
    return int(np.ceil(last * size - 1e-9))


def new_folder(name: str, path: str | os.PathLike[str]) -> Path:
    """Make a folder that was not there before: results are never overwritten."""
    folder = Path(path)
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise InputError(f"{name}: {folder} exists already; name a new folder, results are never overwritten") from None
    except OSError as error:
        raise InputError(f"{name}: cannot make the folder {folder} ({error.strerror})") from None
    return folder
