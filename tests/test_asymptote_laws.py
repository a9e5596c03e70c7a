"""The late decay: expansions against the exact error, rates against Jacobians, the law against solutions and data."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import overlaps as ov
from overlaps.averages import method_for
from overlaps.laws.asymptote import decay_rates, late_error, late_modes, near_error
from overlaps.laws.plateaus import typical_teacher
from overlaps.online.macro import EquationOfMotion

DATA = np.load(Path(__file__).parent / "data" / "r002_asymptotic.npz")
ROOT3 = math.sqrt(3)


def problem(units, spectrum=None, readout=None, rate=0.25, algorithm=None):
    net = ov.Committee(units, "erf", units**-0.5 if readout is None else readout)
    data = ov.GaussianInputs(spectrum or ov.PowerLaw(4, 1.0))
    return ov.Problem(data=data, teacher=net, student=net, algorithm=algorithm or ov.GradientFlow(rate))


def unit(p):
    """a = 2√3 η/(3πM), for readouts 1/√M."""
    return 2 * ROOT3 * p.algorithm.rate / (3 * math.pi * p.student.units)


def near_start(p, size, scale, seed=0, length=1.0, inside=1.0):
    """Weights around a drawn teacher, with a part of their difference in its space, in shuffled order."""
    rng = np.random.default_rng(seed)
    M = p.teacher.units
    teacher = length * rng.standard_normal((M, size))
    student = teacher + scale * (rng.standard_normal((M, size)) + inside * rng.standard_normal((M, M)) @ teacher)
    return ov.Start.from_weights(p, student=student[rng.permutation(M)], teacher=teacher)


def typical_start(p, scale, seed=0):
    """Students near a typical teacher, T_b = φ_b I: somewhat shorter, tilted inside its space and outside of it."""
    rng = np.random.default_rng(seed)
    M, T = p.teacher.units, typical_teacher(p)
    rows = (1 - 2 * scale) * np.eye(M) + scale * rng.standard_normal((len(T), M, M))
    outside = 0.3 * scale * rng.standard_normal((len(T), M, 2 * M))
    share = p.data.fractions[:, None, None]
    Q = rows @ T @ rows.swapaxes(1, 2) + share * outside @ outside.swapaxes(1, 2)
    return ov.Start.from_overlaps(p, Q=Q, R=rows @ T, T=T)


def totals(p, start):
    return (np.tensordot(p.data.eigenvalues, part, 1) for part in (start.Q, start.R, start.T))


def exact_error(p, start):
    return ov.gaussian_averages(p, np.tensordot(p.data.eigenvalues, start.gram, 1)).error


def jacobian_at_the_teacher(p, T):
    """Derivatives of (Q, R) of all levels at Q = R = T by central differences, and the pieces of the state."""
    start = ov.Start.from_overlaps(p, Q=T, R=T, T=T)
    motion = EquationOfMotion(p, start, method_for(p, start.u))
    y = motion.pack(start.Q, start.R, start.v)
    step = 1e-5
    columns = [(motion(0.0, y + step * e) - motion(0.0, y - step * e)) / (2 * step) for e in np.eye(y.size)]
    return np.array(columns).T, motion


# ---- the expansion of the error --------------------------------------------------------------------------------------


@pytest.mark.parametrize("units, readout, length", [(2, None, 1.0), (3, 1.0, 0.6), (5, 0.4, 1.5), (1, 1.0, 1.0)])
def test_second_order_is_exact_near_the_teacher_and_first_order_is_not(units, readout, length):
    """Ten times closer, the second order is ten times better; the first stays off by the same share, over 5 draws."""
    p = problem(units, readout=readout)
    off = {1: [], 2: []}
    for scale in (1e-2, 1e-3):
        for order in off:
            errors = []
            for seed in range(5):
                start = near_start(p, 60, scale, seed, length)
                Q, R, T = totals(p, start)
                errors.append(near_error(p, Q, R, T, order=order) / exact_error(p, start) - 1)
            off[order].append(np.sqrt(np.mean(np.square(errors))))
    assert 5 < off[2][0] / off[2][1] < 20 and off[2][1] < 0.01
    assert 0.5 < off[1][0] / off[1][1] < 2 and off[1][1] > 0.02


def test_expansion_written_out_for_a_typical_teacher():
    """Total T = 1: (1/6π)[2√3 Σ e_ii/M + 3 Σ_i≠j e_ij/M] to first order, and its corrections in r."""
    p = problem(3)
    start = typical_start(p, 1e-2)
    Q, R, T = totals(p, start)
    e, r, off = Q - R - R.T + T, R - T, 1 - np.eye(3)
    assert np.eye(3) == pytest.approx(T, abs=1e-12)
    first = (2 * ROOT3 * np.trace(e) + 3 * np.sum(off * e)) / (18 * np.pi)
    assert near_error(p, Q, R, order=1) == pytest.approx(first, rel=1e-12)
    own = np.diag(r)
    cross = np.sum(off * (own[:, None] * r.T + r * own[None, :]))
    second = first - (2 * np.sum(own**2) / 3**1.5 + cross / 4) / (3 * np.pi)
    assert near_error(p, Q, R) == pytest.approx(second, rel=1e-12)


def test_expansion_of_a_trajectory_matches_students():
    p = problem(3)
    start = near_start(p, 400, 0.02)
    _, _, T = totals(p, start)
    run = ov.solve(p, start, [0.0, 10.0, 100.0])
    near = near_error(p, run.data["Q"].values, run.data["R"].values, T)
    assert near == pytest.approx(run.data["error"].values, rel=0.05) and near.shape == (1, 3)


# ---- rates -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("units", [2, 3, 5])
def test_rates_of_a_typical_teacher(units):
    p = problem(units)
    rates = decay_rates(p) / (unit(p) * p.data.eigenvalues[:, None])
    assert rates[:, :-1] == pytest.approx(np.full((4, units - 1), 2 - ROOT3), rel=1e-11)
    assert rates[:, -1] == pytest.approx(np.full(4, 2 + ROOT3 * (units - 1)), rel=1e-12)


@pytest.mark.parametrize("units", [2, 3, 5])
def test_jacobian_of_symmetric_students(units):
    """Overlaps that are equal for all students obey 4 equations per level, with known matrices for any M."""
    p, M, h = problem(units), units, ROOT3 / 2
    omega, T = p.data.eigenvalues, typical_teacher(p)
    jacobian, motion = jacobian_at_the_teacher(p, T)
    eye, off, levels = np.eye(M), 1 - np.eye(M), omega.size
    measured = np.empty((4, levels, 4, levels))
    for variable, (dQ, dR) in enumerate([(0 * off, eye), (0 * off, off), (eye, 0 * off), (off, 0 * off)]):
        for b in range(levels):
            at = np.eye(levels)[b][:, None, None]
            moved = jacobian @ motion.pack(at * dQ, at * dR, np.zeros(M))
            Q, R, _ = motion.unpack(moved)
            measured[:, :, variable, b] = R[0, 0], R[0, 1], Q[0, 0], Q[0, 1]
    G = np.array(
        [
            [1, h * (M - 1), 0, 0],
            [h, 1 + h * (M - 2), 0, 0],
            [-2, -2 * h * (M - 1), 2, 2 * h * (M - 1)],
            [-2 * h, -2 - 2 * h * (M - 2), 2 * h, 2 + 2 * h * (M - 2)],
        ]
    )
    H = np.array(
        [
            [-1 / 3, -h * (M - 1) / 2, 1 / 2, h * (M - 1) / 2],
            [0, 0, ROOT3 / 8, 0],
            [-2 / 3, -h * (M - 1), 1, h * (M - 1)],
            [0, 0, ROOT3 / 4, 0],
        ]
    )
    expected = np.einsum("xy,bc->xbyc", H, np.outer(omega * T[:, 0, 0], omega))
    expected -= np.einsum("xy,bc->xbyc", G, np.diag(omega))
    assert measured == pytest.approx(unit(p) * expected, abs=1e-9)


@pytest.mark.parametrize("units, levels, size", [(1, 3, 50), (2, 3, 60), (3, 2, 40), (3, 2, 4)])
def test_rates_are_eigenvalues_of_the_jacobian(units, levels, size):
    """For any teacher the spectrum at perfect learning is half the coupled rates, and half the sums of two free ones.

    At size 4 a level has two dimensions for three teachers, whose overlaps then have no inverse.
    """
    p = problem(units, ov.PowerLaw(levels, 0.5), 0.8)
    start = near_start(p, size, 0.0)
    T, M = start.T, units
    jacobian, motion = jacobian_at_the_teacher(p, T)
    # of the square Q only its symmetric part is a state
    found = []
    for x in np.eye(levels * M * (M + 1) // 2 + levels * M**2):
        q, r = x[: levels * M * (M + 1) // 2].reshape(levels, -1), x[levels * M * (M + 1) // 2 :]
        Q = np.zeros((levels, M, M))
        Q[:, *np.triu_indices(M)] = q
        Q[:, *np.tril_indices(M, -1)] = Q.swapaxes(1, 2)[:, *np.tril_indices(M, -1)]
        dQ, dR, _ = motion.unpack(jacobian @ motion.pack(Q, r.reshape(levels, M, M), np.zeros(M)))
        dQ, dR = np.moveaxis(dQ, -1, 0), np.moveaxis(dR, -1, 0)
        found.append(np.concatenate([dQ[:, *np.triu_indices(M)].ravel(), dR.ravel()]))
    found = np.sort(-np.linalg.eigvals(np.array(found).T).real)
    free = decay_rates(p, np.tensordot(p.data.eigenvalues, T, 1))
    coupled = list(late_modes(p, T, T, T).rates)
    for rate in free.ravel():  # what is left of all modes are the coupled ones
        coupled.pop(int(np.abs(np.array(coupled) - rate).argmin()))
    pairs = (free[:, :, None] + free[:, None, :])[:, *np.triu_indices(M)] / 2
    assert found == pytest.approx(np.sort(np.append(np.array(coupled) / 2, pairs)), rel=1e-5)


@pytest.mark.parametrize("units, levels, slowest", [(2, 9, 0.01933), (3, 4, 0.04692), (6, 3, 0.0650)])
def test_differences_inside_the_space_of_the_teachers_live_longest(units, levels, slowest):
    p = problem(units, ov.PowerLaw(levels, 1.0))
    modes = late_modes(p, typical_teacher(p), typical_teacher(p))
    assert modes.rates[0] / unit(p) == pytest.approx(slowest, rel=1e-3)
    assert modes.rates[0] < decay_rates(p).min()


# ---- the law against solutions ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "units, readout, length, size",
    [(2, None, 1.0, 300), (3, 1.0, 0.7, 300), (4, 0.5, 1.3, 300), (1, 1.0, 1.0, 300), (3, None, 1.0, 6)],
)
def test_law_of_a_drawn_teacher(units, readout, length, size):
    """Over three decades of error; ten times closer students, at least four times smaller deviations.

    At size 6 the overlaps of three teachers on levels of two dimensions have no inverse.
    """
    p = problem(units, ov.PowerLaw(3, 0.5), readout)
    slowest, worst = decay_rates(p).min(), []
    times = np.linspace(0, 4, 9) / slowest
    for scale in (1e-2, 1e-3):
        start = near_start(p, size, scale, length=length)
        run = ov.solve(p, start, times)
        error = run.data["error"].values[0]
        law = late_error(p, start.Q, start.R, times, start.T)
        # the solution is known to some 1e-14, its relative accuracy ends there
        keep = error > 1e-10
        assert keep.sum() >= 3
        worst.append(np.abs(law / error - 1)[keep].max())
    assert worst[0] < 0.1 and worst[1] < worst[0] / 4


@pytest.mark.parametrize(
    "units, spectrum", [(3, ov.PowerLaw(5, 1.0)), (5, ov.Spectrum([3.0, 1.0, 0.5], [0.2, 0.3, 0.5]))]
)
def test_law_of_a_typical_teacher(units, spectrum):
    p = problem(units, spectrum)
    times = np.linspace(0, 3, 7) / decay_rates(p).min()
    start = typical_start(p, 2e-3)
    error = ov.solve(p, start, times).data["error"].values[0]
    assert late_error(p, start.Q, start.R, times) == pytest.approx(error, rel=0.01)
    first = late_error(p, start.Q, start.R, times, order=1)
    assert np.abs(first / error - 1).max() > 0.03


def test_typical_teacher_is_a_limit_of_others():
    """The reduced equations of T_b ∝ I and those of any teacher are two programs."""
    p = problem(4, ov.PowerLaw(6, 0.5))
    start, times = typical_start(p, 0.02), np.linspace(0, 3000, 7)
    tilt = 1e-10 * np.ones((4, 4))
    reduced = late_error(p, start.Q, start.R, times)
    full = late_error(p, start.Q + tilt, start.R + tilt, times, start.T + tilt)
    assert reduced == pytest.approx(full, rel=1e-6)


def test_dependent_teachers_do_not_amplify_rounding():
    """Three teachers on levels of two dimensions: overlaps off by 1e-11, as those of a solution are, change nothing."""
    p = problem(3, ov.PowerLaw(3, 0.5))
    start = near_start(p, 6, 1e-3)
    noise = 1e-11 * np.random.default_rng(1).standard_normal(start.R.shape)
    law = late_error(p, start.Q, start.R, [0.0, 100.0], start.T)
    assert late_error(p, start.Q, start.R + noise, [0.0, 100.0], start.T) == pytest.approx(law, rel=1e-3)


@pytest.mark.parametrize("levels, offset", [(3, 0.183), (9, 0.096)])
def test_paper_setting(levels, offset):
    """M = 2, rate 0.25, from small random students: the law from time 2000 to 6000.

    The first order starts off by `offset` and comes within 1 to 5 %; the second order is within 2 % throughout, the
    distance |W − B| it starts from.
    """
    p = problem(2, ov.PowerLaw(levels, 1.0))
    start = ov.draw(p, 9000, seed=1, scale=0.01)
    times = np.arange(2000.0, 6001.0, 500.0)
    run = ov.solve(p, start, times, levels=True)
    Q, R = run.data["Q_levels"].values[0, 0], run.data["R_levels"].values[0, 0]
    error = run.data["error"].values[0]
    second = late_error(p, Q, R, times - 2000, start.T) / error - 1
    first = late_error(p, Q, R, times - 2000, start.T, order=1) / error - 1
    assert np.abs(second).max() < 0.021 and abs(second[0]) < 0.013
    assert first[0] == pytest.approx(offset, abs=0.005)
    assert np.abs(first[1:]).max() < 0.05
    # past its start the second order keeps its distance, the first drifts away: its slowest rate is too fast
    if levels == 3:
        assert abs(second[-1] - second[-2]) < 1e-3 < abs(first[-1] - first[-2])


@pytest.mark.parametrize("levels", [3, 9])
def test_published_numbers(levels):
    """Stored curves of the same setting: the closed asymptote has our rates, and the solution falls as it."""
    p = problem(2, ov.PowerLaw(levels, 1.0))
    late = DATA[f"L{levels}_alpha"] >= 2000
    times = DATA[f"L{levels}_alpha"][late] - 2000
    closed, solved = DATA[f"L{levels}_pred"][late], DATA[f"L{levels}_eps"][late]
    curves = np.exp(-np.multiply.outer(times, decay_rates(p).ravel()))
    weights = np.linalg.lstsq(curves / closed[:, None], np.ones(times.size), rcond=None)[0]
    assert curves @ weights == pytest.approx(closed, rel=1e-10)
    assert np.all(weights > 0)
    after = times >= 500
    assert closed[after] == pytest.approx(solved[after], rel=0.06)
    slope = -np.polyfit(times[-20:], np.log(solved[-20:]), 1)[0]
    slowest = late_modes(p, typical_teacher(p), typical_teacher(p)).rates[0]
    # faster levels have died out in the smaller system; in the larger one a tenth of the slope is still theirs
    assert slope == pytest.approx(slowest, rel=1e-3) if levels == 3 else slowest < slope < 1.2 * slowest


def test_modes_are_those_of_an_error():
    """At time zero the expansion, every amplitude positive, rates rising; students in any order."""
    p = problem(3)
    for start, T in ((typical_start(p, 0.01), None), (near_start(p, 300, 0.01), "own")):
        T_levels = start.T if T else None
        Q, R, total = totals(p, start)
        for order in (1, 2):
            modes = late_modes(p, start.Q, start.R, T_levels, order=order)
            assert modes([0.0])[0] == pytest.approx(near_error(p, Q, R, total, order=order), rel=1e-8)
            assert modes.amplitudes.min() >= 0 and np.all(np.diff(modes.rates) >= 0) and modes.floor == 0
            swap = [2, 0, 1]
            again = late_modes(p, start.Q[:, swap][:, :, swap], start.R[:, swap], T_levels, order=order)
            assert again([100.0]) == pytest.approx(modes([100.0]), rel=1e-9)


def test_many_levels_and_silent_ones():
    p = problem(3, ov.PowerLaw(10_000, 1.0))
    T = typical_teacher(p)
    assert np.isfinite(late_error(p, 0.99**2 * T, 0.99 * T, [0.0, 10.0], order=1)).all()
    with pytest.raises(ov.InputError, match="couples 20000 equations"):
        late_error(p, 0.99**2 * T, 0.99 * T, [0.0])
    # students and teachers in directions that no input has never matter
    p = problem(2, ov.Spectrum([2.0, 0.0], [0.5, 0.5]))
    start = typical_start(p, 0.01)
    modes = late_modes(p, start.Q, start.R)
    assert modes.rates.min() > 0
    assert modes([0.0])[0] == pytest.approx(exact_error(p, start), rel=0.05)


def test_refusals():
    p = problem(2)
    T = typical_teacher(p)
    with pytest.raises(ov.InputError, match="take a later reference point"):
        late_modes(p, 0.1 * T, 0.1 * T)
    with pytest.raises(ov.InputError, match="no weights have these overlaps"):
        late_modes(p, 0.9 * T, T)
    with pytest.raises(ov.InputError, match="order: expected at most 2"):
        late_modes(p, T, T, order=3)
    with pytest.raises(ov.InputError, match=r"\(\.\.\., 2, 2\)"):
        near_error(p, np.eye(3), np.eye(3))
    with pytest.raises(ov.InputError, match="symmetric"):
        near_error(p, np.eye(2), np.eye(2), [[1.0, 2.0], [2.0, 1.0]])
    with pytest.raises(ov.InputError, match="erf activations"):
        net = ov.Committee(2, "linear")
        decay_rates(ov.Problem(data=p.data, teacher=net, student=net, algorithm=p.algorithm))
    assert late_error(p, T, T, [0.0, 1.0]) == pytest.approx([0.0, 0.0], abs=1e-15)
