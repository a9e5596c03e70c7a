"""Claims about the lemmas behind the rank-one gradient: sizes of its parts and powers, and of what makes them."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

import overlaps as ov

from ..estimates import Estimate, mean, power
from ..ledger import Measurement
from .model import setting
from .paper import PAPER

Array = NDArray[np.float64]


def parts(kind: str, size: int, seed: int) -> dict[str, float]:
    """Norms of A, B and C of (3), of powers of X̃G less those of its rank-one part, and of what Lemma G.1 bounds."""
    task, rng = setting(kind, size), np.random.default_rng([size, seed])
    X, y = task.draw(rng)
    fresh, _ = task.draw(rng)
    n, N = len(X), size
    W = rng.standard_normal((size, N))
    W /= np.linalg.norm(W, axis=0)
    heads = rng.standard_normal((2, N)) / np.sqrt(N)
    alpha = heads[0] - heads[1]  # y₂ = −y₁
    fields = X @ W
    c1 = ov.giant_step.hermite_coefficients(task.g, 1).c[1]
    slope = 1 - np.tanh(fields) ** 2
    A = c1 / (n * np.sqrt(N)) * np.outer(X.T @ y, alpha)
    B = X.T @ (np.outer(y, alpha) * (slope - c1)) / (n * np.sqrt(N))
    outputs = np.tanh(fields) @ heads.T  # (n, 2)
    C = -X.T @ ((outputs @ heads) * slope) / (n * N)
    G, beta = A + B + C, X.T @ y / (n * np.sqrt(N))
    seen, line = fresh @ G, fresh @ beta
    found = {"A": A, "B": B, "C": C, "G": G}
    norms = {name: ov.giant_step.operator_norm(x) for name, x in found.items()}
    for k in (1, 2):
        norms[f"power {k}"] = ov.giant_step.operator_norm(seen**k - c1**k * np.outer(line**k, alpha**k))
    norms["inputs"] = ov.giant_step.operator_norm(fresh)
    norms["largest"] = float(np.abs(line).max() * np.sqrt(N))  # of b, which is of order one
    norms["weights"] = ov.giant_step.operator_norm((W.T @ W) ** 2)
    return norms


SIZES = {True: (64, 128, 256), False: (128, 256, 512, 1024)}  # d = n = N, quick and in full


@cache
def powers(kind: str, quick: bool) -> tuple[dict[str, Estimate], dict[str, Array]]:
    """Powers of n in these norms, d = n = N, and their means at the sizes."""
    sizes, runs = SIZES[quick], 4 if quick else 8
    each = [[parts(kind, size, seed) for seed in range(runs)] for size in sizes]
    slopes, means = {}, {}
    for name in each[0][0]:
        found = np.array([mean([one[name] for one in runs_]) for runs_ in each])
        slopes[name], means[name] = power(sizes, found[:, 0], found[:, 1]), found[:, 0]
    return slopes, means


def listed(slopes: dict[str, Estimate], names: tuple[str, ...]) -> str:
    """Powers in words."""
    return ", ".join(f"{name} {slopes[name].value:.2f} ± {slopes[name].error:.2f}" for name in names)


@PAPER.claim(
    "lemma-F.1",
    where="lemma F.1, remark F.5",
    statement="in the proportional regime |A| is of order n^-1/2, |B| and |C| at most of order log^2 n/n; so for ball "
    "and sphere; for the truncated Gaussian, whose means are 1.5 sqrt(d) long, |A| and |B| are of order one",
    expected="fails",
)
def lemma_f1(quick: bool) -> Measurement:
    """Powers of n in |A|, |B|, |C| for Data 3, and for Data 2; the value is that of |B| for Data 2."""
    (near, _), (far, _) = powers("sphere", quick), powers("truncated", quick)
    # log²n/n falls as about n^-.6 over these sizes
    centred = abs(near["A"].value + 0.5) < 0.05 and near["B"].value < -0.6 and near["C"].value < -0.6
    shifted = far["B"].value < -0.6 and far["C"].value < -0.6
    judged = "holds" if centred and shifted else "fails" if centred else "cannot be told"
    note = f"powers of n for Data 3: {listed(near, ('A', 'B', 'C'))}; for Data 2: {listed(far, ('A', 'B', 'C'))}"
    return Measurement(judged, *far["B"], note)


@PAPER.claim(
    "lemma-3.2",
    where="lemma 3.2, eq. (5)",
    statement="powers k of X~G are those of its rank-one part up to C^k n^-k/2 log^2k n in operator norm, ball and "
    "sphere",
    expected="holds",
)
def lemma_32(quick: bool) -> Measurement:
    """Powers of n in the norm of the difference for k = 1 and 2, Data 1 and 3, which must not exceed the bound's."""
    sizes = np.array(SIZES[quick])
    worst, notes, holds = Estimate(-9.0, 0.0), [], True
    for kind in ("ball", "sphere"):
        slopes, _ = powers(kind, quick)
        for k in (1, 2):
            bound = float(np.polyfit(np.log(sizes), np.log(np.log(sizes) ** (2 * k) * sizes ** (-k / 2)), 1)[0])
            found = slopes[f"power {k}"]
            holds &= found.value - 3 * found.error < bound
            worst = max(worst, Estimate(found.value - bound, found.error))
            notes.append(f"{kind}, k = {k}: {found.value:.2f} ± {found.error:.2f}, bound {bound:.2f}")
    return Measurement("holds" if holds else "fails", *worst, f"largest excess; {'; '.join(notes)}")


@PAPER.claim(
    "lemma-G.1",
    where="lemma G.1",
    statement="|X~| is of order sqrt(n), sqrt(N)|G| and |(W^T W)^ok| of order one, and the largest of <x~, beta> of "
    "order log^1/2 n, ball and sphere; for the truncated Gaussian |X~| is of order n",
    expected="fails",
)
def lemma_g1(quick: bool) -> Measurement:
    """Powers of n in these for Data 3, and in |X̃| for Data 2, which is the value."""
    (near, _), (far, _) = powers("sphere", quick), powers("truncated", quick)
    sizes = SIZES[quick]
    logarithm = float(np.polyfit(np.log(sizes), np.log(np.log(sizes)) / 2, 1)[0])  # log^1/2 n as a power of n
    expected = {"inputs": 0.5, "G": -0.5, "weights": 0.0, "largest": logarithm}
    centred = all(abs(near[name].value - said) < 0.05 for name, said in expected.items())
    shifted = abs(far["inputs"].value - 0.5) < 0.05
    judged = "holds" if centred and shifted else "fails" if centred else "cannot be told"
    return Measurement(judged, *far["inputs"], f"powers of n for Data 3: {listed(near, tuple(expected))}")
