"""Training on the same samples again and again: all of them at every step, or a part of them drawn anew at each.

With θ = w = W/√N, so that fields are θ·x, and the gradient q(l) = (1/m) Σ_i δ_i(l) x_i of the mean loss at θ(l), any
linear first-order method is a pair of kernels,

    θ(l) = λ(l) θ(0) − Σ_{μ<l} H(μ, l) (q(μ) + β θ(μ))

    gd            H = η(μ)                               θ ← θ − η q
    ema-momentum  H = Σ_{j=μ}^{l−1} η(j) (1 − s) s^{j−μ}  u ← s u + (1 − s) q,  θ ← θ − η u
    heavy-ball    H = η(μ) (1 − s^{l−μ})/(1 − s)         θ ← θ − η q + s (θ − θ_before)
    nesterov      H = η(μ) (1 − s^{l−μ+1})/(1 − s)       θ ← y + s (y − y_before),  y = θ − η q

with λ = 1, and η = η(l) the rate of the step from l to l + 1; of Nesterov's method θ is the point where the gradient is
taken. At a constant rate H = η Λ, where Λ = 1 − s^{l−μ} for the moving average.

A batch of n = b m samples has the gradient q(l) = (1/n) Σ_{i in the batch} δ_i x_i = (1/m) Σ_i s_i(l) δ_i(l) x_i, where
s_i(l) = m/n times how often sample i is in the batch of step l, of mean one.

>>> from overlaps import FullBatch, schedules
>>> FullBatch(steps=3, rate=0.2, method="ema-momentum", momentum=0.5).history[0]
array([0.   , 0.1  , 0.15 , 0.175])
>>> FullBatch(steps=3, rate=schedules.Steps([2], [0.2, 0.1]), batch=0.5).history[:, -1]
array([0.2, 0.2, 0.1, 0. ])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..interface.checks import array, number, whole
from ..interface.errors import InputError, shown, unknown
from .schedules import TimeDependent, rate_or_schedule
from .schedules.definition import as_schedule
from .update import Update

Array = NDArray[np.float64]
METHODS = ("gd", "ema-momentum", "heavy-ball", "nesterov")


@dataclass(frozen=True)
class FullBatch:
    """Training on m samples, all of them or a part at every step, by any linear first-order method.

    Parameters
    ----------
    steps: number of steps, at most 10⁴; times of a trajectory are whole steps, 0 to `steps`.
    rate: η, step size times the gradient of the mean loss with respect to w = W/√N; a number, or a schedule whose time
        is the number of the step: η(l) is the rate of the step from l to l + 1.
    method: ``"gd"``, ``"ema-momentum"``, ``"heavy-ball"``, ``"nesterov"``, or kernels (λ, Λ): λ (steps + 1,), and
        Λ (steps + 1, steps + 1) with Λ[μ, l] the weight of gradient μ in step l, zero unless μ < l; `rate` multiplies
        Λ, a schedule its row μ by η(μ).
    ratio: input dimensions per sample, N/m.
    momentum: s of the methods that have one, from 0 to below 1.
    decay: β, weight decay.
    batch: b, the share of the samples that each step uses, above 0 and at most 1; they are drawn independently at every
        step. None, and 1.0 without replacement, is the full batch. It is a share rather than a number since the limit
        of many samples keeps it.
    replacement: whether a step may draw a sample several times.
    """

    steps: int
    rate: float | TimeDependent
    method: str | tuple[Sequence[float] | Array, Sequence[Sequence[float]] | Array] = "gd"
    ratio: float = 1.0
    momentum: float = 0.0
    decay: float = 0.0
    batch: float | None = None
    replacement: bool = False
    readout_rate: ClassVar[None] = None
    engine: ClassVar[tuple[str, str, str]] = ("full_batch.engine", "full_batch.engine", "full_batch.engine")
    draws_samples: ClassVar[bool] = True
    times_are_steps: ClassVar[bool] = True
    plain: ClassVar[bool] = False  # closed forms are for one-pass training

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", whole("steps", self.steps, least=1, most=10**4))
        object.__setattr__(self, "rate", rate_or_schedule("rate", self.rate, above=0))
        object.__setattr__(self, "ratio", number("ratio", self.ratio, above=0))
        object.__setattr__(self, "momentum", number("momentum", self.momentum, least=0))
        object.__setattr__(self, "decay", number("decay", self.decay, least=0))
        self._check_rates()
        self._check_batch()
        if isinstance(self.method, str):
            if self.method not in METHODS:
                raise unknown("method", self.method, METHODS)
        else:
            object.__setattr__(self, "method", _kernels(self.method, self.steps + 1))
        if self.momentum >= 1:
            raise InputError(f"momentum: expected a number below 1, got {self.momentum:g}; the method would never stop")
        if self.momentum and self.method not in METHODS[1:]:
            raise InputError(
                "momentum: has no effect here; use method='ema-momentum', 'heavy-ball' or 'nesterov', or drop it"
            )

    def _check_rates(self) -> None:
        """Refuse a schedule whose rate is negative or not finite at any step."""
        rates = self.rates(self.steps)
        wrong = np.flatnonzero(~(np.isfinite(rates) & (rates >= 0)))
        if wrong.size:
            raise InputError(
                f"rate: expected rates of at least 0, {self.rate!r} has {rates[wrong[0]]:g} at step {wrong[0]}"
            )
        if rates.max() == 0:
            raise InputError(
                f"rate: {self.rate!r} is zero at all {self.steps} steps, so that nothing would be learned; its time is "
                "the number of the step"
            )

    def _check_batch(self) -> None:
        if not isinstance(self.replacement, (bool, np.bool_)):
            raise InputError(f"replacement: expected True or False, got {shown(self.replacement)}")
        object.__setattr__(self, "replacement", bool(self.replacement))
        if self.batch is None:
            if self.replacement:
                raise InputError(
                    "replacement: has no effect on the full batch; give batch, 1.0 for as many draws as samples"
                )
            return
        object.__setattr__(self, "batch", number("batch", self.batch, above=0))
        if self.batch > 1:
            raise InputError(
                f"batch: expected a share of the samples, above 0 and at most 1, got {self.batch:g}; n of m samples "
                "are batch=n/m"
            )

    def check_problem(self, data: Any, trains_readout: bool) -> None:
        """Refuse inputs that are neither Gaussian nor rows with labels, covariances that differ in their eigenvectors,
        and a trained readout.
        """
        if not data.is_gaussian and not (data.labelled and data.table is not None):
            raise InputError(
                f"algorithm: FullBatch needs Gaussian inputs or labelled rows, got {type(data).__name__}; use "
                "GaussianMixture, GaussianInputs (of a data set: GaussianInputs(Spectrum.from_data(...))) or "
                "Samples(X, y), or OnlineSGD"
            )
        if not data.commuting:
            raise InputError(
                "covariances: FullBatch needs covariances that commute, since its theory and its runs divide the "
                "inputs into the eigenvectors that all share, got some that do not; use OnlineSGD, or one covariance "
                "for all components"
            )
        if trains_readout:
            raise InputError(
                "train_readout: FullBatch trains the first layer, by methods that are linear in its gradients; use "
                "train_readout=False, or OnlineSGD"
            )

    def update(self, trains_readout: bool) -> Update:
        """There is none, since a sample that is used again is not independent of the weights: refused."""
        raise InputError(
            "algorithm: this is for one-pass training, got FullBatch; use OnlineSGD or GradientFlow, or solve"
        )

    def extent(self, size: int, first: float, last: float) -> tuple[int, str]:
        """Steps of a run, and in words what is recorded: all of them, whatever times were asked for."""
        return self.steps, f"{self.steps} steps on {self.samples(size)} samples"

    def step_samples(self, size: int) -> int:
        """Samples that a step of a run reads at a size."""
        return self.batch_samples(self.samples(size))

    def rates(self, count: int) -> Array:
        """η of the first `count` steps, (count,)."""
        return np.asarray(as_schedule(self.rate).at(np.arange(count, dtype=float)), float)

    @property
    def rate_text(self) -> str:
        """The rate in a few words, for messages."""
        return repr(self.rate) if isinstance(self.rate, TimeDependent) else f"{self.rate:g}"

    def samples(self, size: int) -> int:
        """m at N = `size`, the nearest whole number to N/ratio, at least one."""
        return max(1, round(size / self.ratio))

    def batch_samples(self, samples: int) -> int:
        """n, the samples that a step uses of m = `samples`: the nearest whole number to b m, at least one."""
        return samples if self.batch is None else max(1, round(self.batch * samples))

    @property
    def kernels(self) -> tuple[Array, Array]:
        """λ (steps + 1,) and H (steps + 1, steps + 1), with the decay taken into both."""
        return self.first_kernels(self.steps + 1)

    def first_kernels(self, T: int) -> tuple[Array, Array]:
        """The kernels of the first T steps, λ (T,) and H (T, T).

        Θ = θ(0) λᵀ − (Q + β Θ) H is solved by λ (1 + βH)⁻¹ and H (1 + βH)⁻¹; later steps do not enter earlier ones.
        """
        first = np.ones(T) if isinstance(self.method, str) else np.array(self.method[0], float)[:T]
        history = self._without_decay(T)
        if self.decay:
            damped = np.eye(T) + self.decay * history
            first = np.asarray(np.linalg.solve(damped.T, first), float)
            history = np.triu(np.asarray(np.linalg.solve(damped.T, history.T), float).T, 1)
        return first, history

    def _without_decay(self, T: int) -> Array:
        """H of the method itself, (T, T)."""
        s, rates = self.momentum, np.append(self.rates(T - 1), 0.0)[:, None]  # no step follows the last gradient
        if not isinstance(self.method, str):
            return rates * np.array(self.method[1], float)[:T, :T]
        ago = np.arange(T) - np.arange(T)[:, None]  # l − μ
        if self.method == "gd":
            return rates * np.triu(np.ones((T, T)), 1)
        if self.method == "nesterov":
            return rates * np.triu((1 - s ** np.maximum(ago + 1, 0)) / (1 - s), 1)
        power = s ** np.maximum(ago, 0)
        if self.method == "heavy-ball":
            return rates * np.triu((1 - power) / (1 - s), 1)
        if not isinstance(self.rate, TimeDependent):
            return rates * np.triu(1 - power, 1)
        moved = np.cumsum(np.triu((1 - s) * power * rates.T), axis=1)  # by step l + 1, of gradient μ
        return np.concatenate([np.zeros((T, 1)), moved[:, :-1]], axis=1)

    @property
    def history(self) -> Array:
        """H with the decay taken in, (steps + 1, steps + 1): weight of gradient μ (row) in step l (column)."""
        return self.kernels[1]

    def __repr__(self) -> str:
        method = self.method if isinstance(self.method, str) else "own kernels"
        names = ("momentum", "decay", "batch")
        more = "".join(f", {name}={getattr(self, name):g}" for name in names if getattr(self, name))
        more += " with replacement" * self.replacement
        return f"FullBatch({self.steps} steps, rate {self.rate_text}, {method}, ratio {self.ratio:g}{more})"


def _kernels(given: Any, T: int) -> tuple[tuple[float, ...], tuple[tuple[float, ...], ...]]:
    """(λ, Λ) as tuples, which compare, hash and go to TOML; refused unless they are causal."""
    try:
        first, history = given
    except (TypeError, ValueError):
        raise InputError(f"method: expected a name or two kernels (λ, Λ), got {shown(given)}") from None
    first, history = array("method: λ", first, (T,)), array("method: Λ", history, (T, T))
    wrong = np.argwhere(np.tril(history) != 0)
    if wrong.size:
        mu, l = wrong[0]
        raise InputError(
            f"method: Λ is not causal: step {l} would use the gradient of step {mu} (Λ[{mu}, {l}] = "
            f"{history[mu, l]:g}); entries must be zero unless row < column, transpose Λ if its rows are the steps"
        )
    if first[0] != 1:
        raise InputError(f"method: expected λ[0] = 1, the start itself, got {first[0]:g}")
    return tuple(first.tolist()), tuple(tuple(row) for row in history.tolist())


def examples() -> tuple[FullBatch, ...]:
    """Every method, with momentum and decay, rates that depend on time, and batches."""
    from .schedules import Cosine, Steps

    return (
        FullBatch(steps=5, rate=0.3),
        *(FullBatch(steps=5, rate=0.2, method=method, momentum=0.5, decay=0.1) for method in METHODS[1:]),
        FullBatch(steps=5, rate=Steps([2.0], [0.3, 0.1]), method="ema-momentum", momentum=0.5),
        FullBatch(steps=5, rate=0.2, batch=0.5),
        FullBatch(steps=5, rate=Cosine(0.3, 5.0), decay=0.1, batch=0.25, replacement=True),
    )


ALGORITHM = FullBatch
REFUSED = (
    {"steps": 0, "rate": 0.3},
    {"rate": 0.0, "steps": 3},
    {"ratio": 0.0, "steps": 3, "rate": 0.3},
    {"batch": 0.0, "steps": 3, "rate": 0.3},
    {"batch": 32, "steps": 3, "rate": 0.3},
    {"replacement": True, "steps": 3, "rate": 0.3},
    {"replacement": 1, "batch": 0.5, "steps": 3, "rate": 0.3},
)
