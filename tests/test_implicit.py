"""Implicit steps: the structured Jacobian against differences, the solution against explicit steps."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import DOP853

import overlaps as ov
from overlaps.averages import method_for
from overlaps.online import implicit, integration
from overlaps.online.motion import EquationOfMotion


def committee(levels: int = 40, K: int = 2, M: int = 2, rate: float = 0.5, **student) -> ov.Problem:
    activation = student.pop("activation", "erf")
    decay = student.pop("decay", 0.0)
    return ov.Problem(
        data=ov.GaussianInputs(ov.PowerLaw(levels, 1.0)),
        teacher=ov.Committee(M, activation, readout=M**-0.5),
        student=ov.Committee(K, activation, readout=M**0.5 / K, **student),
        algorithm=ov.OnlineSGD(rate, decay=decay),
    )


def motion_of(problem: ov.Problem, size: int = 400) -> tuple[EquationOfMotion, np.ndarray]:
    start = ov.draw(problem, size, seed=1, scale=0.5)
    motion = EquationOfMotion(problem, start, method_for(problem, start.u))
    return motion, motion.pack(start.Q, start.R, start.v)


@pytest.mark.parametrize("activation", ["erf", "relu", "linear"])
@pytest.mark.parametrize("shift", [3.0, 2 + 1j])
@pytest.mark.parametrize(("K", "M", "train_readout", "decay"), [(2, 2, True, 0.1), (3, 2, False, 0.0)])
def test_linear_solver_inverts_the_jacobian(activation, shift, K, M, train_readout, decay) -> None:
    """On states with a symmetric Q, which are the only ones there are."""
    p = committee(3, K, M, activation=activation, train_readout=train_readout, decay=decay)
    motion, y = motion_of(p)
    rng = np.random.default_rng(0)
    Q = rng.standard_normal((3, K, K))
    x = motion.pack(Q + Q.transpose(0, 2, 1), rng.standard_normal((3, K, M)), rng.standard_normal(K))
    if not train_readout:
        x[-K:] = 0
    small = 1e-6
    Jx = (motion(0.0, y + small * x) - motion(0.0, y - small * x)) / (2 * small)
    solved = implicit.Linearised(motion, 0.0, y).solve(shift, shift * x - Jx)
    np.testing.assert_allclose(solved, x, atol=2e-5 if activation == "relu" else 2e-6)


def test_collocation_is_of_order_nine() -> None:
    """Quadrature order 2s − 1 = 9, stage order 5, stiffly accurate."""
    rule = implicit.collocation()
    A = np.linalg.inv(rule.inverse)
    assert rule.c[-1] == pytest.approx(1)
    for n in range(9):
        assert A[-1] @ rule.c**n == pytest.approx(1 / (n + 1), abs=1e-13)
    assert abs(A[-1] @ rule.c**9 - 1 / 10) > 1e-7
    for n in range(5):
        np.testing.assert_allclose(A @ rule.c**n, rule.c ** (n + 1) / (n + 1), atol=1e-13)


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"train_readout": True, "decay": 0.02},
        {"activation": "relu"},
        {"activation": "linear"},
        {"K": 3, "rate": 1.0},
    ],
    ids=str,
)
def test_equal_to_explicit_steps(change: dict) -> None:
    """At times so long that implicit steps are the cheaper ones; explicit ones a hundred times as fine."""
    p = committee(**change)
    start = ov.draw(p, 400, seed=0, scale=0.3)
    times = ov.logtimes(0.1, 1000, 8)
    motion = EquationOfMotion(p, start, method_for(p, start.u))
    y = motion.pack(start.Q, start.R, start.v)
    assert integration.is_stiff(motion, 0.0, y, times)
    stiff = ov.solve(p, start, times)
    explicit = [motion.totals(state) for state in integration.integrate(motion, y, times, 1e-12, DOP853).states]
    for name, at in {"Q": 0, "R": 1, "v": 3}.items():
        apart = float(np.abs(stiff.data[name].values[0] - [totals[at] for totals in explicit]).max())
        assert apart <= 3 * stiff.accuracy(name)
        assert stiff.accuracy(name) < 1e-8


def test_gradient_flow_keeps_its_law_for_a_thousand_levels() -> None:
    """A linear student: the sum of a thousand exponentials, to the last of them, in a few thousand evaluations."""
    p = ov.Problem(
        data=ov.GaussianInputs(ov.PowerLaw(1000, 1.0)),
        teacher=ov.Committee(1, "linear", readout=1.0),
        student=ov.Committee(1, "linear", readout=1.0),
        algorithm=ov.GradientFlow(1.0),
    )
    phi = p.data.fractions[:, None, None]
    start = ov.Start.from_overlaps(p, Q=0.25 * phi, R=0 * phi, T=phi)
    times = np.array([1.0, 100.0, 10_000.0])
    result = ov.solve(p, start, times)
    law = ov.laws.small_rate_error(p.data.spectrum, 1.0, times, distance=1.25)
    np.testing.assert_allclose(result.data["error"].values[0], law, rtol=1e-6, atol=1e-10)
    assert int(result.data.attrs["cost"].split()[0]) < 20_000  # explicit: rate x eigenvalue x time is 6e6


def test_no_more_is_claimed_than_is_known() -> None:
    """Many times to land on: both solutions take the same steps, and their difference is not their error."""
    p = committee(1000, rate=0.5)
    start = ov.draw(p, 4000, scale=0.1)
    times = ov.logtimes(0.01, 10, 50)
    result = ov.solve(p, start, times)
    how = method_for(p, start.u)
    motion = EquationOfMotion(p, start, how)
    solution = integration.integrate(motion, motion.pack(start.Q, start.R, start.v), times, 1e-13, DOP853)
    Q = np.array([motion.covariance(y)[:2, :2] for y in solution.states])
    assert solution.implicit is False
    assert np.abs(Q - result.data["Q"].values[0]).max() < result.accuracy("Q") < 1e-9


def test_chosen_where_it_pays() -> None:
    motion, y = motion_of(committee(40))
    assert not integration.is_stiff(motion, 0.0, y, np.array([1.0]))
    assert integration.is_stiff(motion, 0.0, y, np.array([1000.0]))
    assert not integration.is_stiff(motion, 0.0, y, np.linspace(1, 1000, 1000))  # a step for every time, at least
    wide, at = motion_of(committee(40, K=8, M=8))  # too many totals
    assert not integration.is_stiff(wide, 0.0, at, np.array([1000.0]))


def test_evaluations_are_those_of_the_averages() -> None:
    """What steps are said to have taken, and what is expected of one, against calls of the averages."""
    price = []
    for K, M, train_readout in ((2, 2, False), (2, 2, True), (3, 1, False)):
        motion, y = motion_of(committee(40, K, M, train_readout=train_readout))
        motion.closed, how, calls = None, motion.method, []
        motion.method = lambda *at, how=how, calls=calls: calls.append(at) or how(*at)  # type: ignore[assignment]
        solver = implicit.Radau(motion, 0.0, y, 30.0, 1e-8, 1e-11)
        while solver.t < 30.0:
            assert solver.step() is None
        assert solver.nfev == len(calls) > 100
        calls.clear()
        implicit.Linearised(motion, 0.0, y)
        # a step is the linearisation, and two iterations of all stages
        price.append(integration.implicit_cost(motion, 7) / (len(calls) + 2 * implicit.STAGES))
    assert price == pytest.approx([price[0]] * 3, rel=1e-12)


def test_divergence_is_still_a_refusal() -> None:
    p = committee(40, activation="linear", rate=3.0)
    start = ov.draw(p, 400, seed=0, scale=0.3)
    with pytest.raises(ov.NumericalError, match="without bound") as refused:
        ov.solve(p, start, ov.logtimes(0.01, 1000, 10))
    assert refused.value.partial is not None


def test_equal_students_stay_equal() -> None:
    """On a saddle implicit steps would part them by rounding; the solution is then found by explicit ones."""
    p = committee(60, rate=0.2)
    phi, same = p.data.fractions[:, None, None], np.ones((2, 2))
    start = ov.Start.from_overlaps(p, Q=0.01 * phi * same, R=0.05 * phi * same, T=phi * np.eye(2))
    result = ov.solve(p, start, [1.0, 400.0])
    R = result.data["R"].values[0]
    assert np.ptp(R[-1]) < 1e-9
    assert float(result.data["error"][0, -1]) > 0.005


def test_stiffness_that_shows_late() -> None:
    """A readout that grows makes the first layer fast: explicit steps hand over on the way."""
    p = ov.Problem(
        data=ov.GaussianInputs(ov.Spectrum([3.65, 3.82, 2.6])),
        teacher=ov.Committee(3, "linear"),
        student=ov.Committee(3, "linear", -1.78, True),
        algorithm=ov.OnlineSGD(19.3),
        label_noise=0.16,
    )
    start = ov.draw(p, 30, seed=1, scale=0.5)
    result = ov.solve(p, start, [0.5, 2.0])
    assert int(result.data.attrs["cost"].split()[0]) < 60_000  # half a million by explicit steps alone
    motion = EquationOfMotion(p, start, method_for(p, start.u))
    first = motion.pack(start.Q, start.A, start.v)
    explicit, implicit_from_the_start = (
        integration.integrate(motion, first, np.array([0.05]), 1e-9, steps).states[-1]
        for steps in (DOP853, implicit.Radau)
    )
    np.testing.assert_allclose(implicit_from_the_start, explicit, rtol=1e-6, atol=1e-8)
