"""Algorithm 1 of the paper, literally and for many runs at once, on the problem of `mean_field`.

All random numbers are drawn first: G_y (n, T), H_y (m/2, T), W_y and Γ_y (T, T) for both classes. Weights Θ (n, T) and
duals Ω (m, T) begin as those of mean-field theory. A pass takes the kernels of (6), (13) and (14) from Θ and Ω, and
runs the dynamics (12) once with these. What does not change any more is the alternative process ψ of Theorem 1.

>>> from overlaps.papers.comparison.model import problem
>>> passes = Passes(Limit.of(problem(steps=2)), samples=20, runs=3, seed=0)
>>> begin = passes.begin()
>>> once = passes(begin)
>>> bool(np.allclose(passes(once).error[:, 0], once.error[:, 0]))  # the first step is right after one pass
True
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import loops
from .mean_field import RHO, Limit, upper_root

Array = NDArray[np.float64]
SIGMA = 1e-3  # keeps kernels of slow training from being singular; results change by its square


class State(NamedTuple):
    """Θ (runs, n, T), Ω (runs, 2, m/2, T) and the training error (runs, T)."""

    theta: Array
    omega: Array
    error: Array


class Passes:
    """Random numbers of `runs` runs with m = `samples`, and what a pass does with them."""

    def __init__(self, limit: Limit, samples: int, runs: int, seed: int, z: float = 0.0) -> None:
        rng, T, n = np.random.default_rng(seed), limit.T, round(limit.gamma * samples)
        self.limit, self.m, self.z = limit, samples, z
        self.G = rng.standard_normal((runs, 2, n, T))
        self.H = rng.standard_normal((runs, 2, round(RHO * samples), T))
        self.W, self.Gamma = rng.standard_normal((2, runs, 2, T, T))
        self.x = np.zeros((3, n))
        self.x[:, :3] = np.linalg.cholesky(limit.gram)

    def begin(self) -> State:
        """Mean-field theory: (26) to (30) with the kernels of the limit."""
        limit = self.limit
        alpha = np.linalg.solve(limit.gram[:2, :2], -limit.beta)  # α̃ of the classes, as the start is orthogonal to them
        tilde = np.concatenate([alpha, limit.sources(np.zeros_like(limit.beta))[2:]])
        theta = -self.x.T @ tilde - (self.G @ limit.A_omega).sum(1) @ limit.noise / np.sqrt(self.m)
        B = np.broadcast_to(limit.B_omega, (1, 2, limit.T, limit.T))
        return State(theta, *self._samples(limit.beta, self.H @ limit.A_theta, B))

    def __call__(self, at: State) -> State:
        """One pass."""
        limit, m, T = self.limit, self.m, self.limit.T
        turned = at.omega.swapaxes(2, 3)
        A_theta = upper_root(at.theta.swapaxes(1, 2) @ at.theta + SIGMA**2 * np.eye(T))[:, None]
        A_omega = upper_root(turned @ at.omega / m + SIGMA**2 * np.eye(T))
        noise = (SIGMA * self.W + self.z * self.Gamma @ A_omega) / np.sqrt(m)
        B_theta = np.linalg.solve(A_theta, np.triu(self.H.swapaxes(2, 3) @ at.omega / m + noise)).sum(1)
        other = SIGMA * self.W.swapaxes(2, 3) + self.z * self.Gamma.swapaxes(2, 3) @ A_theta
        C = (self.G.swapaxes(2, 3) @ at.theta[:, None] + other) / np.sqrt(m)
        B_omega = np.linalg.solve(A_omega, np.triu(C, 1))
        e = self.x[:2].T @ (at.omega.sum(2) / m)
        pushed = (e + (self.G @ A_omega).sum(1) / np.sqrt(m)) @ limit.history
        right = self.x[2][:, None] * limit.first - pushed
        back = np.eye(T) + B_theta @ limit.history
        theta = np.linalg.solve(back.swapaxes(1, 2), right.swapaxes(1, 2)).swapaxes(1, 2)
        beta = self.x[:2] @ at.theta
        return State(theta, *self._samples(beta[:, :, None], self.H @ A_theta, B_omega))

    def _samples(self, beta: Array, h: Array, B: Array) -> tuple[Array, Array]:
        """Ω and the training error, from β, h̃ (runs, 2, m/2, T) and B_ω (runs or 1, 2, T, T)."""
        limit = self.limit
        p = (beta if beta.ndim == 4 else beta[:, None]) + h
        omega, error = np.zeros_like(p), np.zeros((len(p), limit.T))
        for l in range(limit.T):
            p[..., l] += (omega[..., :l] @ B[..., :l, l, None])[..., 0]
            for y in (0, 1):
                omega[:, y, :, l], loss = loops.dual(p[:, y, :, l], float(y), limit.activation, limit.loss)
                error[:, l] += loss.sum(1) / self.m
        return omega, error
