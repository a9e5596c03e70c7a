"""Formulas as printed, and laws that correct them, at general numbers, M = 3 or more: a slip in one of them shows."""

from __future__ import annotations

import numpy as np

import overlaps as ov

from . import printed
from .model import problem, start
from .paper import PAPER

FIELDS = np.array([[1.0, 0.2, 0.1, -0.3], [0.2, 1.3, 0.25, 0.15], [0.1, 0.25, 0.9, 0.2], [-0.3, 0.15, 0.2, 1.1]])
RHO = np.array([0.3, 0.8, 1.9])
OVERLAPS = np.cos(np.arange(12.0)).reshape(2, 2, 3)
AT = printed.Rotated(RHO, OVERLAPS, OVERLAPS**2, 1 + OVERLAPS, np.eye(2))


@PAPER.pin("eq-S37", number=9.1596908)
def eq_s37() -> float:
    return float(printed.eq_s37(AT).ravel() @ [1.0, 2.0, 3.0, 4.0])


@PAPER.pin("eq-S39", number=-0.62819607)
def eq_s39() -> float:
    return float(printed.eq_s39(AT, 0.8, 0.5).ravel() @ [1.0, 2.0, 3.0, 4.0])


@PAPER.pin("eq-S40", number=4.1101873)
def density() -> float:
    return float(np.sum(printed.density(RHO, 0.5))) + sum(printed.support(0.3))


@PAPER.pin("eqs-S41-S48", number=0.8199743)
def fractions() -> float:
    return float(
        printed.fractions("relu", FIELDS, np.array([0.7, -0.4]), np.array([1.1, 0.6])).ravel() @ np.arange(8.0)
    )


@PAPER.pin("eq-18", number=0.64621833)
def eq_18() -> float:
    return abs(printed.eq_18([0.3, 0.5, 0.9], [0.5, 0.3, 0.2])) + printed.eq_18([0.3, 0.5], [0.5, 0.3]).imag


@PAPER.pin("lemma-V.1", number=-0.559)
def eq_21() -> float:
    return printed.eq_21(np.array([0.2, 0.5, 0.3]), np.array([1.0, -2.0, 0.5]), np.array([0.3, 0.4, 2.0]))


@PAPER.pin("tables-level", "tables-alpha", "tables-symmetry", number=29.609)
def tables() -> float:
    return float(np.sum(np.array(list(printed.TABLES.values())) * np.arange(1.0, 11.0)))


@PAPER.pin("eqs-S41-S48", number=1.22)
def pair() -> float:
    """E x²y² = C₁₁ C₂₂ + 2 C₁₂² of a pair of Gaussian variables."""
    x, y, weights = printed.pair(np.array([[0.8, 0.3], [0.3, 1.3]]))
    return float(weights @ (x**2 * y**2))


@PAPER.pin("tables-level", "tables-symmetry", number=0.098956662)
def table() -> float:
    found = printed.table("relu")
    return float(
        sum(np.sum(values * np.cos(np.arange(values.size)).reshape(values.shape)) for values in found.values())
    )


@PAPER.pin("eqs-S41-S48", "eq-S42", number=-1.9573396)
def solve() -> float:
    """Overlaps and error after a short time at N = 12, and the overlaps of the start for each eigenvalue."""
    task = problem("erf")
    begin = start(task, 12, seed=2)
    theory = ov.solve(task, begin, [0.5])
    at = printed.rotated(task, begin)
    found = printed.solve(theory, c=0.9, t=at.t)
    overlaps = (found.data[name].values.ravel() for name in ("Q", "R", "v", "error"))
    numbers = np.concatenate([*overlaps, at.r.sum(2).ravel(), at.sigma.mean(2).ravel(), at.rho])
    return float(np.cos(np.arange(numbers.size)) @ numbers)


@PAPER.pin("eqs-S41-S48", "eq-26", number=0.31514004)
def pair_with_means() -> float:
    """E max(x, 0) max(y, 0), against the closed form of the mean over y, integrated over x."""
    x, y, weights = printed.pair(np.array([[0.8, 0.3], [0.3, 1.7]]), (0.4, -0.3))
    return float(weights @ (np.maximum(x, 0) * np.maximum(y, 0)))


@PAPER.pin("eqs-S41-S48", "eq-26", number=0.031779375)
def pair_far_from_zero() -> float:
    """The same with means that are many standard deviations from where the functions have kinks."""
    x, y, weights = printed.pair(np.array([[0.8, 0.3], [0.3, 1.7]]), (6.0, -3.0))
    return float(weights @ (np.maximum(x, 0) * np.maximum(y, 0)))
