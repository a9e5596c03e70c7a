"""Closed forms of the square loss for fields with means, against integrals that share nothing with them.

Smooth integrands are compared with tensor Gauss-Hermite rules, orthants with nested half-lines of which the last is
done analytically, everything together with the quadrature of any loss. Tolerances are those of the reference: rounding
where it is exact, what a rule states of itself elsewhere. Seeds are fixed and nothing is drawn but parameters, except
in one comparison with Monte Carlo at five standard errors: 24 entries, 2e-5 false alarms if seeds were free.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.special import erf as error_function
from scipy.special import ndtr, owens_t
from scipy.stats import multivariate_normal as _multivariate_normal

import overlaps as ov
from overlaps.averages import (
    ClosedForm,
    bivariate,
    erf,
    erf_shifted,
    method_for,
    orthant,
    orthant_shifted,
    relu,
    relu_shifted,
)
from overlaps.averages.frame import frame
from overlaps.averages.quadrature import FieldRule, LossQuadrature
from overlaps.averages.result import Averages, over_components
from overlaps.averages.rules import unit_rule
from problems import problem, random_covariance

NAMES = ("D", "S", "dv", "error", "E")
RULE = unit_rule(40)
multivariate_normal: Any = _multivariate_normal  # its stub takes covariances for whole numbers
FACTOR = 3.0  # an accuracy that is a difference of two rules is now and then too small


def taught(
    activation: str, students: int = 2, teachers: int = 2, means: int = 2, variance=(0.7, 1.3), **rest
) -> ov.Problem:
    """Student and teacher committees on a mixture."""
    return ov.Problem(
        data=ov.GaussianMixture(means=means, variance=variance, weights=[0.3, 0.7] if means == 2 else None),
        teacher=ov.Committee(teachers, activation),
        student=ov.Committee(students, activation, train_readout=True),
        algorithm=ov.OnlineSGD(0.5),
        **rest,
    )


def apart(a: Averages, b: Averages, names: tuple[str, ...] = NAMES) -> float:
    return max(float(np.abs(np.asarray(getattr(a, n)) - getattr(b, n)).max()) for n in names)


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


def half_lines(cut: np.ndarray, nodes: int, end: float = 9.0) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre nodes beyond `cut`, to nine standard deviations, and weights with the normal density."""
    cut = np.clip(cut, -end, end)[..., None]
    x, w = np.polynomial.legendre.leggauss(nodes)
    z, weight = [], []
    for low, high in ((cut, (cut + end) / 2), ((cut + end) / 2, np.full_like(cut, end))):
        z.append((high + low) / 2 + (high - low) / 2 * x)
        weight.append((high - low) / 2 * w)
    points = np.concatenate(z, -1)
    return points, np.concatenate(weight, -1) * np.exp(-0.5 * points**2) / math.sqrt(2 * math.pi)


def orthant_by_panels(C: np.ndarray, mean: np.ndarray, nodes: int = 28) -> tuple[float, float]:
    """P(h > 0) of four fields and E[h_2 h_3 1(h > 0)]: three nested half-lines, the last field analytically."""
    L = np.linalg.cholesky(C)
    z0, w0 = half_lines(np.array(-mean[0] / L[0, 0]), nodes)
    z1, w1 = half_lines(-(mean[1] + L[1, 0] * z0) / L[1, 1], nodes)
    base = mean[2] + L[2, 0] * z0[:, None] + L[2, 1] * z1
    z2, w2 = half_lines(-base / L[2, 2], nodes)
    third = base[..., None] + L[2, 2] * z2
    at = mean[3] + (L[3, 0] * z0[:, None] + L[3, 1] * z1)[..., None] + L[3, 2] * z2
    spread = L[3, 3]
    last = at * ndtr(at / spread) + spread * np.exp(-0.5 * (at / spread) ** 2) / math.sqrt(2 * math.pi)
    weight = w0[:, None, None] * w1[..., None] * w2
    return float((weight * ndtr(at / spread)).sum()), float((weight * third * last).sum())


