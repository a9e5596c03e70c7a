"""Mean-field kernels of full-batch training, in one forward sweep over its steps.

In the limit N, m → ∞ at a fixed ratio, samples become independent of each other and so do the input dimensions within a
level g. A sample of component c sees, in column a (`overlaps.full_batch.setting`; b before a),

    p(a) = β(a) + h̃(a) + Σ_b ω(b) B_ω(b, a),    h̃ ~ N(0, V_θ),    ω = ∂loss/∂p,

and the weights of level g are, with B_g = Σ_c r_g(c) B_θ(c) and g̃ ~ N(0, Σ_c r_g(c) V_ω(c)) in each dimension,

    Θ_g = S_g τ_g − m^{−1/2} g̃ Λ̃_g,    Λ̃_g = Λ (1 + B_g Λ)⁻¹,    τ_g = (C − (α Λ in the rows of means)) (1 + B_g Λ)⁻¹.

The kernels close the loop; ν_g is the Gram matrix of the sources S_g and ρ the share of the component:

    V_θ(c) = Σ_g r_g(c) [τ_gᵀ ν_g τ_g + (n_g/m) Λ̃_gᵀ (Σ_c' r_g(c') V_ω(c')) Λ̃_g]      β(c) = Σ_g ν_g(mean c, ·) τ_g
    V_ω(c) = ρ E[ω ωᵀ]     α(c) = ρ E[ω]     B_ω(c) = −Σ_g (n_g/m) r_g(c) Λ̃_g     B_θ(c) = ρ E[∂ω/∂h̃] = A⁻¹ ρ E[h ωᵀ]

with h̃ = h A, V_θ = Aᵀ A, h standard normal. Column a needs columns before a alone, so nothing is iterated. The last
form of B_θ, by Stein's lemma, needs no derivative of ω and holds for losses with kinks.

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
from scipy.linalg import get_lapack_funcs

from ..problem.start import LIMIT
from .setting import Setting

Array = NDArray[np.float64]
(TRIANGULAR,) = get_lapack_funcs(("trtrs",), dtype=np.float64)  # solve_triangular checks longer than it solves
ADDED = 1e-8  # relative variance added to V_θ: large beside rounding, small beside any error of sampling


@dataclass(frozen=True, eq=False)
class Kernels:
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
    def empty(cls, setting: Setting) -> Kernels:
        C, G, S, D = len(setting.weights), len(setting.gram), setting.gram.shape[-1], setting.D
        T, K = setting.T, setting.K
        square = (C, D, D)
        shapes = [(G, S, D), (G, D, D), (C, D), (C, D), *[square] * 5, (C, T), (T, G, K, K), (T, G, K, S - K)]
        return cls(*(np.zeros(shape) for shape in shapes))


class Diverged(Exception):
    """An overlap left the bounds at a step; the kernels hold what came before."""

    def __init__(self, kernels: Kernels, step: int, size: float) -> None:
        super().__init__(step)
        self.kernels, self.step, self.size = kernels, step, size


class Singular(Exception):
    """V_θ lost its factor to rounding at a step; the kernels hold what came before."""

    def __init__(self, kernels: Kernels, step: int) -> None:
        super().__init__(step)
        self.kernels, self.step = kernels, step


class Factor:
    """Upper-triangular A with Aᵀ A = V, grown by columns.

    added: relative variance that V gets in every column, so that each has a direction of its own; columns without any
    variance have none and are not `kept`.
    """

    def __init__(self, A: Array, added: float = ADDED) -> None:
        self.A, self.added, self.kept = A, added, np.flatnonzero(np.diag(A))

    def extend(self, V: Array, columns: slice) -> None:
        """Factor the new `columns` of V; a `LinAlgError` where its rounding has become larger than what is added."""
        for j in range(columns.start, columns.stop):
            if not V[j, j] > 0:
                continue
            kept = self.kept
            a = TRIANGULAR(self.A[np.ix_(kept, kept)], V[kept, j], trans=1)[0] if kept.size else np.zeros(0)
            pivot = V[j, j] * (1 + self.added) - a @ a
            if not pivot > 0:
                raise np.linalg.LinAlgError
            self.A[kept, j] = a
            self.A[j, j] = np.sqrt(pivot)
            self.kept = np.append(kept, j)

    def solve(self, C: Array, trans: int = 0) -> Array:
        """B with A B = C or, with trans = 1, Aᵀ B = C, for as many rows; zero where a direction was lost."""
        kept, B = self.kept[self.kept < len(C)], np.zeros_like(C)
        if kept.size:
            B[kept] = TRIANGULAR(self.A[np.ix_(kept, kept)], C[kept], trans=trans)[0].reshape(C[kept].shape)
        return B

    def orthonormal(self, X: Array, Y: Array, columns: slice) -> None:
        """New columns of Y = X A⁻¹, (..., D), from those of X; zero where there is no direction."""
        for j in range(columns.start, columns.stop):
            if self.A[j, j] > 0:
                Y[..., j] = (X[..., j] - Y[..., :j] @ self.A[:j, j]) / self.A[j, j]


class Paths:
    """The samples of one component, as a weighted set of points: fields, duals and, on request, their responses.

    h: standard normal variables of the columns, (n, D), and of the noise of the target in the last of D + 1 columns,
    where there is any. weights: (n,), with sum one. followed: of how many points, the first, responses are followed.
    batch: leading axes of what is found, for kernels that differ while the points are the same; weights may have them.
    """

    def __init__(
        self, setting: Setting, component: int, h: Array, weights: Array, followed: int, batch: tuple[int, ...] = ()
    ) -> None:
        self.setting, self.weights = setting, weights
        self.h = h[:, : setting.D]
        self.omega = np.zeros((*batch, *self.h.shape))
        self.nu = np.zeros((*batch, len(h), setting.M))
        self.labels = np.full(self.nu.shape[:-1], setting.labels[component])
        scale = setting.problem.label_noise
        self.noise = np.zeros(self.labels.shape)
        if scale:
            self.noise += scale * h[:, -1]
        self.losses = np.zeros((*batch, len(h), setting.T))
        self.followed = followed
        self.response = np.zeros((*batch, setting.D, followed, setting.D)) if followed else None

    def take(self, columns: slice, fields: Array, B_omega: Array) -> Array:
        """Duals of new columns, from the fields (n, k) without memory and the kernel of it; returns the mean loss."""
        done, stop = columns.start, columns.stop
        p = fields + self.omega[..., :done] @ B_omega[..., :done, columns]
        if stop <= self.setting.M:
            self.nu[..., columns] = p
            return np.zeros(p.shape[:-2])
        K, M = self.setting.K, self.setting.M
        nu = self.nu.reshape(self.labels.size, M)
        delta, loss = self.setting.duals(p.reshape(-1, K), nu, self.labels.ravel(), self.noise.ravel())
        loss = loss.reshape(p.shape[:-1])
        self.omega[..., columns] = delta.reshape(p.shape)
        self.losses[..., (columns.start - M) // K] = loss
        if self.response is not None:
            self._respond(columns, p, B_omega)
        return (self.weights * loss).sum(-1)

    def _respond(self, columns: slice, p: Array, B_omega: Array) -> None:
        """∂ω(columns)/∂h̃, by the chain rule through the duals before."""
        assert self.response is not None
        setting, done, stop = self.setting, columns.start, columns.stop
        *batch, D, n, _ = self.response.shape
        before = self.response.reshape(*batch, D, n * D)[..., :done, :]
        moved = (B_omega[..., :done, columns].swapaxes(-1, -2) @ before).reshape(*batch, stop - done, n, D)
        for k, column in enumerate(range(done, stop)):
            moved[..., k, :, column] += 1.0
        K, M = setting.K, setting.M
        labels, noise = self.labels[..., :n].ravel(), self.noise[..., :n].ravel()
        nu = self.nu[..., :n, :].reshape(labels.size, M)
        students, teachers = setting.slopes(p[..., :n, :].reshape(-1, K), nu, labels, noise)
        slopes = students.reshape(*batch, n, K, K)
        self.response[..., columns, :, :] = np.einsum("...nkj,...jnb->...knb", slopes, moved)
        self.response[..., columns, :, :M] += teachers.reshape(*batch, n, K, M).swapaxes(-3, -2)

    def moments(self, columns: slice) -> tuple[Array, Array]:
        """E[ω] (k,) and E[ω ωᵀ] (stop, k) of the columns, with all up to them."""
        weighted = self.weights[..., None] * self.omega[..., columns]
        return weighted.sum(-2), self.omega[..., : columns.stop].swapaxes(-1, -2) @ weighted

    def stein(self, columns: slice) -> Array:
        """E[h ωᵀ], (stop, k)."""
        return self.h[:, : columns.stop].T @ (self.weights[:, None] * self.omega[:, columns])

    def responses(self, columns: slice) -> Array:
        """E[∂ω/∂h̃], (stop, k)."""
        assert self.response is not None
        weights = self.weights[: self.followed] / self.weights[: self.followed].sum()
        return (weights @ self.response[..., columns, :, : columns.stop]).swapaxes(-1, -2)


class Feedback:
    """Θ B_g = Σ_c r_g(c) Θ B_θ(c), on the coordinates X = τ or Λ̃ of Θ (levels, ·, D): by responses, or Stein's form."""

    def __init__(self, setting: Setting, kernels: Kernels, factors: list[Factor], stein: bool) -> None:
        self.setting, self.factors = setting, factors
        self.moments = np.zeros_like(kernels.B_theta)  # ρ E[h ωᵀ], where B_θ itself is not used
        self.B = np.zeros_like(kernels.propagator)
        self.pairs = [
            (X, np.zeros((len(factors), *X.shape))) for X in (kernels.tau, kernels.propagator)
        ] if stein else []  # fmt: skip
        self.kernels = kernels

    def extend(self, columns: slice) -> None:
        """Take in new columns, after everything is known of them."""
        for X, Y in self.pairs:
            for c, factor in enumerate(self.factors):
                factor.orthonormal(X, Y[c], columns)
        self.B[:, :, columns] = np.einsum("cg,cak->gak", self.setting.covariances, self.kernels.B_theta[:, :, columns])

    def __call__(self, columns: slice) -> tuple[Array, Array]:
        """τ B_g Λ and Λ̃ B_g Λ in new columns, (levels, ·, k)."""
        done = slice(0, columns.start)
        history = self.setting.history[done, columns]
        if not self.pairs:
            back = self.B[:, done, done] @ history
            return self.kernels.tau[:, :, done] @ back, self.kernels.propagator[:, :, done] @ back
        r, moments = self.setting.covariances, self.moments[:, done, done] @ history
        tau, propagator = (
            np.einsum("cg,cgsa,cak->gsk", r, Y[..., done], moments, optimize=True) for _, Y in self.pairs
        )
        return tau, propagator


