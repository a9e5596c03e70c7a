"""Orthants of up to four Gaussian fields with means, against nested half-lines and SciPy, also where fields align.

Seeds are fixed and nothing is drawn but parameters; tolerances are rounding, or what a rule states of itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr, owens_t
from scipy.stats import multivariate_normal as _multivariate_normal

from gaussian import RULE, apart, half_lines, nudged, panels, positive_four
from overlaps.averages import ClosedForm, bivariate, orthant, orthant_shifted, relu, relu_shifted
from overlaps.averages.frame import frame
from overlaps.averages.result import Averages
from problems import random_covariance

multivariate_normal: Any = _multivariate_normal  # its stub takes covariances for whole numbers


# --- two fields ------------------------------------------------------------------------------------------------------


def by_owen(h: float, k: float, r: float) -> float:
    """P(h + x > 0, k + y > 0) from Owen's T, its arguments without cancellation."""
    side = 1.0 if r > 0 else -1.0
    root = math.sqrt((1 - r) * (1 + r))

    def slope(a: float, b: float) -> float:  # (b − r a)/(a √(1 − r²))
        return ((b - side * a) + side * (1 - abs(r)) * a) / (a * root)

    below = 0.5 if h * k < 0 else 0.0
    return 0.5 * (ndtr(h) + ndtr(k)) - owens_t(h, slope(h, k)) - owens_t(k, slope(k, h)) - below


@pytest.mark.parametrize("scale", [0.01, 1.0, 6.0])
@pytest.mark.parametrize("kind", ["any", "aligned", "aligned with close means"])
def test_two_positive_fields(kind: str, scale: float) -> None:
    rng = np.random.default_rng([len(kind), int(100 * scale)])
    for _ in range(500):
        h, k = scale * rng.standard_normal(2)
        r = rng.uniform(-1, 1)
        if kind != "any":
            r = math.copysign(1 - 10 ** rng.uniform(-12, -1), r)
        if kind == "aligned with close means":
            k = math.copysign(1, r) * h + 10 ** rng.uniform(-6, 0) * rng.standard_normal()
        ours = bivariate.both_positive(h, k, r, (1 - r) * (1 + r))
        # Owen's T itself is good to 1e-15, and its slope to 1e-16 of itself
        assert ours == pytest.approx(by_owen(h, k, r), abs=3e-15)
        assert bivariate.sign_covariance(h, k, r) == pytest.approx(ours - ndtr(h) * ndtr(k), abs=1e-15)


def test_two_positive_fields_of_scipy() -> None:
    for h, k, r in ((0.3, -1.2, 0.5), (1.5, 0.4, -0.97), (-2.0, -1.0, 0.2), (0.5, 0.7, 0.99)):
        theirs = multivariate_normal.cdf([h, k], cov=[[1, r], [r, 1]], abseps=1e-12, releps=1e-12)
        assert bivariate.both_positive(h, k, r, 1 - r * r) == pytest.approx(theirs, abs=1e-12)


def test_two_fields_that_are_one_or_opposite() -> None:
    for h, k in ((0.3, -0.4), (1.0, 1.0), (-0.2, 0.1), (-8.0, 12.0), (30.0, 50.0)):
        assert bivariate.both_positive(h, k, 1.0, 0.0) == pytest.approx(ndtr(min(h, k)), abs=3e-16)
        assert bivariate.both_positive(h, k, -1.0, 0.0) == pytest.approx(max(0.0, ndtr(h) - ndtr(-k)), abs=3e-16)


# --- up to four fields -----------------------------------------------------------------------------------------------


def rows_of(C: np.ndarray, mean: np.ndarray) -> np.ndarray:
    return relu_shifted.fields(C, mean)[0]


@pytest.mark.parametrize("scale", [0.0, 0.5, 2.0, 6.0])
def test_four_positive_fields(scale: float) -> None:
    """Plackett's integral, its choice of blocks and the moment recursion, for means of up to six deviations."""
    rng = np.random.default_rng(int(10 * scale))
    for _ in range(6):
        C, mean = random_covariance(rng, 4), scale * rng.uniform(-1, 1, 4)
        mean *= np.sqrt(np.diag(C))
        Y, s = relu_shifted.fields(C, mean)
        chance, moment = positive_four(C, mean, half_lines(np.array(-mean[0] / math.sqrt(C[0, 0])), 28), 28)
        assert orthant_shifted.probability(Y, np.arange(4), *RULE) == pytest.approx(chance, abs=1e-11)
        A, B = (np.append(s[i] * Y[i, :4], mean[i]) for i in (2, 3))
        size = max(1.0, abs(mean[2] * mean[3]))
        for order in ([0, 1, 2, 3], [3, 1, 0, 2], [2, 3, 1, 0]):
            ours = orthant_shifted.product(A, B, Y, np.array(order), *RULE)
            assert ours == pytest.approx(moment, abs=1e-11 * size)


