"""Ridge regression on n rows: its error on fresh rows before any row is drawn, by deterministic equivalents.

The minimum of ½⟨(y − θ·x)²⟩ + ½ β |θ|² over n rows of a population with eigenvalues λ_k, best linear map θ* and noise
σ² is also where SGD of small rate and decay β ends on them. Its error on fresh rows hardly fluctuates, and is

    2 error = (κ² Σ_k λ_k θ*_k²/(λ_k + κ)² + σ²)/(1 − γ),        γ = (1/n) Σ_k λ_k²/(λ_k + κ)²

where κ, the ridge that the population feels, is the root of κ − (κ/n) Σ_k λ_k/(λ_k + κ) = β. Without decay κ = 0 and
the error is σ²/2/(1 − N/n) as long as there are more rows than dimensions; with fewer it is that of the shortest map
that fits all of them. (A. Caponnetto and E. De Vito, Found. Comput. Math. 7, 331 (2007); C. Louart, Z. Liao and R.
Couillet, Ann. Appl. Probab. 28, 1190 (2018).)

A population is estimated from its rows, without the bias of a fit to them (`overlaps.data.fit_bias`).

>>> import numpy as np
>>> import overlaps as ov
>>> x = np.random.default_rng(0).standard_normal((4000, 20))
>>> data = ov.Samples(x, x[:, 0] + np.random.default_rng(1).standard_normal(4000))
>>> ov.laws.ridge_error(data, [10, 40, 400], decay=0.1).round(2).tolist()
[1.12, 0.8, 0.53]
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq

from ..data import Samples
from ..data.fit_bias import without_fit_bias
from ..interface.checks import array, checked, number
from ..interface.errors import InputError, shown

Array = NDArray[np.float64]


@checked
def ridge_error(data: Samples, samples: ArrayLike, decay: float = 0.0) -> Array:
    """Test error of ridge regression on `samples` rows of a population like `data`, noise of the labels included.

    Parameters
    ----------
    data: labelled rows of the population, more of them than dimensions.
    samples: n, one number or several of them.
    decay: β, as in `OnlineSGD` and `MultiPass`.

    Returns
    -------
    (len(samples),); infinite is refused: without decay, as many rows as dimensions.
    """
    if getattr(data, "own_teacher", None) is None:
        raise InputError(f"data: expected labelled rows, Samples(X, y), got {shown(data)}")
    decay = number("decay", decay, least=0)
    n = array("samples", np.atleast_1d(np.asarray(samples, float)), (None,))
    if n.size == 0 or n.min() < 1:
        raise InputError(f"samples: expected numbers of rows, at least one each, got {shown(samples)}")
    live = data.eigenvalues > 0
    lam, dimensions = data.eigenvalues[live], int(np.count_nonzero(live))
    assert data.own_teacher is not None
    squares, noise = without_fit_bias(
        lam,
        data.own_teacher[0, live] ** 2 / data.size,
        data.unexplained,
        count=len(data.rows),
        centred=data.centres_labels,
    )
    signal = lam * squares
    if decay == 0 and np.any(n == dimensions):
        raise InputError(
            f"samples: {dimensions} rows of as many dimensions fit all labels with weights of any length, and the "
            "error is infinite; use more or fewer rows, or a decay"
        )
    return np.array([equivalent_error(lam, signal, noise, each, decay) for each in n.tolist()])


def equivalent_error(lam: Array, signal: Array, noise: float, n: float, decay: float) -> float:
    """The error on fresh rows for eigenvalues λ (N,), signal λ θ*² (N,), noise σ², n rows and decay β."""
    kappa = _effective_decay(lam, n, decay)
    bias = kappa**2 * float(np.sum(signal / (lam + kappa) ** 2))
    gamma = float(np.sum((lam / (lam + kappa)) ** 2)) / n
    return 0.5 * (bias + noise) / (1 - gamma)


def _effective_decay(lam: Array, n: float, decay: float) -> float:
    """κ of n rows: the decay that a fit to infinitely many would need to be as biased."""
    if decay == 0 and n > lam.size:
        return 0.0

    def excess(kappa: float) -> float:
        return kappa * (1 - float(np.sum(lam / (lam + kappa))) / n) - decay

    # beyond this no eigenvalue can take more than decay leaves
    high = decay + float(lam.sum()) / n + 1e-300
    low = decay if decay > 0 else 1e-14 * high
    return low if excess(low) >= 0 else float(brentq(excess, low, high, xtol=1e-15 * high))  # type: ignore[arg-type]
