"""The two kinds of errors that this library raises.

`InputError`: what was asked is outside what can be computed. The message names the field, what was expected, what was
given and what to do instead. `MissingExtraError` is the one that goes away once an extra is installed.
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
from typing import Any


class InputError(ValueError):
    """A problem, a spec or an argument that cannot be used as it stands."""

    __module__ = "overlaps"


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


class NumericalError(ArithmeticError):
    """Divergence, a covariance that is not positive, an average that did not converge.

    Attributes
    ----------
    quantity: name of the offending quantity, for instance ``"Q[0, 0]"``.
    time: time at which it was noticed, in samples per input dimension, or steps of full-batch training.
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


def unknown(what: str, got: str, known: Iterable[str]) -> InputError:
    """The error for a name that does not exist, with the nearest one that does."""
    options = sorted(known)
    near = difflib.get_close_matches(str(got), options, n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return InputError(f"unknown {what} {got!r}{hint} (known: {', '.join(options)})")
