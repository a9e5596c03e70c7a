"""Compiled code on disk: never older than what it was compiled from, and never trusted when damaged.

A file holds what was compiled for one function and one signature,

    <user's cache folder>/overlaps/<version>/<name>      =  sha256(content) ‖ content

where <version> is a hash of all sources that compute and of the versions of Python, NumPy, Numba and LLVM, and <name>
one of function, signature and CPU. An edit anywhere therefore starts a new folder; the `VERSIONS` used last are left
and the others removed. A process during which a file is edited reads and writes nothing from then on: modules are
imported when they are needed, and those of before and after the edit would share a folder. Files are written whole or
not at all, so processes may compile at once. A file whose content does not have its hash is removed, and its function
compiled anew. Where nothing can be written, code is compiled in every process, and a warning says so once.

The environment variable OVERLAPS_CACHE_DIR moves the folder; ``overlaps cache --clear`` empties it.

>>> import os, tempfile
>>> from unittest import mock
>>> with tempfile.TemporaryDirectory() as there, mock.patch.dict(os.environ, {VARIABLE: there}):
...     write("example", b"code")
...     read("example")
True
b'code'
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import sys
import warnings
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path

VARIABLE = "OVERLAPS_CACHE_DIR"
WARNED = "OVERLAPS_CACHE_WARNED"  # handed on to the processes that this one starts, so that one warning is given
REMEDY = f"set {VARIABLE} to a folder that can be written"
OTHERS = ("papers", "pages")  # folders in which nothing is compiled
VERSIONS = 10  # folders that are left: those of several environments, and of a few edits
PACKAGE = Path(__file__).parent.parent
DIGEST = 32  # bytes of a SHA-256
SAME_CODE = ("NUMBA_CACHE_DIR", "NUMBA_NUM_THREADS")  # settings of Numba that leave the code as it is
LETTERS = 24  # of the name of a version


def home() -> Path | None:
    """The folder named by OVERLAPS_CACHE_DIR, or `overlaps` in the user's cache folder; None where there is neither."""
    if chosen := os.environ.get(VARIABLE):
        return Path(chosen).absolute()
    base = os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME", "")
    if os.path.isabs(base):
        return Path(base) / "overlaps"
    try:
        return Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "overlaps"
    except RuntimeError:  # a user without a home
        return None


def sources() -> str:
    """Hash of all files that compute, which are all but those of papers and pages, as this process found them."""
    return _found()[1]


@cache
def _found() -> tuple[dict[str, tuple[int, int]], str]:
    """Dates and sizes of the files when this process began, and then their hash, so that no edit is missed."""
    return {str(file): _edit_and_size(file) for file in _files()}, _hashed()


def changed() -> bool:
    """Whether a file was edited since this process began, so that what it compiles belongs to no set of sources."""
    return _hashed() != sources()


_unedited: set[str] = set()  # modules that were found to be as they were when this process began


def imports_changed() -> bool:
    """Whether a module in use was edited since this process began: what was kept may belong to another text of it.

    A module is checked once, since the code in use is that of its import.
    """
    states = _found()[0]
    for name, module in sys.modules.copy().items():
        if name.startswith(f"{PACKAGE.name}.") and name not in _unedited:
            file = getattr(module, "__file__", None)
            if file in states:
                with suppress(OSError):
                    if _edit_and_size(Path(file)) != states[file]:
                        return True
            _unedited.add(name)
    return False


def _files() -> list[Path]:
    return sorted(file for file in PACKAGE.rglob("*.py") if file.relative_to(PACKAGE).parts[0] not in OTHERS)


def _edit_and_size(file: Path) -> tuple[int, int]:
    """Time of the last edit, and size."""
    state = file.stat()
    return state.st_mtime_ns, state.st_size


def _hashed() -> str:
    digest = sha256()
    for file in _files():
        content = file.read_bytes()
        digest.update(f"{file.relative_to(PACKAGE).as_posix()} {len(content)}\n".encode() + content)
    return digest.hexdigest()


