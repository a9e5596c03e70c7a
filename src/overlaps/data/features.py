"""Feature matrices F (D, N) of a hidden manifold, with columns of squared length D, and the limits of their spectra.

The inputs see the eigenvalues s of FᵀF/D. Gaussian entries give the law of Marchenko and Pastur with ratio y = N/D,

    density √((s₊ − s)(s − s₋))/(2π y s),  s± = (1 ± √y)²,  and for y > 1 an atom 1 − 1/y at zero,

whose orthogonal polynomials have the Jacobi matrix with diagonal 1, 1 + y, 1 + y, … and √y beside it: its Gauss rule
integrates the atom too, and has no trouble at y = 1. Orthogonal rows (D < N) give s = N/D on a fraction D/N of the
dimensions and zero on the others, orthogonal columns s = 1.

>>> from overlaps.data.features import limit
>>> s, share = limit("gaussian", 0.5)
>>> round(float(share.sum()), 12), round(float(share @ s), 12), round(float(share @ s**2), 12)  # 1, 1 and 1 + y
(1.0, 1.0, 3.0)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..interface.errors import InputError

Array = NDArray[np.float64]
KINDS = ("gaussian", "orthogonal", "hadamard")
NODES = 64  # of the Gauss rule for the law of Marchenko and Pastur


def limit(kind: str, ratio: float) -> tuple[Array, Array]:
    """Eigenvalues s and shares of the N dimensions, (levels,) each, as D, N → ∞ with D/N = `ratio`; largest first."""
    y = 1 / ratio
    if kind == "gaussian":
        jacobi = np.diag(np.append(1.0, np.full(NODES - 1, 1 + y))) + np.sqrt(y) * np.eye(NODES, k=-1)
        s, vectors = np.linalg.eigh(jacobi)  # reads the lower triangle alone
        return np.maximum(s[::-1], 0.0), vectors[0, ::-1] ** 2
    if y > 1:
        return np.array([y, 0.0]), np.array([ratio, 1 - ratio])
    return np.ones(1), np.ones(1)


def draw(kind: str, D: int, N: int, seed: int) -> Array:
    """A feature matrix (D, N) of that kind."""
    rng = np.random.default_rng([seed, D, N])
    if kind == "gaussian":
        return normalised(rng.standard_normal((D, N)))
    larger = max(D, N)
    if kind == "orthogonal":
        basis = np.linalg.qr(rng.standard_normal((larger, min(D, N))))[0]
        return normalised(basis if D >= N else basis.T)
    if larger & (larger - 1):
        raise InputError(
            f"features: a Hadamard matrix has a power of two rows, got max(D, N) = {larger}; use a size of "
            f"{1 << larger.bit_length()}, or features='orthogonal'"
        )
    square = np.ones((1, 1))
    while len(square) < larger:
        square = np.block([[square, square], [square, -square]])
    # signs and order at random: rows and columns of the plain matrix have structure that inputs would inherit
    rows, columns = rng.permutation(larger)[:D], rng.permutation(larger)[:N]
    return square[np.ix_(rows, columns)] * rng.choice([-1.0, 1.0], N) * rng.choice([-1.0, 1.0], D)[:, None]


def normalised(F: Array) -> Array:
    """The features with columns of squared length D, so that every u = Fᵀ C/√D has unit variance."""
    lengths = np.linalg.norm(F, axis=0)
    if not lengths.all():
        raise InputError(
            f"features: column {int(np.flatnonzero(lengths == 0)[0])} is zero, so that input would not depend on the "
            "latent; leave it out"
        )
    return F * (np.sqrt(len(F)) / lengths)
