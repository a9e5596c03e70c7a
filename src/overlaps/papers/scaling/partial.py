"""Training runs of a linear student of which only some directions learn.

With d = w − B a step is d ← d − (η/N) (d·x) x on the n trained coordinates, nothing on the others. For Gaussian inputs,
given the weights, what the frozen coordinates add to d·x beyond what the trained ones tell of it is independent noise.
In the eigenbasis of the trained block, eigenvalues κ, the run is therefore one of a student whose n weights all learn,

    inputs of eigenvalues κ n/N,    the same rate,    label noise of variance s² = (B_h − w_h)ᵀ S (B_h − w_h)/N,

learning B_t + Σ_t⁻¹ Σ_c (B_h − w_h) in time t N/n (the same steps); its error lacks s²/2. Blocks Σ_t, Σ_c and Schur
complement S as in `overlaps.laws.features`. Real inputs have no such noise, and are trained on directly.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numba import njit
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import overlaps as ov

Array = NDArray[np.float64]


def random_basis(size: int, seed: int) -> Array:
    """Orthonormal columns, (size, size), as likely in any direction."""
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((size, size)))[0]


def rotated(spectrum: ov.PowerLaw, basis: Array) -> Array:
    """The covariance (levels, levels) with these eigenvalues and, in its columns, eigenvectors."""
    sigma = (basis * np.array(spectrum.eigenvalues)) @ basis.T
    return (sigma + sigma.T) / 2


def drawn_weights(size: int, scale: float, seed: int, run: int) -> tuple[Array, Array]:
    """Teacher and student of a run, (size,) each: standard normal, and of standard deviation `scale`."""
    rng = np.random.default_rng([seed, run])
    return rng.standard_normal(size), scale * rng.standard_normal(size)


def gaussian_runs(
    covariance: Array, trained: int, rate: float, times: Array, *, scale: float, runs: int, seed: int = 0
) -> Array:
    """Errors (runs, times) of SGD on inputs N(0, covariance), the first `trained` coordinates learning.

    Each run has its own weights, those of `drawn_weights`.
    """
    N, n = len(covariance), trained
    cross = covariance[:n, n:]
    kappa, axes = np.linalg.eigh(covariance[:n, :n])
    regression = np.linalg.solve(covariance[:n, :n], cross)
    schur = covariance[n:, n:] - cross.T @ regression
    inputs = ov.GaussianInputs(ov.Spectrum(kappa * n / N))

    def one(run: int) -> Array:
        B, w = drawn_weights(N, scale, seed, run)
        gap = B[n:] - w[n:]
        noise = max(float(gap @ schur @ gap), 0.0) / N
        net = ov.Committee(units=1, activation="linear")
        problem = ov.Problem(
            data=inputs, teacher=net, student=net, algorithm=ov.OnlineSGD(rate), label_noise=noise**0.5
        )
        start = ov.Start.from_weights(problem, (axes.T @ w[:n])[None], (axes.T @ (B[:n] + regression @ gap))[None])
        result = ov.train(problem, start, times * N / n, runs=1, seed=seed + run, progress=False)
        return result.data["error"].values[0] + noise / 2

    # the outer limit, since those inside restore what they find in any order
    with threadpool_limits(limits=1), ThreadPoolExecutor(os.cpu_count()) as pool:
        return np.array(list(pool.map(one, range(runs))))


def sample_runs(data: ov.Samples, trained: int, rate: float, times: Array, *, scale: float, runs: int) -> Array:
    """Errors (runs, times) of SGD on the rows of a data set, the `trained` leading principal axes learning.

    `times` must be whole numbers of steps. Weights as in `gaussian_runs`.
    """
    rows, omega = data.rows, data.eigenvalues
    N = omega.size
    stops = np.round(times * N).astype(np.int64)

    def one(run: int) -> Array:
        rng = np.random.default_rng([0, run])
        d = scale * rng.standard_normal(N) - rng.standard_normal(N)
        return _visit(rows, d, trained, rate, stops, omega, rng)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        errors = np.array(list(pool.map(one, range(runs))))
    wild = np.flatnonzero(~np.isfinite(errors).all(0))
    if wild.size:
        raise ov.NumericalError(
            f"data: training on these rows diverges before time {times[wild[0]]:g} at rate {rate:g}; a few rows are "
            "far longer than the others, rescale or leave them out",
            quantity="error",
            time=float(times[wild[0]]),
        )
    return errors


@njit(nogil=True, fastmath={"reassoc", "contract"})
def _visit(rows, d, trained, rate, stops, omega, rng):  # pragma: no cover - compiled
    """Errors at the steps `stops` of one run from d = w − B."""
    count, N = rows.shape
    errors = np.empty(stops.size)
    done = 0
    for i in range(stops.size):
        for _ in range(stops[i] - done):
            x = rows[int(rng.random() * count)]
            field = 0.0
            for j in range(N):
                field += d[j] * x[j]
            field *= rate / N
            for j in range(trained):
                d[j] -= field * x[j]
        done = stops[i]
        errors[i] = 0.5 * np.sum(omega * d**2) / N
    return errors
