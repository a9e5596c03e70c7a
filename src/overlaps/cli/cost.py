"""What a run would cost, known before it begins: a plan that would take far too long is refused at once.

With K students, F fixed directions, B levels and P components, an evaluation of the averages takes about

    c K² (K + F)² + 30 ns B (K + F)²        square loss of committees, c by activation (`SECONDS_OF_SQUARES`)
    0.5 µs P (K + F)² + 30 ns B (K + F)²    other losses

and a solution by levels about 25 of them for each time to record. On one core an evaluation of erf units was measured
to take 29 ms at K = 50 and 420 ms at K = 100, of linear units 1.2 and 15 ms, of ReLU 21 ms at K = 10 and 350 ms at 20,
of tanh 1.5 ms at K = 8; solutions at 40 times took 1024 evaluations at K = 20 and 1036 at K = 30. Where this is more
than `solve` allows itself (`overlaps.trajectory.refinement`), the plan is refused.

Components whose covariances do not commute take 2·10³ (K r)³ operations with the r coordinates that are kept whole
first, 3·10¹⁰ of them a second: ten classes with K = 10, N = 668 and r = 77 took 30 s.

    meso: runs · steps · samples of a step · B (K + F)² operations
    micro: runs · steps · samples of a step · N (K + F), with covariances that do not commute N² more
    macro of other algorithms: 10⁴ K² (K + F)²

How much memory the theory takes is computed by its engine. Only the order of magnitude of these numbers is meant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..interface.errors import InputError
from ..network.architectures import Committee
from ..problem.statement import Problem
from ..trajectory.refinement import SECONDS
from ..trajectory.scales import MACRO, engine

if TYPE_CHECKING:
    from .experiment import Plan

MOST = 1e14  # operations, about a day of a core
LARGEST = 1e10  # numbers to hold
EVALUATIONS = 25  # of the averages, for each time to record
# seconds of an evaluation over K² (K + F)²; sums of error functions and quadratures take as long as `OTHERS`, or more
SECONDS_OF_SQUARES, OTHERS = {"linear": 1.5e-10, "erf": 4e-9, "relu": 1.5e-6}, 2e-7
SECONDS_OF_LABELS, SECONDS_OF_LEVELS = 5e-7, 3e-8  # over (K + F)², of a component and of a level
CLASS_OPERATIONS, CLASS_SPEED = 2e3, 3e10  # of a solution over (K r)³, and per second


def macro_seconds(problem: Problem, plan: Plan) -> float:
    """About the CPU time of the theory of an online algorithm; 0 for others and for regressions, which take little."""
    K, data = problem.student.units, problem.data
    if problem.algorithm.engine[MACRO] != "online.macro" or problem.regresses_rows:
        return 0.0
    if problem.classifies_rows or not data.commuting:
        from ..online.class_covariances import ranks

        omega = np.repeat(data.eigenvalues, data.dimensions(plan.size))
        return CLASS_OPERATIONS * float(K * next(ranks(omega, K))) ** 3 / CLASS_SPEED
    fields = K + _fixed(problem)
    one = SECONDS_OF_LEVELS * _levels(problem) * fields**2
    if problem.loss == "square" and problem.teacher is not None and isinstance(problem.student, Committee):
        alike = problem.student.activation == getattr(problem.teacher, "activation", None)
        each = SECONDS_OF_SQUARES.get(problem.student.g.name, OTHERS) if alike else OTHERS
        one += each * float(K * fields) ** 2
    else:
        one += SECONDS_OF_LABELS * data.components.weights.size * fields**2
    return EVALUATIONS * plan.count * one


def _fixed(problem: Problem) -> int:
    """F: teachers and means."""
    return problem.teacher_units + (problem.data.components.weights.size if problem.data.has_means else 0)


def _levels(problem: Problem) -> int:
    """B."""
    return problem.data.fractions.size if problem.data.is_gaussian and problem.data.commuting else 1


def check_cost(problem: Problem, plan: Plan) -> None:
    """Refuse a plan that could not be afforded, naming what makes it so."""
    N, K, F, levels = plan.size, problem.student.units, _fixed(problem), _levels(problem)
    if problem.data.reads_latent and N > LARGEST**0.5:
        raise InputError(f"size: the features of {N} inputs are {N**2:.1e} numbers; use at most {LARGEST**0.5:.0f}")
    count, _ = problem.algorithm.extent(N, plan.first, plan.last)
    batch = problem.algorithm.step_samples(N)
    visited = float(count) * batch
    work = {
        "meso_runs": float(plan.meso_runs) * visited * levels * (K + F) ** 2,
        "micro_runs": float(plan.micro_runs) * visited * N * (K + F),
    }
    if not problem.data.commuting:
        work["micro_runs"] += float(plan.micro_runs) * visited * N**2
    seconds = macro_seconds(problem, plan)
    if not seconds:
        work["units"] = 1e4 * float(K * (K + F)) ** 2
    at = f"at size {N} with {levels} level{'s' * (levels > 1)}"
    name = max(work, key=lambda n: work[n])
    if work[name] > MOST:
        steps = f"{count:,} steps" + f" of {batch:,} samples" * (batch > 1)
        what = {
            "units": f"{K} students",
            "meso_runs": f"{plan.meso_runs} meso runs of {steps}",
            "micro_runs": f"{plan.micro_runs} micro runs of {steps}",
        }[name]
        raise InputError(
            f"{name}: {what} {at} are about {work[name]:.0e} operations, days of a core; use fewer, or a "
            f"smaller size{', batch' * (batch > 1)} or last time"
        )
    engine(problem, MACRO).check_memory(problem, plan.count)
    if seconds > SECONDS:
        raise InputError(
            f"units: the theory of {K} students {at} takes about {seconds:.1g} s of CPU time, and solve ends after "
            f"{SECONDS:g} s; use fewer units, levels or times, or solve(max_seconds=...)"
        )
