"""Gaussian averages: closed forms against quadrature, against published numbers, against Monte Carlo.

Tolerances are the accuracies that the averages report, times FACTOR. Such an estimate, the difference of two rules, is
by accident too small now and then, so claims about it are made for nine covariances in ten (`assert_honest`).
Monte-Carlo comparisons use fixed seeds and five standard errors: the 60-odd entries compared would raise 4e-5 false
alarms a run if the seeds were free.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import overlaps as ov
from gaussian import FACTOR, ROUNDING, assert_honest, hermite_grid, nudged
from overlaps.averages import erf, method_for, relu
from overlaps.averages.square_quadrature import SquareQuadrature
from problems import problem, random_covariance

NAMES = ("D", "S", "dv", "error")
WIDTHS = [(1, 1), (2, 1), (1, 2), (2, 2), (3, 1), (1, 3)]


def assert_close(a: ov.averages.GaussianAverages, b: ov.averages.GaussianAverages, C: np.ndarray) -> None:
    """Equal within what both say of themselves; D only in the directions that fields have (its action D C)."""
    for name in NAMES:
        x, y = np.asarray(getattr(a, name)), np.asarray(getattr(b, name))
        stated = a.accuracy[name] + b.accuracy[name]
        if name == "D":
            x, y = x @ C, y @ C
            stated *= max(1.0, float(np.abs(C).max())) * len(C)
        allowed = FACTOR * stated + ROUNDING * max(1.0, float(np.abs(x).max()))
        assert np.abs(x - y).max() <= allowed, f"{name}: {np.abs(x - y).max():.2e} apart, {stated:.2e} stated"


def both_ways(p: ov.Problem, C: np.ndarray, v: np.ndarray, u: np.ndarray) -> tuple:
    closed = ov.gaussian_averages(p, C, v, u)
    generic = ov.gaussian_averages(p, C, v, u, method="quadrature")
    assert closed.method.startswith("closed form") and generic.method.startswith("quadrature")
    return closed, generic


@pytest.mark.parametrize("variance", [1e-4, 0.01, 1.0])
@pytest.mark.parametrize("activation", ["erf", "linear", "relu"])
def test_closed_form_equals_quadrature(activation: str, variance: float) -> None:
    """A wrong term, index or factor in a closed form, for equal and unequal widths."""
    rng = np.random.default_rng([len(activation), int(1e6 * variance)])
    for students, teachers in WIDTHS:
        for _ in range(3):
            C = random_covariance(rng, students + teachers, variance)
            v, u = rng.standard_normal(students), rng.standard_normal(teachers)
            closed, generic = both_ways(problem(activation, students, teachers), C, v, u)
            assert_close(closed, generic, C)
            # and the quadrature knows the answer well, so that the comparison has teeth
            assert generic.accuracy["S"] < 1e-3 * max(1.0, np.abs(closed.S).max())
            assert max(generic.accuracy[name] for name in ("dv", "error")) < 1e-10


@pytest.mark.parametrize("variance", [10.0, 100.0])
@pytest.mark.parametrize("activation", ["erf", "linear", "relu"])
def test_closed_form_at_large_variance(activation: str, variance: float) -> None:
    """Large fields: erf is nearly a step there, and the rule has to resolve its unit width."""
    rng = np.random.default_rng(3)
    p, u = problem(activation, 1, 1), np.array([0.7])
    for _ in range(3):
        C, v = random_covariance(rng, 2, variance), rng.standard_normal(1)
        closed, generic = ov.gaussian_averages(p, C, v, u), SquareQuadrature(p, u)(C, v)
        for name in NAMES:
            x = np.asarray(getattr(closed, name))
            assert np.abs(x - getattr(generic, name)).max() <= 1e-8 * max(1.0, np.abs(x).max()), name


def degenerate_rows(rng: np.random.Generator, distance: float) -> Iterator[tuple[str, np.ndarray]]:
    """Field directions of two students and two teachers, `distance` away from a singular arrangement."""
    rows, nudge = rng.standard_normal((2, 4, 6)) / math.sqrt(6)
    arrangements = {
        "student on teacher": {0: rows[2]},
        "equal students": {0: rows[1]},
        "zero student": {0: np.zeros(6)},
        "student opposite to teacher": {0: -rows[2]},
        "student in the plane of two": {0: rows[1] + rows[2]},
        "both learnt": {0: rows[2], 1: rows[3]},
    }
    return nudged(rows, nudge, distance, arrangements)


@pytest.mark.parametrize("distance", [0.0, 1e-8, 1e-6, 1e-4, 1e-2])
@pytest.mark.parametrize("activation", ["erf", "linear"])
def test_degenerate_covariances(activation: str, distance: float) -> None:
    """A division by a determinant that vanishes when student and teacher align."""
    rng = np.random.default_rng(7)
    for _, rows in degenerate_rows(rng, distance):
        C = rows @ rows.T
        closed, generic = both_ways(problem(activation), C, rng.standard_normal(2), rng.standard_normal(2))
        assert_close(closed, generic, C)


def test_degenerate_relu() -> None:
    """The collapse of fields that share one sign."""
    rng = np.random.default_rng(8)
    for _, rows in degenerate_rows(rng, 0.0):
        C = rows @ rows.T
        closed, generic = both_ways(problem("relu"), C, rng.standard_normal(2), rng.standard_normal(2))
        assert_close(closed, generic, C)


# --- published numbers -----------------------------------------------------------------------------------------------


def reference() -> dict[str, np.ndarray]:
    with np.load(Path(__file__).parent / "data" / "r002_integrals.npz") as stored:
        return {name: stored[name] for name in stored}


def by_gauss_hermite(C: np.ndarray) -> float:
    """E[g'_0 g'_1 g_2 g_3] of erf(x/√2) by tensor Gauss-Hermite, without any of the library."""
    from scipy.special import erf as error_function

    z, weight = hermite_grid(4, 28)
    h = z @ np.linalg.cholesky(C).T
    slopes = 2 / math.pi * np.exp(-0.5 * (h[:, 0] ** 2 + h[:, 1] ** 2))
    g = error_function(h[:, 2:] / math.sqrt(2))
    return float(weight @ (slopes * g[:, 0] * g[:, 1]))


def check_four(four: Callable[..., float]) -> None:
    """I4 against stored numbers (48-node Gauss-Hermite, 3e-16) and a 28-node rule on random covariances."""
    data = reference()
    assert four(data["C"], 0, 1, 2, 3) == pytest.approx(float(data["I4"]), abs=1e-14)
    rng = np.random.default_rng(91)
    for _ in range(3):
        C = random_covariance(rng, 4, 0.5)
        assert four(C, 0, 1, 2, 3) == pytest.approx(by_gauss_hermite(C), abs=1e-9)


def printed_four(C: np.ndarray, k: int, l: int, a: int, b: int) -> float:
    """Equation (91) of the power-law paper to the letter."""
    C11, C22, C33, C44 = C[k, k], C[l, l], C[a, a], C[b, b]
    C12, C13, C14, C23, C24, C34 = C[k, l], C[k, a], C[k, b], C[l, a], C[l, b], C[a, b]
    A4 = (1 + C11) * (1 + C22) - C12**2
    A0 = A4 * C34 + C23 * C24 * (1 + C11) + C13 * C14 * (1 + C22) + C12**2 * C13**2 * C24**2
    A1 = A4 * (1 + C33) + C23 * (1 + C11) - C13 * (1 + C22) + 2 * C12 * C13 * C23
    A2 = A4 * (1 + C44) - C24 * (1 + C11) - C14 * (1 + C22) + 2 * C12 * C14 * C24
    return 4 / math.pi**2 / math.sqrt(A4) * math.asin(A0 / math.sqrt(A1 * A2))


def test_four_field_average_of_erf() -> None:
    check_four(erf.four)


def test_printed_four_field_average_is_rejected() -> None:
    """The check above would not notice the misprint it is there for."""
    with pytest.raises(AssertionError):
        check_four(printed_four)


def test_pair_averages_of_erf() -> None:
    """I2, and I3 = <g'_0 z_1 g_2> put together by Stein's lemma."""
    data = reference()
    C = data["C"]
    both, _, _ = erf.pair(C, 0, 1)
    assert both == pytest.approx(float(data["I2"]), abs=1e-14)
    _, slopes, curvature = erf.pair(C, 0, 2)
    assert C[0, 1] * curvature + C[1, 2] * slopes == pytest.approx(float(data["I3"]), abs=1e-14)


# --- anything else ---------------------------------------------------------------------------------------------------


def plain(p: ov.Problem) -> tuple:
    """(g, g', g̃) as NumPy functions."""
    return tuple(
        np.vectorize(f, otypes=[float]) for f in (p.student.g.function, p.student.g.derivative, p.teacher.g.function)
    )


@pytest.mark.parametrize(
    ("student", "teacher", "students", "teachers"),
    [
        ("relu", "erf", 2, 1),
        ("erf", "relu", 1, 2),
        ("tanh", "softplus", 2, 2),
        ("softplus", "linear", 1, 1),
        ("tanh", "erf", 3, 2),
    ],
)
def test_mixed_activations_against_monte_carlo(student: str, teacher: str, students: int, teachers: int) -> None:
    """Student and teacher functions mixed up; five standard errors, fixed seed."""
    rng = np.random.default_rng(11)
    p = problem(student, students, teachers, teacher_activation=teacher, label_noise=0.3)
    C = random_covariance(rng, students + teachers)
    v, u = rng.standard_normal(students), rng.standard_normal(teachers)
    a = ov.gaussian_averages(p, C, v, u)
    g, slope, g_teacher = plain(p)
    h = rng.standard_normal((200_000, students + teachers)) @ np.linalg.cholesky(C).T
    lam, nu = h[:, :students], h[:, students:]
    clean = g(lam) @ v - g_teacher(nu) @ u
    noisy = clean - 0.3 * rng.standard_normal(len(h))
    delta = v * slope(lam) * noisy[:, None]
    samples = {
        "D": delta[:, :, None] * h[:, None, :],
        "S": delta[:, :, None] * delta[:, None, :],
        "dv": g(lam) * noisy[:, None],
        "error": 0.5 * clean**2,
    }
    for name, x in samples.items():
        value = a.D @ C if name == "D" else np.asarray(getattr(a, name))
        allowed = 5 * x.std(0) / math.sqrt(len(x)) + FACTOR * a.accuracy[name] * max(1.0, np.abs(C).sum())
        assert np.all(np.abs(x.mean(0) - value) <= allowed), name


def erf_square_loss() -> ov.Loss:
    """The square loss of erf committees with teacher readouts 1, as a user would write it."""

    def value(lam, nu, c, v):
        total = 0.0
        for k in range(lam.size):
            total += v[k] * math.erf(lam[k] / math.sqrt(2.0))
        for m in range(nu.size):
            total -= math.erf(nu[m] / math.sqrt(2.0))
        return 0.5 * total * total

    def gradient(lam, nu, c, v):
        total = 0.0
        g = np.empty(lam.size)
        for k in range(lam.size):
            g[k] = math.erf(lam[k] / math.sqrt(2.0))
            total += v[k] * g[k]
        for m in range(nu.size):
            total -= math.erf(nu[m] / math.sqrt(2.0))
        return v * math.sqrt(2.0 / math.pi) * np.exp(-0.5 * lam * lam) * total, g * total

    return ov.Loss(value, gradient)


@pytest.mark.parametrize(("students", "teachers"), [(1, 1), (2, 1), (2, 2), (3, 2)])
def test_user_loss_equal_to_square_loss(students: int, teachers: int) -> None:
    """The general route (Stein's lemma in all fields) and the special one are the same averages."""
    rng = np.random.default_rng(12)
    by_hand = problem("erf", students, teachers, loss=erf_square_loss())
    for singular in (False, True):
        C = random_covariance(rng, students + teachers)
        if singular:  # the first student is the first teacher
            keep = np.eye(students + teachers)
            keep[0] = keep[students]
            C = keep @ C @ keep.T
        v = rng.standard_normal(students)
        closed = ov.gaussian_averages(problem("erf", students, teachers), C, v)
        mine = ov.gaussian_averages(by_hand, C, v)
        assert mine.method.startswith("quadrature")
        assert_close(closed, mine, C)


@pytest.mark.parametrize("method", ["closed", "quadrature"])
@pytest.mark.parametrize("activation", ["erf", "relu"])
def test_label_noise_enters_S_only(activation: str, method: str) -> None:
    rng = np.random.default_rng(13)
    C, v, u = random_covariance(rng, 4), rng.standard_normal(2), rng.standard_normal(2)
    clean = ov.gaussian_averages(problem(activation), C, v, u, method)
    noisy = ov.gaussian_averages(problem(activation, label_noise=0.7), C, v, u, method)
    for name in ("D", "dv", "error"):
        assert np.array_equal(getattr(clean, name), getattr(noisy, name))
    family = {"erf": erf, "relu": relu}[activation]
    slopes = np.array([[family.pair(C, k, l)[1] for l in range(2)] for k in range(2)])
    assert pytest.approx(0.49 * np.outer(v, v) * slopes, abs=1e-10) == noisy.S - clean.S


@pytest.mark.parametrize(
    ("student", "teacher", "students", "teachers", "variance"),
    [
        ("tanh", "tanh", 1, 1, 1.0),
        ("tanh", "tanh", 2, 1, 1.0),
        ("tanh", "erf", 1, 2, 0.1),
        ("softplus", "tanh", 2, 1, 3.0),
        ("relu", "tanh", 1, 1, 1.0),
        ("relu", "tanh", 1, 2, 1.0),
        ("tanh", "tanh", 1, 1, 30.0),
    ],
)
def test_stated_accuracy_is_honest(student: str, teacher: str, students: int, teachers: int, variance: float) -> None:
    """Measured against a rule several refinements on, over twenty covariances."""
    rng = np.random.default_rng(14)
    p, u = problem(student, students, teachers, teacher_activation=teacher), np.ones(teachers)
    rule = SquareQuadrature(p, u).rule
    for _ in range(4 if students + teachers == 2 else 2):
        rule = rule.finer()
    refined = SquareQuadrature(p, u, rule)
    missed: dict[str, list[float]] = {name: [] for name in NAMES}
    stated: dict[str, list[float]] = {name: [] for name in NAMES}
    for _ in range(20):
        C, v = random_covariance(rng, students + teachers, variance), rng.standard_normal(students)
        given, better = ov.gaussian_averages(p, C, v, u, method="quadrature"), refined(C, v)
        for name in NAMES:
            value = np.asarray(getattr(better, name))
            missed[name].append(float(np.abs(getattr(given, name) - value).max()))
            stated[name].append(given.accuracy[name] + ROUNDING * max(1.0, np.abs(value).max()))
    for name in NAMES:
        assert_honest(missed[name], stated[name], name)


def test_unresolved_activations_are_owned_up_to() -> None:
    """Fields so large that no budget of points resolves the activation: the stated accuracy must not look good."""
    rng = np.random.default_rng(18)
    for _ in range(5):
        a = ov.gaussian_averages(problem("erf", 2, 2), random_covariance(rng, 4, 300.0), method="quadrature")
        assert a.accuracy["S"] > 1e-3 * np.abs(a.S).max()


@pytest.mark.parametrize("activation", ["erf", "relu"])
def test_sobol_route(activation: str) -> None:
    """Beyond four fields S comes from Sobol points; its stated accuracy covers the closed form."""
    rng = np.random.default_rng(15)
    missed, stated = [], []
    for students, teachers in ((3, 2), (2, 4), (4, 4)):
        p = problem(activation, students, teachers)
        for _ in range(8):
            C = random_covariance(rng, students + teachers)
            v, u = rng.standard_normal(students), rng.standard_normal(teachers)
            closed, generic = both_ways(p, C, v, u)
            assert "Sobol" in generic.method
            assert generic.accuracy["S"] < 0.05 * max(1.0, np.abs(closed.S).max())
            missed.append(float(np.abs(closed.S - generic.S).max()))
            stated.append(generic.accuracy["S"])
            assert np.abs(closed.D - generic.D).max() < 1e-9  # pairs are still done by tensor rules
    assert_honest(missed, stated, "S")


# --- invariances -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("activation", ["erf", "linear", "relu", "tanh"])
def test_order_of_hidden_units_does_not_matter(activation: str) -> None:
    rng = np.random.default_rng(16)
    C, v, u = random_covariance(rng, 4), rng.standard_normal(2), rng.standard_normal(2)
    p = problem(activation)
    a = ov.gaussian_averages(p, C, v, u)
    swap = np.array([1, 0, 3, 2])
    b = ov.gaussian_averages(p, C[np.ix_(swap, swap)], v[::-1], u[::-1])
    for name, moved in (("D", b.D[::-1][:, swap]), ("S", b.S[::-1, ::-1]), ("dv", b.dv[::-1]), ("error", b.error)):
        stated = a.accuracy[name] + b.accuracy[name]
        assert np.abs(getattr(a, name) - moved).max() <= FACTOR * stated + ROUNDING, name


@pytest.mark.parametrize("activation", ["erf", "linear", "tanh"])
def test_signs_of_odd_units_do_not_matter(activation: str) -> None:
    """g(−h) = −g(h): turning a unit and its readout round changes nothing but the sign of its own entries."""
    rng = np.random.default_rng(17)
    C, v, u = random_covariance(rng, 4), rng.standard_normal(2), rng.standard_normal(2)
    sign = np.array([-1.0, 1.0, 1.0, -1.0])
    p = problem(activation)
    a = ov.gaussian_averages(p, C, v, u)
    b = ov.gaussian_averages(p, sign[:, None] * C * sign, sign[:2] * v, sign[2:] * u)
    turned = {
        "D": sign[:2, None] * b.D * sign,
        "S": sign[:2, None] * b.S * sign[:2],
        "dv": sign[:2] * b.dv,
        "error": b.error,
    }
    for name, x in turned.items():
        stated = a.accuracy[name] + b.accuracy[name]
        assert np.abs(getattr(a, name) - x).max() <= FACTOR * stated + ROUNDING, name


# --- which way was chosen --------------------------------------------------------------------------------------------


def test_closed_form_only_where_there_is_one() -> None:
    """A user's activation that happens to be called erf must not get the formulas of erf."""
    u = np.ones(2)
    assert method_for(problem("erf"), u).name == "closed form (erf)"
    assert method_for(problem("tanh"), u).name.startswith("closed form (tanh, 5 error functions")
    assert method_for(problem("erf", teacher_activation="relu"), u).name == "closed form (erf on relu)"
    assert "tensor" in method_for(problem("relu", teacher_activation="erf"), u).name
    assert "Sobol" in method_for(problem("softplus", 3, 2), u).name
    impostor = ov.Activation("erf", math.sin, math.cos)
    assert "tensor" in method_for(problem(impostor), u).name
    assert "tensor" in method_for(problem("erf", teacher_activation=impostor), u).name
    with pytest.raises(ov.InputError, match="no closed form"):
        method_for(problem("tanh"), u, "closed")
    with pytest.raises(ov.InputError, match="method: expected"):
        method_for(problem("tanh"), u, "fast")


@pytest.mark.parametrize(
    ("covariance", "words"),
    [
        (np.eye(3), r"covariance: expected shape \(4, 4\)"),
        (np.eye(4) + np.eye(4, k=1), "covariance: expected a symmetric"),
        (np.diag([1.0, 1.0, 1.0, -1.0]), "covariance: expected a positive"),
        (np.full((4, 4), np.nan), "covariance: has entries that are not finite"),
    ],
)
def test_bad_covariances(covariance: np.ndarray, words: str) -> None:
    with pytest.raises(ov.InputError, match=words):
        ov.gaussian_averages(problem(), covariance)
