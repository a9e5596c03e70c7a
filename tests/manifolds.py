"""Hidden manifolds that several test files share."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import overlaps as ov

DATA = Path(__file__).parent / "data"


def hidden(activation: str = "erf", **data: object) -> ov.Problem:
    """Two units learn two units on a hidden manifold, both layers."""
    return ov.Problem(
        data=ov.HiddenManifold(**{"latent_ratio": 0.5, **data}),  # type: ignore[arg-type]
        teacher=ov.Committee(2, activation),
        student=ov.Committee(2, activation, train_readout=True),
        algorithm=ov.OnlineSGD(0.2),
    )


def reference(activation: str = "erf", latent: ov.LatentMixture | None = None) -> tuple[ov.Problem, ov.Start]:
    """The problem behind tests/data/r000_*.npz: N = 1000, D = 500."""
    rng = np.random.default_rng(3)
    F, B = rng.standard_normal((500, 1000)), rng.standard_normal((2, 500))
    W, v = rng.standard_normal((2, 1000)), rng.standard_normal(2)
    problem = hidden(activation, latent_ratio=None, features=F, latent=latent)
    return problem, ov.Start.from_weights(problem, W, B, student_readout=v)


def apart(a: object, b: object) -> float:
    """Largest difference of two arrays."""
    return float(np.abs(np.asarray(a) - np.asarray(b)).max())


def rms(a: object, b: object) -> float:
    return float(np.sqrt(np.mean((np.asarray(a) - np.asarray(b)) ** 2)))
