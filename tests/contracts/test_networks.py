"""Every network, as student and as teacher: a class without an example here is a failure."""

from __future__ import annotations

from typing import Any

import pytest

import overlaps as ov
from overlaps.problem.statement import ROLES
from problems import problem

from .cases import NETWORKS, equal_in_law, refused_by_field, round_trip, tends_to_theory, with_loss

# by class: a problem with it, and arguments it refuses, the first of each being the field to be named
CASES: dict[str, tuple[ov.Problem, tuple[dict[str, Any], ...]]] = {
    "Committee": (
        problem(
            "erf", 3, 2, rate=0.6, readout=[1.0, 0.5, -0.8], teacher_readout=[1.0, 0.6], train_readout=True, decay=0.05
        ),
        (
            {"units": 0},
            {"units": 1.5},
            {"activation": "sinus", "units": 2},
            {"readout": [1.0, 2.0], "units": 3},
            {"readout": float("nan"), "units": 1},
            {"train_readout": "yes", "units": 1},
        ),
    ),
    "Softmax": (with_loss("cross-entropy"), ({"classes": 1}, {"classes": 2.5})),
}
REFUSED = [(name, i) for name, (_, refused) in CASES.items() for i in range(len(refused))]


def test_every_network_has_a_case() -> None:
    assert CASES.keys() == NETWORKS.keys()
    for role in ("student", "teacher"):
        here = {type(getattr(p, role)) for p, _ in CASES.values() if getattr(p, role) is not None}
        assert here == set(ROLES[role]), f"each is somebody's {role}"


@pytest.mark.parametrize("name", CASES)
def test_a_problem_of_it_survives_toml(name: str) -> None:
    p = CASES[name][0]
    round_trip(p)
    assert f"{name}(" in repr(p) and p.describe_networks()
    assert p.student.readouts.shape == (p.student.units,)


@pytest.mark.parametrize(("name", "i"), REFUSED)
def test_what_is_outside_its_domain_is_refused_by_field(name: str, i: int) -> None:
    refused_by_field(NETWORKS[name], CASES[name][1][i])


@pytest.mark.parametrize("name", CASES)
def test_the_three_scales_agree(name: str) -> None:
    equal_in_law(CASES[name][0], runs=120)
    tends_to_theory(CASES[name][0])
