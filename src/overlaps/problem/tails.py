"""Whether the noise of SGD has a variance on inputs with heavy tails.

With the variance s of a sample its fields grow as √s. Let the activation g of the student grow as |λ|^a, and the slope
∂ℓ/∂f of the loss as |λ|^b: b = 0 where it is bounded, otherwise the larger of a and the teacher's exponent. Then

    s S(s C) = s E[δ²],   δ = v g'(λ) ∂ℓ/∂f,   grows as  s^{1 + b + a − 1},  or  s^{1 + b − 1/2}  where g is bounded,

for g' of a bounded function is felt with the chance 1/√s that its field is small. The mean over s = (ν − 2)/χ²_ν is
finite where ν/2 exceeds that power. For the square loss of linear or ReLU students ν must exceed four, of bounded
students with such a teacher three.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..interface.errors import InputError
from ..network.architectures import Committee
from ..network.losses import OutputLoss

if TYPE_CHECKING:
    from .statement import Problem

NEAR, FAR = 1e4, 1e8  # fields between which growth is measured
BOUNDED = 1e3  # functions that are below this far away are taken as bounded


def check_noise(problem: Problem) -> None:
    """Refuse degrees of freedom at which the noise of one-pass SGD is infinite; losses of the user's are not judged."""
    data, algorithm, student, law = problem.data, problem.algorithm, problem.student, problem.law
    if not data.tails or not algorithm.draws_samples or algorithm.times_are_steps:
        return
    if not isinstance(student, Committee) or not isinstance(law, OutputLoss):
        return
    own = _growth(student.g.function)
    others = 0.0 if problem.teacher is None else _growth(problem.teacher.g.function)
    slope = max(own, others) * _growth(lambda f: law.slope(f, 0.0))
    power = 1 + slope + (own - 1 if own else -0.5)
    if data.tails <= 2 * power:
        raise InputError(
            f"degrees: the {law.name} loss of {problem.describe_networks()} has noise that grows as the power "
            f"{power:.3g} of the variance of a sample, whose mean is infinite at {data.tails:g} degrees of freedom; "
            f"use more than {2 * power:.3g}, or a bounded activation such as 'erf'"
        )


def _growth(function: Callable[[float], float]) -> float:
    """The power with which a function grows, on the side where it grows faster; zero where it is bounded."""
    try:
        near, far = (max(abs(function(x)), abs(function(-x))) for x in (NEAR, FAR))
    except OverflowError:
        return math.inf
    return math.log(far / near) / math.log(FAR / NEAR) if far > BOUNDED and near > 0 else 0.0
