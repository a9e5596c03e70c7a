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


def test_a_chain_at_another_rate_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a tenth."""
    right = ov.sample

    def wrong(given: ov.Problem, *args: Any, **more: Any) -> ov.Trajectory:
        return right(replace(given, algorithm=ov.OnlineSGD(0.9 * given.algorithm.rate)), *args, **more)

    equal_in_law(PLAIN)
    monkeypatch.setattr(ov, "sample", wrong)
    with pytest.raises(AssertionError, match="differ in law"):
        equal_in_law(PLAIN)
