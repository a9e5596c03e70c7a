"""Derivatives of a function of a vector by central differences."""

from __future__ import annotations

import numpy as np


def hessian_of(f, x):
    """(n, n)."""
    n, step = x.size, 1e-4
    H = np.empty((n, n))
    for i in range(n):
        for j in range(n):
            ei, ej = step * np.eye(n)[i], step * np.eye(n)[j]
            H[i, j] = (f(x + ei + ej) - f(x + ei - ej) - f(x - ei + ej) + f(x - ei - ej)) / (4 * step**2)
    return H


def gradient_of(f, x):
    """(n,)."""
    step = 1e-6
    return np.array([(f(x + step * e) - f(x - step * e)) / (2 * step) for e in np.eye(x.size)])
