"""Folders that list their own files: what every module of a folder defines, by name.

Each activation, loss, data model, schedule, algorithm and paper is a file or folder of its own. A new one is found here
by looking into the folder, so that no other file has to list it.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module
from types import ModuleType
from typing import Any, TypeVar

from .errors import InputError, unknown

Kind = TypeVar("Kind")


def modules(package: str, besides: tuple[str, ...] = ()) -> dict[str, ModuleType]:
    """The modules in the folder of `package` by name, loaded, in alphabetical order, without those named `besides`."""
    path = import_module(package).__path__
    return {m.name: import_module(f"{package}.{m.name}") for m in pkgutil.iter_modules(path) if m.name not in besides}


def part(module: ModuleType, attribute: str) -> Any:
    """What a module of a folder defines under the name that all of them do."""
    if not hasattr(module, attribute):
        folder, file = module.__name__.rsplit(".", 1)
        raise InputError(f"{file}.py: expected it to define {attribute}, as every file of {folder} does")
    return getattr(module, attribute)


def things(package: str, attribute: str, besides: tuple[str, ...] = ()) -> dict[str, Any]:
    """What each module of a folder defines under this name, by its own name, which must be that of its file."""
    found: dict[str, Any] = {}
    for file, module in modules(package, besides).items():
        thing = part(module, attribute)
        if thing.name.replace("-", "_") != file:
            raise InputError(f"{file}.py: calls itself {thing.name!r}; name and file name must agree")
        found[thing.name] = thing
    return found


def chosen(field: str, which: str | Kind, own: type[Kind], known: dict[str, Any]) -> Any:
    """One of the known things by its name, or one of a user's own as it is given."""
    if isinstance(which, own):
        return which
    if not isinstance(which, str):
        raise InputError(f"{field}: expected a name or an overlaps.{own.__name__}, got {type(which).__name__}")
    if which not in known:
        raise unknown(field, which, known)
    return known[which]
