"""Averages of a function of one Gaussian variable over many means and widths at once, E f(mean + sd ξ).

Smooth functions use the trapezoidal rule with nodes that stay closer than the function varies (on the scale one): the
spacing shrinks with the largest width. Functions with kinks use panels of Gauss and Legendre that meet there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ..activations import Activation
from ..averages.rules import legendre, smooth_grid
from ..data.nonlinearity import Nonlinearity, nonlinearity, slope
from .table import Table

Array = NDArray[np.float64]
RADIUS = 6.5  # |ξ| that is exceeded with probability 1e-10
WIDE = 4.0  # deviation beyond which nodes are graded


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

    def displacement(self, reach: float, widest: float) -> Table:
        """B(z, t) (1 + t²)/t² with B = E (f(z + t ξ) − f(z))², against z and arsinh t, for |z| ≤ reach and t ≤ widest.

        B varies on the scale one in z and t, and slower where t is large; over t²/(1 + t²) small shifts are as accurate
        as large ones.
        """
        top = float(np.arcsinh(widest))
        rows = 2 * int(np.ceil(reach / (self.spacing / 4))) + 1
        columns = max(12, int(np.ceil(top / (self.spacing / 4))) + 1)
        step = 2 * reach / (rows - 1), top / (columns - 1)
        z = np.asarray(-reach + step[0] * np.arange(-1, rows + 1), float)
        # even in t: the column before zero is that after it; zero itself is taken a little above
        r = np.abs(step[1] * np.arange(-1, columns + 1))
        values, here = np.empty((z.size, r.size)), self.f.function(z)
        for k, t in enumerate(np.maximum(np.sinh(r), 1e-4 * widest)):
            if t < WIDE or self.f.kinks:
                column = self.mean(z, np.full(z.shape, t), lambda value: (value - here) ** 2)
            else:
                # f varies where |z + tξ| is of order one: few nodes far out
                xi, weights = graded(t, max(10, round(6 / self.spacing)))
                column = ((self.f.function(z[:, None] + t * xi) - here[:, None]) ** 2) @ weights
            values[:, k] = column * (1 + t**2) / t**2
        return Table(values, (float(z[0]), -step[1]), step)

    def nodes(self, mean: Array, sd: Array) -> Iterator[tuple[Array, Array]]:
        """Nodes ξ and their weights, one after the other: numbers, or arrays of the shape of mean where f has kinks."""
        mean, sd = np.broadcast_arrays(np.asarray(mean, float), np.asarray(sd, float))
        widest = max(1.0, float(sd.max(initial=0.0)))
        if not self.f.kinks:
            nodes, weights = smooth_grid((self.spacing / widest,), RADIUS)
            yield from zip(nodes[:, 0], weights, strict=True)
            return
        x, w = legendre(max(12, round(2 * RADIUS * widest / self.spacing)))
        with np.errstate(divide="ignore", invalid="ignore"):
            cuts = [
                np.nan_to_num(np.clip((kink - mean) / sd, -RADIUS, RADIUS), nan=0.0) for kink in sorted(self.f.kinks)
            ]
        edges = [np.full(mean.shape, -RADIUS), *cuts, np.full(mean.shape, RADIUS)]
        for low, high in pairwise(edges):
            half, middle = (high - low) / 2, (high + low) / 2
            for point, weight in zip(x, w, strict=True):
                node = middle + half * point
                yield node, weight * half * np.exp(-0.5 * node**2) / np.sqrt(2 * np.pi)

    def _sum(self, mean: Array, sd: Array, of: Callable[[Array, Array], Array]) -> Array:
        out = np.zeros(np.broadcast_shapes(np.shape(mean), np.shape(sd)))
        for node, weight in self.nodes(mean, sd):
            out += weight * of(self.f.function(mean + sd * node), node)
        return out


def lines(g: Activation, spacing: float) -> tuple[Line, Line]:
    """Averages of an activation and of its derivative."""
    return Line(nonlinearity(g), spacing), Line(slope(g), spacing)


def graded(scale: float, points: int) -> tuple[Array, Array]:
    """Nodes and weights for ξ ~ N(0, 1) of functions that vary on the scale 1/`scale` near zero and on their own |ξ|
    farther out: panels from zero, of doubling width, with `points` Gauss-Legendre nodes each."""
    edges = [0.0]
    edge = min(1.0, 1 / scale)
    while edge < RADIUS:
        edges.append(edge)
        edge *= 2
    edges.append(RADIUS)
    x, w = legendre(points)
    low, high = np.array(edges[:-1])[:, None], np.array(edges[1:])[:, None]
    nodes = ((low + high) / 2 + (high - low) / 2 * x).ravel()
    weights = ((high - low) / 2 * w).ravel() * np.exp(-0.5 * nodes**2)
    nodes, weights = np.concatenate([-nodes[::-1], nodes]), np.concatenate([weights[::-1], weights])
    return nodes, weights / weights.sum()
