"""Formulas of the paper as printed, and Lemmas 3.1 to 3.3 as they follow: what the claims compare.

Lemmas 3.1 to 3.3, population Hessian and G-matrix of softmax regression.

Gaussian integration by parts turns E[f(Y) Y Yᵀ], Y = μ_y + N(0, I/λ), into averages over probabilities π(a) and the
moments of x^B, B drawn from π: ⟨x⟩ = Σ_a π(a) x^a and ⟨x;x⟩ = Σ_a π(a) x^a x^aᵀ − ⟨x⟩⟨x⟩ᵀ. With v^⊗2 = v vᵀ,

    H_bc = −E{π(b)π(c) [(μ_y + (x^b + x^c − 2⟨x⟩)/λ)^⊗2 + I/λ − 2⟨x;x⟩/λ²]},   b ≠ c                        `lemma31`
    H_aa = E{π(a) [(μ_y + (x^a − ⟨x⟩)/λ)^⊗2 − ⟨x;x⟩/λ²]} − E{π(a)² [(μ_y + 2(x^a − ⟨x⟩)/λ)^⊗2 − 2⟨x;x⟩/λ²]}
           + E[π(a)(1 − π(a))] I/λ                                                                             `lemma32`
    G_bc = A + B/λ + C/λ²                                                                                      `lemma33`
    A = 1{b=c} p_b μ_b^⊗2 − p_c E_c{π(b) [μ_c + (x^b − ⟨x⟩)/λ]^⊗2} − p_b E_b{π(c) [μ_b + (x^c − ⟨x⟩)/λ]^⊗2}
        + E{π(b)π(c) [μ_y + (x^b + x^c − 2⟨x⟩)/λ]^⊗2}
    B = (1{b=c} p_b − p_b E_b π(c) − p_c E_c π(b) + E[π(b)π(c)]) I
    C = p_c E_c[π(b)⟨x;x⟩] + p_b E_b[π(c)⟨x;x⟩] − 2 E[π(b)π(c)⟨x;x⟩]

Printed otherwise: Lemma 3.1 has no minus in front (`printed31`); Lemma 3.3 has μ_l − (x^b + x^c − 2⟨x⟩)/λ in the last
square of A and a minus before the first two terms of C (`printed33`). In Lemma 3.2 as printed the square leaves out μ,
so that a vector is added to a matrix: it cannot be evaluated.

Equations of motion of softmax regression, Q_a^c(b) = E_c[⟨Z, x^b⊥⟩ π(a)] = Σ_e J_c(a, e) R⊥_eb/λ with J_c(a, e) =
E_c[1{a=e} π(a) − π(a)π(e)], orthonormal means:

    dm_ab/dt = p_a 1{a=b} − β m_ab − p_b E_b π(a) − Σ_c p_c (J_c m)_ab/λ                                        (5.5)
    dR⊥_ab/dt = −β R⊥_ab + Σ_c [p_a Q_a^c(b) + p_b Q_b^c(a)] − Σ_c c_δ p_c Var_c[π(a)π(b)]/λ² + 1{a=b} c_δ p_a/λ  (5.6)
    dR⊥_ab/dt = −β R⊥_ab,    λ → ∞                                                                             (5.18)

(5.5) follows, the others do not: the decay is 2β, Q enters with a minus and p_c, and the noise is c_δ/λ times the mean
product of the residuals. Energy of Lemma 5.13, `energy`, of which (5.17) and (5.18) are said to be the gradient flow:

    −Σ_a p_a m_aa + Σ_a p_a log Σ_b exp(m_ab) + (β/2) (|m|² + |R⊥|²).

XOR mixture: Σ v_i² = logit(−4β) in each set of units (`fixed_point`), and (7.11), block W_i W_i of the Hessian, without
the slope of the logistic function (`eq711`), v_i²/4 Σ_θ F(m_i^θ (λ/R_ii)^½) θ θᵀ.

>>> import numpy as np
>>> nodes = Nodes(np.array([0.5, 0.5]), np.array([0, 1]), np.full((2, 2), 0.5))
>>> origin, means = np.zeros((2, 3)), np.eye(2, 3)
>>> np.diag(lemma31(nodes, origin, means, 4.0, 0, 1)).round(4).tolist()  # −(1/4) (Σ_l μ_l μ_lᵀ/2 + I/4)
[-0.1875, -0.1875, -0.0625]
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from scipy.special import expit, logsumexp, ndtr, softmax

Array = NDArray[np.float64]


class Nodes(NamedTuple):
    """Samples or nodes of a quadrature of (y, Y): weights that sum to one (n,), classes y (n,), π (n, k)."""

    weights: Array
    classes: NDArray[np.int64]
    pi: Array


def nodes(m: Array, Q: Array, weights: Array, lam: float, points: int = 10) -> Nodes:
    """A tensor rule of `points` for each logit: those of class c are m_·c + N(0, Q/λ)."""
    z, w = np.polynomial.hermite_e.hermegauss(points)
    k = len(m)
    squares, axes = np.linalg.eigh(Q / lam)
    grid = np.stack(np.meshgrid(*[z] * k, indexing="ij"), axis=-1).reshape(-1, k)
    each: Array = np.stack(np.meshgrid(*[w / w.sum()] * k, indexing="ij"), axis=-1).reshape(-1, k).prod(1)
    noise = grid @ (axes * np.sqrt(np.maximum(squares, 0.0))).T
    pi = np.concatenate([np.asarray(softmax(m[:, c] + noise, axis=1)) for c in range(k)])
    return Nodes(np.outer(weights, each).ravel(), np.repeat(np.arange(k), len(each)), pi)


def lemma31(nodes: Nodes, x: Array, means: Array, lam: float, b: int, c: int) -> Array:
    """Block (b, c) of the Hessian, b ≠ c, (d, d), for classifiers x (k, d) and means (k, d)."""
    return -printed31(nodes, x, means, lam, b, c)


def printed31(nodes: Nodes, x: Array, means: Array, lam: float, b: int, c: int) -> Array:
    """Lemma 3.1 as printed, without its minus; its index a read as b."""
    f = nodes.pi[:, b] * nodes.pi[:, c]
    squares, covariance = _square(nodes, f, x, means, x[b] + x[c], 2.0, lam), _covariance(nodes, f, x)
    return squares + float(nodes.weights @ f) * np.eye(x.shape[1]) / lam - 2 * covariance / lam**2


def lemma32(nodes: Nodes, x: Array, means: Array, lam: float, a: int) -> Array:
    """Block (a, a) of the Hessian, (d, d)."""
    f = nodes.pi[:, a]
    first = _square(nodes, f, x, means, x[a], 1.0, lam) - _covariance(nodes, f, x) / lam**2
    second = _square(nodes, f**2, x, means, 2 * x[a], 2.0, lam) - 2 * _covariance(nodes, f**2, x) / lam**2
    return first - second + float(nodes.weights @ (f * (1 - f))) * np.eye(x.shape[1]) / lam


def lemma33(nodes: Nodes, x: Array, means: Array, lam: float, b: int, c: int) -> Array:
    """Block (b, c) of the G-matrix, (d, d)."""
    return _lemma33(nodes, x, means, lam, b, c, 1.0)


def printed33(nodes: Nodes, x: Array, means: Array, lam: float, b: int, c: int) -> Array:
    """Lemma 3.3 with the signs as printed."""
    return _lemma33(nodes, x, means, lam, b, c, -1.0)


def _lemma33(nodes: Nodes, x: Array, means: Array, lam: float, b: int, c: int, sign: float) -> Array:
    pi = nodes.pi
    in_b, in_c = 1.0 * (nodes.classes == b), 1.0 * (nodes.classes == c)
    both, one, other = pi[:, b] * pi[:, c], in_c * pi[:, b], in_b * pi[:, c]
    same = float(nodes.weights @ in_b) if b == c else 0.0
    A = same * np.outer(means[b], means[b]) + _square(nodes, both, x, means, x[b] + x[c], 2.0, sign * lam)
    A -= _square(nodes, one, x, means, x[b], 1.0, lam) + _square(nodes, other, x, means, x[c], 1.0, lam)
    B = (same + float(nodes.weights @ (both - one - other))) * np.eye(x.shape[1])
    C = sign * (_covariance(nodes, one, x) + _covariance(nodes, other, x)) - 2 * _covariance(nodes, both, x)
    return A + B / lam + C / lam**2


def _square(nodes: Nodes, f: Array, x: Array, means: Array, shift: Array, times: float, lam: float) -> Array:
    """E{f [μ_y + (shift − times ⟨x⟩)/λ]^⊗2}, (d, d)."""
    v = means[nodes.classes] + (shift - times * nodes.pi @ x) / lam
    return (v * (nodes.weights * f)[:, None]).T @ v


def _covariance(nodes: Nodes, f: Array, x: Array) -> Array:
    """E[f ⟨x;x⟩], (d, d)."""
    weighted = (nodes.weights * f)[:, None] * nodes.pi
    return x.T @ (np.diag(weighted.sum(0)) - weighted.T @ nodes.pi) @ x


def eq56(weights: Array, decay: float, lam: float, times: list[float]) -> tuple[Array, Array]:
    """m and R⊥, each (times, k, k), of (5.5) and (5.6), orthonormal means, c_δ = 1, from m = 0 and R⊥ = 1."""
    k = len(weights)

    def motion(_: float, y: Array) -> Array:
        m, R = y.reshape(2, k, k)
        at = nodes(m, m @ m.T + R, weights, lam, points=8)
        of_class = at.weights[:, None] * (at.classes[:, None] == np.arange(k)) / weights
        P, product = of_class.T @ at.pi, at.pi[:, :, None] * at.pi[:, None, :]
        S, fourth = (np.tensordot(of_class, x, (0, 0)) for x in (product, product**2))
        J = np.eye(k) * P[:, None, :] - S
        Q = weights[:, None] * (J.sum(0) @ R) / lam
        noise = np.tensordot(weights, fourth - S**2, 1) / lam**2
        dm = np.diag(weights) - decay * m - P.T * weights - np.tensordot(weights, J, 1) @ m / lam
        return np.array([dm, -decay * R + Q + Q.T - noise + np.diag(weights) / lam]).ravel()

    begin = np.array([np.zeros((k, k)), np.eye(k)]).ravel()
    path = solve_ivp(motion, (0.0, times[-1]), begin, t_eval=times, rtol=1e-6, atol=1e-8).y
    m, R = path.T.reshape(-1, 2, k, k).swapaxes(0, 1)
    return m, R


def eq510(m: Array, Q: Array, weights: Array, decay: float) -> float:
    """Mean of (5.10), with Gaussian parts of the logits of covariance R, here Q."""
    at = nodes(m, Q, weights, 1.0, points=12)
    return float(-at.weights @ np.log(at.pi[np.arange(len(at.pi)), at.classes])) + 0.5 * decay * float(np.trace(Q))


def eq514(m: Array, Q: Array, weights: Array, lam: float) -> Array:
    """(5.14) along a direction that is orthogonal to all means and classifiers, (k, k): E[π(c)π(d)]/λ less p_c/λ."""
    at = nodes(m, Q, weights, lam, points=12)
    return ((at.pi * at.weights[:, None]).T @ at.pi - np.diag(weights)) / lam


def eq518(R: Array, decay: float, time: float) -> Array:
    """R⊥ after `time` by (5.18)."""
    return R * np.exp(-decay * time)


def energy(m: Array, R: Array, weights: Array, decay: float) -> float:
    """The energy of Lemma 5.13, R for R⊥."""
    return float(
        weights @ (np.asarray(logsumexp(m, axis=1)) - np.diag(m)) + 0.5 * decay * (np.sum(m**2) + np.sum(R**2))
    )


def fixed_point(decay: float) -> complex:
    """logit(−4β) = log[−4β/(1 + 4β)], not a real number for β > 0."""
    return complex(np.log(complex(-4 * decay / (1 + 4 * decay))))


def eq711(v: Array, m_mu: Array, m_nu: Array, Q: Array, variance: float) -> Array:
    """Eigenvalues along μ and ν of every block W_i W_i by (7.11), (K, 2)."""
    reach = np.stack([m_mu, m_nu], axis=1) / np.sqrt(variance * np.diag(Q))[:, None]
    return 0.25 * v[:, None] ** 2 * (ndtr(reach) + ndtr(-reach))


def proposition518(v: Array, mu: Array, nu: Array, decay: float, sign: float) -> dict[str, Array]:
    """Velocities of v and of m along μ and ν without noise; sign: −1 as printed in that of ν, 1 corrected."""

    def outputs(m: Array, side: float) -> tuple[Array, Array, float, float]:
        """g(m), g(−m), σ(side v·g(m)) and σ(side v·g(−m))."""
        up, down = np.maximum(m, 0.0), np.maximum(-m, 0.0)
        return up, down, float(expit(side * v @ up)), float(expit(side * v @ down))

    up, down, first, second = outputs(mu, -1.0)
    right, left, third, fourth = outputs(nu, 1.0)
    _, _, fifth, sixth = outputs(nu, sign)
    return {
        "v": (up * first + down * second - right * third - left * fourth) / 4 - decay * v,
        "mu": v / 4 * ((mu > 0) * first - (mu < 0) * second) - decay * mu,
        "nu": -v / 4 * ((nu > 0) * fifth - (nu < 0) * sixth) - decay * nu,
    }