@pytest.mark.parametrize("scale", [0.0, 0.5, 2.0, 6.0])
def test_four_positive_fields(scale: float) -> None:
    """Plackett's integral, its choice of blocks and the moment recursion, for means of up to six deviations."""
    rng = np.random.default_rng(int(10 * scale))
    for _ in range(6):
        C, mean = random_covariance(rng, 4), scale * rng.uniform(-1, 1, 4)
        mean *= np.sqrt(np.diag(C))
        Y, s = relu_shifted.fields(C, mean)
        chance, moment = orthant_by_panels(C, mean)
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


def layered(C: np.ndarray, mean: np.ndarray, nodes: int = 20) -> float:
    """E[h_2 h_3 1(h > 0)] for h_3 nearly ± h_0: panels of z_0 crowd around the place where h_3 changes sign."""
    L = np.linalg.cholesky(C)
    width = math.hypot(L[3, 1], L[3, 2], L[3, 3])
    low, middle = -mean[0] / L[0, 0], -mean[3] / L[3, 0]
    steps = np.concatenate([[0.0], width * np.geomspace(0.5, 64, 8), [0.3, 1, 3]])
    edges = np.unique(np.clip(np.concatenate([[low, 9.0], middle - steps, middle + steps]), max(low, -9.0), 9.0))
    if edges.size < 2:
        return 0.0
    x, w = np.polynomial.legendre.leggauss(nodes)
    z0 = ((edges[1:] + edges[:-1])[:, None] + np.diff(edges)[:, None] * x).ravel() / 2
    w0 = (np.diff(edges)[:, None] / 2 * w).ravel() * np.exp(-0.5 * z0**2) / math.sqrt(2 * math.pi)
    z1, w1 = half_lines(-(mean[1] + L[1, 0] * z0) / L[1, 1], nodes)
    base = mean[2] + L[2, 0] * z0[:, None] + L[2, 1] * z1
    z2, w2 = half_lines(-base / L[2, 2], nodes)
    third = base[..., None] + L[2, 2] * z2
    at = mean[3] + (L[3, 0] * z0[:, None] + L[3, 1] * z1)[..., None] + L[3, 2] * z2
    last = at * ndtr(at / L[3, 3]) + L[3, 3] * np.exp(-0.5 * (at / L[3, 3]) ** 2) / math.sqrt(2 * math.pi)
    return float(np.einsum("i,ij,ijk,ijk->", w0, w1, w2, third * last))


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
    for name, change in places.items():
        moved = rows.copy()
        for k, row in change.items():
            moved[k] = row + distance * nudge[k]
        yield name, moved


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


# --- all averages of one component -----------------------------------------------------------------------------------


def hermite(d: int, nodes: int) -> tuple[np.ndarray, np.ndarray]:
    x, w = np.polynomial.hermite_e.hermegauss(nodes)
    return np.array(list(product(x, repeat=d))), np.prod(np.array(list(product(w / w.sum(), repeat=d))), axis=1)


@pytest.mark.parametrize("scale", [0.3, 2.0])
@pytest.mark.parametrize("activation", ["erf", "linear"])
def test_smooth_averages_by_gauss_hermite(activation: str, scale: float) -> None:
    """Every entry, with the second derivative written out instead of Stein's lemma."""
    g, slope, bend = {
        "erf": (
            lambda h: error_function(h / math.sqrt(2)),
            lambda h: math.sqrt(2 / math.pi) * np.exp(-0.5 * h * h),
            lambda h: -math.sqrt(2 / math.pi) * h * np.exp(-0.5 * h * h),
        ),
        "linear": (lambda h: h, np.ones_like, np.zeros_like),
    }[activation]
    rng = np.random.default_rng(int(10 * scale))
    z, weight = hermite(4, 22)
    C, mean = random_covariance(rng, 4, 0.3), scale * rng.standard_normal(4)
    v, u, noise = rng.standard_normal(2), rng.standard_normal(2), 0.4
    w = np.concatenate([v, -u])
    ours = ClosedForm(activation, u, noise).each(C[None], v, mean[:, None])[0]
    h = mean + z @ np.linalg.cholesky(C).T
    delta = g(h) @ w
    first, second = slope(h), bend(h)
    students = v * first[:, :2]
    D = (students * weight[:, None]).T @ (w * first)
    D[:, :2] += np.diag(v * ((second[:, :2] * (weight * delta)[:, None]).sum(0)))
    S = (students * (weight * (delta**2 + noise**2))[:, None]).T @ students
    theirs = Averages(
        D, S, (weight * delta) @ g(h)[:, :2], 0.5 * float(weight @ delta**2), ((weight * delta) @ students)[:, None]
    )
    assert apart(ours, theirs) < (1e-8 if activation == "erf" else 1e-12 * np.abs(S).max())


