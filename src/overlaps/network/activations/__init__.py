"""Activations by name: every file of this folder beside `definition` is one, its `ACTIVATION`.

A new file is a new activation: known to networks, specs and the tests of all activations without another line. One of
your own, outside the library, is an `Activation` passed as it is.
"""

from __future__ import annotations

from ...interface.folder import chosen, things
from .definition import Activation, compile_plain

BUILT_IN: dict[str, Activation] = things(__name__, "ACTIVATION", besides=("definition",))


def activation(which: str | Activation) -> Activation:
    """The activation of that name, or the one given."""
    return chosen("activation", which, Activation, BUILT_IN)


__all__ = ["BUILT_IN", "Activation", "activation", "compile_plain"]
