"""Averages of a function of one Gaussian variable over many means and widths at once, E f(mean + sd ξ).

Functions are taken to vary on the scale one, near zero and their kinks, and to be simpler far out. Smooth ones of
narrow fields use the trapezoidal rule, those with kinks panels of Gauss and Legendre that meet there. Wide fields (sd
above 4) use panels that double in width away from zero and kinks: the work grows with the logarithm of the width.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ..averages.rules import density, legendre, smooth_grid
from ..data.nonlinearity import Nonlinearity, nonlinearity, slope
from ..network.activations import Activation
from .table import InterpolationTable

Array = NDArray[np.float64]
RADIUS = 6.5  # |ξ| that is exceeded with probability 1e-10
WIDE = 4.0  # deviation beyond which panels are graded


@dataclass(frozen=True)
class Line:
    """The average over one Gaussian variable.

    Parameters
    ----------
    f: the function.
    spacing: of the nodes, in units of the scale of f.
    """

    f: Nonlinearity
    spacing: float = 0.5

    def mean(self, mean: Array, sd: Array, of: Callable[[Array], Array] = lambda value: value) -> Array:
        """E f(mean + sd ξ), or of a function of f, of the common shape of mean and sd."""
        return self._sum(mean, sd, lambda value, node: of(value))

    def slope(self, mean: Array, sd: Array) -> Array:
        """E f'(mean + sd ξ) = E[ξ f]/sd, for sd > 0, whether or not f has a derivative everywhere."""
        return self._sum(mean, sd, lambda value, node: value * node) / sd

    def expectation(
        self, reach: float, widest: float, of: Callable[[Array], Array] = lambda value: value
    ) -> FieldTable:
        """E f(z + t ξ), or of a function of f, as a table for |z| ≤ reach and t ≤ widest."""
        return self._tabulated(reach, widest, lambda z, t: self.mean(z, t, of))

    def displacement(self, reach: float, widest: float) -> FieldTable:
        """B (1 + t²)/t² as a table, B = E (f(z + t ξ) − f(z))²: small shifts are then as accurate as large ones."""

        def change(z: Array, t: Array) -> Array:
            here, least = self.f.function(z), np.maximum(t, 1e-4 * min(1.0, widest))  # a little above zero
            return self.mean(z, least, lambda value: (value - here) ** 2) * (1 + least**2) / least**2

        return self._tabulated(reach, widest, change)

    def _tabulated(self, reach: float, widest: float, of: Callable[[Array, Array], Array]) -> FieldTable:
        top, fine = (float(_from_field(np.array(max(reach, 1.0)))), float(np.arcsinh(widest))), self.spacing / 4
        rows, columns = 2 * int(np.ceil(top[0] / fine)) + 1, max(12, int(np.ceil(top[1] / fine)) + 1)
        step = 2 * top[0] / (rows - 1), top[1] / (columns - 1)
        z = _to_field(np.asarray(-top[0] + step[0] * np.arange(-1, rows + 1), float))
        # even in t: the column before zero is that after it
        t = np.sinh(np.abs(step[1] * np.arange(-1, columns + 1)))
        values = np.stack([of(z, np.full(z.shape, width)) for width in t], axis=1)
        return FieldTable(InterpolationTable(values, (-top[0] - step[0], -step[1]), step))

    def nodes(self, mean: Array, sd: Array) -> Iterator[tuple[Array, Array]]:
        """Nodes ξ and their weights, one after the other: numbers, or arrays of the common shape of mean and sd."""
        mean, sd = np.broadcast_arrays(np.asarray(mean, float), np.asarray(sd, float))
        widest, kinks = float(sd.max(initial=0.0)), sorted(self.f.kinks)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            centres = [np.nan_to_num((kink - mean) / sd) for kink in sorted({0.0, *kinks})]
        if widest > WIDE:
            nodes, weights = graded(centres, np.maximum(sd, 1e-300), max(8, round(4.5 / self.spacing)))
            yield from zip(nodes, weights, strict=True)
        elif not kinks:
            nodes, weights = smooth_grid((self.spacing / max(1.0, widest),), RADIUS)
            yield from zip(nodes[:, 0], weights, strict=True)
        else:
            x, w = legendre(max(12, round(2 * RADIUS * max(1.0, widest) / self.spacing)))
            cuts = [np.clip(centre, -RADIUS, RADIUS) for centre in centres]
            for low, high in pairwise([np.full(mean.shape, -RADIUS), *cuts, np.full(mean.shape, RADIUS)]):
                half, middle = (high - low) / 2, (high + low) / 2
                for point, weight in zip(x, w, strict=True):
                    node = middle + half * point
                    yield node, weight * half * density(node)

    def _sum(self, mean: Array, sd: Array, of: Callable[[Array, Array], Array]) -> Array:
        out = np.zeros(np.broadcast_shapes(np.shape(mean), np.shape(sd)))
        for node, weight in self.nodes(mean, sd):
            out += weight * of(self.f.function(mean + sd * node), node)
        return out


@dataclass(frozen=True)
class FieldTable:
    """A function of a field z and a width t, from a table against 4 arsinh(z/4) and arsinh t.

    Averages of f vary on the scale one in both, and slower where these are large.
    """

    table: InterpolationTable

    def __call__(self, z: Array, r: Array) -> Array:
        """Its value at fields z and r = arsinh t, of one shape."""
        return self.table(_from_field(z), r)


def _from_field(z: Array) -> Array:
    return 4 * np.arcsinh(z / 4)


def _to_field(r: Array) -> Array:
    return 4 * np.sinh(r / 4)


def lines(g: Activation, spacing: float) -> tuple[Line, Line]:
    """Averages of an activation and of its derivative."""
    return Line(nonlinearity(g), spacing), Line(slope(g), spacing)


def graded(centres: Sequence[Array], scale: Array, points: int) -> tuple[Array, Array]:
    """Nodes and weights (nodes, ...) for ξ ~ N(0, 1), of functions that vary on the scale 1/`scale` at the `centres`,
    on that of the distance to them farther away, and on the scale one everywhere.

    Parameters
    ----------
    centres: each of the shape of `scale`; points: of Gauss and Legendre in a panel.
    """
    doublings = max(1, int(np.ceil(np.log2(max(2.0, 2 * RADIUS * float(scale.max()))))) + 1)
    offsets = np.concatenate([[0.0], 2.0 ** np.arange(doublings)])
    offsets = np.concatenate([-offsets[:0:-1], offsets]).reshape(-1, *[1] * scale.ndim)
    with np.errstate(over="ignore", invalid="ignore"):
        near = [centre + offsets / scale for centre in centres]
    even = np.broadcast_to(np.arange(-RADIUS, RADIUS + 0.5).reshape(-1, *[1] * scale.ndim), (14, *scale.shape))
    edges = np.sort(np.clip(np.nan_to_num(np.concatenate([*near, even])), -RADIUS, RADIUS), axis=0)
    x, w = legendre(points)
    x, w = (part.reshape(-1, *[1] * scale.ndim) for part in (x, w))
    half, middle = np.diff(edges, axis=0)[:, None] / 2, (edges[1:] + edges[:-1])[:, None] / 2
    nodes = (middle + half * x).reshape(-1, *scale.shape)
    return nodes, (half * w).reshape(nodes.shape) * density(nodes)
