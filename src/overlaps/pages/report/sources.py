"""What a report is made of: the folder of `overlaps run`, `sweep`, `learn` or `spectrum`, or the record of `verify`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ...interface import files
from ...interface.errors import InputError
from .document import Document
from .forecasts import of_rows, of_spectrum
from .runs import of_run
from .sweeps import of_sweep
from .verdicts import of_verify

KINDS = "`overlaps run`, `sweep`, `learn` or `spectrum`, or the file of `overlaps verify --json`"


def read(source: Path) -> Document:
    """The report on what a command has left in a folder or a file; anything else is refused."""
    if source.is_file():
        return of_verify(source, record(source))
    if not source.is_dir():
        raise InputError(f"report: no folder or file {source}; give one of {KINDS}")
    if (source / "learn.json").exists():
        curves, _ = files.read_dataset("report", source / "learn.nc")
        return of_rows(source, curves, record(source / "learn.json"))
    if (source / "forecast.nc").exists():
        return of_spectrum(source, files.read_dataset("report", source / "forecast.nc")[0])
    if (source / "sweep.nc").exists():
        return of_sweep(source, files.read_dataset("report", source / "sweep.nc")[0])
    if (source / "macro.nc").exists():
        return of_run(source)
    raise InputError(f"report: {source} holds no results that can be reported; give the folder of {KINDS}")


def record(path: Path) -> dict[str, Any]:
    """A file of JSON that a command has written."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        raise InputError(f"report: {path} is no JSON that overlaps has written; give {KINDS}") from None
    if not isinstance(found, dict):
        raise InputError(f"report: {path} is no record that overlaps has written; give {KINDS}")
    return found
