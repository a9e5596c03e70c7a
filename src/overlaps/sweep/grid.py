"""Grids: which values of which fields, crossed or together, and what each combination of them asks for.

A field is named by its path: ``"algorithm.rate"``, ``"data.spectrum.exponent"`` or ``"label_noise"`` of a problem,
``"size"``, ``"start.scale"`` and ``"times"`` of where and when, ``"macro.accuracy"``, ``"meso.runs"`` or
``"optimise.knots"`` of a run. All axes are crossed; paths joined by commas are one axis, whose values go together.

>>> import overlaps as ov
>>> net = ov.Committee(units=2)
>>> problem = ov.Problem(data=ov.GaussianInputs(), teacher=net, student=net, algorithm=ov.OnlineSGD(rate=0.5))
>>> grid = Grid.of(problem, {"student.units, teacher.units": [(2, 2), (3, 2)], "size": [100, 200]})
>>> grid.dims, grid.shape, [axis.names for axis in grid.axes]
(('student_units', 'size'), (2, 2), [('student_units', 'teacher_units'), ('size',)])
>>> grid.values((1, 0))
{'student.units': 3, 'teacher.units': 2, 'size': 100}
"""

from __future__ import annotations

import inspect
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from ..interface.checks import listed
from ..interface.errors import InputError, shown, unknown
from ..problem.statement import Problem

START, TIMES, SIZE = "start", "times", "size"
STARTS = ("scale",)  # fields of a start besides its size and seed
TAKEN = {"time", "run", "scale", "seed", "student", "student_", "teacher", "teacher_", "level", "mean", "mean_"}
TAKEN |= {"observed", "component", "step", "step_", "samples", "epoch", "eigenvalue", "fraction", "error", "status"}
MOST = 10_000_000  # combinations of a grid


@dataclass(frozen=True)
class Axis:
    """One dimension of a grid: `paths` that vary together, their short `names`, and a tuple of values for each place.

    The first name is that of the dimension.
    """

    paths: tuple[str, ...]
    names: tuple[str, ...]
    values: tuple[tuple[Any, ...], ...]

    def labels(self, which: int) -> list[Any]:
        """The values of one path as they are written beside the dimension: numbers and names, or what they are."""
        found = [_label(value[which]) for value in self.values]
        return found if len({type(x) in (int, float) for x in found}) == 1 else [str(x) for x in found]

    @property
    def twice(self) -> list[str]:
        """Values along the dimension that are there more than once; numbers are equal by value, 1 and 1.0 as well."""
        labels = [_label(value[0]) for value in self.values]
        written = Counter(map(str, labels)), Counter(x for x in labels if isinstance(x, (int, float)))
        return [str(label) for counts in written for label, count in counts.items() if count > 1]


@dataclass(frozen=True)
class Grid:
    """Axes that are crossed."""

    axes: tuple[Axis, ...]

    @classmethod
    def of(
        cls, problem: Problem | Callable[..., Problem], over: Mapping[str, Any], scales: Mapping[str, Any] = {}
    ) -> Grid:
        """The grid of a mapping from paths to values, which must be fields that there are.

        scales: names of the options of each scale.
        """
        if not isinstance(over, Mapping):
            raise InputError(f"over: expected a mapping from fields to their values, got {shown(over)}")
        axes = [(_paths(key), _values(key, values)) for key, values in over.items()]
        every = [path for paths, _ in axes for path in paths]
        if twice := [path for path, count in Counter(every).items() if count > 1]:
            raise InputError(f"over: {twice[0]} is varied twice; name it once")
        for path in every:
            _check(path, problem, scales)
        short = dict(zip(every, _short(every), strict=True))
        grid = cls(tuple(Axis(paths, tuple(short[p] for p in paths), values) for paths, values in axes))
        if math.prod(grid.shape) > MOST:
            raise InputError(f"over: {math.prod(grid.shape):.1e} combinations; use at most {MOST:.0e}")
        for axis in grid.axes:
            if (twice := axis.twice) and len(axis.paths) == 1:
                raise InputError(f"over: {axis.paths[0]} has the value {twice[0]:.60} twice; name it once")
        return grid

    @property
    def dims(self) -> tuple[str, ...]:
        return tuple(axis.names[0] for axis in self.axes)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(axis.values) for axis in self.axes)

    def places(self) -> Iterator[tuple[int, ...]]:
        """All combinations, by their place along each axis."""
        return product(*map(range, self.shape))

    def values(self, place: tuple[int, ...]) -> dict[str, Any]:
        """The value of every path at a place."""
        chosen = [(axis, axis.values[i]) for axis, i in zip(self.axes, place, strict=True)]
        return {path: value for axis, values in chosen for path, value in zip(axis.paths, values, strict=True)}


