"""Macro: alignment and elasticity of unseen classes after one giant step, resummed to all orders.

A feature of weights w and head α moves with the field of its own gradient: on a class x ~ N(μ, Σ) the field z = w·x
becomes z + ηαX with X = x·g of `overlaps.giant_step.neurons`, jointly Gaussian with z given w, and

    alignment  = N E_{w, α} ( E_x g(z + ηαX) )²        elasticity = N E ( g(z + ηαX) − g(z) )²

Of m given points the mean is over pairs of different ones. (E_x g)² with their own mean and covariance has each point
with itself as well, but only as far as the mean of the points sees it, by the linear part of g. With h = E_x g as a
function of the mean of the field, and σ its deviation over the points, pairs of different ones have

    E [ h² − σ² h′²/(m − 1) ]        for m of order one or more, as sizes grow.

Two simpler forms are kept for comparison. In *resummed* all neurons have the same factor κ = c_1 and E g'², and no χ,
which needs training fields of mean zero and variance one (|m|² ≪ d, v = 1). *Polynomial*, the paper's, is in
`overlaps.giant_step.polynomials`.

>>> import overlaps as ov
>>> from overlaps.giant_step import GiantStepSetting, TwoClasses, scaled, solve
>>> setting = GiantStepSetting(TwoClasses("sphere"), ov.GiantStep(rate=1.0, exponent=0.25), size=1024)
>>> solve(setting, scaled(setting.direction, [0.1, 0.9]))
Scores(macro, per-neuron, 2 unseen classes: alignment 47.1 to 680, elasticity 71 to 928)
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from ..averages.rules import smooth_grid
from ..interface.checks import checked
from ..interface.errors import InputError, NumericalError, unknown
from ..interface.progress import along
from .line import RADIUS, WIDE, graded, lines
from .neurons import neurons
from .polynomials import polynomial_scores
from .result import Scores, saturation
from .setting import GiantStepSetting, Groups
from .unseen import UnseenClass, check_classes, marks

Array = NDArray[np.float64]
METHODS = ("per-neuron", "resummed", "polynomial")
FINE, COARSE = 0.45, 0.6  # spacing of nodes in units of the scale of g
LARGEST = 0.01  # relative difference of two rules that is not refused
SPIKED = 0.02  # tr C²/(tr C)² − 1/d, half the relative variance of wᵀCw, that is warned of
AWAY = 0.2  # difference from one of the mean square of fields that is warned of
TYPICAL = 0.5  # saturation above which a polynomial is warned of
LIMIT = 1e12  # shift of the fields beyond which theory is refused
TINY = 1e-100  # shift below which its square would underflow


@checked
def solve(
    setting: GiantStepSetting,
    unseen: Sequence[UnseenClass],
    method: str = "per-neuron",
    order: int | None = None,
    *,
    progress: bool = True,
) -> Scores:
    """Alignment and elasticity of unseen classes after one giant step, for sizes large and of the same order.

    Parameters
    ----------
    unseen: classes, such as ``scaled(setting.direction, [0.1, 0.5])``.
    method: ``"per-neuron"``, right for any distance of the means and any size of the step; ``"resummed"``, with the
        same factors for all neurons, for training fields of mean zero and unit variance; ``"polynomial"``, for steps
        that do not saturate, and activations that are bounded with c_0 = 0.
    order: l of the polynomial; by default that of the window of the exponent.
    """
    import xarray as xr

    check_classes(unseen, setting.count[1])
    if method not in METHODS:
        raise unknown("method", method, METHODS)
    if setting.algorithm.steps != 1:
        raise InputError(
            f"steps: theory is for one giant step, got {setting.algorithm.steps}; use train, or GiantStep(steps=1)"
        )
    if order is not None and method != "polynomial":
        raise InputError("order: is for method='polynomial'; the other methods sum all orders")
    groups = setting.groups()
    found = {name: np.empty(len(unseen)) for name in ("alignment", "elasticity", "alignment_before")}
    b = groups.pulls.sum(0)
    similarity = np.array([b @ one.mean for one in unseen])
    variance = np.array([b @ one.apply(b[:, None])[:, 0] + groups.spread.sum() * one.trace for one in unseen])
    worst = 0.0
    for i, one in enumerate(along(unseen, "unseen classes", "class", shown=progress)):
        try:
            fine, coarse = (_Average(setting, groups, one, method, spacing).scores() for spacing in (FINE, COARSE))
            error = _difference(i, fine, coarse, 1e-9 * setting.count[2])
        except NumericalError as trouble:
            if i and method != "polynomial":
                trouble.partial = solve(setting, unseen[:i], method, progress=False)
            raise
        worst = max(worst, error)
        for values, value in zip(found.values(), fine, strict=True):
            values[i] = value
    size = saturation(setting, similarity, variance)
    if method == "polynomial":
        # the first term is the alignment before the step, by the same quadrature
        order, found["alignment"], found["elasticity"] = polynomial_scores(
            setting, similarity, variance, found["alignment_before"], order, _means(setting, groups, unseen)
        )
        if size.max() > TYPICAL:
            warnings.warn(
                f"method: the step shifts fields by up to {size.max():.2g}, where polynomials are far off; use "
                "method='per-neuron'",
                stacklevel=2,
            )
    _warn_of_domain(setting, groups, unseen, method)
    data = xr.Dataset(
        {
            name: (("run", "unseen"), values[None])
            for name, values in {
                **found,
                "similarity": similarity,
                "similarity_variance": variance,
                "saturation": size,
            }.items()
        },
        {"value": ("unseen", marks(unseen))},
        {"method": method, "accuracy": worst, "eta": setting.eta, "window": str(setting.algorithm.window)}
        | ({} if order is None else {"order": order}),
    )
    return Scores(data, "macro", setting)


def _difference(i: int, fine: tuple[float, ...], coarse: tuple[float, ...], floor: float) -> float:
    """Of two rules, relative; refused where they do not agree."""
    error = max(abs(x - y) / (abs(x) + floor) for x, y in zip(fine, coarse, strict=True))
    if not error <= LARGEST:
        raise NumericalError(
            f"unseen[{i}]: two quadrature rules differ by {error:.1g}, since the activation varies or grows too fast; "
            "declare its kinks, or use train",
            quantity=f"scores of unseen[{i}]",
            time=1.0,
        )
    return error


def _warn_of_domain(setting: GiantStepSetting, groups: Groups, unseen: Sequence[UnseenClass], method: str) -> None:
    """Say where a method is used outside its domain."""
    d = setting.count[1]
    spiked = max(float(groups.concentration.max()), *(one.concentration for one in unseen))
    if spiked > SPIKED:
        warnings.warn(
            "data: few directions hold much of the variance of a class, which theory takes as spread over all; compare "
            f"with train (tr C²/(tr C)² is {spiked:.2g} above 1/d)",
            stacklevel=3,
        )
    if method == "per-neuron":
        return
    fields = [(m @ m) / d + v for m, v in zip(groups.means, groups.variances, strict=True)]
    if method == "polynomial":
        fields += [(one.mean @ one.mean + one.trace) / d for one in unseen]
    worst = max(fields, key=lambda value: abs(value - 1))
    if abs(worst - 1) > AWAY:
        warnings.warn(
            f"method: {method} is for fields of mean zero and variance one, got a mean square of {worst:.2g}; use "
            "method='per-neuron'",
            stacklevel=3,
        )


def _means(setting: GiantStepSetting, groups: Groups, unseen: Sequence[UnseenClass]) -> Array:
    """E_w E_x g(w·x) of each class, (unseen,)."""
    return np.array([_Average(setting, groups, one, "resummed", FINE).mean_before() for one in unseen])


class _Average:
    """Averages over weights, heads and points of one class, with nodes `spacing` apart."""

    def __init__(
        self, setting: GiantStepSetting, groups: Groups, one: UnseenClass, method: str, spacing: float
    ) -> None:
        self.setting, self.spacing = setting, spacing
        self.points = 0 if one.points is None else len(one.points)
        self.g, _ = lines(setting.g, spacing)
        self.neurons = neurons(setting, groups, one, method == "per-neuron", spacing, spacing == FINE)

    def mean_before(self) -> float:
        """E g(z)."""
        at = self.neurons
        return float(at.weights @ self.g.mean(at.z, np.sqrt(at.zz)))

    def scores(self) -> tuple[float, float, float]:
        """Alignment, elasticity, and alignment before the step."""
        at, g, N = self.neurons, self.g, self.setting.count[2]
        size = self.setting.eta * np.sqrt(self.setting.algorithm.heads / N)
        largest = size * np.sqrt(np.max(at.X**2 + at.XX))
        if not largest < LIMIT:
            raise NumericalError(
                f"step: it shifts fields by {largest:.1g}, where nothing is left to predict; use a smaller rate",
                quantity="shift of the fields",
                time=1.0,
            )
        alpha, heads = graded([np.zeros(1)], np.array([max(largest, 1.0)]), 8 if self.spacing == FINE else 6)
        shift = size * alpha
        mean = at.z + shift * at.X
        sd = np.sqrt(np.maximum(at.zz + 2 * shift * at.zX + shift**2 * at.XX, 0))
        widest = float(sd.max())

        def averaged(z: Array) -> Array:
            if widest > WIDE:  # many nodes for each would be needed
                return g.expectation(float(np.abs(z).max()), widest)(z, np.arcsinh(sd))
            return g.mean(z, sd)

        first = np.sqrt(at.zz)
        after = heads[:, 0] @ (averaged(mean) ** 2 - self._beyond_pairs(averaged, mean, sd)) @ at.weights
        before = at.weights @ (g.mean(at.z, first) ** 2 - self._beyond_pairs(lambda z: g.mean(z, first), at.z, first))
        return N * float(after), N * self._moved(size), N * float(before)

    def _beyond_pairs(self, averaged: Callable[[Array], Array], z: Array, sd: Array) -> Array | float:
        """What the square of a mean over given points has beyond pairs of different ones: (σ h′)²/(m − 1)."""
        if not self.points:
            return 0.0
        step = 0.1 * sd
        far, near, nearer, farther = (averaged(z + k * step) for k in (-2, -1, 1, 2))
        return ((far - 8 * near + 8 * nearer - farther) / 1.2) ** 2 / (self.points - 1)

    def _moved(self, size: float) -> float:
        """E (g(z + ηαX) − g(z))²: given X the shift is Gaussian of deviation t = size |X| and independent of z."""
        at, g = self.neurons, self.g
        sd = np.sqrt(at.XX)
        if size * float(sd.max()) > WIDE:
            scale = np.maximum(size * sd, 1e-300)
            nodes, shares = graded([-at.X / np.maximum(sd, 1e-300)], scale, 8 if self.spacing == FINE else 6)
        else:
            nodes, shares = smooth_grid((self.spacing / max(1.0, size * float(sd.max())),), RADIUS)
            shares = shares[:, None]
        t = size * np.abs(at.X + sd * nodes)
        # z given X
        tilt = at.zX / np.maximum(sd, 1e-300)
        z = at.z + tilt * nodes
        left = np.sqrt(np.maximum(at.zz - tilt**2, 0))
        widest = float(t.max())
        if widest < TINY:
            return 0.0
        displacement = g.displacement(float(np.abs(z).max() + RADIUS * left.max()), widest)
        total = 0.0
        for row, r, share in zip(z, np.arcsinh(t), shares * t**2 / (1 + t**2), strict=True):  # one node of X at a time
            for node, weight in g.nodes(row, left):
                total += float(at.weights @ (share * weight * displacement(row + left * node, r)))
        return total
