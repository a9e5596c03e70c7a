"""Learning curves of a linear student and teacher, at any rate and any size.

One vector W learns one vector B. With e_b the part of E|W − B|²/N in level b, the limit N → ∞ is linear,

    de_b/dt = −2 η ω_b e_b + 2 η² φ_b ω_b ε,        ε = ½ Σ_b ω_b e_b,

a diagonal matrix plus one of rank one once e_b is measured in √φ_b. Its modes decay as exp(−2 η x_j t) with

    (η/2) Σ_b φ_b ω_b²/(ω_b − x_j) = 1                      (secular equation)

so that all x_j > 0, and the student is stable, if and only if η Σ φ_b ω_b < 2. From e_b(0) = c φ_b every mode enters
the error with a positive amplitude and no digit cancels. Levels that are not trained keep their e_b, act on the others
as noise of the labels, and leave the floor ε_∞ = ½ c Σ_frozen φ ω / (1 − (η/2) Σ_trained φ ω).

At finite size N (Gaussian inputs, every level included, also levels of one dimension) one step is exactly

    S_b ← (1 − 2 η p_b + 2 η² p_b²) S_b + η² n_b p_b Σ p S,        p_b = ω_b/N,  ε = ½ Σ p S,

S_b the sum of E(W − B)² over the n_b dimensions of level b. It is stable if and only if η p < 1 and
Σ_b n_b η p_b / (1 − η p_b) < 2, which for n_b = 1 is well below η = 2: the largest eigenvalue alone holds a finite part
of the variance.

Reference: Worschech and Rosenow, arXiv:2410.09005, eqs. (5)-(8), (45); the printed (6) does not follow from them.

>>> import overlaps as ov
>>> spectrum = ov.PowerLaw(levels=10, exponent=1.0)
>>> ov.laws.linear_error(spectrum, rate=1.0, times=[0.0, 0.5, 50.0], distance=2.0).round(8).tolist()
[1.0, 0.32613857, 3.465e-05]
>>> round(ov.laws.critical_rate(ov.PowerLaw(levels=128, exponent=1.0), size=128), 4)
1.0013
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq

from ..algorithms import OnlineSGD
from ..data import GaussianInputs
from ..interface.checks import checked, grid, number, steps
from ..interface.errors import InputError, shown
from ..online.recording import Stops
from ..online.second_moments import Linear, distances, second_moments
from ..problem.start import LARGEST_SCALE
from ..problem.statement import Problem
from .contour import at_times
from .levels import HUGE, AnySpectrum, levels, merged
from .secular import roots, smallest_root

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Modes:
    """A learning curve as a sum of exponentials: error(t) = floor + Σ_j amplitudes_j exp(−rates_j t).

    Attributes
    ----------
    rates: decay rates 2 η x_j > 0, rising, (modes,).
    amplitudes: (modes,).
    floor: what is left after long training.
    """

    rates: Array
    amplitudes: Array
    floor: float

    def __call__(self, times: ArrayLike) -> Array:
        """error at `times`, (times,)."""
        t = grid(times)
        error = np.full(t.size, self.floor)
        for first in range(0, t.size, 16):  # 16 × modes numbers at a time
            part = slice(first, first + 16)
            error[part] += np.exp(-t[part, None] * self.rates) @ self.amplitudes
        return error

    def __repr__(self) -> str:
        n, floor = self.rates.size, f", floor {self.floor:.4g}" if self.floor else ""
        if n == 0:
            return f"Modes(none{floor})"
        return f"Modes({n} decay rates {self.rates.min():.4g} to {self.rates.max():.4g}{floor})"


@checked
def linear_modes(spectrum: AnySpectrum, rate: float, *, distance: float = 1.0, trained: int | None = None) -> Modes:
    """The modes of a linear student's learning curve for N → ∞.

    Parameters
    ----------
    spectrum: of the input covariance, mean eigenvalue one in the papers.
    rate: learning rate η; refused at or above `critical_rate`, where the error grows without bound.
    distance: mean square of the entries of W − B at the start (1 + σ² for a standard normal teacher and a student of
        standard deviation σ).
    trained: number of levels, those of largest eigenvalue, whose weights are trained; all by default.
    """
    rate, distance = number("rate", rate, above=0), number("distance", distance, least=0)
    omega, phi, floor, distance = _decaying(spectrum, rate, distance, trained)
    return modes(omega, phi, rate, np.full(omega.size, distance), floor)


def _decaying(
    spectrum: AnySpectrum, rate: float, distance: float, trained: int | None
) -> tuple[Array, Array, float, float]:
    """Eigenvalues and fractions of the trained levels, the floor, and the part of their distance that decays."""
    omega, phi, frozen = levels(spectrum, trained)
    if omega.size and rate * omega[0] < 1 / HUGE:
        raise InputError(f"rate: {rate:g} is too small for its square; use small_rate_error, the limit of small rates")
    floor = floor_of(frozen, float(phi @ omega), rate, distance)
    # at the floor e_b = η φ_b ε_∞, so the distance of trained levels decays from this much less
    return omega, phi, floor, distance - rate * floor


def modes(omega: Array, phi: Array, rate: float, distance: Array, floor: float) -> Modes:
    """Modes from falling eigenvalues, their fractions and the distance c_b in each level, all (levels,)."""
    if omega.size == 0:
        return Modes(np.empty(0), np.empty(0), floor)
    omega, phi, distance = omega[::-1].copy(), phi[::-1].copy(), distance[::-1]
    weights = phi * omega**2
    near, shift, slope = roots(omega, weights, 2 / rate)
    x = omega[near] + shift
    if np.ptp(distance) == 0:
        # Σ φ ω/(ω − x) in closed form by the secular equation: positive, without cancellation
        amplitudes = 1 / (x * slope)
        # their sum is the error at time zero, which fixes the factor c (2/η − Σ φ ω)/η also where that cancels
        amplitudes *= 0.5 * distance[0] * (phi @ omega) / amplitudes.sum()
    else:
        amplitudes = np.empty(x.size)
        for j in range(x.size):
            amplitudes[j] = np.sum(phi * omega * distance / ((omega - omega[near[j]]) - shift[j]))
        amplitudes /= rate * slope
    return Modes(2 * rate * x, amplitudes, floor)


@checked
def linear_error(
    spectrum: AnySpectrum, rate: float, times: ArrayLike, *, distance: float = 1.0, trained: int | None = None
) -> Array:
    """Error of a linear student for N → ∞ at any stable rate, (times,); arguments as for `linear_modes`.

    Evaluated without the modes, at a cost of O(levels) per time, see `overlaps.laws.contour`.
    """
    rate, distance, t = number("rate", rate, above=0), number("distance", distance, least=0), grid(times)
    omega, phi, floor, distance = _decaying(spectrum, rate, distance, trained)
    error = np.full(t.size, floor)
    if omega.size:
        slowest = 2 * rate * smallest_root(omega[::-1].copy(), (phi * omega**2)[::-1].copy(), 2 / rate)
        later = 2 * rate * omega[0] * t > 1e-16  # before that the error is that of the start, to rounding
        error[later] += at_times(omega, phi, rate, distance, slowest, t[later])
        error[~later] += 0.5 * distance * float(phi @ omega)
    return error


@checked
def small_rate_error(
    spectrum: AnySpectrum, rate: float, times: ArrayLike, *, distance: float = 1.0, trained: int | None = None
) -> Array:
    """Error of a linear student to first order in the rate, ½ c Σ φ ω exp(−2 η ω t) plus the floor, (times,).

    The limit of `linear_error` for rate → 0 at fixed rate × time; in this limit every rate is stable.
    """
    rate, distance = number("rate", rate, above=0), number("distance", distance, least=0)
    omega, phi, frozen = levels(spectrum, trained)
    return Modes(2 * rate * omega, 0.5 * distance * phi * omega, 0.5 * distance * frozen)(times)


@checked
def finite_size_error(
    spectrum: AnySpectrum,
    size: int,
    rate: float,
    times: ArrayLike,
    *,
    distance: float = 1.0,
    trained: int | None = None,
) -> Array:
    """Exact mean error of a linear student at size N over Gaussian samples and starts, (times,).

    Any number of levels up to one per dimension; where N is not a multiple of L, levels hold the whole numbers of
    dimensions of `GaussianInputs.dimensions`, and the variance of the inputs is theirs. Costs steps × levels; refused
    where the mean diverges, see `critical_rate`. Steps are those of `overlaps.online.exact_mean`. Between two steps
    values are interpolated linearly, as in micro.
    """
    rate, distance, t = number("rate", rate, above=0), number("distance", distance, least=0), grid(times)
    levels(spectrum, trained)  # refuses what is not a spectrum, or too many trained levels
    omega, n = np.array(spectrum.eigenvalues), GaussianInputs(spectrum).dimensions(size)
    order = np.argsort(-omega, kind="stable")
    p, n = omega[order] / n.sum(), n[order].astype(float)
    count = p.size if trained is None else int(trained)
    limit = _critical(p[:count], n[:count])
    if rate >= limit:
        raise InputError(
            f"rate: {rate:g} is at or above {limit:.6g}, where the mean error at size {int(n.sum())} diverges; lower it"
        )
    N = float(n.sum())
    steps(float(t[-1]), int(N))
    stops = Stops.at(t, int(N))
    # from zero weights to a teacher of squared length `distance` a dimension; frozen levels are noise of the labels
    frozen, one, zero = distance * float(p[count:] @ n[count:]), np.ones(1), np.zeros((count, 1, 1))
    if count == 0:
        return np.full(t.size, 0.5 * frozen)
    teacher = (distance * n[:count] / N)[:, None, None]
    given = Linear(N * p[:count], n[:count], teacher, one, one, frozen, 1.0, N, np.zeros(count))
    seen = second_moments(given, OnlineSGD(rate).update(trains_readout=False), zero, zero, stops.steps)
    moments = [float(given.omega @ distances(given, Q, A)) for Q, A in zip(seen.Q, seen.A, strict=True)]
    return stops.interpolated(0.5 * (np.array(moments) + frozen)[None], t.size)[0]


@checked
def critical_rate(spectrum: AnySpectrum, size: int | None = None) -> float:
    """The rate from which the mean error of a linear student diverges: 2/Σ φ ω, or the exact one at finite `size`.

    At finite size levels hold the whole numbers of dimensions of `GaussianInputs.dimensions`.
    """
    omega, phi, _ = levels(spectrum)
    if size is None:
        return 2 / float(phi @ omega)
    n = GaussianInputs(spectrum).dimensions(size)
    return _critical(np.array(spectrum.eigenvalues) / n.sum(), n.astype(float))


def _critical(p: Array, n: Array) -> float:
    """Root of Σ n η p/(1 − η p) = 2 below η = 1/max p."""
    if p.size == 0:
        return np.inf
    (p, n), top = merged(p, n), p.max()

    def excess(y: float) -> float:  # y = η max p; bounded at both ends
        q = p / top
        return float((1 - y) * (np.sum(n * y * q / (1 - y * q)) - 2)) if y < 1 else float(n[q == 1].sum())

    return float(brentq(excess, 0.0, 1.0, xtol=1e-15) / top)


def floor_of(unread_variance: float, variance: float, rate: float, distance: float) -> float:
    """ε_∞ where inputs of variance `unread_variance` are not read by the trained weights, which read `variance`.

    Refuses a rate at which the error grows.
    """
    if rate * variance >= 2:
        raise InputError(
            f"rate: {rate:g} is at or above critical_rate = {2 / variance:.6g}, where the error of a linear student "
            "grows without bound; reduce it"
        )
    return 0.5 * distance * unread_variance / (1 - 0.5 * rate * variance)


class SingleVector(NamedTuple):
    """The one vector that a linear committee is equal to: its rate and its distance from the teacher's at the start."""

    rate: float
    distance: float