def stated(problem: Problem | Callable[..., Problem], values: Mapping[str, Any]) -> Problem:
    """The problem at a place of a grid: with these values in its fields, or made by a function of them."""
    if isinstance(problem, Problem):
        own = {path: value for path, value in values.items() if path.split(".")[0] in Problem.__dataclass_fields__}
        return rebuilt(problem, own, "problem")
    own = {path: value for path, value in values.items() if path in parameters(problem)}
    made = asked("problem", problem, **own)
    if not isinstance(made, Problem):
        raise InputError(f"problem: expected the function to return an overlaps.Problem, got {shown(made)}")
    return made


def asked(name: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What a function of the user returns; what it raises is the reason why there is no cell."""
    try:
        return function(*args, **kwargs)
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{name}: the function raised {type(error).__name__}: {error}") from error


def rebuilt(thing: Any, values: Mapping[str, Any], where: str) -> Any:
    """A copy of a dataclass with other values at some paths below it; built once, so that they are checked together."""
    if not values:
        return thing
    names = {field.name for field in fields(thing)}
    below: dict[str, dict[str, Any]] = {}
    direct: dict[str, Any] = {}
    for path, value in values.items():
        name, _, rest = path.partition(".")
        if name not in names:
            raise unknown(f"field of {where}", name, names)
        if rest:
            below.setdefault(name, {})[rest] = value
        else:
            direct[name] = value
    for name, inner in below.items():
        part = direct.get(name, getattr(thing, name))
        if not is_dataclass(part):
            raise InputError(
                f"over: {where}.{name} is {shown(part)}, which has no field {next(iter(inner))!r}; "
                "give the problem one that has"
            )
        direct[name] = rebuilt(part, inner, f"{where}.{name}")
    if "digest" in names and "digest" not in direct:
        direct["digest"] = ""  # of a table, which these values may change
    return replace(thing, **direct)


def parameters(function: Callable[..., Any]) -> list[str]:
    """Names of the arguments of a function."""
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # classes and functions written in C
        raise InputError(f"problem: expected a function with named arguments, got {shown(function)}") from None


def _paths(key: Any) -> tuple[str, ...]:
    if not isinstance(key, str):
        raise InputError(f"over: expected the path of a field, such as 'algorithm.rate', got {shown(key)}")
    return tuple(part.strip() for part in key.split(","))


def _values(key: str, values: Any) -> tuple[tuple[Any, ...], ...]:
    together = len(_paths(key))
    given = listed(f"over: {key}", values, "values")
    each = [value.item() if isinstance(value, np.generic) else value for value in given]
    if not each:
        raise InputError(f"over: {key} has no values; give it at least one")
    if together == 1:
        return tuple((value,) for value in each)
    for value in each:
        if not hasattr(value, "__len__") or isinstance(value, str) or len(value) != together:
            raise InputError(f"over: {key} vary together, so each value is {together} values; got {shown(value)}")
    return tuple(tuple(part.item() if isinstance(part, np.generic) else part for part in value) for value in each)


def _check(path: str, problem: Problem | Callable[..., Problem], scales: Mapping[str, Any]) -> None:
    """Refuse a path that leads nowhere."""
    first, _, rest = path.partition(".")
    known = [SIZE, TIMES, *(f"{START}.{name}" for name in STARTS), *(f"{s}.{o}" for s in scales for o in scales[s])]
    if path in known:
        return
    if not isinstance(problem, Problem):
        if path not in parameters(problem):
            raise unknown("field in over:", path, [*parameters(problem), *known])
        return
    if first not in Problem.__dataclass_fields__:
        raise unknown("field in over:", path, [*Problem.__dataclass_fields__, *known])
    part, where = getattr(problem, first), first
    for name in rest.split(".") if rest else ():
        names = [field.name for field in fields(part)] if is_dataclass(part) else []
        if name not in names:
            if names:
                raise unknown(f"field in over: {where} is {type(part).__name__} and has no", name, names)
            raise InputError(f"over: {path} leads nowhere: {where} of the problem is {shown(part)}")
        part, where = getattr(part, name), f"{where}.{name}"


def _short(paths: list[str]) -> list[str]:
    """A name for each path that can be written as an argument: its last part, or more where that is not enough."""
    last = Counter(path.rpartition(".")[2] for path in paths)

    def name(path: str) -> str:
        end = path.rpartition(".")[2]
        return path.replace(".", "_") if last[end] > 1 or end in TAKEN else end

    return [name(path) for path in paths]


def _label(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, (int, float, str)):
        return value if not isinstance(value, int) or abs(value) < 2**63 else shown(value)
    if isinstance(value, (list, tuple, np.ndarray)) and len(value) and not any(map(np.iterable, value)):
        return f"{value[0]} to {value[-1]}"  # times
    try:
        return " ".join(repr(value).split())
    except Exception:  # integers of thousands of digits, objects of others
        return shown(value)
