"""Every public function that takes a problem, on every algorithm and data model: a right answer, or a refusal by field.

The functions are found from their signatures, and each must be in one of three tables. *Laws* are written for plain
SGD: they refuse every other algorithm and data model, and what they answer is what `solve` gives. *Properties* of the
inputs, the weights and the loss are the same under every algorithm. *Simulations* belong to one engine and refuse the
others.
The scales themselves are in `test_every_combination`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import xarray as xr

import overlaps as ov

from .test_data_models import size_of
from .test_every_combination import DATA as ALL_DATA
from .test_every_combination import PROBLEM, TRAINED, answer, build

DATA = {
    **ALL_DATA,
    "StudentInputs": ov.StudentInputs(20.0, values=3),
}  # spectra of more, or of large variances, take seconds
SCALES = {"solve", "sample", "train"}  # in test_every_combination, and of giant steps in test_giant_step*
FLOW = ov.GradientFlow(0.25)
LINEAR, ERF = ov.Committee(2, "linear", 0.6), ov.Committee(2, "erf", 2**-0.5)


def found() -> set[str]:
    """Names of all public functions with an argument that is a `Problem`."""
    names: set[str] = set()
    for home in (ov, *(getattr(ov, name) for name in ov.__all__)):
        if not isinstance(home, ModuleType) or home in (ov.deep, ov.papers, ov.schedules):
            continue
        for name in home.__all__:
            thing = getattr(home, name)
            if inspect.isfunction(thing):
                kinds = (str(p.annotation) for p in inspect.signature(thing).parameters.values())
                names |= {name} if any("Problem" in kind for kind in kinds) else set()
    return names


def learns(algorithm: Any, data: Any = None, net: ov.Committee = ERF) -> ov.Problem:
    data = ov.GaussianInputs(ov.PowerLaw(2, 1.0)) if data is None else data
    return ov.Problem(data=data, teacher=net, student=net, algorithm=algorithm)


def near_teacher(problem: ov.Problem) -> ov.Start:
    """Students one per cent shorter than their teachers, and a little outside the teachers' space."""
    T = ov.laws.typical_teacher(problem)
    return ov.Start.from_overlaps(problem, Q=(0.99**2 + 1e-4) * T, R=0.99 * T, T=T)


def solved(problem: ov.Problem, start: ov.Start, times: Any) -> Any:
    return ov.solve(problem, start, times).data["error"].values[0]


# ---- laws: what they answer, and the same by `solve` -----------------------------------------------------------------

LATE = [0.0, 20.0, 100.0]


def near(problem: ov.Problem) -> tuple[Any, Any, Any]:
    start, omega = near_teacher(problem), problem.data.eigenvalues
    return tuple(np.tensordot(omega, part, 1) for part in (start.Q, start.R, start.T))


def outside(problem: ov.Problem) -> float:
    """The slowest rate of a difference that is outside the teachers' space, which the late error decays with."""
    T = ov.laws.typical_teacher(problem)
    start = ov.Start.from_overlaps(problem, Q=T + 1e-6 * T[0, 0, 0] * np.array([[1, -1], [-1, 1]]), R=T, T=T)
    slow = float(ov.laws.decay_rates(problem).min())
    first, last = solved(problem, start, np.array([5.0, 6.0]) / slow)
    return float(np.log(first / last) * slow)


def on_the_plateau(problem: ov.Problem) -> float:
    """The error a little later, from the overlaps of the plateau."""
    law, T = ov.laws.plateau(problem), ov.laws.typical_teacher(problem)
    equal = np.broadcast_to(law.Q_levels[:, None, None], T.shape)
    start = ov.Start.from_overlaps(problem, equal, np.broadcast_to(law.R_levels[:, None], T.shape), T)
    return float(solved(problem, start, [2.0])[0])


def linear_curve(problem: ov.Problem) -> Any:
    vector = ov.laws.single_vector(problem, 0.5)
    return ov.laws.linear_error(problem.data.spectrum, vector.rate, [0.0, 2.0, 8.0], distance=vector.distance)  # type: ignore[union-attr]


def linear_solved(problem: ov.Problem) -> Any:
    T = ov.laws.typical_teacher(problem)
    return solved(problem, ov.Start.from_overlaps(problem, 0.25 * T, 0 * T, T), [0.0, 2.0, 8.0])


class Law:
    """What a law answers for a problem, and the same by another route; `plain`: an algorithm that it is exact for."""

    def __init__(
        self, law: Callable[[Any], Any], route: Callable[[Any], Any], plain: Any = FLOW, net: ov.Committee = ERF
    ) -> None:
        self.law, self.route, self.plain, self.net = law, route, plain, net