@checked
def single_vector(problem: Problem, scale: float) -> SingleVector:
    """The one vector that a linear committee is equal to: W = Σ v_i W_i learns B = Σ u_n B_n at rate η Σ v_i².

    For readouts √M/K and 1/√M that is η M/K, from distance 1 + σ² M/K: a linear network does depend on K and M unless
    they are equal. `scale` is the standard deviation σ of the student's weights at the start; the teacher's is one.
    Pass the results to `linear_error` and its relatives.
    """
    if not isinstance(problem, Problem):
        raise InputError(f"problem: expected an overlaps.Problem, got {shown(problem)}")
    student, teacher = problem.committees
    for name, net in (("student", student), ("teacher", teacher)):
        if net.activation != "linear":
            raise InputError(f"{name}: expected a linear activation, got {shown(net.activation)}; use solve")
    if problem.student.train_readout:
        raise InputError("student: a trained readout makes the problem nonlinear; use solve")
    if problem.loss != "square" or problem.label_noise or problem.algorithm.decay:
        raise InputError("problem: expected the square loss without label noise and decay; use solve")
    if not problem.algorithm.draws_samples:
        raise InputError("algorithm: this law has the noise of SGD, got gradient flow; use small_rate_error, or solve")
    v, u = student.readouts, teacher.readouts
    scale = number("scale", scale, least=0)
    if scale > LARGEST_SCALE:
        raise InputError(f"scale: weights of {scale:.1e} overflow when squared; use one of order 1")
    return SingleVector(problem.plain_sgd("this law").rate * float(v @ v), float(u @ u) + scale**2 * float(v @ v))
