"""A wide two-layer network and the training set of its giant step.

    features F(x) = g(Wᵀx), W (d, N) with columns uniform on the unit sphere
    outputs F(x)·a_c/√N for each head c, a_c ~ N(0, 1/N)
    loss (1/2n) Σ_c |y_c − F a_c/√N|²        y_1 = y, y_2 = −y

Sizes d (input dimensions, `size`), n (`samples`) and N (`units`) are of the same order: the proportional regime. What
theory knows of the training set are its *groups*: the two classes, or all samples where labels are not ±1. Of each

    share p,  mean label ȳ,  mean m,  variance v of a coordinate,  pull b = (1/n) Σ y x over the group

with Σ over groups b = Xᵀy/n. The train-unseen similarity is b·μ (√N times β·μ for β = Xᵀy/(n√N)).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..algorithms import GiantStep
from ..data.two_classes import TwoClasses
from ..interface.checks import array, whole
from ..interface.errors import InputError, shown
from ..network.activations import Activation, activation
from .unseen import UnseenClass

Array = NDArray[np.float64]
Sampler = Callable[[np.random.Generator, int, int], tuple[ArrayLike, ArrayLike]]


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """A training set given as arrays.

    Parameters
    ----------
    X: inputs, (samples, inputs).
    y: labels, (samples,): ±1 for two heads, any numbers for one.
    """

    X: Array = field(repr=False)
    y: Array = field(repr=False)

    def __post_init__(self) -> None:
        X = array("X", self.X, (None, None))
        y = array("y", self.y, (len(X),))
        if len(X) < 2 or X.shape[1] < 4:
            raise InputError(f"X: expected at least 2 samples of at least 4 inputs, got shape {X.shape}")
        object.__setattr__(self, "X", X)
        object.__setattr__(self, "y", y)


@dataclass(frozen=True)
class Groups:
    """What theory knows of a training set; G groups.

    Attributes
    ----------
    shares, labels, squares: p, mean of y and mean of y² in each, (G,).
    means: m, (G, d); variances: v, (G,).
    pulls: b, (G, d): of a population its mean, of arrays the one they have.
    spread: variance of each coordinate of the pulls over training sets, (G,), zero for given arrays.
    inputs, targets: x and y of the samples of each group, for arrays alone.
    """

    shares: Array
    labels: Array
    squares: Array
    means: Array
    variances: Array
    pulls: Array
    spread: Array
    inputs: tuple[Array, ...] = ()
    targets: tuple[Array, ...] = ()

    @property
    def covariances(self) -> Array:
        """c, the covariance of labels with inputs in each group, (G, d); (0, d) where labels are equal in each."""
        c = self.pulls / self.shares[:, None] - self.labels[:, None] * self.means
        equal = self.squares - self.labels**2 <= 1e-12 * self.squares
        return c[:0] if equal.all() else c

    @property
    def concentration(self) -> Array:
        """tr C²/(tr C)² − 1/d of the covariance of each group, (G,): zero for equal variances."""
        out = np.zeros(len(self.shares))
        for g, inputs in enumerate(self.inputs):
            X = inputs - self.means[g]
            m, d = X.shape
            C = X @ X.T if m < d else X.T @ X
            trace = float(np.trace(C))
            # 1/m of it is the noise of a covariance from m samples
            out[g] = float((C**2).sum()) / trace**2 - 1 / m - 1 / d if trace > 0 else 0.0
        return out

    def projected_squares(self, one: UnseenClass) -> Array:
        """E[y² (x·μ)²] of each group, (G,)."""
        if self.inputs:
            pairs = zip(self.inputs, self.targets, strict=True)
            return np.array([(y**2 * (X @ one.mean) ** 2).mean() for X, y in pairs])
        return self.squares * (self.variances * float(one.mean @ one.mean) + (self.means @ one.mean) ** 2)

    def second_moments(self, one: UnseenClass) -> Array:
        """E[y² xᵀΣx] of each group, (G,)."""
        if self.inputs:
            return np.array([(y**2 * one.forms(X)).mean() for X, y in zip(self.inputs, self.targets, strict=True)])
        return self.squares * (self.variances * one.trace + one.forms(self.means))


@dataclass(frozen=True, eq=False)
class GiantStepSetting:
    """A training set, a wide network and its giant step.

    Parameters
    ----------
    data: `TwoClasses`; a `TrainingSet` of arrays; or a sampler, ``sampler(rng, samples, size) -> (X, y)``.
    algorithm: the giant step.
    size, samples, units: input dimensions, training samples and hidden units, the paper's d, n and N; 1024, `size` and
        `size` by default. A `TrainingSet` has its own size and samples.
    activation: g, a name or an `Activation`.
    """

    data: TwoClasses | TrainingSet | Sampler
    algorithm: GiantStep
    size: int | None = None
    samples: int | None = None
    units: int | None = None
    activation: str | Activation = "tanh"

    def __post_init__(self) -> None:
        if not isinstance(self.algorithm, GiantStep):
            raise InputError(f"algorithm: expected a GiantStep, got {shown(self.algorithm)}")
        activation(self.activation)
        if isinstance(self.data, TrainingSet):
            samples, size = self.data.X.shape
            for name, own in (("samples", samples), ("size", size)):
                if getattr(self, name) not in (None, own):
                    raise InputError(f"{name}: the training set has {own}, got {getattr(self, name)}; leave it out")
        elif isinstance(self.data, TwoClasses) or (callable(self.data) and not isinstance(self.data, type)):
            size = whole("size", 1024 if self.size is None else self.size, least=4, most=10**7)
            samples = whole("samples", size if self.samples is None else self.samples, least=2, most=10**9)
        else:
            raise InputError(
                f"data: expected TwoClasses, a TrainingSet or a sampler(rng, samples, size), got {shown(self.data)}"
            )
        units = whole("units", size if self.units is None else self.units, least=1, most=10**9)
        for name, value in (("size", size), ("samples", samples), ("units", units)):
            object.__setattr__(self, name, value)
        if isinstance(self.data, TrainingSet):
            self._check_labels(self.data.y)
        if isinstance(self.data, TwoClasses) and self.algorithm.heads == 1:
            raise InputError(
                "heads: two classes are learned by two heads; use heads=2, or a TrainingSet or sampler with the labels "
                "of a regression"
            )

    @property
    def g(self) -> Activation:
        """The activation itself."""
        return activation(self.activation)

    @property
    def eta(self) -> float:
        """η, the size of the step."""
        return self.algorithm.size(self.count[0])

    @property
    def count(self) -> tuple[int, int, int]:
        """n, d, N."""
        assert self.samples is not None and self.size is not None and self.units is not None
        return self.samples, self.size, self.units

    @property
    def direction(self) -> Array:
        """v of the data, which unseen classes are made from, (inputs,): of arrays and samplers their Xᵀy/n."""
        if isinstance(self.data, TwoClasses):
            return self.data.direction(self.count[1])
        return self.groups().pulls.sum(0)

    def draw(self, rng: np.random.Generator) -> tuple[Array, Array]:
        """A training set, X (n, d) and y (n,): a new one, or the one that was given."""
        if isinstance(self.data, TrainingSet):
            return self.data.X, self.data.y
        n, d, _ = self.count
        if isinstance(self.data, TwoClasses):
            return self.data.draw(rng, n, d)
        given: Any = self.data(rng, n, d)
        try:
            X, y = given
        except (TypeError, ValueError):
            raise InputError(f"data: expected the sampler to return (X, y), got {shown(given)}") from None
        X, y = array("data: X of the sampler", X, (n, d)), array("data: y of the sampler", y, (n,))
        self._check_labels(y)
        return X, y

    def _check_labels(self, y: Array) -> None:
        if self.algorithm.heads == 2 and not np.all(np.abs(y) == 1):
            wrong = y[np.abs(y) != 1][0]
            raise InputError(f"y: expected labels 1 and -1 for two heads, got {wrong:g}; use GiantStep(heads=1)")

    def groups(self, seed: int = 0) -> Groups:
        """What theory knows of the training set; of a sampler, of one set drawn with this seed."""
        n, d, _ = self.count
        if isinstance(self.data, TwoClasses):
            ahead = n // 2 / n
            p, y = np.array([ahead, 1 - ahead]), np.array([1.0, -1.0])
            m, v = np.outer(y, self.data.mean(d)), np.full(2, self.data.variance(d))
            return Groups(p, y, y**2, m, v, (p * y)[:, None] * m, p * v / n)
        X, y = self.draw(np.random.default_rng(seed))
        parts = [y > 0, y < 0] if np.all(np.abs(y) == 1) else [np.ones(n, bool)]
        parts = [part for part in parts if part.any()]
        means = np.stack([X[part].mean(0) for part in parts])
        return Groups(
            shares=np.array([part.mean() for part in parts]),
            labels=np.array([y[part].mean() for part in parts]),
            squares=np.array([(y[part] ** 2).mean() for part in parts]),
            means=means,
            variances=np.array([((X[part] - m) ** 2).mean() for part, m in zip(parts, means, strict=True)]),
            pulls=np.stack([y[part] @ X[part] / n for part in parts]),
            spread=np.zeros(len(parts)),
            inputs=tuple(X[part] for part in parts),
            targets=tuple(y[part] for part in parts),
        )

    def __repr__(self) -> str:
        n, d, N = self.count
        data = (
            self.data if isinstance(self.data, TwoClasses) else getattr(self.data, "__name__", type(self.data).__name__)
        )
        return f"GiantStepSetting({data!s}, {self.algorithm}, {self.g.name}, d = {d}, n = {n}, N = {N})"
