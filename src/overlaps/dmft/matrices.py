"""Data matrices that full-batch training asks two questions: what are the fields Xᵀθ, and what is the gradient X ω/m?

X (N, m) has the samples as columns, x_i = μ_c + R_c^{1/2} z_i, the samples of each component together. Training only
ever asks for the fields p = Xᵀθ of new columns θ, and then for the gradients q = X ω/m of as many new duals ω. Two ways
to answer, equal in law:

- `Formed` draws X and multiplies.
- `Unformed` never has X. Let Z be the standard normal part of X for the samples of one covariance on one level. Given
  the answers so far, Zᵀu_j = b_j for orthonormal u_j and Z v_j = a_j for orthonormal v_j, a new direction u ⊥ u_j has

      Zᵀu = (1 − V Vᵀ) g + V Aᵀu,    g ~ N(0, I),    V = (v_1, v_2, …),  A = (a_1, a_2, …),

  and likewise Z v: conditioning of a Gaussian matrix. Its cost is O((N + m) D²) instead of O(N m D).

All arrays have a leading axis of independent runs.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .setting import Setting

Array = NDArray[np.float64]


class Matrix(Protocol):
    """X, for a batch of runs."""

    def fields(self, theta: Array) -> Array:
        """Xᵀθ, (runs, m, k), of k new columns θ (runs, N, k)."""
        ...

    def gradient(self, omega: Array) -> Array:
        """X ω/m, (runs, N, k), of as many new duals ω (runs, m, k)."""
        ...


class Means:
    """The means, which all matrices have in common: X̂, (N, m), of rank one per component."""

    def __init__(self, setting: Setting) -> None:
        assert setting.counts is not None and setting.start.size is not None
        assert setting.start.dimensions is not None
        self.setting, self.counts, self.samples = setting, setting.counts, setting.samples
        self.component = np.repeat(np.arange(self.counts.size), self.counts)
        means = setting.start.means
        self.vectors = means if means is not None and len(means) else np.zeros((self.counts.size, setting.start.size))
        self.level = np.repeat(np.arange(setting.start.dimensions.size), setting.start.dimensions)
        self.ends = np.concatenate([[0], np.cumsum(self.counts)])

    def fields(self, theta: Array) -> Array:
        """X̂ᵀθ, (runs, m, k)."""
        return (self.vectors @ theta)[:, self.component]

    def gradient(self, omega: Array) -> Array:
        """X̂ ω/m, (runs, N, k)."""
        return self.vectors.T @ np.add.reduceat(omega, self.ends[:-1], axis=1) / self.samples


class Formed:
    """X itself, (runs, N, m)."""

    def __init__(self, setting: Setting, runs: int, rng: np.random.Generator) -> None:
        means = Means(setting)
        self.X = rng.standard_normal((runs, len(means.level), means.samples))
        roots = np.sqrt(setting.covariances)
        if (roots != 1).any():
            self.X *= roots[means.component][:, means.level].T
        if means.vectors.any():
            for c, mean in enumerate(means.vectors):
                self.X[:, :, means.ends[c] : means.ends[c + 1]] += mean[:, None]

    def fields(self, theta: Array) -> Array:
        return self.X.transpose(0, 2, 1) @ theta

    def gradient(self, omega: Array) -> Array:
        return self.X @ omega / self.X.shape[2]


class Frame:
    """An orthonormal basis that grows: columns (runs, size, rank)."""

    def __init__(self, runs: int, size: int) -> None:
        self.columns = np.zeros((runs, size, 0))

    def extend(self, x: Array) -> tuple[Array, Array]:
        """New direction of x (runs, size), or zeros where there is none, and the coordinates of x in the new frame.

        Returns (runs, size) and (runs, rank + 1).
        """
        length = np.linalg.norm(x, axis=1)
        inside = np.zeros((len(x), self.columns.shape[2]))
        rest = x
        for _ in range(2):  # once more, so that rounding does not spoil orthogonality
            part = np.einsum("rsj,rs->rj", self.columns, rest)
            rest = rest - np.einsum("rsj,rj->rs", self.columns, part)
            inside += part
        left = np.linalg.norm(rest, axis=1)
        new = left > 1e-10 * length
        direction = np.where(new[:, None], rest / np.where(new, left, 1.0)[:, None], 0.0)
        self.columns = np.concatenate([self.columns, direction[:, :, None]], axis=2)
        return direction, np.concatenate([inside, np.where(new, left, 0.0)[:, None]], axis=1)


class _Block:
    """A standard normal matrix Z (size, count) of which only answers are known: Zᵀu_j = b_j and Z v_j = a_j."""

    def __init__(self, runs: int, size: int, count: int, rng: np.random.Generator) -> None:
        self.rng = rng
        self.a, self.b = np.zeros((runs, size, 0)), np.zeros((runs, count, 0))

    def left(self, u: Array, V: Frame) -> None:
        """Answer Zᵀu for a new direction u (runs, size); V holds the directions v asked so far."""
        g = self.rng.standard_normal((u.shape[0], self.b.shape[1]))
        seen = np.einsum("rsj,rs->rj", self.a, u) - np.einsum("rsj,rs->rj", V.columns, g)
        g = g + np.einsum("rsj,rj->rs", V.columns, seen)
        self.b = np.concatenate([self.b, g[:, :, None]], axis=2)

    def right(self, v: Array, U: Frame) -> None:
        """Answer Z v for a new direction v (runs, count)."""
        g = self.rng.standard_normal((v.shape[0], self.a.shape[1]))
        seen = np.einsum("rsj,rs->rj", self.b, v) - np.einsum("rsj,rs->rj", U.columns, g)
        g = g + np.einsum("rsj,rj->rs", U.columns, seen)
        self.a = np.concatenate([self.a, g[:, :, None]], axis=2)


class Unformed:
    """X as far as it was asked for."""

    def __init__(self, setting: Setting, runs: int, rng: np.random.Generator) -> None:
        self.means = Means(setting)
        r = setting.covariances
        # components with the same covariance are one matrix; so are levels with the same eigenvalues in all of them
        _, family = np.unique(r, axis=0, return_inverse=True)
        _, group = np.unique(r, axis=1, return_inverse=True)
        family, group = family.ravel(), group.ravel()
        families, groups = range(family.max() + 1), range(group.max() + 1)
        self.rows = [np.flatnonzero(family[self.means.component] == f) for f in families]
        self.coordinates = [np.flatnonzero(group[self.means.level] == g) for g in groups]
        self.roots = np.array([[np.sqrt(r[family == f][:, group == g][0, 0]) for g in groups] for f in families])
        self.U = [Frame(runs, at.size) for at in self.coordinates]
        self.V = [Frame(runs, at.size) for at in self.rows]
        self.blocks = [[_Block(runs, g.size, f.size, rng) for g in self.coordinates] for f in self.rows]

    def fields(self, theta: Array) -> Array:
        out = self.means.fields(theta)
        for k in range(theta.shape[2]):
            for g, at in enumerate(self.coordinates):
                u, inside = self.U[g].extend(theta[:, at, k])
                for f, rows in enumerate(self.rows):
                    block = self.blocks[f][g]
                    block.left(u, self.V[f])
                    out[:, rows, k] += self.roots[f, g] * np.einsum("rsj,rj->rs", block.b, inside)
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
                    out[:, at, k] += self.roots[f, g] * np.einsum("rsj,rj->rs", block.a, inside) / m
        return out
