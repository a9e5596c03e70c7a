"""Moments of a function of one Gaussian variable, u = mean + sd z, by adaptive quadrature with a measured error:

    a = E f(u)        b = E z f(u)        c = E f(u)²        z ~ N(0, 1)

The line is cut where z or u is a small whole number and at the known kinks of f. A panel is accepted when its integrals
agree with those of its two halves, and halved otherwise: kinks, jumps and integrable singularities that nobody declared
are closed in on. (A bump narrower than some 0.01 may hide between the nodes of the first panels.) The rule is that of
Lobatto, with end points a little inside the panel: a jump next to an end does not hide from it, and a value at the end
itself is never asked for. Panels reach as far out as f(u)² times the density counts; what is left out is estimated from
its decay there. A moment that does not exist does not converge, and is refused by name.

>>> import numpy as np
>>> from overlaps.data.gaussian_moments import by_panels
>>> measured = by_panels("step", lambda u: np.where(u > 0.3, 1.0, 0.0), (), np.zeros(1), np.ones(1))
>>> round(float(measured.a[0]), 10), bool(measured.error[0] < 1e-11)  # the normal distribution function at -0.3
(0.3820885778, True)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.polynomial import legendre
from numpy.typing import NDArray

from ..interface.errors import InputError

Array = NDArray[np.float64]
NAMES = ("a = E f(u)", "b = E z f(u)", "c = E f(u)²")
POINTS = 10  # of the rule on a panel
INSET = 1e-9  # distance of the end points from the ends of a panel, in half widths
SCAN = np.arange(0.0, 37.25, 0.25)  # |z|; beyond, the density underflows
MARKS = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)  # |u| at the ends of panels: functions are taken to vary on the scale one
CERTAIN = 8.3  # |z| that is exceeded with probability 1e-16
NEGLIGIBLE = 1e-18  # panels end where the integrand is this share of its largest value
SHARE = 1e-13  # largest error of an accepted panel, as a share of the moment
LEAST = 1e-12  # least error stated, as a share of the moment, since kinks of the size of SHARE may be overlooked
LARGEST = 1e-6  # largest error that is not refused, as a share of the part of a moment that converged
SAFETY = 16  # error stated of a panel, in differences from its halves, which at a jump are a tenth of the error
FADE = 0.1  # least error of a panel, as a share of the difference one halving before
EPSILON = np.finfo(float).eps
DEPTH = 128  # most halvings of a panel
CROWD = 4000  # panels of one pair (mean, sd) that are halved at once
BLOCK = 128  # pairs at once


class Moments(NamedTuple):
    """a, b, c and the largest of their absolute errors, each of the shape of the mean and standard deviation."""

    a: Array
    b: Array
    c: Array
    error: Array


class _Sums(NamedTuple):
    """Integrals of f, z f and f², and of their absolute values, (3, panels); bad: not finite somewhere, (panels,)."""

    value: Array
    size: Array
    bad: NDArray[np.bool_]


def by_panels(name: str, function: Callable[[Array], Array], kinks: Sequence[float], mean: Array, sd: Array) -> Moments:
    """Moments of a vectorised function for means and standard deviations (count,), all of the latter above zero."""
    blocks = [slice(low, low + BLOCK) for low in range(0, mean.size, BLOCK)]
    with np.errstate(all="ignore"):  # values that overflow are found below, not by a warning
        parts = [_block(name, function, kinks, mean[block], sd[block]) for block in blocks]
    return Moments(*(np.concatenate([part[i] for part in parts]) for i in range(4)))


def _block(name: str, function: Callable[[Array], Array], kinks: Sequence[float], mean: Array, sd: Array) -> Moments:
    count = mean.size
    reach, missing = _reach(name, function, mean, sd)
    marks = np.array([*MARKS, *(-mark for mark in MARKS), *kinks])
    whole = np.arange(-np.ceil(SCAN[-1]), np.ceil(SCAN[-1]) + 1)
    edges = np.concatenate([np.tile(whole, (count, 1)), (marks - mean[:, None]) / sd[:, None]], axis=1)
    edges = np.sort(np.clip(edges, -reach[0][:, None], reach[1][:, None]), axis=1)
    owner, place = np.nonzero(edges[:, 1:] > edges[:, :-1])
    low, high = edges[owner, place], edges[owner, place + 1]
    value, size = np.zeros((3, count)), np.zeros((3, count))
    error, worst, where = missing.copy(), np.zeros(count), np.full(count, np.nan)
    here, before = _integrals(name, function, mean[owner], sd[owner], low, high), np.zeros((3, owner.size))
    for halving in range(1, DEPTH + 1):
        tolerance = SHARE * (size + _total(here.size, owner, count))[:, owner]
        far = np.maximum(np.abs(low), np.abs(high))
        tolerance += SAFETY * EPSILON * (1 + far**2) * here.size  # rounding of the density
        n, middle = owner.size, (low + high) / 2
        # closer than this, values are those of a few floating-point numbers
        wide = high - low > 64 * EPSILON * (np.abs(mean[owner]) / sd[owner] + far)
        low, high, owner = np.concatenate([low, middle]), np.concatenate([middle, high]), np.tile(owner, 2)
        halves, own = _integrals(name, function, mean[owner], sd[owner], low, high), owner[:n]
        both, total = (x[:, :n] + x[:, n:] for x in (halves.value, halves.size))
        difference = np.abs(here.value - both)
        # halves may agree by chance, so the difference before counts, too
        doubt = np.maximum(SAFETY * difference, before)
        bad = halves.bad[:n] | halves.bad[n:]
        rough = bad | ~(doubt <= tolerance).all(0)
        crowded = np.bincount(own[rough], minlength=count) > CROWD
        split = rough & wide & ~crowded[own] & (halving < DEPTH)
        lost, doubt = rough & ~split, np.where(bad, total, doubt)
        value += _total(both[:, ~split], own[~split], count)
        size += _total(total[:, ~rough], own[~rough], count)
        error += _total(doubt[:, ~split], own[~split], count)
        for i in np.flatnonzero(lost):
            if not doubt[:, i].max() <= worst[own[i]]:
                worst[own[i]], where[own[i]] = doubt[:, i].max(), mean[own[i]] + sd[own[i]] * middle[i]
        keep = np.tile(split, 2)
        owner, low, high, before = owner[keep], low[keep], high[keep], np.tile(FADE * difference[:, split], 2)
        here = _Sums(halves.value[:, keep], halves.size[:, keep], halves.bad[keep])
        if owner.size == 0:
            break
    wrong = ~(np.isfinite(size) & (error <= LARGEST * size))
    if wrong.any():
        i = int(wrong.any(0).argmax())
        beyond = not (missing[:, i] <= LARGEST * size[:, i]).all() or not np.isfinite(where[i])
        raise _refusal(name, wrong[:, i], mean[i], sd[i], "large |u|" if beyond else f"u = {where[i]:.6g}")
    return Moments(*value, error=(error + LEAST * size).max(0))


def _refusal(name: str, wrong: NDArray[np.bool_], mean: float, sd: float, place: str) -> InputError:
    failed = [label for label, w in zip(NAMES, wrong, strict=True) if w]
    return InputError(
        f"{name}: {', '.join(failed)} {'do' if len(failed) > 1 else 'does'} not exist or cannot be computed, for u of "
        f"mean {mean:g} and standard deviation {sd:g}: the integral does not converge at {place}; bound the function "
        "there, or declare its kinks with Nonlinearity(name, function, kinks)"
    )


def _reach(name: str, function: Callable[[Array], Array], mean: Array, sd: Array) -> tuple[list[Array], Array]:
    """How far panels go to the left and to the right, (count,), and what each moment may have beyond, (3, count)."""
    density = np.exp(-0.5 * SCAN**2) / np.sqrt(2 * np.pi)
    sides, finite = [], []
    for sign in (-1.0, 1.0):
        F = _values(name, function, mean[:, None] + sign * sd[:, None] * SCAN)
        good = np.isfinite(F * F)
        F = np.where(good, F, 0.0)
        sides.append(np.stack([np.abs(F), np.abs(SCAN * F), F * F]) * density)
        finite.append(good)
    top = np.maximum(*(side.max(2) for side in sides))
    reach, missing = [], np.zeros_like(top)
    place = np.arange(SCAN.size)
    for sign, side, good in zip((-1.0, 1.0), sides, finite, strict=True):
        last = np.where(good, place, -1).max(1)
        short = (last < SCAN.size - 1) & (SCAN[np.maximum(last, 0)] < CERTAIN)
        if short.any():
            i = int(short.argmax())
            at = mean[i] + sign * sd[i] * SCAN[last[i] + 1]
            raise InputError(
                f"{name}: its value at u = {at:.6g}, or the square of it, is not finite, but u, of mean {mean[i]:g} "
                f"and standard deviation {sd[i]:g}, gets there; bound the function"
            )
        counts = (side > NEGLIGIBLE * top[:, :, None]).any(0) | (~good & (place < last[:, None]))
        cut = np.minimum(np.where(counts, place, 0).max(1) + 1, last)
        reach.append(SCAN[cut])
        missing += np.where(place >= cut[:, None], side, 0.0).sum(2) * (SCAN[1] - SCAN[0])
        # beyond the last finite value: a decay at least as fast as over the unit before it
        near = np.where((place > last[:, None] - 5) & (place <= last[:, None]), side, 0.0).max(2)
        before = np.where((place > last[:, None] - 9) & (place <= last[:, None] - 4), side, 0.0).max(2)
        missing += np.where(near > 0, 2 * near / np.maximum(np.log(before / near), 1e-300), 0.0)
    return reach, missing


def _integrals(name: str, function: Callable[[Array], Array], mean: Array, sd: Array, low: Array, high: Array) -> _Sums:
    half = (high - low)[:, None] / 2
    z = (low + high)[:, None] / 2 + half * NODES
    F = _values(name, function, mean[:, None] + sd[:, None] * z)
    bad = ~np.isfinite(F * F)
    # an isolated singularity counts as the largest value next to it; such a panel is never taken as converged
    largest = np.where(bad, 0.0, np.abs(F)).max(1, keepdims=True)
    F = np.where(bad, np.where(bad.all(1, keepdims=True), np.inf, largest), F)
    parts = np.stack([F, z * F, F * F]) * (half * WEIGHTS * np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi))
    return _Sums(parts.sum(2), np.abs(parts).sum(2), np.asarray(bad.any(1)))


def _values(name: str, function: Callable[[Array], Array], u: Array) -> Array:
    try:
        return function(u)
    except Exception as error:
        raise InputError(
            f"{name}: fails for u between {u.min():.6g} and {u.max():.6g}, where u may be "
            f"({type(error).__name__}: {error})"
        ) from error


def _total(parts: Array, owner: NDArray[np.intp], count: int) -> Array:
    """Sums of (3, panels) over the panels of each owner, (3, count)."""
    return np.stack([np.bincount(owner, row, count) for row in parts]).astype(float)


def _rule() -> tuple[Array, Array]:
    """Nodes and weights on (-1, 1): Lobatto's, with the ends moved in and the weights that go with it."""
    inner = legendre.Legendre.basis(POINTS - 1).deriv().roots()
    nodes = np.concatenate([[INSET - 1], np.sort(np.real(inner)), [1 - INSET]])
    moments = np.zeros(POINTS)
    moments[0] = 2.0
    weights = np.linalg.solve(legendre.legvander(nodes, POINTS - 1).T, moments)
    return nodes, weights.astype(float)


NODES, WEIGHTS = _rule()
