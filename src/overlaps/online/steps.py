"""Steps of training on weights, compiled.

All take the matrices of the step from `overlaps.algorithms.update`: rows (weights, or weights and velocities) move as
r ← L r − p g with the gradient g of a batch. There are three ways to the same steps. *Direct*: one sample at a time,
drawn a cache line of coordinates after another and multiplied while it is there. *Blocked*, for steps of one sample
without velocities: S samples at once; with G = X Xᵀ and Z = X Wᵀ the fields of sample s are

    λ_s = a_s Z_s − Σ_{r<s} (a_s/a_{r+1}) (p_r/√N) G_sr δ_r,        a_s = L_0 ⋯ L_{s−1},

so that only S × K numbers are sequential and the rest is three matrix products. It pays off for wide students. *Given*:
inputs and teacher fields come from elsewhere.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..compiled.functions import kept, loop
from ..compiled.normals import BITS, draw_key, normals_from
from ..compiled.symbols import njit
from .draws import component, fill, stretch

Array = NDArray[np.float64]
BLOCK = 32  # samples in a block


class Sampler(NamedTuple):
    """How inputs x (N,) are drawn: those of a component, μ_c + √(s ω_c) z, or rows of a table.

    cumulative, labels: (components,) cumulative weights and labels; of labelled rows the labels are those of the rows,
        (rows,).
    means: (components, N), or (0, N) where all are zero.
    root: (components, N) √ω_c of each coordinate.
    tails: ν of the variance s = (ν − 2)/χ²_ν that each sample draws for itself, or zero for s = 1.
    rows: (rows, N) of a table, of which each is equally likely; (0, N) where inputs are Gaussian.
    """

    cumulative: Array
    labels: NDArray[np.int64] | Array
    means: Array
    root: Array
    tails: float
    rows: Array


class Target(NamedTuple):
    """What makes the target of a sample: teacher B (M, N) with readout u (M,), and the noise on its output."""

    B: Array
    u: Array
    noise: float


@njit(fastmath={"reassoc", "contract"})
def _dot(a, b):  # pragma: no cover - compiled
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@njit(fastmath={"contract"})
def _move(W, v, gradient, slopes, dv, keep, pull, keep_readout, pull_readout, moved):  # pragma: no cover - compiled
    """One step of W (J, K, N) and v (J, K), in place.

    The gradient of unit k is slopes[k] times row k of `gradient`, or its only row; that of the readout is dv/N.
    moved (J, N): workspace.
    """
    J, K, N = W.shape
    for k in range(K):
        g = gradient[k] if len(gradient) == K else gradient[0]
        if J == 1:
            a, p = keep[0, 0], pull[0] * slopes[k]
            for i in range(N):
                W[0, k, i] = a * W[0, k, i] - p * g[i]
            continue
        for j in range(J):
            p = pull[j] * slopes[k]
            for i in range(N):
                moved[j, i] = -p * g[i]
            for l in range(J):
                a = keep[j, l]
                for i in range(N):
                    moved[j, i] += a * W[l, k, i]
        for j in range(J):
            for i in range(N):
                W[j, k, i] = moved[j, i]
    move_readout(v, dv, N, keep_readout, pull_readout)


@njit
def move_readout(v, dv, size, keep, pull):  # pragma: no cover - compiled
    """One step of the readouts v (J, K), in place, for the mean dv (K,) of ∂loss/∂v over a batch."""
    J, K = v.shape
    if J == 1:
        if pull[0] != 0.0:  # otherwise dv was not computed
            for k in range(K):
                v[0, k] = keep[0, 0] * v[0, k] - pull[0] / size * dv[k]
        return
    moved = np.empty(J)
    for k in range(K):
        for j in range(J):
            moved[j] = -pull[j] / size * dv[k] if pull[j] != 0.0 else 0.0
            for l in range(J):
                moved[j] += keep[j, l] * v[l, k]
        for j in range(J):
            v[j, k] = moved[j]


@loop(nogil=True, fastmath={"contract"})
def direct(kernel, sampler, task, W, v, step, batch, rng, stop):  # pragma: no cover - compiled
    """A step for each of the matrices in `step`, on W (J, K, N) and v (J, K), in place; stop: see `Run`."""
    (J, K, N), M = W.shape, task.B.shape[0]
    P, table = len(sampler.means), len(sampler.rows)
    labelled = table > 1 and len(sampler.labels) == table
    lam, nu, x = np.empty(K), np.empty(M), np.empty((1, N))
    dlam, dv, moved = np.empty(K), np.empty(K), np.empty((J, N if J > 1 else 0))
    total, total_dv, ones = np.empty((K, N if batch > 1 else 0)), np.empty(K), np.full(K, 1.0 / batch)
    unit = 1.0 / np.sqrt(N)
    for s in range(len(step.pull)):
        total[:] = 0.0
        total_dv[:] = 0.0
        for _ in range(batch):
            if stop[0]:
                return
            lam[:] = 0.0
            nu[:] = 0.0
            c = component(sampler.cumulative, P, rng)
            longer = stretch(sampler.tails, rng)
            row = rng.integers(0, table) if table > 0 else 0
            key = draw_key(rng) if table == 0 else (BITS(0), BITS(0))
            for low in range(0, N, 1024):
                high = min(low + 1024, N)
                if table > 0:
                    for i in range(low, high):
                        x[0, i] = sampler.rows[row, i]
                else:
                    normals_from(low, key, x[0, low:high])
                    for i in range(low, high):
                        x[0, i] *= longer * sampler.root[c, i]
                    if P > 0:
                        for i in range(low, high):
                            x[0, i] += sampler.means[c, i]
                for k in range(K):
                    lam[k] += _dot(W[0, k, low:high], x[0, low:high])
                for m in range(M):
                    nu[m] += _dot(task.B[m, low:high], x[0, low:high])
            for k in range(K):
                lam[k] *= unit
            for m in range(M):
                nu[m] *= unit
            shift = task.noise * rng.standard_normal() if task.noise > 0.0 else 0.0
            kernel(lam, nu, sampler.labels[row if labelled else c], v[0], task.u, shift, dlam, dv)
            for k in range(K):
                dlam[k] *= unit
            if batch > 1:
                for k in range(K):
                    total_dv[k] += dv[k] / batch
                    for i in range(N):
                        total[k, i] += dlam[k] * x[0, i]
        matrices = step.keep[s], step.pull[s], step.keep_readout[s], step.pull_readout[s]
        if batch > 1:
            _move(W, v, total, ones, total_dv, *matrices, moved)
        else:
            _move(W, v, x, dlam, dv, *matrices, moved)


@loop(nogil=True, fastmath={"contract"})
def given(kernel, X, Y, labels, shifts, u, W, v, step, batch):  # pragma: no cover - compiled
    """A step for each of the matrices in `step` and each `batch` rows of the inputs X (steps·batch, N).

    Y (steps·batch, M): fields of the teacher; labels, shifts: (steps·batch,).
    """
    J, K, N = W.shape
    lam, dlam, dv = np.empty(K), np.empty(K), np.empty(K)
    total, total_dv, ones = np.empty((K, N)), np.empty(K), np.full(K, 1.0 / batch)
    moved = np.empty((J, N if J > 1 else 0))
    unit = 1.0 / np.sqrt(N)
    for s in range(len(step.pull)):
        total[:] = 0.0
        total_dv[:] = 0.0
        for n in range(s * batch, (s + 1) * batch):
            for k in range(K):
                lam[k] = unit * _dot(W[0, k], X[n])
            kernel(lam, Y[n], labels[n], v[0], u, shifts[n], dlam, dv)
            for k in range(K):
                total_dv[k] += dv[k] / batch
                g = unit * dlam[k]
                for i in range(N):
                    total[k, i] += g * X[n, i]
        _move(
            W, v, total, ones, total_dv, step.keep[s], step.pull[s], step.keep_readout[s], step.pull_readout[s], moved
        )


@loop(nogil=True)
def blocked(kernel, sampler, task, W, v, step, batch, rng, stop):  # pragma: no cover - compiled
    """As `direct`, for W (1, K, N), v (1, K) and batches of one."""
    (_, K, N), M = W.shape, task.B.shape[0]
    P, table, steps = len(sampler.means), len(sampler.rows), len(step.pull)
    labelled = table > 1 and len(sampler.labels) == table
    lam, nu = np.empty(K), np.empty(M)
    dlam, dv = np.empty(K), np.empty(K)
    unit = 1.0 / np.sqrt(N)
    block = np.empty((BLOCK, N))
    pulls, shifts, drawn = np.empty((BLOCK, K)), np.zeros(BLOCK), np.zeros(BLOCK, sampler.labels.dtype)
    done = 0
    while done < steps and not stop[0]:
        S = min(BLOCK, steps - done)
        X = block[:S]
        for s in range(S):
            c = component(sampler.cumulative, P, rng)
            longer = stretch(sampler.tails, rng)
            row = rng.integers(0, table) if table > 0 else 0
            drawn[s] = sampler.labels[row if labelled else c]
            if table > 0:
                X[s] = sampler.rows[row]
            else:
                fill(X[s], c, longer, sampler.root, sampler.means, rng)
            if task.noise > 0.0:  # drawn here so that `direct` and `blocked` use the random numbers in one order
                shifts[s] = task.noise * rng.standard_normal()
        G = np.dot(X, X.T)
        Z = np.dot(X, W[0].T)
        Y = np.dot(X, task.B.T)
        shrink = 1.0
        for s in range(S):
            for k in range(K):
                lam[k] = shrink * Z[s, k]
            for r in range(s):
                g = G[s, r]
                for k in range(K):
                    lam[k] -= g * pulls[r, k]
            for k in range(K):
                lam[k] *= unit
            for m in range(M):
                nu[m] = unit * Y[s, m]
            kernel(lam, nu, drawn[s], v[0], task.u, shifts[s], dlam, dv)
            keep = step.keep[done + s, 0, 0]
            if keep != 1.0:
                shrink *= keep
                for r in range(s):
                    for k in range(K):
                        pulls[r, k] *= keep
            for k in range(K):
                pulls[s, k] = step.pull[done + s, 0] * unit * dlam[k]
            move_readout(v, dv, N, step.keep_readout[done + s], step.pull_readout[done + s])
        change = np.dot(np.ascontiguousarray(pulls[:S].T), X)
        for k in range(K):
            for i in range(N):
                W[0, k, i] = shrink * W[0, k, i] - change[k, i]
        done += S


@kept(nogil=True)
def redraw(sampler, noise, rng, X, drawn):  # pragma: no cover - compiled
    """The first inputs (count, N) and labels of a run, in the order in which all ways draw them."""
    for s in range(len(X)):
        c = component(sampler.cumulative, len(sampler.means), rng)
        drawn[s] = sampler.labels[c]
        fill(X[s], c, stretch(sampler.tails, rng), sampler.root, sampler.means, rng)
        if noise > 0.0:
            rng.standard_normal()


@loop(nogil=True)
def mean_loss(value, W, B, rows, labels, v, u):  # pragma: no cover - compiled
    """Mean of the loss over all rows, of weights W (K, N); labels: (rows,), or one for all."""
    lam, nu = np.empty(len(W)), np.empty(len(B))
    unit = 1.0 / np.sqrt(W.shape[1])
    total = 0.0
    for i in range(len(rows)):
        x = rows[i]
        for k in range(lam.size):
            lam[k] = unit * _dot(W[k], x)
        for m in range(nu.size):
            nu[m] = unit * _dot(B[m], x)
        total += value(lam, nu, labels[i if len(labels) == len(rows) else 0], v, u)
    return total / len(rows)
