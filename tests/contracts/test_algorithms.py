"""Every training algorithm: a class without an example here is a failure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import t as student

import overlaps as ov
from full_batches import paper
from problems import problem

from .cases import ALGORITHMS, LEVEL, equal_in_law, round_trip, tends_to_theory

# by class: an example, and arguments it refuses, the first of each being the field to be named
CASES: dict[str, tuple[Any, tuple[dict[str, Any], ...]]] = {
    "OnlineSGD": (
        ov.OnlineSGD(0.8, readout_rate=0.5, decay=0.1),
        ({"rate": 0.0}, {"readout_rate": -1.0, "rate": 0.1}, {"decay": -0.1, "rate": 0.1}),
    ),
    "GradientFlow": (
        ov.GradientFlow(0.8, readout_rate=0.5, decay=0.1),
        ({"rate": float("inf")}, {"readout_rate": -1.0, "rate": 0.1}, {"decay": -0.1, "rate": 0.1}),
    ),
    "FullBatch": (
        ov.FullBatch(5, 0.5, "heavy-ball", ratio=0.8, momentum=0.5, decay=0.05),
        (
            {"steps": 0, "rate": 0.1},
            {"rate": -0.1, "steps": 2},
            {"method": "adam", "steps": 2, "rate": 0.1},
            {"ratio": 0.0, "steps": 2, "rate": 0.1},
            {"momentum": 1.0, "steps": 2, "rate": 0.1, "method": "nesterov"},
            {"momentum": 0.5, "steps": 2, "rate": 0.1},
        ),
    ),
    "GiantStep": (ov.GiantStep(1.0, 0.25), ({"rate": 0.0}, {"heads": 3}, {"steps": 0}, {"exponent": float("nan")})),
}
REFUSED = [(name, i) for name, (_, refused) in CASES.items() for i in range(len(refused))]


def problem_by(name: str) -> ov.Problem:
    algorithm = CASES[name][0]
    trained = name != "FullBatch"
    return replace(problem("erf", 2, 1, readout=[1.0, -0.7], train_readout=trained), algorithm=algorithm)


def test_every_algorithm_has_a_case() -> None:
    assert CASES.keys() == ALGORITHMS.keys()
    assert all(type(example) is ALGORITHMS[name] for name, (example, _) in CASES.items())


@pytest.mark.parametrize(("name", "i"), REFUSED)
def test_what_is_outside_its_domain_is_refused_by_field(name: str, i: int) -> None:
    arguments = CASES[name][1][i]
    with pytest.raises(ov.InputError, match=rf"^(unknown )?{next(iter(arguments))}\b"):
        ALGORITHMS[name](**arguments)


@pytest.mark.parametrize("name", [name for name in CASES if name != "GiantStep"])
def test_a_problem_of_it_survives_toml(name: str) -> None:
    round_trip(problem_by(name))
    assert f"{name}(" in repr(problem_by(name))


def one_pass_training_at_three_scales() -> None:
    p = problem_by("OnlineSGD")
    equal_in_law(p)
    tends_to_theory(p)


def gradient_flow_is_the_limit_of_small_rates() -> None:
    """At equal rate × time the deviation of SGD is linear in the rate; flow draws no samples and has no runs."""
    flow = problem_by("GradientFlow")
    start = ov.draw(flow, 100, seed=3, scale=0.7)
    for scale in (ov.sample, ov.train):
        with pytest.raises(ov.InputError, match=r"^algorithm: .*solve"):
            scale(flow, start, [1.0])
    limit = ov.solve(flow, start, [1.0, 3.0]).data["Q"].values
    apart = []
    for part in (10, 20):
        sgd = ov.OnlineSGD(0.8 / part, readout_rate=0.5 / part, decay=0.1)
        slow = ov.solve(replace(flow, algorithm=sgd), start, [part, 3.0 * part])
        apart.append(np.abs(slow.data["Q"].values - limit).max())
    assert apart[0] > 1e-3 and apart[0] / apart[1] == pytest.approx(2, rel=0.1)


def full_batches_at_three_scales() -> None:
    p = paper("erf", "square", steps=5, rate=0.5, method="heavy-ball", momentum=0.5, decay=0.05, ratio=0.8)
    assert p.algorithm == CASES["FullBatch"][0]
    equal_in_law(p, times=None)
    tends_to_theory(p, size=800, times=None, accuracy=1e-2)


def a_giant_step_is_the_one_predicted() -> None:
    setting = ov.giant_step.GiantStepSetting(ov.giant_step.TwoClasses("sphere"), CASES["GiantStep"][0], size=512)
    unseen = ov.giant_step.scaled(setting.direction, [0.5, 1.5])
    theory = ov.giant_step.solve(setting, unseen)
    measured = ov.giant_step.train(setting, unseen, 12, points=128, seed=0, with_recall=False, progress=False)
    limit = student.isf(LEVEL / 2 / (2 * len(unseen)), 11)
    for name in ("alignment", "elasticity"):
        apart = np.abs(measured.mean(name) - theory.mean(name))
        assert np.all(apart <= limit * measured.standard_error(name) + 0.02 * theory.mean(name)), name
        assert np.all(limit * measured.standard_error(name) < 0.3 * theory.mean(name)), "runs could not tell"


SCALES = {
    "OnlineSGD": one_pass_training_at_three_scales,
    "GradientFlow": gradient_flow_is_the_limit_of_small_rates,
    "FullBatch": full_batches_at_three_scales,
    "GiantStep": a_giant_step_is_the_one_predicted,
}


@pytest.mark.parametrize("name", ALGORITHMS)
def test_scales_agree(name: str) -> None:
    """Training, the law of it and theory, as far as an algorithm has them."""
    SCALES[name]()