def test_orthants_of_scipy() -> None:
    """Three and four fields; SciPy's points are random, so it is asked for 1e-6 and given ten times that."""
    rng = np.random.default_rng(2)
    for n in (3, 4, 3, 4):
        C, mean = random_covariance(rng, n), rng.standard_normal(n)
        theirs = multivariate_normal(mean=-mean, cov=C, maxpts=10**6, abseps=1e-6, releps=0, seed=1).cdf(np.zeros(n))
        assert orthant_shifted.probability(rows_of(C, mean), np.arange(n), *RULE) == pytest.approx(theirs, abs=1e-5)


def test_orthants_of_mean_zero() -> None:
    """Equal correlations 1/2 make 1/(n+1), and any correlations what the formulas for mean zero make."""
    half = np.full((4, 4), 0.5) + 0.5 * np.eye(4)
    rng = np.random.default_rng(3)
    for n in (1, 2, 3, 4):
        some = np.arange(n)
        rows = rows_of(half[:n, :n], np.zeros(n))
        assert orthant_shifted.probability(rows, some, *RULE) == pytest.approx(1 / (n + 1), abs=1e-14)
        for _ in range(5):
            C = random_covariance(rng, n)
            R, _ = relu.correlations(C)
            ours = orthant_shifted.probability(rows_of(C, np.zeros(n)), some, *RULE)
            assert ours == pytest.approx(orthant.probability(R, some, *RULE), abs=1e-13)


def nearly(rng: np.random.Generator, rest: float, sign: float, common: bool) -> tuple[np.ndarray, np.ndarray]:
    """Unit fields, the first with correlation ±(1 − rest) to the last; means that are as close, or are not."""
    rows, means = rng.standard_normal((4, 6)), 1.5 * rng.standard_normal(4)
    rows /= np.linalg.norm(rows, axis=1)[:, None]
    across = rng.standard_normal(6)
    across -= rows[0] * (across @ rows[0])
    across /= np.linalg.norm(across)
    rows[3] = sign * ((1 - rest) * rows[0] + math.sqrt(rest * (2 - rest)) * across)
    if common:
        means[3] = sign * means[0] + math.sqrt(2 * rest) * rng.standard_normal()
    return rows @ rows.T, means


@pytest.mark.parametrize("common", [True, False])
@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("rest", [1e-2, 1e-4, 1e-7, 1e-10])
def test_nearly_aligned_fields(rest: float, sign: float, common: bool) -> None:
    """The aligned pair is a block of its own, so the path does not notice.

    Reference: the aligned fields are h_0 and σ z_3 + …; with h_3 last, done analytically, the integrand over h_0 has a
    layer at the cut of h_3, where its panels are made to meet.
    """
    for seed in range(4):
        C, mean = nearly(np.random.default_rng(seed), rest, sign, common)
        Y, s = relu_shifted.fields(C, mean)
        A, B = (np.append(s[i] * Y[i, :4], mean[i]) for i in (2, 3))
        ours = orthant_shifted.product(A, B, Y, np.arange(4), *RULE)
        assert ours == pytest.approx(layered(C, mean), abs=2e-10 + 1e-15 / math.sqrt(rest))


def layered(C: np.ndarray, mean: np.ndarray) -> float:
    """E[h_2 h_3 1(h > 0)] for h_3 nearly ± h_0: panels of z_0 crowd around the place where h_3 changes sign."""
    L = np.linalg.cholesky(C)
    width = math.hypot(L[3, 1], L[3, 2], L[3, 3])
    low, middle = -mean[0] / L[0, 0], -mean[3] / L[3, 0]
    steps = np.concatenate([[0.0], width * np.geomspace(0.5, 64, 8), [0.3, 1, 3]])
    edges = np.unique(np.clip(np.concatenate([[low, 9.0], middle - steps, middle + steps]), max(low, -9.0), 9.0))
    if edges.size < 2:
        return 0.0
    return positive_four(C, mean, panels(edges, 20), 20)[1]


def arrangements(rng: np.random.Generator, distance: float) -> Iterator[tuple[str, np.ndarray]]:
    """Directions, and as a last column means, of two students and two teachers, `distance` from a singular place."""
    rows, nudge = rng.standard_normal((2, 4, 7)) / math.sqrt(6)
    _, second, third, fourth = rows
    places = {
        "student on teacher": {0: third},
        "equal students": {0: second},
        "student opposite to teacher": {0: -third},
        "student in the plane of two": {0: third - second},
        "both learnt": {0: third, 1: fourth},
        "all in one plane": {0: third + 0.5 * fourth, 1: fourth - 0.3 * third},
        "both on one teacher": {0: third, 1: third},
        "all on one line": {0: third, 1: -third, 3: 2 * third},
        "all one": {0: 0.5 * third, 1: 1.5 * third, 3: third},
    }
    return nudged(rows, nudge, distance, places)


