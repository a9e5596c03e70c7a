"""Mean-field kernels in the paper's notation, and the scalar process (30) on fresh random numbers.

From a solved problem: V_θ, V_ω(y), B_θ(y) and B_ω, Λ̃ of (28) by its closed form, and α̃ on Y* = {0, 1, *} with * for the
start. Everything else is taken here, so that equations can be tested: Cholesky factors, paths, their averages.

>>> from overlaps.papers.comparison.model import problem
>>> limit = Limit.of(problem(steps=3))
>>> bool(np.allclose(limit.noise, -limit.B_omega / limit.gamma, atol=1e-6))  # (32)
True
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import qmc

import overlaps as ov

from . import loops
from .model import LENGTH, start

Array = NDArray[np.float64]
RHO = 0.5


def upper_root(V: Array) -> Array:
    """Upper triangular A with Aᵀ A = V, (..., T, T)."""
    return np.linalg.cholesky(V).astype(float).swapaxes(-1, -2)


@dataclass(frozen=True, eq=False)
class Limit:
    """Kernels over T steps; classes y = 0, 1, sources 0, 1 and *.

    history, first: Λ (T, T) and λ (T,) of the method. gram: ν on Y*, (3, 3).
    V_theta, B_omega: (T, T). V_omega, B_theta: (2, T, T). beta: (2, T).
    """

    activation: str
    loss: str
    gamma: float
    history: Array
    first: Array
    gram: Array
    V_theta: Array
    V_omega: Array
    B_theta: Array
    B_omega: Array
    beta: Array

    @classmethod
    def of(cls, task: ov.Problem, accuracy: float = 1e-3) -> Limit:
        """Solve a problem."""
        algorithm, student = task.algorithm, task.student
        assert isinstance(algorithm, ov.FullBatch) and isinstance(student, ov.Committee) and isinstance(task.loss, str)
        data = ov.solve(task, start(task, 1000), accuracy=accuracy).data.isel(run=0, student=0, student_=0)
        gram = np.zeros((3, 3))
        gram[:2, :2], gram[2, 2] = data["gram"].values, LENGTH**2
        one = data.isel(component=0)  # V_θ and B_ω are the same for both
        return cls(
            activation=student.g.name,
            loss=task.loss,
            gamma=algorithm.ratio,
            history=algorithm.history,
            first=algorithm.kernels[0],
            gram=gram,
            V_theta=one["V_theta"].values,
            V_omega=data["V_omega"].values,
            B_theta=data["B_theta"].values,
            B_omega=one["B_omega"].values,
            beta=data["m"].values.T,
        )

    @property
    def T(self) -> int:
        return len(self.first)

    @property
    def A_theta(self) -> Array:
        """Upper triangular, A_θᵀ A_θ = V_θ."""
        return upper_root(self.V_theta)

    @property
    def A_omega(self) -> Array:
        """(2, T, T)."""
        return upper_root(self.V_omega)

    @property
    def noise(self) -> Array:
        """Λ̃ = (1 + Λ B_θ)⁻¹ Λ of (28)."""
        return np.linalg.solve(np.eye(self.T) + self.history @ self.B_theta.sum(0), self.history)

    def sources(self, alpha: Array) -> Array:
        """α̃ᵀ(y) = αᵀ(y) (1 + Λ B_θ)⁻¹ Λ and α̃(*) = −λ̃, λ̃ᵀ = λᵀ (1 + B_θ Λ)⁻¹, of (28), (3, T), from α (2, T)."""
        back = np.eye(self.T) + self.B_theta.sum(0) @ self.history
        return np.concatenate([alpha @ self.noise, -np.linalg.solve(back.T, self.first)[None]])

    def omega(self, h: Array, y: int) -> Array:
        """ω (n, T) of the process (30) for class y, with h̃ = h A_θ, h (n, T)."""
        p = self.beta[y] + h @ self.A_theta
        out = np.zeros_like(p)
        for l in range(self.T):
            p[:, l] += out[:, :l] @ self.B_omega[:l, l]
            out[:, l] = loops.dual(p[:, l], float(y), self.activation, self.loss)[0]
        return out

    def averages(self, log2: int = 15, seed: int = 0) -> tuple[Array, Array, Array]:
        """(31) and C_ω of (32): α (2, T), V_ω (2, T, T) and ρ E[h ωᵀ] (2, T, T) over fresh paths."""
        half = qmc.MultivariateNormalQMC(np.zeros(self.T), rng=np.random.default_rng(seed)).random(2**log2)
        h = np.concatenate([half, -half])
        omegas = [self.omega(h, y) for y in (0, 1)]
        alpha = np.array([RHO * omega.mean(0) for omega in omegas])
        V = np.array([RHO * omega.T @ omega / len(h) for omega in omegas])
        return alpha, V, np.array([RHO * h.T @ omega / len(h) for omega in omegas])

    def again(self, alpha: Array, V_omega: Array) -> tuple[Array, Array]:
        """V_θ (T, T) and β (2, T) by (29)."""
        tilde, noise = self.sources(alpha), self.noise
        V = tilde.T @ self.gram @ tilde + self.gamma * noise.T @ V_omega.sum(0) @ noise
        return V, -self.gram[:2] @ tilde
