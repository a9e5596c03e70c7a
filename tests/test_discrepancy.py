"""tLog-RMSE: by hand, against reference runs, and its floor and excess against what they estimate.

Statistical tests have fixed seeds and a false-alarm rate of 10⁻⁴ each.
"""

from __future__ import annotations

import cmath
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import overlaps as ov
from overlaps.compare.discrepancy import distances, excess, floors, log_spaced, tlog_rmse

DATA = Path(__file__).parent / "data"
SIGMAS = stats.norm.isf(1e-4 / 2)
SIZE = 200
TIMES = np.unique(np.rint(np.geomspace(1, 2000, 25))) / SIZE


def problem(rate: float = 0.5, units: int = 2) -> ov.Problem:
    net = ov.Committee(units)
    return ov.Problem(data=ov.GaussianInputs(), teacher=net, student=net, algorithm=ov.OnlineSGD(rate))


@pytest.fixture(scope="module")
def both():
    chosen = problem()
    start = ov.draw(chosen, SIZE, seed=0)
    return ov.solve(chosen, start, TIMES), ov.sample(chosen, start, TIMES, runs=24)


def test_by_hand(both):
    theory, runs = both
    found = tlog_rmse(theory, runs)
    assert list(found.rmse) == ["Q", "R", "v", "error"]
    for name in found.rmse:
        exact, values = theory.data[name].values[0], runs.data[name].values
        per_run = []
        for run in values:
            entries = run.reshape(len(TIMES), -1) - exact.reshape(len(TIMES), -1)
            per_run.append([np.sqrt(sum(d * d for d in entry) / len(TIMES)) for entry in entries.T])
        np.testing.assert_allclose(found.entries[name].reshape(len(values), -1), per_run, rtol=1e-12)
        assert found.rmse[name] == pytest.approx(np.mean(per_run))
        mean = np.mean(per_run, axis=1)
        assert found.standard_error is not None and found.floor is not None and found.excess is not None
        assert found.standard_error[name] == pytest.approx(mean.std(ddof=1) / np.sqrt(len(values)))
        assert found.excess[name] == pytest.approx(found.rmse[name] - found.floor[name])
        assert found.absolute[name] == pytest.approx(np.mean(np.abs(values - exact)))
        roots = [cmath.sqrt(a) for a in (exact**2 - values**2).ravel()]
        assert found.printed[name] == pytest.approx(np.mean([z.real for z in roots]))
        assert found.imaginary[name] == pytest.approx(np.mean([z.imag > 0 for z in roots]))
    np.testing.assert_array_equal(found.times, TIMES)


def test_the_mean_over_entries_counts_both_sides_of_the_diagonal(both):
    found = tlog_rmse(*both, variables=["Q"])
    assert found.entries["Q"].shape == (24, 2, 2) and list(found.rmse) == ["Q"]
    per = found.entries["Q"].mean(0)
    assert found.rmse["Q"] == pytest.approx((per[0, 0] + 2 * per[0, 1] + per[1, 1]) / 4)


def test_time_zero_does_not_count(both):
    theory, runs = both
    chosen, start = problem(), theory.start
    times = np.concatenate([[0.0], TIMES])
    again = tlog_rmse(ov.solve(chosen, start, times), ov.sample(chosen, start, times, runs=24))
    np.testing.assert_array_equal(again.times, TIMES)
    assert again.rmse == pytest.approx(tlog_rmse(theory, runs).rmse, rel=1e-6)


def test_printed_form_is_no_distance(both):
    """A theory that is right to 1 % is at √(2 · 1 %) in the printed form if it is above the runs, and at zero below."""
    theory, runs = both
    above, below = (theory.data.map(lambda x, f=f: x * f, keep_attrs=True) for f in (1.01, 0.99))
    same = replace(runs, data=theory.data.assign_attrs(scale="meso"))
    over, under = (tlog_rmse(replace(theory, data=data), same) for data in (above, below))
    scale = float(np.abs(theory.data["v"]).mean())
    assert over.printed["v"] == pytest.approx(scale * np.sqrt(1.01**2 - 1)) and over.imaginary["v"] == 0
    assert under.printed["v"] == 0 and under.imaginary["v"] == 1
    assert over.absolute["v"] == pytest.approx(under.absolute["v"]) == pytest.approx(0.01 * scale)


