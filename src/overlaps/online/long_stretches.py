"""Many steps of the exact mean at once, for one weight vector at a constant rate.

Without decay and momentum the recursion of `overlaps.online.exact_mean` is one of scalars E_b = (e·e)_b that meet in
the power of the noise alone. With g_b = η v² ω_b/N and n_b the dimension of level b

    E_b ← ρ_b E_b + c_b P,    P = (1/β) (Σ_b ω_b E_b + σ²)
    ρ_b = 1 − 2 g_b + (1 + 1/β) g_b²,    c_b = (η v²)² ω_b n_b/N²

and (e·B)_b ← (1 − g_b) (e·B)_b. Over a stretch of n steps P is smooth in the step j, so it is a polynomial through its
values at a few nodes. In the basis of binomials the sums over steps are closed, with δ = 1 − ρ,

    G_r(m) = Σ_{j<m} ρ^{m−1−j} C(j, r),    δ G_r = C(m, r) − G_{r−1},    δ G_0 = 1 − ρ^m

upwards in r where |δ| m is large, and where it is small downwards from the finite series G_r = Σ_l (−δ)^l C(m, r+1+l).
The values of P at the nodes then solve a small linear system, a discrete Volterra equation. By how much the polynomial
misses P between the nodes is measured on every stretch, and a stretch that misses by more than 10⁻¹² P is halved.

>>> j, delta = np.arange(40), np.array([[0.01], [0.9]])
>>> np.sum((1 - delta) ** (39 - j) * j * (j - 1) / (200 * 199), axis=1).round(12).tolist()
[0.453680473885, 0.041138477022]
>>> geometric_sums(delta[:, 0], np.array([40]), 200, 2)[0, :, 2].round(12).tolist()
[0.453680473885, 0.041138477022]
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..algorithms import Update
from ..compiled.functions import kept
from ..problem.start import LIMIT

if TYPE_CHECKING:
    from .second_moments import Linear

Array = NDArray[np.float64]
DEGREE = 12  # of the polynomial for the power
SHORTEST = 128  # steps of a stretch; the sums of a stretch cost as much as a few hundred steps do
TOLERANCE = 1e-12  # by how much of the power the polynomial may miss it
WORTH = 32 * SHORTEST  # steps of a trajectory from which on the sums of its stretches are worth their cost
SERIES = 4.0  # |δ| m up to which the series is taken; the recurrence upwards loses no more than 12!/4¹² above it
TERMS = 60  # of the series at most; the terms fall off faster than 4^l/l! does
MEASURED = np.array([0, 3, 6, 9, 11])  # nodes between which and the next the polynomial is compared with the power
GROWTH = 10.0  # logarithm of what a level may grow by in a stretch; what grows faster diverges soon, step by step


class Stretch(NamedTuple):
    """What carries E and e·B over n steps; the power is given by its values at I nodes, the last of which is n.

    coupling, drift: c (B,) and (1 − g)ⁿ − 1 (B,).
    powers: ρ^m at the nodes and then at the steps between them where the polynomial is measured, (I + checks, B).
    solution: (I, I), from what the power would be without noise of the stretch to what it is.
    noise_sums: Σ_b ω_b c_b times the sums at the steps between nodes, (checks, I).
    polynomial: the polynomial there, (checks, I).
    last: the sums at n, (B, I).
    """

    coupling: Array
    drift: Array
    powers: Array
    solution: Array
    noise_sums: Array
    polynomial: Array
    last: Array


def drift(g: Array, steps: float) -> Array:
    """(1 − g)ⁿ − 1 of n steps, without loss of digits where g is small."""
    small = np.minimum(g, 0.5)
    return np.where(g < 0.5, np.expm1(steps * np.log1p(-small)), np.power(1 - g, steps) - 1)


@kept(nogil=True, error_model="numpy", fastmath={"contract"})
def geometric_sums(slow, nodes, n, degree):  # pragma: no cover - compiled
    """Σ_{j<m} (1 − δ)^{m−1−j} C(j, r)/C(n, r), (nodes, B, degree + 1), at nodes m (integers) for δ `slow` (B,)."""
    sums = np.zeros((nodes.size, slow.size, degree + 1))
    basis, up, ratio = np.ones(degree + 1), np.ones(degree + 1), np.empty(TERMS)
    for r in range(1, degree + 1):
        up[r] = (n - r + 1) / r  # C(n, r)/C(n, r−1)
    down = 1.0 / up
    for i in range(nodes.size):
        m = nodes[i]
        for r in range(1, degree + 1):
            basis[r] = basis[r - 1] * max(m - r + 1, 0) / (n - r + 1)
        for l in range(TERMS):
            ratio[l] = max(m - degree - l, 0) / (degree + 1 + l)
        for b in range(slow.size):
            delta, G = slow[b], sums[i, b]
            if abs(delta) * m <= SERIES:
                term, total = basis[degree] * ratio[0], 0.0
                for l in range(1, TERMS):
                    total += term
                    term *= -delta * ratio[l]
                    if abs(term) <= 1e-17 * total:
                        break
                G[degree] = total
                for r in range(degree, 0, -1):
                    G[r - 1] = (basis[r] - delta * G[r]) * up[r]
            else:
                faster = 1.0 / delta
                G[0] = -np.expm1(m * np.log1p(-delta)) * faster
                for r in range(1, degree + 1):
                    G[r] = (basis[r] - G[r - 1] * down[r]) * faster
    return sums


def stretch(given: Linear, pull: float, n: int) -> Stretch:
    """The stretch of n steps of a `Linear` of one unit, with p = `pull`."""
    g, slow = _rates(given, pull)
    coupling = g * pull * given.v[0] * given.dimensions / given.size
    nodes = np.rint(n * (1 - np.cos(np.pi * np.arange(DEGREE + 1) / DEGREE)) / 2).astype(np.int64)
    between = (nodes[MEASURED] + nodes[MEASURED + 1]) // 2
    at = np.concatenate([nodes, between])
    sums = geometric_sums(slow, at, n, DEGREE)
    r = np.arange(DEGREE)
    basis = np.ones((at.size, DEGREE + 1))
    basis[:, 1:] = np.cumprod(np.maximum(at[:, None] - r, 0) / (n - r), axis=1)  # C(j, r)/C(n, r)
    by_values = partial(_from_values, basis[: nodes.size])
    noise_sums = by_values(np.einsum("b,ibr->ir", given.omega * coupling, sums))
    with np.errstate(divide="ignore"):
        powers = np.exp(np.maximum(at, 1)[:, None] * np.log1p(-slow))
    powers[0] = 1.0
    return Stretch(
        coupling,
        drift(g, n),
        powers,
        np.asarray(np.linalg.inv(np.eye(nodes.size) - given.share * noise_sums[: nodes.size]), np.float64),
        noise_sums[nodes.size :],
        by_values(basis[nodes.size :]),
        by_values(sums[nodes.size - 1]),
    )


def _rates(given: Linear, pull: float) -> tuple[Array, Array]:
    """g (B,) and δ = 1 − ρ (B,)."""
    g = pull * given.v[0] * given.omega / given.size
    return g, g * (2 - (1 + given.share) * g)


def _from_values(basis: Array, forms: Array) -> Array:
    """Linear forms of coefficients, (…, I), as forms of the values at the nodes."""
    return np.ascontiguousarray(np.linalg.solve(basis.T, forms.T).T, np.float64)


@kept(nogil=True, fastmath={"reassoc", "contract"})
def advance_stretch(given, over, Q, A):  # pragma: no cover - compiled
    """Steps of one row and one teacher, Q (B, 1, 1) and A (B, 1, 1), in place.

    Returns the relative error of the power: the largest part of it by which the polynomial misses it, times what an
    error of one part in all of the stretch grows to, since noise makes more noise. Where the polynomial is not within
    the tolerance, or the error diverges, returns −1 and leaves Q and A as they were.
    """
    omega, v, u, share = given.omega, given.v[0], given.u[0], given.share
    (points, B), I = over.powers.shape, over.solution.shape[0]
    E, free = np.empty(B), np.empty(points)
    for b in range(B):
        E[b] = v * v * Q[b, 0, 0] - 2 * v * u * A[b, 0, 0] + u * u * given.T[b, 0, 0]
    for i in range(points):
        total = 0.0
        for b in range(B):
            total += omega[b] * over.powers[i, b] * E[b]
        free[i] = share * (total + given.noise)
    power = np.zeros(I)
    for i in range(I):
        for k in range(I):
            power[i] += over.solution[i, k] * free[k]
        if not 0 <= power[i] < share * (LIMIT + given.noise):
            return -1.0
    missed = 0.0
    for i in range(points - I):
        exact, found = free[I + i], 0.0
        for k in range(I):
            exact += share * over.noise_sums[i, k] * power[k]
            found += over.polynomial[i, k] * power[k]
        if not abs(found - exact) <= TOLERANCE * exact:
            return -1.0
        if exact > 0:
            missed = max(missed, abs(found - exact) / exact)
    feedback = 1.0
    for i in range(I):
        answer = 0.0
        for k in range(I):
            answer += over.solution[i, k] * power[k]
        if power[i] > 0:
            feedback = max(feedback, answer / power[i])
    for b in range(B):
        noise = 0.0
        for k in range(I):
            noise += over.last[b, k] * power[k]
        change = (over.powers[I - 1, b] - 1.0) * E[b] + over.coupling[b] * noise
        turn = over.drift[b] * (v * A[b, 0, 0] - u * given.T[b, 0, 0])
        A[b, 0, 0] += turn / v
        Q[b, 0, 0] += (change + 2 * u * turn) / (v * v)
    return missed * feedback


class Stretches:
    """Stretches of 2^k steps of one unit and one teacher: each length is made once, and carries any state.

    A stretch that is accepted is followed by one twice as long, one that is not by one half as long; where the shortest
    is refused, steps are taken one by one until the step `again`. All terms of the recursion are positive, so that a
    relative error of all E_b is passed on without growth, and those of stretches add up to `missed`.
    """

    def __init__(self, given: Linear, pull: float) -> None:
        self.given, self.pull = given, pull
        self.made: dict[int, Stretch] = {}
        self.length, self.again, self.missed = SHORTEST, 0, 0.0
        self.growth = max(0.0, float(-_rates(given, pull)[1].min()))

    def advance(self, Q: Array, A: Array, done: int, stop: int) -> int:
        """One stretch from step `done`, no further than `stop`, Q and A (B, 1, 1) in place; returns its steps, or 0."""
        while done >= self.again and stop - done >= SHORTEST:
            n = min(self.length, 1 << (stop - done).bit_length() - 1)
            if n * self.growth <= GROWTH:
                if n not in self.made:
                    self.made[n] = stretch(self.given, self.pull, n)
                missed = advance_stretch(self.given, self.made[n], Q, A)
                if missed >= 0:
                    self.missed += missed
                    self.length = max(self.length, 2 * n)
                    return n
            self.length = max(SHORTEST, n // 2)
            if n == SHORTEST:
                self.again = done + max(SHORTEST, done // 8)
        return 0


def constant_pull(update: Update, v: Array, size: int) -> float | None:
    """p of every step of one unit with readout v (1,), where the rate is constant and the weights are kept, L = 1.

    None for everything else: schedules, decay, momentum, several units.
    """
    if update.changes or update.rule.rows > 1 or v.size > 1 or v[0] == 0:
        return None
    step = update.steps(0, 1, size)
    return float(step.pull[0, 0] * v[0]) if step.keep[0, 0, 0] == 1 else None
