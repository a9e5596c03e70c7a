"""Sweeps: a problem over a grid of its fields, at several scales and seeds, as one labelled dataset.

>>> import overlaps as ov
>>> net = ov.Committee(units=2, activation="erf")
>>> problem = ov.Problem(
...     data=ov.GaussianInputs(ov.PowerLaw(levels=3, exponent=0.25)), teacher=net, student=net,
...     algorithm=ov.OnlineSGD(rate=0.5),
... )
>>> found = ov.sweep(
...     problem, {"algorithm.rate": [0.25, 0.5, 1.0], "data.spectrum.exponent": [0.0, 1.0]}, seeds=2, times=[0.0, 5.0],
...     size=100, scales=("macro",), workers=1,
... )
>>> found
sweep of 3 rate x 2 exponent x 2 seed x 1 scale: 12 cells
  done: 12
  kept: in memory only; give store=FOLDER to keep them
>>> found.data["error"].sel(rate=0.5, exponent=1.0, time=5.0, scale="macro").mean(["seed", "run"]).item() < 0.1
True
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..interface.checks import checked, listed, number, whole
from ..interface.checks import grid as increasing
from ..interface.errors import InputError, shown, unknown
from ..interface.processes import keeping
from ..interface.progress import bar
from ..problem.start import Start
from ..problem.statement import Problem
from .assembly import Index, Layout
from .cell import RUNS, WAYS, Cell, options_of
from .grid import SIZE, START, TIMES, Grid, asked, stated
from .result import Sweep
from .store import Memory, Store
from .workers import Workers, chosen

MOST_SEEDS = 1_000_000
DEFAULT_SIZE = 1000  # of data that may have any number of dimensions


@checked
def sweep(
    problem: Problem | Callable[..., Problem],
    over: Mapping[str, Any],
    *,
    seeds: int | Sequence[int] = 1,
    times: ArrayLike | Callable[[Problem], ArrayLike] | None = None,
    scales: Sequence[str] = ("macro", "meso"),
    size: int | None = None,
    scale: float = 1.0,
    runs: int = 1,
    start: Start | Callable[[Problem, int, int], Start] | None = None,
    macro: Mapping[str, Any] | None = None,
    meso: Mapping[str, Any] | None = None,
    micro: Mapping[str, Any] | None = None,
    optimise: Mapping[str, Any] | None = None,
    store: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    cluster: Any = None,
    wait: bool = True,
    progress: bool = True,
) -> Sweep:
    """A problem over a grid of its fields, at several scales and for several seeds.

    A cell is one combination of all: a problem from one start, with one seed, at one scale. Cells are computed on all
    cores or a cluster and kept in the store as they are done, so that a sweep that was interrupted goes on where it
    was, and a grid that has grown computes what is new. A cell that is refused or diverges is recorded with its reason.

    Parameters
    ----------
    problem: what the fields are fields of; or a function that returns a problem, whose arguments are fields then.
    over: values of each field by its path, ``{"algorithm.rate": [0.1, 0.2], "data.spectrum.exponent": [0.5, 1.0]}``,
        all crossed. Paths joined by commas vary together, ``{"student.units, teacher.units": [(2, 2), (3, 3)]}``.
        ``"size"``, ``"times"``, ``"start.scale"`` and options of a scale, such as ``"meso.runs"`` or
        ``"macro.accuracy"``, are fields too. In the dataset a field has the last part of its path as a name.
    seeds: how many, from 0 on, or which: of the start and of the runs.
    times: as for `solve`; or a function of the problem. None for all steps of full batches.
    scales: of ``"macro"``, ``"meso"``, ``"micro"`` and ``"optimise"``, the plan of `overlaps.optimise` for the last
        time.
    size, scale: as for `draw`, which makes the start of each cell. None for the dimensions that the data have, such as
        the columns of rows, and for 1000 where they have any.
    runs: of meso and micro in each cell; seeds differ in their starts, runs do not.
    start: in place of a drawn one, a start for all cells, or a function of problem, size and seed.
    macro, meso, micro, optimise: options of `solve`, `sample`, `train` and `optimise`, for instance
        ``micro={"observe": overlaps.spectra.Observer()}``.
    store: folder that keeps cells; several sweeps may share one, also at once. Without it they are kept in memory.
    workers: processes of this machine, all cores by default; 1 for this process; 0 to compute nothing and see what the
        store has.
    cluster: address of a Dask scheduler, or a `distributed.Client`, in place of workers; needs the extra ``cluster``.
    wait: whether to return when all is done, or at once; the sweep can be asked for what there is at any time.
    progress: whether to show a progress bar.
    """
    made = planned(
        problem, over, seeds=seeds, times=times, scales=scales, size=size, scale=scale, runs=runs, start=start,
        options={"macro": macro, "meso": meso, "micro": micro, "optimise": optimise}, store=store,
    )  # fmt: skip
    absent = made.missing()
    if isinstance(workers, int) and not isinstance(workers, bool) and workers == 0:
        return made
    by = chosen(workers, cluster, len(absent))
    return launch(made, by, absent, wait=wait, progress=progress)


def planned(
    problem: Problem | Callable[..., Problem], over: Mapping[str, Any], *, seeds: Any, times: Any, scales: Any,
    size: Any, scale: Any, runs: Any, start: Any, options: Mapping[str, Mapping[str, Any] | None], store: Any,
) -> Sweep:  # fmt: skip
    """A sweep of which nothing has been computed; arguments as for `sweep`, and wrong ones refused."""
    if not isinstance(problem, Problem) and not callable(problem):
        raise InputError(f"problem: expected an overlaps.Problem, or a function that makes one, got {shown(problem)}")
    wanted = _scales(scales)
    known = {name: options_of(name) for name in wanted}
    grid = Grid.of(problem, over, known)
    layout = Layout(grid, _seeds(seeds), wanted)
    given = {name: _options(name, options.get(name), known[name]) for name in wanted}
    for name in RUNS:
        if name in given:
            given[name] = {"runs": whole("runs", runs, least=1), **given[name]}
    fixed = {
        SIZE: size if size is None else whole(SIZE, size, least=1),
        f"{START}.scale": number("scale", scale, least=0),
        TIMES: times,
    }
    if start is not None and not isinstance(start, Start) and not callable(start):
        raise InputError(f"start: expected an overlaps.Start, or a function of problem, size, seed, got {shown(start)}")
    kept = Memory() if store is None else Store.at(store)
    cells: dict[Index, Cell | str] = {}
    for place in grid.places():
        values = grid.values(place)
        for index, cell in _cells(problem, values, fixed, start, given, layout):
            cells[*place, *index] = cell
    return Sweep(layout, cells, kept)


def launch(made: Sweep, by: Workers, absent: Sequence[str], *, wait: bool, progress: bool) -> Sweep:
    """Compute the cells that are absent, while the caller waits or in a thread beside it."""
    there, total = len(made) - len(absent), len(made)
    shown = bar(total, "sweep", "cell", shown=progress, initial=there)

    def run() -> None:
        with shown:
            made.compute(by, absent, shown)

    def guarded() -> None:
        try:
            run()
        except BaseException as error:  # raised by `wait`
            made._failure = error

    if not absent:
        shown.close()
        by.stop()
        return made
    if wait:
        with keeping(made.progress):
            run()
        return made
    made._thread = threading.Thread(target=guarded, daemon=True)
    made._thread.start()
    return made


def _cells(
    problem: Any, values: Mapping[str, Any], fixed: Mapping[str, Any], start: Any,
    given: Mapping[str, Mapping[str, Any]], layout: Layout,
) -> Iterator[tuple[Index, Cell | str]]:  # fmt: skip
    """The cells at one place of the grid, or why there are none."""
    here = {**fixed, **{path: value for path, value in values.items() if path in fixed}}
    inner = [(i, j) for i in range(len(layout.seeds)) for j in range(len(layout.scales))]
    try:
        one = stated(problem, values)
        when = asked("times", here[TIMES], one) if callable(here[TIMES]) else here[TIMES]
        when = None if when is None else tuple(increasing(when).tolist())
        size = here[SIZE] if here[SIZE] is not None else one.data.own_size or DEFAULT_SIZE
        size, spread = whole(SIZE, size, least=1), number("start.scale", here[f"{START}.scale"], least=0)
    except InputError as error:
        yield from ((index, str(error)) for index in inner)
        return
    for i, j in inner:
        seed, scale = layout.seeds[i], layout.scales[j]
        own = {path.partition(".")[2]: value for path, value in values.items() if path.startswith(f"{scale}.")}
        try:
            begin: Any = asked("start", start, one, size, seed) if callable(start) else start
            if begin is not None and not isinstance(begin, Start):
                raise InputError(f"start: expected the function to return an overlaps.Start, got {shown(begin)}")
        except InputError as error:
            yield (i, j), str(error)
            continue
        yield (i, j), Cell(one, scale, size, seed, spread, begin, when, {**given[scale], **own})


def _scales(scales: Any) -> tuple[str, ...]:
    names = [scales] if isinstance(scales, str) else listed("scales", scales, f"scales, of {', '.join(WAYS)}")
    for name in names:
        if not isinstance(name, str) or name not in WAYS:
            raise unknown("scale in scales:", name, WAYS)
    if not names or len(set(names)) < len(names):
        raise InputError(f"scales: expected different scales of {', '.join(WAYS)}, got {shown(scales)}")
    return tuple(names)


def _seeds(seeds: Any) -> tuple[int, ...]:
    if isinstance(seeds, (int, float, np.generic)):
        return tuple(range(whole("seeds", seeds, least=1, most=MOST_SEEDS)))
    different = tuple(whole(f"seeds[{i}]", s, least=0) for i, s in enumerate(listed("seeds", seeds, "seeds")))
    if not different or len(set(different)) < len(different):
        raise InputError(f"seeds: expected a number, or different seeds, got {shown(seeds)}")
    return different


def _options(scale: str, given: Mapping[str, Any] | None, known: Sequence[str]) -> dict[str, Any]:
    if given is not None and not isinstance(given, Mapping):
        raise InputError(f"{scale}: expected a mapping of options, such as {{{known[-1]!r}: ...}}, got {shown(given)}")
    for name in given or {}:
        if name not in known:
            raise unknown(f"option of {scale}:", str(name), known)
    return dict(given or {})
