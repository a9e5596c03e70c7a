"""How finite-size training scatters around mean-field theory: the variance and the bias, both to order 1/m.

The kernels are functions F of noise of order m^{−1/2} (`overlaps.full_batch.noisy_kernels`): Gaussian entries ξ_i of
unit variance, and the empirical measure of the samples of each component, of which there are m ρ. So any statistic has

    m Var  = Σ_i (∂F/∂ξ_i)² + Σ_c (1/ρ_c) E[F'_c(h)²]
    m bias = ½ Σ_i ∂²F/∂ξ_i² + Σ_c (1/ρ_c) ½ E[F''_c(h)]

where F'_c(h) and F''_c(h) are derivatives with respect to t of the measure (1 − t) P + t δ_h: influence functions.
Derivatives are central differences of whole recursions, so that all steps after a fluctuation feel it; nothing is
continued in z. F' is linear in what the kernels average over samples, ω, ω ωᵀ and ω hᵀ, so its square is averaged over
many points at the cost of a few recursions; F'' takes two recursions for each point.

One pass of the iteration of the paper (its Algorithm 1) recomputes the kernels once from the mean-field dynamics, and
the dynamics once from these; a fluctuation then changes the kernels of its own step alone. Its noise Γ enters with
z² = −1.

Reference: A. Panahi, arXiv:2603.09310 (2026), Algorithm 1 and equation (33), as corrected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from ..averages import method_for
from ..averages.rules import scrambled
from ..data.square_roots import root
from ..interface.checks import checked, number
from ..interface.errors import InputError, NumericalError
from ..interface.progress import bar
from ..problem.start import Start, check, joined
from ..problem.statement import Problem
from ..trajectory.dataset import STEPS
from .mean_field_kernels import Paths
from .mean_field_theory import MEMORY, is_smooth
from .noisy_kernels import Noise, NoisyKernels, NoisyRecursion, stacked
from .task import FullBatchTask

Array = NDArray[np.float64]
STEP = 1e-3  # of the differences: derivatives are of order one, and second ones lose 1e-11 of rounding over its square
SEEN = 1e-3  # relative size of a direction of weights or duals that is followed: its share of a variance is 1e-6
PATHS, MANY = 7, 11  # log2 of the points of a recursion and of those of the variance of a sample, before mirroring
MOST = 11  # to which the points of a recursion are doubled, before mirroring
REPLICAS = 3
TOGETHER = 2**18  # responses (numbers) of a component that are followed at once: calls cost little, and memory is 2 MB


@checked
def fluctuations(
    problem: Problem, start: Start, *, accuracy: float = 0.03, one_pass: bool = False, progress: bool = True
) -> xr.Dataset:
    """Variance and bias of full-batch training at large finite size, for smooth losses.

    Parameters
    ----------
    accuracy: largest error of the variances to accept, relative to the largest value of each; points are added until it
        is reached, and not reaching it is a `NumericalError`.
    one_pass: by one pass of the iteration of the paper, for comparison, instead of to the end; the variance alone, for
        one level.

    Returns
    -------
    For `training_error`, `error`, `Q`, `R` and `m` as in a `Trajectory`, over all steps: `variance_` and name, samples
    times the variance of a run, and `bias_` and name, samples times the mean over runs less `solve`. Attribute
    `accuracy`: three standard errors over independent sets of points, the largest over steps and entries. (`error` is
    left out where the covariances of components are no multiples of each other.)
    """
    check(problem, start)
    task = FullBatchTask(problem, start)
    wanted = number("accuracy", accuracy, above=0)
    if task.batches is not None:
        raise InputError(
            "batch: this theory follows the full batch, and what the draw of a part of the samples adds is not in it; "
            "use batch=None, or the scatter of sample"
        )
    if not is_smooth(problem):
        raise InputError(
            "loss: this theory differentiates through the gradients of the loss, which jump here (or, of a user's "
            "loss, may); use full_batch.continued, or the scatter of sample"
        )
    levels = len(task.gram)
    if one_pass and levels > 1:
        raise InputError(f"one_pass: it is done for one level, got {levels}; leave one_pass out")
    first = max(PATHS, int(np.ceil(np.log2(task.D * levels + 2))) + 1)
    numbers = 2.0 ** (max(first, MANY) + 1) * len(task.weights) * task.D**2
    if numbers > MEMORY:
        raise InputError(
            f"steps: {task.T} steps need {numbers * 8e-9:.0f} GB of responses; use fewer steps, or the scatter of "
            "sample"
        )
    biases: list[Array] = []
    result, worst, reached = xr.Dataset(), "", np.inf
    with bar(0, "fluctuations", "direction", shown=progress) as shown:
        for log2 in range(first, max(MOST, first) + 1, 2):
            replicas = [_Replica(task, seed, one_pass, log2) for seed in range(REPLICAS)]
            shown.total += sum(replica.count(bias=not biases) for replica in replicas)
            spread = [replica.covariance(shown.update) for replica in replicas]
            if not biases:
                biases = [replica.bias(shown.update) for replica in replicas]
            result = _dataset(task, replicas, spread, biases, biased=not one_pass)
            worst, reached = _accuracy(result)
            if reached <= wanted:
                return result
    raise NumericalError(
        f"fluctuations: {worst} reached a relative accuracy of {reached:.1e} where {wanted:.1e} was asked; pass "
        f"accuracy={1.5 * reached:.0e} to accept it, or use the scatter of sample",
        quantity=worst,
        time=float(task.T - 1),
        partial=result,
    )


def _accuracy(result: xr.Dataset) -> tuple[str, float]:
    """The least accurate variance, and its error relative to its largest value."""
    sizes = {
        str(n): result[n].attrs["accuracy"] / max(float(np.abs(result[n]).max()), 1e-12)
        for n in result
        if str(n).startswith("variance")
    }
    worst = max(sizes, key=lambda n: sizes[n])
    return worst, sizes[worst]


Made = Callable[[float], Noise]


def _gaussian(recursion: NoisyRecursion, gamma: bool) -> Iterator[tuple[float, Made]]:
    """Independent directions of the Gaussian noise: the sign with which each counts, and the noise along it."""
    task, base = recursion.task, recursion.base
    D, F, last = task.D, len(recursion.roots), task.block(task.T - 1).start
    plain: dict[int, Array] | None = {} if gamma else None
    # duals that depend linearly on others carry no noise of their own, and those of the last step move no weights
    directions = [f * D + int(a) for f in range(F) for a in _directions(base.A_omega[f]) if a < last]
    for g, share in enumerate(task.shares):
        for n, a in enumerate(directions):
            for b in directions[n:]:
                E = np.zeros((F * D, F * D))
                E[a, b] += np.sqrt(share)
                E[b, a] += np.sqrt(share)
                if a == b:
                    E /= np.sqrt(2)
                yield 1.0, lambda x, g=g, E=E: Noise(gram={g: x * E}, gamma=plain)
        sources = root(task.gram[g]).T
        lengths = np.sum(sources**2, axis=1)
        for source in sources[lengths > 1e-14 * lengths[-1]]:
            for a in directions:
                E = np.zeros((len(source), F * D))
                E[:, a] = source
                yield 1.0, lambda x, g=g, E=E: Noise(sources={g: x * E}, gamma=plain)
    for f in range(F if gamma else 0):
        for a in _directions(base.A[0]):
            for b in _directions(base.A_omega[f]):
                E = np.zeros((D, D))
                E[a, b] = 1.0
                yield -1.0, lambda x, f=f, E=E: Noise(gamma={f: x * E})  # z² = −1


def _averaged(recursion: NoisyRecursion, c: int, gamma: bool) -> Iterator[tuple[Callable[[Paths, Array], Array], Made]]:
    """What the kernels average over the samples of a component: as a function (n,) of paths, and the noise of it.

    Products are those of ω A⁻¹, whose second moments are one: they keep V_ω positive.
    """
    task, base, f = recursion.task, recursion.base, recursion.family[c]
    D, G, A = task.D, len(task.gram), base.A_omega[f]
    plain: dict[int, Array] | None = {} if gamma else None
    none = (np.zeros(D), np.zeros((D, D)), np.zeros((G, D, D)))
    for a in range(task.M, task.block(task.T - 1).start):
        e = np.zeros(D)
        e[a] = 1.0
        yield (
            lambda path, h, a=a: path.omega[:, a],
            lambda x, e=e: Noise(moments={c: (x * e, none[1], none[2])}, gamma=plain),
        )
    directions = _directions(A)

    def unit(path: Paths, a: int) -> Array:
        return path.omega @ _column(A, a)

    for n, a in enumerate(directions):
        for b in directions[n:]:
            E = np.zeros((D, D))
            E[a, b] = E[b, a] = 1.0
            yield (
                lambda path, h, a=a, b=b: unit(path, a) * unit(path, b),
                lambda x, E=E: Noise(moments={c: (none[0], x * A.T @ E @ A, none[2])}, gamma=plain),
            )
        for g in range(G):
            for b in _directions(base.A[g]):
                E = np.zeros((G, D, D))
                E[g, :, b] = A[a]
                yield (
                    lambda path, h, a=a, b=b, g=g: unit(path, a) * h[:, g, b],
                    lambda x, E=E: Noise(moments={c: (none[0], none[1], x * E)}, gamma=plain),
                )


def _directions(A: Array) -> list[int]:
    """Rows of a factor that are not negligible: directions in which something fluctuates."""
    sizes = np.linalg.norm(A, axis=1)
    return np.flatnonzero(sizes > SEEN * sizes.max(initial=0.0)).tolist()


def _column(A: Array, a: int) -> Array:
    """Column a of A⁻¹, zero where a pivot is."""
    kept = np.flatnonzero(np.diag(A))
    out = np.zeros(len(A))
    out[kept] = np.linalg.solve(A[np.ix_(kept, kept)], (kept == a).astype(float))
    return out


class _Replica:
    """One set of points."""

    def __init__(self, task: FullBatchTask, seed: int, one_pass: bool, log2: int) -> None:
        self.task, self.one_pass = task, one_pass
        self.recursion = self._points(log2, 7000 + 100 * log2 + seed)
        self.many = self._points(max(MANY, log2), 8000 + seed)
        self.middle = statistics(task, self.recursion.base)

    def _points(self, log2: int, seed: int) -> NoisyRecursion:
        task, levels = self.task, len(self.task.gram)
        noisy = task.problem.label_noise > 0
        h = scrambled(task.D * levels + noisy, log2, seed)
        fields = h[:, : task.D * levels].reshape(len(h), levels, task.D)
        return NoisyRecursion(task, fields, h[:, -1] if noisy else None, separate_components=self.one_pass)

    def count(self, bias: bool) -> int:
        """Directions that are followed."""
        gaussian = sum(1 for _ in _gaussian(self.recursion, self.one_pass))
        components = range(len(self.task.weights))
        averaged = sum(1 for c in components for _ in _averaged(self.recursion, c, self.one_pass))
        if bias and not self.one_pass:
            return 2 * gaussian + averaged + len(components) * len(self.recursion.h)
        return gaussian + averaged

    def _ends(self, made: Made) -> tuple[Array, Array]:
        """First and second derivative of the statistics, (T, s), along a direction; (n, T, s) of n `_together`."""
        up, down = (self._statistics(made(x)) for x in (STEP, -STEP))
        return (up - down) / (2 * STEP), (up + down - 2 * self.middle) / STEP**2

    def _statistics(self, noise: Noise) -> Array:
        if self.one_pass:
            return statistics(self.task, self.recursion(noise, given=self.recursion(noise, given=self.recursion.base)))
        return statistics(self.task, self.recursion(noise))

    def _together(self, made: Iterable[Made]) -> Iterator[Made]:
        """Directions that are followed at once, of one process."""
        numbers = len(self.recursion.h) * self.task.D**2
        rest = iter(made)
        while some := list(islice(rest, max(1, TOGETHER // numbers))):
            yield lambda x, some=some: stacked([one(x) for one in some], self.recursion.even)

    def _all_ends(self, made: Iterable[Made], done: Callable[[], object]) -> tuple[Array, Array]:
        """First and second derivative along every direction, (directions, T, s) each."""
        first: list[Array] = []
        second: list[Array] = []
        for some in self._together(made):
            slopes, bends = self._ends(some)
            first += list(slopes)
            second += list(bends)
            for _ in slopes:
                done()
        return np.array(first), np.array(second)

    def covariance(self, done: Callable[[], object]) -> Array:
        """m times the covariance of the statistics, (T, s, s)."""
        signs, made = zip(*_gaussian(self.recursion, self.one_pass), strict=True)
        slopes, _ = self._all_ends(made, done)
        total = np.einsum("n,nts,ntr->tsr", signs, slopes, slopes, optimize=True)
        for c, rho in enumerate(self.task.weights):
            total += self._site(c, done) / rho
        return self._finite(total)

    def _site(self, c: int, done: Callable[[], object]) -> Array:
        """Covariance of the influence functions of one sample of a component, (T, s, s)."""
        path, h = self.many.paths[c], self.many.h
        values, made = zip(*_averaged(self.recursion, c, self.one_pass), strict=True)
        slopes, _ = self._all_ends(made, done)
        x = np.array([value(path, h) for value in values])
        influence = np.tensordot(x - x.mean(1, keepdims=True), slopes, ([0], [0]))  # (n, T, s)
        losses = path.losses * self.task.weights[c]
        influence[:, :, 0] += losses - losses.mean(0)
        return np.einsum("nts,ntr->tsr", influence, influence, optimize=True) / len(influence)

    def bias(self, done: Callable[[], object]) -> Array:
        """m times the bias of the statistics, (T, s)."""
        total = np.zeros_like(self.middle)
        if self.one_pass:
            return total
        signs, made = zip(*_gaussian(self.recursion, False), strict=True)
        total += 0.5 * np.tensordot(signs, self._all_ends(made, done)[1], 1)
        even = self.recursion.even
        for c, rho in enumerate(self.task.weights):
            towards = np.eye(len(even)) - even  # row i: from the measure to its point i
            made = [lambda x, e=e, c=c: Noise(weights={c: even + x * e}) for e in towards]
            total += 0.5 / rho * self._all_ends(made, done)[1].mean(0)
        return self._finite(total)

    def _finite(self, found: Array) -> Array:
        """`found`, (T, ...), or an error at the first step where it is not finite."""
        good = np.isfinite(found).reshape(len(found), -1).all(1)
        if not good.all():
            step = int(good.argmin())
            raise NumericalError(
                f"fluctuations: derivatives are not finite at step {step}; use fewer steps, or the scatter of sample",
                quantity="V_theta",
                time=float(step),
            )
        return found


def statistics(task: FullBatchTask, found: NoisyKernels) -> Array:
    """Training error and the entries of Q, R and m one after the other, at every step, (..., T, 1 + entries)."""
    omega, M, K = task.start.eigenvalues, task.M, task.K
    V = np.tensordot(omega, found.V, 1)
    rows: list[Array] = []
    for l in range(task.T):
        now = task.block(l)
        m = np.moveaxis(found.beta[..., now], 0, -1) if task.data.has_means else V[..., now, :0]
        loss = np.tensordot(task.weights, found.loss[..., l], 1)[..., None]
        entries = [x.reshape(*loss.shape[:-1], K * x.shape[-1]) for x in (V[..., now, now], V[..., now, :M], m)]
        rows.append(np.concatenate([loss, *entries], axis=-1))
    return np.stack(rows, axis=-2)


def _split(task: FullBatchTask, rows: Array) -> dict[str, Array]:
    """Q (..., K, K), R (..., K, M) and m (..., K, P) from entries (..., entries)."""
    K, M = task.K, task.M
    P = len(task.weights) if task.data.has_means else 0
    parts = np.split(rows, [K * K, K * K + K * M], axis=-1)
    return {n: x.reshape(*rows.shape[:-1], K, w) for n, x, w in zip("QRm", parts, (K, M, P), strict=True)}


def _errors(task: FullBatchTask, rows: Array) -> Array:
    """Generalisation error (n,) at entries (n, entries), for inputs of one covariance up to factors."""
    start, parts = task.start, _split(task, rows)
    T, teachers = start.teacher_fields
    C = joined((parts["Q"] + parts["Q"].swapaxes(1, 2)) / 2, parts["R"], T)
    m = np.concatenate([parts["m"], np.broadcast_to(teachers, (len(rows), *teachers.shape))], axis=1)
    return method_for(task.problem, start.u).errors(C, np.broadcast_to(start.v, (len(rows), task.K)), m)


def _error_statistics(task: FullBatchTask, state: Array, covariance: Array, drift: Array) -> tuple[Array, Array]:
    """m Var and m bias of the generalisation error, (T,), a smooth function of the entries."""
    step, count, K = 1e-3, state.shape[1], task.K
    variance, bias = np.zeros(len(state)), np.zeros(len(state))
    fixed = np.sqrt(np.diagonal(task.start.G.sum(0)).max(initial=0.0))
    for l, at in enumerate(state):
        # entries in units of their own size, so that moved ones are still those of some weights
        size = float(np.trace(at[: K * K].reshape(K, K))) / K
        if not size > 0:
            continue
        unit = np.where(np.arange(count) < K * K, size, np.sqrt(size) * (fixed or 1.0))
        values, vectors = np.linalg.eigh(covariance[l] / np.outer(unit, unit))
        values = np.maximum(values, 0.0)
        shift = float(np.linalg.norm(drift[l] / unit)) or 1.0
        moves = np.concatenate([step * vectors.T * unit, [step / shift * drift[l]]])
        directions = _errors(task, np.concatenate([at + moves, at - moves, [at]]))
        up, down, middle = directions[: count + 1], directions[count + 1 : -1], directions[-1]
        slope, bend = (up - down) / (2 * step), (up + down - 2 * middle) / step**2
        variance[l] = values @ slope[:-1] ** 2
        bias[l] = shift * slope[-1] + 0.5 * values @ bend[:-1]
    return variance, bias


def _dataset(
    task: FullBatchTask, each: list[_Replica], spread: list[Array], biases: list[Array], biased: bool
) -> xr.Dataset:
    dims = {
        "training_error": ("time",), "error": ("time",), "Q": ("time", "student", "student_"),
        "R": ("time", "student", "teacher"), "m": ("time", "student", "mean"),
    }  # fmt: skip
    replicas: list[dict[str, Array]] = []
    for replica, covariance, bias in zip(each, spread, biases, strict=True):
        found = {"variance_training_error": covariance[:, 0, 0], "bias_training_error": bias[:, 0]}
        state, entries, drift = replica.middle[:, 1:], covariance[:, 1:, 1:], bias[:, 1:]
        if task.data.one_covariance:
            found["variance_error"], found["bias_error"] = _error_statistics(task, state, entries, drift)
        own = _split(task, np.einsum("tii->ti", entries))
        found |= {f"variance_{n}": x for n, x in own.items() if x.shape[-1]}
        found |= {f"bias_{n}": x for n, x in _split(task, drift).items() if x.shape[-1]}
        replicas.append({n: x for n, x in found.items() if biased or n.startswith("variance")})
    variables = {}
    for name in replicas[0]:
        values = np.array([one[name] for one in replicas])
        accuracy = 3 * float(values.std(0, ddof=1).max()) / len(values) ** 0.5
        variables[name] = (dims[name.split("_", 1)[1]], values.mean(0), {"accuracy": accuracy})
    times = ("time", np.arange(task.T, dtype=float), {"units": STEPS})
    return xr.Dataset(variables, {"time": times}, {"description": repr(task.problem)})
