"""Samples of one component in the mean-field limit, as paths of their fields and duals through training.

    p(a) = β(a) + h̃(a) + Σ_{b<a} ω(b) B_ω(b, a),    h̃ = h A,    ω(a) = s(l) δ(a),    δ = ∂loss/∂p,

for a set of points h of a standard normal, whose averages are the kernels of `overlaps.full_batch.mean_field_kernels`;
s(l) = 1 is the multiplier of the sample at step l of column a. With batches (`overlaps.full_batch.batches`) s is
random. That of step l is independent of all fields up to step l, so that averages over it are taken exactly:

    E[ω(l)] = E[δ(l)]    E[ω(μ) ω(l)ᵀ] = E[ω(μ) δ(l)ᵀ], μ < l    E[ω(l) ω(l)ᵀ] = E[s²] E[δ δᵀ]    E[∂ω/∂h̃] = E[∂δ/∂h̃]

and only what later steps remember of step l needs a multiplier that is drawn (`Paths.draw_batch`). Where duals are
linear in the fields, second moments are all that is needed, and (s − 1) δ has those of Gaussian noise of covariance
(E[s²] − 1) E[δ δᵀ] that is independent of everything before: no multiplier is drawn, and averages stay exact.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data.square_roots import root
from .task import FullBatchTask

Array = NDArray[np.float64]


class Points(NamedTuple):
    """Random numbers of n paths.

    h: standard normal variables of the columns, (n, D).
    targets: standard normal variables of the noise of the targets, (n,), where there is any.
    multipliers: of the samples in the batches of each step, (n, T), where a step uses a part of them;
    batch_noise: or standard normal variables that stand for them in a linear problem, (n, T K).
    """

    h: Array
    targets: Array | None = None
    multipliers: Array | None = None
    batch_noise: Array | None = None


class Paths:
    """The samples of one component, as a weighted set of points: fields, duals and, on request, their responses.

    weights: of the points, (n,), with sum one. followed: of how many points, the first, responses are followed.
    realisations: leading axes of what is found, for kernels that differ while the points are the same; weights may have
    them.
    """

    def __init__(
        self,
        task: FullBatchTask,
        component: int,
        points: Points,
        weights: Array,
        followed: int,
        realisations: tuple[int, ...] = (),
    ) -> None:
        self.task, self.weights, self.points = task, weights, points
        self.h = points.h
        n = len(points.h)
        assert task.batches is None or points.multipliers is not None or points.batch_noise is not None
        self.omega = np.zeros((*realisations, *self.h.shape))
        self.nu = np.zeros((*realisations, n, task.M))
        self.labels = np.full(self.nu.shape[:-1], task.labels[component])
        scale = task.problem.label_noise
        self.noise = np.zeros(self.labels.shape)
        if scale:
            assert points.targets is not None
            self.noise += scale * points.targets
        self.losses = np.zeros((*realisations, n, task.T))
        self.followed = followed
        self.response = np.zeros((*realisations, task.D, followed, task.D)) if followed else None

    def advance(self, columns: slice, fields: Array, B_omega: Array) -> Array:
        """Duals δ of new columns, from the fields (n, k) without memory and the kernel of it; returns the mean loss."""
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
        """E[ω] (k,) and E[ω ωᵀ] (stop, k) of the columns, with all up to them; before their batch is drawn."""
        weighted = self.weights[..., None] * self.omega[..., columns]
        second = self.omega[..., : columns.stop].swapaxes(-1, -2) @ weighted
        if self.task.batches is not None:
            second[..., columns, :] *= self.task.batches.second_moment
        return weighted.sum(-2), second

    def stein(self, columns: slice) -> Array:
        """E[h ωᵀ], (stop, k); before their batch is drawn."""
        return self.h[:, : columns.stop].T @ (self.weights[:, None] * self.omega[:, columns])

    def responses(self, columns: slice) -> Array:
        """E[∂ω/∂h̃], (stop, k); before their batch is drawn."""
        assert self.response is not None
        weights = self.weights[: self.followed] / self.weights[: self.followed].sum()
        return (weights @ self.response[..., columns, :, : columns.stop]).swapaxes(-1, -2)

    def draw_batch(self, columns: slice) -> None:
        """Turn the duals δ of new columns, and their responses, into ω = s δ, which later steps remember."""
        batches = self.task.batches
        if batches is None:
            return
        if self.points.multipliers is not None:
            s = self.points.multipliers[:, (columns.start - self.task.M) // self.task.K]
            self.omega[..., columns] *= s[:, None]
            if self.response is not None:
                self.response[..., columns, :, :] *= s[: self.followed, None]
            return
        assert self.points.batch_noise is not None
        delta, first = self.omega[..., columns], columns.start - self.task.M
        covariance = delta.swapaxes(-1, -2) @ (self.weights[..., None] * delta)
        noise = self.points.batch_noise[:, first : first + self.task.K]
        self.omega[..., columns] += np.sqrt(batches.second_moment - 1) * noise @ root(covariance).T
