"""Checks of single values, so that every field is refused in the same words."""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Callable, Iterable, Mapping
from functools import cache, wraps
from pathlib import Path
from typing import Any, Literal, TypeVar, cast, get_origin

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import InputError, shown

DEPTH = 64  # dimensions that an array of NumPy may have
HOLDERS = (list, tuple, np.ndarray)
NOT_NUMBERS = (bool, np.bool_, str, bytes, complex, np.complexfloating, np.datetime64, np.timedelta64)


def has_masked(value: Any) -> bool:
    """Whether an entry is masked: of a masked array, or of one that stands in lists or in an array of objects.

    Whoever makes an array of such a list unmasks it in silence.
    """
    level = [value] if isinstance(value, HOLDERS) else []
    for _ in range(DEPTH):
        if not level:
            return False
        if any(np.ma.is_masked(each) for each in level if isinstance(each, np.ma.MaskedArray)):
            return True
        inner = {id(entry): entry for each in level for entry in _entries(each) if isinstance(entry, HOLDERS)}
        level = list(inner.values())  # each once, for a list may hold itself
    return False


def _entries(value: Any) -> Iterable[Any]:
    """What else may hold masked entries in a list or an array."""
    if isinstance(value, np.ndarray):
        return value.flat if value.dtype == object else ()
    return value


def number(name: str, value: Any, *, above: float | None = None, least: float | None = None) -> float:
    """`value` as a finite float, optionally bounded below."""
    try:
        if isinstance(value, NOT_NUMBERS) or getattr(value, "ndim", 0) != 0 or np.ma.is_masked(value):
            raise TypeError
        if getattr(getattr(value, "dtype", None), "kind", "f") not in "iuf":  # of an array without dimensions
            raise TypeError
        result = float(value)
    except Exception:  # whatever objects of others raise when they are asked for a number
        raise InputError(f"{name}: expected a number, got {shown(value)}") from None
    if not math.isfinite(result):
        raise InputError(f"{name}: expected a finite number, got {result}")
    if above is not None and not result > above:
        raise InputError(f"{name}: expected a number above {above:g}, got {result:g}")
    if least is not None and not result >= least:
        raise InputError(f"{name}: expected a number of at least {least:g}, got {result:g}")
    return result


def whole(name: str, value: Any, *, least: int, most: int = 2**63 - 1) -> int:
    """`value` as an integer between `least` and `most`."""
    integral = isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.timedelta64))
    if not integral and not (isinstance(value, (float, np.floating)) and float(value).is_integer()):
        raise InputError(f"{name}: expected a whole number, got {shown(value)}")
    result = int(value)
    if result < least:
        raise InputError(f"{name}: expected at least {least}, got {shown(result)}")
    if result > most:
        raise InputError(f"{name}: expected at most {most}, got {shown(result)}")
    return result


def listed(name: str, value: Any, of: str) -> list[Any]:
    """`value` as a list of its entries; text, mappings, masked entries and what has no entries are refused."""
    try:
        if isinstance(value, (str, bytes, Mapping)) or has_masked(value):
            raise TypeError
        return list(value)
    except MemoryError:
        raise
    except Exception:  # whatever objects of others raise when they are asked for their entries
        raise InputError(f"{name}: expected a list of {of}, got {shown(value)}") from None


def kinks(value: Any) -> tuple[float, ...]:
    """Places where a function of one number is not smooth: one of them, or several."""
    places = listed("kinks", value, "numbers") if isinstance(value, Iterable) else (value,)
    return tuple(number(f"kinks[{i}]", place) for i, place in enumerate(places))


def numbers(name: str, value: Any) -> NDArray[np.float64]:
    """`value` as an array of doubles of its own; text, dates, complex numbers and masked entries are refused."""
    if has_masked(value):
        raise InputError(f"{name}: has masked entries; leave them out, or fill the gaps")
    try:
        given = np.asarray(value)
        if given.dtype.kind not in "biufO":
            raise TypeError
        with np.errstate(over="ignore"):  # of long doubles; found where entries must be finite
            result = np.array(given, dtype=float)
        if given.dtype.kind == "O" and any(isinstance(entry, NOT_NUMBERS) for entry in given.flat):
            raise TypeError
    except MemoryError:
        raise
    except Exception:  # whatever objects of others raise when they are made an array
        raise InputError(f"{name}: expected an array of finite numbers, got {shown(value)}") from None
    return result


