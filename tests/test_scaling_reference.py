"""Numbers of an independent derivation of the power-law paper: spectra, prefactors, the η² term, L = N.

Those of single runs depend on their start; here starts are drawn anew, and the number must lie within their spread:
|z| < 4.9 for each, a false-alarm rate below 1e-5 for all of them (the spread comes from 16 starts, so Student's t is
used).
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t as student

import overlaps as ov
from overlaps.papers.scaling.model import committee


def test_power_law_spectrum() -> None:
    """β = .25: ω₊ = 4.21358 at L = 10, T⁽²⁾ = 2.346973, T⁽⁴⁾ = 32.684746; T⁽²⁾/L falls slowly to .0635."""
    omega = np.array(ov.PowerLaw(10, 0.25).eigenvalues)
    assert omega[0] == pytest.approx(4.2135804443507325, rel=1e-14)
    assert (omega**2).mean() == pytest.approx(2.346973, rel=3e-7)
    assert (omega**4).mean() == pytest.approx(32.684746, rel=3e-8)
    shares = [float(np.mean(np.array(ov.PowerLaw(L, 0.25).eigenvalues) ** 2) / L) for L in (10, 100, 1000, 10**7)]
    assert [round(x, 4) for x in shares[:3]] == [0.2347, 0.1208, 0.0889]
    from scipy.special import zeta

    limit = zeta(2.5) / zeta(1.25) ** 2
    assert limit == pytest.approx(0.0635, abs=5e-5)
    assert limit < shares[3] < 1.05 * limit


def spread(problem: ov.Problem, size: int, scale: float, times: list[float]) -> np.ndarray:
    """Errors of the solved equations from 16 random starts, (starts, times)."""
    return np.array(
        [
            ov.solve(problem, ov.draw(problem, size, seed=s, scale=scale), times).data["error"].values[0]
            for s in range(16)
        ]
    )


@pytest.mark.parametrize(
    ("units", "levels", "beta", "rate", "size", "runs"),
    [
        # SGD with K = 3, M = 2, rate 1.5, and with K = M = 2, four levels, rate 1; σ = .3 in both
        ((3, 2), 3, 0.5, 1.5, 3000, {4: 0.02067, 10: 0.00870, 20: 0.00728, 60: 0.00717}),
        ((2, 2), 4, 1.0, 1.0, 4000, {4: 0.02356, 10: 0.01130, 20: 0.00816, 40: 0.00746, 60: 0.00650}),
    ],
)
def test_prefactors_and_noise_term_against_sgd(units, levels, beta, rate, size, runs) -> None:
    K, M = units
    times = [float(t) for t in runs]
    found = spread(committee(levels, beta, rate, students=K, teachers=M), size, 0.3, times)
    z = (np.array(list(runs.values())) - found.mean(0)) / (found.std(0, ddof=1) * np.sqrt(1 + 1 / 16))
    limit = float(student.isf(5e-7, 15))
    assert np.abs(z).max() < limit
    # without the η² term the curve is somewhere else: .01636, .00834 in place of .0234, .0113
    flow = spread(committee(levels, beta, rate, students=K, teachers=M, first_order=True), size, 0.3, times[:2])
    assert np.all(flow.mean(0) < 0.85 * found.mean(0)[:2])


def test_noise_term_in_numbers() -> None:
    """Dropping η² at K = M = 2, four levels, rate 1: .01636 and .00834 at α = 4 and 10."""
    flow = spread(committee(4, 1.0, 1.0, students=2, teachers=2, first_order=True), 4000, 0.3, [4.0, 10.0])
    z = (np.array([0.01636, 0.00834]) - flow.mean(0)) / (flow.std(0, ddof=1) * np.sqrt(1 + 1 / 16))
    assert np.abs(z).max() < float(student.isf(5e-7, 15))


def test_one_level_per_dimension_keeps_a_correction() -> None:
    """L = N: the equations are those of N → ∞ at fixed L, and corrections of order η ω₊/N stay.

    They are a few per cent at N = L = 256, β = 1, η = .5, of either sign from teacher to teacher. With four levels at
    the same size there is nothing of the kind.
    """
    times, size, gaps, count = [30.0, 100.0], 256, {}, 500
    for levels in (4, size):
        problem = committee(levels, 1.0, 0.5, students=2, teachers=2)
        start = ov.draw(problem, size, seed=2, scale=0.3)
        limit = ov.solve(problem, start, times).data["error"].values[0]
        runs = ov.train(problem, start, times, runs=count, seed=0, progress=False).data["error"].values
        gaps[levels] = runs.mean(0) / limit - 1, runs.std(0, ddof=1) / np.sqrt(count) / limit
    gap, error = gaps[size]
    assert np.all(np.abs(gap) > 4.9 * error) and np.all((np.abs(gap) > 0.01) & (np.abs(gap) < 0.1))
    gap, error = gaps[4]
    assert np.all(np.abs(gap) < 4.9 * error + 0.01)
