"""The paper's network and inputs as a problem of this library."""

from __future__ import annotations

import overlaps as ov


def committee(
    levels: int,
    beta: float,
    rate: float,
    *,
    students: int,
    teachers: int,
    activation: str = "erf",
    first_order: bool = False,
) -> ov.Problem:
    """K students and M teachers with the paper's readouts; `first_order` keeps the terms up to O(η) only."""
    return ov.Problem(
        data=ov.GaussianInputs(ov.PowerLaw(levels=levels, exponent=beta)),
        teacher=ov.Committee(units=teachers, activation=activation, readout=teachers**-0.5),
        student=ov.Committee(units=students, activation=activation, readout=teachers**0.5 / students),
        algorithm=ov.GradientFlow(rate) if first_order else ov.OnlineSGD(rate),
    )
