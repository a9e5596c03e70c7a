"""Specs: frozen dataclasses to TOML and back, through the dataclasses' own checks.

A nested object becomes a table whose ``kind`` is its class name; a field at its default is left out.
There is no second set of configuration classes: reading a spec calls the same constructors as Python does.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

import tomli_w

from .errors import InputError, shown, unknown

Roles = Mapping[str, tuple[type, ...]]


def to_mapping(thing: Any) -> dict[str, Any]:
    """A dataclass as plain values and tables, without the fields that hold their default."""
    table: dict[str, Any] = {}
    for f in fields(thing):
        value = getattr(thing, f.name)
        default = f.default_factory() if f.default_factory is not MISSING else f.default
        if is_dataclass(value) and not isinstance(value, type):
            if callable(getattr(value, "function", None)) or callable(getattr(value, "value", None)):
                raise InputError(
                    f"{f.name}: {value!r} is made of Python functions and cannot be written to TOML; "
                    "keep this problem in Python"
                )
            table[f.name] = {"kind": type(value).__name__, **to_mapping(value)}
        elif hasattr(value, "__array__"):
            raise InputError(
                f"{f.name}: an array cannot be written to TOML; save it with numpy.save and give the path, or keep "
                "this problem in Python"
            )
        elif isinstance(value, tuple):
            table[f.name] = list(value)
        elif value is not None and (default is MISSING or value != default):
            table[f.name] = value
    return table


def from_mapping(cls: type, table: Any, roles: Roles, where: str = "spec") -> Any:
    """Build `cls` from a table; `roles` says which classes may stand in a field of that name."""
    if not isinstance(table, Mapping):
        raise InputError(f"{where}: expected a table, got {shown(table)}")
    known = {f.name: f for f in fields(cls)}
    arguments: dict[str, Any] = {}
    for name, value in table.items():
        if name not in known:
            raise unknown(f"field in {where}", name, known)
        if name in roles and isinstance(value, Mapping):
            options = {kind.__name__: kind for kind in roles[name]}
            inner = dict(value)
            takes = [kind for kind in roles[name] if set(inner) <= {f.name for f in fields(kind)}]
            usual = roles[name][0]  # may be left unnamed, unless it is another one that takes these fields
            kind = inner.pop("kind", usual.__name__ if usual in takes or not takes else None)
            if kind is None:
                raise InputError(f"{where}.{name}: needs kind = one of {', '.join(options)}")
            if not isinstance(kind, str) or kind not in options:
                raise unknown(f"kind in {where}.{name}", str(kind), options)
            arguments[name] = from_mapping(options[kind], inner, roles, f"{where}.{name}")
        else:
            arguments[name] = value
    missing = [
        n for n, f in known.items() if n not in arguments and f.default is MISSING and f.default_factory is MISSING
    ]
    if missing:
        raise InputError(f"{where}: {cls.__name__} needs {', '.join(missing)}")
    try:
        return cls(**arguments)
    except InputError as error:
        # the innermost table that failed is the one to name
        raise error if str(error).startswith("spec") else InputError(f"{where}: {error}") from None


def parse(text: str) -> dict[str, Any]:
    """TOML text to a mapping."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # integers of thousands of digits and deep nesting, besides its own
        raise InputError(f"spec: not valid TOML: {error}") from None


def write(table: Mapping[str, Any]) -> str:
    """A mapping of plain values and tables as TOML text."""
    try:
        return tomli_w.dumps(table)
    except TypeError:
        where, value = next(_unwritable(table))
        raise InputError(f"spec: {where} = {value!r:.80} cannot be written as TOML") from None


def _unwritable(value: Any, where: str = "") -> Iterator[tuple[str, Any]]:
    """The values in a table that TOML has no words for, each with its place, such as ``data.weights[1]``."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _unwritable(inner, f"{where}.{name}" if where else f"{name}")
    elif isinstance(value, (list, tuple)):
        for i, inner in enumerate(value):
            yield from _unwritable(inner, f"{where}[{i}]")
    elif not isinstance(value, (bool, int, float, str)):
        yield where, value
