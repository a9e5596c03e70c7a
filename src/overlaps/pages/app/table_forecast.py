"""The room *my data*, what it computes: what `overlaps learn` says of a table that was dropped.

A file is opened in a process of `jobs` only, and never with `pickle`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar
from zipfile import BadZipFile

import numpy as np
import xarray as xr

from ...data import Samples
from ...data.table import beginning
from ...interface.errors import InputError
from ...plan.forecast import forecast
from .choice import Choice
from .uploads import SHIPPED

MANY = 2000  # columns that are offered


@dataclass(frozen=True)
class Tabled(Choice):
    """A table, its column of labels, and whether columns are divided by their deviations.

    rows: hash of the file, ``"digits"`` for the shipped images, odd or even, or nothing.
    file: what the visitor calls it.
    """

    ROOM: ClassVar[str] = "data"
    WORDS: ClassVar[Mapping[str, tuple[str, ...]]] = {"standardise": ("no", "yes")}
    TEXTS: ClassVar[Mapping[str, int]] = {"rows": 64, "file": 200, "target": 200}

    rows: str = ""
    file: str = ""
    target: str = ""
    standardise: str = "no"

    def code(self) -> str:
        if not self.rows:
            return "# drop a file first\n"
        standardise = ", standardise=True" if self.standardise == "yes" else ""
        if self.rows == SHIPPED:
            data = f"ov.Samples(ov.digits(), ov.digit_labels() % 2{standardise})"
        else:
            data = f"ov.Samples({self.file!r}, target={self.target!r}{standardise})"
        return f"""import overlaps as ov

result = ov.forecast({data}, seed=0)
print(result)
figure = result.plot()
figure.savefig("overlaps.png")
"""


@dataclass(frozen=True)
class ShownForecast:
    """A forecast as the page shows it: words, curves, numbers and a picture."""

    words: str
    verdict: str
    curves: xr.Dataset
    summary: dict[str, Any]
    pictures: dict[str, bytes]


def columns(path: Path) -> list[str]:
    """Names, or numbers, of the columns of a table."""
    if path.suffix == ".csv":
        begins = beginning(path)
        found = begins.cells if begins.header else [str(i) for i in range(len(begins.cells))]
    else:
        found = _arrays(path)
    if len(found) > MANY:
        raise InputError(f"file: {len(found)} columns; at most {MANY} here, `overlaps learn` takes any")
    return found


def _arrays(path: Path) -> list[str]:
    """Numbers of the columns of an array, or names of the arrays of an archive besides X."""
    try:
        if path.suffix == ".npz":
            with np.load(path, allow_pickle=False) as arrays:
                return [key for key in arrays.files if key != "X"]
        shape = np.load(path, mmap_mode="r", allow_pickle=False).shape
    except (ValueError, OSError, EOFError, BadZipFile) as error:
        raise InputError(f"file: it holds no numbers that can be read ({' '.join(str(error).split())})") from None
    if len(shape) != 2:
        raise InputError(f"file: expected a table, rows and columns, got an array of {len(shape)} dimensions")
    return [str(i) for i in range(shape[1])]


def small() -> None:
    """A forecast of few rows, which compiles what larger ones need."""
    rows = np.random.default_rng(0).standard_normal((60, 3))
    forecast(Samples(rows, rows.sum(1)), runs=2, seed=0)


def learn(path: Path | None, chosen: Tabled) -> ShownForecast:
    """The forecast of a file, or of the shipped digits."""
    import matplotlib.pyplot as plt

    from ...data.digits import digit_labels, digits
    from ...interface import files

    standardise = chosen.standardise == "yes"
    if path is None:
        data = Samples(digits(), digit_labels() % 2, standardise=standardise)
    else:
        data = Samples(path, target=chosen.target, standardise=standardise)
    found = forecast(data, seed=0)
    picture = found.plot()
    pictures = {kind: files.picture(picture, kind) for kind in ("png", "svg")}
    plt.close(picture)
    words = repr(found).replace(str(path), chosen.file)
    return ShownForecast(words, found.trust.words, found.curves.load(), found.summary(), pictures)
