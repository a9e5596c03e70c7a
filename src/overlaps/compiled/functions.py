"""Compiled functions whose code a later process finds on disk (see `overlaps.compiled.code_cache`).

`kept` compiles a function and keeps its code. Loops over samples and nodes take the function that they call at each,
the gradient of a loss say, as an argument, and Numba compiles them anew for every such function. Numba
distinguishes functions by their identity, which is another in every process. A function made of what the library knows
by name is the same in every process, so it is passed as a `named.Named`, whose type is its name, and `loop` keeps the
code compiled for it. Functions of a user's own have no name to go by, and their code is not kept.

This rests on parts of Numba that are not promised to stay: how a dispatcher asks for kept code, how a result of
compilation is written, how functions are numbered (`overlaps.compiled.symbols`), and the types of functions. Where
one of them has changed, code is compiled in every process, named functions are passed as any others are, and a warning
says so once; the results are the same.
"""

from __future__ import annotations

import pickle
import sys
import time as clock
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from multiprocessing import parent_process
from typing import Any

import numba

from . import code_cache
from .named import Named, named
from .symbols import KEEPS, njit

code_cache.sources()  # hashed now, before anything is compiled
Own = type(njit(lambda: None))  # of functions compiled from a user's own


PATIENCE = 2.0  # seconds


class Waiting:
    """How long users have waited for compilations; after two seconds one message says so."""

    def __init__(self) -> None:
        self.began: list[float] = []  # compilations within compilations
        self.seconds, self.reported = 0.0, False
        self.listener: Callable[[], object] | None = None  # called when a compilation begins

    def begin(self) -> None:
        """Note that the compilation of a function begins, since its code was not kept."""
        self.began.append(clock.perf_counter())
        if self.listener is not None:
            self.listener()
        self._report()

    def end(self) -> None:
        """Note that the compilation has ended."""
        self._report()
        if self.began:
            began = self.began.pop()
            self.seconds += 0.0 if self.began else clock.perf_counter() - began

    def _report(self) -> None:
        waited = self.seconds + (clock.perf_counter() - self.began[0] if self.began else 0.0)
        if waited > PATIENCE and not self.reported:
            self.reported = True
            kept = "; it is kept, and the next time is quick" if code_cache.home() else ""
            if parent_process() is None and sys.stderr is not None and sys.stderr.isatty():
                print(f"overlaps: compiling, which takes up to a minute or two{kept}", file=sys.stderr, flush=True)


WAITING = Waiting()


class OverloadCache:
    """What a dispatcher of Numba asks for code compiled before, and gives newly compiled code to.

    The content of a file is the function, the types of its arguments and the result of compilation, as Numba takes it
    apart. Where reading or writing it fails, the function is compiled, and no error is raised.
    """

    cache_path = None

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = f"{function.__module__}.{function.__qualname__}"

    def load_overload(self, signature: Any, context: Any) -> Any:
        """The kept result of compiling for this signature, or None where there is none and it must be compiled."""
        found = self._load(signature, context)
        if found is None:
            WAITING.begin()
        return found

    def _load(self, signature: Any, context: Any) -> Any:
        if not KEEPS:
            return None
        name = ""
        try:
            from numba.core.compiler import CompileResult

            context.refresh()
            name = self._name(signature, context.codegen())
            content = code_cache.read(name)
            if content is None:
                return None
            *what, parts = pickle.loads(content)
            # the name of a file is made of words, and two types may have one name
            return CompileResult._rebuild(context, *parts) if what == [self.function, _arguments(signature)] else None
        except Exception:
            if name:
                code_cache.remove(name)
            return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Keep the result of compiling for this signature, unless it points to memory of this process."""
        WAITING.end()
        if not KEEPS:
            code_cache.warn_once(f"Numba {numba.__version__} numbers its functions in another way")
            return
        try:
            from numba.core.serialize import dumps

            if result.library.has_dynamic_globals or result.lifted:
                return
            name = self._name(signature, result.codegen)
            content = dumps((self.function, _arguments(signature), result._reduce()))
        except Exception as error:
            code_cache.warn_once(_changed(error))
        else:
            if not code_cache.changed():
                code_cache.write(name, content)

    def _name(self, signature: Any, codegen: Any) -> str:
        words = self.function, str(_arguments(signature)), codegen.magic_tuple()
        return f"{self.function.rpartition('.')[2]}-{sha256(repr(words).encode()).hexdigest()[:32]}"

    def enable(self) -> None:
        """Do nothing: Numba's interface of a cache needs this method, and this cache is always enabled."""

    disable = flush = enable


def _arguments(signature: Any) -> tuple[Any, ...]:
    """Types of the arguments; Numba hands over them alone, or a signature with its type of result."""
    return tuple(getattr(signature, "args", signature))


def kept(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Decorator: compile with these options of `numba.njit`, and keep the code; for functions of a module."""

    def decorate(function: Callable[..., Any]) -> Any:
        dispatcher: Any = njit(**options)(function)
        dispatcher._cache = OverloadCache(function)
        return dispatcher

    return decorate


class Loop:
    """A compiled function that is given functions to call; its code is kept where all of these are `Named`."""

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        self.kept, self.passing = kept(**options)(function), njit(**options)(function)
        self.__doc__, self.__wrapped__ = function.__doc__, function

    def __call__(self, *arguments: Any) -> Any:
        kinds = [*map(type, arguments)]  # some loops are short: to choose takes half a microsecond
        if Named in kinds and (Own in kinds or not takes_named()):
            arguments = tuple(a.function if isinstance(a, Named) else a for a in arguments)
            return self.passing(*arguments)
        return (self.passing if Own in kinds else self.kept)(*arguments)


def loop(**options: Any) -> Callable[[Callable[..., Any]], Loop]:
    """Decorator: compile with these options of Numba, see `Loop`."""
    return lambda function: Loop(function, **options)


@cache
def takes_named() -> bool:
    """Whether this Numba takes a `Named` for a function: tried once for a version, and remembered on disk."""
    if code_cache.read("takes-named") is not None:
        return True
    try:
        works = _apply(named(_half), 3.0) == 1.5
    except Exception as error:
        code_cache.warn_once(_changed(error))
        return False
    return works and (code_cache.write("takes-named", b"") or works)


def _half() -> Any:
    return njit(lambda x: x / 2)


@kept()
def _apply(function: Callable[[float], float], x: float) -> float:
    return function(x)


def _changed(error: Exception) -> str:
    return f"Numba {numba.__version__} is not as expected ({type(error).__name__}: {error})"
