"""What one covariance for all components leaves out of a weak mixture of latents.

Levels take the covariance of the inputs as the same in all components; components of strength s (see
`Realised.strength`) differ by s relative to it, which averages out to first order. What is left is of second order,

    |x − x_levels| ≈ c s² max |x|,        c ≤ 3 + η/b,

with b samples a step, and for η the whole effect of a gradient: with momentum s the rate over 1 − s. For single samples
c was measured against the equations of strong mixtures to time 50, for 2 to 4 components of strengths from .04 to .19:
up to 2.2 for gradient flow, where means of the fields are off most, and with few latents more than with many; up to 1.5
at rates from .1 to 1.5 (tests repeat it, and `make coverage` counts). The bound is part of the stated accuracy, and
decides which equations serve.
"""

from __future__ import annotations

import numpy as np

from ..interface.errors import NumericalError
from ..problem.start import Start
from ..problem.statement import Problem
from ..trajectory.dataset import Trajectory
from ..trajectory.refinement import Stated, largest_values
from .strong_mixture import LARGEST

LEFT_OUT = 3.0  # c of gradient flow
WEAK = 0.2  # strength up to which one covariance may be asked for
ACCEPTED = 0.02  # relative error of levels up to which they are taken where no accuracy is named


def left_out(problem: Problem, start: Start) -> float:
    """Relative error of the levels of a mixture of latents."""
    strength, update = problem.data.mixture_strength(start.size), problem.update
    knots = np.append(update.knots, 0.0)
    highest = float(np.max(update.rate.at(knots)))
    if update.rule.limit_rows == 1:  # the whole effect of a gradient; with a memory it is the rate itself
        highest = float(update.rule.limit(max(highest, 0.0))[1][0])
    return (LEFT_OUT + max(highest, 0.0) * update.noise) * strength**2


def levels_serve(problem: Problem, start: Start, accuracy: float | None) -> bool:
    """Whether levels are accurate enough, or are all there is."""
    if problem.data.mixture_strength(start.size) > WEAK:
        return False
    if left_out(problem, start) <= (ACCEPTED if accuracy is None else accuracy):
        return True
    update, K = problem.update, problem.student.units
    follows = start.student is not None and update.rule.limit_rows == 1
    affordable = not update.noise or (K * (start.size or 0)) ** 2 <= LARGEST
    return accuracy is None and not (follows and affordable)


def with_left_out(result: Trajectory, problem: Problem, start: Start, accuracy: float | None) -> Trajectory:
    """A solution by levels whose stated errors count what the equations leave out; refused where that is too much."""
    error = left_out(problem, start)
    errors = {
        name: np.atleast_1d(result.accuracy(name) + error * size) for name, size in largest_values(result).items()
    }
    result = Stated(result, errors).labelled()
    if accuracy is not None and error > accuracy:
        raise NumericalError(
            f"macro: components of this latent share their covariance to {error:.1e} only, where {accuracy:.1e} was "
            f"asked; use system='strong-mixture', or pass accuracy={1.5 * error:.0e} to accept it",
            quantity="Q",
            time=float(result.time[-1]),
            partial=result,
        )
    return result
