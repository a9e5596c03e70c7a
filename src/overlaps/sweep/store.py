"""A store: one file for each cell, under its address, whole or not there, and never trusted when damaged.

    <folder>/cells/<2 letters>/<address>.npz      =  packed dataset ‖ seal (see overlaps.interface.files)
    <folder>/damaged/                             what was not what had been written, set aside
    <folder>/claims                               locks of the cells that are being computed, without contents

Two sweeps may use one store at once: a cell that one of them computes is claimed, by a lock on one byte of `claims`
that ends with its process, however that ends. Such locks belong to a process, so sweeps of the same process claim cells
among themselves first. Where there are no locks, two processes may compute a cell, and the later result takes the place
of the earlier, which it equals.

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
import threading
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


@dataclass
class _Claims:
    """What the sweeps of this process have claimed in a folder, under one file of locks.

    When a process closes a file it loses all locks on it, whoever opened it, so it is opened once for all of them.

    file: of the locks, open while there are any. owners: which store has claimed which address.
    """

    file: int | None = None
    owners: dict[str, Store] = field(default_factory=dict)

    def lock(self, place: str, address: str) -> bool:
        """Lock a cell against other processes; False where one of them has it."""
        if fcntl is None:
            return True
        if self.file is None:
            self.file = os.open(os.path.join(place, "claims"), os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.lockf(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, int(address[:12], 16))
        except BlockingIOError:
            return False
        except OSError:  # a file system without locks
            return True
        return True

    def unlock(self, address: str) -> None:
        if fcntl is not None and self.file is not None:
            with suppress(OSError):
                fcntl.lockf(self.file, fcntl.LOCK_UN, 1, int(address[:12], 16))

    def close(self) -> None:
        if self.file is not None:
            os.close(self.file)
            self.file = None


_CLAIMS: dict[str, _Claims] = {}  # by the real path of the folder
_GUARD = threading.Lock()


class Store:
    """A folder of cells; made by `Store.at`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._place = os.path.realpath(folder)

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
        if not path.parent.is_dir():
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
        """Whether this sweep may compute a cell; False where another one does, of this process or of another."""
        with _GUARD:
            claims = _CLAIMS.setdefault(self._place, _Claims())
            if address in claims.owners:
                return claims.owners[address] is self
            if not claims.lock(self._place, address):
                return False
            claims.owners[address] = self
            return True

    def release(self, address: str) -> None:
        """Give up a claim."""
        with _GUARD:
            claims = _CLAIMS.get(self._place)
            if claims is not None and claims.owners.get(address) is self:
                claims.unlock(address)
                del claims.owners[address]

    def close(self) -> None:
        """Give up all claims."""
        with _GUARD:
            claims = _CLAIMS.get(self._place, _Claims())
            for address in [name for name, owner in claims.owners.items() if owner is self]:
                claims.unlock(address)
                del claims.owners[address]
            if not claims.owners:
                claims.close()
                _CLAIMS.pop(self._place, None)

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