def sweep(setting: Setting, h: Array, *, followed: int, added: float = ADDED) -> Kernels:
    """Kernels of all steps, with averages over the points h (n, D) or (n, D + 1).

    followed: number of points of which responses are followed; zero for Stein's form.
    added: relative variance of the noise that is added to the fields, so that V_θ is never singular.
    """
    kernels = Kernels.empty(setting)
    weights = np.full(len(h), 1 / len(h))
    paths = [Paths(setting, c, h, weights, followed) for c in range(len(setting.weights))]
    factors = [Factor(A, added=added) for A in kernels.A]
    feedback = Feedback(setting, kernels, factors, stein=not followed)
    r, rho, share = setting.covariances, setting.weights, setting.shares
    V = np.zeros_like(kernels.propagator)  # Σ_c r_g(c) V_ω(c)
    for l in range(-1 if setting.M else 0, setting.T):
        columns = setting.block(l)
        propagate(setting, kernels, feedback(columns), columns)
        overlaps(setting, kernels, V, columns)
        if l >= 0:
            keep_overlaps(setting, kernels, V, l)
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
            loss = path.take(columns, fields, kernels.B_omega[c])
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
        feedback.extend(columns)
        V[:, :stop, columns] = np.einsum("cg,cak->gak", r, kernels.V_omega[:, :stop, columns])
        V[:, columns, :stop] = V[:, :stop, columns].transpose(0, 2, 1)
    if not followed:
        for c, factor in enumerate(factors):
            kernels.B_theta[c] = factor.solve(feedback.moments[c])
    return kernels


