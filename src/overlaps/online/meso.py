"""Meso: the exact law of the overlaps at finite size, at a cost that does not depend on the size.

For Gaussian inputs the overlaps are a closed Markov chain. In level b, with n_b dimensions, write the F = M + P fixed
directions (teachers, means) and the R = J K rows of the students (weights, and velocities where the algorithm has them)
in an orthonormal frame of the space they span: rows of coordinates C with C Cᵀ their inner products. An input has
coordinates √ω_b z, z ~ N(0, I), in that frame, plus those of its mean, and a part outside it. (In a mixture ω_b is
that of the component, ω_cb; components that share no eigenbasis have no levels, and no chain of this kind. With heavy
tails it is s ω_b, with a variance s that each sample draws for itself.) One step is

    r ← L r − (p/N) ⟨δ x⟩

see `overlaps.algorithms.update`. Outside the frame the sum of a batch, Σ_i δ_i x_i, has rows of inner products that are
a Wishart matrix: C T Tᵀ Cᵀ with C Cᵀ = Σ_i ω_{c_i b} δ_i δ_iᵀ and Bartlett's lower-triangular T, whose entries are
standard normal below the diagonal and χ(n_b − R − F − k) on it; for one sample and K rows that is a single new
direction of length √ω_b ρ with ρ² ~ χ²(n_b − K − F). After the step the frame has up to K directions too many; plane
rotations fold them back. Fixed directions come first, so that their coordinates never change, and only the R × R
residual of the students is rotated (for one sample a QR update, O(K²)). Working with coordinates instead of inner
products needs no inverse and no Cholesky factor of a matrix that turns singular as the student learns. A level with
n_b ≤ R + F keeps its n_b coordinates themselves: there the chain is the training run.
"""

from __future__ import annotations

from copy import copy
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..compiled.functions import kept, loop
from ..compiled.symbols import inlined, njit
from ..data.square_roots import coordinates
from ..interface.errors import InputError, unknown
from ..problem.start import Start
from ..problem.statement import Problem
from ..trajectory.dataset import Trajectory
from ..trajectory.finished_runs import FinishedRuns
from .draws import component, stretch
from .labelled_rows import by_equivalent
from .recording import NEVER, Measure, Recorded, Run
from .runs import record, refuse_kernels
from .steps import move_readout

Array = NDArray[np.float64]


class Frame(NamedTuple):
    """Rows in the orthonormal frame of each of B levels: R = J K rows of students and F fixed directions.

    fixed: (B, F, R+F) coordinates of the fixed directions, which never change.
    span: (B, R, R+F) those of the students; in a large level only along the fixed directions.
    residual: (B, R, R+K) in a large level the other R coordinates of the students, lower triangular, and workspace.
    width: (B,) coordinates in use; rest: (B,) dimensions outside the frame.
    root: (components, B) standard deviation of a coordinate.
    """

    fixed: Array
    span: Array
    residual: Array
    width: NDArray[np.int64]
    rest: NDArray[np.int64]
    root: Array


class SampleLaw(NamedTuple):
    """The law of a sample besides its input noise: component, label, label noise; and the teacher's readout u (M,).

    cumulative, labels: (components,), see `Components`; tails: see `Sampler`; means: how many components have one;
    noise: standard deviation of what is added to the teacher's output.
    """

    cumulative: Array
    labels: NDArray[np.int64]
    tails: float
    means: int
    noise: float
    u: Array


@inlined
def _rotate(X, b, i, j, c, s, first):  # pragma: no cover - compiled
    """Columns (i, j) of X[b] ← (c X_i + s X_j, c X_j − s X_i), rows from `first` on."""
    for row in range(first, X.shape[1]):
        p, q = X[b, row, i], X[b, row, j]
        X[b, row, i] = c * p + s * q
        X[b, row, j] = c * q - s * p


@inlined
def _clear(X, b, row, i, j):  # pragma: no cover - compiled
    """Rotate columns i and j of X[b] so that entry j of a row becomes zero; rows above are zero in both."""
    r = np.sqrt(X[b, row, i] ** 2 + X[b, row, j] ** 2)
    if r > 0.0:
        _rotate(X, b, i, j, X[b, row, i] / r, X[b, row, j] / r, row)
        X[b, row, j] = 0.0


