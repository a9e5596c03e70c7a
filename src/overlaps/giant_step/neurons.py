"""What theory knows of one neuron: the joint law of its field z = w·x and of X = x·g on a class x ~ N(μ, Σ).

    g = (1/n) Σ_i y_i x_i g'(w·x_i) = Σ_groups [ κ b + χ p (ȳ C w + (w·c) m) ] + noise
    κ = E g'(τ + √v ξ),   χ = E g''(τ + √v ξ),   τ = w·m

for each group of samples with share p, mean m, covariance C of trace v d, mean label ȳ, pull b and covariance c of
labels with inputs (zero where all labels of a group are equal). The noise has covariance (1/n) E[y² x xᵀ] Var g'; of
given arrays, whose m and c are exact, Var g' along m is without its linear part χ² v. Outputs of the network before the
step, of order N^{-1/2}, are taken from the labels through their mean in each group. Given the coordinates u of w along
all m, c and μ, the pair (z, X) is Gaussian; C enters through its trace alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from ..averages.rules import product, scrambled, smooth_grid
from ..interface.errors import NumericalError
from .hermite import hermite_coefficients
from .line import RADIUS, WIDE, graded, lines
from .setting import GiantStepSetting, Groups
from .sphere import on_sphere
from .unseen import UnseenClass

Array = NDArray[np.float64]
NARROW = 0.4  # standard deviation below which averages over a projection are nearly those of a polynomial
CROWD = 6000  # nodes of the weights beyond which they are Sobol points
SLIGHT = 0.03  # relative fluctuation of the mean of X that is left out: its square is below one in a thousand


@dataclass(frozen=True)
class Neurons:
    """P nodes of the average over weights.

    Attributes
    ----------
    weights: of the nodes.
    z, zz: mean and variance of the field; X, XX, zX: mean and variance of X, and its covariance with z; all (P,).
    """

    weights: Array
    z: Array
    zz: Array
    X: Array
    XX: Array
    zX: Array


def neurons(
    setting: GiantStepSetting, groups: Groups, one: UnseenClass, per_neuron: bool, spacing: float, fine: bool
) -> Neurons:
    """The nodes, for factors κ, χ of each neuron, or for κ = c_1 and E g'² of all of them and no χ."""
    g, slope = lines(setting.g, spacing)
    n, d, N = setting.count
    p, within = groups.shares, groups.covariances
    u, weights, U = _projections(np.column_stack([*groups.means, *within, one.mean]), d, spacing, fine)
    inside = U.T @ one.apply(U)
    # E[wᵀΣw | u]: the part along the directions, and the mean of the rest
    rest = (one.trace - np.trace(inside)) / (d - U.shape[1])
    zz = np.einsum("ij,jk,ik->i", u, inside, u) + (1 - (u**2).sum(1)) * rest
    z = u @ (U.T @ one.mean)
    tau, sd = u @ (U.T @ groups.means.T), np.sqrt(groups.variances)
    if per_neuron:
        kappa, square = slope.mean(tau, sd), slope.mean(tau, sd, np.square)
        # a group without spread has the slope itself, and no term along w
        chi = np.where(sd > 0, slope.slope(tau, np.maximum(sd, 1e-300)), 0.0)
    else:
        h = hermite_coefficients(setting.g, 1)
        kappa, square, chi = np.full_like(tau, h.c[1]), np.full_like(tau, h.slope_square), np.zeros_like(tau)
    towards = groups.means @ one.mean
    second, central = groups.second_moments(one), groups.squares * one.forms(groups.means)
    scatter = np.maximum(square - kappa**2, 0) * p
    known = chi**2 * p * groups.variances if groups.inputs else np.zeros_like(chi)
    noise = (scatter @ second - known @ central) / n
    mean_noise = (scatter @ groups.projected_squares(one) - known @ (groups.squares * towards**2)) / n
    # coefficient of w, with the variance within groups that the class sees
    seen = (second - central) / np.maximum(groups.squares * one.trace, 1e-300)
    along = chi @ (p * groups.labels * seen)
    # coefficients of the vectors b and m
    tilt = chi * p * (u @ (U.T @ within.T)) if within.size else np.zeros_like(chi)
    each, vectors = np.concatenate([kappa, tilt], axis=1), np.concatenate([groups.pulls, groups.means])
    gram = vectors @ one.apply(vectors.T)
    # what the outputs, N(0, K/N) at the mean of each group, take from the labels
    outputs = g.mean(tau, sd)
    K = (outputs * weights[:, None]).T @ outputs / N * np.outer(p, p)
    free = np.diag(groups.spread) * one.trace + K * (groups.means @ one.apply(groups.means.T))
    # w·Σ of b and of m; of b only its mean is along the directions of w
    means = u @ (U.T @ one.apply(groups.means.T))
    across = ((kappa * p * groups.labels + tilt) * means).sum(1) if per_neuron else np.zeros(len(u))
    X = each @ (vectors @ one.mean) + along * z
    XX = np.maximum(_forms(each, gram) + _forms(kappa, free) + 2 * along * across + along**2 * zz + noise, 0)
    # the mean of X differs between training sets, networks and neurons: three nodes of a Gaussian rule
    jitter = np.diag(groups.spread) * float(one.mean @ one.mean) + K * np.outer(towards, towards)
    if not (np.isfinite(X).all() and np.isfinite(XX).all() and np.isfinite(zz).all()):
        raise NumericalError("fields: larger than any floating-point number", quantity="fields", time=1.0)
    shift = np.sqrt(np.maximum(_forms(kappa, jitter) + mean_noise, 0))
    if weights @ shift**2 > SLIGHT**2 * (weights @ X**2):
        nodes, share = np.sqrt(3) * np.array([-1.0, 0, 1]), np.array([1, 4, 1]) / 6
        X = (X[:, None] + shift[:, None] * nodes).ravel()
        weights = np.outer(weights, share).ravel()
        z, zz, XX, across, along = (np.repeat(part, 3) for part in (z, zz, XX, across, along))
    return Neurons(weights, z, zz, X, XX, across + along * zz)


