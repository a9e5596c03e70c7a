"""Equations of the paper as printed, for the claims that test them.

With the eigenvalues ρ_τ of F Fᵀ/N and, in its eigenbasis, students Γ of S = W Fᵀ/√N and teachers B,

    r_τ = Γ_τ B_τᵀ        σ_τ = Γ_τ Γ_τᵀ        t_τ = B_τ B_τᵀ        Ω = W Wᵀ/N        δ = D/N
    d(ρ) = (c − b²) δ + b² ρ        R = b ⟨r⟩        Q = (c − b²) Ω + b² ⟨σ⟩        T = ⟨t⟩             (S34), (S42)

where ⟨·⟩ is the mean over τ. With D = (D_λ, D_ν) the fractions of (S41), `fractions`, and S = v_k v_l E[Δ² g'_k g'_l],

    dr/dt = −(η/δ) [d(ρ) D_λ r + b ρ D_ν t]                                                                    (S41)
    dσ/dt = −(η/δ) [d(ρ) D_λ σ + b ρ D_ν rᵀ + transpose] + η² S [(c − b²) ρ + b² ρ²/δ]                         (S46)
    dΩ/dt = −η [D_λ Q + D_ν Rᵀ + transpose] + c η² S                                                           (S43)

In print t of (S41) is one matrix for all ρ, 𝒯 = ⟨ρ t⟩ (S37), and c stands where c − a² belongs. The law of ρ is

    p(ρ) = √((ρ₊ − ρ)(ρ − ρ₋))/(2π δ ρ),    ρ± = (1 ± √δ)²                                                     (S40)

and R = b ∫ p(ρ) r(ρ) dρ (S39), although r(ρ), a sum over the τ in a small interval (S38), has the factor p(ρ) already.

>>> import overlaps as ov
>>> from overlaps.papers.universality.model import problem, start
>>> few = problem("erf")
>>> begin = start(few, size=40, seed=1)
>>> bool(np.allclose(few.data.equivalent.b * rotated(few, begin).r.mean(-1), begin.R.sum(0)))  # (S34)
True
>>> x, y, weights = pair(np.array([[1.0, 0.5], [0.5, 1.0]]))
>>> round(float(weights @ (np.sign(x) * np.sign(y))), 12)  # (2/π) arcsin(1/2)
0.333333333333
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import solve_ivp
from scipy.special import erf

import overlaps as ov

Array = NDArray[np.float64]
TABLES = {
    "erf": (
        (0.090, 0.040, 0.035, 0.093, 0.030, 0.036, 0.036, 0.032, 0.012, 0.014),
        (0.083, 0.044, 0.039, 0.092, 0.028, 0.036, 0.036, 0.032, 0.012, 0.013),
        (0.091, 0.044, 0.037, 0.092, 0.028, 0.036, 0.036, 0.032, 0.013, 0.015),
        (0.086, 0.044, 0.039, 0.095, 0.028, 0.035, 0.037, 0.032, 0.012, 0.014),
        (0.091, 0.041, 0.037, 0.094, 0.028, 0.038, 0.037, 0.033, 0.013, 0.014),
        (0.085, 0.042, 0.037, 0.088, 0.028, 0.037, 0.036, 0.031, 0.013, 0.014),
        (0.083, 0.043, 0.036, 0.096, 0.027, 0.034, 0.036, 0.032, 0.012, 0.014),
        (0.088, 0.044, 0.040, 0.092, 0.027, 0.036, 0.037, 0.032, 0.013, 0.014),
        (0.090, 0.042, 0.037, 0.094, 0.029, 0.036, 0.037, 0.032, 0.012, 0.014),
        (0.083, 0.041, 0.037, 0.089, 0.029, 0.035, 0.036, 0.030, 0.013, 0.015),
    ),
    "relu": (
        (0.037, 0.036, 0.038, 0.041, 0.024, 0.024, 0.026, 0.028, 0.006, 0.006),
        (0.037, 0.035, 0.038, 0.041, 0.024, 0.025, 0.027, 0.027, 0.007, 0.006),
        (0.036, 0.036, 0.038, 0.039, 0.025, 0.025, 0.026, 0.028, 0.006, 0.006),
        (0.035, 0.035, 0.039, 0.040, 0.025, 0.025, 0.027, 0.028, 0.008, 0.006),
        (0.037, 0.036, 0.037, 0.044, 0.025, 0.025, 0.026, 0.031, 0.006, 0.006),
        (0.037, 0.037, 0.037, 0.041, 0.025, 0.026, 0.027, 0.028, 0.006, 0.007),
        (0.035, 0.036, 0.037, 0.042, 0.025, 0.024, 0.027, 0.028, 0.006, 0.006),
        (0.037, 0.035, 0.038, 0.041, 0.025, 0.026, 0.027, 0.028, 0.007, 0.007),
        (0.037, 0.036, 0.038, 0.039, 0.025, 0.024, 0.026, 0.027, 0.006, 0.006),
        (0.036, 0.033, 0.040, 0.038, 0.026, 0.025, 0.026, 0.028, 0.006, 0.006),
    ),
}  # I and II: tLog-RMSE of Q_00, Q_01, Q_10, Q_11, R_00, R_01, R_10, R_11, v_0, v_1 at α = 0 to 9, m = 2, standardised

FAR = 9.0  # standard deviations, beyond which nothing is left of a Gaussian


def table(activation: str) -> dict[str, Array]:
    """Table I (erf) or II (relu): tLog-RMSE at α = 0 to 9 of Q (10, 2, 2), R (10, 2, 2) and v (10, 2)."""
    rows = np.array(TABLES[activation])
    return {"Q": rows[:, :4].reshape(-1, 2, 2), "R": rows[:, 4:8].reshape(-1, 2, 2), "v": rows[:, 8:]}


class Rotated(NamedTuple):
    """Overlaps for each eigenvalue ρ (D,): r (K, M, D), σ (K, K, D), t (M, M, D); and Ω (K, K)."""

    rho: Array
    r: Array
    sigma: Array
    t: Array
    Omega: Array


def rotated(problem: ov.Problem, start: ov.Start) -> Rotated:
    """Overlaps of the weights of a start in the eigenbasis of F Fᵀ/N."""
    W, B = start.student, start.teacher
    assert isinstance(problem.data, ov.HiddenManifold) and W is not None and B is not None
    N = W.shape[1]
    F = problem.data.at(N).F
    rho, psi = np.linalg.eigh(F @ F.T / N)
    G, B = W @ F.T / np.sqrt(N) @ psi, B @ psi
    r, sigma, t = (x[:, None] * y[None] for x, y in ((G, B), (G, G), (B, B)))
    return Rotated(rho, r, sigma, t, W @ W.T / N)


def eq_s37(at: Rotated) -> Array:
    """𝒯 = ⟨ρ t⟩, the same for all ρ, (M, M, 1)."""
    return np.mean(at.rho * at.t, axis=-1, keepdims=True)


def eq_s39(at: Rotated, b: float, ratio: float) -> Array:
    """R = b ∫ p(ρ) r(ρ) dρ with r(ρ) of (S38), (K, M)."""
    return b * np.mean(density(at.rho, ratio) * at.r, axis=-1)


def support(ratio: float) -> tuple[float, float]:
    """ρ₋ and ρ₊ of (S40)."""
    return (1 - np.sqrt(ratio)) ** 2, (1 + np.sqrt(ratio)) ** 2


def density(rho: ArrayLike, ratio: float) -> Array:
    """p(ρ) of (S40) for δ = `ratio`, zero outside its support."""
    rho, (low, high) = np.asarray(rho, dtype=float), support(ratio)
    return np.sqrt(np.maximum((high - rho) * (rho - low), 0.0)) / (2 * np.pi * ratio * rho)


def pair(C: Array, means: tuple[float, float] = (0.0, 0.0), points: int = 48) -> tuple[Array, Array, Array]:
    """Nodes x, y and weights for two Gaussian variables of covariance C (2, 2); functions may jump at zero."""
    nodes, weights = np.polynomial.legendre.leggauss(points)

    def panels(split: Array) -> tuple[Array, Array]:
        """A rule on a line for each place (n,) where the function may jump: nodes and weights (n, 2 points)."""
        edge = np.clip(split, -FAR, FAR)[:, None]
        below, above = (edge + FAR) / 2, (FAR - edge) / 2
        z = np.concatenate([-FAR + below * (1 + nodes), edge + above * (1 + nodes)], axis=1)
        return z, np.concatenate([below * weights, above * weights], axis=1) * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)

    width = np.sqrt(C[0, 0])
    (z,), (outer,) = panels(np.array([-means[0] / width]))
    middle, spread = means[1] + C[0, 1] / width * z, np.sqrt(C[1, 1] - C[0, 1] ** 2 / C[0, 0])
    inner, each = panels(-middle / spread)
    x = np.broadcast_to((means[0] + width * z)[:, None], inner.shape)
    return x.ravel(), (middle[:, None] + spread * inner).ravel(), (outer[:, None] * each).ravel()


UNITS: dict[str, tuple[Callable[[Array], Any], Callable[[Array], Any]]] = {
    "erf": (lambda x: erf(x / np.sqrt(2)), lambda x: np.sqrt(2 / np.pi) * np.exp(-(x**2) / 2)),
    "relu": (lambda x: np.maximum(x, 0.0), lambda x: 1.0 * (x > 0)),
}  # g and g'


def fractions(activation: str, C: Array, v: Array, u: Array) -> Array:
    """What multiplies d(ρ) r_j and b ρ 𝒯_n in (S41), but for −η/δ, (K, K+M), for fields of covariance C (K+M, K+M)."""
    g, slope = UNITS[activation]
    K, w = len(v), np.concatenate([v, -u])
    D = np.zeros((K, len(C)))
    for k in range(K):
        square = C[k, k] * np.eye(2)
        x, _, weights = pair(square)
        D[k, k] += v[k] * w[k] * float(weights @ (slope(x) * x * g(x))) / C[k, k]
        for j in set(range(len(C))) - {k}:
            both = C[np.ix_([k, j], [k, j])]
            x, y, weights = pair(both)
            own, other = (float(weights @ (slope(x) * factor * g(y))) for factor in (x, y))
            D[k, k] += v[k] * w[j] * (C[j, j] * own - C[k, j] * other) / np.linalg.det(both)
            D[k, j] += v[k] * w[j] * (C[k, k] * other - C[k, j] * own) / np.linalg.det(both)
    return D


def solve(theory: ov.Trajectory, *, c: float, t: Array) -> ov.Trajectory:
    """(S41) to (S48) from the start of a solution, at its times: the same with other Q, R, v and error.

    Parameters
    ----------
    c: of f, or c − a².
    t: in (S41), of each ρ (M, M, D) or one for all (M, M, 1).
    """
    problem, start = theory.problem, theory.start
    assert problem is not None and isinstance(problem.data, ov.HiddenManifold) and start.size is not None
    at, b, rate = rotated(problem, start), problem.data.equivalent.b, problem.algorithm.rate
    assert isinstance(rate, float)
    (K, M, D), T, rho = at.r.shape, at.t.mean(-1), at.rho
    ratio = D / start.size
    d, noise = (c - b**2) * ratio + b**2 * rho, (c - b**2) * rho + b**2 * rho**2 / ratio
    shapes = ((K, M, D), (K, K, D), (K, K), (K,))
    edges = np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1]

    def fields(y: Array) -> tuple[Array, Array, Array, Array, Array]:
        """r, σ, v, Q, R."""
        r, sigma, Omega, v = (x.reshape(shape) for x, shape in zip(np.split(y, edges), shapes, strict=True))
        return r, sigma, v, (c - b**2) * Omega + b**2 * sigma.mean(-1), b * r.mean(-1)

    def motion(_: float, y: Array) -> Array:
        r, sigma, v, Q, R = fields(y)
        a = ov.gaussian_averages(problem, np.block([[Q, R], [R.T, T]]), v, start.u)
        students, teachers = a.D[:, :K], a.D[:, K:]
        dr = -rate / ratio * (d * np.tensordot(students, r, 1) + b * rho * np.tensordot(teachers, t, 1))
        pull = d * np.tensordot(students, sigma, 1) + b * rho * np.tensordot(teachers, r.swapaxes(0, 1), 1)
        dsigma = -rate / ratio * (pull + pull.swapaxes(0, 1)) + rate**2 * noise * a.S[..., None]
        drift = students @ Q + teachers @ R.T
        dOmega = -rate * (drift + drift.T) + c * rate**2 * a.S
        return np.concatenate([dr.ravel(), dsigma.ravel(), dOmega.ravel(), -rate * a.dv])

    begin = np.concatenate([at.r.ravel(), at.sigma.ravel(), at.Omega.ravel(), start.v])
    times = theory.time
    path = solve_ivp(motion, (0.0, times[-1]), begin, "DOP853", times, rtol=1e-6, atol=1e-8).y.T
    values: dict[str, list[Any]] = {"Q": [], "R": [], "v": [], "error": []}
    for y in path:
        _, _, v, Q, R = fields(y)
        error = ov.gaussian_averages(problem, np.block([[Q, R], [R.T, T]]), v, start.u).error
        for name, value in zip(values, (Q, R, v, error), strict=True):
            values[name].append(value)
    data = {name: theory.data[name].copy(data=np.array(value)[None]) for name, value in values.items()}
    return replace(theory, data=theory.data.assign(data))


def eq_18(v: ArrayLike, runs: ArrayLike) -> complex:
    """M = (1/T) Σ_t √(v² − v̂²) of a theory v and a run v̂ at T times, (T,) each."""
    squares = np.square(v) - np.square(runs)
    return complex(np.mean(np.emath.sqrt(squares)))


def eq_21(p: Array, f: Array, g: Array) -> float:
    """Σ_kl p_k p_l ⟨f⟩_k ⟨g⟩_l of means given components, (components,) each, which is E f E g."""
    return float(p @ f) * float(p @ g)
