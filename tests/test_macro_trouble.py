"""The infinite-size theory in trouble: divergence, accuracy out of reach, losses without an average, bad arguments."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import overlaps as ov
from problems import linear_solution, problem


def test_divergence_names_time_and_quantity_and_keeps_what_came_before(tmp_path: Path) -> None:
    """A linear network diverges above rate 2: e grows as exp(η (η − 2) t), to 1e8 by t of about 28."""
    p = problem("linear", 1, 1, rate=2.3)
    start = ov.Start.from_overlaps(p, Q=[[1.0]], R=[[0.0]], T=[[1.0]])
    with pytest.raises(ov.NumericalError, match=r"Q\[0, 0\] = .* at time .*reduce rate \(now 2.3\)") as caught:
        ov.solve(p, start, [1, 2, 1000])
    error = caught.value
    assert error.quantity == "Q[0, 0]"
    assert 20 < error.time < 40
    assert error.partial is not None and error.partial.time.tolist() == [1, 2]
    exact = linear_solution(p, 1.0, error.partial.time)
    assert error.partial.data["error"].values[0] == pytest.approx(exact, rel=1e-6)
    again = ov.load(error.partial.save(tmp_path / "partial.nc"))
    assert np.array_equal(again.data["error"], error.partial.data["error"])


def test_what_came_before_divergence_claims_no_accuracy_it_does_not_have() -> None:
    """Only one solution was computed, so nothing was measured."""
    p = problem("linear", 1, 1, rate=2.3)
    start = ov.Start.from_overlaps(p, Q=[[1.0]], R=[[0.0]], T=[[1.0]])
    with pytest.raises(ov.NumericalError) as caught:
        ov.solve(p, start, [1, 1000])
    assert caught.value.partial is not None
    assert "within 0.0e+00" not in repr(caught.value.partial)


def test_divergence_before_the_first_time() -> None:
    p = problem("linear", 1, 1, rate=2.3)
    start = ov.Start.from_overlaps(p, Q=[[1.0]], R=[[0.0]], T=[[1.0]])
    with pytest.raises(ov.NumericalError) as caught:
        ov.solve(p, start, [1000])
    assert caught.value.partial is None


def test_accuracy_out_of_reach_names_the_quantity() -> None:
    p = problem("linear", 1, 1)
    start = ov.Start.from_overlaps(p, Q=[[1.0]], R=[[0.0]], T=[[1.0]])
    with pytest.raises(ov.NumericalError, match="was asked") as caught:
        ov.solve(p, start, [1, 2], accuracy=1e-18)
    assert caught.value.partial is not None and caught.value.quantity in caught.value.partial.variables
    assert caught.value.time in (1.0, 2.0)
    assert caught.value.partial.time.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("times", "words"),
    [
        ([], "times: expected at least one"),
        ([-1.0, 2.0], "times: expected times of at least 0"),
        ([2.0, 1.0], "times: expected increasing"),
        ([1.0, 1.0], "times: expected increasing"),
        ([1.0, float("inf")], "times: has entries that are not finite"),
        ([[1.0, 2.0]], "times: expected shape"),
        ("soon", "times: expected"),
        ([1.0, [2.0]], "times: expected"),
    ],
)
def test_bad_times(times: Any, words: str) -> None:
    p = problem()
    with pytest.raises(ov.InputError, match=words):
        ov.solve(p, ov.draw(p, 10), times)


def test_start_of_another_problem() -> None:
    p = problem(students=3)
    with pytest.raises(ov.InputError, match="start: has 1 levels, 2 student"):
        ov.solve(p, ov.draw(problem(), 10), [1.0])


@pytest.mark.parametrize("accuracy", [0.0, -1.0, float("nan"), "high"])
def test_bad_accuracy(accuracy: Any) -> None:
    p = problem()
    with pytest.raises(ov.InputError, match="accuracy: expected"):
        ov.solve(p, ov.draw(p, 10), [1.0], accuracy=accuracy)


def absolute(lam, nu, c, v):
    return abs(lam[0] - nu[0])


def absolute_gradient(lam, nu, c, v):
    return np.array([np.sign(lam[0] - nu[0])]), np.zeros(1)


def test_a_loss_with_a_kink_is_refused_at_once() -> None:
    """Refining does not help, and a solver on a right-hand side that jumps does not come back."""
    p = problem("linear", 1, 1, loss=ov.Loss(absolute, absolute_gradient))
    start = ov.Start.from_overlaps(p, Q=[[0.5]], R=[[0.2]], T=[[1.0]])
    with pytest.raises(ov.NumericalError, match=r"does not converge.*kink") as caught:
        ov.solve(p, start, [1.0, 3.0])
    assert caught.value.quantity in ("D", "S", "dv", "error") and caught.value.time == 0


def test_a_loss_that_declares_its_kink_is_solved() -> None:
    """|λ − ν| of one unit each: with Var(λ − ν) = s, D = E[2 δ(λ − ν)] (1, −1) = √(2/(π s)) (1, −1) and S = 1."""
    loss = ov.Loss(absolute, absolute_gradient, kinks=lambda lam, nu, c, v: lam[0] - nu[0])
    p = problem("linear", 1, 1, loss=loss)
    a = ov.gaussian_averages(p, [[0.5, 0.2], [0.2, 1.0]])
    assert np.allclose(a.D, math.sqrt(2 / math.pi / 1.1) * np.array([[1.0, -1.0]]), atol=1e-9)
    assert np.isclose(a.S[0, 0], 1.0, atol=1e-12) and np.isclose(a.error, math.sqrt(2 * 1.1 / math.pi), atol=1e-10)
    start = ov.Start.from_overlaps(p, Q=[[0.5]], R=[[0.2]], T=[[1.0]])
    assert ov.solve(p, start, [1.0]).accuracy("Q") < 1e-5


def growing(lam, nu, c, v):
    return np.exp(lam[0] ** 2)


def growing_gradient(lam, nu, c, v):
    return np.array([2 * lam[0] * np.exp(lam[0] ** 2)]), np.zeros(1)


def test_a_loss_without_an_average_is_an_error_of_its_own() -> None:
    """E[exp(λ²)] is infinite at Q = 1: no garbage as error, at any scale; the overlaps are kept where they exist."""
    p = problem("linear", 1, 1, loss=ov.Loss(growing, growing_gradient), rate=1e-6)
    start = ov.draw(p, 50, scale=1.0)
    with pytest.raises(ov.NumericalError):
        ov.solve(p, start, [0.0, 0.1])
    with pytest.raises(ov.NumericalError, match="average of the loss") as caught:
        ov.sample(p, start, [0.0, 0.1], runs=2)
    assert caught.value.quantity == "error"


@pytest.mark.parametrize(("activation", "students", "teachers"), [("tanh", 2, 2), ("softplus", 1, 3), ("tanh", 3, 2)])
def test_smooth_activations_reach_the_default_accuracy(activation: str, students: int, teachers: int) -> None:
    """A refusal, or a budget, that hits the ordinary case: four fields on the tensor rule, five on Sobol points."""
    p = problem(activation, students, teachers, readout=0.5)
    start = ov.draw(p, 200, seed=0, scale=0.5)
    macro_ = ov.solve(p, start, [0.5, 2.0])
    assert max(macro_.accuracy(name) for name in macro_.variables) < (1e-5 if students + teachers <= 4 else 1e-2)
    assert ov.compare(macro_, ov.sample(p, start, [0.5, 2.0], runs=30)).verdict == "agrees"


def test_what_is_not_a_problem_or_a_start_is_refused() -> None:
    p = problem()
    for scale in (ov.solve, ov.sample, ov.train):
        with pytest.raises(ov.InputError, match="start: expected"):
            scale(p, None, [1.0])
        with pytest.raises(ov.InputError, match="problem: expected"):
            scale(None, ov.draw(p, 10), [1.0])


@pytest.mark.parametrize("rate", [1e6, 1e12])
def test_a_rate_far_too_large_is_said_to_diverge_at_once(rate: float) -> None:
    """Fields of erf units saturate, so that Q grows as a power of time: slowly, and beyond all bounds."""
    p = problem("erf", 1, 1, rate=rate)
    with pytest.raises(ov.NumericalError, match=r"training diverges: an overlap grew without bound: Q\[0, 0\]"):
        ov.solve(p, ov.draw(p, 100, seed=1), [1.0, 10.0], max_evaluations=20_000)


def test_a_budget_that_ends_keeps_the_times_before() -> None:
    p = problem("erf", 2, 2)
    with pytest.raises(ov.NumericalError, match=r"max_evaluations=150\) beyond time .*; allow more of them") as caught:
        ov.solve(p, ov.draw(p, 100, seed=1), [0.1, 500.0], max_evaluations=150)
    assert caught.value.partial is not None and caught.value.partial.time.tolist() == [0.1]


def test_a_budget_ends_with_the_evaluation_that_spends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also while a rule is chosen, and within a step: one evaluation may take seconds."""
    from overlaps.online.motion import EquationOfMotion

    p = problem("tanh", 1, 1)
    start, taken = ov.draw(p, 100, seed=1), 0.0
    averages = EquationOfMotion.averages

    def slow(self: EquationOfMotion, *arguments: Any) -> Any:
        nonlocal taken
        taken += 1.0
        return averages(self, *arguments)

    monkeypatch.setattr(EquationOfMotion, "averages", slow)
    monkeypatch.setattr("overlaps.trajectory.refinement.clock.perf_counter", lambda: taken)
    for seconds in (3, 12, 20):  # in the choice of a rule, at the first step, and in it
        taken = 0.0
        with pytest.raises(ov.NumericalError, match=f"max_seconds={seconds}") as caught:
            ov.solve(p, start, [1.0, 5.0], method="quadrature", max_seconds=seconds)
        assert taken <= seconds + 3 and ("choose a rule" in str(caught.value)) == (seconds == 3)
    with pytest.raises(ov.NumericalError, match=r"max_evaluations=3\) to choose a rule for the averages"):
        ov.solve(p, start, [1.0, 5.0], method="quadrature", max_evaluations=3)


