"""Training on all samples at every step.

With θ = w = W/√N, so that fields are θ·x, and the gradient q(l) = (1/m) Σ_i δ_i(l) x_i of the mean loss at θ(l), any
linear first-order method is a pair of kernels,

    θ(l) = λ(l) θ(0) − η Σ_{μ<l} Λ(μ, l) (q(μ) + β θ(μ))

    gd            Λ = 1                                θ ← θ − η q
    ema-momentum  Λ = 1 − s^{l−μ}                      u ← s u + (1 − s) q,  θ ← θ − η u
    heavy-ball    Λ = (1 − s^{l−μ})/(1 − s)            θ ← θ − η q + s (θ − θ_before)
    nesterov      Λ = (1 − s^{l−μ+1})/(1 − s)          θ ← y + s (y − y_before),  y = θ − η q

with λ = 1; of Nesterov's method θ is the point where the gradient is taken.

>>> from overlaps import FullBatch
>>> FullBatch(steps=3, rate=0.2, method="ema-momentum", momentum=0.5).history[0]
array([0.   , 0.1  , 0.15 , 0.175])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..interface.checks import array, number, whole
from ..interface.errors import InputError, unknown

Array = NDArray[np.float64]
METHODS = ("gd", "ema-momentum", "heavy-ball", "nesterov")


@dataclass(frozen=True)
class FullBatch:
    """Training on all samples at every step, by any linear first-order method.

    Parameters
    ----------
    steps: number of steps, at most 10⁴; times of a trajectory are whole steps, 0 to `steps`.
    rate: η, step size times the gradient of the mean loss with respect to w = W/√N.
    method: ``"gd"``, ``"ema-momentum"``, ``"heavy-ball"``, ``"nesterov"``, or kernels (λ, Λ): λ (steps + 1,), and
        Λ (steps + 1, steps + 1) with Λ[μ, l] the weight of gradient μ in step l, zero unless μ < l; `rate` multiplies
        Λ.
    ratio: input dimensions per sample, N/m.
    momentum: s of the methods that have one, from 0 to below 1.
    decay: β, weight decay.
    """

    steps: int
    rate: float
    method: str | tuple[Sequence[float] | Array, Sequence[Sequence[float]] | Array] = "gd"
    ratio: float = 1.0
    momentum: float = 0.0
    decay: float = 0.0
    readout_rate: ClassVar[None] = None
    engine: ClassVar[str] = "full_batch"
    draws_samples: ClassVar[bool] = True
    plain: ClassVar[bool] = False  # laws of one-pass training do not know it

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", whole("steps", self.steps, least=1, most=10**4))
        object.__setattr__(self, "rate", number("rate", self.rate, above=0))
        object.__setattr__(self, "ratio", number("ratio", self.ratio, above=0))
        object.__setattr__(self, "momentum", number("momentum", self.momentum, least=0))
        object.__setattr__(self, "decay", number("decay", self.decay, least=0))
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

    def samples(self, size: int) -> int:
        """m at N = `size`, the nearest whole number to N/ratio, at least one."""
        return max(1, round(size / self.ratio))

    @property
    def kernels(self) -> tuple[Array, Array]:
        """λ (steps + 1,) and η Λ (steps + 1, steps + 1), with the decay taken into both."""
        return self.first_kernels(self.steps + 1)

    def first_kernels(self, T: int) -> tuple[Array, Array]:
        """The kernels of the first T steps, λ (T,) and η Λ (T, T).

        Θ = θ(0) λᵀ − (Q + β Θ) ηΛ is solved by λ (1 + ηβΛ)⁻¹ and ηΛ (1 + ηβΛ)⁻¹; later steps do not enter earlier ones.
        """
        s = self.momentum
        if isinstance(self.method, str):
            ago = np.arange(T) - np.arange(T)[:, None]  # l − μ
            power = s ** np.maximum(ago, 0) if self.method != "nesterov" else s ** np.maximum(ago + 1, 0)
            weights = np.ones((T, T)) if self.method == "gd" else 1 - power
            if self.method in ("heavy-ball", "nesterov"):
                weights = weights / (1 - s)
            first, history = np.ones(T), self.rate * np.triu(weights, 1)
        else:
            first, history = np.array(self.method[0], float)[:T], self.rate * np.array(self.method[1], float)[:T, :T]
        if self.decay:
            damped = np.eye(T) + self.decay * history
            first = np.asarray(np.linalg.solve(damped.T, first), float)
            history = np.triu(np.asarray(np.linalg.solve(damped.T, history.T), float).T, 1)
        return first, history

    @property
    def history(self) -> Array:
        """η Λ with the decay taken in, (steps + 1, steps + 1): weight of gradient μ (row) in step l (column)."""
        return self.kernels[1]

    def __repr__(self) -> str:
        method = self.method if isinstance(self.method, str) else "own kernels"
        more = "".join(f", {name}={getattr(self, name):g}" for name in ("momentum", "decay") if getattr(self, name))
        return f"FullBatch({self.steps} steps, rate {self.rate:g}, {method}, ratio {self.ratio:g}{more})"


def _kernels(given: Any, T: int) -> tuple[tuple[float, ...], tuple[tuple[float, ...], ...]]:
    """(λ, Λ) as tuples, which compare, hash and go to TOML; refused unless they are causal."""
    try:
        first, history = given
    except (TypeError, ValueError):
        raise InputError(f"method: expected a name or two kernels (λ, Λ), got {given!r:.80}") from None
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
    """Every method, with momentum and decay."""
    return (
        FullBatch(steps=5, rate=0.3),
        *(FullBatch(steps=5, rate=0.2, method=method, momentum=0.5, decay=0.1) for method in METHODS[1:]),
    )


ALGORITHM = FullBatch
REFUSED = ({"steps": 0, "rate": 0.3}, {"rate": 0.0, "steps": 3}, {"ratio": 0.0, "steps": 3, "rate": 0.3})
