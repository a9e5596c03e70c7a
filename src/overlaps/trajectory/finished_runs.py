"""Runs that are finished, kept in a folder while others go on: what was interrupted goes on, more runs extend fewer.

    <folder>/<job>/<first run>-<count>-<letters>.npz      =  packed arrays of some runs ‖ seal

A job is what decides the runs: problem, start, seed, scale, times and options, but not how many there are, since run i
has random numbers of its own. Files are written about once a second, whole or not at all; a damaged
file causes a warning and is removed, and its runs are done again.

>>> import numpy as np, tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     with FinishedRuns(folder, "job") as kept:
...         kept.add(3, {"Q": np.ones(2)})
...     with FinishedRuns(folder, "job") as again:
...         again.rows[3]
{'Q': array([1., 1.])}
"""

from __future__ import annotations

import os
import secrets
import threading
import time as clock
import warnings
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from ..interface import files
from ..interface.errors import DamagedFileError, InputError
from ..interface.packed import pack, parts
from ..problem.address import address, version

EVERY = 1.0  # seconds between two files
Row = dict[str, NDArray[Any]]


class FinishedRuns:
    """The finished runs of a job; `rows` are those that were there before, by their number."""

    def __init__(self, folder: str | os.PathLike[str], job: str) -> None:
        try:
            self.folder = Path(folder) / job
        except TypeError:
            raise InputError(f"store: expected the path of a folder, got {folder!r:.80}") from None
        self.rows: dict[int, Row] = {}
        self._new: dict[int, Row] = {}
        self._lock, self._written = threading.Lock(), clock.monotonic()

    @classmethod
    def of(cls, folder: str | os.PathLike[str], *job: Any) -> FinishedRuns:
        """Those of the job that these values decide."""
        return cls(folder, address(version(), *job))

    def __enter__(self) -> FinishedRuns:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"store: cannot make the folder {self.folder} ({error.strerror})") from None
        for path in sorted(self.folder.glob("*.npz")):
            try:
                content, vouched = files.read_sealed("store", path)
                if not vouched:
                    raise DamagedFileError(f"store: {path} is damaged: its checksum is missing", path)
            except DamagedFileError as error:
                warnings.warn(f"{error}; its runs are done again", UserWarning, stacklevel=3)
                path.unlink(missing_ok=True)
                continue
            values = parts(content).values
            for i, run in enumerate(values.pop("run").tolist()):
                self.rows[run] = {name: each[i] for name, each in values.items()}
        return self

    def add(self, run: int, row: Mapping[str, NDArray[Any]]) -> None:
        """Keep a run; arrays of a name have the same shape in all runs."""
        with self._lock:
            self._new[run] = dict(row)
            if clock.monotonic() - self._written > EVERY:
                self._write()

    def _write(self) -> None:
        if self._new:
            runs = sorted(self._new)
            rows = [self._new[run] for run in runs]
            stacked = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
            data = {name: (tuple(f"{name} {i}" for i in range(x.ndim)), x) for name, x in stacked.items()}
            content = pack(xr.Dataset({**data, "run": (("runs",), np.array(runs))}))
            name = f"{runs[0]:08d}-{len(runs)}-{secrets.token_hex(4)}.npz"
            files.write(self.folder / name, files.sealed(content))
            self._new = {}
        self._written = clock.monotonic()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Write the finished runs, also after an interruption."""
        with self._lock:
            self._write()
