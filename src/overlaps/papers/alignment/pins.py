"""Formulas as printed, and laws that correct them, at general numbers, M = 3 or more: a slip in one of them shows."""

from __future__ import annotations

import math

import numpy as np

import overlaps as ov

from ..controls import inner
from . import printed
from .gradient_claims import wave
from .model import setting
from .paper import PAPER

MATRIX = np.array([[0.3, -1.2, 0.5], [0.7, 0.1, -0.4], [-0.6, 0.9, 1.1]])


@PAPER.pin("theorem-H.5", number=3.294)
def eq48() -> float:
    return printed.eq_48(3, 5, 1.7, 0.8, 0.5) + 10 * printed.eq_48(4, 4, 1.7, 0.8, 0.5)


@PAPER.pin("eq-49", number=1.2776213)
def eq49() -> float:
    return printed.eq_49(0.7, 1.7)


@PAPER.pin("theorem-H.10", number=-4.4463772)
def eq61() -> float:
    return printed.eq_61(2, 3, [[1.7, 0.5], [0.5, 0.8]], (0.3, -0.6))


@PAPER.pin("eqs-69-70", number=0.0024391246)
def eq69() -> float:
    return printed.eq_69(2, 2, [0.5, -0.3, 0.8], [1.0, 2.0, 0.4])


@PAPER.pin("eq-71", number=7.9424867)
def eq65() -> float:
    return printed.eq_65(5, 0.7, 1.3) + 100 * printed.eq_65(4, 0.7, 1.3, factor=False)


@PAPER.pin("eq-72", number=2.2755556)
def eq72() -> float:
    return printed.eq_72(6, 5, 1.5)


@PAPER.pin("unseen-generator", number=0.25619835)
def unseen_points() -> float:
    return float(printed.unseen_points(MATRIX, np.array([0.5, -0.2, 0.9]))[0] @ [1.0, 2.0, 3.0])


@PAPER.pin("theorem-H.5", "theorem-H.10", number=21.098609)
def hermite_product() -> float:
    return ov.giant_step.hermite_product(
        3, 5, [[1.7, 0.5], [0.5, 0.8]], (0.3, -0.6)
    ) + 10 * ov.giant_step.hermite_product(4, 4, [[1.7, 0.5], [0.5, 0.8]], (0.3, -0.6))


@PAPER.pin("rotations", number=0.17724785)
def rotation() -> float:
    return float(printed.rotation(MATRIX, 0.4)[0] @ [1.0, 2.0, 3.0])


@PAPER.pin("theorem-H.5", "theorem-H.10", number=-1.0)
def first_degree_that_is_not_exact() -> float:
    """x^40 of a rule of 20 nodes falls short of 39!! by 20!."""
    exact = float(np.prod(np.arange(1.0, 40.0, 2.0)))
    return float(printed.average(lambda x, y: x**40, np.eye(2)) - exact) / math.factorial(20)


@PAPER.pin("theorem-H.5", "eqs-69-70", number=-1.125)
def hermite() -> float:
    """He_3(x) = x^3 - 3 x."""
    return float(printed.hermite(3, np.array(1.5)))


@PAPER.pin("eqs-69-70", number=0.0709040625)
def sphere_of_two() -> float:
    """E (w.mu)^4 (w Sigma w)^3 on the circle, against a mean over its angle."""
    return ov.giant_step.sphere_moment(4, 3, [0.5, -0.3], [[1.0, 0.4], [0.4, 2.0]])


@PAPER.pin("theorem-H.10", number=0.343)
def hermite_of_unit_variance() -> float:
    """E H_3 of a normal variable of variance one and mean .7 is .7^3."""
    return float(ov.giant_step.hermite_mean(3, 0.7, 1.0))


@PAPER.pin("windows", number=0.5)
def centred_unit() -> float:
    """The first two Hermite coefficients of a centred ReLU unit, of which that of its mean is zero."""
    return float(ov.giant_step.hermite_coefficients(ov.giant_step.centred("relu"), 1).c.sum())


# Numbers of independent routes: quadrature over Gaussian variables, in place of moments, and over points of a class.


@PAPER.pin("theorem-H.5", "eq-79", "windows", number=0.127754212)
def expansion_of_tanh() -> float:
    c = ov.giant_step.hermite_coefficients("tanh", 7).c
    return float(c @ [1.0, 1.0, 10.0, 10.0, 100.0, 100.0, 1000.0, 1000.0])


@PAPER.pin("eq-79", "finite-order", number=0.661560654)
def points_near_the_sphere() -> float:
    """ξ/√(|ξ|² + d − r − 2) of two points, r = 2, d = 9."""
    on_sphere = inner("giant_step.sphere").on_sphere
    return float([1.0, 2.0] @ on_sphere(np.array([[0.3, -1.2], [0.8, 0.5]]), 9) @ [1.0, 2.0])


@PAPER.pin("eq-72", number=0.456975)
def moment_of_three() -> float:
    """E x² y³ z."""
    covariance = [[1.2, 0.3, -0.2], [0.3, 0.9, 0.4], [-0.2, 0.4, 1.1]]
    return ov.giant_step.gaussian_moment([2, 3, 1], covariance, (0.3, -0.5, 0.7))


@PAPER.pin("eq-79", "finite-order", number=2.979004787)
def polynomials_of_third_order() -> float:
    """Alignment, and elasticity, of tanh, and of a centred sine, which has a c_2."""
    total, scores = 0.0, inner("giant_step.polynomials").polynomial_scores
    at = [np.array([x]) for x in (1.3, 0.8, 0.6)]
    for name in ("tanh", wave()):
        task = setting("sphere", 256, exponent=0.1, rate=0.7, activation=name)
        _, alignment, elasticity = scores(task, *at, 3, np.array([0.04]))
        total += float(alignment[0] + elasticity[0])
    return total
