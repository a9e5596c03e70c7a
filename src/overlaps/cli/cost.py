"""What a run would cost, known before it begins: a plan that would take far too long is refused at once.

With K students, F fixed directions and B levels, operations of the scales are about

    macro: 10³ B (K + F)² + 10⁴ K² (K + F)²
    meso: runs · steps · samples of a step · B (K + F)²
    micro: runs · steps · samples of a step · N (K + F)

Components whose covariances do not commute make macro 2·10³ (K N)³, at most, and a sample of micro N² more. How much
memory the theory takes is computed by its engine.

The numbers are those of an ordinary problem; only their order of magnitude is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..interface.errors import InputError
from ..problem.statement import Problem
from ..trajectory.scales import MACRO, engine

if TYPE_CHECKING:
    from .experiment import Plan

MOST = 1e14  # operations, about a day of a core
LARGEST = 1e10  # numbers to hold


def check_cost(problem: Problem, plan: Plan) -> None:
    """Refuse a plan that could not be afforded, naming what makes it so."""
    N, K = plan.size, problem.student.units
    F = problem.teacher_units + (problem.data.components.weights.size if problem.data.has_means else 0)
    levels = problem.data.fractions.size if problem.data.is_gaussian else 1
    if problem.data.reads_latent and N > LARGEST**0.5:
        raise InputError(f"size: the features of {N} inputs are {N**2:.1e} numbers; use at most {LARGEST**0.5:.0f}")
    count, _ = problem.algorithm.extent(N, plan.first, plan.last)
    batch = problem.algorithm.step_samples(N)
    visited = float(count) * batch
    work = {
        "units": 1e3 * levels * (K + F) ** 2 + 1e4 * K**2 * (K + F) ** 2,
        "meso_runs": float(plan.meso_runs) * visited * levels * (K + F) ** 2,
        "micro_runs": float(plan.micro_runs) * visited * N * (K + F),
    }
    if not problem.data.commuting:
        work["units"] = 2e3 * float(K * N) ** 3
        work["micro_runs"] += float(plan.micro_runs) * visited * N**2
    name = max(work, key=lambda n: work[n])
    if work[name] > MOST:
        steps = f"{count:,} steps" + f" of {batch:,} samples" * (batch > 1)
        what = {"units": f"{K} students", "meso_runs": f"{plan.meso_runs} meso runs of {steps}"}.get(
            name, f"{plan.micro_runs} micro runs of {steps}"
        )
        at = f"at size {N} with {levels} level{'s' * (levels > 1)}"
        raise InputError(
            f"{name}: {what} {at} are about {work[name]:.0e} operations, days of a core; use fewer, or a smaller "
            f"size{', batch' * (batch > 1)} or last time"
        )
    engine(problem, MACRO).check_memory(problem, plan.count)
