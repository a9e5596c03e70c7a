"""What comes back of a call: an answer, a refusal in the library's words, or something that is wrong."""

from __future__ import annotations

import contextlib
import re
import signal
import time as clock
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import overlaps as ov

SECONDS = 10.0  # of CPU time; longer is a hang
BUSY = 12.0  # times as many seconds may pass on a machine that is busy with other things
WRONG = ("unnamed", "tracebacks", "hangs", "NaN")


class Hang(BaseException):
    """Raised in a call that takes too long; nothing that catches exceptions catches it."""


@contextlib.contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raise `Hang` after so many seconds of CPU time, and after `BUSY` times as many have passed in waiting."""

    def ring(*_: Any) -> None:
        raise Hang

    clocks = ((signal.ITIMER_PROF, signal.SIGPROF, seconds), (signal.ITIMER_REAL, signal.SIGALRM, BUSY * seconds))
    before = [signal.signal(number, ring) for _, number, _ in clocks]
    try:
        for timer, _, limit in clocks:
            signal.setitimer(timer, limit)
        yield
    finally:
        for timer, _, _ in clocks:
            signal.setitimer(timer, 0)
        for (_, number, _), handler in zip(clocks, before, strict=True):
            signal.signal(number, handler)


def has_nan(value: Any, depth: int = 0) -> bool:
    """Whether there is a NaN in a result, wherever it is."""
    if isinstance(value, float):
        return value != value
    if isinstance(value, (np.ndarray, np.generic)):
        return value.dtype.kind in "fc" and bool(np.isnan(value).any())
    if isinstance(value, xr.Dataset):
        return any(has_nan(value[name].values) for name in value.variables)
    if depth > 4:
        return False
    if isinstance(value, ov.Trajectory):
        return has_nan(value.data)
    if is_dataclass(value) and not isinstance(value, type):
        return any(has_nan(getattr(value, f.name), depth + 1) for f in fields(value))
    if isinstance(value, dict):
        return any(has_nan(v, depth + 1) for v in value.values())
    return isinstance(value, (list, tuple)) and any(has_nan(v, depth + 1) for v in value)


@dataclass
class Found:
    """How hostile input was answered, and what was wrong with the answers."""

    count: Counter[str] = field(default_factory=Counter)
    wrong: dict[str, str] = field(default_factory=dict)

    def note(self, kind: str, what: str = "", where: str = "") -> None:
        self.count[kind] += 1
        if what:
            self.wrong.setdefault(what, where)

    @property
    def calls(self) -> int:
        return sum(self.count.values())


def refusal(error: ov.InputError | OSError, replaced: Iterable[str], others: Iterable[str]) -> str:
    """Whether a refusal names what was replaced, or something else that it has to do with, before its first colon.

    A path in quotes is the name of what it leads to.
    """
    text = str(error)
    if "\n" in text:
        return "tracebacks"
    if isinstance(error, OSError):  # says which file cannot be read or written
        return "refused" if error.filename is not None else "tracebacks"
    names = set(re.findall(r"[A-Za-z]\w*", text.partition(":")[0]))
    return "refused" if names.intersection(replaced) else "other" if names.intersection(others) else "unnamed"


def judged(
    found: Found, what: str, call: Callable[[], Any], arguments: str, seconds: float = SECONDS,
    replaced: Iterable[str] = (), others: Iterable[str] = (),
) -> None:  # fmt: skip
    """Make a call and note how it was answered.

    replaced, others: names of the arguments that a refusal should name, and of those that it may name.
    """
    began = clock.process_time()
    try:
        with within(seconds), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = call()
        kind, words = ("NaN", f"{what}: NaN") if has_nan(result) else ("answered", "")
    except Hang:
        kind, words = "hangs", f"{what}: hangs"
    except (ov.InputError, OSError) as error:
        kind = refusal(error, replaced, others)
        words = f"{what}: {kind}: {error}" if kind in WRONG else ""
    except MemoryError:
        kind, words = "memory", ""
    except ov.NumericalError:
        kind, words = "numerical", ""
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        own = [f for f in traceback.extract_tb(error.__traceback__) if "/src/overlaps/" in f.filename]
        at = own[-1] if own else last
        kind = "tracebacks"
        words = f"{what}: {type(error).__name__} in {Path(at.filename).name}:{at.lineno}"
        arguments = f"{str(error)[:80]!r} of {arguments}"
    if clock.process_time() - began > seconds and kind != "hangs":
        kind, words = "hangs", f"{what}: took longer"
    found.note(kind, words, arguments)
