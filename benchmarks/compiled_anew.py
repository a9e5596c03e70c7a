"""Which compiled functions hold the code of another, so that a change of it is seen by compiling them anew.

A compiled function contains what it calls, and kept code belongs to a hash of the sources, which a function that is
changed in memory does not change. So before anything is compiled, all that reach the changed function by names in their
code are told to keep and to find nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

from numba.core.caching import NullCache
from numba.core.dispatcher import Dispatcher

from overlaps.compiled.functions import Loop


def compiled() -> list[tuple[Any, bool]]:
    """The dispatchers of all imported modules of the library, and whether they are given functions to call."""
    values = [value for module in _modules() for value in vars(module).values()]
    plain = [(value, False) for value in values if isinstance(value, Dispatcher)]
    return plain + [(each, True) for value in values if isinstance(value, Loop) for each in (value.kept, value.passing)]


def anew(function: FunctionType) -> int:
    """Switch off kept code of every compiled function that holds this one; how many these are."""
    known = compiled()
    whole = any(function in reached(maker) for maker in _makers())
    holders = [each for each, given in known if (given and whole) or function in reached(each.py_func)]
    for each in holders:
        assert not each.signatures, f"{each} is compiled already"
        each._cache = NullCache()
    return len(holders)


def reached(function: FunctionType) -> set[FunctionType]:
    """The function itself, and all functions that it calls by name, and that these call."""
    found, left = {function}, [function]
    while left:
        for each in _called(left.pop()):
            if each not in found:
                found.add(each)
                left.append(each)
    return found


def _modules() -> list[ModuleType]:
    return [module for name, module in sorted(sys.modules.items()) if name.startswith("overlaps.")]


def _makers() -> list[FunctionType]:
    """Functions that compile others when they are called, which loops are then given."""
    plain = {value for module in _modules() for value in vars(module).values() if isinstance(value, FunctionType)}
    return [each for each in plain if each.__module__.startswith("overlaps.") and "njit" in _names(each.__code__)]


def _names(code: CodeType) -> set[str]:
    inner = (_names(each) for each in code.co_consts if isinstance(each, CodeType))
    return set(code.co_names).union(*inner)


def _called(function: FunctionType) -> Iterator[FunctionType]:
    names = _names(function.__code__)
    values = [function.__globals__[name] for name in names if name in function.__globals__]
    values += [cell.cell_contents for cell in function.__closure__ or ()]
    for value in values:
        if isinstance(value, ModuleType) and value.__name__.startswith("overlaps"):
            inner = [getattr(value, name) for name in names if hasattr(value, name)]
        else:
            inner = list(value) if isinstance(value, (tuple, list)) else [value]
        yield from (plain for each in inner if isinstance(plain := _plain(each), FunctionType))


def _plain(value: Any) -> Any:
    return value.py_func if isinstance(value, Dispatcher) else value.__wrapped__ if isinstance(value, Loop) else value
