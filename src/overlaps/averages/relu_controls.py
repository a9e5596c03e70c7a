"""E[1_k ℓ'(f)] and E[g_k ℓ'(f)] of many ReLU units by random points, with all that is known taken from them first.

1_k = 1(λ_k > 0), g_k = max(λ_k, 0), f = Σ_k v_k g_k. Three things are known:

    the line a + b f through ℓ', as E[1_k f] and E[g_k f] are averages of two fields (`relu_shifted`);
    what ℓ' − a − b f is for independent fields of the same means and variances (`relu_independent`);
    what correlations C_ij add to that in first order.

Points follow the fields themselves, the independent fields λ_j⁰ = μ_j + σ_j z_j, and the derivative of the latter along
the path C(t) of correlations that grow from zero, t = 0 to 1. With R the correlations λ(t) = μ + σ R(t)^{1/2} z, so

    dλ_j/dt = σ_j Σ_{i≠j} R_ji z_i/2        at t = 0.

A regression over points says how much of the known errors of the last two is that of the first. Where correlations are
weak nearly all of it is; where they are strong the regression finds little, and nothing is lost.

ℓ' and ℓ'' are taken from a table, as most of an average is their evaluation.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..compiled.functions import kept, loop


@kept(error_model="numpy")
def reflected(field, mean, variance):  # pragma: no cover - compiled
    """(weight, |field|) with E[1(h > 0) ψ(h)] = E[weight ψ(|h|)] for h of that mean and variance."""
    if variance <= 0.0:
        return (1.0 if mean > 0.0 else 0.0), field
    place = abs(field)
    return 1.0 / (1.0 + math.exp(min(-2.0 * place * mean / variance, 700.0))), place


@kept(fastmath={"reassoc", "contract"}, error_model="numpy")
def output(v, h):  # pragma: no cover - compiled
    """f at the fields h."""
    total = 0.0
    for k in range(v.size):
        total += v[k] * max(h[k], 0.0)
    return total


@kept(fastmath={"reassoc", "contract"}, error_model="numpy")
def moved_output(v, h, along, shift):  # pragma: no cover - compiled
    """f at the fields h + shift × along."""
    total = 0.0
    for k in range(v.size):
        total += v[k] * max(h[k] + shift * along[k], 0.0)
    return total


@kept(fastmath={"reassoc", "contract"}, error_model="numpy")
def _product(a, b):  # pragma: no cover - compiled
    total = 0.0
    for k in range(a.size):
        total += a[k] * b[k]
    return total


class LossTable(NamedTuple):
    """ℓ' (n,) and ℓ'' (n,) at places low + step × (0, 1, …), for `first_two`; density: places per unit, 1/step."""

    low: float
    step: float
    density: float
    slope: np.ndarray
    bend: np.ndarray


@kept(error_model="numpy")
def first_two(slope, bend, y, table, f):  # pragma: no cover - compiled
    """ℓ'(f) and ℓ''(f): the cubic through both of a table, and its slope; beyond the table the functions themselves."""
    x = (f - table.low) * table.density
    if not 0.0 <= x < table.slope.size - 1:
        return slope(f, y), bend(f, y)
    i = int(x)
    t = x - i
    here, there = table.step * table.bend[i], table.step * table.bend[i + 1]
    rise = table.slope[i + 1] - table.slope[i]
    second, third = 3.0 * rise - 2.0 * here - there, here + there - 2.0 * rise
    first = table.slope[i] + t * (here + t * (second + t * third))
    return first, (here + t * (2.0 * second + 3.0 * t * third)) * table.density


class Positive(NamedTuple):
    """Field k made positive, point by point, (K, points) each: weight, output f, ℓ'(f) and the field itself."""

    weight: np.ndarray
    output: np.ndarray
    slope: np.ndarray
    field: np.ndarray


@loop(error_model="numpy")
def independent(slope, bend, y, table, correlations, sd, mean, z, w, v):  # pragma: no cover - compiled
    """`Positive` of independent fields mean + sd z, and its derivative as correlations (K, K) of diagonal zero grow."""
    n, K = z.shape
    near = Positive(np.empty((K, n)), np.empty((K, n)), np.empty((K, n)), np.empty((K, n)))
    first = Positive(np.empty((K, n)), np.empty((K, n)), np.empty((K, n)), np.empty((K, n)))
    h, moving, active, follow = np.empty(K), np.empty(K), np.empty(K), np.zeros((K, K))
    for k in range(K):
        if sd[k] > 0.0:
            for j in range(K):
                follow[k, j] = correlations[k, j] * sd[j] / sd[k]  # of field j, as field k is moved
    for i in range(n):
        for k in range(K):
            h[k] = mean[k] + sd[k] * z[i, k]
            moving[k] = 0.5 * sd[k] * _product(correlations[k], z[i])
            active[k] = v[k] if h[k] > 0.0 else 0.0
        f, df = output(v, h), _product(active, moving)
        for k in range(K):
            variance = sd[k] * sd[k]
            chance, place = reflected(h[k], mean[k], variance)
            side = moving[k] if h[k] > 0.0 else -moving[k]
            there = f + v[k] * (place - max(h[k], 0.0))
            change = df - active[k] * moving[k] + v[k] * side + (place - h[k]) * _product(follow[k], active)
            near.weight[k, i], near.field[k, i], near.output[k, i] = w[i] * chance, place, there
            near.slope[k, i], second = first_two(slope, bend, y, table, there)
            tilt = 2.0 * mean[k] / variance * side if variance > 0.0 else 0.0
            first.weight[k, i], first.field[k, i] = w[i] * chance * (1.0 - chance) * tilt, side
            first.output[k, i], first.slope[k, i] = change, second * change
    return near, first