def _forms(rows: Array, matrix: Array) -> Array:
    """The quadratic form of each row, (rows,)."""
    return np.einsum("ij,jk,ik->i", rows, matrix, rows)


def _projections(vectors: Array, d: int, spacing: float, fine: bool) -> tuple[Array, Array, Array]:
    """Nodes u (P, r) of the coordinates of w, their weights, and orthonormal directions (d, r) that span `vectors`."""
    U, lengths, _ = np.linalg.svd(vectors, full_matrices=False)
    rank = int((lengths > 1e-10 * lengths[0]).sum()) if lengths[0] > 0 else 0
    rules = [_rule(length / np.sqrt(d), spacing, fine) for length in lengths[:rank]]
    if prod(len(nodes) for nodes, _ in rules) > CROWD:
        xi = scrambled(rank, 11 + fine, 2026)
        return on_sphere(xi, d), np.full(len(xi), 1 / len(xi)), U[:, :rank]
    xi, weights = np.zeros((1, 0)), np.ones(1)
    for nodes, here in rules:
        xi = product(xi, np.tile(nodes, (len(xi), 1)))
        weights = np.repeat(weights, len(nodes)) * np.tile(here, len(weights))
    return on_sphere(xi, d), weights, U[:, :rank]


def _rule(sd: float, spacing: float, fine: bool) -> tuple[Array, Array]:
    """Nodes for a projection of standard deviation `sd`."""
    if sd > WIDE:
        nodes, weights = graded([np.zeros(1)], np.array([sd]), 8 if fine else 6)
        return nodes[:, 0], weights[:, 0]
    if sd < NARROW:
        nodes, weights = np.polynomial.hermite_e.hermegauss(9 if fine else 7)
        return nodes, weights / weights.sum()
    nodes, weights = smooth_grid((spacing / max(1.0, sd),), RADIUS)
    return nodes[:, 0], weights
