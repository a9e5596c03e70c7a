"""Averages of a function F of the output f = Σ_l v_l g_l, g_l = max(λ_l, 0), of many ReLU units of *weak correlations*.

F is written as a trigonometric sum over the width of f, F(f) = Re Σ_j c_j exp(i ω_j (f − f̄)). For independent fields
its averages factor:

    E[1_k F]   = Re Σ_j c_j exp(−i ω_j f̄) χ⁺_k(ω_j)  Π_{l≠k} χ_l(ω_j)
    E[g_k F]   = Re Σ_j c_j exp(−i ω_j f̄) γ_k(ω_j)   Π_{l≠k} χ_l(ω_j)

with, for a field of mean μ, standard deviation s, m = μ/s, θ = ω v and w the Faddeeva function,

    χ⁺ = E[1(λ > 0) exp(iθλ)] = exp(−m²/2) w((θ s − i m)/√2)/2          χ = χ⁺ + P(λ < 0)
    γ  = E[1(λ > 0) λ exp(iθλ)] = (μ + iθ s²) χ⁺ + s φ(m).

Correlations change an average E[ψ] to first order by Σ_{i<j} C_ij E[∂_i ∂_j ψ] (Plackett), whose terms factor as well:
∂_i takes χ_i to iθ_i χ⁺_i, χ⁺_k to p_k(0) + iθ_k χ⁺_k, p_k the density of λ_k, and γ_k to χ⁺_k + iθ_k γ_k.

Fields of a network in training are not independent, but these averages are the best known neighbours of theirs: what
is left to random points is the difference (`relu_outputs`).

>>> import numpy as np
>>> mean, sd, v = np.array([0.3, -0.2]), np.array([1.0, 0.5]), np.array([1.0, -2.0])
>>> near = averages(lambda f: f, np.diag(sd**2), mean, v)          # E[1_k f], E[g_k f]
>>> np.round(near.positive, 5), np.round(near.product, 5)
(array([ 0.42437, -0.03515]), array([ 0.65734, -0.0609 ]))
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, wofz

Array = NDArray[np.float64]
TERMS = 40  # frequencies of the sum, over the width of the output; twice as many where it is farther
WIDTH = 8.0  # standard deviations of the output on either side of its mean over which the sum holds
FAR = 6.5  # standard deviations of one field up to which it holds
CERTAIN = 30.0  # a field this many standard deviations from zero has its sign for certain


class Independent(NamedTuple):
    """Averages over independent fields, (K,) each, and what correlations add to them in first order.

    positive, product: E[1_k F] and E[g_k F]; chance, level: E[1_k] and E[g_k]; output, square: E[1_k f] and E[g_k f].
    positive_first, product_first, output_first, square_first: first orders of these.
    """

    positive: Array
    product: Array
    chance: Array
    level: Array
    output: Array
    square: Array
    positive_first: Array
    product_first: Array
    output_first: Array
    square_first: Array


@cache
def _fit(terms: int) -> tuple[Array, NDArray[np.complex128]]:
    """Places x (n,) in [−1, 1] and the matrix (terms, n) that makes c of the values there: F ≈ Re Σ_j c_j exp(iπjx/2).

    The sum has twice the period of the interval, so that F need not be periodic.
    """
    x = np.cos(np.pi * (np.arange(4 * terms) + 0.5) / (4 * terms))
    phase = 0.5 * np.pi * np.outer(x, np.arange(terms))
    solved = np.linalg.pinv(np.concatenate([np.cos(phase), -np.sin(phase[:, 1:])], axis=1), rcond=1e-11)
    return x, solved[:terms] + 1j * np.concatenate([np.zeros((1, x.size)), solved[terms:]])


def averages(F: Callable[[Array], Array], C: Array, mean: Array, v: Array) -> Independent:
    """Averages of F for fields of mean (K,) and covariance C (K, K), readout v (K,), to first order in correlations."""
    sd = np.sqrt(np.maximum(np.diag(C), 0.0))
    m = np.clip(np.divide(mean, sd, out=np.sign(mean) * CERTAIN, where=sd > 0), -CERTAIN, CERTAIN)
    chance, at = ndtr(m), np.exp(-0.5 * m**2) / np.sqrt(2 * np.pi)
    density = np.divide(at, sd, out=np.zeros_like(sd), where=sd > 0)
    level = mean * chance + sd * at
    second = mean * level + sd**2 * chance
    centre = float(v @ level)
    width = np.sqrt(max(float(v**2 @ (second - level**2)), 0.0))
    # one field that is rarely positive goes farther than the width of the output tells
    alone = float((np.abs(v) * np.maximum(mean + FAR * sd, 0.0)).max(initial=0.0))
    half = max(WIDTH * width, alone + 0.4 * WIDTH * width) + 1e-9 * (1.0 + abs(centre))
    terms = TERMS if half < 1.2 * WIDTH * width else 2 * TERMS
    x, fit = _fit(terms)
    omega = 0.5 * np.pi / half * np.arange(terms)
    c = (fit @ F(centre + half * x)) * np.exp(-1j * omega * centre)
    theta = v[:, None] * omega
    active, weighted = _characteristic(theta, mean[:, None], sd[:, None], m[:, None], at[:, None])
    every = active + (1.0 - chance)[:, None]
    before, after = np.ones_like(every), np.ones_like(every)
    before[1:] = np.cumprod(every[:-1], axis=0)
    after[:-1] = np.cumprod(every[:0:-1], axis=0)[::-1]
    others = c * before * after
    correlations = C - np.diag(np.diag(C))
    # a product without a factor that vanishes is not divided by it; such a frequency adds nothing to first order
    turned = np.divide(1j * theta * active, every, out=np.zeros_like(every), where=np.abs(every) > 1e-100)
    pulled = correlations @ turned
    without = 0.5 * (turned * pulled).sum(0) - turned * pulled
    first = others * (active * without + (density[:, None] + 1j * theta * active) * pulled)
    also = others * (weighted * without + (active + 1j * theta * weighted) * pulled)
    moved = correlations @ (v * chance)
    return Independent(
        (others * active).real.sum(1),
        (others * weighted).real.sum(1),
        chance,
        level,
        chance * (centre - v * level) + v * level,
        level * (centre - v * level) + v * second,
        first.real.sum(1),
        also.real.sum(1),
        density * moved,
        chance * moved,
    )


def _characteristic(
    theta: Array, mean: Array, sd: Array, m: Array, at: Array
) -> tuple[NDArray[np.complex128], NDArray[np.complex128]]:
    """χ⁺ and γ at θ (K, terms), for columns (K, 1) of means, standard deviations, m and φ(m)."""
    # of a field with a positive mean it is the negative part that is small
    part = np.sqrt(np.pi / 2) * at * wofz((np.where(m >= 0, -theta, theta) * sd + 1j * np.abs(m)) / np.sqrt(2))
    active = np.where(m >= 0, np.exp(1j * theta * mean - 0.5 * (theta * sd) ** 2) - part, part)
    return active, (mean + 1j * theta * sd**2) * active + sd * at
