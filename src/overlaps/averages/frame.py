"""Gaussian fields as unit vectors: x_i · x_j is the correlation of fields i and j.

A field given that others are zero is the part of its vector orthogonal to theirs. When fields align, terms of order one
cancel between different orders of conditioning. They do so to rounding only if all of them belong to one covariance, so
conditional fields are computed from vectors, not from entries of a matrix, and short ones from differences of vectors.

>>> import numpy as np
>>> X = frame(np.array([[1.0, 0.6], [0.6, 1.0]]))
>>> X.round(12)
array([[1. , 0. ],
       [0.6, 0.8]])
>>> rest = np.empty(2)
>>> round(outside(X[1], X[0], X[:1], 1, 2, rest), 12), rest.round(12)
(0.8, array([0. , 0.8]))
"""

from __future__ import annotations

import math

import numpy as np

from ..compiled.functions import kept

PRIVATE = 1e-8  # least distance of a field from the others, in standard deviations: what rounding leaves of it


@kept(error_model="numpy")
def frame(C):  # pragma: no cover - compiled
    """Unit vectors with the correlations C as rows (fields, fields), by Cholesky decomposition.

    The field farthest from those before it comes next, so that short pivots, which rounding spoils, have only short
    ones after them. A field that lies in the span of others keeps a direction of its own, of length PRIVATE: given that
    those are zero, its sign is a matter of this direction, the same one whatever the order of conditioning.
    """
    n = C.shape[0]
    X = np.zeros((n, n))
    left, waiting = np.empty(n), np.ones(n, np.bool_)
    for i in range(n):
        left[i] = C[i, i]
    for j in range(n):
        far = -1
        for i in range(n):
            if waiting[i] and (far < 0 or left[i] > left[far]):
                far = i
        waiting[far] = False
        if not left[far] > PRIVATE**2:
            X[far, j] = PRIVATE
            continue
        X[far, j] = math.sqrt(left[far])
        for i in range(n):
            if waiting[i]:
                total = C[i, far]
                for m in range(j):
                    total -= X[i, m] * X[far, m]
                # a covariance that a solver left slightly indefinite may ask for more than there is
                most = math.sqrt(max(left[i], 0.0))
                X[i, j] = min(most, max(-most, total / X[far, j]))
                left[i] -= X[i, j] ** 2
    return X


@kept(error_model="numpy")
def dot(x, y, d):  # pragma: no cover - compiled
    """Inner product of the first d entries."""
    total = 0.0
    for m in range(d):
        total += x[m] * y[m]
    return total


@kept(error_model="numpy")
def outside(x, near, basis, count, d, out):  # pragma: no cover - compiled
    """Part of x orthogonal to the first `count` rows of basis, of which ±near lies in the span; returns its length.

    Vectors have d entries; linear functions of them, such as the mean of a field, may follow and are carried along.
    Starting from the difference to the nearer of ±near keeps the relative accuracy of a short remainder.
    """
    side = 1.0 if dot(x, near, d) >= 0.0 else -1.0
    for m in range(x.size):
        out[m] = x[m] - side * near[m]
    for _ in range(2):
        for b in range(count):
            along = dot(out, basis[b], d)
            for m in range(x.size):
                out[m] -= along * basis[b, m]
    return math.sqrt(dot(out, out, d))


@kept(error_model="numpy")
def nearer(x, y, z, d):  # pragma: no cover - compiled
    """The one of y and z whose line is closer to x."""
    return y if abs(dot(x, y, d)) >= abs(dot(x, z, d)) else z
