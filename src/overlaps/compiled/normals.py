"""Standard normal numbers, many at once: counter-based bits, and Box and Muller's map without branches.

    z_2i = √(−2 log u) sin 2πv,   z_2i+1 = √(−2 log u) cos 2πv,   u from mix(k + iγ),  v from mix(l + iγ)

Number i of a vector depends on i and on the key (k, l) of the vector alone, so a processor makes eight at a time with
its vector instructions, where a generator with a state passes it on from each number to the next. The key is drawn from
the generator of the run, anew for every vector. u has 53 bits and is never 0, so |z| < 8.7.

γ and mix are those of SplitMix64: Steele, Lea and Flood, Fast splittable pseudorandom number generators (2014); the
polynomials of log, sin and cos are those of FDLIBM (Sun Microsystems, 1993).

>>> import numpy as np
>>> from overlaps.compiled.normals import fill_normals
>>> z = np.empty(100_000)
>>> fill_normals(z, np.random.default_rng(0))
>>> bool(abs(z.mean()) < 0.02 and abs(z.var() - 1) < 0.03)
True
"""

from __future__ import annotations

import math

import numpy as np

from .symbols import njit

BITS = np.uint64  # its arithmetic is modulo 2⁶⁴
GAMMA = BITS(0x9E3779B97F4A7C15)
# a test of each divisor would be a branch; products and sums may be one instruction
_FREE = {"error_model": "numpy", "fastmath": {"contract"}}
_inlined = njit(forceinline=True, **_FREE)


@_inlined
def mix(z):  # pragma: no cover - compiled
    """SplitMix64's mixing function: 64 random bits from a counter."""
    z = (z ^ (z >> BITS(30))) * BITS(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> BITS(27))) * BITS(0x94D049BB133111EB)
    return z ^ (z >> BITS(31))


@_inlined
def minus_log(bits):  # pragma: no cover - compiled
    """−log u of u = (n + ½)/2⁵³, where n are the upper 53 of 64 bits."""
    u = np.float64((np.float64(np.int64(bits >> BITS(11))) + 0.5) * 2.0**-53)
    form = u.view(BITS)
    exponent = np.float64(np.int64(form >> BITS(52)) - 1023)
    m = BITS((form & BITS(0x000FFFFFFFFFFFFF)) | BITS(0x3FF0000000000000)).view(np.float64)  # u = m 2^exponent
    large = m > 1.4142135623730951
    f = m * (0.5 if large else 1.0) - 1.0
    exponent = exponent + (1.0 if large else 0.0)
    s, half = f / (2.0 + f), 0.5 * f * f
    z = s * s
    # fmt: off
    series = z * (0.6666666666666735130 + z * (0.3999999999940941908 + z * (0.2857142874366239149
             + z * (0.2222219843214978396 + z * (0.1818357216161805012 + z * (0.1531383769920937332
             + z * 0.1479819860511658591))))))
    # fmt: on
    return half - s * (half + series) - f - exponent * 0.6931471805599453


@_inlined
def sine_cosine(bits):  # pragma: no cover - compiled
    """sin and cos of an angle: the upper two bits are its quadrant, the next 52 the place there."""
    quadrant = bits >> BITS(62)
    place = np.float64(np.int64((bits << BITS(2)) >> BITS(12)))
    r = ((place + 0.5) * 2.0**-52 - 0.5) * 1.5707963267948966  # between −π/4 and π/4
    z = r * r
    # fmt: off
    s = r + r * z * (-1.66666666666666324348e-01 + z * (8.33333333332248946124e-03 + z * (-1.98412698298579493134e-04
        + z * (2.75573137070700676789e-06 + z * (-2.50507602534068634195e-08 + z * 1.58969099521155010221e-10)))))
    c = 1.0 - 0.5 * z + z * z * (4.16666666666666019037e-02 + z * (-1.38888888888741095749e-03
        + z * (2.48015872894767294178e-05 + z * (-2.75573143513906633035e-07 + z * (2.08757232129817482790e-09
        - z * 1.13596475577881948265e-11)))))
    # fmt: on
    odd = (quadrant & BITS(1)) != BITS(0)
    sign = -1.0 if (quadrant & BITS(2)) != BITS(0) else 1.0
    return sign * (c if odd else s), sign * (-s if odd else c)


@_inlined
def _pair(i, key):  # pragma: no cover - compiled
    at = BITS(i) * GAMMA
    radius = math.sqrt(2.0 * minus_log(mix(key[0] + at)))
    sine, cosine = sine_cosine(mix(key[1] + at))
    return radius * sine, radius * cosine


@njit(nogil=True)
def draw_key(rng):  # pragma: no cover - compiled
    """The key of a vector, 53 random bits for u and as many for v."""
    return BITS(np.int64(rng.random() * 2.0**53)) << BITS(11), BITS(np.int64(rng.random() * 2.0**53)) << BITS(11)


@njit(nogil=True, **_FREE)
def normals_from(first, key, x):  # pragma: no cover - compiled
    """Write into x the numbers `first`, which is even, and the next of the vector with this key."""
    pairs, begin = x.size // 2, first // 2
    for i in range(pairs):
        x[2 * i], x[2 * i + 1] = _pair(begin + i, key)
    if x.size % 2:
        x[2 * pairs] = _pair(begin + pairs, key)[0]


@njit(nogil=True)
def fill_normals(x, rng):  # pragma: no cover - compiled
    """Write standard normal numbers into x, of any length."""
    normals_from(0, draw_key(rng), x)
