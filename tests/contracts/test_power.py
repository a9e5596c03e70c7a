"""The contracts can fail: a theory and a chain that are deliberately wrong are rejected."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import overlaps as ov
from problems import problem

from .cases import equal_in_law, tends_to_theory

PLAIN = replace(problem("erf", 2, 1), algorithm=ov.OnlineSGD(0.8))


def test_theory_without_the_noise_of_sgd_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dropping the order η²."""
    right = ov.solve

    def wrong(given: ov.Problem, *args: Any, **more: Any) -> ov.Trajectory:
        return right(replace(given, algorithm=ov.GradientFlow(given.algorithm.rate)), *args, **more)

    tends_to_theory(PLAIN)
    monkeypatch.setattr(ov, "solve", wrong)
    with pytest.raises(AssertionError):
        tends_to_theory(PLAIN)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (ov.OnlineSGD(0.6, batch=8), ov.OnlineSGD(0.6)),
        (ov.OnlineSGD(0.05, momentum=0.9), ov.OnlineSGD(0.05)),
        (ov.OnlineSGD(0.08, momentum=0.9), ov.OnlineSGD(0.08, momentum=0.89)),
        (ov.OnlineSGD(0.5, memory=2.0), ov.OnlineSGD(0.5)),
        (ov.OnlineSGD(0.5, memory=2.0), ov.OnlineSGD(0.5, memory=1.7)),
        (ov.OnlineSGD(ov.Schedule([0.0, 2.0], [0.2, 0.8])), ov.OnlineSGD(ov.Schedule([0.0, 2.0], [0.26, 0.74]))),
    ],
    ids=["batch", "momentum", "a little less momentum", "memory", "a shorter memory", "schedule"],
)
def test_theory_of_another_algorithm_is_rejected(
    right: ov.OnlineSGD, wrong: ov.OnlineSGD, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Theory that forgets a part of the step, or has it a little otherwise."""
    solve = ov.solve
    monkeypatch.setattr(ov, "solve", lambda p, *args, **more: solve(replace(p, algorithm=wrong), *args, **more))
    with pytest.raises(AssertionError):
        tends_to_theory(replace(PLAIN, algorithm=right), size=4000)


def test_a_chain_at_another_rate_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a fifth, by as many runs as the contracts compare."""
    right = ov.sample

    def wrong(given: ov.Problem, *args: Any, **more: Any) -> ov.Trajectory:
        return right(replace(given, algorithm=ov.OnlineSGD(0.8 * given.algorithm.rate)), *args, **more)

    equal_in_law(PLAIN)
    monkeypatch.setattr(ov, "sample", wrong)
    with pytest.raises(AssertionError, match="differ in law"):
        equal_in_law(PLAIN)
