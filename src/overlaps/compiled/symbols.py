"""`njit` of Numba, with names of compiled code that no other process uses.

Numba tells functions of one name and one signature apart by a number that starts at one in every process, and the
number is part of the symbol in the machine code. Code that is kept on disk by several processes and loaded into another
may then hold two functions under one symbol, of which the first one loaded answers for both. So numbers start anywhere
among 2⁴⁸ here. Everything in this package compiles through this module; where Numba numbers functions otherwise,
`KEEPS` is False, and no code is kept.
"""

from __future__ import annotations

import itertools
import secrets

from numba import njit, vectorize

try:
    from numba.core.bytecode import FunctionIdentity

    KEEPS = isinstance(FunctionIdentity._unique_ids, itertools.count)
    if KEEPS:
        FunctionIdentity._unique_ids = itertools.count(secrets.randbits(48))
except (ImportError, AttributeError):
    KEEPS = False

__all__ = ["KEEPS", "njit", "vectorize"]
