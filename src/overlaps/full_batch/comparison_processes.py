"""The alternative process ψ of the comparison theorem, and the perturbed process φ′ with which it is equal in law.

Columns Θ (N, D) and duals Ω (m, D) are those of `overlaps.full_batch.task`, in blocks: teachers, then one per step. For
component c, of covariance R and samples Ω_c, let A_θ and A_ω be upper triangular with

    A_θᵀ A_θ = Θᵀ R Θ + σ²        A_ωᵀ A_ω = Ω_cᵀ Ω_c/m + σ²

and G (N, D), H (m_c, D), W and Γ (D, D) standard normal. The means add X̂ Ω/m and X̂ᵀ Θ to both processes. ψ answers

    Q = Σ_c R^{1/2} G A_ω/√m + Σ_c R Θ A_θ⁻¹ (Hᵀ Ω_c/m + (σ W + z Γ A_ω)/√m)_u
    P_c = H A_θ + Ω_c A_ω⁻¹ ((Gᵀ R^{1/2} Θ + σ Wᵀ + z Γᵀ A_θ)/√m)_U

where (·)_u keeps the blocks on and above the diagonal and (·)_U those above it, so that an answer needs earlier columns
alone. φ′ is training on a true data matrix X = X̂ + X̃, with noise: U (N, D) of each component and V (m, D) standard
normal,

    Q = X̃ Ω/m + σ Σ_c R^{1/2} U/√m + √((1 + z²)/m) Σ_c R Θ A_θ⁻¹ (Γ A_ω)_u
    P_c = X̃_cᵀ Θ + σ V_c + √((1 + z²)/m) Ω_c A_ω⁻¹ (Γᵀ A_θ)_U

The theorem: for every σ > 0 and real z the two are equal in law, at any size. At σ = 0 and z² = −1, φ′ would be
training itself (`overlaps.full_batch.continuation`). A run of ψ costs O((C N + m) D²) for C components, and O(C D³) a
step to factor.

Reference: A. Panahi, arXiv:2603.09310 (2026), equations (8) and (9).
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..interface.checks import checked, number
from ..interface.errors import InputError, NumericalError
from ..problem.start import Start, check
from ..problem.statement import Problem
from ..trajectory.dataset import Trajectory
from .data_matrices import ExplicitDataMatrix, Means
from .repeated_runs import LARGEST, Process, simulate, task_at_size
from .task import FullBatchTask

Array = NDArray[np.float64]
LOST = 1e-11  # relative variance of a new column below which a Gram matrix counts as singular


class WeightsAndDuals:
    """Θ (runs, N, D), Ω (runs, m, D), and A_θ and A_ω (runs, components, D, D), for the columns so far."""

    def __init__(self, scale: str, task: FullBatchTask, runs: int, sigma: float) -> None:
        self.scale, self.sigma, self.means = scale, sigma, Means(task)
        self.m = self.means.samples
        self.r = task.covariances[:, self.means.level]  # (components, N)
        self.rows = [slice(a, b) for a, b in zip(self.means.ends[:-1], self.means.ends[1:], strict=True)]
        self.theta, self.omega = np.zeros((runs, self.r.shape[1], 0)), np.zeros((runs, self.m, 0))
        self.V_theta = self.V_omega = self.A_theta = self.A_omega = np.zeros((runs, len(self.r), 0, 0))
        self.step = -2  # the first block is that of the teachers, step −1

    def add_weights(self, theta: Array) -> slice:
        """Add a block of columns θ; returns their positions."""
        self.step += 1
        self.theta = np.concatenate([self.theta, theta], axis=2)
        new = np.swapaxes(self.theta, 1, 2)[:, None] @ (self.r[:, :, None] * theta[:, None])
        self.V_theta = self._extended(self.V_theta, new)
        self.A_theta = self._factor("V_theta", self.V_theta)
        return slice(self.omega.shape[2], self.theta.shape[2])

    def add_duals(self, omega: Array) -> slice:
        """Add the duals ω of that block."""
        new = slice(self.omega.shape[2], self.theta.shape[2])
        self.omega = np.concatenate([self.omega, omega], axis=2)
        V = self._extended(self.V_omega, self.within(self.omega, omega) / self.m)
        if self.sigma == 0 and self.step < 0:
            V += np.eye(V.shape[2])  # teachers have no duals: their part of A_ω multiplies zeros, whatever it is
        self.V_omega = V
        self.A_omega = self._factor("V_omega", V)
        return new

    def within(self, x: Array, y: Array) -> Array:
        """x_cᵀ y_c over the samples of each component, (runs, components, j, k), of x (runs, m, j), y (runs, m, k)."""
        return np.stack([np.swapaxes(x[:, at], 1, 2) @ y[:, at] for at in self.rows], axis=1)

    def along_theta(self, C: Array) -> Array:
        """Σ_c R_c Θ A_θ(c)⁻¹ C(c), (runs, N, k), of C (runs, components, D, k)."""
        B = np.linalg.solve(self.A_theta, C)
        return np.einsum("cn,rcnk->rnk", self.r, self.theta[:, None] @ B)

    def along_omega(self, C: Array) -> Array:
        """Ω_c A_ω(c)⁻¹ C(c), (runs, m, k)."""
        B = np.linalg.solve(self.A_omega, C)
        return np.concatenate([self.omega[:, at] @ B[:, c] for c, at in enumerate(self.rows)], axis=1)

    def _extended(self, V: Array, new: Array) -> Array:
        """V with a new block of columns, of which those without σ² are given, (runs, components, D, k)."""
        done, stop = V.shape[3], new.shape[2]
        out = np.zeros((*V.shape[:2], stop, stop))
        out[..., :done, :done] = V
        out[..., :, done:] = new
        out[..., done:, :] = np.swapaxes(new, 2, 3)
        out[..., range(done, stop), range(done, stop)] += self.sigma**2
        return out

    def _factor(self, name: str, V: Array) -> Array:
        """Upper-triangular A with Aᵀ A = V, of every run and component."""
        if not np.isfinite(V).all():
            return np.full_like(V, np.nan)  # training diverged, which is noticed by its overlaps
        A = np.zeros_like(V)
        with suppress(np.linalg.LinAlgError):
            A[:] = np.linalg.cholesky(V, upper=True)
        pivots = np.diagonal(A, axis1=2, axis2=3) ** 2
        if not (pivots > LOST * np.diagonal(V, axis1=2, axis2=3)).all():
            what = "weights" if name == "V_theta" else "duals"
            raise NumericalError(
                f"{self.scale}: {name} is singular at step {max(self.step, 0)}: {what} are zero, or combinations of "
                f"others; use sigma > 0, such as {max(1e-3, 10 * self.sigma):g} (now {self.sigma:g})",
                quantity=name,
                time=float(max(self.step, 0)),
            )
        return A


class Alternative:
    """ψ of a bundle of runs, in place of a data matrix (`overlaps.full_batch.data_matrices`)."""

    def __init__(self, task: FullBatchTask, runs: int, rng: np.random.Generator, sigma: float, z: float) -> None:
        self.columns = WeightsAndDuals("alternative", task, runs, sigma)
        self.rng, self.sigma, self.z = rng, sigma, z
        C, N = self.columns.r.shape
        self.roots = np.sqrt(self.columns.r)[:, :, None]
        self.G, self.H = np.zeros((runs, C, N, 0)), np.zeros((runs, self.columns.m, 0))  # R^{1/2} G, and H
        self.W, self.Gamma = (rng.standard_normal((runs, C, task.D, task.D)) for _ in range(2))

    def fields(self, theta: Array) -> Array:
        f = self.columns
        new = f.add_weights(theta)
        done, stop = new.start, new.stop
        self.H = np.concatenate([self.H, self.rng.standard_normal((len(theta), f.m, stop - done))], axis=2)
        C = np.swapaxes(self.G, 2, 3) @ theta[:, None]
        C += self.sigma * np.swapaxes(self.W[..., new, :done], 2, 3)
        C += self.z * np.swapaxes(self.Gamma[..., :stop, :done], 2, 3) @ f.A_theta[..., new]
        out = f.means.fields(theta) + f.along_omega(C / np.sqrt(f.m))
        for c, at in enumerate(f.rows):
            out[:, at] += self.H[:, at] @ f.A_theta[:, c, :, new]
        return out

    def gradient(self, omega: Array) -> Array:
        f = self.columns
        new = f.add_duals(omega)
        stop = new.stop
        new_noise = self.rng.standard_normal((len(omega), *self.roots.shape[:2], stop - new.start))
        self.G = np.concatenate([self.G, self.roots * new_noise], axis=3)
        noise = self.sigma * self.W[..., :stop, new] + self.z * self.Gamma[..., :stop, :stop] @ f.A_omega[..., new]
        C = f.within(self.H, omega) / f.m + noise / np.sqrt(f.m)
        own = (self.G @ f.A_omega[..., new]).sum(1)
        return f.means.gradient(omega) + own / np.sqrt(f.m) + f.along_theta(C)


class Perturbed:
    """φ′ of a bundle of runs: a data matrix whose answers are perturbed."""

    def __init__(self, task: FullBatchTask, runs: int, rng: np.random.Generator, sigma: float, z: float) -> None:
        self.columns = WeightsAndDuals("perturbed", task, runs, sigma)
        self.X = ExplicitDataMatrix(task, runs, rng)
        self.rng, self.sigma = rng, sigma
        self.strength = np.hypot(1, z) / np.sqrt(self.columns.m)
        self.spread = sigma * np.sqrt(self.columns.r.sum(0) / self.columns.m)[:, None]
        self.Gamma = rng.standard_normal((runs, len(self.columns.r), task.D, task.D))

    def fields(self, theta: Array) -> Array:
        f = self.columns
        new = f.add_weights(theta)
        C = np.swapaxes(self.Gamma[..., : new.stop, : new.start], 2, 3) @ f.A_theta[..., new]
        out = self.X.fields(theta) + self.strength * f.along_omega(C)
        return out + self.sigma * self.rng.standard_normal(out.shape)

    def gradient(self, omega: Array) -> Array:
        f = self.columns
        new = f.add_duals(omega)
        C = self.Gamma[..., : new.stop, : new.stop] @ f.A_omega[..., new]
        out = self.X.gradient(omega) + self.strength * f.along_theta(C)
        return out + self.spread * self.rng.standard_normal(out.shape)


def constants(sigma: float, z: float) -> tuple[float, float]:
    """σ and z, checked."""
    sigma = number("sigma", sigma, least=0)
    if sigma > 1e100:
        raise InputError(f"sigma: its square must be finite, as must what it is added to; got {sigma:g}")
    return sigma, number("z", z)


def numbers(kind: type[Alternative] | type[Perturbed], task: FullBatchTask) -> int:
    """Numbers that a run of a process holds, for the size of bundles of runs."""
    assert task.start.size is not None
    N, m, D, C = task.start.size, task.samples, task.D, len(task.weights)
    own = N * m if kind is Perturbed else C * N * D
    return own + 3 * (N + m) * D + 6 * C * D**2


@checked
def alternative(
    problem: Problem, start: Start, times: ArrayLike | None = None, runs: int = 100, seed: int = 0, *,
    sigma: float = 1e-3, z: float = 0.0, progress: bool = True,
) -> Trajectory:  # fmt: skip
    """Independent runs of the alternative process ψ of the comparison theorem, equal in law to `perturbed`.

    Parameters
    ----------
    problem, start: a problem with `FullBatch` and a start with weights, as for `train`.
    times: whole steps, all by default.
    runs, seed: number of independent runs; the same seed gives the same bits.
    sigma, z: constants of the process; sigma = 0 is possible as long as no weights, and no duals of a component, are
        linear combinations of others (those of a `Softmax` are).
    """
    return _run(Alternative, "alternative", problem, start, times, runs, seed, sigma, z, progress)


@checked
def perturbed(
    problem: Problem, start: Start, times: ArrayLike | None = None, runs: int = 100, seed: int = 0, *,
    sigma: float = 1e-3, z: float = 0.0, progress: bool = True,
) -> Trajectory:  # fmt: skip
    """Independent runs of training on data matrices with the noise of the comparison theorem, the process φ′.

    Parameters as in `alternative`, with which it is equal in law.
    """
    return _run(Perturbed, "perturbed", problem, start, times, runs, seed, sigma, z, progress)


def _run(
    kind: type[Alternative] | type[Perturbed], scale: str, problem: Problem, start: Start, times: ArrayLike | None,
    runs: int, seed: int, sigma: float, z: float, progress: bool,
) -> Trajectory:  # fmt: skip
    check(problem, start)
    sigma, z = constants(sigma, z)
    task = task_at_size(problem, start, scale, times)
    assert start.size is not None
    if kind is Perturbed and start.size * task.samples > LARGEST:
        raise InputError(
            f"size: a data matrix of {start.size} x {task.samples} is {start.size * task.samples * 8e-9:.0f} GB; "
            "use alternative, which has the same law and forms no matrix"
        )
    process = Process(scale, lambda task, runs, rng: kind(task, runs, rng, sigma, z), numbers(kind, task))
    return simulate(process, task, times, runs, seed, levels=False, kernels=False, progress=progress)
