"""Claims about sampled matrices near their population, and about the first layer's equations of motion (XOR)."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

import overlaps as ov

from ..estimates import Estimate, power
from ..ledger import Measurement, verdict
from . import printed
from .formula_claims import outside
from .model import xor
from .paper import PAPER
from .xor_claims import trained

Array = NDArray[np.float64]
CLASSES = 3
EQUAL = np.full(CLASSES, 1 / CLASSES)


def drawn(size: int, samples: int, lam: float, rng: np.random.Generator) -> tuple[NDArray[np.int64], Array]:
    """Labels and inputs of three classes with unit means e_1 to e_3, (samples,) and (samples, d)."""
    y = rng.integers(CLASSES, size=samples)
    return y, np.eye(CLASSES, size)[y] + rng.standard_normal((samples, size)) / np.sqrt(lam)


def sampled(x: Array, y: NDArray[np.int64], Y: Array, kind: str) -> Array:
    """Hessian or G-matrix over samples at classifiers x (k, d), (k d, k d)."""
    pi = np.asarray(softmax(Y @ x.T, axis=1))
    if kind == "hessian":
        weights = np.einsum("na,ab->nab", pi, np.eye(CLASSES)) - pi[:, :, None] * pi[:, None, :]
    else:
        residual = pi - np.eye(CLASSES)[y]
        weights = residual[:, :, None] * residual[:, None, :]
    blocks = [[(Y * weights[:, a, b, None]).T @ Y / len(Y) for b in range(CLASSES)] for a in range(CLASSES)]
    return np.block(blocks)


def exact(x: Array, lam: float, kind: str) -> Array:
    """Their expectations, by Lemmas 3.1 to 3.3 as corrected."""
    means = np.eye(CLASSES, x.shape[1])
    at = printed.nodes(x @ means.T, x @ x.T, EQUAL, lam, points=8)

    def block(a: int, b: int) -> Array:
        if kind == "gradient":
            return printed.lemma33(at, x, means, lam, a, b)
        return printed.lemma32(at, x, means, lam, a) if a == b else printed.lemma31(at, x, means, lam, a, b)

    return np.block([[block(a, b) for b in range(CLASSES)] for a in range(CLASSES)])


def classifiers(size: int, rng: np.random.Generator) -> Array:
    """Classifiers that know the means, and have a random part of length one, (k, d)."""
    return 2 * np.eye(CLASSES, size) + rng.standard_normal((CLASSES, size)) / np.sqrt(size)


def descended(y: NDArray[np.int64], Y: Array, rng: np.random.Generator) -> Array:
    """Classifiers after one pass of SGD over these samples, decay .01, (k, d); steps such that the time is 10."""
    x = rng.standard_normal((CLASSES, Y.shape[1])) / np.sqrt(Y.shape[1])
    for label, sample in zip(y, Y, strict=True):
        residual = np.asarray(softmax(x @ sample)) - np.eye(CLASSES)[label]
        x = x - 10 / len(Y) * (np.outer(residual, sample) + 0.01 * x)
    return x


def distances(kind: str, size: int, ratios: tuple[int, ...], lam: float, runs: int, *, train: bool) -> list[Array]:
    """|sampled − expected| in operator norm, (runs,) for each ratio M/d, at fixed points or where training ends."""
    found = []
    for ratio in ratios:
        each = []
        for seed in range(runs):
            rng = np.random.default_rng([ratio, size, seed])
            y, Y = drawn(size, ratio * size, lam, rng)
            x = descended(y, Y, rng) if train else classifiers(size, rng)
            each.append(np.linalg.norm(sampled(x, y, Y, kind) - exact(x, lam, kind), 2))
        found.append(np.array(each))
    return found


def concentration(quick: bool, *, train: bool) -> tuple[dict[str, Estimate], float, str]:
    """Powers of α = M/d in the distance for Hessian and G-matrix, the largest |power of d|, and a note."""
    ratios, runs = (10, 40, 160), 3 if quick else 8
    sizes = (20, 80) if quick else (25, 50, 100)
    powers, in_size = {}, 0.0
    for kind in ("hessian", "gradient"):
        found = distances(kind, sizes[-1], ratios, 10.0, runs, train=train)
        powers[kind] = power(ratios, [x.mean() for x in found], [x.std(ddof=1) / np.sqrt(runs) for x in found])
        at = [distances(kind, size, (40,), 10.0, runs, train=train)[0].mean() for size in sizes]
        in_size = max(in_size, float(np.polyfit(np.log(sizes), np.log(at), 1)[0]))
    note = ", ".join(f"{kind} {p.value:.3f} ± {p.error:.3f}" for kind, p in powers.items())
    return powers, in_size, f"powers of M/d, -1/2 said: {note}; of d at a fixed M/d at most {in_size:.2f}"


@PAPER.claim(
    "theorem-6.1",
    where="theorem 6.1, eqs. (6.1) and (6.2)",
    statement="Hessian and G-matrix of M = alpha d test samples are within O(alpha^-1/2) of their expectations in "
    "operator norm, whatever d and lambda",
    expected="holds",
)
def theorem61(quick: bool) -> Measurement:
    """Power of α in the distance, k = 3, λ = 10, α = 10 to 160, slowest of both; power of d; λ = 1 to 100."""
    powers, in_size, note = concentration(quick, train=False)
    noises = [float(distances("hessian", 30, (40,), lam, 3, train=False)[0].mean()) for lam in (1.0, 10.0, 100.0)]
    slowest = max(powers.values())
    # deviations of order α rather than √α would come at α < 1; a bound may fall with λ
    holds = slowest.value < -0.45 and in_size < 0.1 and noises[0] < 1
    note += f"; distances at lambda = 1, 10, 100: {', '.join(f'{x:.3f}' for x in noises)}"
    return Measurement("holds" if holds else "fails", *slowest, note)


@PAPER.claim(
    "lemma-8.1",
    where="lemma 8.1",
    statement="the same where the samples are those that SGD was trained on, at the point where training ends",
    expected="holds",
)
def lemma81(quick: bool) -> Measurement:
    """Power of α in the distance after one pass over the same samples, k = 3, λ = 10, α = 10 to 160; and of d."""
    powers, in_size, note = concentration(quick, train=True)
    slowest = max(powers.values())
    holds = slowest.value < -0.4 and in_size < 0.15
    return Measurement("holds" if holds else "fails", *slowest, note)


READOUT = np.array([1.0, -0.7, 0.8])


def sampled_xor(W: Array, y: Array, Y: Array, kind: str) -> Array:
    """Hessian or G-matrix of the XOR network, readout first: outer products of slopes, and g' Y of v W."""
    fields = Y @ W.T
    g, slope = np.maximum(fields, 0.0), (fields > 0).astype(float)
    out = expit(g @ READOUT)
    inner = np.concatenate([g, ((slope * READOUT)[:, :, None] * Y[:, None, :]).reshape(len(Y), -1)], axis=1)
    if kind == "gradient":
        return (inner * ((out - y) ** 2)[:, None]).T @ inner / len(Y)
    matrix = (inner * (out * (1 - out))[:, None]).T @ inner / len(Y)
    K, d = W.shape
    for i in range(K):
        mixed = ((out - y) * slope[:, i]) @ Y / len(Y)
        at = slice(K + i * d, K + (i + 1) * d)
        matrix[i, at] += mixed
        matrix[at, i] += mixed
    return matrix


