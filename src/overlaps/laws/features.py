"""Feature scaling: what a linear student reaches when only some directions of its weights are trained.

In the eigenbasis the trained directions are levels: `linear_error` and its relatives take ``trained``, and the floor is

    ε_∞ = ½ c Σ_frozen φ ω / (1 − (η/2) Σ_trained φ ω).

Outside it the first N_l coordinates of x ~ N(0, Σ) are trained, Σ = (Σ_t, Σ_c; Σ_cᵀ, Σ_h). They also learn what they
predict of the frozen ones: the target is B_t + Σ_t⁻¹ Σ_c (B_h − w_h), and what they cannot predict is noise of variance

    (1/N) (B_h − w_h)ᵀ S (B_h − w_h),        S = Σ_h − Σ_cᵀ Σ_t⁻¹ Σ_c        (Schur complement),

independent of the trained inputs. In the eigenbasis of Σ_t, eigenvalues κ_k and rows u_k of Uᵀ Σ_c, that is a linear
student with distance c (1 + |u_k|²/κ_k²) in direction k and the floor (c/2N) Tr S / (1 − (η/2N) Tr Σ_t). For small
rates

    ε(t) = (c/2N) { Tr S + Σ_k (κ_k + |u_k|²/κ_k) e^{−2 η κ_k t} }.

For many coordinates in a random basis the trace no longer depends on the basis: a share f of them leaves

    Tr S/N = f κ,        Σ_b φ_b ω_b/(ω_b + κ) = f.

Reference: Worschech and Rosenow, arXiv:2410.09005, eqs. (10), (84)-(88), there for long times and small rates.

>>> import overlaps as ov
>>> round(ov.laws.feature_floor(ov.PowerLaw(levels=256, exponent=1.0), 10, distance=1.0001), 7)
0.0278107
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigh
from scipy.optimize import root_scalar

from ..interface.checks import array, checked, number, whole
from ..interface.errors import InputError
from .levels import HUGE, AnySpectrum, levels, merged
from .linear import Modes, floor_of, modes

Array = NDArray[np.float64]


@checked
def feature_floor(spectrum: AnySpectrum, trained: int, *, rate: float = 0.0, distance: float = 1.0) -> float:
    """Error after long training of the `trained` levels of largest eigenvalue; rate 0 means a vanishing one."""
    rate, distance = number("rate", rate, least=0), number("distance", distance, least=0)
    omega, phi, frozen = levels(spectrum, trained)
    return floor_of(frozen, float(phi @ omega), rate, distance)


@checked
def partial_error(
    covariance: ArrayLike, trained: int, rate: float, times: ArrayLike, *, distance: float = 1.0
) -> Array:
    """Error of a linear student whose first `trained` coordinates learn, for inputs N(0, covariance), (times,).

    Averaged over weights W − B with independent entries of mean square `distance`; exact for many coordinates of
    comparable variance, at any stable rate (corrections are of the order rate × largest eigenvalue / N).
    """
    rate, distance = number("rate", rate, above=0), number("distance", distance, least=0)
    sigma, factor, count = _factored(covariance, trained)
    N = len(sigma)
    unexplained, variance = _traces(sigma, factor)
    floor = floor_of(float(unexplained[count]), float(variance[count]), rate, distance)
    if count == 0:
        return Modes(np.empty(0), np.empty(0), floor)(times)
    kappa, U = eigh(sigma[:count, :count])
    # what the trained coordinates take over from the frozen ones
    explained = np.sum((U.T @ sigma[:count, count:]) ** 2, axis=1) / kappa**2
    excess = distance * (1 + explained) - rate * floor
    omega, phi, weighted = merged(kappa, np.full(count, 1 / N), excess / N)
    return modes(omega, phi, rate, weighted / phi, floor)(times)


@checked
def partial_floor(covariance: ArrayLike, trained: int, *, rate: float = 0.0, distance: float = 1.0) -> float:
    """Error after long training of the first `trained` coordinates; rate 0 means a vanishing one."""
    rate, distance = number("rate", rate, least=0), number("distance", distance, least=0)
    sigma, factor, count = _factored(covariance, trained)
    unexplained, variance = _traces(sigma, factor)
    return floor_of(float(unexplained[count]), float(variance[count]), rate, distance)


@checked
def partial_floors(covariance: ArrayLike, *, rate: float = 0.0, distance: float = 1.0) -> Array:
    """`partial_floor` for every number of trained coordinates, 0 to N, at the cost of one, (N+1,)."""
    rate, distance = number("rate", rate, least=0), number("distance", distance, least=0)
    sigma, factor, _ = _factored(covariance, 0)
    unexplained, variance = _traces(sigma, factor)
    pairs = zip(unexplained.tolist(), variance.tolist(), strict=True)
    return np.array([floor_of(left, read, rate, distance) for left, read in pairs])


@checked
def random_basis_floor(spectrum: AnySpectrum, share: float, *, rate: float = 0.0, distance: float = 1.0) -> float:
    """Error after long training of a `share` (0 to 1) of the coordinates in a random basis, for large N.

    At finite N corrections are of the order of one over the number of trained, or of frozen, coordinates.
    """
    rate, distance = number("rate", rate, least=0), number("distance", distance, least=0)
    share = number("share", share, least=0)
    omega, phi, _ = levels(spectrum)
    if share > 1:
        raise InputError(f"share: expected at most 1, all coordinates, got {share:g}")
    variance, able = float(phi @ omega), float(phi.sum())  # levels of eigenvalue zero carry no variance
    if share in (0, 1) or share >= able:
        unexplained = variance if share == 0 else 0.0
    else:
        highest = np.log(variance / share)  # f κ is at most the variance
        lowest = np.log(omega.min() * (able / share - 1)) - 1

        def excess(log_kappa: float) -> float:
            return float(np.sum(phi * omega / (omega + np.exp(log_kappa)))) - share

        found = root_scalar(excess, bracket=(lowest, highest + 1), xtol=1e-13)
        unexplained = share * float(np.exp(found.root))
    return floor_of(unexplained, share * variance, rate, distance)


def _traces(sigma: Array, factor: Array) -> tuple[Array, Array]:
    """Tr S/N and Tr Σ_t/N for 0 to N trained coordinates, both (N+1,)."""
    # S = F Fᵀ with F the trailing block of the lower Cholesky factor: its trace is the squares in the trailing columns
    columns = np.sum(factor**2, axis=0)
    unexplained = np.append(np.cumsum(columns[::-1])[::-1], 0.0)
    return unexplained / len(sigma), np.append(0.0, np.cumsum(np.diag(sigma))) / len(sigma)


def _factored(covariance: ArrayLike, trained: int) -> tuple[Array, Array, int]:
    """The covariance, its lower Cholesky factor and the number of trained coordinates, checked."""
    sigma = array("covariance", covariance, (None, None))
    if sigma.size == 0 or not 1 / HUGE < np.abs(sigma).max() < HUGE:
        raise InputError("covariance: expected a matrix with entries around one; give inputs other units")
    if sigma.shape[0] != sigma.shape[1] or not np.allclose(
        sigma, sigma.T, rtol=1e-10, atol=1e-12 * np.abs(sigma).max()
    ):
        raise InputError(f"covariance: expected a symmetric matrix, got one of shape {sigma.shape}")
    try:
        factor = np.linalg.cholesky(sigma).astype(float)
    except np.linalg.LinAlgError:
        raise InputError(
            "covariance: expected a positive definite matrix; add the variance of the missing directions, or leave "
            "out coordinates that others determine"
        ) from None
    return sigma, factor, whole("trained", trained, least=0, most=len(sigma))
