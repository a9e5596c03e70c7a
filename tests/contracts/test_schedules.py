"""Every schedule, in each of its examples: smooth between its knots, what it is at them, and as the rate of SGD."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import overlaps as ov
from overlaps import schedules
from overlaps.algorithms.schedules import SCHEDULES
from overlaps.interface.folder import modules
from problems import problem

from .cases import refused_by_field, round_trip

MODULES = {m.SCHEDULE.__name__: m for m in modules(schedules.__name__, besides=("definition",)).values()}
EXAMPLES = {f"{name}-{i}": rate for name, module in MODULES.items() for i, rate in enumerate(module.examples())}
REFUSED = [(name, i) for name, module in MODULES.items() for i in range(len(module.REFUSED))]
NEAR = 1e-9

every = pytest.mark.parametrize("name", EXAMPLES)


def learning(rate: Any, **change: Any) -> ov.Problem:
    """One unit learns one, both layers, at that rate."""
    return problem("erf", 1, 1, rate=rate, train_readout=True, **change)


def steepest(rate: Any, count: int) -> float:
    """Largest change of a rate between neighbours of `count` equally spaced times of a stretch, over all stretches."""
    ends = np.array([0.0, *(k for k in rate.knots if k > 0)])
    ends = np.append(ends, ends[-1] + 3)
    changes = []
    for low, high in pairwise(ends):
        inside = np.linspace(low, high, count + 2)[1:-1]
        changes.append(float(np.abs(np.diff(rate(inside))).max()))
    return max(changes)


def assert_smooth(rate: Any) -> None:
    """Where a rate is continuous, neighbours four times as near are about four times as much alike."""
    assert steepest(rate, 4001) <= 0.3 * steepest(rate, 1001) + 1e-14


def test_every_schedule_has_examples_and_refusals() -> None:
    assert {"Constant", "Cosine", "Function", "Schedule", "Steps"} <= set(MODULES)
    assert {kind.__name__ for kind in SCHEDULES} == set(MODULES)
    for name, module in MODULES.items():
        assert getattr(schedules, name) is module.SCHEDULE, f"{name} is not a public name"
        assert module.REFUSED and module.examples(), name
        assert all(type(rate) is module.SCHEDULE for rate in module.examples()), name


@every
def test_knots_are_increasing_times(name: str) -> None:
    knots = EXAMPLES[name].knots
    assert isinstance(knots, tuple) and np.all(np.isfinite(knots))
    assert all(knot >= 0 for knot in knots) and np.all(np.diff(knots) > 0)


@every
def test_rates_of_many_times_are_those_of_each(name: str) -> None:
    rate = EXAMPLES[name]
    times = np.array([[0.0, 0.3, 1.0], [1.5, 2.0, 40.0]])
    found = rate(times)
    assert found.shape == times.shape and found.dtype == float and np.all(found >= 0) and np.all(np.isfinite(found))
    assert [rate(t) for t in times.ravel()] == found.ravel().tolist()
    assert type(rate(1)) is float and rate(times.tolist()).tolist() == found.tolist()
    assert rate.at(times).tolist() == found.tolist()


@every
def test_smooth_between_knots(name: str) -> None:
    assert_smooth(EXAMPLES[name])


def test_a_jump_that_is_no_knot_is_noticed() -> None:
    for jump in (0.4, 1e-3):
        with pytest.raises(AssertionError):
            assert_smooth(schedules.Function(lambda t, jump=jump: 0.6 if t < 1 else 0.6 - jump))


@every
def test_rates_at_a_knot_and_before_it(name: str) -> None:
    """`before` is the limit from the left, the rate itself that from the right; elsewhere the two are one."""
    rate = EXAMPLES[name]
    for knot in rate.knots:
        assert rate(knot) == pytest.approx(rate(knot + NEAR), abs=1e-7)
        if knot > 0:
            assert rate.before(knot) == pytest.approx(rate(knot - NEAR), abs=1e-7)
            assert type(rate.before(knot)) is float
    for t in (0.123, 0.77, 1.9, 7.0):
        assert rate.before(t) == rate(t)


@pytest.mark.parametrize("rate", MODULES["Cosine"].examples())
def test_a_cosine_is_half_an_oscillation(rate: Any) -> None:
    """From the rate to the final one, and about their mean η'' = −(π/time)² (η − mean), by differences."""
    mean, h = (rate.rate + rate.final) / 2, 1e-3 * rate.time
    times, rates = np.array([0.0, 0.5, 1.0, 5.0]) * rate.time, [rate.rate, mean, rate.final, rate.final]
    assert rate(times) == pytest.approx(rates)
    t = np.linspace(0.1, 0.9, 9) * rate.time
    bend = (rate(t + h) - 2 * rate(t) + rate(t - h)) / h**2
    np.testing.assert_allclose(bend, -((np.pi / rate.time) ** 2) * (rate(t) - mean), rtol=1e-5, atol=1e-6)


@every
def test_steps_and_their_limit_read_the_rate(name: str) -> None:
    """Step n of SGD at size N has the rate of time n/N; at the end of a stretch the limit has the rate before it."""
    rate = EXAMPLES[name]
    for update, readout in ((learning(rate).update, rate), (learning(rate, readout_rate=0.2).update, None)):
        times = np.arange(7, 67) / 25
        step = update.steps(7, 60, 25)
        np.testing.assert_array_equal(step.pull[:, 0], rate(times))
        np.testing.assert_array_equal(step.pull_readout[:, 0], np.full(60, 0.2) if readout is None else rate(times))
        assert update.knots.tolist() == list(rate.knots)
        for knot in rate.knots:
            assert update.flow(knot).P[0] == rate(knot)
            assert update.flow(knot, until=knot).P[0] == rate.before(knot)
            later = 0.2 if readout is None else rate.before(knot)
            assert update.flow(knot, until=knot).P_readout[0] == later


@every
def test_a_problem_of_it_survives_toml(name: str) -> None:
    """As the rate of both layers; rates that are Python functions are refused by the field."""
    rate = EXAMPLES[name]
    fixed = problem("erf", 1, 1, rate=rate)
    if isinstance(rate, schedules.Function):
        with pytest.raises(ov.InputError, match=r"^rate: Function\(.* cannot be written to TOML"):
            fixed.to_toml()
        with pytest.raises(ov.InputError, match=r"^readout_rate: Function\(.* cannot be written to TOML"):
            learning(0.2, readout_rate=rate).to_toml()
        return
    for p in (fixed, learning(0.2, readout_rate=rate), learning(rate, readout_rate=rate)):
        round_trip(p)
        assert type(rate).__name__ in p.to_toml()


STEPS: dict[str, dict[str, Any]] = {
    "plain": {},
    "batch": {"batch": 4},
    "momentum": {"momentum": 0.5},
    "memory": {"memory": 1.0},
}


@pytest.mark.parametrize("how", STEPS)
@every
def test_every_schedule_is_solved_past_its_end(name: str, how: str) -> None:
    """On several levels, as the rate of both layers: a rate that ends at zero has been seen by the steps as others."""
    rate = EXAMPLES[name]
    p = learning(rate, spectrum=ov.PowerLaw(3, 0.5))
    p = replace(p, algorithm=ov.OnlineSGD(rate, **STEPS[how]))
    end = max((2.0, *rate.knots))
    for seed in range(2):
        start = ov.draw(p, 60, seed=seed, scale=0.5)
        for times in ([0.0, 3 * end], ov.logtimes(0.1, end + 0.5, 6)):
            error = ov.solve(p, start, times).data["error"].values[0]
            assert error[-1] < error[0]


@pytest.mark.parametrize(("name", "i"), REFUSED)
def test_what_is_outside_its_domain_is_refused_by_field(name: str, i: int) -> None:
    refused_by_field(MODULES[name].SCHEDULE, MODULES[name].REFUSED[i])


@pytest.mark.parametrize("field", ["rate", "readout_rate"])
@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (schedules.Constant(0.0), "zero at all times"),
        (schedules.Function(lambda t: 0.5 - t), "at least 0"),
        (schedules.Function(lambda t: 1 / (1 - t) if t != 1 else np.inf, knots=[1.0]), "at least 0"),
        (schedules.Function(lambda t: np.nan if t < 1 else 0.1, knots=[1.0]), "at least 0"),
    ],
    ids=["zero", "negative", "infinite", "not a number"],
)
def test_rates_that_cannot_be_are_refused_by_the_algorithm(field: str, wrong: Any, why: str) -> None:
    for algorithm in (ov.OnlineSGD, ov.GradientFlow):
        if field == "readout_rate" and why == "zero at all times":  # as the number zero: the readout stays
            assert algorithm(rate=0.3, readout_rate=wrong).readout_rate == wrong
            continue
        with pytest.raises(ov.InputError, match=rf"^{field}: .*{why}"):
            algorithm(**{"rate": 0.3, field: wrong})