@pytest.mark.parametrize("method", ["closed", "auto", "quadrature"])
def test_less_accuracy_never_takes_more_evaluations(method: str) -> None:
    """Closed forms, sums of error functions and lattices; each is off by less than it states."""
    p = problem("erf" if method == "closed" else "tanh", 1, 1)
    start, times = ov.draw(p, 100, seed=1, scale=1.5), [0.5, 2.0]
    asked = (1e-2, 1e-4, 1e-6, 1e-8)
    found = [ov.solve(p, start, times, method=method, accuracy=accuracy) for accuracy in asked]
    counts = [int(one.data.attrs["cost"].split()[0]) for one in found]
    assert counts == sorted(counts) and counts[0] < counts[-1]
    for accuracy, one in zip(asked, found, strict=True):
        for name in one.variables:
            assert one.accuracy(name) <= accuracy * max(float(np.abs(one.data[name]).max()), 1e-3)
            off = float(np.abs(one.data[name] - found[-1].data[name]).max())
            assert off <= one.accuracy(name) + found[-1].accuracy(name)


def test_a_quadrature_states_what_it_is_off_by() -> None:
    """Five levels at a rate of 2.23: g' is narrow in units of the fields, where a fixed spacing is off by 1e-2."""
    p = problem("erf", 2, 1, spectrum=ov.PowerLaw(5, 1.0), rate=2.23, label_noise=0.3)
    start, times = ov.draw(p, 500, seed=1, scale=0.5), [2.0, 10.0]
    exact = ov.solve(p, start, times)
    found = ov.solve(p, start, times, method="quadrature", accuracy=1e-3)
    for name in found.variables:
        assert float(np.abs(found.data[name] - exact.data[name]).max()) <= found.accuracy(name)


