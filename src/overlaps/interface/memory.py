"""How much memory a computation may take: what the machine has free, or the container that it runs in.

>>> from overlaps.interface.memory import available_memory
>>> available_memory() > 0
True
"""

from __future__ import annotations

from pathlib import Path

UNKNOWN = 16e9  # where the system does not say
MEMINFO, LIMIT = Path("/proc/meminfo"), Path("/sys/fs/cgroup")


def available_memory() -> float:
    """Bytes that can be taken without swapping; 16 GB where the system does not say."""
    found = [x for x in (_of_the_machine(), _of_the_container()) if x is not None]
    return min(found, default=UNKNOWN)


def _of_the_machine() -> float | None:
    try:
        lines = dict(line.split(":", 1) for line in MEMINFO.read_text().splitlines() if ":" in line)
        return 1024.0 * int(lines["MemAvailable"].split()[0])
    except (OSError, KeyError, ValueError, IndexError):
        return None


def _of_the_container() -> float | None:
    """What a control group leaves; None without one, or where it has no limit."""
    try:
        most, used = (int((LIMIT / name).read_text()) for name in ("memory.max", "memory.current"))
    except (OSError, ValueError):
        return None
    return float(max(0, most - used))
