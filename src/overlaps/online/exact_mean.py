"""The exact mean over runs of a linear student at finite size, for any algorithm that is linear in its gradients.

Student and teacher are linear, e = Σ_k v_k w_k − Σ_m u_m B_m, and labels have noise of variance σ². For Gaussian inputs
the second moments of the rows r of `overlaps.algorithms.update` close at any size N. With e·r etc. the parts of inner
products in level b, over N, and E_b = (e·e)_b, s = Σ_b ω_b E_b, one step with a batch of β samples takes

    ⟨r·B⟩ ← L ⟨r·B⟩ − p (ω_b/N) ⟨e·B⟩
    ⟨r·r⟩ ← L ⟨r·r⟩ Lᵀ − (ω_b/N) (L ⟨e·r⟩ pᵀ + transpose) + p pᵀ Γ_b
    Γ_b = (1/N²) [ (1 + 1/β) ω_b² E_b + (1/β) n_b ω_b (s + σ²) ]

where p of unit k has the factor v_k. The last term is the noise of SGD; the first is the square of the drift and, with
1/β, what Isserlis' theorem adds, both smaller by 1/N. The error is s/2. In the limit N → ∞ this is the equation of
motion.

>>> import overlaps as ov
>>> net = ov.Committee(1, "linear")
>>> problem = ov.Problem(data=ov.GaussianInputs(), teacher=net, student=net, algorithm=ov.OnlineSGD(rate=1.0, batch=4))
>>> start = ov.Start.from_overlaps(problem, Q=[[0.0]], R=[[0.0]], T=[[1.0]], size=20)
>>> ov.solve(problem, start, [0.0, 1.0], system="exact-mean").data["error"].values[0].round(5).tolist()
[0.5, 0.08577]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..averages import ClosedForm, method_for
from ..interface.checks import steps
from ..interface.errors import InputError, NumericalError
from ..network.architectures import Committee
from ..problem.start import Start
from ..problem.statement import Problem
from ..trajectory.dataset import Trajectory, assemble
from ..trajectory.refinement import Budget, Goal, Stated, differences, refined
from .recording import Stops
from .second_moments import Excess, Linear, SecondMoments, second_moments

Array = NDArray[np.float64]
EXACT, MEASURED = "exact-mean", "measured-moments"
PARTS, DOUBLED = 100, 5  # parts of the time after which the excess is updated, and how often their number doubles


def solve_exact_mean(
    problem: Problem,
    start: Start,
    times: Array,
    levels: bool,
    accuracy: float | None,
    budget: Budget,
    excess: Callable[[Array], Array] | None = None,
) -> Trajectory:
    """The mean of the overlaps over runs at the size of `start`, and the error that goes with it.

    accuracy: relative, as in `overlaps.solve`; by default what the recursion has, and of measured moments 1e-3.
    excess: see `Excess`; without it inputs are Gaussian, and the mean is exact.
    """
    _check(problem, start)
    mean = _Mean(problem, start, times, levels, budget)
    if excess is None:
        return refined(mean.attempts(), Goal.named(accuracy, aim=np.inf, accept=np.inf), budget)
    goal = Goal.named(accuracy, aim=1e-3, accept=1e-2)
    return refined(mean.attempts_with(excess), goal, budget)


@dataclass(frozen=True)
class _Mean:
    """The mean over runs of a problem, from a start at times."""

    problem: Problem
    start: Start
    times: Array
    levels: bool
    budget: Budget

    @property
    def given(self) -> Linear:
        start = self.start
        assert start.size is not None and start.dimensions is not None
        return Linear(
            start.eigenvalues,
            start.dimensions.astype(float),
            np.ascontiguousarray(start.T),
            start.v,
            start.u,
            self.problem.label_noise**2,
            self.problem.update.noise,
            float(start.size),
            np.zeros(start.eigenvalues.size),
        )

    def attempts(self) -> Iterator[Stated]:
        """The solution by stretches of many steps, and if that costs accuracy, then the one step by step."""
        found, missed = self.attempt(None, stretches=True)
        yield found
        if missed:
            yield self.attempt(None)[0]

    def attempts_with(self, excess: Callable[[Array], Array]) -> Iterator[Stated]:
        """Solutions that update the excess ever more often; the error is the change from updating it half as often."""
        before, _ = self.attempt(Excess(excess, PARTS // 2))
        for doubled in range(DOUBLED):
            found, _ = self.attempt(Excess(excess, PARTS << doubled))
            change = differences(found.result, before.result)
            yield Stated(found.result, {name: 2 * change[name] + found.errors[name] for name in change})
            before = found

    def attempt(self, excess: Excess | None, stretches: bool = False) -> tuple[Stated, float]:
        """The mean by one recursion with its rounding errors, and the relative error that long stretches have made.

        Where it fails, the `NumericalError` carries the solution up to that time.
        """
        problem, start, times = self.problem, self.start, self.times
        assert start.size is not None
        total, stops = steps(float(times[-1]), start.size), Stops.at(times, start.size)
        seen = second_moments(
            self.given,
            problem.update,
            start.Q,
            start.A,
            stops.steps,
            excess,
            stretches=stretches,
            budget=self.budget,
        )
        count = int(np.count_nonzero(stops.last < seen.reached))
        found = self._stated(seen, stops, count, total, excess) if count else None
        check_finished(seen, problem, start.size, self.budget, None if found is None else found.labelled())
        assert found is not None
        return found, seen.missed

    def _stated(self, seen: SecondMoments, stops: Stops, count: int, total: int, excess: Excess | None) -> Stated:
        problem, start, K = self.problem, self.start, self.start.v.size
        at_Q, at_A = (stops.interpolated(x[None], count)[0] for x in (seen.Q, seen.A))
        mean_Q, mean_R = (np.einsum("b,tbij->tij", start.eigenvalues, x)[None] for x in (at_Q, at_A))
        result = assemble(
            "macro",
            problem,
            start,
            self.times[:count],
            mean_Q,
            mean_R,
            np.zeros((1, count, K, 0)),
            np.broadcast_to(start.v, (1, count, K)),
            method_for(problem, start.u),
            levels=(at_Q[None], at_A[None]) if self.levels else None,
            cost=f"{total:,} steps of the exact mean, {self.budget.elapsed:.2g} s",
        )
        kind = "exact mean" if excess is None else "mean by measured fourth moments"
        result.data.attrs["averages"] = f"{kind} over runs at size {start.size}"
        result.data.attrs["system"] = EXACT if excess is None else MEASURED
        return Stated(result, rounding(result, total, seen.missed))


def rounding(result: Trajectory, steps: int, missed: float) -> dict[str, Array]:
    """Errors of a recursion of that many steps: each rounds, and at a stable rate later ones add to it.

    missed: see `SecondMoments`.
    """
    relative = np.finfo(float).eps * (10 + steps) + missed
    return {name: np.array([relative * max(1.0, float(np.abs(result.data[name]).max()))]) for name in result.variables}


def check_finished(
    seen: SecondMoments, problem: Problem, size: int, budget: Budget, partial: Trajectory | None
) -> None:
    """Raise an error with the solution so far, where the mean grew without bound or the budget was spent."""
    if seen.diverged is not None:
        raise diverges(problem, seen.diverged / size, size, partial)
    if seen.unfinished is not None:
        raise out_of_budget(budget, seen.unfinished / size, partial)


def diverges(problem: Problem, time: float, size: int, partial: Trajectory | None) -> NumericalError:
    """The error of a rate at which the mean grows without bound."""
    return NumericalError(
        f"macro: the mean error at size {size} grew without bound by time {time:.6g}; reduce rate (now "
        f"{problem.update.rate(time):g}) or stop earlier",
        quantity="error",
        time=time,
        partial=partial,
    )


def out_of_budget(budget: Budget, time: float, partial: Trajectory | None) -> NumericalError:
    """The error of a recursion whose budget is spent."""
    return NumericalError(
        f"macro: {budget.exhausted} beyond time {time:.6g}; allow more of them, or stop earlier",
        quantity="error",
        time=time,
        partial=partial,
    )


def _check(problem: Problem, start: Start) -> None:
    """Refuse problems that are not linear, and starts without a size."""
    student, teacher, data = problem.student, problem.teacher, problem.data
    linear = all(isinstance(net, Committee) and net.activation == "linear" for net in (student, teacher))
    if not linear or student.train_readout or problem.loss != "square":
        raise InputError(
            "system: the exact mean is that of a linear student with a fixed readout, a linear teacher and the square "
            f"loss, got {problem.describe_networks()}; use system='levels'"
        )
    if data.has_means or data.reads_latent or data.components.weights.size > 1:
        raise InputError("system: the exact mean is for Gaussian inputs of mean zero; use system='levels'")
    if not problem.algorithm.draws_samples:
        raise InputError("system: gradient flow has no steps to average over; use system='levels'")
    if start.size is None:
        raise InputError("start: the exact mean is that of a size; pass size= to Start.from_overlaps, or use draw")
    assert isinstance(method_for(problem, start.u), ClosedForm)
