"""Panels that meet at kinks: a rule for z ~ N(0, I_r) and fields h = μ + X z in which the integrand is not smooth.

Coordinates are integrated one after the other. Given the earlier ones, coordinate j is cut

    where field j is at one of its own kinks κ_j (X is lower triangular where fields have kinks);
    where a joint function of all fields, the margin of a hinge loss say, changes its sign or touches zero, with later
        fields at their kinks: what is left after integrating over these is smooth up to where the two kinks meet;
    where the mean of a later field, given the coordinates up to j, is at its kink, if that field can no longer move
        far: its kink then shows in coordinate j as a layer as wide as the field can still move,

and Gauss-Legendre nodes fill the panels between the cuts, as many as their length asks for.

>>> import numpy as np
>>> X, mean, kinks = np.eye(1), np.zeros(1), np.zeros((1, 1))
>>> z, w = panel_rule(X, mean, kinks, no_margin, 1, 0, np.ones(1), np.zeros(0), np.ones(1), 8.0, 9)
>>> round(float(w @ np.maximum(z[:, 0], 0.0) ** 2), 8)
0.5
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..compiled.functions import kept, loop
from ..compiled.named import named
from ..compiled.symbols import njit
from .rules import legendre

Array = NDArray[np.float64]
LONGEST = 40  # nodes of a panel; longer ones are halved
SCAN = 24  # steps along a line in which a joint function is looked at for changes of its sign
ROOTS = 8  # zeros of a joint function on a line for which there is room
GOLDEN = (np.sqrt(5) - 1) / 2
TOUCHES = 1e-8  # a joint function that comes so much closer to zero between two steps than at them has a zero there
LAYER = 0.6  # widest layer, in standard deviations, that has panels of its own


@cache
def _rules() -> tuple[NDArray[np.int64], Array, Array]:
    """Nodes and weights of the rules of 1 to `LONGEST` nodes, one after the other, and where each begins."""
    rules = [legendre(n) for n in range(1, LONGEST + 1)]
    start = np.array([sum(range(n)) for n in range(LONGEST + 1)])
    return start, np.concatenate([x for x, _ in rules]), np.concatenate([w for _, w in rules])


def _no_margin() -> Any:
    return njit(lambda lam, nu, c, v, u, which: 0.0)


no_margin = named(_no_margin)  # of integrands whose kinks are those of single fields


def panel_rule(
    X: Array,
    mean: Array,
    kinks: Array,
    margin: Any,
    K: int,
    label: int,
    v: Array,
    u: Array,
    spacings: Array,
    radius: float,
    least: int,
) -> tuple[Array, Array]:
    """Nodes (points, r) and weights (points,) of sum one.

    Parameters
    ----------
    X, mean: fields h = mean + X z, (d, r) and (d,).
    kinks: of field j, (r, most), with NaN where there are fewer.
    margin: ``margin(λ, ν, label, v, u, which)``, compiled: the joint functions, and how many there are for which = −1;
        the integrand is smooth where none of them is zero.
    K: how many of the fields are λ.
    spacings: distance of nodes in a long panel, (r,).
    radius: nodes farther out are left out.
    least: nodes of the shortest panel.
    """
    nodes, weights = np.zeros((1, 0)), np.ones(1)
    for j in range(X.shape[1]):
        if not X[:, j].any():  # nothing depends on it
            nodes = np.concatenate([nodes, np.zeros((len(nodes), 1))], axis=1)
            continue
        edges = _all_cuts(margin, X, mean, kinks, K, label, v, u, radius, nodes)
        nodes, weights = _filled(edges, float(spacings[j]), radius, least, nodes, weights, *_rules())
    return nodes, weights / weights.sum()


def last_along(margin: Any, X: Array, mean: Array, K: int, label: int, v: Array, u: Array) -> Array:
    """An orthogonal matrix (r, r) that turns the coordinates so that the margin varies fastest along the last.

    The place of the kink on a line along that coordinate then varies slowly with the other coordinates. The first joint
    function that varies at the mean decides, or at a place beside it, since a modulus has no slope between its zeros.
    """
    r = X.shape[1]
    along = np.zeros(r)
    beside = mean + X @ (0.7 * (-0.8) ** np.arange(r))
    for which in range(int(margin(mean[:K], mean[K:], label, v, u, -1))):
        for at in (mean, beside):
            if not along.any():
                along = X.T @ _slope(margin, which, at, K, label, v, u)
    if not np.isfinite(along).all() or not along.any():
        return np.eye(r)
    # a reflection that takes the last axis to `along`, which is smooth but where the two are opposite
    along /= np.linalg.norm(along)
    difference = along - np.eye(r)[-1] * (1.0 if along[-1] < 0 else -1.0)
    return np.eye(r) - 2 * np.outer(difference, difference) / (difference @ difference)


def _slope(margin: Any, which: int, at: Array, K: int, label: int, v: Array, u: Array) -> Array:
    """Derivatives of a joint function by the fields, (d,), by differences."""
    step, slope = 1e-4, np.empty(at.size)
    for a in range(at.size):
        up, down = at.copy(), at.copy()
        up[a] += step
        down[a] -= step
        slope[a] = margin(up[:K], up[K:], label, v, u, which) - margin(down[:K], down[K:], label, v, u, which)
    return slope


def first_change(nodes: Array) -> NDArray[np.int64]:
    """For each node, the first coordinate in which it differs from the node before, (points,); 0 for the first."""
    moved = np.zeros(len(nodes), np.int64)
    moved[1:] = np.argmax(nodes[1:] != nodes[:-1], axis=1)
    return moved


@kept(error_model="numpy")
def _field_cuts(X, kinks, base, j, cuts):  # pragma: no cover - compiled
    """Write where field j is at a kink, and where a later field that moves little more is; returns how many."""
    r, most = kinks.shape
    n = 0
    for m in range(most):
        if X[j, j] > 0.0 and not np.isnan(kinks[j, m]):
            cuts[n] = (kinks[j, m] - base[j]) / X[j, j]
            n += 1
    for b in range(j + 1, r):
        for m in range(most):
            if np.isnan(kinks[b, m]) or X[b, j] == 0.0:
                continue
            width = _left(X, b, j) / abs(X[b, j])
            if width < LAYER:
                place = (kinks[b, m] - base[b]) / X[b, j]
                for side in range(-2, 3):
                    cuts[n] = place + 2.5 * side * width
                    n += 1
    return n


@kept(error_model="numpy")
def _left(X, b, j):  # pragma: no cover - compiled
    """Standard deviation of field b given the coordinates up to j."""
    rest = 0.0
    for k in range(j + 1, X.shape[1]):
        rest += X[b, k] ** 2
    return np.sqrt(rest)


@kept(error_model="numpy")
def _at_kinks(kinks, j, choice, h):  # pragma: no cover - compiled
    """Put the fields after j at the kinks of that combination; returns how many combinations there are."""
    r, most = kinks.shape
    combinations = 1
    for b in range(j + 1, r):
        own = 0
        for m in range(most):
            own += not np.isnan(kinks[b, m])
        if own > 0:
            h[b] = kinks[b, (choice // max(combinations, 1)) % own]
        combinations *= own
    return combinations


class CoordinateLine(NamedTuple):
    """A joint function along coordinate j: number `which` of them, at fields h of which the first `moving` follow.

    These are base + X[:, j] x at the place x; later ones stay where they are put. Fields are (d,), X is (d, r).
    """

    which: int
    X: Array
    base: Array
    j: int
    moving: int
    h: Array
    K: int
    label: Any
    v: Array
    u: Array


@njit(error_model="numpy")
def _on_line(margin, line, x):  # pragma: no cover - compiled
    """A joint function at a place of a line; writes the fields that follow the coordinate."""
    for a in range(line.moving):
        line.h[a] = line.base[a] + line.X[a, line.j] * x
    return _joint(margin, line)


@njit(error_model="numpy")
def _joint(margin, line):  # pragma: no cover - compiled
    """A joint function of the fields as they are written."""
    return margin(line.h[: line.K], line.h[line.K :], line.label, line.v, line.u, line.which)


@njit(error_model="numpy")
def _zero(margin, line, x0, f0, x1, f1):  # pragma: no cover - compiled
    """Where the joint function is zero between x0 and x1: false position, with the end that stays halved (Illinois)."""
    side = 0
    for _ in range(100):
        if abs(x1 - x0) < 1e-13 or f0 == f1:
            break
        x = (x0 * f1 - x1 * f0) / (f1 - f0)
        f = _on_line(margin, line, x)
        if f == 0.0 or (f > 0.0) == (f1 > 0.0):
            x1, f1, f0 = x, f, f0 * (0.5 if side == 1 else 1.0)
            side = 1
        else:
            x0, f0, f1 = x, f, f1 * (0.5 if side == -1 else 1.0)
            side = -1
        if f == 0.0:
            break
    return x1 if abs(f1) < abs(f0) else x0


@njit(error_model="numpy")
def _nearest(margin, line, low, high, sign):  # pragma: no cover - compiled
    """Where between two places, and how near, a joint function of that sign is to zero, by golden section.

    It ends at the first place where the sign is the other one.
    """
    x0, x1 = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    f0 = sign * _on_line(margin, line, x0)
    f1 = sign * _on_line(margin, line, x1)
    for _ in range(50):
        if min(f0, f1) < 0.0:
            break
        if f0 < f1:
            high, x1, f1 = x1, x0, f0
            x0 = high - GOLDEN * (high - low)
            f0 = sign * _on_line(margin, line, x0)
        else:
            low, x0, f0 = x0, x1, f1
            x1 = low + GOLDEN * (high - low)
            f1 = sign * _on_line(margin, line, x1)
    return (x0, sign * f0) if f0 < f1 else (x1, sign * f1)


@njit(error_model="numpy")
def _with_layer(margin, line, low, f0, high, f1, cuts, n):  # pragma: no cover - compiled
    """Write where a joint function is zero between two places of unlike signs; returns how many cuts there are."""
    if n + 7 >= cuts.size:
        return n
    cuts[n] = place = _zero(margin, line, low, f0, high, f1)
    n += 1
    # how far later fields can still move the place: a narrow layer has panels of its own
    move, slope = 0.0, abs(f1 - f0) / (high - low)
    _on_line(margin, line, place)
    for b in range(line.j + 1, line.X.shape[1]):
        kink = line.h[b]
        for way in (-1.0, 1.0):
            line.h[b] = kink + way * _left(line.X, b, line.j)
            move = max(move, abs(_joint(margin, line)))
        line.h[b] = kink
    if 0.0 < move < LAYER * slope:
        for way in (-5.0, -2.0, 2.0, 5.0):
            cuts[n] = place + way * move / slope
            n += 1
    return n


@njit(error_model="numpy")
def _joint_cuts(margin, line, end, cuts, n):  # pragma: no cover - compiled
    """Write where one joint function is zero along coordinate j, also twice between two steps; returns how many."""
    first, at_first, low, at_low = -end, 0.0, -end, 0.0
    for step in range(SCAN + 1):
        high = -end + 2.0 * end * step / SCAN
        at_high = _on_line(margin, line, high)
        if step > 0 and (at_low > 0.0) != (at_high > 0.0):
            n = _with_layer(margin, line, low, at_low, high, at_high, cuts, n)
        elif (
            step > 1
            and (at_first > 0.0) == (at_low > 0.0)
            and abs(at_low) <= min(abs(at_first), abs(at_high))
            and abs(at_low) < max(abs(at_first), abs(at_high))
        ):
            sign = 1.0 if at_low > 0.0 else -1.0
            x, f = _nearest(margin, line, first, high, sign)
            if sign * f < 0.0:
                n = _with_layer(margin, line, first, at_first, x, f, cuts, n)
                n = _with_layer(margin, line, x, f, high, at_high, cuts, n)
            elif abs(f) <= TOUCHES * max(abs(at_first), abs(at_high)) and n + 7 < cuts.size:
                cuts[n] = x
                n += 1
        first, at_first, low, at_low = low, at_low, high, at_high
    return n


@loop(error_model="numpy")
def _all_cuts(margin, X, mean, kinks, K, label, v, u, radius, nodes):  # pragma: no cover - compiled
    """Edges of the panels of coordinate j for each node of those before it, (count, most), each row in order."""
    (d, r), (count, j) = X.shape, nodes.shape
    base, h = mean.copy(), np.empty(d)
    functions = int(margin(base[:K], base[K:], label, v, u, -1))
    room = 10 + kinks.size * 6 + 5 * ROOTS * functions
    edges = np.empty((count, room))
    moving = d if j == r - 1 else j + 1  # fields that follow the coordinate; later ones are at their kinks
    for i in range(count):
        end = np.sqrt(max(radius * radius - (nodes[i] ** 2).sum(), 0.0))
        for a in range(d):
            base[a] = mean[a]
            for k in range(j):
                base[a] += X[a, k] * nodes[i, k]
        cuts = edges[i]
        n = _field_cuts(X, kinks, base, j, cuts)
        for choice in range(_at_kinks(kinks, j, 0, h) if functions else 0):
            for which in range(functions):
                h[:] = base
                _at_kinks(kinks, j, choice, h)
                n = _joint_cuts(margin, CoordinateLine(which, X, base, j, moving, h, K, label, v, u), end, cuts, n)
        for m in range(n):
            cuts[m] = min(end, max(-end, cuts[m]))
        cuts[n] = -end
        cuts[n + 1 :] = end
        cuts.sort()
    return edges


@kept(error_model="numpy")
def _filled(edges, spacing, radius, least, nodes, weights, start, unit, unit_weights):  # pragma: no cover - compiled
    """Append to each node of the first j coordinates those of the next, in the panels between its edges."""
    count, j = nodes.shape
    out, out_weights = np.empty((4 * count + 64, j + 1)), np.empty(4 * count + 64)
    filled = 0
    for i in range(count):
        square = (nodes[i] ** 2).sum()
        for p in range(edges.shape[1] - 1):
            whole = edges[i, p + 1] - edges[i, p]
            if whole < 1e-14:
                continue
            wanted = least + int(np.ceil(whole / spacing))
            parts = 1 + (wanted - 1) // LONGEST
            length = whole / parts
            size = max(least, min(LONGEST, least + int(np.ceil(length / spacing))))
            for q in range(parts * size):
                at = start[size] + q % size
                z = edges[i, p] + (q // size + 0.5 + 0.5 * unit[at]) * length
                if square + z * z > radius * radius:
                    continue
                if filled == len(out_weights):
                    longer, heavier = np.empty((2 * filled, j + 1)), np.empty(2 * filled)
                    longer[:filled] = out
                    heavier[:filled] = out_weights
                    out, out_weights = longer, heavier
                out[filled, :j] = nodes[i]
                out[filled, j] = z
                density = np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi)
                out_weights[filled] = weights[i] * 0.5 * length * unit_weights[at] * density
                filled += 1
    return out[:filled], out_weights[:filled]
