"""`njit` of Numba, with names of compiled code that no other process uses.

Numba tells functions of one name and one signature apart by a number that starts at one in every process, and the
number is part of the symbol in the machine code. Code that is kept on disk by several processes and loaded into another
may then hold two functions under one symbol, of which the first one loaded answers for both. So every process begins to
count at a random number below 2⁴⁸. Everything in this package compiles through this module; where Numba numbers
functions otherwise, `KEEPS` is False, and no code is kept.
"""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Callable
from typing import Any

from numba import njit, vectorize

try:
    from numba.core.bytecode import FunctionIdentity

    KEEPS = isinstance(FunctionIdentity._unique_ids, itertools.count)
    if KEEPS:
        FunctionIdentity._unique_ids = itertools.count(secrets.randbits(48))
except (ImportError, AttributeError):
    KEEPS = False


def inlined(function: Callable[..., Any]) -> Any:
    """Decorator: compile a function that is called in every step of a loop into the loop itself.

    It must allocate nothing and return no array, since references to arrays are not counted in it: counting those of
    its arguments, and handing them over, is a quarter of the time of a step of the overlap chain (`make bench`).
    """
    options: dict[str, Any] = {"forceinline": True, "_nrt": False}
    return njit(**options)(function)


__all__ = ["KEEPS", "inlined", "njit", "vectorize"]
