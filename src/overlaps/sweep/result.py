"""What a sweep is made of and what came of it: cells in a store, asked for as one dataset, drawn, or computed."""

from __future__ import annotations

import threading
import time as clock
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from ..interface.checks import checked
from ..interface.errors import InputError, shown, unknown
from ..interface.packed import attributes, unpack
from ..trajectory.dataset import Trajectory, from_dataset
from .assembly import Index, Layout, assemble
from .cell import ERROR, FAILED, KEPT, PENDING, REFUSED, Cell, Outcome, compute
from .store import CellStore, Store
from .workers import Died, Workers, in_turn

if TYPE_CHECKING:
    from matplotlib.axes import Axes

POLL = 0.5  # seconds between checks of cells that another process computes
OF_CELLS = ("status", "reason", "seconds")  # attributes that a trajectory does not have


class Sweep:
    """All cells of a sweep, done or not; made by `overlaps.sweep`.

    Attributes
    ----------
    grid, seeds, scales: what is crossed.
    folder: of the store, or None.
    """

    def __init__(self, layout: Layout, cells: dict[Index, Cell | str], store: CellStore) -> None:
        self.layout, self.store = layout, store
        self.seeds, self.scales = layout.seeds, layout.scales
        self.folder = store.folder if isinstance(store, Store) else None
        self._cells: dict[str, Cell] = {}
        self._addresses: dict[Index, str] = {}
        self._status: dict[str, str] = {}
        self._reasons: dict[str, str] = {}  # of those that are not done
        self._seconds: dict[str, float] = {}
        for index, cell in cells.items():
            if isinstance(cell, str):  # refused before there was a cell
                name = f"refused {index}"
                self._status[name], self._reasons[name] = REFUSED, cell
            else:
                name = cell.address if self.folder else f"cell {index}"
                self._cells[name] = cell
                self._status.setdefault(name, PENDING)
            self._addresses[index] = name
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None
        self._stop = threading.Event()
        self._assembled: tuple[int, xr.Dataset] | None = None
        self._finished = 0

    @property
    def counts(self) -> dict[str, int]:
        """How many cells are done, refused, failed, in error or pending."""
        return dict(Counter(self._status[name] for name in self._addresses.values()))

    @property
    def running(self) -> bool:
        """Whether cells are being computed."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def seconds(self) -> float:
        """Seconds of one core that the cells took, whenever that was."""
        return sum(self._seconds.values())

    @property
    def data(self) -> xr.Dataset:
        """The dataset of all cells that are there, along the fields of the grid, `seed` and `scale`.

        Variables and coordinates are those of a `Trajectory`; `status` and `reason` say what came of each cell. It can
        be asked for while the sweep runs. See `overlaps.sweep.assembly`.
        """
        if self._assembled is None or self._assembled[0] != self._finished:
            count = self._finished
            without = [name for name in self._reasons if name not in self._cells or self._status[name] not in KEPT]
            troubles = {name: (self._status[name], self._reasons[name]) for name in without}
            made = assemble(self.layout, self._addresses, self._content, troubles, self.folder)
            made.attrs["citations"] = "\n".join(self.citations())
            self._assembled = count, made
        return self._assembled[1]

    def citations(self) -> list[str]:
        """The papers behind what was computed; of each scale those of its first cell that is done."""
        found: dict[str, Trajectory | None] = {}
        for index, name in self._addresses.items():
            scale = self.layout.scales[index[-1]]
            if found.get(scale) is None and self._status[name] == "done":
                content = self._content(name)
                found[scale] = None if content is None else _trajectory(unpack(content))
        return list(dict.fromkeys(paper for result in found.values() if result for paper in result.citations()))

    def trajectory(self, **where: Any) -> Trajectory:
        """The trajectory of one cell, by its values: ``sweep.trajectory(rate=0.5, seed=0, scale="meso")``.

        Dimensions of one value may be left out.
        """
        index = []
        labels = self.layout.coordinates
        for dim in self.layout.dims:
            known = labels[dim][1] if isinstance(labels[dim], tuple) else labels[dim]
            if dim not in where and len(known) > 1:
                raise InputError(f"{dim}: name one of {known!r:.120}")
            value = where.pop(dim, known[0])
            plain = isinstance(value, (str, int, float, np.number))
            places = [i for i, label in enumerate(known) if plain and value == label]
            if not places:
                raise InputError(f"{dim}: no cell has {shown(value)}; there are {known!r:.120}")
            index.append(places[0])
        if where:
            raise unknown("dimension", next(iter(where)), self.layout.dims)
        name = self._addresses[tuple(index)]
        content = self._content(name)
        if content is None:
            reason = self._reasons.get(name, "")
            raise InputError(f"this cell is {self._status[name]}{': ' * bool(reason)}{reason}; it has no trajectory")
        data = unpack(content)
        found = _trajectory(data)
        if found is None:
            reason = data.attrs["reason"] or "a plan, whose numbers are in data"
            raise InputError(f"this cell is {data.attrs['status']}: {reason}; it has no trajectory")
        return found

    @property
    def reasons(self) -> dict[str, int]:
        """Why cells were refused, failed or went wrong, and how many; the most frequent first."""
        counts: Counter[str] = Counter()
        for name in self._addresses.values():
            status = self._status[name]
            if status in (REFUSED, FAILED, ERROR):
                counts[f"{status}: {self._reasons[name]}"] += 1
        return dict(counts.most_common())

    @checked
    def plot(
        self, x: str, y: str = "error", color: str | None = None, *, at: Mapping[str, Any] | None = None,
        ax: Axes | None = None, interactive: bool = False,
    ) -> Any:  # fmt: skip
        """Draw lines, a heat map or a phase diagram; seeds and runs are averaged over.

        Parameters
        ----------
        x: a field of the grid, or ``"time"``.
        y: a variable, for lines with a band of one standard deviation; or a second field, for a map.
        color: the field whose values have a line each; of a map the variable that is drawn, ``"error"`` by default, or
            ``"status"`` for where cells were done, refused or diverged.
        at: values at which other dimensions are taken, such as ``{"time": 5, "scale": "meso"}``; the last time is taken
            by default, and in a map the first scale.
        ax: matplotlib axes to draw on; new ones by default.
        interactive: a Plotly figure to hover over instead, which is returned.
        """
        from ..plot.grid import draw

        if at is not None and not isinstance(at, Mapping):
            raise InputError(f"at: expected a mapping from dimensions to values, got {shown(at)}")
        if interactive:
            from ..plot.interactive import sweep

            if ax is not None:
                raise InputError("plot: axes are for matplotlib; leave them out, or interactive=True")
            return sweep(self.data, x, y, color, at=at)
        return draw(self.data, x, y, color, dict(at or {}), ax)

    def _repr_html_(self) -> str:
        from ..plot.notebook import card

        return card(repr(self), self._drawn_small(), describe="error against the longest field of the grid")

    def _drawn_small(self) -> Callable[[Any], object] | None:
        """What draws the error against the longest field, others at their first values; nothing if none is done."""
        axes = sorted(self.layout.grid.axes, key=lambda axis: -len(axis.values))
        if not axes or not self.counts.get("done") or "error" not in self.data:
            return None
        names = [axis.names[0] for axis in axes]
        rest = {name: self.data[name].values[0] for name in names[1:]}
        return lambda ax: self.plot(names[0], at=rest, ax=ax)

    def wait(self) -> Sweep:
        """Wait until all cells are done; what kept the sweep from going on is raised here."""
        if self._thread is not None:
            try:
                while self._thread.is_alive():
                    self._thread.join(0.2)  # so that Ctrl-C is heard
            except KeyboardInterrupt:
                self.stop()
                raise
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        return self

    def stop(self) -> None:
        """Hand out no more cells, and end the workers; cells that are done are kept."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def __repr__(self) -> str:
        sizes = " x ".join(f"{n} {dim}" for dim, n in zip(self.layout.dims, self.layout.shape, strict=True))
        lines = [f"sweep of {sizes}: {len(self._addresses)} cells{', running' * self.running}"]
        order = ("done", REFUSED, FAILED, ERROR, PENDING)
        lines.append("  " + ", ".join(f"{name}: {self.counts[name]}" for name in order if name in self.counts))
        reasons = list(self.reasons.items())
        lines += (f"  {count} {reason:.160}" for reason, count in reasons[:3])
        if len(reasons) > 3:
            lines.append(f"  and {len(reasons) - 3} other reasons, see reasons")
        kept = f"in {self.folder}" if self.folder else "in memory only; give store=FOLDER to keep them"
        lines.append(f"  kept: {kept}")
        return "\n".join(lines)

    def __len__(self) -> int:
        return len(self._addresses)

    def progress(self) -> str:
        """How many cells are done, where they are, and how to go on."""
        done = len(self) - self.counts.get(PENDING, 0)
        kept = f"are kept in {self.folder}; the same sweep goes on" if self.folder else "are lost, for want of a store"
        return f"{done} of {len(self)} cells {kept}"

    def missing(self) -> list[str]:
        """Addresses of the cells that are not in the store, after looking into it."""
        for name in self._cells:
            if self._status[name] == PENDING:
                self._found_in_store(name)
        return [name for name in self._cells if self._status[name] not in KEPT]

    @checked
    def cell(self, address: str) -> Cell:
        """What is computed under an address."""
        if address not in self._cells:
            raise InputError(f"address: no cell of this sweep has the address {shown(address)}; see missing()")
        return self._cells[address]

    def compute(self, by: Workers, absent: Sequence[str], bar: Any) -> None:
        """Compute cells, and keep each as soon as it is done."""
        later: list[str] = []
        try:
            with closing(in_turn(self._to_do(absent, later, bar), _outcome, by, self._stop.is_set)) as finished:
                for (name, _), found in finished:
                    self._keep(name, Outcome(ERROR, str(found)) if isinstance(found, Died) else found, bar)
            while later and not self._stop.is_set():  # cells that other processes have claimed
                clock.sleep(POLL)
                for name in list(self._to_do(later, later := [], bar)):
                    self._keep(name[0], compute(name[1]), bar)
        finally:
            if isinstance(self.store, Store):
                self.store.close()

    def _to_do(self, absent: Iterable[str], later: list[str], bar: Any) -> Iterator[tuple[str, Cell]]:
        """Cells that are neither done nor being computed, one by one; those computed elsewhere go into `later`."""
        for name in absent:
            if not self.store.claim(name):
                later.append(name)
            elif self._found_in_store(name):  # another process has been faster
                self.store.release(name)
                bar.update()
            else:
                yield name, self._cells[name]

    def _found_in_store(self, name: str) -> bool:
        """Whether a cell is in the store, and whole."""
        content = self.store.get(name) if self.store.has(name) else None
        if content is None:
            return False
        about = attributes(content)
        self._done(name, Outcome(about["status"], about["reason"], about["seconds"], content))
        return True

    def _content(self, name: str) -> bytes | None:
        """What the store has of a cell; one that was kept and is there no longer, or damaged, is pending again."""
        content = self.store.get(name)
        if content is None and name in self._cells and self._status[name] in KEPT:
            self._status[name] = PENDING
            self._reasons.pop(name, None)
            self._seconds.pop(name, None)
            self._finished += 1
        return content

    def _keep(self, name: str, found: Outcome, bar: Any) -> None:
        if found.status in KEPT:
            self.store.put(name, found.content)
        self._done(name, found)
        self.store.release(name)
        bar.update()

    def _done(self, name: str, found: Outcome) -> None:
        self._status[name], self._seconds[name] = found.status, found.seconds
        if found.reason:
            self._reasons[name] = found.reason
        self._finished += 1


def _trajectory(data: xr.Dataset) -> Trajectory | None:
    """The trajectory of a cell, or None for one that has none, such as a plan."""
    if "start_Q" not in data:
        return None
    data.attrs = {name: value for name, value in data.attrs.items() if name not in OF_CELLS}
    return from_dataset(data)


def _outcome(job: tuple[str, Cell]) -> Outcome:
    return compute(job[1])
