"""What the processes of a gallery do in tests: no figure is drawn, and some of them die."""

from __future__ import annotations

import os
from pathlib import Path

from overlaps.papers.workers import Trouble


def draw(handle: str, name: str, code: str, folder: Path, quick: bool) -> Trouble:
    """Leaves a file that names its process; "dies" ends that process, "fails" tells of trouble."""
    if name == "dies":
        os._exit(1)
    if name == "dies once" and not (folder / f"{handle}-{name}").exists():
        (folder / f"{handle}-{name}").touch()
        os._exit(1)
    (folder / f"{handle}-{name}").write_text(str(os.getpid()))
    return Trouble("trouble" if name == "fails" else "")
