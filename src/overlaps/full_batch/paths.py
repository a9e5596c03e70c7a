"""Samples of one component in the mean-field limit, as paths of their fields and duals through training.

    p(a) = β(a) + h̃(a) + Σ_{b<a} ω(b) B_ω(b, a),    h̃ = h A,    ω = ∂loss/∂p,

for a set of points h of a standard normal, whose averages are the kernels of `overlaps.full_batch.mean_field_kernels`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .task import FullBatchTask

Array = NDArray[np.float64]


class Paths:
    """The samples of one component, as a weighted set of points: fields, duals and, on request, their responses.

    h: standard normal variables of the columns, (n, D), and of the noise of the target in the last of D + 1 columns,
    where there is any. weights: (n,), with sum one. followed: of how many points, the first, responses are followed.
    realisations: leading axes of what is found, for kernels that differ while the points are the same; weights may have
    them.
    """

    def __init__(
        self,
        task: FullBatchTask,
        component: int,
        h: Array,
        weights: Array,
        followed: int,
        realisations: tuple[int, ...] = (),
    ) -> None:  # fmt: skip
        self.task, self.weights = task, weights
        self.h = h[:, : task.D]
        self.omega = np.zeros((*realisations, *self.h.shape))
        self.nu = np.zeros((*realisations, len(h), task.M))
        self.labels = np.full(self.nu.shape[:-1], task.labels[component])
        scale = task.problem.label_noise
        self.noise = np.zeros(self.labels.shape)
        if scale:
            self.noise += scale * h[:, -1]
        self.losses = np.zeros((*realisations, len(h), task.T))
        self.followed = followed
        self.response = np.zeros((*realisations, task.D, followed, task.D)) if followed else None

    def advance(self, columns: slice, fields: Array, B_omega: Array) -> Array:
        """Duals of new columns, from the fields (n, k) without memory and the kernel of it; returns the mean loss."""
        done, stop = columns.start, columns.stop
        p = fields + self.omega[..., :done] @ B_omega[..., :done, columns]
        if stop <= self.task.M:
            self.nu[..., columns] = p
            return np.zeros(p.shape[:-2])
        K, M = self.task.K, self.task.M
        nu = self.nu.reshape(self.labels.size, M)
        delta, loss = self.task.duals(p.reshape(-1, K), nu, self.labels.ravel(), self.noise.ravel())
        loss = loss.reshape(p.shape[:-1])
        self.omega[..., columns] = delta.reshape(p.shape)
        self.losses[..., (columns.start - M) // K] = loss
        if self.response is not None:
            self._respond(columns, p, B_omega)
        return (self.weights * loss).sum(-1)

    def _respond(self, columns: slice, p: Array, B_omega: Array) -> None:
        """∂ω(columns)/∂h̃, by the chain rule through the duals before."""
        assert self.response is not None
        task, done, stop = self.task, columns.start, columns.stop
        *realisations, D, n, _ = self.response.shape
        before = self.response.reshape(*realisations, D, n * D)[..., :done, :]
        moved = (B_omega[..., :done, columns].swapaxes(-1, -2) @ before).reshape(*realisations, stop - done, n, D)
        for k, column in enumerate(range(done, stop)):
            moved[..., k, :, column] += 1.0
        K, M = task.K, task.M
        labels, noise = self.labels[..., :n].ravel(), self.noise[..., :n].ravel()
        nu = self.nu[..., :n, :].reshape(labels.size, M)
        students, teachers = task.slopes(p[..., :n, :].reshape(-1, K), nu, labels, noise)
        slopes = students.reshape(*realisations, n, K, K)
        self.response[..., columns, :, :] = np.einsum("...nkj,...jnb->...knb", slopes, moved)
        self.response[..., columns, :, :M] += teachers.reshape(*realisations, n, K, M).swapaxes(-3, -2)

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