def noisy(rng, replicates: int, n: int, times: int, entries: int = 3) -> np.ndarray:
    """Runs (replicates, n, times, entries) of mean zero, correlated in time as random walks, unequal entries."""
    steps = rng.standard_normal((replicates, n, times, entries)) * np.arange(1, entries + 1)
    return steps.cumsum(2) / np.sqrt(times)


@pytest.mark.parametrize("n", [2, 3, 6])
def test_floor_is_the_distance_from_the_exact_mean(n):
    replicates = 4000
    runs = noisy(np.random.default_rng(n), replicates, n, 12)
    difference = np.array([floors(r).mean() - distances(np.zeros((12, 3)), r).mean() for r in runs])
    assert abs(difference.mean()) < SIGMAS * difference.std() / np.sqrt(replicates)
    # a power to tell: without the factor √(1 + 1/(n − 1)) it would be seen
    wrong = difference.mean() + (np.sqrt(1 + 1 / (n - 1)) - 1) * np.mean([floors(r).mean() for r in runs])
    assert abs(wrong) > SIGMAS * difference.std() / np.sqrt(replicates)


@pytest.mark.parametrize(("shift", "variance"), [(0.0, 2.0), (2.0, 1.0)])
def test_excess_and_its_error(shift, variance, both):
    """It is zero on average without a shift. Its jackknife variance is right with one and twice too large without:

    where the theory is exact the excess is quadratic in the noise, of which the jackknife counts each pair twice.
    """
    theory, meso = both
    replicates, n, T = 300, 8, TIMES.size
    runs = noisy(np.random.default_rng(7), replicates, n, T, 4)
    exact = np.full((T, 4), shift)
    values = np.array([excess(exact, r) for r in runs])
    if shift == 0:
        assert abs(values.mean()) < SIGMAS * values.std() / np.sqrt(replicates)
    else:
        assert values.mean() > 10 * values.std() / np.sqrt(replicates)
    stated = []
    for r in runs:
        data = meso.data.isel(run=slice(n)).copy()
        data["Q"] = (data["Q"].dims, r.reshape(n, T, 2, 2))
        flat = theory.data.copy()
        flat["Q"] = (flat["Q"].dims, exact.reshape(1, T, 2, 2), theory.data["Q"].attrs)
        found = tlog_rmse(replace(theory, data=flat), replace(meso, data=data), "Q")  # type: ignore[arg-type]
        assert found.excess_standard_error is not None
        stated.append(found.excess_standard_error["Q"])
    ratio = np.mean(np.square(stated)) / values.var(ddof=1)
    assert 0.7 * variance < ratio < 1.4 * variance


def test_right_theory_has_no_excess_and_a_wrong_one_has(both):
    """At N = 200 the bias of the runs is small against their spread; a rate that is 20 % off is not."""
    theory, runs = both
    right = tlog_rmse(theory, runs)
    wrong = tlog_rmse(ov.solve(problem(0.6), theory.start, TIMES), runs)
    assert right.excess is not None and right.excess_standard_error is not None and right.floor is not None
    assert wrong.excess is not None and wrong.excess_standard_error is not None
    for name in ("Q", "R", "error"):
        assert abs(right.excess[name]) < 0.1 * right.floor[name]
        assert wrong.excess[name] > 5 * wrong.excess_standard_error[name]


def test_micro_runs_have_the_floor_of_meso(both):
    """Equal in law: the floors of a few runs of either agree."""
    theory, runs = both
    micro = tlog_rmse(theory, ov.train(problem(), theory.start, TIMES, runs=12))
    meso = tlog_rmse(theory, runs)
    assert (
        micro.floor is not None
        and meso.floor is not None
        and micro.standard_error is not None
        and meso.standard_error is not None
    )
    for name in ("Q", "R", "error"):
        error = np.hypot(micro.standard_error[name], meso.standard_error[name])
        assert abs(micro.floor[name] - meso.floor[name]) < stats.t.isf(1e-4 / 6, 11) * error


