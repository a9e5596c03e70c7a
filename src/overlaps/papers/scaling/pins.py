"""Formulas as printed, and laws that correct them, at general numbers, M = 3 or more: a slip in one of them shows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import overlaps as ov

from ..controls import inner
from . import printed
from .model import committee
from .paper import PAPER

SPECTRUM = ov.PowerLaw(levels=7, exponent=0.6)
TEACHERS = np.array([[1.1, 0.1, -0.2], [0.1, 0.9, 0.05], [-0.2, 0.05, 1.2]])
COVARIANCE = np.array([[1.0, 0.2, 0.1, -0.3], [0.2, 1.3, 0.25, 0.15], [0.1, 0.25, 0.9, 0.2], [-0.3, 0.15, 0.2, 1.1]])


def plateau_numbers() -> float:
    """Height, escape time and prefactor of the plateau of unequal teachers, M = 3, L = 4."""
    problem = committee(4, 0.6, 0.2, students=3, teachers=3, first_order=True)
    law = ov.laws.plateau(problem, np.tensordot([0.3, 0.2, 0.25, 0.25], TEACHERS, 0))
    return law.escape_time + 100 * law.error + float(law.R.sum()) + float(law.Q)


@PAPER.pin("eq6", number=0.02901827)
def eq6() -> float:
    return float(printed.eq6(SPECTRUM, 0.4, [0.7], distance=1.3)[0])


@PAPER.pin("eq6", number=0.039627556)
def eq56() -> float:
    return float(printed.eq56(SPECTRUM, 0.4, [0.7], distance=1.3)[0])


@PAPER.pin("eq11", number=0.33293992)
def eq11() -> float:
    return float(printed.eq11(SPECTRUM, 0.4, [0.7], 3, distance=1.3)[0])


@PAPER.pin("bound-late", number=0.040604476)
def eq49() -> float:
    return float(printed.eq49(SPECTRUM, 0.4, [0.7], distance=1.3)[0])


@PAPER.pin("bound", number=0.24114161)
def worst_case() -> float:
    return printed.worst_case(SPECTRUM, distance=1.3)


@PAPER.pin("eq91", number=0.018500308)
def eq91() -> float:
    return printed.eq91(COVARIANCE)


@PAPER.pin("escape-time", "escape-drawn", number=543.65085)
def eq15() -> float:
    return printed.eq15(3, 0.1, (1.0, 0.1), (1.2, 0.2))


@PAPER.pin("eq98", number=1.6623295)
def eq98_first() -> float:
    return printed.eq98(0, 4, (1.0, 0.2, 2.0))[0] + 10 * printed.eq98(0, 4, (1.0, 0.2, 2.0))[1]


@PAPER.pin("eq98", number=3.7725938)
def eq98() -> float:
    return printed.eq98(2, 4, (1.1, 0.2, 2.0))[0] + 10 * printed.eq98(2, 4, (1.1, 0.2, 2.0))[1]


@PAPER.pin("eq99", number=0.022942006)
def eq99() -> float:
    return printed.eq99(3, 0.5, 0.1)


@PAPER.pin("eq115", number=0.045240837)
def eq115() -> float:
    return printed.eq115(3, 0.5, 0.1)


@PAPER.pin("eq17", number=1.1513113)
def eq17() -> float:
    return printed.eq17_rates(3, 0.25)[0] + 10 * printed.eq17_rates(3, 0.25)[1]


@PAPER.pin("eqs-94-121-122", number=0.18788618)
def eq94() -> float:
    students = np.array([[1.2, 0.3, 0.1], [0.3, 0.9, -0.2], [0.1, -0.2, 1.5]])
    overlaps = 0.4 * students + np.diag([0.1, 0.2, 0.3]) + 0.1 * np.triu(students, 1)
    return printed.eq94(students, overlaps, students[::-1, ::-1])


@PAPER.pin("eqs-94-121-122", number=0.12305941)
def eq121() -> float:
    return printed.eq121(3, 0.1, 0.2, 0.35, 0.7)


@PAPER.pin("eq74-worst-case", number=0.096049432)
def eq74() -> float:
    return printed.eq74(SPECTRUM, 3)


@PAPER.pin("eq74-worst-case", number=0.030313489)
def eq74_bound() -> float:
    return printed.eq74_bound(SPECTRUM, 3)


@PAPER.pin("eqs-18-19", number=0.97036417)
def eq18() -> float:
    return float(
        np.sum(printed.eq18(COVARIANCE[:2, :2], COVARIANCE[:2, 2:], TEACHERS[:2, :2], 0.3) * [[1.0, 2.0], [3.0, 4.0]])
    )


@PAPER.pin("eqs-18-19", number=0.73076942)
def eq19() -> float:
    return printed.eq19(COVARIANCE[:2, :2], COVARIANCE[:2, 2:], TEACHERS[:2, :2])


@PAPER.pin("eqs-25-41", number=-0.86)
def eq25() -> float:
    return printed.eq25(np.array([3.0, 1.5, 0.5]), np.array([1.0, 1.2, 2.0]), np.array([0.3, 0.1, 0.4]), 0.4)


@PAPER.pin("eqs-25-41", number=8.2107814)
def eq41() -> float:
    return float(
        printed.eq41(np.array([3.0, 1.5, 0.5]), np.array([1.0, 1.2, 2.0]), np.array([0.3, 0.1, 0.4]), 0.4, 0.5)
        @ [1.0, 2.0, 3.0]
    )


@PAPER.pin("eqs-71-78", number=0.35556258)
def eq78() -> float:
    return printed.eq78(SPECTRUM, 3, 0.8)


@PAPER.pin("eqs-100-114", number=0.038431565)
def eq100() -> float:
    return printed.eq100_rate(3, 2.5)


@PAPER.pin("eqs-100-114", number=0.001834251)
def eq114() -> float:
    return printed.eq114_rate(3, 0.1, 1.2, 0.3)


@PAPER.pin("feature-exponent", "eq74-worst-case", number=1.2952296)
def floors() -> float:
    return ov.laws.power_floor(SPECTRUM, 3, distance=1.3) + 10 * ov.laws.feature_floor(
        SPECTRUM, 3, rate=0.3, distance=1.3
    )


@PAPER.pin("eq6", "finite-rate", number=28.623719)
def errors() -> float:
    return float(
        ov.laws.linear_error(SPECTRUM, 0.3, [0.7], distance=1.3)[0]
        + 10 * ov.laws.small_rate_error(SPECTRUM, 0.3, [0.7], distance=1.3, trained=4)[0]
        + 100 * ov.laws.gamma_error(SPECTRUM, 0.3, [0.7], distance=1.3, trained=4)[0]
    )


@PAPER.pin("fig2-stability", number=14.521172)
def finite_size() -> float:
    return float(
        ov.laws.finite_size_error(SPECTRUM, 14, 0.3, [0.7], distance=1.3)[0] + 10 * ov.laws.critical_rate(SPECTRUM, 14)
    )


@PAPER.pin("eq17", number=0.63915827)
def late() -> float:
    return float(
        np.sum(
            ov.laws.decay_rates(committee(3, 0.6, 0.2, students=3, teachers=3, first_order=True))
            * [[1.0], [2.0], [3.0]]
        )
    )


@PAPER.pin("escape-time", "plateau-length", number=135.83882)
def plateau() -> float:
    return plateau_numbers()


@PAPER.pin("escape-drawn", number=0.0087304551)
def equal_rows() -> float:
    return float(
        np.sum(ov.laws.equal_rows(np.tensordot([0.6, 0.4], TEACHERS, 0)) * np.cos(np.arange(18.0)).reshape(2, 3, 3))
    )


@PAPER.pin("feature-exponent", number=0.23677106)
def random_basis() -> float:
    return ov.laws.random_basis_floor(SPECTRUM, 0.4, rate=0.2, distance=1.3)


@PAPER.pin("eq11", number=1.361814)
def late_times() -> float:
    return float(
        np.sum(
            ov.laws.gamma_error(SPECTRUM, 0.3, [1e-3, 0.05, 5.0, 50.0, 200.0], distance=1.3, trained=4)
            * [0.5, 0.7, 1.0, 3.0, 9.0]
        )
    )


@PAPER.pin("fig2-stability", number=0.32504037)
def finite_size_trained() -> float:
    return float(ov.laws.finite_size_error(SPECTRUM, 14, 0.3, [0.7], distance=1.3, trained=4)[0])


@PAPER.pin("eq17", number=0.62694622)
def late_unequal() -> float:
    return float(
        np.sum(
            ov.laws.decay_rates(committee(3, 0.6, 0.2, students=3, teachers=3, first_order=True), TEACHERS)
            * [[1.0], [2.0], [3.0]]
        )
    )


@PAPER.pin("worked-example", number=2748.9787)
def eq117() -> float:
    return printed.eq117(239.0, 2.47, 0.01, 7000)


@PAPER.pin("eq95", number=3.5972634)
def eq95() -> float:
    return float(printed.eq95(TEACHERS)[0] @ [1.0, 2.0, 3.0]) + 10 * printed.eq95(TEACHERS)[1]


# Numbers of independent routes: exp(A t) of the matrix A = −2 η ω + η² ω (φ ω)ᵀ of the levels' distances, the gamma
# function of the standard library, and averages of slopes on 80 × 80 nodes.
LATE, SHARES = (0.0, 0.1, 5.0, 60.0), (1.0, 1.0, 100.0, 1e5)


@PAPER.pin("eq6", "feature-exponent", number=1.0906155)
def unequal_distances() -> float:
    omega, phi = np.array(SPECTRUM.eigenvalues), np.array(SPECTRUM.fractions)
    modes = inner("laws.linear").modes
    return float(modes(omega, phi, 0.4, np.linspace(1.0, 2.8, 7), 0.0)([0.0, 0.7, 5.0]).sum())


@PAPER.pin("eq6", "finite-rate", number=6.877350348555357)
def late_errors() -> float:
    return float(ov.laws.linear_error(SPECTRUM, 0.4, LATE, distance=1.3) @ SHARES)


@PAPER.pin("eq6", number=6.877350348555357)
def late_modes() -> float:
    return float(ov.laws.linear_modes(SPECTRUM, 0.4, distance=1.3)(LATE) @ SHARES)


@PAPER.pin("linear-transition", "time-exponent-linear", number=107.91735)
def times_of_decay() -> float:
    return float(np.dot(ov.laws.window(SPECTRUM, 0.3), [1.0, 10.0, 100.0]))


@PAPER.pin("eq17", number=0.0078894657)
def slopes_of_teachers() -> float:
    problem = committee(3, 0.6, 0.2, students=3, teachers=3, first_order=True)
    apart = np.array([[0.03, 0.01, -0.02], [0.01, 0.05, 0.015], [-0.02, 0.015, 0.04]])
    return float(ov.laws.near_error(problem, TEACHERS + apart, TEACHERS, TEACHERS, order=1))


@PAPER.pin("eq6", number=114.22286)
def moment_modes() -> float:
    values, components = printed.moment_modes(SPECTRUM, 2, 0.4)
    return float(values @ np.arange(1.0, 8.0) + 10 * components @ np.arange(1.0, 8.0))


@PAPER.pin("eqs-25-41", number=0.96244019)
def companion() -> float:
    made = printed.companion(np.array([0.4, 0.9, 1.7]))
    return float(np.cos(np.arange(made.size)) @ made.ravel())


@PAPER.pin("eq96", number=3.9421878)
def eq96() -> float:
    R, Q = printed.eq96(TEACHERS, TEACHERS @ TEACHERS)
    return float(R @ [1.0, 2.0, 3.0]) + 10 * Q


@PAPER.pin("eq84", number=1.3847784)
def eq84() -> float:
    rest = np.array([0.3, -0.7]), np.array([1.1, 0.4])
    learnt = np.array([0.2, -0.5]), np.array([0.9, 0.6])
    return float(printed.eq84(COVARIANCE, learnt, rest, 0.8) @ [1.0, 2.0])


@PAPER.pin("fig2-stability", number=18.463431)
def critical_rates() -> float:
    """At infinite size 2 over the variance of the inputs, here 1.5; at N = 50 by the root of its condition."""
    return ov.laws.critical_rate(ov.Spectrum([3.0, 1.0, 0.5])) + 10 * ov.laws.critical_rate(SPECTRUM, 50)


@PAPER.pin("finite-rate", number=2.3178461)
def many_times() -> float:
    """The modes at 40 times, against the contour of `linear_error`."""
    return float(ov.laws.linear_modes(SPECTRUM, 0.4, distance=1.3)(np.linspace(0, 20, 40)).sum())


@PAPER.pin("eq17", number=4.3925991e-05)
def curvature_at_teachers() -> float:
    """Of second order in what students and unequal teachers differ by, as the exact error is there."""
    problem = committee(3, 0.6, 0.2, students=3, teachers=3, first_order=True)
    apart = np.array([[0.03, 0.01, -0.02], [0.015, 0.05, 0.02], [-0.03, 0.005, 0.04]])
    Q = TEACHERS + apart + apart.T + 0.7 * apart @ apart.T
    return float(ov.laws.near_error(problem, Q, TEACHERS + apart, TEACHERS))


@PAPER.pin("eq17", number=4.3449299)
def inputs_of_other_variance() -> float:
    """The slow and ten times the fast rate of typical teachers of length 1.5, η = .25, M = 2, at eigenvalue 3."""
    problem = replace(committee(3, 0.6, 0.25, students=2, teachers=2), data=ov.GaussianInputs(ov.Spectrum([3, 1, 0.5])))
    return float(ov.laws.decay_rates(problem)[0] @ [1.0, 10.0])


@PAPER.pin("feature-exponent", number=0.51390806)
def floor_at_a_rate() -> float:
    """κ with Σ φ ω/(ω + κ) = .4, and with the noise that the unread inputs of variance 1.5 are at rate .3."""
    return ov.laws.random_basis_floor(ov.Spectrum([3.0, 1.0, 0.5]), 0.4, rate=0.3, distance=1.3)


@PAPER.pin("escape-time", "escape-drawn", number=685.66328)
def eq15_of_other_lengths() -> float:
    """T of neither one, M = 4, and D apart from both, by hand."""
    return printed.eq15(4, 0.1, (1.3, 0.2), (1.6, 0.35))
