"""Specs as text: every value comes back bit by bit, and what TOML has no words for is refused by its place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import overlaps as ov
from overlaps.interface.spec import parse, write

VALUES = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=["Cs"])),
    st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=5),
    st.lists(st.lists(st.floats(-1, 1), min_size=2, max_size=2), max_size=3),
)
NAMES = st.sampled_from(["rate", "gram", "kind", "two words", "λ", "a.b", ""])


@given(st.dictionaries(NAMES, st.one_of(VALUES, st.dictionaries(NAMES, VALUES))))
def test_values_come_back(table: dict[str, object]) -> None:
    again = parse(write(table))
    assert again == table and repr(sorted(again.items())) == repr(sorted(table.items()))


WRITTEN_BEFORE = """\
loss = "logistic"

[data]
kind = "GaussianMixture"
gram = [[1.0, -0.5], [-0.5, 1.0]]
labels = [0, 1]
variance = 2.5e-01

[student]
kind = "Committee"
units = 2
activation = "relu"
train_readout = true

[algorithm]
kind = "OnlineSGD"
rate = 1e-05
"""


def test_text_of_earlier_versions_is_read() -> None:
    problem = ov.Problem.from_toml(WRITTEN_BEFORE)
    assert problem.algorithm == ov.OnlineSGD(1e-5) and problem.student == ov.Committee(2, "relu", train_readout=True)
    assert ov.Problem.from_toml(problem.to_toml()) == problem


@pytest.mark.parametrize(
    ("table", "place"),
    [
        ({"rate": None}, "rate = None"),
        ({"data": {"kind": "Mine", "weights": [0.5, 1j]}}, r"data\.weights\[1\] = 1j"),
        ({"data": {"inner": {"f": len}}}, r"data\.inner\.f = <built-in function len>"),
    ],
)
def test_what_cannot_be_written_is_named(table: dict[str, object], place: str) -> None:
    with pytest.raises(ov.InputError, match=f"^spec: {place} cannot be written as TOML$"):
        write(table)
