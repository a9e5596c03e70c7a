"""The XOR mixture and a two-layer ReLU network: what small noise leaves of its training, and of its outliers.

Four components of equal weight, ±μ with label 1 and ±ν with label 0, μ and ν orthonormal, of variance s. The network
v·g(w x), g the ReLU, learns by logistic loss with decay β on both layers, both at rate 1 (any other rescales time).
With σ the logistic function, a_i = w_i·μ and b_i = w_i·ν, training without noise is

    dv_i/dt = ¼ Σ_± [g(±a_i) σ(−v·g(±a)) − g(±b_i) σ(v·g(±b))] − β v_i,                               (xor_flow)
    da_i/dt = (v_i/4) Σ_± ± 1(±a_i > 0) σ(−v·g(±a)) − β a_i,
    db_i/dt = −(v_i/4) Σ_± ± 1(±b_i > 0) σ(v·g(±b)) − β b_i,

within an orthant of (a, b). Where v_i > 0, b_i shrinks to zero in finite time, and the field points to zero from both
sides; and while b_i = 0, dv_i/dt ≥ −β v_i, so that v_i > 0 and b_i = 0 for ever. The same holds for v_i < 0 and a_i.
As v_i² − a_i² − b_i² falls as exp(−2βt), v_i keeps its sign if v_i² ≥ a_i² + b_i² at the start.

Units end in four sets, by the signs of v_i and of the overlap that is left, |a_i| = |v_i| or |b_i| = |v_i|. In each set
that is not empty

    Σ_i v_i² = log[(1 − 4β)/(4β)]    for β < 1/8,    0 otherwise.                                      (xor_norm)

With noise, and for small rates, the origin attracts from

    β = (1/8) {erf[(2s)^-½] − (2s/π)^½ [1 − exp(−1/(2s))]},                                      (xor_transition)

the growth rate of a unit along μ or ν without decay, which is larger than in any other direction.

Signs at the start are independent and even, so that each unit picks one of the four sets at random, and with K units
the number j of sets that are not empty has the probability C(4, j) j! S(K, j)/4^K, S the Stirling number of the second
kind (hidden_classes). Noise favours diversity: at s = 0.1 all four are found more often.

Diagonal blocks of the Hessian, to leading order in s, with f_θ = v·g(wθ) and θ over the four means:

    H_vv = ¼ Σ_θ σ'(f_θ) g(wθ) g(wθ)ᵀ,                                                       (xor_readout_block)
    H_ii = (v_i²/4) Σ_θ σ'(f_θ) Φ(w_i·θ (s Q_ii)^-½) θ θᵀ,                                         (xor_outliers)

Φ the normal distribution function; in those of the G-matrix (the mean square of the gradient) (y_θ − σ(f_θ))² takes the
place of σ'. Corrections are of order s^½: a factor of two at s = 0.1, 10 % at s = 0.01.

Reference: Ben Arous, Gheissari, Huang and Jagannath, arXiv:2310.03010, Propositions 5.15 and 5.18, Lemmas 4.4 and 4.5,
with 1/s for their λ. The printed db/dt has the wrong sign in σ, logit(−4β) stands for logit(1 − 4β), and (7.11) lacks
σ'.

>>> import overlaps as ov
>>> round(ov.laws.xor_norm(0.05), 4), round(ov.laws.xor_transition(variance=0.1), 4)
(1.3863, 0.0935)
>>> v, a, b = ov.laws.xor_flow([1.0, -0.5], [0.2, 0.1], [0.1, -0.3], decay=0.05, times=[10, 500])
>>> v[-1].round(4).tolist(), a[-1].round(4).tolist(), b[-1].round(4).tolist()
([1.1774, -1.1774], [1.1774, 0.0], [0.0, -1.1774])
>>> ov.laws.hidden_classes(4).round(4).tolist()
[0.0156, 0.3281, 0.5625, 0.0938]
"""

from __future__ import annotations

from math import erf, expm1, log, pi, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import solve_ivp
from scipy.special import expit, ndtr

from ..interface.checks import array, checked, grid, number, whole
from ..interface.errors import InputError, NumericalError, unknown

Array = NDArray[np.float64]
LARGEST = 100.0  # entries of a state: training leads to entries around one, and larger ones make the flow stiff
LABELS = np.array([1.0, 1.0, 0.0, 0.0])  # of μ, −μ, ν, −ν


@checked
def xor_norm(decay: float) -> float:
    """Σ v_i² over the units of a set that is not empty, after long training without noise; zero from decay 1/8 on."""
    decay = number("decay", decay, above=0)
    return log((1 - 4 * decay) / (4 * decay)) if decay < 0.125 else 0.0


