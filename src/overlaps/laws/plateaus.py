"""The symmetric plateau of a realizable committee: how high, and how fast students leave it, for small rates.

M erf students learn M erf teachers, all readouts c. Before they specialise all students are one vector in the space of
the teachers, W_i = Σ_m a_m B_m, at rest where

    a_m = D_m √(1 + 2Q)/M,    D_m = [(1 + Q)(1 + T_mm) − R_m²]^-½,    R = T a,  Q = aᵀ T a,    T = Σ_b ω_b T_b,

and level b has R_b = T_b a, Q_b = aᵀ T_b a. Students i that differ by r_i = R_i − R, Σ_i r_i = 0, part as

    dr_i/dt = (2 η c²/π) T⁽²⁾ A r_i,    error* − error = (c²/π) Σ_i r_iᵀ A r_i,    T⁽²⁾ = Σ_b ω_b² T_b,
    A = diag(R_m D_m³) − u aᵀ − a uᵀ + κ a aᵀ,    u_m = (1 + T_mm) D_m³,
    κ = [u·R + M (1 + 2Q)^-½ + M (1 + 2Q)^-3/2]/(1 + Q).

With D⁽ˡ⁾ the sum of the off-diagonal entries of a row of T⁽ˡ⁾, T⁽ˡ⁾ its diagonal, both equal for all rows, τ = T + D:

    Q* = 1/(M(1 + T)/τ − 1),    R* = √(Q* τ/M),
    error* = (c² M/π) { asin[T/(1 + T)] + (M − 1) asin[D/((M − 1)(1 + T))] − M asin[τ/(M(1 + T))] },
    1/τ_esc = (2 η c² M/π) τ (T⁽²⁾ − D⁽²⁾/(M − 1)) (M(1 + T) − τ)^-½ (M(1 + T) + τ)^-3/2,

one time for all M − 1 ways to specialise: r_im = r (δ_im − (1 − δ_im)/(M − 1)) grows as exp(t/τ_esc), and what the
error loses as exp(2t/τ_esc). Rows that differ, as those of a drawn teacher do, split it into M − 1 times.

References: Worschech and Rosenow, arXiv:2410.09005, eqs. (13), (15), (116), for equal rows; the printed (98), (99) and
(115) do not follow from them. Isotropic inputs: Saad and Solla, Phys. Rev. E 52, 4225 (1995). Length: Biehl, Riegler
and Wöhler, J. Phys. A 29, 4769 (1996).

>>> import overlaps as ov
>>> net = ov.Committee(units=4, activation="erf", readout=0.5)
>>> inputs = ov.GaussianInputs(ov.PowerLaw(levels=10, exponent=0.25))
>>> ov.laws.plateau(ov.Problem(data=inputs, teacher=net, student=net, algorithm=ov.GradientFlow(rate=0.1)))
Plateau(error = 0.007094, Q = 0.1429, R = 0.189, escape time 478.1)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import root

from ..averages import method_for
from ..interface.checks import array, checked, grid, number
from ..interface.errors import InputError, NumericalError, shown
from ..problem.start import Start, joined
from ..problem.statement import Problem

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Plateau:
    """The symmetric plateau, to first order in the rate; made by `plateau`.

    Attributes
    ----------
    error: generalisation error on it.
    Q, R: overlap of any two students, and of any student with each teacher (M,); totals Σ_b ω_b.
    Q_levels, R_levels: the same per level, (levels,) and (levels, M); the l-th moment is Σ_b ω_b^l of them.
    rates: growth rates of the ways in which students can differ, falling, per unit of time, (M,) or fewer if the
        teacher's vectors are linearly dependent. M − 1 of them specialise; the last is zero for equal rows.
    prefactor: error* − error = prefactor × r² once the fastest way dominates, r as in `specialisation`.
    modes: (rates, M), the overlaps r_i of student i have the amplitude modes @ r_i in each way; normalised so that
        error* − error = Σ_k rates_k Σ_i (modes_k · r_i)².
    """

    error: float
    Q: float
    R: Array
    Q_levels: Array
    R_levels: Array
    rates: Array
    prefactor: float
    modes: Array

    @property
    def escape_time(self) -> float:
        """τ_esc: in this time the fastest way to specialise grows by e, and error* − error by e²."""
        return float(1 / self.rates[0])

    def specialisation(self, R: ArrayLike) -> Array:
        """r of overlaps R (..., M, M), students × teachers, totals over levels; shape (...,).

        r² = (M − 1)/M² Σ_im (R_im − its mean over students − its mean over teachers + the mean of all)²: students that
        differ in length alone do not specialise. If every student prefers one teacher, R_im = R*_m + r for that one and
        R*_m − r/(M − 1) for the others.
        """
        differences, M = self._differences(R), self.R.size
        differences = differences - differences.mean(axis=-1, keepdims=True)
        return np.sqrt((M - 1) * np.sum(differences**2, axis=(-2, -1))) / M

    def escape(self, times: ArrayLike, R: ArrayLike) -> Array:
        """error* − error at `times`, (times,), after overlaps R (M, M), students × teachers, at time 0.

        Leading order in r: R must be on the plateau up to small differences of the students, which also holds for their
        part outside the teachers' space. A loss larger than the whole error is refused.
        """
        t = grid(times)
        share = self.rates * np.sum(
            (self._differences(array("R", R, (self.R.size, self.R.size))) @ self.modes.T) ** 2, axis=0
        )
        differ = share != 0
        with np.errstate(over="ignore"):
            lost = np.exp(2 * np.multiply.outer(t, self.rates[differ])) @ share[differ]
        beyond = np.flatnonzero(~(lost <= self.error))
        if beyond.size:
            raise InputError(
                f"times: by time {t[beyond[0]]:g} students have left the plateau (the law for small differences would "
                f"lower the error by more than all of its {self.error:.4g}); use earlier times, or solve"
            )
        return lost

    def length(self, specialisation: float, deviation: float | None = None) -> float:
        """Time until r has grown from `specialisation` to `deviation`: τ_esc ln(deviation/specialisation).

        By default deviation = (e − 1) × mean R*, where a student's overlap with its own teacher has grown e-fold. There
        growth is no longer exponential, so this is an estimate, somewhat low; two isotropic units end at r = 1/2, short
        of this, so that theirs needs a smaller `deviation`. From weights of standard deviation σ at
        size N, r is of order σ/√N on the plateau, and the length grows as τ_esc (½ ln N − ln σ + constant).
        """
        r = number("specialisation", specialisation, above=0)
        end = (np.e - 1) * float(self.R.mean()) if deviation is None else number("deviation", deviation, above=0)
        if not r < end:
            raise InputError(f"specialisation: {r:.4g} is not below the deviation {end:.4g} that ends the plateau")
        return self.escape_time * float(np.log(end / r))

    def _differences(self, R: ArrayLike) -> Array:
        """R_im minus its mean over students, (..., M, M)."""
        R, M = array("R", R, None), self.R.size
        if R.shape[-2:] != (M, M):
            raise InputError(f"R: expected shape (..., {M}, {M}), students × teachers, got {R.shape}")
        return R - R.mean(axis=-2, keepdims=True)

    def __repr__(self) -> str:
        low, high = f"{self.R.min():.4g}", f"{self.R.max():.4g}"
        R = low if low == high else f"{low} to {high}"
        return f"Plateau(error = {self.error:.4g}, Q = {self.Q:.4g}, R = {R}, escape time {self.escape_time:.4g})"


@checked
def plateau(problem: Problem, T: ArrayLike | None = None) -> Plateau:
    """The symmetric plateau of `problem`, to first order in its rate.

    Parameters
    ----------
    problem: equal numbers of erf students and teachers (two or more), all readouts equal and fixed, square loss, no
        decay. Label noise and the noise of SGD act at second order only.
    T: teacher overlaps per level, (levels, M, M), as in `Start.T`; `typical_teacher` by default. Pass
        `equal_rows(T)` for the closed forms with averaged rows.
    """
    c = common_readout(problem)
    M, rate, omega = problem.teacher_units, problem.plain_sgd("this law").rate, problem.data.eigenvalues
    if M == 1:
        raise InputError("units: one student has nothing to share with others, so there is no plateau; solve it")
    if T is None:
        levels = typical_teacher(problem)
    else:
        zero = np.zeros((omega.size, M, M))
        levels = Start.from_overlaps(problem, Q=zero, R=zero, T=T).T
    first, second = np.tensordot(omega, levels, 1), np.tensordot(omega**2, levels, 1)
    if not first.sum() > 1e-12 * np.trace(first):
        raise InputError(
            "T: the teacher's vectors sum to zero, so equal students learn nothing; solve with GradientFlow"
        )
    a = _coefficients(first)
    R, R_levels = first @ a, levels @ a
    Q = float(a @ R)
    C = joined(np.full((M, M), Q), np.broadcast_to(R, (M, M)), first)
    error = method_for(problem, problem.teacher_readouts).errors(C[None], problem.student.readouts[None])[0]
    curvature = _curvature(first, a)
    # T⁽²⁾ A is similar to the symmetric S A S with S² = T⁽²⁾, so that growth rates are real
    low, vectors = np.linalg.eigh(second)
    keep = low > 1e-13 * low[-1]
    S = np.sqrt(low[keep])[:, None] * vectors[:, keep].T
    growth, ways = np.linalg.eigh(S @ curvature @ S.T)
    growth, ways = growth[::-1], ways[:, ::-1].T
    if not growth[0] > 1e-12 * np.abs(curvature).max() * low[-1]:
        raise InputError(
            "T: equal students are stable for this teacher, as they are where all its vectors are alike; there is no "
            "plateau to leave; solve with GradientFlow"
        )
    rates = 2 * rate * c**2 / np.pi * growth
    fastest = ways[0] @ S
    preference = fastest - fastest.mean()
    return Plateau(
        error=float(error),
        Q=Q,
        R=R,
        Q_levels=R_levels @ a,
        R_levels=R_levels,
        rates=rates,
        prefactor=float(c**2 / np.pi * growth[0] / (preference @ preference) * M**2 / (M - 1)),
        modes=ways @ (S / low[keep, None]) / np.sqrt(2 * rate),
    )


@checked
def typical_teacher(problem: Problem) -> Array:
    """Overlaps per level of a random teacher at infinite size, T_b = φ_b I, (levels, M, M)."""
    if not isinstance(problem, Problem):
        raise InputError(f"problem: expected an overlaps.Problem, got {shown(problem)}")
    if problem.data.reads_latent:
        raise InputError(
            "data: a teacher that reads a latent has other overlaps with the inputs of each level; use draw, whose "
            "start has them as T"
        )
    M, fractions = problem.teacher_units, problem.data.fractions
    if fractions.size * M**2 > 2e8:
        raise InputError(
            f"units: the overlaps of {M} teachers on {fractions.size} levels do not fit in memory; use fewer"
        )
    return fractions[:, None, None] * np.eye(M)


@checked
def equal_rows(T: ArrayLike) -> Array:
    """Teacher overlaps (levels, M, M) with the diagonal entries of each level averaged, and the others as well."""
    T = array("T", T, (None, None, None))
    M = T.shape[-1]
    T = array("T", T, (None, M, M))
    diagonal = np.trace(T, axis1=1, axis2=2) / M
    other = (T.sum(axis=(1, 2)) / M - diagonal) / max(M - 1, 1)
    return other[:, None, None] + (diagonal - other)[:, None, None] * np.eye(M)


def common_readout(problem: Problem) -> float:
    """c, after checking that `problem` is a realizable erf committee with all readouts c, as these laws need."""
    if not isinstance(problem, Problem):
        raise InputError(f"problem: expected an overlaps.Problem, got {shown(problem)}")
    student, teacher = problem.committees
    readouts = np.concatenate([student.readouts, teacher.readouts])
    reasons = (
        (student.units != teacher.units, f"as many students as teachers, got {student.units} and {teacher.units}"),
        (
            (student.activation, teacher.activation) != ("erf", "erf"),
            f"erf activations, got {student.g.name} students and {teacher.g.name} teachers",
        ),
        (
            np.ptp(readouts) > 1e-12 * np.abs(readouts).max() or readouts[0] == 0,  # √M/M and 1/√M differ by rounding
            f"one readout for all students and teachers, not zero, got {readouts.min():g} to {readouts.max():g}",
        ),
        (student.train_readout, "a fixed readout, got train_readout=True"),
        (problem.loss != "square", f"the square loss, got {shown(problem.loss)}"),
        (problem.algorithm.decay != 0, f"no decay, got {problem.algorithm.decay:g}"),
    )
    for outside, expected in reasons:
        if outside:
            raise InputError(
                f"problem: this law needs {expected}; solve the problem, with GradientFlow for small rates"
            )
    return float(readouts[0])


def _coefficients(T: Array) -> Array:
    """a (M,) of the fixed point, for teacher overlaps T (M, M), totals."""
    M, one = len(T), 1 + np.diag(T)

    def rest(a: Array) -> Array:
        R = T @ a
        Q = a @ R
        return a * M / np.sqrt(1 + 2 * Q) - ((1 + Q) * one - R**2) ** -0.5

    # begin the search at the direction in which students of vanishing length grow: runs start with small weights
    at = np.asarray(root(rest, one**-0.5 / M, tol=1e-14).x)
    left = float(np.abs(rest(at)).max())
    if not left <= 1e-11 * float(one.min()) ** -0.5:
        raise NumericalError(
            f"plateau: the fixed point did not converge (residual {left:.1e}); solve with GradientFlow",
            quantity="R",
            time=0.0,
        )
    return at


def _curvature(T: Array, a: Array) -> Array:
    """A (M, M), for teacher overlaps T (M, M), totals, and the fixed point a (M,)."""
    M, one = len(T), 1 + np.diag(T)
    R = T @ a
    Q = a @ R
    cubes = ((1 + Q) * one - R**2) ** -1.5
    u = one * cubes
    kappa = (u @ R + M * (1 + 2 * Q) ** -0.5 + M * (1 + 2 * Q) ** -1.5) / (1 + Q)
    cross = np.outer(u, a)
    return np.diag(R * cubes) - cross - cross.T + kappa * np.outer(a, a)