def apart(kind: str, size: int, ratio: int, lam: float, runs: int) -> Array:
    """|A − B|/√2 in operator norm of matrices of two independent batches of M = ratio d samples, (runs,)."""
    found = []
    for seed in range(runs):
        rng = np.random.default_rng([62, ratio, size, seed])
        W = 2 * np.concatenate([np.eye(2, size), -np.eye(1, size)]) + rng.standard_normal((3, size)) / np.sqrt(size)
        pair = []
        for _ in range(2):
            axis, sign = rng.integers(2, size=ratio * size), rng.choice([-1.0, 1.0], size=ratio * size)
            Y = sign[:, None] * np.eye(2, size)[axis] + rng.standard_normal((ratio * size, size)) / np.sqrt(lam)
            pair.append(sampled_xor(W, (1 - axis).astype(float), Y, kind))
        found.append(np.linalg.norm(pair[0] - pair[1], 2) / np.sqrt(2))
    return np.array(found)


@PAPER.claim(
    "theorem-6.2",
    where="theorem 6.2, eqs. (6.14) and (6.15)",
    statement="Hessian and G-matrix of the XOR network of M = alpha d test samples are within O(alpha^-1/2) of their "
    "expectations in operator norm, whatever d and lambda",
    expected="holds",
)
def theorem62(quick: bool) -> Measurement:
    """Power of α in the distance of two independent batches, K = 3, λ = 10, α = 10 to 160, slowest of both; power of d.

    Both batches scatter about the expectation, so that it need not be known; and λ = 1 to 100.
    """
    ratios, runs, sizes = (10, 40, 160), 3 if quick else 8, (20, 60) if quick else (25, 50, 100)
    powers, in_size = {}, 0.0
    for kind in ("hessian", "gradient"):
        found = [apart(kind, sizes[-1], ratio, 10.0, runs) for ratio in ratios]
        powers[kind] = power(ratios, [x.mean() for x in found], [x.std(ddof=1) / np.sqrt(runs) for x in found])
        at = [apart(kind, size, 40, 10.0, runs).mean() for size in sizes]
        in_size = max(in_size, float(np.polyfit(np.log(sizes), np.log(at), 1)[0]))
    noises = [float(apart("hessian", 30, 40, lam, 3).mean()) for lam in (1.0, 10.0, 100.0)]
    slowest = max(powers.values())
    holds = slowest.value < -0.45 and in_size < 0.1 and noises[0] < 2
    note = ", ".join(f"{kind} {p.value:.3f} ± {p.error:.3f}" for kind, p in powers.items())
    note = f"powers of M/d, -1/2 said: {note}; of d at a fixed M/d at most {in_size:.2f}; "
    note += f"distances at lambda = 1, 10, 100: {', '.join(f'{x:.3f}' for x in noises)}"
    return Measurement("holds" if holds else "fails", slowest.value, slowest.error, note)