def test_students_that_decay_to_nothing_are_followed_to_the_end() -> None:
    """Decay takes all weight from the students, whose variance loses its sign within the tolerance."""
    collapsing = ov.Problem(
        data=ov.GaussianInputs(ov.Spectrum([0.0, 3.18, 1.0])),
        teacher=ov.Committee(1, "relu"),
        student=ov.Committee(3, "relu", -3.0, True),
        algorithm=ov.OnlineSGD(22.0, decay=2.0),
    )
    end = ov.solve(collapsing, ov.draw(collapsing, 49, seed=1, scale=1.0), [0, 2.0], max_seconds=120)
    assert np.abs(end.data["Q"].values[0, -1]).max() < 1e-12
    # a student that says nothing has the error of the teacher alone, E[max(ν, 0)²]/2 = T/4
    assert end.data["error"].values[0, -1] == pytest.approx(end.data["T"].values.item() / 4, rel=1e-9)


def test_a_first_step_that_is_no_number_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """SciPy's guess of the first step may leave the domain of the equation; its loop would never end."""
    from overlaps.online import integration

    class Guess(integration.DOP853):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            self.h_abs = np.nan

    p = problem()
    start, times = ov.draw(p, 30), [0, 1.0]
    expected = ov.solve(p, start, times)
    monkeypatch.setattr(integration, "DOP853", Guess)
    found = ov.solve(p, start, times)
    np.testing.assert_allclose(found.data["Q"], expected.data["Q"], rtol=1e-8)


@pytest.mark.parametrize("trains", [False, True])
def test_what_is_no_number_from_the_start_is_named(trains: bool) -> None:
    """At rate 1e300 it is the overlap Q whose derivative overflows, not the readout, which has not moved."""
    p = problem("erf", 1, 1, train_readout=trains)
    p = replace(p, algorithm=ov.OnlineSGD(1e300))
    with pytest.raises(
        ov.NumericalError, match=r"training diverges: .* dQ\[0, 0\]/dt is no number at time 0"
    ) as caught:
        ov.solve(p, ov.draw(p, 100), [1.0])
    assert (caught.value.quantity, caught.value.time) == ("Q[0, 0]", 0.0)
