"""Inputs within the span of students and fixed directions, given the fields that the loss sees.

For isotropic noise of variance s an input of component c is x = U u + y, U an orthonormal basis of the span of
students, teachers and means (r ≤ K + M + P directions), with

    u = a_c + √s ξ,  ξ ~ N(0, I_r),      y = √s (I − U Uᵀ) z,

a_c the coordinates of the mean. Directions are made orthonormal in the order fields first: the q leading ξ are then the
variables that fields are integrated over (for softmax without the shift common to all), and the others are independent
of the fields. So for any weight f of the fields and the component

    E_c[f u uᵀ] = E[f] a aᵀ + √s (E[f ξ] aᵀ + a E[f ξ]ᵀ) + s (E[f ξ ξᵀ] on the q leading, E[f] on the other directions).

>>> import numpy as np
>>> import overlaps as ov
>>> problem = ov.Problem(
...     data=ov.GaussianMixture(means=3, variance=0.1), student=ov.Softmax(3), loss="cross-entropy",
...     algorithm=ov.OnlineSGD(1.0),
... )
>>> inside = span(problem, ov.draw(problem, size=50))
>>> inside.basis.shape, inside.seen
((50, 6), 2)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..averages.quadrature import LossQuadrature
from ..data.square_roots import cholesky
from ..interface.errors import InputError
from ..problem.start import Start, fixed_rows
from ..problem.statement import Problem
from .given_fields import GivenFields, given_fields

Array = NDArray[np.float64]


class Component(NamedTuple):
    """One component: probability, noise variance and label; its mean in the basis, (r,).

    Nodes of the q leading ξ, (points, q), with their weights (points,) and fields (points, K+M).
    """

    weight: float
    variance: float
    label: int
    mean: Array
    nodes: Array
    node_weights: Array
    fields: Array

    def second_moments(self, f: Array) -> Array:
        """E_c[f u uᵀ], (count, r, r), for several weights f (points, count)."""
        a, z, weighted = self.mean, self.nodes, f * self.node_weights[:, None]
        total, first, seen = weighted.sum(0), self.first_moments(f), z.shape[1]
        noise = total[:, None, None] * np.eye(a.size)
        if f.shape[1] <= seen:  # the loop is over what is fewer, weights or coordinates
            for k in range(f.shape[1]):
                noise[k, :seen, :seen] = (z * weighted[:, k : k + 1]).T @ z
        else:
            for k in range(seen):
                noise[:, k, :seen] = weighted.T @ (z * z[:, k : k + 1])
        crossed = first[:, :, None] * a
        return crossed + crossed.swapaxes(1, 2) - total[:, None, None] * np.outer(a, a) + self.variance * noise

    def first_moments(self, f: Array) -> Array:
        """E_c[f u], (count, r)."""
        weighted = f * self.node_weights[:, None]
        result = np.multiply.outer(weighted.sum(0), self.mean)
        result[:, : self.nodes.shape[1]] += np.sqrt(self.variance) * (weighted.T @ self.nodes)
        return result


@dataclass(frozen=True, eq=False)
class Span:
    """Students, teachers and means in an orthonormal basis of their span; made by `span`.

    Attributes
    ----------
    students, teachers, means: coordinates, (K, r), (M, r), (P, r), of vectors of length O(1): w = W/√N for students.
    seen: q, the number of leading coordinates that the fields depend on.
    basis: U (N, r), or None where a start has no weights.
    size: N, or None.
    """

    problem: Problem
    students: Array
    teachers: Array
    means: Array
    seen: int
    basis: Array | None
    size: int | None
    kept: NDArray[np.bool_]
    covariance: Array
    field_means: Array
    readout: Array

    @property
    def rank(self) -> int:
        """r, the dimension of the span."""
        return self.students.shape[1]

    def components(self, quadrature: LossQuadrature) -> list[Component]:
        """The components with the nodes of `quadrature`."""
        scale = float(self.problem.data.eigenvalues[0])
        found: list[Component] = []
        for c, part in enumerate(quadrature.fields(scale * self.covariance, self.field_means, self.readout)):
            p, root, label, z, w, H = part
            mean = self.means[c] if len(self.means) else np.zeros(self.rank)
            nodes = np.ascontiguousarray(z[:, self.kept])
            found.append(Component(p, scale * root**2, label, mean, nodes, w, np.ascontiguousarray(H)))
        return found

    def bulk(self, weights: Array) -> tuple[float, None]:
        """Σ_c of `weights` (components,) times the variance of what the fields do not see; there is no matrix of it."""
        data = self.problem.data
        return float(data.components.variances @ weights) * float(data.eigenvalues[0]), None


def law_of_inputs(problem: Problem, start: Start) -> Span | GivenFields:
    """The inputs of `problem` by what the fields of `start` see of them: a span if noise is isotropic, or all of it."""
    if problem.data.table is not None:
        raise InputError(
            "data: averages over inputs need their law, these are samples; use the matrices of a batch of samples, "
            "ov.spectra.hessian or ov.spectra.gradient_matrix"
        )
    isotropic = problem.data.matrices is None and problem.data.eigenvalues.size == 1
    return span(problem, start) if isotropic else given_fields(problem, start)


def span(problem: Problem, start: Start) -> Span:
    """The span of the students, teachers and means of `start`, from its weights or from its overlaps alone."""
    K, M = problem.student.units, problem.teacher_units
    gram = start.gram[0]
    turn, integrated = np.eye(len(gram)), K + M
    contrasts = LossQuadrature(problem, start.u, all_fields=True).basis
    if contrasts is not None:
        turn[:K, :K] = np.column_stack([contrasts, np.full(K, K**-0.5)]).T
        integrated = K - 1
    L = cholesky(turn @ gram @ turn.T)
    kept = np.diag(L) > 0
    coordinates = turn.T @ L[:, kept]
    basis = None
    if start.student is not None and start.teacher is not None and start.means is not None:
        rows = fixed_rows(np.concatenate([start.student, start.teacher]), start.means) / np.sqrt(start.student.shape[1])
        basis, upper = np.linalg.qr((turn @ rows)[kept].T)
        basis = basis * np.where(np.diag(upper) < 0, -1.0, 1.0)
    return Span(
        problem,
        coordinates[:K],
        coordinates[K : K + M],
        coordinates[K + M :],
        int(kept[:integrated].sum()),
        basis,
        start.size,
        kept[:integrated],
        gram[: K + M, : K + M],
        gram[: K + M, K + M :],
        start.v,
    )