LAWS = {
    "plateau": Law(lambda p: ov.laws.plateau(p).error, on_the_plateau),
    "decay_rates": Law(lambda p: ov.laws.decay_rates(p).min(), outside),
    "late_error": Law(
        lambda p: ov.laws.late_error(p, near_teacher(p).Q, near_teacher(p).R, LATE),
        lambda p: solved(p, near_teacher(p), LATE),
    ),
    "late_modes": Law(
        lambda p: ov.laws.late_modes(p, near_teacher(p).Q, near_teacher(p).R)(LATE),
        lambda p: solved(p, near_teacher(p), LATE),
    ),
    "near_error": Law(
        lambda p: float(ov.laws.near_error(p, *near(p))), lambda p: float(solved(p, near_teacher(p), [0.0])[0])
    ),
    "single_vector": Law(linear_curve, linear_solved, ov.OnlineSGD(0.3), LINEAR),
}


@pytest.mark.parametrize("name", LAWS)
def test_laws_answer_what_solve_does(name: str) -> None:
    law = LAWS[name]
    problem = learns(law.plain, net=law.net)
    np.testing.assert_allclose(law.law(problem), law.route(problem), rtol=0.03)


@pytest.mark.parametrize("name", LAWS)
def test_laws_refuse_all_but_plain_sgd(name: str) -> None:
    """By field. The rate of a schedule, the size of a batch or a velocity would be ignored otherwise."""
    law, asked = LAWS[name], 0
    for algorithm in (*TRAINED.values(), replace(FLOW, decay=0.1), ov.OnlineSGD(0.3, decay=0.1)):
        if algorithm.readout_rate is not None or (algorithm.plain and not algorithm.decay):
            continue
        asked += 1
        with pytest.raises(ov.InputError, match=PROBLEM):
            law.law(learns(algorithm, net=law.net))
            pytest.fail(f"{name} answers for {algorithm}")
    assert asked > 10


NOT_ONE_GAUSSIAN = sorted(
    name for name, x in DATA.items() if x.has_means or x.reads_latent or x.components.weights.size > 1
)


@pytest.mark.parametrize("on", NOT_ONE_GAUSSIAN)
@pytest.mark.parametrize("name", LAWS)
def test_laws_refuse_inputs_that_they_are_not_written_for(name: str, on: str) -> None:
    assert {"GaussianMixture", "HiddenManifold", "StudentInputs"} <= {*NOT_ONE_GAUSSIAN}
    with pytest.raises(ov.InputError, match=PROBLEM):
        LAWS[name].law(learns(LAWS[name].plain, DATA[on], LAWS[name].net))
        pytest.fail(f"{name} answers for {on}")


# ---- properties: the same under every algorithm ----------------------------------------------------------------------


def drawn(problem: ov.Problem) -> ov.Start:
    return ov.draw(problem, size_of(problem.data, 40), seed=3, scale=0.7)


def averaged(problem: ov.Problem) -> Any:
    units = problem.student.units + problem.teacher_units
    means = None if not problem.data.has_means else np.zeros((units, problem.data.components.weights.size))
    return ov.gaussian_averages(problem, np.eye(units) + 0.3, means=means).D


def batch_of(problem: ov.Problem, samples: int = 60) -> tuple[ov.Problem, ov.Start, Any]:
    start = drawn(problem)
    return problem, start, ov.spectra.Batch.draw(problem, start, samples, seed=1)


PROPERTIES: dict[str, Callable[[ov.Problem], Any]] = {
    "draw": lambda p: drawn(p).gram,
    "gaussian_averages": averaged,
    "typical_teacher": ov.laws.typical_teacher,
    "hessian": lambda p: ov.spectra.hessian(*batch_of(p)).block(0).dense(),
    "gradient_matrix": lambda p: ov.spectra.gradient_matrix(*batch_of(p)).block(0).dense(),
    "population": lambda p: ov.spectra.population(p, drawn(p)).block(0).dense(),
    "readout_block": lambda p: ov.spectra.readout_block(p, drawn(p)),
    "bulk_edge": lambda p: ov.spectra.bulk_edge(p, drawn(p), 200),
    "predicted_outliers": lambda p: ov.spectra.predicted_outliers(p, drawn(p), 200).values,
    "visibility": lambda p: np.append(*ov.spectra.visibility(p, drawn(p), 200, 1)[:2]),
}


@cache
def under_plain_sgd(name: str, on: str) -> Any:
    return answer(lambda: PROPERTIES[name](build(ov.OnlineSGD(0.2), DATA[on])))


ONE_OF_EACH = {type(algorithm).__name__: algorithm for algorithm in TRAINED.values() if algorithm.readout_rate is None}


