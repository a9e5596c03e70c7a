"""Meso: the exact law of the overlaps at finite size, at a cost that does not depend on the size.

For Gaussian inputs the overlaps are a closed Markov chain. In level b, with n_b dimensions, write the F = M + P fixed
directions (teachers, means) and the students in an orthonormal frame of the space they span: rows of coordinates C with
C Cᵀ = (G_b, A_bᵀ; A_b, Q_b). An input has coordinates √ω_b z, z ~ N(0, I), in that frame, plus those of its mean, and
one more along a new direction outside it, of length √ω_b ρ with ρ² ~ χ²(n_b − K − F). (In a mixture ω_b is multiplied
by the variance of the component.) One step of SGD subtracts a rank-one matrix,

    w ← a w − (η/N) √ω_b δ (z, ρ),        a = 1 − ηβ/N,

after which the frame has one direction too many; plane rotations fold it back. Fixed directions come first, so that
their coordinates never change, and only the K × K residual of the students is rotated (a QR update, O(K²)). Working
with coordinates instead of the Gram matrix needs no inverse and no Cholesky factor of a matrix that turns singular as
the student learns. A level with n_b ≤ K + F keeps its n_b coordinates themselves: there the chain is the training run.
"""

from __future__ import annotations

from copy import copy

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from ..algorithms import FullBatch
from ..compiled import loop
from ..data.square_roots import coordinates
from ..interface.errors import InputError, unknown
from ..problem.start import Start, check
from ..problem.statement import Problem
from ..trajectory.dataset import Trajectory
from .draws import component
from .runs import Visit, Walker, record, refuse_kernels

Array = NDArray[np.float64]


@njit
def _rotate(X, i, j, c, s, first):  # pragma: no cover - compiled
    """Columns (i, j) of X ← (c X_i + s X_j, c X_j − s X_i), rows from `first` on."""
    for row in range(first, X.shape[0]):
        p, q = X[row, i], X[row, j]
        X[row, i] = c * p + s * q
        X[row, j] = c * q - s * p


@njit
def _fold(X, y, delta, step):  # pragma: no cover - compiled
    """Lower-triangular X' with X' X'ᵀ = (X − step δ yᵀ)(X − step δ yᵀ)ᵀ, in place; X (K, K+1), last column zero.

    y (K+1) is turned into |y| e_1 by rotations from the end, and the superdiagonal they leave is rotated away.
    """
    K = X.shape[0]
    for j in range(K - 1, -1, -1):
        r = np.sqrt(y[j] ** 2 + y[j + 1] ** 2)
        if r > 0.0:
            c, s = y[j] / r, y[j + 1] / r
            _rotate(X, j, j + 1, c, s, j)
            y[j], y[j + 1] = r, 0.0
    for k in range(K):
        X[k, 0] -= step * delta[k] * y[0]
    for j in range(K):
        r = np.sqrt(X[j, j] ** 2 + X[j, j + 1] ** 2)
        if r > 0.0:
            c, s = X[j, j] / r, X[j, j + 1] / r
            _rotate(X, j, j + 1, c, s, j)
            X[j, j + 1] = 0.0


