"""A sum of many exponentials at few times, without its modes: inverse Laplace transform on Talbot's contour.

The Laplace transform of the error of a linear student (see `overlaps.laws.linear`),

    ε̂(s) = ½ c H/[1 − (η/2)(V − s H)],        H(s) = Σ_b φ_b ω_b/(s + 2 η ω_b),   V = Σ_b φ_b ω_b,

has its poles at minus the decay rates 2 η x_j, and

    ε(t) = (1/2πi) ∮ e^{st} ε̂(s) ds

converges by a factor 3.9 per node when the contour is scaled with the time (Trefethen, Weideman and Schmelzer, BIT 46,
653 (2006)). It is also moved by the slowest rate, so that an error that is exponentially small keeps its digits too.
A time costs O(levels). Where eigenvalues leave gaps of many decades the error is known to 1e-14 of its mean up to then.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..compiled.functions import kept

Array = NDArray[np.float64]
NODES = 28  # half of them are mirror images


def at_times(omega: Array, phi: Array, rate: float, distance: float, slowest: float, times: Array) -> Array:
    """error − floor at `times` > 0, (times,), for one distance in all levels; `slowest` is the smallest decay rate."""
    theta = np.pi * np.arange(1, NODES, 2) / NODES
    cot, sin = 1 / np.tan(0.6407 * theta), np.sin(0.6407 * theta)
    z = NODES * (0.5017 * theta * cot - 0.6122 + 0.2645j * theta)
    slope = NODES * (0.5017 * cot - 0.5017 * 0.6407 * theta / sin**2 + 0.2645j)
    s = z / times[:, None] - slowest
    H = _sums(phi * omega, 2 * rate * omega, s.ravel()).reshape(s.shape)
    transform = 0.5 * distance * H / (1 - 0.5 * rate * (float(phi @ omega) - s * H))
    moved = 2 / NODES * np.imag((np.exp(z) * slope * transform).sum(1)) / times
    return moved * np.exp(-slowest * times)


@kept(fastmath={"reassoc", "contract", "arcp"}, error_model="numpy")
def _sums(weights, poles, s):  # pragma: no cover - compiled
    """Σ_b weights_b/(s + poles_b) for every s."""
    out = np.empty(s.size, np.complex128)
    for i in range(s.size):
        re, im = s[i].real, s[i].imag
        square = im * im
        real, imaginary = 0.0, 0.0
        for b in range(poles.size):
            x = re + poles[b]
            r = weights[b] / (x * x + square)
            real += x * r
            imaginary -= r
        out[i] = complex(real, im * imaginary)
    return out