def limits(point: ov.Start) -> tuple[dict[str, Array], Array, Array]:
    """Blocks vv of (4.10) and (4.16), and along μ, ν those of W_i W_i in (4.17), (K, 2); K and outputs."""
    v, m = point.v, point.m[0]
    hidden = np.maximum(m, 0.0)  # (K, 4), g(W θ)
    out = expit(v @ hidden)
    residual = np.array([1.0, 1.0, 0.0, 0.0]) - out
    vv = {
        "hessian": (hidden * (out * (1 - out))) @ hidden.T / 4,
        "gradient": (hidden * residual**2) @ hidden.T / 4,
    }
    return vv, residual, out


@PAPER.claim(
    "lemmas-4.4-4.5",
    where="lemmas 4.4 and 4.5, eqs. (4.10), (4.16) and (4.17)",
    statement="block vv of the population Hessian is (1/4) sum_theta sigma'(v.g(W theta)) g(W theta)^2, that of the "
    "G-matrix has (y - sigma)^2 for sigma', and its blocks W_i W_i are v_i^2/4 sum (y - sigma)^2 F theta theta^T, up "
    "to O(lambda^-1/2)",
    expected="holds",
)
def lemmas44_45(quick: bool) -> Measurement:
    """Power of λ in the deviations over the size of the block, at the trained point of theorem-2.6; the slowest."""
    lams = [300.0, 1000.0, 3000.0] if quick else [300.0, 1000.0, 3000.0, 10_000.0]
    gaps: dict[str, list[float]] = {"H_vv": [], "G_vv": [], "G_WW": []}
    for lam in lams:
        point, H, G = trained(lam)
        vv, residual, _ = limits(point)
        for name, matrix in (("H_vv", H), ("G_vv", G)):
            block = matrix.block("v").core
            off = np.linalg.norm(block - vv["hessian" if name == "H_vv" else "gradient"], 2)
            gaps[name].append(float(off / np.linalg.norm(block, 2)))
        reach = point.m[0] * np.sqrt(lam / np.diag(point.Q[0]))[:, None]
        worst = 0.0
        for i in range(len(point.v)):
            each = point.v[i] ** 2 / 4 * residual**2 * printed.ndtr(reach[i])
            block, means = G.block(i), G.span.means
            core = np.zeros_like(block.core)
            for weight, direction in zip(each, means, strict=True):
                core += weight * np.outer(direction, direction)
            worst = max(worst, float(np.linalg.norm(block.core - core, 2) / np.linalg.norm(block.core, 2)))
        gaps["G_WW"].append(worst)
    fits = {name: power(lams, x) for name, x in gaps.items()}
    slowest = max(fits.values())
    at = ", ".join(f"{name} {x[-1]:.2g}" for name, x in gaps.items())
    note = f"slowest of three, -1/2 said; at lambda = {lams[-1]:g}: {at}"
    return Measurement("holds" if slowest.value < -0.45 else "fails", *slowest, note)


