"""Every activation of the library: its slope, kinks, averages and equivalent inputs, and all three scales."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

import overlaps as ov
from overlaps.averages.closed import FAMILIES
from problems import problem, random_covariance

from .cases import ACTIVATIONS, LEVEL, assert_same, equal_in_law, round_trip, tends_to_theory

REACH = 8.0
GRID = np.linspace(-REACH, REACH, 4001) + 1e-3 / math.pi  # no grid point is a round number, where kinks are
every = pytest.mark.parametrize("name", ACTIVATIONS)


@every
def test_the_slope_is_that_of_finite_differences(name: str) -> None:
    """On a grid and close to the kinks, but not across them."""
    g, step = ACTIVATIONS[name], 1e-5
    near = [kink + side * gap for kink in g.kinks for side in (-1, 1) for gap in (2e-5, 1e-4, 1e-2)]
    for x in (*GRID, *near):
        if any(abs(x - kink) <= step for kink in g.kinks):
            continue
        measured = (g.function(x + step) - g.function(x - step)) / (2 * step)
        assert g.derivative(x) == pytest.approx(measured, abs=1e-7 * (1 + abs(g.function(x)))), x
    for x in (-1e3, -50.0, 50.0, 1e3):
        assert math.isfinite(g.function(x)) and math.isfinite(g.derivative(x)), "fields take any value"


def jumps(f: Callable[[float], float], resolution: float) -> list[float]:
    """Where f changes by a finite amount within `resolution`: each interval is halved towards the larger change."""
    found = []
    values = [f(x) for x in GRID]
    for i in np.flatnonzero(np.abs(np.diff(values)) > 1e-4):
        low, high, ends = GRID[i], GRID[i + 1], (values[i], values[i + 1])
        while high - low > resolution:
            middle = (low + high) / 2
            between = f(middle)
            if abs(between - ends[0]) > abs(ends[1] - between):
                high, ends = middle, (ends[0], between)
            else:
                low, ends = middle, (between, ends[1])
        if abs(ends[1] - ends[0]) > 1e-4:
            found.append((low + high) / 2)
    return found


@every
def test_all_kinks_are_declared(name: str) -> None:
    """Where g, its slope or its curvature jumps, and nowhere else."""
    g, step = ACTIVATIONS[name], 1e-6
    found = [*jumps(g.function, 1e-12), *jumps(g.derivative, 1e-12)]
    found += jumps(lambda x: (g.derivative(x + step) - g.derivative(x - step)) / (2 * step), 8e-6)
    assert all(min(abs(x - kink) for kink in (*g.kinks, math.inf)) < 1e-5 for x in found), f"kinks at {found}"
    assert all(min(abs(x - kink) for x in (*found, math.inf)) < 1e-5 for kink in g.kinks if abs(kink) < REACH)
    assert g.is_smooth == (not g.kinks)


@every
def test_compiled_functions_are_the_plain_ones(name: str) -> None:
    g = ACTIVATIONS[name]
    for plain, compiled in zip((g.function, g.derivative), g.compiled, strict=True):
        np.testing.assert_allclose([compiled(x) for x in GRID], [plain(x) for x in GRID], rtol=1e-14, atol=1e-15)


@every
def test_averages_are_those_of_another_route(name: str) -> None:
    """A closed form against quadrature; where there is none, quadrature against Monte Carlo."""
    rng = np.random.default_rng(len(name))
    for students, teachers, variance in ((1, 1, 0.01), (2, 1, 1.0), (2, 2, 1.0)):
        p = problem(name, students, teachers, label_noise=0.3)
        C = random_covariance(rng, students + teachers, variance)
        v, u = rng.standard_normal(students), rng.standard_normal(teachers)
        generic = ov.gaussian_averages(p, C, v, u, method="quadrature")
        assert generic.method.startswith("quadrature")
        assert generic.accuracy["S"] < 1e-3 * max(1.0, np.abs(generic.S).max())  # so that the comparison has teeth
        if name in FAMILIES:
            closed = ov.gaussian_averages(p, C, v, u, method="closed")
            assert closed.method.startswith("closed form")
            assert_same(closed, generic, C)
        elif students + teachers == 3:
            assert_sampled(p, generic, C, v, u, rng)


def assert_sampled(p, averages, C, v, u, rng) -> None:
    """All entries of the averages against 50 000 samples."""
    g, slope = (np.vectorize(f, otypes=[float]) for f in (p.student.g.function, p.student.g.derivative))
    h = rng.standard_normal((50_000, len(C))) @ np.linalg.cholesky(C).T
    lam, nu = h[:, : v.size], h[:, v.size :]
    values = g(lam)
    clean = values @ v - g(nu) @ u
    noisy = clean - p.label_noise * rng.standard_normal(len(h))
    delta = v * slope(lam) * noisy[:, None]
    samples = {
        "D": delta[:, :, None] * h[:, None, :],
        "S": delta[:, :, None] * delta[:, None, :],
        "dv": values * noisy[:, None],
        "error": 0.5 * clean**2,
    }
    z = norm.isf(LEVEL / 2 / sum(x[0].size for x in samples.values()))
    for name, x in samples.items():
        theory = averages.D @ C if name == "D" else np.asarray(getattr(averages, name))
        allowed = z * x.std(0) / math.sqrt(len(x)) + 3 * averages.accuracy[name] * max(1.0, np.abs(C).sum())
        assert np.all(np.abs(x.mean(0) - theory) <= allowed), name


@every
def test_equivalent_inputs_have_the_moments_of_the_function(name: str) -> None:
    """a, b and c of a hidden manifold against adaptive integration."""
    g, found = ACTIVATIONS[name], ov.gaussian_equivalent(name)

    def average(f: Callable[[float], float]) -> float:
        edges = [-REACH, *(k for k in g.kinks if abs(k) < REACH), REACH]
        parts = [quad(lambda x: f(x) * norm.pdf(x), a, b, epsabs=1e-12, limit=200)[0] for a, b in pairwise(edges)]
        return math.fsum(parts)

    assert found.a == pytest.approx(average(g.function), abs=1e-9)
    assert found.b == pytest.approx(average(lambda x: x * g.function(x)), abs=1e-9)
    assert found.c == pytest.approx(average(lambda x: g.function(x) ** 2), abs=1e-9)


@every
def test_a_committee_of_it_survives_toml(name: str) -> None:
    p = problem(name, 2, 1, rate=0.4, train_readout=True)
    round_trip(p)
    assert p == problem(ACTIVATIONS[name], 2, 1, rate=0.4, train_readout=True)
    with pytest.raises(ov.InputError, match=f"unknown activation '{name}x'; did you mean '{name}'"):
        problem(f"{name}x")


@every
def test_the_three_scales_agree(name: str) -> None:
    p = problem(name, 2, 1, rate=0.4, train_readout=True)
    equal_in_law(p)
    tends_to_theory(p)