@inlined
def _fold(X, z, b, F, delta, step):  # pragma: no cover - compiled
    """Lower-triangular X' with X' X'ᵀ = (X − step δ yᵀ)(X − step δ yᵀ)ᵀ, in place, for X = X[b] (K, ≥ K+1).

    Column K is zero. y = z[b, F:] (K+1) is turned into |y| e_1 by rotations from the end, and the superdiagonal that
    they leave is rotated away. Level b is an index, since a view of it in every step would cost as much as both.
    """
    K = X.shape[1]
    length = z[b, F + K]
    for j in range(K - 1, -1, -1):
        r = np.sqrt(z[b, F + j] ** 2 + length**2)
        if r > 0.0:
            _rotate(X, b, j, j + 1, z[b, F + j] / r, length / r, j)
        length = r
    for k in range(K):
        X[b, k, 0] -= step * delta[k] * length
    for j in range(K):
        _clear(X, b, j, j, j + 1)


@inlined
def _draw(sample_law, frame, c, longer, z, outside, lam, nu, rng):  # pragma: no cover - compiled
    """An input of component c: its coordinates z (B, R+F+1) in the frame, and the fields of students and teachers.

    longer: factor of its noise. outside: whether to draw its length outside the frame as well, which follows the
    coordinates of a level.
    """
    fixed, span, residual, width, rest, root = frame
    B, F, _ = fixed.shape
    K, M, means = lam.size, nu.size, sample_law.means
    lam[:] = 0.0
    nu[:] = 0.0
    for b in range(B):
        n = width[b]
        noisy = longer * root[c, b]
        for j in range(n):
            z[b, j] = noisy * rng.standard_normal()
        common = F if rest[b] > 0 else n
        if means > 0:
            for j in range(common):
                z[b, j] += fixed[b, M + c, j]
        for m in range(M):  # sums are kept in registers: an array could be any other in memory
            total = 0.0
            for j in range(common):
                total += fixed[b, m, j] * z[b, j]
            nu[m] += total
        for k in range(K):
            total = 0.0
            for j in range(common):
                total += span[b, k, j] * z[b, j]
            if rest[b] > 0:
                for j in range(k + 1):
                    total += residual[b, k, j] * z[b, F + j]
            lam[k] += total
        if outside and rest[b] > 0:
            z[b, n] = noisy * np.sqrt(2.0 * rng.standard_gamma(0.5 * rest[b]))


@loop(nogil=True)
def _single(kernel, sample_law, frame, v, step, batch, size, rng, stop):  # pragma: no cover - compiled
    """A step for each of the matrices in `step`, in place: of one sample, with one row a unit; stop: see `Run`."""
    fixed, span, residual, width, rest, _ = frame
    B, F, _ = fixed.shape
    K = span.shape[1]
    lam, nu, dlam, dv = np.empty(K), np.empty(sample_law.u.size), np.empty(K), np.empty(K)
    z = np.empty((B, K + F + 1))
    keeps, pulls, keeps_readout, pulls_readout = step
    readout, labels, u, noise = v[0], sample_law.labels, sample_law.u, sample_law.noise
    cumulative, tails, means = sample_law.cumulative, sample_law.tails, sample_law.means
    for s in range(len(pulls)):
        if stop[0]:
            return
        c = component(cumulative, means, rng)
        _draw(sample_law, frame, c, stretch(tails, rng), z, True, lam, nu, rng)
        shift = noise * rng.standard_normal() if noise > 0.0 else 0.0
        kernel(lam, nu, labels[c], readout, u, shift, dlam, dv)
        keep, pull = keeps[s, 0, 0], pulls[s, 0] / size
        for b in range(B):
            common = F if rest[b] > 0 else width[b]
            for k in range(K):
                for j in range(common):
                    span[b, k, j] = keep * span[b, k, j] - pull * dlam[k] * z[b, j]
            if rest[b] > 0:
                if keep != 1.0:
                    for k in range(K):
                        for j in range(K):
                            residual[b, k, j] *= keep
                _fold(residual, z, b, F, dlam, pull)
        keep, pull = keeps_readout[s, 0, 0], pulls_readout[s, 0] / size
        if pull != 0.0:  # as `move_readout`, without views of arrays, which cost as much as a step
            for k in range(K):
                readout[k] = keep * readout[k] - pull * dv[k]


@njit
def _root(H, C):  # pragma: no cover - compiled
    """Lower-triangular C with C Cᵀ = H for a positive, possibly singular H (K, K)."""
    for j in range(len(H)):
        pivot = H[j, j]
        for i in range(j):
            pivot -= C[j, i] ** 2
        C[j, j] = np.sqrt(pivot) if pivot > 1e-14 * H[j, j] else 0.0
        for k in range(j + 1, len(H)):
            C[j, k] = 0.0
            rest = H[k, j]
            for i in range(j):
                rest -= C[k, i] * C[j, i]
            C[k, j] = rest / C[j, j] if C[j, j] > 0.0 else 0.0