def relu_by_panels(C: np.ndarray, mean: np.ndarray, v: np.ndarray, u: np.ndarray, nodes: int = 22) -> Averages:
    """S, dv, error and E of two students and two teachers; both sides of every kink, the last teacher analytically."""
    L = np.linalg.cholesky(C)
    z, weight = np.zeros((1, 0)), np.ones(1)
    for j in range(3):
        cut = -(mean[j] + z @ L[j, :j]) / L[j, j]
        up, w_up = half_lines(cut, nodes)
        down, w_down = half_lines(-cut, nodes)
        here, w = np.concatenate([up, -down], 1), np.concatenate([w_up, w_down], 1)
        z = np.concatenate([np.repeat(z, here.shape[1], 0), here.reshape(-1, 1)], 1)
        weight = np.repeat(weight, here.shape[1]) * w.ravel()
        z, weight = z[weight > 1e-18], weight[weight > 1e-18]
    h = mean[:3] + z @ L[:3, :3].T
    at, spread = mean[3] + z @ L[3, :3], L[3, 3]
    density, chance = np.exp(-0.5 * (at / spread) ** 2) / math.sqrt(2 * math.pi), ndtr(at / spread)
    last, last_square = at * chance + spread * density, (at**2 + spread**2) * chance + at * spread * density
    known = np.maximum(h[:, :2], 0) @ v - u[0] * np.maximum(h[:, 2], 0)
    delta, square = known - u[1] * last, known**2 - 2 * u[1] * known * last + u[1] ** 2 * last_square
    slopes = v * (h[:, :2] > 0)
    S = (slopes * (weight * square)[:, None]).T @ slopes
    dv = (weight * delta) @ np.maximum(h[:, :2], 0)
    return Averages(np.zeros((2, 4)), S, dv, 0.5 * float(weight @ square), ((weight * delta) @ slopes)[:, None])


@pytest.mark.parametrize("scale", [0.2, 1.0, 3.0])
def test_relu_averages_by_panels(scale: float) -> None:
    """The sorting of Δ² by sets of positive fields, and the pair averages."""
    rng = np.random.default_rng(int(10 * scale))
    C, mean = random_covariance(rng, 4), scale * rng.standard_normal(4)
    v, u = rng.standard_normal(2), rng.standard_normal(2)
    ours = ClosedForm("relu", u, 0.0).each(C[None], v, mean[:, None])[0]
    assert apart(ours, relu_by_panels(C, mean, v, u), ("S", "dv", "error", "E")) < 1e-9 * max(1.0, scale**2)


@pytest.mark.parametrize(("students", "teachers"), [(1, 1), (2, 2), (3, 2), (1, 4)])
@pytest.mark.parametrize("activation", ["erf", "linear", "relu"])
def test_small_means_give_the_centred_closed_form(activation: str, students: int, teachers: int) -> None:
    rng = np.random.default_rng(students)
    for _ in range(4):
        C = random_covariance(rng, students + teachers)
        v, u = rng.standard_normal(students), rng.standard_normal(teachers)
        how = ClosedForm(activation, u, 0.2)
        centred, mean = how(C, v), rng.standard_normal((students + teachers, 1))
        zero = how.each(C[None], v, 0 * mean)[0]
        assert apart(centred, zero, ("D", "S", "dv", "error")) < 1e-12 * max(1.0, np.abs(centred.S).max())
        near = how.each(C[None], v, 1e-7 * mean)[0]
        assert 0 < apart(zero, near) < 1e-5