@njit(nogil=True)
def _advance(
    kernel, parts, fixed, span, residual, width, rest, root, v, u, size, rates, noise, steps, rng
):  # pragma: no cover
    """`steps` steps of the chain, in place.

    fixed (B, F, K+F), span (B, K, K+F): coordinates of fixed directions and students in the frame; in a large level the
    last K coordinates of the students are in residual (B, K, K+1) instead. width (B,): coordinates in use, rest (B,):
    dimensions outside the frame. parts: see `Components`, with cumulative weights.
    """
    cumulative, spread, labels = parts
    B, F = fixed.shape[0], fixed.shape[1]
    K, M = span.shape[1], u.size
    rate, readout_rate, decay = rates
    keep, keep_v = 1.0 - rate * decay / size, 1.0 - readout_rate * decay / size
    lam, nu = np.empty(K), np.empty(M)
    dlam, dv = np.empty(K), np.empty(K)
    z = np.empty((B, K + F + 1))
    for _ in range(steps):
        lam[:] = 0.0
        nu[:] = 0.0
        c = component(cumulative, F - M, rng)
        for b in range(B):
            n = width[b]
            noisy = root[b] * spread[c]
            for j in range(n):
                z[b, j] = noisy * rng.standard_normal()
            common = F if rest[b] > 0 else n
            if F > M:
                for j in range(common):
                    z[b, j] += fixed[b, M + c, j]
            for m in range(M):
                for j in range(common):
                    nu[m] += fixed[b, m, j] * z[b, j]
            for k in range(K):
                for j in range(common):
                    lam[k] += span[b, k, j] * z[b, j]
                if rest[b] > 0:
                    for j in range(k + 1):
                        lam[k] += residual[b, k, j] * z[b, F + j]
            if rest[b] > 0:
                z[b, n] = noisy * np.sqrt(2.0 * rng.standard_gamma(0.5 * rest[b]))
        shift = noise * rng.standard_normal() if noise > 0.0 else 0.0
        kernel(lam, nu, labels[c], v, u, shift, dlam, dv)
        step = rate / size
        for b in range(B):
            common = F if rest[b] > 0 else width[b]
            for k in range(K):
                for j in range(common):
                    span[b, k, j] = keep * span[b, k, j] - step * dlam[k] * z[b, j]
            if rest[b] > 0:
                if keep != 1.0:
                    for k in range(K):
                        for j in range(K):
                            residual[b, k, j] *= keep
                _fold(residual[b], z[b, F:], dlam, step)
        if readout_rate > 0.0:
            for k in range(K):
                v[k] = keep_v * v[k] - readout_rate / size * dv[k]


@njit(nogil=True)
def _overlaps(fixed, span, residual, width, Q, A):  # pragma: no cover - compiled
    B, F = fixed.shape[0], fixed.shape[1]
    K = span.shape[1]
    for b in range(B):
        for k in range(K):
            for m in range(F):
                total = 0.0
                for j in range(width[b]):
                    total += span[b, k, j] * fixed[b, m, j]
                A[b, k, m] = total
            for l in range(k + 1):
                total = 0.0
                for j in range(width[b]):
                    total += span[b, k, j] * span[b, l, j]
                for j in range(K):
                    total += residual[b, k, j] * residual[b, l, j]
                Q[b, k, l] = Q[b, l, k] = total


@loop(nogil=True)
def _visit(
    kernel, parts, stops, done, Q, A, V, fixed, span, residual, width, rest, root, v, u, size, rates, noise, rng
):  # pragma: no cover - compiled
    for i in range(stops.size):
        steps = stops[i] - done
        _advance(kernel, parts, fixed, span, residual, width, rest, root, v, u, size, rates, noise, steps, rng)
        done = stops[i]
        _overlaps(fixed, span, residual, width, Q[i], A[i])
        for k in range(v.size):  # loops compile faster than array expressions
            V[i, k] = v[k]


