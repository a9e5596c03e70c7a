"""Fair timing: sides take turns, so that whatever else the machine does falls on all of them alike.

Compiled code is run once before it is timed. A cost is the minimum over the turns, in CPU time of this process (a core
lost to another program is not counted); a ratio is the median over turns of the ratio within a turn.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

Side = tuple[Callable[[], Any], int]  # what to run, and how many steps that is


@dataclass(frozen=True)
class Race:
    """Seconds per step of each side, turn by turn."""

    turns: Mapping[str, list[float]]

    def cost(self, name: str) -> float:
        """Seconds a step takes: the minimum over turns."""
        return min(self.turns[name])

    def ratio(self, slow: str, fast: str) -> float:
        """How many times the cost of `fast` a step of `slow` takes."""
        return float(np.median(np.array(self.turns[slow]) / np.array(self.turns[fast])))


def race(sides: Mapping[str, Side], repeats: int, clock: Callable[[], float] = time.process_time) -> Race:
    """Let the sides take turns `repeats` times, after one turn that does not count."""
    turns: dict[str, list[float]] = {name: [] for name in sides}
    for turn in range(repeats + 1):
        for name, (go, steps) in sides.items():
            began = clock()
            go()
            passed = clock() - began
            if turn > 0:
                turns[name].append(max(passed, 1e-9) / steps)
    return Race(turns)