@pytest.mark.parametrize("activation", ["erf", "linear", "relu"])
def test_derivatives_in_the_means(activation: str) -> None:
    """D = ∂E[δ]/∂means, and E[δ] = ∂ error/∂(means of the students), by central differences."""
    rng = np.random.default_rng(5)
    for students, teachers in ((1, 1), (2, 2), (3, 1)):
        F, step = students + teachers, 1e-5
        C, mean = random_covariance(rng, F), rng.standard_normal((F, 1))
        v, u = rng.standard_normal(students), rng.standard_normal(teachers)
        how = ClosedForm(activation, u, 0.0)
        here, D, E = how.each(C[None], v, mean)[0], np.empty((students, F)), np.empty(F)
        for a in range(F):
            move = step * np.eye(F)[:, a : a + 1]
            up, down = (how.each(C[None], v, mean + sign * move)[0] for sign in (1, -1))
            D[:, a] = (up.E - down.E)[:, 0] / (2 * step)
            E[a] = (up.error - down.error) / (2 * step)
        np.testing.assert_allclose(here.D, D, atol=1e-8)
        np.testing.assert_allclose(here.E[:, 0], E[:students], atol=1e-8)


@pytest.mark.parametrize("activation", ["erf", "relu"])
def test_derivatives_in_the_covariance(activation: str) -> None:
    """∂ error/∂C_ab = ½ (1 + δ_ab)⁻¹ E[∂²Δ²/∂h_a ∂h_b] (Price's theorem): with D it is D_ka for a ≠ k."""
    rng = np.random.default_rng(6)
    C, mean, v, u = random_covariance(rng, 4), rng.standard_normal((4, 1)), rng.standard_normal(2), np.ones(2)
    how, step = ClosedForm(activation, u, 0.0), 1e-5
    D = how.each(C[None], v, mean)[0].D
    for k, a in ((0, 1), (0, 2), (1, 3), (0, 0), (1, 1)):
        move = np.zeros((4, 4))
        move[k, a] = move[a, k] = step
        up, down = (float(how.each_error((C + sign * move)[None], v, mean)[0]) for sign in (1, -1))
        assert (up - down) / (2 * step) == pytest.approx(D[k, a] * (0.5 if k == a else 1.0), abs=1e-8)


def test_wide_committees_by_monte_carlo() -> None:
    """More fields than any rule has: five standard errors of 300 000 points, fixed seed."""
    rng = np.random.default_rng(7)
    C, mean = random_covariance(rng, 7), rng.standard_normal(7)
    v, u = rng.standard_normal(4), rng.standard_normal(3)
    ours = ClosedForm("relu", u, 0.0).each(C[None], v, mean[:, None])[0]
    h = mean + rng.standard_normal((300_000, 7)) @ np.linalg.cholesky(C).T
    g = np.maximum(h, 0)
    delta = v * (h[:, :4] > 0) * (g @ np.concatenate([v, -u]))[:, None]
    for value, x in (
        (ours.S, delta[:, :, None] * delta[:, None, :]),
        (ours.E[:, 0], delta),
        (ours.dv, g[:, :4] * (g @ np.concatenate([v, -u]))[:, None]),
    ):
        assert np.all(np.abs(x.mean(0) - value) <= 5 * x.std(0) / math.sqrt(len(h)))


