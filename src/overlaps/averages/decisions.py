"""Which class a network takes inputs for: the confusion matrix, of rows and of Gaussian fields.

An input is taken for the class whose target has the least loss (``decision`` of `overlaps.network.losses`): the sign of
the output for the logistic loss and the hinge, the nearest target for the square loss, the largest field for softmax.
Over inputs of class a, and over all inputs,

    confusion_ab = P(taken for b | a)        misclassified = Σ_a p_a (1 − confusion_aa).

Of rows these are counts. Of Gaussian fields h = m_c + L_c z they are shares of Sobol points z, mirrored, whose error is
below one in n for a single field and grows to some n^(−1/2) for many. Two independent sets are taken: the mean of both
is given, and their difference stated as its error.

>>> from overlaps.averages.decisions import by_label
>>> by_label(np.array([[0.3, 0.1], [0.0, 0.6]])).round(2).tolist()
[[0.75, 0.25], [0.0, 1.0]]
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..compiled.functions import loop
from ..data.square_roots import cholesky
from ..problem.statement import Problem
from . import rules

Array = NDArray[np.float64]
LOG2 = 14  # of half the number of points of a set


def by_label(shares: Array) -> Array:
    """The confusion matrix from shares of all inputs, (…, classes, classes); zeros for a class without inputs."""
    own = shares.sum(-1, keepdims=True)
    return np.divide(shares, own, out=np.zeros_like(shares), where=own > 0)


def decided_variables(shares: Array) -> dict[str, Any]:
    """What a theory holds of shares by sets of points, (time, sets, classes, classes): misclassified and confusion.

    The difference of the sets is an attribute of each, `points_error`.
    """
    each = {
        "misclassified": (("run", "time"), np.clip(1 - np.trace(shares, axis1=2, axis2=3), 0.0, 1.0)),
        "confusion": (("run", "time", "class", "decision"), by_label(shares)),
    }
    return {
        name: (dims, values.mean(1)[None], {"points_error": float(np.ptp(values, axis=1).max())})
        for name, (dims, values) in each.items()
    }


@loop(nogil=True)
def shares_of_rows(decision, W, B, rows, labels, targets, v, u):  # pragma: no cover - compiled
    """Share of all rows that have one target and are taken for another, (targets, targets), of weights W (K, N)."""
    shares = np.zeros((targets.size, targets.size))
    lam, nu = np.empty(len(W)), np.empty(len(B))
    unit = 1.0 / np.sqrt(W.shape[1])
    for i in range(len(rows)):
        x = rows[i]
        for k in range(lam.size):
            lam[k] = unit * np.dot(W[k], x)
        for m in range(nu.size):
            nu[m] = unit * np.dot(B[m], x)
        own = 0
        while targets[own] != labels[i]:
            own += 1
        shares[own, decision(lam, nu, targets, v, u)] += 1.0 / len(rows)
    return shares


@loop(nogil=True)
def _taken(decision, z, L, mean, targets, v, u):  # pragma: no cover - compiled
    """Share of the points z (n, d) whose fields mean + L z are taken for each target."""
    n, d = z.shape
    taken, h, nu = np.zeros(targets.size), np.empty(d), np.empty(0)
    for i in range(n):
        for a in range(d):
            h[a] = mean[a]
            for b in range(a + 1):
                h[a] += L[a, b] * z[i, b]
        taken[decision(h, nu, targets, v, u)] += 1.0 / n
    return taken


def shares_of_gaussians(problem: Problem, C: Array, means: Array, v: Array, classes: NDArray[np.int64]) -> Array:
    """The same for fields of covariance C[c] (P, K, K) and mean means[:, c] in each component of a mixture.

    classes: (P,) that of each component. Returned by sets of points, (2, classes, classes).
    """
    targets = np.unique(problem.data.components.labels)
    shares, v = np.zeros((2, targets.size, targets.size)), np.ascontiguousarray(v)
    sets = [rules.sobol(len(v), LOG2, 4711 + 100 * points)[0] for points in range(2)]
    for weight, own, c, mean in zip(problem.data.components.weights, classes, C, means.T, strict=True):
        L, at = cholesky(c), (np.ascontiguousarray(mean), targets, v, np.empty(0))
        for one, z in zip(shares, sets, strict=True):
            one[own] += weight * _taken(problem.decision, z, L, *at)
    return shares
