"""Macro for components whose covariances do not commute: mean and covariance of the weights.

No set of levels closes for such inputs. With the averages D^c = (D_λ, D_ν), S^c, E^c of component c (weight p_c, mean
μ_c, covariance Σ_c) the mean W (K, N) of the weights and their covariance H, N × N for each pair of units, move as

    dW/dt = −P Σ_c p_c [ D_λ^c W Σ_c + D_ν^c B Σ_c + √N E^c μ_c ] + M W
    dH/dt = −P (A H + H A) + 2 M H + P² Σ_c p_c S^c ⊗ (Σ_c + μ_c μ_cᵀ)/b,      A = Σ_c p_c D_λ^c ⊗ (Σ_c + μ_c μ_cᵀ)

with M and P of `overlaps.algorithms.update`. Fields given c have the mean W μ_c/√N and the covariance

    C^c = (W Σ_c Wᵀ + Tr H (Σ_c + μ_c μ_cᵀ))/N.

Terms with μ_c μ_cᵀ are of relative order |μ_c|²/N. They vanish in the limit of `GaussianMixture`, and are kept because
the means of real classes are a good part of their rows: with ten classes of 8 × 8 digits (N = 61) training on Gaussians
of the same moments is met within .6 % instead of 2 %.

*Few coordinates.* In the eigenbasis of Σ̄ = Σ_c p_c Σ_c the matrices that act on H are kept whole in the first r
coordinates and diagonal in the others, which have little variance. W sees all of them. What this costs in accuracy is
measured, as the difference to r/2 at the same steps, and is part of the stated error; where it is the larger part r
grows.

*Long steps.* Within a step the averages are taken at its middle, extrapolated from the two steps before, and the
equations, then linear with constant coefficients, are solved exactly in the eigenbasis of A: e^{−Lh} on W, its square
on H. E^c is linearised in the mean of its own field, which strong means make fast. This is of second order and stable
at any length, so that a step is a share δ of the time since the start. Solutions with δ, δ/2, δ/4, …, with averages by
independent rules in turn, are extrapolated to δ = 0 two by two; the difference of two extrapolations is the other part
of the error stated for the second. Where no accuracy is named, what would take far longer than what is accepted already
is left out.

A step takes about 20 (K r)³ operations, and memory for some ten matrices of (K r)² numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from ..averages import Averages, ClosedForm, LossQuadrature, Method
from ..averages.decisions import decided_variables, shares_of_gaussians
from ..interface.errors import InputError, NumericalError
from ..problem.start import LIMIT, Start
from ..problem.statement import Problem
from ..trajectory.dataset import Trajectory, assemble
from ..trajectory.refinement import Budget, Goal, Stated, differences, refined
from .component_levels import weighted

Array = NDArray[np.float64]
CLASSES = "class-covariances"  # name of this system of equations
STRIDE = 0.4  # δ of the first solution
LEFT_OUT = 1e-2  # share of Σ ω² in coordinates whose covariances are kept on the diagonal alone, in the first solution
SPENT = "allow more of them, a larger error by accuracy, or stop earlier"  # what to do about a budget
DOUBLINGS = 7  # of the steps, at most
LEAST_RANK = 32  # with no more coordinates than these, none is left to the diagonal
LARGEST = 4000  # K r, of which a step takes a minute
LONGEST = 1e12  # operations of a solution, half a minute: once one is accepted, no longer one is begun
EVALUATIONS = 60_000  # most evaluations of the averages, where no number is named
TINY = 1e-7  # variance added to fields: D is not defined where they do not vary, as at weights of zero
AIM, ACCEPT = 5e-3, 2e-2  # relative accuracies to aim at and to accept, where none is named


class Coefficients(NamedTuple):
    """What a step takes as constant: averages by component, weighted, and the means of fields in kept coordinates.

    D (P, K, K+M), S (P, K, K), E (P, K), dv (K,), means (P, K), and the gradient that the parts of the matrices add
    that are left out, besides (K, N).
    """

    D: Array
    S: Array
    E: Array
    dv: Array
    means: Array
    besides: Array

    def beyond(self, before: Coefficients, share: float) -> Coefficients:
        """Linear extrapolation: by a share of the way from `before` to here."""
        return Coefficients(*(x + share * (x - y) for x, y in zip(self, before, strict=True)))


@dataclass
class State:
    """Mean weights in the kept coordinates (K, r) and in the others (K, N−r), their covariances (K, r, K, r) and
    (N−r, K, K), and the readout (K,)."""

    W: Array
    W_rest: Array
    H: Array
    H_rest: Array
    v: Array


class ReducedClasses:
    """Components in the eigenbasis of Σ̄: matrices in the first r coordinates, diagonals in the others."""

    def __init__(self, problem: Problem, start: Start, rank: int) -> None:
        data: Any = problem.data
        assert start.student is not None and start.teacher is not None
        self.N, self.r = start.student.shape[1], rank
        basis = data.turned(np.eye(self.N))
        self.weights: Array = data.components.weights
        self.means, self.means_rest = np.split(data.turned(data.mean_vectors(self.N)), [rank], axis=1)
        P, M = len(self.weights), len(start.teacher)
        self.dense, self.rest = np.empty((P, rank, rank)), np.empty((P, self.N - rank))
        # the rest of the matrices, which only the mean weights see; single precision suffices for this small part
        self.besides = np.empty((P, self.N, self.N), np.float32) if rank < self.N else None
        teachers = data.turned(start.teacher)
        self.BS = np.empty((P, M, self.N))  # what teachers add to the gradient, D_ν B Σ_c
        for c, matrix in enumerate(data.matrices):
            turned = basis.T @ matrix @ basis
            self.dense[c], self.rest[c] = turned[:rank, :rank], np.diag(turned)[rank:]
            self.BS[c] = teachers @ turned
            if self.besides is not None:
                turned[:rank, :rank] = 0.0
                turned[range(rank, self.N), range(rank, self.N)] = 0.0
                self.besides[c] = turned
        self.dense_all = self.dense + self.means[:, :, None] * self.means[:, None, :]
        self.rest_all = self.rest + self.means_rest**2
        self.teachers, self.teacher_means = teachers, start.teacher_fields.m
        self.T = self.BS @ teachers.T

    def pulled(self, W: Array) -> Array:
        """W times what is left out of the matrices, (P, K, N)."""
        if self.besides is None:
            return np.zeros((len(self.weights), *W.shape))
        return np.matmul(W.astype(np.float32), self.besides).astype(float)

    def fields(self, y: State) -> tuple[Array, Array, Array]:
        """Covariances (P, K+M, K+M) and means (K+M, P) of the fields, and W times what is left out (P, K, N)."""
        K, M, P, r = len(y.W), len(self.teachers), len(self.weights), self.r
        W = np.concatenate([y.W, y.W_rest], axis=1)
        C, besides = np.empty((P, K + M, K + M)), self.pulled(W)
        C[:, :K, :K] = (y.W @ self.dense) @ y.W.T + (y.W_rest * self.rest[:, None, :]) @ y.W_rest.T + besides @ W.T
        blocks = y.H.transpose(0, 2, 1, 3).reshape(K * K, r * r)
        spread = self.dense_all.reshape(P, r * r) @ blocks.T
        C[:, :K, :K] += spread.reshape(P, K, K) + np.tensordot(self.rest_all, y.H_rest, 1)
        C[:, :K, :K] = (C[:, :K, :K] + C[:, :K, :K].transpose(0, 2, 1)) / 2
        C[:, :K, K:] = W @ self.BS.transpose(0, 2, 1)
        C[:, K:, :K] = C[:, :K, K:].transpose(0, 2, 1)
        C[:, K:, K:] = self.T
        C[:, range(K), range(K)] += TINY * self.N
        means = (y.W @ self.means.T + y.W_rest @ self.means_rest.T) / np.sqrt(self.N)
        return C / self.N, np.concatenate([means, self.teacher_means]), besides


def _phi(z: Array) -> Array:
    """(1 − e^{−z})/z."""
    small = np.abs(z) < 1e-8
    return np.where(small, 1 - z / 2, -np.expm1(-z) / np.where(small, 1.0, z))


def _grid(begin: float, end: float, first: float, doublings: int) -> Array:
    """Ends of the steps between two times: equally spaced in log(t + first), their number doubled `doublings` times."""
    if end <= begin:
        return np.zeros(0)
    ratio = (end + first) / (begin + first)
    count = max(1, int(np.ceil(np.log(ratio) / STRIDE))) * 2**doublings
    grid = (begin + first) * ratio ** (np.arange(1, count + 1) / count) - first
    grid[-1] = end
    return grid


class LongSteps:
    """One solution, by steps of a share of the time."""

    def __init__(
        self,
        problem: Problem,
        start: Start,
        how: ClosedForm | LossQuadrature,
        rank: int,
        doublings: int,
        budget: Budget,
    ) -> None:
        assert start.student is not None
        self.problem, self.start, self.how, self.doublings, self.budget = problem, start, how, doublings, budget
        self.parts = ReducedClasses(problem, start, rank)
        self.update, K, N = problem.update, *start.student.shape
        W, rest = np.split(problem.data.turned(start.student), [rank], axis=1)
        self.y = State(W, rest, np.zeros((K, rank, K, rank)), np.zeros((N - rank, K, K)), start.v.copy())
        self.noise, self.noisy = self.update.noise, bool(self.update.noise)
        self.t, self.until = 0.0, np.inf
        self.before: tuple[float, Coefficients] | None = None
        self.kept: list[tuple[Array, ...]] = []
        self.shares: list[Array] = []

    def averages(self) -> tuple[Array, Array, Averages, Array]:
        """Covariances and means of the fields, the averages, and W times what is left out, here and now."""
        C, means, besides = self.parts.fields(self.y)
        if not np.isfinite(C).all() or np.abs(C).max(initial=0.0) > LIMIT:
            raise self._stopped("training diverges: an overlap grew without bound", "Q")
        self.budget.spend(1)
        return C, means, weighted(self.how, C, self.y.v, means, self.parts.weights), besides

    def coefficients(self) -> Coefficients:
        _, _, a, pulled = self.averages()
        besides = np.einsum("ckl,cli->ki", a.D[:, :, : len(self.y.W)], pulled)
        means = (self.y.W @ self.parts.means.T).T / np.sqrt(self.parts.N)
        return Coefficients(a.D, a.S, a.E.T, a.dv, means, besides)

    def follow(self, times: Array) -> Trajectory:
        """Go through all times, between times and knots by steps that grow with the time since the start."""
        self.times = times
        self.budget.course.begin(float(times[-1]))
        knots = self.update.knots
        here = self.coefficients()
        highest = max(float(np.max(self.update.rate.at(np.append(knots, [0.0, times[-1]])))), 1e-300)
        fastest = highest * float(np.abs(self._operator(here.D)[1]).max(initial=0.0))
        first = 1 / max(fastest, 1 / max(float(times[-1]), 1e-300))
        for target in times.tolist():
            stops = [*knots[(knots > self.t) & (knots < target)].tolist(), target]
            for stop in stops:
                self.until = stop if stop in knots else np.inf
                for end in _grid(self.t, stop, first, self.doublings).tolist():
                    here = self._step(end, here)
                    self.budget.course.at(end)
                    if self.budget.exhausted:
                        raise self._stopped(self.budget.exhausted, "Q", SPENT)
            self._keep()
        return self.trajectory()

    def _step(self, end: float, here: Coefficients) -> Coefficients:
        """One step, whose coefficients at its end are returned; the first is taken twice, for want of one before."""
        h = end - self.t
        if self.before is not None:
            before, theirs = self.before
            middle = here.beyond(theirs, h / 2 / (self.t - before))
            self.y = self._moved(middle, h)
        else:
            start = self.y
            self.y = self._moved(here, h)
            there = self.coefficients()
            self.y = start
            self.y = self._moved(there.beyond(here, -0.5), h)
        self.before, self.t = (self.t, here), end
        return self.coefficients()

    def _operator(self, D: Array) -> tuple[Array, Array]:
        """A of the kept coordinates, (K r, K r), and its eigenvalues, as vectors in columns and values."""
        parts, K = self.parts, len(self.y.W)
        r, P = parts.r, len(D)
        slopes = D[:, :, :K].reshape(P, K * K)
        A = (slopes.T @ parts.dense_all.reshape(P, r * r)).reshape(K, K, r, r)
        A = A.transpose(0, 2, 1, 3).reshape(K * r, K * r)
        values, vectors = eigh((A + A.T) / 2, overwrite_a=True, check_finite=False, driver="evd")
        return vectors, values

    def _moved(self, c: Coefficients, h: float) -> State:
        """The state a time h later, with these coefficients."""
        parts, y, flow = self.parts, self.y, self.update.flow(self.t + h / 2, self.until)
        (K, r), N = y.W.shape, parts.N
        rate, loss = float(flow.P[0]), -float(flow.M[0, 0])
        V, a = self._operator(c.D)
        L = rate * a + loss
        if -L.min(initial=0.0) * h > 50:
            raise self._stopped("the weights grow without bound", "W")
        own = np.einsum("ckl,cl->ck", c.D[:, :, :K], c.means)
        constant = np.sqrt(N) * (c.E - own).T @ parts.means + self._pull(c)[:, :r]
        x = np.exp(-L * h) * (V.T @ y.W.ravel()) - rate * h * _phi(L * h) * (V.T @ constant.ravel())
        W = (V @ x).reshape(K, r)
        H = y.H
        if self.noisy:
            P = len(c.S)
            source = (c.S.reshape(P, K * K).T @ parts.dense_all.reshape(P, r * r)).reshape(K, K, r, r)
            source = source.transpose(0, 2, 1, 3).reshape(K * r, K * r)
            both = np.add.outer(L, L) * h
            inside = np.exp(-both) * (V.T @ y.H.reshape(K * r, K * r) @ V)
            inside += rate**2 * self.noise * h * _phi(both) * (V.T @ source @ V)
            H = V @ inside @ V.T
            H = ((H + H.T) / 2).reshape(K, r, K, r)
        W_rest, H_rest = self._moved_rest(c, h, rate, loss)
        v = y.v + h * (float(flow.M_readout[0, 0]) * y.v - float(flow.P_readout[0]) * c.dv)
        return State(W, W_rest, H, H_rest, v)

    def _pull(self, c: Coefficients) -> Array:
        """The gradient that teachers make and what is left out of the matrices, (K, N)."""
        return np.einsum("ckn,cni->ki", c.D[:, :, len(self.y.W) :], self.parts.BS) + c.besides

    def _moved_rest(self, c: Coefficients, h: float, rate: float, loss: float) -> tuple[Array, Array]:
        """Mean and covariance of the weights in the other coordinates, each of which is by itself."""
        parts, y, K = self.parts, self.y, len(self.y.W)
        if parts.r == parts.N:
            return y.W_rest, y.H_rest
        a, V = np.linalg.eigh(np.einsum("ckl,ci->ikl", c.D[:, :, :K], parts.rest))
        L = rate * a + loss
        constant = np.sqrt(parts.N) * c.E.T @ parts.means_rest
        constant = constant + self._pull(c)[:, parts.r :]
        x, b = (np.einsum("ikj,ki->ij", V, rows) for rows in (y.W_rest, constant))
        W = np.einsum("ikj,ij->ki", V, np.exp(-L * h) * x - rate * h * _phi(L * h) * b)
        if not self.noisy:
            return W, y.H_rest
        both = (L[:, :, None] + L[:, None, :]) * h
        source = np.einsum("ckl,ci->ikl", c.S, parts.rest_all)
        turned = V.transpose(0, 2, 1)
        inside = np.exp(-both) * (turned @ y.H_rest @ V)
        inside += rate**2 * self.noise * h * _phi(both) * (turned @ source @ V)
        return W, V @ inside @ turned

    def _keep(self) -> None:
        y, parts = self.y, self.parts
        C, means, a, _ = self.averages()
        omega, K, N = self.start.eigenvalues, len(y.W), parts.N
        omega = np.repeat(omega, self.problem.data.dimensions(N))
        W = np.concatenate([y.W, y.W_rest], axis=1)
        Q = (W * omega) @ W.T + np.einsum("kili,i->kl", y.H, omega[: parts.r])
        Q = Q + np.tensordot(omega[parts.r :], y.H_rest, 1)
        self.kept.append((Q / N, (W * omega) @ parts.teachers.T / N, means[:K], y.v.copy(), C, np.array(a.error)))
        classes = self.problem.data.class_numbers
        if classes is not None:
            C = C - TINY * np.eye(len(means))
            self.shares.append(shares_of_gaussians(self.problem, C, means, y.v, classes))

    def trajectory(self) -> Trajectory:
        """What was kept so far."""
        Q, R, m, v, C, errors = (np.array(part)[None] for part in zip(*self.kept, strict=True))
        more = decided_variables(np.array(self.shares)) if self.shares else None
        cost = f"{self.budget.spent} evaluations of the averages, {self.budget.elapsed:.2g} s"
        at = self.times[: len(self.kept)]
        return assemble(
            "macro", self.problem, self.start, at, Q, R, m, v, self.how,
            levels=None, errors=errors, covariances=C, more=more, cost=cost,
        )  # fmt: skip

    def _stopped(self, reason: str, quantity: str, todo: str = "") -> NumericalError:
        rate = float(self.update.flow(self.t, self.until).P[0])
        return NumericalError(
            f"macro: {reason} at time {self.t:.6g}; {todo or f'reduce rate (now {rate:g}) or stop earlier'}",
            quantity=quantity,
            time=float(self.t),
            partial=self.trajectory() if self.kept else None,
        )


def ranks(omega: Array, units: int) -> Iterator[int]:
    """Numbers of coordinates to keep whole, ever more of them, to all or to the most of which a step is affordable."""
    most = min(omega.size, max(LARGEST // units, 1))
    share = np.append(np.cumsum(omega[::-1] ** 2)[::-1], 0.0) / max(float((omega**2).sum()), 1e-300)
    left, rank = LEFT_OUT, 0
    while rank < most:
        rank = max(int(np.argmax(share <= left)), LEAST_RANK)
        rank = most if 1.5 * rank > most else rank
        yield rank
        left /= 5


def check_class_covariances(problem: Problem, start: Start) -> None:
    """Refuse what these equations do not follow."""
    if problem.data.matrices is None:
        raise InputError(f"system: {CLASSES} is for GaussianClasses; use system='levels'")
    if start.student is None or start.teacher is None:
        raise InputError("start: these equations follow weights; use draw or Start.from_weights")
    if problem.update.rule.limit_rows > 1:
        raise InputError(
            "memory: covariances that do not commute are followed for the weights alone, not for a memory of the "
            "gradient; use momentum, which the limit forgets, or train"
        )


def solve_class_covariances(
    problem: Problem, start: Start, times: Array, how: Method, accuracy: float | None, budget: Budget
) -> Trajectory:
    """The equations above, from the weights of `start`; see `overlaps.solve`."""
    check_class_covariances(problem, start)
    assert isinstance(how, (ClosedForm, LossQuadrature))
    goal = Goal.named(accuracy, aim=AIM, accept=ACCEPT)
    budget.at_most(EVALUATIONS)
    result = refined(_attempts(problem, start, times, how, goal, budget), goal, budget)
    for part in result.data.data_vars.values():  # shares of decisions are counted over points: an error of their own
        if "points_error" in part.attrs:
            part.attrs["accuracy"] += part.attrs["points_error"]
    return result


def _attempts(
    problem: Problem, start: Start, times: Array, how: ClosedForm | LossQuadrature, goal: Goal, budget: Budget
) -> Iterator[Stated]:
    """Solutions by ever shorter steps, more coordinates and finer averages, extrapolated from the one before."""
    omega = np.repeat(start.eigenvalues, problem.data.dimensions(int(start.size or 0)))
    units = problem.student.units
    sizes = ranks(omega, units)
    rank = next(sizes)
    if isinstance(how, LossQuadrature) and goal.aim > 1e-5:
        how = how.coarser()  # the accuracy aimed at is lower than that of systems of levels
    coarse: Trajectory | None = None
    before: Trajectory | None = None
    left_out: dict[str, Array] = {}
    for doublings in range(DOUBLINGS):
        rule, spent = how.check() if doublings % 2 else how, budget.spent
        try:
            fine = _solved(problem, start, times, rule, rank, doublings, budget)
            evaluations = budget.spent - spent
            if coarse is not None and not left_out:
                left_out = _left_out(fine, problem, start, rule, rank, doublings, budget)
        except NumericalError:
            if doublings > 2 or budget.exhausted:  # long steps may be unstable where short ones are stable
                raise
            coarse = None
            continue
        if coarse is not None:
            found = _extrapolated(fine, coarse)
            found.data.attrs["averages"] += f", {rank} of {omega.size} coordinates whole"
            of_steps = differences(found, fine if before is None else before)
            stated = Stated(found, {name: of_steps[name] + left_out[name] for name in of_steps})
            yield stated
            steps, rest = (Stated(found, errors).reached for errors in (of_steps, left_out))
            if rest > min(steps, goal.aim):
                rank, left_out = next(sizes, 0), {}
                if not rank:  # the coordinates left out limit the accuracy, not the steps
                    return
            if stated.reached <= goal.accept and 2 * 20 * evaluations * (units * rank) ** 3 > LONGEST:
                return
            before = found
        coarse = fine
        finer = how.finer() if isinstance(how, LossQuadrature) and (doublings % 2 or goal.aim <= 1e-5) else None
        how = finer if isinstance(finer, LossQuadrature) else how


def _solved(
    problem: Problem,
    start: Start,
    times: Array,
    how: ClosedForm | LossQuadrature,
    rank: int,
    doublings: int,
    budget: Budget,
) -> Trajectory:
    with np.errstate(over="ignore", invalid="ignore"):  # overflow is checked for after each step
        return LongSteps(problem, start, how, rank, doublings, budget).follow(times)


def _left_out(
    found: Trajectory,
    problem: Problem,
    start: Start,
    how: ClosedForm | LossQuadrature,
    rank: int,
    doublings: int,
    budget: Budget,
) -> dict[str, Array]:
    """Differences between a solution and one that keeps half as many coordinates whole; zero where all are kept."""
    if rank == start.size:
        return differences(found, found)
    return differences(found, _solved(problem, start, found.time, how, (rank + 1) // 2, doublings, budget))


def _extrapolated(fine: Trajectory, coarse: Trajectory) -> Trajectory:
    """The limit of short steps, whose errors of second order are a quarter with steps of half the length."""
    data = fine.data.copy()
    for name in fine.variables:
        x, y = data[name], coarse.data[name].values
        limit = x.values + (x.values - y) / 3
        # a quantity that both solutions have as positive is not extrapolated below zero
        data[name] = (x.dims, np.where((x.values >= 0) & (y >= 0), np.maximum(limit, 0.0), limit), x.attrs)
    return replace(fine, data=data)
