"""The recursion of full-batch training at finite size: the kernels as functions of the noise that they are made of.

Write Θ_g = U_g A_g with orthonormal columns U_g, and for a family f of components with one covariance Ω_f/√m = Ṽ_f A_f.
Conditioning the data matrix on what training has asked of it (`overlaps.full_batch.data_matrices`) gives, exactly,

    p_f = means + Σ_g √r_fg [H_fg A_g + Ω_f A_f⁻¹ (X_fg − Y_fg)_U A_g]         X_fg = m^{−1/2} G_fgᵀ U_g
    q_g = means + Σ_f √r_fg [m^{−1/2} G_fg A_f + U_g (Y_fg − X_fg)ᵀ_u A_f]      Y_fg = m^{−1/2} Ṽ_fᵀ H_fg

with standard normal H (m_f, D) and G (n_g, D) that are new in every column; ( )_U keeps entries (i, j) with i in a step
before that of j, ( )ᵀ_u the others. All that fluctuates is then

- the Gram matrix of G, (n_g/m) 1 + m^{−1/2} (n_g/m)^{1/2} S, S symmetric Gaussian of variance 1, on the diagonal 2;
- the overlaps of G with the sources, m^{−1/2} g_o, Gaussian with the covariance ν_g between sources;
- the empirical measure of H: averages over the samples of a component.

Mean-field theory sets S = g_o = 0 and averages over the Gaussian measure, where Y is zero in ( )_U and X in ( )ᵀ_u.
The comparison process of the paper has z Γᵀ instead of −Y and z Γ instead of −Xᵀ, Γ Gaussian, and takes ( )_U and
( )ᵀ_u after the products with A_g and A_f instead of before; at z² = −1 that is the same to leading order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..interface.errors import NumericalError
from .paths import Paths, Points
from .task import FullBatchTask
from .triangular_factors import TriangularFactors

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Noise:
    """One small realisation of the noise; parts that are not given are zero.

    gram: added to the Gram matrix of G of a level, {level: (F D, F D)}, families one after the other.
    sources: overlaps of G with the sources, {level: (sources, F D)}.
    weights: of the points in the measure of a component, {component: (n,)}, with sum one.
    moments: added to averages over the measure of a component, {component: (E[ω] (D,), E[ω ωᵀ] (D, D), E[ω hᵀ] of each
        level (levels, D, D))}.
    gamma: of the comparison process, {family: (D, D)}, for one level; None for the exact process.

    Several realisations at once have one more axis, the first of every array; see `stacked`.
    """

    gram: dict[int, Array] = field(default_factory=dict)
    sources: dict[int, Array] = field(default_factory=dict)
    weights: dict[int, Array] = field(default_factory=dict)
    moments: dict[int, tuple[Array, Array, Array]] = field(default_factory=dict)
    gamma: dict[int, Array] | None = None

    @property
    def realisations(self) -> tuple[int, ...]:
        """Axes of the realisations: (count,), or () of one."""
        moments = {c: first for c, (first, _, _) in self.moments.items()}
        for parts, axes in ((self.gram, 2), (self.sources, 2), (self.weights, 1), (moments, 1), (self.gamma or {}, 2)):
            for part in parts.values():
                return part.shape[:-axes]
        return ()


def stacked(noises: Sequence[Noise], even: Array) -> Noise:
    """Realisations of one process as one `Noise`; those without weights of their own have the `even` ones."""

    def joined(parts: Sequence[dict[int, Array]], default: Array | None = None) -> dict[int, Array]:
        found = {key: value for part in parts for key, value in part.items()}
        return {
            key: np.stack([part.get(key, np.zeros_like(x) if default is None else default) for part in parts])
            for key, x in found.items()
        }

    first, second, crossed = (joined([{c: m[i] for c, m in n.moments.items()} for n in noises]) for i in range(3))
    gammas = [n.gamma for n in noises if n.gamma is not None]
    return Noise(
        joined([n.gram for n in noises]),
        joined([n.sources for n in noises]),
        joined([n.weights for n in noises], even),
        {c: (first[c], second[c], crossed[c]) for c in first},
        joined(gammas) if gammas else None,
    )


@dataclass(eq=False)
class NoisyKernels:
    """Kernels with noise. Levels g, families f, components c, columns D, sources s.

    Realisations of the noise, where there are several, are the second axis.

    tau (g, s, D), lam (g, D, D): coordinates τ and Λ̃ of Θ_g, see `overlaps.full_batch.mean_field_kernels`.
    V, A (g, D, D): Θ_gᵀ Θ_g and its factor. back (g, D, D): U_g back is Θ_g B_θ.
    W, A_omega (f, D, D): V_ω and its factor. B_omega (f, D, D).
    beta, alpha (c, D), loss (c, T).
    """

    tau: Array
    lam: Array
    V: Array
    A: Array
    back: Array
    W: Array
    A_omega: Array
    B_omega: Array
    beta: Array
    alpha: Array
    loss: Array


def families(task: FullBatchTask, separate_components: bool) -> tuple[NDArray[np.int64], Array]:
    """The family of each component, (components,), and roots of the eigenvalues of each family, (families, levels)."""
    if separate_components:
        return np.arange(len(task.weights)), np.sqrt(task.covariances)
    values, family = np.unique(task.covariances, axis=0, return_inverse=True)
    return family.ravel(), np.sqrt(values)


class NoisyRecursion:
    """The recursion over points h (n, levels, D) of a standard normal, as a function of the noise.

    separate_components: whether every component is a family, as in the paper; the law is the same, one pass of an
    iteration is not.
    targets: noise of the targets, standard normal, (n,), where there is any.
    """

    def __init__(
        self, task: FullBatchTask, h: Array, targets: Array | None = None, *, separate_components: bool = False
    ) -> None:
        self.task, self.h, self.targets = task, h, targets
        self.family, self.roots = families(task, separate_components)
        self.even = np.full(len(h), 1 / len(h))
        self.paths: list[Paths] = []  # of the recursion without noise, one for each component
        self.base = self(Noise())

    def __call__(self, noise: Noise, given: NoisyKernels | None = None) -> NoisyKernels:
        """Kernels with `noise`; the dynamics behind them has the same kernels, or those `given`.

        With given kernels this is one pass of a fixed-point iteration, without them its end: kernels of a step depend
        on those before alone.
        """
        task = self.task
        C, G, S, D = len(task.weights), len(task.gram), task.gram.shape[-1], task.D
        F = len(self.roots)
        many = noise.realisations
        levels, duals, means = (G, *many, D, D), (F, *many, D, D), (C, *many, D)
        shapes = [(G, *many, S, D), *[levels] * 4, *[duals] * 3, means, means, (C, *many, task.T)]
        own = NoisyKernels(*(np.zeros(shape) for shape in shapes))
        state = _State(self, noise, own, own if given is None else given)
        for l in range(-1 if task.M else 0, task.T):
            try:
                state.step(l)
            except np.linalg.LinAlgError:
                raise NumericalError(
                    f"fluctuations: V_theta or V_omega is singular to rounding at step {l}; use fewer steps, or the "
                    "scatter of sample",
                    quantity="V_theta",
                    time=float(l),
                ) from None
        self.paths = self.paths or state.paths
        return own


def _T(X: Array) -> Array:
    """The transpose of each matrix, (..., a, b) to (..., b, a)."""
    return X.swapaxes(-1, -2)


class _State:
    """The state of one recursion while its columns are computed."""

    def __init__(self, recursion: NoisyRecursion, noise: Noise, own: NoisyKernels, feed: NoisyKernels) -> None:
        self.recursion, self.task, self.noise, self.own, self.feed = recursion, recursion.task, noise, own, feed
        task, h = recursion.task, recursion.h
        D, F, G = task.D, len(recursion.roots), h.shape[1]
        self.realisations = noise.realisations
        self.theta, self.omega = [TriangularFactors(A) for A in own.A], [TriangularFactors(A) for A in own.A_omega]
        # factors by which coordinates of Θ are made orthonormal
        self.frame = self.theta
        if feed is not own:
            self.frame = [TriangularFactors(A) for A in feed.A]
        self.unit_tau, self.unit_lam = np.zeros_like(own.tau), np.zeros_like(own.lam)
        # ( )_U and ( )ᵀ_u, with noise alone
        self.ahead, self.behind = np.zeros((F, G, *self.realisations, D, D)), np.zeros((F, G, *self.realisations, D, D))
        points = Points(h[:, 0], recursion.targets)
        self.paths = [
            Paths(task, c, points, recursion.even, len(h), self.realisations) for c in range(len(task.weights))
        ]
        self.moved = {c: w - recursion.even for c, w in noise.weights.items()}

    def step(self, l: int) -> None:
        columns = self.task.block(l)
        self._weights(columns)
        for f in range(len(self.recursion.roots)):
            self._forward(f, columns)
        for c in range(len(self.paths)):
            self._samples(c, l, columns)
        if l >= 0:
            for f, factor in enumerate(self.omega):
                factor.extend(self.own.W[f], columns)
            self._backward(columns)

    def _noise_of(self, g: int, lam: Array) -> Array:
        """A_f times coordinates lam (D, k), for all families one after the other, (F D, k)."""
        roots = self.recursion.roots[:, g]
        return np.concatenate([root * A @ lam for root, A in zip(roots, self.feed.A_omega, strict=True)], axis=-2)

    def _weights(self, columns: slice) -> None:
        """New columns of τ, Λ̃, V, A and β."""
        own, feed, task, noise = self.own, self.feed, self.task, self.noise
        done, stop = slice(0, columns.start), columns.stop
        history = task.history[done, columns]
        means = slice(task.K + task.M, None)
        pushed = np.zeros((*self.realisations, task.gram.shape[-1], history.shape[1]))
        if task.data.has_means:
            pushed[..., means, :] = np.moveaxis(feed.alpha[..., done] @ history, 0, -2)
        for g, nu in enumerate(task.gram):
            back = feed.back[g][..., done, done] @ history
            own.tau[g][..., columns] = task.first[:, columns] - pushed - self.unit_tau[g][..., done] @ back
            own.lam[g][..., columns] = task.history[:, columns] - self.unit_lam[g][..., done] @ back
            tau, lam = own.tau[g][..., :stop], own.lam[g][..., :stop]
            W = np.tensordot(self.recursion.roots[:, g] ** 2, feed.W, 1)
            V = _T(tau) @ nu @ tau[..., columns] + task.shares[g] * _T(lam) @ W @ lam[..., columns]
            if g in noise.gram:
                N = self._noise_of(g, lam)
                V += _T(N) @ noise.gram[g] @ N[..., columns]
            if g in noise.sources:
                N = self._noise_of(g, lam)
                crossed = _T(tau) @ noise.sources[g] @ N
                V -= crossed[..., columns] + _T(crossed[..., columns, :])
                if task.data.has_means:
                    own.beta[..., columns] -= np.moveaxis((noise.sources[g] @ N[..., columns])[..., means, :], -2, 0)
            own.V[g][..., :stop, columns], own.V[g][..., columns, :stop] = V, _T(V)
            if task.data.has_means:
                own.beta[..., columns] += np.moveaxis(nu[means] @ tau[..., columns], -2, 0)
            self.theta[g].extend(own.V[g], columns)
            self.frame[g].orthonormal(own.tau[g], self.unit_tau[g], columns)
            self.frame[g].orthonormal(own.lam[g], self.unit_lam[g], columns)

    def _gaussian(self, f: int, g: int, rows: slice, columns: slice) -> Array:
        """Noise of X_fg, (rows, columns)."""
        D, noise = self.task.D, self.noise
        mine = slice(f * D + rows.start, f * D + rows.stop)
        out = np.zeros((*self.realisations, rows.stop - rows.start, columns.stop - columns.start))
        if g in noise.sources:
            out += _T(noise.sources[g][..., mine]) @ self.unit_tau[g][..., columns]
        if g in noise.gram:
            out -= noise.gram[g][..., mine, :] @ self._noise_of(g, self.unit_lam[g][..., columns])
        return out

    def _empirical(self, f: int, g: int, rows: slice, columns: slice) -> Array:
        """Fluctuation of Σ_c ρ_c E[ω hᵀ] over the components of a family: ω of the rows, h of the columns."""
        out = np.zeros((*self.realisations, rows.stop - rows.start, columns.stop - columns.start))
        for c, moved in self.moved.items():
            if self.recursion.family[c] == f:
                omega = self.paths[c].omega[..., rows] * moved[..., None]
                out += self.task.weights[c] * _T(omega) @ self.recursion.h[:, g, columns]
        for c, (_, _, crossed) in self.noise.moments.items():
            if self.recursion.family[c] == f:
                out += self.task.weights[c] * crossed[..., g, rows, columns]
        return out

    def _forward(self, f: int, columns: slice) -> None:
        """New columns of B_ω."""
        own, feed, task = self.own, self.feed, self.task
        done, stop = slice(0, columns.start), columns.stop
        mean, extra = np.zeros((*self.realisations, columns.start, columns.stop - columns.start)), 0.0
        for g, share in enumerate(task.shares):
            root = self.recursion.roots[f, g]
            if self.noise.gamma is None:
                new = self._gaussian(f, g, done, columns)
                new -= self.omega[f].solve(self._empirical(f, g, done, columns), transposed=True)
                self.ahead[f, g][..., done, columns] = new
            else:
                self.ahead[f, g][..., done, :stop] = self._gaussian(f, g, done, slice(0, stop))
                if f in self.noise.gamma:
                    self.ahead[f, g][..., done, :stop] += _T(self.noise.gamma[f][..., :stop, done])
            mean -= share * root**2 * own.lam[g][..., done, columns]
            extra = extra + root * self.ahead[f, g][..., done, :stop] @ own.A[g][..., :stop, columns]
        if feed is not own:
            extra = extra + (feed.A_omega[f] - own.A_omega[f])[..., done, done] @ mean
        own.B_omega[f][..., done, columns] = mean + self.omega[f].solve(np.asarray(extra))

    def _samples(self, c: int, l: int, columns: slice) -> None:
        """New columns of α and V_ω, and the mean loss."""
        own, feed, task, path = self.own, self.feed, self.task, self.paths[c]
        f, rho, stop = self.recursion.family[c], task.weights[c], columns.stop
        fields = sum(
            root * self.recursion.h[:, g, :stop] @ feed.A[g][..., :stop, columns]
            for g, root in enumerate(self.recursion.roots[f])
        )
        path.weights = self.noise.weights.get(c, self.recursion.even)
        loss = path.advance(columns, feed.beta[c][..., None, columns] + fields, feed.B_omega[f])
        if l < 0:
            return
        own.loss[c][..., l] = loss
        first, second = path.moments(columns)
        if c in self.noise.moments:
            first = first + self.noise.moments[c][0][..., columns]
            second = second + self.noise.moments[c][1][..., :stop, columns]
        own.alpha[c][..., columns] = rho * first
        W = own.W[f][..., :stop, columns] + rho * second
        own.W[f][..., :stop, columns], own.W[f][..., columns, :stop] = W, _T(W)

    def _backward(self, columns: slice) -> None:
        """New columns of Θ B_θ, in the frame U."""
        own, feed, task, roots = self.own, self.feed, self.task, self.recursion.roots
        stop = columns.stop
        upto = slice(0, stop)
        for g in range(len(task.shares)):
            total = np.zeros((*self.realisations, stop, columns.stop - columns.start))
            for c, path in enumerate(self.paths):
                # the mean over the Gaussian measure, whatever the weights are: these come in by the noise below
                path.weights = self.recursion.even
                total += task.weights[c] * roots[self.recursion.family[c], g] ** 2 * path.responses(columns)
            total = feed.A[g][..., upto, upto] @ total
            for f in range(len(roots)):
                if self.noise.gamma is None:
                    # column i of (E[h ωᵀ] A⁻¹) needs all columns of ω up to i
                    new = self.omega[f].solve(self._empirical(f, g, upto, upto), transposed=True)[..., columns, :]
                    self.behind[f, g][..., upto, columns] = _T(new - self._gaussian(f, g, columns, upto))
                else:
                    total += roots[f, g] * _T(self._empirical(f, g, columns, upto))
                    if f in self.noise.gamma:
                        self.behind[f, g] = self.noise.gamma[f]
                total += roots[f, g] * self.behind[f, g][..., upto, upto] @ own.A_omega[f][..., upto, columns]
            own.back[g][..., upto, columns] = total