@pytest.mark.parametrize("on", DATA)
@pytest.mark.parametrize("name", PROPERTIES)
def test_properties_do_not_depend_on_the_algorithm(name: str, on: str) -> None:
    expected = under_plain_sgd(name, on)
    for kind, algorithm in ONE_OF_EACH.items():
        problem = answer(lambda algorithm=algorithm: build(algorithm, DATA[on]))
        value = None if problem is None else answer(lambda problem=problem: PROPERTIES[name](problem))
        if problem is not None:
            assert (value is None) == (expected is None), f"{name} on {on}: refused under one of {kind} and plain SGD"
        if value is not None:
            assert np.isfinite(value).all()
            np.testing.assert_array_equal(value, expected)


@pytest.mark.parametrize("on", DATA)
def test_properties_are_right_on_every_data_model(on: str) -> None:
    """Averages over inputs against a batch of them, and teachers against drawn ones, or a refusal."""
    problem = build(ov.OnlineSGD(0.2), DATA[on])
    typical = None if problem.teacher is None else answer(lambda: ov.laws.typical_teacher(problem))
    if typical is not None:
        start = ov.draw(problem, size_of(problem.data, 4000), seed=0)
        own = start.T - np.multiply.outer(start.fractions - typical[:, 0, 0], np.eye(1))
        spread = np.sqrt(2 * typical / start.size)
        assert np.abs(own - typical).max() < 5 * spread.max()
    matrix = under_plain_sgd("population", on)
    if matrix is not None:
        sampled = ov.spectra.hessian(*batch_of(problem, 4000)).block(0).dense()
        assert np.trace(matrix) == pytest.approx(np.trace(sampled), rel=0.15)


# ---- simulations that belong to full batches -------------------------------------------------------------------------

SIMULATIONS: dict[str, Callable[[ov.Problem, ov.Start], Any]] = {
    "alternative": lambda p, s: ov.full_batch.alternative(p, s, runs=2, progress=False),
    "perturbed": lambda p, s: ov.full_batch.perturbed(p, s, runs=2, progress=False),
    "continued": lambda p, s: ov.full_batch.continued(p, s, runs=3, progress=False),
    "check_theorem": lambda p, s: ov.full_batch.check_theorem(p, s, sigma=0.1, z=0.5, runs=200),
    "fluctuations": lambda p, s: ov.full_batch.fluctuations(p, s, accuracy=0.5, progress=False),
    "check_scaling": lambda p, s: ov.check_scaling(p, [20, 40], start=s, times=[1.0], runs=10, progress=False),
}


@pytest.mark.parametrize("on", DATA)
@pytest.mark.parametrize("name", SIMULATIONS)
@pytest.mark.filterwarnings("ignore")
def test_simulations_answer_or_refuse(name: str, on: str) -> None:
    full = name != "check_scaling"
    for kind, algorithm in ONE_OF_EACH.items():
        problem = answer(lambda algorithm=algorithm: build(algorithm, DATA[on]))
        if problem is None:
            continue
        start = drawn(problem)
        if full and kind != "FullBatch":
            with pytest.raises(ov.InputError, match=r"^algorithm: "):
                SIMULATIONS[name](problem, start)
            continue
        try:
            result = answer(lambda problem=problem, start=start: SIMULATIONS[name](problem, start))
        except ov.NumericalError as error:
            assert error.quantity
            continue
        data = getattr(result, "data", result)
        if isinstance(data, xr.Dataset):
            assert all(np.isfinite(data[v]).all() for v in data if data[v].dtype.kind == "f")


FULL = {name: algorithm for name, algorithm in TRAINED.items() if isinstance(algorithm, ov.FullBatch)}


def on_a_mixture(algorithm: ov.FullBatch) -> tuple[ov.Problem, ov.Start]:
    problem = build(algorithm, DATA["GaussianMixture"])
    return problem, ov.draw(problem, 12, seed=3, scale=0.7)


def mean_and_error(runs: Any) -> tuple[Any, Any]:
    """Mean training error over runs, (steps,), and its standard error."""
    error = runs.data["training_error"]
    return error.mean("run").values, error.std("run", ddof=1).values / np.sqrt(runs.runs)


@cache
def trained(name: str) -> tuple[Any, Any]:
    return mean_and_error(ov.train(*on_a_mixture(FULL[name]), runs=300, seed=1, progress=False))


@cache
def continued_to_training(name: str) -> tuple[Any, Any]:
    """At z² = −1, where the alternative process is training."""
    found = ov.full_batch.continued(*on_a_mixture(FULL[name]), runs=300, seed=2, progress=False).sel(z2=-1)
    return found["mean_training_error"].values, found["mean_training_error_se"].values


