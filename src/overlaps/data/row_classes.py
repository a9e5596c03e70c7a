"""Gaussians in place of the classes of a table: what theory of classifiers takes labelled rows for.

The components are those of `overlaps.data.class_moments`, one for each class or group, in the principal axes of all
rows. Overlaps are written in these axes with their second moments

    ω = diag Σ_c p_c (Σ_c + μ_c μ_cᵀ),

not in the eigenbasis of Σ_c p_c Σ_c as for `GaussianClasses`: then Q = W diag ω Wᵀ/N is the second moment of the
fields, as it is in training on the rows themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .models.classes import GaussianClasses

Array = NDArray[np.float64]


@dataclass(frozen=True, repr=False, eq=False)
class RowClasses(GaussianClasses):
    """Gaussian components in the principal axes of the rows that they are taken from.

    second_moments: ω, (N,).
    class_numbers: number of the class of each component, (components,).
    """

    second_moments: Array = ()  # type: ignore[assignment]
    class_numbers: NDArray[np.int64] = ()  # type: ignore[assignment]

    @cached_property
    def _shared(self) -> None:  # type: ignore[override]
        """No levels: the means, too, have components along all axes."""

    @cached_property
    def _levels(self) -> tuple[Array, Array, NDArray[np.int64]]:
        return np.eye(self.size), np.asarray(self.second_moments), np.ones(self.size, np.int64)

    def turned(self, rows: Array) -> Array:
        """The rows as they are: these are the axes."""
        return rows
