"""Errors have public names, survive a process with their fields, and suggest the name that was meant."""

from __future__ import annotations

import pickle
import traceback

import pytest

import overlaps as ov
from overlaps import deep


@pytest.mark.parametrize(
    "error",
    [
        ov.InputError("rate: expected a number above 0, got -1"),
        ov.MissingExtraError("no jax", "pip install it"),
        ov.NumericalError("diverged", quantity="Q[0, 0]", time=2.0, partial=("what", "there is")),
    ],
    ids=lambda error: type(error).__name__,
)
def test_names_and_pickles(error: Exception) -> None:
    assert traceback.format_exception_only(error) == [f"overlaps.{type(error).__name__}: {error}\n"]
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error) and str(again) == str(error) and vars(again) == vars(error)


@pytest.mark.parametrize(("module", "wrong", "meant"), [(ov, "slove", "solve"), (deep, "Residul", "Residual")])
def test_the_name_that_was_meant(module: object, wrong: str, meant: str) -> None:
    with pytest.raises(AttributeError, match=f"unknown name in overlaps.*{wrong!r}; did you mean {meant!r}"):
        getattr(module, wrong)