def largest_z(one: tuple[Any, Any], other: tuple[Any, Any]) -> float:
    return float((np.abs(one[0] - other[0]) / np.hypot(one[1], other[1])).max())


@pytest.mark.parametrize("name", FULL)
def test_comparison_processes_know_every_full_batch(name: str) -> None:
    """The alternative process is the perturbed one, and its continuation training: 1e-6, two-sided, at each step.

    Momentum, a schedule, a batch or a decay that was ignored would be seen: the continuation of plain descent is not
    the training of any other example.
    """
    plain = "FullBatch-0"
    assert largest_z(trained(name), continued_to_training(name)) < 4.9
    assert name == plain or largest_z(trained(name), continued_to_training(plain)) > 4.9
    options: dict[str, Any] = {"runs": 100, "sigma": 0.2, "z": 1.0, "progress": False}
    problem, start = on_a_mixture(FULL[name])
    processes = ov.full_batch.alternative, ov.full_batch.perturbed
    one, other = (mean_and_error(f(problem, start, seed=i, **options)) for i, f in enumerate(processes))
    assert largest_z(one, other) < 4.9
    small = ov.draw(problem, 3, seed=3, scale=0.7)
    assert ov.full_batch.check_theorem(problem, small, sigma=0.3, z=1.0, runs=200).verdict != "fails"  # 1e-3


@pytest.mark.parametrize("name", [name for name in FULL if FULL[name].batch])
def test_fluctuations_refuse_every_batch(name: str) -> None:
    with pytest.raises(ov.InputError, match=r"^batch: "):
        ov.full_batch.fluctuations(*on_a_mixture(FULL[name]), accuracy=0.5, progress=False)


ONLINE = {"optimise"}  # what it answers is in test_optimise


@pytest.mark.parametrize("on", DATA)
def test_optimise_refuses_all_but_one_pass_training(on: str) -> None:
    for algorithm in ONE_OF_EACH.values():
        problem = answer(lambda algorithm=algorithm: build(algorithm, DATA[on]))
        one_pass = algorithm.engine == ov.OnlineSGD.engine and algorithm.draws_samples
        if problem is not None and not one_pass:
            with pytest.raises(ov.InputError, match=r"^algorithm: "):
                ov.optimise(problem, drawn(problem), 1.0)


ROWS = {"beyond_gaussian"}  # what it answers is in test_beyond_gaussian


@pytest.mark.parametrize("on", DATA)
@pytest.mark.filterwarnings("ignore")
def test_beyond_gaussian_is_for_one_pass_training_on_classes(on: str) -> None:
    for algorithm in ONE_OF_EACH.values():
        problem = answer(lambda algorithm=algorithm: build(algorithm, DATA[on]))
        if problem is None:
            continue
        start = drawn(problem)
        if problem.classifies_rows and algorithm.engine == ov.OnlineSGD.engine and algorithm.draws_samples:
            parting = ov.beyond_gaussian(problem, start, [0.5, 1.0], runs=4, progress=False)
            assert np.isfinite(parting.errors).all()
        else:
            with pytest.raises(ov.InputError, match=r"^(problem|algorithm|data|times): "):
                ov.beyond_gaussian(problem, start, [0.5, 1.0], runs=4, progress=False)


MANY = {"sweep"}


@pytest.mark.parametrize("on", DATA)
@pytest.mark.filterwarnings("ignore")
def test_cells_of_a_sweep_are_what_train_gives(on: str) -> None:
    """Bit by bit under every algorithm, or with the reason that training is refused for."""
    for kind, algorithm in ONE_OF_EACH.items():
        problem = answer(lambda algorithm=algorithm: build(algorithm, DATA[on]))
        if problem is None:
            continue
        times, size = None if kind == "FullBatch" else [0.0, 0.5], size_of(problem.data, 40)
        cell = ov.sweep(problem, {"size": [size]}, times=times, scales="micro", runs=2, workers=1, progress=False)
        start = answer(lambda problem=problem, size=size: ov.draw(problem, size, seed=0))
        run = answer(lambda p=problem, s=start, t=times: ov.train(p, s, t, runs=2, seed=0, progress=False))
        assert (cell.counts == {"done": 1}) == (run is not None), f"{kind} on {on}: {cell.reasons}"
        if run is not None:
            np.testing.assert_array_equal(cell.data["Q"].values.ravel(), run.data["Q"].values.ravel())


def test_all_public_functions_are_here() -> None:
    """A function that takes a problem and is in no table has no contract."""
    assert found() == {*LAWS, *PROPERTIES, *SIMULATIONS, *SCALES, *ONLINE, *ROWS, *MANY}
