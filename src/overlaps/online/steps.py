"""Steps of SGD on weights, compiled.

Two ways to take the same steps on inputs that are drawn here. *Direct*: one sample at a time, drawn a cache line of
coordinates after another and multiplied while it is there. *Blocked*: S samples at once; with G = X Xᵀ and Z = X Wᵀ the
fields of sample s are

    λ_s = a^s Z_s − (η/N) Σ_{r<s} a^{s−1−r} G_sr δ_r,        a = 1 − ηβ/N,

so that only S × K numbers are sequential and the rest is three matrix products. It pays off for wide students. *Given*:
inputs and teacher fields come from elsewhere.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ..compiled.functions import kept, loop
from .draws import component, fill

BLOCK = 32  # samples in a block


@njit(fastmath={"reassoc", "contract"})
def _dot(a, b):  # pragma: no cover - compiled
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@njit(fastmath={"contract"})
def _learn(W, x, v, dlam, dv, rates):  # pragma: no cover - compiled
    """The step of W (K, N) and v (K,), in place, for the gradient of the loss of input x."""
    K, N = W.shape
    rate, readout_rate, decay = rates
    keep, keep_v = 1.0 - rate * decay / N, 1.0 - readout_rate * decay / N
    for k in range(K):
        pull = rate / np.sqrt(N) * dlam[k]
        for i in range(N):
            W[k, i] = keep * W[k, i] - pull * x[i]
    if readout_rate > 0.0:
        for k in range(K):
            v[k] = keep_v * v[k] - readout_rate / N * dv[k]


@loop(nogil=True, fastmath={"contract"})
def direct(kernel, parts, means, W, B, root, rows, v, u, rates, noise, steps, rng):  # pragma: no cover - compiled
    (K, N), M = W.shape, B.shape[0]
    cumulative, spread, labels = parts
    P = len(means)
    lam, nu, x = np.empty(K), np.empty(M), np.empty(N)
    dlam, dv = np.empty(K), np.empty(K)
    unit = 1.0 / np.sqrt(N)
    for _ in range(steps):
        lam[:] = 0.0
        nu[:] = 0.0
        c = component(cumulative, P, rng)
        if len(rows) > 0:
            x = rows[rng.integers(0, len(rows))]
        for low in range(0, N, 1024):
            high = min(low + 1024, N)
            if len(rows) == 0:
                for i in range(low, high):
                    x[i] = spread[c] * root[i] * rng.standard_normal()
                if P > 0:
                    for i in range(low, high):
                        x[i] += means[c, i]
            for k in range(K):
                lam[k] += _dot(W[k, low:high], x[low:high])
            for m in range(M):
                nu[m] += _dot(B[m, low:high], x[low:high])
        for k in range(K):
            lam[k] *= unit
        for m in range(M):
            nu[m] *= unit
        shift = noise * rng.standard_normal() if noise > 0.0 else 0.0
        kernel(lam, nu, labels[c], v, u, shift, dlam, dv)
        _learn(W, x, v, dlam, dv, rates)


@loop(nogil=True, fastmath={"contract"})
def given(kernel, X, Y, labels, shifts, W, v, u, rates):  # pragma: no cover - compiled
    """One step for each row of the inputs X (steps, N), with fields Y (steps, M) of the teacher."""
    K, N = W.shape
    lam, dlam, dv = np.empty(K), np.empty(K), np.empty(K)
    unit = 1.0 / np.sqrt(N)
    for s in range(len(X)):
        for k in range(K):
            lam[k] = unit * _dot(W[k], X[s])
        kernel(lam, Y[s], labels[s], v, u, shifts[s], dlam, dv)
        _learn(W, X[s], v, dlam, dv, rates)


@loop(nogil=True)
def blocked(kernel, parts, means, W, B, root, rows, v, u, rates, noise, steps, rng):  # pragma: no cover - compiled
    (K, N), M = W.shape, B.shape[0]
    cumulative, spread, labels = parts
    P = len(means)
    rate, readout_rate, decay = rates
    keep, keep_v = 1.0 - rate * decay / N, 1.0 - readout_rate * decay / N
    lam, nu = np.empty(K), np.empty(M)
    dlam, dv = np.empty(K), np.empty(K)
    unit = 1.0 / np.sqrt(N)
    block = np.empty((BLOCK, N))
    pulls, shifts, drawn = np.empty((BLOCK, K)), np.zeros(BLOCK), np.zeros(BLOCK, np.int64)
    done = 0
    while done < steps:
        S = min(BLOCK, steps - done)
        X = block[:S]
        for s in range(S):
            c = component(cumulative, P, rng)
            drawn[s] = labels[c]
            if len(rows) > 0:
                X[s] = rows[rng.integers(0, len(rows))]
            else:
                fill(X[s], c, spread, root, means, rng)
            if noise > 0.0:  # with its sample, so that both engines read the stream in one order
                shifts[s] = noise * rng.standard_normal()
        G = np.dot(X, X.T)
        Z = np.dot(X, W.T)
        Y = np.dot(X, B.T)
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
            kernel(lam, nu, drawn[s], v, u, shifts[s], dlam, dv)
            if keep != 1.0:
                shrink *= keep
                for r in range(s):
                    for k in range(K):
                        pulls[r, k] *= keep
            for k in range(K):
                pulls[s, k] = rate * unit * dlam[k]
            if readout_rate > 0.0:
                for k in range(K):
                    v[k] = keep_v * v[k] - readout_rate / N * dv[k]
        change = np.dot(np.ascontiguousarray(pulls[:S].T), X)
        for k in range(K):
            for i in range(N):
                W[k, i] = shrink * W[k, i] - change[k, i]
        done += S


@kept(nogil=True)
def redraw(parts, means, root, noise, rng, X, drawn):  # pragma: no cover - compiled
    """The first inputs (count, N) and labels of a run, in the order in which both engines draw them."""
    cumulative, spread, labels = parts
    for s in range(len(X)):
        c = component(cumulative, len(means), rng)
        drawn[s] = labels[c]
        fill(X[s], c, spread, root, means, rng)
        if noise > 0.0:
            rng.standard_normal()


@loop(nogil=True)
def mean_loss(value, W, B, rows, v, u):  # pragma: no cover - compiled
    """Mean of the loss over all rows."""
    lam, nu = np.empty(len(W)), np.empty(len(B))
    unit = 1.0 / np.sqrt(W.shape[1])
    total = 0.0
    for x in rows:
        for k in range(lam.size):
            lam[k] = unit * _dot(W[k], x)
        for m in range(nu.size):
            nu[m] = unit * _dot(B[m], x)
        total += value(lam, nu, 0, v, u)
    return total / len(rows)
