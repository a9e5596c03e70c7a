"""One step, read by all scales: batches, schedules, momentum and memory, alone and together.

Micro and meso are equal in law at a small size, and macro is the limit of both, on every kind of problem. Each test
also sees what is wrong when a part of the step is left out: noise that is not divided by the batch, a rate that does
not change, a velocity that is dropped. All statistical tests of this file together raise a false alarm in BUDGET of all
runs, were seeds free.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.stats import ttest_ind

import overlaps as ov
from contracts.cases import p_value
from overlaps.online.meso import Chain
from overlaps.trajectory.points import points
from problems import problem

THREE_KNOTS = ov.Schedule([0.4, 1.0, 1.6], [0.2, 0.9, 0.1])
ALGORITHMS: dict[str, ov.OnlineSGD] = {
    "batch": ov.OnlineSGD(0.8, batch=8),
    "schedule": ov.OnlineSGD(THREE_KNOTS),
    "momentum": ov.OnlineSGD(0.06, momentum=0.9),
    "memory": ov.OnlineSGD(0.6, memory=2.0),
    "together": ov.OnlineSGD(
        ov.Schedule([0.4, 1.0, 1.6], [0.1, 0.45, 0.05]), readout_rate=0.1, decay=0.2, batch=3, momentum=0.5
    ),
}
# the same algorithm with one part of its step left out; where several are together, one after another
WRONG: dict[tuple[str, str], ov.OnlineSGD] = {
    ("batch", "batch"): ov.OnlineSGD(0.8),
    ("schedule", "rate"): ov.OnlineSGD(0.2),
    ("momentum", "velocity"): ov.OnlineSGD(0.06),
    ("memory", "velocity"): ov.OnlineSGD(0.6),
    ("together", "velocity"): replace(ALGORITHMS["together"], momentum=0.0),
    ("together", "rate"): replace(ALGORITHMS["together"], rate=0.1),
    ("together", "batch"): replace(ALGORITHMS["together"], batch=1),
}
PROBLEMS: dict[str, ov.Problem] = {
    "levels": problem(spectrum=ov.PowerLaw(levels=3, exponent=0.5)),
    "readout": problem(readout=[1.0, -0.6], train_readout=True, label_noise=0.2),
    "mixture": ov.Problem(
        data=ov.GaussianMixture(gram=[[1.0, 0.2], [0.2, 1.5]], variance=[0.5, 0.8], weights=[0.4, 0.6]),
        student=ov.Committee(2, "erf", [1.0, -0.7]),
        algorithm=ov.OnlineSGD(0.5),
    ),
    "softmax": ov.Problem(
        data=ov.GaussianMixture(means=3, variance=0.5),
        student=ov.Softmax(3),
        loss="cross-entropy",
        algorithm=ov.OnlineSGD(0.5),
    ),
    "tails": ov.Problem(
        data=ov.StudentInputs(6.0, values=5),
        teacher=ov.Committee(1),
        student=ov.Committee(2),
        algorithm=ov.OnlineSGD(0.5),
    ),
}
MANIFOLD = ov.Problem(
    data=ov.HiddenManifold(latent_ratio=0.5),
    teacher=ov.Committee(1),
    student=ov.Committee(2, train_readout=True),
    algorithm=ov.OnlineSGD(0.5),
)
TIMES = (0.5, 1.03, 2.0)
BUDGET = 2e-4
LEVEL = BUDGET / ((2 * len(ALGORITHMS) + len(WRONG)) * len(PROBLEMS) + len(ALGORITHMS) + 2)


def with_algorithm(p: ov.Problem, algorithm: ov.OnlineSGD) -> ov.Problem:
    """The problem with this algorithm; a rate of the readout only where one is trained."""
    if not p.student.train_readout:
        algorithm = replace(algorithm, readout_rate=None)
    return replace(p, algorithm=algorithm)


def law(p: ov.Problem, true: ov.Problem) -> float:
    """p-value of the chain of one problem being the training of another."""
    start = ov.draw(true, 24, seed=3, scale=0.7)
    micro = ov.train(true, start, TIMES, runs=200, seed=1, progress=False)
    meso = ov.sample(p, start, TIMES, runs=200, seed=1, progress=False)
    return p_value(points(micro).values, points(meso).values, LEVEL)


@cache
def training(name: str, which: str, runs: int) -> tuple[ov.Start, Any]:
    """Points of small training runs (runs, points), and their start."""
    p = with_algorithm(PROBLEMS[which], ALGORITHMS[name])
    start = ov.draw(p, 24, seed=3, scale=0.7)
    return start, points(ov.train(p, start, TIMES, runs=runs, seed=1, progress=False)).values


def apart(name: str, which: str, chain: ov.OnlineSGD, runs: int) -> float:
    """p-value of the chain of an algorithm being the training of another, by Welch's test.

    The features are those of `p_value`, of which the least p counts as many times; relabelling as often as it takes
    to see a p this small would take seconds for each.
    """
    start, micro = training(name, which, runs)
    p = with_algorithm(PROBLEMS[which], chain)
    meso = points(ov.sample(p, start, TIMES, runs=runs, seed=1, progress=False)).values
    centre = np.concatenate([micro, meso]).mean(0)
    a, b = (np.concatenate([x, (x - centre) ** 2], axis=1) for x in (micro, meso))
    alive = np.concatenate([a, b]).std(0) > 1e-12
    found = ttest_ind(a[:, alive], b[:, alive], equal_var=False).pvalue
    return float(found.min() * found.size)


def limit(p: ov.Problem, true: ov.Problem, scale: Any = ov.sample, size: int = 1500, runs: int = 40) -> str:
    """Verdict of the theory of one problem on runs of another."""
    start = ov.draw(true, size, seed=3, scale=0.7)
    theory = ov.solve(p, start, TIMES)
    found = scale(true, start, TIMES, runs=runs, seed=2, progress=False)
    return ov.compare(theory, found, level=LEVEL, resolve=0.2, finite_size=False).verdict


@pytest.mark.parametrize("which", PROBLEMS)
@pytest.mark.parametrize("name", ALGORITHMS)
def test_the_chain_has_the_law_of_training(name: str, which: str) -> None:
    p = with_algorithm(PROBLEMS[which], ALGORITHMS[name])
    assert law(p, p) > LEVEL


@pytest.mark.parametrize("which", PROBLEMS)
@pytest.mark.parametrize("name", ALGORITHMS)
def test_theory_is_the_limit(name: str, which: str) -> None:
    p = with_algorithm(PROBLEMS[which], ALGORITHMS[name])
    assert limit(p, p) == "agrees"


@pytest.mark.parametrize("name", ALGORITHMS)
def test_theory_is_the_limit_on_a_hidden_manifold(name: str) -> None:
    """There is no chain; training itself is compared."""
    p = with_algorithm(MANIFOLD, ALGORITHMS[name])
    assert limit(p, p, ov.train, size=800, runs=20) == "agrees"


@pytest.mark.parametrize("which", PROBLEMS)
@pytest.mark.parametrize(("name", "part"), WRONG)
def test_a_chain_without_a_part_of_the_step_is_rejected(name: str, part: str, which: str) -> None:
    """On every kind of problem; the whole chain is not, by the same test."""
    assert apart(name, which, ALGORITHMS[name], 300) > LEVEL
    assert apart(name, which, WRONG[name, part], 300) <= LEVEL


@pytest.mark.parametrize("which", [*PROBLEMS, "manifold"])
@pytest.mark.parametrize(("name", "part"), WRONG)
def test_a_theory_without_a_part_of_the_step_is_rejected(name: str, part: str, which: str) -> None:
    """By the test of the limit, on every kind of problem."""
    p = PROBLEMS.get(which, MANIFOLD)
    right, wrong = (with_algorithm(p, one) for one in (ALGORITHMS[name], WRONG[name, part]))
    manifold: dict[str, Any] = {"scale": ov.train, "size": 400, "runs": 12} if p is MANIFOLD else {}
    assert limit(wrong, right, **manifold) == "disagrees"


def test_bartletts_factor_matters() -> None:
    """A chain whose inputs are ten per cent too short outside the frame is not training."""

    class Short(Chain):
        def record(self, stops: Any) -> Any:
            self.frame = self.frame._replace(rest=(0.8 * self.frame.rest).astype(np.int64))
            return super().record(stops)

    p = with_algorithm(PROBLEMS["levels"], ALGORITHMS["batch"])
    start = ov.draw(p, 60, seed=3, scale=0.7)
    micro = ov.train(p, start, [4.0], runs=600, seed=1, progress=False)
    from overlaps.online.runs import record

    options: dict[str, Any] = {"levels": False, "progress": False}
    good, short = (record("meso", run(p, start), p, start, [4.0], 600, 1, **options) for run in (Chain, Short))
    assert p_value(points(micro).values, points(good).values, LEVEL) > LEVEL
    assert p_value(points(micro).values, points(short).values, LEVEL) <= LEVEL


def test_momentum_has_the_limit_of_a_larger_rate() -> None:
    """Macro is that of SGD with η/(1 − s), and the chain tends to it as 1/N."""
    p, plain = (problem(students=1, teachers=1) for _ in range(2))
    p = replace(p, algorithm=ov.OnlineSGD(0.1, momentum=0.8, decay=0.1))
    plain = replace(plain, algorithm=ov.OnlineSGD(0.5, decay=0.1))
    start = ov.draw(p, 100, seed=0, scale=0.5)
    theory, same = (ov.solve(q, start, TIMES).data["Q"].values for q in (p, plain))
    assert np.abs(theory - same).max() < 1e-12
    found = ov.check_scaling(p, [20, 40, 80, 160], times=[1.0, 2.0], runs=4000, seed=1, progress=False)
    assert found.bias["Q"] is not None and found.bias["Q"].low < 1 < found.bias["Q"].high


def test_steps_by_hand() -> None:
    """Training is the recursion of the docstring, with the samples that the run itself draws."""
    p = problem(students=2, teachers=1, train_readout=True, readout=[1.0, -0.5])
    for algorithm in (
        ov.OnlineSGD(THREE_KNOTS, 0.3, 0.2, batch=3, momentum=0.7),
        ov.OnlineSGD(THREE_KNOTS, 0.3, 0.2, batch=3, memory=0.4),
    ):
        q = replace(p, algorithm=algorithm)
        N, start = 30, ov.draw(q, 30, seed=0, scale=0.5)
        run = ov.train(q, start, [1.0], runs=1, seed=5, progress=False)
        rng = np.random.Generator(np.random.SFC64(np.random.SeedSequence([5, 1]).spawn(1)[0]))
        assert run.data["v"].values[0, 0] == pytest.approx(by_hand(q, start, rng, N), abs=1e-12)


@pytest.mark.parametrize("memory", [None, 1.0])
@pytest.mark.parametrize("end", [0.5, 10.0])
def test_a_peak_that_the_steps_pass_by_is_refused(end: float, memory: float | None) -> None:
    """Q at the end was .32, with a stated error of 1e-12, where it is 2.07 with the knots of the peak.

    With a memory, of which the peak uses only what there is when it comes, Q is .272 in place of .269.
    """
    p, between = problem(spectrum=ov.PowerLaw(3, 0.7)), (1.003, 1.013)

    def with_knots(knots: tuple[float, ...]) -> ov.Problem:
        rate = ov.schedules.Function(lambda t: 0.2 * (t < end) + 20 * (between[0] < t < between[1]), knots=knots)
        return replace(p, algorithm=ov.OnlineSGD(rate, memory=memory))

    start = ov.draw(p, 200, seed=0, scale=0.5)
    with pytest.raises(ov.InputError, match=r"^rate: between the times .* missed 0\.(2|19).* of it; name the times"):
        ov.solve(with_knots((end,)), start, [0.0, 3.0])
    seen = ov.solve(with_knots(tuple(sorted((end, *between)))), start, [0.0, 3.0])
    assert np.abs(seen.data["Q"][0, 1] - seen.data["Q"][0, 0]).max() > (0.5 if memory is None else 5e-3)


def test_rates_that_steps_may_pass_by() -> None:
    """Where nothing moves any more steps are long, and the rate does not count."""
    p = problem("linear", 1, 1)
    start = ov.draw(p, 200, seed=0, scale=0.5)
    rate = ov.schedules.Function(lambda t: 0.5 + 0.4 * math.sin(50 * t))
    solved = ov.solve(replace(p, algorithm=ov.OnlineSGD(rate)), start, [0.0, 2.0, 200.0])
    assert solved.data["error"][0, -1] < 1e-12


def by_hand(p: ov.Problem, start: ov.Start, rng: np.random.Generator, N: int) -> np.ndarray:
    """The readout at time one of the recursion written out."""
    from scipy.special import erf

    from overlaps.compiled.normals import fill_normals

    a = p.algorithm
    assert isinstance(a, ov.OnlineSGD) and start.student is not None and start.teacher is not None
    W, v, B, u = start.student.copy(), start.v.copy(), start.teacher, start.u
    U, velocity = np.zeros_like(W), np.zeros_like(v)
    for n in range(N):
        gradient, slope = a.decay / N * W, a.decay / N * v
        for _ in range(a.batch):
            x = np.empty(N)
            fill_normals(x, rng)
            lam, nu = W @ x / np.sqrt(N), B @ x / np.sqrt(N)
            miss = v @ erf(lam / np.sqrt(2)) - u @ erf(nu / np.sqrt(2))
            d = v * np.sqrt(2 / np.pi) * np.exp(-(lam**2) / 2) * miss
            gradient = gradient + np.outer(d, x) / np.sqrt(N) / a.batch
            slope = slope + erf(lam / np.sqrt(2)) * miss / N / a.batch
        rate, readout_rate = THREE_KNOTS(n / N), 0.3
        if a.memory is not None:
            s = 1 - 1 / (N * a.memory)
            U, velocity = s * U + (1 - s) * gradient, s * velocity + (1 - s) * slope
            W, v = W - rate * U, v - readout_rate * velocity
        else:
            U, velocity = a.momentum * U - rate * gradient, a.momentum * velocity - readout_rate * slope
            W, v = W + U, v + velocity
    return v


def test_solver_stops_at_jumps() -> None:
    """A rate that jumps is solved as two problems one after the other; the stated accuracy holds."""
    p = problem(spectrum=ov.PowerLaw(levels=4, exponent=0.5))
    both = replace(p, algorithm=ov.OnlineSGD(ov.schedules.Steps([1.37], [0.9, 0.2])))
    start = ov.draw(p, 200, seed=1, scale=0.5)
    whole = ov.solve(both, start, [1.0, 1.37, 3.0], levels=True)
    first = ov.solve(replace(p, algorithm=ov.OnlineSGD(0.9)), start, [1.37], levels=True)
    middle = ov.Start.from_overlaps(
        p, first.data["Q_levels"].values[0, 0], first.data["R_levels"].values[0, 0], start.T
    )
    middle = replace(middle, fractions=start.fractions)
    second = ov.solve(replace(p, algorithm=ov.OnlineSGD(0.2)), replace(middle, size=None), [3.0 - 1.37])
    for name in ("Q", "R"):
        assert np.abs(whole.data[name].values[0, 1] - first.data[name].values[0, 0]).max() < 1e-10
        assert np.abs(whole.data[name].values[0, 2] - second.data[name].values[0, 0]).max() < 1e-9


def test_samples_are_counted() -> None:
    p = replace(problem(), algorithm=ov.OnlineSGD(0.2, batch=4))
    start = ov.draw(p, 50)
    for result in (ov.solve(p, start, [0.0, 2.0]), ov.train(p, start, [0.0, 2.0], runs=1, progress=False)):
        assert result.data["samples"].values.tolist() == [0.0, 400.0]
        assert result.data["time"].attrs["units"] == "steps per input dimension"


REFUSALS = {
    "moments": lambda p, s: ov.solve(p, s, [1.0], system="moments"),
    "diffusion": lambda p, s: ov.sample(p, s, [1.0], method="diffusion", progress=False),
    "plateau": lambda p, s: ov.laws.plateau(p),
    "single_vector": lambda p, s: ov.laws.single_vector(p, 1.0),
    "decay_rates": lambda p, s: ov.laws.decay_rates(p),
}


@pytest.mark.parametrize("who", REFUSALS)
def test_what_knows_no_memory_says_so(who: str) -> None:
    p = replace(problem(), algorithm=ov.OnlineSGD(0.2, memory=1.0))
    with pytest.raises(ov.InputError, match=r"^(system|method|algorithm):"):
        REFUSALS[who](p, ov.draw(p, 60))


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize("who", ["plateau", "single_vector", "decay_rates"])
def test_laws_are_for_plain_sgd(name: str, who: str) -> None:
    p = replace(problem(), algorithm=replace(ALGORITHMS[name], readout_rate=None))
    with pytest.raises(ov.InputError, match=r"^algorithm: .*(one sample a step|one-pass)"):
        REFUSALS[who](p, ov.draw(p, 60))


def test_diffusion_knows_batches_schedules_and_momentum() -> None:
    """Its mean and spread at N = 4000 are those of the chain, within five standard errors of 300 runs."""
    for name in ("batch", "schedule", "momentum"):
        p = with_algorithm(problem(students=1, teachers=1), ALGORITHMS[name])
        start = ov.draw(p, 4000, seed=3, scale=0.7)
        chain = ov.sample(p, start, TIMES, runs=300, seed=1, progress=False).data["Q"].values
        quick = ov.sample(p, start, TIMES, runs=300, seed=1, method="diffusion", progress=False).data["Q"].values
        error = np.sqrt(chain.var(0) / 300 + quick.var(0) / 300)
        assert (np.abs(chain.mean(0) - quick.mean(0)) < 5 * error).all()
        ratio = quick.std(0) / chain.std(0)
        assert ((ratio > 0.8) & (ratio < 1.25)).all(), name  # five standard errors of a ratio of spreads, 1/√600 each


def test_warm_up_of_a_strong_mixture() -> None:
    """A rate that begins at zero: the equations of strong mixtures take short steps where it rises."""
    net = ov.Committee(2)
    warm = ov.OnlineSGD(ov.Schedule([0.0, 2.0, 4.0], [0.0, 1.5, 0.1]))
    p = ov.Problem(data=ov.HiddenManifold(latent_ratio=0.5), teacher=net, student=net, algorithm=warm)
    start = ov.draw(p, 60, seed=1)
    levels, strong = (ov.solve(p, start, [2.0, 4.0], system=name) for name in ("levels", "strong-mixture"))
    for name in ("Q", "R", "error"):
        assert np.abs(levels.data[name] - strong.data[name]).max() < max(3 * strong.accuracy(name), 5e-3)


def test_diffusion_takes_the_rate_after_a_jump() -> None:
    """Whatever rounding makes of the time at which it lands."""
    p = problem(students=1, teachers=1)
    for knot, stop in ((1.543, 1.43), (1.232, 1.14), (1.1, 0.7)):
        q = replace(p, algorithm=ov.OnlineSGD(ov.schedules.Steps([knot], [0.02, 2.0])))
        start = ov.Start.from_overlaps(q, [[0.5]], [[0.1]], [[1.0]], size=10**9)
        quick = ov.sample(q, start, [stop, 2.0], runs=1, method="diffusion", progress=False)
        assert np.abs(quick.data["R"] - ov.solve(q, start, [stop, 2.0]).data["R"]).max() < 1e-3


def test_a_memory_of_less_than_a_step_is_refused() -> None:
    p = replace(problem(), algorithm=ov.OnlineSGD(0.2, memory=0.004))
    with pytest.raises(ov.InputError, match=r"^memory: 0.004 is less than one step at size 100"):
        ov.sample(p, ov.draw(p, 100), [1.0], runs=1, progress=False)


@pytest.mark.parametrize("scale", [ov.solve, ov.sample])
def test_a_rate_below_zero_is_refused_when_it_is_met(scale: Any) -> None:
    p = replace(problem(), algorithm=ov.OnlineSGD(ov.schedules.Function(lambda t: -1.0 if 0.32 < t < 0.33 else 0.1)))
    options = {} if scale is ov.solve else {"runs": 1, "progress": False}
    with pytest.raises(ov.InputError, match=r"^rate: expected rates of at least 0 at all times"):
        scale(p, ov.draw(p, 400), np.linspace(0.3, 0.34, 41), **options)


def test_functions_that_fail_are_refused_by_field() -> None:
    with pytest.raises(ov.InputError, match=r"^rate: .*IndexError"):
        ov.OnlineSGD(ov.schedules.Function(lambda t: [0.1, 0.2][int(t)]))
    assert ov.schedules.Function(np.sqrt, knots=[0.0]).before(0.0) == 0.0
