"""Every algorithm on every data model, at every scale: a right answer or a refusal.

Right is what two scales agree on. A refusal is an `InputError` that names a field. Nothing may ignore a batch, a
schedule, a velocity or a component. The other public functions are in `test_public_functions`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import overlaps as ov
from overlaps.algorithms import ALGORITHMS as KINDS
from overlaps.interface.folder import modules

from .cases import EXAMPLES, labelled_gaussian_rows
from .test_data_models import size_of

TRAINED = {
    f"{module.ALGORITHM.__name__}-{i}": algorithm
    for module in modules("overlaps.algorithms").values()
    if hasattr(module, "ALGORITHM")
    for i, algorithm in enumerate(module.examples())
}
# one example of each data model is enough here: its contract goes through all of them
DATA = {type(data).__name__: data for data in reversed(EXAMPLES.values())}
DATA["Samples"] = ov.Samples(np.random.default_rng(0).uniform(-1, 1, size=(400, 80)))  # theory is for many columns
DATA["labelled Samples"] = labelled_gaussian_rows()
BUDGET = 1e-4
LEVEL = BUDGET / (len(TRAINED) * len(DATA))
PROBLEM = r"^[a-z_, ]+: "  # how a refusal begins: with the field that it is about


def build(algorithm: Any, data: Any) -> ov.Problem:
    """Two units learn labels, or from one unit; linear ones where theory is for these."""
    trained = algorithm.readout_rate is not None
    linear = data is DATA["labelled Samples"]
    return ov.Problem(
        data=data,
        teacher=None if data.labelled else ov.Committee(1),
        student=ov.Committee(2, "linear" if linear else "erf", readout=[1.0, -0.7], train_readout=trained),
        algorithm=algorithm,
    )


def answer(ask: Callable[[], Any]) -> Any:
    """What is answered, or None where it is refused by field; anything else is a failure."""
    try:
        return ask()
    except ov.InputError as error:
        assert error.args[0].split(":")[0].replace(", ", "").replace("_", "").isidentifier(), error
        return None


def test_all_kinds_are_here() -> None:
    assert {type(algorithm) for algorithm in TRAINED.values()} == set(KINDS)


@pytest.mark.parametrize("on", DATA)
@pytest.mark.parametrize("name", TRAINED)
@pytest.mark.filterwarnings("ignore:error is the Gaussian average")
def test_scales_answer_or_refuse(name: str, on: str) -> None:
    """Macro against the cheapest simulation; finite-size effects are no failure, other differences are."""
    algorithm, data = TRAINED[name], DATA[on]
    problem = answer(lambda: build(algorithm, data))
    if problem is None:
        return
    start = ov.draw(problem, size_of(data, 300), seed=3, scale=0.7)
    times = None if algorithm.engine[0].startswith("full") else [0.5, 1.0, 2.5]
    theory = answer(lambda: ov.solve(problem, start, times))
    runs = answer(lambda: ov.sample(problem, start, times, runs=30, seed=1, progress=False))
    if runs is None:
        runs = answer(lambda: ov.train(problem, start, times, runs=20, seed=1, progress=False))
    for result in (theory, runs):
        assert result is None or all(np.isfinite(result.data[v]).all() for v in result.variables)
    if theory is None or runs is None:
        return
    verdict = ov.compare(theory, runs, level=LEVEL, resolve=0.5)
    assert verdict.verdict in ("agrees", "finite-size", "underpowered"), verdict


def observed(problem: ov.Problem, start: ov.Start) -> Any:
    observer = ov.spectra.Observer(samples=50, count=1)
    return ov.train(problem, start, [0.5], runs=1, observe=observer, progress=False)


OTHERS: dict[str, Callable[[ov.Problem, ov.Start], Any]] = {
    "observer": observed,
    "diffusion": lambda p, s: ov.sample(p, s, [0.5], runs=2, method="diffusion", progress=False),
    "moments": lambda p, s: ov.solve(p, s, [0.5], system="moments"),
    "strong mixtures": lambda p, s: ov.solve(p, s, [0.5], system="strong-mixture"),
}


@pytest.mark.parametrize("who", OTHERS)
@pytest.mark.parametrize("on", DATA)
@pytest.mark.filterwarnings("ignore:error is the Gaussian average")
def test_what_belongs_to_some_refuses_the_others(who: str, on: str) -> None:
    """By field, never by a traceback from the depths; `NumericalError` is an answer as well."""
    for algorithm in TRAINED.values():
        problem = answer(lambda algorithm=algorithm: build(algorithm, DATA[on]))
        if problem is None:
            continue
        start = ov.draw(problem, size_of(DATA[on], 40), seed=3, scale=0.7)
        try:
            answer(lambda problem=problem, start=start: OTHERS[who](problem, start))
        except ov.NumericalError as error:
            assert error.quantity
