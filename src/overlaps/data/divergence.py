"""How far a latent mixture is from N(0, I): Kullback-Leibler divergences, in nats, per coordinate and jointly.

With KL_s the divergence of component s, p_s its weight and I(s; C) the information that C has about its component,

    KL(C) = Σ_s p_s KL_s − I(s; C)        KL_s = Σ_r [μ_sr² + σ_r² − 1 − ln σ_r²]/2        0 ≤ I ≤ −Σ_s p_s ln p_s

The same holds for one coordinate r alone. As I does not change if C is shifted and scaled, it is that of centres with
noise of variance one. On a line, as for one coordinate, two components, or centres common to all coordinates, it is an
integral, done by the trapezoidal rule; otherwise it is the entropy of the label less its mean entropy given C, by Monte
Carlo in the span of the centres. With one label per sample Σ_r KL_r ≤ KL(C), as coordinates share it; with labels per
coordinate both sides are equal.

>>> from overlaps.data.latent import LatentMixture
>>> LatentMixture(means=[[0.5, -0.5]]).divergence(2)  # one component: μ²/2
Divergence(0.125 per coordinate; jointly 0.125 per dimension; D = 2)
>>> LatentMixture(bound=9.0).divergence(500)
Divergence(12.6 per coordinate; jointly 13.2 per dimension; D = 500)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..interface.checks import whole

if TYPE_CHECKING:
    from .latent import LatentMixture

Array = NDArray[np.float64]
GAP = 20.0  # components farther apart than this are taken as this far: e^(-GAP²/8) of the information is neglected
RADIUS = 9.0  # of the nodes around the outermost centres
SPACINGS = (1 / 8, 1 / 16, 1 / 32, 1 / 64)
CLOSE = 1e-13  # change in nats below which the nodes are close enough
ROUNDING = 1e-15
BLOCK = 2**21  # numbers at once


@dataclass(frozen=True)
class Divergence:
    """KL divergence of a latent from N(0, I), in nats per dimension.

    Attributes
    ----------
    coordinate: mean over the coordinates of the divergence of each alone.
    joint: of the whole vector, divided by D.
    coordinate_error, joint_error: of the quadrature, and the standard error where samples were drawn.
    lower, upper: closed bounds on `joint`: the mean over components of their own divergence, and that less the entropy
        of the label(s), each divided by D. `coordinate` is a lower bound, too.
    dimension: D.
    """

    coordinate: float
    coordinate_error: float
    joint: float
    joint_error: float
    lower: float
    upper: float
    dimension: int

    def __repr__(self) -> str:
        shown = f"{self.joint:.3g}"
        if self.joint_error > 1e-12 * (1 + self.joint):
            shown = f"{self.joint:.6g} ± {self.joint_error:.1g}"
        return f"Divergence({self.coordinate:.3g} per coordinate; jointly {shown} per dimension; D = {self.dimension})"


def divergence(latent: LatentMixture, D: int, samples: int = 10_000, seed: int = 0) -> Divergence:
    """The divergence of a latent of dimension D; `samples` of `seed` serve where the joint one is no integral."""
    samples, seed = whole("samples", samples, least=2), whole("seed", seed, least=0)
    p, centres = latent.probabilities, latent.centres(D)
    entropy = float(-p @ np.log(p))
    upper = float(np.mean(p @ _component_divergences(latent, D)))
    columns, counts = np.unique(centres.T, axis=0, return_counts=True)
    information, error = line_information(p, columns)
    information, error = float(information @ counts) / D, float(error @ counts) / D + ROUNDING * (1 + upper)
    coordinate = max(0.0, upper - information)
    if latent.label == "coordinate":
        return Divergence(coordinate, error, coordinate, error, max(0.0, upper - entropy), upper, D)
    across = centres - p @ centres
    size, axes = np.linalg.svd(across, full_matrices=False)[1:]
    if size[1:].max(initial=0.0) <= 1e-12 * size[0]:
        (shared,), (shared_error,) = line_information(p, (across @ axes[0])[None])
    else:
        shared, shared_error = sampled_information(p, across @ axes.T, samples, seed)
    joint = max(0.0, upper - float(shared) / D)
    joint_error = float(shared_error) / D + ROUNDING * (1 + upper)
    return Divergence(coordinate, error, joint, joint_error, max(0.0, upper - entropy / D), upper, D)


def _component_divergences(latent: LatentMixture, D: int) -> Array:
    """Divergence of each component in each coordinate, (components, D), after standardisation."""
    scale = latent.scale(D)
    means = (latent.centres(D) - latent.shift(D)) / scale
    return (means**2 + (1 / scale**2 - 1)) / 2 + np.log(scale)


def line_information(p: Array, centres: Array) -> tuple[Array, Array]:
    """I(s; c_s + z) for rows of centres (rows, components) on a line, and its quadrature error, (rows,) each.

    p: weights (components,); z is standard normal.
    """
    order = np.argsort(centres, axis=1)
    ordered = np.take_along_axis(centres, order, 1)
    steps = np.minimum(np.diff(ordered, axis=1, prepend=ordered[:, :1]), GAP)
    places, weights = np.cumsum(steps, axis=1), p[order]
    information, error = np.empty(len(centres)), np.full(len(centres), np.inf)
    previous = np.full(len(centres), np.inf)
    for spacing in SPACINGS:
        nodes = int((places[:, -1].max() + 2 * RADIUS) / spacing) + 1
        height = max(1, BLOCK // (nodes * p.size))
        for low in range(0, len(centres), height):
            rows = slice(low, low + height)
            information[rows] = _trapezoidal(weights[rows], places[rows], nodes, spacing)
        error = np.abs(information - previous)
        if error.max() <= CLOSE:
            break
        previous = information.copy()
    return information, error


def _trapezoidal(weights: Array, places: Array, nodes: int, spacing: float) -> Array:
    """∫ Σ_s p_s φ(y − c_s) ln [p(s | y)/p_s] dy by a sum over nodes, (rows,)."""
    total = np.zeros(len(places))
    length = max(1, BLOCK // places.size)
    for low in range(0, nodes, length):
        y = -RADIUS + spacing * np.arange(low, min(low + length, nodes))
        exponents = -0.5 * (y[None, :, None] - places[:, None, :]) ** 2
        relative = exponents - _log_sum(exponents, weights[:, None, :])
        total += np.einsum("rs,rys,rys->r", weights, np.exp(exponents), relative)
    return total * (spacing / np.sqrt(2 * np.pi))


def sampled_information(p: Array, centres: Array, samples: int, seed: int) -> tuple[float, float]:
    """I(s; c_s + z) for centres (components, k), and its standard error, from the entropy of the label given samples.

    An event that none of the samples shows changes the mean entropy by at most ln(components)/samples, which is part of
    the error: far components seem farther than they are.
    """
    rng = np.random.default_rng(seed)
    log_p, largest = np.log(p), np.log(p.size)
    height, entropies = max(1, BLOCK // centres.size), []
    for low in range(0, samples, height):
        count = min(height, samples - low)
        s = rng.choice(p.size, size=count, p=p)
        away = centres[s][:, None, :] - centres  # (count, components, k)
        noise = rng.standard_normal((count, centres.shape[1]))
        exponents = -0.5 * np.sum((away + noise[:, None, :]) ** 2, axis=2)
        posterior = log_p + exponents - _log_sum(exponents, p)
        entropies.append(-np.sum(np.exp(posterior) * posterior, axis=1))
    entropy = np.concatenate(entropies)
    error = np.hypot(entropy.std(ddof=1) / np.sqrt(samples), largest / samples)
    return float(-p @ log_p - entropy.mean()), float(error)


def _log_sum(exponents: Array, weights: Array) -> Array:
    """ln Σ weights exp(exponents) over the last axis, which is kept."""
    top = exponents.max(-1, keepdims=True)
    return top + np.log(np.sum(weights * np.exp(exponents - top), axis=-1, keepdims=True))
