"""Training sets of two classes, ±, with sub-Gaussian noise around the means ±m.

| kind | samples of class ± | m | variance of a coordinate |
|---|---|---|---|
| sphere | ±v + √d u, u uniform on the unit sphere | v | 1 |
| ball | ±v + √d s, s uniform in the unit ball | v | d/(d + 2) |
| truncated | coordinates normal, given that they are above 1 (below −1) | φ(1)/Φ(−1) in every coordinate | .199 |

with v = (distance/√d) (1, …, 1), so that the means of sphere and ball stay at a fixed distance 2·distance as d grows,
while that of the truncated Gaussian grows with √d: |m| = 1.525 √d. The first half of the samples is class +.

>>> import numpy as np
>>> from overlaps.data.two_classes import TwoClasses
>>> X, y = TwoClasses("sphere", distance=5.0).draw(np.random.default_rng(0), samples=4, inputs=100)
>>> X.shape, y
((4, 100), array([ 1.,  1., -1., -1.]))
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..interface.checks import number
from ..interface.errors import InputError, unknown

Array = NDArray[np.float64]
KINDS = ("sphere", "ball", "truncated")
FROM = 1.0  # where the truncated Gaussian begins


@dataclass(frozen=True)
class TwoClasses:
    """Two classes of sub-Gaussian inputs with opposite means.

    Parameters
    ----------
    kind: ``"sphere"``, ``"ball"`` or ``"truncated"``.
    distance: |v|, of the two means of sphere and ball from the origin; fixed at √d for the truncated Gaussian, whose v
        is (1, …, 1).
    """

    kind: str = "sphere"
    distance: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.kind, str) or self.kind not in KINDS:
            raise unknown("kind", self.kind, KINDS)
        if self.kind == "truncated":
            if self.distance is not None:
                raise InputError(
                    "distance: where a truncated Gaussian begins fixes its mean; leave it out, or use kind='sphere'"
                )
        else:
            distance = 5.0 if self.distance is None else self.distance
            object.__setattr__(self, "distance", number("distance", distance, above=0))

    def direction(self, inputs: int) -> Array:
        """v, which unseen classes are made from, (inputs,)."""
        return np.full(inputs, 1.0 if self.distance is None else self.distance / np.sqrt(inputs))

    def mean(self, inputs: int) -> Array:
        """m, the mean of class +, (inputs,)."""
        return self.direction(inputs) * (_truncated_mean() if self.kind == "truncated" else 1.0)

    def variance(self, inputs: int) -> float:
        """Variance of each coordinate within a class."""
        if self.kind == "truncated":
            mean = _truncated_mean()
            return 1 + FROM * mean - mean**2
        return inputs / (inputs + 2) if self.kind == "ball" else 1.0

    def draw(self, rng: np.random.Generator, samples: int, inputs: int) -> tuple[Array, Array]:
        """Inputs (samples, inputs) and labels ±1 (samples,), of which the first half is +1."""
        y = np.where(np.arange(samples) < samples // 2, 1.0, -1.0)
        if self.kind == "truncated":
            from scipy.special import ndtr, ndtri

            # the upper tail through the lower one, where the distribution function does not round to one
            X = -ndtri(ndtr(-FROM) * (1 - rng.random((samples, inputs))))
            X *= y[:, None]
            return X, y
        X = rng.standard_normal((samples, inputs))
        lengths = np.sqrt(np.einsum("ij,ij->i", X, X))
        radius = np.sqrt(inputs) * (rng.random(samples) ** (1 / inputs) if self.kind == "ball" else 1.0)
        X *= (radius / lengths)[:, None]
        X += y[:, None] * self.direction(inputs)
        return X, y


def _truncated_mean() -> float:
    """E[z | z > 1] = φ(1)/Φ(−1)."""
    from scipy.special import ndtr

    return float(np.exp(-(FROM**2) / 2) / np.sqrt(2 * np.pi) / ndtr(-FROM))
