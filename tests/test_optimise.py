"""Schedules found from theory: derivatives, the solved case, a committee against brute force, refusals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import overlaps as ov
from overlaps.plan import objectives
from overlaps.plan.linear_mean import LinearMean
from overlaps.plan.objectives import ExactMean, InfiniteSize, objective, with_rate
from overlaps.plan.search import best_constant, best_values, knot_times

LINEAR = ov.Committee(units=1, activation="linear")


def linear(rate=0.5, noise=0.5, size=300, spectrum=None, **algorithm):
    data = ov.GaussianInputs() if spectrum is None else ov.GaussianInputs(spectrum)
    problem = ov.Problem(
        data=data, teacher=LINEAR, student=LINEAR, algorithm=ov.OnlineSGD(rate, **algorithm), label_noise=noise
    )
    T = np.array(problem.data.fractions)[:, None, None]
    return problem, ov.Start.from_overlaps(problem, Q=0 * T, R=0 * T, T=T, size=size)


def committee():
    """The committee of the reference: K = M = 2, erf, readouts one, isotropic inputs, from near its plateau."""
    net = ov.Committee(2, "erf", readout=1.0)
    problem = ov.Problem(data=ov.GaussianInputs(), teacher=net, student=net, algorithm=ov.OnlineSGD(1.0))
    Q, R = [[0.25, 0.02], [0.02, 0.2]], [[0.01, 0.002], [-0.003, 0.012]]
    return problem, ov.Start.from_overlaps(problem, Q=Q, R=R, T=np.eye(2))


def test_reverse_accumulation_is_the_derivative():
    """Against central differences of the forward recursion, with all its terms."""
    rng = np.random.default_rng(0)
    parts = (rng.uniform(low, high, 5) for low, high in ((0.1, 3), (0.1, 0.3), (0.5, 1), (-0.3, 0), (0.2, 1)))
    task = LinearMean(*parts, size=11, noise=0.3, decay=0.4, batch=3)
    rates = rng.uniform(0.1, 0.8, 23)
    error, slopes = task.slopes(rates)
    steps = 1e-5 * np.eye(23)
    differences = [(task(rates + step) - task(rates - step)) / 2e-5 for step in steps]
    assert error == pytest.approx(task(rates), rel=1e-12)
    assert slopes == pytest.approx(differences, rel=1e-6)


def test_the_recursion_is_that_of_the_law():
    """Without decay and batches it is `laws.finite_size_error`, which shares the step but goes in long stretches."""
    spectrum = ov.PowerLaw(levels=4, exponent=0.5)
    problem, start = linear(0.3, 0.0, 20, spectrum)
    exact = ExactMean(problem, start, 5.0)
    assert exact.excess(problem) == pytest.approx(ov.laws.finite_size_error(spectrum, 20, 0.3, [5.0])[0], rel=1e-10)


@pytest.mark.parametrize("batch, decay", [(1, 0.3), (4, 0.0), (3, 0.2)])
def test_the_recursion_is_the_mean_over_runs(batch, decay):
    """Batches, decay, noise and several units: five standard errors of 4000 runs; chance 6e-7 each."""
    net, other = ov.Committee(2, "linear", [0.8, -0.5]), ov.Committee(1, "linear", 0.7)
    algorithm = ov.OnlineSGD(ov.Schedule([0.0, 2.0], [0.7, 0.2]), decay=decay, batch=batch)
    data = ov.GaussianInputs(ov.PowerLaw(levels=3, exponent=0.5))
    problem = ov.Problem(data=data, teacher=other, student=net, algorithm=algorithm, label_noise=0.4)
    start = ov.draw(problem, 9, seed=1)
    runs = ov.sample(problem, start, [2.0], runs=4000, seed=2, progress=False).data["error"].values[:, 0]
    predicted = objective(problem, start, 2.0).excess(problem)
    assert abs(runs.mean() - predicted) < 5 * runs.std() / np.sqrt(runs.size)
    without = objective(replace(problem, label_noise=0.0), start, 2.0).excess(replace(problem, label_noise=0.0))
    assert abs(runs.mean() - without) > 5 * runs.std() / np.sqrt(runs.size)  # the test has power


def greedy(noise, time, size):
    """The best rates of one unit on isotropic inputs, step by step: each step minimises its own outcome."""
    D, rates = 1.0, []
    for _ in range(round(time * size)):
        a = D / (2 * D + size * (D + noise))
        rates.append(a * size)
        D = D * (1 - 2 * a + 2 * a * a) + a * a * size * (D + noise)
    return D / 2, np.array(rates)


def test_one_linear_unit_at_a_size():
    """The best rates are known step by step; fifteen knots lose less than 2e-5 of the error."""
    problem, start = linear(size=500)
    plan = ov.optimise(problem, start, time=10)
    error, rates = greedy(0.25, 10, 500)
    assert 0 <= plan.error / error - 1 < 2e-5
    assert plan.problem.update.rate(np.arange(0, 5000, 100) / 500) == pytest.approx(rates[::100], rel=0.02)
    assert plan.theory == "exact mean at size 500"


def test_one_linear_unit_at_infinite_size():
    """dD/dt = −2ηD + η²(D + σ²) with η = D/(D + σ²)."""
    problem, start = linear()
    start = replace(start, size=None, dimensions=None)
    plan = ov.optimise(problem, start, time=5, knots=9)
    best = solve_ivp(lambda t, D: -D * D / (D + 0.25), (0, 5), [1.0], rtol=1e-10, atol=1e-13).y[0, -1] / 2
    assert 0 <= plan.error / best - 1 < 2e-4
    assert plan.error == pytest.approx(ov.solve(plan.problem, start, [5.0]).data["error"].item(), rel=1e-6)


def test_derivatives_of_both_theories_agree():
    """Reverse accumulation at a large size, and differences of the equation of motion."""
    problem, start = linear(size=100_000)
    times, rates = np.array([0.0, 0.7, 2.0]), np.array([0.8, 0.5, 0.1])
    exact, slopes = ExactMean(problem, start, 2.0).slopes(times, rates)
    limit, differences = InfiniteSize(problem, start, 2.0).slopes(times, rates)
    assert exact == pytest.approx(limit, rel=1e-4)
    assert slopes == pytest.approx(differences, abs=1e-4 * np.abs(differences).max())  # of order 1/N


def test_committee_through_its_plateau_and_out_of_it():
    """The reference has 1.03e-4 at rate 1.5 and 2.75e-5 with nine equally spaced knots."""
    problem, start = committee()
    plan = ov.optimise(problem, start, time=100, knots=np.linspace(0, 100, 9))
    at = ov.solve(with_rate(problem, 1.5), start, [100.0]).data["error"].item()
    assert at == pytest.approx(1.03e-4, rel=0.01)
    assert plan.best_constant == pytest.approx(1.72, rel=0.01)
    assert plan.baseline < at
    assert plan.error < 2.75e-5
    assert ov.solve(plan.problem, start, [100.0]).data["error"].item() == pytest.approx(plan.error, rel=1e-4)


def test_committee_against_brute_force():
    """No pair of rates on a grid of 144 does better."""
    problem, start = committee()
    judge = InfiniteSize(problem, start, 60.0)
    grid = np.geomspace(0.6, 4.0, 12)
    pairs = [(a, b) for a in grid for b in grid]
    errors = [judge.excess(with_rate(problem, ov.Schedule([0.0, 60.0], pair))) for pair in pairs]
    plan = ov.optimise(problem, start, time=60, knots=2)
    assert plan.error <= min(errors)
    best = pairs[int(np.argmin(errors))]
    assert np.abs(np.log(plan.rates / best)).max() < np.log(grid[1] / grid[0])


def test_trials_beyond_stability_step_back():
    """A first guess at the edge, and bounds far beyond it."""
    problem, start = linear(size=50)
    judge, times = objective(problem, start, 40.0), knot_times(40.0, 6)
    assert judge.excess(with_rate(problem, 50.0)) == np.inf
    found = best_values(lambda rates: judge.slopes(times, rates), np.full(6, 1.9), 1e-3, 1e3, lambda: None)
    assert (
        found.excess
        < best_constant(lambda rate: judge.excess(with_rate(problem, rate)), 1e-3, 1e3, lambda: None).excess
    )
    with pytest.raises(ov.NumericalError, match="every constant rate from 20"):
        ov.optimise(problem, start, 400, bounds=(20, 100))


def test_batch_and_decay():
    problem, start = linear(0.5, size=100)
    plan = ov.optimise(problem, start, 10, vary="batch")
    batch = plan.problem.update.batch
    assert batch == plan.best_constant > 1
    assert plan.time * batch == pytest.approx(10)  # as many samples
    errors = [ov.optimise(problem, start, 10, vary="batch", bounds=(b, b + 1e-9)).error for b in range(1, 5)]
    assert plan.error == min(errors)
    decay = ov.optimise(problem, start, 10, vary="decay")
    assert decay.problem.algorithm.decay == decay.best_constant > 0
    assert decay.error < decay.baseline
    still, _ = linear(0.1, 0.0, 100)
    assert ov.optimise(still, start, 10, vary="decay").best_constant == 0  # nothing to forget without noise


def test_several_horizons_and_a_check_by_runs():
    problem, start = linear(size=100)
    short, long = ov.optimise(problem, start, [2.0, 8.0])
    assert (short.time, long.time) == (2.0, 8.0)
    assert long.error < short.error
    found = long.check(runs=200, seed=0, progress=False)
    # five standard errors, chance 6e-7 each
    for runs, predicted in ((found.planned, long.error), (found.compared, long.baseline)):
        assert abs(runs.mean() - predicted) < 5 * runs.std() / np.sqrt(runs.size)
    assert "predicted" in repr(found)
    import matplotlib.pyplot as plt

    plt.close(long.plot())


def test_knots_of_a_plan_stand_on_its_curve():
    """Against the samples seen, which batches of three make three times as many as steps."""
    import matplotlib.pyplot as plt

    problem, start = linear(size=100, batch=3)
    plan = ov.optimise(problem, start, 2.0, knots=4)
    figure = plan.plot()
    curve, _, knots = (line.get_xydata() for line in figure.axes[0].lines)
    plt.close(figure)
    np.testing.assert_allclose(knots[:, 0], 3 * plan.times)
    # to the spacing of the points that the curve is drawn by
    np.testing.assert_allclose(np.interp(knots[:, 0], *curve.T), knots[:, 1], rtol=0.05)


@pytest.mark.parametrize(
    "change, words",
    [
        ({"vary": "momentum"}, "unknown vary .momentum. .known: batch, decay, rate"),
        ({"time": 0}, "time: expected a number above 0"),
        ({"time": 0.001}, "time: 0.001 is less than one step"),
        ({"knots": 1}, "knots: expected at least 2"),
        ({"knots": [0.0, 7.0]}, "knots: expected increasing times from 0 to 5"),
        ({"bounds": (1.0, 0.5)}, "bounds: expected a smallest"),
        ({"vary": "decay", "knots": [0.0, 1.0]}, "knots: a decay is one number"),
    ],
)
def test_refusals(change, words):
    problem, start = linear(size=100)
    arguments = {"time": 5.0, **change}
    with pytest.raises(ov.InputError, match=words):
        ov.optimise(problem, start, **arguments)


def test_algorithms_that_have_no_best_rate_are_refused():
    problem, start = linear(size=100)
    with pytest.raises(ov.InputError, match="algorithm: optimise is for one-pass SGD, got GradientFlow"):
        ov.optimise(replace(problem, algorithm=ov.GradientFlow(0.1)), start, 1.0)
    with pytest.raises(ov.InputError, match="rate: a batch changes"):
        ov.optimise(with_rate(problem, ov.schedules.Cosine(0.5, 1.0)), start, 1.0, vary="batch")
    with pytest.raises(ov.InputError, match="start: runs need a size"):
        infinite = replace(start, size=None, dimensions=None)
        ov.optimise(problem, infinite, 0.5, knots=2).check()


def test_labelled_rows() -> None:
    """The plan of rows with labels is ready for training on them; the exact mean of it is that of `solve`."""
    data = ov.Samples(ov.digits(), ov.digit_labels() % 2 == 0)
    problem = ov.Problem(data=data, student=LINEAR, algorithm=ov.OnlineSGD(0.1))
    start = ov.draw(problem, 61, scale=0.0)
    plan = ov.optimise(problem, start, 1797 / 61)
    assert plan.problem.data is data and plan.floor == data.unexplained / 2
    assert ov.solve(plan.problem, start, [plan.time]).data["error"].item() == pytest.approx(plan.error, rel=1e-10)
    assert ov.solve(plan.compared, start, [plan.time]).data["error"].item() == pytest.approx(plan.baseline, rel=1e-10)
    found = plan.check(runs=30, seed=0, progress=False)
    assert found.gain == pytest.approx(plan.gain, abs=0.08)  # five standard errors of 30 runs
    with pytest.raises(ov.InputError, match="data: optimise plans no classifiers"):
        ov.optimise(
            replace(problem, student=ov.Committee(2)), ov.draw(replace(problem, student=ov.Committee(2)), 61), 1.0
        )


def few_columns(**algorithm: float) -> tuple[ov.Problem, ov.Start]:
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((200, 4))
    data = ov.Samples(rows, rows @ [1.0, 2.0, 3.0, 4.0] + rng.standard_normal(200))
    problem = ov.Problem(data=data, student=LINEAR, algorithm=ov.OnlineSGD(0.1, **algorithm))
    return problem, ov.draw(problem, 4, scale=0.0)


@pytest.mark.parametrize("algorithm", [{"momentum": 0.9}, {"memory": 1.0, "decay": 0.1, "batch": 2}])
def test_remembered_gradients_at_four_columns(algorithm: dict[str, float]) -> None:
    """What the plan states is the exact mean of `solve`, where infinite size is far off; and training saves as much."""
    problem, start = few_columns(**algorithm)
    plan = ov.optimise(problem, start, 20.0, knots=5, progress=False)
    assert plan.theory == "exact mean at size 4"
    for p, stated in ((plan.problem, plan.error), (plan.compared, plan.baseline)):
        assert ov.solve(p, start, [plan.time], system="exact-mean").data["error"].item() == pytest.approx(stated)
    assert 0 < plan.gain < 1
    found = ov.sample(plan.problem, start, [plan.time], runs=300, seed=0, progress=False).data["error"]
    # five standard errors, chance 6e-7
    assert abs(found.mean() - plan.error) < 5 * found.std() / np.sqrt(300)
    limit = InfiniteSize(plan.compared, start, 20.0)
    if "momentum" in algorithm:
        assert abs(limit.excess(plan.compared) + limit.floor - plan.baseline) > 0.1 * (plan.baseline - plan.floor)


@pytest.mark.parametrize("algorithm", [{"momentum": 0.8}, {"memory": 1.0, "decay": 0.1, "batch": 2}])
def test_slopes_of_remembered_gradients(algorithm: dict[str, float], monkeypatch: pytest.MonkeyPatch) -> None:
    """Against differences of all steps; a long recursion is searched in the limit, and what is stated stays exact."""
    problem, start = few_columns(**algorithm)
    judge, times, rates = (
        objective(problem, start, 3.0),
        np.array([0.0, 0.4, 1.6, 3.0]),
        np.array([0.1, 0.05, 0.07, 0.02]),
    )
    error, slopes = judge.slopes(times, rates)
    assert error == pytest.approx(judge.excess(with_rate(problem, ov.Schedule(times, rates))), rel=0.02)  # merged
    steps = np.exp(1e-4 * np.eye(4))
    differences = [(judge.slopes(times, rates * x)[0] - judge.slopes(times, rates / x)[0]) / 2e-4 for x in steps]
    assert slopes == pytest.approx(differences, rel=1e-6, abs=1e-9)
    monkeypatch.setattr(objectives, "LONG", 0)
    assert judge.slopes(times, rates)[0] == pytest.approx(InfiniteSize(problem, start, 3.0).slopes(times, rates)[0])
    plan = ov.optimise(problem, start, 3.0, knots=2, progress=False)
    assert ov.solve(plan.problem, start, [3.0]).data["error"].item() == pytest.approx(plan.error)


def test_merged_levels_have_nearly_the_same_mean() -> None:
    spectrum = ov.PowerLaw(levels=300, exponent=0.5)
    problem, start = linear(0.3, 0.5, 300, spectrum)
    mean = ExactMean(problem, start, 5.0).mean(problem)
    merged, rates = mean.merged(), np.linspace(0.8, 0.1, 1500)
    assert merged.omega.size < 120
    assert merged(rates) == pytest.approx(mean(rates), rel=2e-3)
