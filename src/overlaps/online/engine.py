"""The engine of one-pass training: what `overlaps.solve`, `sample` and `train` ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..trajectory.dataset import Trajectory


# each scale is loaded when it is asked for: meso needs no quadrature, and macro no samples
def solve(*arguments: Any, **options: Any) -> Trajectory:
    """Macro, see `overlaps.solve`."""
    from .macro import solve

    return solve(*arguments, **options)


def sample(*arguments: Any, **options: Any) -> Trajectory:
    """Meso, see `overlaps.sample`."""
    from .meso import sample

    return sample(*arguments, **options)


def train(*arguments: Any, **options: Any) -> Trajectory:
    """Micro, see `overlaps.train`."""
    from .micro import train

    return train(*arguments, **options)
