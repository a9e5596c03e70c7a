"""Claims about eigenvectors below the top of a class's block, and about the second layer at the start."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import overlaps as ov

from ..ledger import Measurement
from .class_claims import KINDS, Kind, at_rest
from .model import classes, xor
from .paper import PAPER

Array = NDArray[np.float64]


def lower_products(k: int, kind: Kind) -> Array:
    """|x^1·e|/|x^1| of the k − 1 outlier eigenvectors e below the top of block 11 at rest, λ = 1000, sorted."""
    matrix = ov.spectra.population(classes_at(k), at_rest(classes_at(k)), kind)
    vectors = np.linalg.eigh(matrix.block(0).core)[1][:, ::-1][:, 1:k]
    x = matrix.span.students[0]
    return np.sort(np.abs(vectors.T @ x) / np.linalg.norm(x))


def classes_at(k: int) -> ov.Problem:
    """k classes of equal weight with little noise."""
    return classes(k, variance=1e-3)


@PAPER.claim(
    "theorem-2.5-others",
    where="theorem 2.5, its parenthesis",
    statement="x^c has a negative inner product of order one with each of the k - 1 next eigenvectors of its block; in "
    "the population blocks one is so, and the k - 2 others are orthogonal to x^c by symmetry",
    expected="fails",
)
def others(quick: bool) -> Measurement:
    """The smallest |x^c·e|/|x^c| of the k − 1 eigenvectors e below the top, population blocks at rest, k = 3 and 4."""
    found = {(k, kind): lower_products(k, kind) for k in (3, 4) for kind in KINDS}
    least = max(float(products[0]) for products in found.values())
    most = min(float(products[-1]) for products in found.values())
    holds = all(products[0] > 0.05 for products in found.values())
    note = "; ".join(
        f"k = {k}, {kind}: {', '.join(f'{x:.2g}' for x in products)}" for (k, kind), products in found.items()
    )
    judged = "holds" if holds else "fails" if least < 1e-3 and most > 0.05 else "cannot be told"
    return Measurement(judged, least, 1e-6, note)


def spike(units: int, seed: int) -> float:
    """Largest eigenvalue of block vv of the G-matrix or Hessian at the start over the next, rows that see no mean."""
    problem = xor(units, variance=0.1)
    v = np.random.default_rng(seed).standard_normal(units)
    point = ov.Start.from_overlaps(problem, Q=np.eye(units), m=np.zeros((units, 4)), student_readout=v)
    values = np.linalg.eigvalsh(ov.spectra.readout_block(problem, point))[::-1]
    return float(values[0] / values[1])


@PAPER.claim(
    "start-not-spiked",
    where="section 2.2.2, the text before figure 2.5",
    statement="at the start blocks vv look like non-spiked GOE and Wishart matrices; they have one outlier, as the "
    "caption of figure 2.5 says, for ReLU is positive",
    expected="fails",
)
def start_spiked(quick: bool) -> Measurement:
    """Largest eigenvalue of block vv over the next at the start, least of several readouts; it grows with K."""
    units, seeds = ((8, 12), range(2)) if quick else ((8, 16), range(10))
    ratios = {K: [spike(K, seed) for seed in seeds] for K in units}
    least = min(ratios[8])
    # the edges of a bulk come nearer to each other as K grows, an outlier goes away from them
    holds = least < 1.5
    fails = least > 2 and np.mean(ratios[units[1]]) > np.mean(ratios[8])
    note = f"means {', '.join(f'{np.mean(r):.1f} at K = {K}' for K, r in ratios.items())}"
    judged = "holds" if holds else "fails" if fails else "cannot be told"
    return Measurement(judged, least, float(np.std(ratios[8])), note)
