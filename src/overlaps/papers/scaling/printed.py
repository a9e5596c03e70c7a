"""Formulas exactly as printed, where they do not follow from the equations of the paper.

Claims measure them next to what does follow; nothing else should use them. c = 1 + σ² is the distance, ω_k the L
eigenvalues, x = 2 η ω₊ t:

    (6)   (c/2L) Σ_k b_k λ_k e^{−2 η λ_k t},   λ_k, b_k of A₁ + η U          `eq6`
    (56)  the same with λ_k, b_k of 2 A₁ + η U                               `eq56`
    (11)  (c ω₊/2βL) (N_l^-β − L^-β) + (9) with all L levels                 `eq11`
    (49)  ½ f(1), f(k) = (c ω₊/L) k^-(1+β) e^{−x/k^(1+β)}                    `eq49`
    (91)  I₄ of the error function                                           `eq91`

A₁ acts on moments R⁽ˡ⁾ = Σ_k ω_k^l r_k as −ω_k on r_k, and U as (ω_k/L) Σ_j ω_j r_j: both are symmetric in r. b_k is
the component of T⁽ˡ⁾ = (1/L) Σ_k ω_k^l, l = 0..L−1, along the eigenvector whose first entry is one, that is 1/L times
the squared sum of the entries of r normalised to length one.

>>> import overlaps as ov
>>> from overlaps.papers.scaling.printed import eq6
>>> spectrum = ov.PowerLaw(levels=10, exponent=1.0)
>>> eq6(spectrum, 0.5, [0.0], distance=2.0).round(6).tolist()  # the error is one there
[0.05]
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import zeta

import overlaps as ov

Array = NDArray[np.float64]


def moment_modes(spectrum: ov.PowerLaw, a: float, rate: float) -> tuple[Array, Array]:
    """Minus the eigenvalues of a A₁ + η U, rising, and the components b of T along its eigenvectors; both (levels,)."""
    omega = np.array(spectrum.eigenvalues)
    values, vectors = np.linalg.eigh(a * np.diag(omega) - rate / omega.size * np.outer(omega, omega))
    return values, vectors.sum(0) ** 2 / omega.size


def eq6(spectrum: ov.PowerLaw, rate: float, times: ArrayLike, *, distance: float) -> Array:
    """(6), (times,). Eigenvalues are taken with the sign that lets the error decay."""
    return _sum(moment_modes(spectrum, 1, rate), spectrum.levels, rate, times, distance)


def eq56(spectrum: ov.PowerLaw, rate: float, times: ArrayLike, *, distance: float) -> Array:
    """(56), (times,). Eigenvalues are taken with the sign that lets the error decay."""
    return _sum(moment_modes(spectrum, 2, rate), spectrum.levels, rate, times, distance)


def _sum(modes: tuple[Array, Array], levels: int, rate: float, times: ArrayLike, distance: float) -> Array:
    values, b = modes
    t = np.asarray(times, dtype=float)
    return distance / (2 * levels) * np.exp(-2 * rate * np.multiply.outer(t, values)) @ (b * values)


def eq11(spectrum: ov.PowerLaw, rate: float, times: ArrayLike, trained: int, *, distance: float) -> Array:
    """(11) = (79), (times,); its second term runs over all levels, trained or not."""
    L, beta, top = spectrum.levels, spectrum.exponent, spectrum.eigenvalues[0]
    floor = 0.5 * distance * top / (beta * L) * (trained**-beta - L**-beta)
    return floor + ov.laws.gamma_error(spectrum, rate, times, distance=distance)


def eq49(spectrum: ov.PowerLaw, rate: float, times: ArrayLike, *, distance: float) -> Array:
    """The bound (49) on sum minus integral after 1/(2 η ω₊), (times,)."""
    top = spectrum.eigenvalues[0]
    return 0.5 * distance * top / spectrum.levels * np.exp(-2 * rate * top * np.asarray(times, dtype=float))


def worst_case(spectrum: ov.PowerLaw, *, distance: float) -> float:
    """The bound on sum minus integral at all times, printed before (49)."""
    L, beta, top = spectrum.levels, spectrum.exponent, spectrum.eigenvalues[0]
    return 0.5 * distance * top / L * (1 / L ** (1 + beta) + float(zeta(1 + beta)) - 1 / beta)


def eq91(covariance: ArrayLike) -> float:
    """(91), E[g′(1) g′(2) g(3) g(4)] for fields N(0, covariance), (4, 4); refused where it has no value."""
    C = np.asarray(covariance, dtype=float)
    one, two = 1 + C[0, 0], 1 + C[1, 1]
    a4 = one * two - C[0, 1] ** 2
    a0 = a4 * C[2, 3] + C[1, 2] * C[1, 3] * one + C[0, 2] * C[0, 3] * two + (C[0, 1] * C[0, 2] * C[1, 3]) ** 2
    a1 = a4 * (1 + C[2, 2]) + C[1, 2] * one - C[0, 2] * two + 2 * C[0, 1] * C[0, 2] * C[1, 2]
    a2 = a4 * (1 + C[3, 3]) - C[1, 3] * one - C[0, 3] * two + 2 * C[0, 1] * C[0, 3] * C[1, 3]
    if a1 * a2 <= 0 or a0**2 > a1 * a2:
        raise ov.InputError("covariance: (91) as printed has no value here; gaussian_averages has the integral")
    return float(4 / np.pi**2 / np.sqrt(a4) * np.arcsin(a0 / np.sqrt(a1 * a2)))


def eq98(order: int, units: int, moments: tuple[float, float, float]) -> tuple[float, float]:
    """(98), R* and Q* of an order l other than one; moments: T⁽¹⁾, D⁽¹⁾ (the sum of a row's other entries) and T⁽ˡ⁾."""
    first, other, T = moments
    scale = T / first if order else 1 / (first + other)
    inside = units * first / (first + other) * (1 + 1 / first) - 1
    return scale / np.sqrt(units / (first + other) * inside), scale / inside


def eq99(units: int, T: float, D: float) -> float:
    """(99), the error on the plateau; T = T⁽¹⁾, D = D⁽¹⁾."""
    M = units
    long = np.sqrt(-(D * M - M**2 - (M**2 - M) * T) / (D + T) ** 2) * np.sqrt((M * T + M) / ((M - 1) * T - D + M))
    angles = M * np.arcsin((D + T) / (M * T + M)) + (M - 1) * np.arcsin(D / (T + 1))
    return float((angles - 2 * M * np.arcsin(1 / (np.sqrt(T + 1) * long)) + np.arcsin(T / (T + 1))) / np.pi)


def eq115(units: int, T: float, D: float) -> float:
    """(115), error* − error over the square of the specialisation at the start, without its factor exp(α/τ)."""
    M = units
    top = ((M - 1) * T + M - D) * (D + T)
    return float(top / (8 * np.pi * M * (M - 1) * (T - (D + T) ** 2 / (4 * M**2)) ** 1.5))


def eq17_rates(units: int, rate: float) -> tuple[float, float]:
    """(16) and (17): decay rates of the error over the eigenvalue, slow and fast, with the η that (16) leaves out."""
    a = 2 * np.sqrt(3) * rate / (3 * np.pi * units)
    return a * (2 - np.sqrt(3)), a * (2 + np.sqrt(3))


def eq15(units: int, rate: float, first: tuple[float, float], second: tuple[float, float]) -> float:
    """(15), the escape time; first and second: (T, D) of order one and two, D the sum of a row's other entries."""
    M, (T, D), (T2, D2) = units, first, second
    return float(
        np.pi
        / (2 * rate)
        * np.sqrt((M - 1) * T - D + M)
        * (D + (M + 1) * T + M) ** 1.5
        / ((T2 - D2 / (M - 1)) * (D + T))
    )
