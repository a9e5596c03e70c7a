"""Data matrices by their two products that full-batch training needs: the fields Xᵀθ and the gradient X ω/m.

X (N, m) has the samples as columns, x_i = μ_c + R_c^{1/2} z_i, the samples of each component together. Training only
ever asks for the fields p = Xᵀθ of new columns θ, and then for the gradients q = X ω/m of as many new duals ω. Two ways
to answer, equal in law:

- `ExplicitDataMatrix` draws X and multiplies.
- `ConditionedDataMatrix` never has X. Let Z be the standard normal part of X for the samples of one covariance on one
  level. Given the answers so far, Zᵀu_j = b_j for orthonormal u_j and Z v_j = a_j for orthonormal v_j, a new direction
  u ⊥ u_j has

      Zᵀu = (1 − V Vᵀ) g + V Aᵀu,    g ~ N(0, I),    V = (v_1, v_2, …),  A = (a_1, a_2, …),

  and likewise Z v: conditioning of a Gaussian matrix. Its cost is O((N + m) D²) instead of O(N m D).

All arrays have a leading axis of independent runs.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .task import FullBatchTask

Array = NDArray[np.float64]


class DataMatrix(Protocol):
    """X, for a bundle of runs."""

    def fields(self, theta: Array) -> Array:
        """Xᵀθ, (runs, m, k), of k new columns θ (runs, N, k)."""
        ...

    def gradient(self, omega: Array) -> Array:
        """X ω/m, (runs, N, k), of as many new duals ω (runs, m, k)."""
        ...


class Means:
    """The means, which all matrices have in common: X̂, (N, m), of rank one per component."""

    def __init__(self, task: FullBatchTask) -> None:
        assert task.counts is not None and task.start.size is not None
        assert task.start.dimensions is not None
        self.task, self.counts, self.samples = task, task.counts, task.samples
        self.component = np.repeat(np.arange(self.counts.size), self.counts)
        means = task.start.means
        self.vectors = means if means is not None and len(means) else np.zeros((self.counts.size, task.start.size))
        self.level = np.repeat(np.arange(task.start.dimensions.size), task.start.dimensions)
        self.ends = np.concatenate([[0], np.cumsum(self.counts)])

    def fields(self, theta: Array) -> Array:
        """X̂ᵀθ, (runs, m, k)."""
        return (self.vectors @ theta)[:, self.component]

    def gradient(self, omega: Array) -> Array:
        """X̂ ω/m, (runs, N, k)."""
        return self.vectors.T @ np.add.reduceat(omega, self.ends[:-1], axis=1) / self.samples


class ExplicitDataMatrix:
    """X itself, (runs, N, m)."""

    def __init__(self, task: FullBatchTask, runs: int, rng: np.random.Generator) -> None:
        means = Means(task)
        self.X = rng.standard_normal((runs, len(means.level), means.samples))
        roots = np.sqrt(task.covariances)
        if (roots != 1).any():
            self.X *= roots[means.component][:, means.level].T
        if means.vectors.any():
            for c, mean in enumerate(means.vectors):
                self.X[:, :, means.ends[c] : means.ends[c + 1]] += mean[:, None]

    def fields(self, theta: Array) -> Array:
        return self.X.transpose(0, 2, 1) @ theta

    def gradient(self, omega: Array) -> Array:
        return self.X @ omega / self.X.shape[2]


class GrowingColumns:
    """Columns that are added one at a time, (runs, size, count), in a place that was kept for them."""

    def __init__(self, runs: int, size: int, most: int) -> None:
        self.place, self.count = np.zeros((runs, size, most)), 0

    @property
    def columns(self) -> Array:
        return self.place[:, :, : self.count]

    def append(self, x: Array) -> None:
        """A new column x, (runs, size)."""
        self.place[:, :, self.count] = x
        self.count += 1

    def dot(self, x: Array) -> Array:
        """Inner products with x (runs, size), (runs, count)."""
        return (self.columns.transpose(0, 2, 1) @ x[:, :, None])[:, :, 0]

    def combine(self, weights: Array) -> Array:
        """Sum of the columns with weights (runs, count), (runs, size)."""
        return (self.columns @ weights[:, :, None])[:, :, 0]


class OrthonormalBasis(GrowingColumns):
    """An orthonormal basis that grows."""

    def extend(self, x: Array) -> tuple[Array, Array]:
        """New direction of x (runs, size), or zeros where there is none, and the coordinates of x in the new frame.

        Returns (runs, size) and (runs, count + 1).
        """
        length = np.linalg.norm(x, axis=1)
        inside = np.zeros((len(x), self.count))
        rest = x
        for _ in range(2):  # once more, so that rounding does not spoil orthogonality
            part = self.dot(rest)
            rest = rest - self.combine(part)
            inside += part
        left = np.linalg.norm(rest, axis=1)
        new = left > 1e-10 * length
        direction = np.where(new[:, None], rest / np.where(new, left, 1.0)[:, None], 0.0)
        self.append(direction)
        return direction, np.concatenate([inside, np.where(new, left, 0.0)[:, None]], axis=1)


class ConditionedGaussian:
    """A standard normal matrix Z (size, count) of which only products are known: Zᵀu_j = b_j and Z v_j = a_j."""

    def __init__(self, runs: int, size: int, count: int, most: int, rng: np.random.Generator) -> None:
        self.rng = rng
        self.a, self.b = GrowingColumns(runs, size, most), GrowingColumns(runs, count, most)

    def left(self, u: Array, V: OrthonormalBasis) -> None:
        """Draw Zᵀu for a new direction u (runs, size); V holds the directions v so far."""
        g = self.rng.standard_normal(self.b.place.shape[:2])
        self.b.append(g + V.combine(self.a.dot(u) - V.dot(g)))

    def right(self, v: Array, U: OrthonormalBasis) -> None:
        """Draw Z v for a new direction v (runs, count)."""
        g = self.rng.standard_normal(self.a.place.shape[:2])
        self.a.append(g + U.combine(self.b.dot(v) - U.dot(g)))


class ConditionedDataMatrix:
    """A random data matrix X that is never formed: its products are drawn, conditioned on the products drawn before."""

    def __init__(self, task: FullBatchTask, runs: int, rng: np.random.Generator) -> None:
        self.means = Means(task)
        r = task.covariances
        # components with the same covariance are one matrix; so are levels with the same eigenvalues in all of them
        _, family = np.unique(r, axis=0, return_inverse=True)
        _, group = np.unique(r, axis=1, return_inverse=True)
        family, group = family.ravel(), group.ravel()
        families, groups = range(family.max() + 1), range(group.max() + 1)
        self.rows = [np.flatnonzero(family[self.means.component] == f) for f in families]
        self.coordinates = [np.flatnonzero(group[self.means.level] == g) for g in groups]
        self.roots = np.array([[np.sqrt(r[family == f][:, group == g][0, 0]) for g in groups] for f in families])
        D = task.D
        self.U = [OrthonormalBasis(runs, at.size, D) for at in self.coordinates]
        self.V = [OrthonormalBasis(runs, at.size, D) for at in self.rows]
        self.blocks = [[ConditionedGaussian(runs, g.size, f.size, D, rng) for g in self.coordinates] for f in self.rows]

    def fields(self, theta: Array) -> Array:
        out = self.means.fields(theta)
        for k in range(theta.shape[2]):
            for g, at in enumerate(self.coordinates):
                u, inside = self.U[g].extend(theta[:, at, k])
                for f, rows in enumerate(self.rows):
                    block = self.blocks[f][g]
                    block.left(u, self.V[f])
                    out[:, rows, k] += self.roots[f, g] * block.b.combine(inside)
        return out

    def gradient(self, omega: Array) -> Array:
        out = self.means.gradient(omega)
        m = self.means.samples
        for k in range(omega.shape[2]):
            for f, rows in enumerate(self.rows):
                v, inside = self.V[f].extend(omega[:, rows, k])
                for g, at in enumerate(self.coordinates):
                    block = self.blocks[f][g]
                    block.right(v, self.U[g])
                    out[:, at, k] += self.roots[f, g] * block.a.combine(inside) / m
        return out
