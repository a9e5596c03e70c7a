"""Averages over normal variables by rules that share nothing with the library's, and how two averages are compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np
from scipy.special import ndtr

from overlaps.averages.rules import unit_rule

RULE = unit_rule(40)  # of the closed forms that integrate over orthants
ROUNDING = 1e-13  # relative to the largest entry: some hundred roundings
FACTOR = 3.0  # an accuracy that is a difference of two rules is now and then too small


def hermite(nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Hermite nodes and weights, of sum one, for a standard normal variable."""
    x, w = np.polynomial.hermite_e.hermegauss(nodes)
    return x, w / w.sum()


def hermite_grid(d: int, nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """The tensor rule for d variables: nodes (nodes^d, d) and weights."""
    x, w = hermite(nodes)
    return np.array(list(product(x, repeat=d))), np.prod(np.array(list(product(w, repeat=d))), axis=1)


def panels(edges: np.ndarray, nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre nodes and weights, with the normal density, on the panels between edges (..., n+1)."""
    x, w = np.polynomial.legendre.leggauss(nodes)
    middle, half = (edges[..., 1:] + edges[..., :-1]) / 2, np.diff(edges, axis=-1) / 2
    z = (middle[..., None] + half[..., None] * x).reshape(*edges.shape[:-1], -1)
    weight = (half[..., None] * w).reshape(*edges.shape[:-1], -1)
    return z, weight * np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)


def half_lines(cut: np.ndarray, nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Two panels beyond each `cut`, to nine standard deviations: what is left out is 1e-18."""
    end = 9.0
    cut = np.clip(cut, -end, end)
    return panels(np.stack([cut, (cut + end) / 2, np.full_like(cut, end)], -1), nodes)


def positive_four(
    C: np.ndarray, mean: np.ndarray, first: tuple[np.ndarray, np.ndarray], nodes: int
) -> tuple[float, float]:
    """P(h > 0) of four fields and E[h_2 h_3 1(h > 0)]: nested half-lines, the last field analytically.

    first: nodes and weights of the first variable, on which the first field is positive.
    """
    L = np.linalg.cholesky(C)
    z0, w0 = first
    z1, w1 = half_lines(-(mean[1] + L[1, 0] * z0) / L[1, 1], nodes)
    base = mean[2] + L[2, 0] * z0[:, None] + L[2, 1] * z1
    z2, w2 = half_lines(-base / L[2, 2], nodes)
    third = base[..., None] + L[2, 2] * z2
    at = mean[3] + (L[3, 0] * z0[:, None] + L[3, 1] * z1)[..., None] + L[3, 2] * z2
    chance = ndtr(at / L[3, 3])
    last = at * chance + L[3, 3] * np.exp(-0.5 * (at / L[3, 3]) ** 2) / np.sqrt(2 * np.pi)
    probability, moment = (float(np.einsum("i,ij,ijk,ijk->", w0, w1, w2, of)) for of in (chance, third * last))
    return probability, moment


def nudged(
    rows: np.ndarray, nudge: np.ndarray, distance: float, places: Mapping[str, Mapping[int, np.ndarray]]
) -> Iterator[tuple[str, np.ndarray]]:
    """For each of the places, rows of which some are there, up to `distance` times their nudge."""
    for name, change in places.items():
        moved = rows.copy()
        for k, row in change.items():
            moved[k] = row + distance * nudge[k]
        yield name, moved


def apart(a: Any, b: Any, names: tuple[str, ...] = ("D", "S", "dv", "error", "E")) -> float:
    """The largest difference between entries of two averages."""
    return max(float(np.abs(np.asarray(getattr(a, n)) - getattr(b, n)).max()) for n in names)


def assert_honest(missed: list[float], stated: list[float], what: str) -> None:
    """Nine errors in ten within FACTOR of what was stated."""
    ratio = np.array(missed) / np.array(stated)
    assert np.quantile(ratio, 0.9) <= FACTOR, (
        f"{what}: errors are {np.quantile(ratio, [0.5, 0.9, 1])} times those stated"
    )