def test_fields_without_variance() -> None:
    """Students, teachers or all fields that are numbers: g' = 1(mean > 0), and the limit of little variance."""
    rng = np.random.default_rng(8)
    v, u = rng.standard_normal(2), rng.standard_normal(2)
    mean = np.array([[0.7], [-0.4], [1.1], [0.3]])
    for still in ([0], [2], [0, 3], [1, 2], [0, 1, 2, 3]):
        moving = np.ones(4)
        moving[still] = 0.0
        C = random_covariance(rng, 4) * np.outer(moving, moving)
        for activation in ("erf", "linear", "relu"):
            how = ClosedForm(activation, u, 0.1)
            at = how.each(C[None], v, mean)[0]
            near = how.each((C + 1e-12 * np.diag(1 - moving))[None], v, mean)[0]
            assert apart(at, near) < 1e-10, (still, activation)
    at = ClosedForm("relu", u, 0.0).each(np.zeros((1, 4, 4)), v, mean)[0]
    delta = v[0] * 0.7 - u @ mean[2:, 0]
    np.testing.assert_allclose(at.E[:, 0], [v[0] * delta, 0], atol=1e-15)
    np.testing.assert_allclose(at.S, np.diag([(v[0] * delta) ** 2, 0]), atol=1e-14)
    assert at.error == pytest.approx(delta**2 / 2, abs=1e-15)
    dead = ClosedForm("relu", u, 0.0).each(np.zeros((1, 4, 4)), v, 0 * mean)[0]
    assert not dead.D.any() and not dead.S.any()


# --- mixtures --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("students", "teachers"), [(1, 1), (2, 1), (1, 2), (2, 2)])
@pytest.mark.parametrize("activation", ["erf", "linear", "relu"])
def test_mixtures_by_quadrature(activation: str, students: int, teachers: int) -> None:
    """Weights, variances, label noise and the columns of E, against the route for any loss, as both state it."""
    rng = np.random.default_rng([students, teachers])
    p, F = taught(activation, students, teachers, label_noise=0.3), students + teachers
    C, means = random_covariance(rng, F), rng.standard_normal((F, 2))
    v, u = rng.standard_normal(students), rng.standard_normal(teachers)
    closed = ov.gaussian_averages(p, C, v, u, means=means)
    generic = ov.gaussian_averages(p, C, v, u, means=means, method="quadrature")
    assert closed.method == f"closed form ({activation})" and "tensor" in generic.method
    for name in NAMES:
        x = np.asarray(getattr(closed, name))
        assert np.abs(x - getattr(generic, name)).max() <= FACTOR * generic.accuracy[name] + 1e-13, name
        assert closed.accuracy[name] < 1e-13 * max(1.0, np.abs(x).max())
        assert generic.accuracy[name] < 1e-3 * max(1.0, np.abs(x).max())  # so that the comparison has teeth


@pytest.mark.parametrize("activation", ["erf", "relu"])
def test_each_component_by_itself(activation: str) -> None:
    """Components of covariances that have nothing to do with each other; both ways, and the sum over them."""
    rng = np.random.default_rng(11)
    p = taught(activation, 1, 1, label_noise=0.2)
    u, v, means = np.array([0.8]), np.array([1.3]), rng.standard_normal((2, 2))
    closed, kinks = method_for(p, u), [ov.activations.BUILT_IN[activation].kinks] * 2
    assert isinstance(closed, ClosedForm)
    generic = LossQuadrature(p, u, FieldRule(kinks, 6))
    C = np.array([random_covariance(rng, 2), random_covariance(rng, 2, 2.0)])
    ours, theirs = closed.each(C, v, means), generic.each(C, v, means)
    for a, b in zip(ours, theirs, strict=True):
        assert a.E.shape == b.E.shape == (1, 1)
        assert apart(a, b) < 1e-10
    for how in (closed, generic):
        np.testing.assert_allclose(how.each_error(C, v, means), [a.error for a in ours], atol=1e-11)
        s = p.data.components.variances
        summed = over_components(
            how.each(s[:, None, None] * C[0], v, means), p.data.components.weights, p.data.components.variances
        )
        assert apart(how(C[0], v, means), summed) < 1e-13
        batch = how.errors(np.array([C[0], C[1]]), np.array([v, 2 * v]), np.array([means, -means]))
        alone = [how(C[0], v, means).error, how(C[1], 2 * v, -means).error]
        np.testing.assert_allclose(batch, alone, atol=1e-13)


def test_quadrature_of_a_component_without_noise() -> None:
    p = taught("erf", 1, 1)
    means = np.array([[0.3, -0.2], [0.1, 0.9]])
    parts = LossQuadrature(p, np.ones(1)).each(np.zeros((2, 2, 2)), np.ones(1), means)
    exact = ClosedForm("erf", np.ones(1), 0.0).each(np.zeros((2, 2, 2)), np.ones(1), means)
    for a, b in zip(parts, exact, strict=True):
        assert apart(a, b, ("S", "dv", "error", "E")) < 1e-14
        assert not a.D.any()  # fields that do not vary have no derivative to show


