"""The plateau: at rest in the equation of motion, closed forms, growth rates against Jacobians, solutions and data."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest

import overlaps as ov
from overlaps.averages import method_for
from overlaps.laws.plateaus import Plateau, equal_rows, plateau, typical_teacher
from overlaps.online.macro import EquationOfMotion
from overlaps.papers.committee import paper as committee

DATA = np.load(Path(__file__).parent / "data" / "r002_plateau_fig4.npz")
SIZES = [(2, 1), (2, 3), (4, 10), (3, 5)]  # units, levels


def problem(units, levels=1, readout=None, rate=0.1, spectrum=None, algorithm=None):
    net = ov.Committee(units, "erf", units**-0.5 if readout is None else readout)
    data = ov.GaussianInputs(spectrum or ov.PowerLaw(levels, 0.25))
    return ov.Problem(data=data, teacher=net, student=net, algorithm=algorithm or ov.GradientFlow(rate))


def equal_teacher(rng, units, levels):
    """Equal rows in every level: own overlaps of that level, and a sum of the others that weights can have."""
    own = rng.uniform(0.2, 1.0, levels) / levels
    other = own * rng.uniform(-0.8 / (units - 1), 0.5, levels)
    return other[:, None, None] + (own - other)[:, None, None] * np.eye(units)


def unequal_teacher(rng, units, levels):
    rows = rng.standard_normal((levels, units, 3 * units)) * rng.uniform(0.6, 1.4, (units, 1))
    return rows @ rows.swapaxes(1, 2) / (3 * units * levels)


TEACHERS = {"equal": equal_teacher, "unequal": unequal_teacher}


def totals(p, T, moment=1):
    """(T, D) of equal rows: diagonal, and sum of the others."""
    total = np.tensordot(p.data.eigenvalues**moment, T, 1)
    return total[0, 0], total[0, 1:].sum()


def parted(p, T, P, ways):
    """Start at the plateau with weights Σ_m (a_m + ω_b ways_im) B_m, the shape in which students part, (M, M)."""
    total = np.tensordot(p.data.eigenvalues, T, 1)
    a = np.linalg.solve(total, P.R)
    rows = a + p.data.eigenvalues[:, None, None] * ways
    return ov.Start.from_overlaps(p, Q=rows @ T @ rows.swapaxes(1, 2), R=rows @ T, T=T)


def motion_at(p, start):
    motion = EquationOfMotion(p, start, method_for(p, start.u))
    return motion, motion.pack(start.Q, start.R, start.v)


def exact_error(p, start):
    omega = p.data.eigenvalues
    return ov.gaussian_averages(p, np.tensordot(omega, start.gram, 1)).error


# ---- the fixed point -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", TEACHERS)
@pytest.mark.parametrize("readout", [1.0, None, -0.3])
@pytest.mark.parametrize("units, levels", SIZES)
def test_plateau_is_at_rest(units, levels, readout, kind):
    """Nothing moves there, to rounding, in the equation of motion that knows nothing of plateaus."""
    rng = np.random.default_rng(units * levels)
    p, T = problem(units, levels, readout), TEACHERS[kind](rng, units, levels)
    P = plateau(p, T)
    Q = np.broadcast_to(P.Q_levels[:, None, None], (levels, units, units))
    start = ov.Start.from_overlaps(p, Q=Q, R=np.broadcast_to(P.R_levels[:, None, :], Q.shape), T=T)
    motion, y = motion_at(p, start)
    assert np.abs(motion(0.0, y)).max() < 1e-15
    assert exact_error(p, start) == pytest.approx(P.error, rel=1e-11)
    assert pytest.approx(p.data.eigenvalues @ P.R_levels, rel=1e-13) == P.R
    assert pytest.approx(p.data.eigenvalues @ P.Q_levels, rel=1e-13) == P.Q


@pytest.mark.parametrize("readout", [1.0, None])
@pytest.mark.parametrize("units, levels", SIZES)
def test_closed_forms_of_equal_rows(units, levels, readout):
    """Height, moments of every order, escape time and prefactor, written out as in the references."""
    p, T = problem(units, levels, readout), equal_teacher(np.random.default_rng(units + levels), units, levels)
    P, M, c2, rate = plateau(p, T), units, p.student.readouts[0] ** 2, p.algorithm.rate
    t, d = totals(p, T)
    tau, full = t + d, M * (1 + t)
    Q = 1 / (full / tau - 1)
    R = math.sqrt(Q * tau / M)
    assert pytest.approx(Q, rel=1e-12) == P.Q
    assert pytest.approx(np.full(M, R), rel=1e-12) == P.R
    for moment in range(4):
        own, others = totals(p, T, moment)
        weights = p.data.eigenvalues**moment
        assert weights @ P.R_levels == pytest.approx(np.full(M, R * (own + others) / tau), rel=1e-12)
        assert weights @ P.Q_levels == pytest.approx(Q * (own + others) / tau, rel=1e-12)
    angles = math.asin(t / (1 + t)) + (M - 1) * math.asin(d / ((M - 1) * (1 + t))) - M * math.asin(tau / full)
    assert P.error == pytest.approx(c2 * M / math.pi * angles, rel=1e-10)
    own, others = totals(p, T, 2)
    shape = tau / (math.sqrt(full - tau) * (full + tau) ** 1.5)
    growth = 2 * rate * c2 * M / math.pi * shape * (own - others / (M - 1))
    assert P.rates[:-1] == pytest.approx(np.full(M - 1, growth), rel=1e-11)
    assert abs(P.rates[-1]) < 1e-12 * growth
    assert P.escape_time == pytest.approx(1 / growth, rel=1e-11)
    assert P.prefactor == pytest.approx(c2 * M / math.pi * M**2 / (M - 1) * shape, rel=1e-11)


def test_readouts_may_differ_by_rounding():
    student, teacher = ov.Committee(3, "erf", 3**0.5 / 3), ov.Committee(3, "erf", 1 / 3**0.5)
    assert student != teacher
    P = plateau(ov.Problem(data=ov.GaussianInputs(), teacher=teacher, student=student, algorithm=ov.GradientFlow(0.1)))
    assert P.error == pytest.approx(plateau(problem(3)).error, rel=1e-12)


@pytest.mark.parametrize("units", [2, 3, 6])
def test_isotropic_inputs_are_those_of_saad_and_solla(units):
    P = plateau(problem(units, readout=1.0, rate=0.3, spectrum=ov.Isotropic()))
    assert P.error == pytest.approx(committee.plateau_height(units), rel=1e-11)
    assert P.rates[0] == pytest.approx(0.3 * committee.escape_rate(units), rel=1e-12)
    assert pytest.approx(1 / (2 * units - 1), rel=1e-13) == P.Q
    assert pytest.approx(np.full(units, (units * (2 * units - 1)) ** -0.5), rel=1e-13) == P.R


def test_many_units_escape_in_the_square_of_their_number():
    """τ → 2π M²/(η T⁽²⁾) for readouts 1/√M; the next order is 1/(2M)."""
    for units in (50, 200):
        p = problem(units, 3)
        second = p.data.fractions @ p.data.eigenvalues**2
        ratio = plateau(p).escape_time * p.algorithm.rate * second / (2 * np.pi * units**2)
        assert ratio == pytest.approx(1 + 1 / (2 * units), abs=1 / units**2)


def test_ten_thousand_levels():
    p = problem(4, spectrum=ov.PowerLaw(10_000, 0.25))
    second = p.data.fractions @ p.data.eigenvalues**2
    one = plateau(problem(4, spectrum=ov.Isotropic()))
    P = plateau(p)
    assert P.error == pytest.approx(one.error, rel=1e-10) and P.R_levels.shape == (10_000, 4)
    assert P.escape_time == pytest.approx(one.escape_time / second, rel=1e-10)


def test_sgd_rests_there_to_first_order_in_the_rate():
    """Label noise and the noise of SGD push students off at second order in the rate, not before."""
    pushes = []
    for rate in (0.2, 0.1):
        p = problem(3, 2, algorithm=ov.OnlineSGD(rate))
        p = ov.Problem(data=p.data, teacher=p.teacher, student=p.student, algorithm=p.algorithm, label_noise=0.1)
        P, T = plateau(p), typical_teacher(p)
        motion, y = motion_at(p, parted(p, T, P, np.zeros((3, 3))))
        pushes.append(np.abs(motion(0.0, y)).max())
    assert pushes[0] / pushes[1] == pytest.approx(4, rel=1e-9)


# ---- leaving it ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", TEACHERS)
@pytest.mark.parametrize("units, levels, readout", [(2, 3, 1.0), (3, 2, None), (4, 1, 0.7)])
def test_growth_rates_are_eigenvalues_of_the_jacobian(units, levels, readout, kind):
    """Every rate is found M − 1 times among the eigenvalues at the plateau, and nothing else grows."""
    p, T = problem(units, levels, readout), TEACHERS[kind](np.random.default_rng(7), units, levels)
    P = plateau(p, T)
    motion, y = motion_at(p, parted(p, T, P, np.zeros((units, units))))
    step = 1e-5
    columns = [(motion(0.0, y + step * e) - motion(0.0, y - step * e)) / (2 * step) for e in np.eye(y.size)]
    found = np.linalg.eigvals(np.array(columns).T)
    # the many zero eigenvalues are defective: finite differences move them by the root of their error
    rough = 1e-4 * P.rates[0]
    growing = np.sort(found.real[found.real > rough])[::-1]
    expected = P.rates[P.rates > rough]
    assert growing == pytest.approx(np.repeat(expected, units - 1), rel=1e-5)
    shrinking = P.rates[P.rates < -rough]
    for rate in shrinking:
        assert np.sum(np.abs(found - rate) < 1e-5 * abs(rate)) >= units - 1


@pytest.mark.parametrize("kind", TEACHERS)
@pytest.mark.parametrize("units, levels", SIZES)
def test_loss_of_error_is_a_second_difference(units, levels, kind):
    """error* − error = Σ_k rates_k Σ_i (modes_k · r_i)² for any small parting, from the exact error alone."""
    rng = np.random.default_rng(3)
    p, T = problem(units, levels, 0.8), TEACHERS[kind](rng, units, levels)
    P, omega = plateau(p, T), p.data.eigenvalues
    a = np.linalg.solve(np.tensordot(omega, T, 1), P.R)
    ways = rng.standard_normal((levels, units, units))  # another direction in every level, also such that never grow
    ways -= ways.mean(axis=1, keepdims=True)

    def error(step):
        rows = a + step * ways
        return exact_error(p, ov.Start.from_overlaps(p, Q=rows @ T @ rows.swapaxes(1, 2), R=rows @ T, T=T))

    step = 5e-4
    lost = -(error(step) + error(-step) - 2 * error(0.0)) / (2 * step**2)
    r = np.tensordot(omega, ways @ T, 1)
    law = np.sum(P.rates * np.sum((r @ P.modes.T) ** 2, axis=0))
    scale = np.sum(np.abs(P.rates) * np.sum((r @ P.modes.T) ** 2, axis=0))
    assert lost == pytest.approx(law, abs=1e-3 * scale)


@pytest.mark.parametrize("kind", TEACHERS)
@pytest.mark.parametrize("units, levels", SIZES)
def test_escape_of_a_solution(units, levels, kind):
    """A solution that starts a little parted leaves as the law says: r as e^{t/τ}, the error as e^{2t/τ}."""
    rng = np.random.default_rng(units)
    p, T = problem(units, levels), TEACHERS[kind](rng, units, levels)
    P = plateau(p, T)
    ways = rng.standard_normal((units, units))
    ways -= ways.mean(axis=0)
    unit = P.specialisation(np.tensordot(p.data.eigenvalues**2, ways @ T, 1))
    start = parted(p, T, P, 1e-3 * P.R.mean() * ways / unit)
    times = P.escape_time * np.linspace(0, 1.5, 7)
    run = ov.solve(p, start, times)
    R, error = run.data["R"].values[0], run.data["error"].values[0]
    # corrections are of relative order r/R, here 1e-3 to 5e-3
    assert P.error - error == pytest.approx(P.escape(times, R[0]), rel=0.01)
    r = P.specialisation(R)
    if kind == "equal":
        assert r == pytest.approx(r[0] * np.exp(times / P.escape_time), rel=0.01)
        assert P.error - error == pytest.approx(P.prefactor * r**2, rel=0.01)
        slope = np.polyfit(times / P.escape_time, np.log(P.error - error), 1)[0]
        assert slope == pytest.approx(2, abs=0.01)
        assert P.length(r[0], deviation=r[0] * math.e) == pytest.approx(P.escape_time, rel=1e-12)


def test_prefactor_of_unequal_rows_is_that_of_the_fastest_way():
    p = problem(4, 3)
    P = plateau(p, unequal_teacher(np.random.default_rng(2), 4, 3))
    fastest = np.linalg.inv(P.modes)[:, 0]
    R = P.R + 1e-3 * np.outer([1.0, -2.0, 0.5, 0.5], fastest)
    assert P.prefactor * P.specialisation(R) ** 2 == pytest.approx(P.escape([0.0], R)[0], rel=1e-9)


@pytest.mark.parametrize("own, coefficient", [(0.5, 0.037786), (2.0, 0.030965)])
def test_prefactor_where_the_teacher_is_not_of_unit_length(own, coefficient):
    """M = 3, one level, D = 0.1: the value also at T ≠ 1, where a form exact at T = 1 alone is 20 % off."""
    p = problem(3, spectrum=ov.Isotropic())
    T = (0.05 + (own - 0.05) * np.eye(3))[None]
    P = plateau(p, T)
    assert P.prefactor == pytest.approx(coefficient, abs=1e-6)
    ways = 1e-3 * P.R.mean() * (np.eye(3) - 1 / 3)
    start = parted(p, T, P, ways)
    r = P.specialisation(np.tensordot(p.data.eigenvalues, start.R, 1))
    assert (P.error - exact_error(p, start)) / r**2 == pytest.approx(coefficient, rel=5e-3)


# ---- a drawn teacher: M = 4, N = 7000, small random students, rate 0.1 -----------------------------------------------


def drawn(name):
    """The plateau of that teacher, and of its averaged rows: two levels that have its first and second moment."""
    high, low = 5.0, 0.2
    first, second = DATA[f"{name}_T1"], DATA[f"{name}_T2"]
    T = np.array(
        [(second - low * first) / (high * (high - low)), (high * first - second) / (low * (high - low))]
    )  # the law sees no more of the levels than these moments
    p = problem(4, spectrum=ov.Spectrum([high, low]))
    return plateau(p, T), plateau(p, equal_rows(T))


def test_heights_of_a_drawn_teacher():
    P, averaged = drawn("L10")
    assert pytest.approx([0.18469, 0.19275, 0.19802, 0.19994], abs=1e-5) == P.R
    at = int(np.searchsorted(DATA["L10_alpha"], 700))
    assert DATA["L10_R1"][at] == pytest.approx(np.broadcast_to(P.R, (4, 4)), abs=1e-3)
    assert DATA["L10_R1"][at].mean(0) == pytest.approx(P.R, abs=1e-5)
    assert DATA["L10_eps"][at] == pytest.approx(P.error, rel=1e-4)
    assert pytest.approx(np.full(4, 0.1939), abs=5e-5) == averaged.R
    assert pytest.approx(0.1465, abs=5e-5) == averaged.Q
    assert averaged.error == pytest.approx(0.007151, abs=5e-7)


@pytest.mark.parametrize("name, first, last", [("L10", 700, 1500), ("L2", 700, 2500)])
def test_growth_of_a_drawn_teacher(name, first, last):
    """Averaged rows give the published escape time; the run itself has three, and each way grows with its own."""
    P, averaged = drawn(name)
    assert averaged.escape_time == pytest.approx(float(DATA[f"{name}_tau"]), rel=1e-9)
    times = DATA[f"{name}_alpha"]
    inside = (times >= first) & (times <= last)
    R = DATA[f"{name}_R1"][inside]
    amplitudes = np.sqrt(np.sum(((R - R.mean(1, keepdims=True)) @ P.modes.T) ** 2, axis=1))
    measured = [np.polyfit(times[inside], np.log(a), 1)[0] for a in amplitudes.T[:3]]
    assert np.array(measured) == pytest.approx(P.rates[:3], rel=0.01)
    # a fit to the overlaps as a whole sees their mixture
    assert P.rates[2] < 1 / float(DATA[f"{name}_growth"]) < P.rates[0]


@pytest.mark.parametrize("name, first, last", [("L10", 1000, 2000), ("L2", 3000, 4500)])
def test_loss_of_error_with_a_drawn_teacher(name, first, last):
    """Three unequal ways at once; the stored error is noisy by some 5e-9, r/R reaches some per cent at the end."""
    P, _ = drawn(name)
    times = DATA[f"{name}_alpha"]
    inside = (times >= first) & (times <= last)
    lost = P.escape(times[inside] - first, DATA[f"{name}_R1"][inside][0])
    assert P.error - DATA[f"{name}_eps"][inside] == pytest.approx(lost, rel=0.03, abs=1e-8)
    assert lost[-1] > 1e-6


@pytest.mark.parametrize("name, begin", [("L10", 700), ("L2", 1500)])
def test_length_is_a_low_estimate(name, begin):
    P, _ = drawn(name)
    times, r = DATA[f"{name}_alpha"], P.specialisation(DATA[f"{name}_R1"])
    at = int(np.searchsorted(times, begin))
    end = times[np.argmax(r > (math.e - 1) * P.R.mean())]
    assert 0.75 < P.length(float(r[at])) / (end - times[at]) < 1


# ---- refusals --------------------------------------------------------------------------------------------------------

NET = ov.Committee(2, "erf", 0.5)
FLOW = ov.GradientFlow(0.1)
INPUTS = ov.GaussianInputs()


@pytest.mark.parametrize(
    "teacher, student, algorithm, rest, message",
    [
        (NET, ov.Committee(3, "erf", 0.5), FLOW, {}, "as many students as teachers, got 3 and 2"),
        (ov.Committee(2, "relu", 0.5), ov.Committee(2, "relu", 0.5), FLOW, {}, "erf activations, got relu"),
        (NET, ov.Committee(2, "erf", 0.6), FLOW, {}, "one readout"),
        (NET, ov.Committee(2, "erf", [0.5, 0.4]), FLOW, {}, "one readout"),
        (ov.Committee(2, "erf", 0.0), ov.Committee(2, "erf", 0.0), FLOW, {}, "not zero"),
        (NET, ov.Committee(2, "erf", 0.5, train_readout=True), FLOW, {}, "fixed readout"),
        (NET, NET, ov.GradientFlow(0.1, decay=0.01), {}, "no decay, got 0.01"),
        (ov.Committee(1), ov.Committee(1), FLOW, {}, "no plateau"),
    ],
)
def test_problems_outside_the_law_are_refused(teacher, student, algorithm, rest, message):
    with pytest.raises(ov.InputError, match=message) as refusal:
        plateau(ov.Problem(data=INPUTS, teacher=teacher, student=student, algorithm=algorithm, **rest))
    assert "solve" in str(refusal.value)


def test_teachers_outside_the_law_are_refused():
    p = problem(2, spectrum=ov.Isotropic())
    with pytest.raises(ov.InputError, match="alike"):
        plateau(p, np.ones((1, 2, 2)))
    with pytest.raises(ov.InputError, match="sum to zero"):
        plateau(p, [[[1.0, -1.0], [-1.0, 1.0]]])
    with pytest.raises(ov.InputError, match="negative"):
        plateau(p, [[[1.0, 2.0], [2.0, 1.0]]])
    with pytest.raises(ov.InputError, match="shape"):
        plateau(p, np.ones((2, 2, 2)))
    with pytest.raises(ov.InputError, match="memory"):
        plateau(problem(3000, 100))
    with pytest.raises(ov.InputError, match=r"overlaps\.Problem"):
        plateau("problem")  # type: ignore[arg-type]


def test_extreme_teachers_converge():
    """Lengths over many decades, and teachers that nearly cancel or are linearly dependent."""
    rng = np.random.default_rng(11)
    for _ in range(200):
        units, rank = int(rng.integers(2, 8)), int(rng.integers(2, 10))
        rows = rng.standard_normal((units, rank)) * np.exp(rng.normal(0, 2, (units, 1)))
        p = problem(units, spectrum=ov.Isotropic())
        try:
            P = plateau(p, (rows @ rows.T)[None])
        except ov.InputError as refusal:
            assert "stable" in str(refusal)
            continue
        assert np.isfinite([P.error, P.Q, P.prefactor, P.escape_time]).all() and P.error >= -1e-12


def test_what_the_result_refuses_and_shows():
    P = plateau(problem(2, spectrum=ov.Isotropic()))
    said = re.fullmatch(r"Plateau\(error = (\S+), Q = (\S+), R = (\S+), escape time (\S+)\)", repr(P))
    assert said is not None
    assert [float(x) for x in said.groups()] == pytest.approx([P.error, 1 / 3, 1 / np.sqrt(6), P.escape_time], rel=1e-3)
    apart = P.R + 1e-3 * np.array([[1, -1], [-1, 1]])
    with pytest.raises(ov.InputError, match="have left the plateau"):
        P.escape([0.0, 20 * P.escape_time], apart)
    with pytest.raises(ov.InputError, match="have left the plateau"):
        P.escape([1e6 * P.escape_time], apart)
    with pytest.raises(ov.InputError, match="shape"):
        P.escape([0.0], np.ones((3, 3)))
    with pytest.raises(ov.InputError, match=r"\.\.\., 2, 2"):
        P.specialisation(np.ones((4, 2, 3)))
    with pytest.raises(ov.InputError, match="not below the deviation"):
        P.length(5.0)
    assert P.specialisation(np.stack([apart, apart[::-1]])) == pytest.approx([1e-3, 1e-3])
    assert isinstance(P, Plateau)


def test_equal_rows_keep_the_means():
    T = unequal_teacher(np.random.default_rng(5), 3, 4)
    E = equal_rows(T)
    assert np.trace(E, axis1=1, axis2=2) == pytest.approx(np.trace(T, axis1=1, axis2=2))
    assert E.sum(axis=(1, 2)) == pytest.approx(T.sum(axis=(1, 2)))
    assert E[:, 0, 1] == pytest.approx(E[:, 2, 0]) and E[:, 0, 0] == pytest.approx(E[:, 2, 2])


def test_equal_students_do_not_leave() -> None:
    """Whatever the time: no difference, no escape, and no overflow on the way."""
    net = ov.Committee(3, readout=3**-0.5)
    law = ov.laws.plateau(
        ov.Problem(data=ov.GaussianInputs(), teacher=net, student=net, algorithm=ov.GradientFlow(0.1))
    )
    assert law.escape([1.0, 1e9], np.full((3, 3), law.R[0])).tolist() == [0.0, 0.0]
