"""Mean-field kernels of full-batch training, in one forward recursion over its steps.

In the limit N, m → ∞ at a fixed ratio, samples become independent of each other and so do the input dimensions within a
level g. A sample of component c sees, in column a (`overlaps.full_batch.task`; b before a),

    p(a) = β(a) + h̃(a) + Σ_b ω(b) B_ω(b, a),    h̃ ~ N(0, V_θ),    ω = ∂loss/∂p,

and the weights of level g are, with B_g = Σ_c r_g(c) B_θ(c) and g̃ ~ N(0, Σ_c r_g(c) V_ω(c)) in each dimension,

    Θ_g = S_g τ_g − m^{−1/2} g̃ Λ̃_g,    Λ̃_g = Λ (1 + B_g Λ)⁻¹,    τ_g = (C − (α Λ in the rows of means)) (1 + B_g Λ)⁻¹.

The kernels close the loop; ν_g is the Gram matrix of the sources S_g and ρ the share of the component:

    V_θ(c) = Σ_g r_g(c) [τ_gᵀ ν_g τ_g + (n_g/m) Λ̃_gᵀ (Σ_c' r_g(c') V_ω(c')) Λ̃_g]      β(c) = Σ_g ν_g(mean c, ·) τ_g
    V_ω(c) = ρ E[ω ωᵀ]     α(c) = ρ E[ω]     B_ω(c) = −Σ_g (n_g/m) r_g(c) Λ̃_g     B_θ(c) = ρ E[∂ω/∂h̃] = A⁻¹ ρ E[h ωᵀ]

with h̃ = h A, V_θ = Aᵀ A, h standard normal. Column a depends on earlier columns only, so one sweep over the columns
solves the equations and nothing is iterated. The last form of B_θ, by Stein's lemma, needs no derivative of ω and holds
for losses with kinks.

Long histories are nearly linearly dependent: within some ten steps V_θ is singular to rounding. To leave directions out
of A does not work, since later columns are large multiples of what is left out. Instead fields get independent noise of
a relative variance of 10⁻⁸ (σ² in the comparison theorem), and Aᵀ A = V_θ + σ² has a factor at any horizon. Its B_θ by
Stein's lemma has huge entries that cancel in Θ B_θ, and is never used: Θ B_θ = (Θ A⁻¹) ρ E[h ωᵀ] has none, as the
columns of Θ A⁻¹, kept as τ A⁻¹ and Λ̃ A⁻¹, are orthonormal or shorter.

Reference: A. Panahi, arXiv:2603.09310 (2026), equations (26) to (32), as corrected.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..problem.start import LIMIT
from ..trajectory.refinement import Budget
from .paths import Paths, Points
from .task import FullBatchTask
from .triangular_factors import ADDED, TriangularFactor

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class MeanFieldKernels:
    """Kernels of all columns (see the module), and what they say of every step.

    tau (levels, sources, D), propagator (levels, D, D): τ and Λ̃.
    beta, alpha: (components, D).
    V_theta, V_omega, B_theta, B_omega, A: (components, D, D).
    loss: mean loss of the samples of each component, (components, steps).
    Q (steps, levels, K, K), F (steps, levels, K, M+P): overlaps of students and of students with fixed directions.
    """

    tau: Array
    propagator: Array
    beta: Array
    alpha: Array
    V_theta: Array
    V_omega: Array
    B_theta: Array
    B_omega: Array
    A: Array
    loss: Array
    Q: Array
    F: Array

    @classmethod
    def empty(cls, task: FullBatchTask) -> MeanFieldKernels:
        C, G, S, D = len(task.weights), len(task.gram), task.gram.shape[-1], task.D
        T, K = task.T, task.K
        square = (C, D, D)
        shapes = [(G, S, D), (G, D, D), (C, D), (C, D), *[square] * 5, (C, T), (T, G, K, K), (T, G, K, S - K)]
        return cls(*(np.zeros(shape) for shape in shapes))


class Diverged(Exception):
    """An overlap left the bounds at a step; the kernels hold what came before."""

    def __init__(self, kernels: MeanFieldKernels, step: int, size: float) -> None:
        super().__init__(step)
        self.kernels, self.step, self.size = kernels, step, size


class Singular(Exception):
    """Rounding made V_θ indefinite at a step, so it has no Cholesky factor; `kernels` are right up to that step."""

    def __init__(self, kernels: MeanFieldKernels, step: int) -> None:
        super().__init__(step)
        self.kernels, self.step = kernels, step


class Unaffordable(Exception):
    """The budget was spent at a step; `kernels` are right up to that step."""

    def __init__(self, kernels: MeanFieldKernels, step: int) -> None:
        super().__init__(step)
        self.kernels, self.step = kernels, step


class Feedback:
    """Θ B_g = Σ_c r_g(c) Θ B_θ(c), on the coordinates X = τ or Λ̃ of Θ (levels, ·, D): by responses, or Stein's form."""

    def __init__(
        self, task: FullBatchTask, kernels: MeanFieldKernels, factors: list[TriangularFactor], stein: bool
    ) -> None:
        self.task, self.factors = task, factors
        self.moments = np.zeros_like(kernels.B_theta)  # ρ E[h ωᵀ], where B_θ itself is not used
        self.B = np.zeros_like(kernels.propagator)
        self.pairs = [
            (X, np.zeros((len(factors), *X.shape))) for X in (kernels.tau, kernels.propagator)
        ] if stein else []  # fmt: skip
        self.kernels = kernels

    def extend(self, columns: slice) -> None:
        """Add new columns to the memory, once the kernels in these columns have been computed."""
        for X, Y in self.pairs:
            for c, factor in enumerate(self.factors):
                factor.orthonormal(X, Y[c], columns)
        self.B[:, :, columns] = np.einsum("cg,cak->gak", self.task.covariances, self.kernels.B_theta[:, :, columns])

    def __call__(self, columns: slice) -> tuple[Array, Array]:
        """τ B_g Λ and Λ̃ B_g Λ in new columns, (levels, ·, k)."""
        done = slice(0, columns.start)
        history = self.task.history[done, columns]
        if not self.pairs:
            back = self.B[:, done, done] @ history
            return self.kernels.tau[:, :, done] @ back, self.kernels.propagator[:, :, done] @ back
        r, moments = self.task.covariances, self.moments[:, done, done] @ history
        tau, propagator = (
            np.einsum("cg,cgsa,cak->gsk", r, Y[..., done], moments, optimize=True) for _, Y in self.pairs
        )
        return tau, propagator


