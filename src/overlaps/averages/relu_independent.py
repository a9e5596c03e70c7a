"""Averages of a function F of the output f = Σ_l v_l g_l, g_l = max(λ_l, 0), of many *independent* ReLU units.

F is written as a trigonometric sum over the width of f, F(f) = Re Σ_j c_j exp(i ω_j (f − f̄)), whose averages factor:

    E[1_k F]   = Re Σ_j c_j exp(−i ω_j f̄) χ⁺_k(ω_j)  Π_{l≠k} χ_l(ω_j)
    E[g_k F]   = Re Σ_j c_j exp(−i ω_j f̄) γ_k(ω_j)   Π_{l≠k} χ_l(ω_j)

with, for a field of mean μ, standard deviation s, m = μ/s, θ = ω v and w the Faddeeva function,

    χ⁺ = E[1(λ > 0) exp(iθλ)] = exp(−m²/2) w((θ s − i m)/√2)/2          χ = χ⁺ + P(λ < 0)
    γ  = E[1(λ > 0) λ exp(iθλ)] = (μ + iθ s²) χ⁺ + s φ(m).

Fields of a network in training are not independent, but these averages are the best known neighbours of theirs: what
is left to random points is the difference (`relu_outputs`).

>>> import numpy as np
>>> mean, sd, v = np.array([0.3, -0.2]), np.array([1.0, 0.5]), np.array([1.0, -2.0])
>>> positive, product = averages(lambda f: f, mean, sd, v)         # E[1_k f], E[g_k f]
>>> np.round(positive, 6), np.round(product, 6)
(array([ 0.42437 , -0.035145]), array([ 0.657336, -0.060899]))
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, wofz

Array = NDArray[np.float64]
TERMS = 40  # frequencies of the sum
WIDTH = 8.0  # standard deviations of the output on either side of its mean over which the sum holds
CERTAIN = 30.0  # a field this many standard deviations from zero has its sign for certain


@cache
def _fit() -> tuple[Array, NDArray[np.complex128]]:
    """Places x (n,) in [−1, 1] and the matrix (TERMS, n) that makes c of the values there: F ≈ Re Σ_j c_j exp(iπjx/2).

    The sum has twice the period of the interval, so that F need not be periodic.
    """
    x = np.cos(np.pi * (np.arange(4 * TERMS) + 0.5) / (4 * TERMS))
    phase = 0.5 * np.pi * np.outer(x, np.arange(TERMS))
    solved = np.linalg.pinv(np.concatenate([np.cos(phase), -np.sin(phase[:, 1:])], axis=1), rcond=1e-11)
    return x, solved[:TERMS] + 1j * np.concatenate([np.zeros((1, x.size)), solved[TERMS:]])


def averages(F: Callable[[Array], Array], mean: Array, sd: Array, v: Array) -> tuple[Array, Array]:
    """E[1_k F(f)] and E[g_k F(f)], (K,) each, for independent fields of these means and standard deviations, (K,)."""
    m = np.clip(np.divide(mean, sd, out=np.sign(mean) * CERTAIN, where=sd > 0), -CERTAIN, CERTAIN)
    chance, at = ndtr(m), np.exp(-0.5 * m**2) / np.sqrt(2 * np.pi)
    level = mean * chance + sd * at
    variance = mean * level + sd**2 * chance - level**2
    centre = float(v @ level)
    half = WIDTH * np.sqrt(max(float(v**2 @ variance), 0.0)) + 1e-9 * (1.0 + abs(centre))
    x, fit = _fit()
    omega = 0.5 * np.pi / half * np.arange(TERMS)
    c = (fit @ F(centre + half * x)) * np.exp(-1j * omega * centre)
    mean, sd, m, at, theta = mean[:, None], sd[:, None], m[:, None], at[:, None], v[:, None] * omega
    # of a field with a positive mean it is the negative part that is small
    part = np.sqrt(np.pi / 2) * at * wofz((np.where(m >= 0, -theta, theta) * sd + 1j * np.abs(m)) / np.sqrt(2))
    active = np.where(m >= 0, np.exp(1j * theta * mean - 0.5 * (theta * sd) ** 2) - part, part)
    weighted = (mean + 1j * theta * sd**2) * active + sd * at
    every = active + (1.0 - chance)[:, None]
    before, after = np.ones_like(every), np.ones_like(every)
    before[1:] = np.cumprod(every[:-1], axis=0)
    after[:-1] = np.cumprod(every[:0:-1], axis=0)[::-1]
    others = c * before * after
    return (others * active).real.sum(1), (others * weighted).real.sum(1)