@pytest.mark.parametrize("with_means", [True, False])
def test_relu_is_continuous_at_singular_covariances(with_means: bool) -> None:
    """Terms of order one that cancel between orders of conditioning only if they belong to one covariance.

    All averages but D, which jumps where a step meets another, are Lipschitz in the fields, with constants of order ten
    here; a direction that rounding took from a field is worth 1e-8.
    """
    for seed in range(6):
        v, u = np.random.default_rng(seed).standard_normal((2, 2))
        how = ClosedForm("relu", u, 0.0)

        def at(distance: float, seed: int = seed, v: np.ndarray = v, how: ClosedForm = how) -> dict[str, Averages]:
            found = arrangements(np.random.default_rng(100 + seed), distance)
            return {name: how.each((x[:, :6] @ x[:, :6].T)[None], v, with_means * x[:, 6:])[0] for name, x in found}

        here = at(0.0)
        for distance in (1e-12, 1e-9, 1e-8, 3e-8, 1e-7, 1e-5):
            for name, there in at(distance).items():
                moved = apart(here[name], there, ("S", "dv", "error", "E"))
                assert moved <= 100 * distance + 1e-7, (name, distance, seed)


def test_fields_that_are_one_or_opposite() -> None:
    """h_3 = h_0 + c or c − h_0 exactly: its sign is implied, or cuts an interval out of h_0."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        C, mean = np.empty((4, 4)), np.append(rng.standard_normal(3), 0.0)
        C[:3, :3] = random_covariance(rng, 3)
        for sign, c in product((1.0, -1.0), (-0.6, 0.0, 0.8)):
            C[3, :3] = C[:3, 3] = sign * C[0, :3]
            C[3, 3], mean[3] = C[0, 0], sign * mean[0] + c
            shifted = mean.copy()  # where h_3 = 0, as a cut of h_0
            shifted[0] += sign * c

            def moment(at: np.ndarray, some: list[int], C: np.ndarray = C, mean: np.ndarray = mean) -> float:
                Y, s = relu_shifted.fields(C, at)
                A, B = (np.append(s[i] * Y[i, :4], mean[i]) for i in (1, 3))
                return orthant_shifted.product(A, B, Y, np.array(some), *RULE)

            ours, own, cut = moment(mean, [0, 1, 2, 3]), moment(mean, [0, 1, 2]), moment(shifted, [0, 1, 2])
            expected = (own if c >= 0 else cut) if sign > 0 else (own - cut if c > 0 else 0.0)
            assert ours == pytest.approx(expected, abs=3e-8), (seed, sign, c)


@pytest.mark.parametrize("noise", [0.0, 1e-10, 1e-7])
def test_vectors_have_the_correlations_they_were_made_from(noise: float) -> None:
    """Short pivots, of rounding or of a matrix that is not quite positive, must not spoil what comes after them."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        for distance in (0.0, 1e-9, 1e-8, 3e-8, 1e-7):
            for _, rows in arrangements(rng, distance):
                R, _ = relu.correlations(rows @ rows.T)
                R += np.triu(noise * rng.standard_normal((4, 4)), 1)
                R = np.triu(R) + np.triu(R, 1).T
                X = frame(R)
                # noise may take a field's distance from the others altogether
                allowed = 2e-8 + 20 * noise + (2 * distance if noise else 0.0)
                np.testing.assert_allclose(X @ X.T, R, rtol=0, atol=allowed)


def test_mean_zero_four_fields_in_one_plane() -> None:
    """Both students in the plane of their teachers, where each field is implied by any two others.

    In the plane E[1 1 h_2 h_3] = (1/π) ∫ (n_2·e)(n_3·e) over the angles at which all four n·e are positive.
    """
    for seed in range(40):
        n = np.random.default_rng(seed).standard_normal((4, 2))
        n[0], n[1] = n[2] + 0.5 * n[3], n[3] - 0.3 * n[2]
        angles = np.arctan2(n[:, 1], n[:, 0])
        edges = np.sort(np.mod(np.concatenate([angles + np.pi / 2, angles - np.pi / 2]), 2 * np.pi))
        expected = 0.0
        for low, high in zip(edges, np.append(edges[1:], edges[0] + 2 * np.pi), strict=True):
            middle = np.array([math.cos((low + high) / 2), math.sin((low + high) / 2)])
            if np.all(n @ middle > 0):
                x, w = np.polynomial.legendre.leggauss(12)
                t = (high + low) / 2 + (high - low) / 2 * x
                e = np.stack([np.cos(t), np.sin(t)])
                expected += (high - low) / 2 * float(w @ ((n[2] @ e) * (n[3] @ e))) / math.pi
        C = n @ n.T
        R, s = relu.correlations(C)
        assert s[2] * s[3] * relu.four(R, 0, 1, 2, 3, *RULE) == pytest.approx(expected, abs=1e-7)
        A, B = (np.append(s[i] * rows_of(C, np.zeros(4))[i, :4], 0.0) for i in (2, 3))
        ours = orthant_shifted.product(A, B, rows_of(C, np.zeros(4)), np.arange(4), *RULE)
        assert ours == pytest.approx(expected, abs=1e-7)