def solve_recursion(
    task: FullBatchTask, points: Points, *, followed: int, added: float = ADDED, budget: Budget | None = None
) -> MeanFieldKernels:
    """Kernels of all steps, with averages over the points.

    followed: number of points of which responses are followed; zero for Stein's form.
    added: relative variance of the noise that is added to the fields, so that V_θ is never singular.
    budget: each step is one evaluation of it.
    """
    budget = budget or Budget()
    budget.course.begin(task.T)
    kernels = MeanFieldKernels.empty(task)
    h, n = points.h, len(points.h)
    weights = np.full(n, 1 / n)
    paths = [Paths(task, c, points, weights, followed) for c in range(len(task.weights))]
    factors = [TriangularFactor(A, added=added) for A in kernels.A]
    feedback = Feedback(task, kernels, factors, stein=not followed)
    r, rho, share = task.covariances, task.weights, task.shares
    V = np.zeros_like(kernels.propagator)  # Σ_c r_g(c) V_ω(c)
    for l in range(-1 if task.M else 0, task.T):
        if l >= 0:
            budget.course.at(l)
            budget.spend(1)
            if budget.exhausted:
                raise Unaffordable(kernels, l)
        columns = task.block(l)
        propagate(task, kernels, feedback(columns), columns)
        overlaps(task, kernels, V, columns)
        if l >= 0:
            keep_overlaps(task, kernels, V, l)
            size = float(np.abs(kernels.Q[l]).max())
            if not size < LIMIT:
                raise Diverged(kernels, l, size)
        stop = columns.stop
        kernels.B_omega[:, :, columns] = -np.einsum("g,cg,gak->cak", share, r, kernels.propagator[:, :, columns])
        for c, path in enumerate(paths):
            try:
                factors[c].extend(kernels.V_theta[c], columns)
            except np.linalg.LinAlgError:
                raise Singular(kernels, l) from None
            fields = kernels.beta[c, columns] + h[:, :stop] @ kernels.A[c, :stop, columns]
            loss = path.advance(columns, fields, kernels.B_omega[c])
            if l < 0:
                continue
            kernels.loss[c, l] = loss
            first, second = path.moments(columns)
            kernels.alpha[c, columns] = rho[c] * first
            kernels.V_omega[c, :stop, columns] = rho[c] * second
            kernels.V_omega[c, columns, :stop] = rho[c] * second.T
            if followed:
                kernels.B_theta[c, :stop, columns] = rho[c] * path.responses(columns)
            else:
                feedback.moments[c, :stop, columns] = rho[c] * path.stein(columns)
            path.draw_batch(columns)
        feedback.extend(columns)
        V[:, :stop, columns] = np.einsum("cg,cak->gak", r, kernels.V_omega[:, :stop, columns])
        V[:, columns, :stop] = V[:, :stop, columns].transpose(0, 2, 1)
    if not followed:
        for c, factor in enumerate(factors):
            kernels.B_theta[c] = factor.solve(feedback.moments[c])
    return kernels


