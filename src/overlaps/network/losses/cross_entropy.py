"""The cross-entropy of softmax regression, loss = −λ_c + log Σ_a e^{λ_a}."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from ..activations import Activation


@dataclass(frozen=True)
class CrossEntropy:
    """The loss of softmax regression, the only one that is of the fields and the class, not of an output."""

    name: str = "cross-entropy"
    smooth: bool = True
    kinks = None  # there are none

    def compiled(self, part: str, student: Activation | None, teacher: Activation | None) -> Any:
        """A part of the loss, see `overlaps.network.losses`; there are no activations."""
        return _compiled()[part]


@cache
def _compiled() -> dict[str, Any]:
    """Gradient, value, second derivatives and decision; there is no readout."""
    from ...compiled.symbols import njit

    @njit
    def logsum(lam):  # pragma: no cover - compiled
        top = lam[0]
        for k in range(1, lam.size):
            top = max(top, lam[k])
        total = 0.0
        for k in range(lam.size):
            total += np.exp(lam[k] - top)
        return top + np.log(total)

    @njit
    def gradient(lam, nu, c, v, u, noise, dlam, dv):  # pragma: no cover - compiled
        norm = logsum(lam)
        for k in range(lam.size):
            dlam[k] = np.exp(lam[k] - norm)
            dv[k] = 0.0
        dlam[c] -= 1.0

    @njit
    def value(lam, nu, c, v, u, noise=0.0):  # pragma: no cover - compiled
        return logsum(lam) - lam[c]

    @njit
    def curvature(lam, nu, c, v, u, ll, lv, vv):  # pragma: no cover - compiled
        norm = logsum(lam)
        for i in range(lam.size):
            ll[i, i] = np.exp(lam[i] - norm)
        for i in range(lam.size):
            for j in range(i):
                ll[i, j] = ll[j, i] = -ll[i, i] * ll[j, j]
        for i in range(lam.size):
            ll[i, i] *= 1.0 - ll[i, i]
            for j in range(lam.size):
                lv[i, j] = 0.0
                vv[i, j] = 0.0

    @njit
    def decision(lam, nu, targets, v, u):  # pragma: no cover - compiled
        best = 0
        for c in range(1, targets.size):
            if lam[targets[c]] > lam[targets[best]]:
                best = c
        return best

    return {"gradient": gradient, "value": value, "curvature": curvature, "decision": decision}


LOSS = CrossEntropy()
