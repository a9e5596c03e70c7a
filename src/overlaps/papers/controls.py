"""Controls of claims: a formula is made wrong, and the claim must notice.

A control of a paper is registered by ``@PAPER.control(claim, words)`` on a function ``(patch) -> None``, in which
``patch(owner, "function", wrong)`` replaces a function of a module by one that is given the right one first,

>>> from overlaps.papers import broken, paper
>>> claims = paper("alignment")
>>> claims.controls["eq-71"][0].words
'half the variance in (65)'
>>> claims.claims["eq-71"].expected, broken(claims, "eq-71", claims.controls["eq-71"][0]).verdict
('holds corrected', 'fails')

A formula that is not public is broken where it stands, in ``inner("giant_step.simulation")`` say.

What takes long, training and its theory, need not be computed again for a wrong formula that is compared with it:
within `kept_runs` the engines return what they did for the same arguments. Functions that keep their own results must
not be broken, for these would be kept as well.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import Any

import numpy as np

from .ledger import Control, Measurement, Paper, Wrong

ENGINES = (
    ("overlaps", "solve"),
    ("overlaps", "sample"),
    ("overlaps", "train"),
    ("overlaps.full_batch", "continued"),
    ("overlaps.full_batch", "check_theorem"),
    ("overlaps.giant_step", "solve"),
    ("overlaps.giant_step", "train"),
    ("overlaps.papers.comparison.loops", "train"),
)


@contextmanager
def _patching() -> Iterator[Callable[[Any, str, Callable[..., Any]], None]]:
    """A function that replaces attributes; all are put back at the end."""
    before: list[tuple[Any, str, Any]] = []

    def replace(owner: Any, name: str, function: Callable[..., Any]) -> None:
        before.append((owner, name, getattr(owner, name)))
        setattr(owner, name, function)

    try:
        yield replace
    finally:
        for owner, name, right in reversed(before):
            setattr(owner, name, right)


def inner(module: str) -> Any:
    """A module of the library by its name there, for formulas that controls and pins need and that are not public."""
    return import_module(f"overlaps.{module}")


def broken(paper: Paper, name: str, control: Control, quick: bool = True) -> Measurement:
    """What is measured of a claim under one of its controls."""
    with _patching() as replace:

        def patch(owner: Any, function: str, wrong: Wrong) -> None:
            right = getattr(owner, function)
            replace(owner, function, lambda *args, **more: wrong(right, *args, **more))

        control.apply(patch)
        return paper.claims[name].measure(quick)


def _identity(value: Any) -> Hashable:
    """The same for equal arguments of an engine, whatever they have worked out and remember of themselves."""
    if isinstance(value, np.ndarray):
        return value.shape, value.tobytes()
    if isinstance(value, dict):
        return tuple((key, _identity(each)) for key, each in value.items())
    if isinstance(value, (list, tuple)):
        return type(value), tuple(map(_identity, value))
    if is_dataclass(value) and not isinstance(value, type):
        return type(value), tuple(_identity(getattr(value, each.name)) for each in fields(value))
    return value if value is None or isinstance(value, (bool, int, float, str)) else id(value)


@contextmanager
def kept_runs() -> Iterator[None]:
    """Within it, an engine that is given the same arguments returns the same result, computed once."""
    kept: dict[Hashable, Any] = {}

    def keeping(engine: Callable[..., Any], name: str) -> Callable[..., Any]:
        def call(*args: Any, **more: Any) -> Any:
            key = name, _identity(args), _identity(more)
            if key not in kept:
                # the arguments are kept as well, so that what is told by its address lives on
                kept[key] = engine(*args, **more), args, more
            return kept[key][0]

        return call

    with _patching() as replace:
        for module, name in ENGINES:
            owner = import_module(module)
            replace(owner, name, keeping(getattr(owner, name), f"{module}.{name}"))
        yield
