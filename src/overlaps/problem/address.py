"""Content addresses: what a cell computes decides its name, so that nothing is computed twice and nothing is mistaken.

    address = sha256(sources of the library ‖ problem ‖ start ‖ seed ‖ scale ‖ times ‖ options)

Values are written out by what they are made of: numbers by their digits, arrays by their bytes, frozen dataclasses by
their fields, functions by their code, what it closes over and what it calls.

>>> import overlaps as ov
>>> first, second = ov.OnlineSGD(rate=0.5), ov.OnlineSGD(rate=1 / 2)
>>> address(first) == address(second), address(first) == address(ov.OnlineSGD(rate=0.25))
(True, False)
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache, partial
from hashlib import sha256
from pathlib import PurePath
from typing import Any

import numpy as np

from .. import __version__
from ..compiled.code_cache import sources
from ..interface.errors import InputError


@cache
def version() -> str:
    """This library as it is: its version, and a hash of its sources."""
    return f"{__version__} {sources()}"


def address(*values: Any) -> str:
    """The name of what these values determine, 64 hexadecimal digits."""
    digest = sha256()
    for value in values:
        for part in _written(value, ()):
            digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()


def _written(value: Any, above: tuple[int, ...]) -> Iterator[bytes]:
    """A value as pieces of bytes that no other value has; `above` are the functions that it is part of."""
    kind = type(value)
    if value is None or kind in (bool, int, str, bytes, complex):
        yield f"{kind.__name__} {value!r}".encode()
    elif isinstance(value, (float, np.floating)):
        yield f"float {float(value).hex()}".encode()
    elif isinstance(value, (np.bool_, np.integer)):
        yield f"{type(value.item()).__name__} {value.item()!r}".encode()
    elif isinstance(value, np.ndarray) and value.dtype != object:
        yield f"array {value.dtype.str} {value.shape}".encode()
        yield np.ascontiguousarray(value).tobytes()
    elif isinstance(value, (list, tuple)):
        yield f"list {len(value)}".encode()
        for part in value:
            yield from _written(part, above)
    elif isinstance(value, Mapping):
        yield f"mapping {len(value)}".encode()
        for name in sorted(value, key=str):
            yield str(name).encode()
            yield from _written(value[name], above)
    elif isinstance(value, (PurePath, type, types.ModuleType, types.BuiltinFunctionType, np.ufunc)):
        yield f"{kind.__name__} {getattr(value, '__module__', '')} {getattr(value, '__qualname__', value)}".encode()
    elif is_dataclass(value):
        yield f"{kind.__module__}.{kind.__qualname__}".encode()
        for field in fields(value):
            if field.compare or not getattr(value, "digest", ""):  # a digest speaks for what is not compared
                yield field.name.encode()
                yield from _written(getattr(value, field.name), above)
    elif isinstance(value, partial):
        yield from _written(("partial", value.func, value.args, value.keywords), above)
    elif isinstance(function := getattr(value, "py_func", value), types.FunctionType):
        yield from _function(function, above)
    else:
        raise InputError(
            f"store: {' '.join(repr(value).split()):.80} has no address: what it computes cannot be told from what it "
            "is made of; use numbers, arrays, dataclasses and plain functions, or leave store out"
        )


def _function(function: types.FunctionType, above: tuple[int, ...]) -> Iterator[bytes]:
    if id(function) in above:  # it calls itself
        yield b"again"
        return
    above = (*above, id(function))
    yield b"function"
    yield from _code(function.__code__)
    closed = [cell.cell_contents for cell in function.__closure__ or ()]
    yield from _written([function.__defaults__, function.__kwdefaults__, closed], above)
    for name in _names(function.__code__):
        if name in function.__globals__:
            yield name.encode()
            yield from _written(function.__globals__[name], above)


def _code(code: types.CodeType) -> Iterator[bytes]:
    yield code.co_code
    yield repr((code.co_names, code.co_varnames, code.co_argcount, code.co_flags)).encode()
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _code(constant)
        else:
            yield repr(constant).encode()


def _names(code: types.CodeType) -> list[str]:
    """Names that code, and the code within it, may read from outside of itself."""
    inner = [name for constant in code.co_consts if isinstance(constant, types.CodeType) for name in _names(constant)]
    return sorted({*code.co_names, *inner})
