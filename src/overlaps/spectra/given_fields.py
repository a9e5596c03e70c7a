"""Inputs given the fields that the loss sees, for components with any covariances.

An input of component c is x = μ_c + Σ_c^½ z, and the fields are w x, w the rows of students and teachers. With ξ the q
standard normal variables that the fields are integrated over (those of `overlaps.averages.quadrature`),

    x = μ_c + B_c ξ + y,      B_c = Cov_c(x, ξ),      y ~ N(0, Σ_c − B_c B_cᵀ) independent of ξ,

so that for any weight f of the fields and the component

    E_c[f x xᵀ] = E[f] (μ μᵀ + Σ_c − B Bᵀ) + B E[f ξ] μᵀ + μ E[f ξ]ᵀ Bᵀ + B E[f ξ ξᵀ] Bᵀ.

What the fields do not see, y, makes the bulk of the spectrum. For isotropic noise this is `overlaps.spectra.span`,
which needs overlaps alone; here the weights themselves are needed, and matrices of N x N are made.

>>> import numpy as np
>>> import overlaps as ov
>>> data = ov.GaussianClasses([[0.5, 0.0], [-0.5, 0.0]], [np.diag([1.5, 0.5]), [[1.0, 0.6], [0.6, 1.0]]])
>>> problem = ov.Problem(
...     data=data, student=ov.Softmax(2), loss="cross-entropy", algorithm=ov.OnlineSGD(1.0)
... )
>>> given_fields(problem, ov.draw(problem, size=2)).noise.shape  # one field is seen, so the rank of each is one
(2, 2, 2)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..averages.quadrature import LossQuadrature
from ..interface.errors import InputError
from ..problem.start import Start
from ..problem.statement import Problem

Array = NDArray[np.float64]
LARGEST = 2.5e8  # numbers in matrices of N x N that are held at a time, 2 GB


class GivenComponent(NamedTuple):
    """One component: probability and label, mean μ (N,), B (N, q) and the covariance of y, (N, N).

    Nodes of ξ (points, q), with their weights (points,) and fields (points, K+M).
    """

    weight: float
    label: int
    mean: Array
    slope: Array
    noise: Array
    nodes: Array
    node_weights: Array
    fields: Array

    def second_moments(self, f: Array) -> Array:
        """E_c[f x xᵀ], (count, N, N), for several weights f (points, count)."""
        weighted = f * self.node_weights[:, None]
        total, first = weighted.sum(0), self.first_moments(f)
        found = np.multiply.outer(total, self.noise - np.outer(self.mean, self.mean))
        for k in range(f.shape[1]):
            second = self.slope @ ((self.nodes * weighted[:, k : k + 1]).T @ self.nodes) @ self.slope.T
            crossed = np.outer(first[k], self.mean)
            found[k] += second + crossed + crossed.T
        return found

    def first_moments(self, f: Array) -> Array:
        """E_c[f x], (count, N)."""
        weighted = f * self.node_weights[:, None]
        return np.multiply.outer(weighted.sum(0), self.mean) + weighted.T @ self.nodes @ self.slope.T


@dataclass(frozen=True, eq=False)
class GivenFields:
    """Students, teachers and means in the coordinates of the inputs; made by `given_fields`.

    It has what `Span` has: coordinates are those of the inputs, so that the basis is the identity and r = N.

    Attributes
    ----------
    students, teachers, means: (K, N), (M, N), (P, N), of length O(1): w = W/√N for students.
    covariances: Σ_c, (P, N, N).
    """

    problem: Problem
    students: Array
    teachers: Array
    means: Array
    covariances: Array
    teacher_readout: Array
    readout: Array

    @property
    def size(self) -> int:
        """N."""
        return self.students.shape[1]

    @property
    def rank(self) -> int:
        """The number of coordinates, N."""
        return self.size

    @property
    def basis(self) -> Array:
        """The identity, (N, N)."""
        return np.eye(self.size)

    def components(self, quadrature: LossQuadrature) -> list[GivenComponent]:
        """The components with the nodes of `quadrature`."""
        w, data = np.concatenate([self.students, self.teachers]), self.problem.data
        found = []
        for c, (p, label) in enumerate(zip(data.components.weights, data.components.labels.tolist(), strict=True)):
            mean, C = self._mean(c), w @ self.covariances[c] @ w.T
            L, z, node_weights, H = quadrature.component_fields(C, w @ mean, label, self.readout)
            nodes = np.ascontiguousarray(z[:, np.diag(L) > 0])
            part = GivenComponent(
                float(p), label, mean, self._slopes[c], self.noise[c], nodes, node_weights, np.ascontiguousarray(H)
            )
            found.append(part)
        return found

    @cached_property
    def _slopes(self) -> list[Array]:
        """B_c of each component, (N, q)."""
        quadrature = LossQuadrature(self.problem, self.teacher_readout, all_fields=True)
        w, found = np.concatenate([self.students, self.teachers]), []
        for c, Sigma in enumerate(self.covariances):
            C, mean = w @ Sigma @ w.T, self._mean(c)
            label = self.problem.data.components.labels[c].item()
            L, *_ = quadrature.component_fields(C, w @ mean, label, self.readout)
            seen = w if quadrature.basis is None else quadrature.basis.T @ w
            found.append(_regression(Sigma @ seen.T, L))
        return found

    @cached_property
    def noise(self) -> Array:
        """Covariances of what the fields do not see, Σ_c − B_c B_cᵀ, (P, N, N)."""
        return np.array([Sigma - B @ B.T for Sigma, B in zip(self.covariances, self._slopes, strict=True)])

    def bulk(self, weights: Array) -> tuple[float, Array]:
        """Σ_c of `weights` (P,) times the covariance of what the fields do not see: mean eigenvalue, matrix (N, N)."""
        matrix = np.tensordot(weights, self.noise, 1)
        return float(np.trace(matrix)) / self.size, matrix

    def _mean(self, c: int) -> Array:
        return self.means[c] if len(self.means) else np.zeros(self.size)


def _regression(crossed: Array, L: Array) -> Array:
    """B (N, q) with crossed = B Lᵀ (N, fields), without the columns that L has lost."""
    B = np.zeros((len(crossed), len(L)))
    for j in range(len(L)):
        if L[j, j] > 0:
            B[:, j] = (crossed[:, j] - B[:, :j] @ L[j, :j]) / L[j, j]
    return B[:, np.diag(L) > 0]


def given_fields(problem: Problem, start: Start) -> GivenFields:
    """The inputs of `problem` given the fields of the weights of `start`."""
    data = problem.data
    if start.student is None or start.teacher is None or start.means is None or start.size is None:
        raise InputError(
            "start: matrices of inputs that are not isotropic need weights, this start has overlaps only; use draw or "
            "Start.from_weights"
        )
    N, parts = start.size, data.components.weights.size
    if (parts + 2) * float(N) ** 2 > LARGEST:
        raise InputError(
            f"data: matrices of {N} x {N} for {parts} components take {(parts + 2) * N**2 * 8e-9:.0f} GB; use fewer "
            "inputs, or the matrices of a batch, ov.spectra.hessian"
        )
    if data.matrices is None:
        diagonals = np.repeat(data.component_eigenvalues, data.dimensions(N), axis=1)  # type: ignore[union-attr]
        covariances = np.array([np.diag(row) for row in diagonals])
    else:
        covariances = data.matrices
    root = np.sqrt(N)
    return GivenFields(problem, start.student / root, start.teacher / root, start.means, covariances, start.u, start.v)
