"""How finite-size training scatters around mean-field theory: the variance and the bias, both to order 1/m.

The kernels are functions F of noise of order m^{−1/2} (`overlaps.dmft.noisy`): Gaussian entries ξ_i of unit variance, and
the empirical measure of the samples of each component, of which there are m ρ. So any statistic has

    m Var  = Σ_i (∂F/∂ξ_i)² + Σ_c (1/ρ_c) E[F'_c(h)²]
    m bias = ½ Σ_i ∂²F/∂ξ_i² + Σ_c (1/ρ_c) ½ E[F''_c(h)]

where F'_c(h) and F''_c(h) are derivatives with respect to t of the measure (1 − t) P + t δ_h: influence functions. They
are central differences of whole sweeps, so that all steps after a fluctuation feel it. Nothing is sampled, and nothing
is continued in z.

One pass of the iteration of the paper (its Algorithm 1) recomputes the kernels once from the mean-field dynamics and the
dynamics once from these; a fluctuation then changes the kernels of its own step alone. Its noise Γ enters with z² = −1.

Reference: arXiv preprint "Gaussian comparison for training dynamics", Algorithm 1 and equation (33), as corrected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from tqdm.auto import tqdm

from ..averages import method_for
from ..averages.rules import scrambled
from ..errors import InputError, NumericalError
from ..problem import Problem
from ..start import Start, check, joined
from ..trajectory import STEPS
from .noisy import Noise, Noisy, NoisySweep
from .setting import Setting
from .theory import is_smooth

Array = NDArray[np.float64]
STEP = 1e-4  # of the differences: derivatives are of order one
LOST = 1e-8  # relative variance below which a direction is left out: its share of the fields is 1e-4
PATHS = 7  # log2 of the points of a sweep, before mirroring
REPLICAS = 3
LONGEST = 100_000  # sweeps of a replica


def fluctuations(problem: Problem, start: Start, *, one_pass: bool = False, progress: bool = True) -> xr.Dataset:
    """Variance and bias of full-batch training at large finite size, for smooth losses.

    Parameters
    ----------
    one_pass: by one pass of the iteration of the paper, for comparison, instead of to the end; the variance alone, for
        one level.

    Returns
    -------
    For `training_error`, `error`, `Q`, `R` and `m` as in a `Trajectory`, over all steps: `variance_` and name, samples
    times the variance of a run, and `bias_` and name, samples times the mean over runs less `solve`. Attribute
    `accuracy`: three standard errors over independent sets of points, the largest over steps and entries.
    """
    check(problem, start)
    setting = Setting(problem, start)
    if not is_smooth(problem):
        raise InputError(
            "loss: this theory differentiates through the gradients of the loss, which jump here (or, of a user's "
            "loss, may); use dmft.continued, or the scatter of sample"
        )
    levels = len(setting.gram)
    if one_pass and levels > 1:
        raise InputError(f"one_pass: the iteration of the paper is for one level here, got {levels}; leave one_pass out")
    h = scrambled(setting.D * levels + (problem.label_noise > 0), _log2(setting, levels), 0)
    count = sum(1 for _ in _directions(setting, len(h), one_pass))
    if 2 * count > LONGEST:
        raise InputError(
            f"steps: {setting.T} steps need {2 * count:,} sweeps, at most {LONGEST:,}; use fewer steps, or the scatter "
            "of sample"
        )
    hidden = None if progress else True
    bar = tqdm(total=REPLICAS * count, desc="fluctuations", unit="direction", delay=2, disable=hidden)
    with bar:
        each = [_Replica(setting, seed, one_pass).result(bar.update) for seed in range(REPLICAS)]
    return _dataset(setting, each)


def _log2(setting: Setting, levels: int) -> int:
    return max(PATHS, int(np.ceil(np.log2(setting.D * levels + 2))) + 1)


Made = Callable[[float], Noise]


def _directions(setting: Setting, points: int, gamma: bool) -> Iterator[tuple[float, Made]]:
    """Independent directions of the noise: how much each counts, and the noise at a distance along it."""
    D, M, K = setting.D, setting.M, setting.K
    F = len(np.unique(setting.covariances, axis=0))
    # duals of teachers are zero, and those of the last step move nothing any more
    active = [f * D + a for f in range(F) for a in range(M, D - K)]
    for g, share in enumerate(setting.shares):
        for n, a in enumerate(active):
            for b in active[n:]:
                E = np.zeros((F * D, F * D))
                E[a, b] += np.sqrt(share)
                E[b, a] += np.sqrt(share)
                if a == b:
                    E /= np.sqrt(2)
                yield 1.0, lambda x, g=g, E=E: Noise(gram={g: x * E}, gamma={} if gamma else None)
        values, vectors = np.linalg.eigh(setting.gram[g])
        for source in (vectors * np.sqrt(np.maximum(values, 0.0))).T[values > 1e-14 * values[-1]]:
            for a in active:
                E = np.zeros((len(source), F * D))
                E[:, a] = source
                yield 1.0, lambda x, g=g, E=E: Noise(sources={g: x * E}, gamma={} if gamma else None)
    even = np.full(points, 1 / points)
    for c, rho in enumerate(setting.weights):
        for i in range(points):
            e = -even
            e[i] += 1
            yield (
                1 / (points * rho),
                lambda x, c=c, e=e: Noise(weights={c: even + x * e}, gamma={} if gamma else None),
            )
    if gamma:
        for f in range(F):
            for a in range(M, D):
                for b in range(M, D):
                    E = np.zeros((D, D))
                    E[a, b] = 1.0
                    yield -1.0, lambda x, f=f, E=E: Noise(gamma={f: x * E})  # z² = −1


class _Replica:
    """One set of points."""

    def __init__(self, setting: Setting, seed: int, one_pass: bool) -> None:
        self.setting, self.one_pass = setting, one_pass
        levels, noisy = len(setting.gram), setting.problem.label_noise > 0
        h = scrambled(setting.D * levels + noisy, _log2(setting, levels), 7000 + seed)
        fields = h[:, : setting.D * levels].reshape(len(h), levels, setting.D)
        self.sweep = NoisySweep(setting, fields, LOST, h[:, -1] if noisy else None)
        self.points = len(h)

    def _statistics(self, noise: Noise) -> tuple[Array, Array]:
        """Training error (T,), and the entries of Q, R and m at every step, (T, entries)."""
        found = self.sweep(noise)
        if self.one_pass:
            found = self.sweep(noise, given=self.sweep(noise, given=self.sweep.base))
        return entries(self.setting, found)

    def result(self, done: Callable[[], object]) -> tuple[Array, Array, Array, Array, Array, Array]:
        """Variance and bias of the training error (T,) and covariance (T, e, e) and bias (T, e) of the entries."""
        loss, state = entries(self.setting, self.sweep.base)
        variance, bias = np.zeros_like(loss), np.zeros_like(loss)
        covariance, drift = np.zeros((*state.shape, state.shape[1])), np.zeros_like(state)
        for share, made in _directions(self.setting, self.points, self.one_pass):
            up, down = self._statistics(made(STEP)), self._statistics(made(-STEP))
            slope, slopes = ((a - b) / (2 * STEP) for a, b in zip(up, down, strict=True))
            variance += share * slope**2
            covariance += share * slopes[:, :, None] * slopes[:, None, :]
            bias += 0.5 * share * (up[0] + down[0] - 2 * loss) / STEP**2
            drift += 0.5 * share * (up[1] + down[1] - 2 * state) / STEP**2
            done()
        if not all(np.isfinite(part).all() for part in (variance, bias, covariance, drift)):
            step = int(np.isfinite(covariance).all((1, 2)).argmin())
            raise NumericalError(
                f"fluctuations: derivatives are not finite at step {step}; use fewer steps, or the scatter of sample",
                quantity="V_theta",
                time=float(step),
            )
        return loss, state, variance, bias, covariance, drift


def entries(setting: Setting, found: Noisy) -> tuple[Array, Array]:
    """Training error (T,) and, of every step, the entries of Q, R and m one after the other, (T, entries)."""
    omega, M, K = setting.start.eigenvalues, setting.M, setting.K
    V = np.tensordot(omega, found.V, 1)
    rows: list[Array] = []
    for l in range(setting.T):
        now = setting.block(l)
        m = found.beta[:, now].T if setting.data.has_means else np.zeros((K, 0))
        rows.append(np.concatenate([V[now, now].ravel(), V[now, :M].ravel(), m.ravel()]))
    return setting.weights @ found.loss, np.array(rows)


def _split(setting: Setting, rows: Array) -> dict[str, Array]:
    """Q (..., K, K), R (..., K, M) and m (..., K, P) from entries (..., entries)."""
    K, M = setting.K, setting.M
    P = len(setting.weights) if setting.data.has_means else 0
    parts = np.split(rows, [K * K, K * K + K * M], axis=-1)
    return {n: x.reshape(*rows.shape[:-1], K, w) for n, x, w in zip("QRm", parts, (K, M, P), strict=True)}


def _errors(setting: Setting, rows: Array) -> Array:
    """Generalisation error (n,) at entries (n, entries), for inputs of one covariance up to factors."""
    start, parts = setting.start, _split(setting, rows)
    T, teachers = start.teacher_fields
    C = joined((parts["Q"] + parts["Q"].swapaxes(1, 2)) / 2, parts["R"], T)
    m = np.concatenate([parts["m"], np.broadcast_to(teachers, (len(rows), *teachers.shape))], axis=1)
    return method_for(setting.problem, start.u).errors(C, np.broadcast_to(start.v, (len(rows), setting.K)), m)


def _error_statistics(setting: Setting, state: Array, covariance: Array, drift: Array) -> tuple[Array, Array]:
    """m Var and m bias of the generalisation error, (T,), a smooth function of the entries."""
    step, count = 1e-3, state.shape[1]
    variance, bias = np.zeros(len(state)), np.zeros(len(state))
    for l, at in enumerate(state):
        values, vectors = np.linalg.eigh(covariance[l])
        values = np.maximum(values, 0.0)
        moves = np.concatenate([step * vectors.T, [step * drift[l]]])
        seen = _errors(setting, np.concatenate([at + moves, at - moves, [at]]))
        up, down, middle = seen[: count + 1], seen[count + 1 : -1], seen[-1]
        slope, bend = (up - down) / (2 * step), (up + down - 2 * middle) / step**2
        variance[l] = values @ slope[:-1] ** 2
        bias[l] = slope[-1] + 0.5 * values @ bend[:-1]
    return variance, bias


def _dataset(setting: Setting, each: list[tuple[Array, ...]]) -> xr.Dataset:
    dims = {
        "training_error": ("time",), "error": ("time",), "Q": ("time", "student", "student_"),
        "R": ("time", "student", "teacher"), "m": ("time", "student", "mean"),
    }  # fmt: skip
    replicas: list[dict[str, Array]] = []
    for _, state, variance, bias, covariance, drift in each:
        found = {"variance_training_error": variance, "bias_training_error": bias}
        if setting.data.one_covariance:
            found["variance_error"], found["bias_error"] = _error_statistics(setting, state, covariance, drift)
        spread = _split(setting, np.einsum("tii->ti", covariance))
        found |= {f"variance_{n}": x for n, x in spread.items() if x.shape[-1]}
        found |= {f"bias_{n}": x for n, x in _split(setting, drift).items() if x.shape[-1]}
        replicas.append(found)
    variables = {}
    for name in replicas[0]:
        values = np.array([one[name] for one in replicas])
        accuracy = 3 * float(values.std(0, ddof=1).max()) / len(values) ** 0.5
        variables[name] = (dims[name.split("_", 1)[1]], values.mean(0), {"accuracy": accuracy})
    times = ("time", np.arange(setting.T, dtype=float), {"units": STEPS})
    return xr.Dataset(variables, {"time": times}, {"description": repr(setting.problem)})
