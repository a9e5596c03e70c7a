"""Laws of the library behind claims, at general numbers that come from independent routes.

Linear students: exp(A t) of A = −2 η ω + η² φω ωᵀ for the distances of the levels, with what is not trained as noise.
The integral form: quadrature of its integrand. The floor of partial training: Schur complements. Committees near their
teachers: the Hessian of the exact error in explicit weights of 2 levels × 5 dimensions, and gradient flow on it. The
plateau: the Hessian of the exact error in the overlaps of the students.
"""

from __future__ import annotations

import numpy as np

import overlaps as ov

from ..controls import inner
from .model import committee
from .paper import PAPER
from .pins import COVARIANCE, SPECTRUM, TEACHERS

UNEVEN = ov.Spectrum([3.0, 1.0, 0.5], [0.2, 0.5, 0.3])  # of mean 1.25
TIMES, SHARES = (0.0, 0.1, 5.0, 60.0), (1.0, 1.0, 10.0, 10.0)


def near_teachers(*, typical: bool, order: int) -> float:
    """10⁴ times the error at times 0, 20 and 200, weighted, of students near unequal teachers, or typical ones."""
    teachers = 1.2 * np.cos(1.7 * np.arange(30)).reshape(2, 3, 5)
    if typical:
        teachers = np.tile(np.sqrt(5) * np.eye(3, 5), (2, 1, 1))
    students = teachers + 0.02 * np.cos(np.arange(30.0) ** 2).reshape(2, 3, 5)
    pairs = (students, students), (students, teachers), (teachers, teachers)
    Q, R, T = (x @ y.swapaxes(1, 2) / 10 for x, y in pairs)
    problem = committee(2, 0.6, 0.2, students=3, teachers=3, first_order=True)
    error = ov.laws.late_error(problem, Q, R, [0.0, 20.0, 200.0], T, order=order)
    return 1e4 * float(error @ [1.0, 3.0, 30.0])


@PAPER.pin("eq17", number=0.8401797258)
def late_error_of_unequal_teachers() -> float:
    return near_teachers(typical=False, order=2)


@PAPER.pin("eq17", number=0.7567438832)
def late_error_of_typical_teachers() -> float:
    return near_teachers(typical=True, order=2)


@PAPER.pin("eq17", number=0.8559712524)
def late_error_of_first_order() -> float:
    return near_teachers(typical=False, order=1)


@PAPER.pin("feature-exponent", number=3.353274699)
def partial_floors() -> float:
    return float(ov.laws.partial_floors(COVARIANCE, rate=0.2, distance=1.3) @ [1.0, 2.0, 3.0, 4.0, 5.0])


def unequal_plateau() -> ov.laws.Plateau:
    """Of unequal teachers, M = 3, L = 4."""
    problem = committee(4, 0.6, 0.2, students=3, teachers=3, first_order=True)
    return ov.laws.plateau(problem, np.tensordot([0.3, 0.2, 0.25, 0.25], TEACHERS, 0))


@PAPER.pin("eq115", "escape-law", number=0.03026773484)
def prefactor() -> float:
    return unequal_plateau().prefactor


@PAPER.pin("escape-time", "escape-scaling", number=0.007466533271)
def fastest_rate() -> float:
    return float(unequal_plateau().rates[0])


@PAPER.pin("escape-time", "eq115", number=0.4260064336)
def specialisation() -> float:
    return float(unequal_plateau().specialisation([[0.9, 0.2, 0.1], [0.15, 0.7, 0.3], [0.05, 0.4, 0.8]]))


@PAPER.pin("plateau-shortens", number=0.5021408633)
def typical_teacher() -> float:
    """φ_b on the diagonal."""
    T = ov.laws.typical_teacher(committee(4, 0.6, 0.2, students=3, teachers=3, first_order=True))
    return float(np.arange(1.0, 5.0) @ T.reshape(4, 9) @ np.cos(np.arange(9.0)))


