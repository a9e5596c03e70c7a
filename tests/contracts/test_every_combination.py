"""Every algorithm on every data model, at every scale: a right answer or a refusal.

Right is what two scales agree on. A refusal is an `InputError` that names a field. Nothing may ignore a batch, a
schedule, a velocity or a component; nor may anything be refused that was answered, so that all refusals are listed.
The other public functions are in `test_public_functions`.
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
LEVEL = BUDGET / (2 * len(TRAINED) * len(DATA))
PROBLEM = r"^[a-z_, ]+: "  # how a refusal begins: with the field that it is about
GAUSSIAN, ROWS = "GaussianInputs GaussianMixture StudentInputs", "labelled-Samples"
# who refuses which algorithm on which inputs, by which field; the first line that fits counts. An algorithm is named by
# its class and the parts of its step; an empty list fits all. What is not listed has to be answered
REFUSED: tuple[tuple[str, str, str, str], ...] = (
    ("problem", "MultiPass", f"{GAUSSIAN} GaussianClasses Samples HiddenManifold", "algorithm"),
    ("problem", "FullBatch", "Samples HiddenManifold", "algorithm"),
    ("problem", "FullBatch", "GaussianClasses", "covariances"),
    ("solve sample train", "FullBatch", "StudentInputs", "ratio"),  # too few samples for rare variances
    ("solve train", "FullBatch batch", ROWS, "batch"),
    ("solve", "memory", "GaussianClasses", "memory"),
    ("solve sample diffusion moments strong", "readout", ROWS, "student"),
    ("sample diffusion", "FullBatch", ROWS, "data"),
    ("sample diffusion", "", "HiddenManifold GaussianClasses", "data"),
    ("sample diffusion", "MultiPass", ROWS, "algorithm"),
    ("observer", "FullBatch", "", "observe"),
    ("observer", "MultiPass", ROWS, "observe"),
    ("observer", "", f"{ROWS} HiddenManifold", "data"),
    ("sample train observer diffusion", "GradientFlow", "", "algorithm"),
    ("diffusion", "FullBatch", "", "method"),
    ("diffusion", "memory", "", "method"),
    ("diffusion", "", ROWS, "method"),
    ("moments", "FullBatch", "GaussianInputs", "system"),
    ("moments", "memory", "GaussianInputs", "system"),
    ("moments", "", f"GaussianMixture StudentInputs GaussianClasses Samples HiddenManifold {ROWS}", "system"),
    ("strong", "memory", "HiddenManifold", "algorithm"),
    ("strong", "", f"{GAUSSIAN} GaussianClasses Samples {ROWS}", "system"),
)
KNOWN = {"OnlineSGD", "GradientFlow", "FullBatch", "MultiPass"}  # others, and other inputs, may refuse what they like
KNOWN_DATA = {*GAUSSIAN.split(), "GaussianClasses", "Samples", "HiddenManifold", ROWS}


def parts(algorithm: Any) -> set[str]:
    """The class of an algorithm, and what its step has besides a rate."""
    found = {type(algorithm).__name__}
    found |= {part for part in ("momentum", "memory") if getattr(algorithm, part, None)}
    found |= {"batch"} if getattr(algorithm, "batch", None) not in (None, 1) else set()
    return found | ({"readout"} if algorithm.readout_rate is not None else set())


def listed(who: str, name: str, on: str) -> str | None:
    """The field by which a combination is refused, or None where there has to be an answer."""
    of, data = parts(TRAINED[name]), on.replace(" ", "-")
    for names, algorithm, inputs, field in REFUSED:
        if who in names.split() and set(algorithm.split()) <= of and (not inputs or data in inputs.split()):
            return field
    return None


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


def answer_as_listed(ask: Callable[[], Any], who: str, name: str, on: str) -> Any:
    """What is answered, or None where that is refused by the field that is listed, if the combination is known."""
    refusals: list[str] = []

    def asked() -> Any:
        try:
            return ask()
        except ov.InputError as error:
            refusals.append(error.args[0].split(":")[0])
            raise

    found = answer(asked)
    if type(TRAINED[name]).__name__ in KNOWN and on.replace(" ", "-") in KNOWN_DATA:
        expected = listed(who, name, on)
        assert refusals == ([] if expected is None else [expected]), f"{who} of {name} on {on}"
    return found


def test_all_kinds_are_here() -> None:
    assert {type(algorithm) for algorithm in TRAINED.values()} == set(KINDS)
    assert {type(algorithm).__name__ for algorithm in TRAINED.values()} >= KNOWN
    assert {on.replace(" ", "-") for on in DATA} >= KNOWN_DATA


@pytest.mark.parametrize("on", DATA)
@pytest.mark.parametrize("name", TRAINED)
@pytest.mark.filterwarnings("ignore:error is the Gaussian average")
def test_scales_answer_or_refuse(name: str, on: str) -> None:
    """Macro against the cheapest simulation; finite-size effects are no failure, other differences are."""
    algorithm, data = TRAINED[name], DATA[on]
    problem = answer_as_listed(lambda: build(algorithm, data), "problem", name, on)
    if problem is None:
        return
    start = ov.draw(problem, size_of(data, 300), seed=3, scale=0.7)
    times = None if algorithm.engine[0].startswith("full") else [0.5, 1.0, 2.5]
    theory = answer_as_listed(lambda: ov.solve(problem, start, times), "solve", name, on)
    runs = answer_as_listed(
        lambda: ov.sample(problem, start, times, runs=30, seed=1, progress=False), "sample", name, on
    )
    if runs is None:
        runs = answer_as_listed(
            lambda: ov.train(problem, start, times, runs=20, seed=1, progress=False), "train", name, on
        )
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
    "strong": lambda p, s: ov.solve(p, s, [0.5], system="strong-mixture"),
}


@pytest.mark.parametrize("who", OTHERS)
@pytest.mark.parametrize("on", DATA)
@pytest.mark.filterwarnings("ignore:error is the Gaussian average")
def test_what_belongs_to_some_refuses_the_others(who: str, on: str) -> None:
    """By field, never by a traceback from the depths; `NumericalError` is an answer as well."""
    for name, algorithm in TRAINED.items():
        problem = answer_as_listed(lambda algorithm=algorithm: build(algorithm, DATA[on]), "problem", name, on)
        if problem is None:
            continue
        start = ov.draw(problem, size_of(DATA[on], 40), seed=3, scale=0.7)
        try:
            answer_as_listed(lambda problem=problem, start=start: OTHERS[who](problem, start), who, name, on)
        except ov.NumericalError as error:
            assert error.quantity


def answered(who: str) -> list[tuple[str, str]]:
    """Algorithms and inputs of which something is answered."""
    every = [(name, on) for name in TRAINED for on in DATA if listed("problem", name, on) is None]
    known = [(name, on) for name, on in every if type(TRAINED[name]).__name__ in KNOWN]
    return [(name, on) for name, on in known if on.replace(" ", "-") in KNOWN_DATA and listed(who, name, on) is None]


@pytest.mark.parametrize(("name", "on"), answered("moments"))
def test_moments_are_those_of_the_levels(name: str, on: str) -> None:
    """On three levels, within what both state; a time later they differ by far more."""
    p = build(TRAINED[name], ov.GaussianInputs(ov.PowerLaw(levels=3, exponent=0.5)))
    start = ov.draw(p, 60, seed=3, scale=0.7)
    levels, moments = (ov.solve(p, start, [0.5, 2.0, 2.5], system=system) for system in ("levels", "moments"))
    for variable in levels.variables:
        a, b = (result.data[variable].values[0] for result in (levels, moments))
        allowed = 3 * (levels.accuracy(variable) + moments.accuracy(variable)) + 1e-12
        assert np.abs(a - b).max() < allowed, variable
        assert variable == "v" or np.abs(a[1] - b[2]).max() > 100 * allowed, variable


@pytest.mark.parametrize(("name", "on"), answered("diffusion"))
def test_the_diffusion_has_the_mean_of_the_chain(name: str, on: str) -> None:
    """At a size where it is a good approximation."""
    problem = build(TRAINED[name], DATA[on])
    start = ov.draw(problem, size_of(DATA[on], 1000), seed=3, scale=0.7)
    chain, diffusion = (
        ov.sample(problem, start, [0.5, 2.0], runs=20, seed=seed, method=method, progress=False)
        for seed, method in ((1, "exact"), (2, "diffusion"))
    )
    verdict = ov.compare(chain, diffusion, level=LEVEL, resolve=0.5)
    assert verdict.verdict in ("agrees", "finite-size", "underpowered"), verdict
