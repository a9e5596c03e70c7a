"""Every training algorithm, in each of its examples: what it refuses, specs, and the scales it has.

Algorithms of a problem are found by their files; giant steps, which are for `overlaps.giant_step`, are listed here.
"""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import t as student

import overlaps as ov
from full_batches import paper
from overlaps import schedules
from overlaps.problem.statement import ROLES
from problems import problem

from .cases import (
    ALGORITHM_EXAMPLES,
    LEVEL,
    TRAINING,
    equal_in_law,
    labelled_gaussian_rows,
    refused_by_field,
    round_trip,
    tends_to_theory,
)

# more than the files say of themselves, by class: the first argument is the field to be named
ALSO_REFUSED: dict[str, tuple[dict[str, Any], ...]] = {
    "OnlineSGD": ({"rate": float("inf")}, {"rate": schedules.Constant(0.0)}, {"batch": 1.5, "rate": 0.1}),
    "GradientFlow": ({"rate": float("inf")}, {"rate": schedules.Function(lambda t: 1 - t)}),
    "FullBatch": (
        {"method": "adam", "steps": 2, "rate": 0.1},
        {"momentum": 1.0, "steps": 2, "rate": 0.1, "method": "nesterov"},
        {"momentum": 0.5, "steps": 2, "rate": 0.1},
    ),
}
GIANT_STEP = ov.GiantStep(1.0, 0.25)
GIANT_REFUSED: tuple[dict[str, Any], ...] = ({"rate": 0.0}, {"heads": 3}, {"steps": 0}, {"exponent": float("nan")})
REFUSED = [
    *((m.ALGORITHM, a) for name, m in TRAINING.items() for a in (*m.REFUSED, *ALSO_REFUSED.get(name, ()))),
    *((ov.GiantStep, a) for a in GIANT_REFUSED),
]

every = pytest.mark.parametrize("name", ALGORITHM_EXAMPLES)


LABELLED = Path(__file__).parent.parent / "data" / "labelled_rows.csv"


def problem_by(algorithm: Any) -> ov.Problem:
    """Two units learn one; both layers, where the algorithm trains the second. Many passes are for labelled rows."""
    if isinstance(algorithm, ov.MultiPass):
        data = ov.Samples(LABELLED, target="kind")
        return ov.Problem(data=data, student=ov.Committee(2, "linear", [1.0, -0.7]), algorithm=algorithm)
    trained = not algorithm.times_are_steps  # full batches train the first layer
    return replace(problem("erf", 2, 1, readout=[1.0, -0.7], train_readout=trained), algorithm=algorithm)


def test_every_algorithm_has_examples_and_refusals() -> None:
    assert {kind.__name__ for kind in ROLES["algorithm"]} == set(TRAINING)
    assert {"OnlineSGD", "GradientFlow", "FullBatch", "MultiPass"} <= set(TRAINING)
    for name, module in TRAINING.items():
        assert module.REFUSED and module.examples(), name
        assert all(type(example) is module.ALGORITHM for example in module.examples()), name
        assert len(set(module.examples())) == len(module.examples()), name
    assert set(ALSO_REFUSED) <= set(TRAINING)


@pytest.mark.parametrize("i", range(len(REFUSED)), ids=[f"{kind.__name__}-{next(iter(a))}" for kind, a in REFUSED])
def test_what_is_outside_its_domain_is_refused_by_field(i: int) -> None:
    kind, arguments = REFUSED[i]
    refused_by_field(kind, arguments)


@every
def test_a_problem_of_it_survives_toml(name: str) -> None:
    """Rates that are Python functions are the exception, and the refusal names the field."""
    algorithm = ALGORITHM_EXAMPLES[name]
    p = problem_by(algorithm)
    assert f"{type(algorithm).__name__}(" in repr(p)
    own = [f.name for f in fields(algorithm) if isinstance(getattr(algorithm, f.name), schedules.Function)]
    if own:
        with pytest.raises(ov.InputError, match=rf"^{own[0]}: Function\(.* cannot be written to TOML"):
            p.to_toml()
    else:
        round_trip(p)


# --- scales ----------------------------------------------------------------------------------------------------------


