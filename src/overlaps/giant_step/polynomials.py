"""Alignment and elasticity as polynomials in the similarity, from F_l of `overlaps.giant_step.giant`.

    alignment  = N E_w f² + 2 N E_w f Σ_k T_k M_k + N Σ_{jk} T_j T_k M_{j+k}        f = E_x g(w·x)
    elasticity = N Σ_{km} c_k c_m (η c_1)^{k+m} E[(b·x)^{k+m}] M_{k+m}
    T_k = c_k (η c_1)^k E[(b·x)^k]        M_k = E α^k = (k − 1)!! (heads/N)^{k/2} for even k, else 0

up to order l, with b·x ~ N(b·μ, bᵀΣb). These are theorems 4.2 and 4.3 of the paper with three corrections: the first
term of the alignment is that of two independent samples, not E|F_0|²; b stands where the paper has β = b/√N; and α^k
has the moment with 2^{k/2}. The elasticity is the norm of F_l − F_0, which is not that of F − F_0 even to lowest order:
there E g'² takes the place of c_1² (27 % more for tanh) and the noise of the gradient adds.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..interface.checks import whole
from ..interface.errors import InputError
from .hermite import hermite_coefficients, is_bounded, power_moments
from .setting import GiantStepSetting

Array = NDArray[np.float64]
HIGHEST = 30  # order


def polynomial_scores(
    setting: GiantStepSetting, similarity: Array, variance: Array, first: Array, order: int | None, mean: Array
) -> tuple[int, Array, Array]:
    """Order, alignment and elasticity, (unseen,) each.

    Parameters
    ----------
    similarity, variance: b·μ and bᵀΣb; first: N E_w f²; mean: E_w f.
    order: l, or None for that of the window.
    """
    g, N, eta = setting.g, setting.count[2], setting.eta
    l = _order(setting) if order is None else whole("order", order, least=1, most=HIGHEST)
    expansion = hermite_coefficients(g, l)
    c = expansion.c
    if abs(c[0]) > 0:
        raise InputError(
            f"activation: polynomials need c_0 = E g(z) = 0, got {c[0]:.4g} for {g.name}; use centred(activation), or "
            "method='per-neuron'"
        )
    if not is_bounded(g):
        raise InputError(
            f"activation: polynomials are for bounded activations, {g.name} grows without bound; use 'tanh' or 'erf', "
            "or method='per-neuron'"
        )
    if c.size < 2 or c[1] == 0:
        raise InputError(f"activation: polynomials need c_1 = E g'(z) ≠ 0, which {g.name} has not; use train")
    moments = power_moments(2 * l, similarity, variance)
    heads = power_moments(2 * l, 0.0, setting.algorithm.heads / N)
    factor = [c[k] * (eta * c[1]) ** k for k in range(l + 1)]
    degrees = range(1, l + 1)
    alignment = first + 2 * N * mean * sum(factor[k] * moments[k] * heads[k] for k in degrees)
    elasticity = np.zeros_like(similarity)
    for j in degrees:
        for k in degrees:
            alignment = alignment + N * factor[j] * factor[k] * moments[j] * moments[k] * heads[j + k]
            elasticity += N * factor[j] * factor[k] * moments[j + k] * heads[j + k]
    return l, alignment, elasticity


def _order(setting: GiantStepSetting) -> int:
    window = setting.algorithm.window
    if window.order is None:
        raise InputError(f"exponent: {window}; pass order=, or use method='per-neuron'")
    if window.order > HIGHEST:
        raise InputError(
            f"exponent: {window}, and polynomials end at order {HIGHEST}; pass order=, or use method='per-neuron'"
        )
    return window.order