def test_the_closed_form_is_chosen_for_mixtures() -> None:
    u = np.ones(2)
    assert method_for(taught("relu"), u).name == "closed form (relu)"
    assert "tensor" in method_for(taught("relu"), u, "quadrature").name
    assert "tensor" in method_for(taught("tanh"), u).name
    with pytest.raises(ov.InputError, match="a student and a teacher with one activation: erf, linear, relu"):
        method_for(taught("tanh"), u, "closed")
    assert method_for(problem("relu"), u).name == "closed form (relu)"
    assert method_for(taught("erf"), u).coarser().name == "closed form (erf)"


@pytest.mark.parametrize("activation", ["erf", "relu"])
def test_learning_on_a_mixture_both_ways(activation: str) -> None:
    p = taught(activation, 1, 1, label_noise=0.1)
    start = ov.draw(p, 200, seed=1)
    closed = ov.solve(p, start, [0.5, 2.0])
    generic = ov.solve(p, start, [0.5, 2.0], method="quadrature")
    assert closed.data.attrs["averages"] == f"closed form ({activation})"
    for name in closed.variables:
        x, y = closed.data[name].values, generic.data[name].values
        assert np.abs(x - y).max() <= FACTOR * (generic.accuracy(name) + closed.accuracy(name)), name
        assert closed.accuracy(name) < 1e-8


@pytest.mark.parametrize("activation", ["erf", "relu"])
def test_a_mixture_of_one_mean_at_zero_is_no_mixture(activation: str) -> None:
    """Two units learn two: the same trajectory by the formulas with means and without."""
    ends = []
    for data in (ov.GaussianInputs(), ov.GaussianMixture(gram=[[0.0]])):
        net = ov.Committee(2, activation)
        p = ov.Problem(data=data, teacher=net, student=net, algorithm=ov.OnlineSGD(0.3))
        start = ov.Start.from_overlaps(p, Q=[[0.5, 0.1], [0.1, 0.6]], R=[[0.3, 0.05], [0.1, 0.25]], T=np.eye(2))
        ends.append(ov.solve(p, start, [1.0, 30.0]).data)
    for name in ("Q", "R", "error"):
        np.testing.assert_allclose(ends[0][name], ends[1][name], atol=1e-10)


def test_relu_students_arrive_on_a_mixture() -> None:
    """Averages stay good where students align with their teachers, to the end of learning."""
    net = ov.Committee(2, "relu")
    mixture = ov.GaussianMixture(means=2, variance=[0.5, 1.0])
    p = ov.Problem(data=mixture, teacher=net, student=net, algorithm=ov.OnlineSGD(0.3))
    theory = ov.solve(p, ov.draw(p, 300, seed=2), [20.0, 150.0])
    assert theory.data["error"].values[0, -1] < 1e-4
    assert theory.accuracy("error") < 1e-9


# --- any parameters --------------------------------------------------------------------------------------------------


def drawn(rng: np.random.Generator, F: int) -> tuple[np.ndarray, np.ndarray]:
    """Covariance and means: correlations of any strength, fields of any size, means of up to six deviations."""
    rows = rng.standard_normal((F, F + 1))
    for a in range(1, F):
        kind = rng.integers(4)
        if kind < 2:  # close to, or opposite to, an earlier field, and its mean with it
            b = int(rng.integers(a))
            rows[a] = (-1.0) ** kind * rows[b] + 10 ** rng.uniform(-8, 0) * rows[a]
    rows[:, F] *= rng.choice([0.0, 1.0, 3.0])
    rows *= (10 ** rng.uniform(-1, 1, F))[:, None]
    C, means = rows[:, :F] @ rows[:, :F].T, rows[:, F]
    if rng.random() < 0.3:
        means = rng.uniform(-6, 6, F) * np.sqrt(np.diag(C))
    return C, means