def one_pass_training_at_three_scales(algorithm: Any) -> None:
    """At N = 4000 theory is some ten steps of momentum ahead, a four-hundredth of the time unit."""
    p = problem_by(algorithm)
    equal_in_law(p)
    tends_to_theory(p, size=4000)


def gradient_flow_is_the_limit_of_small_rates(algorithm: Any) -> None:
    """At equal rate × time the deviation of SGD is linear in the rate; flow draws no samples and has no runs."""
    flow = problem_by(algorithm)
    start = ov.draw(flow, 100, seed=3, scale=0.7)
    for scale in (ov.sample, ov.train):
        with pytest.raises(ov.InputError, match=r"^algorithm: .*solve"):
            scale(flow, start, [1.0])
    times = np.array([1.0, 3.0]) * 0.8 / float(flow.update.rate(0.0))
    limit = ov.solve(flow, start, times).data["Q"].values
    apart = []
    for part in (10, 20):
        sgd = ov.OnlineSGD(slower(algorithm.rate, part), slower(algorithm.readout_rate, part), algorithm.decay)
        slow = ov.solve(replace(flow, algorithm=sgd), start, part * times)
        apart.append(np.abs(slow.data["Q"].values - limit).max())
    assert apart[0] > 1e-3 and apart[0] / apart[1] == pytest.approx(2, rel=0.1)


def slower(rate: Any, part: int) -> Any:
    """A rate divided by `part`, in a time that is as many times longer."""
    if not isinstance(rate, ov.algorithms.TimeDependent):
        return None if rate is None else rate / part
    return schedules.Function(lambda t: rate(t / part) / part, knots=[part * knot for knot in rate.knots])


def full_batches_at_three_scales(algorithm: Any) -> None:
    p = replace(paper("erf", "square"), algorithm=algorithm)
    equal_in_law(p, times=None)
    tends_to_theory(p, size=800, times=None, accuracy=1e-2)


def many_passes_at_two_scales(algorithm: Any) -> None:
    """Theory and runs on the same training set of rows; a chain of overlaps there is none."""
    data, student = labelled_gaussian_rows(), ov.Committee(2, "linear", [1.0, -0.7])
    p = ov.Problem(data=data, student=student, algorithm=algorithm)
    with pytest.raises(ov.InputError, match=r"^algorithm: MultiPass has no overlap chain.*use solve"):
        ov.sample(p, ov.draw(p, data.size), [1.0])
    tends_to_theory(p, ov.train, data.size)


SCALES = {
    "online.macro": one_pass_training_at_three_scales,
    "full_batch.engine": full_batches_at_three_scales,
    "online.multi_pass.engine": many_passes_at_two_scales,
}


@every
def test_scales_agree(name: str) -> None:
    """Training, the law of it and theory, as far as an algorithm has them."""
    algorithm = ALGORITHM_EXAMPLES[name]
    if algorithm.draws_samples:
        SCALES[algorithm.engine[0]](algorithm)
    else:
        gradient_flow_is_the_limit_of_small_rates(algorithm)


def test_full_batches_with_more_dimensions_than_samples_or_fewer() -> None:
    """Every part of a step at once, and a ratio that is not one; what the examples leave out is the ratio."""
    full_batches_at_three_scales(ov.FullBatch(5, 0.5, "heavy-ball", ratio=0.8, momentum=0.5, decay=0.05))


def test_a_giant_step_is_the_one_predicted() -> None:
    setting = ov.giant_step.GiantStepSetting(ov.giant_step.TwoClasses("sphere"), GIANT_STEP, size=512)
    unseen = ov.giant_step.scaled(setting.direction, [0.5, 1.5])
    theory = ov.giant_step.solve(setting, unseen)
    measured = ov.giant_step.train(setting, unseen, 12, points=128, seed=0, with_recall=False, progress=False)
    limit = student.isf(LEVEL / 2 / (2 * len(unseen)), 11)
    for name in ("alignment", "elasticity"):
        apart = np.abs(measured.mean(name) - theory.mean(name))
        assert np.all(apart <= limit * measured.standard_error(name) + 0.02 * theory.mean(name)), name
        assert np.all(limit * measured.standard_error(name) < 0.3 * theory.mean(name)), "runs could not tell"