QUIET = 1e-8  # variance at which there is no noise to speak of; without any a ReLU network slides along its kinks
V, MU, NU = np.array([1.0, -0.7, 0.4]), np.array([0.6, -0.3, 0.2]), np.array([-0.2, 0.5, 0.35])
PERP = np.array([[1.0, 0.2, 0.1], [0.2, 0.8, -0.1], [0.1, -0.1, 0.9]])


def moves(variance: float, decay: float) -> dict[str, Array]:
    """Velocities of v, m along μ and ν, and R⊥ of the solved equations at a point of three units."""
    problem = xor(3, variance=variance, decay=decay)
    m, h = np.stack([MU, -MU, NU, -NU], axis=1), 2e-3
    Q = PERP + np.outer(MU, MU) + np.outer(NU, NU)
    begin = ov.Start.from_overlaps(problem, Q=Q, m=m, student_readout=V)
    run = ov.solve(problem, begin, [0.0, h, 2 * h], accuracy=1e-8).data
    m, Q, v = (run[name].values[0] for name in ("m", "Q", "v"))
    R = outside(Q, m[:, :, [0, 2]])
    paths = {"v": v, "mu": m[:, :, 0], "nu": m[:, :, 2], "R": R}
    return {name: (-3 * x[0] + 4 * x[1] - x[2]) / (2 * h) for name, x in paths.items()}


def averages(lam: float, samples: int, seed: int) -> tuple[Array, Array]:
    """A_i of (5.21) in the span of μ, ν and all W_i⊥, (3, 5), and B_ij of (5.22), over samples."""
    W = np.column_stack([MU, NU, np.linalg.cholesky(PERP)])
    rng = np.random.default_rng(seed)
    means = np.array([[1, 0], [-1, 0], [0, 1], [0, -1]]) @ np.eye(2, 5)
    A, B = np.zeros((3, 5)), np.zeros((3, 3))
    for centre, label in zip(means, (1.0, 1.0, 0.0, 0.0), strict=True):
        half = rng.standard_normal((samples, 5)) / np.sqrt(lam)
        Y = centre + np.concatenate([half, -half])
        fields = Y @ W.T
        on, residual = 1.0 * (fields > 0), expit(np.maximum(fields, 0) @ V) - label
        A += (on * residual[:, None]).T @ Y / len(Y) / 4
        B += (on * residual[:, None] ** 2).T @ on / len(Y) / 4
    return A, B


def proposition515(lam: float, decay: float, samples: int, seed: int) -> dict[str, Array]:
    """Velocities by proposition 5.15, c_δ = 1."""
    A, B = averages(lam, samples, seed)
    perp = np.linalg.cholesky(PERP)
    across = A[:, 2:] @ perp.T  # A_ij⊥ = W_j⊥·A_i
    pull = V[:, None] * across
    return {
        "v": -(MU * A[:, 0] + NU * A[:, 1] + np.diag(across) + decay * V),
        "mu": -(V * A[:, 0] + decay * MU),
        "nu": -(V * A[:, 1] + decay * NU),
        "R": -(pull + pull.T + 2 * decay * PERP) + np.outer(V, V) * B / lam,
    }