@njit
def _move(rows, keep, pull, gradient, moved):  # pragma: no cover - compiled
    """rows (J K, n) ← L rows − p gradient, with the gradient (K, n) of the units, in place; moved (J,) is workspace."""
    K = len(gradient)
    J = moved.size
    for k in range(K):
        for i in range(gradient.shape[1]):
            for j in range(J):
                moved[j] = -pull[j] * gradient[k, i]
                for l in range(J):
                    moved[j] += keep[j, l] * rows[l * K + k, i]
            for j in range(J):
                rows[j * K + k, i] = moved[j]


@loop(nogil=True)
def _batches(kernel, sample_law, frame, v, step, batch, size, rng, stop):  # pragma: no cover - compiled
    """A step for each of the matrices in `step`, in place: of a batch of samples, with any number of rows a unit."""
    B, F, _ = frame.fixed.shape
    R, (J, K) = frame.span.shape[1], v.shape
    lam, nu, dlam, dv = np.empty(K), np.empty(sample_law.u.size), np.empty(K), np.empty(K)
    z, total_dv, moved = np.empty((B, R + F + 1)), np.empty(K), np.empty(J)
    inside, outside = np.empty((B, K, R + F)), np.zeros((K, K))
    H, C, T = np.empty((B, K, K)), np.empty((K, K)), np.empty((K, K))
    for s in range(len(step.pull)):
        inside[:] = 0.0
        H[:] = 0.0
        total_dv[:] = 0.0
        for _ in range(batch):
            if stop[0]:
                return
            c = component(sample_law.cumulative, sample_law.means, rng)
            longer = stretch(sample_law.tails, rng)
            _draw(sample_law, frame, c, longer, z, False, lam, nu, rng)
            shift = sample_law.noise * rng.standard_normal() if sample_law.noise > 0.0 else 0.0
            kernel(lam, nu, sample_law.labels[c], v[0], sample_law.u, shift, dlam, dv)
            for k in range(K):
                total_dv[k] += dv[k] / batch
                for b in range(B):
                    for l in range(K):
                        H[b, k, l] += (longer * frame.root[c, b]) ** 2 * dlam[k] * dlam[l]
                    for j in range(frame.width[b]):
                        inside[b, k, j] += dlam[k] * z[b, j]
        keep, pull = step.keep[s], step.pull[s] / (size * batch)
        for b in range(B):
            if frame.rest[b] == 0:
                n = frame.width[b]
                _move(frame.span[b, :, :n], keep, pull, inside[b, :, :n], moved)
                continue
            _root(H[b], C)
            new = min(K, frame.rest[b])
            for k in range(K):  # Bartlett's factor of the inner products of what is outside the frame
                for l in range(K):
                    T[k, l] = 0.0
                    if l < k and l < new:
                        T[k, l] = rng.standard_normal()
                    elif l == k and k < new:
                        T[k, k] = np.sqrt(2.0 * rng.standard_gamma(0.5 * (frame.rest[b] - k)))
            for k in range(K):
                for l in range(K):
                    outside[k, l] = 0.0
                    for i in range(k + 1):
                        outside[k, l] += C[k, i] * T[i, l]
            X = frame.residual[b]
            _move(frame.span[b, :, :F], keep, pull, inside[b, :, :F], moved)
            _move(X[:, :R], keep, pull, inside[b, :, F : F + R], moved)
            X[:, R:] = 0.0
            _move(X[:, R:], keep, pull, outside, moved)
            for row in range(R):
                for j in range(row + 1, R + new):
                    _clear(frame.residual, b, row, row, j)
        move_readout(v, total_dv, size, step.keep_readout[s], step.pull_readout[s])


@kept(nogil=True)
def _overlaps(frame, Q, A):  # pragma: no cover - compiled
    """Overlaps Q (B, K, K) and A (B, K, F) of the weights, which are the first K rows."""
    (B, K, F), R = A.shape, frame.span.shape[1]
    fixed, span, residual = frame.fixed, frame.span, frame.residual
    for b in range(B):
        for k in range(K):
            for m in range(F):
                total = 0.0
                for j in range(frame.width[b]):
                    total += span[b, k, j] * fixed[b, m, j]
                A[b, k, m] = total
            for l in range(k + 1):
                total = 0.0
                for j in range(frame.width[b]):
                    total += span[b, k, j] * span[b, l, j]
                for j in range(R):
                    total += residual[b, k, j] * residual[b, l, j]
                Q[b, k, l] = Q[b, l, k] = total


