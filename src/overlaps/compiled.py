"""Compiled code that a later process finds on disk.

The loops over samples and nodes take the function they call at each, the gradient of a loss say, as an argument, and
Numba compiles them anew for every such function. What it compiles for one process is of no use to the next: functions
are told apart by their identity, and a new process has new ones. A function made of what the library knows by name is
the same function in every process, so it is passed as a `named.Named`, whose type is its name; `loop` then keeps the
code it was compiled into. Functions of a user's own have no name to go by, and their code is not kept.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from numba import njit
from numba.core import types
from numba.core.datamodel import models
from numba.extending import register_model

Own = type(njit(lambda: None))  # of functions compiled from a user's own


@cache
def sources() -> str:
    """A hash of all files that compute: whatever a loop calls, code kept on disk is never older than its source."""
    here = Path(__file__).parent
    files = sorted(file for file in here.rglob("*.py") if "papers" not in file.relative_to(here).parts)
    return sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]


class NamedType(types.Dispatcher):
    """The Numba type of a `Named`: equal for equal names and sources, whichever process made it."""

    def __init__(self, make: Callable[..., Any], names: tuple[str | None, ...], version: str) -> None:
        self.make, self.names = make, names
        words = (make.__module__, make.__qualname__, *map(str, names), version)
        types.Type.__init__(self, f"Named({', '.join(words)})")

    @property
    def key(self) -> Any:
        return self.name

    @property
    def dispatcher(self) -> Any:
        """The function itself; made only where something has to be compiled with it."""
        return self.make(*self.names)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NamedType) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __reduce__(self) -> Any:
        return NamedType, (self.make, self.names, self.name.rsplit(", ", 1)[1][:-1])


register_model(NamedType)(models.OpaqueModel)


class Loop:
    """A compiled function that is given functions to call; its code is kept where all of these are `Named`."""

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        self.kept, self.passing = njit(cache=True, **options)(function), njit(**options)(function)
        self.__doc__, self.__wrapped__ = function.__doc__, function

    def __call__(self, *arguments: Any) -> Any:
        own = Own in map(type, arguments)  # some loops are short: this takes half a microsecond
        return (self.passing if own else self.kept)(*arguments)


def loop(**options: Any) -> Callable[[Callable[..., Any]], Loop]:
    """Decorator: compile with these options of Numba, see `Loop`."""
    return lambda function: Loop(function, **options)
