"""Macro for strong mixtures of latents: mean weights and their fluctuations, given each component.

The components of a strong mixture see covariances Φ^s = Cov(x | s) that do not commute, so no set of levels closes.
With the averages D^s = (D_λ, D_ν), S^s, E^s of component s (weight p_s, mean a_s, teacher direction t_s) the mean W̄ of
the weights and their fluctuations Ξ_kl = Cov(W_k, W_l), an N × N matrix for each pair, move as

    dW̄/dt = −η Σ_s p_s [ D_λ^s W̄ Φ^s + √N (D_ν^s t_s + E^s a_s) ] − ηβ W̄
    dΞ/dt = −η (H Ξ + Ξ Hᵀ) − 2 ηβ Ξ + (η²/b) Σ_s p_s S^s ⊗ Φ^s,     H = Σ_s p_s D_λ^s ⊗ Φ^s
    Q^s = (W̄ Φ^s W̄ᵀ + Tr Φ^s Ξ)/N,    m_s = W̄ a_s/√N,    R^s = W̄ t_s/√N

with b samples a step, and for η the whole effect of a gradient: the rate, or the rate over 1 − s with momentum s.

Means of length |a_s|² = O(N) make m_s fast: it moves by O(η) in one step, and fluctuates about its mean by an amount
that does not vanish with N. M is the covariance of these fluctuations: of unit k in component s with unit l in
component r, of the weights and of the velocity that momentum has beside them. It changes as fast as the means do, so
it follows the step itself, r ← L r − p g of `overlaps.algorithms.update`. With g_sr = a_s·a_r/N and e = (1, 0, …) for
the row of the weights

    dM/dt = N (F M Fᵀ − M + p pᵀ ⊗ (B − A M Aᵀ)/b),    F = L ⊗ 1 − p eᵀ ⊗ A,    in A M Aᵀ the M of the weights,
    A = p_r g_sr D_kl^r,    B = Σ_q p_q g_sq g_qr S_kl^q    with weights p_r, p_q of components.

Given component s the fluctuations are further variance of the fields: M_ss is added to Q^s. So B, which is of the
gradient of one sample, includes A M Aᵀ, by which the mean gradient varies with m. All samples of a batch meet the same
m, and a mean over them lessens the rest of B alone. For single samples and no momentum
dM/dt = −ηN (A M + M Aᵀ) − 2 ηβ M + η² N B.

One step moves a mean by the share ηA of its way, which is not small, while D and S stay those of Gaussian fields. What
changes if A M Aᵀ is taken off once more is stated as the error of that, and all is refused where ηA exceeds one half.

Ξ is slow and takes some fifty Heun steps in single precision, 4 P K² N³ operations each; between them W̄ follows an
adaptive Runge-Kutta method. The whole is done again with steps of Ξ of twice the length, once as it is and once with
A M Aᵀ taken off once more. Twice the difference that the steps make, plus that of A M Aᵀ, is the accuracy stated. Where
the latter alone would be accepted and the sum is not, the steps are halved.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import DOP853

from ..averages import Averages, ClosedForm, LossQuadrature, Method
from ..interface.errors import InputError, NumericalError, shown
from ..problem.start import LIMIT, Start
from ..problem.statement import Problem
from ..trajectory.dataset import Trajectory, assemble
from ..trajectory.refinement import Budget, Goal, Stated, differences, refined
from .latent_inputs import latent_inputs

Array = NDArray[np.float64]
Single = NDArray[np.float32]
STRONG = "strong-mixture"  # name of this system of equations
# a step of the fluctuations is this share of the time, counted from FIRST/rate before the start, and at most LONGEST
# over the fastest rate of H, of which Heun's method is stable up to one
GROWTH, FIRST, LONGEST = 0.2, 0.02, 0.4
CHANGES = 20  # steps at least in a stretch of time in which the rate changes
LARGEST = 4e7  # numbers in Ξ, of which a step takes a few seconds
STEP_RATIO = 0.5  # share of its way, ηA, that one step may move a fast mean before equations in time fail (tests)
EVALUATIONS = 60_000  # of the averages, where no number is named
HALVINGS = 2  # of the steps at most, where these alone keep a solution from being accepted
AIM, ACCEPT = 1e-2, 0.1  # relative, where none is named; the orders left out of the rate do not yield to refinement


class Drift:
    """The mean weights: fields and derivative at a state y = (W̄, v, M) for given fluctuations Ξ."""

    def __init__(
        self,
        problem: Problem,
        start: Start,
        how: ClosedForm | LossQuadrature,
        budget: Budget | None = None,
        more: int = 0,
    ) -> None:
        self.more = more  # how often A M Aᵀ is taken off beyond what is right, to see what that changes
        data, W, B = latent_inputs(problem), start.student, start.teacher
        assert W is not None and B is not None
        self.how, self.parts = how, data.at(W.shape[1]).parts
        self.K, self.N, self.B = *W.shape, B
        self.update, self.decay = problem.update, problem.algorithm.decay
        self.until = np.inf  # the next knot of the rates
        self.rows = self.parts.teacher_rows(B)
        self.teacher = self.parts.teacher_fields(B)
        self.extra = np.zeros((len(self.parts.weights), self.K, self.K))  # Tr Φ^s Ξ/N
        self.slope = np.zeros_like(self.extra)  # its derivative, from time `since` on
        self.gram = self.parts.mean @ self.parts.mean.T / self.N
        self.since, self.budget = 0.0, budget or Budget()

    def rates(self, t: float) -> tuple[float, float]:
        """η and η_v at a time."""
        flow = self.update.flow(t, self.until)
        return float(flow.P[0]), float(flow.P_readout[0])

    def unpack(self, y: Array) -> tuple[Array, Array, Array]:
        """W̄ (K, N), v (K,) and M (J P K, J P K) for the J rows of the step: views of the state."""
        K, N, n = self.K, self.N, self.update.rule.rows * self.K * len(self.parts.weights)
        return y[: K * N].reshape(K, N), y[K * N : K * N + K], y[K * N + K :].reshape(n, n)

    def averages(self, t: float, y: Array) -> tuple[Array, Array, list[Averages]]:
        """W̄ (K, N), W̄ Φ^s (P, K, N) and the averages of each component."""
        K = self.K
        W, v, M = self.unpack(y)
        through = self.parts.apply(W)
        C, means = self.parts.joined(W, through, self.rows, self.teacher)
        C[:, :K, :K] += self.extra + (t - self.since) * self.slope
        for s in range(len(C)):
            C[s, :K, :K] += M[s * K : (s + 1) * K, s * K : (s + 1) * K]
        self.budget.spend(1)
        return W, through, self.how.each(C, v, means)

    def __call__(self, t: float, y: Array) -> Array:
        K, root = self.K, np.sqrt(self.N)
        if not np.abs(y).max() < LIMIT:
            return np.full_like(y, np.nan)  # a trial step left the domain; on NaN the solver shortens it
        W, through, each = self.averages(t, y)
        _, v, M = self.unpack(y)
        pull, dv = self.decay * W, self.decay * v
        for s, (p, a) in enumerate(zip(self.parts.weights, each, strict=True)):
            pull += p * (a.D[:, :K] @ through[s] + a.D[:, K:] @ self.rows[s] + root * a.E * self.parts.mean[s])
            dv += p * a.dv
        rate, readout_rate = self.rates(t)
        dM = self.change_of_means(t, M, each)
        return np.concatenate([-rate * pull.ravel(), -readout_rate * dv, dM.ravel()])

    def pull_of_means(self, each: list[Averages]) -> Array:
        """A, (PK, PK)."""
        K, P = self.K, len(each)
        A = np.empty((P, K, P, K))
        for s, (p, a) in enumerate(zip(self.parts.weights, each, strict=True)):
            A[:, :, s] = p * np.multiply.outer(self.gram[:, s], a.D[:, :K])
        return A.reshape(P * K, P * K)

    def change_of_means(self, t: float, M: Array, each: list[Averages]) -> Array:
        """dM/dt, (J P K, J P K); gradient flow has no fluctuations."""
        noise = self.update.noise
        if not noise:
            return np.zeros_like(M)
        K, P, g = self.K, len(each), self.gram
        B = np.zeros((P, K, P, K))
        for s, (p, a) in enumerate(zip(self.parts.weights, each, strict=True)):
            B += p * np.einsum("i,j,kl->ikjl", g[:, s], g[:, s], a.S)
        A, n = self.pull_of_means(each), P * K
        of_mean = A @ M[:n, :n] @ A.T
        keep, pull = self.update.step_at(t, self.N, self.until)
        F = np.kron(keep, np.eye(n)) - np.kron(np.outer(pull, np.eye(len(pull))[0]), A)
        drawn = noise * (B.reshape(n, n) - of_mean) - self.more * of_mean
        return self.N * (F @ M @ F.T - M + np.kron(np.outer(pull, pull), drawn))


class Fluctuations:
    """Ξ (K, N, K, N), its traces and its derivative."""

    def __init__(self, drift: Drift, problem: Problem) -> None:
        K, N, parts = drift.K, drift.N, drift.parts
        self.decay, self.noise = drift.decay, problem.update.noise
        self.weights = parts.weights
        self.Phi = [parts.covariance(s).astype(np.float32) for s in range(len(parts.weights))]
        self.largest = [_largest(phi) for phi in self.Phi]
        realised = latent_inputs(problem).at(N)
        omega = np.repeat(realised.eigenvalues, realised.dimensions)
        self.standard = ((realised.basis * omega) @ realised.basis.T).astype(np.float32)
        self.Xi = np.zeros((K, N, K, N), np.float32)

    def traces(self, Xi: Single) -> Array:
        """Tr Φ^s Ξ_kl/N, (P, K, K)."""
        return np.array([_traces(phi, Xi) for phi in self.Phi])

    def fastest(self, each: list[Averages], rate: float) -> float:
        """A bound of the rate at which Ξ relaxes."""
        K = len(self.Xi)
        parts = zip(self.weights, self.largest, each, strict=True)
        return rate * (sum(p * top * np.linalg.norm(a.D[:, :K], 2) for p, top, a in parts) + self.decay)

    def derivative(self, Xi: Single, each: list[Averages], rate: float) -> Single:
        """dΞ/dt at a rate."""
        K, N = Xi.shape[:2]
        flat = Xi.reshape(K, N * K * N)
        out = np.zeros((K, N, K * N), np.float32)
        for p, phi, a in zip(self.weights, self.Phi, each, strict=True):
            mixed = ((p * a.D[:, :K]).astype(np.float32) @ flat).reshape(K, N, K * N)
            for k in range(K):
                out[k] += phi @ mixed[k]
        full = out.reshape(K, N, K, N)
        full += full.transpose(2, 3, 0, 1).copy()
        full *= -rate
        full -= np.float32(2 * rate * self.decay) * Xi
        for p, phi, a in zip(self.weights, self.Phi, each, strict=True):
            for k in range(K):
                for l in range(K):
                    full[k, :, l] += np.float32(self.noise * rate**2 * p * a.S[k, l]) * phi
        return full


def _largest(phi: Single) -> float:
    """The largest eigenvalue of a positive matrix, by power iteration, to the few per cent that are asked."""
    x = np.random.default_rng(0).standard_normal(len(phi)).astype(np.float32)
    for _ in range(30):
        x = phi @ (x / np.linalg.norm(x))
    return float(np.linalg.norm(x))


def _traces(phi: Single, Xi: Single) -> Array:
    K, N = Xi.shape[:2]
    return np.array([[np.vdot(phi, Xi[k, :, l]) for l in range(K)] for k in range(K)], dtype=float) / N


class _Run:
    """One solution: mean weights, fluctuations, and what is kept of them at the times asked for."""

    def __init__(
        self,
        problem: Problem,
        start: Start,
        how: ClosedForm | LossQuadrature,
        rtol: float,
        budget: Budget,
        more: int = 0,
    ) -> None:
        assert start.student is not None
        self.problem, self.start, self.how = problem, start, how
        self.drift = Drift(problem, start, how, budget, more)
        self.covariance = Fluctuations(self.drift, problem) if problem.update.noise else None
        n = problem.update.rule.rows * self.drift.K * len(self.drift.parts.weights)
        y = np.concatenate([start.student.ravel(), start.v, np.zeros(n * n)])
        self.solver = DOP853(self.drift, 0.0, y, 1.0, rtol=rtol, atol=rtol * 1e-2)
        realised = latent_inputs(problem).at(self.drift.N)
        self.omega = np.repeat(realised.eigenvalues, realised.dimensions)
        self.turned = problem.data.turned
        self.teacher_rows = problem.data.teacher_rows(self.drift.B, self.drift.N)
        self.kept: list[tuple[Array, Array, Array, Array, float]] = []

    def follow(self, times: Array, stride: float) -> Trajectory:
        """Go through all times, with steps of the fluctuations `stride` times their usual length."""
        knots, course = self.drift.update.knots, self.drift.budget.course
        course.begin(float(times[-1]))
        self.left, self.aim = 0.0, 0.0
        for target in times.tolist():
            while self.solver.t < target:
                before = self.solver.t
                ahead = knots[knots > before]
                self.drift.until = float(ahead[0]) if ahead.size else np.inf
                end = min(target, self.drift.until)
                if end != self.aim:  # a stretch of time begins, between times to record and knots
                    self.left, self.aim = before, end
                self._step(end, stride, times)
                course.at(self.solver.t)
            self._keep()
        return self._trajectory(times)

    def _step(self, target: float, stride: float, times: Array) -> None:
        """One step of the fluctuations towards the target, with the mean weights in between."""
        drift, covariance, t = self.drift, self.covariance, self.solver.t
        if covariance is None:
            self._move(target, times)
            return
        rate = drift.rates(t)[0]
        before = drift.averages(t, self.solver.y)[2]
        # a rate that rises on the way makes for shorter steps, and one that changes for several
        changes = drift.update.changes
        highest = max(drift.rates(x)[0] for x in np.linspace(t, target, 17)) if changes else rate
        ratio = highest * float(np.abs(np.linalg.eigvals(drift.pull_of_means(before))).max())
        if ratio > STEP_RATIO:
            reason = f"one step moves the mean of a field by {ratio:.2g} of its way, too far for an equation in time"
            raise self._stopped(f"{reason} (at most {STEP_RATIO:g})", "m", times)
        h = stride * LONGEST / max(covariance.fastest(before, highest), 1e-300)
        h = min(h, stride * GROWTH * (t + FIRST / max(highest, 1e-300)))
        h = min(h, stride * (target - self.left) / CHANGES) if changes else h
        end = t + h if t + h < target * (1 - 1e-9) else target
        h = end - t
        change = covariance.derivative(covariance.Xi, before, rate)
        drift.slope = covariance.traces(change)
        self._move(end, times)
        after = drift.averages(end, self.solver.y)[2]
        guess = np.add(covariance.Xi, np.float32(h) * change, dtype=np.float32)
        last = covariance.derivative(guess, after, drift.rates(end)[0])
        covariance.Xi += np.float32(h / 2) * (change + last)
        drift.extra, drift.since = covariance.traces(covariance.Xi), end
        drift.slope = np.zeros_like(drift.slope)
        if not np.abs(drift.extra).max() < LIMIT:
            raise self._stopped("the fluctuations of the weights grew without bound", "Q", times)

    def _move(self, end: float, times: Array) -> None:
        """The mean weights to time `end`."""
        solver = self.solver
        solver.f = self.drift(solver.t, solver.y)  # the new fluctuations have changed the derivative
        solver.t_bound, solver.status = end, "running"
        wanted = solver.h_abs
        while solver.status == "running":
            wanted = solver.h_abs
            message = solver.step()
            if self.drift.budget.exhausted:
                raise self._stopped(self.drift.budget.exhausted, "m", times)
            if solver.status == "failed" or not np.abs(solver.y).max() < LIMIT:
                reason = "the weights or their fluctuations grow without bound"
                raise self._stopped(f"{reason} ({message})" if message else reason, "W", times)
        solver.h_abs = max(solver.h_abs, wanted)  # the last step was shortened to land on `end`

    def _stopped(self, reason: str, quantity: str, times: Array) -> NumericalError:
        rate = self.drift.rates(self.solver.t)[0]
        return NumericalError(
            f"macro: {reason} at time {self.solver.t:.6g}; reduce rate (now {rate:g}) or stop earlier",
            quantity=quantity,
            time=float(self.solver.t),
            partial=self._trajectory(times) if self.kept else None,
        )

    def _keep(self) -> None:
        drift, y = self.drift, self.solver.y
        W, _, each = drift.averages(self.solver.t, y)
        turned = self.turned(W)
        Q = (turned * self.omega) @ turned.T / drift.N
        if self.covariance is not None:
            Q = Q + _traces(self.covariance.standard, self.covariance.Xi)
        means = self.start.m.shape[2]
        m = (W @ drift.parts.mean.T / np.sqrt(drift.N))[:, :means]
        error = float(drift.parts.weights @ [a.error for a in each])
        self.kept.append((Q, W @ self.teacher_rows.T / drift.N, m, drift.unpack(y)[1].copy(), error))

    def _trajectory(self, times: Array) -> Trajectory:
        Q, R, m, v, errors = (np.array(part)[None] for part in zip(*self.kept, strict=True))
        at, cost = times[: len(self.kept)], f"{self.drift.budget.spent} evaluations of the averages"
        problem, start, how = self.problem, self.start, self.how
        return assemble("macro", problem, start, at, Q, R, m, v, how, levels=None, errors=errors, cost=cost)


def solve_strong_mixture(
    problem: Problem, start: Start, times: Array, how: Method, accuracy: float | None, budget: Budget
) -> Trajectory:
    """The equations above, from the weights of `start`; see `overlaps.solve`."""
    latent_inputs(problem)
    if start.student is None or start.teacher is None:
        raise InputError("start: the equations of strong mixtures follow weights; use draw or Start.from_weights")
    update = problem.update
    if update.rule.limit_rows > 1:
        raise InputError(
            "algorithm: the equations of strong mixtures do not follow a memory of the gradient, got "
            f"{shown(problem.algorithm)}; use train, or a momentum"
        )
    if not isinstance(how, (ClosedForm, LossQuadrature)):
        raise InputError("system: these averages are for inputs of mean zero; use system='levels'")
    K, N = start.student.shape
    if update.noise and (K * N) ** 2 > LARGEST:
        raise InputError(
            f"size: the fluctuations of {K} units of {N} inputs are {(K * N) ** 2:.1e} numbers and hours of work; use "
            f"a size of at most {LARGEST**0.5 / K:.0f}, or GradientFlow, which has none"
        )
    goal = Goal.named(accuracy, aim=AIM, accept=ACCEPT)
    if isinstance(how, LossQuadrature):
        how = how.coarser().coarser()  # the accuracy aimed at is lower than that of systems of levels
    budget.at_most(EVALUATIONS)
    return refined(_attempts(problem, start, times, how, goal, budget), goal, budget)


def _attempts(
    problem: Problem, start: Start, times: Array, how: ClosedForm | LossQuadrature, goal: Goal, budget: Budget
) -> Iterator[Stated]:
    """Solutions with ever finer averages, then shorter steps; each judged by two of longer steps, see above."""
    stride = 1.0
    while True:
        with np.errstate(over="ignore", invalid="ignore"):  # trial steps may overflow; accepted ones are checked
            other, rough = (
                _Run(problem, start, how.coarser(), 1e-4, budget, more).follow(times, 2 * stride) for more in (1, 0)
            )
            fine = _Run(problem, start, how, 1e-5, budget).follow(times, stride)
        fine.data.attrs["cost"] = f"{budget.spent} evaluations of the averages, {budget.elapsed:.2g} s"
        fine.data.attrs["averages"] += ", given each component"
        # numerical error and error of the orders left out: added, since in one difference they might cancel
        numbers, equations = differences(fine, rough), differences(rough, other)
        # twice, since halving steps this long may only halve the error, which is then as large as the difference
        found = Stated(fine, {name: 2 * numbers[name] + equations[name] for name in numbers})
        yield found
        better = how.finer() if isinstance(how, LossQuadrature) else None
        if better is not None:
            how = better
        elif found.reached > goal.accept >= Stated(fine, equations).reached and stride > 0.5**HALVINGS:
            stride /= 2
        else:
            return
