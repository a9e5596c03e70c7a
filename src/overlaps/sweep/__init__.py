"""Many problems at once: grids of cells, on all cores or a cluster, in a store that keeps what was computed."""

from .result import Sweep
from .sweeping import sweep

__all__ = ["Sweep", "sweep"]
