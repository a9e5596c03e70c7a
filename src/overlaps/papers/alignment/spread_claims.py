"""Claims about what the covariance of an unseen class does to its scores, and about the norm of inputs with means."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import overlaps as ov

from ..estimates import Estimate, mean, power
from ..ledger import Measurement
from .model import setting
from .paper import PAPER

Array = NDArray[np.float64]


def spread_scores(size: int, runs: int) -> tuple[Array, Array, Array]:
    """β·Σβ N of three classes around .3 v, their predicted alignments (3,), and the measured ones (runs, 3)."""
    task = setting("sphere", size)
    v = task.direction
    along = np.outer(v, v) / (v @ v)
    unseen = [ov.giant_step.UnseenClass(0.3 * v, np.eye(size) + more * along) for more in (-1.0, 0.0, 3.0)]
    b = task.groups().pulls.sum(0)
    spreads = np.array([b @ one.apply(b) for one in unseen])
    theory = ov.giant_step.solve(task, unseen, progress=False).data["alignment"].values[0]
    made = ov.giant_step.train(task, unseen, runs, 256, seed=5, with_recall=False, progress=False)
    return spreads, theory, made.data["alignment"].values


@PAPER.claim(
    "growth-in-spread",
    where="theorems 1.3, 4.2 and 4.3",
    statement="alignment grows with beta.Sigma beta; at a fixed mean of the unseen class, e = .3, it falls",
    expected="fails",
)
def growth_in_spread(quick: bool) -> Measurement:
    """Alignment with the largest spread of the class along β over that with the least; theory, and runs."""
    size, runs = (256, 6) if quick else (512, 16)
    spreads, theory, measured = spread_scores(size, runs)
    ratio = mean(measured[:, 2] / measured[:, 0])
    # theory is the independent route: both must say the same
    said = float(theory[2] / theory[0])
    grows = ratio.value - 3 * ratio.error > 1 and said > 1
    falls = ratio.value + 3 * ratio.error < 1 and said < 1
    judged = "holds" if grows else "fails" if falls else "cannot be told"
    note = f"d = {size}; b.Sigma b without noise of the gradient {', '.join(f'{x:.0f}' for x in spreads)}; theory "
    note += (
        f"{said:.3f}: {', '.join(f'{x:.1f}' for x in theory)}; runs {', '.join(f'{x:.1f}' for x in measured.mean(0))}"
    )
    return Measurement(judged, ratio.value, ratio.error, note)


def input_norms(sizes: tuple[int, ...], runs: int) -> list[Array]:
    """|X| in operator norm over 2√n of Data 2 at d = n, (runs,) for each size."""
    found = []
    for size in sizes:
        task = setting("truncated", size)
        draws = (task.draw(np.random.default_rng([size, run]))[0] for run in range(runs))
        found.append(np.array([np.linalg.norm(X, 2) / (2 * np.sqrt(size)) for X in draws]))
    return found


@PAPER.claim(
    "lemmas-E.3-E.4",
    where="lemmas E.3 and E.4",
    statement="a matrix of independent sub-Gaussian entries, not centred, has |A| <= C K (sqrt m + sqrt n); means "
    "of order one add a part of rank one and norm of order sqrt(mn), and |X|/(2 sqrt n) of Data 2 grows as sqrt n",
    expected="fails",
)
def lemma_e3(quick: bool) -> Measurement:
    """Power of n in |X|/(2√n) of Data 2, d = n: 0 said, ½ if the means decide."""
    sizes = (128, 256, 512) if quick else (128, 256, 512, 1024)
    norms = input_norms(sizes, 4)
    each = [mean(values) for values in norms]
    slope: Estimate = power(sizes, *np.transpose(each))
    holds = abs(slope.value) < 0.05
    fails = abs(slope.value - 0.5) < 0.05
    note = f"{', '.join(f'{value:.1f}' for value, _ in each)} at n = {', '.join(map(str, sizes))}"
    judged = "holds" if holds else "fails" if fails else "cannot be told"
    return Measurement(judged, slope.value, slope.error, note)
