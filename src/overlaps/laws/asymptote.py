"""The late decay to perfect learning of a realizable committee, for small rates.

M erf students W_i = B_i + δ_i, each close to its own teacher, all readouts c. To second order in δ the error depends on
the totals e_ij = δ_i Σ δ_jᵀ/N and r_ij = δ_i Σ B_jᵀ/N (Σ the input covariance, T_ij likewise), e = Q − R − Rᵀ + T and
r = R − T:

    error = (c²/π) { Σ_ij h_ij e_ij − Σ_ij r_ij (𝒢r)_ij },
    Σ_ij r_ij (𝒢r)_ij = 2 Σ_i h_ii³ r_ii² + Σ_i≠j h_ij³ [2 (1 + T_jj) r_ii r_ji − T_ij (r_ii r_jj + r_ij r_ji)],
    h_ii = (1 + 2T_ii)^-½,    h_ij = [(1 + T_ii)(1 + T_jj) − T_ij²]^-½.

The first sum alone is the expansion to first order in the overlaps; since r is of order δ and e of order δ², what it
leaves out is as large as what it keeps. Weights move in level b as

    dδ_b/dt = −(2 η c²/π) ω_b [h δ_b − (𝒢r) B_b].

The part of δ_b outside the space of the teachers decays with the eigenvalues h_k of h, in the error as

    exp(−rate t),    rate = (4 η c²/π) ω_b h_k.

For a typical teacher, T_b ∝ I, a level has a slow and a fast rate, h_slow = (1 + 2T)^-½ − (1 + T)^-1, M − 1 times, and
h_fast = (1 + 2T)^-½ + (M − 1)/(1 + T); at T = 1 they are as 2 − √3 to 2 + √3 (M − 1). The part inside, described by
y_b = (R_b − T_b) T_b^-½, couples all levels,

    dy_b/dt = −(2 η c²/π) ω_b [h y_b − 𝒢(Σ_b' ω_b' y_b' T_b'^½) T_b^½],

a symmetric linear system, and enters the error with the squares of its modes. For a typical teacher each column of y
moves alone, and in it only the diagonal entry and the sum of the others are coupled: 2 equations per level.

Reference: Worschech and Rosenow, arXiv:2410.09005, eqs. (17), (118)-(122), first order in the overlaps; the printed
matrices are those of M = 2.

>>> import numpy as np, overlaps as ov
>>> net = ov.Committee(units=2, activation="erf", readout=2**-0.5)
>>> inputs = ov.GaussianInputs(ov.PowerLaw(levels=2, exponent=1.0))
>>> problem = ov.Problem(data=inputs, teacher=net, student=net, algorithm=ov.GradientFlow(rate=0.25))
>>> T = np.array([0.5 * np.eye(2), 0.5 * np.eye(2)])  # students 1 % shorter than their teachers
>>> ov.laws.late_error(problem, Q=0.99**2 * T, R=0.99 * T, times=[0.0, 1000.0])
array([6.12587662e-06, 2.44367418e-09])
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment

from ..averages import method_for
from ..interface.checks import array, checked, positive, whole
from ..interface.errors import InputError
from ..problem.start import Start, joined
from ..problem.statement import Problem
from .linear import Modes
from .plateaus import common_readout, typical_teacher

Array = NDArray[np.float64]
LARGEST = 4000  # coupled equations: their dense modes take seconds


@checked
def near_error(problem: Problem, Q: ArrayLike, R: ArrayLike, T: ArrayLike | None = None, *, order: int = 2) -> Array:
    """Error of students near their teachers, from totals over levels; shape (...,).

    Parameters
    ----------
    problem: as many erf students as teachers, all readouts equal and fixed, square loss, no decay.
    Q, R: (..., M, M), as the variables of a `Trajectory`; students are matched to teachers, whatever their order.
    T: teacher overlaps, totals as well, (M, M); those of a typical teacher by default.
    order: 2, the error up to relative corrections of order W − B; 1, only its part linear in the overlaps, which does
        not become exact near the teacher.
    """
    c, order = common_readout(problem), whole("order", order, least=1, most=2)
    T, M = _total(problem, T), problem.teacher_units
    Q, R = array("Q", Q, None), array("R", R, None)
    if Q.shape[-2:] != (M, M) or R.shape != Q.shape:
        raise InputError(f"Q, R: expected two arrays of shape (..., {M}, {M}), got {Q.shape} and {R.shape}")
    for at in np.ndindex(Q.shape[:-2]):
        own = _own(R[at])
        Q[at], R[at] = Q[at][np.ix_(own, own)], R[at][own]
    h, r = _slopes(T), R - T
    error = np.sum(h * (Q - R - np.swapaxes(R, -1, -2) + T), axis=(-2, -1))
    if order == 2:
        error = error - np.sum(r * _curvature(T, h, r), axis=(-2, -1))
    error = c**2 / np.pi * error
    if not np.isfinite(error).all():
        raise InputError("Q, R, T: the overlaps are too large for double precision; scale them")
    return error


@checked
def late_error(
    problem: Problem, Q: ArrayLike, R: ArrayLike, times: ArrayLike, T: ArrayLike | None = None, *, order: int = 2
) -> Array:
    """Error at `times` after a reference point near the teacher, (times,); arguments as for `late_modes`."""
    return late_modes(problem, Q, R, T, order=order)(times)


@checked
def late_modes(problem: Problem, Q: ArrayLike, R: ArrayLike, T: ArrayLike | None = None, *, order: int = 2) -> Modes:
    """The late learning curve as a sum of exponentials in the time after a reference point, to first order in the rate.

    Parameters
    ----------
    problem: as many erf students as teachers, all readouts equal and fixed, square loss, no decay.
    Q, R: overlaps per level at the reference point, (levels, M, M); students are matched to teachers, whatever their
        order. Refused where the second order is 25 % off the exact error: students are then too far for the law.
    T: teacher overlaps per level, (levels, M, M), as in `Start.T`; `typical_teacher` by default.
    order: 2, exact at all later times up to relative corrections of order W − B at the reference point. Up to 2000
        levels for a teacher with T_b ∝ I, otherwise levels × M² up to 4000. 1, the expansion to first order in the
        overlaps, in which the part of W − B inside the teachers' space decays as the part outside does: off by a share
        of the error that does not vanish near the teacher.
    """
    c, order = common_readout(problem), whole("order", order, least=1, most=2)
    omega = problem.data.eigenvalues
    start = Start.from_overlaps(problem, Q=Q, R=R, T=typical_teacher(problem) if T is None else T)
    own = _own(np.tensordot(omega, start.R, 1))
    Q, R, T = start.Q[:, own][:, :, own], start.R[:, own], start.T
    total = np.tensordot(omega, T, 1)
    _check_near(problem, np.tensordot(omega, Q, 1), np.tensordot(omega, R, 1), total)
    h = _slopes(total)
    free, coupled, energies = Q - R - np.swapaxes(R, 1, 2) + T, np.empty(0), np.empty(0)
    if order == 2:
        inside, loose, coupled, energies = _inside(omega, R - T, T, h)
        free = free - inside @ np.swapaxes(inside, 1, 2) + loose @ np.swapaxes(loose, 1, 2)
    eigenvalues, U = np.linalg.eigh(h)
    # free is a Gram matrix: below zero by rounding alone
    squares = np.maximum(np.einsum("ik,bij,jk->bk", U, free, U), 0.0)
    single = np.multiply.outer(omega, eigenvalues)
    curvatures, energies = np.append(single, coupled), np.append(single * squares, energies)
    rising = np.argsort(curvatures, kind="stable")
    rising = rising[curvatures[rising] > 0]
    pace = 4 * problem.plain_sgd("this law").rate * c**2 / np.pi
    return Modes(pace * curvatures[rising], c**2 / np.pi * energies[rising], 0.0)


@checked
def decay_rates(problem: Problem, T: ArrayLike | None = None) -> Array:
    """Rates at which the error from differences outside the teachers' space decays, (levels, M), rising in each level.

    T: teacher overlaps, totals over levels, (M, M); those of a typical teacher by default, which have M − 1 equal slow
    rates and a fast one in each level.
    """
    c, eigenvalues = common_readout(problem), np.linalg.eigvalsh(_slopes(_total(problem, T)))
    return (
        4 * problem.plain_sgd("this law").rate * c**2 / np.pi * np.multiply.outer(problem.data.eigenvalues, eigenvalues)
    )


def _total(problem: Problem, T: ArrayLike | None) -> Array:
    """Teacher overlaps (M, M), totals over levels; those of a typical teacher for None."""
    M = problem.teacher_units
    if T is None:
        return float(problem.data.fractions @ problem.data.eigenvalues) * np.eye(M)
    return positive("T", T, M)


def _own(R: Array) -> NDArray[np.int64]:
    """For each teacher its student, (M,): the assignment of least |W − B|², from R (M, M)."""
    return np.argsort(linear_sum_assignment(-R)[1])


def _slopes(T: Array) -> Array:
    """h (M, M)."""
    one = 1 + np.diag(T)
    pairs = np.outer(one, one) - T**2
    np.fill_diagonal(pairs, 1 + 2 * np.diag(T))
    return pairs**-0.5


def _curvature(T: Array, h: Array, r: Array) -> Array:
    """𝒢r (..., M, M), half the gradient of the terms quadratic in r (..., M, M)."""
    one, unit = 1 + np.diag(T), np.eye(len(T))
    cubes = h**3 * (1 - unit)
    diagonal = np.diagonal(r, axis1=-2, axis2=-1)
    other = cubes * (one[:, None] * diagonal[..., None, :] - T * np.swapaxes(r, -1, -2))
    own = 2 * np.diag(h) ** 3 * diagonal + np.sum(cubes * one[:, None] * r, axis=-2) - diagonal @ (cubes * T)
    return other + own[..., None, :] * unit


def _inside(omega: Array, r: Array, T: Array, h: Array) -> tuple[Array, Array, Array, Array]:
    """The part of W − B in the teachers' space, from r and T per level, (levels, M, M).

    Returns y (levels, M, M), its part that levels do not share, the eigenvalues of the coupled equations for the rest
    and their energies, both (modes,).
    """
    levels, M = len(omega), len(h)
    squares, V = np.linalg.eigh(T)
    roots = np.sqrt(np.where(squares > 1e-12 * squares.max(), squares, 0.0))
    half = (V * roots[:, None, :]) @ np.swapaxes(V, 1, 2)
    y = r @ (V * np.divide(1, roots, out=np.zeros_like(roots), where=roots > 0)[:, None, :]) @ np.swapaxes(V, 1, 2)
    typical = M > 1 and np.ptp(squares, axis=1).max() <= 1e-12 * squares.max()
    if typical:
        # teachers are alike and independent: one column stands for all, its entries off the diagonal for each other
        basis = np.zeros((2, M, M))
        basis[0, 0, 0], basis[1, 1:, 0] = 1, (M - 1) ** -0.5
        diagonal = np.diagonal(y, axis1=1, axis2=2)
        others = (y.sum(axis=1) - diagonal) / (M - 1)
        unknowns = np.stack([diagonal, others * np.sqrt(M - 1)], axis=1)
        loose = (y - others[:, None, :]) * (1 - np.eye(M))
    else:
        basis = np.eye(M**2).reshape(M**2, M, M)
        unknowns, loose = y.reshape(levels, M**2, 1), np.zeros_like(y)
    size = levels * len(basis)
    if size > LARGEST:
        raise InputError(
            f"order: the second order of {levels} levels and {M} units couples {size} equations, more than {LARGEST}; "
            "use order=1, fewer levels, or solve"
        )
    total = np.tensordot(omega, T, 1)
    local = np.einsum("aij,cij->ac", basis, h @ basis)
    shared = np.einsum("aij,cij->ac", basis, _curvature(total, h, basis))
    reach = omega[:, None, None] * np.einsum("aij,bcij->bca", basis, basis @ half[:, None])
    reach = reach.reshape(size, len(basis))
    hessian = -reach @ shared @ reach.T
    blocks = hessian.reshape(levels, len(basis), levels, len(basis))
    blocks[np.arange(levels), :, np.arange(levels), :] += omega[:, None, None] * local
    eigenvalues, modes = np.linalg.eigh(hessian)
    amplitudes = modes.T @ unknowns.reshape(size, -1)
    return y, loose, eigenvalues, eigenvalues * np.sum(amplitudes**2, axis=1)


def _check_near(problem: Problem, Q: Array, R: Array, T: Array) -> None:
    """Refuse totals at which the second order is not yet close to the exact error."""
    near = float(near_error(problem, Q, R, T))
    C, v = joined(Q, R, T), problem.student.readouts
    exact = float(method_for(problem, problem.teacher_readouts).errors(C[None], v[None])[0])
    rounding = 1e-14 * float(v @ v) * v.size
    if abs(near - exact) > 0.25 * exact + rounding:
        raise InputError(
            f"Q, R: students are too far from their teachers for the law of late decay (its error is {near:.4g}, the "
            f"exact one {exact:.4g}); take a later reference point"
        )