@cache
def version() -> str:
    """Name of the folder for the sources, libraries and settings of this process."""
    import llvmlite
    import numba
    import numpy

    settings = sorted(i for i in os.environ.items() if i[0].startswith("NUMBA_") and i[0] not in SAME_CODE)
    libraries = numpy.__version__, numba.__version__, llvmlite.__version__
    return sha256(repr((sources(), sys.version, sys.platform, libraries, settings)).encode()).hexdigest()[:LETTERS]


def folder() -> Path | None:
    """Where this process keeps its compiled code, if it has a place to keep it."""
    where = home()
    return where / version() if where else None


def read(name: str) -> bytes | None:
    """What was kept under a name, or None, as after an edit of the sources. A file that is not whole is removed."""
    where = folder()
    if where is None or imports_changed():
        return None
    _note_use(where)
    try:
        stored = (where / name).read_bytes()
    except OSError:
        return None
    content = stored[DIGEST:]
    if sha256(content).digest() == stored[:DIGEST]:
        return content
    remove(name)
    return None


def remove(name: str) -> None:
    """Remove what is kept under a name, whatever stands there."""
    if where := folder():
        path = where / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with suppress(OSError):
                path.unlink()


def write(name: str, content: bytes, again: bool = True) -> bool:
    """Keep this under a name, for all processes of the same version; whether that was possible."""
    where = folder()
    if where is None:
        warn_once(f"this user has no home folder; {REMEDY}")
        return False
    try:
        if not where.is_dir():
            where.unlink(missing_ok=True)  # a file of that name is none of ours
            where.mkdir(parents=True)
            _forget(where)
        _replace(where / name, sha256(content).digest() + content)
    except (FileExistsError, FileNotFoundError):  # another process has made the folder, or removed it, in the meantime
        if again:
            return write(name, content, again=False)
        warn_once(f"{where} is not a folder; {REMEDY}")
        return False
    except OSError as error:
        warn_once(f"{where} cannot be written ({error.strerror or error}); {REMEDY}")
        return False
    return True


def writable() -> bool:
    """Whether code can be kept at all; if not, the warning is given now."""
    return write("writable", b"")


def _replace(path: Path, stored: bytes) -> None:
    """Write a file so that other processes see all of it or none."""
    draft = path.with_name(f"draft-{secrets.token_hex(8)}")
    try:
        draft.write_bytes(stored)
        try:
            draft.replace(path)
        except IsADirectoryError:  # a folder of that name is none of ours
            shutil.rmtree(path)
            draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def _forget(newest: Path) -> None:
    """Remove the folders of all versions but the last ones."""
    others = sorted((path for path in _versions(newest.parent) if path != newest), key=_last_use)
    for path in others[: max(len(others) - (VERSIONS - 1), 0)]:
        shutil.rmtree(path, ignore_errors=True)


@cache
def _note_use(where: Path) -> None:
    """Make this version the last one used."""
    with suppress(OSError):
        os.utime(where)


def _last_use(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:  # removed by another process
        return 0.0


def warn_once(reason: str) -> None:
    """Say why code is not kept, once for this process and those that it starts."""
    if WARNED not in os.environ:
        os.environ[WARNED] = "1"
        message = f"compiled code is not kept, so every process compiles anew: {reason}"
        warnings.warn(message, RuntimeWarning, stacklevel=2)


def contents() -> tuple[int, int]:
    """Number of files that are kept, of all versions, and their bytes."""
    sizes = []
    for each in _versions(home()):
        for path in each.rglob("*"):
            with suppress(OSError):  # removed by another process
                sizes += [path.stat().st_size] if path.is_file() else []
    return len(sizes), sum(sizes)


def clear() -> None:
    """Remove all that is kept, of all versions, and nothing else that may stand in the folder."""
    for path in _versions(home()):
        shutil.rmtree(path, ignore_errors=True)


def _versions(where: Path | None) -> list[Path]:
    """The folders of all versions that are there."""
    names = re.compile(f"[0-9a-f]{{{LETTERS}}}")
    found = list(where.iterdir()) if where and where.is_dir() else []
    return [path for path in found if names.fullmatch(path.name) and path.is_dir() and not path.is_symlink()]
