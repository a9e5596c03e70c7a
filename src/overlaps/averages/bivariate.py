"""Two standard normal fields with correlation r: the probability that h + x and k + y are both positive.

    P(h + x > 0, k + y > 0) = Φ(h) Φ(k) + (1/2π) ∫_0^{asin r} exp( −(h² + k² − 2 h k sin θ) / (2 cos² θ) ) dθ

is integrated as it stands for |r| < 0.925 (Drezner and Wesolowsky, J. Stat. Comput. Simul. 35, 101, 1990). Closer to
alignment the integral is taken from r to 1 instead, in x = √(1 − sin² θ), and the first terms of the expansion

    exp(−h k/(1 + √(1 − x²)))/√(1 − x²) = exp(−h k/2) (1 + c x² + 5 c d x⁴ + …),    c = (4 − h k)/8,  d = (12 − h k)/80

are integrated exactly against exp(−(h − k)²/(2 x²)) (Genz, Stat. Comput. 14, 251, 2004). Errors are about 1e-16.

>>> round(both_positive(0.0, 0.0, 0.5, 0.75), 15)          # 1/4 + asin(1/2)/2π
0.333333333333333
"""

from __future__ import annotations

import math

from ..compiled.functions import kept
from .rules import unit_rule

CERTAIN = 10.0  # standard deviations from zero at which a sign is taken for certain: it fails with probability 1e-23

_X6, _W6 = unit_rule(6)
_X12, _W12 = unit_rule(12)
_X20, _W20 = unit_rule(20)


@kept(error_model="numpy")
def density(x):  # pragma: no cover - compiled
    """Standard normal density."""
    return math.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)


@kept(error_model="numpy")
def positive(h):  # pragma: no cover - compiled
    """P(h + x > 0) = Φ(h), x standard normal."""
    return 0.5 * math.erfc(-h * math.sqrt(0.5))


@kept(error_model="numpy")
def _from_independence(h, k, r):  # pragma: no cover - compiled
    """The integral from 0 to asin r."""
    nodes, weights = (_X6, _W6) if abs(r) < 0.3 else ((_X12, _W12) if abs(r) < 0.75 else (_X20, _W20))
    end, product, square = math.asin(r), h * k, 0.5 * (h * h + k * k)
    total = 0.0
    for i in range(nodes.size):
        s = math.sin(end * nodes[i])
        total += weights[i] * math.exp((s * product - square) / (1.0 - s * s))
    return total * end / (2 * math.pi)


@kept(error_model="numpy")
def _to_alignment(h, k, rest):  # pragma: no cover - compiled
    """The integral from asin r to π/2 for r = √(1 − rest) close to 1."""
    a, b, product = math.sqrt(rest), abs(h - k), h * k
    if a == 0.0:
        return 0.0
    c, d = (4.0 - product) / 8.0, (12.0 - product) / 80.0
    end, scale = math.exp(-0.5 * (b / a) ** 2), math.exp(-0.5 * product)
    zeroth = a * end - b * math.sqrt(2 * math.pi) * positive(-b / a)
    second = (a**3 * end - b * b * zeroth) / 3.0
    fourth = (a**5 * end - b * b * second) / 5.0
    total = 0.0
    for i in range(_X20.size):
        square = (a * _X20[i]) ** 2
        root = math.sqrt(1.0 - square)
        exact = math.exp(-0.5 * product * square / (1.0 + root) ** 2) / root
        total += _W20[i] * math.exp(-0.5 * b * b / square) * (exact - 1.0 - c * square * (1.0 + 5.0 * d * square))
    return scale * (a * total + zeroth + c * second + 5.0 * c * d * fourth) / (2 * math.pi)


@kept(error_model="numpy")
def both_positive(h, k, r, rest):  # pragma: no cover - compiled
    """P(h + x > 0, k + y > 0) for correlation r; rest = 1 − r², given by itself for r close to ±1."""
    if h < -CERTAIN or k < -CERTAIN:
        return 0.0
    if h > CERTAIN:
        return positive(k)
    if k > CERTAIN:
        return positive(h)
    if abs(r) < 0.925:
        return positive(h) * positive(k) + _from_independence(h, k, r)
    if r > 0.0:
        return positive(min(h, k)) - _to_alignment(h, k, rest)
    return max(0.0, positive(h) - positive(-k)) + _to_alignment(h, -k, rest)


@kept(error_model="numpy")
def sign_covariance(h, k, r):  # pragma: no cover - compiled
    """P(both positive) − P(first) P(second): a quarter of the covariance of the signs of h + x and k + y."""
    if max(abs(h), abs(k)) > CERTAIN:
        return 0.0
    if abs(r) < 0.925:
        return _from_independence(h, k, r)
    return both_positive(h, k, r, (1.0 - r) * (1.0 + r)) - positive(h) * positive(k)
