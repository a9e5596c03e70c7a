"""Macro of full-batch training: the kernels of `overlaps.full_batch.mean_field_kernels`, to a stated accuracy.

- **Linear** problems (square loss, linear student and teacher) need first and second moments of the fields alone. Any
  points with the moments of a standard normal give these exactly: ±√d e_i, 2d of them in d dimensions, turned by a
  random rotation. The answer is deterministic and exact up to rounding, which a second rotation measures.
- All others are averages over scrambled Sobol points and their mirror images, stretched to have the second moments of a
  standard normal. The recursion is done for several independent scramblings: the spread of the results is the error,
  and the number of points is doubled until it is as small as asked, relative to the largest value of each variable (of
  an overlap with a fixed direction, at least a tenth of what its length allows). Multipliers of batches are drawn
  from a Latin hypercube.

Smooth losses begin with responses. Their noise grows with the horizon, and their cost as its third power, so that
Stein's form takes over where a few paths do not suffice, or histories are long.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..averages import Method, method_for
from ..averages.random_sets import half_width
from ..averages.rules import scrambled
from ..interface.errors import InputError, NumericalError, unknown
from ..network.architectures import Committee
from ..network.losses import Loss, loss
from ..problem.start import Start
from ..problem.statement import Problem
from ..trajectory.dataset import VARIABLES, Trajectory
from ..trajectory.refinement import Budget, Goal, Stated, largest_values, refined
from .mean_field_kernels import ADDED, Diverged, MeanFieldKernels, Singular, Unaffordable, solve_recursion
from .paths import Points
from .repeated_runs import Observables, as_trajectory, whole_steps
from .task import FullBatchTask, full_batch_of

Array = NDArray[np.float64]
REPLICAS = 8  # independent scramblings
ACCURACY, ACCEPTED = 1e-3, 1e-2  # relative accuracies to aim at and to accept, where none is named
MEMORY = 2.5e8  # numbers that a recursion may hold
FEWEST = 10  # log2 of half the paths to begin with, of Stein's form
ENOUGH = 15  # log2 of half the paths that suffice with batches, if what they reach is accepted: errors fall slowly
SHORT = 64  # columns up to which responses are worth trying
TURNED = 1e-11  # relative variance added to the fields of linear problems, as ADDED, but beside rounding alone
KERNELS = ("V_theta", "V_omega", "B_theta", "B_omega")


def is_linear(problem: Problem) -> bool:
    """Whether duals are linear in the fields: the square loss of linear networks."""
    networks = (problem.student, problem.teacher) if problem.teacher is not None else (problem.student,)
    return problem.loss == "square" and all(isinstance(n, Committee) and n.g.name == "linear" for n in networks)


def is_smooth(problem: Problem) -> bool:
    """Whether duals are known to have no jumps, so that responses are averages of derivatives."""
    law = loss(problem.loss)
    if isinstance(law, Loss) or not law.smooth:
        return False
    networks = (problem.student, problem.teacher)
    return all(n.g.is_smooth for n in networks if isinstance(n, Committee))


def solve_full_batch(
    problem: Problem,
    start: Start,
    times: ArrayLike | None,
    *,
    levels: bool,
    accuracy: float | None,
    method: str,
    budget: Budget,
) -> Trajectory:
    """The infinite-size theory of full-batch training from the overlaps of `start`."""
    task = FullBatchTask(problem, start)
    stops = whole_steps(task.algorithm.steps, times)
    task = replace(task, last=int(stops[-1]))
    if method not in ("auto", "stein", "response"):
        raise unknown("method", str(method), ["auto", "stein", "response"])
    if method == "response" and not is_smooth(problem):
        raise InputError(
            "method: responses are averages of derivatives, which miss the jumps of this loss or activation (those of "
            "a user's loss are not known); use method='stein'"
        )
    solution = _Solution(task, stops, levels, budget)
    if is_linear(problem):
        return solution.exact()
    response = method == "response" or (method == "auto" and is_smooth(problem))
    goal = Goal.named(accuracy, aim=ACCURACY, accept=ACCEPTED)
    patience = ENOUGH if accuracy is None and task.batches is not None else None
    return refined(solution.attempts(response, method == "auto", goal, patience), goal, budget)


def check_numbers(problem: Problem) -> None:
    """Refuse the recursion of all steps where it would hold too many numbers, before anything is drawn."""
    algorithm = full_batch_of(problem)
    T, K = algorithm.steps + 1, problem.student.units
    D, C = problem.teacher_units + T * K, problem.data.components.weights.size
    normals = D + (problem.label_noise > 0)
    if is_linear(problem):
        numbers = linear_numbers(normals + (0 if algorithm.batch is None else T * K), D, C)
    else:
        numbers = sampled_numbers(max(FEWEST, _enough(normals)), D, 2 * C + 1, 0 if algorithm.batch is None else T)
    refuse_numbers(numbers, D)


def linear_numbers(normals: int, columns: int, components: int) -> float:
    """Numbers that the recursion of a linear problem holds, with so many normal variables."""
    return 4.0 * normals * columns * components


def sampled_numbers(log2: int, columns: int, each: int, masks: int) -> float:
    """Numbers that 2^(log2 + 1) paths hold, `each` for a column, and their multipliers."""
    return 2.0 ** (log2 + 1) * (columns * each + masks)


def refuse_numbers(numbers: float, columns: int, instead: str = "") -> None:
    """Refuse what needs too many numbers."""
    if numbers > MEMORY:
        raise InputError(f"steps: {columns} columns need {numbers * 8e-9:.3g} GB of paths; use fewer steps{instead}")


def _enough(normals: int) -> int:
    """log2 of the fewest paths that second moments can be told from."""
    return int(np.ceil(np.log2(normals + 1))) + 1


def stratified(count: int, dimensions: int, seed: int | list[int]) -> Array:
    """Random points (count, dimensions) of the unit cube, one in each of `count` strata along every axis."""
    rng = np.random.default_rng(seed)
    strata = rng.permuted(np.tile(np.arange(count)[:, None], dimensions), axis=0)
    return (strata + rng.random(strata.shape)) / count


class _Solution:
    """One solution."""

    def __init__(self, task: FullBatchTask, stops: NDArray[np.int64], levels: bool, budget: Budget) -> None:
        self.task, self.stops, self.levels = task, stops, levels
        self.method = method_for(task.problem, task.start.u)
        self.dimensions = task.D + (task.problem.label_noise > 0)  # normal variables of a path
        self.budget = budget

    def exact(self) -> Trajectory:
        task = self.task
        d = self.dimensions + (0 if task.batches is None else task.T * task.K)
        refuse_numbers(linear_numbers(d, task.D, len(task.weights)), task.D)
        both: list[MeanFieldKernels] = []
        for seed in (0, 1):
            turn = np.linalg.qr(np.random.default_rng(seed).standard_normal((d, d)))[0] * np.sqrt(d)
            normal = np.concatenate([turn, -turn])
            points = self._points(normal)
            if task.batches is not None:
                points = points._replace(batch_noise=normal[:, self.dimensions :])
            both.append(self._solve(points, 1, TURNED))  # responses are the same for all
        one, other = self._trajectory([both[0]], ""), self._trajectory([both[1]], "")
        found = self._trajectory(both, f"exact moments, {2 * d} points")
        errors = {
            n: np.abs(one.data[n] - other.data[n]).max() + 10 * TURNED * np.abs(found.data[n]).max()
            for n in (*one.variables, *KERNELS)
        }
        errors["error"] += self._sharpened(both[0], 1e-9)
        return Stated(found, {n: np.atleast_1d(e) for n, e in errors.items()}).labelled()

    def attempts(self, response: bool, may_change: bool, goal: Goal, patience: int | None) -> Iterator[Stated]:
        """Solutions with ever more paths; from 2^patience paths on, reaching the accepted accuracy is enough."""
        D, C = self.task.D, len(self.task.weights)
        fewest = _enough(self.dimensions)
        log2 = max(8 if response else FEWEST, fewest)

        def numbers(log2: int, response: bool) -> float:
            masks = 0 if self.task.batches is None else self.task.T
            return sampled_numbers(log2, D, C * D if response else 2 * C + 1, masks)

        if response and may_change and (D > SHORT or numbers(log2, True) > MEMORY):
            response, log2 = False, max(FEWEST, fewest)
        refuse_numbers(numbers(log2, response), D, ", or method='stein'" * response)
        while True:
            found: list[MeanFieldKernels] = []
            for replica in range(REPLICAS):
                points = self._sampled(log2, 1000 * log2 + replica)
                found.append(self._solve(points, len(points.h) if response else 0))
            form = "response" if response else "Stein"
            name = f"{form} form, Sobol, {REPLICAS} x 2^{log2 + 1} paths"
            errors = self._spread(found)
            sampled, quadrature = errors["error"], self._sharpened(found[0], goal.aim)
            errors["error"] = sampled + quadrature
            result = self._trajectory(found, name)
            stated = Stated(result, errors, self._sizes(result))
            yield stated
            if patience is not None and log2 >= patience and stated.reached <= goal.accept:
                return
            sizes = stated.sizes
            if all(float((sampled if n == "error" else errors[n]).max()) <= goal.aim * sizes[n] for n in sizes):
                return  # the quadrature of the error limits the accuracy, and more paths do not help
            if response and may_change:
                response, log2 = False, max(FEWEST, fewest)
            else:
                log2 += 1
            if numbers(log2, response) > MEMORY:
                return

    def _points(self, normal: Array) -> Points:
        """Paths from standard normal variables (n, dimensions or more), without batches."""
        D = self.task.D
        return Points(normal[:, :D], normal[:, D] if self.dimensions > D else None)

    def _sampled(self, log2: int, seed: int) -> Points:
        """2^(log2 + 1) paths, with batches."""
        points, batches = self._points(scrambled(self.dimensions, log2, seed)), self.task.batches
        if batches is None:
            return points
        uniform = stratified(len(points.h), self.task.T, [seed, 1])
        return points._replace(multipliers=batches.limit(uniform))

    def _solve(self, points: Points, followed: int, added: float = ADDED) -> MeanFieldKernels:
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                kernels = solve_recursion(self.task, points, followed=followed, added=added, budget=self.budget)
        except Diverged as stop:
            what = f"training diverges: an overlap Q reached {stop.size:.3g}"
            raise self._stopped(stop.kernels, stop.step, "Q", what) from None
        except Singular as stop:
            what = "V_theta is singular to rounding, with all that was added to it"
            raise self._stopped(stop.kernels, stop.step, "V_theta", what) from None
        except Unaffordable as stop:
            raise self._stopped(stop.kernels, stop.step, "Q", self.budget.exhausted) from None
        if not np.isfinite(kernels.loss).all():
            raise self._stopped(kernels, self.task.T, "Q", "")
        return kernels

    def _stopped(self, kernels: MeanFieldKernels, step: int, quantity: str, what: str) -> NumericalError:
        """The error of a recursion that ended at a step, with the solution so far."""
        bad = np.flatnonzero(~np.isfinite(kernels.loss).all(axis=0))
        if bad.size and bad[0] < step:
            step, quantity, what = int(bad[0]), "training_error", "the loss is not a finite number"
        kept = self.stops[self.stops < step]
        return NumericalError(
            f"macro: {what} at step {step}; reduce rate (now {self.task.algorithm.rate_text}), or stop earlier",
            quantity=quantity,
            time=float(step),
            partial=self._trajectory([kernels], "one recursion", kept) if kept.size else None,
        )

    def _spread(self, found: list[MeanFieldKernels]) -> dict[str, Array]:
        """Student's interval of 99.5 % for the mean over scramblings, the largest over times and entries."""
        each = [self._trajectory([kernels], "").data for kernels in found]
        names = [name for name in (*VARIABLES, *KERNELS) if name in each[0]]
        return {name: half_width(np.array([one[name].values for one in each])).max(keepdims=True) for name in names}

    def _sharpened(self, kernels: MeanFieldKernels, wanted: float) -> float:
        """Error of the quadrature behind the generalisation error, which is refined until it is small enough."""
        fine = self._errors(kernels, self.method)
        coarse = self._errors(kernels, self.method.coarser())
        while True:
            difference = float(np.abs(fine - coarse).max())
            finer = self.method.finer()
            if difference <= wanted / 4 * np.abs(fine).max() or finer is None:
                return difference
            self.method, fine, coarse = finer, self._errors(kernels, finer), fine

    def _errors(self, kernels: MeanFieldKernels, method: Method) -> Array:
        """Generalisation error at the stops, by a method of averaging."""
        return self._trajectory([kernels], "", method=method).data["error"].values

    def _sizes(self, result: Trajectory) -> dict[str, float]:
        """The size of each variable, by which its error is divided."""
        largest = {str(name): float(np.abs(values).max()) for name, values in result.data.items()}
        sizes = largest_values(result)
        for name, fixed in (("R", "T"), ("m", "gram")):
            if name in sizes:
                sizes[name] = max(sizes[name], 0.1 * (largest["Q"] * largest[fixed]) ** 0.5)
        return sizes

    def _trajectory(
        self,
        found: list[MeanFieldKernels],
        averages: str,
        stops: NDArray[np.int64] | None = None,
        *,
        method: Method | None = None,
    ) -> Trajectory:
        """Mean over recursions, at the stops; method: of averaging, for the generalisation error."""
        task, stops = self.task, self.stops if stops is None else stops
        mean = MeanFieldKernels(
            *(np.mean([getattr(k, f.name) for k in found], axis=0) for f in fields(MeanFieldKernels))
        )
        T, K, M = int(stops[-1]) + 1, task.K, task.M
        dims = ("run", "component", "step", "step_", "student", "student_")
        more = {}
        for name in KERNELS:
            part = getattr(mean, name)[:, M : M + T * K, M : M + T * K]
            more[name] = (dims, part.reshape(-1, T, K, T, K).transpose(0, 1, 3, 2, 4)[None])
        loss = (task.weights @ mean.loss)[None, stops]
        cost = f"{len(found)} recursion{'s' * (len(found) > 1)} of {T} steps, {self.budget.elapsed:.2g} s"
        observables = Observables(mean.Q[None, stops], mean.F[None, stops], loss, more)
        how = method or self.method
        result = as_trajectory("macro", task, stops, observables, levels=self.levels, seed=0, cost=cost, method=how)
        if averages:
            result.data.attrs["averages"] = averages
        return result
