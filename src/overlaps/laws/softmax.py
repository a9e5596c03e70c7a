"""Softmax classification of a Gaussian mixture without noise: the energy, its one minimum, and its outliers.

k students learn k classes of means μ_c and weights p_c by cross entropy with decay β. As the variance goes to zero
their fields on class c are m_ac = w_a·μ_c, and training is the gradient flow of

    E = Σ_c p_c [log Σ_a exp(m_ac) − m_cc] + (β/2) Tr Q,                                           (softmax_energy)

Q_ab = w_a·w_b. With G_ab = μ_a·μ_b and Q_⊥ = Q − m G⁻¹ mᵀ, at rate 1,

    dm/dt = B G − β m,    dQ_⊥/dt = −2β Q_⊥,    B_ac = p_c (δ_ac − π_c(a)),    π_c(a) = exp(m_ac)/Σ_b exp(m_bc).

E is strongly convex in w for β > 0, so the flow has one fixed point, with w_a = Σ_c B_ac μ_c/β in the span of means:

    m = B G/β,    Q = B G Bᵀ/β².                                                              (softmax_fixed_point)

Orthonormal means decouple: m_ab = −m_bb/(k − 1) and m_bb = (p_b/β) (1 − π_b(b)). There the error of leaving out a
variance s is of order s/β: not small for β = 0.01 and s = 0.1, where macro is to be solved.

Blocks of the Hessian of the cross entropy and of the G-matrix (the mean square of its gradient) that belong to student
a are, to leading order in the variance,

    H_aa = Σ_c p_c π_c(a) (1 − π_c(a)) μ_c μ_cᵀ,    G_aa = Σ_c p_c (δ_ac − π_c(a))² μ_c μ_cᵀ.     (softmax_outliers)

For orthonormal means of equal weight and k ≥ 3 the largest outlier of block a belongs to μ_a and stands alone at the
fixed point, the others are equal; for k = 2 both are equal.

Reference: Ben Arous, Gheissari, Huang and Jagannath, arXiv:2310.03010, Proposition 5.10, Lemma 5.13, Theorem 2.5, with
1/s for their λ. The printed decay of Q_⊥ lacks a factor of two, the printed energy sums the exponentials of a row of m
and has the square of Q_⊥ for its trace, and Theorem 2.5 needs k ≥ 3.

>>> import numpy as np
>>> import overlaps as ov
>>> m = ov.laws.softmax_fixed_point(np.eye(3), [1 / 3, 1 / 3, 1 / 3], decay=0.01)
>>> m.round(4).tolist()
[[2.2217, -1.1108, -1.1108], [-1.1108, 2.2217, -1.1108], [-1.1108, -1.1108, 2.2217]]
>>> ov.laws.softmax_outliers(np.eye(3), [1 / 3, 1 / 3, 1 / 3], m)[0].round(5).tolist()
[0.02074, 0.01074, 0.01074]
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.linalg import LinearOperator, cg
from scipy.special import logsumexp, softmax

from ..data import GaussianMixture
from ..interface.checks import array, checked, number
from ..interface.errors import InputError, NumericalError, unknown

Array = NDArray[np.float64]
TOLERANCE, STEPS = 1e-10, 200  # relative error of the minimum; Newton steps, of which log(1/decay) are needed
STRONGEST = 5e10  # squared length of the means over decay, beyond which rounding is larger than TOLERANCE


@checked
def softmax_energy(m: ArrayLike, Q: ArrayLike, weights: ArrayLike, decay: float) -> float:
    """E, the mean cross entropy at the means plus the decay's part, whose gradient flow is training without noise.

    Parameters
    ----------
    m: overlaps of students and means, (k, k); row: student, column: mean.
    Q: overlaps of students, (k, k), their part outside the span of the means included; only its trace enters.
    weights: probabilities of the classes, (k,).
    decay: β ≥ 0.
    """
    m = array("m", m, (None, None))
    k, decay = len(m), number("decay", decay, least=0)
    m, Q = array("m", m, (k, k)), array("Q", Q, (k, k))
    if np.diag(Q).min(initial=0.0) < 0:
        raise InputError(f"Q: expected squared lengths on the diagonal, got {np.diag(Q).min():g}")
    _, p = _classes(np.eye(k), weights)
    return float(p @ (np.asarray(logsumexp(m, axis=0)) - np.diag(m)) + 0.5 * decay * np.trace(Q))


@checked
def softmax_fixed_point(gram: ArrayLike, weights: ArrayLike, decay: float) -> Array:
    """m (k, k), students × means, where training without noise comes to rest, from any start; relative error 1e-10.

    Parameters
    ----------
    gram: inner products μ_a·μ_b of the means, (k, k). They may be linearly dependent: the rows of m are then in the
        range of `gram`, as those of any student are.
    weights: probabilities of the classes, (k,).
    decay: β > 0; without decay students grow for ever.
    """
    gram, p = _classes(gram, weights)
    decay = number("decay", decay, above=0)
    squares, axes = np.linalg.eigh(gram)
    if squares[-1] > STRONGEST * decay:
        raise InputError(
            f"decay: expected at least {squares[-1] / STRONGEST:.1e} for means of this length, got {decay:g}; students "
            "grow as log(1/decay), and without end where there is none"
        )
    span = squares > 1e-14 * squares[-1]
    # coordinates of the means in their span, in units in which the decay is one: only gram/decay matters
    means = axes[:, span] * np.sqrt(squares[span] / decay)
    return _minimum(means, p) @ means.T


@checked
def softmax_outliers(gram: ArrayLike, weights: ArrayLike, m: ArrayLike, *, kind: str = "hessian") -> Array:
    """Eigenvalues that small noise leaves in the block of each student, falling, (k students, k).

    Parameters
    ----------
    gram, weights: as in `softmax_fixed_point`.
    m: overlaps of students and means at which to take them, (k, k); the fixed point, for instance.
    kind: "hessian", or "gradient" for the G-matrix.
    """
    gram, p = _classes(gram, weights)
    pi, others = _shares(array("m", m, gram.shape))
    own = np.eye(len(gram), dtype=bool)
    factors = {"hessian": pi * others, "gradient": np.where(own, others, pi) ** 2}
    if kind not in factors:
        raise unknown("kind", kind, factors)
    # Σ_c f_c μ_c μ_cᵀ has the eigenvalues of √f_a μ_a·μ_b √f_b, zeros aside
    root = np.sqrt(p * factors[kind])
    return np.maximum(np.linalg.eigvalsh(root[:, :, None] * gram * root[:, None, :]), 0.0)[:, ::-1]


def _classes(gram: ArrayLike, weights: ArrayLike) -> tuple[Array, Array]:
    """Inner products and weights, checked as those of a mixture."""
    gram = array("gram", gram, (None, None))
    if len(gram) < 2:
        raise InputError(f"gram: expected at least two classes, got {len(gram)}; a softmax of one is always right")
    mixture = GaussianMixture(gram=gram, weights=array("weights", weights, (len(gram),)))
    return gram, mixture.components.weights


def _shares(m: Array) -> tuple[Array, Array]:
    """π_c(a) and 1 − π_c(a), both (students, classes)."""
    pi = np.asarray(softmax(m, axis=0))
    # a sum of the other shares keeps its digits where π is nearly one
    return pi, (1 - np.eye(len(m))) @ pi


def _minimum(means: Array, p: Array) -> Array:
    """Students (k, rank) that minimise E at decay 1, in the coordinates of `means` (k, rank).

    Newton steps, each shortened until the gradient falls: for a convex E this leads to the minimum from anywhere.
    """
    own, w = np.eye(len(means)), np.zeros(means.shape)

    def gradient(w: Array) -> tuple[Array, Array]:
        pi, others = _shares(w @ means.T)
        slope = w - (p * (own * others - (1 - own) * pi)) @ means
        return slope - slope.mean(axis=0), pi  # shares sum to one: students sum to zero, which rounding would spoil

    slope, pi = gradient(w)
    for _ in range(STEPS):

        def curvature(direction: Array, pi: Array = pi) -> Array:
            V = direction.reshape(means.shape)
            fields = pi * (V @ means.T)
            return (V + (p * (fields - pi * fields.sum(axis=0))) @ means).ravel()

        product = LinearOperator((w.size, w.size), matvec=curvature, dtype=float)  # pyright: ignore[reportCallIssue]
        step = cg(product, -slope.ravel(), rtol=1e-3)[0].reshape(w.shape)
        # curvatures change by a factor of at most exp(2 change of fields), so that so small a step ends at the minimum
        if np.abs(step @ means.T).max() <= TOLERANCE * np.abs(w @ means.T).max():
            return w + step
        size, length = np.linalg.norm(slope), 1.0
        ahead, pi = gradient(w + step)
        while np.linalg.norm(ahead) > (1 - 0.1 * length) * size and length > 1e-9:
            length /= 2
            ahead, pi = gradient(w + length * step)
        w, slope = w + length * step, ahead
    raise NumericalError(
        f"softmax_fixed_point: no rest after {STEPS} Newton steps; use a larger decay", quantity="m", time=0.0
    )