def array(name: str, value: ArrayLike, shape: tuple[int | None, ...] | None) -> NDArray[np.float64]:
    """`value` as a finite float array of the given shape; ``None`` stands for any length, or any shape."""
    result = numbers(name, value)
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
        raise InputError("times: expected increasing times, in steps per input dimension (see logtimes), got none")
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
    """Number of SGD steps to time `last`; more than 10¹³ of them, which would take months, are refused."""
    if last * size > 1e13:
        raise InputError(
            f"times: {last:g} at size {size} is {last * size:.1e} steps; use a smaller time or size, or macro"
        )
    return int(np.ceil(last * size - 1e-9))


def new_folder(name: str, path: str | os.PathLike[str]) -> Path:
    """Make a folder that was not there before: results are never overwritten."""
    folder = path_to(name, path)
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise InputError(f"{name}: {folder} exists already; name a new folder, results are never overwritten") from None
    except OSError as error:
        raise InputError(f"{name}: cannot make the folder {folder} ({error.strerror})") from None
    return folder


def folder_for(name: str, path: str | os.PathLike[str]) -> Path:
    """A folder that results are written into, made if it is not there."""
    folder = path_to(name, path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{name}: cannot make the folder {shown(str(folder))} ({error.strerror})") from None
    return folder


Function = TypeVar("Function", bound=Callable[..., Any])


def checked(function: Function) -> Function:
    """Let a public function refuse arguments that are not of the kind that its signature says, by their names.

    What is checked is what an annotation names: classes of this library, ``str``, ``bool``, paths, axes and
    ``ArrayLike``, which must hold real numbers that are not masked. Numbers, shapes and what arguments mean to each
    other are the business of the function itself. A union with a part that is none of these is not checked.
    """
    parameters = inspect.signature(function).parameters
    names = list(parameters)

    @cache
    def kinds() -> dict[str, tuple[Any, ...]]:
        checks = {}
        for name, parameter in parameters.items():
            parts = [part.strip() for part in str(parameter.annotation).split("|")]
            found = [_kind(part, function.__globals__) for part in parts]
            if None not in found:
                checks[name] = tuple(found)
        return checks

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        for name, value in (*zip(names, args, strict=False), *kwargs.items()):
            if name in kinds():
                _check(name, value, kinds()[name])
        return function(*args, **kwargs)

    return cast(Function, call)


PATH = (str, os.PathLike)
AXES = "axes of Matplotlib"
KINDS = {"None": type(None), "Axes": AXES, "str": str, "bool": (bool, np.bool_), "os.PathLike[str]": PATH, "Path": PATH}


def _kind(part: str, names: dict[str, Any]) -> Any:
    """What stands for a part of an annotation in `_check`, or None if it is not one that is checked."""
    if part in ("ArrayLike", *KINDS):
        return KINDS.get(part, part)
    thing: Any = names.get(part)
    if get_origin(thing) is Literal:
        return str
    if isinstance(thing, type) and thing.__module__.startswith("overlaps"):
        return thing
    return None


def _check(name: str, value: Any, kinds: tuple[Any, ...]) -> None:
    classes = tuple(kind for kind in kinds if not isinstance(kind, str))
    if AXES in kinds and hasattr(value, "pcolormesh"):  # which need not be imported to be known
        return
    if isinstance(value, classes):
        if isinstance(value, str) and PATH in kinds:
            path_to(name, value)
        return
    if "ArrayLike" in kinds:
        numbers(name, value)
        return
    words = {type(None): "None", str: "text", (bool, np.bool_): "true or false", PATH: "a path", AXES: AXES}
    wanted = dict.fromkeys(words.get(kind) or f"an overlaps.{kind.__name__}" for kind in kinds)
    raise InputError(f"{name}: expected {' or '.join(wanted)}, got {shown(value)}")


def path_to(name: str, value: Any) -> Path:
    """`value` as a path that can be looked up."""
    if not isinstance(value, PATH) or "\0" in os.fspath(value) or not os.fspath(value):
        raise InputError(f"{name}: expected a path, got {shown(value)}")
    return Path(value)