@loop(error_model="numpy")
def single(value, slope, bend, y, table, C, mean, H, w, v):  # pragma: no cover - compiled
    """`Positive` at fields H (points, K), the means of f and ℓ'(f) at λ_k = 0, (K, 2), and the error."""
    n, K = H.shape
    found = Positive(np.empty((K, n)), np.empty((K, n)), np.empty((K, n)), np.empty((K, n)))
    at_zero, error = np.zeros((K, 2)), 0.0
    along = np.zeros(K)
    for i in range(n):
        error += w[i] * value(output(v, H[i]), y)
    for k in range(K):
        along[:] = 0.0
        if C[k, k] > 0.0:
            for j in range(K):
                along[j] = C[j, k] / C[k, k]
        for i in range(n):
            h = H[i]
            if C[k, k] > 0.0:
                f = moved_output(v, h, along, -h[k])
                at_zero[k, 0] += w[i] * f
                at_zero[k, 1] += w[i] * first_two(slope, bend, y, table, f)[0]
            chance, place = reflected(h[k], mean[k], C[k, k])
            f = moved_output(v, h, along, place - h[k])
            found.weight[k, i], found.output[k, i], found.field[k, i] = w[i] * chance, f, place
            found.slope[k, i] = first_two(slope, bend, y, table, f)[0]
    return found, at_zero, error


@kept(error_model="numpy")
def _line(weight, f, slope):  # pragma: no cover - compiled
    """a, b of the line a + b f through slopes (points,), of least squares with these weights."""
    total, mean, level, spread, both = 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(f.size):
        part = max(weight[i], 0.0)
        total += part
        mean += part * f[i]
        level += part * slope[i]
    if total > 0.0:
        mean, level = mean / total, level / total
    for i in range(f.size):
        part = max(weight[i], 0.0) * (f[i] - mean)
        spread += part * (f[i] - mean)
        both += part * slope[i]
    b = both / spread if spread > 1e-12 * mean * mean else 0.0
    return level - b * mean, b


@kept(error_model="numpy")
def corrected(y, x, u, exact_x, exact_u):  # pragma: no cover - compiled
    """The sum of y (points,), corrected by those of x and u, whose expectations are known."""
    n = y.size
    sy, sx, su = 0.0, 0.0, 0.0
    for i in range(n):
        sy += y[i]
        sx += x[i]
        su += u[i]
    xx, xu, uu, xy, uy = 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(n):
        a, b = x[i] - sx / n, u[i] - su / n
        xx += a * a
        xu += a * b
        uu += b * b
        xy += a * y[i]
        uy += b * y[i]
    if xx <= 0.0:
        return sy
    left = uu - xu * xu / xx  # of u, where x is known
    second = (uy - xu * xy / xx) / left if left > 1e-10 * uu else 0.0
    return sy + (xy - second * xu) / xx * (exact_x - sx) + second * (exact_u - su)


@kept(error_model="numpy")
def one_field(found, near, first, exact, known):  # pragma: no cover - compiled
    """E[1_k ℓ'], E[g_k ℓ'] and the slope b of the line a + b f through ℓ'(f) where field k is positive, (K,) each.

    near, first: of `independent`. exact: their averages, `relu_independent.Independent`. known: those of the fields
    themselves, `relu_outputs.Known`.
    """
    K, n = found.weight.shape
    E, dv, slopes = np.empty(K), np.empty(K), np.empty(K)
    y, x, u = np.empty(n), np.empty(n), np.empty(n)
    for k in range(K):
        a, b = _line(found.weight[k], found.output[k], found.slope[k])
        for i in range(n):
            left = near.slope[k, i] - a - b * near.output[k, i]
            y[i] = found.weight[k, i] * (found.slope[k, i] - a - b * found.output[k, i])
            x[i] = near.weight[k, i] * left
            u[i] = first.weight[k, i] * left + near.weight[k, i] * (first.slope[k, i] - b * first.output[k, i])
        mean = exact.positive[k] - a * exact.chance[k] - b * exact.output[k]
        change = exact.positive_first[k] - b * exact.output_first[k]
        E[k] = corrected(y, x, u, mean, change) + a * known.chance[k, k] + b * known.output[k]
        for i in range(n):
            y[i] *= found.field[k, i]
            u[i] = u[i] * near.field[k, i] + x[i] * first.field[k, i]
            x[i] *= near.field[k, i]
        mean = exact.product[k] - a * exact.level[k] - b * exact.square[k]
        change = exact.product_first[k] - b * exact.square_first[k]
        dv[k] = corrected(y, x, u, mean, change) + a * known.level[k] + b * known.product[k]
        slopes[k] = b
    return E, dv, slopes
