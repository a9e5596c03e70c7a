"""Gaussian mixtures as latents of a hidden manifold: C = μ_s + z in D dimensions, z ~ N(0, I), s with probability p_s.

The centres are drawn uniformly, μ ~ U[−α, α), one for each component and coordinate (``means="vector"``) or one for
each component, the same for all coordinates (``"scalar"``). The label s is drawn once for a sample, so that all its
coordinates belong to one component, or independently for each coordinate. J. Bae and H. Jeong, "From empirical
observations to universality", who train networks on such latents, leave both choices open in eq. (17), and in eq. (19)
whether one mean and deviation standardise all coordinates. They are different data: fields of latents with a label per
coordinate are Gaussian by the central limit theorem, those with a label per sample are mixtures.

Standardised latents are (C − shift)/scale, per coordinate with the mean and standard deviation of the mixture:

    shift_r = Σ_s p_s μ_sr        scale_r² = 1 + Σ_s p_s (μ_sr − shift_r)²

>>> import numpy as np
>>> from overlaps.data.latent import LatentMixture
>>> latent = LatentMixture(components=2, bound=9.0, standardise="population")
>>> latent
LatentMixture(2 components, means in [-9, 9) per coordinate, one label per sample, standardised)
>>> C, labels = latent.sample(np.random.default_rng(0), 1000, 3)
>>> C.shape, bool(np.all(np.abs(C.mean(0)) < 0.2)), bool(np.all(np.abs(C.std(0) - 1) < 0.2))
((1000, 3), True, True)
>>> weights, means, scales = latent.conditional(3)
>>> means.shape, scales.round(2).tolist()  # well separated components are narrow after standardisation
((2, 3), [0.18, 0.2, 0.13])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..interface.checks import array, number, whole
from ..interface.errors import InputError, shown, unknown
from .tuples import probabilities, tuples

if TYPE_CHECKING:
    from .divergence import Divergence

Array = NDArray[np.float64]
LABELS = ("sample", "coordinate")
MEANS = ("vector", "scalar")
STANDARDISE = ("population", "empirical", "overall")
FARTHEST = 1e6  # centres beyond which noise of variance one is lost in rounding
SAMPLES = 10_000  # samples from which "empirical" takes mean and deviation
BLOCK = 2**20  # numbers of these that are drawn at once
CENTRES, TRIAL = 0, 1  # streams of the seed


class Conditional(NamedTuple):
    """Gaussian components that fields of the latent see at large D.

    weights: (P,). means: (P, D). scales: standard deviations, the same for all components, (D,).
    """

    weights: Array
    means: Array
    scales: Array


class _Frame(NamedTuple):
    """Of one dimension: centres (components, D), shift and scale (D,), and centres after standardisation."""

    centres: Array
    shift: Array
    scale: Array
    moved: Array


@dataclass(frozen=True, repr=False)
class LatentMixture:
    """A latent C = μ_s + z with z standard normal and s one of several components.

    Parameters
    ----------
    components: their number, two unless `means` are given.
    bound: α of the centres, U[−α, α), one unless `means` are given; at zero C is standard normal.
    label: ``"sample"`` for one label s per sample, ``"coordinate"`` for independent ones in each coordinate.
    means: ``"vector"`` for centres of their own in each coordinate, ``"scalar"`` for one number per component; or the
        centres themselves, (components, D), which fix D.
    weights: probabilities of the components; equal ones by default.
    standardise: None, or the mean and standard deviation that are taken out: ``"population"``, of each coordinate of
        the mixture; ``"empirical"``, of each coordinate of 10⁴ samples drawn from the seed; ``"overall"``, one number
        each for all coordinates together, which leaves every coordinate its own offset.
    seed: of the centres (and of those samples); it gives the same centres, up to their bound, for all bounds.
    """

    components: int | None = None
    bound: float | None = None
    label: str = "sample"
    means: str | Sequence[Sequence[float]] | Array = "vector"
    weights: Sequence[float] | Array | None = None
    standardise: str | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        _one_of("label", self.label, LABELS)
        if self.standardise is not None:
            _one_of("standardise", self.standardise, STANDARDISE)
        if isinstance(self.means, str):
            _one_of("means", self.means, MEANS)
            count = 2 if self.components is None else whole("components", self.components, least=1, most=10**4)
            bound = 1.0 if self.bound is None else number("bound", self.bound, least=0)
            _near("bound", bound)
            object.__setattr__(self, "bound", bound)
        else:
            centres = array("means", self.means, (None, None))
            count = len(centres)
            if centres.size == 0:
                raise InputError(f"means: expected at least one centre and one coordinate, got shape {centres.shape}")
            if self.bound is not None:
                raise InputError(f"bound: {self.bound!r} is of centres to be drawn, but means are given; leave it out")
            if self.components is not None and whole("components", self.components, least=1) != count:
                raise InputError(f"components: {self.components} do not go with {count} rows of means; leave it out")
            _near("means", float(np.abs(centres).max()))
            object.__setattr__(self, "means", tuples(centres))
        object.__setattr__(self, "components", count)
        if self.weights is not None:
            object.__setattr__(self, "weights", probabilities(self.weights, count))
        object.__setattr__(self, "seed", whole("seed", self.seed, least=0))

    def __repr__(self) -> str:
        count = self.probabilities.size
        text = f"LatentMixture({count} component{'s' * (count > 1)}, "
        if self.bound == 0:
            text += "means 0, "
        elif self.means == "vector":
            text += f"means in [-{self.bound:g}, {self.bound:g}) per coordinate, "
        elif self.means == "scalar":
            text += f"means in [-{self.bound:g}, {self.bound:g}) common to all coordinates, "
        else:
            text += f"means given for D = {len(self.means[0])}, "
        text += f"one label per {self.label}"
        if np.ptp(self.probabilities) > 1e-12:
            text += f", weights {self.probabilities.min():g} to {self.probabilities.max():g}"
        how = {"population": "", "empirical": " by samples", "overall": " overall"}
        text += f", standardised{how[self.standardise]}" if self.standardise else ""
        return text + (f", seed {self.seed})" if self.seed else ")")

    @cached_property
    def probabilities(self) -> Array:
        """p, (components,); they sum to one."""
        weights = np.ones(self.components or 1) if self.weights is None else np.array(self.weights)
        return _frozen(weights / weights.sum())

    def centres(self, D: int) -> Array:
        """μ before standardisation, (components, D)."""
        return self._frame(D).centres

    def shift(self, D: int) -> Array:
        """What is subtracted from C, (D,); zero if it is not standardised."""
        return self._frame(D).shift

    def scale(self, D: int) -> Array:
        """What C is then divided by, (D,); one if it is not standardised."""
        return self._frame(D).scale

    def conditional(self, D: int) -> Conditional:
        """The Gaussian components of the (standardised) latent that its fields see at large D.

        With one label per sample these are the components of the mixture. With a label per coordinate, fields sum many
        independent coordinates, and only the mean and deviation of each count.
        """
        frame = self._frame(D)
        if self.label == "sample":
            return Conditional(self.probabilities, frame.moved, _frozen(1 / frame.scale))
        mean, sd = _mean_and_deviation(self.probabilities, frame.centres)
        return Conditional(np.ones(1), _frozen((mean - frame.shift) / frame.scale)[None], _frozen(sd / frame.scale))

    def sample(self, rng: np.random.Generator, count: int, D: int) -> tuple[Array, NDArray[np.int64]]:
        """Samples C (count, D) of the mixture, and labels (count,), which are all zero for a label per coordinate."""
        frame, p, count = self._frame(D), self.probabilities, whole("count", count, least=0)
        C = rng.standard_normal((count, D))
        if self.standardise is not None:
            C /= frame.scale
        shape = (count,) if self.label == "sample" else (count, D)
        if self.weights is None:
            s = rng.integers(p.size, size=shape)
        else:
            s = np.searchsorted(np.cumsum(p)[:-1], rng.random(shape), side="right").astype(np.int64)
        if self.label == "sample":
            C += frame.moved[s]
            return C, s
        C += frame.moved[s, np.arange(D)]
        return C, np.zeros(count, np.int64)

    def divergence(self, D: int, samples: int = 10_000, seed: int = 0) -> Divergence:
        """Kullback-Leibler divergence from N(0, I): per coordinate, and jointly (by that many samples if need be)."""
        from .divergence import divergence

        return divergence(self, D, samples, seed)

    @cached_property
    def _frames(self) -> dict[int, _Frame]:
        return {}

    def _frame(self, D: int) -> _Frame:
        D = whole("D", D, least=1)
        if D not in self._frames:
            self._frames[D] = self._made(D)
        return self._frames[D]

    def _made(self, D: int) -> _Frame:
        if isinstance(self.means, str):
            rng = np.random.default_rng([self.seed, CENTRES])
            width = 1 if self.means == "scalar" else D
            unit = rng.uniform(-1, 1, (self.probabilities.size, width))
            centres = np.broadcast_to((self.bound or 0.0) * unit, (self.probabilities.size, D)).copy()
        else:
            centres = np.array(self.means, dtype=float)
            if centres.shape[1] != D:
                raise InputError(
                    f"means: the centres have {centres.shape[1]} coordinates, so D is {centres.shape[1]}, not {D}; "
                    "give means='vector' for a latent of any dimension"
                )
        shift, scale = np.zeros(D), np.ones(D)
        if self.standardise == "empirical":
            shift, scale = self._measured(centres)
        elif self.standardise is not None:
            shift, scale = _mean_and_deviation(self.probabilities, centres)
        if self.standardise == "overall":
            mean = shift.mean()
            shift, scale = np.full(D, mean), np.full(D, np.sqrt(np.mean(scale**2 + (shift - mean) ** 2)))
        return _Frame(*(_frozen(x) for x in (centres, shift, scale, (centres - shift) / scale)))

    def _measured(self, centres: Array) -> tuple[Array, Array]:
        """Mean and standard deviation of each coordinate over samples, (D,) each."""
        raw = LatentMixture(label=self.label, means=centres, weights=self.weights)
        rng, D = np.random.default_rng([self.seed, TRIAL]), centres.shape[1]
        total, squares = np.zeros(D), np.zeros(D)
        middle = _mean_and_deviation(self.probabilities, centres)[0]  # so that squares do not cancel
        block = max(1, BLOCK // D)
        for low in range(0, SAMPLES, block):
            C = raw.sample(rng, min(block, SAMPLES - low), D)[0] - middle
            total += C.sum(0)
            squares += (C**2).sum(0)
        mean = total / SAMPLES
        return middle + mean, np.sqrt(squares / SAMPLES - mean**2)


def _mean_and_deviation(p: Array, centres: Array) -> tuple[Array, Array]:
    """Mean and standard deviation of each coordinate of the mixture, (D,) each."""
    mean = p @ centres
    return mean, np.sqrt(1 + p @ (centres - mean) ** 2)


def _frozen(values: Array) -> Array:
    """The array, read-only: it is kept and handed out many times."""
    values.flags.writeable = False
    return values


def _one_of(name: str, value: object, options: Sequence[str]) -> None:
    if not isinstance(value, str):
        raise InputError(f"{name}: expected one of {', '.join(options)}, got {shown(value)}")
    if value not in options:
        raise unknown(name, value, options)


def _near(name: str, value: float) -> None:
    if value > FARTHEST:
        raise InputError(f"{name}: expected centres within {FARTHEST:g}, got {value:g}; noise of one is lost beyond")
