"""The two kinds of errors that this library raises.

`InputError`: what was asked is outside what can be computed. The message names the field, what was expected, what was
given and what to do instead. `MissingExtraError` is the one that goes away once an extra is installed,
`DamagedFileError` the one for a file of results that is not what was written.
`NumericalError`: a computation went wrong on the way. It names the quantity and the time, and carries what had been
computed before.

All of them are public, so they call themselves by their public names, wherever they are raised:

>>> InputError
<class 'overlaps.InputError'>
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from functools import partial as with_fields
from pathlib import Path
from typing import Any

LONGEST = 80  # characters of a value in a message


class InputError(ValueError):
    """A problem, a spec or an argument that cannot be used as it stands; its message is one line."""

    __module__ = "overlaps"

    def __init__(self, *args: Any) -> None:
        lines = (" ".join(a.split()) if isinstance(a, str) and "\n" in a else a for a in args)
        super().__init__(*lines)


class MissingExtraError(InputError):
    """What was asked for needs packages of an extra that is not installed.

    Attributes
    ----------
    install: what installs it, for instance ``"pip install 'overlaps[deep]'"``.
    """

    __module__ = "overlaps"

    def __init__(self, reason: str, install: str) -> None:
        super().__init__(reason, install)
        self.install = install

    def __str__(self) -> str:
        return "; ".join(self.args)


class DamagedFileError(InputError):
    """A file of results that is not what was written: bits have changed, or its end is missing.

    Attributes
    ----------
    path: the file.
    """

    __module__ = "overlaps"

    def __init__(self, reason: str, path: Path) -> None:
        super().__init__(reason, path)
        self.path = path

    def __str__(self) -> str:
        return str(self.args[0])


class NoAttributeError(InputError, AttributeError):
    """An attribute that this object does not have, though others of its class do; `hasattr` and the like go on."""


class NumericalError(ArithmeticError):
    """Divergence, a covariance that is not positive, an average that did not converge.

    Attributes
    ----------
    quantity: name of the offending quantity, for instance ``"Q[0, 0]"``.
    time: time at which it was noticed, in steps per input dimension, or steps of full-batch training.
    partial: the `Trajectory` up to the last good time, or ``None``; it can be saved.
    """

    __module__ = "overlaps"

    def __init__(self, message: str, *, quantity: str, time: float, partial: Any = None) -> None:
        super().__init__(message)
        self.quantity = quantity
        self.time = time
        self.partial = partial

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled with its fields, so that a worker process can hand it on."""
        return with_fields(type(self), quantity=self.quantity, time=self.time, partial=self.partial), self.args


def shown(value: Any) -> str:
    """A value as messages show it: on one line, cut short, and whatever its own `repr` does."""
    try:
        text = " ".join(repr(value).split())
    except Exception:  # integers of thousands of digits, lists nested too deeply, objects of others
        text = f"a value of type {type(value).__name__} too large to be shown"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def unknown(what: str, got: Any, known: Iterable[str]) -> InputError:
    """The error for a name that does not exist, with the nearest one that does."""
    options = sorted(known)
    near = difflib.get_close_matches(got, options, n=1, cutoff=0.5) if isinstance(got, str) else []
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return InputError(f"unknown {what} {shown(got)}{hint} (known: {', '.join(options)})")