@pytest.mark.parametrize("activation", ["erf", "linear", "relu"])
def test_any_covariance_and_means(activation: str) -> None:
    """Finite, S positive and not above what one of its factors allows; a change of order changes nothing.

    Where the orthant rule is too coarse it has to say so: nine errors in ten within FACTOR of the change from 20 nodes
    to 40, which is rounding in all but a few.
    """
    rng = np.random.default_rng(13)
    missed, stated = [], []
    for _ in range(60):
        K, M = (int(n) for n in rng.integers(1, 4, 2))
        C, means = drawn(rng, K + M)
        v, u = rng.standard_normal(K), rng.standard_normal(M)
        how = ClosedForm(activation, u, 0.0)
        a = how.each(C[None], v, means[:, None])[0]
        size = max(1.0, float(np.abs(C).max() + np.abs(means).max() ** 2)) * max(1.0, float(v @ v + u @ u)) ** 2
        rounding = 1e-8 * size if activation == "relu" else 1e-12 * size
        assert all(np.isfinite(getattr(a, name)).all() for name in NAMES)
        assert np.linalg.eigvalsh(a.S)[0] >= -rounding and a.error >= -rounding
        assert np.all(np.diag(a.S) <= (v**2 * (2 / math.pi if activation == "erf" else 1)) * 2 * a.error + rounding)
        turned = np.concatenate([rng.permutation(K), K + rng.permutation(M)])
        there = ClosedForm(activation, u[turned[K:] - K], 0.0)
        b = there.each(C[np.ix_(turned, turned)][None], v[turned[:K]], means[turned, None])[0]
        rough, fine = how.coarser().each(C[None], v, means[:, None])[0], ClosedForm(activation, u, 0.0, 160)
        change = float(np.abs(a.S - rough.S).max())
        assert np.abs(a.S[np.ix_(turned[:K], turned[:K])] - b.S).max() <= rounding + FACTOR * change
        assert np.abs(a.D[turned[:K]][:, turned] - b.D).max() <= 1e-7 * size
        missed.append(float(np.abs(a.S - fine.each(C[None], v, means[:, None])[0].S).max()))
        stated.append(change + 1e-13 * size)
    assert np.quantile(np.array(missed) / np.array(stated), 0.9) <= FACTOR


@pytest.mark.parametrize("distance", [1e-6, 1e-4])
def test_relu_student_about_to_arrive(distance: float) -> None:
    """S is O(distance²) close to the teacher; noise of a larger size spoils the end of learning."""
    rng = np.random.default_rng(14)
    for _ in range(5):
        rows, nudge = rng.standard_normal((2, 2, 7)) / math.sqrt(6)
        both = np.concatenate([rows + distance * nudge, rows])
        a = ClosedForm("relu", np.ones(2), 0.0).each((both[:, :6] @ both[:, :6].T)[None], np.ones(2), both[:, 6:])[0]
        assert np.abs(a.S).max() <= 10 * distance**2 + 1e-14 / distance
        assert a.error <= 10 * distance**2


def test_four_field_average_of_erf_with_means() -> None:
    """E[g'_0 g'_1 Δ²] at mean zero is the published one; with means, a tensor rule."""
    rng = np.random.default_rng(15)
    C, w = random_covariance(rng, 4, 0.4), np.array([0.0, 0.0, 0.7, -0.2])
    published = sum(w[a] * w[b] * erf.four(C, 0, 1, a, b) for a in range(4) for b in range(4))
    assert erf_shifted.four(C, np.zeros(4), w, 0, 1) == pytest.approx(published, abs=1e-14)
    z, weight = hermite(4, 24)
    mean = np.array([0.5, -1.0, 0.3, 1.5])
    h = mean + z @ np.linalg.cholesky(C).T
    slopes = 2 / math.pi * np.exp(-0.5 * (h[:, 0] ** 2 + h[:, 1] ** 2))
    expected = weight @ (slopes * (error_function(h / math.sqrt(2)) @ w) ** 2)
    assert erf_shifted.four(C, mean, w, 0, 1) == pytest.approx(float(expected), abs=1e-9)