class Chain:
    """One run of the overlap chain."""

    rng: np.random.Generator
    observations: list[dict[str, Array]]
    measures: dict[str, Measure] = {}  # noqa: RUF012 - never written to
    stop = NEVER

    def __init__(self, problem: Problem, start: Start) -> None:
        assert start.size is not None and start.dimensions is not None
        self.kernel, self.update = problem.gradient, problem.update
        # steps between two reports of progress, when divergence is looked for
        self.chunk = max(1, 50_000 // self.update.batch)
        J, (B, K, F) = self.update.rule.rows, start.A.shape
        R = J * K
        self.v = np.zeros((J, K))
        self.v[0] = start.v
        self.size = start.size
        means, data = F - start.u.size, problem.data
        self.sample_law = SampleLaw(*data.drawn_components.drawn, data.tails, means, problem.label_noise, start.u)
        width = np.minimum(start.dimensions, R + F)
        rest = start.dimensions - width
        fixed, span, residual = np.zeros((B, F, R + F)), np.zeros((B, R, R + F)), np.zeros((B, R, R + K))
        fixed_first = np.concatenate([np.arange(K, K + F), np.arange(K)])
        for b, gram in enumerate(start.gram[:, fixed_first][:, :, fixed_first]):
            large = bool(rest[b] > 0)
            rows = coordinates(gram, min(int(width[b]), K + F), triangular=large)  # velocities are zero
            n = rows.shape[1]
            fixed[b, :, :n] = rows[:F]
            if large:
                span[b, :K, :F] = rows[F:, :F]
                residual[b, :K, :K] = rows[F:, F:]
            else:
                span[b, :K, :n] = rows[F:]
        # two functions, since a first answer waits for the one that it needs to be compiled
        self.take_steps = _single if self.update.batch == 1 and J == 1 else _batches
        self.frame = Frame(fixed, span, residual, width, rest, data.standard_deviations(start.eigenvalues))
        self.done = 0

    def copy_with(self, rng: np.random.Generator) -> Chain:
        """A copy of this run with samples of its own."""
        new = copy(self)
        new.rng, new.observations, new.v = rng, [], self.v.copy()
        new.frame = self.frame._replace(span=self.frame.span.copy(), residual=self.frame.residual.copy())
        return new

    def record(self, steps: NDArray[np.int64]) -> Recorded:
        """Go to each of these steps and record the overlaps there."""
        B, F, _ = self.frame.fixed.shape
        K, n = self.v.shape[1], steps.size
        Q, A, V = np.empty((n, B, K, K)), np.empty((n, B, K, F)), np.empty((n, K))
        for i, stop in enumerate(steps):
            matrices = self.update.steps(self.done, int(stop) - self.done, self.size)
            sampled = matrices, self.update.batch, float(self.size), self.rng, self.stop
            self.take_steps(self.kernel, self.sample_law, self.frame, self.v, *sampled)
            self.done = int(stop)
            _overlaps(self.frame, Q[i], A[i])
            V[i] = self.v[0]
        return Recorded(Q, A, V)


def sample(
    problem: Problem,
    start: Start,
    times: ArrayLike | None,
    runs: int,
    seed: int,
    *,
    method: str,
    levels: bool,
    kernels: bool,
    kept: FinishedRuns | None,
    progress: bool,
) -> Trajectory:
    """Runs of the overlap chain of a one-pass algorithm; see `overlaps.sample`."""
    refuse_kernels(kernels)
    if problem.classifies_rows:
        raise InputError(
            "data: theory takes each class of rows as a Gaussian with a covariance of its own, which share no "
            "eigenbasis, so that no finite set of overlaps is a chain; use train or solve"
        )
    if problem.learns_rows:
        options = {"method": method, "levels": levels, "kernels": kernels, "kept": kept, "progress": progress}
        return by_equivalent(problem, lambda equivalent: sample(equivalent, start, times, runs, seed, **options))
    if start.size is None:
        raise InputError("start: meso needs a size; pass size= to Start.from_overlaps, or use draw")
    if problem.data.reads_latent:
        raise InputError(
            "data: the inputs of a hidden manifold are not Gaussian, and the overlap chain needs Gaussian inputs; "
            "use train, or solve for the Gaussian-equivalent theory"
        )
    if not problem.data.commuting:
        raise InputError(
            "data: covariances that do not commute share no eigenbasis, so that no finite set of overlaps is a chain "
            "of its own; use train, whose step costs N² for such inputs, or solve"
        )
    if not isinstance(method, str) or method not in ("exact", "diffusion"):
        raise unknown("method", str(method), ["exact", "diffusion"])
    if method == "diffusion":
        if not problem.data.one_covariance:
            raise InputError(
                "method: the diffusion takes one covariance for all components, times a variance of each; use "
                "method='exact'"
            )
        from .diffusion import Diffusion

        run: Run = Diffusion(problem, start)
    else:
        run = Chain(problem, start)
    scale = "meso" if method == "exact" else "diffusion"
    return record(scale, run, problem, start, times, runs, seed, levels=levels, kept=kept, progress=progress)
