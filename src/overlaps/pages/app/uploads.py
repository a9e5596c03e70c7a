"""Files that visitors have dropped: kept while the server runs, under the hash of their content, within a bound.

A state names a file by its hash, so that a link restores it; nothing of a file is opened here, that is left to a
process of `jobs`. Shipped rows are named by a word.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import tempfile
import threading
from pathlib import Path

from ...interface.errors import InputError

LARGEST = 20 * 2**20  # bytes of a file
TOGETHER = 10 * LARGEST  # bytes of all that are kept
KINDS = (".csv", ".npy", ".npz")
SHIPPED = "digits"


class Uploads:
    """A folder of files named by their content."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="overlaps-")
        self._kept: list[Path] = []
        self._lock = threading.Lock()

    def keep(self, contents: str, name: str) -> str:
        """Write what a browser has sent (a data URL); its hash with the suffix of its name."""
        kind = Path(name).suffix.lower()
        if kind not in KINDS:
            raise InputError(f"file: {kind or 'a file without suffix'} is not read; {', '.join(KINDS)} are")
        text = contents.partition(",")[2]
        if len(text) * 3 // 4 > LARGEST:
            size = len(text) * 3 / 4 / 2**20
            raise InputError(f"file: {size:.0f} MB; at most {LARGEST >> 20} MB here, `overlaps learn` takes any")
        try:
            raw = base64.b64decode(text, validate=True)
        except binascii.Error:
            raise InputError("file: it did not arrive whole; drop it again") from None
        rows = hashlib.sha256(raw).hexdigest()[:32] + kind
        path = Path(self._folder.name) / rows
        with self._lock:
            path.write_bytes(raw)
            self._kept = [*(p for p in self._kept if p != path), path]
            while sum(p.stat().st_size for p in self._kept) > TOGETHER:
                self._kept.pop(0).unlink()
        return rows

    def path(self, rows: str) -> Path:
        """The file of that hash."""
        path = Path(self._folder.name) / rows
        if not re.fullmatch(r"[0-9a-f]{32}\.(csv|npy|npz)", rows) or not path.is_file():
            raise InputError("rows: this file is not kept here any more; drop it again")
        return path

    def close(self) -> None:
        self._folder.cleanup()
