"""Compiled functions known by name, which code kept on disk can distinguish (see `overlaps.compiled`)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, cached_property
from typing import Any


class Named:
    """A compiled function known by what makes it, ``make(*names)``; made by `named`."""

    def __init__(self, make: Callable[..., Any], names: tuple[str | None, ...]) -> None:
        self.make, self.names = make, names

    @cached_property
    def function(self) -> Any:
        """The compiled function itself."""
        return self.make(*self.names)

    @cached_property
    def _numba_type_(self) -> Any:
        """How Numba asks for the type of an argument."""
        from .named_type import NamedType

        return NamedType(self)

    def __reduce__(self) -> Any:
        return named, (self.make, *self.names)

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments)


@cache
def named(make: Callable[..., Any], *names: str | None) -> Named:
    """The function that `make`, a function of a module, gives for these words: the same one in every process."""
    return Named(make, names)
