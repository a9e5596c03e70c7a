"""What theory changes by taking the variance of a sample with heavy tails at a finite number of values.

The rule for the law of the variance (`overlaps.data.tail_rule`) has an error that falls exponentially with the number n
of its values, so that a solution x_n with n of them and one with half as many again tell it:

    |x − x_n| ≲ 2 max_t |x_{3n/2} − x_n|

for every variable. It is part of the stated accuracy.
"""

from __future__ import annotations

from ..interface.errors import NumericalError
from ..problem.statement import Problem
from ..trajectory.dataset import Trajectory
from ..trajectory.refinement import Stated, differences

ACCEPTED = 0.02  # relative error of the rule up to which it serves where no accuracy is named


def with_values(result: Trajectory, other: Trajectory, problem: Problem, accuracy: float | None) -> Trajectory:
    """A solution whose stated errors count what `other`, by another number of values, says of the rule."""
    apart = differences(result, other)
    stated = Stated(result, {name: 2 * moved + result.accuracy(name) for name, moved in apart.items()})
    found = stated.labelled()
    wanted = ACCEPTED if accuracy is None else accuracy
    if stated.reached > wanted:
        data = problem.data
        raise NumericalError(
            f"macro: with {data.components.weights.size} values of the variance {stated.worst} has a relative accuracy "
            f"of {stated.reached:.1e} where {wanted:.1e} was asked; use more values=, or pass "
            f"accuracy={1.5 * stated.reached:.0e} to accept it",
            quantity=stated.worst,
            time=stated.when,
            partial=found,
        )
    return found
