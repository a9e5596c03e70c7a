"""Full-batch training at three scales: micro and meso equal in law, the theory against both.

Two simulations are compared by relabelling, exact at its level; a theory with runs by `compare`. Levels are 10⁻³
each, with fixed seeds. That the tests have power is tested as well: samplers with an error in them are rejected.
"""

from __future__ import annotations

import numpy as np
import pytest

import overlaps as ov
from full_batches import LEVEL, USER, committee, p_of_kernels, paper, three_classes
from overlaps.full_batch import data_matrices

SIZE = 120


LAWS = {
    "paper": (lambda: paper(steps=8, rate=0.5, momentum=0.5), SIZE, 250),
    "softmax": (lambda: three_classes(steps=4, rate=0.7, method="heavy-ball", momentum=0.5), SIZE, 120),
    "teacher": (lambda: committee(steps=6, rate=0.5, method="nesterov", momentum=0.5), SIZE, 120),
    "few dimensions": (lambda: paper(steps=12, rate=1.0, method="gd", ratio=0.1), 3, 400),
    "few samples": (lambda: paper(steps=12, rate=1.0, method="gd", ratio=3.0), 6, 400),
    "many samples": (lambda: paper(steps=6, rate=0.5, ratio=0.1), 30, 250),
    "many dimensions": (lambda: paper(steps=6, rate=0.5, ratio=3.0, momentum=0.9), SIZE, 250),
    "hinge": (lambda: paper("relu", "hinge", steps=5, rate=0.5, method="gd"), SIZE, 120),
}


@pytest.mark.parametrize("name", LAWS)
def test_micro_and_meso_are_equal_in_law(name):
    make, size, runs = LAWS[name]
    problem = make()
    start = ov.draw(problem, size)
    meso = ov.sample(problem, start, runs=runs, seed=1, kernels=True)
    micro = ov.train(problem, start, runs=runs, seed=1, kernels=True)
    verdict = ov.compare(meso, micro, level=LEVEL, resolve=0.35)
    assert verdict.verdict == "agrees", verdict
    assert p_of_kernels(meso, micro) > LEVEL


def test_meso_from_overlaps_is_meso_from_weights():
    problem = committee(steps=5, rate=0.5)
    start = ov.draw(problem, 40, seed=3)
    from_weights = ov.sample(problem, start, runs=250, seed=1)
    from_overlaps = ov.sample(problem, start.at_size(problem, 40), runs=250, seed=2)
    assert ov.compare(from_weights, from_overlaps, level=LEVEL).verdict == "agrees"


class _Forgetful(data_matrices.ConditionedGaussian):
    """Fresh numbers in every direction: what is known of Z is forgotten in one of two ways."""

    keeps_noise = keeps_answers = True

    def left(self, u, V):
        g = self.rng.standard_normal(self.b.place.shape[:2])
        seen = np.zeros((len(u), V.count))
        if self.keeps_answers:
            seen += self.a.dot(u)
        if self.keeps_noise:
            seen -= V.dot(g)
        self.b.append(g + V.combine(seen))


@pytest.mark.parametrize(("forgotten", "name"), [("keeps_noise", "few samples"), ("keeps_answers", "paper")])
def test_a_sampler_with_an_error_is_rejected(forgotten, name, monkeypatch):
    make, size, runs = LAWS[name]
    problem = make()
    start = ov.draw(problem, size)
    micro = ov.train(problem, start, runs=runs, seed=1, kernels=True)
    monkeypatch.setattr(data_matrices, "ConditionedGaussian", type("_Wrong", (_Forgetful,), {forgotten: False}))
    wrong = ov.sample(problem, start, runs=runs, seed=1, kernels=True)
    assert min(p_of_kernels(wrong, micro), smallest_p(wrong, micro)) < LEVEL
    monkeypatch.setattr(data_matrices, "ConditionedGaussian", _Forgetful)
    right = ov.sample(problem, start, runs=runs, seed=1, kernels=True)
    assert min(p_of_kernels(right, micro), smallest_p(right, micro)) > LEVEL


def smallest_p(a: ov.Trajectory, b: ov.Trajectory) -> float:
    return float(ov.compare(a, b, level=LEVEL).table["p_adjusted"].min())


THEORIES = {
    "paper": (lambda: paper(steps=25, rate=0.5, momentum=0.5), 600, 40, 1e-3),
    "relu": (lambda: paper("relu", "square", steps=15, rate=0.5, ratio=0.4), 400, 60, 5e-3),
    "hinge": (lambda: paper("relu", "hinge", steps=12, rate=0.5, method="gd", ratio=2.0), 800, 40, 1e-2),
    "softmax": (lambda: three_classes(steps=15, rate=0.7, method="gd", ratio=0.5), 600, 40, 1e-2),
    "teacher": (lambda: committee(steps=12, rate=0.5, decay=0.05, ratio=0.5), 500, 40, 1e-2),
    "user": (lambda: paper(loss=USER, steps=15, rate=0.5), 500, 40, 1e-2),
}


@pytest.mark.parametrize("name", THEORIES)
def test_the_theory_agrees_with_runs(name):
    make, size, runs, accuracy = THEORIES[name]
    problem = make()
    start = ov.draw(problem, size, seed=2)
    macro = ov.solve(problem, start, accuracy=accuracy)
    meso = ov.sample(problem, start, runs=runs, seed=3, kernels=True)
    verdict = ov.compare(macro, meso, level=LEVEL, finite_size=False)
    assert verdict.verdict == "agrees", verdict
    # kernels of two times: six standard errors at some thousand points, rate 1e-5, beside the errors of the theory
    for kernel in ("V_theta", "V_omega"):
        runs_mean, error = meso.data[kernel].mean("run"), meso.data[kernel].std("run", ddof=1) / np.sqrt(runs)
        apart = np.abs(macro.data[kernel] - runs_mean) - macro.accuracy(kernel)
        assert float((apart - 6 * error - 1e-9).max()) < 0


def test_what_deviates_at_small_sizes_vanishes_as_one_over_N():
    problem = paper(steps=8, rate=1.0)
    start = ov.draw(problem, 16, seed=1)
    macro = ov.solve(problem, start)
    meso = ov.sample(problem, start, runs=4000)
    verdict = ov.compare(macro, meso, level=LEVEL)
    assert verdict.verdict == "finite-size", verdict
    assert verdict.exponent is not None and verdict.exponent.low > 0.5


def test_spread_goes_as_the_root_of_the_size():
    found = ov.check_scaling(paper(steps=5, rate=0.5), [100, 200, 400], times=[2, 5], runs=300)
    for name in ("Q", "m", "error", "training_error"):
        assert found.spread[name].low < 0.5 < found.spread[name].high


def test_a_theory_with_an_error_is_rejected():
    """No response of the fields to their own duals; no noise of the gradients: each is seen."""
    problem = paper(steps=12, rate=0.5)
    start = ov.draw(problem, 600, seed=2)
    meso = ov.sample(problem, start, runs=40, seed=3)
    macro = ov.solve(problem, start)
    assert ov.compare(macro, meso, level=LEVEL, finite_size=False).verdict == "agrees"
    for wrong in (
        paper(steps=12, rate=0.5, ratio=0.8),
        paper(steps=12, rate=0.48),
        paper(steps=12, rate=0.5, decay=0.03),
    ):
        theory = ov.solve(wrong, ov.Start.from_overlaps(wrong, start.Q, m=start.m))
        assert ov.compare(theory, meso, level=LEVEL, finite_size=False).verdict == "disagrees"