class Chain:
    """One run of the overlap chain."""

    rng: np.random.Generator
    looked: list[dict[str, Array]]
    measures_error = False
    chunk = 50_000  # steps between looks at progress and divergence

    def __init__(self, problem: Problem, start: Start) -> None:
        assert start.size is not None and start.dimensions is not None
        self.kernel = problem.gradient
        B, K, F = start.A.shape
        self.v, self.u = start.v, start.u
        self.size = float(start.size)
        self.rates = (problem.algorithm.rate, problem.readout_rate, problem.algorithm.decay)
        self.noise = problem.label_noise
        self.parts = problem.data.components.drawn
        self.root = np.sqrt(start.eigenvalues)
        self.width = np.minimum(start.dimensions, K + F)
        self.rest = start.dimensions - self.width
        self.fixed, self.span = np.zeros((B, F, K + F)), np.zeros((B, K, K + F))
        self.residual = np.zeros((B, K, K + 1))
        self.done = 0
        fixed_first = np.concatenate([np.arange(K, K + F), np.arange(K)])
        for b, gram in enumerate(start.gram[:, fixed_first][:, :, fixed_first]):
            rows = coordinates(gram, int(self.width[b]), triangular=bool(self.rest[b] > 0))
            n = rows.shape[1]
            self.fixed[b, :, :n] = rows[:F]
            if self.rest[b] > 0:
                self.span[b, :, :F] = rows[F:, :F]
                self.residual[b, :, :K] = rows[F:, F:]
            else:
                self.span[b, :, :n] = rows[F:]

    def fresh(self, rng: np.random.Generator) -> Chain:
        """A run from here with its own samples."""
        new = copy(self)
        new.rng, new.looked = rng, []
        new.span, new.residual, new.v = self.span.copy(), self.residual.copy(), self.v.copy()
        return new

    def visit(self, stops: NDArray[np.int64]) -> Visit:
        """Go to each step of `stops` and tell the overlaps there."""
        (B, K, _), F, n = self.span.shape, self.fixed.shape[1], stops.size
        Q, A, V = np.empty((n, B, K, K)), np.empty((n, B, K, F)), np.empty((n, K))
        _visit(
            self.kernel, self.parts, stops, self.done, Q, A, V, self.fixed, self.span, self.residual, self.width,
            self.rest, self.root, self.v, self.u, self.size, self.rates, self.noise, self.rng,
        )  # fmt: skip
        self.done = int(stops[-1])
        return Visit(Q, A, V)


def sample(
    problem: Problem,
    start: Start,
    times: ArrayLike | None = None,
    runs: int = 100,
    seed: int = 0,
    *,
    method: str = "exact",
    levels: bool = False,
    kernels: bool = False,
    progress: bool = True,
) -> Trajectory:
    """Independent runs of the overlap chain at size `start.size`.

    Equal in law to `train` for Gaussian inputs, whatever the size and the loss; the cost of a step grows with the
    number of levels but not with the number of dimensions. `Samples` are taken as Gaussian. Of `FullBatch` the data
    matrix is never formed, at a cost that grows as N instead of N² (see `overlaps.full_batch`).

    Parameters
    ----------
    times: increasing times, in samples per input dimension; of `FullBatch` whole steps, all by default.
    runs, seed: number of independent runs; the same seed gives the same bits.
    method: ``"exact"``, or ``"diffusion"`` for the approximation of large N, drift plus Gaussian noise, whose cost does
        not grow with the number of steps (see `overlaps.online.diffusion`).
    levels: also record the overlaps of every level.
    kernels: of `FullBatch`, also record the overlaps of every two steps, V_theta and V_omega.
    """
    check(problem, start)
    if isinstance(problem.algorithm, FullBatch):
        from ..full_batch import engine

        return engine.sample(
            problem, start, times, runs, seed, method=method, levels=levels, kernels=kernels, progress=progress
        )
    refuse_kernels(kernels)
    if start.size is None:
        raise InputError("start: meso needs a size; pass size= to Start.from_overlaps, or use draw")
    if problem.data.reads_latent:
        raise InputError(
            "data: the inputs of a hidden manifold are not Gaussian, and the overlap chain needs Gaussian inputs; "
            "use train, or solve for the Gaussian-equivalent theory"
        )
    if not isinstance(method, str) or method not in ("exact", "diffusion"):
        raise unknown("method", str(method), ["exact", "diffusion"])
    if method == "diffusion":
        from .diffusion import Diffusion

        walker: Walker = Diffusion(problem, start)
    else:
        walker = Chain(problem, start)
    scale = "meso" if method == "exact" else "diffusion"
    return record(scale, walker, problem, start, times, runs, seed, levels=levels, progress=progress)
