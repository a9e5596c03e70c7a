"""A sweep as a spec: a problem, a table ``[run]`` as of `overlaps run`, and a table ``[sweep]`` of what is varied.

    [sweep]
    seeds = 5                                                    # or a list of them
    scales = ["macro", "meso"]

    [sweep.over]
    algorithm.rate = [0.1, 0.2, 0.5]
    data.spectrum.exponent = { linear = [0.0, 1.0], count = 5 }  # or log = [0.1, 10]
    "student.units, teacher.units" = [[2, 2], [3, 3]]            # together

Fields are those of `overlaps.sweep`. Each cell is what `overlaps run` would compute at its scale.
"""

from __future__ import annotations

import time as clock
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..interface import files, spec
from ..interface.checks import number, whole
from ..interface.errors import InputError, unknown
from ..problem.statement import ROLES
from ..sweep.cell import Cell, compute
from ..sweep.result import Sweep
from ..sweep.sweeping import planned
from ..sweep.workers import Cluster, Processes, Workers, in_turn
from ..trajectory.times import logtimes
from .experiment import Experiment

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIELDS = ("seeds", "scales", "over")
PROBES = 3  # cells of each scale that are measured to say what all of them cost
LARGEST = 1_000_000_000  # bytes of a dataset that is written as one file


@dataclass(frozen=True)
class SweepSpec:
    """An experiment, and what of it is varied; `over`, `seeds` and `scales` as for `overlaps.sweep`."""

    experiment: Experiment
    over: Mapping[str, Any]
    seeds: Any = 1
    scales: Sequence[str] = ("macro", "meso")

    @classmethod
    def from_toml(cls, text: str) -> SweepSpec:
        """Read a spec; every mistake is an `InputError` that names the field."""
        table = spec.parse(text)
        sweep = table.pop("sweep", None)
        if sweep is None:
            raise InputError("spec: no table [sweep]; add one with over, or use `overlaps run`")
        if not isinstance(sweep, Mapping):
            raise InputError(f"spec.sweep: expected a table, got {sweep!r:.60}")
        for name in sweep:
            if name not in FIELDS:
                raise unknown("field in spec.sweep", name, FIELDS)
        over = sweep.get("over", {})
        if not isinstance(over, Mapping) or not over:
            raise InputError("spec.sweep: needs over, a table of fields and their values")
        scales = sweep.get("scales", cls.scales)
        experiment = Experiment.from_toml(spec.write(_affordable(table, scales)))
        return cls(experiment, dict(_flat(over)), sweep.get("seeds", 1), scales)

    def planned(self, out: Path | None) -> Sweep:
        """The sweep, of which nothing has been computed; `out` is its store."""
        problem, run = self.experiment.problem, self.experiment.run
        times = None if problem.algorithm.times_are_steps else logtimes(run.first, run.last, run.count)
        options = {"meso": {"runs": max(1, run.meso_runs)}, "micro": {"runs": max(1, run.micro_runs)}}
        return planned(
            problem, self.over, seeds=self.seeds, times=times, scales=self.scales, size=run.size, scale=run.scale,
            runs=1, start=None, options=options, store=out,
        )  # fmt: skip


def dry_run(made: Sweep, by: Workers) -> str:
    """How many cells there are, and what those that are missing would cost, measured on a few that are spread out.

    by: who would compute them. It is measured here, also the start of processes, which are started all at once.
    """
    absent = made.missing()
    lines = [f"{made!r}".splitlines()[0], f"to compute: {len(absent)} cells, {len(made) - len(absent)} are there"]
    seconds = size = 0.0
    measured = 0
    for scale in made.scales:
        cells = [cell for cell in map(made.cell, absent) if cell.scale == scale]
        some = np.unique(np.linspace(0, len(cells) - 1, PROBES).round().astype(int)) if cells else ()
        found = [_measured(cells[i]) for i in some]
        if found:
            seconds += len(cells) * sum(each[0] for each in found) / len(found)
            size += len(cells) * sum(each[1] for each in found) / len(found)
            measured += len(found)
    cores, started = max(1, min(by.at_once, len(absent))), isinstance(by, Processes)
    if absent:
        start = _start(made.cell(absent[0])) if started else 0.0
        left, seconds = (seconds / cores + start) / 60, seconds + cores * start
        duration = f"{left / 60:.2g} hours" if left > 90 else f"{left:.2g} minutes"
        where = f"{cores} threads of the cluster" if isinstance(by, Cluster) else f"{cores} core{'s' * (cores > 1)}"
        how = ", with the start of processes" * started + ", here, not on the cluster" * isinstance(by, Cluster)
        spent = f"{seconds / 3600:.2g} CPU-hours, {duration} on {where}, {size / 1e6:.2g} MB"
        lines.append(f"about {spent}; measured on {measured} cells{how}")
    return "\n".join(lines)