@PAPER.pin("escape-drawn", number=9.5)
def two_equal_rows() -> float:
    return float(np.sum(ov.laws.equal_rows([[[1.0, 0.3], [0.5, 2.0]]]) * [[1.0, 2.0], [3.0, 4.0]]))


@PAPER.pin("eq11", number=1.864169182)
def integral_to_the_first_level() -> float:
    """Where both ends of the integral count."""
    error = ov.laws.gamma_error(SPECTRUM, 0.3, [0.3, 1.5, 4.0], distance=1.3, trained=1)
    return float(error @ [1.0, 2.0, 3.0])


@PAPER.pin("eq11", number=1.99348152)
def integral_at_early_times() -> float:
    error = ov.laws.gamma_error(SPECTRUM, 0.3, [1e-4, 0.2, 0.5], distance=1.3, trained=7)
    return float(error @ [1.0, 2.0, 3.0])


@PAPER.pin("eq11", number=-0.3106401517)
def lower_function() -> float:
    """Σ_k (−x)^k/(k! (s + k)), k ≥ 1, at s = .4, x = .5."""
    return float(inner("laws.powerlaw")._lower(0.4, np.array([0.5]))[0])


@PAPER.pin("eq11", number=-0.04901108637)
def lower_function_of_small_numbers() -> float:
    """The same at x = 9e-4, less its first two terms, over x³."""
    s, x = 0.4, 9e-4
    found = float(inner("laws.powerlaw")._lower(s, np.array([x]))[0])
    return (found + x / (s + 1) - x**2 / (2 * (s + 2))) / x**3


@PAPER.pin("eq6", "finite-rate", number=4.137215308)
def error_of_two_levels_trained() -> float:
    return float(ov.laws.linear_error(UNEVEN, 0.3, TIMES, distance=1.3, trained=2) @ SHARES)


@PAPER.pin("eq6", "finite-rate", number=4.137215308)
def modes_of_two_levels_trained() -> float:
    return float(ov.laws.linear_modes(UNEVEN, 0.3, distance=1.3, trained=2)(TIMES) @ SHARES)


@PAPER.pin("eq6", "finite-rate", number=2.120835521)
def error_of_uneven_levels() -> float:
    return float(ov.laws.linear_error(UNEVEN, 0.3, TIMES, distance=1.3) @ SHARES)


@PAPER.pin("eq6", "finite-rate", number=2.120835521)
def modes_of_uneven_levels() -> float:
    return float(ov.laws.linear_modes(UNEVEN, 0.3, distance=1.3)(TIMES) @ SHARES)


@PAPER.pin("eq6", "finite-rate", number=2.854235227)
def error_at_a_high_rate() -> float:
    """η = 1.1, 1.6 is critical; down to 4e-13 at the last time."""
    error = ov.laws.linear_error(UNEVEN, 1.1, [0.0, 2.0, 10.0, 40.0], distance=1.3)
    return float(error @ [1.0, 10.0, 1e3, 1e6])


@PAPER.pin("eq6", "finite-rate", number=4.237876389)
def error_of_large_eigenvalues() -> float:
    """All above two, late: the slowest mode is to be found."""
    error = ov.laws.linear_error(
        ov.Spectrum([6.0, 4.0, 3.0], [0.2, 0.5, 0.3]), 0.3, [0.0, 1.0, 5.0, 20.0], distance=1.3
    )
    return float(error @ [1.0, 1.0, 10.0, 1e7])


@PAPER.pin("fig2-stability", number=0.65)
def nothing_trained() -> float:
    return float(ov.laws.finite_size_error(SPECTRUM, 14, 0.3, [0.7], distance=1.3, trained=0)[0])


@PAPER.pin("linear-transition", "eq6", number=2.0)
def faint_levels() -> float:
    """Levels count from 1e-50 of the largest eigenvalue on."""
    return float(inner("laws.levels").merged(np.array([1e-20, 1e-60, 1e-80]), np.ones(3))[0].size)