@checked
def xor_transition(variance: float = 0.0) -> float:
    """Decay from which on units of small length shrink instead of growing, for small rates.

    The noise of SGD makes units longer without aligning them, which lowers it: at rate 1 and variance 0.1 by 1e-5.
    """
    s = number("variance", variance, least=0)
    if s == 0:
        return 0.125
    return (erf(1 / sqrt(2 * s)) + sqrt(2 * s / pi) * expm1(-1 / (2 * s))) / 8


@checked
def xor_flow(
    v: ArrayLike, m_mu: ArrayLike, m_nu: ArrayLike, decay: float, times: ArrayLike
) -> tuple[Array, Array, Array]:
    """Readout v and overlaps w·μ, w·ν during training without noise, each (times, K); relative error about 1e-9.

    Parameters
    ----------
    v, m_mu, m_nu: readout and overlaps at time 0, each (K,). An overlap of exactly zero stays zero, for such a unit
        prefers no side; runs of finite size start with overlaps of order N^-½.
    decay: β ≥ 0 of both layers.
    times: increasing, in units of steps/N at rate 1; at another rate, time × rate.
    """
    units, t, decay = _units(v, m_mu, m_nu), grid(times), number("decay", decay, least=0)
    if decay * t[-1] > 1e4:
        raise InputError(
            f"times: by time {t[-1]:g} with decay {decay:g} the flow is long at rest; use times up to {1e4 / decay:g}"
        )
    K, signs = units.shape[1], np.sign(units[1:])
    lengths = np.sqrt(np.sum(units**2, axis=0))
    alive = np.where(lengths > 0, lengths, 1.0)
    # motion is linear in each unit: directions and log lengths keep their digits while units shrink or grow
    state, now = np.concatenate([units / alive, np.log(alive)[None]]).ravel(), 0.0
    path = np.repeat(state[None], t.size, axis=0)
    while now < t[-1]:

        def motion(_: float, y: Array, signs: Array = signs) -> Array:
            return _motion(y.reshape(4, K), signs, decay).ravel()

        def height(_: float, y: Array, signs: Array = signs) -> float:
            return float((signs * y.reshape(4, K)[1:3])[signs != 0].min(initial=1.0))

        height.terminal, height.direction = True, -1  # pyright: ignore[reportFunctionMemberAccess]
        done = solve_ivp(
            motion, (now, t[-1]), state, "DOP853", t_eval=t[t >= now], events=height, rtol=1e-11, atol=1e-13
        )
        reached = np.reshape(done.y, (4 * K, -1)).T  # empty where the first overlap lands before the next time
        if not (done.success and np.isfinite(reached).all()):
            raise NumericalError(f"xor_flow: integration failed ({done.message})", quantity="v", time=now)
        path[np.searchsorted(t, now) + np.arange(len(reached))] = reached
        if done.status == 0:
            break
        now, state = float(done.t_events[0][0]), np.array(done.y_events[0][0])
        overlaps = state.reshape(4, K)[1:3]
        signs = _landed(overlaps, signs)
        overlaps[signs == 0] = 0.0
    path = path.reshape(t.size, 4, K)
    v_path, mu_path, nu_path = (path[:, :3] * np.exp(path[:, 3:])).transpose(1, 0, 2)
    return v_path, mu_path, nu_path


@checked
def hidden_classes(units: int, classes: int = 4) -> Array:
    """Probabilities that exactly 1, 2, …, `classes` of the classes are found by `units` units, (classes,).

    Each unit picks a class at random, as units of the XOR mixture do for decay below 1/8, a start with independent even
    signs and v_i² ≥ (w_i·μ)² + (w_i·ν)², and noise that is small at the start, s ≪ 1/N: there overlaps with the means
    are of order 1/√N only, and larger noise lets units change their choice, in favour of classes not found yet.
    """
    units, classes = whole("units", units, least=1, most=10**9), whole("classes", classes, least=1, most=1000)
    found = np.arange(1, classes + 1)
    # one more unit finds a class that was found before, or a new one; all terms are positive
    more = np.diag(found / classes) + np.diag((classes - found[:-1]) / classes, k=1)
    return np.linalg.matrix_power(more, units - 1)[0]


@checked
def xor_readout_block(v: ArrayLike, m_mu: ArrayLike, m_nu: ArrayLike, *, kind: str = "hessian") -> Array:
    """The block of the readout for small noise, (K, K), of rank four at most; after training, the sets not empty.

    Parameters
    ----------
    v, m_mu, m_nu: readout and overlaps w·μ, w·ν, each (K,).
    kind: "hessian", or "gradient" for the G-matrix.
    """
    units = _units(v, m_mu, m_nu)
    fields, factors = _at_means(units, kind)
    active = np.maximum(fields, 0.0)
    return 0.25 * (active.T * factors) @ active