@PAPER.claim(
    "proposition-5.15",
    where="proposition 5.15",
    statement="the overlaps of SGD on the XOR mixture move as in proposition 5.15, with A of (5.21) and B of (5.22)",
    expected="holds",
)
def equations(quick: bool) -> Measurement:
    """Largest deviation from the solved equations in standard errors of the averages, three units, λ = 4, β = .05."""
    exactly, batches = moves(0.25, 0.05), 8
    found = [proposition515(4.0, 0.05, 40_000 if quick else 1_000_000, seed) for seed in range(batches)]
    worst, sizes = 0.0, []
    for name, path in exactly.items():
        each = np.array([one[name] for one in found])
        error = each.std(0, ddof=1) / np.sqrt(batches)
        worst = max(worst, float(np.max(np.abs(each.mean(0) - path) / (error + 1e-5))))
        sizes.append(float(np.max(error) / np.abs(path).max()))
    # 18 numbers, t with seven degrees of freedom, at level 1e-3
    return Measurement(
        "holds" if worst < 7.5 else "fails", worst, 1.0, f"errors {max(sizes):.1g} of the largest velocity"
    )


@PAPER.claim(
    "proposition-5.18",
    where="proposition 5.18",
    statement="without noise the overlaps move as in proposition 5.18; corrected: sigma(v.g(+-m^nu)) for sigma(-v.g) "
    "in the equation of m^nu, as in that of v",
    expected="holds corrected",
)
def without_noise(quick: bool) -> Measurement:
    """Velocities as printed and corrected against the solved equations at λ = 10⁸, three units, β = .05."""
    path = moves(QUIET, 0.05)
    wrong, right = (printed.proposition518(V, MU, NU, 0.05, sign) for sign in (-1.0, 1.0))
    others = max(float(np.abs(right[name] - path[name]).max()) for name in ("v", "mu"))
    others = max(others, float(np.abs(-0.1 * PERP - path["R"]).max()))
    as_printed, corrected = (float(np.abs(one["nu"] - path["nu"]).max()) for one in (wrong, right))
    size = float(np.abs(path["nu"]).max())
    note = (
        f"deviation of dm/dt along nu over its size; corrected {corrected / size:.1g}, the other equations {others:.1g}"
    )
    judged = verdict(as_printed, max(corrected, others), 1e-3)
    return Measurement(judged, as_printed / size, 1e-3, note)


@PAPER.claim(
    "corollary-5.20",
    where="corollary 5.20",
    statement="trajectories with noise are within O(exp(C t)/sqrt(lambda)) of those without",
    expected="holds",
)
def nearness(quick: bool) -> Measurement:
    """Power of λ in the largest distance of v and m from those without noise, times up to 8, λ = 100 to 3000."""
    lams = [100.0, 300.0, 1000.0] if quick else [100.0, 300.0, 1000.0, 3000.0]
    slope, width = power(lams, [path_distance(lam) for lam in lams])
    return Measurement("holds" if slope < -0.475 else "fails", slope, width, f"lambda = {lams[0]:g} to {lams[-1]:g}")


def path_distance(lam: float) -> float:
    """Largest distance of v and m from those at λ = 10⁶, which have next to no noise, at times up to 8, β = .05."""
    return float(np.linalg.norm(path(1 / lam) - path(1e-6), axis=1).max())


@cache
def path(variance: float) -> Array:
    """v and m at eleven times up to 8, (times, K + 4 K)."""
    problem = xor(3, variance=variance, decay=0.05)
    m = np.stack([MU, -MU, NU, -NU], axis=1)
    Q = PERP + np.outer(MU, MU) + np.outer(NU, NU)
    begin = ov.Start.from_overlaps(problem, Q=Q, m=m, student_readout=V)
    run = ov.solve(problem, begin, np.linspace(0, 8, 11), accuracy=1e-4).data  # distances are .02 and more
    return np.concatenate([run["v"].values[0], run["m"].values[0].reshape(11, -1)], axis=1)
