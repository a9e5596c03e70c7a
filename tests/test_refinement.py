"""One way to refine until a stated accuracy is reached, and one budget, for every engine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import overlaps as ov
from overlaps.trajectory.refinement import Budget, Goal, Stated, differences, refined
from problems import problem

TIMES = [1.0, 2.0]
ENGINES = {
    "online": problem(),
    "strong mixture": ov.Problem(
        data=ov.HiddenManifold(latent_ratio=0.5, latent=ov.LatentMixture(2, 2.0)),
        teacher=ov.Committee(1),
        student=ov.Committee(1),
        algorithm=ov.OnlineSGD(0.2),
    ),
    "full batch": ov.Problem(
        data=ov.GaussianMixture(2), student=ov.Committee(1, "erf"), algorithm=ov.FullBatch(steps=3, rate=0.5)
    ),
}


@pytest.fixture(scope="module")
def solution() -> ov.Trajectory:
    p = problem()
    return ov.solve(p, ov.draw(p, 100, scale=0.5), TIMES)


def with_errors(result: ov.Trajectory, size: float) -> Stated:
    """Errors of `size` times the largest value of each variable, at the second time; a hundredth of it at the first."""
    largest = {name: float(np.abs(result.data[name]).max()) for name in result.variables}
    return Stated(result, {name: size * largest[name] * np.array([0.01, 1.0]) for name in largest})


def test_the_first_solution_that_is_accurate_enough_is_taken(solution: ov.Trajectory) -> None:
    offered = []

    def attempts() -> Iterator[Stated]:
        for size in (1e-2, 1e-4, 1e-6):
            offered.append(size)
            yield with_errors(solution, size)

    found = refined(attempts(), Goal(1e-3, 1e-3), Budget())
    assert offered == [1e-2, 1e-4]
    for name in found.variables:
        assert found.accuracy(name) == pytest.approx(1e-4 * float(np.abs(found.data[name]).max()))


def test_what_is_not_accurate_enough_is_accepted_or_refused(solution: ov.Trajectory) -> None:
    """Where no accuracy was named the finest is accepted up to a bound; otherwise it is the partial result."""
    last = [with_errors(solution, 1e-2), with_errors(solution, 1e-4)]
    assert refined(iter(last), Goal(1e-6, 1e-3), Budget()).accuracy("Q") > 0
    with pytest.raises(ov.NumericalError, match=r"1.0e-04 where 1.0e-05 was asked \(worst at time 2") as caught:
        refined(iter(last), Goal(1e-6, 1e-5), Budget())
    assert caught.value.partial is solution and caught.value.time == 2.0
    assert caught.value.quantity in solution.variables


def test_an_error_that_is_not_a_number_is_never_small(solution: ov.Trajectory) -> None:
    broken = Stated(solution, {name: np.array([0.0, np.nan]) for name in solution.variables})
    assert broken.reached == np.inf


def test_a_finer_solution_that_runs_out_of_budget_leaves_the_one_before(solution: ov.Trajectory) -> None:
    budget = Budget(evaluations=10)

    def attempts() -> Iterator[Stated]:
        yield with_errors(solution, 1e-3)
        budget.spend(11)
        raise ov.NumericalError("no more", quantity="Q", time=0.5)

    assert refined(attempts(), Goal(1e-6, 1e-2), budget) is solution
    budget = Budget(evaluations=10)
    with pytest.raises(ov.NumericalError, match=r"was asked .*11 evaluations did not suffice") as caught:
        refined(attempts(), Goal(1e-6, 1e-4), budget)
    assert caught.value.partial is solution


def test_differences_are_the_largest_at_each_time(solution: ov.Trajectory) -> None:
    other = ov.Trajectory(solution.data.copy(deep=True), solution.problem, solution.start)
    other.data["Q"][0, 1, 0, 1] += 0.25
    found = differences(solution, other)
    np.testing.assert_allclose(found["Q"], [0.0, 0.25])
    assert not found["R"].any()


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_keeps_to_its_budget(engine: str) -> None:
    """Evaluations and seconds, both with what there is and with the words that name the limit."""
    p = ENGINES[engine]
    start = ov.draw(p, 40, seed=1)
    times = None if engine == "full batch" else [0.0, 0.5, 3.0]
    for limit, words in (({"max_evaluations": 1}, "max_evaluations=1"), ({"max_seconds": 1e-9}, "max_seconds=1e-09")):
        with pytest.raises(ov.NumericalError, match=words):
            ov.solve(p, start, times, **limit)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        ({"max_seconds": 0.0}, "max_seconds: expected a number above 0"),
        ({"max_seconds": float("nan")}, "max_seconds: expected a finite number"),
        ({"max_evaluations": 0}, "max_evaluations: expected at least 1"),
        ({"max_evaluations": "few"}, "max_evaluations: expected a whole number"),
    ],
)
def test_bad_budgets(limit: dict[str, Any], words: str) -> None:
    p = problem()
    with pytest.raises(ov.InputError, match=words):
        ov.solve(p, ov.draw(p, 10), [1.0], **limit)
