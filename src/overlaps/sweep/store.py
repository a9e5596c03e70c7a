"""A store: one file for each cell, under its address, whole or not there, and never trusted when damaged.

    <folder>/cells/<2 letters>/<address>.npz      =  packed dataset ‖ seal (see overlaps.interface.files)
    <folder>/damaged/                             what was not what had been written, set aside
    <folder>/claims                               locks of the cells that are being computed, without contents

Two sweeps may use one store at once: a cell that one of them computes is claimed, by a lock on one byte of `claims`
that ends with its process, however that ends. Where there are no such locks, both may compute it, and the later result
takes the place of the earlier, which it equals.

>>> import tempfile
>>> folder = tempfile.TemporaryDirectory()
>>> store = Store.at(folder.name)
>>> store.put("ab" * 32, b"contents")
>>> store.get("ab" * 32), store.get("cd" * 32)
(b'contents', None)
>>> folder.cleanup()
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

from ..interface import files
from ..interface.errors import DamagedFileError, InputError, shown
from ..interface.packed import attributes

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

ENDING = ".npz"
MARK = "store.txt"
ABOUT = (
    "This folder is a store of overlaps: one file for each cell of a sweep, in cells/, named by what was computed.\n"
    "`overlaps store check FOLDER` says what is in it, and whether it is what was written. Files may be removed; they\n"
    "are computed again when they are asked for. `overlaps.load` and `numpy.load` read them.\n"
)


class CellStore(Protocol):
    """Where cells are kept."""

    def has(self, address: str) -> bool: ...
    def get(self, address: str) -> bytes | None: ...
    def put(self, address: str, content: bytes) -> None: ...
    def claim(self, address: str) -> bool: ...
    def release(self, address: str) -> None: ...


@dataclass
class Memory:
    """In memory: for sweeps without a store."""

    contents: dict[str, bytes] = field(default_factory=dict)

    def has(self, address: str) -> bool:
        return address in self.contents

    def get(self, address: str) -> bytes | None:
        return self.contents.get(address)

    def put(self, address: str, content: bytes) -> None:
        self.contents[address] = content

    def claim(self, address: str) -> bool:
        return True

    def release(self, address: str) -> None:
        pass


class Store:
    """A folder of cells; made by `Store.at`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._claims: int | None = None

    @classmethod
    def at(cls, path: str | os.PathLike[str]) -> Store:
        """The store in a folder, which is made if it is not there; a folder of other things is refused."""
        try:
            folder = Path(path)
        except TypeError:
            raise InputError(f"store: expected the path of a folder, got {shown(path)}") from None
        try:
            if folder.exists() and not folder.is_dir():
                raise InputError(f"store: {folder} is a file; name a folder")
            if folder.is_dir() and not (folder / MARK).exists() and not _is_new(folder):
                raise InputError(f"store: {folder} holds other things; name a new folder, or one that a sweep has made")
            (folder / "cells").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"store: cannot make the folder {shown(folder)} ({error.strerror})") from None
        if not (folder / MARK).exists():
            files.write(folder / MARK, ABOUT)
        return cls(folder)

    @classmethod
    def existing(cls, path: str | os.PathLike[str]) -> Store:
        """The store in a folder that is one."""
        if not (Path(path) / MARK).is_file():
            raise InputError(f"store: {path} is no store; name the folder that a sweep has made")
        return cls(Path(path))

    def path(self, address: str) -> Path:
        """Where the file of a cell is, or would be."""
        return self.folder / "cells" / address[:2] / f"{address}{ENDING}"

    def has(self, address: str) -> bool:
        """Whether there is a file, damaged or not."""
        return self.path(address).is_file()

    def get(self, address: str) -> bytes | None:
        """The content of a cell, or None. A damaged file causes a warning, is set aside, and counts as none."""
        path = self.path(address)
        if not path.is_file():
            return None
        try:
            return checked(path)
        except DamagedFileError as error:
            aside = self.set_aside(path)
            warnings.warn(f"{error}; it is set aside as {aside}, and computed again", UserWarning, stacklevel=2)
            return None

    def put(self, address: str, content: bytes) -> None:
        """Keep what came of a cell."""
        path = self.path(address)
        try:
            files.write(path, files.sealed(content))
        except FileNotFoundError:
            path.parent.mkdir(parents=True, exist_ok=True)
            files.write(path, files.sealed(content))

    def set_aside(self, path: Path) -> Path:
        """Move a damaged file out of the way, without overwriting another."""
        folder = self.folder / "damaged"
        folder.mkdir(exist_ok=True)
        number = 0
        while (aside := folder / f"{path.stem}.{number}{ENDING}").exists():
            number += 1
        with suppress(FileNotFoundError):  # where another process was faster
            path.replace(aside)
        return aside

    def claim(self, address: str) -> bool:
        """Whether this process may compute a cell; False where another one does."""
        if fcntl is None:
            return True
        if self._claims is None:
            self._claims = os.open(self.folder / "claims", os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.lockf(self._claims, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, int(address[:12], 16))
        except BlockingIOError:
            return False
        except OSError:  # a file system without locks
            return True
        return True

    def release(self, address: str) -> None:
        """Give up a claim."""
        if fcntl is not None and self._claims is not None:
            fcntl.lockf(self._claims, fcntl.LOCK_UN, 1, int(address[:12], 16))

    def close(self) -> None:
        """Give up all claims."""
        if self._claims is not None:
            os.close(self._claims)
            self._claims = None

    def paths(self) -> Iterator[Path]:
        """Files of all cells, in the order of their addresses."""
        for folder in sorted((self.folder / "cells").glob("??")):
            yield from sorted(folder.glob(f"*{ENDING}"))

    def check(self) -> Contents:
        """Read every file; damaged ones are set aside, and what killed processes have left is removed."""
        counts: dict[str, int] = {}
        damaged: list[Path] = []
        size = 0
        for path in self.paths():
            try:
                content = checked(path)
            except DamagedFileError:
                damaged.append(self.set_aside(path))
                continue
            status = str(attributes(content).get("status", "done"))
            counts[status] = counts.get(status, 0) + 1
            size += path.stat().st_size
        for folder in (self.folder, *(self.folder / "cells").glob("??")):
            files.clear_drafts(folder)
        return Contents(self.folder, counts, size, damaged)


class Contents(NamedTuple):
    """What is in a store: cells by their status, bytes, and files that were damaged, where they are now."""

    folder: Path
    counts: dict[str, int]
    size: int
    damaged: list[Path]

    def __repr__(self) -> str:
        counts = ", ".join(f"{count} {status}" for status, count in sorted(self.counts.items())) or "none"
        lines = [f"store {self.folder}: {sum(self.counts.values())} cells ({counts}), {self.size / 1e6:.3g} MB"]
        if self.damaged:
            lines.append(f"damaged: {len(self.damaged)}, set aside; they are computed again when they are asked for")
            lines += (f"  {path}" for path in self.damaged)
        else:
            lines.append("all are what was written")
        return "\n".join(lines)


def checked(path: Path) -> bytes:
    """Contents of the file of a cell; refused unless its seal is there and right."""
    content, vouched = files.read_sealed("store", path)
    if not vouched:
        raise DamagedFileError(f"store: {path} is damaged: its checksum is missing", path)
    return content


def _is_new(folder: Path) -> bool:
    """Whether a folder is empty, or has only what a process that was killed has left of a new store."""
    return all(re.fullmatch(r"cells|\.draft-.*", each.name) for each in folder.iterdir())