def test_few_runs(both):
    theory, runs = both
    one = tlog_rmse(theory, replace(runs, data=runs.data.isel(run=[0])))
    assert one.standard_error is one.floor is one.excess is one.excess_standard_error is None
    assert "a single run has no floor" in repr(one)
    two = tlog_rmse(theory, replace(runs, data=runs.data.isel(run=[0, 1])))
    assert two.floor is not None and two.excess_standard_error is None and "nan" not in repr(two) + repr(one)
    three = tlog_rmse(theory, replace(runs, data=runs.data.isel(run=[0, 1, 2])), "error")
    pairs = [
        tlog_rmse(theory, replace(runs, data=runs.data.isel(run=pair)), "error") for pair in ([0, 1], [0, 2], [1, 2])
    ]
    left = [pair.excess["error"] for pair in pairs if pair.excess is not None]
    assert three.excess_standard_error is not None  # √((n − 1)/n Σ (without one − mean)²) with n = 3
    assert three.excess_standard_error["error"] == pytest.approx(np.sqrt(2 * np.var(left)), rel=1e-9)


def test_repr_is_a_table(both):
    lines = repr(tlog_rmse(*both)).splitlines()
    assert lines[0] == f"tLog-RMSE of 24 runs at {TIMES.size} times from 0.005 to 10"
    assert lines[1].split()[:3] == ["rmse", "floor", "excess"]
    assert [line.split()[0] for line in lines[2:6]] == ["Q", "R", "v", "error"]
    assert "±" in lines[2] and "%" in lines[2] and "accurate to" in lines[-1]


def reference(name: str) -> dict[str, np.ndarray]:
    with np.load(DATA / name) as stored:
        return dict(stored)


@pytest.mark.parametrize(
    ("activation", "entries"),
    [
        ("erf", {"Q": (0.006, 0.011), "R": (0.002, 0.006), "v": (0.004, 0.004)}),
        ("relu", {"Q": (0.011, 0.024), "R": (0.008, 0.011), "v": (0.005, 0.006)}),
    ],
)
def test_distances_of_reference_runs(activation, entries):
    """Hidden-manifold runs against their equations (N = 1000): smallest and largest entry; all of it is noise.

    The reference rounds to three decimals and counts time zero; its one number for v of ReLU, 0.006, stands for both.
    """
    stored = reference("r000_ode_vs_sgd.npz")
    assert log_spaced(stored[f"{activation}_t"][1:], 1000)
    for name, (least, most) in entries.items():
        exact, runs = stored[f"{activation}_ode_{name}"], stored[f"{activation}_sgd_{name}"]
        each = distances(exact, runs).mean(0)
        assert (round(each.min(), 3), round(each.max(), 3)) == (least, most)
        without = np.array([excess(exact, np.delete(runs, i, axis=0)) for i in range(6)])
        error = np.sqrt(5 * without.var())
        assert abs(excess(exact, runs)) < stats.t.isf(1e-4 / 12, 5) * error


@pytest.mark.parametrize(
    ("kind", "relu", "erf"),
    [
        ("iid_coord_a9", (0.017, 0.010, 0.004), (0.009, 0.005, 0.004)),
        ("joint_scalar_a9", (0.429, 0.304, 0.261), (0.096, 0.238, 0.104)),
        ("joint_vec_a9", (0.416, 0.303, 0.238), (0.110, 0.199, 0.098)),
        ("joint_vec_a3", (0.395, 0.311, 0.209), (0.083, 0.157, 0.074)),
        ("joint_vec_a1", (0.304, 0.277, 0.169), (0.023, 0.029, 0.015)),
    ],
)
def test_distances_of_reference_mixtures(kind, relu, erf):
    """Standardised mixtures against the Gaussian theory: at the floor for labels per coordinate, far off otherwise."""
    theory, stored = reference("r000_ode_vs_sgd.npz"), reference("r000_gm_standardised_label_test.npz")
    for activation, row in (("relu", relu), ("erf", erf)):
        for name, expected in zip("QRv", row, strict=True):
            found = distances(theory[f"{activation}_ode_{name}"], stored[f"{activation}_{kind}_std1_{name}"]).mean()
            assert found == pytest.approx(expected, abs=5.1e-4)