def propagate(task: FullBatchTask, kernels: MeanFieldKernels, back: tuple[Array, Array], columns: slice) -> None:
    """Compute new columns of τ and Λ̃ from earlier columns of α and from `back`, the products with B_g."""
    done = slice(0, columns.start)
    history = task.history[done, columns]
    pushed = np.zeros((task.gram.shape[-1], history.shape[1]))
    if task.problem.data.has_means:
        pushed[task.K + task.M :] = kernels.alpha[:, done] @ history
    kernels.tau[:, :, columns] = task.first[:, columns] - pushed - back[0]
    kernels.propagator[:, :, columns] = task.history[:, columns] - back[1]


def overlaps(task: FullBatchTask, kernels: MeanFieldKernels, V: Array, columns: slice) -> None:
    """Columns of V_θ and β, from V = Σ_c r_g(c) V_ω(c) before them."""
    stop = columns.stop
    gram = by_level(task, kernels, V, slice(0, stop), columns)
    new = np.einsum("cg,gak->cak", task.covariances, gram)
    kernels.V_theta[:, :stop, columns] = new
    kernels.V_theta[:, columns, :stop] = new.transpose(0, 2, 1)
    if task.problem.data.has_means:
        means = task.gram[:, task.K + task.M :]
        kernels.beta[:, columns] = np.einsum("gcs,gsk->ck", means, kernels.tau[:, :, columns])


def by_level(task: FullBatchTask, kernels: MeanFieldKernels, V: Array, rows: slice, columns: slice) -> Array:
    """Inner products Θ_gᵀ Θ_g of columns of weights, (levels, rows, columns)."""
    tau, propagator = kernels.tau, kernels.propagator
    sources = tau[:, :, rows].transpose(0, 2, 1) @ task.gram @ tau[:, :, columns]
    noise = propagator[:, :, rows].transpose(0, 2, 1) @ V @ propagator[:, :, columns]
    return sources + task.shares[:, None, None] * noise


def keep_overlaps(task: FullBatchTask, kernels: MeanFieldKernels, V: Array, step: int) -> None:
    """Q and F of a step."""
    columns = task.block(step)
    kernels.Q[step] = by_level(task, kernels, V, columns, columns)
    fixed = task.gram[:, task.K :] @ kernels.tau[:, :, columns]
    kernels.F[step] = fixed.transpose(0, 2, 1)
