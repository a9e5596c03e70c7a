"""Files of results: written whole or not at all, and read back only if they are what was written.

A file is written under another name in the same folder, flushed to the disk and then renamed, so that whoever looks
finds the old contents or the new ones, also after a kill or on a full disk. Datasets are turned into bytes in memory
before, since HDF5 may crash where a disk is full. A sealed file ends with a checksum of all that stands before,

    contents ‖ "\\noverlaps sha256 " ‖ sha256(contents) in hexadecimal ‖ "\\n",

which readers of netCDF pass over. A seal that is wrong is a `DamagedFileError`, and HDF5 never sees the contents.

>>> sealed(b"contents")
b'contents\\noverlaps sha256 d1b2a59fbea7e20077af9f91b27e95e865061b270be03ff539ab3b73587882e8\\n'
"""

from __future__ import annotations

import errno
import io
import os
import re
import secrets
import socket
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import DamagedFileError, InputError, shown
from .packed import ZIP, unpack

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

Name = str | os.PathLike[str]
MARK = b"\noverlaps sha256 "
SEAL = len(MARK) + 64 + 1  # bytes
PROMISE = "checksum"  # attribute of a dataset that is written with a seal, so that a seal cut off is missed
HDF5 = b"\x89HDF\r\n\x1a\n"  # what a netCDF file begins with
REMEDY = "compute it again, or take a copy"


def write(path: Name, content: bytes | str) -> Path:
    """Write a file whole or not at all; text in UTF-8. An `OSError`, a full disk for instance, names the file."""
    path = Path(path)
    content = content.encode() if isinstance(content, str) else content
    target = Path(os.path.realpath(path)) if os.path.islink(path) else path  # a link stays a link
    try:
        if target.exists() and not target.is_file():  # devices and pipes have no contents to be kept
            target.write_bytes(content)
            return path
        draft = target.with_name(f".draft-{_host()}-{os.getpid()}-{secrets.token_hex(4)}")
        try:
            with draft.open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(target)
        except BaseException:
            with suppress(OSError):
                draft.unlink()
            raise
    except OSError as error:
        reason = f"{error.strerror or error}; the file was not written"
        raise OSError(error.errno or errno.EIO, reason, str(path)) from None
    return path


def clear_drafts(folder: Path) -> None:
    """Remove what processes that were killed while they wrote have left in a folder."""
    for draft in folder.glob(f".draft-{_host()}-*") if os.name == "posix" else ():
        found = re.fullmatch(r"(\d+)-[0-9a-f]+", draft.name.removeprefix(f".draft-{_host()}-"))
        if found and not _alive(int(found[1])):
            draft.unlink(missing_ok=True)


@cache
def _host() -> str:
    """Name of this machine as part of a file name: process numbers mean nothing on another."""
    return re.sub(r"\W", "_", socket.gethostname())


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # that of another user
        pass
    return True


def sealed(content: bytes) -> bytes:
    """Contents with their checksum at the end."""
    return content + MARK + sha256(content).hexdigest().encode() + b"\n"


def read_sealed(name: str, path: Name) -> tuple[bytes, bool]:
    """Contents of a file, and whether a checksum vouches for them; one that is wrong is refused.

    name: what is said to refuse a file that is not there, cannot be read or is damaged.
    """
    path = Path(path)
    if not os.path.isfile(path):  # False for names that cannot be, too long ones for instance
        raise InputError(f"{name}: no file {shown(path)}")
    try:
        stored = path.read_bytes()
    except OSError as error:
        raise InputError(f"{name}: {path} cannot be read ({error.strerror})") from None
    content, seal = stored[:-SEAL], stored[-SEAL:]
    if not seal.startswith(MARK):
        return stored, False
    if sealed(content)[-SEAL:] != seal:
        reason = f"its contents are not those that were written; {REMEDY}"
        raise DamagedFileError(f"{name}: {path} is damaged: {reason}", path)
    return content, True


def write_dataset(path: Name, dataset: xr.Dataset) -> Path:
    """Write a dataset as a sealed netCDF file."""
    return write(path, dataset_bytes(dataset))


def dataset_bytes(dataset: xr.Dataset) -> bytes:
    """A dataset as a sealed netCDF file has it."""
    buffer = io.BytesIO()
    dataset.assign_attrs({PROMISE: "sha256, at the end of the file"}).to_netcdf(buffer, engine="h5netcdf")
    return sealed(buffer.getvalue())


def read_dataset(name: str, path: Name) -> tuple[xr.Dataset, bool]:
    """A dataset from a netCDF file, or the packed one of a cell, and whether a checksum vouches for it."""
    import xarray as xr

    content, vouched = read_sealed(name, path)
    if vouched and content.startswith(ZIP):
        return unpack(content), vouched
    if not content.startswith(HDF5):
        raise InputError(f"{name}: {path} is not a netCDF file written by overlaps")
    try:
        with xr.open_dataset(io.BytesIO(content), engine="h5netcdf") as opened:
            dataset = opened.load()
    except Exception as error:  # what HDF5 says of files that are damaged is of every kind
        words = " ".join(str(error).split())
        raise DamagedFileError(f"{name}: {path} is damaged or cut short ({words}); {REMEDY}", Path(path)) from None
    if dataset.attrs.pop(PROMISE, None) is not None and not vouched:
        raise DamagedFileError(f"{name}: {path} is cut short: its checksum is missing; {REMEDY}", Path(path))
    return dataset, vouched


def picture(figure: Figure, kind: str | None = "png", **options: Any) -> bytes:
    """The content of a picture file of that kind; options as for `Figure.savefig`."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind, **options)
    return buffer.getvalue()


def write_picture(path: Name, figure: Figure, **options: Any) -> Path:
    """Write a picture in the format that the ending of its name says; options as for `Figure.savefig`."""
    return write(path, picture(figure, Path(path).suffix[1:] or None, **options))