def write(made: Sweep, text: str, out: Path) -> dict[str, Path]:
    """Dataset, picture, spec and a summary, next to the cells."""
    import matplotlib.pyplot as plt

    paths = {"spec": files.write(out / "spec.toml", text), "summary": files.write(out / "summary.txt", f"{made!r}\n")}
    data = made.data
    if data.nbytes <= LARGEST:
        paths["data"] = files.write_dataset(out / "sweep.nc", data)
    figure = overview(made)
    if figure is not None:
        paths["picture"] = files.write_picture(out / "sweep.png", figure, dpi=150)
        plt.close(figure)
    return paths


def overview(made: Sweep) -> Figure | None:
    """Error against time, or against the longest axis, a line per value of the next; others at their first."""
    import matplotlib.pyplot as plt

    data = made.data
    if "error" not in data or not np.isfinite(data["error"].values).any():
        return None
    axes = sorted(made.layout.grid.axes, key=lambda axis: -len(axis.values))
    names = [axis.names[0] for axis in axes]
    figure, both = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    rest = {name: data[name].values[0] for name in names[1:]}
    made.plot("time", "error", names[0], at=rest, ax=both[0])
    others = {name: value for name, value in rest.items() if name != (names[1:2] or [""])[0]}
    made.plot(names[0], "error", names[1] if len(names) > 1 else None, at=others, ax=both[1])
    return figure


def _measured(cell: Cell) -> tuple[float, int]:
    """Seconds and bytes of a cell; computed twice, since compiled code is loaded the first time."""
    compute(cell)
    began = clock.perf_counter()
    found = compute(cell)
    return clock.perf_counter() - began, len(found.content)


def _start(cell: Cell) -> float:
    """Seconds until a new process has computed a cell: it is started, and loads the library and compiled code."""
    began = clock.perf_counter()
    list(in_turn([cell], compute, Processes(1)))
    return clock.perf_counter() - began


def _affordable(table: dict[str, Any], scales: Any) -> dict[str, Any]:
    """The experiment without scales that are not asked for, whose cost does not count."""
    run = dict(table.get("run", {})) if isinstance(table.get("run", {}), Mapping) else table["run"]
    if isinstance(run, dict):
        run |= {f"{name}_runs": 0 for name in ("meso", "micro") if name not in scales}
    return {**table, "run": run}


def _flat(table: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, list[Any]]]:
    """Fields and their values: dotted names are tables in tables."""
    for name, value in table.items():
        path = f"{above}{name}"
        if isinstance(value, Mapping) and not {"linear", "log"} & value.keys():
            yield from _flat(value, f"{path}.")
        elif isinstance(value, Mapping):
            yield path, _range(path, value)
        elif isinstance(value, list):
            yield path, [_object(path, each) for each in value]
        else:
            raise InputError(f"spec.sweep.over: {path} expects a list of values, got {value!r:.60}")


def _range(path: str, value: Mapping[str, Any]) -> list[float]:
    """Evenly spaced numbers, or their logarithms are."""
    where = f"spec.sweep.over.{path}"
    kind = "log" if "log" in value else "linear"
    for name in value:
        if name not in (kind, "count"):
            raise unknown(f"field in {where}", name, [kind, "count"])
    ends = value[kind]
    if not isinstance(ends, list) or len(ends) != 2:
        raise InputError(f"{where}: {kind} expects the first and the last value, got {ends!r:.60}")
    count = whole(f"{where}.count", value.get("count"), least=2, most=10**6)
    low, high = (number(f"{where}.{kind}", end, **({"above": 0} if kind == "log" else {})) for end in ends)
    return (np.geomspace if kind == "log" else np.linspace)(low, high, count).tolist()


def _object(path: str, value: Any) -> Any:
    """A table with a kind as the object it stands for, such as a schedule."""
    name = path.rpartition(".")[2]
    if not isinstance(value, Mapping):
        return value
    if name not in ROLES:
        raise InputError(f"spec.sweep.over: {path} takes no tables, got {dict(value)!r:.60}")
    kinds = {kind.__name__: kind for kind in ROLES[name]}
    inner = dict(value)
    kind = str(inner.pop("kind", ROLES[name][0].__name__))
    if kind not in kinds:
        raise unknown(f"kind in spec.sweep.over.{path}", kind, kinds)
    return spec.from_mapping(kinds[kind], inner, ROLES, f"spec.sweep.over.{path}")
