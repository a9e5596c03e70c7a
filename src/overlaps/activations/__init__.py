"""Activations by name: every file of this folder beside `definition` is one, its `ACTIVATION`.

A new file is a new activation: known to networks, specs and the tests of all activations without another line. One of
your own, outside the library, is an `Activation` passed as it is.
"""

from __future__ import annotations

from ..errors import InputError, unknown
from ..folder import things
from .definition import Activation, compile_plain

BUILT_IN: dict[str, Activation] = things(__name__, "ACTIVATION", besides=("definition",))


def activation(which: str | Activation) -> Activation:
    """The activation of that name, or the one given."""
    if isinstance(which, Activation):
        return which
    if not isinstance(which, str):
        raise InputError(f"activation: expected a name or an overlaps.Activation, got {type(which).__name__}")
    if which not in BUILT_IN:
        raise unknown("activation", which, BUILT_IN)
    return BUILT_IN[which]


__all__ = ["BUILT_IN", "Activation", "activation", "compile_plain"]