@pytest.mark.parametrize("steps", [5, 37, 1000, 10**5])
@pytest.mark.parametrize("count", [4, 10, 100, 1000])
@pytest.mark.parametrize("rounding", [np.rint, np.floor])
def test_rounded_grids_are_log_spaced(steps, count, rounding):
    grid = np.unique(rounding(np.geomspace(1, steps, count) * (1 + 1e-12)))
    assert log_spaced(grid / 1000, 1000) == (grid.size <= 0.9 * steps)  # nearly all steps are linear


@pytest.mark.parametrize(
    "steps",
    [
        np.arange(1, 101),
        np.arange(100, 1001, 100),
        np.array([1, 2, 3, 5, 100, 101]),
        np.array([10, 100, 1000, 5000]),
        np.geomspace(1, 1000, 20) + 0.5,
        np.arange(1, 20) ** 2,
    ],
)
def test_other_grids_are_not(steps):
    assert not log_spaced(steps / 1000, 1000)


def rounded_from(steps, first, ratio):
    """Whether rounding to the nearest or down makes these steps of first · ratio^k, tried for many of both."""
    exact = first[:, None, None] * ratio[:, None] ** np.arange(len(steps))
    return any((rounding(exact) == steps).all(-1).any() for rounding in (np.rint, np.floor))


@pytest.mark.parametrize("last", range(28, 52))
def test_three_steps_are_log_spaced_if_some_ratio_makes_them(last):
    steps = np.array([10, 20, last])
    made = rounded_from(steps, np.linspace(9.5, 11, 301), np.linspace(1.2, 2.8, 3201))
    assert log_spaced(steps / 100, 100) == made == (36 <= last <= 44)


def test_exact_ratios_are_log_spaced_at_any_size():
    assert log_spaced(np.geomspace(0.013, 77, 31), 999)
    assert log_spaced(ov.logtimes(0.1, 100, 16)[1:], 1000)


def test_refusals(both):
    theory, runs = both
    chosen, start = problem(), theory.start
    linear = np.linspace(0.1, 2, 12)
    cases = [
        ((3.0, runs), {}, "theory: expected an overlaps.Trajectory"),
        ((theory, None), {}, "simulation: expected an overlaps.Trajectory"),
        ((theory, theory), {}, "simulation: expected runs"),
        ((runs, runs), {}, "theory: expected macro, from solve, got meso; two simulations are for compare"),
        ((theory, runs), {"variables": ["T"]}, "unknown variable that both have 'T'"),
        ((theory, runs), {"variables": []}, "variables: expected names"),
        ((theory, runs), {"variables": [1]}, "variables: expected names"),
        ((theory, runs), {"variables": 3}, "variables: expected names"),
        ((ov.solve(chosen, start, TIMES[:-1]), runs), {}, "the times differ"),
        ((ov.solve(chosen, start, linear), ov.sample(chosen, start, linear, runs=2)), {}, "expected equal ratios"),
        ((ov.solve(chosen, start, [0, 1, 2]), ov.sample(chosen, start, [0, 1, 2], runs=2)), {}, "at least three"),
    ]
    other = problem(units=3)
    begin = ov.draw(other, SIZE, seed=0)
    cases.append(((ov.solve(other, begin, TIMES), runs), {}, "Q of the theory has the shape"))
    unmeasured = theory.data.copy()
    unmeasured["Q"] = unmeasured["Q"].drop_attrs()
    cases.append(((replace(theory, data=unmeasured), runs), {}, "it stopped early"))
    for arguments, options, message in cases:
        with pytest.raises(ov.InputError, match=message):
            tlog_rmse(*arguments, **options)  # type: ignore[arg-type]
