"""Micro and meso are equal in law at every size, and meso tends to macro at the stated rate.

The contracts (`contracts.cases`) test this for every activation, loss, network and data model. Here are combinations of
them and small levels, tests that wrong chains are noticed, and the rates. Each of the tests has level LEVEL = 1e-4;
with at most five that could raise one the false-alarm rate of this file is below 5e-4. Seeds are fixed.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import overlaps as ov
from contracts import cases
from overlaps.online import micro
from overlaps.online.meso import Chain
from overlaps.trajectory.points import points, relabelled

LEVEL = 1e-4
TIMES = [0.5, 1.03, 4.0]


def logcosh(lam, nu, c, v):
    return np.log(np.cosh(np.sum(v * np.tanh(lam)) - np.sum(np.tanh(nu))))


def logcosh_gradient(lam, nu, c, v):
    g = np.tanh(lam)
    pull = np.tanh(np.sum(v * g) - np.sum(np.tanh(nu)))
    return pull * v * (1 - g * g), pull * g


def problem(**change) -> ov.Problem:
    parts = {
        "data": ov.GaussianInputs(),
        "teacher": ov.Committee(2, readout=[1.0, 0.6]),
        "student": ov.Committee(2),
        "algorithm": ov.OnlineSGD(1.0),
    }
    return ov.Problem(**{**parts, **change})


LEVELS = ov.GaussianInputs(ov.PowerLaw(levels=5, exponent=0.5))
TINY_BLOCKS = ov.GaussianInputs(ov.Spectrum([4.0, 2.0, 0.6], [0.025, 0.075, 0.9]))  # 1, 3 and 36 of 40 dimensions

XOR = [[1, -1, 0, 0], [-1, 1, 0, 0], [0, 0, 1, -1], [0, 0, -1, 1]]

CASES = {
    "isotropic": problem(),
    "five levels": problem(data=LEVELS),
    "blocks of 1 and 3": problem(data=TINY_BLOCKS),
    "user loss": problem(
        teacher=ov.Committee(1), loss=ov.Loss(logcosh, logcosh_gradient), student=ov.Committee(2, train_readout=True)
    ),
    "readout, decay, noise": problem(
        data=LEVELS,
        student=ov.Committee(3, readout=0.5, train_readout=True),
        algorithm=ov.OnlineSGD(1.0, readout_rate=0.7, decay=0.1),
        label_noise=0.3,
    ),
    "softmax on three classes": problem(
        data=ov.GaussianMixture(
            gram=[[1.0, 0.3, 0.0], [0.3, 1.0, -0.2], [0.0, -0.2, 0.8]],
            weights=[0.5, 0.3, 0.2],
            variance=[0.1, 0.2, 0.3],
        ),
        teacher=None,
        student=ov.Softmax(3),
        algorithm=ov.OnlineSGD(2.0, decay=0.05),
        loss="cross-entropy",
    ),
    "xor": problem(
        data=ov.GaussianMixture(gram=XOR, labels=[1, 1, 0, 0], variance=0.2),
        teacher=None,
        student=ov.Committee(3, "relu", [1.0, -0.8, 0.5], train_readout=True),
        algorithm=ov.OnlineSGD(2.0, decay=0.02),
        loss="logistic",
    ),
    "teacher on a mixture": problem(
        data=ov.GaussianMixture(
            gram=[[1.0, 0.3], [0.3, 1.0]],
            weights=[0.6, 0.4],
            variance=[0.7, 1.2],
            spectrum=ov.Spectrum([2.0, 0.5], [0.1, 0.9]),
        ),
        teacher=ov.Committee(1, "linear"),
        student=ov.Committee(2, "linear", train_readout=True),
    ),
}


CONTRACTS = ("isotropic", "softmax on three classes", "xor")  # problems of the contracts, here for tests of power


def p_value(a: ov.Trajectory, b: ov.Trajectory) -> float:
    """Relabelling test of equality in law; exact level."""
    return cases.p_value(points(a).values, points(b).values, LEVEL)


def runs_of(problem: ov.Problem, size: int = 40, runs: int = 300) -> tuple[ov.Start, ov.Trajectory]:
    start = ov.draw(problem, size, seed=3, scale=0.7)
    return start, ov.train(problem, start, TIMES, runs=runs, seed=1)


@pytest.mark.parametrize("case", [name for name in CASES if name not in CONTRACTS])
def test_micro_and_meso_are_equal_in_law(case):
    chosen = CASES[case]
    costly = isinstance(chosen.loss, ov.Loss) or isinstance(chosen.data, ov.GaussianMixture)
    runs = 120 if costly else 300  # their error is a quadrature for every run and time
    start, micro = runs_of(chosen, runs=runs)
    meso = ov.sample(chosen, start, TIMES, runs=runs, seed=1)
    assert p_value(micro, meso) > LEVEL


@pytest.mark.parametrize("case", ["readout, decay, noise", "xor"])
def test_blocked_and_direct_training_take_the_same_steps(case):
    """The blocked engine is algebra, not statistics: same samples, same weights up to rounding."""
    from overlaps.online import micro
    from overlaps.online import steps as engines

    chosen = CASES[case]
    start = ov.draw(chosen, 60, seed=0, scale=0.5)
    template = micro.Weights(chosen, start)
    ends = []
    for engine in (engines.direct, engines.blocked):
        run = template.copy_with(np.random.Generator(np.random.SFC64(5)))
        assert run.take_steps is engines.direct  # what two or three units are trained by
        run.take_steps = engine
        run.advance(101)
        ends.append((run.W, run.v))
    np.testing.assert_allclose(ends[0][0], ends[1][0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(ends[0][1], ends[1][1], rtol=0, atol=1e-12)


class HalfTheNoise(Chain):
    """A wrong chain: half the dimensions outside the frame."""

    def __init__(self, problem: ov.Problem, start: ov.Start) -> None:
        super().__init__(problem, start)
        self.frame = self.frame._replace(rest=np.maximum(self.frame.rest // 2, 1))


def test_halving_the_noise_is_rejected(monkeypatch):
    chosen = CASES["isotropic"]
    start, micro = runs_of(chosen)
    monkeypatch.setattr("overlaps.online.meso.Chain", HalfTheNoise)
    assert p_value(micro, ov.sample(chosen, start, TIMES, runs=300, seed=1)) <= LEVEL


def test_transposing_R_is_rejected():
    chosen = CASES["isotropic"]
    start, micro = runs_of(chosen)
    wrong = dataclasses.replace(start, A=start.A.transpose(0, 2, 1), student=None, teacher=None, means=None)
    assert p_value(micro, ov.sample(chosen, wrong, TIMES, runs=300, seed=1)) <= LEVEL


def test_inputs_seven_per_cent_too_short_are_rejected(monkeypatch):
    class Shorter(Chain):
        def __init__(self, problem: ov.Problem, start: ov.Start) -> None:
            super().__init__(problem, start)
            self.frame = self.frame._replace(root=self.frame.root * 0.93)

    chosen = CASES["isotropic"]
    start, micro = runs_of(chosen)
    monkeypatch.setattr("overlaps.online.meso.Chain", Shorter)
    assert p_value(micro, ov.sample(chosen, start, TIMES, runs=300, seed=1)) <= LEVEL


def test_taking_the_wrong_mean_is_rejected(monkeypatch):
    """Two means exchanged, where labels and weights are not."""

    class Exchanged(Chain):
        def __init__(self, problem: ov.Problem, start: ov.Start) -> None:
            super().__init__(problem, start)
            self.frame = self.frame._replace(fixed=self.frame.fixed[:, [1, 0, 2]].copy())

    chosen = CASES["softmax on three classes"]
    start, micro = runs_of(chosen, runs=120)
    monkeypatch.setattr("overlaps.online.meso.Chain", Exchanged)
    assert p_value(micro, ov.sample(chosen, start, TIMES, runs=120, seed=1)) <= LEVEL


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (ov.OnlineSGD(2.0, batch=3), ov.OnlineSGD(2.0, batch=2)),
        (ov.OnlineSGD(0.1, momentum=0.9), ov.OnlineSGD(1.0)),
        (ov.OnlineSGD(0.1, momentum=0.9), ov.OnlineSGD(0.1, momentum=0.88)),
        (ov.OnlineSGD(1.5, memory=0.5), ov.OnlineSGD(1.5, memory=0.35)),
        (ov.OnlineSGD(ov.Schedule([0.0, 2.0], [0.2, 1.8])), ov.OnlineSGD(1.0)),
    ],
    ids=["batch", "no momentum", "less momentum", "memory", "schedule"],
)
def test_chains_of_other_algorithms_are_rejected(right, wrong):
    """Parts of a step that are a little otherwise, or have the same effect in the limit, or in the mean over time."""
    start, micro = runs_of(problem(algorithm=right), runs=150)
    assert p_value(micro, ov.sample(problem(algorithm=wrong), start, TIMES, runs=150, seed=1)) <= LEVEL


def test_the_test_itself_keeps_its_level():
    """Two halves of the same law are told apart no more often than stated: 200 splits at level 0.05, binomial bound."""
    rng = np.random.default_rng(0)
    alarms = 0
    for i in range(200):
        x = rng.standard_normal((60, 7)) ** 3
        alarms += relabelled(x[:30], x[30:], 0.05, seed=i, repeats=199)[0].min() <= 0.05
    assert alarms <= 23  # P(Binomial(200, 0.05) > 23) = 1e-4


def test_bias_falls_as_one_over_size_and_spread_as_its_root():
    """The intervals (99 %) of both exponents cover the claim, and the bias is resolved."""
    linear = problem(
        teacher=ov.Committee(1, "linear"), student=ov.Committee(2, "linear", readout=0.7), algorithm=ov.OnlineSGD(1.0)
    )
    start = ov.Start.from_overlaps(linear, Q=[[0.5, 0.1], [0.1, 0.6]], R=[[0.2], [0.3]], T=[[1.0]])
    result = ov.check_scaling(linear, [60, 120, 240, 480], start=start, times=(0.5, 1.0, 2.0), runs=8000)
    bias, spread = result.bias["error"], result.spread["error"]
    assert bias is not None and bias.low < 1 < bias.high and bias.low > 0.5
    assert spread.low < 0.5 < spread.high and spread.high - spread.low < 0.05
    assert "bias ~ N^-" in repr(result)


def test_meso_tends_to_macro_for_erf_on_a_spectrum():
    chosen = CASES["five levels"]
    start = ov.draw(chosen, 400, seed=3, scale=0.7)
    result = ov.check_scaling(chosen, [30, 60, 120], start=start, times=(1.0, 4.0), runs=4000, seed=2)
    bias = result.bias["Q"]
    assert bias is not None and bias.low < 1 < bias.high and bias.low > 0.25


@pytest.mark.parametrize("size", [7, 40])
def test_chain_starts_at_the_overlaps_of_the_weights(size):
    """Coordinates in the frame reproduce Q and R of the start exactly, also where levels are smaller than K + M."""
    chosen = CASES["five levels"]
    start = ov.draw(chosen, size, seed=0, scale=0.4)
    first = ov.sample(chosen, start, [0.0, 1.0], runs=1, levels=True).data.isel(run=0, time=0)
    np.testing.assert_allclose(first["Q_levels"], start.Q, atol=1e-13)
    np.testing.assert_allclose(first["R_levels"], start.R, atol=1e-13)


def test_one_step_of_the_chain_conserves_what_it_must():
    """Folding is a rotation: from a fixed Gram matrix, one step changes Q by the rank-one update alone."""
    from overlaps.online.meso import _fold

    rng = np.random.default_rng(0)
    for K in (1, 2, 5):
        X = np.zeros((K, K + 1))
        X[:, :K] = np.tril(rng.standard_normal((K, K)))
        y, delta, step = rng.standard_normal(K + 1), rng.standard_normal(K), 0.3
        moved = X - step * np.outer(delta, y)
        expected = moved @ moved.T
        _fold(X[None], y[None].copy(), 0, 0, delta, step)
        np.testing.assert_allclose(X @ X.T, expected, atol=1e-13)
        assert np.all(X[:, K] == 0) and np.allclose(np.triu(X[:, :K], 1), 0)


def test_same_seed_same_bits_and_more_runs_keep_the_first():
    chosen = CASES["five levels"]
    start = ov.draw(chosen, 50, seed=0)
    for scale in (ov.sample, ov.train):
        few, many = scale(chosen, start, TIMES, runs=2, seed=4), scale(chosen, start, TIMES, runs=5, seed=4)
        np.testing.assert_array_equal(few.data["Q"], many.data["Q"].isel(run=slice(2)))
        other = scale(chosen, start, TIMES, runs=2, seed=5)
        assert not np.allclose(few.data["Q"].isel(time=-1), other.data["Q"].isel(time=-1))


def test_values_between_steps_are_interpolated():
    chosen = CASES["isotropic"]
    start = ov.draw(chosen, 10, seed=0)
    for scale in (ov.sample, ov.train):
        run = scale(chosen, start, [0.5, 0.53, 0.56, 0.6], runs=1, seed=0).data["R"].values[0]
        np.testing.assert_allclose(run[1], 0.7 * run[0] + 0.3 * run[3], atol=1e-14)
        np.testing.assert_allclose(run[2], 0.4 * run[0] + 0.6 * run[3], atol=1e-14)


@pytest.mark.parametrize("students", [2, micro.BLOCKED_FROM])  # by the direct engine, and by the blocked one
def test_recording_more_often_does_not_change_a_run(students):
    chosen = problem(data=LEVELS, student=ov.Committee(students, readout=0.4 / students), label_noise=0.5)
    start = ov.draw(chosen, 2 * students + 46, seed=0)
    for scale in (ov.sample, ov.train):
        rare = scale(chosen, start, [4.0], runs=2, seed=4).data["Q"].isel(time=-1)
        often = scale(chosen, start, np.linspace(0.02, 4.0, 200), runs=2, seed=4).data["Q"].isel(time=-1)
        np.testing.assert_allclose(rare, often, atol=1e-12)


def test_label_noise_enters_the_run_but_not_the_error():
    noisy = problem(label_noise=0.5)
    start = ov.draw(noisy, 200, seed=0, scale=0.5)
    macro, meso = ov.solve(noisy, start, TIMES), ov.sample(noisy, start, TIMES, runs=64)
    assert ov.compare(macro, meso).verdict == "agrees"
    clean = ov.solve(problem(), start, TIMES)
    assert float(macro.data["error"][0, -1]) > float(clean.data["error"][0, -1])
