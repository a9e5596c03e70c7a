"""Budgets and accuracies of recursions: exact means, measured moments, many passes, full batches of rows."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

import overlaps as ov

LINEAR = ov.Committee(1, "linear")
RNG = np.random.default_rng(0)
X = RNG.standard_normal((300, 20)) * np.sqrt(ov.PowerLaw(20, 0.5).eigenvalues)
DATA = ov.Samples(X, X[:, 0] + 0.5 * X[:, 3] + 0.7 * RNG.standard_normal(300))
CONSTANT = ov.OnlineSGD(0.2)
FAST = ov.OnlineSGD(0.7)
MOVING = ov.OnlineSGD(ov.Schedule([0.0, 1e6], [0.2, 0.1]), momentum=0.5)
TIMES = [0.0, 1.0, 1000.0]


def ask(algorithm: Any, times: Any = TIMES, **options: Any) -> ov.Trajectory:
    problem = ov.Problem(data=DATA, student=LINEAR, algorithm=algorithm)
    return ov.solve(problem, ov.draw(problem, 20, scale=0.0), times, **options)


CASES: dict[str, tuple[Any, dict[str, Any]]] = {
    "exact mean, stretches": (CONSTANT, {}),
    "exact mean, steps": (MOVING, {}),
    "measured moments": (CONSTANT, {"system": "measured-moments"}),
    "many passes, stretches": (ov.MultiPass(0.2, samples=200), {}),
    "many passes, steps": (ov.MultiPass(ov.Schedule([0.0, 1e6], [0.2, 0.1]), samples=200), {}),
    "gradient flow": (ov.GradientFlow(0.2), {}),
}


@pytest.mark.parametrize("case", CASES)
def test_few_evaluations_leave_what_there_is(case: str) -> None:
    """The budget is named, and the times before it ended are there, equal to those of the whole."""
    algorithm, options = CASES[case]
    whole = ask(algorithm, [0.0, 1.0], **options)
    with pytest.raises(ov.NumericalError, match=r"did not suffice \(max_evaluations=60\)") as caught:
        ask(algorithm, max_evaluations=60, **options)
    assert 0 < caught.value.time < 1000  # pyright: ignore[reportOptionalOperand]
    partial = caught.value.partial
    assert partial is not None
    for name in whole.variables:
        count = partial.time.size
        np.testing.assert_allclose(partial.data[name], whole.data[name][:, :count], rtol=2e-2, atol=1e-12)


@pytest.mark.parametrize("case", CASES)
def test_seconds_are_kept(case: str) -> None:
    """Of a solution that would take minutes or hours."""
    algorithm, options = CASES[case]
    ask(algorithm, [0.5], **options)  # compiled
    began = time.perf_counter()
    with pytest.raises(ov.NumericalError, match=r"seconds did not suffice \(max_seconds=0.001\)"):
        ask(
            algorithm,
            [1.0, 1e5, 3e8] if "stretches" not in case else [1.0, 1e5, 1e6, 1e7, 1e8],
            max_seconds=1e-3,
            **options,
        )
    assert time.perf_counter() - began < 30  # a step of the budget is some tenths of a second, on any machine


@pytest.mark.parametrize("case", CASES)
def test_an_accuracy_is_reached_or_refused(case: str) -> None:
    algorithm, options = CASES[case]
    loose, tight = (ask(algorithm, [1.0, 100.0], accuracy=a, **options) for a in (1e-2, 1e-4))
    for name in loose.variables:
        size = float(np.abs(tight.data[name]).max())
        assert loose.accuracy(name) <= 1e-2 * size and tight.accuracy(name) <= 1e-4 * size, name
        np.testing.assert_allclose(loose.data[name], tight.data[name], atol=loose.accuracy(name) + tight.accuracy(name))
    with pytest.raises(ov.NumericalError, match=r"reached a relative accuracy of .* where 1.0e-17 was asked") as caught:
        ask(algorithm, [1.0, 100.0], accuracy=1e-17, **options)
    assert caught.value.partial is not None


def test_less_accuracy_takes_no_more_evaluations() -> None:
    """Of measured moments, which are asked for more often for more accuracy; what few evaluations allow is done."""

    def needed(accuracy: float) -> int:
        low, high = 1, 2**20
        while high - low > low // 8:
            middle = (low + high) // 2
            try:
                ask(FAST, [5.0, 15.0, 30.0], system="measured-moments", accuracy=accuracy, max_evaluations=middle)
                high = middle
            except ov.NumericalError:
                low = middle
        return high

    counts = [needed(a) for a in (1e-1, 1e-4, 1e-7)]
    assert counts == sorted(counts) and counts[0] < counts[-1]


def test_measured_moments_state_what_asking_more_often_changes() -> None:
    """Against moments asked for at every step, written by hand."""
    result = ask(CONSTANT, [0.5, 5.0, 50.0], system="measured-moments")
    omega, theta, N = DATA.eigenvalues, DATA.own_teacher[0] / np.sqrt(20), 20  # pyright: ignore[reportOptionalSubscript]
    squares = DATA.rows**2
    fourth = squares.T @ squares / 300
    noise = (DATA.targets - DATA.rows @ theta) ** 2 @ squares / 300  # pyright: ignore[reportOptionalOperand]
    D, a, found = theta**2, 0.2 / N, []
    for step in range(1001):
        if step in (10, 100, 1000):
            found.append(0.5 * (omega @ D + DATA.unexplained))
        D = D - 2 * a * omega * D + a * a * (fourth @ D + noise)
    apart = np.abs(result.data["error"].values[0] - found).max()
    assert apart <= result.accuracy("error") + 1e-12 < 1e-3 * found[0]


def test_full_batches_of_rows() -> None:
    full = ov.FullBatch(60, 0.1, ratio=20 / 200)
    with pytest.raises(ov.NumericalError, match=r"did not suffice \(max_evaluations=30\) beyond time 30") as caught:
        ask(full, None, max_evaluations=30)
    assert caught.value.partial is not None and caught.value.partial.time[-1] == 30
    assert ask(full, None, accuracy=1e-10).accuracy("error") < 1e-10
    with pytest.raises(ov.NumericalError, match=r"reached a relative accuracy"):
        ask(full, None, accuracy=1e-16)
    assert ask(full, None).data.attrs["system"] == "all-rows"


def test_systems_of_rows_are_named() -> None:
    names = {
        case: ask(algorithm, [1.0], **options).data.attrs["system"] for case, (algorithm, options) in CASES.items()
    }
    assert list(names.values()) == ["exact-mean"] * 2 + ["measured-moments"] + ["many-passes"] * 2 + ["levels"]
