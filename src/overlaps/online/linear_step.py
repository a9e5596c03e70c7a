"""One step of the exact mean of one weight vector: the formula that theory, plans and laws of linear students share.

A committee of one row, or the one vector Σ_k v_k W_k that a plain linear committee is, learns B from Gaussian inputs.
With e the difference of the student's and the teacher's output weights, E_b, c_b and t_b the parts of E[e·e], E[e]·B
and B·B in level b, over N, one step W ← κ W − (a N) ⟨δ x⟩ with batches of 1/β samples takes

    E ← (κ² − 2 a κ ω + (1 + β) a² ω²) E − 2 (1 − κ) (κ − a ω) c + (1 − κ)² t + a² β n ω (Σ ω E + σ²)
    c ← (κ − a ω) c − (1 − κ) t

for n_b dimensions of variance ω_b and noise σ² of the labels. κ = 1 without decay, and c then drops out of E.

`overlaps.online.exact_mean` has the same step for rows with velocities and for several units, as products of small
matrices; for one row that takes about three times as long, so both are kept, and tested against each other.
`overlaps.plan.linear_mean` differentiates this one, and `overlaps.online.long_stretches` takes many of them at once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..compiled.functions import kept
from ..problem.start import LIMIT

Array = NDArray[np.float64]


class LinearLevels(NamedTuple):
    """What does not move: ω, what noise feeds β n ω, and t, all (B,); the numbers β and σ²."""

    omega: Array
    feed: Array
    teacher: Array
    share: float
    noise: float


@kept(nogil=True, fastmath={"reassoc", "contract"})
def step(E, c, keep, pull, levels, total):  # pragma: no cover - compiled
    """One step of E and c, (B,) each, in place, with κ = `keep` and a = `pull`.

    `total` is Σ ω E before it, and what is returned is that after it.
    """
    lost, feed = 1.0 - keep, pull * pull * (total + levels.noise)
    square, after = (1.0 + levels.share) * pull * pull, 0.0
    for b in range(E.size):
        w = levels.omega[b]
        E[b] = (
            (keep * keep - 2.0 * pull * keep * w + square * w * w) * E[b]
            + 2.0 * lost * (pull * w - keep) * c[b]
            + lost * lost * levels.teacher[b]
            + feed * levels.feed[b]
        )
        c[b] = (keep - pull * w) * c[b] - lost * levels.teacher[b]
        after += w * E[b]
    return after


@kept(nogil=True)
def follow(E, c, keep, pull, levels):  # pragma: no cover - compiled
    """A step for each κ and a, (steps,) each, in place; stops where the error has diverged.

    Returns the number of steps taken.
    """
    total = np.sum(levels.omega * E)
    for s in range(pull.size):
        total = step(E, c, keep[s], pull[s], levels, total)
        if not total < LIMIT:
            return s + 1
    return pull.size