def propagate(setting: Setting, kernels: Kernels, back: tuple[Array, Array], columns: slice) -> None:
    """Columns of τ and Λ̃, from α before them and what comes `back` through B_g."""
    done = slice(0, columns.start)
    history = setting.history[done, columns]
    pushed = np.zeros((setting.gram.shape[-1], history.shape[1]))
    if setting.problem.data.has_means:
        pushed[setting.K + setting.M :] = kernels.alpha[:, done] @ history
    kernels.tau[:, :, columns] = setting.first[:, columns] - pushed - back[0]
    kernels.propagator[:, :, columns] = setting.history[:, columns] - back[1]


def overlaps(setting: Setting, kernels: Kernels, V: Array, columns: slice) -> None:
    """Columns of V_θ and β, from V = Σ_c r_g(c) V_ω(c) before them."""
    stop = columns.stop
    gram = by_level(setting, kernels, V, slice(0, stop), columns)
    new = np.einsum("cg,gak->cak", setting.covariances, gram)
    kernels.V_theta[:, :stop, columns] = new
    kernels.V_theta[:, columns, :stop] = new.transpose(0, 2, 1)
    if setting.problem.data.has_means:
        means = setting.gram[:, setting.K + setting.M :]
        kernels.beta[:, columns] = np.einsum("gcs,gsk->ck", means, kernels.tau[:, :, columns])


def by_level(setting: Setting, kernels: Kernels, V: Array, rows: slice, columns: slice) -> Array:
    """Inner products Θ_gᵀ Θ_g of columns of weights, (levels, rows, columns)."""
    tau, propagator = kernels.tau, kernels.propagator
    sources = tau[:, :, rows].transpose(0, 2, 1) @ setting.gram @ tau[:, :, columns]
    noise = propagator[:, :, rows].transpose(0, 2, 1) @ V @ propagator[:, :, columns]
    return sources + setting.shares[:, None, None] * noise


def keep_overlaps(setting: Setting, kernels: Kernels, V: Array, step: int) -> None:
    """Q and F of a step."""
    columns = setting.block(step)
    kernels.Q[step] = by_level(setting, kernels, V, columns, columns)
    fixed = setting.gram[:, setting.K :] @ kernels.tau[:, :, columns]
    kernels.F[step] = fixed.transpose(0, 2, 1)
