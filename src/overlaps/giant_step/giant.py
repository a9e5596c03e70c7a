"""The giant step itself: gradient, its rank-one part, and the Hermite expansion of the features.

    G = −∂loss/∂W = (1/(n√N)) Xᵀ[ Σ_c (y_c − g(XW) a_c/√N) a_cᵀ ⊙ g'(XW) ]        W ← W + η √N G
    G ≈ A = (c_1/√N) b αᵀ        b = Xᵀy/n,  α = a_1 − a_2 (of one head α = a_1)
    F ≈ F_l = F_0 + Σ_{k=1}^l c_k (η c_1 x·b)^k α^{∘k}

The last in operator norm only: entry by entry the term k = 1 is g'(z) s, not c_1 s, with s = η c_1 (x·b) α. (Written
with β = b/√N the k-th term needs a factor N^{k/2}.)
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..data.nonlinearity import nonlinearity, slope
from ..interface.checks import array, checked, number, whole
from ..interface.errors import InputError
from ..network.activations import Activation, activation
from .hermite import finite, hermite_coefficients

Array = NDArray[np.float64]


@checked
def gradient(X: ArrayLike, y: ArrayLike, W: ArrayLike, heads: ArrayLike, g: str | Activation = "tanh") -> Array:
    """G, the negative gradient of the loss with respect to the first layer, (inputs, width).

    Parameters
    ----------
    X: (samples, inputs); y: (samples,); W: (inputs, width).
    heads: a_c, (1, width) for labels y, or (2, width) for labels y and −y.
    g: the activation.
    """
    X = array("X", X, (None, None))
    n, d = X.shape
    y, W = array("y", y, (n,)), array("W", W, (d, None))
    a = _heads(heads, W.shape[1])
    if 0 in (*X.shape, *W.shape):
        raise InputError(f"X, W: expected at least one sample, input and unit, got shapes {X.shape} and {W.shape}")
    with np.errstate(over="ignore", invalid="ignore"):
        return finite("gradient", raw_gradient(X, y, W, a, activation(g)))


def raw_gradient(X: Array, y: Array, W: Array, a: Array, g: Activation) -> Array:
    """`gradient` without checks and copies."""
    n, N = len(X), W.shape[1]
    fields = X @ W
    targets = np.stack([y, -y][: len(a)])
    residual = targets - a @ nonlinearity(g).function(fields).T / np.sqrt(N)
    pull = slope(g).function(fields)
    pull *= residual.T @ a
    return X.T @ pull / (n * np.sqrt(N))


@checked
def rank_one(X: ArrayLike, y: ArrayLike, heads: ArrayLike, g: str | Activation = "tanh") -> tuple[Array, Array]:
    """The rank-one part of the gradient at weights on the sphere, A = outer(first, second): (inputs,) and (width,)."""
    X = array("X", X, (None, None))
    y = array("y", y, (len(X),))
    a = _heads(heads, None)
    if 0 in (len(X), a.shape[1]):
        raise InputError(f"X, heads: expected at least one sample and unit, got shapes {X.shape} and {a.shape}")
    c1 = hermite_coefficients(g, 1).c[1]
    with np.errstate(over="ignore", invalid="ignore"):
        return finite("rank-one part", c1 * (y @ X) / (len(X) * np.sqrt(a.shape[1]))), combined_head(a)


def combined_head(a: Array) -> Array:
    """α, the combination of heads in the rank-one gradient: a_1 − a_2 of two, a_1 of one, (width,)."""
    return a[0] - a[1] if len(a) == 2 else a[0]


@checked
def expanded_features(
    x: ArrayLike,
    before: ArrayLike,
    b: ArrayLike,
    alpha: ArrayLike,
    eta: float,
    order: int,
    g: str | Activation = "tanh",
) -> Array:
    """F_l of points x, (points, width).

    Parameters
    ----------
    x: (points, inputs); before: F_0 of them, (points, width).
    b: Xᵀy/n, (inputs,); alpha: (width,); eta: η.
    order: l.
    """
    x = array("x", x, (None, None))
    F = array("before", before, (len(x), None))
    b, alpha = array("b", b, (x.shape[1],)), array("alpha", alpha, (F.shape[1],))
    c = hermite_coefficients(g, whole("order", order, least=1, most=60)).c
    eta = number("eta", eta, above=0)
    with np.errstate(over="ignore", invalid="ignore"):
        shift = np.outer(eta * c[1] * (x @ b), alpha)
        power = np.ones_like(shift)
        for k in range(1, c.size):
            power *= shift
            F += c[k] * power
    return finite("expanded features", F)


@checked
def operator_norm(A: ArrayLike) -> float:
    """The largest singular value of a matrix, to relative accuracy 1e-8."""
    A = array("A", A, (None, None))
    if not A.any():
        return 0.0
    largest = float(np.abs(A).max())
    A /= largest  # no square of an entry overflows or vanishes
    if min(A.shape) >= 64:
        from scipy.sparse.linalg import ArpackError, svds

        try:
            v0 = np.random.default_rng(0).standard_normal(min(A.shape))
            found: Any = svds(A, k=1, tol=cast(int, 1e-9), v0=v0, return_singular_vectors=False)
            return largest * float(found[0])
        except ArpackError:
            pass  # many equal singular values, such as those of the identity: all of them are found below
    return largest * float(np.linalg.norm(A, 2))


@checked
def gradient_error(G: ArrayLike, first: ArrayLike, second: ArrayLike) -> float:
    """|G − A|/|G| in operator norm, A = outer(first, second), as in Proposition 3.1."""
    G = array("G", G, (None, None))
    first, second = array("first", first, (G.shape[0],)), array("second", second, (G.shape[1],))
    size = operator_norm(G)
    if size == 0:
        raise InputError("G: the gradient is zero, so that no error relative to it exists")
    with np.errstate(over="ignore", invalid="ignore"):
        return operator_norm(finite("G - A", G - np.outer(first, second))) / size


def _heads(value: ArrayLike, width: int | None) -> Array:
    a = array("heads", value, (None, width))
    if len(a) not in (1, 2):
        raise InputError(f"heads: expected 1 or 2 rows of {a.shape[1]}, got {len(a)}")
    return a
