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
from scipy.linalg import expm
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


def eq94(Q: ArrayLike, R: ArrayLike, T: ArrayLike) -> float:
    """(94), the error of erf units, from Q, R and T, each (M, M)."""
    Q, R, T = (np.asarray(x, dtype=float) for x in (Q, R, T))
    student, teacher = np.sqrt(1 + np.diag(Q)), np.sqrt(1 + np.diag(T))
    total = np.arcsin(Q / np.multiply.outer(student, student)).sum()
    total += np.arcsin(T / np.multiply.outer(teacher, teacher)).sum()
    return float((total - 2 * np.arcsin(R / np.multiply.outer(student, teacher)).sum()) / (len(T) * np.pi))


def eq121(units: int, r: float, s: float, q: float, c: float) -> float:
    """(121), the error to first order in what overlaps of first order differ by from the teacher's."""
    root, others = np.sqrt(3), units - 1
    return float((2 * root * q - 4 * root * r + 3 * others * c - 6 * others * s) / (6 * np.pi))


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


def eq74(spectrum: ov.PowerLaw, trained: int) -> float:
    """(74), the error of the levels beyond N_l, at distance one."""
    L, beta, top = spectrum.levels, spectrum.exponent, spectrum.eigenvalues[0]
    return float(top / (2 * L * beta) * (trained**-beta - L**-beta))


def eq74_bound(spectrum: ov.PowerLaw, trained: int) -> float:
    """The worst case after (74), at distance one."""
    L, beta, top = spectrum.levels, spectrum.exponent, spectrum.eigenvalues[0]
    return float(top / (4 * L) * (trained ** -(1 + beta) + L ** -(1 + beta)))


def eq95(T: ArrayLike) -> tuple[Array, float]:
    """(95), R* of each teacher (M,) and Q*, from T⁽¹⁾ (M, M)."""
    total = np.asarray(T, dtype=float)
    own, row, M = np.diag(total), total.sum(1), len(total)
    inside = M * own / row * (1 + 1 / own) - 1
    return 1 / np.sqrt(M / row * inside), float(np.mean(1 / inside))


def eq96(T: ArrayLike, T_order: ArrayLike) -> tuple[Array, float]:
    """(96), R* of each teacher (M,) and Q* of order l other than one, from T⁽¹⁾ and T⁽ˡ⁾ (M, M)."""
    own, row, M = np.diag(np.asarray(T, dtype=float)), np.asarray(T, dtype=float).sum(1), len(np.asarray(T))
    scale, inside = np.diag(np.asarray(T_order, dtype=float)) / own, M * own / row * (1 + 1 / own) - 1
    return scale / np.sqrt(M / row * inside), float(np.mean(scale / inside))


def eq84(covariance: Array, learnt: tuple[Array, Array], rest: tuple[Array, Array], reach: float) -> Array:
    """(84), the learnt components of J at η α = `reach`: J and B of those at the start, and of the rest, which stays.

    In print a matrix stands to the right of a vector, which is read as the order of factors only.
    """
    (J, B), (other_J, other_B) = learnt, rest
    n = len(J)
    left, cross = covariance[:n, :n], covariance[:n, n:]
    decay = np.asarray(expm(-left * reach), dtype=float)
    return decay @ J + (np.eye(n) - decay) @ (B + np.linalg.solve(left, cross @ (other_B - other_J)))


def eq18(Q: Array, R: Array, T: Array, rate: float) -> Array:
    """(18), dR/dα of erf committees of one level, (K, M), with I₃ of (90)."""
    C = np.block([[Q, R], [R.T, T]])
    K = len(Q)

    def third(i: int, n: int, j: int) -> float:
        one = 1 + C[i, i]
        top = C[n, j] * one - C[i, n] * C[i, j]
        return float(2 / np.pi / np.sqrt(one * (1 + C[j, j]) - C[i, j] ** 2) * top / one)

    fields = range(len(C))
    each = [[sum((1 if j >= K else -1) * third(i, n, j) for j in fields) for n in fields[K:]] for i in fields[:K]]
    return rate * np.array(each)


def eq19(Q: Array, R: Array, T: Array) -> float:
    """(19), the error of erf committees, with I₂ of (89)."""

    def second(cross: Array, left: Array, right: Array) -> float:
        return float(np.arcsin(cross / np.sqrt(np.outer(1 + np.diag(left), 1 + np.diag(right)))).sum() * 2 / np.pi)

    return (second(T, T, T) + second(Q, Q, Q) - 2 * second(R, Q, T)) / 2


def companion(eigenvalues: Array) -> Array:
    """A₁ of (27), (L, L): −1 above the diagonal, and c₀ … c_{L−1} of Π (x − λ_k) in the last row."""
    L = len(eigenvalues)
    matrix = -np.eye(L, k=1)
    matrix[-1] = np.poly(eigenvalues)[:0:-1]
    return matrix


def eq25(eigenvalues: Array, T: Array, R: Array, rate: float) -> float:
    """(25), dR^(L−1)/dα from T^(l) and R^(l), l = 0 to L − 1."""
    return float(rate * companion(eigenvalues)[-1] @ (T - R))


def eq41(eigenvalues: Array, T: Array, Q: Array, rate: float, time: float) -> Array:
    """(41), dQ/dα of moments 0 to L − 1, from u = T^(1) … T^(L) and Q, for R = 0 at the start."""
    A = companion(eigenvalues)
    U = np.outer(T, np.eye(len(T))[1])
    through = np.asarray(expm(A * time), dtype=float)
    first = rate * (-2 * A - 2 * rate * U) @ through @ np.linalg.solve(A, T)
    return np.asarray(first + (2 - rate) * T + rate * (2 * A + rate * U) @ Q, dtype=float)


def eq78(spectrum: ov.PowerLaw, trained: int, decay: float) -> float:
    """(78) at exp(−2 η λ_k α) = `decay`^λ_k, distance one; (71) is that for decay zero."""
    values, L = np.array(spectrum.eigenvalues), spectrum.levels
    learnt = values[:trained] @ np.power(decay, values[:trained])
    return float((learnt + values[trained - 1 :].sum()) / (2 * L))


def eq100_rate(units: int, second: float) -> float:
    """(100): the growth rate of the direction (106), for T⁽¹⁾ = 1, D = 0 and T⁽²⁾ = `second`."""
    M = units
    return float(2 / (np.pi * M) * np.sqrt((2 * M - 1) / (2 * M + 1)) * M * second / (4 * M**2 - 1))


def eq114_rate(units: int, rate: float, T: float, D: float) -> float:
    """(114): the growth rate η g_r of the specialisation."""
    M = units
    return float(2 * rate * (D + T) / (np.pi * np.sqrt((M - 1) * T - D + M) * (D + (M + 1) * T + M) ** 1.5))


def eq117(escape_time: float, constant: float, sigma: float, size: int) -> float:
    """(117), the length of the plateau."""
    return float(escape_time * (constant - np.log(sigma**2) / 2 + np.log(size) / 2))