@checked
def xor_outliers(
    v: ArrayLike, m_mu: ArrayLike, m_nu: ArrayLike, Q: ArrayLike, variance: float, *, kind: str = "hessian"
) -> Array:
    """The two eigenvalues that small noise leaves in the block of each unit's weights, along μ and ν, (K, 2).

    Parameters
    ----------
    v, m_mu, m_nu: readout and overlaps w·μ, w·ν, each (K,).
    Q: overlaps of the units, (K, K), of which the squared lengths on the diagonal enter.
    variance: s of the inputs; at zero Φ is a step, ½ for an overlap of exactly zero.
    kind: "hessian", or "gradient" for the G-matrix.
    """
    units, s = _units(v, m_mu, m_nu), number("variance", variance, least=0)
    K = units.shape[1]
    squares = np.diag(array("Q", Q, (K, K)))
    least = np.sum(units[1:] ** 2, axis=0)
    for i in range(K):
        if not squares[i] > 0 or squares[i] < (1 - 1e-9) * least[i]:
            raise InputError(
                f"Q: expected squared lengths above zero and of at least (w·μ)² + (w·ν)² = {least[i]:.6g} on the "
                f"diagonal, got Q[{i}, {i}] = {squares[i]:.6g}"
            )
    fields, factors = _at_means(units, kind)
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = np.where(fields == 0, 0.0, fields / np.sqrt(s * squares))
    terms = 0.25 * units[0] ** 2 * factors[:, None] * ndtr(reach)
    return np.stack([terms[0] + terms[1], terms[2] + terms[3]], axis=1)


@checked
def xor_initial_outlier(units: int, variance: float) -> float:
    """Top eigenvalue of the readout's block at the start, of the Hessian and of the G-matrix, to leading order in s.

    (s/4) [½ + (K − 1)/(2π)] for K orthogonal weight vectors of length one that do not yet see the means; the other
    eigenvalues are (s/4) [½ − 1/(2π)]. Corrections are of relative order s^½ |v|.
    """
    units, s = whole("units", units, least=1), number("variance", variance, above=0)
    return s / 4 * (0.5 + (units - 1) / (2 * pi))


def _units(v: ArrayLike, m_mu: ArrayLike, m_nu: ArrayLike) -> Array:
    """v, w·μ and w·ν, (3, K)."""
    v = array("v", v, (None,))
    if v.size == 0:
        raise InputError("v: expected at least one unit, got none")
    units = np.array([v, array("m_mu", m_mu, v.shape), array("m_nu", m_nu, v.shape)])
    if np.abs(units).max() > LARGEST:
        raise InputError(
            f"v, m_mu, m_nu: expected entries of at most {LARGEST:g}, got {np.abs(units).max():g}; use smaller ones"
        )
    return units


def _motion(y: Array, signs: Array, decay: float) -> Array:
    """dy/dt of directions (v, w·μ, w·ν)/length and log lengths, (4, K).

    In the orthant of these signs (2, K) of w·μ and w·ν; zero stands for an overlap that rests at zero.
    """
    v, overlaps = y[0], y[1:3]
    squares = np.exp(2 * np.minimum(y[3], 300.0))  # steps that the solver tries and rejects may go far
    push = np.zeros_like(overlaps)
    for side in (1.0, -1.0):
        on = signs == side
        output = side * np.sum(squares * v * overlaps * on, axis=1)
        # label minus output of the network at side × μ and side × ν, times the weight of this component
        push += 0.25 * side * on * np.array([[expit(-output[0])], [-expit(output[1])]])
    change = np.concatenate([np.sum(push * overlaps, axis=0)[None], v * push])
    growth = np.sum(y[:3] * change, axis=0)
    return np.concatenate([change - growth * y[:3], (growth - decay)[None]])


def _landed(overlaps: Array, signs: Array) -> Array:
    """Signs (2, K) after the lowest of the overlaps (2, K) has come to zero, where it stays."""
    heights = np.where(signs == 0, 1.0, signs * overlaps)
    # rounding leaves the lowest on either side of zero, and may have put those that meet it there just beyond
    return np.where(heights <= max(heights.min(), 0.0), 0.0, signs)


def _at_means(units: Array, kind: str) -> tuple[Array, Array]:
    """Fields of the units at μ, −μ, ν, −ν, (4, K), and σ' or the squared error of the network there, (4,)."""
    fields = np.array([units[1], -units[1], units[2], -units[2]])
    outputs = np.maximum(fields, 0.0) @ units[0]
    factors = {"hessian": expit(outputs) * expit(-outputs), "gradient": expit((1 - 2 * LABELS) * outputs) ** 2}
    if kind not in factors:
        raise unknown("kind", kind, factors)
    return fields, factors[kind]
