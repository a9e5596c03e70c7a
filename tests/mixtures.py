"""The two mixture problems of the outlier paper, at any size, that several test files share."""

from __future__ import annotations

from typing import Any

import numpy as np

import overlaps as ov

XOR = [[1, -1, 0, 0], [-1, 1, 0, 0], [0, 0, 1, -1], [0, 0, -1, 1]]


def classes(k: int = 3, variance: Any = 0.1, decay: float = 0.01, rate: float = 1.0, **mixture: Any) -> ov.Problem:
    """Softmax regression on k Gaussian classes, of orthonormal means unless told otherwise."""
    if "gram" not in mixture:
        mixture.setdefault("means", k)
    return ov.Problem(
        data=ov.GaussianMixture(variance=variance, **mixture),
        student=ov.Softmax(k),
        algorithm=ov.OnlineSGD(rate, decay=decay),
        loss="cross-entropy",
    )


def xor(
    units: int = 4,
    variance: float = 0.1,
    decay: float = 0.02,
    readout: Any = 1.0,
    activation: str = "relu",
    loss: Any = "logistic",
) -> ov.Problem:
    """The XOR mixture: means ±μ with label 1, ±ν with label 0, and a two-layer network of both layers trained."""
    return ov.Problem(
        data=ov.GaussianMixture(gram=XOR, labels=[1, 1, 0, 0], variance=variance),
        student=ov.Committee(units, activation, readout, train_readout=True),
        algorithm=ov.OnlineSGD(1.0, decay=decay),
        loss=loss,
    )


def xor_overlaps(mu: np.ndarray, nu: np.ndarray) -> np.ndarray:
    """m (K, 4) from overlaps with μ and ν, (K,)."""
    return np.stack([mu, -mu, nu, -nu], axis=1)
