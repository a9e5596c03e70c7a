"""The type that Numba sees of a function known by name: equal for equal names, whichever process made it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numba.core import types
from numba.core.datamodel import models
from numba.extending import register_model

if TYPE_CHECKING:
    from .named import Named


class NamedType(types.Dispatcher):
    """The Numba type of a `Named`."""

    def __init__(self, function: Named) -> None:
        self.function = function
        words = function.make.__module__, function.make.__qualname__, *map(str, function.names)
        types.Type.__init__(self, f"Named({', '.join(words)})")

    @property
    def key(self) -> Any:
        return self.name

    @property
    def dispatcher(self) -> Any:
        """The function itself; made only where something has to be compiled with it."""
        return self.function.function

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NamedType) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __reduce__(self) -> Any:
        return NamedType, (self.function,)


register_model(NamedType)(models.OpaqueModel)
